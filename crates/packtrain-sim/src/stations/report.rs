//! What became of an application's work.

use packtrain_proto::time::{Duration, Instant};

use crate::statistics::Histogram;

/// Since counting began.
#[derive(Debug, Default)]
pub struct Report {
    /// Bytes of content that arrived; of copies, those that the disks read and wrote.
    pub bytes: u64,
    /// Blocks that went to and fro, transactions, copies.
    pub done: u64,
    /// How long each of those took.
    pub times: Histogram,
    /// Requests that were sent again.
    pub again: u64,
    /// Datagrams of a flood that never came.
    pub lost: u64,
    /// Longest time without a byte between two that came.
    longest_pause: Duration,
    last_at: Option<Instant>,
}

impl Report {
    pub(super) fn begin(&mut self, now: Instant) {
        *self = Report {
            last_at: Some(now),
            ..Report::default()
        };
    }

    /// Longest time without a byte; the one that still lasts is one, too.
    pub(super) fn longest_pause(&self, now: Instant) -> Duration {
        let lasts = now.since(self.last_at.unwrap_or(now));
        self.longest_pause.max(lasts)
    }

    pub(super) fn came(&mut self, bytes: u64, now: Instant) {
        let pause = now.since(self.last_at.unwrap_or(now));
        self.longest_pause = self.longest_pause.max(pause);
        self.last_at = Some(now);
        self.bytes += bytes;
    }

    pub(super) fn ended(&mut self, began: Instant, now: Instant) {
        self.done += 1;
        self.times.record(now.since(began).as_nanos() as u64);
    }
}
