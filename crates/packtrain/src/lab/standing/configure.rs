//! What a host of a lab is given: room for long wires, addresses, and its line.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::addresses::{HostAddresses, LINE, meet};
use super::record::Record;
use crate::lab::host;
use crate::lab::namespaces::{self, Namespace};
use crate::lab::topology::Host;
use crate::lab::{Error, Result, now};
use crate::linux::netlink::Netlink;

/// Settings of the namespace, below /proc/sys/net.
const SETTINGS: &[(&str, &str)] = &[
    // 599 Mbit/s over 198 ms are 15 MB on the way, and twice that in a buffer.
    ("ipv4/tcp_rmem", "4096 131072 134217728"),
    ("ipv4/tcp_wmem", "4096 131072 134217728"),
    // What one experiment learned of a path is not the next one's.
    ("ipv4/tcp_no_metrics_save", "1"),
    // An interface answers for its own addresses alone: they lie on one segment, some of them.
    ("ipv4/conf/all/arp_ignore", "1"),
    ("ipv4/conf/all/arp_announce", "2"),
    ("ipv4/ping_group_range", "0 2147483647"),
    // Wires carry what hosts send, and nothing that a kernel says by itself.
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
    // An address can be used at once: the kernel looks for a second for somebody else who has it,
    // where either of these two says so.
    ("ipv6/conf/all/accept_dad", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
];

/// What interfaces that come later take over.
pub fn settings(namespace: &str) -> Result<()> {
    let inside = || -> Result<()> {
        let mut netlink = Netlink::open()?;
        if let Some(lo) = netlink.link_by_name("lo")? {
            netlink.set_up(lo.ifindex, true)?;
        }
        for &(key, value) in SETTINGS {
            set(key, value);
        }
        Ok(())
    };
    namespaces::enter(namespace, inside)?
}

/// The addresses of its wires' interfaces.
pub fn links(namespace: &str, host: &Host, addresses: &HostAddresses) -> Result<()> {
    let inside = || -> Result<()> {
        let mut netlink = Netlink::open()?;
        for (interface, _) in &addresses.links {
            if host.packtrain {
                // Its line has the IPv6 address.
                set(&format!("ipv6/conf/{interface}/disable_ipv6"), "1");
            }
            let link = netlink.link_by_name(interface)?;
            let link = link.ok_or_else(|| Error::Unexpected {
                program: "the emulator".to_owned(),
                text: format!("no {interface} in {namespace}"),
            })?;
            for prefix in addresses.of_interface(interface) {
                netlink.add_address(link.ifindex, prefix)?;
            }
        }
        Ok(())
    };
    namespaces::enter(namespace, inside)?
}

/// A kernel without IPv6, or without one of these, makes a lab as well.
fn set(key: &str, value: &str) {
    let _ = fs::write(Path::new("/proc/sys/net").join(key), value);
}

/// Starts a line on every host that is to have one, and waits until those that can have found each
/// other.
pub fn lines(
    record: &Record,
    addresses: &[HostAddresses],
    packtrain: &Path,
    at_most: Duration,
) -> Result<()> {
    let hosts = record.topology.hosts.iter().zip(addresses);
    let with_line: Vec<(host::Host, &Host, &HostAddresses)> = hosts
        .filter(|(host, _)| host.packtrain)
        .map(|(host, of)| {
            let namespace = Namespace::standing(&record.namespaces[&host.name]);
            (host::Host::new(namespace, packtrain), host, of)
        })
        .collect();
    std::thread::scope(|scope| {
        let starts: Vec<_> = with_line
            .iter()
            .map(|(line, host, of)| scope.spawn(|| start(line, host, of)))
            .collect();
        let mut results = starts
            .into_iter()
            .map(|start| start.join().expect("it has no reason to panic"));
        results.try_for_each(|result| result)
    })?;
    let end = now() + at_most;
    for (line, host, of) in &with_line {
        let others = with_line
            .iter()
            .filter(|(_, other, _)| other.name != host.name);
        let peers = others.filter(|(_, _, other)| meet(of, other)).count();
        if peers > 0 {
            line.wait_for_peers_within(LINE, peers, end.saturating_duration_since(now()))?;
        }
    }
    Ok(())
}

fn start(line: &host::Host, host: &Host, addresses: &HostAddresses) -> Result<()> {
    let of_line = addresses.of_interface(LINE);
    let of_line: Vec<String> = of_line.iter().map(ToString::to_string).collect();
    let links = addresses.links.iter();
    let links: Vec<&str> = links.map(|(interface, _)| interface.as_str()).collect();
    let more = of_line.iter().flat_map(|address| ["--address", address]);
    let more: Vec<&str> = more.chain(host.up.iter().map(String::as_str)).collect();
    line.up_over(LINE, &links, &more)
}
