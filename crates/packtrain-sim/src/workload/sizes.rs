//! How much a flow has to carry.
//!
//! A draw is rounded to a whole number of bytes and is at least one; what is told in closed form is of
//! the distribution before that.

use std::fmt;
use std::str::FromStr;

use super::spelling::{self, Problem, SpellingError};
use crate::random::{Random, exp, ln, pow};

#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    Fixed {
        bytes: u64,
    },
    /// A tail as Pareto's, and from zero on: Pareto's second kind.
    Lomax {
        alpha: f64,
        mean_bytes: u64,
    },
    /// The classical one: nothing is smaller than mean (α − 1)/α.
    Pareto {
        alpha: f64,
        mean_bytes: u64,
    },
    Exponential {
        mean_bytes: u64,
    },
    /// Both ends included.
    Uniform {
        low_bytes: u64,
        high_bytes: u64,
    },
    Empirical(Empirical),
}

/// Points of a cumulative distribution. Between two of them the logarithm of the size is uniform; what
/// the first has is of its very size.
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    /// Bytes, and the share of flows that are no larger: both ascend, to a share of 1.
    points: Vec<(u64, f64)>,
}

impl Empirical {
    /// The least and the most bytes of a flow.
    pub fn range(&self) -> (u64, u64) {
        let ends = (self.points.first(), self.points.last());
        let (Some((least, _)), Some((most, _))) = ends else {
            unreachable!("there is one with a share of 1")
        };
        (*least, *most)
    }

    pub fn new(points: Vec<(u64, f64)>) -> Result<Empirical, Problem> {
        let right = |share: f64| (0.0..=1.0).contains(&share);
        if let Some((_, share)) = points.iter().find(|(_, share)| !right(*share)) {
            return Err(format!("a share of {share} is not between 0 and 1"));
        }
        let ascends = |pair: &[(u64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        if let Some(pair) = points.windows(2).find(|pair| !ascends(pair)) {
            let [(a, p), (b, q)] = [pair[0], pair[1]];
            return Err(format!("the points do not ascend from {a}:{p} to {b}:{q}"));
        }
        match (points.first(), points.last()) {
            (Some((1.., _)), Some((_, 1.0))) => Ok(Empirical { points }),
            (Some((0, _)), _) => Err("no flow has 0 bytes".into()),
            _ => Err("the last point has not a share of 1".into()),
        }
    }

    fn draw(&self, share: f64) -> f64 {
        let above = self.points.partition_point(|&(_, upto)| upto <= share);
        let (high, upto) = self.points[above];
        let Some(&(low, from)) = above.checked_sub(1).map(|below| &self.points[below]) else {
            return high as f64;
        };
        let part = (share - from) / (upto - from);
        low as f64 * exp(part * ln(high as f64 / low as f64))
    }

    /// Flows and bytes a flow, of those larger than x.
    fn above(&self, x: f64) -> (f64, f64) {
        let (first, share) = self.points[0];
        let mut flows = if x < first as f64 { share } else { 0.0 };
        let mut bytes = flows * first as f64;
        for pair in self.points.windows(2) {
            let [(low, from), (high, upto)] = [pair[0], pair[1]];
            let (low, high) = (low as f64, high as f64);
            let begins = x.clamp(low, high);
            let density = (upto - from) / ln(high / low);
            flows += density * ln(high / begins);
            bytes += density * (high - begins);
        }
        (flows, bytes)
    }
}

impl Sizes {
    pub fn draw(&self, random: &mut Random) -> u64 {
        match *self {
            Sizes::Fixed { bytes } => bytes,
            Sizes::Uniform {
                low_bytes,
                high_bytes,
            } => random.between(low_bytes, high_bytes),
            Sizes::Empirical(ref empirical) => whole(empirical.draw(random.unit())),
            _ => self.exceeded_by(1.0 - random.unit()),
        }
    }

    /// The size that so large a share of all is above, 0 < share ≤ 1: what a draw is, where the share is drawn evenly.
    pub fn exceeded_by(&self, share: f64) -> u64 {
        assert!(0.0 < share && share <= 1.0, "a share of {share}");
        whole(match *self {
            Sizes::Fixed { bytes } => return bytes,
            Sizes::Uniform {
                low_bytes,
                high_bytes,
            } => {
                let sizes = high_bytes - low_bytes + 1;
                return high_bytes.min(low_bytes + ((1.0 - share) * sizes as f64) as u64);
            }
            Sizes::Lomax { alpha, mean_bytes } => {
                lomax_scale(alpha, mean_bytes) * (pow(share, -1.0 / alpha) - 1.0)
            }
            Sizes::Pareto { alpha, mean_bytes } => {
                pareto_least(alpha, mean_bytes) * pow(share, -1.0 / alpha)
            }
            Sizes::Exponential { mean_bytes } => -ln(share) * mean_bytes as f64,
            Sizes::Empirical(ref empirical) => empirical.draw((1.0 - share).min(BELOW_ONE)),
        })
    }

    pub fn mean_bytes(&self) -> f64 {
        match *self {
            Sizes::Fixed { bytes } => bytes as f64,
            Sizes::Lomax { mean_bytes, .. }
            | Sizes::Pareto { mean_bytes, .. }
            | Sizes::Exponential { mean_bytes } => mean_bytes as f64,
            Sizes::Uniform {
                low_bytes,
                high_bytes,
            } => (low_bytes + high_bytes) as f64 / 2.0,
            Sizes::Empirical(ref empirical) => empirical.above(0.0).1,
        }
    }

    /// Of the flows, those larger than x.
    pub fn share_above(&self, x: u64) -> f64 {
        self.above(x).0
    }

    /// Of the bytes, those in flows larger than x.
    pub fn share_of_bytes_above(&self, x: u64) -> f64 {
        self.above(x).1
    }

    /// Of the flows and of the bytes.
    fn above(&self, bytes: u64) -> (f64, f64) {
        let x = bytes as f64;
        match *self {
            Sizes::Fixed { bytes: all } => match all > bytes {
                true => (1.0, 1.0),
                false => (0.0, 0.0),
            },
            Sizes::Lomax { alpha, mean_bytes } => {
                let scaled = x / lomax_scale(alpha, mean_bytes);
                let flows = pow(1.0 + scaled, -alpha);
                (flows, flows * (1.0 + alpha * scaled))
            }
            Sizes::Pareto { alpha, mean_bytes } => {
                let scaled = (x / pareto_least(alpha, mean_bytes)).max(1.0);
                (pow(scaled, -alpha), pow(scaled, 1.0 - alpha))
            }
            Sizes::Exponential { mean_bytes } => {
                let scaled = x / mean_bytes as f64;
                (exp(-scaled), exp(-scaled) * (1.0 + scaled))
            }
            Sizes::Uniform {
                low_bytes,
                high_bytes,
            } => {
                // Whole numbers: those from x + 1 on.
                let begins = (bytes + 1).clamp(low_bytes, high_bytes + 1);
                let sizes = |from: u64| (high_bytes + 1 - from) as f64;
                let sum = |from: u64| sizes(from) * (from + high_bytes) as f64 / 2.0;
                (
                    sizes(begins) / sizes(low_bytes),
                    sum(begins) / sum(low_bytes),
                )
            }
            Sizes::Empirical(ref empirical) => {
                let (flows, bytes) = empirical.above(x);
                (flows, bytes / empirical.above(0.0).1)
            }
        }
    }
}

/// The greatest there is.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

fn whole(bytes: f64) -> u64 {
    (bytes.round() as u64).max(1)
}

fn lomax_scale(alpha: f64, mean_bytes: u64) -> f64 {
    mean_bytes as f64 * (alpha - 1.0)
}

fn pareto_least(alpha: f64, mean_bytes: u64) -> f64 {
    mean_bytes as f64 * (alpha - 1.0) / alpha
}

impl FromStr for Sizes {
    type Err = SpellingError;

    fn from_str(text: &str) -> Result<Sizes, SpellingError> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let (sizes, like) = match kind {
            "fixed" => (
                spelling::bytes(rest).map(|bytes| Sizes::Fixed { bytes }),
                "fixed:50kB",
            ),
            "lomax" => (
                tail(rest).map(|(alpha, mean_bytes)| Sizes::Lomax { alpha, mean_bytes }),
                "lomax:1.2,100kB",
            ),
            "pareto" => (
                tail(rest).map(|(alpha, mean_bytes)| Sizes::Pareto { alpha, mean_bytes }),
                "pareto:1.2,1MB",
            ),
            "exp" => (
                spelling::bytes(rest).map(|mean_bytes| Sizes::Exponential { mean_bytes }),
                "exp:10kB",
            ),
            "uniform" => (uniform(rest), "uniform:1kB..9kB"),
            "empirical" => (empirical(rest), "empirical:100:0,1000:0.5,1000000:1"),
            _ => (
                Err(format!(
                    "{kind:?} is none of fixed, lomax, pareto, exp, uniform and empirical"
                )),
                "lomax:1.2,100kB",
            ),
        };
        sizes.map_err(|problem| SpellingError {
            text: text.into(),
            problem,
            like,
        })
    }
}

/// Alpha and the mean.
fn tail(text: &str) -> Result<(f64, u64), Problem> {
    let [alpha, mean] = spelling::parts(text, ["alpha", "mean"])?;
    let exponent = spelling::number(alpha, "alpha")?;
    // Nearer to 1 the mean is one in name only: no run sees it.
    if !(1.01..=10.0).contains(&exponent) {
        return Err(format!("an alpha of {alpha} is not between 1.01 and 10"));
    }
    Ok((exponent, spelling::bytes(mean)?))
}

fn uniform(text: &str) -> Result<Sizes, Problem> {
    let ends = text.split_once("..");
    let (low, high) = ends.ok_or_else(|| format!("{text:?} has no .. between two sizes"))?;
    let (low_bytes, high_bytes) = (spelling::bytes(low)?, spelling::bytes(high)?);
    if low_bytes > high_bytes {
        return Err(format!("{low} is more than {high}"));
    }
    Ok(Sizes::Uniform {
        low_bytes,
        high_bytes,
    })
}

fn empirical(text: &str) -> Result<Sizes, Problem> {
    let point = |text: &str| {
        let parts = text.split_once(':');
        let (size, share) = parts.ok_or_else(|| format!("{text:?} is no size:share"))?;
        Ok((spelling::bytes(size)?, spelling::number(share, "share")?))
    };
    let points: Result<Vec<_>, Problem> = text.split(',').map(point).collect();
    Empirical::new(points?).map(Sizes::Empirical)
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let print = spelling::print_bytes;
        match self {
            Sizes::Fixed { bytes } => write!(f, "fixed:{}", print(*bytes)),
            Sizes::Lomax { alpha, mean_bytes } => {
                write!(f, "lomax:{alpha},{}", print(*mean_bytes))
            }
            Sizes::Pareto { alpha, mean_bytes } => {
                write!(f, "pareto:{alpha},{}", print(*mean_bytes))
            }
            Sizes::Exponential { mean_bytes } => write!(f, "exp:{}", print(*mean_bytes)),
            Sizes::Uniform {
                low_bytes,
                high_bytes,
            } => write!(f, "uniform:{}..{}", print(*low_bytes), print(*high_bytes)),
            Sizes::Empirical(Empirical { points }) => {
                let points = points.iter();
                let points = points.map(|(bytes, share)| format!("{}:{share}", print(*bytes)));
                write!(f, "empirical:{}", points.collect::<Vec<_>>().join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests;
