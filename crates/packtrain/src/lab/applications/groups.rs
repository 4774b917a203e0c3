//! Groups and broadcast: names and services that are asked for by multicast, video to a group, and what is for everybody.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::net::{self, AddressFamily, SocketType, sockopt};

use super::outcome::Outcome;
use super::stage::{
    AT_ONCE, HOST, HOST6, LINK, PEER, SOON, Stage, THIRD, socket_error, udp, unexpected,
};
use super::{Application, Need};
use crate::lab::namespaces::Namespace;
use crate::lab::{Result, now, pause, wait_for};

pub(super) const ALL: &[Application] = &[
    Application::new(
        "mdns",
        "names are asked for and told by multicast DNS, IPv4 and IPv6",
        mdns,
    )
    .with_ports(),
    Application::new(
        "llmnr",
        "names are asked for by multicast, and answered to who asks",
        llmnr,
    )
    .with_ports(),
    Application::new(
        "ssdp",
        "devices are searched for, and announce themselves (UPnP)",
        ssdp,
    )
    .with_ports(),
    Application::new(
        "video",
        "a group is joined three times while it is sent to: all frames from then on",
        video,
    )
    .with_ports(),
    Application::new("video-ipv6", "the same over IPv6, by MLD", video_ipv6).with_ports(),
    Application::new(
        "source-specific",
        "a group is joined for what one source sends (IGMPv3)",
        source_specific,
    )
    .with_ports(),
    Application::new(
        "own-groups",
        "programs of one host hear each other by groups and by broadcast",
        own_groups,
    )
    .with_ports(),
    Application::new(
        "many-groups",
        "two hundred groups that one socket has joined",
        many_groups,
    )
    .with_ports(),
    Application::new(
        "multicast-router",
        "a host that passes a group on, and has not joined it",
        multicast_router,
    )
    .needs(&[Need::Program("smcrouted", "smcroute")])
    .widens(&["promiscuous"]),
    Application::new(
        "snooping",
        "a switch that asks who is in a group, and sends it nowhere else (IGMP, MLD)",
        snooping,
    ),
    Application::new(
        "time-broadcast",
        "time that is told to everybody, as NTP does, and another to the network's address",
        time_broadcast,
    )
    .with_ports(),
    Application::new(
        "ping-everybody",
        "a ping to everybody, and to all IPv6 nodes",
        ping_everybody,
    )
    .with_ports(),
];

/// A group, its port, and the same of IPv6.
struct Service {
    port: u16,
    group: Ipv4Addr,
    group6: Ipv6Addr,
    /// An answer goes to the group.
    answers_all: bool,
}

fn mdns(stage: &Stage) -> Result<Outcome> {
    let service = Service {
        port: 5353,
        group: Ipv4Addr::new(224, 0, 0, 251),
        group6: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb),
        answers_all: true,
    };
    converse(stage, &service, &name_question(), &name_answer())
}

fn llmnr(stage: &Stage) -> Result<Outcome> {
    let service = Service {
        port: 5355,
        group: Ipv4Addr::new(224, 0, 0, 252),
        group6: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 3),
        answers_all: false,
    };
    converse(stage, &service, &name_question(), &name_answer())
}

fn ssdp(stage: &Stage) -> Result<Outcome> {
    let service = Service {
        port: 1900,
        group: Ipv4Addr::new(239, 255, 255, 250),
        group6: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xc),
        answers_all: false,
    };
    let search = b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: ssdp:all\r\n\r\n";
    let found = b"HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=1800\r\nLOCATION: http://10.7.0.1/\r\nST: upnp:rootdevice\r\nUSN: uuid:1\r\n\r\n";
    let outcome = converse(stage, &service, search, found)?;
    let alive = b"NOTIFY * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nNTS: ssdp:alive\r\n\r\n";
    let at = SocketAddr::new(service.group.into(), service.port);
    let hears = member(&stage.host.namespace, at, None)?;
    let tells = udp(&stage.peer.namespace, any(at))?;
    send(&tells, alive, at)?;
    Ok(outcome.wanted("announcement", receives(&hears, alive).is_some(), true))
}

/// A question for one address of a name, as DNS has it: RFC 1035, 4.
fn name_question() -> Vec<u8> {
    let header = [0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [&header[..], b"\x04host\x05local\0", &[0, 1, 0, 1]].concat()
}

fn name_answer() -> Vec<u8> {
    let header = [0x12, 0x34, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let record = [0, 1, 0, 1, 0, 0, 0, 120, 0, 4, 10, 7, 0, 1];
    [&header[..], b"\x04host\x05local\0", &record].concat()
}

/// Both ask, and both answer, each once: nobody asks a second time.
fn converse(stage: &Stage, service: &Service, question: &[u8], answer: &[u8]) -> Result<Outcome> {
    let (host, peer) = (&stage.host.namespace, &stage.peer.namespace);
    let mut outcome = Outcome::new();
    for (who, asks, answers) in [("the peer", peer, host), ("the host", host, peer)] {
        for (family, group) in [
            ("IPv4", IpAddr::V4(service.group)),
            ("IPv6", IpAddr::V6(service.group6)),
        ] {
            let at = SocketAddr::new(group, service.port);
            let listens = member(answers, at, None)?;
            // Who is told what all are told is in the group as well.
            let asker = match service.answers_all {
                true => member(asks, at, None)?,
                false => udp(asks, any(at))?,
            };
            send(&asker, question, scoped(asks, at)?)?;
            let heard = receives(&listens, question);
            let answered = match heard {
                None => false,
                Some(from) => {
                    let to = if service.answers_all {
                        scoped(answers, at)?
                    } else {
                        from
                    };
                    send(&listens, answer, to)?;
                    receives(&asker, answer).is_some()
                }
            };
            outcome = outcome.wanted(
                &format!("{who}, {family}"),
                match (heard, answered) {
                    (Some(_), true) => "answered",
                    (Some(_), false) => "heard",
                    _ => "not heard",
                },
                "answered",
            );
        }
    }
    Ok(outcome)
}

/// Any address of that family, and this port.
fn of_any_address(of: SocketAddr) -> SocketAddr {
    SocketAddr::new(any(of).ip(), of.port())
}

/// Any address of that family, and any port.
fn any(of: SocketAddr) -> SocketAddr {
    match of {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

fn index(at: &Namespace) -> Result<u32> {
    let path = format!("/sys/class/net/{LINK}/ifindex");
    let text = at.exec(["cat", &path])?;
    let number = text.trim().parse();
    number.map_err(|_| unexpected(&path, text))
}

/// An address of one link alone says of which.
fn scoped(from: &Namespace, at: SocketAddr) -> Result<SocketAddr> {
    Ok(match at {
        SocketAddr::V6(v6) => SocketAddrV6::new(*v6.ip(), v6.port(), 0, index(from)?).into(),
        v4 => v4,
    })
}

/// A socket of a member of a group, of all sources or of one.
fn member(at: &Namespace, group: SocketAddr, source: Option<Ipv4Addr>) -> Result<UdpSocket> {
    let index = index(at)?;
    let own = own_address(at)?;
    let open = || -> std::io::Result<UdpSocket> {
        let family = if group.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let fd: OwnedFd =
            net::socket_with(family, SocketType::DGRAM, net::SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        // A second of video, should nobody read for so long.
        sockopt::set_socket_recv_buffer_size(&fd, 1 << 21)?;
        if group.is_ipv6() {
            sockopt::set_ipv6_v6only(&fd, true)?;
        }
        net::bind(&fd, &of_any_address(group))?;
        match (group.ip(), source) {
            (IpAddr::V4(v4), None) => sockopt::set_ip_add_membership(&fd, &v4, &own)?,
            (IpAddr::V4(v4), Some(source)) => {
                sockopt::set_ip_add_source_membership(&fd, &v4, &own, &source)?;
            }
            (IpAddr::V6(v6), _) => sockopt::set_ipv6_add_membership(&fd, &v6, index)?,
        }
        let socket = UdpSocket::from(fd);
        socket.set_read_timeout(Some(AT_ONCE))?;
        Ok(socket)
    };
    at.in_namespace(open)?
        .map_err(socket_error(&format!("socket in {group}")))
}

/// The first of the interface.
fn own_address(at: &Namespace) -> Result<Ipv4Addr> {
    let said = at.exec(["ip", "-4", "-o", "address", "show", "dev", LINK, "primary"])?;
    let mut words = said.split_whitespace();
    words.find(|&word| word == "inet");
    let address = words
        .next()
        .and_then(|word| word.split('/').next()?.parse().ok());
    address.ok_or_else(|| unexpected("ip address", said))
}

fn send(from: &UdpSocket, bytes: &[u8], to: SocketAddr) -> Result<()> {
    let sent = from.send_to(bytes, to);
    sent.map(drop).map_err(socket_error(&format!("to {to}")))
}

/// From whom this came; what else comes is not looked at.
fn receives(socket: &UdpSocket, wanted: &[u8]) -> Option<SocketAddr> {
    let (mut buffer, begun) = ([0; 2048], now());
    while begun.elapsed() < AT_ONCE {
        let (len, from) = socket.recv_from(&mut buffer).ok()?;
        if &buffer[..len] == wanted {
            return Some(from);
        }
    }
    None
}

/// As a picture in pieces.
const FRAME_BYTES: usize = 1200;
const FRAMES_EVERY: Duration = Duration::from_millis(1);
/// Seen of it each time that it is joined.
const FRAMES_SEEN: u32 = 300;

/// Sends numbered frames to a group until it is over. What is about to be sent is in `next` before.
fn broadcast(
    socket: &UdpSocket,
    to: SocketAddr,
    next: &AtomicU32,
    over: &AtomicBool,
) -> Result<()> {
    let mut frame = [0x47; FRAME_BYTES];
    while !over.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::SeqCst);
        frame[..4].copy_from_slice(&number.to_be_bytes());
        send(socket, &frame, to)?;
        pause(FRAMES_EVERY);
    }
    Ok(())
}

/// What came of the frames from `first` on, until there were so many of them or no more came.
#[derive(Debug, Default)]
struct Seen {
    missed: u32,
    out_of_order: u32,
}

fn watch(socket: &UdpSocket, first: u32, frames: u32) -> Result<Seen> {
    let (mut buffer, mut expected) = ([0; 2048], first);
    let mut seen = Seen::default();
    while expected < first + frames {
        let Ok(len) = socket.recv(&mut buffer) else {
            seen.missed += first + frames - expected;
            return Ok(seen);
        };
        let number = buffer[..len]
            .first_chunk()
            .map(|&bytes| u32::from_be_bytes(bytes));
        match number.filter(|_| len == FRAME_BYTES) {
            None => return Err(unexpected("a sender of video", format!("{len} bytes"))),
            // It was on its way when the group was joined.
            Some(number) if number < first => {}
            Some(number) if number < expected => seen.out_of_order += 1,
            Some(number) => {
                seen.missed += number - expected;
                expected = number + 1;
            }
        }
    }
    Ok(seen)
}

/// Runs while a group is sent to by the peer.
fn while_broadcast<T>(
    stage: &Stage,
    group: SocketAddr,
    meanwhile: impl FnOnce(&AtomicU32) -> Result<T>,
) -> Result<T> {
    let peer = &stage.peer.namespace;
    let socket = udp(peer, any(group))?;
    if group.is_ipv4() {
        // Over a router, should there be one.
        let far = socket.set_multicast_ttl_v4(4);
        far.map_err(socket_error("hops"))?;
    }
    let to = scoped(peer, group)?;
    let (next, over) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| broadcast(&socket, to, &next, &over));
        let result = meanwhile(&next);
        over.store(true, Ordering::Relaxed);
        sending.join().expect("it has no reason to panic")?;
        result
    })
}

fn watched(stage: &Stage, group: SocketAddr) -> Result<Outcome> {
    while_broadcast(stage, group, |next| {
        let (mut missed, mut out_of_order) = (Vec::new(), 0);
        for _ in 0..3 {
            let socket = member(&stage.host.namespace, group, None)?;
            // The group is joined: nothing that is sent from here on may be missed.
            let first = next.load(Ordering::SeqCst);
            let seen = watch(&socket, first, FRAMES_SEEN)?;
            missed.push(seen.missed);
            out_of_order += seen.out_of_order;
        }
        Ok(Outcome::new()
            .with("frames each time", FRAMES_SEEN)
            .wanted("missed", missed, vec![0; 3])
            .wanted("out of order", out_of_order, 0))
    })
}

fn video(stage: &Stage) -> Result<Outcome> {
    watched(stage, SocketAddr::new([239, 7, 7, 7].into(), 5004))
}

fn video_ipv6(stage: &Stage) -> Result<Outcome> {
    let group = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 7, 7);
    watched(stage, SocketAddr::new(group.into(), 5004))
}

fn source_specific(stage: &Stage) -> Result<Outcome> {
    const EACH: u32 = 200;
    let group = SocketAddr::new([232, 7, 7, 7].into(), 5004);
    let socket = member(&stage.host.namespace, group, Some(PEER))?;
    let wanted = udp(&stage.peer.namespace, any(group))?;
    let other = udp(&stage.third, any(group))?;
    for _ in 0..EACH {
        send(&other, b"other", group)?;
        send(&wanted, b"wanted", group)?;
        pause(Duration::from_micros(500));
    }
    let (mut of_peer, mut of_others) = (0, 0);
    let mut buffer = [0; 64];
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .map_err(socket_error("time"))?;
    while let Ok((_, from)) = socket.recv_from(&mut buffer) {
        match from.ip() == IpAddr::V4(PEER) {
            true => of_peer += 1,
            false => of_others += 1,
        }
    }
    Ok(Outcome::new()
        .wanted("of the source", of_peer, EACH)
        .wanted("of another", of_others, 0))
}

/// The kernel gives what a host sends to a group back to the host itself, by the same interface.
fn own_groups(stage: &Stage) -> Result<Outcome> {
    const EACH: u32 = 10;
    let host = &stage.host.namespace;
    let broadcast = SocketAddr::new([10, 7, 0, 255].into(), 5007);
    let mut outcome = Outcome::new();
    let targets: [(&str, SocketAddr); 3] = [
        ("IPv4", SocketAddr::new([224, 0, 0, 251].into(), 5353)),
        (
            "IPv6",
            SocketAddr::new(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb).into(), 5353),
        ),
        ("broadcast", broadcast),
    ];
    for (what, to) in targets {
        let hears = match to == broadcast {
            true => udp(host, of_any_address(to))?,
            false => member(host, to, None)?,
        };
        let sender = udp(host, any(to))?;
        sender
            .set_broadcast(true)
            .map_err(socket_error("broadcast"))?;
        let to = scoped(host, to)?;
        let mut came = 0;
        for number in 0..EACH {
            let message = number.to_be_bytes();
            send(&sender, &message, to)?;
            // Who does not hear the first hears none, and is not waited for ten times.
            match receives(&hears, &message) {
                Some(_) => came += 1,
                None => break,
            }
        }
        outcome = outcome.wanted(what, came, EACH);
    }
    Ok(outcome)
}

fn many_groups(stage: &Stage) -> Result<Outcome> {
    const GROUPS: u8 = 200;
    let host = &stage.host.namespace;
    host.sysctl("net/ipv4/igmp_max_memberships", "300")?;
    let group = |number: u8| SocketAddr::new([239, 8, number, 1].into(), 5006);
    let socket = member(host, group(0), None)?;
    for number in 1..GROUPS {
        let joined = socket.join_multicast_v4(&[239, 8, number, 1].into(), &HOST);
        joined.map_err(socket_error("join"))?;
    }
    let sender = udp(&stage.peer.namespace, any(group(0)))?;
    let mut came = 0;
    for number in 0..GROUPS {
        send(&sender, &[number], group(number))?;
        came += u32::from(receives(&socket, &[number]).is_some());
    }
    Ok(Outcome::new().wanted("came", came, GROUPS))
}

fn multicast_router(stage: &Stage) -> Result<Outcome> {
    let host = &stage.host.namespace;
    let far = stage.network_behind(host, 1500)?;
    let group = SocketAddr::new([239, 7, 7, 9].into(), 5004);
    let configuration = stage.write(
        "configuration",
        format!(
            "phyint {LINK} enable\nphyint eth2 enable\nmroute from {LINK} group {} to eth2\n",
            group.ip()
        ),
    )?;
    let (pid, socket) = (stage.path("pid"), stage.path("socket"));
    let _router = host.spawn([
        "smcrouted",
        "-n",
        "-N",
        "-f",
        &configuration,
        "-P",
        &pid,
        "-u",
        &socket,
    ])?;
    let member = member(&far, group, None)?;
    let seen = while_broadcast(stage, group, |next| {
        // Until the router does its work.
        let mut buffer = [0; 2048];
        wait_for("the first frame behind the router", SOON, || {
            member.recv(&mut buffer).is_ok()
        })?;
        let first = next.load(Ordering::SeqCst);
        watch(&member, first, FRAMES_SEEN)
    })?;
    Ok(Outcome::new()
        .with("frames", FRAMES_SEEN)
        .wanted("missed", seen.missed, 0))
}

fn snooping(stage: &Stage) -> Result<Outcome> {
    // Hundredths of a second: who does not answer within a second is in no group any more.
    stage
        .switch
        .sysctl("net/ipv6/conf/switch/disable_ipv6", "0")?;
    stage
        .switch
        .sysctl("net/ipv6/conf/switch/accept_dad", "0")?;
    stage.switch.sh(
        "ip link set switch down && ip link set switch up \
         && ip link set switch type bridge mcast_snooping 1 mcast_querier 1 mcast_mld_version 2 mcast_igmp_version 3 \
            mcast_query_interval 40 mcast_query_response_interval 10 mcast_startup_query_interval 10 \
            mcast_membership_interval 100 mcast_last_member_interval 10",
    )?;
    let groups = [
        SocketAddr::new([239, 7, 7, 7].into(), 5004),
        SocketAddr::new(Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 7, 7).into(), 5004),
    ];
    let known = |group: &SocketAddr| {
        let shown = stage.switch.exec(["bridge", "mdb", "show"]);
        let wanted = format!("port to-host grp {}", group.ip());
        shown.is_ok_and(|text| text.contains(&wanted))
    };
    let mut outcome = Outcome::new();
    for (family, group) in ["IPv4", "IPv6"].into_iter().zip(groups) {
        let member = member(&stage.host.namespace, group, None)?;
        wait_for("the switch to know of the member", SOON, || known(&group))?;
        let seen = while_broadcast(stage, group, |next| {
            // Until the switch sends it here: from then on for as long as two memberships.
            let mut buffer = [0; 2048];
            member
                .recv(&mut buffer)
                .map_err(socket_error("the first frame"))?;
            let first = next.load(Ordering::SeqCst);
            watch(&member, first, 1800)
        })?;
        outcome = outcome
            .wanted(&format!("{family}, missed"), seen.missed, 0)
            .wanted(&format!("{family}, known still"), known(&group), true);
    }
    Ok(outcome)
}

fn time_broadcast(stage: &Stage) -> Result<Outcome> {
    const EACH: usize = 20;
    let mut outcome = Outcome::new();
    let targets = [
        ("to everybody", Ipv4Addr::BROADCAST),
        ("to the network", Ipv4Addr::new(10, 7, 0, 255)),
    ];
    for (what, to) in targets {
        let client = udp(&stage.host.namespace, (Ipv4Addr::UNSPECIFIED, 123).into())?;
        let server = udp(&stage.peer.namespace, (PEER, 123).into())?;
        server
            .set_broadcast(true)
            .map_err(socket_error("broadcast"))?;
        // Version 4, mode 5: broadcast (RFC 5905, 7.3).
        let mut message = [0; 48];
        message[0] = 4 << 3 | 5;
        let mut came = 0;
        for number in 0..EACH {
            message[47] = number as u8;
            send(&server, &message, (to, 123).into())?;
            came += u32::from(receives(&client, &message).is_some());
        }
        outcome = outcome.wanted(what, came, EACH);
    }
    Ok(outcome)
}

fn ping_everybody(stage: &Stage) -> Result<Outcome> {
    for at in [&stage.host.namespace, &stage.third] {
        at.sysctl("net/ipv4/icmp_echo_ignore_broadcasts", "0")?;
    }
    let peer = &stage.peer.namespace;
    let answers = |words: &[&str]| -> Result<Vec<String>> {
        let said =
            peer.try_exec([&["ping", "-n", "-c", "3", "-i", "0.1", "-W", "0.5"], words].concat())?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let from = text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(" bytes from ")?;
            let word = rest.split(' ').next()?.trim_end_matches(':');
            Some(word.split('%').next()?.to_owned())
        });
        let whole: BTreeSet<String> = from.collect();
        Ok(whole.into_iter().collect())
    };
    let v4 = answers(&["-b", "10.7.0.255"])?;
    let v6 = answers(&["-6", &format!("ff02::1%{LINK}")])?;
    if !v4.contains(&THIRD.to_string()) {
        return Err(unexpected("ping -b", format!("answers of {v4:?}")));
    }
    Ok(Outcome::new().with("IPv4", v4).with("IPv6", v6).with(
        "the host itself",
        super::stage::ping(peer, HOST.into()) && super::stage::ping(peer, HOST6.into()),
    ))
}
