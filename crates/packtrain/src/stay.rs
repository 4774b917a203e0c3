//! A line whose daemon ends while its direct path stays, until the next daemon takes it over.
//!
//! ```text
//!  daemon ──── spawns, and tells what there is to keep ───▶ keeper    holds the same descriptors, and waits
//!    ╳ ends, however                                        keeper    keeps pt0, the programs; says that we are away
//!  daemon ◀─── pt0's descriptor ─────────────────────────── keeper    asked by the next one
//!  daemon ──── "let go", once its own programs carry ─────▶ keeper    takes the old ones away, and ends
//! ```
//!
//! The keeper has the journal's duty while there is no daemon: when nobody comes in time, or `packtrain down` asks,
//! it takes everything away and undoes what was changed. Killed, it leaves what a killed daemon leaves.
//!
//! While the daemon lives the keeper only waits; it takes its name, by which others find it, when the daemon has
//! ended. What it is told is of one version, that of the daemon that has spawned it. What passes
//! between a keeper and the *next* daemon may be of two, and says its format.

mod heir;
mod keeper;
mod message;
mod spawned;

use std::io;
use std::time::Duration;

pub use heir::{Heir, end, take_over};
pub use keeper::keep;
pub use message::{EntryKept, GuardKept, Kept, PEERS_MAX, WordKept};
pub use spawned::Spawned;

/// When it is not said how long.
pub const DEFAULT: Duration = Duration::from_secs(60);
pub const SECONDS_MIN: u64 = 1;
/// Peers send into the void for so long when nobody comes.
pub const SECONDS_MAX: u64 = 3600;

/// What a keeper and its daemons could not do.
#[derive(Debug, thiserror::Error)]
pub enum StayError {
    #[error("the keeper of {line} cannot be started: {source}")]
    Spawn { line: String, source: io::Error },
    #[error("the keeper of {line}: {source}")]
    Io { line: String, source: io::Error },
    #[error(
        "the keeper of {line} does not answer: kill it (packtrain keep {line}), and start again"
    )]
    Silent { line: String },
    #[error("the keeper of {line} does not do it: {reason}")]
    Refused { line: String, reason: String },
}

/// By which others find the keeper of a line, in its network namespace.
fn socket_name(line: &str) -> String {
    format!("packtrain-keeper/{line}")
}
