//! `packtrain lab`: hosts and wires to try things on.

mod arguments;
mod capture;
mod view;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

pub use arguments::LabArguments;
use arguments::{LabCommand, UpArguments, WhichLab};

use super::error::CliError;
use super::output;
use super::show::print_json;
use crate::lab::check::{self, Verdict};
use crate::lab::emulator::protocol::{AskError, CutRequest, Request};
use crate::lab::emulator::service;
use crate::lab::standing::{Lab, LabName};
use crate::lab::topology::{Change, Topology, file, graph, ready};
use crate::lab::{self, Error};

pub fn run(command: LabCommand) -> Result<(), CliError> {
    match command {
        LabCommand::Up(arguments) => up(&arguments),
        LabCommand::Exec { lab, host, words } => {
            let host = find(&lab)?.host(&host)?;
            Err(start(&mut host.command(words)))
        }
        LabCommand::Shell { lab, host } => shell(&lab, &host),
        LabCommand::List { lab, json } => list(&lab, json),
        LabCommand::Set {
            lab,
            wire,
            from,
            change,
        } => set(&lab, wire, from.as_deref(), &change),
        LabCommand::Cut {
            lab,
            wire,
            silent,
            from,
        } => {
            let of = CutRequest { wire, from, silent };
            ask(&lab, &Request::Cut(of))
        }
        LabCommand::Mend { lab, wire, from } => {
            let silent = false;
            let of = CutRequest { wire, from, silent };
            ask(&lab, &Request::Mend(of))
        }
        LabCommand::Capture(arguments) => capture::run(&arguments),
        LabCommand::Graph { lab, topology, svg } => draw(&lab, topology.as_deref(), svg),
        LabCommand::Check { short, json } => check(short, json),
        LabCommand::Down { name, all } => down(name.as_ref(), all),
        LabCommand::Emulate => service::run().map_err(CliError::from),
    }
}

fn find(which: &WhichLab) -> Result<Lab, CliError> {
    Ok(Lab::find(which.name.as_ref().map(LabName::as_str))?)
}

fn up(arguments: &UpArguments) -> Result<(), CliError> {
    if arguments.ready {
        return output::text(&arguments::ready_list());
    }
    let topology = match &arguments.topology {
        Some(from) => described(from)?,
        None => {
            let topology = arguments.options.topology();
            topology.map_err(|contradiction| CliError::Usage(contradiction.to_string()))?
        }
    };
    let packtrain = own_program()?;
    let name = arguments.name.as_str();
    let started = now();
    lab::standing::clean_up_on_signals(name)?;
    let lab = Lab::up(name, &topology, &packtrain, |step| {
        output::progress(&format!("{name}: {step}"));
    });
    output::progress_ends();
    output::text(&view::up(&lab?, started.elapsed()))
}

#[allow(clippy::disallowed_methods)] // a command that a person waits for
fn now() -> Instant {
    Instant::now()
}

/// A topology by the name of a ready one, or by a file's.
fn described(from: &Path) -> Result<Topology, CliError> {
    let name = from.to_string_lossy();
    if let Ok(topology) = ready::find(&name) {
        return Ok(topology);
    }
    // A word that is no file is meant as a name.
    let is_word = !name.contains('/') && !name.contains('.');
    if is_word && !from.exists() {
        let error = ready::find(&name).expect_err("looked before");
        return Err(CliError::Usage(format!(
            "{error}; a file of one's own is written with its .toml"
        )));
    }
    let text = std::fs::read_to_string(from).map_err(|error| CliError::failed(&name, error))?;
    file::parse(from, &text).map_err(CliError::File)
}

/// Takes the place of this process, so that signals, the terminal and the exit code are the program's.
fn start(command: &mut std::process::Command) -> CliError {
    let error = command.exec();
    CliError::failed("ip netns exec", error)
}

fn shell(which: &WhichLab, host: &str) -> Result<(), CliError> {
    let lab = find(which)?;
    let namespace = lab.host(host)?;
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut command = namespace.command([shell]);
    // Debian's prompts show this one.
    command.env("debian_chroot", format!("{}:{host}", lab.name()));
    command.env("PACKTRAIN_LAB_HOST", host);
    Err(start(&mut command))
}

fn list(which: &WhichLab, as_json: bool) -> Result<(), CliError> {
    let labs = match &which.name {
        Some(name) => vec![Lab::find(Some(name.as_str()))?],
        None => Lab::all()?,
    };
    if as_json {
        let documents = labs.iter().map(document).collect();
        return print_json(&Value::Array(documents));
    }
    if labs.is_empty() {
        return output::text("no lab stands here; `packtrain lab up` makes one\n");
    }
    let texts: Vec<String> = labs
        .iter()
        .map(|lab| view::lab(lab, &lab.status()))
        .collect();
    output::text(&texts.join("\n"))
}

/// One lab as `lab list --json` shows it.
fn document(lab: &Lab) -> Value {
    let hosts = lab.addresses().iter().map(|host| {
        let links = host.links.iter();
        let links: Vec<Value> = links
            .map(|(interface, address)| json!({"interface": interface, "address": address}))
            .collect();
        json!({
            "name": host.host,
            "address": host.main,
            "address_v6": host.main_v6,
            "interface": host.main_interface,
            "namespace": lab.host(host.host.as_str()).map(|n| n.name().to_owned()).ok(),
            "links": links,
        })
    });
    let mut document = json!({
        "name": lab.name(),
        "hosts": hosts.collect::<Vec<_>>(),
    });
    match lab.status() {
        Ok(status) => {
            document["topology"] = json!(status.topology);
            document["wires"] = json!(status.wires);
            document["lateness"] = json!(status.lateness);
            document["real_time"] = json!(status.real_time);
        }
        Err(error) => document["error"] = json!(error.to_string()),
    }
    document
}

fn ask(which: &WhichLab, request: &Request) -> Result<(), CliError> {
    let lab = find(which)?;
    lab.ask(request).map_err(asked)?;
    Ok(())
}

fn asked(error: AskError) -> CliError {
    let hint = match &error {
        AskError::NoAnswer(_) => Some("its process has ended: packtrain lab down".into()),
        _ => None,
    };
    CliError::Told {
        exit_code: if hint.is_some() { 11 } else { 1 },
        message: error.to_string(),
        hint,
    }
}

fn set(
    which: &WhichLab,
    wire: String,
    from: Option<&str>,
    change: &Change,
) -> Result<(), CliError> {
    if change.is_empty() {
        return Err(CliError::Usage(
            "nothing to set: name a setting, as in --delay 5ms".into(),
        ));
    }
    let lab = find(which)?;
    let mut topology = lab.status().map_err(asked)?.topology;
    topology
        .change(&wire, from, change)
        .map_err(|error| CliError::Usage(error.to_string()))?;
    let directions = topology.wire(&wire).expect("it was changed");
    let directions = Box::new(directions.directions.clone());
    lab.ask(&Request::Set { wire, directions }).map_err(asked)?;
    Ok(())
}

fn draw(which: &WhichLab, topology: Option<&Path>, svg: bool) -> Result<(), CliError> {
    let (topology, state) = match topology {
        Some(from) => (described(from)?, None),
        None => {
            let status = find(which)?.status().map_err(asked)?;
            let state = status.drawn();
            (status.topology, Some(state))
        }
    };
    let drawing = match svg {
        true => graph::svg::draw(&topology, state.as_ref()),
        false => graph::text::draw(&topology, state.as_ref()),
    };
    output::text(&drawing)
}

fn check(short: bool, as_json: bool) -> Result<(), CliError> {
    let packtrain = own_program()?;
    let quiet = as_json;
    let report = check::run(&packtrain, check::Options { short, quiet })?;
    match as_json {
        true => print_json(&json!(report))?,
        false => output::text(&format!("\n{}", check::table(&report)))?,
    }
    match report.has(Verdict::Off) {
        true => Err(CliError::Failed("a setting is off".into())),
        false => Ok(()),
    }
}

fn own_program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|e| CliError::failed("packtrain itself", e))
}

fn down(name: Option<&LabName>, all: bool) -> Result<(), CliError> {
    if !all {
        let lab = Lab::find(name.map(LabName::as_str))?;
        return Ok(lab.down()?);
    }
    let mut first = Ok(());
    for lab in Lab::all()? {
        let result = lab.down().map_err(CliError::from);
        first = first.and(result);
    }
    first
}

impl From<Error> for CliError {
    fn from(error: Error) -> CliError {
        let (exit_code, hint) = match &error {
            Error::Unavailable(_) => (7, None),
            Error::NoLab => (9, Some("`packtrain lab up` makes one".to_owned())),
            Error::NoSuchLab { standing, .. } if standing.is_empty() => (
                9,
                Some("none stands; `packtrain lab up` makes one".to_owned()),
            ),
            Error::NoSuchLab { standing, .. } => {
                (9, Some(format!("there are: {}", standing.join(", "))))
            }
            Error::SeveralLabs(_) => (2, Some("say which: --lab NAME".to_owned())),
            Error::NoSuchHost { .. } => (4, None),
            Error::LabExists(name) => {
                let hint = format!("packtrain lab down {name}, or another name: --lab NAME");
                (10, Some(hint))
            }
            _ => (1, None),
        };
        CliError::Told {
            exit_code,
            message: error.to_string(),
            hint,
        }
    }
}
