//! The rules of a filter at work: added, taken away, and what each has decided.

use std::collections::BTreeMap;

use packtrain_proto::filter::rules::image::Image;
use packtrain_proto::filter::rules::{Rule, RuleName, RuleSet, Verdict};
use packtrain_proto::stats::Traffic;

use super::document::RuleDocument;
use crate::linux::filter::{Filter, FilterError};

/// In the order in which they are asked.
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

/// Why the rules stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("{0}")]
    Text(String),
    #[error("there is a rule {0} already")]
    Twice(RuleName),
    #[error("there is no rule {name}")]
    NoSuchRule { name: String, rules: Vec<String> },
    #[error(transparent)]
    Filter(#[from] FilterError),
}

fn text(error: impl std::fmt::Display) -> RulesError {
    RulesError::Text(error.to_string())
}

impl Rules {
    /// Behind all others, or before the one that is named.
    pub fn add(&mut self, new: &NewRule, filter: &mut Filter) -> Result<RuleDocument, RulesError> {
        let rule = Rule {
            name: match new.name {
                Some(name) => name.parse().map_err(text)?,
                None => self.free_name(),
            },
            verdict: new.verdict.parse().map_err(text)?,
            matches: new.matches.parse().map_err(text)?,
        };
        if self.set.rules().iter().any(|other| other.name == rule.name) {
            return Err(RulesError::Twice(rule.name));
        }
        let place = match new.before {
            Some(before) => self.place_of(before)?,
            None => self.set.rules().len(),
        };
        let mut rules = self.set.rules().to_vec();
        rules.insert(place, rule.clone());
        self.change(self.with(rules)?, filter)?;
        Ok(document_of(&rule, Traffic::default()))
    }

    /// The rule, as it was at last.
    pub fn remove(&mut self, name: &str, filter: &mut Filter) -> Result<RuleDocument, RulesError> {
        let place = self.place_of(name)?;
        let mut rules = self.set.rules().to_vec();
        let rule = rules.remove(place);
        self.change(self.with(rules)?, filter)?;
        let former = self.former.as_ref().expect("they have just changed");
        let counted = former.counted.get(&rule.name).copied();
        Ok(document_of(&rule, counted.unwrap_or_default()))
    }

    pub fn documents(&self, filter: &Filter) -> Result<Vec<RuleDocument>, FilterError> {
        let rules = self.set.rules();
        let counted = filter.rule_counters(rules.len())?;
        let documents = rules.iter().zip(counted).map(|(rule, lately)| {
            let before = self.counted.get(&rule.name).copied().unwrap_or_default();
            document_of(rule, sum(before, lately))
        });
        Ok(documents.collect())
    }

    /// All rules change for others in one moment. What a rule that stays has decided is not forgotten.
    fn change(&mut self, set: RuleSet, filter: &mut Filter) -> Result<(), RulesError> {
        if set.rules().is_empty() {
            filter.set_rules(None)?;
        } else {
            filter.set_rules(Some(&Image::compile(&set).map_err(text)?))?;
        }
        // From here on it has happened: of what cannot be read the count is lost, and no more.
        let former = std::mem::replace(&mut self.set, set);
        let mut counted = std::mem::take(&mut self.counted);
        let lately = filter.former_rule_counters(former.rules().len());
        let lately = lately.unwrap_or_else(|error| {
            tracing::warn!("what rules have decided is not counted: {error}");
            Vec::new()
        });
        for (rule, lately) in former.rules().iter().zip(lately) {
            let counted = counted.entry(rule.name.clone()).or_default();
            *counted = sum(*counted, lately);
        }
        let stay = self.set.rules().iter();
        let stay = stay.filter(|rule| former.rules().contains(rule));
        self.counted = stay
            .filter_map(|rule| Some((rule.name.clone(), *counted.get(&rule.name)?)))
            .collect();
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
        self.change(former.set, filter)?;
        for (name, counted) in former.counted {
            self.counted.entry(name).or_insert(counted);
        }
        self.former = None;
        Ok(())
    }

    fn with(&self, rules: Vec<Rule>) -> Result<RuleSet, RulesError> {
        RuleSet::new(rules, self.set.sets().to_vec()).map_err(text)
    }

    fn place_of(&self, name: &str) -> Result<usize, RulesError> {
        let rules = self.set.rules();
        let place = rules.iter().position(|rule| rule.name.as_str() == name);
        place.ok_or_else(|| RulesError::NoSuchRule {
            name: name.into(),
            rules: rules.iter().map(|rule| rule.name.to_string()).collect(),
        })
    }

    fn free_name(&self) -> RuleName {
        let is_taken = |name: &RuleName| self.set.rules().iter().any(|rule| rule.name == *name);
        (1..)
            .map(|number: u32| format!("rule{number}").parse().expect("a name"))
            .find(|name| !is_taken(name))
            .expect("there are few rules")
    }
}

fn sum(a: Traffic, b: Traffic) -> Traffic {
    Traffic {
        frames: a.frames + b.frames,
        bytes: a.bytes + b.bytes,
    }
}

fn document_of(rule: &Rule, counted: Traffic) -> RuleDocument {
    RuleDocument {
        name: rule.name.to_string(),
        verdict: match rule.verdict {
            Verdict::Allow => "allow",
            Verdict::Deny => "deny",
            Verdict::Limit(_) => "limit",
        }
        .into(),
        limit: match rule.verdict {
            Verdict::Limit(limit) => Some(limit.to_string()),
            Verdict::Allow | Verdict::Deny => None,
        },
        matches: rule.matches.to_string(),
        frames: counted.frames,
        bytes: counted.bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::test_namespace::in_namespace;

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
            rules.change(set, &mut filter).unwrap();
            is_back(&mut rules, &mut filter);
            rules.change(RuleSet::default(), &mut filter).unwrap();
            is_back(&mut rules, &mut filter);
            // What was refused has changed nothing.
            rules.remove("e", &mut filter).unwrap_err();
            assert!(rules.take_former().is_none());
        });
    }
}
