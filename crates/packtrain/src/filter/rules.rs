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
    rules: Vec<Rule>,
    /// What each had decided before the last change: the program counts anew.
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
        if self.rules.iter().any(|other| other.name == rule.name) {
            return Err(RulesError::Twice(rule.name));
        }
        let place = match new.before {
            Some(before) => self.place_of(before)?,
            None => self.rules.len(),
        };
        let mut rules = self.rules.clone();
        rules.insert(place, rule.clone());
        self.change(rules, filter)?;
        Ok(document_of(&rule, Traffic::default()))
    }

    /// The rule, as it was at last.
    pub fn remove(&mut self, name: &str, filter: &mut Filter) -> Result<RuleDocument, RulesError> {
        let place = self.place_of(name)?;
        let mut rules = self.rules.clone();
        let rule = rules.remove(place);
        self.change(rules, filter)?;
        let counted = self.counted.remove(&rule.name).unwrap_or_default();
        Ok(document_of(&rule, counted))
    }

    pub fn documents(&self, filter: &Filter) -> Result<Vec<RuleDocument>, FilterError> {
        let counted = filter.rule_counters(self.rules.len())?;
        let documents = self.rules.iter().zip(counted).map(|(rule, lately)| {
            let before = self.counted.get(&rule.name).copied().unwrap_or_default();
            document_of(rule, sum(before, lately))
        });
        Ok(documents.collect())
    }

    fn change(&mut self, rules: Vec<Rule>, filter: &mut Filter) -> Result<(), RulesError> {
        let set = RuleSet::new(rules, Vec::new()).map_err(text)?;
        if set.rules().is_empty() {
            filter.set_rules(None)?;
        } else {
            filter.set_rules(Some(&Image::compile(&set).map_err(text)?))?;
        }
        // The former ones are counted no more by now.
        for (rule, lately) in self
            .rules
            .iter()
            .zip(filter.former_rule_counters(self.rules.len())?)
        {
            let counted = self.counted.entry(rule.name.clone()).or_default();
            *counted = sum(*counted, lately);
        }
        self.rules = set.rules().to_vec();
        Ok(())
    }

    fn place_of(&self, name: &str) -> Result<usize, RulesError> {
        let place = self
            .rules
            .iter()
            .position(|rule| rule.name.as_str() == name);
        place.ok_or_else(|| RulesError::NoSuchRule {
            name: name.into(),
            rules: self
                .rules
                .iter()
                .map(|rule| rule.name.to_string())
                .collect(),
        })
    }

    fn free_name(&self) -> RuleName {
        let is_taken = |name: &RuleName| self.rules.iter().any(|rule| rule.name == *name);
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
