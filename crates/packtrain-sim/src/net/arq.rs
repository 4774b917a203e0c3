//! Automatic repeat request at a link: what chance took is sent again at once, as radios do it (IEEE 802.11), so that who
//! is behind sees a slower line and few losses.
//!
//! Stop and wait: a frame is acknowledged, or it is not within the turn-round and goes again, before the next one is sent.
//! So frames keep their order.

use packtrain_proto::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArqConfig {
    /// After so many a frame is lost for good; 1 is none at all.
    pub attempts_max: u32,
    /// From the last bit of an attempt that failed to the first of the next.
    pub turn_round: Duration,
}

/// How often the frame that is being sent has been.
#[derive(Debug)]
pub struct Arq {
    config: ArqConfig,
    attempts: u32,
}

impl Arq {
    pub fn new(config: ArqConfig) -> Arq {
        assert!(config.attempts_max > 0, "a frame is sent once at least");
        Arq {
            config,
            attempts: 0,
        }
    }

    /// An attempt is over: when the next one may begin, after so long, if there is one.
    pub fn ends(&mut self, lost: bool) -> Option<Duration> {
        self.attempts += 1;
        if lost && self.attempts < self.config.attempts_max {
            return Some(self.config.turn_round);
        }
        self.attempts = 0;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use crate::net::loss::LossConfig;
    use crate::net::wire::{Passed, Wire, WireConfig};
    use crate::random::Random;
    use packtrain_proto::offload::Offload;
    use packtrain_proto::time::Instant;

    const TURN: Duration = Duration::from_micros(100);
    /// 1514 + 24 bytes at 100 Mbit/s.
    const FULL: Duration = Duration::from_nanos(123_040);

    /// What of ten frames, sent back to back, arrives, and when the last bit of each left.
    fn run(attempts_max: u32, lost: &[u64]) -> (Vec<bool>, Vec<Instant>, Wire) {
        let config = WireConfig {
            loss: Some(LossConfig::Given {
                frames: lost.to_vec(),
            }),
            arq: Some(ArqConfig {
                attempts_max,
                turn_round: TURN,
            }),
            ..WireConfig::perfect(100_000_000, Duration::ZERO)
        };
        let mut wire = Wire::new(&config, &mut Random::new(1));
        let (mut came, mut left) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            let frame = Frame::new(vec![0; 1514], Offload::NONE);
            assert!(wire.offer(frame, Instant::ZERO).is_ok());
        }
        while let Some(at) = wire.sending_until() {
            let before = came.len();
            wire.sent(at, |passed| {
                came.push(matches!(passed, Passed::Arrives(..)))
            });
            if came.len() > before {
                left.push(at);
            }
        }
        (came, left, wire)
    }

    #[test]
    fn what_is_lost_goes_again_before_the_next_and_takes_its_time() {
        // The second attempt of all is of the second frame, and so are the third and fourth.
        let (came, left, wire) = run(7, &[2, 3]);
        assert!(came.iter().all(|came| *came) && came.len() == 10);
        assert_eq!(left[0], Instant::ZERO + FULL);
        assert_eq!(left[1], Instant::ZERO + FULL * 4 + TURN * 2);
        assert_eq!(left[9], Instant::ZERO + FULL * 12 + TURN * 2);
        assert_eq!((wire.counters.repeated, wire.counters.lost), (2, 0));
        // The line was waiting, and not sending, in the turn-rounds.
        assert_eq!(wire.counters.busy, FULL * 12);
    }

    #[test]
    fn what_is_lost_too_often_is_lost() {
        let (came, left, wire) = run(2, &[2, 3]);
        assert_eq!(came.iter().filter(|came| !**came).count(), 1);
        assert!(!came[1]);
        assert_eq!(left[2], Instant::ZERO + FULL * 4 + TURN);
        assert_eq!((wire.counters.repeated, wire.counters.lost), (1, 1));
        assert_eq!(wire.counters.offered, 10);
    }

    #[test]
    fn one_attempt_is_none_more() {
        let (came, _, wire) = run(1, &[2, 3]);
        assert_eq!(came.iter().filter(|came| !**came).count(), 2);
        assert_eq!(wire.counters.repeated, 0);
    }
}
