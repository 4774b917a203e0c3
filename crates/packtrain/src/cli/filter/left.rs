//! Filters that have stayed when their process ended: read from the program, and taken away.

use std::time::Duration;

use crate::cli::error::CliError;
use crate::cli::patience::Patience;
use crate::clock::Clock;
use crate::filter::document::{FilterDocument, policy_name};
use crate::linux::filter::standing::{self, Standing, StandingError};
use crate::linux::netlink::Netlink;
use crate::settings::values::InterfaceName;

fn failed(interface: &str) -> impl FnOnce(StandingError) -> CliError {
    let interface = interface.to_owned();
    move |error| CliError::Failed(format!("the filter of {interface}: {error}"))
}

fn find(ifindex: u32, interface: &str) -> Result<Option<Standing>, CliError> {
    Ok(find_any(ifindex, interface)?.filter(Standing::is_left))
}

/// Without rights to look there are none.
fn find_any(ifindex: u32, interface: &str) -> Result<Option<Standing>, CliError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    standing::find(ifindex).map_err(failed(interface))
}

/// Of a process that is just ending its socket goes before it does.
const ENDING: Duration = Duration::from_millis(300);

fn find_by_name(interface: &InterfaceName) -> Result<Option<Standing>, CliError> {
    let Some(link) = Netlink::open()?.link_by_name(interface.as_str())? else {
        return Ok(None);
    };
    let mut patience = Patience::of(ENDING);
    loop {
        let found = find_any(link.ifindex, interface.as_str())?;
        let Some(found) = found.filter(Standing::stays) else {
            return Ok(None);
        };
        if found.is_left() {
            return Ok(Some(found));
        }
        if !patience.wait() {
            return Ok(None);
        }
    }
}

/// Interfaces that have one, but for those whose filter runs.
pub fn interfaces(running: &[InterfaceName]) -> Result<Vec<InterfaceName>, CliError> {
    let mut left = Vec::new();
    for link in Netlink::open()?.links()? {
        let Ok(name) = link.name.parse::<InterfaceName>() else {
            continue;
        };
        if !running.contains(&name) && link.is_ethernet && find(link.ifindex, &link.name)?.is_some()
        {
            left.push(name);
        }
    }
    Ok(left)
}

/// Says whether there was one.
pub fn take_away(interface: &InterfaceName) -> Result<bool, CliError> {
    let Some(standing) = find_by_name(interface)? else {
        return Ok(false);
    };
    standing.take_away().map_err(failed(interface.as_str()))?;
    Ok(true)
}

/// As its process would tell it, as far as the program knows: which rule is which, it does not.
pub fn document(interface: &InterfaceName) -> Result<Option<FilterDocument>, CliError> {
    let Some(standing) = find_by_name(interface)? else {
        return Ok(None);
    };
    let told = standing.told().map_err(failed(interface.as_str()))?;
    let mut document = FilterDocument {
        interface: interface.to_string(),
        known_as: interface.to_string(),
        version: env!("CARGO_PKG_VERSION").into(),
        pid: None,
        time_ns: Clock::start().monotonic_nanos(),
        stays: true,
        filters_unicast: None,
        policy: policy_name(told.policy).into(),
        mode: standing.mode.as_str().into(),
        ports: if told.asks_ports { "auto" } else { "off" }.into(),
        dry_run: told.dry_run,
        watchdog_seconds: None,
        unconfirmed: None,
        confirm_seconds_left: None,
        line: None,
        local_prefixes: 0,
        local_prefixes_refused: 0,
        handled: Default::default(),
        useful: Default::default(),
        dropped: Default::default(),
        rules: Vec::new(),
        rules_version: 0,
        reasons: Default::default(),
    };
    let counters = standing.counters().map_err(failed(interface.as_str()))?;
    document.count(&counters);
    Ok(Some(document))
}
