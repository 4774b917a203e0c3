//! `packtrain filter`: what is not for this host is dropped in the driver.

mod arguments;
mod confirm;
mod explain;
mod left;
mod load;
mod rules;
mod sample;
mod sets;
mod top;
mod view;

use super::error::CliError;
use super::up::{checks, log};
use super::{detach, output, show};
use crate::control::{self, Connection, ControlError, Request, Response};
use crate::filter::document::FilterDocument;
use crate::filter::{FilterSettings, RunningFilter, control_name, log_name};
use crate::instance;
use crate::settings::values::InterfaceName;

pub use self::arguments::FilterArguments;
use self::arguments::{FilterCommand, OnArguments};
pub(crate) use self::view::words as reason_words;

/// A filter ends within milliseconds; this is for a host that is starved.
const END_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(15);

pub fn run(arguments: &FilterArguments) -> Result<(), CliError> {
    match &arguments.command {
        FilterCommand::On(arguments) => on(arguments),
        FilterCommand::Off { interface } => off(interface.as_ref()),
        FilterCommand::Confirm { interface, json } => confirm::confirm(interface.as_ref(), *json),
        FilterCommand::Status { interface, json } => status(interface.as_ref(), *json),
        FilterCommand::Allow(rule) => rules::add(rule, "allow"),
        FilterCommand::Deny(rule) => rules::add(rule, "deny"),
        FilterCommand::Limit(rule) => rules::add_limit(rule),
        FilterCommand::Remove {
            interface,
            rule,
            confirm,
            json,
        } => rules::remove(interface, rule, *confirm, *json),
        FilterCommand::Rules {
            interface,
            toml: true,
            ..
        } => load::print_file(interface.as_ref()),
        FilterCommand::Rules {
            interface, json, ..
        } => rules::list(interface.as_ref(), *json),
        FilterCommand::Load(arguments) => load::run(arguments),
        FilterCommand::Set(arguments) => sets::change(arguments),
        FilterCommand::Sets { interface, json } => sets::list(interface.as_ref(), *json),
        FilterCommand::Sample(arguments) => sample::run(arguments),
        FilterCommand::Top(arguments) => top::run(arguments),
        FilterCommand::Explain(arguments) => explain::run(arguments),
    }
}

fn on(arguments: &OnArguments) -> Result<(), CliError> {
    let settings = arguments.settings()?;
    if arguments.detached {
        run_detached(settings, arguments)
    } else if arguments.foreground {
        log::start(arguments.log_level);
        let running = start(settings, &mut |note| tracing::warn!("{note}"))?;
        Ok(running.run(|| {})?)
    } else {
        detach::launch("filter", &log_name(&settings.interface))
    }
}

fn start(settings: FilterSettings, note: &mut dyn FnMut(&str)) -> Result<RunningFilter, CliError> {
    checks::rights()?;
    let signals = crate::running::Signals::catch()?;
    let control = checks::take_control_name(&control_name(&settings.interface), |pid| {
        CliError::AlreadyRunning {
            name: format!("a filter of {}", settings.interface),
            pid,
        }
    })?;
    Ok(RunningFilter::start(settings, control, signals, note)?)
}

/// The process that `filter on` has started, and waits for.
fn run_detached(settings: FilterSettings, arguments: &OnArguments) -> Result<(), CliError> {
    detach::begin();
    log::start(arguments.log_level);
    let log_name = log_name(&settings.interface);
    let started = start(settings, &mut |note| {
        tracing::warn!("{note}");
        detach::note(note);
    });
    let running = match started {
        Ok(running) => running,
        Err(error) => {
            detach::failed(&error);
            return Err(error);
        }
    };
    let log = detach::claim_log(&log_name).map_err(|e| CliError::failed("the log", e));
    let log = log.inspect_err(detach::failed)?;
    if !detach::stands()? {
        detach::remove_log(&log);
        return Err(CliError::Interrupted);
    }
    Ok(running.run(|| detach::remove_log(&log))?)
}

fn off(interface: Option<&InterfaceName>) -> Result<(), CliError> {
    let interface = only(interface)?;
    let told = |error| not_told(&interface, error);
    let mut connection = match Connection::open(&control_name(&interface)) {
        Err(ControlError::NotRunning) if left::take_away(&interface)? => return Ok(()),
        connection => connection.map_err(told)?,
    };
    connection.ask(Request::Down {}).map_err(told)?;
    connection.wait_for_end(END_WAIT_MAX).map_err(told)
}

fn status(interface: Option<&InterfaceName>, json: bool) -> Result<(), CliError> {
    if let Some(interface) = interface {
        let document = ask(interface)?;
        return match json {
            true => show::print_json(&document),
            false => output::text(&view::status(&read(document)?)),
        };
    }
    let mut documents = Vec::new();
    for interface in running()? {
        match ask(&interface) {
            Ok(document) => documents.push(document),
            // It ended between the list and the question.
            Err(CliError::NoFilter { .. }) => {}
            // Others are not to be hidden by one that has stayed and is not understood.
            Err(error @ CliError::Failed(_)) => output::note(&error.to_string()),
            Err(error) => return Err(error),
        }
    }
    if json {
        return show::print_json(&serde_json::Value::Array(documents));
    }
    if documents.is_empty() {
        return output::text("no receive filter runs in this network namespace\n");
    }
    let views: Result<Vec<_>, CliError> = documents
        .into_iter()
        .map(|document| Ok(view::status(&read(document)?)))
        .collect();
    output::text(&views?.join("\n"))
}

/// Those that have stayed without their process included.
fn running() -> Result<Vec<InterfaceName>, CliError> {
    let running = instance::running_filters();
    let mut running = running.map_err(|e| CliError::failed("/proc/net/unix", e))?;
    running.extend(left::interfaces(&running)?);
    running.sort();
    Ok(running)
}

/// The one that is meant where none need be named.
fn only(interface: Option<&InterfaceName>) -> Result<InterfaceName, CliError> {
    if let Some(interface) = interface {
        return Ok(interface.clone());
    }
    let mut running = running()?;
    match running.len() {
        1 => Ok(running.remove(0)),
        0 => Err(CliError::NoFilter {
            interface: "any interface".into(),
            running: Vec::new(),
            log: None,
        }),
        _ => {
            let names: Vec<_> = running.iter().map(InterfaceName::as_str).collect();
            Err(CliError::Usage(format!(
                "several filters run: name one of {}",
                names.join(", ")
            )))
        }
    }
}

/// The document as the filter wrote it: a newer one may have fields that this binary does not know.
fn ask(interface: &InterfaceName) -> Result<serde_json::Value, CliError> {
    match control::request(&control_name(interface), Request::Status {}) {
        Ok(Response::Status(document)) => Ok(document),
        Ok(other) => Err(CliError::NoAnswer {
            name: format!("the filter of {interface}"),
            reason: format!("an answer to something else: {other:?}"),
        }),
        Err(error) => match (&error, left::document(interface)?) {
            (ControlError::NotRunning, Some(document)) => {
                Ok(serde_json::to_value(document).expect("plain JSON"))
            }
            _ => Err(not_told(interface, error)),
        },
    }
}

fn read(document: serde_json::Value) -> Result<FilterDocument, CliError> {
    let name = document["interface"]
        .as_str()
        .unwrap_or("an interface")
        .to_owned();
    serde_json::from_value(document).map_err(|error| CliError::NoAnswer {
        name: format!("the filter of {name}"),
        reason: format!("its status is not understood: {error}"),
    })
}

fn not_told(interface: &InterfaceName, error: ControlError) -> CliError {
    match error {
        ControlError::NotRunning => CliError::NoFilter {
            interface: interface.to_string(),
            running: instance::running_filters()
                .unwrap_or_default()
                .iter()
                .map(ToString::to_string)
                .collect(),
            log: log_left(interface),
        },
        other => CliError::from_control(&format!("the filter of {interface}"), other),
    }
}

/// Of one that has ended without being asked to.
fn log_left(interface: &InterfaceName) -> Option<std::path::PathBuf> {
    let path = instance::log_path(&log_name(interface)).ok()?;
    path.exists().then_some(path)
}
