//! Rules of an interface, which are about UDP.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::{END_WAIT_MAX, ask, link, read, running};
use super::arguments::AddArguments;
use super::{RuleRate, change, rate, said};
use crate::cli::detach;
use crate::cli::error::CliError;
use crate::cli::output::HEADING;
use crate::cli::patience::Patience;
use crate::cli::words::{self, count};
use crate::control::Request;
use crate::pace::Pacer;
use crate::pace::link::document::{LinkPacerDocument, LinkRuleDocument};
use crate::pace::link::rules::{LinkRuleWish, LinkRules};
use crate::pace::link::wish::PaceSettings;
use crate::settings::values::InterfaceName;

pub(super) fn add(link: &InterfaceName, arguments: &AddArguments) -> Result<(), CliError> {
    let wish = arguments
        .link_wish()
        .map_err(|reason| CliError::Usage(reason.into()))?;
    // What cannot be is said before anything starts.
    LinkRules::of(&[LinkRuleWish {
        before: None,
        ..wish.clone()
    }])
    .map_err(|error| CliError::Usage(error.to_string()))?;
    let pacer = Pacer::Link(link.clone());
    if arguments.detached {
        let settings = || Ok(PaceSettings::without_gap(link.clone()));
        return link::run_detached(&pacer, settings, &[wish], arguments.log_level);
    }
    let matches = wish.matches.clone();
    let rate = rate(RuleRate::Bps(wish.rate_bps), "rule");
    let is_first = wish.before.is_none();
    let rule = match change(&pacer, Request::PaceLinkRuleAdd { wish }) {
        // The first one brings a pacer that does nothing else.
        Err(CliError::NoPacer { .. }) if is_first => {
            detach::launch("pacer", &pacer.file_name())?;
            let rule = document(&pacer)?.rules.into_iter().next();
            let rule = rule.ok_or_else(|| CliError::Failed("the rule is gone already".into()))?;
            serde_json::to_value(rule).expect("plain JSON")
        }
        answer => answer?,
    };
    said(&rule, &matches, &rate, arguments.json)
}

/// As it was at last. A pacer whose last one it was is gone when this returns.
pub(super) fn remove(link: &InterfaceName, name: &str) -> Result<Value, CliError> {
    let pacer = Pacer::Link(link.clone());
    let last = change(&pacer, Request::PaceRuleRemove { name: name.into() })?;
    let mut patience = Patience::of(END_WAIT_MAX);
    loop {
        match document(&pacer) {
            // It has undone everything, and is about to go.
            Ok(document) if document.spacing.is_none() && document.rules.is_empty() => {}
            Ok(_) | Err(CliError::NoPacer { .. }) => return Ok(last),
            Err(error) => return Err(error),
        }
        if !patience.wait() {
            return Ok(last);
        }
    }
}

fn document(pacer: &Pacer) -> Result<LinkPacerDocument, CliError> {
    read(ask(pacer)?)
}

pub(super) fn all() -> Result<Vec<LinkRuleDocument>, CliError> {
    let mut rules = Vec::new();
    for pacer in running()? {
        if pacer == Pacer::Tcp {
            continue;
        }
        match document(&pacer) {
            Ok(document) => rules.extend(document.rules),
            // It ended between the list and the question.
            Err(CliError::NoPacer { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(rules)
}

/// In the order in which each interface asks them.
pub(in super::super) fn table(rules: &[LinkRuleDocument]) -> String {
    let widest = |of: fn(&LinkRuleDocument) -> usize, least: usize| {
        let widths = rules.iter().map(of);
        widths.max().unwrap_or(0).max(least)
    };
    let link = widest(|rule| rule.link.len(), "LINK".len());
    let name = widest(|rule| rule.name.len(), "RULE".len());
    let matches = widest(|rule| rule.matches.len(), "MATCH".len());
    let mut text = format!(
        "{HEADING}{:<link$}  {:<name$}  {:<matches$}  {:>12}  {:>12}  {:>12}  {:>10}{HEADING:#}\n",
        "LINK", "RULE", "MATCH", "RATE", "WAITING", "SENT", "NO ROOM"
    );
    for rule in rules {
        let _ = writeln!(
            text,
            "{:<link$}  {:<name$}  {:<matches$}  {:>12}  {:>12}  {:>12}  {:>10}",
            rule.link,
            rule.name,
            rule.matches,
            words::rate(rule.rate_bps),
            format!("{} of {}", rule.queue_frames, rule.queue_frames_max),
            count(rule.sent_frames),
            count(rule.dropped_frames),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::tcp::rules::Share;

    #[test]
    fn a_list_says_what_waits_and_what_found_no_room() {
        let text = table(&[LinkRuleDocument {
            link: "eth1".into(),
            name: "rule1".into(),
            matches: "udp dport 443".into(),
            rate_bps: 40_000_000,
            share: Share::Rule,
            queue_frames_max: 200,
            queue_frames: 17,
            queue_bytes: 25_000,
            sent_frames: 12_345,
            sent_bytes: 18_000_000,
            dropped_frames: 3,
        }]);
        assert_eq!(
            text.lines().nth(1),
            Some(
                "eth1  rule1  udp dport 443     40 Mbit/s     17 of 200        12,345           3"
            )
        );
    }
}
