//! What is attached to a host's interface and wants frames that are not for the host: bridges, macvlans, captures, programs for one
//! EtherType, tunnels.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::outcome::Outcome;
use super::packets::{self, Kind, NUMBERS, PYTHON, while_sending};
use super::stage::{
    HOST, HOST_MAC, LINK, PEER, SOON, Stage, ping, pings, transfer, transfer_of, unexpected,
};
use super::{Application, Need};
use crate::lab::namespaces::{Namespace, run};
use crate::lab::{Result, wait_for, wire};

pub(super) const ALL: &[Application] = &[
    Application::new(
        "bridge",
        "a station behind a bridge of the host, and the host on that bridge",
        bridge,
    )
    .with_ports()
    .widens(&["handler", "promiscuous"]),
    Application::new(
        "macvlan",
        "a container with an Ethernet address of its own",
        macvlan,
    )
    .with_ports()
    .widens(&["handler", "promiscuous"]),
    Application::new(
        "capture",
        "tcpdump sees what others say to each other",
        capture,
    )
    .needs(&[Need::Program("tcpdump", "tcpdump")])
    .widens(&["capture", "promiscuous"]),
    Application::new(
        "mirror",
        "tc mirrors what comes in to another station",
        mirror,
    )
    .needs(&[Need::Program("tcpdump", "tcpdump")])
    .widens(&["ingress"]),
    Application::new(
        "duplicate",
        "nftables sends a copy of what comes in to another station",
        duplicate,
    )
    .needs(&[
        Need::Program("tcpdump", "tcpdump"),
        Need::Program("nft", "nftables"),
    ])
    .widens(&["ingress"]),
    Application::new("lldp", "a program that listens to LLDP", lldp).needs(&[PYTHON]),
    Application::new(
        "pppoe",
        "a program for PPPoE's discovery, and for its sessions",
        pppoe,
    )
    .needs(&[PYTHON]),
    Application::new(
        "wake-on-lan",
        "a program for its frames, to all and to others",
        wake_on_lan,
    )
    .needs(&[PYTHON])
    .widens(&["listener"]),
    Application::new(
        "foreign-protocol",
        "a program for an EtherType whose group nobody has joined",
        foreign_protocol,
    )
    .needs(&[PYTHON])
    .widens(&["listener"]),
    Application::new("vlan", "a VLAN interface on the host's", vlan)
        .needs(&[Need::Device("vlan")])
        .widens(&["vlan"]),
    Application::new("vxlan", "a VXLAN between two addresses", vxlan).with_ports(),
    Application::new(
        "vxlan-group",
        "a VXLAN that finds others by a group",
        vxlan_group,
    )
    .with_ports(),
    Application::new("wireguard", "WireGuard between two addresses", wireguard)
        .needs(&[
            Need::Program("wireguard-go", "wireguard-go"),
            Need::Program("wg", "wireguard-tools"),
        ])
        .with_ports(),
];

const BEHIND: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 40);
const MEBIBYTE: u64 = 1 << 20;

/// What the peer and a station with an address of its own have of each other.
fn each_other(stage: &Stage, behind: &Namespace) -> Result<Outcome> {
    let peer = &stage.peer.namespace;
    let at = |address: Ipv4Addr| SocketAddr::new(address.into(), 7200);
    wait_for("the station behind", SOON, || ping(peer, BEHIND.into()))?;
    Ok(Outcome::new()
        .wanted("pings", pings(peer, BEHIND.into(), 5), 5)
        .wanted("pings back", pings(behind, PEER.into(), 5), 5)
        .wanted(
            "IPv6",
            pings(peer, "fd07::40".parse().expect("an address"), 5),
            5,
        )
        .and(transfer(peer, behind, at(BEHIND), MEBIBYTE)?)
        .wanted(
            "whole back",
            transfer(behind, peer, at(PEER), MEBIBYTE)? == transfer_of(MEBIBYTE),
            true,
        ))
}

fn behind() -> Result<Namespace> {
    let behind = Namespace::create("apps")?;
    behind.sysctl("net/ipv6/conf/default/accept_dad", "0")?;
    behind.sysctl("net/ipv6/conf/all/accept_dad", "0")?;
    Ok(behind)
}

fn give_addresses(behind: &Namespace, interface: &str) -> Result<()> {
    behind.exec(["ip", "link", "set", interface, "up"])?;
    wire::add_address(behind, interface, &format!("{BEHIND}/24"))?;
    wire::add_address(behind, interface, "fd07::40/64")
}

fn bridge(stage: &Stage) -> Result<Outcome> {
    let host = &stage.host.namespace;
    let behind = behind()?;
    wire::veth((host, "inner"), (&behind, LINK))?;
    give_addresses(&behind, LINK)?;
    host.sh(&format!(
        "ip address flush dev {LINK} && ip link add br0 address {HOST_MAC} type bridge mcast_snooping 0 \
         && ip link set br0 up && ip link set {LINK} master br0 && ip link set inner master br0 \
         && ip address add {HOST}/24 dev br0 && ip address add fd07::1/64 dev br0 nodad"
    ))?;
    let outcome = each_other(stage, &behind)?;
    Ok(outcome.wanted(
        "the host, pings",
        pings(&stage.peer.namespace, HOST.into(), 5),
        5,
    ))
}

fn macvlan(stage: &Stage) -> Result<Outcome> {
    let host = &stage.host.namespace;
    let behind = behind()?;
    host.exec([
        "ip",
        "link",
        "add",
        "mv0",
        "link",
        LINK,
        "netns",
        behind.name(),
        "type",
        "macvlan",
        "mode",
        "bridge",
    ])?;
    give_addresses(&behind, "mv0")?;
    let outcome = each_other(stage, &behind)?;
    Ok(outcome.wanted(
        "the host, pings",
        pings(&stage.peer.namespace, HOST.into(), 5),
        5,
    ))
}

/// A station that no port of the switch has.
const NOBODY: [u8; 6] = [0x02, 0, 0x58, 0, 0, 1];
/// A group that nobody has joined.
const NO_GROUP: [u8; 6] = [0x09, 0, 0x2b, 1, 2, 3];
/// IEEE 802, for experiments.
const EXPERIMENT: u16 = 0x88b6;

/// How many of so many frames tcpdump had at `at`.
fn captured(at: &Namespace, more: &[&str], of: &str) -> Result<usize> {
    let count = (2 * NUMBERS).to_string();
    let words = [
        "timeout", "5", "tcpdump", "-i", LINK, "-n", "-l", "-q", "-e", "-c", &count,
    ];
    let said = at.try_exec([&words[..], more, &[of]].concat())?;
    Ok(String::from_utf8_lossy(&said.stdout).lines().count())
}

fn capture(stage: &Stage) -> Result<Outcome> {
    let host = &stage.host.namespace;
    let kinds = [NOBODY, NO_GROUP].map(|to| Kind {
        to,
        ether_type: EXPERIMENT,
    });
    let of = "ether proto 0x88b6";
    while_sending(&stage.third, &kinds, || {
        Ok(Outcome::new()
            .wanted("promiscuous", captured(host, &[], of)?, 2 * NUMBERS)
            // A veth brings what is for others as well.
            .wanted("not promiscuous", captured(host, &["-p"], of)?, 2 * NUMBERS)
            .wanted(
                "of one type",
                captured(host, &["-p"], "ether proto 0x88b6 and ether[0] & 1 = 1")?,
                2 * NUMBERS,
            ))
    })
}

fn mirror(stage: &Stage) -> Result<Outcome> {
    let rules = format!(
        "tc qdisc add dev {LINK} clsact \
         && tc filter add dev {LINK} ingress u32 match u32 0 0 action mirred egress mirror dev mirror"
    );
    watched(stage, &rules)
}

fn duplicate(stage: &Stage) -> Result<Outcome> {
    let rules = format!(
        "nft 'add table netdev watch; \
              add chain netdev watch each {{ type filter hook ingress device {LINK} priority 0; }}; \
              add rule netdev watch each dup to mirror'"
    );
    watched(stage, &rules)
}

/// What another station sees of all that comes in, by these rules of the host.
fn watched(stage: &Stage, rules: &str) -> Result<Outcome> {
    let host = &stage.host.namespace;
    let watcher = Namespace::create("apps")?;
    wire::veth((host, "mirror"), (&watcher, LINK))?;
    host.sh(rules)?;
    let kinds = [NOBODY, NO_GROUP].map(|to| Kind {
        to,
        ether_type: EXPERIMENT,
    });
    while_sending(&stage.third, &kinds, || {
        let seen = captured(&watcher, &[], "ether proto 0x88b6")?;
        Ok(Outcome::new().wanted("frames", seen, 2 * NUMBERS).wanted(
            "pings",
            pings(&stage.peer.namespace, HOST.into(), 3),
            3,
        ))
    })
}

fn lldp(stage: &Stage) -> Result<Outcome> {
    let to = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
    packets::taken(
        stage,
        Kind {
            to,
            ether_type: 0x88cc,
        },
    )
}

fn pppoe(stage: &Stage) -> Result<Outcome> {
    let discovery = Kind {
        to: [0xff; 6],
        ether_type: 0x8863,
    };
    let session = Kind {
        to: [0x02, 0, 0x0a, 0x07, 0, 0x01],
        ether_type: 0x8864,
    };
    Ok(packets::taken(stage, session)?
        .called("sessions")
        .and(packets::taken(stage, discovery)?))
}

fn wake_on_lan(stage: &Stage) -> Result<Outcome> {
    let to = |to| Kind {
        to,
        ether_type: 0x0842,
    };
    Ok(packets::taken(stage, to(NOBODY))?
        .called("to others")
        .and(packets::taken(stage, to([0xff; 6]))?))
}

fn foreign_protocol(stage: &Stage) -> Result<Outcome> {
    packets::taken(
        stage,
        Kind {
            to: NO_GROUP,
            ether_type: 0x88b7,
        },
    )
}

const TUNNEL_OF_HOST: &str = "10.17.0.1";
const TUNNEL_OF_PEER: &str = "10.17.0.2";

/// Two ends of something over the segment, by their interface.
fn tunnel(stage: &Stage, interface: &str) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let [of_host, of_peer] = [TUNNEL_OF_HOST, TUNNEL_OF_PEER]
        .map(|text| -> IpAddr { text.parse().expect("an address") });
    wait_for(&format!("an answer by {interface}"), SOON, || {
        ping(host, of_peer)
    })?;
    let there = transfer(host, peer, SocketAddr::new(of_peer, 7200), 4 * MEBIBYTE)?;
    let back = transfer(peer, host, SocketAddr::new(of_host, 7200), 4 * MEBIBYTE)?;
    Ok(Outcome::new()
        .wanted("pings", pings(host, of_peer, 5), 5)
        .wanted("pings back", pings(peer, of_host, 5), 5)
        .and(there)
        .wanted("whole back", back == transfer_of(4 * MEBIBYTE), true))
}

fn raise(stage: &Stage, add: impl Fn(Ipv4Addr, Ipv4Addr) -> String, interface: &str) -> Result<()> {
    let ends = [
        (&stage.host.namespace, HOST, PEER, TUNNEL_OF_HOST),
        (&stage.peer.namespace, PEER, HOST, TUNNEL_OF_PEER),
    ];
    for (at, own, other, inner) in ends {
        at.sh(&add(own, other))?;
        at.exec(["ip", "link", "set", interface, "up"])?;
        wire::add_address(at, interface, &format!("{inner}/24"))?;
    }
    Ok(())
}

fn vlan(stage: &Stage) -> Result<Outcome> {
    let add = |_, _| format!("ip link add link {LINK} name vlan5 type vlan id 5");
    raise(stage, add, "vlan5")?;
    tunnel(stage, "vlan5")
}

fn vxlan(stage: &Stage) -> Result<Outcome> {
    let add = |own, other| {
        format!(
            "ip link add vx0 type vxlan id 7 dstport 4789 dev {LINK} local {own} remote {other}"
        )
    };
    raise(stage, add, "vx0")?;
    tunnel(stage, "vx0")
}

fn vxlan_group(stage: &Stage) -> Result<Outcome> {
    let add = |own, _| {
        format!(
            "ip link add vx0 type vxlan id 7 dstport 4789 dev {LINK} local {own} group 239.7.7.1 ttl 4"
        )
    };
    raise(stage, add, "vx0")?;
    tunnel(stage, "vx0")
}

fn wireguard(stage: &Stage) -> Result<Outcome> {
    let pair = || -> Result<(String, String)> {
        let said = run(
            "sh",
            ["-c", "key=$(wg genkey); echo $key; echo $key | wg pubkey"],
        )?;
        let mut lines = said.lines().map(str::to_owned);
        match (lines.next(), lines.next()) {
            (Some(private), Some(public)) => Ok((private, public)),
            _ => Err(unexpected("wg", said)),
        }
    };
    let (of_host, of_peer) = (pair()?, pair()?);
    let start = |at: &Namespace, own: &str, other: &str, to: Ipv4Addr, inner: &str| {
        // Its control socket has a place of its own only in a /run of its own.
        at.spawn([
            "sh",
            "-c",
            &format!(
                "mount -t tmpfs tmpfs /run || exit 1
                 (
                     tries=0
                     until echo {own} | wg set wg0 private-key /dev/stdin listen-port 51820 \
                         peer {other} allowed-ips 10.17.0.0/24 endpoint {to}:51820 2>/dev/null; do
                         tries=$((tries + 1)); [ $tries -lt 100 ] || exit 1
                         sleep 0.05
                     done
                     ip address add {inner}/24 dev wg0 && ip link set wg0 up
                 ) >/dev/null 2>&1 &
                 LOG_LEVEL=error exec wireguard-go -f wg0 >/dev/null 2>&1"
            ),
        ])
    };
    let _host = start(
        &stage.host.namespace,
        &of_host.0,
        &of_peer.1,
        PEER,
        TUNNEL_OF_HOST,
    )?;
    let _peer = start(
        &stage.peer.namespace,
        &of_peer.0,
        &of_host.1,
        HOST,
        TUNNEL_OF_PEER,
    )?;
    wait_for("both ends", Duration::from_secs(10), || {
        [&stage.host.namespace, &stage.peer.namespace]
            .iter()
            .all(|at| {
                at.exec(["ip", "address", "show", "dev", "wg0", "up"])
                    .is_ok_and(|text| text.contains("10.17.0."))
            })
    })?;
    tunnel(stage, "wg0")
}
