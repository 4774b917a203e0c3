//! Rules and sets as texts: how they go from a command to a filter, and how a filter tells of them.

use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::filter::rules::{NamedSet, Rule, RuleSet, Verdict};
use serde::{Deserialize, Serialize};

/// All rules of a filter in their order, and all its sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesDocument {
    pub rules: Vec<RuleText>,
    pub sets: Vec<SetText>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleText {
    pub name: String,
    /// As in `allow`, or `limit 20/s burst 5 per source`.
    pub verdict: String,
    #[serde(rename = "match")]
    pub matches: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetText {
    pub name: String,
    pub prefixes: Vec<String>,
    /// That ask for it, by name.
    #[serde(default)]
    pub rules: Vec<String>,
}

impl From<&RuleSet> for RulesDocument {
    fn from(set: &RuleSet) -> RulesDocument {
        let rules = set.rules().iter().map(|rule| RuleText {
            name: rule.name.to_string(),
            verdict: rule.verdict.to_string(),
            matches: rule.matches.to_string(),
        });
        let sets = set.sets().iter().map(|named| SetText {
            name: named.name.to_string(),
            prefixes: named.prefixes.iter().map(Prefix::to_string).collect(),
            rules: users(set, named),
        });
        RulesDocument {
            rules: rules.collect(),
            sets: sets.collect(),
        }
    }
}

/// The names of the rules that ask for a set.
pub fn users(set: &RuleSet, named: &NamedSet) -> Vec<String> {
    let uses = |rule: &&Rule| rule.matches.sets().any(|name| *name == named.name);
    let users = set.rules().iter().filter(uses);
    users.map(|rule| rule.name.to_string()).collect()
}

/// The text of a limit, of a rule that is one.
pub fn limit_text(rule: &Rule) -> Option<String> {
    match rule.verdict {
        Verdict::Limit(limit) => Some(limit.to_string()),
        Verdict::Allow | Verdict::Deny => None,
    }
}

impl RulesDocument {
    /// What is wrong, in words.
    pub fn read(&self) -> Result<RuleSet, String> {
        let rules: Result<Vec<Rule>, String> = self.rules.iter().map(RuleText::read).collect();
        let sets: Result<Vec<NamedSet>, String> = self.sets.iter().map(SetText::read).collect();
        RuleSet::new(rules?, sets?).map_err(|error| error.to_string())
    }
}

impl RuleText {
    fn read(&self) -> Result<Rule, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("rule {}: {error}", self.name);
        Ok(Rule {
            name: self.name.parse().map_err(|error| wrong(&error))?,
            verdict: self.verdict.parse().map_err(|error| wrong(&error))?,
            matches: self.matches.parse().map_err(|error| wrong(&error))?,
        })
    }
}

impl SetText {
    fn read(&self) -> Result<NamedSet, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("set {}: {error}", self.name);
        let prefixes = self.prefixes.iter().map(|prefix| prefix.parse());
        Ok(NamedSet {
            name: self.name.parse().map_err(|error| wrong(&error))?,
            prefixes: prefixes
                .collect::<Result<_, _>>()
                .map_err(|error| wrong(&error))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(verdict: &str, matches: &str, prefix: &str) -> RulesDocument {
        RulesDocument {
            rules: vec![RuleText {
                name: "a".into(),
                verdict: verdict.into(),
                matches: matches.into(),
            }],
            sets: vec![SetText {
                name: "office".into(),
                prefixes: vec![prefix.into()],
                rules: vec!["a".into()],
            }],
        }
    }

    #[test]
    fn rules_come_back_as_they_were() {
        let document = document("limit 20/s per source", "src @office", "10.0.0.0/8");
        let rules = document.read().unwrap();
        assert_eq!(RulesDocument::from(&rules), document);
        let text = serde_json::to_string(&document).unwrap();
        assert_eq!(
            text,
            r#"{"rules":[{"name":"a","verdict":"limit 20/s per source","match":"src @office"}],"sets":[{"name":"office","prefixes":["10.0.0.0/8"],"rules":["a"]}]}"#
        );
        let read: RulesDocument = serde_json::from_str(&text).unwrap();
        assert_eq!(read, document);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_rule_or_set() {
        let error = |verdict, matches, prefix| document(verdict, matches, prefix).read();
        let wrong = error("drop", "ip", "::1").unwrap_err();
        assert!(
            wrong.starts_with("rule a: \"drop\" is no verdict"),
            "{wrong}"
        );
        let wrong = error("deny", "upd", "::1").unwrap_err();
        assert!(wrong.starts_with("rule a: \"upd\" begins no"), "{wrong}");
        let wrong = error("deny", "ip", "10.0.0.1/8").unwrap_err();
        assert_eq!(
            wrong,
            "set office: 10.0.0.1/8 has bits behind its prefix: write it as 10.0.0.0/8"
        );
        let wrong = error("deny", "src @home", "::1").unwrap_err();
        assert_eq!(wrong, "rule a asks for @home, and there is no such set");
    }
}
