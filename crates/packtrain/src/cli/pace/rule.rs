//! `packtrain pace rule`: at which rate which streams leave.

mod arguments;
mod of_link;

use std::fmt::Write as _;

use serde_json::Value;

use super::tcp::{read, run_detached, settings_of_rules};
use super::{ask, not_told};
use crate::cli::error::CliError;
use crate::cli::output::{self, HEADING};
use crate::cli::{detach, show, words};
use crate::control::{self, ControlError, Request, Response};
use crate::pace::Pacer;
use crate::pace::tcp::document::RuleDocument;
use crate::pace::tcp::rules::{RuleRate, RuleWish, Rules};

pub(super) use self::of_link::table as table_of_links;

pub use self::arguments::RuleArguments;
use self::arguments::{AddArguments, RuleCommand};

pub fn run(arguments: &RuleArguments) -> Result<(), CliError> {
    match &arguments.command {
        RuleCommand::Add(arguments) => match &arguments.link {
            Some(link) => of_link::add(link, arguments),
            None => add(arguments),
        },
        RuleCommand::Remove { name, link, json } => {
            let name = name.as_str();
            let last = match link {
                Some(link) => of_link::remove(link, name)?,
                None => change(&Pacer::Tcp, Request::PaceRuleRemove { name: name.into() })?,
            };
            match json {
                true => show::print_json(&last),
                false => output::text(&format!("there is no rule {name} any more\n")),
            }
        }
        RuleCommand::List { json } => list(*json),
    }
}

fn add(arguments: &AddArguments) -> Result<(), CliError> {
    let wish = arguments.wish();
    // What cannot be is said before anything starts.
    Rules::of(&[RuleWish {
        before: None,
        ..wish.clone()
    }])
    .map_err(|error| CliError::Usage(error.to_string()))?;
    if arguments.detached {
        return run_detached(settings_of_rules(vec![wish]), arguments.log_level);
    }
    let request = Request::PaceRuleAdd { wish: wish.clone() };
    let rule = match change(&Pacer::Tcp, request) {
        // The first one brings a pacer that does nothing else.
        Err(CliError::NoPacer { .. }) if wish.before.is_none() => {
            detach::launch("pacer of TCP", &Pacer::Tcp.file_name())?;
            let document = read(ask(&Pacer::Tcp)?)?;
            let rule = document.rules.into_iter().next();
            let rule = rule.ok_or_else(|| CliError::Failed("the rule is gone already".into()))?;
            serde_json::to_value(rule).expect("plain JSON")
        }
        answer => answer?,
    };
    let rate = rate(wish.rate, wish.share.as_str());
    said(&rule, &wish.matches, &rate, arguments.json)
}

fn said(rule: &Value, matches: &str, rate: &str, json: bool) -> Result<(), CliError> {
    if json {
        return show::print_json(rule);
    }
    let name = rule["name"].as_str().unwrap_or("a rule");
    output::text(&format!("rule {name}: {matches} leaves at {rate}\n"))
}

fn rate(rate: RuleRate, share: &str) -> String {
    match rate {
        RuleRate::Auto => "what its path carries".into(),
        RuleRate::Bps(bps) => format!("{} for each {share}", words::rate(bps))
            .replace("for each rule", "for all of them together"),
    }
}

fn change(pacer: &Pacer, request: Request) -> Result<Value, CliError> {
    match control::request(&pacer.control_name(), request) {
        Ok(Response::Rule(rule)) => Ok(rule),
        Ok(other) => Err(CliError::NoAnswer {
            name: pacer.to_string(),
            reason: format!("an answer to something else: {other:?}"),
        }),
        Err(ControlError::Denied) => Err(CliError::NotRoot {
            action: "change",
            name: pacer.to_string(),
        }),
        Err(error) => Err(not_told(pacer, error)),
    }
}

/// Those of TCP, and those of each interface.
fn list(json: bool) -> Result<(), CliError> {
    let rules = match ask(&Pacer::Tcp) {
        Ok(document) => read(document)?.rules,
        Err(CliError::NoPacer { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let of_links = of_link::all()?;
    if json {
        let mut all = serde_json::to_value(rules).expect("plain JSON");
        let of_links = of_links
            .iter()
            .map(|rule| serde_json::to_value(rule).expect("plain JSON"));
        all.as_array_mut().expect("a list").extend(of_links);
        return show::print_json(&all);
    }
    let mut tables = Vec::new();
    if !rules.is_empty() {
        tables.push(table(&rules));
    }
    if !of_links.is_empty() {
        tables.push(of_link::table(&of_links));
    }
    match tables.is_empty() {
        true => output::text("no rule paces anything\n"),
        false => output::text(&tables.join("\n")),
    }
}

/// In the order in which they are asked.
pub(super) fn table(rules: &[RuleDocument]) -> String {
    let widest = |of: fn(&RuleDocument) -> usize, least: usize| {
        let widths = rules.iter().map(of);
        widths.max().unwrap_or(0).max(least)
    };
    let name = widest(|rule| rule.name.len(), "RULE".len());
    let matches = widest(|rule| rule.matches.len(), "MATCH".len());
    let mut text = format!(
        "{HEADING}{:<name$}  {:<matches$}  {:>12}  {:<11}  {:>7}  {:>7}{HEADING:#}\n",
        "RULE", "MATCH", "RATE", "SHARED BY", "STREAMS", "SENDING"
    );
    for rule in rules {
        let rate = rule.rate_bps.map_or("auto".into(), words::rate);
        let _ = writeln!(
            text,
            "{:<name$}  {:<matches$}  {rate:>12}  {:<11}  {:>7}  {:>7}",
            rule.name,
            rule.matches,
            rule.share.as_str(),
            rule.streams,
            rule.sending
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::tcp::rules::Share;

    #[test]
    fn a_list_of_rules_is_a_table_as_wide_as_they_are() {
        let rule = |name: &str, rate_bps, share| RuleDocument {
            name: name.into(),
            matches: "tcp dst 192.0.2.0/24".into(),
            rate_bps,
            share,
            streams: 3,
            sending: 1,
        };
        let text = table(&[
            rule("rule1", Some(40_000_000), Share::Destination),
            rule("b", None, Share::Stream),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[1].starts_with(
                "rule1  tcp dst 192.0.2.0/24     40 Mbit/s  destination        3        1"
            ),
            "{text}"
        );
        assert!(lines[2].contains("        auto  stream "), "{text}");
    }

    #[test]
    fn what_was_added_is_said_in_words() {
        let bps = RuleRate::Bps(40_000_000);
        assert_eq!(rate(bps, "destination"), "40 Mbit/s for each destination");
        assert_eq!(rate(bps, "rule"), "40 Mbit/s for all of them together");
        assert_eq!(rate(RuleRate::Auto, "destination"), "what its path carries");
    }
}
