//! Rules of a filter that stands: `packtrain filter allow`, `deny`, `limit`, `remove` and `rules`.

use std::fmt::Write as _;

use packtrain_proto::filter::rules::{RuleMatch, RuleName};
use serde_json::Value;

use super::arguments::{ConfirmOption, LimitArguments, RuleArguments, RuleOptions};
use super::{ask, confirm, not_told, only, read, view};
use crate::cli::error::CliError;
use crate::cli::output::{self, HEADING};
use crate::cli::show;
use crate::control::{self, Request, Response};
use crate::filter::control_name;
use crate::filter::document::RuleDocument;
use crate::settings::values::InterfaceName;

pub fn add(rule: &RuleArguments, verdict: &str) -> Result<(), CliError> {
    let said = format!("{verdict} {}", rule.matches);
    ask_for(
        &rule.interface,
        verdict,
        &rule.matches,
        &rule.options,
        &said,
    )
}

pub fn add_limit(rule: &LimitArguments) -> Result<(), CliError> {
    let verdict = format!("limit {}", rule.limit);
    let said = format!("{verdict}: {}", rule.matches);
    ask_for(
        &rule.interface,
        &verdict,
        &rule.matches,
        &rule.options,
        &said,
    )
}

fn ask_for(
    interface: &InterfaceName,
    verdict: &str,
    matches: &RuleMatch,
    options: &RuleOptions,
    said: &str,
) -> Result<(), CliError> {
    let request = Request::RuleAdd {
        name: options.name.as_ref().map(ToString::to_string),
        verdict: verdict.into(),
        matches: matches.to_string(),
        before: options.before.as_ref().map(ToString::to_string),
    };
    let rule = change(interface, confirm::tried(request, options.confirm))?;
    confirm::tell_how(interface, options.confirm);
    if options.json {
        return show::print_json(&rule);
    }
    let name = rule["name"].as_str().unwrap_or("a rule");
    output::text(&format!("{interface} has rule {name}: {said}\n"))
}

pub fn remove(
    interface: &InterfaceName,
    rule: &RuleName,
    option: ConfirmOption,
    json: bool,
) -> Result<(), CliError> {
    let request = Request::RuleRemove {
        name: rule.to_string(),
    };
    let last = change(interface, confirm::tried(request, option))?;
    confirm::tell_how(interface, option);
    match json {
        true => show::print_json(&last),
        false => output::text(&format!("{interface} has no rule {rule} any more\n")),
    }
}

pub fn list(interface: Option<&InterfaceName>, json: bool) -> Result<(), CliError> {
    let interface = only(interface)?;
    let document = ask(&interface)?;
    if json {
        return show::print_json(&document["rules"]);
    }
    let document = read(document)?;
    let unconfirmed = view::unconfirmed(&document);
    output::text(&(unconfirmed + &table(&document.rules)))
}

fn change(interface: &InterfaceName, request: Request) -> Result<Value, CliError> {
    match control::request(&control_name(interface), request) {
        Ok(Response::Rule(rule)) => Ok(rule),
        Ok(other) => Err(CliError::NoAnswer {
            name: format!("the filter of {interface}"),
            reason: format!("an answer to something else: {other:?}"),
        }),
        Err(error) => Err(not_told(interface, error)),
    }
}

pub fn table(rules: &[RuleDocument]) -> String {
    if rules.is_empty() {
        return "no rules: the policy decides\n".into();
    }
    let name_len = rules
        .iter()
        .map(|rule| rule.name.len())
        .max()
        .unwrap_or(0)
        .max(4);
    let mut text = format!(
        "{HEADING}{:<name_len$}  {:>12} {:>14}  DECIDES{HEADING:#}\n",
        "RULE", "FRAMES", "BYTES"
    );
    for rule in rules {
        let limit = rule
            .limit
            .as_ref()
            .map_or(String::new(), |limit| format!(" {limit}:"));
        let _ = writeln!(
            text,
            "{:<name_len$}  {:>12} {:>14}  {}{limit} {}",
            rule.name, rule.frames, rule.bytes, rule.verdict, rule.matches
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_stand_in_columns_as_they_can_be_written_again() {
        let rule = |name: &str, verdict: &str, limit: Option<&str>| RuleDocument {
            name: name.into(),
            verdict: verdict.into(),
            limit: limit.map(String::from),
            matches: "udp dport 53".into(),
            frames: 7,
            bytes: 420,
        };
        let shown = table(&[
            rule("rule1", "deny", None),
            rule("dns", "limit", Some("20/s burst 5 per source")),
        ]);
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(
            plain,
            "RULE         FRAMES          BYTES  DECIDES\n\
             rule1             7            420  deny udp dport 53\n\
             dns               7            420  limit 20/s burst 5 per source: udp dport 53\n"
        );
        assert_eq!(table(&[]), "no rules: the policy decides\n");
    }
}
