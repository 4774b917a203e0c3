//! The daemon of one line.

mod coding_time;
mod host_frames;
mod inlet;
pub mod line;
mod member;
mod members;
mod readable;
mod tickets;

pub use inlet::Filter;
pub use line::{Line, LineError, MemberReport, Report, Woken};
pub use member::MemberCounters;
pub use members::NumbersUsedUp;
