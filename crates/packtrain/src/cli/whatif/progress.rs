//! On standard error, for a person who waits.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use crate::cli::output;
use crate::cli::view::words::count;

/// Who waits for longer wants to know what for.
const AFTER: Duration = Duration::from_secs(1);
const EVERY_FRAMES: u64 = 20_000;

/// How many packets were read so far.
pub(super) struct Progress {
    doing: &'static str,
    since: Option<Instant>,
    told: bool,
}

impl Progress {
    // A person waits in real time, not in the capture's.
    #[allow(clippy::disallowed_methods)]
    pub fn new(doing: &'static str) -> Progress {
        Progress {
            doing,
            since: io::stderr().is_terminal().then(Instant::now),
            told: false,
        }
    }

    pub fn read(&mut self, number: u64) {
        let waits = |since: Instant| since.elapsed() > AFTER;
        if number.is_multiple_of(EVERY_FRAMES) && self.since.is_some_and(waits) {
            output::progress(&format!("{} {} packets", self.doing, count(number)));
            self.told = true;
        }
    }

    pub fn ends(&self) {
        if self.told {
            output::progress_ends();
        }
    }
}
