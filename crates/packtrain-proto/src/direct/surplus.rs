//! What the engine cannot carry, over several links.
//!
//! There it keeps a copy of each frame, so all go by it. But where the links are faster than the processor, that
//! is a bound for all flows together. While it is reached, direct frames are open to all: flows that begin
//! then go past the engine, those that it has it keeps. That it is over shows in what is sent by both ways:
//! much less than the engine had carried when it was full.

use super::DIRECT_CALM;
use crate::time::{Duration, Instant};

/// Rates are measured over so long at least.
const MEASURE: Duration = Duration::from_millis(200);

/// Who carries less than this has no processor to carry more with: direct frames need one too.
pub const FULL_MIN_BPS: u64 = 200_000_000;

#[derive(Debug, Default)]
pub struct Surplus {
    open: Option<Open>,
    /// Bytes of direct frames, as many as they may have been.
    direct_bytes: u64,
    /// How often it was opened.
    pub openings: u64,
}

#[derive(Debug)]
struct Open {
    /// What the engine carried when it was full, bit/s.
    full_bps: u64,
    measured_at: Instant,
    measured_bytes: u64,
    /// When so much was sent last that it may still be.
    much_at: Instant,
}

impl Surplus {
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Ever.
    pub fn direct_bytes(&self) -> u64 {
        self.direct_bytes
    }

    pub fn on_direct(&mut self, bytes: u64) {
        self.direct_bytes += bytes;
    }

    /// The engine takes no more than this; `engine_bytes`: of the host, ever.
    pub fn on_engine_full(&mut self, full_bps: u64, engine_bytes: u64, now: Instant) {
        match &mut self.open {
            Some(open) => {
                open.full_bps = open.full_bps.max(full_bps);
                open.much_at = now;
            }
            None if full_bps < FULL_MIN_BPS => {}
            None => {
                self.openings += 1;
                self.open = Some(Open {
                    full_bps,
                    measured_at: now,
                    measured_bytes: engine_bytes + self.direct_bytes,
                    much_at: now,
                });
            }
        }
    }

    /// A few times a second.
    pub fn look(&mut self, engine_bytes: u64, now: Instant) {
        let Some(open) = &mut self.open else {
            return;
        };
        let elapsed = now.since(open.measured_at);
        if elapsed < MEASURE {
            return;
        }
        let bytes = engine_bytes + self.direct_bytes;
        let bits = bytes.saturating_sub(open.measured_bytes) as f64 * 8.0;
        (open.measured_at, open.measured_bytes) = (now, bytes);
        if bits / elapsed.as_secs_f64() > open.full_bps as f64 / 2.0 {
            open.much_at = now;
        } else if now.since(open.much_at) >= DIRECT_CALM {
            self.open = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent by the engine and directly, Mbit/s, a second each; whether it is open after it.
    fn seconds(rates: &[(u64, u64)]) -> Vec<bool> {
        let mut surplus = Surplus::default();
        let (mut now, mut engine) = (Instant::ZERO, 0);
        surplus.on_engine_full(1_000_000_000, engine, now);
        let after = rates.iter().map(|&(by_engine, directly)| {
            for _ in 0..4 {
                now += Duration::from_millis(250);
                engine += by_engine * 1_000_000 / 8 / 4;
                surplus.on_direct(directly * 1_000_000 / 8 / 4);
                surplus.look(engine, now);
            }
            surplus.is_open()
        });
        after.collect()
    }

    #[test]
    fn it_stays_open_while_much_is_sent_by_either_way() {
        assert_eq!(
            seconds(&[(1000, 0), (200, 400), (0, 9000), (0, 600)]),
            [true; 4]
        );
        assert_eq!(
            seconds(&[(400, 0), (400, 0), (400, 0)]),
            [true, false, false]
        );
        assert_eq!(
            seconds(&[(0, 0), (600, 0), (0, 0), (0, 0), (0, 0)]),
            [true, true, true, false, false]
        );
    }

    #[test]
    fn what_the_engine_carries_at_most_is_learned_while_it_is_full() {
        let mut surplus = Surplus::default();
        surplus.on_engine_full(FULL_MIN_BPS - 1, 0, Instant::ZERO);
        assert!(!surplus.is_open());
        surplus.on_engine_full(FULL_MIN_BPS, 0, Instant::ZERO);
        surplus.on_engine_full(8_000_000_000, 0, Instant::ZERO);
        // 3.2 Gbit/s are not much any more.
        for n in 1..=8 {
            let at = Instant::ZERO + Duration::from_millis(250) * n as u32;
            surplus.look(n * 100_000_000, at);
        }
        assert_eq!((surplus.is_open(), surplus.openings), (false, 1));
    }
}
