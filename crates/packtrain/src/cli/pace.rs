//! `packtrain pace`: rate control kind to intermediate routers.

mod arguments;
mod link;
mod measure;
mod rule;
mod tcp;
mod top;
mod view;

use serde_json::Value;

use super::error::CliError;
use super::patience::{GOING_WAIT_MAX, Patience};
use super::{output, show};
use crate::control::{self, Connection, ControlError, Request, Response};
use crate::instance;
use crate::linux::host_state::{Change, HostState, Recovery};
use crate::pace::link::document::{KIND, LinkPacerDocument};
use crate::pace::{self, Pacer};
use crate::settings::values::InterfaceName;

pub use self::arguments::PaceArguments;
use self::arguments::PaceCommand;

/// A pacer ends within milliseconds; this is for a host that is starved.
const END_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(15);

pub fn run(arguments: &PaceArguments) -> Result<(), CliError> {
    match &arguments.command {
        PaceCommand::Link(arguments) => link::run(arguments),
        PaceCommand::Measure(arguments) => measure::run(arguments),
        PaceCommand::Tcp(arguments) => tcp::run(arguments),
        PaceCommand::Rule(arguments) => rule::run(arguments),
        PaceCommand::Top(arguments) => top::run(arguments),
        PaceCommand::Off { interface: None } => off_all(),
        PaceCommand::Off {
            interface: Some(interface),
        } => off(&Pacer::Link(interface.clone())),
        PaceCommand::Status { interface, json } => status(interface.as_ref(), *json),
    }
}

/// Ends one, whichever it is, and returns when all that it has changed is undone; also of one that was killed.
fn off(pacer: &Pacer) -> Result<(), CliError> {
    let mut patience = Patience::of(GOING_WAIT_MAX);
    loop {
        let not_running = match end(pacer) {
            Err(error @ CliError::NoPacer { .. }) => error,
            ended => return ended,
        };
        match recover(pacer)? {
            Recovery::Undone { .. } => return Ok(()),
            // It was killed, and is not quite gone.
            Recovery::Running { .. } if patience.wait() => {}
            Recovery::Running { owner } => {
                return Err(CliError::NoAnswer {
                    name: pacer.to_string(),
                    reason: format!("process {} runs it, and has no control socket", owner.pid),
                });
            }
            Recovery::Nothing | Recovery::Stale { .. } => return Err(not_running),
        }
    }
}

fn end(pacer: &Pacer) -> Result<(), CliError> {
    let told = |error| not_told(pacer, error);
    let mut connection = Connection::open(&pacer.control_name()).map_err(told)?;
    connection.ask(Request::Down {}).map_err(told)?;
    connection.wait_for_end(END_WAIT_MAX).map_err(told)
}

/// Undoes what one left that was killed, and tells.
fn recover(pacer: &Pacer) -> Result<Recovery, CliError> {
    let name = pacer.file_name();
    let dir = instance::state_dir().map_err(|e| CliError::failed("/proc/thread-self/ns/net", e))?;
    let recovered = HostState::recover(&dir, &name);
    let recovered = recovered.map_err(|e| CliError::Failed(e.to_string()))?;
    if let Recovery::Undone { changes } = &recovered {
        for change in instance::undone(changes) {
            output::note(&change);
        }
        instance::remove_log(&name);
    }
    Ok(recovered)
}

/// Ends what can be ended, and tells of the first that could not.
fn off_all() -> Result<(), CliError> {
    let mut first = None;
    for pacer in running()?.iter().chain(&left_behind()?) {
        match off(pacer) {
            // It ended by itself meanwhile.
            Ok(()) | Err(CliError::NoPacer { .. }) => {}
            Err(error) if first.is_none() => first = Some(error),
            Err(error) => output::error(&error.to_string(), None),
        }
    }
    first.map_or(Ok(()), Err)
}

fn status(interface: Option<&InterfaceName>, json: bool) -> Result<(), CliError> {
    if let Some(interface) = interface {
        let document = ask(&Pacer::Link(interface.clone()))?;
        return match json {
            true => show::print_json(&document),
            false => output::text(&shown(document)?),
        };
    }
    let mut documents = Vec::new();
    for pacer in running()?.iter().chain(&left_behind()?) {
        match ask(pacer) {
            Ok(document) => documents.push(document),
            // It ended between the list and the question.
            Err(CliError::NoPacer { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if json {
        return show::print_json(&Value::Array(documents));
    }
    if documents.is_empty() {
        return output::text("no pacer runs in this network namespace\n");
    }
    let views: Result<Vec<_>, CliError> = documents.into_iter().map(shown).collect();
    output::text(&views?.join("\n"))
}

/// A document for a person, of whichever pacer it is.
fn shown(document: Value) -> Result<String, CliError> {
    let kind = document["kind"].as_str().unwrap_or("none").to_owned();
    match kind.as_str() {
        KIND => Ok(view::status(&read(document)?)),
        pace::tcp::document::KIND => tcp::status_text(document),
        other => Ok(format!(
            "a pacer that this program does not know ({other})\n"
        )),
    }
}

fn read(document: Value) -> Result<LinkPacerDocument, CliError> {
    serde_json::from_value(document).map_err(|error| CliError::NoAnswer {
        name: "a pacer".into(),
        reason: format!("its status is not understood: {error}"),
    })
}

fn running() -> Result<Vec<Pacer>, CliError> {
    instance::running_pacers().map_err(|e| CliError::failed("/proc/net/unix", e))
}

/// Those that were killed, and whose changes stand.
fn left_behind() -> Result<Vec<Pacer>, CliError> {
    instance::pacers_left_behind().map_err(|e| CliError::failed("/run/packtrain", e))
}

/// The document as the pacer wrote it: a newer one may have fields that this binary does not know. Of one that was killed,
/// what it has left.
fn ask(pacer: &Pacer) -> Result<Value, CliError> {
    match control::request(&pacer.control_name(), Request::Status {}) {
        Ok(Response::Status(document)) => Ok(document),
        Ok(other) => Err(CliError::NoAnswer {
            name: pacer.to_string(),
            reason: format!("an answer to something else: {other:?}"),
        }),
        Err(ControlError::NotRunning) => {
            left(pacer)?.ok_or_else(|| not_told(pacer, ControlError::NotRunning))
        }
        Err(error) => Err(not_told(pacer, error)),
    }
}

fn left(pacer: &Pacer) -> Result<Option<Value>, CliError> {
    let dir = instance::state_dir().map_err(|e| CliError::failed("/proc/thread-self/ns/net", e))?;
    let changes = HostState::left(&dir, &pacer.file_name());
    let changes = changes.map_err(|e| CliError::Failed(e.to_string()))?;
    let Pacer::Link(interface) = pacer else {
        return Ok(None);
    };
    if changes.is_empty() {
        return Ok(None);
    }
    let document = LinkPacerDocument {
        kind: KIND.into(),
        interface: changes[0].interface.clone(),
        known_as: interface.to_string(),
        version: env!("CARGO_PKG_VERSION").into(),
        pid: None,
        undo: changes.iter().map(Change::to_string).collect(),
        spacing: None,
        rules: Vec::new(),
    };
    Ok(Some(serde_json::to_value(document).expect("plain JSON")))
}

fn not_told(pacer: &Pacer, error: ControlError) -> CliError {
    match error {
        ControlError::NotRunning => CliError::NoPacer {
            pacer: pacer.to_string(),
            log: log_left(pacer),
        },
        other => CliError::from_control(&pacer.to_string(), other),
    }
}

/// Of one that has ended without being asked to.
fn log_left(pacer: &Pacer) -> Option<std::path::PathBuf> {
    let path = instance::log_path(&pacer.file_name()).ok()?;
    path.exists().then_some(path)
}
