//! The only place that reads a clock: everything below takes the time as an argument.

use packtrain_proto::time::Instant;

/// The monotonic clock, counted from where it was started.
///
/// `CLOCK_MONOTONIC` (by `std`) never goes back, which the engine's contract asks for, and stands
/// still while the host is suspended: a link is not dead because the host slept.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    #[allow(clippy::disallowed_methods)] // this is the clock that the others are told by
    pub fn start() -> Clock {
        Clock {
            origin: std::time::Instant::now(),
        }
    }

    #[allow(clippy::disallowed_methods)] // as above
    pub fn now(&self) -> Instant {
        // The first reading is 1, not 0, so that "never" and "at the start" stay two things to
        // whoever compares with `Instant::ZERO`.
        let elapsed = std::time::Instant::now().duration_since(self.origin);
        Instant::from_nanos(1 + elapsed.as_nanos() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_on_and_starts_after_zero() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(first > Instant::ZERO);
        assert!(clock.now() >= first);
    }
}
