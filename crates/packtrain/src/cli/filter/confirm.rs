//! `packtrain filter confirm`, and how a command says that it is waited for.

use serde_json::json;

use super::arguments::ConfirmOption;
use super::{not_told, only};
use crate::cli::error::CliError;
use crate::cli::{output, show};
use crate::control::{self, Request, Response};
use crate::filter::control_name;
use crate::settings::values::InterfaceName;

pub fn confirm(interface: Option<&InterfaceName>, json: bool) -> Result<(), CliError> {
    let interface = only(interface)?;
    match control::request(&control_name(&interface), Request::FilterConfirm {}) {
        Ok(Response::Confirmed {
            unconfirmed,
            seconds_left,
        }) if json => show::print_json(&json!({
            "interface": interface.as_str(),
            "confirmed": unconfirmed,
            "seconds_left": seconds_left,
        })),
        Ok(Response::Confirmed { unconfirmed, .. }) => {
            output::text(&format!("{interface}: confirmed: {unconfirmed}\n"))
        }
        Ok(other) => Err(CliError::NoAnswer {
            name: format!("the filter of {interface}"),
            reason: format!("an answer to something else: {other:?}"),
        }),
        Err(error) => Err(not_told(&interface, error)),
    }
}

/// A change of rules, as it is asked for with this option.
pub fn tried(change: Request, option: ConfirmOption) -> Request {
    match option.confirm {
        None => change,
        Some(time) => Request::FilterTry {
            confirm_seconds: time.as_secs(),
            change: Box::new(change),
        },
    }
}

/// Of a change that was made, and is to be confirmed.
pub fn tell_how(interface: &InterfaceName, option: ConfirmOption) {
    if let Some(time) = option.confirm {
        let seconds = time.as_secs();
        output::note(&format!(
            "the rules are as before in {seconds} s, unless you say: packtrain filter confirm {interface}"
        ));
    }
}
