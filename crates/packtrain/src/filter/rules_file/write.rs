//! Rules and sets as a file that is read again.

use std::fmt::Write as _;

use packtrain_proto::filter::rules::{Rule, RuleSet, Verdict};

/// `heading`: a comment before it, a line.
pub fn text_of(rules: &RuleSet, heading: &str) -> String {
    let mut text = format!("# {heading}\n");
    if !rules.sets().is_empty() {
        text.push_str("\n[sets]\n");
    }
    for set in rules.sets() {
        // A name may have a point, which would be a table's.
        let _ = write!(text, "{} = [", quoted(set.name.as_str()));
        for prefix in &set.prefixes {
            let _ = write!(text, "\n  \"{prefix}\",");
        }
        let end = if set.prefixes.is_empty() { "]" } else { "\n]" };
        let _ = writeln!(text, "{end}");
    }
    for rule in rules.rules() {
        write_rule(&mut text, rule);
    }
    text
}

fn write_rule(text: &mut String, rule: &Rule) {
    let _ = writeln!(text, "\n[[rule]]");
    let _ = writeln!(text, "name = {}", quoted(rule.name.as_str()));
    let _ = match rule.verdict {
        Verdict::Allow => writeln!(text, "verdict = \"allow\""),
        Verdict::Deny => writeln!(text, "verdict = \"deny\""),
        Verdict::Limit(limit) => writeln!(text, "limit = {}", quoted(&limit.to_string())),
    };
    let _ = writeln!(text, "match = {}", quoted(&rule.matches.to_string()));
}

/// As TOML has it, whatever stands in it.
fn quoted(text: &str) -> String {
    // A literal string has no escapes, and so cannot have what would end it.
    let has_none = |text: &str| !text.contains(['"', '\\']) && !text.contains(char::is_control);
    match has_none(text) {
        true => format!("\"{text}\""),
        false => toml::Value::String(text.into()).to_string(),
    }
}
