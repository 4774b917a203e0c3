//! What must hold before anything on the host is touched; each failure says exactly what.

use std::fs;

use crate::cli::error::CliError;
use crate::cli::patience::{GOING_WAIT_MAX, Patience};
use crate::control::{self, BindError, Connection, ControlError, ControlServer, Request, Response};
use crate::instance;
use crate::linux::netlink::{Link, Netlink};
use crate::settings::links::MemberLink;
use crate::settings::values::InterfaceName;
use crate::settings::{LINK_MTU_MIN, Settings};
use crate::status::StatusDocument;

/// Bits of `include/uapi/linux/capability.h`.
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;

/// What a line does not work without: interfaces, packet sockets, programs on the links.
pub fn rights() -> Result<(), CliError> {
    let status = fs::read_to_string("/proc/thread-self/status")
        .map_err(|e| CliError::failed("/proc/thread-self/status", e))?;
    let missing = missing_capabilities(&status);
    if missing.is_empty() {
        Ok(())
    } else {
        Err(CliError::NoRights(missing))
    }
}

fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    let has = |bit: u32| effective & (1 << bit) != 0;
    let mut missing = Vec::new();
    if !has(CAP_NET_ADMIN) {
        missing.push("CAP_NET_ADMIN");
    }
    if !has(CAP_NET_RAW) {
        missing.push("CAP_NET_RAW");
    }
    // Before CAP_BPF there was CAP_SYS_ADMIN, which still stands for it (capabilities(7)).
    if !has(CAP_BPF) && !has(CAP_SYS_ADMIN) {
        missing.push("CAP_BPF");
    }
    missing
}

/// Takes the control socket, which only one line of a name can have. One that nobody answers at
/// belongs to a process that is going, and is waited for.
pub fn take_name(name: &InterfaceName) -> Result<ControlServer, CliError> {
    take_control_name(name.as_str(), |pid| CliError::AlreadyRunning {
        name: name.to_string(),
        pid,
    })
}

/// The same, of whatever has one. `taken` is told by which process, as in " (pid 7)".
pub fn take_control_name(
    name: &str,
    taken: impl Fn(String) -> CliError,
) -> Result<ControlServer, CliError> {
    let mut patience = Patience::of(GOING_WAIT_MAX);
    loop {
        match ControlServer::bind(name) {
            Ok(server) => return Ok(server),
            Err(BindError::Io(error)) => return Err(CliError::failed("control socket", error)),
            Err(BindError::InUse(_)) => {}
        }
        return Err(taken(match ask_pid(name) {
            Err(ControlError::NotRunning) if patience.wait() => continue,
            Ok(pid) => format!(" (pid {pid})"),
            Err(_) => String::new(),
        }));
    }
}

/// Of who holds the name, once it has answered.
fn ask_pid(name: &str) -> Result<i32, ControlError> {
    let mut connection = Connection::open(name)?;
    connection.ask(Request::Status {})?;
    Ok(connection.server_pid())
}

/// No interface has the name that the line is to have.
pub fn name_is_free(name: &InterfaceName) -> Result<(), CliError> {
    match Netlink::open()?.link_by_name(name.as_str())? {
        None => Ok(()),
        Some(link) => {
            let kind = link.kind.map_or(String::new(), |kind| format!(" ({kind})"));
            Err(CliError::NameTaken {
                name: name.to_string(),
                kind,
            })
        }
    }
}

/// The links can be used, as far as they exist; what a person should know of them is noted.
pub fn links(settings: &Settings, note: &mut dyn FnMut(&str)) -> Result<(), CliError> {
    let mut netlink = Netlink::open()?;
    let mut present = Vec::new();
    let mut absent = Vec::new();
    for MemberLink { name, .. } in &settings.links {
        match netlink.link_by_name(name.as_str())? {
            Some(link) => present.push(link),
            None => absent.push(name.to_string()),
        }
    }
    if present.is_empty() && !settings.wait_links {
        return Err(CliError::NoSuchInterface(absent));
    }
    for link in &present {
        usable(link)?;
    }
    in_no_other_line(&present, &settings.name)?;
    for name in &absent {
        note(&absent_yet(name));
    }
    for link in present.iter().filter(|link| !link.up) {
        note(&set_down(&link.name));
    }
    for link in &present {
        note_own_addresses(&mut netlink, link, &settings.name, note)?;
    }
    Ok(())
}

pub fn absent_yet(name: &str) -> String {
    format!("{name} does not exist yet: it joins when it appears")
}

pub fn set_down(name: &str) -> String {
    format!("{name} is set down: it joins when it is set up (ip link set {name} up)")
}

pub fn usable(link: &Link) -> Result<(), CliError> {
    // A loopback's frames go nowhere; whatever else is no Ethernet has no MAC addresses.
    if !link.is_ethernet {
        return Err(CliError::NotEthernet(link.name.clone()));
    }
    if link.mtu < LINK_MTU_MIN {
        return Err(CliError::LinkMtuTooSmall {
            link: link.name.clone(),
            mtu: link.mtu,
        });
    }
    Ok(())
}

/// By index, because a link keeps it when it is renamed.
pub fn in_no_other_line(links: &[Link], own: &InterfaceName) -> Result<(), CliError> {
    let running = instance::running().map_err(|e| CliError::failed("/proc/net/unix", e))?;
    for line in running.iter().filter(|&line| line != own) {
        // One that does not answer is going, or is not ours to judge.
        let Ok(Response::Status(document)) = control::request(line.as_str(), Request::Status {})
        else {
            continue;
        };
        let Ok(document) = serde_json::from_value::<StatusDocument>(document) else {
            continue;
        };
        let line = line.to_string();
        if let Some(link) = links.iter().find(|l| l.ifindex == document.ifindex) {
            return Err(CliError::InterfaceInLine {
                link: link.name.clone(),
                line,
            });
        }
        let taken = |link: &&Link| {
            document
                .links
                .iter()
                .any(|l| l.ifindex == Some(link.ifindex))
        };
        if let Some(link) = links.iter().find(taken) {
            return Err(CliError::InterfaceInLine {
                link: link.name.clone(),
                line,
            });
        }
    }
    Ok(())
}

pub fn note_own_addresses(
    netlink: &mut Netlink,
    link: &Link,
    line: &InterfaceName,
    note: &mut dyn FnMut(&str),
) -> Result<(), CliError> {
    let own = netlink.addresses(link.ifindex)?;
    // Every interface has a link-local address; it says nothing.
    let own: Vec<String> = own
        .iter()
        .filter(|a| !a.link_scope)
        .map(|a| a.prefix.to_string())
        .collect();
    if !own.is_empty() {
        let (name, list) = (&link.name, own.join(", "));
        note(&format!(
            "{name} has an address of its own ({list}): it goes on working on {name}, beside the \
             line; {line} does not take it over"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(effective: u64) -> Vec<&'static str> {
        missing_capabilities(&format!(
            "Name:\tx\nCapPrm:\t0\nCapEff:\t{effective:016x}\n"
        ))
    }

    #[test]
    fn missing_capabilities_are_named_and_sys_admin_stands_for_bpf() {
        let network = 1 << CAP_NET_ADMIN | 1 << CAP_NET_RAW;
        assert!(missing(network | 1 << CAP_BPF).is_empty());
        assert!(missing(network | 1 << CAP_SYS_ADMIN).is_empty());
        assert_eq!(missing(network), ["CAP_BPF"]);
        assert_eq!(missing(0), ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF"]);
        assert_eq!(missing_capabilities("nothing of the kind").len(), 3);
    }
}
