//! The protocol of the DFAP paper: J. M. Meehan, P. A. Nelson, D. Engeset, A. Pashiardis, *Data Link Frame
//! Aggregation Protocol* (2004), a section a file. docs/papers/dfap.md says what we read differently.
//!
//! The frame is [`crate::wire::dfap`]; when packets leave by other rules than the paper's,
//! [`crate::waiting`] says.

pub mod best_fit;
pub mod stations;
pub mod traffic_count;
pub mod window;
