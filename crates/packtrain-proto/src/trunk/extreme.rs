//! The largest or the smallest of what was seen lately, without a list of it.

use crate::time::{Duration, Instant};

/// The maximum over the current and the previous period.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extreme<T> {
    current: Option<T>,
    previous: Option<T>,
    since: Instant,
}

impl<T: Copy> Extreme<T> {
    pub(crate) fn update(
        &mut self,
        value: T,
        better: impl Fn(T, T) -> T,
        period: Duration,
        now: Instant,
    ) {
        if now.since(self.since) >= period {
            self.previous = self.current.take();
            self.since = now;
        }
        self.current = Some(self.current.map_or(value, |c| better(c, value)));
    }

    pub(crate) fn get(&self, better: impl Fn(T, T) -> T) -> Option<T> {
        match (self.current, self.previous) {
            (Some(a), Some(b)) => Some(better(a, b)),
            (a, b) => a.or(b),
        }
    }
}
