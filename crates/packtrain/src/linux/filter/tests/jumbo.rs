//! Frames of more than one page, and frames that were put together: headers are read where they are in one piece, and all
//! bytes are counted.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use packtrain_proto::filter::rules::image::Image;
use packtrain_proto::wire::ethernet::MacAddr;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::frames::{UDP, frame, ipv4};
use super::rules::rules;
use super::world::{
    GATEWAY, OWN, OWN_IPV4, World, run_once, with_filter, with_filter_in, xdp_context,
};
use super::*;
use crate::linux::tap::Tap;
use crate::linux::test_namespace::{Host, in_namespace, ip};
use crate::linux::vnet_header;

const MTU: usize = 9000;
const STRANGER: MacAddr = MacAddr([0x00, 0x1b, 0x21, 1, 1, 1]);
/// Behind the headers of Ethernet, IPv4 and UDP.
const PAYLOAD: usize = MTU - 20 - 8;

fn ask(filter: &mut Filter, lines: &[&str]) {
    let image = Image::compile(&rules(lines)).unwrap();
    filter.set_rules(Some(&image)).unwrap();
}

fn long(mut bytes: Vec<u8>, len: usize) -> Vec<u8> {
    bytes.resize(len, 0x55);
    bytes
}

fn counted(world: &World, rule: usize) -> (u64, u64) {
    let count = world.filter.rule_counters(rule + 1).unwrap()[rule];
    (count.frames, count.bytes)
}

#[test]
fn a_frame_in_several_pieces_is_judged_by_its_first_and_counted_whole() {
    with_filter(|world| {
        world.set(|set| set.asks_ports = true);
        // One page has room for some 3500 bytes.
        for len in [60, 1514, 3000, 4000, 9014, 40_000, 65_549] {
            let ours = long(ipv4(OWN, GATEWAY, OWN_IPV4, 47, 9), len);
            // Counted with its whole length: `reason` looks at that.
            assert_eq!(world.reason(&ours), Reason::Ours, "{len}");
            let closed = long(ipv4(OWN, GATEWAY, OWN_IPV4, UDP, 9), len);
            assert_eq!(world.reason(&closed), Reason::ClosedUdp, "{len}");
            let foreign = long(frame(STRANGER, 0x0800, &[]), len);
            assert_eq!(world.reason(&foreign), Reason::ForeignUnicast, "{len}");
        }
        ask(
            &mut world.filter,
            &[
                "deny: size 65535-",
                "deny: udp dport 9 size 9015-",
                "allow: size 9014",
                "deny: not size -3999",
                "allow: size 3999 udp dport 9",
            ],
        );
        let lens = [65_549, 65_535, 40_000, 9015, 9014, 9013, 4000, 3999, 3998];
        let rules = [
            Some(0),
            Some(0),
            Some(1),
            Some(1),
            Some(2),
            Some(3),
            Some(3),
            Some(4),
            None,
        ];
        for (len, rule) in lens.into_iter().zip(rules) {
            let before = rule.map(|rule| counted(world, rule));
            let udp = long(ipv4(OWN, GATEWAY, OWN_IPV4, UDP, 9), len);
            let expected = match rule {
                Some(2 | 4) => Reason::Allowed,
                Some(_) => Reason::Denied,
                None => Reason::ClosedUdp,
            };
            assert_eq!(world.reason(&udp), expected, "{len}");
            if let (Some(rule), Some((frames, bytes))) = (rule, before) {
                // A size is a number of 16 bits to conditions, but is counted whole.
                let bytes = bytes + len as u64;
                assert_eq!(counted(world, rule), (frames + 1, bytes), "{len}");
            }
        }
    });
}

#[test]
fn headers_that_are_not_in_the_first_piece_are_not_there() {
    with_filter(|world| {
        world.set(|set| set.asks_ports = true);
        ask(&mut world.filter, &["deny: udp dport 9", "deny: size 2000"]);
        let udp = ipv4(OWN, GATEWAY, OWN_IPV4, UDP, 9);
        let whole = udp.len();
        // With the length that is in one piece, and what becomes of it then.
        for (linear, len, reason) in [
            (whole, 1000, Reason::Denied),
            (whole - 1, 1000, Reason::Ours),
            (whole - 1, 2000, Reason::Denied),
            // Without the ports it is for the stack to say whether they are open.
            (34, 1000, Reason::Ours),
            (14, 1000, Reason::Ours),
        ] {
            let bytes = long(udp.clone(), len);
            let before = world.filter.counters().unwrap();
            let context = xdp_context(world.ifindex, linear);
            let run = run_once(&world.filter, world.mode, &bytes, context);
            let Ok(passes) = run else {
                eprintln!("before Linux 6.18 nobody can say how long the first piece is");
                return;
            };
            assert_eq!(passes, !reason.is_drop(), "{linear} of {len}");
            let (before, after) = (
                before.get(reason),
                world.filter.counters().unwrap().get(reason),
            );
            assert_eq!(after.frames - before.frames, 1, "{linear} of {len}");
            assert_eq!(after.bytes - before.bytes, len as u64, "{linear} of {len}");
        }
    });
}

/// On a thread of its own in the other host's network.
fn from<T: Send + 'static>(peer: &Host, act: impl FnOnce() -> T + Send + 'static) -> T {
    let network = File::open(format!("/proc/{}/ns/net", peer.id())).unwrap();
    let thread = std::thread::spawn(move || {
        move_into_link_name_space(
            std::os::fd::AsFd::as_fd(&network),
            Some(LinkNameSpaceType::Network),
        )
        .unwrap();
        act()
    });
    thread.join().unwrap()
}

/// Of a datagram whose bytes tell where they stand.
fn byte_at(place: usize) -> u8 {
    (place * place / 8) as u8
}

/// Both ends of the cable have long frames, and the other one an address.
fn lengthen(world: &World) {
    ip(&format!("link set eth0 mtu {MTU}"));
    world.peer.run(&format!("ip link set far mtu {MTU}"));
    world.peer.run("ip address add 10.1.0.2/24 dev far");
}

#[test]
fn jumbo_frames_of_another_host_arrive_whole_and_rules_know_their_size() {
    with_filter(|world| {
        lengthen(world);
        let ours = |world: &World| world.filter.counters().unwrap().get(Reason::Ours);
        let before = ours(world);
        // `ping` looks at what comes back.
        let said = world
            .peer
            .run("ping -n -q -c 3 -i 0.01 -W 2 -M do -s 8900 10.1.0.1");
        assert!(said.contains("3 received"), "{said}");
        let after = ours(world);
        assert_eq!(after.frames - before.frames, 3);
        assert_eq!(after.bytes - before.bytes, 3 * (14 + 20 + 8 + 8900));

        let socket = UdpSocket::bind((OWN_IPV4, 7000)).unwrap();
        let wait = Duration::from_millis(300);
        socket.set_read_timeout(Some(wait)).unwrap();
        let sends = |world: &World, len: usize| {
            from(&world.peer, move || {
                let bytes: Vec<u8> = (0..len).map(byte_at).collect();
                let socket = UdpSocket::bind("10.1.0.2:0").unwrap();
                socket.send_to(&bytes, (OWN_IPV4, 7000)).unwrap();
            });
        };
        let arrives = |len: usize| {
            let mut bytes = vec![0; 1 << 16];
            let is_there = socket.recv(&mut bytes).is_ok_and(|it| it == len);
            is_there && (0..len).all(|at| bytes[at] == byte_at(at))
        };
        sends(world, PAYLOAD);
        assert!(arrives(PAYLOAD));
        ask(
            &mut world.filter,
            &[
                "deny: udp dport 7000 size 9014-",
                "allow: udp dport 7000 size 9000-",
            ],
        );
        sends(world, PAYLOAD);
        assert!(!arrives(PAYLOAD));
        sends(world, PAYLOAD - 1);
        assert!(arrives(PAYLOAD - 1));
        assert_eq!(
            (counted(world, 0), counted(world, 1)),
            ((1, 9014), (1, 9013))
        );
    });
}

/// A segment of TCP that the other host's stack has not cut, or that this one's has put together.
#[test]
fn at_tc_a_large_segment_is_one_frame_of_its_whole_size() {
    const BYTES: usize = 4 << 20;
    with_filter_in(Mode::Tc, |world| {
        world.peer.run("ip address add 10.1.0.2/24 dev far");
        ask(
            &mut world.filter,
            &["allow: tcp dport 7000 size 20000-", "allow: tcp dport 7000"],
        );
        let listener = TcpListener::bind((OWN_IPV4, 7000)).unwrap();
        let reader = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            bytes.len()
        });
        from(&world.peer, || {
            let mut stream = TcpStream::connect((OWN_IPV4, 7000)).unwrap();
            stream.write_all(&vec![7; BYTES]).unwrap();
        });
        assert_eq!(reader.join().unwrap(), BYTES);
        let (large, large_bytes) = counted(world, 0);
        let (small, small_bytes) = counted(world, 1);
        assert!(
            large > 0 && large_bytes >= 20_000 * large,
            "{large}, {large_bytes}"
        );
        // A segment may have come twice.
        let bytes = large_bytes + small_bytes;
        let sent = BYTES as u64;
        assert!((sent..sent + sent / 4).contains(&bytes), "{bytes}");
        assert!(large + small < sent / 1448 / 2, "{large} and {small}");
    });
}

/// UDP behind IPv6 with extensions: its ports begin at byte 14 + 40 + `extensions`.
fn far_behind(extensions: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(((len - 54) as u16).to_be_bytes());
    packet.extend([60, 64]);
    packet.extend("fd00:1::2".parse::<std::net::Ipv6Addr>().unwrap().octets());
    packet.extend("fd00:1::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
    let mut options = vec![UDP, extensions / 8 - 1];
    // Padding is an option too.
    options.extend([1, extensions - 4]);
    options.resize(usize::from(extensions), 0);
    packet.extend(options);
    packet.extend([0x9c, 0x40, 0, 9]);
    long(frame(OWN, 0x86dd, &packet), len)
}

/// A TAP has as much of a frame in one piece as its sender says, where the frame is longer than a page.
#[test]
fn on_a_tap_headers_are_seen_in_the_driver_and_at_tc_those_of_the_first_192_bytes() {
    in_namespace(|| {
        let tap = Tap::create("eth0", OWN).unwrap();
        ip("link set eth0 mtu 9000 up");
        let mut filter = Filter::load().unwrap();
        ask(&mut filter, &["deny: udp dport 9", "allow: ip6"]);
        let put = |filter: &Filter, mode: Mode, first_piece: u16, extensions: u8, len: usize| {
            let mut header = [0; vnet_header::LEN];
            header[2..4].copy_from_slice(&first_piece.to_ne_bytes());
            let frame = far_behind(extensions, len);
            let parts = [&header[..], &frame].map(std::io::IoSlice::new);
            let before = filter.rule_counters(2).unwrap();
            rustix::io::writev(&tap, &parts).unwrap();
            let after = filter.rule_counters(2).unwrap();
            let decided: Vec<usize> = (0..2).filter(|at| before[*at] != after[*at]).collect();
            let [rule] = decided[..] else {
                panic!("{mode}: {decided:?}");
            };
            let bytes = after[rule].bytes - before[rule].bytes;
            assert_eq!(
                (bytes, after[rule].frames - before[rule].frames),
                (len as u64, 1)
            );
            rule
        };
        filter.attach(tap.ifindex(), Mode::Native).unwrap();
        for len in [1000, 5000, 9014] {
            for first_piece in [0, 54, 110] {
                for extensions in [8, 48, 200] {
                    assert_eq!(
                        put(&filter, Mode::Native, first_piece, extensions, len),
                        0,
                        "{len}"
                    );
                }
            }
        }
        filter.attach(tap.ifindex(), Mode::Tc).unwrap();
        for len in [5000, 9014] {
            assert_eq!(put(&filter, Mode::Tc, 54, 8, len), 0);
            // The header with the ports ends before byte 192, and behind it.
            assert_eq!(put(&filter, Mode::Tc, 54, 128, len), 0);
            assert_eq!(put(&filter, Mode::Tc, 54, 136, len), 1);
            assert_eq!(put(&filter, Mode::Tc, 256, 136, len), 0);
        }
        assert_eq!(put(&filter, Mode::Tc, 54, 136, 1000), 0);
    });
}
