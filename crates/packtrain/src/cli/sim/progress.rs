//! On standard error, for a person who waits.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use packtrain_study::output::progress::{left, line};
use packtrain_study::sweep::Watcher;

use crate::cli::output;

/// Who waits for longer wants to know how much longer.
const AFTER: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(200);

/// How far runs are, told by several threads.
pub(super) struct Progress {
    /// `None`: nobody looks.
    since: Option<Instant>,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    /// How much was done when it began, of an earlier try.
    before: Option<f64>,
    last: Option<Instant>,
}

impl Progress {
    // A person waits in real time, not in the simulator's.
    #[allow(clippy::disallowed_methods)]
    pub fn new() -> Progress {
        Progress {
            since: io::stderr().is_terminal().then(Instant::now),
            told: Mutex::default(),
        }
    }

    pub fn ends(&self) {
        let told = self.told.lock().expect("nobody panics with it");
        if told.last.is_some() {
            output::progress_ends();
        }
    }
}

impl Watcher for Progress {
    #[allow(clippy::disallowed_methods)]
    fn at(&self, share: f64, done: usize, runs: usize) {
        let Some(since) = self.since else {
            return;
        };
        let mut told = self.told.lock().expect("nobody panics with it");
        let before = *told.before.get_or_insert(share);
        let now = Instant::now();
        let elapsed = now.duration_since(since);
        let is_due = told
            .last
            .is_none_or(|last| now.duration_since(last) >= EVERY);
        if elapsed >= AFTER && is_due {
            told.last = Some(now);
            output::progress(&line(share, done, runs, left(before, share, elapsed)));
        }
    }
}
