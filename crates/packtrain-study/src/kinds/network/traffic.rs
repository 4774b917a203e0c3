//! When something comes, and how large it is.

use std::fmt;
use std::str::FromStr;

use packtrain_proto::time::Duration;

use crate::kinds::read::parts;
use crate::quantity::{Dimension, Quantity};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrivalSettings {
    /// Independent of each other, so many a second in the mean.
    Poisson {
        per_second: f64,
    },
    Periodic {
        gap: Duration,
    },
    /// So many at once; bursts come independently, so many a second in the mean.
    Bursts {
        count: u32,
        per_second: f64,
    },
    /// So many at an even pace, then a pause.
    OnOff {
        count: u32,
        gap: Duration,
        pause: Duration,
    },
}

/// Bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeSettings {
    Fixed(u64),
    Uniform {
        least: u64,
        most: u64,
    },
    Exponential {
        mean: f64,
    },
    /// Pareto's, from zero on: (1 + x/s)^-shape.
    Lomax {
        shape: f64,
        mean: f64,
    },
    /// From its least on: (least/x)^shape.
    Pareto {
        shape: f64,
        mean: f64,
    },
    /// Each with its share; they add up to 1.
    Empirical(Vec<(u64, f64)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficError(String);

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const BYTES_MAX: f64 = 1e15;
const PER_SECOND_MAX: f64 = 1e8;

impl FromStr for ArrivalSettings {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<ArrivalSettings, TrafficError> {
        let like = || {
            TrafficError(format!(
                "{text:?} are no arrivals: write them as in poisson:100/s, periodic:20ms, bursts:10,5/s or \
                 on-off:50,20ms,1s"
            ))
        };
        let per_second = |text: &str| {
            let rate = text.strip_suffix("/s").and_then(Quantity::parse);
            let rate = rate
                .filter(|rate| rate.dimension == Dimension::Number)
                .ok_or_else(like)?;
            match rate.value > 0.0 && rate.value <= PER_SECOND_MAX {
                true => Ok(rate.value),
                false => Err(TrafficError(format!(
                    "{text}: more than none and at most {PER_SECOND_MAX}/s may come"
                ))),
            }
        };
        let gap = |text: &str| {
            let seconds = Quantity::of(Dimension::Time, text).ok_or_else(like)?;
            match (1e-9..=86_400.0).contains(&seconds) {
                true => Ok(Duration::from_nanos((seconds * 1e9).round() as u64)),
                false => Err(TrafficError(format!("{text}: a time from 1ns to 24h"))),
            }
        };
        let count = |text: &str| {
            let count = text
                .parse::<u32>()
                .ok()
                .filter(|count| (1..=1_000_000).contains(count));
            count.ok_or_else(|| TrafficError(format!("{text}: a whole number from 1 to 1000000")))
        };
        let (kind, parts) = parts(text);
        Ok(match (kind, parts.as_slice()) {
            ("poisson", [rate]) => ArrivalSettings::Poisson {
                per_second: per_second(rate)?,
            },
            ("periodic", [time]) => ArrivalSettings::Periodic { gap: gap(time)? },
            ("bursts", [number, rate]) => ArrivalSettings::Bursts {
                count: count(number)?,
                per_second: per_second(rate)?,
            },
            ("on-off", [number, time, pause]) => ArrivalSettings::OnOff {
                count: count(number)?,
                gap: gap(time)?,
                pause: gap(pause)?,
            },
            _ => return Err(like()),
        })
    }
}

impl FromStr for SizeSettings {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<SizeSettings, TrafficError> {
        let like = || {
            TrafficError(format!(
                "{text:?} are no sizes: write them as in fixed:200b, uniform:40b,1500b, exponential:20kb, \
                 lomax:1.2,20kb, pareto:1.2,20kb or empirical:40b@60%,1500b@40%"
            ))
        };
        // A number alone is one of bytes: nothing else has a size here.
        let bytes = |text: &str| {
            let bytes = Quantity::parse(text).ok_or_else(like)?;
            let of_size = matches!(bytes.dimension, Dimension::Size | Dimension::Number);
            match bytes.value {
                _ if !of_size => Err(like()),
                value if (1.0..=BYTES_MAX).contains(&value) => Ok(value),
                _ => Err(TrafficError(format!(
                    "{text}: at least 1 byte, and at most {BYTES_MAX:e}"
                ))),
            }
        };
        let shape = |text: &str| {
            let shape = text
                .parse::<f64>()
                .ok()
                .filter(|shape| *shape > 1.0 && *shape <= 100.0);
            shape.ok_or_else(|| {
                TrafficError(format!(
                    "{text}: a shape above 1, or there is no mean, and up to 100"
                ))
            })
        };
        let (kind, parts) = parts(text);
        Ok(match (kind, parts.as_slice()) {
            ("fixed", [size]) => SizeSettings::Fixed(bytes(size)?.round() as u64),
            ("uniform", [least, most]) => {
                let (least, most) = (bytes(least)?.round() as u64, bytes(most)?.round() as u64);
                if least > most {
                    return Err(TrafficError(format!("{text}: from the least to the most")));
                }
                SizeSettings::Uniform { least, most }
            }
            ("exponential", [mean]) => SizeSettings::Exponential { mean: bytes(mean)? },
            ("lomax", [of, mean]) => SizeSettings::Lomax {
                shape: shape(of)?,
                mean: bytes(mean)?,
            },
            ("pareto", [of, mean]) => SizeSettings::Pareto {
                shape: shape(of)?,
                mean: bytes(mean)?,
            },
            ("empirical", [_, ..]) => {
                let mut all = Vec::new();
                for part in &parts {
                    let (size, share) = part.split_once('@').ok_or_else(like)?;
                    let share = share.parse::<packtrain_settings::units::Share>();
                    let share = share.map_err(|error| TrafficError(error.to_string()))?;
                    all.push((bytes(size)?.round() as u64, share.0));
                }
                let sum: f64 = all.iter().map(|(_, share)| share).sum();
                if (sum - 1.0).abs() > 1e-6 {
                    let percent = crate::quantity::short(sum * 100.0, 6);
                    return Err(TrafficError(format!(
                        "{text}: the shares add up to {percent}%, and not to 100%"
                    )));
                }
                SizeSettings::Empirical(all)
            }
            _ => return Err(like()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_and_sizes_are_read_as_they_are_written() {
        let arrivals = |text: &str| text.parse::<ArrivalSettings>().unwrap();
        assert_eq!(
            arrivals("poisson:100/s"),
            ArrivalSettings::Poisson { per_second: 100.0 }
        );
        let gap = Duration::from_millis(20);
        assert_eq!(arrivals("periodic:20ms"), ArrivalSettings::Periodic { gap });
        assert_eq!(
            arrivals("bursts:10,5/s"),
            ArrivalSettings::Bursts {
                count: 10,
                per_second: 5.0
            }
        );
        let pause = Duration::from_secs(1);
        assert_eq!(
            arrivals("on-off:50,20ms,1s"),
            ArrivalSettings::OnOff {
                count: 50,
                gap,
                pause
            }
        );

        let sizes = |text: &str| text.parse::<SizeSettings>().unwrap();
        assert_eq!(sizes("fixed:200"), SizeSettings::Fixed(200));
        assert_eq!(
            sizes("lomax:1.2,20kB"),
            SizeSettings::Lomax {
                shape: 1.2,
                mean: 20_480.0
            }
        );
        assert_eq!(
            sizes("uniform:40b,1500b"),
            SizeSettings::Uniform {
                least: 40,
                most: 1500
            }
        );
        assert_eq!(
            sizes("empirical:40b@60%,1500b@0.4"),
            SizeSettings::Empirical(vec![(40, 0.6), (1500, 0.4)])
        );
    }

    #[test]
    fn what_is_neither_is_told_why() {
        let arrivals = |text: &str| text.parse::<ArrivalSettings>().unwrap_err().0;
        assert!(arrivals("poisson:100").starts_with("\"poisson:100\" are no arrivals: "));
        assert_eq!(
            arrivals("poisson:0/s"),
            "0/s: more than none and at most 100000000/s may come"
        );
        assert_eq!(
            arrivals("bursts:0,1/s"),
            "0: a whole number from 1 to 1000000"
        );
        assert_eq!(arrivals("periodic:0s"), "0s: a time from 1ns to 24h");
        let sizes = |text: &str| text.parse::<SizeSettings>().unwrap_err().0;
        assert!(sizes("200").starts_with("\"200\" are no sizes: "));
        assert!(sizes("fixed:5ms").starts_with("\"fixed:5ms\" are no sizes: "));
        assert_eq!(
            sizes("lomax:1,20kb"),
            "1: a shape above 1, or there is no mean, and up to 100"
        );
        assert_eq!(
            sizes("empirical:40b@60%,1500b@30%"),
            "empirical:40b@60%,1500b@30%: the shares add up to 90%, and not to 100%"
        );
    }
}
