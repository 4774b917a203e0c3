//! `packtrain status`, `packtrain link list` and `packtrain peer list`: ask, and print.

use serde_json::Value;

use super::error::CliError;
use super::{output, view};
use crate::control::{self, Request, Response};
use crate::instance;
use crate::settings::values::InterfaceName;
use crate::status::StatusDocument;

pub fn status(name: Option<&InterfaceName>, json: bool) -> Result<(), CliError> {
    if let Some(name) = name {
        let document = ask(name)?;
        return if json {
            print_json(&document)
        } else {
            output::text(&view::line(&read(document)?))
        };
    }
    let running = instance::running().map_err(|e| CliError::failed("/proc/net/unix", e))?;
    let mut documents = Vec::new();
    for name in &running {
        match ask(name) {
            Ok(document) => documents.push(document),
            // It ended between the list and the question.
            Err(CliError::NotRunning { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if json {
        return print_json(&Value::Array(documents));
    }
    if documents.is_empty() {
        return output::text("no line runs in this network namespace\n");
    }
    let views: Result<Vec<String>, CliError> = documents
        .into_iter()
        .map(|d| Ok(view::line(&read(d)?)))
        .collect();
    output::text(&views?.join("\n"))
}

pub fn link_list(name: &InterfaceName, json: bool) -> Result<(), CliError> {
    let document = ask(name)?;
    if json {
        return print_json(&document["links"]);
    }
    output::text(&view::link_table(&read(document)?))
}

/// Of the line of this name, or of the only one.
pub fn class_list(name: Option<&InterfaceName>, json: bool) -> Result<(), CliError> {
    let document = ask(&only_line(name)?)?;
    if json {
        return print_json(&document["classes"]);
    }
    output::text(&view::class_table(&read(document)?))
}

/// All that a line says of itself.
pub(super) fn document(name: &InterfaceName) -> Result<StatusDocument, CliError> {
    read(ask(name)?)
}

/// The line that is meant where none need be named.
pub(super) fn only_line(name: Option<&InterfaceName>) -> Result<InterfaceName, CliError> {
    if let Some(name) = name {
        return Ok(name.clone());
    }
    let mut running = instance::running().map_err(|e| CliError::failed("/proc/net/unix", e))?;
    match running.len() {
        1 => Ok(running.remove(0)),
        0 => Err(CliError::NotRunning {
            name: "a line".into(),
            running: Vec::new(),
        }),
        _ => {
            let names: Vec<&str> = running.iter().map(InterfaceName::as_str).collect();
            let names = names.join(", ");
            Err(CliError::Usage(format!(
                "several lines run: name one of {names}"
            )))
        }
    }
}

pub fn peer_list(name: &InterfaceName, json: bool) -> Result<(), CliError> {
    let document = ask(name)?;
    if json {
        return print_json(&document["peers"]);
    }
    output::text(&view::peer_table(&read(document)?))
}

/// The document as the line wrote it: a newer one may have fields that this binary does not know.
pub(super) fn ask(name: &InterfaceName) -> Result<Value, CliError> {
    match control::request(name.as_str(), Request::Status {}) {
        Ok(Response::Status(document)) => Ok(document),
        Ok(other) => Err(CliError::NoAnswer {
            name: name.to_string(),
            reason: format!("an answer to something else: {other:?}"),
        }),
        Err(error) => Err(CliError::from_control(name.as_str(), error)),
    }
}

fn read(document: Value) -> Result<StatusDocument, CliError> {
    let name = document["name"].as_str().unwrap_or("a line").to_owned();
    let version = document["version"].as_str().unwrap_or("unknown").to_owned();
    serde_json::from_value(document).map_err(|error| CliError::NoAnswer {
        name,
        reason: format!("the line runs version {version}, whose status is not understood: {error}"),
    })
}

pub(super) fn print_json(value: &Value) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).expect("a value has text keys");
    output::raw(format!("{text}\n").as_bytes())
}
