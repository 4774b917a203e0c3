//! What a router does with a data unit before it sends it: the look-up of where it goes, which takes as long whatever
//! the unit's length.
//!
//! ```text
//! unmasked   | look-up 1 | sending 1 ...... | look-up 2 | sending 2 ...... |
//!
//! masked     | look-up 1 | sending 1 ...... | sending 2 ...... |
//!                        | look-up 2 |      | look-up 3 |
//! ```
//!
//! Unmasked, nothing is sent meanwhile: back to back a unit takes the sum of both. Masked by a pipeline of two stages, a
//! unit's look-up begins when the one before it begins to be sent, and back to back it takes the longer of both; what comes
//! to an idle router has nothing to hide behind.
//!
//! Energy: a look-up costs as much for a long unit as for a short one, and a TCAM, which compares all its entries at once,
//! costs more than all else in a line card. What the look-ups of a run cost, relative to the same bytes in packets of 1500, is
//! [`lookups_per_1500`]; between two of them it cools down, on a busy line for as long as
//! [`WireCounters::longest_pause`](super::wire::WireCounters::longest_pause) at most.

use packtrain_proto::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessingConfig {
    /// Of a data unit; a frame that is still to be cut is as many as it becomes.
    pub per_unit: Duration,
    /// Pipelined with the transmission of the unit before.
    pub masked: bool,
}

/// Look-ups, by how many of those there were which packets of 1500 bytes with the same bytes would have needed: 1 for such
/// packets, 1/13 for units of 19,500 bytes. 0 for no bytes.
pub fn lookups_per_1500(lookups: u64, bytes: u64) -> f64 {
    match bytes {
        0 => 0.0,
        bytes => lookups as f64 / (bytes as f64 / 1500.0),
    }
}

/// The stage before a rate.
#[derive(Debug)]
pub struct Processing {
    config: ProcessingConfig,
    /// When the unit before began to be sent: then the stage is empty.
    vacant: Instant,
    /// When the look-up before began, if the line has been busy since.
    before: Option<Instant>,
}

impl Processing {
    pub fn new(config: ProcessingConfig) -> Processing {
        Processing {
            config,
            vacant: Instant::ZERO,
            before: None,
        }
    }

    /// So many units that `entered` are the next ones, and it is their turn at the line from `turn` on. When they may begin to
    /// be sent, and for how long the look-ups paused before this one if the line was busy all the time.
    ///
    /// It is asked at `turn`, and a masked look-up may have begun before that: first in, first out that is the same as if it
    /// had been decided then.
    pub fn process(
        &mut self,
        units: u64,
        entered: Instant,
        turn: Instant,
    ) -> (Instant, Option<Duration>) {
        let begins = match self.config.masked {
            true => entered.max(self.vacant),
            false => turn,
        };
        let pause = self
            .before
            .replace(begins)
            .map(|before| begins.since(before));
        let ready = begins + self.config.per_unit * units as u32;
        (ready, pause)
    }

    /// What was processed last begins to be sent.
    pub fn begun(&mut self, at: Instant) {
        self.vacant = at;
    }

    /// Nothing stands in the queue any more: the pause that follows is not one of a busy line.
    pub fn idle(&mut self) {
        self.before = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use crate::net::wire::{Passed, Wire, WireConfig};
    use crate::random::Random;
    use packtrain_proto::offload::Offload;

    const PER_UNIT: Duration = Duration::from_micros(20);

    fn wire(masked: bool) -> Wire {
        let processing = Some(ProcessingConfig {
            per_unit: PER_UNIT,
            masked,
        });
        let config = WireConfig {
            processing,
            ..WireConfig::perfect(1_000_000_000, Duration::ZERO)
        };
        Wire::new(&config, &mut Random::new(1))
    }

    /// When units of these lengths leave that all come at `now`.
    fn leave(wire: &mut Wire, lens: &[usize], now: u64) -> Vec<u64> {
        let now = Instant::from_nanos(now);
        let (mut due, mut left) = (None, Vec::new());
        for &len in lens {
            let unit = Frame::new(vec![0; len], Offload::NONE);
            due = due.or(wire.offer(unit, now).expect("there is room"));
        }
        while let Some(at) = due {
            left.push(at.as_nanos());
            due = wire.sent(at, |passed| {
                assert!(matches!(passed, Passed::Arrives(arrives, _) if arrives == at));
            });
        }
        left
    }

    // At 1 Gbit/s, with the 24 bytes that nobody sees.
    const SHORT: u64 = 12_192;
    const LONG: u64 = 156_192;

    #[test]
    fn unmasked_a_unit_takes_its_look_up_and_then_its_transmission() {
        let mut wire = wire(false);
        let left = leave(&mut wire, &[1500, 19_500, 1500, 1500], 1000);
        let short = 20_000 + SHORT;
        let expected = [short, short + 20_000 + LONG, 2 * short + 20_000 + LONG];
        assert_eq!(left[..3], expected.map(|at| 1000 + at));
        assert_eq!(left[3], left[2] + short);
        assert_eq!(wire.counters.lookups, 4);
        // From the look-up of the long one to the next.
        assert_eq!(
            wire.counters.longest_pause,
            PER_UNIT + Duration::from_nanos(LONG)
        );
        // While it looks something up it sends nothing.
        assert_eq!(wire.counters.busy, Duration::from_nanos(3 * SHORT + LONG));
    }

    #[test]
    fn masked_a_unit_takes_the_longer_of_both_and_the_first_one_its_look_up_too() {
        let mut wire = wire(true);
        let left = leave(&mut wire, &[1500, 19_500, 1500, 1500, 1500], 1000);
        let begins = [
            20_000,
            // Looked up while the first was sent, which took less.
            40_000,
            // Looked up while the long one was sent, which took more.
            40_000 + LONG,
            60_000 + LONG,
            80_000 + LONG,
        ];
        let expected = [SHORT, LONG, SHORT, SHORT, SHORT];
        let expected: Vec<u64> = (begins.iter().zip(expected))
            .map(|(b, d)| 1000 + b + d)
            .collect();
        assert_eq!(left, expected);
        assert_eq!(wire.counters.longest_pause, Duration::from_nanos(LONG));
    }

    #[test]
    fn what_comes_while_something_is_sent_is_looked_up_as_it_comes() {
        let mut wire = wire(true);
        let unit = || Frame::new(vec![0; 19_500], Offload::NONE);
        let first = wire.offer(unit(), Instant::ZERO).unwrap().unwrap();
        assert_eq!(first.as_nanos(), 20_000 + LONG);
        // 10 µs before the end: half of the look-up is still to be done then.
        assert!(matches!(
            wire.offer(unit(), first - Duration::from_micros(10)),
            Ok(None)
        ));
        let second = wire.sent(first, |_| {}).unwrap();
        assert_eq!(second, first + Duration::from_nanos(10_000 + LONG));
        let pause = Duration::from_nanos(20_000 + LONG - 10_000);
        assert_eq!(wire.counters.longest_pause, pause);
    }

    #[test]
    fn the_pause_of_an_idle_line_is_none() {
        for masked in [false, true] {
            let mut wire = wire(masked);
            for start in [0, 1_000_000, 2_000_000] {
                let left = leave(&mut wire, &[1500], start);
                assert_eq!(left, [start + 20_000 + SHORT]);
            }
            assert_eq!(wire.counters.lookups, 3);
            assert_eq!(wire.counters.longest_pause, Duration::ZERO);
        }
    }

    #[test]
    fn units_of_thirteen_packets_need_a_thirteenth_of_the_look_ups() {
        assert_eq!(lookups_per_1500(0, 0), 0.0);
        let mut wire = wire(true);
        leave(&mut wire, &[1500; 26], 0);
        assert_eq!(wire.counters.lookups_per_1500(), 1.0);
        assert!((lookups_per_1500(7, 7 * 19_500) - 1.0 / 13.0).abs() < 1e-15);
    }
}
