//! `packtrain link add` and `packtrain link remove`, on a line that runs.

use std::time::Duration;

use serde_json::Value;

use super::error::CliError;
use super::up::checks;
use super::{output, show};
use crate::control::{Connection, ControlError, Request, Response};
use crate::linux::netlink::Netlink;
use crate::settings::values::InterfaceName;

/// Who waits longer than this wants to know for what.
const QUIET: Duration = Duration::from_secs(1);

pub fn add(
    line: &InterfaceName,
    link: &InterfaceName,
    wait: bool,
    json: bool,
) -> Result<(), CliError> {
    let mut connection = open(line)?;
    let mut netlink = Netlink::open()?;
    let present = netlink.link_by_name(link.as_str())?;
    // The line itself cannot ask the others: two that asked each other would wait for ever.
    checks::in_no_other_line(present.as_slice(), line)?;
    let request = Request::LinkAdd {
        name: link.to_string(),
        wait,
    };
    let answer = connection.ask(request).map_err(|e| told(line, e))?;
    let Response::LinkAdded(added) = answer else {
        return Err(unexpected(line, &answer));
    };
    if let Some(present) = present {
        checks::note_own_addresses(&mut netlink, &present, line, &mut |note| output::note(note))?;
    }
    match added["state"].as_str() {
        Some("absent") => output::note(&checks::absent_yet(link.as_str())),
        Some("down") => output::note(&checks::set_down(link.as_str())),
        Some("no-carrier") => output::note(&format!("{link} has no carrier")),
        _ => {}
    }
    match json {
        true => show::print_json(&added),
        false if added["state"] == "absent" => output::text(&format!("{line} waits for {link}\n")),
        false => output::text(&format!(
            "{link} has joined {line}{}\n",
            in_brackets(&added)
        )),
    }
}

fn in_brackets(link: &Value) -> String {
    match (&link["mtu"], &link["address"]) {
        (Value::Number(mtu), Value::String(address)) => format!(" (MTU {mtu}, {address})"),
        _ => String::new(),
    }
}

pub fn remove(line: &InterfaceName, link: &InterfaceName, json: bool) -> Result<(), CliError> {
    let request = Request::LinkRemove {
        name: link.to_string(),
    };
    let mut progress = || {
        output::note(&format!(
            "waiting for what is under way on {link} to arrive, 3 s at most"
        ));
    };
    let answer = open(line)?
        .ask_patiently(request, QUIET, &mut progress)
        .map_err(|e| told(line, e))?;
    let Response::LinkRemoved {
        link: last,
        drained,
    } = answer
    else {
        return Err(unexpected(line, &answer));
    };
    if !drained {
        output::note(&format!(
            "not all that was under way on {link} was seen to arrive"
        ));
    }
    match json {
        true => show::print_json(&last),
        false => output::text(&format!("{link} has left {line}\n")),
    }
}

fn open(line: &InterfaceName) -> Result<Connection, CliError> {
    Connection::open(line.as_str()).map_err(|e| told(line, e))
}

fn told(line: &InterfaceName, error: ControlError) -> CliError {
    match error {
        ControlError::Denied => CliError::NotRoot {
            action: "change",
            name: line.to_string(),
        },
        other => CliError::from_control(line.as_str(), other),
    }
}

/// Asks the line to change something.
pub(super) fn ask(line: &InterfaceName, request: Request) -> Result<Response, CliError> {
    open(line)?.ask(request).map_err(|e| told(line, e))
}

pub(super) fn unexpected(line: &InterfaceName, answer: &Response) -> CliError {
    CliError::NoAnswer {
        name: line.to_string(),
        reason: format!("an answer to something else: {answer:?}"),
    }
}
