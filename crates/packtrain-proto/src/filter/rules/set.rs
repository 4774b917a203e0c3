//! Rules together, and the address sets that they name.

use super::name::{RuleName, SetName};
use super::rule::Rule;
use super::{RULES_MAX, SET_PREFIXES_MAX};
use crate::class::prefix::Prefix;

/// Addresses that rules know by a name. It may be empty: nothing is within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSet {
    pub name: SetName,
    /// They may contain each other.
    pub prefixes: Vec<Prefix>,
}

/// Rules in the order in which they are asked. Each set that one of them names is there; names are there once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    rules: Vec<Rule>,
    sets: Sets,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sets(Vec<NamedSet>);

/// Why rules do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleSetError {
    #[error("{0} rules, and at most {RULES_MAX} are possible")]
    Rules(usize),
    #[error("two rules are called {0}")]
    TwoRules(RuleName),
    #[error("two sets are called {0}")]
    TwoSets(SetName),
    #[error("rule {rule} asks for @{set}, and there is no such set")]
    NoSet { rule: RuleName, set: SetName },
    #[error("{0} prefixes in all sets, and at most {SET_PREFIXES_MAX} are possible")]
    Prefixes(usize),
}

impl RuleSet {
    pub fn new(rules: Vec<Rule>, sets: Vec<NamedSet>) -> Result<RuleSet, RuleSetError> {
        if rules.len() > RULES_MAX {
            return Err(RuleSetError::Rules(rules.len()));
        }
        if let Some(name) = twice(rules.iter().map(|rule| &rule.name)) {
            return Err(RuleSetError::TwoRules(name.clone()));
        }
        if let Some(name) = twice(sets.iter().map(|set| &set.name)) {
            return Err(RuleSetError::TwoSets(name.clone()));
        }
        let prefixes = sets.iter().map(|set| set.prefixes.len()).sum();
        if prefixes > SET_PREFIXES_MAX {
            return Err(RuleSetError::Prefixes(prefixes));
        }
        let sets = Sets(sets);
        for rule in &rules {
            if let Some(set) = rule.matches.sets().find(|name| sets.place(name).is_none()) {
                return Err(RuleSetError::NoSet {
                    rule: rule.name.clone(),
                    set: set.clone(),
                });
            }
        }
        Ok(RuleSet { rules, sets })
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    pub fn sets(&self) -> &[NamedSet] {
        &self.sets.0
    }

    pub(super) fn named(&self) -> &Sets {
        &self.sets
    }
}

impl Sets {
    fn place(&self, name: &SetName) -> Option<&NamedSet> {
        self.0.iter().find(|set| set.name == *name)
    }

    /// # Panics
    /// Where there is no such set: a [`RuleSet`] has all that it asks for.
    pub(super) fn prefixes(&self, name: &SetName) -> &[Prefix] {
        &self.place(name).expect("a set that is there").prefixes
    }
}

fn twice<'a, T: Ord>(names: impl Iterator<Item = &'a T>) -> Option<&'a T> {
    let mut names: Vec<&T> = names.collect();
    names.sort();
    names
        .windows(2)
        .find(|two| two[0] == two[1])
        .map(|two| two[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::rules::Verdict;

    fn rule(name: &str, matches: &str) -> Rule {
        Rule {
            name: name.parse().unwrap(),
            verdict: Verdict::Deny,
            matches: matches.parse().unwrap(),
        }
    }

    fn set(name: &str, prefixes: usize) -> NamedSet {
        NamedSet {
            name: name.parse().unwrap(),
            prefixes: vec!["10.0.0.0/8".parse().unwrap(); prefixes],
        }
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        let error = |rules, sets| RuleSet::new(rules, sets).unwrap_err().to_string();
        let many = (0..513).map(|n| rule(&format!("r{n}"), "any")).collect();
        assert_eq!(
            error(many, vec![]),
            "513 rules, and at most 512 are possible"
        );
        assert_eq!(
            error(
                vec![rule("a", "ip"), rule("b", "ip"), rule("a", "arp")],
                vec![]
            ),
            "two rules are called a"
        );
        assert_eq!(
            error(vec![], vec![set("x", 1), set("x", 2)]),
            "two sets are called x"
        );
        assert_eq!(
            error(vec![rule("a", "ip not src @y")], vec![set("x", 1)]),
            "rule a asks for @y, and there is no such set"
        );
        assert_eq!(
            error(vec![], vec![set("x", 131_000), set("y", 73)]),
            "131073 prefixes in all sets, and at most 131072 are possible"
        );
    }

    #[test]
    fn as_much_as_is_possible_is_right() {
        let rules = (0..512).map(|n| rule(&format!("r{n}"), "src @x"));
        let set = RuleSet::new(rules.collect(), vec![set("x", 131_072)]).unwrap();
        assert_eq!((set.rules().len(), set.sets().len()), (512, 1));
    }
}
