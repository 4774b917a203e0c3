//! Numbers with units as `tc` and `ip` write them: read once, right ever after, and printed so
//! that they can be read again.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// In bit/s. Below, an Ethernet frame takes longer than anybody waits; above, this machine does
/// not carry it.
pub const RATE_BPS_MIN: u64 = 1_000;
pub const RATE_BPS_MAX: u64 = 100_000_000_000;
/// To a satellite and back, four times over.
pub const DELAY_NS_MAX: u64 = 2_000_000_000;
/// What a wire may hold in memory.
pub const QUEUE_BYTES_MAX: u64 = 1 << 30;
pub const QUEUE_PACKETS_MAX: u32 = 1_000_000;

const RATE_UNITS: [(&str, u64); 4] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];
const TIME_UNITS: [(&str, u64); 4] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];
/// `tc`'s, so 1 kb is 1024 bytes.
const SIZE_UNITS: [(&str, u64); 3] = [("mb", 1 << 20), ("kb", 1 << 10), ("b", 1)];

/// Why a text is no value of a wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    #[error("{text:?} is no {what}: write it as in {like}")]
    Syntax {
        text: String,
        what: &'static str,
        like: &'static str,
    },
    #[error("{text} is finer than {finest}")]
    TooFine { text: String, finest: &'static str },
    #[error("a {what} of {text} is too small: at least {least}")]
    TooSmall {
        what: &'static str,
        text: String,
        least: String,
    },
    #[error("a {what} of {text} is too large: at most {most}")]
    TooLarge {
        what: &'static str,
        text: String,
        most: String,
    },
}

/// What a kind of number is called, how it is written, and between what it lies.
struct Kind {
    what: &'static str,
    like: &'static str,
    units: &'static [(&'static str, u64)],
    /// What a number without a unit means; `None`: it needs one.
    bare: Option<u64>,
    finest: &'static str,
    least: u64,
    most: u64,
}

impl Kind {
    fn syntax(&self, text: &str) -> ValueError {
        ValueError::Syntax {
            text: text.into(),
            what: self.what,
            like: self.like,
        }
    }

    fn parse(&self, text: &str) -> Result<u64, ValueError> {
        let lower = text.to_ascii_lowercase();
        let end = lower
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(lower.len());
        let (number, unit) = lower.split_at(end);
        let unit = match unit {
            // Nothing is nothing in every unit.
            "" if number == "0" => 1,
            "" => self.bare.ok_or_else(|| self.syntax(text))?,
            unit => {
                let known = self.units.iter().find(|(name, _)| *name == unit);
                known.ok_or_else(|| self.syntax(text))?.1
            }
        };
        let value = scaled(number, unit).ok_or_else(|| self.syntax(text))?;
        if value.inexact {
            return Err(ValueError::TooFine {
                text: text.into(),
                finest: self.finest,
            });
        }
        if value.whole < u128::from(self.least) {
            return Err(ValueError::TooSmall {
                what: self.what,
                text: text.into(),
                least: self.print(self.least),
            });
        }
        match u64::try_from(value.whole) {
            Ok(value) if value <= self.most => Ok(value),
            _ => Err(ValueError::TooLarge {
                what: self.what,
                text: text.into(),
                most: self.print(self.most),
            }),
        }
    }

    /// In the largest unit that says it with one digit after the point at most.
    fn print(&self, value: u64) -> String {
        let fits = |unit: u64| {
            value.is_multiple_of(unit) || value > unit && (value % unit * 10).is_multiple_of(unit)
        };
        let (name, unit) = self
            .units
            .iter()
            .find(|(_, unit)| fits(*unit))
            .expect("the smallest unit is one");
        match value % unit * 10 / unit {
            0 => format!("{}{name}", value / unit),
            tenths => format!("{}.{tenths}{name}", value / unit),
        }
    }
}

struct Scaled {
    whole: u128,
    inexact: bool,
}

/// A decimal number times its unit; a fraction is not rounded but told.
fn scaled(number: &str, unit: u64) -> Option<Scaled> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| {
        let right = (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        right.then(|| text.parse::<u128>().expect("at most 18 digits"))
    };
    let parts = digits(fraction)? * u128::from(unit);
    let divisor = 10u128.pow(fraction.len() as u32);
    Some(Scaled {
        whole: digits(whole)? * u128::from(unit) + parts / divisor,
        inexact: parts % divisor != 0,
    })
}

macro_rules! number_with_unit {
    ($(#[$doc:meta])* $name:ident, $kind:ident = $value:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u64);

        const $kind: Kind = $value;

        impl FromStr for $name {
            type Err = ValueError;

            fn from_str(text: &str) -> Result<$name, ValueError> {
                $kind.parse(text).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&$kind.print(self.0))
            }
        }
    };
}

number_with_unit! {
    /// Bits a second.
    BitRate, BIT_RATE = Kind {
        what: "rate",
        like: "100mbit, 64kbit or 1.5gbit",
        units: &RATE_UNITS,
        bare: Some(1),
        finest: "1 bit/s",
        least: RATE_BPS_MIN,
        most: RATE_BPS_MAX,
    }
}

number_with_unit! {
    /// Nanoseconds.
    Time, TIME = Kind {
        what: "time",
        like: "20ms, 5us or 2s",
        units: &TIME_UNITS,
        bare: None,
        finest: "1 ns",
        least: 0,
        most: DELAY_NS_MAX,
    }
}

number_with_unit! {
    /// Seconds that something is kept.
    Lifetime, LIFETIME = Kind {
        what: "time",
        like: "600s, 10min or 1h",
        units: &[("h", 3600), ("min", 60), ("s", 1)],
        bare: None,
        finest: "1 s",
        least: 1,
        most: 86_400,
    }
}

impl From<Lifetime> for Duration {
    fn from(time: Lifetime) -> Duration {
        Duration::from_secs(time.0)
    }
}

impl From<Duration> for Time {
    fn from(of: Duration) -> Time {
        Time(of.as_nanos() as u64)
    }
}

impl From<Time> for Duration {
    fn from(time: Time) -> Duration {
        Duration::from_nanos(time.0)
    }
}

number_with_unit! {
    /// Bytes that stand in a queue.
    Bytes, BYTES = Kind {
        what: "size",
        like: "256kb, 1mb or 15000b",
        units: &SIZE_UNITS,
        bare: None,
        finest: "1 byte",
        least: 1,
        most: QUEUE_BYTES_MAX,
    }
}

number_with_unit! {
    /// Packets that stand in a queue.
    Packets, PACKETS = Kind {
        what: "queue",
        like: "1000p",
        units: &[("p", 1)],
        bare: Some(1),
        finest: "1 packet",
        least: 1,
        most: QUEUE_PACKETS_MAX as u64,
    }
}

/// A share of all frames, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

/// Of bits, from 0 to 1: as a share, and printed as such rates are, `1e-6`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct ErrorRate(pub f64);

fn parse_share(text: &str, what: &'static str, like: &'static str) -> Result<f64, ValueError> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    // Otherwise `inf`, `nan` and `+1` would be numbers too.
    let starts = number.starts_with(|c: char| c.is_ascii_digit());
    let value = number.parse::<f64>().ok().filter(|_| starts);
    let Some(share) = value.map(|value| value / divisor) else {
        return Err(ValueError::Syntax {
            text: text.into(),
            what,
            like,
        });
    };
    if share > 1.0 {
        return Err(ValueError::TooLarge {
            what,
            text: text.into(),
            most: "100% (1.0)".into(),
        });
    }
    Ok(share)
}

impl FromStr for Share {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Share, ValueError> {
        parse_share(text, "share", "1% or 0.01").map(Share)
    }
}

impl fmt::Display for Share {
    /// In percent where that reads back as the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Multiplying by 100 may leave the last digits wrong: 0.07 becomes 7.000000000000001.
        let percent = (self.0 * 1e11).round() / 1e9;
        if percent / 100.0 == self.0 {
            f.pad(&format!("{percent}%"))
        } else {
            f.pad(&self.0.to_string())
        }
    }
}

impl FromStr for ErrorRate {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<ErrorRate, ValueError> {
        parse_share(text, "bit error rate", "1e-6").map(ErrorRate)
    }
}

impl fmt::Display for ErrorRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:e}", self.0))
    }
}

#[cfg(test)]
mod tests;
