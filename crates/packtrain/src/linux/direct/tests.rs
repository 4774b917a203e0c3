//! Where a frame goes: the programs by `BPF_PROG_TEST_RUN`, frame by frame, against the rule written down anew. What closes the path: close_tests.

use libbpf_rs::ProgramInput;
use libbpf_rs::query::{ProgInfoIter, ProgramInfo};
use packtrain_proto::offload::Offload;

use super::*;
use crate::linux::netlink::Netlink;
use crate::linux::packet_socket::{Frames, PacketSocket};
use crate::linux::tc::{self, FilterPlace};
use crate::linux::test_namespace::{in_namespace, ip, run};

pub(super) const PT0: MacAddr = MacAddr([0x02, 0x70, 0x74, 1, 2, 3]);
pub(super) const PEER: MacAddr = MacAddr([0x02, 0x70, 0x74, 4, 5, 6]);
const STRANGER: MacAddr = MacAddr([0x02, 0x70, 0x74, 7, 8, 9]);
const PEER_LINK: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 2]);
const DIRECT_MARK: MacAddr = MacAddr([0x0a, 0x54, 0, 0, 0, 0x5b]);
const LOOPBACK_IFINDEX: u32 = 1;

pub(super) const IPV4: u16 = 0x0800;
const VLAN: u16 = 0x8100;
const PACKTRAIN: u16 = 0x88b5;

pub(super) const GO_ON: u32 = u32::MAX; // TC_ACT_UNSPEC
pub(super) const REDIRECT: u32 = 7; // TC_ACT_REDIRECT

pub(super) fn destination() -> Destination {
    Destination {
        address: PEER,
        ifindex: LOOPBACK_IFINDEX,
        outer_destination: PEER_LINK,
        outer_source: DIRECT_MARK,
        kind: DirectKind::Source,
        vlan: None,
        payload_max: 1500,
        link: 3,
        has_queue: true,
        open_to: OpenTo::All,
        stripes: false,
    }
}

/// UDP over IPv4 from port `flow`, `payload` bytes after the EtherType.
pub(super) fn frame(
    to: MacAddr,
    from: MacAddr,
    ether_type: u16,
    flow: u16,
    payload: usize,
) -> Vec<u8> {
    let mut frame = [to.0, from.0].concat();
    frame.extend_from_slice(&ether_type.to_be_bytes());
    let len = payload as u16;
    let [high, low] = len.to_be_bytes();
    frame.extend_from_slice(&[0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    frame.extend_from_slice(&flow.to_be_bytes());
    frame.extend_from_slice(&[0x13, 0x88]);
    frame.extend_from_slice(&(len - 20).to_be_bytes());
    frame.resize(14 + payload, 0);
    frame
}

/// What the program says to the frame, and the frame after it.
pub(super) fn leave(path: &DirectPath, bytes: &[u8]) -> (u32, Vec<u8>) {
    leave_with(path, bytes, 0, 0)
}

pub(super) fn leave_with_mark(path: &DirectPath, bytes: &[u8], mark: u32) -> (u32, Vec<u8>) {
    leave_with(path, bytes, mark, 0)
}

/// One of segments of so many bytes.
pub(super) fn leave_in_segments(path: &DirectPath, bytes: &[u8], each: u32) -> (u32, Vec<u8>) {
    leave_with(path, bytes, 0, each)
}

fn leave_with(path: &DirectPath, bytes: &[u8], mark: u32, gso_size: u32) -> (u32, Vec<u8>) {
    // `struct __sk_buff`: the mark is its third word, and the size of segments its 45th.
    let mut context = [0u8; 192];
    context[8..12].copy_from_slice(&mark.to_ne_bytes());
    context[176..180].copy_from_slice(&gso_size.to_ne_bytes());
    let program = path
        .object
        .progs_mut()
        .find(|program| program.name() == "direct_leave")
        .expect("the program");
    let mut out = vec![0; bytes.len() + 64];
    let input = ProgramInput {
        data_in: Some(bytes),
        data_out: Some(&mut out),
        context_in: Some(&mut context),
        ..ProgramInput::default()
    };
    let result = program.test_run(input).expect("a test run");
    let len = result.data.map_or(0, |data| data.len());
    let value = result.return_value;
    out.truncate(len);
    (value, out)
}

pub(super) fn with_path(test: impl FnOnce(&mut DirectPath) + Send + 'static) {
    in_namespace(|| {
        ip("link set lo up");
        test(&mut DirectPath::attach(LOOPBACK_IFINDEX, PT0, false).expect("a path on lo"));
    });
}

#[test]
fn lengths_are_those_of_the_header() {
    let header = include_str!("../../bpf/direct.h");
    assert!(header.contains(&format!("DIRECT_DESTINATIONS	{DESTINATIONS_MAX}	")));
    with_path(|path| {
        let size = |name: &str| {
            let map = path.object.maps().find(|map| map.name() == name);
            map.expect("a map of that name").value_size() as usize
        };
        assert_eq!(size(".data.orders"), 64);
        assert_eq!(size("comparisons"), super::classes::COMPARISON_LEN);
        assert_eq!(size(".data.state"), tally::STATE_LEN);
        assert_eq!(size("destinations"), entry_of(&[(&destination(), 0)]).len());
        assert_eq!(size("watches"), WATCH_LEN);
        assert_eq!(size("slots"), 16);
        assert_eq!(size("sending"), 24);
        assert_eq!(size("shaping"), 16);
        assert_eq!(size("arrived_first"), 16);
        assert_eq!(
            size("last_destinations"),
            (12 + DESTINATION_LEN).next_multiple_of(8)
        );
        assert_eq!(size("flows"), 24);
    });
}

/// The kernel looks at a million instructions, and needs 3.5 µs for each: a line is up only then, and what is near to that another
/// kernel may refuse. Branches multiply where a function is looked at once for each way on which it is called.
#[test]
fn the_kernel_looks_at_few_instructions_of_the_programs() {
    with_path(|path| {
        for program in path.object.progs() {
            let name = program.name().to_str().expect("a name of C").to_owned();
            let named = |info: &ProgramInfo| info.name.to_str() == Some(name.as_str());
            // That of another line is of the same source, or somebody else's; ours is the youngest, or as old.
            let info = ProgInfoIter::default().filter(named).last();
            let looked_at = info.expect("it is loaded").verified_insns;
            assert!((10..100_000).contains(&looked_at), "{name}: {looked_at}");
        }
    });
}

#[test]
fn a_frame_for_a_peers_pt0_is_sent_to_the_link_with_outer_addresses_and_no_other_is() {
    with_path(|path| {
        path.set_destinations(&[destination()]).unwrap();
        let ours = frame(PEER, PT0, IPV4, 1, 1500);
        let (verdict, sent) = leave(path, &ours);
        assert_eq!(verdict, REDIRECT);
        let mut expected = ours.clone();
        expected[0..6].copy_from_slice(&PEER_LINK.0);
        expected[6..12].copy_from_slice(&DIRECT_MARK.0);
        assert!(sent == expected, "all but the addresses stays");
        assert_eq!(
            (
                path.traffic(3).unwrap().frames,
                path.state().unwrap().tickets
            ),
            (1, 0)
        );
        assert_eq!(path.traffic(3).unwrap().bytes, 1514);

        let others = [
            ("to a stranger", frame(STRANGER, PT0, IPV4, 2, 100)),
            ("of a station behind", frame(PEER, STRANGER, IPV4, 3, 100)),
            ("to a group", frame(MacAddr::BROADCAST, PT0, IPV4, 4, 100)),
            (
                "one of packtrain's own",
                frame(PEER, PT0, PACKTRAIN, 5, 100),
            ),
            ("larger than the way takes", frame(PEER, PT0, IPV4, 6, 1501)),
            ("tagged, and larger", frame(PEER, PT0, VLAN, 7, 1505)),
        ];
        for (number, (what, bytes)) in (1..).zip(&others) {
            let (verdict, after) = leave(path, bytes);
            assert_eq!(verdict, GO_ON, "{what}");
            assert!(after == *bytes, "{what}: unchanged");
            assert_eq!(path.state().unwrap().tickets, number, "{what}");
        }
        assert_eq!(leave(path, &frame(PEER, PT0, VLAN, 8, 1504)).0, REDIRECT);
        assert_eq!(path.traffic(3).unwrap().frames, 2);

        path.set_destinations(&[]).unwrap();
        assert_eq!(leave(path, &frame(PEER, PT0, IPV4, 11, 100)).0, GO_ON);
    });
}

#[test]
fn without_a_mark_only_what_nobody_takes_for_the_links_own_goes() {
    const LINK: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
    const IPV6: u16 = 0x86dd;
    const ARP: u16 = 0x0806;
    with_path(|path| {
        let unmarked = Destination {
            outer_source: LINK,
            kind: DirectKind::None,
            ..destination()
        };
        path.set_destinations(&[unmarked]).unwrap();
        let to = |ether_type, begin: [u8; 2], to_port: u16| {
            let mut bytes = frame(PEER, PT0, ether_type, 1, 100);
            if ether_type == IPV6 {
                bytes[38..40].copy_from_slice(&begin);
            } else {
                bytes[36..38].copy_from_slice(&to_port.to_be_bytes());
            }
            bytes
        };
        let cases = [
            ("IPv4", to(IPV4, [0; 2], 53), REDIRECT),
            ("IPv6", to(IPV6, [0xfd, 0], 0), REDIRECT),
            ("an answer of DHCP", to(IPV4, [0; 2], 68), GO_ON),
            ("to a link-local address", to(IPV6, [0xfe, 0x80], 0), GO_ON),
            ("ARP", to(ARP, [0; 2], 0), GO_ON),
            ("tagged", to(VLAN, [0; 2], 0), GO_ON),
            ("of no known type", to(0x9000, [0; 2], 0), GO_ON),
        ];
        for (what, bytes, expected) in cases {
            let tickets = path.state().unwrap().tickets;
            path.set_drained(tickets).unwrap();
            let (verdict, after) = leave(path, &bytes);
            assert_eq!(verdict, expected, "{what}");
            if verdict == REDIRECT {
                assert_eq!(
                    (&after[..6], &after[6..12]),
                    (&PEER_LINK.0[..], &LINK.0[..])
                );
                assert!(after[12..] == bytes[12..]);
            } else {
                assert!(after == bytes, "{what}: unchanged");
            }
        }
        assert_eq!(path.traffic(3).unwrap().frames, 2);
    });
}

#[test]
fn the_table_of_destinations_is_bounded_and_usable_after() {
    with_path(|path| {
        let numbered = |n: usize| Destination {
            address: MacAddr([2, 0, 0, 0, (n >> 8) as u8, n as u8]),
            ..destination()
        };
        let many: Vec<_> = (0..DESTINATIONS_MAX + 3).map(numbered).collect();
        let counted = path.set_destinations(&many).unwrap();
        assert_eq!(counted.len(), DESTINATIONS_MAX);
        for (number, destination) in many.iter().enumerate() {
            let bytes = frame(destination.address, PT0, IPV4, 1, 100);
            let expected = match number < DESTINATIONS_MAX {
                true => REDIRECT,
                false => GO_ON,
            };
            assert_eq!(leave(path, &bytes).0, expected, "peer {number}");
            // What went to the engine is delivered, or the flow would wait for it.
            let tickets = path.state().unwrap().tickets;
            path.set_drained(tickets).unwrap();
        }
        // Others in their place, all at once: there is room for the old and the new ones.
        let others: Vec<_> = (0..DESTINATIONS_MAX).map(|n| numbered(n + 1000)).collect();
        assert_eq!(path.set_destinations(&others).unwrap().len(), others.len());
        for (destination, expected) in [(others[255], REDIRECT), (many[0], GO_ON)] {
            let bytes = frame(destination.address, PT0, IPV4, 3, 100);
            assert_eq!(leave(path, &bytes).0, expected);
        }
        assert_eq!(path.set_destinations(&[destination()]).unwrap().len(), 1);
        assert_eq!(leave(path, &frame(PEER, PT0, IPV4, 1, 100)).0, REDIRECT);
        assert_eq!(
            leave(path, &frame(many[7].address, PT0, IPV4, 2, 100)).0,
            GO_ON
        );
    });
}

/// A TCP segment with so many bytes in it, and 12 of options.
pub(super) fn segment(ipv6: bool, payload: u16) -> Vec<u8> {
    segment_of(0, 0, (PEER, PT0), ipv6, payload)
}

/// Bytes before the payload of a segment over IPv4, after the EtherType.
pub(super) const SEGMENT_HEADERS: u16 = 52;

/// Of the flow from this port, from this place in it.
pub(super) fn segment_of(
    port: u16,
    sequence: u32,
    (to, from): (MacAddr, MacAddr),
    ipv6: bool,
    payload: u16,
) -> Vec<u8> {
    const TCP_LEN: u16 = 32;
    let mut frame = [to.0, from.0].concat();
    if ipv6 {
        frame.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend_from_slice(&(TCP_LEN + payload).to_be_bytes());
        frame.extend_from_slice(&[6, 64]);
        frame.extend_from_slice(&[0xfd; 32]);
    } else {
        frame.extend_from_slice(&[8, 0, 0x45, 0]);
        frame.extend_from_slice(&(20 + TCP_LEN + payload).to_be_bytes());
        frame.extend_from_slice(&[0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    }
    let tcp_at = frame.len();
    frame.resize(tcp_at + usize::from(TCP_LEN + payload), 0);
    frame[tcp_at..tcp_at + 2].copy_from_slice(&port.to_be_bytes());
    frame[tcp_at + 4..tcp_at + 8].copy_from_slice(&sequence.to_be_bytes());
    frame[tcp_at + 12] = (TCP_LEN as u8 / 4) << 4;
    frame
}

/// A `pt0` on which somebody else does something, and a program that sends into it.
struct Sender {
    path: DirectPath,
    pt0: u32,
    socket: PacketSocket,
}

impl Sender {
    /// `prepare`: before the interface goes up.
    fn new(has_intake: bool, prepare: impl FnOnce()) -> Sender {
        ip("link add pt0 type veth peer name other");
        // What the host sends by itself would be counted too.
        ip(&format!("link set pt0 address {PT0} addrgenmode none"));
        ip("link set other up");
        prepare();
        ip("link set pt0 up");
        let pt0 = index_of("pt0");
        let mut path = DirectPath::attach(pt0, PT0, has_intake).unwrap();
        path.set_destinations(&[destination()]).unwrap();
        let mut socket = PacketSocket::create().unwrap();
        socket.bind(pt0, Frames::All).unwrap();
        Sender { path, pt0, socket }
    }

    /// Sends one frame; how many went directly up to now, and how many to the engine.
    fn send(&mut self) -> (u64, u64) {
        let bytes = frame(PEER, PT0, IPV4, 1, 1000);
        self.socket.send(&bytes, Offload::NONE).expect("sent");
        (
            self.path.traffic(3).unwrap().frames,
            self.path.state().unwrap().tickets,
        )
    }

    fn sees_foreign_tc(&self) -> bool {
        self.path.state().unwrap().foreign_tc
    }
}

#[test]
fn what_went_by_a_link_stays_counted_when_others_get_the_places_of_former_peers() {
    with_path(|path| {
        let peer = |number: u16| {
            let [high, low] = number.to_be_bytes();
            let address = MacAddr([0x02, 0x70, 0x74, 9, high, low]);
            let link = if number < 3 { 3 } else { 4 };
            Destination {
                address,
                link,
                ..destination()
            }
        };
        let mut flow = 0;
        let mut send = |path: &DirectPath, number: u16| {
            flow += 1;
            let bytes = frame(peer(number).address, PT0, IPV4, flow, 400);
            // A flow of the other link may have its slot, and leaves it to this one by way of the engine.
            let verdict = [leave(path, &bytes).0, leave(path, &bytes).0];
            match verdict {
                [REDIRECT, REDIRECT] => 2,
                [GO_ON, REDIRECT] => 1,
                other => panic!("{other:?}"),
            }
        };
        path.set_drained(u64::MAX).unwrap();
        path.set_destinations(&[peer(0), peer(1)]).unwrap();
        let (mut by_3, mut by_4) = (0, 0);
        (0..7).for_each(|_| by_3 += send(path, 0));
        (0..5).for_each(|_| by_3 += send(path, 1));
        // More peers than there are places, a few hundred at a time.
        for first in (100..1700).step_by(200) {
            let peers: Vec<_> = (first..first + 200).map(peer).collect();
            path.set_destinations(&peers).unwrap();
            (first..first + 200).for_each(|number| by_4 += send(path, number));
        }
        let sent = path.sent_to((peer(0).address, 3)).unwrap();
        assert_eq!(sent, 0, "its place is another's");
        let frames = |path: &DirectPath, link| path.traffic(link).unwrap().frames;
        assert_eq!((frames(path, 3), frames(path, 4)), (by_3, by_4));
        path.set_destinations(&[peer(0)]).unwrap();
        by_3 += send(path, 0);
        assert_eq!((frames(path, 3), frames(path, 4)), (by_3, by_4));
    });
}

#[test]
fn a_queueing_discipline_of_somebody_elses_is_not_passed_by() {
    in_namespace(|| {
        let mut sender = Sender::new(true, || {
            run("tc qdisc add dev pt0 root handle 7074: htb");
        });
        assert_eq!(sender.send(), (1, 0));
        assert!(!sender.sees_foreign_tc());
        run("tc qdisc replace dev pt0 root handle 2: tbf rate 1gbit burst 20000 limit 100000");
        assert_eq!(sender.send(), (1, 1));
        assert!(sender.sees_foreign_tc());
        run("tc qdisc replace dev pt0 root handle 1: htb");
        sender.path.set_drained(1).unwrap();
        assert_eq!(sender.send(), (1, 2), "the same kind, and another");
    });
}

#[test]
fn filters_of_somebody_elses_are_not_passed_by() {
    in_namespace(|| {
        let mut sender = Sender::new(false, || {});
        run("tc qdisc add dev pt0 clsact");
        assert_eq!(sender.send(), (1, 0), "an empty one does nothing");
        let mut netlink = Netlink::open().unwrap();
        let place = FilterPlace {
            ifindex: sender.pt0,
            parent: tc::CLSACT_EGRESS,
            priority: 1,
            handle: 1,
        };
        let program = sender.path.watch_program.as_fd();
        tc::add_bpf_filter(
            &mut netlink,
            place,
            program,
            "any",
            tc::BPF_DIRECT_ACTION,
            0,
        )
        .unwrap();
        assert_eq!(sender.send(), (1, 1));
        assert!(sender.sees_foreign_tc());
        tc::delete_filter(&mut netlink, place).unwrap();
        sender.path.set_drained(1).unwrap();
        assert_eq!(sender.send(), (2, 1));
        assert!(!sender.sees_foreign_tc());
    });
}

pub(super) fn index_of(name: &str) -> u32 {
    let text = std::fs::read_to_string(format!("/proc/thread-self/net/dev_snmp6/{name}"));
    let text = text.expect("its numbers");
    let index = text.lines().find_map(|line| line.strip_prefix("ifIndex"));
    index.expect("an index").trim().parse().expect("a number")
}

#[test]
fn it_goes_with_its_owner_and_says_where_it_cannot_be() {
    in_namespace(|| {
        let error = DirectPath::attach(4711, PT0, false).expect_err("no such interface");
        assert_eq!(
            error.to_string(),
            "cannot attach the direct path to interface 4711: No such device (os error 19)"
        );
        let path = DirectPath::attach(LOOPBACK_IFINDEX, PT0, false).unwrap();
        drop(path);
        DirectPath::attach(LOOPBACK_IFINDEX, PT0, false).expect("nothing of the first is left");
    });
}
