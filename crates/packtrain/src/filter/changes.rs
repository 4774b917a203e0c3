//! What is different between rules that were and rules that are.

use std::collections::HashSet;

use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::filter::rules::{Rule, RuleSet};
use serde::{Deserialize, Serialize};

/// By name, in the order in which they are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    pub added: Vec<String>,
    /// Those of the name that are there now say something else: they count anew.
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    /// With what they have counted, and with their buckets.
    pub kept: Vec<String>,
    pub sets: Vec<SetChange>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetChange {
    pub name: String,
    /// That it has now; 0 of one that went.
    pub prefixes: u64,
    /// Different ones that came and went.
    pub added: u64,
    pub removed: u64,
    /// `added`, `changed`, `removed` or `kept`.
    pub change: String,
}

/// Whether a rule goes on as it was: the same name, and the same text.
pub fn stays(rule: &Rule, former: &[Rule]) -> bool {
    former.contains(rule)
}

impl Changes {
    pub fn between(former: &RuleSet, now: &RuleSet) -> Changes {
        let mut changes = Changes::default();
        for rule in now.rules() {
            let is_known = former.rules().iter().any(|other| other.name == rule.name);
            let list = if stays(rule, former.rules()) {
                &mut changes.kept
            } else if is_known {
                &mut changes.changed
            } else {
                &mut changes.added
            };
            list.push(rule.name.to_string());
        }
        for rule in former.rules() {
            if now.rules().iter().all(|other| other.name != rule.name) {
                changes.removed.push(rule.name.to_string());
            }
        }
        for set in now.sets() {
            let before = former.sets().iter().find(|other| other.name == set.name);
            let had = before.map(|before| distinct(&before.prefixes));
            let has = distinct(&set.prefixes);
            let added = has
                .difference(had.as_ref().unwrap_or(&HashSet::new()))
                .count();
            let removed = had.as_ref().map_or(0, |had| had.difference(&has).count());
            let change = match (&had, added + removed) {
                (None, _) => "added",
                (Some(_), 0) => "kept",
                (Some(_), _) => "changed",
            };
            changes.sets.push(SetChange {
                name: set.name.to_string(),
                prefixes: set.prefixes.len() as u64,
                added: added as u64,
                removed: removed as u64,
                change: change.into(),
            });
        }
        for set in former.sets() {
            if now.sets().iter().all(|other| other.name != set.name) {
                changes.sets.push(SetChange {
                    name: set.name.to_string(),
                    prefixes: 0,
                    added: 0,
                    removed: distinct(&set.prefixes).len() as u64,
                    change: "removed".into(),
                });
            }
        }
        changes
    }
}

fn distinct(prefixes: &[Prefix]) -> HashSet<&Prefix> {
    prefixes.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::rule_texts::{RuleText, RulesDocument, SetText};

    fn rules(rules: &[(&str, &str, &str)], sets: &[(&str, &[&str])]) -> RuleSet {
        let rule = |&(name, verdict, matches): &(&str, &str, &str)| RuleText {
            name: name.into(),
            verdict: verdict.into(),
            matches: matches.into(),
        };
        let set = |&(name, prefixes): &(&str, &[&str])| SetText {
            name: name.into(),
            prefixes: prefixes.iter().map(|&text| text.into()).collect(),
            rules: Vec::new(),
        };
        let document = RulesDocument {
            rules: rules.iter().map(rule).collect(),
            sets: sets.iter().map(set).collect(),
        };
        document.read().unwrap()
    }

    #[test]
    fn what_came_went_changed_and_stayed_is_told_by_name() {
        let former = rules(
            &[
                ("a", "deny", "udp"),
                ("b", "allow", "src @x"),
                ("c", "limit 5/s", "icmp"),
            ],
            &[("x", &["10.0.0.0/8", "::1"]), ("y", &["::2"]), ("z", &[])],
        );
        let now = rules(
            &[
                ("d", "deny", "arp"),
                ("b", "allow", "src @x"),
                ("c", "limit 6/s", "icmp"),
            ],
            &[
                ("x", &["10.0.0.0/8", "::3", "::3", "::4"]),
                ("z", &[]),
                ("w", &["::5"]),
            ],
        );
        let changes = Changes::between(&former, &now);
        assert_eq!(changes.added, ["d"]);
        assert_eq!(changes.changed, ["c"]);
        assert_eq!(changes.removed, ["a"]);
        assert_eq!(changes.kept, ["b"]);
        let sets: Vec<_> = changes
            .sets
            .iter()
            .map(|set| {
                let SetChange { added, removed, .. } = *set;
                (
                    set.name.as_str(),
                    set.prefixes,
                    added,
                    removed,
                    set.change.as_str(),
                )
            })
            .collect();
        assert_eq!(
            sets,
            [
                ("x", 4, 2, 1, "changed"),
                ("z", 0, 0, 0, "kept"),
                ("w", 1, 1, 0, "added"),
                ("y", 0, 0, 1, "removed"),
            ]
        );
        let same = Changes::between(&now, &now);
        assert_eq!(same.kept, ["d", "b", "c"]);
        assert!(same.sets.iter().all(|set| set.change == "kept"));
    }
}
