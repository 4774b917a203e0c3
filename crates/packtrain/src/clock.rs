//! The only place that reads a clock: everything below takes the time as an argument.

use packtrain_proto::time::{Duration, Instant};

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

    /// `CLOCK_MONOTONIC` itself, nanoseconds: the same for all programs of the host.
    pub fn monotonic_nanos(&self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    /// `CLOCK_BOOTTIME`, since the host was started: it goes on while the host is suspended, as does the time of a person
    /// who waits. Compared with none but its own kind.
    pub fn boot(&self) -> Instant {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Instant::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// What the calling thread has had of processors, ever; the difference of two is what lay between them.
    pub fn thread_cpu(&self) -> Duration {
        let had = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let nanos = had.tv_sec as u64 * 1_000_000_000 + had.tv_nsec as u64;
        Duration::from_nanos(nanos)
    }

    /// What a wall shows, from now on. It is read once: who sets the wall's clock later does not bend
    /// what lies between two of our times.
    #[allow(clippy::disallowed_methods)] // as above
    pub fn wall(&self) -> Wall {
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let unix = unix.unwrap_or_default().as_nanos() as u64;
        Wall {
            unix_nanos_at_zero: unix.saturating_sub(self.now().as_nanos()),
        }
    }
}

/// Which time of day a time of a [`Clock`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    pub unix_nanos_at_zero: u64,
}

impl Wall {
    /// Since 1970, without leap seconds.
    pub fn unix_nanos(&self, at: Instant) -> u64 {
        self.unix_nanos_at_zero + at.as_nanos()
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

    #[test]
    fn the_wall_shows_as_much_later_as_our_clock() {
        let clock = Clock::start();
        let wall = clock.wall();
        let at = Instant::from_nanos(5);
        let later = Instant::from_nanos(1_000_000_007);
        assert_eq!(wall.unix_nanos(later) - wall.unix_nanos(at), 1_000_000_002);
        // After this was written, and before the nanoseconds run over.
        assert!(wall.unix_nanos(at) > 1_700_000_000_000_000_000);
    }
}
