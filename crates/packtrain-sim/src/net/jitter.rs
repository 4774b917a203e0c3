//! Delay that varies and keeps the order: a queue somewhere on the way, a radio that waits for
//! its slot. What would overtake waits for what stands before it.

use packtrain_proto::time::{Duration, Instant};

use crate::random::Random;

#[derive(Debug)]
pub struct Jitter {
    jitter_max: Duration,
    random: Random,
    newest_arrival: Instant,
    pub frames_delayed: u64,
}

impl Jitter {
    pub fn new(jitter_max: Duration, random: Random) -> Jitter {
        Jitter {
            jitter_max,
            random,
            newest_arrival: Instant::ZERO,
            frames_delayed: 0,
        }
    }

    pub fn arrival(&mut self, arrives: Instant) -> Instant {
        // Squared, so that most frames are hardly delayed and few are much: the shape of a queue.
        let share = self.random.unit();
        let extra = (self.jitter_max.as_nanos() as f64 * share * share) as u64;
        let jittered = arrives + Duration::from_nanos(extra);
        self.newest_arrival = self.newest_arrival.max(jittered);
        self.frames_delayed += u64::from(self.newest_arrival > arrives);
        self.newest_arrival
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_varies_stays_within_its_bound_and_never_reorders() {
        let max = Duration::from_millis(5);
        let mut jitter = Jitter::new(max, Random::new(4));
        let mut before = Instant::ZERO;
        for i in 0..1000u64 {
            let leaves = Instant::from_nanos(i * 100_000);
            let arrives = jitter.arrival(leaves);
            assert!(arrives >= before && arrives >= leaves);
            assert!(arrives.since(leaves) <= max);
            before = arrives;
        }
        assert!(jitter.frames_delayed > 900);
    }
}
