//! What routers on the way say, and packets that are not like most: fragments, extension headers.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use super::outcome::Outcome;
use super::packets::{PYTHON, SCRIPT};
use super::stage::{
    AT_ONCE, FAR, FAR6, HOST, HOST6, PEER, PEER6, Stage, any_port, pings_of, socket_error,
    transfer, transfer_of, udp, unexpected,
};
use super::{Application, Need};
use crate::lab::namespaces::Namespace;
use crate::lab::stream::pattern;
use crate::lab::{Result, now};

pub(super) const ALL: &[Application] = &[
    Application::new(
        "traceroute",
        "the routers on the way to a network behind the peer, and back",
        traceroute,
    )
    .needs(&[Need::Program("traceroute", "traceroute")]),
    Application::new(
        "path-mtu",
        "TCP over a router to a network that takes only short packets, both ways",
        path_mtu,
    )
    .with_ports(),
    Application::new(
        "fragments",
        "large pings and datagrams, both ways",
        fragments,
    )
    .with_ports(),
    Application::new(
        "extension-headers",
        "datagrams behind extension headers of IPv6, and in fragments behind them",
        extension_headers,
    )
    .needs(&[PYTHON])
    .with_ports(),
];

/// The peer's, on that side.
const ROUTER6: Ipv6Addr = Ipv6Addr::new(0xfd08, 0, 0, 0, 0, 0, 0, 1);

/// A network behind the peer, and the host's way there.
fn behind_peer(stage: &Stage, mtu: u32) -> Result<Namespace> {
    let far = stage.network_behind(&stage.peer.namespace, mtu)?;
    stage.host.namespace.sh(&format!(
        "ip route add 10.8.0.0/24 via {PEER} && ip -6 route add fd08::/64 via {PEER6}"
    ))?;
    Ok(far)
}

fn traceroute(stage: &Stage) -> Result<Outcome> {
    let far = behind_peer(stage, 1500)?;
    let mut outcome = Outcome::new();
    let host = &stage.host.namespace;
    let ends: [(&str, &Namespace, [IpAddr; 2]); 4] = [
        ("IPv4 there", host, [PEER.into(), FAR.into()]),
        ("IPv6 there", host, [PEER6.into(), FAR6.into()]),
        ("IPv4 back", &far, [[10, 8, 0, 1].into(), HOST.into()]),
        ("IPv6 back", &far, [ROUTER6.into(), HOST6.into()]),
    ];
    for (way, from, hops) in ends {
        let [_, to] = hops;
        let right = hops.map(|hop| hop.to_string()).to_vec();
        let to = to.to_string();
        let words = [
            "traceroute",
            "-n",
            "-q",
            "1",
            "-N",
            "1",
            "-w",
            "2",
            "-m",
            "4",
            &to,
        ];
        let said = from.exec(words)?;
        let hops: Vec<String> = said
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().nth(1))
            .map(str::to_owned)
            .collect();
        outcome = outcome.wanted(way, hops, right);
    }
    Ok(outcome)
}

fn path_mtu(stage: &Stage) -> Result<Outcome> {
    const BYTES: u64 = 1 << 20;
    const MTU: u32 = 1300;
    let far = behind_peer(stage, MTU)?;
    let host = &stage.host.namespace;
    let mut outcome = Outcome::new();
    let ends: [(&str, IpAddr, IpAddr); 2] = [
        ("IPv4", FAR.into(), HOST.into()),
        ("IPv6", FAR6.into(), HOST6.into()),
    ];
    for (family, there, back) in ends {
        // It says of itself what it takes in one segment, and does not know of the router's other side: larger.
        far.sh("ip link set eth1 mtu 1500")?;
        let said = transfer(host, &far, SocketAddr::new(there, 7300), BYTES)?;
        far.sh(&format!("ip link set eth1 mtu {MTU}"))?;
        let route = host.exec(["ip", "route", "get", &there.to_string()])?;
        let mut words = route.split_whitespace();
        words.find(|&word| word == "mtu");
        let whole = transfer_of(BYTES).to_string();
        outcome = outcome
            .wanted(&format!("{family} there"), said.to_string(), whole.as_str())
            .wanted(
                &format!("{family}, learnt"),
                words.next().unwrap_or("nothing"),
                MTU.to_string(),
            )
            .wanted(
                &format!("{family} back"),
                transfer(&far, host, SocketAddr::new(back, 7300), BYTES)?.to_string(),
                whole.as_str(),
            );
    }
    Ok(outcome)
}

fn fragments(stage: &Stage) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let mut outcome = Outcome::new();
    let ends: [(&str, &Namespace, &Namespace, IpAddr); 4] = [
        ("IPv4 to the peer", host, peer, PEER.into()),
        ("IPv6 to the peer", host, peer, PEER6.into()),
        ("IPv4 to the host", peer, host, HOST.into()),
        ("IPv6 to the host", peer, host, HOST6.into()),
    ];
    for (way, from, to, address) in ends {
        let pings = pings_of(from, &address.to_string(), 5, 20_000);
        let receiver = udp(to, SocketAddr::new(address, 7500))?;
        let sender = udp(from, any_port(address))?;
        let mut right = 0;
        for number in 0..20 {
            let mut bytes = vec![0; 3000 * (number + 1)];
            pattern(number as u64, &mut bytes);
            let at = SocketAddr::new(address, 7500);
            let sent = sender.send_to(&bytes, at);
            sent.map_err(socket_error(&format!("to {at}")))?;
            right += u32::from(receives(&receiver, &bytes));
        }
        outcome = outcome.wanted(&format!("{way}, pings"), pings, 5).wanted(
            &format!("{way}, datagrams"),
            right,
            20,
        );
    }
    Ok(outcome)
}

/// Whether the next that comes is this.
fn receives(socket: &UdpSocket, wanted: &[u8]) -> bool {
    let mut buffer = vec![0; 1 << 16];
    let came = socket.recv(&mut buffer);
    came.is_ok_and(|len| &buffer[..len] == wanted)
}

fn extension_headers(stage: &Stage) -> Result<Outcome> {
    const EACH: usize = 5;
    const PORT: u16 = 7600;
    let receiver = udp(&stage.host.namespace, (HOST6, PORT).into())?;
    let words = [
        "extend",
        &HOST6.to_string(),
        &PORT.to_string(),
        &EACH.to_string(),
    ];
    let said = stage.python(&stage.peer.namespace, SCRIPT, &words)?;
    // By kind, the short ones and those in fragments.
    let mut came = [[0_usize; 2]; 3];
    let (mut buffer, begun) = (vec![0; 1 << 14], now());
    while begun.elapsed() < AT_ONCE && came.iter().flatten().sum::<usize>() < 6 * EACH {
        let Ok(len) = receiver.recv(&mut buffer) else {
            break;
        };
        let kind = usize::from(buffer[0]);
        if kind >= came.len() || len == 0 {
            return Err(unexpected("a sender", format!("a datagram of kind {kind}")));
        }
        came[kind][usize::from(len > 1000)] += 1;
    }
    let each = |kind: usize| came[kind].to_vec();
    Ok(said
        .wanted("hop-by-hop", each(0), vec![EACH; 2])
        .wanted("destination options", each(1), vec![EACH; 2])
        .wanted("both", each(2), vec![EACH; 2]))
}
