//! Bytes and datagrams from program to program, both ways.

use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use super::Application;
use super::outcome::Outcome;
use super::stage::{HOST, HOST6, PEER, PEER6, Stage, pings, socket_error, transfer, udp};
use crate::lab::namespaces::Namespace;
use crate::lab::stream::pattern;
use crate::lab::{Result, pause};

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
            .flat_map(|to| {
                [56, 1452].map(|bytes| super::stage::pings_of(from, &to.to_string(), 10, bytes))
            })
            .sum();
        outcome = outcome
            .with(way, counts)
            .with(&format!("{way}, at once"), pings(from, v4, 1));
    }
    Ok(outcome)
}

fn tcp(stage: &Stage) -> Result<Outcome> {
    const BYTES: u64 = 16 << 20;
    let mut outcome = Outcome::new();
    for (way, from, to, v4, v6) in ends(stage) {
        for (family, address) in [("IPv4", v4), ("IPv6", v6)] {
            let at = SocketAddr::new(address, 7300);
            let said = transfer(from, to, at, BYTES)?;
            outcome = outcome.with(&format!("{family} {way}"), said.to_string());
        }
    }
    Ok(outcome)
}

fn udp_both_ways(stage: &Stage) -> Result<Outcome> {
    let mut outcome = Outcome::new();
    for (way, from, to, v4, v6) in ends(stage) {
        for (family, address) in [("IPv4", v4), ("IPv6", v6)] {
            let receiver = udp(to, SocketAddr::new(address, 7400))?;
            let sender = udp(from, super::stage::any_port(address))?;
            let right = datagrams(&sender, &receiver, SocketAddr::new(address, 7400))?;
            outcome = outcome.with(&format!("{family} {way}"), right);
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
            let socket = udp(from, super::stage::any_port(address))?;
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
            outcome = outcome
                .with(
                    &format!("{family} {way}, TCP"),
                    tcp.map(|kind| format!("{kind:?}")),
                )
                .with(&format!("{family} {way}, UDP"), said);
        }
    }
    Ok(outcome)
}
