//! The daemon of one line.

pub mod line;
mod member;

pub use line::{Line, LineError, MemberReport, Report, Woken};
pub use member::MemberCounters;
