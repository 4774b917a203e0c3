//! Matches as people write them.
//!
//! ```text
//! match     = "any" | term { ["and"] term }          all of them must hold
//! term      = ["not"] test
//! test      = "arp" | "ip" | "ip6"                   the EtherType
//!           | "tcp" | "udp" | "icmp" | "icmp6" …     the protocol
//!           | "ethertype" numbers | "proto" numbers
//!           | "dscp" numbers                         46 or ef
//!           | ("port" | "sport" | "dport") numbers
//!           | ("host" | "src" | "dst") prefixes      10.0.0.0/8,fd00::/8
//!           | "size" numbers                         bytes
//!           | "vlan" ("any" | numbers)
//!           | "empty"                                TCP without payload
//!           | "mark" number ["/" mask]
//! numbers   = range { "," range }                    53,5060-5070,60000-
//! ```

use core::fmt;
use core::str::{FromStr, SplitWhitespace};

use super::condition::{CONDITIONS_MAX, Condition, Match, PREFIXES_MAX, Side, Test};
use super::prefix::{Prefix, PrefixError};
use super::ranges::{RANGES_MAX, Ranges};
use super::words::{self, CODE_POINTS, ETHER_TYPES, PROTOCOLS};

/// What is said of a word that nothing begins with.
const TESTS: &str = "arp, ip, ip6, tcp, udp, icmp, icmp6, ethertype, proto, dscp, port, sport, dport, \
                     host, src, dst, size, vlan, mark, empty, any";
const PORT_MAX: u32 = 65_535;
const DSCP_MAX: u32 = 63;
pub(crate) const VLAN_MAX: u32 = 4095;

/// Why a text is no match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    #[error("a match says which frames: \"any\" for all of them")]
    Empty,
    #[error("{0:?} begins no condition: {TESTS}")]
    UnknownWord(String),
    #[error("there is no \"or\": write a class for each, or several values with commas")]
    Or,
    #[error("{0:?} is followed by nothing")]
    Unfinished(String),
    #[error("\"any\" stands alone")]
    AnyIsNotAlone,
    #[error("{word} {text:?}: {reason}")]
    Value {
        word: String,
        text: String,
        reason: String,
    },
    #[error("{word}: {source}")]
    Prefix { word: String, source: PrefixError },
    #[error("{count} {what}, and at most {max} are possible")]
    TooMany {
        what: &'static str,
        count: usize,
        max: usize,
    },
}

impl FromStr for Match {
    type Err = MatchError;

    fn from_str(text: &str) -> Result<Match, MatchError> {
        if text.trim() == "any" {
            return Ok(Match::default());
        }
        let mut words = text.split_whitespace();
        let mut conditions = Vec::new();
        while let Some(word) = words.next() {
            match word {
                "and" | "&&" if !conditions.is_empty() => {
                    let next = words.next().ok_or_else(|| unfinished(word))?;
                    conditions.push(read_term(next, &mut words)?);
                }
                word => conditions.push(read_term(word, &mut words)?),
            }
        }
        if conditions.is_empty() {
            return Err(MatchError::Empty);
        }
        check_count("conditions", conditions.len(), CONDITIONS_MAX)?;
        Ok(Match(conditions))
    }
}

fn read_term(word: &str, words: &mut SplitWhitespace<'_>) -> Result<Condition, MatchError> {
    let negated = matches!(word, "not" | "!");
    let word = match negated {
        true => words.next().ok_or_else(|| unfinished(word))?,
        false => word,
    };
    let test = read_test(word, words)?;
    Ok(Condition { negated, test })
}

pub(crate) fn read_test(word: &str, words: &mut SplitWhitespace<'_>) -> Result<Test, MatchError> {
    let mut value = || words.next().ok_or_else(|| unfinished(word));
    let mut numbers = |names, max| read_ranges(word, value()?, names, max);
    Ok(match word {
        "or" | "||" => return Err(MatchError::Or),
        "any" => return Err(MatchError::AnyIsNotAlone),
        "ethertype" => Test::EtherType(numbers(ETHER_TYPES, PORT_MAX)?),
        "proto" => Test::Protocol(numbers(PROTOCOLS, u8::MAX.into())?),
        "dscp" => Test::Dscp(numbers(CODE_POINTS, DSCP_MAX)?),
        "port" => Test::Port(Side::Either, numbers(&[], PORT_MAX)?),
        "sport" => Test::Port(Side::Source, numbers(&[], PORT_MAX)?),
        "dport" => Test::Port(Side::Destination, numbers(&[], PORT_MAX)?),
        "size" => Test::Size(numbers(&[], u32::MAX)?),
        "host" => Test::Address(Side::Either, read_prefixes(word, value()?)?),
        "src" => Test::Address(Side::Source, read_prefixes(word, value()?)?),
        "dst" => Test::Address(Side::Destination, read_prefixes(word, value()?)?),
        "vlan" => match value()? {
            "any" => Test::Vlan(None),
            text => Test::Vlan(Some(read_ranges(word, text, &[], VLAN_MAX)?)),
        },
        "empty" => Test::EmptyTcp,
        "mark" => read_mark(word, value()?)?,
        word => read_name(word)?,
    })
}

/// A type or a protocol by its name alone.
fn read_name(word: &str) -> Result<Test, MatchError> {
    if let Some(number) = words::number(ETHER_TYPES, word) {
        return Ok(Test::EtherType(Ranges::one(number)));
    }
    match words::number(PROTOCOLS, word) {
        Some(number) => Ok(Test::Protocol(Ranges::one(number))),
        None => Err(MatchError::UnknownWord(word.into())),
    }
}

pub(crate) fn read_ranges(
    word: &str,
    text: &str,
    names: &[(&'static str, u32)],
    max: u32,
) -> Result<Ranges, MatchError> {
    let failed = |text: &str, reason: String| MatchError::Value {
        word: word.into(),
        text: text.into(),
        reason,
    };
    let number = |text: &str| {
        let number = words::number(names, text).or_else(|| read_number(text));
        number
            .filter(|&number| number <= max)
            .ok_or_else(|| match names {
                [] => failed(text, format!("expected a number up to {max}")),
                _ => failed(text, format!("expected a number up to {max}, or a name")),
            })
    };
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            None => {
                let number = number(part)?;
                (number, number)
            }
            Some(("", last)) => (0, number(last)?),
            Some((first, "")) => (number(first)?, max),
            Some((first, last)) => (number(first)?, number(last)?),
        };
        if first > last {
            return Err(failed(part, "the range ends before it begins".into()));
        }
        ranges.push((first, last));
    }
    check_count("values of a condition", ranges.len(), RANGES_MAX)?;
    Ok(Ranges::new(ranges))
}

/// Decimal, or hexadecimal with `0x`.
fn read_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // The standard library takes a sign too.
    let is_digits = digits.bytes().all(|b| b.is_ascii_alphanumeric());
    is_digits.then(|| u32::from_str_radix(digits, radix).ok())?
}

fn read_prefixes(word: &str, text: &str) -> Result<Vec<Prefix>, MatchError> {
    let prefixes: Result<Vec<Prefix>, PrefixError> = text.split(',').map(str::parse).collect();
    let prefixes = prefixes.map_err(|source| MatchError::Prefix {
        word: word.into(),
        source,
    })?;
    check_count("prefixes of a condition", prefixes.len(), PREFIXES_MAX)?;
    Ok(prefixes)
}

fn read_mark(word: &str, text: &str) -> Result<Test, MatchError> {
    let failed = |reason: &str| MatchError::Value {
        word: word.into(),
        text: text.into(),
        reason: reason.into(),
    };
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (read_number(value), read_number(mask)),
        None => (read_number(text), Some(u32::MAX)),
    };
    let (Some(value), Some(mask)) = (value, mask) else {
        return Err(failed("expected a number of 32 bits, or value/mask"));
    };
    if value & !mask != 0 {
        return Err(failed("the value has bits that the mask leaves out"));
    }
    Ok(Test::Mark { value, mask })
}

pub(crate) fn unfinished(word: &str) -> MatchError {
    MatchError::Unfinished(word.into())
}

pub(crate) fn check_count(what: &'static str, count: usize, max: usize) -> Result<(), MatchError> {
    match count <= max {
        true => Ok(()),
        false => Err(MatchError::TooMany { what, count, max }),
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("any");
        }
        for (i, condition) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            if condition.negated {
                f.write_str("not ")?;
            }
            condition.test.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |names, ranges: &Ranges| {
            let number = ranges.single()?;
            words::name(names, number)
        };
        match self {
            Test::EtherType(types) => match named(ETHER_TYPES, types) {
                Some(name) => f.write_str(name),
                None => write_types(f, types),
            },
            Test::Protocol(protocols) => match named(PROTOCOLS, protocols) {
                Some(name) => f.write_str(name),
                None => write_ranges(f, "proto", protocols, u8::MAX.into(), PROTOCOLS),
            },
            Test::Dscp(points) => write_ranges(f, "dscp", points, DSCP_MAX, CODE_POINTS),
            Test::Port(side, ports) => {
                let word = match side {
                    Side::Source => "sport",
                    Side::Destination => "dport",
                    Side::Either => "port",
                };
                write_ranges(f, word, ports, PORT_MAX, &[])
            }
            Test::Size(sizes) => write_ranges(f, "size", sizes, u32::MAX, &[]),
            Test::Vlan(None) => f.write_str("vlan any"),
            Test::Vlan(Some(ids)) => write_ranges(f, "vlan", ids, VLAN_MAX, &[]),
            Test::Address(side, prefixes) => {
                f.write_str(match side {
                    Side::Source => "src ",
                    Side::Destination => "dst ",
                    Side::Either => "host ",
                })?;
                for (i, prefix) in prefixes.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{prefix}")?;
                }
                Ok(())
            }
            Test::EmptyTcp => f.write_str("empty"),
            Test::Mark { value, mask } if *mask == u32::MAX => write!(f, "mark {value:#x}"),
            Test::Mark { value, mask } => write!(f, "mark {value:#x}/{mask:#x}"),
        }
    }
}

fn write_ranges(
    f: &mut fmt::Formatter<'_>,
    word: &str,
    ranges: &Ranges,
    max: u32,
    names: &[(&'static str, u32)],
) -> fmt::Result {
    write!(f, "{word} ")?;
    ranges.write(f, max, |number| words::name(names, number))
}

/// EtherTypes are known by their hexadecimal numbers.
fn write_types(f: &mut fmt::Formatter<'_>, types: &Ranges) -> fmt::Result {
    f.write_str("ethertype ")?;
    for (i, (first, last)) in types.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        match (first == last, words::name(ETHER_TYPES, first)) {
            (true, Some(name)) => write!(f, "{comma}{name}")?,
            (true, None) => write!(f, "{comma}{first:#06x}")?,
            (false, _) => write!(f, "{comma}{first:#06x}-{last:#06x}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Match {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_is_written_comes_back_in_one_form() {
        for (text, canonical) in [
            ("any", "any"),
            ("udp dport 5060", "udp dport 5060"),
            ("udp and dport 5060-5070,7000-", "udp dport 5060-5070,7000-"),
            ("ethertype 0x806", "arp"),
            (
                "ethertype arp,0x88cc,1-2",
                "ethertype arp,lldp,0x0001-0x0002",
            ),
            ("proto 17 and not port 53", "udp not port 53"),
            ("proto 17,6,99", "proto udp,tcp,99"),
            ("dscp 46,cs6,1-3", "dscp ef,cs6,1-3"),
            (
                "src 10.0.0.0/8,fd00::/8 dst 10.9.0.1",
                "src 10.0.0.0/8,fd00::/8 dst 10.9.0.1",
            ),
            ("host 10.9.0.1/32", "host 10.9.0.1"),
            ("size -300", "size 0-300"),
            ("vlan any ! vlan 5,7-9", "vlan any not vlan 5,7-9"),
            ("tcp empty", "tcp empty"),
            ("mark 16", "mark 0x10"),
            ("mark 0x10/0xf0", "mark 0x10/0xf0"),
        ] {
            assert_eq!(parse(text).to_string(), canonical);
            assert_eq!(parse(canonical), parse(text), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Match>().unwrap_err().to_string();
        assert_eq!(
            error(" "),
            "a match says which frames: \"any\" for all of them"
        );
        assert!(error("upd").starts_with("\"upd\" begins no condition: arp, ip, "));
        assert!(error("tcp or udp").starts_with("there is no \"or\": "));
        assert_eq!(error("udp dport"), "\"dport\" is followed by nothing");
        assert_eq!(error("not"), "\"not\" is followed by nothing");
        assert_eq!(error("udp and"), "\"and\" is followed by nothing");
        assert!(error("and udp").starts_with("\"and\" begins no condition"));
        assert_eq!(error("udp any"), "\"any\" stands alone");
        assert_eq!(
            error("dport 70000"),
            "dport \"70000\": expected a number up to 65535"
        );
        assert_eq!(
            error("dport +7"),
            "dport \"+7\": expected a number up to 65535"
        );
        assert_eq!(
            error("dscp xy"),
            "dscp \"xy\": expected a number up to 63, or a name"
        );
        assert_eq!(
            error("dport 9-3"),
            "dport \"9-3\": the range ends before it begins"
        );
        assert_eq!(
            error("src 10.0.0.1/8"),
            "src: 10.0.0.1/8 has bits behind its prefix: write it as 10.0.0.0/8"
        );
        assert_eq!(
            error("mark 0x10/0x1"),
            "mark \"0x10/0x1\": the value has bits that the mask leaves out"
        );
        assert_eq!(
            error("udp udp udp udp udp udp udp udp udp"),
            "9 conditions, and at most 8 are possible"
        );
        let many = vec!["1"; 17].join(",");
        assert_eq!(
            error(&format!("port {many}")),
            "17 values of a condition, and at most 16 are possible"
        );
    }

    proptest! {
        #[test]
        fn any_match_is_read_as_it_was_written(wanted in crate::class::table::tests::any_match()) {
            prop_assert_eq!(parse(&wanted.to_string()), wanted);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a-z0-9 ,./:!-]{0,40}") {
            let _ = text.parse::<Match>();
        }
    }
}
