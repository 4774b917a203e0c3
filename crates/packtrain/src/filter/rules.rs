//! The rules of a filter at work: added, taken away, replaced as a whole, and what each has decided.

use std::collections::{BTreeMap, HashSet};

use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::filter::rules::image::Image;
use packtrain_proto::filter::rules::{NamedSet, Rule, RuleName, RuleSet, SetName, Verdict};
use packtrain_proto::stats::Traffic;
use serde::{Deserialize, Serialize};

use super::changes::{Changes, stays};
use super::document::RuleDocument;
use super::rule_texts::{RulesDocument, limit_text, users};
use crate::linux::filter::{Filter, FilterError};

/// In the order in which they are asked, and the sets that they may ask for.
#[derive(Debug, Default)]
pub struct Rules {
    set: RuleSet,
    /// What each had decided before the last change: the program counts anew.
    counted: BTreeMap<RuleName, Traffic>,
    /// Before the last change.
    former: Option<Former>,
}

/// Rules as they were before a change, and what each had decided by then: what [`Rules::go_back`] goes back to.
#[derive(Debug, Default)]
pub struct Former {
    set: RuleSet,
    counted: BTreeMap<RuleName, Traffic>,
}

/// What is asked for, as a person writes it.
#[derive(Debug)]
pub struct NewRule<'a> {
    pub name: Option<&'a str>,
    pub verdict: &'a str,
    pub matches: &'a str,
    pub before: Option<&'a str>,
}

/// What became of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetDocument {
    pub name: String,
    /// That it has now, or had at last.
    pub prefixes: u64,
    /// That were not there before, and that are not there any more.
    pub added: u64,
    pub removed: u64,
    /// That ask for it, by name.
    pub rules: Vec<String>,
}

/// Why the rules stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("{0}")]
    Text(String),
    #[error("there is a rule {0} already")]
    Twice(RuleName),
    #[error("there is no rule {name}")]
    NoSuchRule { name: String, rules: Vec<String> },
    #[error("there is no set {name}")]
    NoSuchSet { name: String, sets: Vec<String> },
    #[error("set {set} has no {}", listed(.prefixes))]
    NotInSet { set: String, prefixes: Vec<String> },
    #[error("set {set} is used by {} {}", if .rules.len() == 1 { "rule" } else { "rules" }, .rules.join(", "))]
    SetInUse { set: String, rules: Vec<String> },
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// The first of them, where they are many.
fn listed(texts: &[String]) -> String {
    const SHOWN_MAX: usize = 5;
    match texts.len() {
        ..=SHOWN_MAX => texts.join(", "),
        len => {
            let more = len - SHOWN_MAX;
            format!("{} and {more} more", texts[..SHOWN_MAX].join(", "))
        }
    }
}

fn text(error: impl std::fmt::Display) -> RulesError {
    RulesError::Text(error.to_string())
}

impl Rules {
    /// Behind all others, or before the one that is named.
    pub fn add(&mut self, new: &NewRule, filter: &mut Filter) -> Result<RuleDocument, RulesError> {
        let is_taken = |name: &RuleName| self.set.rules().iter().any(|rule| rule.name == *name);
        let rule = Rule {
            name: match new.name {
                Some(name) => name.parse().map_err(text)?,
                None => free_name(is_taken),
            },
            verdict: new.verdict.parse().map_err(text)?,
            matches: new.matches.parse().map_err(text)?,
        };
        if is_taken(&rule.name) {
            return Err(RulesError::Twice(rule.name));
        }
        let place = match new.before {
            Some(before) => self.place_of(before)?,
            None => self.set.rules().len(),
        };
        let mut rules = self.set.rules().to_vec();
        rules.insert(place, rule.clone());
        self.change(rules, self.set.sets().to_vec(), filter)?;
        Ok(document_of(&rule, Traffic::default()))
    }

    /// The rule, as it was at last.
    pub fn remove(&mut self, name: &str, filter: &mut Filter) -> Result<RuleDocument, RulesError> {
        let place = self.place_of(name)?;
        let mut rules = self.set.rules().to_vec();
        let rule = rules.remove(place);
        self.change(rules, self.set.sets().to_vec(), filter)?;
        let former = self.former.as_ref().expect("they have just changed");
        let counted = former.counted.get(&rule.name).copied();
        Ok(document_of(&rule, counted.unwrap_or_default()))
    }

    /// All rules and sets anew, in one moment.
    pub fn load(&mut self, now: RuleSet, filter: &mut Filter) -> Result<Changes, RulesError> {
        let changes = Changes::between(&self.set, &now);
        self.change_to(now, filter)?;
        Ok(changes)
    }

    /// A set that is not there comes with its first prefixes.
    pub fn change_set(
        &mut self,
        name: &str,
        add: &[String],
        remove: &[String],
        filter: &mut Filter,
    ) -> Result<SetDocument, RulesError> {
        let name: SetName = name.parse().map_err(text)?;
        let read = |texts: &[String]| -> Result<Vec<Prefix>, RulesError> {
            texts.iter().map(|t| t.parse().map_err(text)).collect()
        };
        let (add, remove) = (read(add)?, read(remove)?);
        let mut sets = self.set.sets().to_vec();
        let place = sets.iter().position(|set| set.name == name);
        let place = match place {
            Some(place) => place,
            None if add.is_empty() => return Err(self.no_set(name.as_str())),
            None => {
                let prefixes = Vec::new();
                sets.push(NamedSet { name, prefixes });
                sets.len() - 1
            }
        };
        let set = &mut sets[place];
        let (added, removed) = change_prefixes(set, &add, &remove)?;
        let (name, prefixes) = (set.name.to_string(), set.prefixes.len() as u64);
        let rules = users(&self.set, set);
        let is_new = place == self.set.sets().len();
        if is_new || added + removed > 0 {
            self.change(self.set.rules().to_vec(), sets, filter)?;
        }
        Ok(SetDocument {
            name,
            prefixes,
            added,
            removed,
            rules,
        })
    }

    /// The set as it was at last. No rule may use it.
    pub fn remove_set(
        &mut self,
        name: &str,
        filter: &mut Filter,
    ) -> Result<SetDocument, RulesError> {
        let mut sets = self.set.sets().to_vec();
        let place = sets.iter().position(|set| set.name.as_str() == name);
        let set = sets.remove(place.ok_or_else(|| self.no_set(name))?);
        let rules = users(&self.set, &set);
        if !rules.is_empty() {
            let set = name.into();
            return Err(RulesError::SetInUse { set, rules });
        }
        self.change(self.set.rules().to_vec(), sets, filter)?;
        Ok(SetDocument {
            name: name.into(),
            prefixes: set.prefixes.len() as u64,
            added: 0,
            removed: set.prefixes.len() as u64,
            rules,
        })
    }

    pub fn documents(&self, filter: &Filter) -> Result<Vec<RuleDocument>, FilterError> {
        let counted = filter.rule_counters(self.set.rules().len())?;
        let documents = self.set.rules().iter().zip(counted).map(|(rule, lately)| {
            let before = self.counted.get(&rule.name).copied().unwrap_or_default();
            document_of(rule, sum(before, lately))
        });
        Ok(documents.collect())
    }

    /// As they are loaded.
    pub fn texts(&self) -> RulesDocument {
        RulesDocument::from(&self.set)
    }

    fn change(
        &mut self,
        rules: Vec<Rule>,
        sets: Vec<NamedSet>,
        filter: &mut Filter,
    ) -> Result<(), RulesError> {
        self.change_to(RuleSet::new(rules, sets).map_err(text)?, filter)
    }

    /// All rules change for others in one moment. Those that stay go on with what they have decided, and with their buckets.
    fn change_to(&mut self, now: RuleSet, filter: &mut Filter) -> Result<(), RulesError> {
        if now.rules().is_empty() {
            filter.set_rules(None)?;
        } else {
            let image = Image::compile(&now).map_err(text)?;
            let stay = limits_that_stay(self.set.rules(), now.rules());
            filter.change_rules(&image, &stay)?;
        }
        // From here on it has happened: of what was not read, the count is lost, and no more.
        let former = std::mem::replace(&mut self.set, now);
        let lately = filter.former_rule_counters(former.rules().len());
        let lately = lately.unwrap_or_else(|error| {
            tracing::warn!("what rules have decided is not counted: {error}");
            vec![Traffic::default(); former.rules().len()]
        });
        let mut counted = std::mem::take(&mut self.counted);
        for (rule, lately) in former.rules().iter().zip(lately) {
            let all = counted.entry(rule.name.clone()).or_default();
            *all = sum(*all, lately);
        }
        for rule in self.set.rules() {
            if stays(rule, former.rules())
                && let Some(counted) = counted.get(&rule.name)
            {
                self.counted.insert(rule.name.clone(), *counted);
            }
        }
        self.former = Some(Former {
            set: former,
            counted,
        });
        Ok(())
    }

    /// The rules before the last change; `None`: nothing has changed since this was asked.
    pub fn take_former(&mut self) -> Option<Former> {
        self.former.take()
    }

    /// As if what has changed since had not; but those that it had left have counted on meanwhile.
    pub fn go_back(&mut self, former: Former, filter: &mut Filter) -> Result<(), RulesError> {
        self.change_to(former.set, filter)?;
        for (name, counted) in former.counted {
            self.counted.entry(name).or_insert(counted);
        }
        self.former = None;
        Ok(())
    }

    fn place_of(&self, name: &str) -> Result<usize, RulesError> {
        let rules = self.set.rules();
        let place = rules.iter().position(|rule| rule.name.as_str() == name);
        place.ok_or_else(|| RulesError::NoSuchRule {
            name: name.into(),
            rules: rules.iter().map(|rule| rule.name.to_string()).collect(),
        })
    }

    fn no_set(&self, name: &str) -> RulesError {
        let sets = self.set.sets().iter();
        RulesError::NoSuchSet {
            name: name.into(),
            sets: sets.map(|set| set.name.to_string()).collect(),
        }
    }
}

/// How many came that were not there, and how many went.
fn change_prefixes(
    set: &mut NamedSet,
    add: &[Prefix],
    remove: &[Prefix],
) -> Result<(u64, u64), RulesError> {
    let mut known: HashSet<Prefix> = set.prefixes.iter().copied().collect();
    let missing = remove.iter().filter(|prefix| !known.contains(prefix));
    let missing: Vec<String> = missing.map(Prefix::to_string).collect();
    if !missing.is_empty() {
        return Err(RulesError::NotInSet {
            set: set.name.to_string(),
            prefixes: missing,
        });
    }
    let gone: HashSet<Prefix> = remove.iter().copied().collect();
    set.prefixes.retain(|prefix| !gone.contains(prefix));
    known.retain(|prefix| !gone.contains(prefix));
    let new: Vec<Prefix> = add.iter().copied().filter(|p| known.insert(*p)).collect();
    set.prefixes.extend(&new);
    Ok((new.len() as u64, gone.len() as u64))
}

/// For each limit of `now`, which one it was among the former limits; as images number them.
fn limits_that_stay(former: &[Rule], now: &[Rule]) -> Vec<Option<usize>> {
    let is_limit = |rule: &&Rule| matches!(rule.verdict, Verdict::Limit(_));
    let former: Vec<&Rule> = former.iter().filter(is_limit).collect();
    let limits = now.iter().filter(is_limit);
    limits
        .map(|rule| former.iter().position(|other| *other == rule))
        .collect()
}

/// The first of `rule1`, `rule2` and so on that nobody has.
pub fn free_name(is_taken: impl Fn(&RuleName) -> bool) -> RuleName {
    (1..)
        .map(|number: u32| format!("rule{number}").parse().expect("a name"))
        .find(|name| !is_taken(name))
        .expect("there are few rules")
}

pub fn sum(a: Traffic, b: Traffic) -> Traffic {
    Traffic {
        frames: a.frames + b.frames,
        bytes: a.bytes + b.bytes,
    }
}

pub fn document_of(rule: &Rule, counted: Traffic) -> RuleDocument {
    RuleDocument {
        name: rule.name.to_string(),
        verdict: match rule.verdict {
            Verdict::Allow => "allow",
            Verdict::Deny => "deny",
            Verdict::Limit(_) => "limit",
        }
        .into(),
        limit: limit_text(rule),
        matches: rule.matches.to_string(),
        frames: counted.frames,
        bytes: counted.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::test_namespace::in_namespace;

    fn set(prefixes: &[&str]) -> NamedSet {
        NamedSet {
            name: "x".parse().unwrap(),
            prefixes: read(prefixes),
        }
    }

    fn read(prefixes: &[&str]) -> Vec<Prefix> {
        prefixes.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn prefixes_come_once_and_go_wherever_they_are() {
        let mut some = set(&["10.0.0.0/8", "::1", "10.0.0.0/8"]);
        let add = read(&["::2", "::1", "::2"]);
        assert_eq!(change_prefixes(&mut some, &add, &[]).unwrap(), (1, 0));
        let remove = read(&["10.0.0.0/8"]);
        assert_eq!(change_prefixes(&mut some, &[], &remove).unwrap(), (0, 1));
        assert_eq!(some, set(&["::1", "::2"]));
        // What goes and comes in one change is there.
        let both = read(&["::1"]);
        assert_eq!(change_prefixes(&mut some, &both, &both).unwrap(), (1, 1));
        assert_eq!(some, set(&["::2", "::1"]));
    }

    #[test]
    fn what_is_not_there_cannot_go_and_then_nothing_does() {
        let mut some = set(&["::1"]);
        let remove: Vec<String> = (1..9).map(|n| format!("::{n}")).collect();
        let remove: Vec<&str> = remove.iter().map(String::as_str).collect();
        let error = change_prefixes(&mut some, &[], &read(&remove)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "set x has no ::2, ::3, ::4, ::5, ::6 and 2 more"
        );
        assert_eq!(some, set(&["::1"]));
    }

    #[test]
    fn limits_are_known_again_by_name_and_text() {
        let rule = |name: &str, verdict: &str| Rule {
            name: name.parse().unwrap(),
            verdict: verdict.parse().unwrap(),
            matches: "udp".parse().unwrap(),
        };
        let former = [
            rule("a", "deny"),
            rule("b", "limit 1/s"),
            rule("c", "limit 2/s"),
            rule("d", "limit 3/s"),
        ];
        let now = [
            rule("d", "limit 3/s"),
            rule("a", "deny"),
            rule("c", "limit 9/s"),
            rule("e", "limit 1/s"),
            rule("b", "limit 1/s"),
        ];
        assert_eq!(
            limits_that_stay(&former, &now),
            [Some(2), None, None, Some(0)]
        );
    }

    fn rule<'a>(name: &'a str, before: Option<&'a str>) -> NewRule<'a> {
        NewRule {
            name: Some(name),
            verdict: "limit 10/s",
            matches: "udp dport 53",
            before,
        }
    }

    #[test]
    fn whatever_was_changed_what_goes_back_is_as_it_was() {
        // Programs are not loaded without rights.
        in_namespace(|| {
            let mut filter = Filter::load().unwrap();
            let mut rules = Rules::default();
            for name in ["a", "b", "c"] {
                rules.add(&rule(name, None), &mut filter).unwrap();
            }
            let before = rules.documents(&filter).unwrap();
            let names: Vec<&str> = before.iter().map(|rule| rule.name.as_str()).collect();
            assert_eq!(names, ["a", "b", "c"]);

            rules.take_former();
            let is_back = |rules: &mut Rules, filter: &mut Filter| {
                assert_ne!(rules.documents(filter).unwrap(), before);
                let former = rules.take_former().expect("they have changed");
                rules.go_back(former, filter).unwrap();
                assert_eq!(rules.documents(filter).unwrap(), before);
                assert!(rules.take_former().is_none());
            };
            rules.remove("b", &mut filter).unwrap();
            is_back(&mut rules, &mut filter);
            rules.add(&rule("d", Some("a")), &mut filter).unwrap();
            is_back(&mut rules, &mut filter);
            // As of a whole file of others, one of which has the name of another.
            let other = Rule {
                name: "b".parse().unwrap(),
                verdict: "deny".parse().unwrap(),
                matches: "icmp".parse().unwrap(),
            };
            let set = RuleSet::new(vec![other], Vec::new()).unwrap();
            rules.change_to(set, &mut filter).unwrap();
            is_back(&mut rules, &mut filter);
            rules.change_to(RuleSet::default(), &mut filter).unwrap();
            is_back(&mut rules, &mut filter);
            // What was refused has changed nothing.
            rules.remove("e", &mut filter).unwrap_err();
            assert!(rules.take_former().is_none());
        });
    }
}
