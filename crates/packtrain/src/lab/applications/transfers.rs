//! Bytes and datagrams from program to program, both ways.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use super::outcome::Outcome;
use super::stage::{
    AT_ONCE, HOST, HOST6, LINK, PEER, PEER6, Stage, any_port, pings, pings_of, socket_error,
    transfer, transfer_of, udp,
};
use super::{Application, Need};
use crate::lab::namespaces::Namespace;
use crate::lab::stream::{self, Amount, Protocol, pattern};
use crate::lab::{Result, now, pause, wire};

pub(super) const ALL: &[Application] = &[
    Application::new(
        "ping",
        "pings, small and large, IPv4 and IPv6, both ways",
        ping,
    )
    .with_ports(),
    Application::new("tcp", "one flow each way, IPv4 and IPv6", tcp).with_ports(),
    Application::new(
        "udp",
        "numbered datagrams each way, IPv4 and IPv6",
        udp_both_ways,
    )
    .with_ports(),
    Application::new(
        "jumbo",
        "a segment whose frames come to take 9000 bytes",
        jumbo,
    )
    .with_ports(),
    Application::new("mptcp", "a connection over two pairs of addresses", mptcp).with_ports(),
    Application::new(
        "sockets",
        "sockets of both families at once, of any address, and of one",
        sockets,
    )
    .with_ports(),
    Application::new(
        "redirect",
        "a port that the firewall redirects to another one",
        redirect,
    )
    .needs(&[Need::Program("nft", "nftables")])
    .with_ports(),
    // With --ports auto nobody is told, as is said there.
    Application::new(
        "refused",
        "who asks for a port that nobody has is told at once",
        refused,
    ),
];

fn ends(stage: &Stage) -> [(&'static str, &Namespace, &Namespace, IpAddr, IpAddr); 2] {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    [
        ("to the peer", host, peer, PEER.into(), PEER6.into()),
        ("to the host", peer, host, HOST.into(), HOST6.into()),
    ]
}

fn ping(stage: &Stage) -> Result<Outcome> {
    let mut outcome = Outcome::new();
    for (way, from, _, v4, v6) in ends(stage) {
        let counts: u32 = [v4, v6]
            .into_iter()
            .flat_map(|to| [56, 1452].map(|bytes| pings_of(from, &to.to_string(), 10, bytes)))
            .sum();
        outcome = outcome.wanted(way, counts, 40).wanted(
            &format!("{way}, at once"),
            pings(from, v4, 1),
            1,
        );
    }
    Ok(outcome)
}

fn tcp(stage: &Stage) -> Result<Outcome> {
    const BYTES: u64 = 16 << 20;
    let mut outcome = Outcome::new();
    for (way, from, to, v4, v6) in ends(stage) {
        for (family, address) in [("IPv4", v4), ("IPv6", v6)] {
            let at = SocketAddr::new(address, 7300);
            outcome = outcome.wanted(
                &format!("{family} {way}"),
                transfer(from, to, at, BYTES)?.to_string(),
                transfer_of(BYTES).to_string(),
            );
        }
    }
    Ok(outcome)
}

fn udp_both_ways(stage: &Stage) -> Result<Outcome> {
    let mut outcome = Outcome::new();
    for (way, from, to, v4, v6) in ends(stage) {
        for (family, address) in [("IPv4", v4), ("IPv6", v6)] {
            let receiver = udp(to, SocketAddr::new(address, 7400))?;
            let sender = udp(from, any_port(address))?;
            let right = datagrams(&sender, &receiver, SocketAddr::new(address, 7400))?;
            outcome = outcome.wanted(&format!("{family} {way}"), right, 1000);
        }
    }
    Ok(outcome)
}

/// How many of them came, each as it was sent and in order.
fn datagrams(sender: &UdpSocket, receiver: &UdpSocket, at: SocketAddr) -> Result<u32> {
    const COUNT: u32 = 1000;
    const BYTES: usize = 1000;
    /// So many, and then what came is read: no buffer is full meanwhile.
    const AT_ONCE: u32 = 20;
    let (mut bytes, mut buffer, mut right) = ([0; BYTES], [0; 2 * BYTES], 0);
    for begun in (0..COUNT).step_by(AT_ONCE as usize) {
        let numbers = begun..begun + AT_ONCE;
        for number in numbers.clone() {
            pattern(u64::from(number) * BYTES as u64, &mut bytes);
            let sent = sender.send_to(&bytes, at);
            sent.map_err(socket_error(&format!("to {at}")))?;
        }
        for number in numbers {
            let Ok(len) = receiver.recv(&mut buffer) else {
                return Ok(right);
            };
            pattern(u64::from(number) * BYTES as u64, &mut bytes);
            right += u32::from(buffer[..len] == bytes);
        }
    }
    Ok(right)
}

fn jumbo(stage: &Stage) -> Result<Outcome> {
    const MTU: u32 = 9000;
    const BYTES: u64 = 16 << 20;
    for port in [
        "to-host",
        "to-peer",
        "to-third",
        "port",
        "strangers",
        "switch",
    ] {
        wire::set_mtu(&stage.switch, port, MTU)?;
    }
    for host in [&stage.host.namespace, &stage.peer.namespace] {
        wire::set_mtu(host, LINK, MTU)?;
    }
    let mut outcome = Outcome::new();
    for (way, from, to, v4, v6) in ends(stage) {
        let large = [v4, v6].map(|to| pings_of(from, &to.to_string(), 5, 8952));
        let said = transfer(from, to, SocketAddr::new(v4, 7300), BYTES)?;
        outcome = outcome
            .wanted(&format!("{way}, pings"), large.to_vec(), vec![5; 2])
            .and(said.called(way));
    }
    Ok(outcome)
}

fn mptcp(stage: &Stage) -> Result<Outcome> {
    const BYTES: u64 = 64 << 20;
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    for (at, address, kind) in [
        (host, "10.7.0.61", "subflow"),
        (peer, "10.7.0.62", "signal"),
    ] {
        wire::add_address(at, LINK, &format!("{address}/24"))?;
        at.sh(&format!(
            "ip mptcp limits set subflow 4 add_addr_accepted 4 && ip mptcp endpoint add {address} dev {LINK} {kind}"
        ))?;
    }
    let at = SocketAddr::new(PEER.into(), 7300);
    let said = stream::transfer(host, peer, at, Amount::Bytes(BYTES), Protocol::Mptcp, now())?;
    let joined = wire::mptcp_counter(peer, "MPJoinAckRx")?;
    Ok(Outcome::new()
        .wanted("bytes", said.right_bytes, BYTES)
        .wanted("whole", said.is_whole(), true)
        // How many of the pairs, the time of the transfer decides.
        .wanted("joined", joined > 0, true))
}

fn sockets(stage: &Stage) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let any6: IpAddr = Ipv6Addr::UNSPECIFIED.into();
    let any: IpAddr = Ipv4Addr::UNSPECIFIED.into();
    // Where a server listens, and by which address it is asked.
    let pairs: [(&str, IpAddr, IpAddr); 6] = [
        ("both families, by IPv4", any6, HOST.into()),
        ("both families, by IPv6", any6, HOST6.into()),
        ("any, by IPv4", any, HOST.into()),
        ("one, by IPv4", HOST.into(), HOST.into()),
        ("one, by IPv6", HOST6.into(), HOST6.into()),
        ("any, by the second", any, [10, 7, 0, 70].into()),
    ];
    wire::add_address(host, LINK, "10.7.0.70/24")?;
    let mut outcome = Outcome::new();
    for (number, (what, listens, asked)) in pairs.into_iter().enumerate() {
        let port = 7800 + number as u16;
        let (local, at) = (SocketAddr::new(listens, port), SocketAddr::new(asked, port));
        // The first question after the port has come to be open is answered.
        let listener = host.in_namespace(|| TcpListener::bind(local))?;
        let _listener = listener.map_err(socket_error(what))?;
        let connected = peer.in_namespace(|| TcpStream::connect_timeout(&at, AT_ONCE).is_ok())?;
        let server = udp(host, local)?;
        let client = udp(peer, any_port(asked))?;
        client
            .send_to(b"anybody?", at)
            .map_err(socket_error(what))?;
        let heard = server.recv(&mut [0; 64]).is_ok();
        outcome = outcome.wanted(what, vec![connected, heard], vec![true; 2]);
    }
    Ok(outcome)
}

fn redirect(stage: &Stage) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let local = SocketAddr::new(HOST.into(), 8000);
    let listener = host.in_namespace(|| TcpListener::bind(local))?;
    let _listener = listener.map_err(socket_error("listen"))?;
    let server = udp(host, local)?;
    host.sh("nft 'add table ip nat; \
              add chain ip nat before { type nat hook prerouting priority -100; }; \
              add rule ip nat before tcp dport 80 redirect to :8000; \
              add rule ip nat before udp dport 80 redirect to :8000'")?;
    let at = SocketAddr::new(HOST.into(), 80);
    let connected = peer.in_namespace(|| TcpStream::connect_timeout(&at, AT_ONCE).is_ok())?;
    let client = udp(peer, any_port(at.ip()))?;
    client
        .send_to(b"anybody?", at)
        .map_err(socket_error("datagram"))?;
    let heard = server.recv(&mut [0; 64]).is_ok();
    Ok(Outcome::new()
        .wanted("TCP", connected, true)
        .wanted("UDP", heard, true))
}

fn refused(stage: &Stage) -> Result<Outcome> {
    const WAIT: Duration = Duration::from_secs(2);
    let mut outcome = Outcome::new();
    for (way, from, _, v4, v6) in ends(stage) {
        for (family, address) in [("IPv4", v4), ("IPv6", v6)] {
            let at = SocketAddr::new(address, 7777);
            let tcp = from.in_namespace(|| {
                TcpStream::connect_timeout(&at, WAIT)
                    .err()
                    .map(|e| e.kind())
            })?;
            let socket = udp(from, any_port(address))?;
            socket.connect(at).map_err(socket_error("connect"))?;
            let mut said = Vec::new();
            // A host answers a second such datagram as it does the first; it says so only so often.
            for _ in 0..2 {
                let _ = socket.send(b"anybody?");
                said.push(
                    socket
                        .recv(&mut [0; 64])
                        .err()
                        .map(|e| format!("{:?}", e.kind())),
                );
                pause(Duration::from_millis(20));
            }
            let refused = || Some("ConnectionRefused");
            outcome = outcome
                .wanted(
                    &format!("{family} {way}, TCP"),
                    tcp.map(|kind| format!("{kind:?}")),
                    refused(),
                )
                .wanted(&format!("{family} {way}, UDP"), said, vec![refused(); 2]);
        }
    }
    Ok(outcome)
}
