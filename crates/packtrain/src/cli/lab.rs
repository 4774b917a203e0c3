//! `packtrain lab`: hosts and wires to try things on.

mod arguments;
mod capture;
mod view;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use packtrain_proto::filter::Policy;
use serde_json::{Value, json};

pub use arguments::LabArguments;
use arguments::{
    CheckArguments, CheckCommand, CheckedPolicy, FilterCheckArguments, LabCommand, UpArguments,
    WhichLab,
};

use super::error::CliError;
use super::output;
use super::show::print_json;
use crate::lab::check::{self, Verdict};
use crate::lab::emulator::protocol::{AskError, Request, WireChoice};
use crate::lab::emulator::service;
use crate::lab::namespaces::{self, Namespace, program_directories, program_exists};
use crate::lab::standing::{Lab, LabName};
use crate::lab::topology::change::ChangeError;
use crate::lab::topology::{Change, Topology, file, graph, ready};
use crate::lab::{self, Error, applications};

/// Of docs/lab.schema.json.
const SCHEMA: u32 = 1;

pub fn run(command: LabCommand) -> Result<(), CliError> {
    match command {
        LabCommand::Up(arguments) => up(&arguments),
        LabCommand::Exec { lab, host, words } => {
            let host = find(&lab)?.host(&host)?;
            Err(exec(&host, &words))
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
            let of = WireChoice { wire, from };
            ask_of(&lab, of, |of| Request::Cut { of, silent })
        }
        LabCommand::Mend { lab, wire, from } => {
            let of = WireChoice { wire, from };
            ask_of(&lab, of, |of| Request::Mend { of })
        }
        LabCommand::Capture(arguments) => capture::run(&arguments),
        LabCommand::Graph { lab, topology, svg } => draw(&lab, topology.as_deref(), svg),
        LabCommand::Check(arguments) => check(&arguments),
        LabCommand::Down { name, lab, all } => down(name.as_ref().or(lab.name.as_ref()), all),
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
    lab::standing::clean_up_on_signals()?;
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
    let text = std::fs::read_to_string(from).map_err(|source| CliError::FileUnread {
        path: from.to_owned(),
        source,
    })?;
    file::parse(from, &text).map_err(CliError::File)
}

/// A program of a host takes the place of this process.
fn exec(host: &Namespace, words: &[OsString]) -> CliError {
    let program = &words[0];
    if !program_exists(program) {
        return CliError::NoSuchProgram(program.to_string_lossy().into_owned());
    }
    replace_process_with(host.command(words))
}

/// The command takes the place of this process, so that signals, the terminal and the exit code are the program's.
fn replace_process_with(mut command: Command) -> CliError {
    // A directory with a colon in its name cannot be on it.
    if let Ok(path) = std::env::join_paths(program_directories()) {
        command.env("PATH", path);
    }
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
    Err(replace_process_with(command))
}

fn list(which: &WhichLab, as_json: bool) -> Result<(), CliError> {
    let labs = match &which.name {
        Some(name) => vec![Lab::find(Some(name.as_str()))?],
        None => Lab::names()?
            .iter()
            .map(|name| Lab::find(Some(name)))
            .collect::<lab::Result<_>>()?,
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
        "schema": SCHEMA,
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

fn ask_of(
    which: &WhichLab,
    of: WireChoice,
    request: impl FnOnce(WireChoice) -> Request,
) -> Result<(), CliError> {
    let lab = find(which)?;
    // A lab has the wires with which it was made.
    lab.topology().direction(&of.wire, of.from.as_deref())?;
    lab.ask(&request(of)).map_err(|error| asked(&lab, error))?;
    Ok(())
}

fn asked(lab: &Lab, error: AskError) -> CliError {
    let hint = match &error {
        AskError::NoAnswer(_) => Some(format!(
            "its process has ended, or hangs: packtrain lab down {}",
            lab.name()
        )),
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
    let status = lab.status().map_err(|error| asked(&lab, error))?;
    let mut topology = status.topology;
    topology.change(&wire, from, change)?;
    let directions = topology.wire(&wire).expect("it was changed");
    let directions = Box::new(directions.directions.clone());
    let request = Request::Set { wire, directions };
    lab.ask(&request).map_err(|error| asked(&lab, error))?;
    Ok(())
}

fn draw(which: &WhichLab, topology: Option<&Path>, svg: bool) -> Result<(), CliError> {
    let (topology, state) = match topology {
        Some(from) => (described(from)?, None),
        None => {
            let lab = find(which)?;
            let status = lab.status().map_err(|error| asked(&lab, error))?;
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

fn check(arguments: &CheckArguments) -> Result<(), CliError> {
    match &arguments.what {
        Some(CheckCommand::Filter(arguments)) => check_filter(arguments),
        None => check_wires(arguments.short, arguments.json),
    }
}

fn check_filter(arguments: &FilterCheckArguments) -> Result<(), CliError> {
    if arguments.list {
        return output::text(&view::applications());
    }
    let options = applications::Options {
        only: arguments.only.clone(),
        policy: match arguments.policy {
            CheckedPolicy::Host => Policy::Host,
            CheckedPolicy::Nima => Policy::Nima,
        },
        mode: arguments.mode,
        quiet: arguments.json,
    };
    namespaces::clean_up_on_signals()?;
    let report = applications::run(&own_program()?, &options)?;
    match arguments.json {
        true => print_json(&json!(report))?,
        false => output::text(&format!(
            "\n{}\n{}",
            applications::table(&report),
            applications::details(&report)
        ))?,
    }
    match report.is_same() {
        true => Ok(()),
        false => Err(CliError::Failed(report.problems())),
    }
}

fn check_wires(short: bool, as_json: bool) -> Result<(), CliError> {
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
        return Ok(Lab::down(name.map(LabName::as_str))?);
    }
    // One that cannot be taken down keeps none of the others up.
    let mut first = Ok(());
    for name in Lab::names()? {
        let result = Lab::down(Some(&name)).map_err(CliError::from);
        first = first.and(result);
    }
    first
}

impl From<ChangeError> for CliError {
    fn from(error: ChangeError) -> CliError {
        let exit_code = match error {
            ChangeError::NoWire { .. } | ChangeError::NoEnd { .. } => 4,
            ChangeError::NoPort { .. } | ChangeError::HubRate { .. } => 2,
        };
        CliError::Told {
            exit_code,
            message: error.to_string(),
            hint: None,
        }
    }
}

impl From<Error> for CliError {
    fn from(error: Error) -> CliError {
        let (exit_code, hint) = match &error {
            Error::Unavailable(_) | Error::NoRights => (7, None),
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
