//! How many bits of what a path carries are wrong, from which trains were acknowledged and which were lost: the longer a
//! train, the sooner it dies of them, while what else it may die of does not look at its length.
//!
//! Trains are counted by length. A train of b bits arrives with e^−(q + p·b): p is the bit error rate, and q what takes trains of
//! all lengths alike. Both are found where what was seen is the most likely. Two things decide between them:
//!
//! - Where trains of one length alone were sent, or nearly so, nothing tells p from q. Then p explains all: that leads to shorter
//!   trains, and those show whether it was right.
//! - Trains that were lost, or arrived, while a queue stood on their way are not counted at all ([`crate::trunk::flight`]): a queue
//!   that is full drops, and long trains first.
//!
//! It cannot tell bit errors from what polices bytes without a queue, nor from a queue so short that trains hardly wait in it. Both
//! drop long trains more often, and are treated as if bits were wrong.
//!
//! What was seen ages by what comes after it: the older half is forgotten when the younger would show as much by itself. An idle path
//! forgets nothing.

use crate::time::{Duration, Instant};
use crate::wire::ethernet::HEADER_LEN;

/// Of a frame, beside its bytes.
const FCS_LEN: usize = 4;
/// Two to a doubling, up to 64 KiB.
const CLASSES: usize = 34;
/// Half of what is remembered goes when so many were lost since, or would have been at the known rate.
const LOST_OF_EPOCH: f64 = 32.0;
/// … and where nothing was known, after so long: what was well before is no reason to believe that it is.
const EPOCH: Duration = Duration::from_secs(5);
/// So many are lost, and it is no chance.
const LOST_MIN: u64 = 8;
/// … or so many, where hardly anything of that length arrives.
const LOST_OF_MOST_MIN: u64 = 3;
/// What each Ethernet takes.
const BASE: usize = 1500 + HEADER_LEN;
/// Of those that are given up together, of a length.
const UNCLEAR_MAX: u64 = 8;
/// It is reckoned anew no sooner than this.
const APART: Duration = Duration::from_millis(20);
/// Standard deviations by which what takes all lengths alike has to be seen.
const SURE: f64 = 2.0;
const NEWTON_STEPS: usize = 24;
/// What a step changes at most, as a factor.
const LEAP: f64 = 8.0;

/// Of a path.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Of a bit to be wrong.
    pub rate: f64,
    /// Of a train to be lost by what does not depend on its length (a hazard: nearly the share, where it is small).
    pub other: f64,
    /// Trains that this stands on, and of those what was lost.
    pub trains: u64,
    pub lost: u64,
}

impl Estimate {
    /// Of a train of so many bytes to be lost by bit errors, to first order. More than 1: none passes.
    pub fn hazard(&self, bytes: usize) -> f64 {
        self.rate * bits(bytes)
    }
}

/// Of all that the FCS says to be wrong.
fn bits(bytes: usize) -> f64 {
    8.0 * (bytes + FCS_LEN) as f64
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    arrived: u64,
    lost: u64,
    /// Of both.
    bits: f64,
}

type Epoch = [Counts; CLASSES];

#[derive(Clone, Debug)]
pub struct BitErrors {
    /// The younger, and the older.
    epochs: [Epoch; 2],
    since: Instant,
    /// In the younger nothing was lost, and before it nothing was known.
    is_clean: bool,
    /// Given up together, and not known to be lost: by when.
    unclear: Option<(Epoch, Instant)>,
    /// What was found when the younger began.
    known: Option<Estimate>,
    estimate: Option<Estimate>,
    has_news: bool,
    reckoned_at: Instant,
}

impl Default for BitErrors {
    fn default() -> BitErrors {
        BitErrors {
            epochs: [[Counts::default(); CLASSES]; 2],
            since: Instant::ZERO,
            is_clean: true,
            unclear: None,
            known: None,
            estimate: None,
            has_news: false,
            reckoned_at: Instant::ZERO,
        }
    }
}

fn class_of(bytes: usize) -> usize {
    let bytes = bytes.clamp(1, 65_535 + 64) as u32;
    let octave = bytes.ilog2();
    let is_upper = u64::from(bytes) * u64::from(bytes) >= 1 << (2 * octave + 1);
    (2 * octave as usize + usize::from(is_upper)).min(CLASSES - 1)
}

impl BitErrors {
    #[inline]
    pub fn on_arrived(&mut self, bytes: usize) {
        let counts = &mut self.epochs[0][class_of(bytes)];
        counts.arrived += 1;
        counts.bits += bits(bytes);
    }

    pub fn on_lost(&mut self, bytes: usize) {
        let counts = &mut self.epochs[0][class_of(bytes)];
        counts.lost += 1;
        counts.bits += bits(bytes);
        self.has_news = true;
        self.is_clean = false;
    }

    /// Before what an acknowledgement tells: while nothing is lost, what was seen long ago is let go.
    #[inline]
    pub fn on_time(&mut self, now: Instant) {
        if self.is_clean && now.since(self.since) >= EPOCH {
            self.begin_epoch(now);
        }
    }

    /// It is given up, with all else that is out: the link may have been dead for a moment. What each Ethernet takes says only that; of a
    /// few longer ones it is remembered.
    pub fn on_given_up(&mut self, bytes: usize, now: Instant) {
        if bytes <= BASE {
            return;
        }
        let (unclear, at) = self
            .unclear
            .get_or_insert(([Counts::default(); CLASSES], now));
        let counts = &mut unclear[class_of(bytes)];
        *at = now;
        if counts.lost < UNCLEAR_MAX {
            counts.lost += 1;
            counts.bits += bits(bytes);
        }
    }

    /// What was given up, or counts as lost since, has arrived after all.
    pub fn on_late_arrival(&mut self, bytes: usize) {
        let class = class_of(bytes);
        let unclear = self
            .unclear
            .as_mut()
            .map(|(unclear, _)| &mut unclear[class]);
        if let Some(counts) = unclear.filter(|counts| counts.lost > 0) {
            counts.lost -= 1;
            counts.bits -= bits(bytes);
        } else if bytes > BASE && self.epochs[0][class].lost > 0 {
            self.epochs[0][class].lost -= 1;
            self.epochs[0][class].arrived += 1;
        }
    }

    /// Something has arrived: the link lives, and what was given up so shortly before was lost for another reason.
    pub fn on_life(&mut self, within: Duration, now: Instant) {
        if let Some((unclear, at)) = self.unclear.take()
            && now.since(at) < within
        {
            for (counts, more) in self.epochs[0].iter_mut().zip(&unclear) {
                counts.lost += more.lost;
                counts.bits += more.bits;
            }
            self.has_news = true;
            self.is_clean = false;
        }
    }

    /// Whether [`BitErrors::reckon`] has something new to say, and it is time to.
    pub fn is_due(&self, now: Instant) -> bool {
        self.has_news && now.since(self.reckoned_at) >= APART
    }

    /// What was found last. `None`: too little was lost to say.
    pub fn estimate(&self) -> Option<Estimate> {
        self.estimate
    }

    pub fn reckon(&mut self, now: Instant) -> Option<Estimate> {
        self.age(now);
        self.has_news = false;
        self.reckoned_at = now;
        self.estimate = self.found();
        self.known = self.known.or(self.estimate);
        self.estimate
    }

    fn age(&mut self, now: Instant) {
        let young = &self.epochs[0];
        let lost: u64 = young.iter().map(|counts| counts.lost).sum();
        let would_be = self.known.map(|known| {
            let of = |counts: &Counts| {
                let trains = counts.arrived + counts.lost;
                known.rate * counts.bits + known.other * trains as f64
            };
            young.iter().map(of).sum::<f64>()
        });
        let is_over = match would_be {
            Some(would_be) => would_be.max(lost as f64) >= LOST_OF_EPOCH,
            // What is rare is waited for, as long as something was lost at all.
            None if lost > 0 => now.since(self.since) >= EPOCH * 12,
            None => now.since(self.since) >= EPOCH,
        };
        if is_over {
            self.begin_epoch(now);
        }
    }

    fn begin_epoch(&mut self, now: Instant) {
        self.epochs = [[Counts::default(); CLASSES], self.epochs[0]];
        self.since = now;
        self.known = self.estimate;
        self.is_clean = self.known.is_none();
    }

    fn found(&self) -> Option<Estimate> {
        let mut classes = [Seen::default(); CLASSES];
        let mut known = 0;
        let (mut trains, mut lost, mut is_clear) = (0, 0, false);
        for (young, old) in self.epochs[0].iter().zip(&self.epochs[1]) {
            let (arrived, gone) = (young.arrived + old.arrived, young.lost + old.lost);
            let all = arrived + gone;
            if all == 0 {
                continue;
            }
            trains += all;
            lost += gone;
            is_clear |= gone >= LOST_OF_MOST_MIN && gone >= arrived;
            classes[known] = Seen {
                // Where nothing arrives, the rate has no bound but this.
                arrived: arrived as f64 + if gone > 0 { 0.5 } else { 0.0 },
                lost: gone as f64,
                bits: (young.bits + old.bits) / all as f64,
            };
            known += 1;
        }
        let is_known = lost >= LOST_MIN || is_clear;
        is_known.then(|| {
            let (rate, other) = most_likely(&classes[..known]);
            Estimate {
                rate,
                other,
                trains,
                lost,
            }
        })
    }
}

/// Wrong bits of the longest train, where there are none: laws divide by them.
const NEXT_TO_NOTHING: f64 = 1e-9;

/// Of trains of about one length.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    arrived: f64,
    lost: f64,
    bits: f64,
}

/// Slope and curvature of the likelihood, by what takes all alike (0) and by bit errors (1). Those in units of the longest train's.
#[derive(Clone, Copy, Debug, Default)]
struct Slope {
    by: [f64; 2],
    /// 00, 01, 11; positive.
    bend: [f64; 3],
}

/// The likelihood of a train that was lost is 1 − e^−λ, of one that arrived e^−λ, with λ = q + p·b: it has one top.
fn slope(seen: &[Seen], longest: f64, [other, rate]: [f64; 2]) -> Slope {
    let mut slope = Slope::default();
    for of in seen {
        let part = of.bits / longest;
        let odds = 1.0 / exp_less_1((other + rate * part).max(1e-15));
        let by = of.lost * odds - of.arrived;
        let bend = of.lost * odds * (1.0 + odds);
        slope.by[0] += by;
        slope.by[1] += by * part;
        slope.bend[0] += bend;
        slope.bend[1] += bend * part;
        slope.bend[2] += bend * part * part;
    }
    slope
}

/// Bit error rate, and what takes all alike: that is none unless it is seen.
fn most_likely(seen: &[Seen]) -> (f64, f64) {
    let longest = seen.iter().map(|of| of.bits).fold(1.0, f64::max);
    let alone = by_rate_alone(seen, longest);
    let all_alike = by_other_alone(seen, longest);
    let both = match slope(seen, longest, [all_alike, 0.0]).by[1] > 0.0 {
        true => by_both(seen, longest, alone),
        // Nothing becomes more likely by bits that are wrong.
        false => [all_alike, NEXT_TO_NOTHING],
    };
    // The likelihood ratio test: twice what is gained has the distribution of a square.
    let gained = likelihood(seen, longest, both) - likelihood(seen, longest, [0.0, alone]);
    let [other, rate] = match 2.0 * gained > SURE * SURE {
        true => both,
        false => [0.0, alone],
    };
    (rate / longest, other)
}

/// The logarithm of how likely this is.
fn likelihood(seen: &[Seen], longest: f64, [other, rate]: [f64; 2]) -> f64 {
    let of = |of: &Seen| {
        let hazard = (other + rate * of.bits / longest).max(1e-15);
        let grown = exp_less_1(hazard);
        of.lost * ln(grown / (1.0 + grown)) - of.arrived * hazard
    };
    seen.iter().map(of).sum()
}

/// Where the slope by what takes all alike is 0, without bit errors; as [`by_rate_alone`].
fn by_other_alone(seen: &[Seen], longest: f64) -> f64 {
    let sum = |what: fn(&Seen) -> f64| seen.iter().map(what).sum::<f64>();
    let mut other = sum(|of| of.lost) / sum(|of| of.arrived + of.lost);
    for _ in 0..NEWTON_STEPS {
        let at = slope(seen, longest, [other, 0.0]);
        other = (other + at.by[0] / at.bend[0]).clamp(other / 4.0, other * 4.0);
    }
    other
}

/// Where the slope by the rate is 0: it falls, and bends up, so that Newton's steps from the left stay there.
fn by_rate_alone(seen: &[Seen], longest: f64) -> f64 {
    let lost: f64 = seen.iter().map(|of| of.lost).sum();
    let all: f64 = seen
        .iter()
        .map(|of| (of.arrived + of.lost) * of.bits / longest)
        .sum();
    let mut rate = lost / all;
    for _ in 0..NEWTON_STEPS {
        let at = slope(seen, longest, [0.0, rate]);
        rate = (rate + at.by[1] / at.bend[2]).clamp(rate / 4.0, rate * 4.0);
    }
    rate
}

fn by_both(seen: &[Seen], longest: f64, alone: f64) -> [f64; 2] {
    let (mut other, mut rate) = (alone / 4.0, alone / 2.0);
    for _ in 0..2 * NEWTON_STEPS {
        let Slope {
            by: [b0, b1],
            bend: [h00, h01, h11],
        } = slope(seen, longest, [other, rate]);
        let det = h00 * h11 - h01 * h01;
        let to_other = (h11 * b0 - h01 * b1) / det;
        let to_rate = (h00 * b1 - h01 * b0) / det;
        let falls = |at: f64, to: f64| at + to < at / LEAP;
        // Where one of them comes to nothing, or nothing tells them apart, each goes its own way.
        let is_alone = det < 1e-12 * h00 * h11 || falls(other, to_other) || falls(rate, to_rate);
        let [to_other, to_rate] = match is_alone {
            true => [b0 / h00, b1 / h11],
            false => [to_other, to_rate],
        };
        other = (other + to_other).clamp(other / LEAP, other * LEAP);
        rate = (rate + to_rate).clamp(rate / LEAP, rate * LEAP);
    }
    [other, rate]
}

/// Of what is above 0 and no more than 1, by the series of artanh; as [`exp_less_1`].
fn ln(x: f64) -> f64 {
    let (mut x, mut halvings) = (x, 0.0);
    while x < 0.5 {
        x *= 2.0;
        halvings += 1.0;
    }
    let y = (x - 1.0) / (x + 1.0);
    let terms = (0..13).rev();
    let sum = terms.fold(0.0, |sum, n| sum * y * y + 1.0 / f64::from(2 * n + 1));
    2.0 * y * sum - halvings * core::f64::consts::LN_2
}

/// e^x − 1 by its series and doublings: the four operations give the same on each machine.
fn exp_less_1(x: f64) -> f64 {
    let x = x.min(64.0);
    let mut halvings = 0;
    let mut part = x;
    while part > 0.25 {
        part /= 2.0;
        halvings += 1;
    }
    let mut sum = 0.0;
    for n in (1..=12).rev() {
        sum = (1.0 + sum) * part / f64::from(n);
    }
    for _ in 0..halvings {
        sum *= 2.0 + sum;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn chance(random: &mut Random, of: f64) -> bool {
        (random.up_to(u64::MAX - 1) as f64 / u64::MAX as f64) < of
    }

    /// Trains of these lengths in turn, until so many are lost.
    fn drawn(
        errors: &mut BitErrors,
        random: &mut Random,
        (rate, other): (f64, f64),
        lengths: &[usize],
        lost: u32,
    ) {
        let (mut seen, mut n, mut millis) = (0, 0, 0);
        while seen < lost {
            let bytes = lengths[n % lengths.len()];
            let dies = 1.0 - (-(other + rate * bits(bytes))).exp();
            match chance(random, dies) {
                true => {
                    errors.on_lost(bytes);
                    seen += 1;
                }
                false => errors.on_arrived(bytes),
            }
            n += 1;
            if n.is_multiple_of(64) {
                millis += 20;
                errors.reckon(at(millis));
            }
        }
        errors.reckon(at(millis + 20));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Against all pairs of a fine grid.
        #[test]
        fn nothing_is_more_likely_than_what_is_found(
            counts in prop::collection::vec((1u32..2000, 0u32..60, 500u32..500_000), 1..5)
        ) {
            let seen: Vec<Seen> = counts.iter().map(|&(arrived, lost, bits)| Seen {
                arrived: f64::from(arrived) + 0.5, lost: f64::from(lost), bits: f64::from(bits),
            }).collect();
            prop_assume!(seen.iter().any(|of| of.lost > 0.0));
            let likelihood = |rate: f64, other: f64| -> f64 {
                let of = |of: &Seen| {
                    let hazard = rate * of.bits + other;
                    of.lost * (-(-hazard).exp_m1()).ln() - of.arrived * hazard
                };
                seen.iter().map(|seen| if seen.lost > 0.0 { of(seen) } else {
                    -seen.arrived * (rate * seen.bits + other)
                }).sum()
            };
            let (rate, other) = most_likely(&seen);
            let found = likelihood(rate, other);
            // What is not seen to take all alike counts as nothing.
            let left_out = if other == 0.0 { SURE * SURE / 2.0 } else { 0.0 } + 0.01;
            let longest = seen.iter().map(|of| of.bits).fold(0.0, f64::max);
            for of_rate in 0..40 {
                for of_other in 0..40 {
                    let scale = |n: i32| 1e-5 * 1.4f64.powi(n);
                    let (rate, other) = (scale(of_rate) / longest, scale(of_other));
                    let grid = likelihood(rate, other);
                    prop_assert!(grid <= found + left_out, "{} {}: {} and not {}", rate, other, grid, found);
                }
            }
        }
    }

    #[test]
    fn a_rate_is_found_within_a_fifth_on_average_and_never_far_off() {
        let (mut errors_sum, mut cases) = (0.0, 0.0);
        for seed in 1..=40 {
            for (rate, lengths) in [
                (1e-7, &[65_000][..]),
                (1e-6, &[9000, 1500]),
                (1e-6, &[60, 1500]),
                (1e-5, &[1500, 300, 4000]),
            ] {
                let (mut errors, mut random) = (BitErrors::default(), Random::new(seed * 77));
                drawn(&mut errors, &mut random, (rate, 0.0), lengths, 200);
                let found = errors.estimate().expect("it is seen");
                let off = found.rate / rate;
                assert!((0.5..1.8).contains(&off), "{seed} {rate}: {found:?}");
                errors_sum += (off - 1.0).abs();
                cases += 1.0;
            }
        }
        assert!(errors_sum / cases < 0.2, "{}", errors_sum / cases);
    }

    #[test]
    fn what_takes_all_lengths_alike_is_no_bit_error() {
        for seed in 1..=40 {
            for loss in [0.003, 0.02, 0.1] {
                let (mut errors, mut random) = (BitErrors::default(), Random::new(seed * 77));
                drawn(
                    &mut errors,
                    &mut random,
                    (0.0, loss),
                    &[1500, 1500, 9000],
                    200,
                );
                let found = errors.estimate().expect("it is seen");
                // What is left of it for the rate makes none much shorter.
                let all = found.hazard(3000) + found.other;
                assert!(found.hazard(9000) < 2.0 * loss, "{seed} {loss}: {found:?}");
                assert!(
                    (0.4..1.7).contains(&(all / loss)),
                    "{seed} {loss}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn a_few_are_chance_and_several_of_which_none_arrives_are_not() {
        let mut errors = BitErrors::default();
        for _ in 0..1000 {
            errors.on_arrived(1500);
        }
        for _ in 0..7 {
            errors.on_lost(1500);
        }
        assert_eq!(errors.reckon(at(100)), None);
        errors.on_lost(1500);
        let found = errors.reckon(at(200)).expect("eight");
        assert!((found.hazard(1500) / 0.008 - 1.0).abs() < 0.05, "{found:?}");
        let mut errors = BitErrors::default();
        for _ in 0..3 {
            assert_eq!(errors.reckon(at(100)), None);
            errors.on_lost(60_000);
        }
        let found = errors.reckon(at(200)).expect("three of three");
        assert!((1.0..4.0).contains(&found.hazard(60_000)), "{found:?}");
    }

    #[test]
    fn what_is_given_up_together_counts_when_the_link_is_seen_to_live() {
        let second = Duration::from_secs(1);
        let mut errors = BitErrors::default();
        for _ in 0..5 {
            errors.on_given_up(60_000, at(100));
            errors.on_given_up(1514, at(100));
        }
        assert_eq!(errors.reckon(at(200)), None);
        let mut dead = errors.clone();
        dead.on_life(second, at(5000));
        assert_eq!(dead.reckon(at(5000)), None, "it was dead");
        errors.on_life(second, at(500));
        let found = errors.reckon(at(500)).expect("it lives");
        assert_eq!(found.lost, 5, "the short ones are not meant");
    }

    #[test]
    fn a_rate_that_changes_is_followed_and_an_idle_path_forgets_nothing() {
        let (mut errors, mut random) = (BitErrors::default(), Random::new(7));
        drawn(&mut errors, &mut random, (1e-6, 0.0), &[1500], 200);
        let before = errors.estimate();
        assert_eq!(errors.reckon(at(1_000_000)), before);
        // It is well again: what would have been lost twice over was not.
        for n in 0..20_000 {
            errors.on_arrived(1500);
            if n % 100 == 0 {
                errors.reckon(at(1_000_020 + n));
            }
        }
        let after = errors.estimate().map_or(0.0, |known| known.rate);
        assert!(after < 1e-8, "{after}");
        drawn(&mut errors, &mut random, (1e-5, 0.0), &[1500], 100);
        let found = errors.estimate().expect("it is seen").rate;
        assert!((0.6e-5..1.5e-5).contains(&found), "{found}");
    }

    #[test]
    fn exponential_and_logarithm_are_what_they_are_and_classes_are_even() {
        for x in [1e-12, 1e-6, 0.1, 0.25, 0.7, 3.0, 20.0, 60.0] {
            let (own, exact) = (exp_less_1(x), f64::exp_m1(x));
            assert!(
                (own / exact - 1.0).abs() < 1e-12,
                "{x}: {own} and not {exact}"
            );
        }
        for x in [1e-15, 1e-6, 0.3, 0.5, 0.999, 1.0] {
            assert!((ln(x) - f64::ln(x)).abs() < 1e-10, "{x}: {}", ln(x));
        }
        assert_eq!(class_of(1), 0);
        let mut before = 0;
        for bytes in 1..70_000 {
            let class = class_of(bytes);
            assert!(
                class == before || class > before && class <= before + 2,
                "{bytes}"
            );
            before = class;
        }
        assert!(before < CLASSES);
    }
}
