//! Which address a host has where, and under which names others find it.
//!
//! | what | IPv4 | IPv6 |
//! |---|---|---|
//! | the n-th host: on `pt0`, or on `eth0` where it has no packtrain | 10.9.0.n/24 | fd00:9::n/64 |
//! | its interfaces in the d-th part of the network that switches and hubs join | 10.100.d.n/24 | – |
//!
//! A host's name is the first of these; `a.eth0` is its interface. Both count from 1 and 0 as the
//! topology lists them, so a topology always has the same addresses.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::lab::topology::{Host, Name, Topology};
use crate::linux::netlink::IpPrefix;

/// The virtual interface of each host that runs packtrain.
pub const LINE: &str = "pt0";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAddresses {
    pub host: Name,
    /// What its name stands for.
    pub main: Ipv4Addr,
    pub main_v6: Ipv6Addr,
    /// The interface that has them.
    pub main_interface: String,
    /// Of each wire's interface.
    pub links: Vec<(String, Ipv4Addr)>,
}

pub const PREFIX_V4: u8 = 24;
pub const PREFIX_V6: u8 = 64;

impl HostAddresses {
    /// What goes on an interface.
    pub fn of_interface(&self, interface: &str) -> Vec<IpPrefix> {
        let mut all = Vec::new();
        if interface == self.main_interface {
            all.push(prefix(self.main.into(), PREFIX_V4));
            all.push(prefix(self.main_v6.into(), PREFIX_V6));
        }
        let own = self.links.iter().find(|(name, _)| name == interface);
        all.extend(own.map(|&(_, address)| prefix(address.into(), PREFIX_V4)));
        all
    }
}

fn prefix(address: IpAddr, length: u8) -> IpPrefix {
    IpPrefix {
        address,
        prefix_len: length,
    }
}

/// Of all hosts, in the order of the topology.
pub fn assign(topology: &Topology) -> Vec<HostAddresses> {
    let parts = parts(topology);
    let of = |(index, host): (usize, &Host)| {
        let number = index as u8 + 1;
        let interfaces = topology
            .wires
            .iter()
            .zip(&parts)
            .filter_map(|(wire, &part)| {
                let end = wire.ends.iter().find(|end| end.node == host.name)?;
                let [high, low] = (part as u16).to_be_bytes();
                let address = Ipv4Addr::new(10, 100 + high, low, number);
                Some((end.interface.clone()?, address))
            });
        HostAddresses {
            host: host.name.clone(),
            main: Ipv4Addr::new(10, 9, 0, number),
            main_v6: Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, number.into()),
            main_interface: if host.packtrain { LINE } else { "eth0" }.to_owned(),
            links: interfaces.collect(),
        }
    };
    topology.hosts.iter().enumerate().map(of).collect()
}

/// Whether some wire of one host lies in the same part of the network as one of the other.
pub fn meet(a: &HostAddresses, b: &HostAddresses) -> bool {
    let part = |address: &Ipv4Addr| [address.octets()[1], address.octets()[2]];
    let of_b: Vec<[u8; 2]> = b.links.iter().map(|(_, address)| part(address)).collect();
    a.links
        .iter()
        .any(|(_, address)| of_b.contains(&part(address)))
}

/// For each wire the number of the part of the network in which it lies: wires at one switch, or at
/// switches that are joined, are in one.
fn parts(topology: &Topology) -> Vec<usize> {
    let mut part_of_node: BTreeMap<&Name, usize> = BTreeMap::new();
    for (index, node) in topology.nodes.iter().enumerate() {
        part_of_node.insert(&node.name, index);
    }
    // Until nothing changes: there are few switches.
    loop {
        let mut changed = false;
        for wire in &topology.wires {
            let ends = wire.ends.each_ref().map(|end| &end.node);
            let [Some(&a), Some(&b)] = ends.map(|node| part_of_node.get(node)) else {
                continue;
            };
            if a != b {
                part_of_node.insert(ends[0], a.min(b));
                part_of_node.insert(ends[1], a.min(b));
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    // Numbered anew, in the order of the wires.
    let mut numbers: Vec<Option<usize>> = Vec::new();
    let mut number_of =
        |part: Option<usize>| match numbers.iter().position(|p| part.is_some() && *p == part) {
            Some(known) => known,
            None => {
                numbers.push(part);
                numbers.len() - 1
            }
        };
    let part_of = |wire: &crate::lab::topology::Wire| {
        wire.ends
            .iter()
            .find_map(|end| part_of_node.get(&end.node).copied())
    };
    topology
        .wires
        .iter()
        .map(|wire| number_of(part_of(wire)))
        .collect()
}

/// `/etc/hosts` of every host of the lab.
pub fn hosts_file(addresses: &[HostAddresses]) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for host in addresses {
        let name = &host.host;
        let _ = writeln!(text, "{} {name}", host.main);
        let _ = writeln!(text, "{} {name}.ip6", host.main_v6);
        for (interface, address) in &host.links {
            let _ = writeln!(text, "{address} {name}.{interface}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::topology::ready;

    fn links_of(topology: &str) -> Vec<Vec<String>> {
        let hosts = assign(&ready::find(topology).unwrap());
        let text = |host: &HostAddresses| {
            let links = host.links.iter();
            links
                .map(|(name, address)| format!("{name} {address}"))
                .collect()
        };
        hosts.iter().map(text).collect()
    }

    #[test]
    fn each_cable_is_a_network_of_its_own_and_what_a_switch_joins_is_one() {
        assert_eq!(
            links_of("pair-2"),
            [
                ["eth0 10.100.0.1", "eth1 10.100.1.1"],
                ["eth0 10.100.0.2", "eth1 10.100.1.2"]
            ]
        );
        let star = links_of("star");
        assert!(star.iter().all(|links| links.len() == 1));
        assert!(
            star.iter()
                .all(|links| links[0].starts_with("eth0 10.100.0."))
        );
    }

    #[test]
    fn switches_that_are_joined_are_one_network() {
        assert!(
            links_of("dumbbell")
                .iter()
                .flatten()
                .all(|link| link.contains("10.100.0."))
        );
    }

    #[test]
    fn a_host_without_packtrain_has_its_name_on_its_first_interface() {
        let hosts = assign(&ready::find("mixed").unwrap());
        let plain = hosts
            .iter()
            .find(|host| host.main_interface == "eth0")
            .unwrap();
        let on_eth0: Vec<String> = plain
            .of_interface("eth0")
            .iter()
            .map(|p| p.address.to_string())
            .collect();
        assert_eq!(on_eth0, ["10.9.0.3", "fd00:9::3", "10.100.0.3"]);
        let line = hosts[0].of_interface(LINE);
        assert_eq!(line[0].address.to_string(), "10.9.0.1");
        assert_eq!(hosts[0].of_interface("eth0").len(), 1);
    }

    #[test]
    fn every_host_finds_every_other_by_name() {
        let text = hosts_file(&assign(&ready::find("pair-2").unwrap()));
        for line in ["10.9.0.2 b\n", "fd00:9::2 b.ip6\n", "10.100.1.2 b.eth1\n"] {
            assert!(text.contains(line), "{text}");
        }
    }
}
