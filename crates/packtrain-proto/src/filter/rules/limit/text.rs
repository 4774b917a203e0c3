//! Limits as people write them.
//!
//! ```text
//! limit   = amount "/s" { "burst" amount | "per" ("rule" | "source") }
//! amount  = number unit                              1000, 10mbit, 1MB
//! unit    = ""                                       packets
//!         | "bit" | "kbit" | "mbit" | "gbit"         thousands, as links are sold
//!         | "B" | "kB" | "MB" | "GB"                 thousands too
//! ```
//!
//! `10M` and `10Mb` are refused: of what they are, people disagree.

use core::fmt;
use core::str::FromStr;

use super::{Limit, LimitError, Per, Unit, default_burst};

/// Units of bytes by how many bits they have, the largest first of each kind.
const UNITS: [(&str, u64); 8] = [
    ("GB", 8_000_000_000),
    ("MB", 8_000_000),
    ("kB", 8000),
    ("B", 8),
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1000),
    ("bit", 1),
];

/// Why a text is no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitTextError {
    #[error("{0:?} is no amount a second: write 1000/s, 10mbit/s or 1MB/s")]
    NotASecond(String),
    #[error("{0:?} is no amount: a whole number up to 2^64, and a unit")]
    Number(String),
    #[error("{0:?} is no unit: none for packets; bit, kbit, mbit, gbit; B, kB, MB, GB")]
    Unit(String),
    #[error("{0} bits are not whole bytes: write a multiple of 8")]
    Bits(u64),
    #[error("a limit in {rate} has its burst in {rate} too, not in {burst}")]
    BurstUnit {
        rate: &'static str,
        burst: &'static str,
    },
    #[error("{0:?} is not expected: \"burst\" and an amount, \"per rule\" or \"per source\"")]
    UnknownWord(String),
    #[error("\"per {0}\": per rule or per source")]
    Per(String),
    #[error("{0:?} is followed by nothing")]
    Unfinished(String),
    #[error("{0:?} is there twice")]
    Twice(&'static str),
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl FromStr for Limit {
    type Err = LimitTextError;

    fn from_str(text: &str) -> Result<Limit, LimitTextError> {
        let mut words = text.split_whitespace();
        let rate = words.next().unwrap_or("");
        let rate = rate
            .strip_suffix("/s")
            .ok_or_else(|| LimitTextError::NotASecond(rate.into()))?;
        let (per_second, unit) = read_amount(rate)?;
        let (mut burst, mut per) = (None, None);
        while let Some(word) = words.next() {
            let mut value = || {
                let value = words.next();
                value.ok_or_else(|| LimitTextError::Unfinished(word.into()))
            };
            match word {
                "burst" => {
                    let (amount, burst_unit) = read_amount(value()?)?;
                    if burst_unit != unit {
                        return Err(LimitTextError::BurstUnit {
                            rate: unit_name(unit),
                            burst: unit_name(burst_unit),
                        });
                    }
                    once("burst", &mut burst, amount)?;
                }
                "per" => {
                    let whose = match value()? {
                        "rule" => Per::Rule,
                        "source" => Per::Source,
                        other => return Err(LimitTextError::Per(other.into())),
                    };
                    once("per", &mut per, whose)?;
                }
                word => return Err(LimitTextError::UnknownWord(word.into())),
            }
        }
        Ok(Limit::new(
            per_second,
            unit,
            burst,
            per.unwrap_or_default(),
        )?)
    }
}

fn once<T>(word: &'static str, place: &mut Option<T>, value: T) -> Result<(), LimitTextError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(LimitTextError::Twice(word)),
    }
}

fn read_amount(text: &str) -> Result<(u64, Unit), LimitTextError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let no_number = || LimitTextError::Number(text.into());
    let number: u64 = number.parse().map_err(|_| no_number())?;
    if unit.is_empty() {
        return Ok((number, Unit::Packets));
    }
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let (_, bits) = known.ok_or_else(|| LimitTextError::Unit(unit.into()))?;
    let bits = number.checked_mul(*bits).ok_or_else(no_number)?;
    match bits % 8 {
        0 => Ok((bits / 8, Unit::Bytes)),
        _ => Err(LimitTextError::Bits(bits)),
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Packets => "packets",
        Unit::Bytes => "bytes",
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_amount(f, self.per_second, self.unit)?;
        f.write_str("/s")?;
        if self.burst != default_burst(self.per_second, self.unit) {
            f.write_str(" burst ")?;
            write_amount(f, self.burst, self.unit)?;
        }
        match self.per {
            Per::Rule => Ok(()),
            Per::Source => f.write_str(" per source"),
        }
    }
}

/// In the unit that makes the smallest number of it, which is mostly that in which somebody wrote it.
fn write_amount(f: &mut fmt::Formatter<'_>, amount: u64, unit: Unit) -> fmt::Result {
    if unit == Unit::Packets {
        return write!(f, "{amount}");
    }
    let bits = u128::from(amount) * 8;
    let whole = UNITS.iter().filter(|unit| bits % u128::from(unit.1) == 0);
    let numbers = whole.map(|&(name, unit)| (bits / u128::from(unit), name));
    // The first of equals: bytes.
    let (number, name) = numbers.min_by_key(|(number, _)| *number).expect("bits");
    write!(f, "{number}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_comes_back_in_one_form() {
        for (text, canonical) in [
            ("1000/s", "1000/s"),
            ("1000/s burst 50", "1000/s burst 50"),
            ("1000/s burst 100 per rule", "1000/s"),
            ("10mbit/s", "10mbit/s"),
            ("1MB/s per source", "1MB/s per source"),
            ("8mbit/s", "1MB/s"),
            ("8bit/s per source burst 3000B", "1B/s burst 3kB per source"),
            ("1514B/s", "1514B/s"),
            ("10gbit/s burst 1MB", "10gbit/s burst 1MB"),
        ] {
            let limit: Limit = text.parse().unwrap();
            assert_eq!(limit.to_string(), canonical);
            assert_eq!(canonical.parse::<Limit>().unwrap(), limit);
        }
        let limit: Limit = "10mbit/s".parse().unwrap();
        assert_eq!((limit.per_second(), limit.unit()), (1_250_000, Unit::Bytes));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Limit>().unwrap_err().to_string();
        let hint = "is no amount a second: write 1000/s, 10mbit/s or 1MB/s";
        assert_eq!(error(""), format!("\"\" {hint}"));
        assert_eq!(error("1000"), format!("\"1000\" {hint}"));
        let hint = "is no amount: a whole number up to 2^64, and a unit";
        assert_eq!(error("fast/s"), format!("\"fast\" {hint}"));
        assert_eq!(error("-1/s"), format!("\"-1\" {hint}"));
        assert_eq!(
            error("18446744073709551615GB/s"),
            format!("\"18446744073709551615GB\" {hint}")
        );
        let hint = "is no unit: none for packets; bit, kbit, mbit, gbit; B, kB, MB, GB";
        assert_eq!(error("10M/s"), format!("\"M\" {hint}"));
        assert_eq!(error("10Mb/s"), format!("\"Mb\" {hint}"));
        assert_eq!(error("1.5MB/s"), format!("\".5MB\" {hint}"));
        assert_eq!(
            error("9bit/s"),
            "9 bits are not whole bytes: write a multiple of 8"
        );
        assert_eq!(
            error("1000/s burst 1MB"),
            "a limit in packets has its burst in packets too, not in bytes"
        );
        assert_eq!(
            error("1MB/s burst 9"),
            "a limit in bytes has its burst in bytes too, not in packets"
        );
        assert_eq!(
            error("1000/s now"),
            "\"now\" is not expected: \"burst\" and an amount, \"per rule\" or \"per source\""
        );
        assert_eq!(
            error("1/s per host"),
            "\"per host\": per rule or per source"
        );
        assert_eq!(error("1/s burst"), "\"burst\" is followed by nothing");
        assert_eq!(error("1/s per"), "\"per\" is followed by nothing");
        assert_eq!(error("1/s burst 9 burst 9"), "\"burst\" is there twice");
        assert_eq!(error("1/s per rule per rule"), "\"per\" is there twice");
        assert_eq!(
            error("0/s"),
            "a limit of nothing a second lets nothing pass: deny it"
        );
    }

    proptest! {
        #[test]
        fn any_limit_is_read_as_it_was_written(limit in crate::filter::rules::generate::limit()) {
            prop_assert_eq!(limit.to_string().parse::<Limit>().unwrap(), limit);
        }
    }
}
