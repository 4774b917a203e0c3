//! How workloads are written: a word, a colon, and values with commas between.

use std::fmt;

use packtrain_proto::time::Duration;

/// Why a text is no workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpellingError {
    pub text: String,
    pub problem: String,
    /// A right one.
    pub like: &'static str,
}

impl fmt::Display for SpellingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpellingError {
            text,
            problem,
            like,
        } = self;
        write!(f, "{text:?}: {problem}; write it as in {like}")
    }
}

impl std::error::Error for SpellingError {}

/// What is wrong with a part of the text.
pub(super) type Problem = String;

type Units = [(&'static str, u64)];

/// Decimal ones, as everywhere in the papers: not `tc`'s kb, which has 1024 bytes.
const BYTES: &Units = &[
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];
const NANOS: &Units = &[
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// More than is ever simulated, and few enough for sums: a petabyte, or eleven days and a half.
const MOST: f64 = 1e15;

/// At least one; without a unit they are bytes.
pub(super) fn bytes(text: &str) -> Result<u64, Problem> {
    let bare = text.ends_with(|c: char| c.is_ascii_digit());
    quantity(text, if bare { "B" } else { "" }, "size", BYTES)
}

/// Longer than nothing.
pub(super) fn duration(text: &str) -> Result<Duration, Problem> {
    quantity(text, "", "time", NANOS).map(Duration::from_nanos)
}

pub(super) fn print_bytes(bytes: u64) -> String {
    print(bytes, BYTES)
}

pub(super) fn print_duration(duration: Duration) -> String {
    print(duration.as_nanos() as u64, NANOS)
}

/// A number that is not below zero, without a unit.
pub(super) fn number(text: &str, what: &str) -> Result<f64, Problem> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number = text.parse().ok().filter(|_| plain);
    number.ok_or_else(|| format!("{text:?} is no {what}"))
}

/// As many parts as there are names for them.
pub(super) fn parts<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Result<[&'a str; N], Problem> {
    let parts: Vec<&str> = text.split(',').collect();
    let count = parts.len();
    <[&str; N]>::try_from(parts).map_err(|_| {
        let names = names.join(", ");
        format!("{count} in place of {N} values ({names})")
    })
}

fn quantity(text: &str, bare: &str, what: &str, units: &Units) -> Result<u64, Problem> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let name = if unit.is_empty() { bare } else { unit };
    let value = number(digits, what).map_err(|_| format!("{text:?} is no {what}"))?;
    let Some((_, factor)) = units.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = units.iter().rev().map(|(name, _)| *name).collect();
        return Err(format!(
            "the {what} {text:?} needs a unit of {}",
            known.join(", ")
        ));
    };
    let (scaled, finest) = (value * *factor as f64, units[units.len() - 1].0);
    // What was rounded in the product is not what was written.
    let whole = scaled.round();
    if whole < 1.0 || (scaled - whole).abs() > 1e-9 * scaled {
        return Err(format!(
            "a {what} of {text} is not a whole number of {finest} above 0"
        ));
    }
    if whole > MOST {
        return Err(format!(
            "a {what} of {text} is more than {}",
            print(MOST as u64, units)
        ));
    }
    Ok(whole as u64)
}

/// In the largest unit that says it with three digits after the point at most.
fn print(value: u64, units: &Units) -> String {
    let fits = |unit: u64| value >= unit && (u128::from(value) * 1000).is_multiple_of(unit.into());
    let known = units.iter().find(|(_, unit)| fits(*unit));
    let (name, unit) = known.copied().unwrap_or(units[units.len() - 1]);
    let thousandths = value % unit * 1000 / unit;
    let text = format!("{}.{thousandths:03}", value / unit);
    format!("{}{name}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_printed_as_they_are_read() {
        for (text, read, printed) in [
            ("100kB", 100_000, "100kB"),
            ("1500", 1500, "1.5kB"),
            ("65.536kB", 65_536, "65.536kB"),
            ("1234567B", 1_234_567, "1234.567kB"),
            ("1MB", 1_000_000, "1MB"),
            ("0.1GB", 100_000_000, "100MB"),
            ("1B", 1, "1B"),
        ] {
            assert_eq!(bytes(text), Ok(read), "{text}");
            assert_eq!(print_bytes(read), printed);
            assert_eq!(bytes(printed), Ok(read), "{printed}");
        }
        for (text, nanos, printed) in [
            ("1ms", 1_000_000, "1ms"),
            ("0.5us", 500, "500ns"),
            ("333333333ns", 333_333_333, "333333.333us"),
            ("1.5s", 1_500_000_000, "1.5s"),
        ] {
            let read = duration(text).expect(text);
            assert_eq!(
                (read, &*print_duration(read)),
                (Duration::from_nanos(nanos), printed)
            );
            assert_eq!(duration(printed), Ok(read), "{printed}");
        }
    }

    #[test]
    fn a_value_that_is_none_is_told_with_its_reason() {
        for (result, problem) in [
            (
                bytes("10kb"),
                "the size \"10kb\" needs a unit of B, kB, MB, GB",
            ),
            (bytes("kB"), "\"kB\" is no size"),
            (bytes("1.2.3kB"), "\"1.2.3kB\" is no size"),
            (bytes("0"), "a size of 0 is not a whole number of B above 0"),
            (
                bytes("1.5B"),
                "a size of 1.5B is not a whole number of B above 0",
            ),
            (
                bytes("9999999GB"),
                "a size of 9999999GB is more than 1000000GB",
            ),
        ] {
            assert_eq!(result.unwrap_err(), problem);
        }
        let problem = duration("10").unwrap_err();
        assert_eq!(problem, "the time \"10\" needs a unit of ns, us, ms, s");
    }
}
