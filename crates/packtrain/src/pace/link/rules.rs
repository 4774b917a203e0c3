//! Which frames of an interface leave at which rate: its rules (section 5 of the CPS paper, where TCP's own pacing does not reach).

use std::str::FromStr;

use packtrain_proto::class::condition::{Match, Test};
use packtrain_proto::filter::rules::RuleName;
use serde::{Deserialize, Serialize};

use crate::linux::gap_qdisc::VALUES_MAX;
use crate::linux::gap_qdisc::rules::{RULES_MAX, RuleClass, Slot};
use crate::pace::tcp::rules::RuleError;

/// Some bursts of a sender of QUIC, which are 45 full-size frames at most.
pub const QUEUE_FRAMES_MAX: u32 = 200;

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
const UDP: u32 = 17;

/// A rule as a person asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRuleWish {
    /// It is given one otherwise.
    pub name: Option<String>,
    pub matches: String,
    /// Bits of IP packets a second, as full-size packets carry them.
    pub rate_bps: u64,
    pub queue_frames_max: u32,
    /// Before the rule of this name; behind all others otherwise.
    pub before: Option<String>,
}

/// Why a match is nothing for an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramesError {
    #[error("TCP is paced at its sockets, which lose nothing by it: leave out --link")]
    Tcp,
    #[error("no UDP datagram can match {0:?}, and rules of an interface are about UDP")]
    NotUdp(String),
    #[error("the rules compare {0} values then, and {VALUES_MAX} are possible for an interface")]
    TooMany(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRule {
    pub name: String,
    pub matches: Match,
    pub class: RuleClass,
}

/// All of an interface, in the order in which they are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkRules(Vec<LinkRule>);

impl LinkRules {
    pub fn of(wishes: &[LinkRuleWish]) -> Result<LinkRules, RuleError> {
        let mut rules = LinkRules::default();
        for wish in wishes {
            rules.add(wish)?;
        }
        Ok(rules)
    }

    pub fn iter(&self) -> impl Iterator<Item = &LinkRule> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, wish: &LinkRuleWish) -> Result<&LinkRule, RuleError> {
        let slot = self.free_slot().ok_or(RuleError::TooMany)?;
        let name = match &wish.name {
            Some(name) => RuleName::from_str(name)?.to_string(),
            None => self.free_name(),
        };
        if self.iter().any(|rule| rule.name == name) {
            return Err(RuleError::Taken(name));
        }
        let place = match &wish.before {
            Some(before) => self.place_of(before)?,
            None => self.0.len(),
        };
        let matches: Match = wish.matches.parse()?;
        is_about_udp(&matches)?;
        let all = self.iter().map(|rule| &rule.matches).chain([&matches]);
        let values = all.map(Match::values).sum();
        if values > VALUES_MAX {
            return Err(FramesError::TooMany(values).into());
        }
        let rule = LinkRule {
            name,
            matches,
            class: RuleClass {
                slot,
                rate_bps: wish.rate_bps,
                queue_frames_max: wish.queue_frames_max,
            },
        };
        self.0.insert(place, rule);
        Ok(&self.0[place])
    }

    /// As it was.
    pub fn remove(&mut self, name: &str) -> Result<LinkRule, RuleError> {
        let place = self.place_of(name)?;
        Ok(self.0.remove(place))
    }

    fn place_of(&self, name: &str) -> Result<usize, RuleError> {
        let place = self.iter().position(|rule| rule.name == name);
        place.ok_or_else(|| RuleError::Unknown {
            name: name.into(),
            rules: self.iter().map(|rule| rule.name.clone()).collect(),
        })
    }

    /// `rule1` and so on.
    fn free_name(&self) -> String {
        let is_free = |name: &String| self.iter().all(|rule| rule.name != *name);
        (1..)
            .map(|number| format!("rule{number}"))
            .find(is_free)
            .expect("there are more numbers than rules")
    }

    fn free_slot(&self) -> Option<Slot> {
        let is_free = |slot: &Slot| self.iter().all(|rule| rule.class.slot != *slot);
        (0..RULES_MAX as u8).map(Slot).find(is_free)
    }
}

/// The program compares only UDP's frames, whatever the match asks for: what can hold for none of them is a mistake.
fn is_about_udp(matches: &Match) -> Result<(), FramesError> {
    for condition in matches.conditions() {
        let holds_for_one = match &condition.test {
            Test::Protocol(protocols) => {
                let is_udp = protocols.contains(UDP) != condition.negated;
                if !is_udp && !condition.negated && protocols.contains(TCP) {
                    return Err(FramesError::Tcp);
                }
                is_udp
            }
            Test::EtherType(types) => {
                let mut versions = [IPV4, IPV6].into_iter();
                versions.any(|version| types.contains(version) != condition.negated)
            }
            Test::EmptyTcp => condition.negated,
            _ => true,
        };
        if !holds_for_one {
            return Err(FramesError::NotUdp(
                Match::one(condition.clone()).to_string(),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(name: Option<&str>, matches: &str) -> LinkRuleWish {
        LinkRuleWish {
            name: name.map(Into::into),
            matches: matches.into(),
            rate_bps: 40_000_000,
            queue_frames_max: QUEUE_FRAMES_MAX,
            before: None,
        }
    }

    fn seen(rules: &LinkRules) -> Vec<(&str, u8)> {
        rules
            .iter()
            .map(|rule| (rule.name.as_str(), rule.class.slot.0))
            .collect()
    }

    #[test]
    fn each_has_a_class_of_its_own_whatever_the_order() {
        let mut rules = LinkRules::default();
        rules.add(&wish(None, "udp dport 443")).unwrap();
        rules.add(&wish(Some("dns"), "port 53")).unwrap();
        let before = LinkRuleWish {
            before: Some("dns".into()),
            ..wish(None, "any")
        };
        rules.add(&before).unwrap();
        assert_eq!(seen(&rules), [("rule1", 0), ("rule2", 2), ("dns", 1)]);
        rules.remove("rule1").unwrap();
        rules.add(&wish(None, "any")).unwrap();
        assert_eq!(seen(&rules), [("rule2", 2), ("dns", 1), ("rule1", 0)]);
        for _ in 3..RULES_MAX {
            rules.add(&wish(None, "any")).unwrap();
        }
        assert_eq!(rules.add(&wish(None, "any")), Err(RuleError::TooMany));
    }

    #[test]
    fn what_can_be_no_datagram_is_refused_with_the_reason_and_changes_nothing() {
        let mut rules = LinkRules::of(&[wish(Some("a"), "any")]).unwrap();
        let before = rules.clone();
        for (matches, error) in [
            ("tcp dport 443", FramesError::Tcp),
            ("icmp", FramesError::NotUdp("icmp".into())),
            ("not udp", FramesError::NotUdp("not udp".into())),
            ("arp", FramesError::NotUdp("arp".into())),
            ("empty", FramesError::NotUdp("empty".into())),
        ] {
            let refused = rules.add(&wish(None, matches)).unwrap_err();
            assert_eq!(refused, error.into(), "{matches}");
        }
        for matches in ["udp", "proto 6,17", "not tcp", "ip6 dscp ef", "not empty"] {
            LinkRules::of(&[wish(None, matches)]).unwrap();
        }
        assert_eq!(
            rules.add(&wish(Some("a"), "any")),
            Err(RuleError::Taken("a".into()))
        );
        assert!(rules.remove("b").is_err());
        assert_eq!(rules, before);
    }

    #[test]
    fn all_rules_together_compare_no_more_values_than_the_program_has_room_for() {
        let ports: Vec<String> = (1..=16).map(|port| (2 * port).to_string()).collect();
        let ports = ports.join(",");
        let matches = format!("port {ports} host 10.0.0.1,10.0.0.2 port {ports}");
        let mut rules = LinkRules::default();
        let mut added = 0;
        let refused = loop {
            match rules.add(&wish(None, &matches)) {
                Ok(_) => added += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((added, refused), (7, FramesError::TooMany(8 * 68).into()));
    }
}
