//! What this machine has now on an interface.
//!
//! Of what the filter's program looks up, this is what anybody may read. Not read: addresses that the interface
//! takes besides its own, proxied neighbours, and who else wants frames.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::filter::{Host, Interface};
use packtrain_proto::wire::ethernet::MacAddr;

use crate::cli::error::CliError;
use crate::cli::output;
use crate::clock::Clock;
use crate::control::ANSWER_WAIT_MAX;
use crate::filter::line_above::LineSearch;
use crate::instance;
use crate::linux::netlink::{Link, LocalRoutes, Netlink};
use crate::settings::values::InterfaceName;

/// Of the thread's network namespace, as netlink's answers are.
const GROUPS: &str = "/proc/thread-self/net/dev_mcast";
const NEIGHBOURS: &str = "/proc/thread-self/net/arp";
/// `ATF_COM`: its Ethernet address is known.
const COMPLETE: u32 = 0x02;

/// The interface that is meant, and its host.
pub fn of_this_machine(interface: Option<&InterfaceName>) -> Result<(String, Host), CliError> {
    let mut netlink = Netlink::open()?;
    let link = match interface {
        Some(name) => named(&mut netlink, name.as_str())?,
        None => only(netlink.links()?)?,
    };
    if link.promiscuity > 0 {
        output::note(&format!(
            "{} is promiscuous: what a filter would drop there passes as long as it is",
            link.name
        ));
    }
    let host = Host {
        interface: interface_of(&mut netlink, &link)?,
        line: line_of(&mut netlink, &link)?,
        local: local_prefixes()?,
        ..Host::default()
    };
    Ok((link.name, host))
}

fn named(netlink: &mut Netlink, name: &str) -> Result<Link, CliError> {
    let link = netlink.link_by_name(name)?;
    let link = link.ok_or_else(|| CliError::InterfaceMissing(name.into()))?;
    match link.is_ethernet {
        true => Ok(link),
        false => Err(CliError::NotEthernet(name.into())),
    }
}

/// The loopback interface is no Ethernet.
fn only(links: Vec<Link>) -> Result<Link, CliError> {
    let mut links: Vec<Link> = links
        .into_iter()
        .filter(|link| link.is_ethernet && link.up)
        .collect();
    match links.len() {
        1 => Ok(links.remove(0)),
        0 => Err(CliError::Usage(
            "no Ethernet interface is up: name one by --interface, or describe a host by --as"
                .into(),
        )),
        _ => {
            let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
            Err(CliError::Usage(format!(
                "several Ethernet interfaces are up: name one of {} by --interface",
                names.join(", ")
            )))
        }
    }
}

fn interface_of(netlink: &mut Netlink, link: &Link) -> Result<Interface, CliError> {
    let addresses = netlink.addresses(link.ifindex)?;
    let sets = |setting: &str| is_set(&link.name, setting);
    let either = |setting: &str| is_set("all", setting) || sets(setting);
    Ok(Interface {
        unicast: vec![link.address],
        groups: groups(&read(GROUPS)?, link.ifindex),
        addresses: addresses.iter().map(|a| a.prefix.address).collect(),
        neighbours: neighbours(&read(NEIGHBOURS)?, &link.name),
        learns_from_announcements: either("arp_accept"),
        answers_for_others: sets("forwarding") && (either("proxy_arp") || sets("proxy_arp_pvlan")),
        ..Interface::default()
    })
}

/// `pt0`, where the interface is a member link of it: what is there is this host's too.
fn line_of(netlink: &mut Netlink, link: &Link) -> Result<Option<Interface>, CliError> {
    let clock = Clock::start();
    let mut search = LineSearch::new(link.ifindex);
    search.ask(&instance::running().unwrap_or_default(), clock.now());
    let heard = search.wait(&clock, ANSWER_WAIT_MAX);
    heard.map_err(|error| CliError::failed("waiting", error))?;
    let Some(line) = search.line() else {
        return Ok(None);
    };
    match netlink.link(line.ifindex)? {
        Some(link) => interface_of(netlink, &link).map(Some),
        None => Ok(None),
    }
}

fn local_prefixes() -> Result<Vec<Prefix>, CliError> {
    let mut routes = LocalRoutes::open().map_err(|error| CliError::failed("netlink", error))?;
    let routes = routes.read()?.into_iter().map(|route| {
        let text = format!("{}/{}", route.address, route.len);
        text.parse()
            .map_err(|error| CliError::failed("the local routes", error))
    });
    routes.collect()
}

fn read(path: &str) -> Result<String, CliError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        // A kernel without IPv4 has no neighbours.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(CliError::failed(path, error)),
    }
}

fn is_set(interface: &str, setting: &str) -> bool {
    let path = format!("/proc/sys/net/ipv4/conf/{interface}/{setting}");
    fs::read_to_string(path).is_ok_and(|value| value.trim() != "0")
}

/// A line of `dev_mcast` is the interface's number and name, two counts of users, and the address.
fn groups(table: &str, ifindex: u32) -> Vec<MacAddr> {
    let group = |line: &str| {
        let mut words = line.split_whitespace();
        let is_of_it = words.next()?.parse() == Ok(ifindex);
        let address = words.nth(3).filter(|address| address.len() == 12)?;
        let number = u64::from_str_radix(address, 16).ok().filter(|_| is_of_it)?;
        Some(MacAddr::from_slice(&number.to_be_bytes()[2..]))
    };
    table.lines().filter_map(group).collect()
}

/// A line of `arp` is the address, a type, flags, the Ethernet address, a mask, and the interface.
fn neighbours(table: &str, interface: &str) -> Vec<Ipv4Addr> {
    let neighbour = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, flags, _, _, of] = words[..] else {
            return None;
        };
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        match flags & COMPLETE != 0 && of == interface {
            true => address.parse().ok(),
            false => None,
        }
    };
    table.lines().filter_map(neighbour).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::test_namespace::{in_namespace, ip};

    #[test]
    fn groups_are_those_of_the_interface() {
        let table = "\
2    ifb0            1     0     333300000001
4    eth0            1     0     01005e000001
4    eth0            2     0     3333ff00abcd
4    ib0             1     0     00ffffffff12401bffff00000000000000000001
";
        let shown = |ifindex| {
            let groups = groups(table, ifindex);
            groups.iter().map(MacAddr::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shown(4), ["01:00:5e:00:00:01", "33:33:ff:00:ab:cd"]);
        assert_eq!(shown(2), ["33:33:00:00:00:01"]);
        assert!(shown(1).is_empty());
    }

    #[test]
    fn neighbours_are_those_that_are_known_on_the_interface() {
        let table = "\
IP address       HW type     Flags       HW address            Mask     Device
10.1.0.254       0x1         0x2         00:1b:21:09:09:09     *        eth0
10.1.0.253       0x1         0x6         00:1b:21:09:09:08     *        eth0
10.1.0.9         0x1         0x0         00:00:00:00:00:00     *        eth0
10.2.0.254       0x1         0x2         00:1b:21:09:09:07     *        eth1
";
        let expected = [254, 253].map(|last| Ipv4Addr::new(10, 1, 0, last));
        assert_eq!(neighbours(table, "eth0"), expected);
    }

    #[test]
    fn an_interface_is_read_as_it_is() {
        in_namespace(|| {
            ip("link add eth0 address 52:54:00:00:00:01 type veth peer name far");
            ip("link set eth0 up");
            ip("address add 10.1.0.1/24 dev eth0");
            ip("address add fd00:1::1/64 dev eth0 nodad");
            ip("address add 192.0.2.7/32 dev lo");
            ip("neighbour add 10.1.0.254 lladdr 00:1b:21:09:09:09 dev eth0");
            ip("maddress add 01:00:5e:00:00:fb dev eth0");
            let (name, host) = of_this_machine(None).unwrap();
            assert_eq!(name, "eth0");
            let interface = &host.interface;
            assert_eq!(interface.unicast, ["52:54:00:00:00:01".parse().unwrap()]);
            for group in [
                "01:00:5e:00:00:01",
                "33:33:ff:00:00:01",
                "01:00:5e:00:00:fb",
            ] {
                assert!(
                    interface.groups.contains(&group.parse().unwrap()),
                    "{group}"
                );
            }
            for address in ["10.1.0.1", "fd00:1::1"] {
                assert!(interface.addresses.contains(&address.parse().unwrap()));
            }
            assert_eq!(interface.neighbours, [Ipv4Addr::new(10, 1, 0, 254)]);
            assert!(!interface.learns_from_announcements && !interface.answers_for_others);
            for local in ["10.1.0.1", "192.0.2.7", "127.0.0.0/8"] {
                assert!(host.local.contains(&local.parse().unwrap()), "{local}");
            }
            assert_eq!(host.line, None);
        });
    }

    #[test]
    fn which_interface_is_meant_has_to_be_said_where_there_is_not_one() {
        in_namespace(|| {
            let refused = |interface: Option<&str>| {
                let interface = interface.map(|name| name.parse().unwrap());
                let error = of_this_machine(interface.as_ref()).unwrap_err();
                (error.exit_code(), error.to_string())
            };
            let none =
                "no Ethernet interface is up: name one by --interface, or describe a host by --as";
            assert_eq!(refused(None), (2, none.into()));
            ip("link add eth0 type veth peer name eth1");
            ip("link set eth0 up");
            assert_eq!(of_this_machine(None).unwrap().0, "eth0");
            ip("link set eth1 up");
            let (code, error) = refused(None);
            assert_eq!(code, 2);
            let begins = "several Ethernet interfaces are up: name one of ";
            assert!(error.starts_with(begins), "{error}");
            assert!(error.contains("eth0") && error.contains("eth1"), "{error}");
            assert!(error.ends_with(" by --interface"), "{error}");
            let missing = refused(Some("eth7"));
            assert_eq!(missing, (4, "no such interface: eth7".into()));
            let loopback = refused(Some("lo"));
            assert_eq!(loopback, (4, "lo is not an Ethernet interface".into()));
        });
    }
}
