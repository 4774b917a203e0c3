//! What the engine cannot carry, over several links.
//!
//! There it keeps a copy of each frame, so all go by it. But where the links are faster than the processor, that
//! is a bound for all flows together. While it is reached, direct frames are open to all: flows that begin
//! then go past the engine, those that it has it keeps. That it is over shows in what is sent by both ways:
//! much less than the engine had carried when it was full.
//!
//! What it carried then is remembered for a while. Where it carries about as much again it is taken to be full at once: a flow that
//! begins takes most of a second to make a queue stand before it. That this was right shows in more being sent past it than it can carry.

use super::DIRECT_CALM;
use super::reading::Meter;
use crate::time::{Duration, Instant};

/// Rates are measured over so long at least.
const MEASURE: Duration = Duration::from_millis(200);

/// Who carries less than this has no processor to carry more with: direct frames need one too.
pub const FULL_MIN_BPS: u64 = 200_000_000;

/// What the engine carried when it was full is remembered for so long: most often it is the same processor still.
const REMEMBERED: Duration = Duration::from_secs(600);
/// It is full again when it carried three quarters of it in so many steps one after the other.
const STEPS_AGAIN: u32 = 2;
/// How long a step is, at least.
const STEP: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub struct Surplus {
    open: Option<Open>,
    /// What the engine carried when it was full, bit/s, and when that was seen last.
    was_full: Option<(u64, Instant)>,
    /// Of the engine's bytes, from step to step.
    step_meter: Meter,
    /// So many steps of now were like when it was full.
    steps_alike: u32,
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
    /// Of them, past the engine.
    measured_directly: u64,
    /// When so much was sent last that it may still be.
    much_at: Instant,
    /// By what is remembered, and not shown yet.
    is_guess: bool,
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
                let most = if open.is_guess { 0 } else { open.full_bps };
                open.full_bps = most.max(full_bps);
                open.is_guess = false;
                open.much_at = now;
                self.was_full = Some((open.full_bps, now));
            }
            None if full_bps < FULL_MIN_BPS => {}
            None => {
                self.was_full = Some((full_bps, now));
                self.open(full_bps, false, engine_bytes, now);
            }
        }
    }

    /// Many times a second: what the engine carries, bit/s, if that is as much as when it was full, and nothing is open.
    pub fn step(&mut self, engine_bytes: u64, now: Instant) -> Option<u64> {
        if self.step_meter.has_run_for(now) < STEP {
            return None;
        }
        let bps = self.step_meter.rate_bps(engine_bytes, now);
        let (full_bps, seen_at) = self.was_full?;
        let is_alike = bps >= FULL_MIN_BPS.max(full_bps / 4 * 3) && now.since(seen_at) < REMEMBERED;
        self.steps_alike = if is_alike { self.steps_alike + 1 } else { 0 };
        (self.steps_alike >= STEPS_AGAIN && self.open.is_none()).then_some(bps)
    }

    /// … so that it is taken to be full.
    pub fn on_full_again(&mut self, bps: u64, engine_bytes: u64, now: Instant) {
        if self.open.is_none() {
            self.open(bps, true, engine_bytes, now);
        }
    }

    fn open(&mut self, full_bps: u64, is_guess: bool, engine_bytes: u64, now: Instant) {
        self.openings += 1;
        self.open = Some(Open {
            full_bps,
            measured_at: now,
            measured_bytes: engine_bytes + self.direct_bytes,
            measured_directly: self.direct_bytes,
            much_at: now,
            is_guess,
        });
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
        let all = engine_bytes + self.direct_bytes;
        let bytes = all.saturating_sub(open.measured_bytes);
        let directly = self.direct_bytes - open.measured_directly;
        (open.measured_at, open.measured_bytes) = (now, all);
        open.measured_directly = self.direct_bytes;
        let bps = bytes as f64 * 8.0 / elapsed.as_secs_f64();
        // More than the engine can carry, and not because it can carry more now.
        if let Some((full_bps, seen_at)) = &mut self.was_full
            && bps > *full_bps as f64
            && directly > bytes / 2
        {
            (*seen_at, open.is_guess) = (now, false);
        }
        if bps > open.full_bps as f64 / 2.0 {
            open.much_at = now;
        } else if now.since(open.much_at) >= DIRECT_CALM {
            if open.is_guess {
                // Nor is it guessed again.
                self.was_full = None;
            }
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

    /// Full of 2 Gbit/s at first, and then idle until it is closed.
    fn was_full() -> Surplus {
        let mut surplus = Surplus::default();
        surplus.on_engine_full(2_000_000_000, 0, Instant::ZERO);
        (1..=12).for_each(|n| surplus.look(0, at_ms(250 * n)));
        assert!(!surplus.is_open());
        surplus
    }

    fn at_ms(ms: u32) -> Instant {
        Instant::ZERO + Duration::from_millis(1) * ms
    }

    /// Steps of 10 ms from then on, of so many Mbit/s each; what each brought.
    fn steps(surplus: &mut Surplus, from_ms: u32, rates: &[u64]) -> Vec<Option<u64>> {
        let (mut bytes, mut ms) = (0, from_ms);
        surplus.step_meter = Meter::default();
        surplus.step(bytes, at_ms(ms));
        let each = rates.iter().map(|mbps| {
            (bytes, ms) = (bytes + mbps * 1000 / 8 * 10, ms + 10);
            let found = surplus.step(bytes, at_ms(ms));
            assert_eq!(surplus.step(bytes, at_ms(ms + 9)), None, "no step");
            found
        });
        each.collect()
    }

    #[test]
    fn that_it_is_full_again_is_known_by_what_it_was_full_of() {
        let mut surplus = was_full();
        let enough = Some(1_500_000_000);
        assert_eq!(steps(&mut surplus, 10_000, &[1500, 1500]), [None, enough]);
        assert_eq!(
            steps(&mut surplus, 11_000, &[1500, 0, 1500, 1499, 1499]),
            [None; 5],
            "in turns, and less"
        );
        surplus.on_full_again(1_500_000_000, 0, at_ms(12_000));
        assert!(surplus.is_open());
        assert_eq!(
            steps(&mut surplus, 12_000, &[9000; 3]),
            [None; 3],
            "it is open"
        );
        assert_eq!(steps(&mut Surplus::default(), 0, &[9000; 3]), [None; 3]);
    }

    #[test]
    fn it_is_remembered_for_ten_minutes_from_when_it_was_seen() {
        let is_known = |surplus: &mut Surplus, ms| steps(surplus, ms, &[9000; 2])[1].is_some();
        assert!(is_known(&mut was_full(), 599_000));
        assert!(!is_known(&mut was_full(), 599_980));
        // More than the engine can carry, past it, shows that it is as it was.
        let mut surplus = was_full();
        surplus.on_full_again(1_500_000_000, 0, at_ms(300_000));
        surplus.on_direct(1_000_000_000);
        surplus.look(0, at_ms(301_000));
        (1..=12).for_each(|n| surplus.look(0, at_ms(301_000 + 250 * n)));
        assert!(!surplus.is_open());
        assert!(is_known(&mut surplus, 900_000));
        assert!(!is_known(&mut surplus, 900_980));
    }

    #[test]
    fn what_was_a_mistake_is_forgotten() {
        let mut surplus = was_full();
        surplus.on_full_again(1_500_000_000, 0, at_ms(10_000));
        // More than when it was full, and all of it by the engine.
        (1..=4).for_each(|n| surplus.look(u64::from(n) * 90_000_000, at_ms(10_000 + 250 * n)));
        (5..=20).for_each(|n| surplus.look(360_000_000, at_ms(10_000 + 250 * n)));
        assert!(!surplus.is_open());
        assert_eq!(steps(&mut surplus, 16_000, &[9000; 3]), [None; 3]);
    }

    #[test]
    fn what_is_found_tells_more_than_what_was_taken_for_it() {
        let mut surplus = was_full();
        surplus.on_full_again(1_900_000_000, 0, at_ms(10_000));
        surplus.on_engine_full(1_000_000_000, 0, at_ms(10_050));
        assert_eq!(surplus.was_full, Some((1_000_000_000, at_ms(10_050))));
        surplus.on_engine_full(1_500_000_000, 0, at_ms(10_060));
        surplus.on_engine_full(1_200_000_000, 0, at_ms(10_070));
        assert_eq!(surplus.was_full, Some((1_500_000_000, at_ms(10_070))));
    }
}
