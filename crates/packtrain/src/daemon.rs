//! The daemon of one line.

pub mod line;
mod member;
mod readable;

pub use line::{Line, LineError, MemberReport, Report, Woken};
pub use member::MemberCounters;
