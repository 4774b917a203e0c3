//! Sets of addresses of a filter: `packtrain filter set` and `sets`.

use std::fmt::Write as _;

use packtrain_proto::class::prefix::Prefix;

use super::arguments::{SetArguments, SetCommand};
use super::load::{ask_to_change, counted, running_texts, understood, unexpected};
use super::{confirm, only};
use crate::cli::error::CliError;
use crate::cli::output::{self, HEADING};
use crate::cli::show;
use crate::cli::words::count;
use crate::control::{Request, Response};
use crate::filter::rule_texts::SetText;
use crate::filter::rules::SetDocument;
use crate::settings::values::InterfaceName;

pub fn change(arguments: &SetArguments) -> Result<(), CliError> {
    let SetArguments {
        interface,
        set,
        change,
    } = arguments;
    let name = set.to_string();
    let texts = |prefixes: &[Prefix]| prefixes.iter().map(Prefix::to_string).collect();
    let (request, option, json) = match change {
        SetCommand::Add {
            prefixes,
            confirm,
            json,
        } => {
            let (add, remove) = (texts(prefixes), Vec::new());
            (Request::SetChange { name, add, remove }, *confirm, *json)
        }
        SetCommand::Remove {
            all: true,
            confirm,
            json,
            ..
        } => (Request::SetRemove { name }, *confirm, *json),
        SetCommand::Remove {
            prefixes,
            confirm,
            json,
            ..
        } => {
            let (add, remove) = (Vec::new(), texts(prefixes));
            (Request::SetChange { name, add, remove }, *confirm, *json)
        }
    };
    let is_gone = matches!(request, Request::SetRemove { .. });
    let document = match ask_to_change(interface, confirm::tried(request, option))? {
        Response::Set(document) => document,
        other => return Err(unexpected(interface, &other)),
    };
    let set: SetDocument = understood(interface, document.clone())?;
    // Where nothing has changed, nothing waits.
    if is_gone || set.added + set.removed > 0 {
        confirm::tell_how(interface, option);
    }
    if json {
        return show::print_json(&document);
    }
    output::text(&said(interface, &set, is_gone))
}

fn said(interface: &InterfaceName, set: &SetDocument, is_gone: bool) -> String {
    let name = &set.name;
    if is_gone {
        return format!("{interface} has no set {name} any more\n");
    }
    let prefixes = counted(set.prefixes as usize, "prefix");
    let changed = match (set.added, set.removed) {
        (0, 0) => "as before".into(),
        (added, 0) => format!("{} added", count(added)),
        (0, removed) => format!("{} removed", count(removed)),
        (added, removed) => format!("{} added, {} removed", count(added), count(removed)),
    };
    format!("{interface} has set {name}: {prefixes}, {changed}\n")
}

pub fn list(interface: Option<&InterfaceName>, json: bool) -> Result<(), CliError> {
    let interface = only(interface)?;
    let sets = running_texts(&interface)?.sets;
    if json {
        return show::print_json(&serde_json::to_value(sets).expect("plain JSON"));
    }
    output::text(&table(&sets))
}

fn table(sets: &[SetText]) -> String {
    if sets.is_empty() {
        return "no sets\n".into();
    }
    let longest = sets.iter().map(|set| set.name.len()).max();
    let name_len = longest.unwrap_or(0).max(3);
    let mut text = format!(
        "{HEADING}{:<name_len$}  {:>8}  USED BY{HEADING:#}\n",
        "SET", "PREFIXES"
    );
    for set in sets {
        let users = match set.rules.is_empty() {
            true => "-".into(),
            false => set.rules.join(", "),
        };
        let prefixes = count(set.prefixes.len() as u64);
        let _ = writeln!(text, "{:<name_len$}  {prefixes:>8}  {users}", set.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_stand_in_columns_with_who_uses_them() {
        let set = |name: &str, prefixes: usize, rules: &[&str]| SetText {
            name: name.into(),
            prefixes: vec!["::1".into(); prefixes],
            rules: rules.iter().map(|&rule| rule.into()).collect(),
        };
        let shown = table(&[set("blocked", 10_000, &["a", "b"]), set("x", 0, &[])]);
        assert_eq!(
            anstream::adapter::strip_str(&shown).to_string(),
            "SET      PREFIXES  USED BY\n\
             blocked    10,000  a, b\n\
             x               0  -\n"
        );
        assert_eq!(table(&[]), "no sets\n");
    }

    #[test]
    fn what_became_of_a_set_is_told_in_a_line() {
        let eth1 = "eth1".parse().unwrap();
        let document = |added, removed| SetDocument {
            name: "x".into(),
            prefixes: 1,
            added,
            removed,
            rules: Vec::new(),
        };
        let said = |added, removed| said(&eth1, &document(added, removed), false);
        assert_eq!(said(1, 0), "eth1 has set x: 1 prefix, 1 added\n");
        assert_eq!(said(0, 2), "eth1 has set x: 1 prefix, 2 removed\n");
        assert_eq!(said(0, 0), "eth1 has set x: 1 prefix, as before\n");
    }
}
