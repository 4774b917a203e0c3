//! Chance, against the formulas of what it is said to follow.
//!
//! Seeds are fixed, and bounds are four standard errors: what fails is wrong, and not unlucky.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::bit_errors::BitErrorConfig;
use packtrain_sim::net::jitter::{JitterConfig, JitterDistribution};
use packtrain_sim::net::loss::LossConfig;
use packtrain_sim::net::wire::{WireConfig, WireDrop};

use crate::support::{Driven, bare};

const FRAMES: usize = 100_000;
const ERRORS: f64 = 4.0;
/// So far apart that jitter has room.
const GAP: Duration = Duration::from_millis(1);

fn driven(config: &WireConfig, frame_len: usize, seed: u64) -> Driven {
    let mut driven = Driven::new(config, seed);
    for _ in 0..FRAMES {
        driven.offer(bare(frame_len));
        driven.run_for(GAP);
    }
    driven.drain();
    driven
}

fn is_near(name: &str, got: f64, expected: f64, error: f64) {
    assert!(
        (got - expected).abs() <= ERRORS * error,
        "{name}: {got} and not {expected} ± {error}"
    );
}

/// Of a share of `FRAMES` that each decide by themselves.
fn binomial_error(p: f64) -> f64 {
    (p * (1.0 - p) / FRAMES as f64).sqrt()
}

fn losing(loss: LossConfig) -> WireConfig {
    WireConfig {
        loss: Some(loss),
        ..WireConfig::unrated(Duration::ZERO)
    }
}

#[test]
fn bernoulli_loses_its_share() {
    for (seed, probability) in [(1, 0.001), (2, 0.03), (3, 0.5)] {
        let driven = driven(&losing(LossConfig::Bernoulli { probability }), 60, seed);
        let share = driven.wire.counters.lost as f64 / FRAMES as f64;
        is_near("loss", share, probability, binomial_error(probability));
    }
}

/// Lengths of rows of numbers that follow each other.
fn rows(numbers: &[u32]) -> Vec<f64> {
    let follow = |a: &u32, b: &u32| *b == a + 1;
    numbers
        .chunk_by(follow)
        .map(|row| row.len() as f64)
        .collect()
}

#[test]
fn gilbert_and_elliott_lose_the_stationary_share_in_rows_of_their_length() {
    for (seed, good_to_bad, bad_to_good) in [(1, 0.001, 0.1), (2, 0.02, 0.25), (3, 0.1, 0.9)] {
        let driven = driven(
            &losing(LossConfig::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_in_good: 0.0,
                loss_in_bad: 1.0,
            }),
            60,
            seed,
        );
        let lost = driven.dropped(WireDrop::Loss);
        let bad = good_to_bad / (good_to_bad + bad_to_good);
        // Frames decide together: what one does is kept with this share by the next.
        let kept: f64 = 1.0 - good_to_bad - bad_to_good;
        let error = binomial_error(bad) * ((1.0 + kept) / (1.0 - kept)).sqrt();
        is_near("loss", lost.len() as f64 / FRAMES as f64, bad, error);

        let rows = rows(&lost);
        let mean = rows.iter().sum::<f64>() / rows.len() as f64;
        let deviation = (1.0 - bad_to_good).sqrt() / bad_to_good;
        let error = deviation / (rows.len() as f64).sqrt();
        is_near("row", mean, 1.0 / bad_to_good, error);
    }
}

#[test]
fn in_both_states_each_frame_is_lost_with_the_states_probability() {
    let (good_to_bad, bad_to_good) = (0.3, 0.6);
    let driven = driven(
        &losing(LossConfig::GilbertElliott {
            good_to_bad,
            bad_to_good,
            loss_in_good: 0.02,
            loss_in_bad: 0.4,
        }),
        60,
        4,
    );
    let share = driven.wire.counters.lost as f64 / FRAMES as f64;
    let expected = 0.02 * 2.0 / 3.0 + 0.4 / 3.0;
    is_near("loss", share, expected, binomial_error(expected) * 1.2);
}

#[test]
fn every_nth_frame_and_those_given_are_lost_on_a_wire() {
    let periodic = driven(&losing(LossConfig::Periodic { every: 1000 }), 60, 1);
    let expected: Vec<u32> = (0..100).map(|i| 1000 * i + 999).collect();
    assert_eq!(periodic.dropped(WireDrop::Loss), expected);
    let frames = vec![1, 77, 100_000];
    let given = driven(&losing(LossConfig::Given { frames }), 60, 1);
    assert_eq!(given.dropped(WireDrop::Loss), [0, 76, 99_999]);
}

#[test]
fn a_frame_dies_with_the_probability_that_one_of_its_bits_flips() {
    // With the FCS, and padded to 64 bytes; rates at which about every second one dies, so that a
    // few bytes more or less are seen, and one at which hardly any does.
    for (len, bits, rate) in [
        (20, 512, 1e-3f64),
        (60, 512, 1e-3),
        (596, 4800, 1e-4),
        (1514, 12_144, 1e-4),
        (8996, 72_000, 1e-5),
        (1514, 12_144, 1e-7),
    ] {
        let config = WireConfig {
            bit_errors: Some(BitErrorConfig { rate }),
            ..WireConfig::unrated(Duration::ZERO)
        };
        let driven = driven(&config, len, len as u64);
        let share = driven.wire.counters.bit_errors as f64 / FRAMES as f64;
        let expected = 1.0 - (1.0 - rate).powi(bits);
        is_near("death", share, expected, binomial_error(expected));
    }
}

const DELAY: Duration = Duration::from_millis(100);

/// What was added to the delay of each frame, in milliseconds.
fn jitters(distribution: JitterDistribution) -> Vec<f64> {
    let config = WireConfig {
        jitter: Some(JitterConfig {
            distribution,
            keeps_order: false,
        }),
        ..WireConfig::unrated(DELAY)
    };
    let arrivals = driven(&config, 60, 5).arrivals();
    assert_eq!(arrivals.len(), FRAMES);
    let on_time = |number: u32| (GAP * number + DELAY).as_nanos() as f64;
    let added = |(number, at): (u32, Instant)| (at.as_nanos() as f64 - on_time(number)) / 1e6;
    arrivals.into_iter().map(added).collect()
}

/// Mean and deviation, and the greatest distance of the drawn from the distribution: Kolmogorov's
/// and Smirnov's, whose bound is exceeded once in 2000 times.
fn follows(
    distribution: JitterDistribution,
    mean: f64,
    deviation: f64,
    below: impl Fn(f64) -> f64,
) {
    let mut drawn = jitters(distribution);
    drawn.sort_by(f64::total_cmp);
    let n = drawn.len() as f64;
    let name = format!("{distribution:?}");
    let got = drawn.iter().sum::<f64>() / n;
    is_near(&name, got, mean, deviation / n.sqrt());
    let variance = drawn.iter().map(|x| (x - got) * (x - got)).sum::<f64>() / n;
    let ratio = variance.sqrt() / deviation;
    assert!((0.98..1.02).contains(&ratio), "{name}: deviation {ratio}");
    let distance = drawn.iter().enumerate().map(|(i, &x)| {
        let (share, expected) = (i as f64 / n, below(x));
        (share - expected)
            .abs()
            .max((share + 1.0 / n - expected).abs())
    });
    let distance = distance.fold(0.0, f64::max);
    assert!(distance < 2.0 / n.sqrt(), "{name}: {distance}");
}

#[test]
fn uniform_jitter_is_uniform() {
    let max = Duration::from_millis(6);
    let distribution = JitterDistribution::Uniform { max };
    follows(distribution, 3.0, 6.0 / 12f64.sqrt(), |x| x / 6.0);
}

#[test]
fn the_jitter_of_a_queue_is_a_square() {
    let max = Duration::from_millis(6);
    let deviation = 6.0 * (4.0f64 / 45.0).sqrt();
    let distribution = JitterDistribution::Queue { max };
    follows(distribution, 2.0, deviation, |x| (x / 6.0).sqrt());
}

/// The normal distribution below z: Abramowitz and Stegun, 26.2.17, to 1e−7.
fn normal_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let factors = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum = factors
        .iter()
        .rev()
        .fold(0.0, |sum, factor| (sum + factor) * t);
    let beyond = sum * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if z < 0.0 { beyond } else { 1.0 - beyond }
}

#[test]
fn normal_jitter_is_normal_and_ends_at_four_deviations() {
    let deviation = Duration::from_millis(5);
    let distribution = JitterDistribution::Normal { deviation };
    follows(distribution, 0.0, 5.0, |x| normal_below(x / 5.0));
    let furthest = jitters(distribution)
        .into_iter()
        .fold(0.0, |a: f64, x| a.max(x.abs()));
    assert!((17.5..=20.0).contains(&furthest), "{furthest}");
}

/// Without a delay half of them would arrive before they leave.
#[test]
fn normal_jitter_beyond_the_delay_makes_it_nothing_and_never_less() {
    let config = WireConfig {
        jitter: Some(JitterConfig {
            distribution: JitterDistribution::Normal { deviation: DELAY },
            keeps_order: false,
        }),
        ..WireConfig::unrated(Duration::ZERO)
    };
    let arrivals = driven(&config, 60, 5).arrivals();
    let leaves = |number: u32| Instant::ZERO + GAP * number;
    assert!(arrivals.iter().all(|&(number, at)| at >= leaves(number)));
    let at_once = arrivals
        .iter()
        .filter(|&&(number, at)| at == leaves(number))
        .count();
    is_near(
        "at once",
        at_once as f64 / FRAMES as f64,
        0.5,
        binomial_error(0.5),
    );
}

#[test]
fn paretos_jitter_has_its_mean_its_tail_and_its_end() {
    let mean = Duration::from_millis(3);
    let distribution = JitterDistribution::Pareto { mean };
    let scale = 3.0 * 20.0 / 19.0;
    let beyond = jitters(distribution)
        .iter()
        .filter(|&&x| x > 59.999_999)
        .count() as f64;
    is_near(
        "tail",
        beyond / FRAMES as f64,
        1.0 / 400.0,
        binomial_error(1.0 / 400.0),
    );
    // ∫ 2 x S(x) up to the end, less the mean's square.
    let deviation = (2.0 * (400.0 / 361.0) * (20f64.ln() + 1.0 / 20.0 - 1.0) - 1.0).sqrt();
    assert!((1.87..1.89).contains(&deviation));
    // What stands at the end is less than the distance that is allowed.
    follows(distribution, 3.0, 3.0 * deviation, |x| {
        1.0 - (scale / (scale + x)).powi(2)
    });
}
