//! Matches of rules as people write them.
//!
//! The language of classes ([`crate::class::Match`]) without `mark`, and with:
//!
//! ```text
//! test      = ("src-mac" | "dst-mac") address { "," address }    02:00:00:00:00:01
//!           | "inner-vlan" ("any" | numbers)                     the second tag's
//!           | "cast" ("unicast" | "multicast" | "broadcast")
//!           | "fragment"                                         a piece of an IP datagram
//!           | "syn"                                              TCP: SYN without ACK
//!           | ("host" | "src" | "dst") "@" set                   a set of addresses by its name
//! ```

use core::fmt;
use core::str::{FromStr, SplitWhitespace};

use super::condition::{Cast, MACS_MAX, RuleCondition, RuleMatch, RuleTest};
use super::name::{NameError, SetName};
use crate::class::condition::CONDITIONS_MAX;
use crate::class::text::{self, VLAN_MAX};
use crate::class::{MatchError, Side, Test};
use crate::wire::ethernet::{MacAddr, MacAddrError};

/// What is said of a word that nothing begins with.
const TESTS: &str = "arp, ip, ip6, tcp, udp, icmp, icmp6, ethertype, proto, dscp, port, sport, dport, \
                     host, src, dst, size, vlan, inner-vlan, src-mac, dst-mac, cast, fragment, syn, empty, any";

/// Why a text is no match of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleMatchError {
    #[error("{0:?} begins no condition: {TESTS}")]
    UnknownWord(String),
    #[error("there is no \"or\": write a rule for each, or several values with commas")]
    Or,
    #[error("\"mark\": a frame has none when it arrives; leave it out")]
    Mark,
    #[error("{word} {text:?}: {source}")]
    Mac {
        word: String,
        text: String,
        source: MacAddrError,
    },
    #[error("cast {0:?}: expected unicast, multicast or broadcast")]
    Cast(String),
    #[error("{word} {text:?}: a set stands alone; put all into one set, or write a rule for each")]
    SetIsNotAlone { word: String, text: String },
    #[error("{word} @{text}: {source}")]
    Set {
        word: String,
        text: String,
        source: NameError,
    },
    /// What classes say of it.
    #[error(transparent)]
    Class(#[from] MatchError),
}

impl FromStr for RuleMatch {
    type Err = RuleMatchError;

    fn from_str(text: &str) -> Result<RuleMatch, RuleMatchError> {
        if text.trim() == "any" {
            return Ok(RuleMatch::default());
        }
        let mut words = text.split_whitespace();
        let mut conditions = Vec::new();
        while let Some(word) = words.next() {
            let word = match word {
                "and" | "&&" if !conditions.is_empty() => following(word, &mut words)?,
                word => word,
            };
            conditions.push(read_term(word, &mut words)?);
        }
        if conditions.is_empty() {
            return Err(MatchError::Empty.into());
        }
        text::check_count("conditions", conditions.len(), CONDITIONS_MAX)?;
        Ok(RuleMatch(conditions))
    }
}

fn following<'a>(word: &str, words: &mut SplitWhitespace<'a>) -> Result<&'a str, RuleMatchError> {
    let next = words.next();
    next.ok_or_else(|| text::unfinished(word).into())
}

fn read_term(word: &str, words: &mut SplitWhitespace<'_>) -> Result<RuleCondition, RuleMatchError> {
    let negated = matches!(word, "not" | "!");
    let test = match negated {
        true => read_test(following(word, words)?, words)?,
        false => read_test(word, words)?,
    };
    Ok(RuleCondition { negated, test })
}

fn read_test(word: &str, words: &mut SplitWhitespace<'_>) -> Result<RuleTest, RuleMatchError> {
    let asks_for_set = words.clone().next().is_some_and(|next| next.contains('@'));
    Ok(match word {
        "or" | "||" => return Err(RuleMatchError::Or),
        "mark" => return Err(RuleMatchError::Mark),
        "src-mac" => RuleTest::SourceMac(read_macs(word, following(word, words)?)?),
        "dst-mac" => RuleTest::DestinationMac(read_macs(word, following(word, words)?)?),
        "inner-vlan" => RuleTest::InnerVlan(match following(word, words)? {
            "any" => None,
            numbers => Some(text::read_ranges(word, numbers, &[], VLAN_MAX)?),
        }),
        "cast" => RuleTest::Cast(match following(word, words)? {
            "unicast" => Cast::Unicast,
            "multicast" => Cast::Multicast,
            "broadcast" => Cast::Broadcast,
            other => return Err(RuleMatchError::Cast(other.into())),
        }),
        "fragment" => RuleTest::Fragment,
        "syn" => RuleTest::Syn,
        "host" | "src" | "dst" if asks_for_set => {
            let side = match word {
                "host" => Side::Either,
                "src" => Side::Source,
                _ => Side::Destination,
            };
            RuleTest::Set(side, read_set(word, following(word, words)?)?)
        }
        word => RuleTest::Class(text::read_test(word, words).map_err(|error| match error {
            MatchError::UnknownWord(word) => RuleMatchError::UnknownWord(word),
            error => error.into(),
        })?),
    })
}

fn read_macs(word: &str, text: &str) -> Result<Vec<MacAddr>, RuleMatchError> {
    let read = |text: &str| {
        text.parse().map_err(|source| RuleMatchError::Mac {
            word: word.into(),
            text: text.into(),
            source,
        })
    };
    let macs: Vec<MacAddr> = text.split(',').map(read).collect::<Result<_, _>>()?;
    text::check_count("addresses of a condition", macs.len(), MACS_MAX)?;
    Ok(macs)
}

fn read_set(word: &str, text: &str) -> Result<SetName, RuleMatchError> {
    let name = match text.strip_prefix('@') {
        Some(name) if !name.contains(',') => name,
        _ => {
            return Err(RuleMatchError::SetIsNotAlone {
                word: word.into(),
                text: text.into(),
            });
        }
    };
    name.parse().map_err(|source| RuleMatchError::Set {
        word: word.into(),
        text: name.into(),
        source,
    })
}

impl fmt::Display for RuleMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("any");
        }
        for (i, condition) in self.0.iter().enumerate() {
            let space = if i > 0 { " " } else { "" };
            let not = if condition.negated { "not " } else { "" };
            write!(f, "{space}{not}{}", condition.test)?;
        }
        Ok(())
    }
}

impl fmt::Display for RuleTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleTest::Class(test) => test.fmt(f),
            RuleTest::Set(side, name) => {
                // As a list of addresses is written, but for what stands in its place.
                let no_addresses = Test::Address(*side, Vec::new());
                write!(f, "{no_addresses}@{name}")
            }
            RuleTest::SourceMac(macs) => write_macs(f, "src-mac", macs),
            RuleTest::DestinationMac(macs) => write_macs(f, "dst-mac", macs),
            RuleTest::InnerVlan(None) => f.write_str("inner-vlan any"),
            RuleTest::InnerVlan(Some(ids)) => {
                f.write_str("inner-vlan ")?;
                ids.write(f, VLAN_MAX, |_| None)
            }
            RuleTest::Cast(Cast::Unicast) => f.write_str("cast unicast"),
            RuleTest::Cast(Cast::Multicast) => f.write_str("cast multicast"),
            RuleTest::Cast(Cast::Broadcast) => f.write_str("cast broadcast"),
            RuleTest::Fragment => f.write_str("fragment"),
            RuleTest::Syn => f.write_str("syn"),
        }
    }
}

fn write_macs(f: &mut fmt::Formatter<'_>, word: &str, macs: &[MacAddr]) -> fmt::Result {
    write!(f, "{word} ")?;
    for (i, mac) in macs.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(f, "{comma}{mac}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
