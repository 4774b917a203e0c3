//! The best size of a frame where bits are wrong (Divakaran et al. 2009, Lemma 7.1 and Fig. 8): for the law that the lemma
//! assumes, and for TCP.
//!
//! A sender at c/√P frames a second, of which the share P is lost, has a goodput of N(1 − P)c/√P with frames of N bits. With
//! bit errors at a rate of p that is greatest at θ = N·p = 0.6438: so almost half of the frames are lost there. No TCP keeps to
//! the law up to such a loss, its timeouts come long before. What they cost in round trips decides where its own best size is:
//! at 0.04 with 5 ms, 0.05 with 10, 0.1 with 20 and 0.2 with 100, where a timeout lasts 200 ms more than the round trip. So
//! 0.6438 is no setting to take.
//!
//! Both are measured with frames: the law with frames that live or die one by one, TCP with a flow on a line.

use packtrain_proto::time::{Duration, Instant};

use crate::fabric::{Ends, Fabric, FabricConfig, FlowConfig, RouteConfig, UNLIMITED_BYTES};
use crate::frame::FCS_BYTES;
use crate::net::bit_errors::{BitErrorConfig, BitErrors};
use crate::net::queue::QueueConfig;
use crate::net::wire::WireConfig;
use crate::random::{Random, exp, ln};
use crate::tcp::sender::SenderConfig;
use crate::theory;

#[derive(Clone, Debug, PartialEq)]
pub struct LawConfig {
    pub bit_error_rate: f64,
    pub thetas: Vec<f64>,
    /// Sent at each θ.
    pub frames: u64,
    pub seed: u64,
}

impl Default for LawConfig {
    fn default() -> LawConfig {
        LawConfig {
            bit_error_rate: 1e-6,
            thetas: (1..=40)
                .map(|twentieths| 0.05 * f64::from(twentieths))
                .collect(),
            frames: 200_000,
            seed: 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawPoint {
    /// Of frames of whole bits.
    pub theta: f64,
    pub frame_bits: u64,
    pub lost: u64,
    /// By the law, with the share that was lost; in units of c/p.
    pub goodput: f64,
    /// Beside it: [`theory::xlf_goodput`].
    pub formula: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LawResult {
    pub points: Vec<LawPoint>,
    /// Where the parabola through the points near the greatest has its top. None if they have no top between them.
    pub best_theta: Option<f64>,
}

/// # Panics
/// If none or all frames of a point are lost: there is no rate then, or no goodput.
pub fn law(config: &LawConfig) -> LawResult {
    let mut random = Random::new(config.seed);
    let rate = config.bit_error_rate;
    let points: Vec<LawPoint> = config
        .thetas
        .iter()
        .map(|theta| {
            let frame_bits = (theta / rate).round() as u64;
            let mut errors = BitErrors::new(BitErrorConfig { rate }, random.fork());
            let lost = (0..config.frames)
                .filter(|_| errors.hit(frame_bits))
                .count() as u64;
            assert!(
                0 < lost && lost < config.frames,
                "{lost} of {} frames are lost at θ = {theta}",
                config.frames
            );
            let theta = frame_bits as f64 * rate;
            let share = lost as f64 / config.frames as f64;
            LawPoint {
                theta,
                frame_bits,
                lost,
                goodput: theta * (1.0 - share) / share.sqrt(),
                formula: theory::xlf_goodput(theta),
            }
        })
        .collect();
    let measured: Vec<(f64, f64)> = points.iter().map(|at| (at.theta, at.goodput)).collect();
    LawResult {
        points,
        best_theta: top(&measured),
    }
}

/// Of the greatest: what is lower is not near it.
const NEAR: f64 = 0.95;

/// By least squares through the logarithms of those that are near. In these the lemma's curve is almost even on both sides: the
/// parabola's top is 0.01 below the curve's.
fn top(points: &[(f64, f64)]) -> Option<f64> {
    let greatest = points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let near = points.iter().filter(|(_, y)| *y >= NEAR * greatest);
    let near: Vec<(f64, f64)> = near.map(|&(x, y)| (ln(x), ln(y))).collect();
    let middle = near.iter().map(|(x, _)| x).sum::<f64>() / near.len() as f64;
    let n = near.len() as f64;
    let [mut s2, mut s3, mut s4, mut y0, mut y1, mut y2] = [0.0; 6];
    for (x, y) in near.iter().map(|&(x, y)| (x - middle, y)) {
        let square = x * x;
        (s2, s3, s4) = (s2 + square, s3 + square * x, s4 + square * square);
        (y0, y1, y2) = (y0 + y, y1 + x * y, y2 + square * y);
    }
    // a + bx + cx² with the sum of x being 0: Cramer's rule for b and c.
    let b = y1 * (n * s4 - s2 * s2) - s3 * (n * y2 - s2 * y0);
    let c = s2 * (n * y2 - s2 * y0) - n * s3 * y1;
    let offset = -b / (2.0 * c);
    let (first, last) = (near.first()?.0 - middle, near.last()?.0 - middle);
    (c < 0.0 && first <= offset && offset <= last).then(|| exp(middle + offset))
}

/// One flow of SACK Reno, over a line with bit errors and nobody else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig {
    pub theta: f64,
    /// By default such that a frame of θ = 0.64 is an IP packet of 64,000 bytes.
    pub bit_error_rate: f64,
    pub rate_bps: u64,
    /// The longer, the less is a timeout of 200 ms more, and the larger is the best θ.
    pub round_trip: Duration,
    /// Not counted: slow start.
    pub warm_up: Duration,
    pub duration: Duration,
    pub seed: u64,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig {
            theta: 0.05,
            bit_error_rate: 1.25e-6,
            rate_bps: 1_000_000_000,
            round_trip: Duration::from_millis(10),
            warm_up: Duration::from_secs(10),
            duration: Duration::from_secs(600),
            seed: 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpResult {
    /// Of whole bytes: N is what the check sequence covers, and itself.
    pub theta: f64,
    pub mss: u32,
    /// Of content.
    pub goodput_bps: f64,
    /// In units of c/p, as [`LawPoint::goodput`], with the c of Mathis et al.: √(3/2) ÷ round trip.
    pub goodput: f64,
    pub sent: u64,
    pub lost: u64,
    pub timeouts: u64,
    pub fast_recoveries: u64,
}

/// Of a segment's frame, what is not content: Ethernet with its check sequence, and IP and TCP.
const AROUND_BYTES: u64 = 14 + FCS_BYTES as u64 + 40;
/// With one byte of content.
pub const FRAME_BYTES_MIN: u64 = AROUND_BYTES + 1;
/// With the longest IP packet.
pub const FRAME_BYTES_MAX: u64 = 14 + FCS_BYTES as u64 + 65_535;

/// # Panics
/// If the frame is too short for content, or longer than an IP packet can be.
pub fn tcp(config: &TcpConfig) -> TcpResult {
    let frame_bytes = (config.theta / config.bit_error_rate / 8.0).round() as u64;
    assert!(
        (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&frame_bytes),
        "a frame of {frame_bytes} bytes"
    );
    let mss = (frame_bytes - AROUND_BYTES) as u32;
    let one_way = WireConfig {
        // Never the limit: what is lost is lost by bit errors.
        queue: QueueConfig::drop_tail(1 << 30),
        ..WireConfig::perfect(config.rate_bps, config.round_trip / 2)
    };
    let noisy = WireConfig {
        bit_errors: Some(BitErrorConfig {
            rate: config.bit_error_rate,
        }),
        ..one_way.clone()
    };
    let mut fabric = Fabric::new(
        &FabricConfig {
            lines: vec![noisy, one_way],
            flows: vec![FlowConfig {
                ends: Ends {
                    sender: SenderConfig {
                        mss,
                        record: false,
                        ..SenderConfig::default()
                    },
                    ..Ends::default()
                },
                route: RouteConfig {
                    forward: vec![0],
                    back: vec![1],
                },
                group: 0,
                starts: Duration::ZERO,
                writes: vec![(Duration::ZERO, UNLIMITED_BYTES)],
                feeds: None,
            }],
            seed: config.seed,
            ..FabricConfig::default()
        },
        (),
    );
    fabric.run_until(Instant::ZERO + config.warm_up);
    let (before, told_before) = (fabric.count(0), fabric.sender(0).counters);
    fabric.run_for(config.duration);
    let (count, told) = (fabric.count(0) - before, fabric.sender(0).counters);
    let goodput_bps = 8.0 * count.delivered_bytes as f64 / config.duration.as_secs_f64();
    let frames_per_second = 1.5f64.sqrt() / config.round_trip.as_secs_f64();
    TcpResult {
        theta: 8.0 * frame_bytes as f64 * config.bit_error_rate,
        mss,
        goodput_bps,
        goodput: goodput_bps * config.bit_error_rate / frames_per_second,
        sent: count.sent,
        lost: count.lost,
        timeouts: told.timeouts - told_before.timeouts,
        fast_recoveries: told.fast_recoveries - told_before.fast_recoveries,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_under_the_law_have_the_lemmas_curve_and_its_best_size() {
        for seed in 1..=2 {
            let result = law(&LawConfig {
                seed,
                ..LawConfig::default()
            });
            for at in &result.points {
                let off = at.goodput / at.formula - 1.0;
                assert!(off.abs() < 0.02, "{at:?}: {off}");
            }
            let best = result.best_theta.expect("the grid has the top in it");
            assert!((best - theory::xlf_best_theta()).abs() < 0.05, "{best}");
            assert!((best - 0.6438).abs() < 0.05, "{best}");
        }
    }

    #[test]
    fn the_top_of_the_formula_itself_is_found_and_none_where_there_is_none() {
        let of = |thetas: std::ops::Range<i32>| {
            let theta = |twentieths| 0.05 * f64::from(twentieths);
            let points = thetas.map(|at| (theta(at), theory::xlf_goodput(theta(at))));
            top(&points.collect::<Vec<_>>())
        };
        let found = of(1..41).expect("it has one");
        assert!((found - 0.6438).abs() < 0.015, "{found}");
        assert_eq!(of(20..41), None); // it only falls
        assert_eq!(top(&[]), None);
        let parabola = [-3.0, -1.0, 0.0, 2.0].map(|x: f64| {
            let y = 1.0 - 0.001 * (x - 0.5) * (x - 0.5);
            (f64::exp(x), f64::exp(y))
        });
        let found = top(&parabola).expect("it has one");
        assert!((found.ln() - 0.5).abs() < 1e-6, "{found}");
    }

    #[test]
    fn tcp_has_its_best_size_at_a_tenth_of_the_lemmas() {
        let thetas = [0.005, 0.02, 0.05, 0.15, 0.64];
        let results = thetas.map(|theta| {
            tcp(&TcpConfig {
                theta,
                duration: Duration::from_secs(60),
                ..TcpConfig::default()
            })
        });
        let goodput = results.map(|result| result.goodput_bps);
        let best = goodput.into_iter().fold(0.0, f64::max);
        assert!(goodput[1] == best || goodput[2] == best, "{goodput:?}");
        assert!(goodput[4] < best / 3.0, "{goodput:?}");
        for result in results {
            // Almost half are lost at the lemma's best size.
            let lost = result.lost as f64 / result.sent as f64;
            let exact = 1.0 - (-result.theta).exp();
            let deviation = (exact * (1.0 - exact) / result.sent as f64).sqrt();
            assert!((lost - exact).abs() < 4.0 * deviation, "{result:?}");
        }
        // Where losses are few it is near the law; far from it where timeouts rule.
        let of_law = |result: TcpResult| result.goodput / theory::xlf_goodput(result.theta);
        assert!((0.6..1.1).contains(&of_law(results[0])), "{results:?}");
        assert!(of_law(results[4]) < 0.1, "{results:?}");
        assert!(results[4].timeouts > results[4].fast_recoveries);
    }
}
