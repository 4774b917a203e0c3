//! A moment in which flows rest that else never would, so that they may change to the direct path.
//!
//! TCP sends no more than is acknowledged. Are acknowledgements for the host kept back, its flows run dry: what they have
//! sent arrives, and nothing follows. Then they may go past the engine, and are given what was kept.
//!
//! ```text
//!        ┌ the engine is full, and others may go past it ┐      ┌ all that was sent has arrived, ┐
//!        │                                               ▼      │ and hardly anything came since ▼
//!   ┌────┴─────┐                                     ┌──────────┴─┐                        ┌──────────┐
//!   │   none   │ ◀──────── it takes too long ─────── │  keeps back │                        │  rested  │
//!   └──────────┘                                     └────────────┘                        └────┬─────┘
//!        ▲                                                                                      │
//!        └───────────────────────────── the owner has been told ───────────────────────────────┘
//! ```
//!
//! Its time is bounded by what TCP takes for a loss: two round trips of its own, and it is over after one.

use crate::time::{Duration, Instant};

/// Nothing is kept back for longer.
pub const REST_MAX: Duration = Duration::from_millis(60);
/// From one rest to the next, at first and at last: what did not change in it is of a kind that never rests.
const AGAIN_MIN: Duration = Duration::from_millis(250);
const AGAIN_MAX: Duration = Duration::from_secs(64);
/// Hardly anything: this share of what the engine carries in the same time, or so many bytes.
const REST_SHARE: u64 = 16;
const REST_BYTES: u64 = 32 * 1024;

#[derive(Debug, Default)]
pub struct Rest {
    state: State,
    next: Instant,
    again: Duration,
    /// How many there were, and how many brought nothing.
    pub rests: u64,
    pub in_vain: u64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    None,
    KeepsBack {
        until: Instant,
        full_bps: u64,
        asked: Option<Asked>,
    },
    Rested {
        until: Instant,
    },
}

/// When it was asked whether all has arrived, and what the host had sent until then.
#[derive(Clone, Copy, Debug)]
struct Asked {
    ticket: u64,
    at: Instant,
    host_bytes: u64,
}

impl Rest {
    /// Whether what is kept back stays.
    pub fn is_on(&self) -> bool {
        !matches!(self.state, State::None)
    }

    /// The engine carries no more than this, and flows may go past it. Whether a rest begins.
    pub fn on_engine_full(&mut self, full_bps: u64, now: Instant) -> bool {
        if self.is_on() || now < self.next {
            return false;
        }
        // One that was long ago says nothing of the flows of now.
        if now.since(self.next) > AGAIN_MAX {
            self.again = Duration::ZERO;
        }
        self.again = (self.again * 2).clamp(AGAIN_MIN, AGAIN_MAX);
        self.next = now + self.again;
        self.rests += 1;
        self.state = State::KeepsBack {
            until: now + REST_MAX,
            full_bps,
            asked: None,
        };
        true
    }

    /// It is asked whether all that the host has sent has arrived: so many bytes.
    pub fn on_asked(&mut self, ticket: u64, host_bytes: u64, now: Instant) {
        if let State::KeepsBack { asked, .. } = &mut self.state {
            *asked = Some(Asked {
                ticket,
                at: now,
                host_bytes,
            });
        }
    }

    /// It has, while the host has sent so many bytes.
    pub fn on_arrived(&mut self, ticket: u64, host_bytes: u64, now: Instant) {
        let State::KeepsBack {
            until,
            full_bps,
            asked: Some(asked),
        } = self.state
        else {
            return;
        };
        if asked.ticket != ticket {
            return;
        }
        let carried = now.since(asked.at).as_secs_f64() * full_bps as f64 / 8.0;
        let little = REST_BYTES.max(carried as u64 / REST_SHARE);
        if host_bytes.saturating_sub(asked.host_bytes) <= little {
            self.state = State::Rested { until };
        }
    }

    /// The owner has been told of what had arrived then: flows that rested go past the engine. Whether that ends the rest.
    pub fn on_told(&mut self) -> bool {
        let is_over = matches!(self.state, State::Rested { .. });
        if is_over {
            self.state = State::None;
        }
        is_over
    }

    /// It is over, whatever was reached. Whether it was in vain.
    pub fn end(&mut self) -> bool {
        let in_vain = matches!(self.state, State::KeepsBack { .. });
        self.in_vain += u64::from(in_vain);
        self.state = State::None;
        in_vain
    }

    /// Flows have come back from the direct path, and may have to rest again before they can go there.
    pub fn on_flows_back(&mut self, now: Instant) {
        self.again = Duration::ZERO;
        self.next = self.next.min(now + AGAIN_MIN);
    }

    /// When it has lasted too long.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::None => None,
            State::KeepsBack { until, .. } | State::Rested { until } => Some(until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const FULL_BPS: u64 = 8_000_000_000;

    #[test]
    fn it_is_over_when_all_has_arrived_and_nothing_came_since_and_the_owner_knows() {
        let mut rest = Rest::default();
        assert!(rest.on_engine_full(FULL_BPS, at(0)));
        rest.on_asked(1, 1_000_000, at(1));
        // Who has sent as ever was not at rest.
        rest.on_arrived(1, 2_000_000, at(2));
        rest.on_told();
        assert!(rest.is_on());
        rest.on_asked(2, 2_000_000, at(3));
        rest.on_arrived(1, 2_000_000, at(4));
        rest.on_told();
        assert!(rest.is_on(), "that was the answer to an older question");
        rest.on_arrived(2, 2_000_000 + REST_BYTES, at(4));
        assert!(rest.is_on(), "nobody was told");
        rest.on_told();
        assert!(!rest.is_on());
        assert_eq!((rest.rests, rest.in_vain), (1, 0));
    }

    #[test]
    fn what_hardly_anything_is_goes_by_what_the_engine_carries() {
        let arrived = |bytes| {
            let mut rest = Rest::default();
            rest.on_engine_full(FULL_BPS, at(0));
            rest.on_asked(1, 0, at(0));
            rest.on_arrived(1, bytes, at(10));
            rest.on_told();
            !rest.is_on()
        };
        // Ten milliseconds of 8 Gbit/s.
        assert!(arrived(10_000_000 / REST_SHARE));
        assert!(!arrived(10_000_000 / REST_SHARE + 1));
    }

    #[test]
    fn one_that_brings_nothing_is_tried_more_and_more_seldom() {
        let mut rest = Rest::default();
        let mut began = Vec::new();
        for ms in (0..200_000).step_by(10) {
            if rest.on_engine_full(FULL_BPS, at(ms)) {
                began.push(ms);
                assert_eq!(rest.poll_timeout(), Some(at(ms) + REST_MAX));
            } else if rest.poll_timeout().is_some_and(|until| until <= at(ms)) {
                rest.end();
            }
        }
        assert_eq!(
            began[..5],
            [0, 250, 750, 1750, 3750],
            "each time twice as long"
        );
        assert_eq!(began[10] - began[9], 64_000);
        assert_eq!(rest.in_vain, rest.rests);
        // Long afterwards it is as it was at first; and where flows have come back.
        assert!(rest.on_engine_full(FULL_BPS, at(400_000)));
        rest.end();
        assert!(rest.on_engine_full(FULL_BPS, at(400_250)));
        rest.end();
        assert!(rest.on_engine_full(FULL_BPS, at(400_750)));
        rest.end();
        assert!(!rest.on_engine_full(FULL_BPS, at(401_000)));
        rest.on_flows_back(at(401_000));
        assert!(!rest.on_engine_full(FULL_BPS, at(401_249)));
        assert!(rest.on_engine_full(FULL_BPS, at(401_250)));
    }
}
