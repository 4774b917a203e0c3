//! `packtrain link add`, `set`, `remove` and `clear`, on a line that runs.

use std::time::Duration;

use serde_json::Value;

use super::error::CliError;
use super::patience::Patience;
use super::up::checks;
use super::{output, show};
use crate::control::{Connection, ControlError, Request, Response};
use crate::linux::netlink::Netlink;
use crate::settings::values::InterfaceName;
use crate::units::BitRate;

mod arguments;

pub use arguments::{LinkArguments, LinkCommand};
use arguments::{LinkChangeArguments, LinkUseArguments, OnOff};

/// Who waits longer than this wants to know for what.
const QUIET: Duration = Duration::from_secs(1);
/// Peers say hello once a second, and sooner when they hear of a new link.
const PEERS_WAIT: Duration = Duration::from_secs(3);
/// Between two looks whether they have.
const STEPS_A_LOOK: u32 = 5;

pub fn add(
    line: &InterfaceName,
    link: &InterfaceName,
    used: LinkUseArguments,
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
        tier: used.tier,
        weight: used.weight,
        rate_max_bps: used.rate,
        lag: used.lag,
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
    if !json {
        output::text(&match added["state"] == "absent" {
            true => format!("{line} waits for {link}\n"),
            false => format!("{link} has joined {line}{}\n", in_brackets(&added)),
        })?;
    }
    let found = match added["state"] == "up" {
        true => wait_for_peers(line, link)?,
        false => None,
    };
    match (json, found) {
        (true, None) => show::print_json(&added),
        (true, Some(found)) => show::print_json(&found.link),
        (false, Some(found)) => output::text(&found.in_words(link)),
        (false, None) => Ok(()),
    }
}

/// Who answers over a link that is new.
struct Found {
    /// As it is by then.
    link: Value,
    peers: Vec<String>,
}

impl Found {
    fn in_words(&self, link: &InterfaceName) -> String {
        match &self.peers[..] {
            [] => {
                let seconds = PEERS_WAIT.as_secs();
                format!(
                    "no peer was heard on {link} within {seconds} s: it carries trains when one is\n"
                )
            }
            [peer] => format!("peer {peer} answers over it\n"),
            peers => format!("peers answer over it: {}\n", peers.join(", ")),
        }
    }
}

/// Waits until all peers that the line has are heard over the link, too, but for no longer than they would take. `None`: it
/// is no link any more.
fn wait_for_peers(line: &InterfaceName, link: &InterfaceName) -> Result<Option<Found>, CliError> {
    let mut patience = Patience::of(PEERS_WAIT);
    loop {
        let document = show::ask(line)?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let is_it = |it: &Value| it["name"] == link.as_str();
        let Some(now) = list(&document["links"]).into_iter().find(is_it) else {
            return Ok(None);
        };
        let peers = list(&document["peers"]);
        let up: Vec<&Value> = peers.iter().filter(|peer| peer["up"] == true).collect();
        let answers = |peer: &&&Value| {
            let mut paths = list(&peer["links"]).into_iter();
            let is_of_use = |path: &Value| path["state"] != "closed" && path["state"] != "joining";
            paths.any(|path| path["link"] == link.as_str() && is_of_use(&path))
        };
        let heard: Vec<&&Value> = up.iter().filter(answers).collect();
        let are_all = !up.is_empty() && heard.len() == up.len();
        if are_all || !(0..STEPS_A_LOOK).all(|_| patience.wait()) {
            let name = |peer: &&&Value| peer["addresses"][0].as_str().unwrap_or("?").to_owned();
            let peers = heard.iter().map(name).collect();
            return Ok(Some(Found { link: now, peers }));
        }
    }
}

pub fn set(
    line: &InterfaceName,
    link: &InterfaceName,
    used: LinkChangeArguments,
    json: bool,
) -> Result<(), CliError> {
    let request = Request::LinkSet {
        name: link.to_string(),
        tier: used.tier,
        weight: used.weight,
        rate_max: used.rate,
        lag: used.lag.map(|lag| lag == OnOff::On),
    };
    let answer = ask(line, request)?;
    let Response::LinkSet(now) = answer else {
        return Err(unexpected(line, &answer));
    };
    if json {
        return show::print_json(&now);
    }
    let rate = match now["rate_max_bps"].as_u64() {
        Some(bps) => format!(", rate {} at most", BitRate(bps)),
        None => String::new(),
    };
    let lag = match now["lag"].as_str() {
        None => "",
        Some("refused") => ", and is in a link aggregation that the switch does not know of",
        Some(_) => ", and is in a link aggregation",
    };
    output::text(&format!(
        "{link} has tier {}, weight {}{rate}{lag}\n",
        now["tier"], now["weight"]
    ))
}

pub fn clear(line: &InterfaceName, json: bool) -> Result<(), CliError> {
    let mut progress =
        || output::note("waiting for what is under way on the links to arrive, 3 s at most");
    let answer = open(line)?
        .ask_patiently(Request::LinkClear {}, QUIET, &mut progress)
        .map_err(|e| told(line, e))?;
    let Response::LinksCleared { links, drained } = answer else {
        return Err(unexpected(line, &answer));
    };
    if !drained {
        output::note("not all that was under way was seen to arrive");
    }
    if json {
        return show::print_json(&Value::Array(links));
    }
    let names: Vec<&str> = links.iter().filter_map(|l| l["name"].as_str()).collect();
    let have = if names.len() == 1 { "has" } else { "have" };
    output::text(&format!(
        "{} {have} left {line}, which has no carrier until it is given a link\n",
        names.join(", ")
    ))
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
