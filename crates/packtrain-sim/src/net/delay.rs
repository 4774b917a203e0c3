//! Propagation: the same for every frame, and who left first arrives first.

use packtrain_proto::time::{Duration, Instant};

#[derive(Debug)]
pub struct Delay {
    delay: Duration,
    /// The latest arrival so far of all that kept, or lost, their order. It outlives a change of delay
    /// or jitter: a wire that becomes shorter does not let a frame overtake.
    newest_arrival: Instant,
}

impl Delay {
    pub fn new(delay: Duration) -> Delay {
        Delay {
            delay,
            newest_arrival: Instant::ZERO,
        }
    }

    pub fn set(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// When what leaves now would be at the other end if it were alone.
    pub fn on_time(&self, leaves: Instant) -> Instant {
        leaves + self.delay
    }

    /// What would overtake waits for what stands before it.
    pub fn in_order(&mut self, arrives: Instant) -> Instant {
        self.newest_arrival = self.newest_arrival.max(arrives);
        self.newest_arrival
    }

    pub fn in_any_order(&mut self, arrives: Instant) -> Instant {
        self.newest_arrival = self.newest_arrival.max(arrives);
        arrives
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_delay_overtakes_nothing() {
        let at = Instant::from_nanos;
        let mut delay = Delay::new(Duration::from_nanos(100));
        let first = delay.on_time(at(0));
        assert_eq!(delay.in_order(first), at(100));
        delay.set(Duration::from_nanos(10));
        let second = delay.on_time(at(1));
        assert_eq!((second, delay.in_order(second)), (at(11), at(100)));
        let third = delay.on_time(at(95));
        assert_eq!(delay.in_order(third), at(105));
    }
}
