//! The programs by `BPF_PROG_TEST_RUN`, frame by frame, and the guard on links in namespaces.

use std::os::fd::{AsRawFd, FromRawFd};

use libbpf_rs::ProgramInput;
use packtrain_proto::buffer::BufferPool;

use super::*;
use crate::linux::packet_socket::{Frames, PacketSocket};
use crate::linux::sys::check;
use crate::linux::test_namespace::{Host, in_namespace, ip, run, succeeds};

pub(super) const HOST: MacAddr = MacAddr([0x02, 0x70, 0x74, 1, 2, 3]);
const PT0: super::Host = super::Host {
    ifindex: LOOPBACK_IFINDEX,
    address: HOST,
};
pub(super) const LINK: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
pub(super) const PLAIN: MacAddr = MacAddr([0x00, 0x1b, 0x21, 9, 9, 9]);
pub(super) const VIRTUAL: MacAddr = MacAddr([0x52, 0x54, 0, 0, 0, 9]);
const MARK: MacAddr = MacAddr([0x0a, 0x54, 0, 0, 0, 0xa6]);
const LOOPBACK_IFINDEX: u32 = 1;

const LINK_IP: [u8; 4] = [10, 1, 0, 1];
const HOST_IP: [u8; 4] = [10, 9, 0, 1];
const ASKER_IP: [u8; 4] = [10, 9, 0, 2];

pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const VLAN: u16 = 0x8100;
pub(super) const PACKTRAIN: u16 = 0x88b5;

pub(super) fn frame(destination: MacAddr, source: MacAddr, ether_type: u16) -> Vec<u8> {
    let mut frame = [destination.0, source.0].concat();
    frame.extend_from_slice(&ether_type.to_be_bytes());
    frame.resize(60, 0);
    frame
}

pub(super) fn arp(operation: u8, sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut frame = frame(MacAddr::BROADCAST, PLAIN, ARP);
    frame.truncate(14);
    frame.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend_from_slice(&PLAIN.0);
    frame.extend_from_slice(&sender);
    frame.extend_from_slice(&[0; 6]);
    frame.extend_from_slice(&target);
    frame
}

fn guard(attachment: Attachment) -> Guard {
    let guard = Guard::attach(LOOPBACK_IFINDEX, LINK, PT0, attachment);
    let mut guard = guard.expect("a guard on lo");
    assert_eq!(guard.set_sources(&[MARK], &[]).unwrap(), 0);
    assert_eq!(guard.set_link_addresses(&[LINK_IP.into()]).unwrap(), 0);
    guard
}

/// Runs one of the programs on the frame, as the kernel would; its return value, and the verdict
/// that it counted. Direct frames are not counted at the socket.
fn verdict_of(guard: &Guard, name: &str, bytes: &[u8]) -> (i32, Verdict) {
    let before = guard.counters().unwrap();
    let program = guard
        .object
        .progs_mut()
        .find(|candidate| candidate.name() == name)
        .unwrap();
    let input = ProgramInput {
        data_in: Some(bytes),
        ..ProgramInput::default()
    };
    let value = program.test_run(input).expect("a test run").return_value as i32;
    let after = guard.counters().unwrap();
    let counted: Vec<_> = after
        .ingress
        .iter()
        .zip(before.ingress.iter())
        .chain(after.socket.iter().zip(before.socket.iter()))
        .filter(|(after, before)| after.1 != before.1)
        .collect();
    if counted.is_empty() && name == SOCKET_PROGRAM {
        return (value, Verdict::Direct);
    }
    assert_eq!(counted.len(), 1, "one verdict for each frame: {counted:?}");
    assert_eq!(counted[0].0.1 - counted[0].1.1, 1);
    (value, counted[0].0.0)
}

pub(super) fn at_ingress(guard: &Guard, bytes: &[u8]) -> (i32, Verdict) {
    verdict_of(guard, INGRESS_PROGRAM, bytes)
}

pub(super) fn at_socket(guard: &Guard, bytes: &[u8]) -> (i32, Verdict) {
    verdict_of(guard, SOCKET_PROGRAM, bytes)
}

/// On the `lo` of a namespace of its own, which nobody else sends on.
pub(super) fn with_guard(test: impl FnOnce(&mut Guard) + Send + 'static) {
    in_namespace(|| test(&mut guard(Attachment::Tcx)));
}

#[test]
fn the_verdicts_are_those_of_the_header_in_the_same_order() {
    let header = include_str!("../../bpf/guard.h");
    let names: Vec<_> = header
        .lines()
        .filter_map(|line| line.trim().strip_prefix("GUARD_"))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, rest)| {
            (
                name.to_lowercase(),
                rest.split(',').next().unwrap().to_owned(),
            )
        })
        .collect();
    let mut expected: Vec<_> = Verdict::ALL
        .iter()
        .map(|verdict| (verdict.as_str().to_owned(), (*verdict as usize).to_string()))
        .collect();
    expected.push(("verdicts".into(), Verdict::ALL.len().to_string()));
    assert_eq!(names, expected);
}

#[test]
fn each_frame_gets_its_verdict_at_the_stack_and_at_the_socket() {
    with_guard(|guard| {
        use Verdict::*;
        let broadcast = MacAddr::BROADCAST;
        let multicast = MacAddr([1, 0, 0x5e, 0, 0, 0xfb]);
        let cases = [
            // (what, frame, at the link's stack, at our socket)
            ("the link's own", frame(LINK, PLAIN, IPV4), Other, Other),
            (
                "of a virtual machine",
                frame(LINK, VIRTUAL, IPV4),
                Other,
                Other,
            ),
            ("somebody else's", frame(VIRTUAL, PLAIN, IPV4), Other, Other),
            ("a train", frame(LINK, PLAIN, PACKTRAIN), Train, Train),
            (
                "a hello",
                frame(MacAddr::HELLO, PLAIN, PACKTRAIN),
                Train,
                Train,
            ),
            (
                "to the hello group",
                frame(MacAddr::HELLO, PLAIN, IPV4),
                HelloGroup,
                Group,
            ),
            ("marked", frame(LINK, MARK, IPV4), Marked, Marked),
            ("marked, tagged", frame(LINK, MARK, VLAN), Marked, Marked),
            ("to pt0", frame(HOST, PLAIN, IPV4), Host, Host),
            ("to pt0, tagged", frame(HOST, PLAIN, VLAN), Host, Host),
            ("to pt0, ARP", frame(HOST, PLAIN, ARP), Host, Host),
            ("from pt0, an echo", frame(LINK, HOST, IPV4), Other, Other),
            ("broadcast", frame(broadcast, PLAIN, IPV4), Other, Group),
            ("multicast", frame(multicast, PLAIN, IPV4), Other, Group),
            (
                "zero to zero",
                frame(MacAddr([0; 6]), MacAddr([0; 6]), 0),
                Other,
                Other,
            ),
            (
                "who has pt0's",
                arp(1, ASKER_IP, HOST_IP),
                ForeignArp,
                Group,
            ),
            (
                "a probe for pt0's",
                arp(1, [0; 4], HOST_IP),
                ForeignArp,
                Group,
            ),
            (
                "who has the link's",
                arp(1, ASKER_IP, LINK_IP),
                Other,
                Group,
            ),
            (
                "a probe for the link's",
                arp(1, [0; 4], LINK_IP),
                Other,
                Group,
            ),
            ("gratuitous", arp(1, ASKER_IP, ASKER_IP), Other, Group),
            ("a reply", arp(2, ASKER_IP, HOST_IP), Other, Group),
        ];
        for (what, bytes, stack, socket) in cases {
            let keep = if stack == Other { -1 } else { TCX_DROP as i32 };
            assert_eq!(at_ingress(guard, &bytes), (keep, stack), "stack: {what}");
            let accept = if socket == Other { 0 } else { -1 };
            assert_eq!(at_socket(guard, &bytes), (accept, socket), "socket: {what}");
        }
    });
}

#[test]
fn a_direct_frame_is_given_to_pt0_with_the_inner_addresses_and_no_socket_is_woken() {
    const DIRECT: MacAddr = MacAddr([0x0a, 0x54, 0, 0, 0, 0x59]);
    const PEER: MacAddr = MacAddr([0x02, 0x70, 0x74, 9, 9, 9]);
    const TC_ACT_REDIRECT: u32 = 7;
    with_guard(|guard| {
        assert_eq!(guard.set_sources(&[], &[(DIRECT, PEER)]).unwrap(), 0);
        let bytes = frame(LINK, DIRECT, IPV4);
        let run = |bytes: &[u8]| {
            let program = guard
                .object
                .progs_mut()
                .find(|p| p.name() == INGRESS_PROGRAM);
            let mut out = vec![0; bytes.len()];
            let input = ProgramInput {
                data_in: Some(bytes),
                data_out: Some(&mut out),
                ..ProgramInput::default()
            };
            let result = program.unwrap().test_run(input).expect("a test run");
            (result.return_value, out)
        };
        let (verdict, given) = run(&bytes);
        assert_eq!(verdict, TC_ACT_REDIRECT);
        assert_eq!((&given[0..6], &given[6..12]), (&HOST.0[..], &PEER.0[..]));
        assert!(given[12..] == bytes[12..], "the rest is as it was");
        let counters = guard.counters().unwrap();
        assert_eq!(
            (counters.direct.frames, counters.direct.bytes),
            (1, bytes.len() as u64)
        );
        assert_eq!(counters.ingress.get(Verdict::Direct), 1);

        // Also where our socket takes all that passes.
        for promiscuous in [false, true] {
            guard.set_promiscuous(promiscuous).unwrap();
            assert_eq!(at_socket(guard, &bytes), (0, Verdict::Direct));
        }
        guard.set_promiscuous(false).unwrap();

        // Flooded by a switch, of another kind, tagged, or of nobody's.
        assert_eq!(
            at_ingress(guard, &frame(VIRTUAL, DIRECT, IPV4)).1,
            Verdict::Other
        );
        assert_eq!(
            at_ingress(guard, &frame(LINK, DIRECT, PACKTRAIN)).1,
            Verdict::Train
        );
        assert_eq!(
            at_ingress(guard, &frame(LINK, DIRECT, VLAN)).1,
            Verdict::Direct
        );
        guard.set_link_address(VIRTUAL).unwrap();
        assert_eq!(at_ingress(guard, &bytes).1, Verdict::Other);
        assert_eq!(
            at_ingress(guard, &frame(VIRTUAL, DIRECT, IPV4)).1,
            Verdict::Direct
        );
        guard.set_link_address(LINK).unwrap();
        guard.set_sources(&[], &[]).unwrap();
        assert_eq!(at_ingress(guard, &bytes).1, Verdict::Other);
        let refused = guard.set_sources(&[], &[(PLAIN, PEER), (DIRECT, PEER)]);
        assert_eq!(refused.unwrap(), 1, "a host's own address is nobody's mark");
    });
}

#[test]
fn a_promiscuous_socket_takes_all_and_the_stack_loses_nothing_by_it() {
    with_guard(|guard| {
        let plain = frame(VIRTUAL, PLAIN, IPV4);
        guard.set_promiscuous(true).unwrap();
        assert_eq!(at_socket(guard, &plain), (-1, Verdict::Promiscuous));
        assert_eq!(at_ingress(guard, &plain), (-1, Verdict::Other));
        assert_eq!(
            at_socket(guard, &frame(HOST, PLAIN, IPV4)),
            (-1, Verdict::Host)
        );
        guard.set_promiscuous(false).unwrap();
        assert_eq!(at_socket(guard, &plain), (0, Verdict::Other));
    });
}

#[test]
fn what_is_looked_up_follows_what_is_set() {
    with_guard(|guard| {
        let (moved, second) = (MacAddr([2, 9, 9, 9, 9, 9]), MacAddr([6, 0, 0, 0, 0, 1]));
        guard.set_host_address(moved).unwrap();
        assert_eq!(
            at_ingress(guard, &frame(moved, PLAIN, IPV4)).1,
            Verdict::Host
        );
        assert_eq!(
            at_ingress(guard, &frame(HOST, PLAIN, IPV4)).1,
            Verdict::Other
        );

        assert_eq!(guard.set_sources(&[second, MARK, second], &[]).unwrap(), 0);
        assert_eq!(
            at_ingress(guard, &frame(LINK, second, IPV4)).1,
            Verdict::Marked
        );
        guard.set_sources(&[second], &[]).unwrap();
        assert_eq!(
            at_ingress(guard, &frame(LINK, MARK, IPV4)).1,
            Verdict::Other
        );
        assert_eq!(
            at_ingress(guard, &frame(LINK, second, IPV4)).1,
            Verdict::Marked
        );

        guard.set_link_addresses(&[HOST_IP.into()]).unwrap();
        assert_eq!(
            at_ingress(guard, &arp(1, ASKER_IP, HOST_IP)).1,
            Verdict::Other
        );
        assert_eq!(
            at_ingress(guard, &arp(1, ASKER_IP, LINK_IP)).1,
            Verdict::ForeignArp
        );
        guard.set_link_addresses(&[]).unwrap();
        assert_eq!(
            at_ingress(guard, &arp(1, ASKER_IP, HOST_IP)).1,
            Verdict::ForeignArp
        );
    });
}

#[test]
fn a_peer_cannot_name_a_mark_that_takes_plain_traffic_away() {
    with_guard(|guard| {
        let refused = guard
            .set_sources(&[PLAIN, MacAddr::BROADCAST, MARK], &[])
            .unwrap();
        assert_eq!(refused, 2);
        assert_eq!(
            at_ingress(guard, &frame(LINK, PLAIN, IPV4)).1,
            Verdict::Other
        );
        assert_eq!(
            at_ingress(guard, &frame(LINK, MARK, IPV4)).1,
            Verdict::Marked
        );

        let many: Vec<_> = (0..MARKS_MAX + 7)
            .map(|n| MacAddr([2, 0, 0, (n >> 16) as u8, (n >> 8) as u8, n as u8]))
            .collect();
        assert_eq!(
            guard.set_sources(&many, &[]).unwrap(),
            7,
            "the table is bounded"
        );
        assert_eq!(
            guard.set_sources(&[MARK], &[]).unwrap(),
            0,
            "and usable after"
        );
    });
}

#[test]
fn a_frame_cut_at_any_length_is_never_taken_for_what_it_no_longer_says() {
    with_guard(|guard| {
        let request = arp(1, ASKER_IP, HOST_IP);
        assert_eq!(request.len(), 42);
        for len in 14..=request.len() {
            let whole = len == request.len();
            let expected = if whole {
                Verdict::ForeignArp
            } else {
                Verdict::Other
            };
            assert_eq!(
                at_ingress(guard, &request[..len]).1,
                expected,
                "{len} bytes"
            );
            assert_eq!(
                at_socket(guard, &request[..len]).1,
                Verdict::Group,
                "{len} bytes"
            );
        }
        for len in 14..60 {
            let train = &frame(LINK, PLAIN, PACKTRAIN)[..len];
            assert_eq!(at_ingress(guard, train).1, Verdict::Train, "{len} bytes");
            assert_eq!(at_socket(guard, train).1, Verdict::Train, "{len} bytes");
        }
    });
}

#[test]
fn other_hardware_in_arp_is_left_to_the_stack() {
    with_guard(|guard| {
        // RARP's protocol, and an operation that does not exist.
        let mut request = arp(1, ASKER_IP, HOST_IP);
        request[16..18].copy_from_slice(&[0x86, 0xdd]);
        assert_eq!(at_ingress(guard, &request).1, Verdict::Other);
        assert_eq!(
            at_ingress(guard, &arp(9, ASKER_IP, HOST_IP)).1,
            Verdict::Other
        );
    });
}

#[test]
fn by_clsact_a_frame_is_stolen_so_that_no_drop_is_counted() {
    in_namespace(|| {
        let guard = guard(Attachment::Clsact);
        let stolen = (TC_ACT_STOLEN as i32, Verdict::Train);
        assert_eq!(at_ingress(&guard, &frame(LINK, PLAIN, PACKTRAIN)), stolen);
        assert_eq!(
            at_ingress(&guard, &frame(LINK, PLAIN, IPV4)),
            (-1, Verdict::Other)
        );
    });
}

/// a0 is a member link here, and `host0` stands for `pt0`: an interface of another kind with an
/// address. b0, the other end of a0, is on the other host.
fn linked() -> (Host, u32) {
    ip("link add a0 address 52:54:00:00:00:01 type veth peer name b0");
    let other = Host::new();
    other.take("b0");
    ip("link add host0 type bridge");
    ip("address add 10.9.0.1/24 dev host0");
    ip("link set host0 up");
    ip("link set a0 up");
    run("sysctl -qw net.ipv4.conf.all.rp_filter=0");
    run("sysctl -qw net.ipv4.conf.a0.rp_filter=0");
    other.run("ip address add 10.9.0.2/24 dev b0");
    other.run("ip link set b0 up");
    let a0 = Netlink::open()
        .unwrap()
        .link_by_name("a0")
        .unwrap()
        .unwrap()
        .ifindex;
    (other, a0)
}

fn asks_for_host(other: &Host) -> bool {
    other.run("ip neigh flush dev b0");
    // Unanswered: the neighbour stays incomplete or failed.
    other.succeeds("ping -c 1 -W 1 10.9.0.1");
    other.run("ip neigh show 10.9.0.1").contains("lladdr")
}

fn live(attachment: Attachment, reception: Reception) {
    in_namespace(move || {
        let (other, a0) = linked();
        assert!(
            asks_for_host(&other),
            "without a guard the link answers for host0's address"
        );

        let mut guard = Guard::attach(a0, LINK, PT0, attachment).unwrap();
        guard.give_to(GivesTo::One(reception)).unwrap();
        assert!(!asks_for_host(&other), "with one it does not");
        assert!(guard.counters().unwrap().ingress.get(Verdict::ForeignArp) > 0);

        ip("address add 10.1.0.1/24 dev a0");
        other.run("ip address add 10.1.0.2/24 dev b0");
        guard.set_link_addresses(&[LINK_IP.into()]).unwrap();
        assert!(
            other.succeeds("ping -c 1 -W 1 10.1.0.1"),
            "the link's own traffic passes"
        );
        assert!(succeeds("ping -c 1 -W 1 10.1.0.2"));
        let withheld = guard.counters().unwrap().ingress;
        other.run("ping -c 5 -i 0.01 -W 1 10.1.0.1");
        let after = guard.counters().unwrap().ingress;
        assert!(after.get(Verdict::Other) >= withheld.get(Verdict::Other) + 5);
        assert_eq!(after.get(Verdict::Host), 0);

        drop(guard);
        assert!(asks_for_host(&other), "the guard went with its owner");
    });
}

#[test]
fn a_link_without_the_address_does_not_answer_arp_for_it_and_its_own_traffic_is_untouched() {
    live(Attachment::Tcx, Reception::Tap);
    live(Attachment::Tcx, Reception::ByType);
}

#[test]
fn the_same_holds_by_clsact() {
    live(Attachment::Clsact, Reception::Tap);
}

#[test]
fn a_clsact_that_was_there_before_stays_and_one_of_ours_goes_unless_it_is_used() {
    in_namespace(|| {
        ip("link add a0 type veth peer name b0");
        let a0 = Netlink::open()
            .unwrap()
            .link_by_name("a0")
            .unwrap()
            .unwrap()
            .ifindex;
        let shown = || run("tc qdisc show dev a0") + &run("tc filter show dev a0 ingress");
        let before = shown();
        assert!(!has_clsact(a0).unwrap());

        // Killed: the owner's drop does not run.
        std::mem::forget(Guard::attach(a0, LINK, PT0, Attachment::Clsact).unwrap());
        assert!(shown().contains("packtrain_guard"), "{}", shown());
        // Attached again over what was left behind.
        std::mem::forget(Guard::attach(a0, LINK, PT0, Attachment::Clsact).unwrap());
        remove_clsact(a0, true).unwrap();
        assert_eq!(shown(), before);
        remove_clsact(a0, true).unwrap();

        std::mem::forget(Guard::attach(a0, LINK, PT0, Attachment::Clsact).unwrap());
        run("tc filter add dev a0 egress protocol all prio 7 u32 match u32 0 0 flowid 1:1");
        remove_clsact(a0, true).unwrap();
        assert!(!shown().contains("packtrain_guard"), "{}", shown());
        assert!(has_clsact(a0).unwrap(), "somebody else's filter is in it");
    });
}

#[test]
fn a_kernel_with_tcx_is_known_by_it() {
    in_namespace(|| {
        let best = Attachment::best().unwrap();
        let attached = Guard::attach(LOOPBACK_IFINDEX, LINK, PT0, Attachment::Tcx);
        assert_eq!(best == Attachment::Tcx, attached.is_ok(), "{attached:?}");
    });
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    in_namespace(|| {
        let error = Guard::attach(4711, LINK, PT0, Attachment::Tcx).expect_err("no such interface");
        assert_eq!(
            error.to_string(),
            "cannot attach the guard to interface 4711: No such device (os error 19)"
        );
    });
}

/// A packet socket on the far end that sends with a header of its own choice before each frame.
struct Injector {
    fd: OwnedFd,
}

impl Injector {
    fn open(ifindex: u32) -> Injector {
        // SAFETY: no pointers but to locals that outlive their calls; the descriptor is ours.
        unsafe {
            let fd = check(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)).unwrap();
            let fd = OwnedFd::from_raw_fd(fd);
            crate::linux::sys::set_option(
                fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_VNET_HDR,
                &1i32,
            )
            .unwrap();
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_ifindex = ifindex as i32;
            let len = size_of_val(&address) as u32;
            check(libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len)).unwrap();
            Injector { fd }
        }
    }

    /// `linear` bytes of the frame stand in the linear part of what arrives, the rest in pages,
    /// where the frame is larger than a page.
    fn send(&self, frame: &[u8], linear: u16) {
        let mut bytes = vec![0; 10];
        bytes[2..4].copy_from_slice(&linear.to_ne_bytes());
        bytes.extend_from_slice(frame);
        // SAFETY: pointer and length describe `bytes`.
        let sent =
            unsafe { libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        assert_eq!(sent, bytes.len() as isize, "{}", io::Error::last_os_error());
    }
}

#[test]
fn a_body_outside_the_linear_part_is_read_all_the_same() {
    in_namespace(|| {
        ip("link add a0 mtu 9000 type veth peer name b0 mtu 9000");
        ip("link set a0 up");
        ip("link set b0 up");
        let mut netlink = Netlink::open().unwrap();
        let index =
            |netlink: &mut Netlink, name| netlink.link_by_name(name).unwrap().unwrap().ifindex;
        let (a0, b0) = (index(&mut netlink, "a0"), index(&mut netlink, "b0"));
        let guard = Guard::attach(a0, LINK, PT0, Attachment::Tcx).unwrap();
        let injector = Injector::open(b0);
        let mut padded = arp(1, ASKER_IP, HOST_IP);
        padded.resize(8000, 0);
        for linear in [14, 15, 30, 41, 42, 100] {
            let before = guard.counters().unwrap().ingress.get(Verdict::ForeignArp);
            injector.send(&padded, linear);
            let after = guard.counters().unwrap().ingress.get(Verdict::ForeignArp);
            assert_eq!(after - before, 1, "{linear} bytes in the linear part");
        }
    });
}

#[test]
fn our_socket_sees_our_frames_although_the_stack_does_not_and_none_of_the_links_own() {
    in_namespace(|| {
        let (other, a0) = linked();
        ip("address add 10.1.0.1/24 dev a0");
        other.run("ip address add 10.1.0.2/24 dev b0");
        let mut guard = Guard::attach(a0, LINK, PT0, Attachment::Tcx).unwrap();
        guard.set_link_addresses(&[LINK_IP.into()]).unwrap();
        let mut socket = PacketSocket::create().unwrap();
        socket
            .attach_filter(guard.filter_of(Reception::Tap))
            .unwrap();
        socket.bind(a0, Frames::All).unwrap();
        // Known neighbours: from here on nothing of the link's own is a group frame.
        assert!(other.succeeds("ping -c 1 -W 1 10.1.0.1"));
        let mut pool = BufferPool::new();
        while socket.receive(&mut pool).unwrap().is_some() {}

        other.run("ping -c 3 -i 0.01 -W 1 10.1.0.1");
        let own = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
        while let Some((buffer, _)) = socket.receive(&mut pool).unwrap() {
            let destination = MacAddr::from_slice(&buffer[0..6]);
            assert_ne!(destination, own, "a frame of the link's own woke us");
        }

        // To pt0's address, which a static neighbour on the other host knows.
        other.run(&format!("ip neigh replace 10.9.0.1 lladdr {HOST} dev b0"));
        other.succeeds("ping -c 1 -W 1 10.9.0.1");
        let mut seen = 0;
        while let Some((buffer, _)) = socket.receive(&mut pool).unwrap() {
            seen += u32::from(MacAddr::from_slice(&buffer[0..6]) == HOST);
        }
        assert_eq!(seen, 1);
        assert_eq!(guard.counters().unwrap().ingress.get(Verdict::Host), 1);
    });
}
