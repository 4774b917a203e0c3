//! Whether payload is worth being compressed: for which class, on which link.
//!
//! A class is tried with frames of its own, and measured. One that does not shrink rests, longer each time that it is
//! tried again for nothing. What shrinks is compressed where that saves more time on the link than it takes.

use core::num::NonZero;

use super::coder::{Treatment, Tried};
use crate::class::{CLASSES_MAX, ClassId};
use crate::time::{Duration, Instant};

/// A trial is over after so many bytes.
const TRIAL_BYTES: usize = 4096;
/// A class that saves fewer thousandths does not shrink.
const SAVED_MIN: u64 = 30;
/// How long one rests that does not.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(64);
/// How long one that shrinks is believed to do so.
const BELIEVED_FOR: Duration = Duration::from_secs(16);
/// Of a class that was never tried.
const SAVED_EXPECTED: u64 = 400;
/// … and of one that shrinks as much as any.
const SAVED_AT_BEST: u64 = 900;
/// What coding costs where the owner has not told, picoseconds a byte: LZ4, and Zstandard.
const COSTS_EXPECTED_PS: [u64; COMPRESSORS - 1] = [6_000, 20_000];
/// … and mixing, which is costly enough to be tried out.
pub const MIXING_NS_EXPECTED: NonZero<u16> = NonZero::new(500).expect("it is not 0");
/// How much more than it costs it has to save: mixing leaves the processor time for other things, too.
const SAVED_FOR_COST: [u64; COMPRESSORS] = [1, 1, 2];
const COMPRESSORS: usize = 3;
/// Of the processor's time, of either end's, mixing takes no more than one part in so many …
const MIXING_ONE_IN: u64 = 2;
/// … but what it would take in so much of it may come at once.
const MIXING_AHEAD_MAX: Duration = Duration::from_millis(50);
/// For how long a measurement is believed.
const COST_AGE_MAX: Duration = Duration::from_secs(16);
/// One measurement in so many counts: the processor has other things to do.
const COST_WEIGHT: u64 = 16;

/// Of all classes.
#[derive(Debug)]
pub struct Worths {
    /// By each compressor.
    classes: Box<[[Worth; CLASSES_MAX + 1]; COMPRESSORS]>,
    /// Picoseconds a byte of payload, of each compressor.
    costs_ps: [u64; COMPRESSORS],
    /// … as long as none was measured.
    expected_ps: [u64; COMPRESSORS],
    /// When mixing has taken no more than its part.
    mixed_until: Instant,
    /// Of the link for which is asked, and by which compressor.
    link_bps: Option<u64>,
    compressor: Compressor,
    /// What mixing costs who restores it.
    there_ps: u64,
    asked_at: Instant,
    /// When what each costs was measured last.
    measured_at: [Instant; COMPRESSORS],
}

/// What payload is compressed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    Lz4,
    Zstd,
    Mixing,
}

#[derive(Clone, Copy, Debug)]
struct Worth {
    state: State,
    /// Thousandths, of the last trial.
    saved: u64,
    rest: Duration,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Trying { plain: usize, coded: usize },
    Shrinks { until: Instant },
    Rests { until: Instant },
}

const NEW_TRIAL: State = State::Trying { plain: 0, coded: 0 };

const UNKNOWN: Worth = Worth {
    state: NEW_TRIAL,
    saved: SAVED_EXPECTED,
    rest: REST_MIN,
};

impl Worths {
    /// On a machine that takes so long to mix a byte.
    pub fn new(mixing_ns: NonZero<u16>) -> Worths {
        let [lz4, zstd] = COSTS_EXPECTED_PS;
        let expected_ps = [lz4, zstd, ps(mixing_ns)];
        Worths {
            classes: Box::new([[UNKNOWN; CLASSES_MAX + 1]; COMPRESSORS]),
            costs_ps: expected_ps,
            expected_ps,
            mixed_until: Instant::ZERO,
            link_bps: None,
            compressor: Compressor::Lz4,
            there_ps: 0,
            asked_at: Instant::ZERO,
            measured_at: [Instant::ZERO; COMPRESSORS],
        }
    }

    /// The classes are others now.
    pub fn forget(&mut self) {
        *self.classes = [[UNKNOWN; CLASSES_MAX + 1]; COMPRESSORS];
    }

    /// What follows is asked for a link of this rate (`None`: nobody has seen it short of anything), this compressor, and a peer
    /// that takes so long to restore a byte of mixing (`None`: as long as we).
    pub fn ask_for(
        &mut self,
        link_bps: Option<u64>,
        compressor: Compressor,
        mixing_there: Option<NonZero<u16>>,
        now: Instant,
    ) {
        (self.link_bps, self.compressor, self.asked_at) = (link_bps, compressor, now);
        self.there_ps = match compressor {
            Compressor::Mixing => mixing_there.map_or(0, ps),
            Compressor::Lz4 | Compressor::Zstd => 0,
        };
        self.costs_ps[compressor as usize] = self.cost_believed(compressor, now);
    }

    /// What compressing this much took, by the compressor that was asked for last.
    pub fn on_cost(&mut self, plain_bytes: usize, took: Duration) {
        self.measured_at[self.compressor as usize] = self.asked_at;
        let cost_ps = &mut self.costs_ps[self.compressor as usize];
        if let Some(now_ps) = (took.as_nanos() as u64 * 1000).checked_div(plain_bytes as u64) {
            *cost_ps = (*cost_ps * (COST_WEIGHT - 1) + now_ps) / COST_WEIGHT;
        }
    }

    /// So much was given to the compressor that was asked for last.
    pub fn on_compressed(&mut self, plain_bytes: usize, now: Instant) {
        if self.compressor == Compressor::Mixing {
            let took_ns = self.slower_ps() * plain_bytes as u64 / 1000;
            self.mixed_until =
                self.mixed_until.max(now) + Duration::from_nanos(MIXING_ONE_IN * took_ns);
        }
    }

    /// By the compressor that was asked for last: picoseconds a byte, or nanoseconds for 1,000.
    pub fn cost_ps(&self) -> u64 {
        self.costs_ps[self.compressor as usize]
    }

    /// … who of the two is the slower one.
    fn slower_ps(&self) -> u64 {
        self.cost_ps().max(self.there_ps)
    }

    /// Whether it is worth it on this link where so many thousandths are saved.
    fn pays(&self, saved: u64) -> bool {
        let (compressor, cost_ps) = (self.compressor, self.slower_ps());
        self.link_bps
            .is_some_and(|bps| pays(saved, bps, compressor, cost_ps))
    }

    /// Whether any class could be worth it, and there is time for it.
    pub fn may_pay(&self) -> bool {
        let has_time = self.compressor != Compressor::Mixing
            || self.mixed_until <= self.asked_at + MIXING_AHEAD_MAX;
        has_time && self.pays(SAVED_AT_BEST)
    }

    /// … if it was asked for a link of this rate, and this compressor.
    pub fn may_pay_for(&self, link_bps: u64, compressor: Compressor, now: Instant) -> bool {
        let cost_ps = self.cost_believed(compressor, now);
        pays(SAVED_AT_BEST, link_bps, compressor, cost_ps)
    }

    /// What costs too much is not done, and so not measured: it may have been the machine's bad moment.
    fn cost_believed(&self, compressor: Compressor, now: Instant) -> u64 {
        let at = compressor as usize;
        match now.since(self.measured_at[at]) >= COST_AGE_MAX {
            true => self.expected_ps[at],
            false => self.costs_ps[at],
        }
    }

    /// What is to be done with frames of a class.
    pub fn of(&self, class: ClassId, now: Instant) -> Treatment {
        let worth = &self.classes[self.compressor as usize][usize::from(class.0).min(CLASSES_MAX)];
        if !self.pays(worth.saved) {
            return Treatment::Headers;
        }
        match worth.state {
            State::Shrinks { until } if now < until => Treatment::Payload,
            State::Rests { until } if now < until => Treatment::Headers,
            _ => Treatment::Trial(class),
        }
    }

    pub fn on_trial(&mut self, tried: &Tried, now: Instant) {
        let of_compressor = &mut self.classes[self.compressor as usize];
        let worth = &mut of_compressor[usize::from(tried.class.0).min(CLASSES_MAX)];
        let (mut plain, mut coded) = match worth.state {
            State::Trying { plain, coded } => (plain, coded),
            _ => (0, 0),
        };
        plain += tried.plain;
        coded += tried.coded;
        if plain < TRIAL_BYTES {
            worth.state = State::Trying { plain, coded };
            return;
        }
        worth.saved = (plain.saturating_sub(coded) * 1000 / plain) as u64;
        if worth.saved >= SAVED_MIN {
            worth.rest = REST_MIN;
            let until = now + BELIEVED_FOR;
            worth.state = State::Shrinks { until };
        } else {
            let until = now + worth.rest;
            worth.state = State::Rests { until };
            worth.rest = (worth.rest * 2).min(REST_MAX);
            // What it will save when it is tried again, nobody knows.
            worth.saved = SAVED_EXPECTED;
        }
    }
}

fn ps(ns: NonZero<u16>) -> u64 {
    u64::from(ns.get()) * 1000
}

/// Whether saving so many thousandths of a byte takes less of the processor's time than of the link's.
fn pays(saved: u64, link_bps: u64, compressor: Compressor, cost_ps: u64) -> bool {
    // saved / 1000 × 8 bits of a byte at the link's rate.
    let cost_ps = cost_ps * SAVED_FOR_COST[compressor as usize];
    saved * 8_000_000_000 > cost_ps.saturating_mul(link_bps)
}

/// Whether bytes look like encrypted or compressed ones: of a sample, so many are different from each other. Of 128 random ones
/// 101 are, give or take 4; of text and numbers fewer than 80.
pub fn looks_random(bytes: &[u8]) -> bool {
    const SAMPLE: usize = 128;
    const DIFFERENT_MIN: u32 = 84;
    // Headers are none of it, and what is short shrinks by what came before it.
    const SKIPPED: usize = 64;
    let Some(bytes) = bytes.get(SKIPPED..).filter(|rest| rest.len() >= SAMPLE) else {
        return false;
    };
    // A byte for each, not a bit: bits of one word would wait for each other.
    let mut seen = [0u8; 256];
    let step = bytes.len() / SAMPLE;
    for number in 0..SAMPLE {
        seen[usize::from(bytes[number * step])] = 1;
    }
    seen.iter().map(|&seen| u32::from(seen)).sum::<u32>() >= DIFFERENT_MIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const CLASS: ClassId = ClassId(3);

    fn slow() -> Worths {
        let mut worths = Worths::new(MIXING_NS_EXPECTED);
        worths.ask_for(Some(10_000_000), Compressor::Lz4, None, at(0));
        worths
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn tried(plain: usize, coded: usize) -> Tried {
        Tried {
            class: CLASS,
            plain,
            coded,
        }
    }

    #[test]
    fn what_shrinks_is_compressed_until_it_is_time_to_look_again() {
        let mut worths = slow();
        assert_eq!(worths.of(CLASS, at(0)), Treatment::Trial(CLASS));
        worths.on_trial(&tried(2000, 1000), at(0));
        assert_eq!(worths.of(CLASS, at(0)), Treatment::Trial(CLASS));
        worths.on_trial(&tried(2100, 1000), at(0));
        assert_eq!(worths.of(CLASS, at(1)), Treatment::Payload);
        assert_eq!(worths.of(CLASS, at(16)), Treatment::Trial(CLASS));
        assert_eq!(worths.of(ClassId(4), at(1)), Treatment::Trial(ClassId(4)));
    }

    #[test]
    fn what_does_not_shrink_rests_longer_each_time() {
        let (mut worths, mut now) = (slow(), at(0));
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert_eq!(worths.of(CLASS, now), Treatment::Trial(CLASS));
            worths.on_trial(&tried(5000, 5002), now);
            let rest = Duration::from_secs(seconds);
            let almost = now + rest.saturating_sub(Duration::from_millis(1));
            assert_eq!(worths.of(CLASS, almost), Treatment::Headers);
            now += rest;
        }
        worths.on_trial(&tried(5000, 2000), now);
        assert_eq!(worths.of(CLASS, now), Treatment::Payload);
        worths.on_trial(&tried(5000, 5002), now);
        assert_eq!(
            worths.of(CLASS, now + Duration::from_secs(1)),
            Treatment::Trial(CLASS)
        );
    }

    #[test]
    fn nothing_is_compressed_where_the_link_is_faster_than_the_processor() {
        let mut worths = Worths::new(MIXING_NS_EXPECTED);
        assert_eq!(worths.of(CLASS, at(0)), Treatment::Headers);
        // 6 ns a byte: at 40 % saved, up to 533 Mbit/s.
        worths.ask_for(Some(500_000_000), Compressor::Lz4, None, at(0));
        assert_eq!(worths.of(CLASS, at(0)), Treatment::Trial(CLASS));
        worths.ask_for(Some(560_000_000), Compressor::Lz4, None, at(0));
        assert_eq!(worths.of(CLASS, at(0)), Treatment::Headers);
        for _ in 0..100 {
            worths.on_cost(1000, Duration::from_nanos(1000));
        }
        assert_eq!(worths.of(CLASS, at(0)), Treatment::Trial(CLASS));
    }

    #[test]
    fn what_was_too_dear_once_is_not_so_for_ever() {
        let mut worths = slow();
        for _ in 0..1000 {
            worths.on_cost(1000, Duration::from_millis(10));
        }
        assert_eq!(worths.of(CLASS, at(0)), Treatment::Headers);
        worths.ask_for(Some(10_000_000), Compressor::Lz4, None, at(15));
        assert_eq!(worths.of(CLASS, at(15)), Treatment::Headers);
        worths.ask_for(Some(10_000_000), Compressor::Lz4, None, at(16));
        assert_eq!(worths.of(CLASS, at(16)), Treatment::Trial(CLASS));
    }

    #[test]
    fn mixing_has_half_of_the_slower_ends_time() {
        let mixes = |worths: &mut Worths, there: u16, now| {
            worths.ask_for(Some(500_000), Compressor::Mixing, NonZero::new(there), now);
            worths.may_pay()
        };
        // 500 ns here: 1,000 bytes have 1 ms. Theirs, if it is more.
        for (there, bytes_per_ms) in [(0, 1000), (100, 1000), (1000, 500)] {
            let mut worths = Worths::new(MIXING_NS_EXPECTED);
            let mut now = at(100);
            let mut mixed = 0;
            for _ in 0..1000 {
                while mixes(&mut worths, there, now) {
                    worths.on_compressed(1500, now);
                    mixed += 1500;
                }
                // Others are not asked for that.
                worths.ask_for(Some(500_000), Compressor::Lz4, NonZero::new(there), now);
                assert!(worths.may_pay());
                now += Duration::from_millis(1);
            }
            let expected = bytes_per_ms * (1000 + 50);
            assert!(
                (expected..expected + 5000).contains(&mixed),
                "{mixed} bytes, {there} ns there"
            );
        }
    }

    #[test]
    fn who_takes_long_to_restore_what_was_mixed_is_sent_none_unless_the_link_is_slower_still() {
        let mut worths = Worths::new(MIXING_NS_EXPECTED);
        for (there, link_bps, pays) in [
            (None, 2_000_000, true),
            (NonZero::new(300), 2_000_000, true),
            (NonZero::new(8000), 2_000_000, false),
            (NonZero::new(8000), 400_000, true),
        ] {
            worths.ask_for(Some(link_bps), Compressor::Mixing, there, at(0));
            assert_eq!(worths.may_pay(), pays, "{there:?}, {link_bps}");
        }
    }

    #[test]
    fn random_bytes_are_told_from_text_and_numbers() {
        let mut random = Random::new(7);
        for len in [192, 256, 600, 1400] {
            for _ in 0..100 {
                let bytes: Vec<u8> = (0..len).map(|_| random.up_to(255) as u8).collect();
                assert!(looks_random(&bytes), "{len}");
            }
        }
        let text = include_bytes!("worth.rs");
        for chunk in text.chunks_exact(1400) {
            assert!(!looks_random(chunk));
        }
        let numbers: Vec<u8> = (0..350u32).flat_map(|n| (n * 3).to_be_bytes()).collect();
        assert!(!looks_random(&numbers));
        assert!(!looks_random(&[]));
    }
}
