//! At which rate which streams leave: the rules of the pacer of TCP (section 5 of the CPS paper).

use std::fmt;
use std::str::FromStr;

use packtrain_proto::class::{Match, MatchError};
use packtrain_proto::filter::rules::{NameError, RuleName};
use serde::{Deserialize, Serialize};

use crate::linux::pace::{RULES_MAX, Rows, RowsError, Rule, Shared};
use crate::pace::link::rules::FramesError;

/// How fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleRate {
    /// Bits of IP packets a second, as full-size segments carry them.
    Bps(u64),
    /// What the path carries.
    Auto,
}

/// Who has it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    Stream,
    Destination,
    Rule,
}

impl Share {
    pub fn as_str(self) -> &'static str {
        match self {
            Share::Stream => "stream",
            Share::Destination => "destination",
            Share::Rule => "rule",
        }
    }

    fn as_told(self) -> Shared {
        match self {
            Share::Stream => Shared::EachStream,
            Share::Destination => Shared::EachDestination,
            Share::Rule => Shared::AllStreams,
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A rule as a person asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleWish {
    /// It is given one otherwise.
    pub name: Option<String>,
    pub matches: String,
    pub rate: RuleRate,
    pub share: Share,
    /// Before the rule of this name; behind all others otherwise.
    pub before: Option<String>,
}

/// Why a rule cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("there is a rule {0} already: remove it first, or give this one another --name")]
    Taken(String),
    #[error("there is no rule {name}{}", known(.rules))]
    Unknown { name: String, rules: Vec<String> },
    #[error("there are {RULES_MAX} rules, which is all that are possible")]
    TooMany,
    #[error(transparent)]
    Match(#[from] MatchError),
    #[error(transparent)]
    Rows(#[from] RowsError),
    #[error(transparent)]
    Frames(#[from] FramesError),
}

fn known(rules: &[String]) -> String {
    match rules.is_empty() {
        true => ": there is none at all".into(),
        false => format!(", only {}", rules.join(", ")),
    }
}

/// A rule that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRule {
    pub name: String,
    pub matches: Match,
    pub rate: RuleRate,
    pub share: Share,
    pub told: Rule,
}

/// All of them, in the order in which they are asked.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<NamedRule>,
    /// The id that was given last.
    last_id: u32,
}

impl Rules {
    pub fn of(wishes: &[RuleWish]) -> Result<Rules, RuleError> {
        let mut rules = Rules::default();
        for wish in wishes {
            rules.add(wish)?;
        }
        Ok(rules)
    }

    pub fn iter(&self) -> impl Iterator<Item = &NamedRule> {
        self.rules.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// As the program is told them.
    pub fn told(&self) -> Vec<Rule> {
        self.rules.iter().map(|rule| rule.told.clone()).collect()
    }

    /// Where it stands.
    pub fn add(&mut self, wish: &RuleWish) -> Result<usize, RuleError> {
        if self.rules.len() == RULES_MAX {
            return Err(RuleError::TooMany);
        }
        let name = match &wish.name {
            Some(name) => RuleName::from_str(name)?.to_string(),
            None => self.free_name(),
        };
        if self.rules.iter().any(|rule| rule.name == name) {
            return Err(RuleError::Taken(name));
        }
        let place = match &wish.before {
            Some(before) => self.place_of(before)?,
            None => self.rules.len(),
        };
        let matches: Match = wish.matches.parse()?;
        let rate = match wish.rate {
            RuleRate::Bps(bps) => Some((bps / 8).max(1)),
            RuleRate::Auto => None,
        };
        let told = Rule {
            id: self.last_id + 1,
            rows: Rows::of(&matches)?,
            rate,
            shared: wish.share.as_told(),
        };
        self.last_id += 1;
        let rule = NamedRule {
            name,
            matches,
            rate: wish.rate,
            share: wish.share,
            told,
        };
        self.rules.insert(place, rule);
        Ok(place)
    }

    /// As it was.
    pub fn remove(&mut self, name: &str) -> Result<NamedRule, RuleError> {
        let place = self.place_of(name)?;
        Ok(self.rules.remove(place))
    }

    fn place_of(&self, name: &str) -> Result<usize, RuleError> {
        let place = self.rules.iter().position(|rule| rule.name == name);
        place.ok_or_else(|| RuleError::Unknown {
            name: name.into(),
            rules: self.rules.iter().map(|rule| rule.name.clone()).collect(),
        })
    }

    /// `rule1` and so on.
    fn free_name(&self) -> String {
        let is_free = |name: &String| self.rules.iter().all(|rule| rule.name != *name);
        (1..)
            .map(|number| format!("rule{number}"))
            .find(is_free)
            .expect("there are more numbers than rules")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(name: Option<&str>, matches: &str) -> RuleWish {
        RuleWish {
            name: name.map(Into::into),
            matches: matches.into(),
            rate: RuleRate::Bps(40_000_000),
            share: Share::Destination,
            before: None,
        }
    }

    fn names(rules: &Rules) -> Vec<&str> {
        rules.iter().map(|rule| rule.name.as_str()).collect()
    }

    #[test]
    fn they_are_asked_in_their_order_and_have_names_of_their_own() {
        let mut rules = Rules::default();
        rules.add(&wish(None, "tcp dst 192.0.2.0/24")).unwrap();
        rules.add(&wish(Some("backup"), "dport 873")).unwrap();
        let before = RuleWish {
            before: Some("backup".into()),
            ..wish(None, "any")
        };
        assert_eq!(rules.add(&before), Ok(1));
        assert_eq!(names(&rules), ["rule1", "rule2", "backup"]);
        // An id is never another rule's.
        let gone = rules.remove("rule1").unwrap();
        rules.add(&wish(None, "any")).unwrap();
        assert_eq!(names(&rules), ["rule2", "backup", "rule1"]);
        let ids: Vec<u32> = rules.told().iter().map(|rule| rule.id).collect();
        assert_eq!((gone.told.id, ids), (1, vec![3, 2, 4]));
        assert_eq!(rules.told()[0].rate, Some(5_000_000), "bytes");
    }

    #[test]
    fn what_cannot_be_had_changes_nothing_and_is_told_why() {
        let mut rules = Rules::of(&[wish(Some("a"), "any")]).unwrap();
        assert_eq!(
            rules.add(&wish(Some("a"), "any")),
            Err(RuleError::Taken("a".into()))
        );
        let unknown = rules.remove("b").unwrap_err();
        assert_eq!(unknown.to_string(), "there is no rule b, only a");
        let nowhere = RuleWish {
            before: Some("b".into()),
            ..wish(None, "any")
        };
        assert!(rules.add(&nowhere).is_err());
        assert_eq!(
            rules.add(&wish(None, "udp dport 443")),
            Err(RuleError::Rows(RowsError::Udp))
        );
        assert!(rules.add(&wish(Some("1"), "any")).is_err());
        assert_eq!(names(&rules), ["a"]);
        for _ in 1..RULES_MAX {
            rules.add(&wish(None, "any")).unwrap();
        }
        assert_eq!(rules.add(&wish(None, "any")), Err(RuleError::TooMany));
    }
}
