//! Rules and sets of a filter as a file: `packtrain filter load`, and `rules --toml`.

use std::fmt::Write as _;
use std::time::Duration;

use packtrain_proto::filter::rules::RuleSet;
use serde_json::Value;

use super::arguments::LoadArguments;
use super::{confirm, not_told, only};
use crate::cli::error::CliError;
use crate::cli::output::{self, BAD, GOOD, HEADING, WARNING};
use crate::cli::show;
use crate::cli::words::count;
use crate::control::{Connection, ControlError, Request, Response};
use crate::filter::changes::{Changes, SetChange};
use crate::filter::control_name;
use crate::filter::rule_texts::RulesDocument;
use crate::filter::rules_file::{self, FileOptions, text_of};
use crate::settings::values::InterfaceName;

/// So long nothing is said of what takes its time.
const QUIET: Duration = Duration::from_secs(1);

pub fn run(arguments: &LoadArguments) -> Result<(), CliError> {
    let LoadArguments {
        interface, file, ..
    } = arguments;
    let read = rules_file::read_file(file)?;
    if read.options != FileOptions::default() {
        output::note(
            "policy, ports, mode, dry_run and watchdog of the file are for `filter on`: the filter keeps its own",
        );
    }
    let changes = match arguments.dry_run {
        true => would_change(interface, &read.rules)?,
        false => {
            let rules = RulesDocument::from(&read.rules);
            let request = confirm::tried(Request::RulesLoad { rules }, arguments.confirm);
            match ask_to_change(interface, request)? {
                Response::RulesLoaded(changes) => changes,
                other => return Err(unexpected(interface, &other)),
            }
        }
    };
    confirm::tell_how(interface, arguments.confirm);
    if arguments.json {
        return show::print_json(&changes);
    }
    let changes = understood(interface, changes)?;
    output::text(&text(interface, &changes, arguments.dry_run))
}

fn would_change(interface: &InterfaceName, now: &RuleSet) -> Result<Value, CliError> {
    let former = match running_rules(interface) {
        Ok(former) => former,
        Err(CliError::NoFilter { .. }) => {
            output::note(&format!("no receive filter runs on {interface}"));
            RuleSet::default()
        }
        Err(error) => return Err(error),
    };
    let changes = Changes::between(&former, now);
    Ok(serde_json::to_value(changes).expect("plain JSON"))
}

pub fn print_file(interface: Option<&InterfaceName>) -> Result<(), CliError> {
    let interface = only(interface)?;
    let rules = running_rules(&interface)?;
    let heading = format!("Rules of the receive filter of {interface}, for packtrain filter load.");
    output::raw(text_of(&rules, &heading).as_bytes())
}

/// The rules and sets of a filter, as it is asked for them.
pub fn running_rules(interface: &InterfaceName) -> Result<RuleSet, CliError> {
    let texts = running_texts(interface)?;
    texts
        .read()
        .map_err(|error| not_understood(interface, error))
}

pub fn running_texts(interface: &InterfaceName) -> Result<RulesDocument, CliError> {
    match ask_patiently(interface, Request::Rules {}) {
        Ok(Response::Rules(rules)) => understood(interface, rules),
        Ok(other) => Err(unexpected(interface, &other)),
        Err(ControlError::Denied) => Err(CliError::NotRoot {
            action: "read all rules and sets of",
            name: format!("the filter of {interface}"),
        }),
        Err(error) => Err(not_told(interface, error)),
    }
}

/// Large sets take their time.
pub fn ask_to_change(interface: &InterfaceName, request: Request) -> Result<Response, CliError> {
    ask_patiently(interface, request).map_err(|error| match error {
        ControlError::Denied => CliError::NotRoot {
            action: "change",
            name: format!("the filter of {interface}"),
        },
        other => not_told(interface, other),
    })
}

fn ask_patiently(interface: &InterfaceName, request: Request) -> Result<Response, ControlError> {
    let mut waiting = || output::note(&format!("waiting for the filter of {interface}"));
    Connection::open(&control_name(interface))?.ask_patiently(request, QUIET, &mut waiting)
}

pub fn unexpected(interface: &InterfaceName, answer: &Response) -> CliError {
    CliError::NoAnswer {
        name: format!("the filter of {interface}"),
        reason: format!("an answer to something else: {answer:?}"),
    }
}

pub fn understood<T: serde::de::DeserializeOwned>(
    interface: &InterfaceName,
    document: Value,
) -> Result<T, CliError> {
    serde_json::from_value(document).map_err(|error| not_understood(interface, error))
}

fn not_understood(interface: &InterfaceName, error: impl std::fmt::Display) -> CliError {
    CliError::NoAnswer {
        name: format!("the filter of {interface}"),
        reason: format!("what it says is not understood: {error}"),
    }
}

fn text(interface: &InterfaceName, changes: &Changes, is_dry: bool) -> String {
    let rules = changes.added.len() + changes.changed.len() + changes.kept.len();
    let sets = changes.sets.iter().filter(|set| set.change != "removed");
    let has = if is_dry { "would have" } else { "has" };
    let mut text = format!(
        "{HEADING}{interface} {has} {} and {}{HEADING:#}\n",
        counted(rules, "rule"),
        counted(sets.count(), "set")
    );
    for (style, what, names) in [
        (GOOD, "added", &changes.added),
        (WARNING, "changed", &changes.changed),
        (BAD, "removed", &changes.removed),
        (HEADING, "kept", &changes.kept),
    ] {
        if !names.is_empty() {
            let _ = writeln!(text, "  {style}{what:<8}{style:#} {}", names.join(", "));
        }
    }
    for set in &changes.sets {
        let _ = writeln!(text, "  {}", set_text(set));
    }
    text
}

fn set_text(set: &SetChange) -> String {
    let name = &set.name;
    let prefixes = counted(set.prefixes as usize, "prefix");
    match set.change.as_str() {
        "removed" => format!("set {name} removed"),
        "changed" => format!(
            "set {name} {prefixes}: {} added, {} removed",
            count(set.added),
            count(set.removed)
        ),
        change => format!("set {name} {prefixes}, {change}"),
    }
}

/// As in "1 rule", "2 rules".
pub fn counted(number: usize, what: &str) -> String {
    let plural = match what {
        "prefix" => "prefixes".into(),
        what => format!("{what}s"),
    };
    let what = if number == 1 { what } else { &plural };
    format!("{} {what}", count(number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_is_told_in_few_lines() {
        let names = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
        let set = |name: &str, prefixes, added, removed, change: &str| SetChange {
            name: name.into(),
            prefixes,
            added,
            removed,
            change: change.into(),
        };
        let changes = Changes {
            added: names(&["ssh"]),
            changed: Vec::new(),
            removed: names(&["a", "b"]),
            kept: names(&["syns"]),
            sets: vec![
                set("office", 1, 1, 0, "added"),
                set("blocked", 10_000, 3, 1, "changed"),
                set("old", 0, 0, 9, "removed"),
                set("same", 2, 0, 0, "kept"),
            ],
        };
        let eth1 = "eth1".parse().unwrap();
        let plain = |is_dry| {
            let shown = text(&eth1, &changes, is_dry);
            anstream::adapter::strip_str(&shown).to_string()
        };
        assert_eq!(
            plain(false),
            "eth1 has 2 rules and 3 sets\n\
             \x20 added    ssh\n\
             \x20 removed  a, b\n\
             \x20 kept     syns\n\
             \x20 set office 1 prefix, added\n\
             \x20 set blocked 10,000 prefixes: 3 added, 1 removed\n\
             \x20 set old removed\n\
             \x20 set same 2 prefixes, kept\n"
        );
        assert!(plain(true).starts_with("eth1 would have 2 rules and 3 sets\n"));
    }
}
