//! What a file of rules may say besides: the options of `filter on`.

use std::time::Duration;

use packtrain_proto::filter::Policy;
use toml::de::DeValue;

use crate::filter::ModePolicy;
use crate::toml_reader::{Errors, Table, boolean, string, wrong_type};

/// Of what is `None` the file says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    pub policy: Option<Policy>,
    pub asks_ports: Option<bool>,
    pub mode: Option<ModePolicy>,
    pub dry_run: Option<bool>,
    /// `Some(None)`: it is not watched.
    pub watchdog: Option<Option<Duration>>,
}

pub const WATCHDOG_SECONDS: std::ops::RangeInclusive<u64> = 2..=3600;

/// `None`: off.
pub fn parse_watchdog(text: &str) -> Result<Option<Duration>, String> {
    if text == "off" {
        return Ok(None);
    }
    let seconds = text.strip_suffix('s').unwrap_or(text).parse();
    match seconds {
        Ok(seconds) if WATCHDOG_SECONDS.contains(&seconds) => {
            Ok(Some(Duration::from_secs(seconds)))
        }
        _ => Err("a time in seconds, 2 to 3600, or off".into()),
    }
}

pub(super) fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> FileOptions {
    let mut options = FileOptions::default();
    table.optional("policy", errors, &mut options.policy, |value| {
        one_of(
            value,
            "policy",
            &[
                ("host", Policy::Host),
                ("nima", Policy::Nima),
                ("none", Policy::None),
            ],
        )
    });
    table.optional("ports", errors, &mut options.asks_ports, |value| {
        one_of(value, "setting of ports", &[("auto", true), ("off", false)])
    });
    table.optional("mode", errors, &mut options.mode, |value| {
        one_of(
            value,
            "mode",
            &[
                ("auto", ModePolicy::Auto),
                ("native", ModePolicy::Native),
                ("generic", ModePolicy::Generic),
                ("tc", ModePolicy::Tc),
            ],
        )
    });
    table.optional("dry_run", errors, &mut options.dry_run, |value| {
        boolean(value).map(Some)
    });
    table.optional("watchdog", errors, &mut options.watchdog, |value| {
        let text = match value {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(seconds) => seconds.to_string(),
            other => return Err(wrong_type("a time as in \"10s\", or \"off\"", other)),
        };
        parse_watchdog(&text)
            .map(Some)
            .map_err(|expected| format!("{text:?} is no watchdog: {expected}"))
    });
    options
}

fn one_of<T: Copy>(
    value: &DeValue<'_>,
    what: &str,
    known: &[(&str, T)],
) -> Result<Option<T>, String> {
    let text = string(value)?;
    match known.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let (last, first) = names.split_last().expect("some are known");
            let names = format!("{} or {last}", first.join(", "));
            Err(format!("{text:?} is no {what}: {names}"))
        }
    }
}
