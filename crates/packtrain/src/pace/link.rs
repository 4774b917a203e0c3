//! The gap behind each frame of an interface (section 3 of the CPS paper): what `packtrain pace link` starts.
//!
//! The kernel's queue spaces frames ([`crate::linux::gap_qdisc`]). This process tells it how, follows the interface (its MTU, its
//! rate, its name), answers who asks, and undoes all of it in the end.

pub mod document;
mod error;
mod plan;
pub mod rules;
mod running;
pub mod wish;

pub use error::PaceError;
pub use running::RunningPacer;
