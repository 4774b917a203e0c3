//! What our socket gets, and what the link's stack gets, wherever ours stands; on cables in namespaces.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;

use libbpf_rs::ProgramInput;
use packtrain_proto::buffer::BufferPool;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};

use super::reception::SK_BUFF_IFINDEX;
use super::tests::{ARP, HOST, IPV4, LINK, PACKTRAIN, PLAIN, VIRTUAL, VLAN, arp, frame};
use super::*;
use crate::linux::af_packet;
use crate::linux::packet_socket::{Frames, PacketSocket};
use crate::linux::test_namespace::{in_namespace, ip};

pub(super) const MARK: MacAddr = MacAddr([0x0a, 0x54, 0, 0, 0, 0xa6]);
pub(super) const LINK_IP: [u8; 4] = [10, 1, 0, 1];
pub(super) const HOST_IP: [u8; 4] = [10, 9, 0, 1];
pub(super) const ASKER_IP: [u8; 4] = [10, 9, 0, 2];
const QINQ: u16 = 0x88a8;
const IPV6: u16 = 0x86dd;
const LLDP: u16 = 0x88cc;
/// `ETH_P_802_2`: frames with a length instead of a type.
const LLC: u16 = 4;
const DIRECT_VLAN: u16 = 77;
/// That a busy machine may take for a frame.
pub(super) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

pub(super) const BOTH: [Reception; 2] = [Reception::Tap, Reception::ByType];

/// A guarded link, and the far end of its cable.
pub(super) struct Cable {
    pub(super) guard: Guard,
    pub(super) a0: u32,
    pub(super) far: PacketSocket,
}

pub(super) fn index_of(name: &str) -> u32 {
    let link = Netlink::open().unwrap().link_by_name(name).unwrap();
    link.unwrap().ifindex
}

pub(super) fn guard_of(ifindex: u32) -> Guard {
    let host = Host {
        ifindex: 1,
        address: HOST,
    };
    let mut guard = Guard::attach(ifindex, LINK, host, Attachment::Tcx).unwrap();
    assert_eq!(guard.set_sources(&[MARK], &[]).unwrap(), 0);
    assert_eq!(guard.set_link_addresses(&[LINK_IP.into()]).unwrap(), 0);
    guard.set_direct_vlan(Some(DIRECT_VLAN)).unwrap();
    guard
}

/// Nobody sends on it but the test.
pub(super) fn cable() -> Cable {
    ip("link add a0 mtu 9000 type veth peer name b0");
    ip(&format!("link set a0 address {LINK} addrgenmode none"));
    ip("link set b0 mtu 9000 addrgenmode none up");
    ip("link set a0 up");
    let a0 = index_of("a0");
    let mut far = PacketSocket::create().unwrap();
    far.bind(index_of("b0"), Frames::None).unwrap();
    Cable {
        guard: guard_of(a0),
        a0,
        far,
    }
}

/// As the daemon opens it.
pub(super) fn open_ours(guard: &Guard, reception: Reception, ifindex: u32) -> PacketSocket {
    let frames = match reception {
        Reception::Tap => Frames::All,
        Reception::ByType => Frames::Wrapped,
    };
    let mut socket = PacketSocket::create().unwrap();
    socket.attach_filter(guard.filter_of(reception)).unwrap();
    socket.bind(ifindex, frames).unwrap();
    socket
}

pub(super) type Ours = (Vec<u8>, Offload);

pub(super) fn take(socket: &mut PacketSocket) -> Vec<Ours> {
    let mut pool = BufferPool::new();
    let mut taken = Vec::new();
    while let Some((frame, offload)) = socket.receive(&mut pool).unwrap() {
        taken.push((frame.to_vec(), offload));
    }
    taken
}

/// Who asks for certain types, as the host's protocols do.
pub(super) struct Stack(BTreeMap<u16, OwnedFd>);

impl Stack {
    pub(super) fn open(ifindex: u32) -> Stack {
        let types = [IPV4, ARP, IPV6, LLC, LLDP];
        Stack(BTreeMap::from(types.map(|of| {
            let fd = af_packet::open().unwrap();
            af_packet::bind(fd.as_fd(), ifindex, of).unwrap();
            (of, fd)
        })))
    }

    pub(super) fn take(&self) -> Vec<(u16, Vec<u8>)> {
        let mut taken = Vec::new();
        for (of, fd) in &self.0 {
            loop {
                let mut bytes = vec![0; 1 << 17];
                // SAFETY: pointer and length describe `bytes`.
                let len = unsafe {
                    let flags = libc::MSG_DONTWAIT;
                    libc::recv(
                        fd.as_raw_fd(),
                        bytes.as_mut_ptr().cast(),
                        bytes.len(),
                        flags,
                    )
                };
                let Ok(len) = usize::try_from(len) else {
                    break;
                };
                bytes.truncate(len);
                taken.push((*of, bytes));
            }
        }
        taken
    }
}

struct Case {
    what: &'static str,
    frame: Vec<u8>,
    offload: Offload,
    /// How often our socket gets it.
    ours: usize,
    /// How often the link's stack gets it, by types that are asked for here.
    stacks: usize,
}

fn tagged(frame: &[u8], tpid: u16, control: u16) -> Vec<u8> {
    let tag = [tpid.to_be_bytes(), control.to_be_bytes()].concat();
    [&frame[..12], &tag, &frame[12..]].concat()
}

/// IPv4 with the transport header's checksum left to others.
fn unfinished(destination: MacAddr, protocol: u8, len: usize) -> (Vec<u8>, Offload) {
    let mut bytes = frame(destination, PLAIN, IPV4);
    bytes.resize(len, 0x5a);
    let total = u16::try_from(len - 14).unwrap();
    bytes[14..34].copy_from_slice(&[
        0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 9, 0, 2, 10, 9, 0, 1,
    ]);
    bytes[16..18].copy_from_slice(&total.to_be_bytes());
    let (offset, header_len) = if protocol == 6 { (16, 20) } else { (6, 8) };
    bytes[34..34 + header_len].fill(0);
    if protocol == 6 {
        bytes[46] = 0x50;
    } else {
        bytes[38..40].copy_from_slice(&(total - 20).to_be_bytes());
    }
    let offload = Offload {
        checksum: Some(PartialChecksum { start: 34, offset }),
        gso: None,
    };
    (bytes, offload)
}

fn segments(kind: GsoKind, (frame, offload): (Vec<u8>, Offload)) -> (Vec<u8>, Offload) {
    let gso = Gso {
        kind,
        ecn: false,
        header_len: if kind == GsoKind::UdpL4 { 42 } else { 54 },
        segment_len: 1400,
    };
    let gso = Some(gso);
    (frame, Offload { gso, ..offload })
}

fn in_vlan((frame, offload): (Vec<u8>, Offload), control: u16) -> (Vec<u8>, Offload) {
    let offload = crate::linux::vnet_header::shift(offload, 4);
    (tagged(&frame, VLAN, control), offload)
}

fn cases() -> Vec<Case> {
    let broadcast = MacAddr::BROADCAST;
    let stp = {
        let mut bytes = frame(MacAddr([1, 0x80, 0xc2, 0, 0, 0]), PLAIN, 38);
        bytes[14..17].copy_from_slice(&[0x42, 0x42, 3]);
        bytes
    };
    let neighbours = MacAddr([0x33, 0x33, 0xff, 0, 0, 1]);
    let lldp = MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]);
    let mut unicast_arp = arp(1, ASKER_IP, HOST_IP);
    unicast_arp[..6].copy_from_slice(&LINK.0);
    let train = || frame(LINK, PLAIN, PACKTRAIN);
    let marked = || frame(LINK, MARK, IPV4);
    let hosts = || frame(HOST, PLAIN, IPV4);
    let everybodys = || frame(broadcast, PLAIN, IPV4);
    let twice = |frame: &[u8], outer, inner| tagged(&tagged(frame, VLAN, inner), QINQ, outer);
    let forged = |frame: &[u8]| tagged(&tagged(frame, QINQ, 7), VLAN, 0xfff);
    let plain = |what, frame, ours, stacks| Case {
        what,
        frame,
        offload: Offload::NONE,
        ours,
        stacks,
    };
    let with = |what, (frame, offload), ours, stacks| Case {
        what,
        frame,
        offload,
        ours,
        stacks,
    };
    let large = |destination| {
        let mut bytes = frame(destination, PLAIN, IPV4);
        bytes.resize(9014, 0xa5);
        bytes
    };
    vec![
        plain("a train", train(), 1, 0),
        plain("a hello", frame(MacAddr::HELLO, PLAIN, PACKTRAIN), 1, 0),
        plain("to all, a train", frame(broadcast, PLAIN, PACKTRAIN), 1, 0),
        plain("a train, priority", tagged(&train(), VLAN, 0x6000), 1, 0),
        plain(
            "a train in our VLAN",
            tagged(&train(), VLAN, DIRECT_VLAN),
            1,
            0,
        ),
        plain("a train in another VLAN", tagged(&train(), VLAN, 78), 0, 0),
        plain("marked", marked(), 1, 0),
        plain("marked, tagged", tagged(&marked(), VLAN, 0xa005), 1, 0),
        plain("marked, twice tagged", twice(&marked(), 7, 8), 1, 0),
        plain("to pt0", hosts(), 1, 0),
        plain("to pt0, ARP", frame(HOST, PLAIN, ARP), 1, 0),
        plain("to pt0, tagged", tagged(&hosts(), VLAN, 5), 1, 0),
        plain("to pt0, of a provider", tagged(&hosts(), QINQ, 5), 1, 0),
        plain("to pt0, twice tagged", twice(&hosts(), 5, 6), 1, 0),
        plain("to pt0, as if wrapped", forged(&hosts()), 1, 0),
        plain("to pt0, large", large(HOST), 1, 0),
        with("to pt0, UDP", unfinished(HOST, 17, 300), 1, 0),
        with(
            "to pt0, UDP, tagged",
            in_vlan(unfinished(HOST, 17, 300), 5),
            1,
            0,
        ),
        with(
            "to pt0, segments of TCP",
            segments(GsoKind::TcpV4, unfinished(HOST, 6, 65_000)),
            1,
            0,
        ),
        with(
            "to pt0, segments of UDP, tagged",
            in_vlan(segments(GsoKind::UdpL4, unfinished(HOST, 17, 20_000)), 5),
            1,
            0,
        ),
        plain("the link's own", frame(LINK, PLAIN, IPV4), 0, 1),
        plain(
            "the link's own, tagged",
            tagged(&frame(LINK, PLAIN, IPV4), VLAN, 5),
            0,
            1,
        ),
        with("the link's own UDP", unfinished(LINK, 17, 300), 0, 1),
        plain("somebody else's", frame(VIRTUAL, PLAIN, IPV4), 0, 1),
        plain(
            "the link's own, as if wrapped",
            forged(&frame(LINK, PLAIN, IPV4)),
            0,
            0,
        ),
        plain("to all", everybodys(), 1, 1),
        plain("to all, large", large(broadcast), 1, 1),
        with("to all, UDP", unfinished(broadcast, 17, 300), 1, 1),
        plain("to all, tagged", tagged(&everybodys(), VLAN, 9), 1, 1),
        plain("to all, twice tagged", twice(&everybodys(), 9, 10), 1, 0),
        plain("to all, as if wrapped", forged(&everybodys()), 1, 0),
        plain("gratuitous ARP", arp(1, ASKER_IP, ASKER_IP), 1, 1),
        plain("who has the link's", arp(1, ASKER_IP, LINK_IP), 1, 1),
        plain("who has pt0's", arp(1, ASKER_IP, HOST_IP), 1, 0),
        plain("who has pt0's, asked of the link", unicast_arp, 0, 0),
        plain(
            "a neighbour is sought",
            frame(neighbours, PLAIN, IPV6),
            1,
            1,
        ),
        plain("LLDP", frame(lldp, PLAIN, LLDP), 1, 1),
        plain("a bridge's hello", stp, 1, 1),
        plain(
            "to the hello group",
            frame(MacAddr::HELLO, PLAIN, IPV4),
            1,
            0,
        ),
    ]
}

/// All that came of each case.
type Came = BTreeMap<&'static str, (Vec<Ours>, Vec<(u16, Vec<u8>)>)>;

#[allow(clippy::disallowed_methods)] // frames take their time on a busy machine
fn what_comes(cable: &mut Cable, reception: Reception) -> Came {
    let mut ours = open_ours(&cable.guard, reception, cable.a0);
    let stack = Stack::open(cable.a0);
    cable.guard.give_to(GivesTo::One(reception)).unwrap();
    let mut came = Came::new();
    for case in cases() {
        cable.far.send(&case.frame, case.offload).expect(case.what);
        let (got, seen) = came.entry(case.what).or_default();
        let begun = std::time::Instant::now();
        while got.len() < case.ours || seen.len() < case.stacks {
            got.extend(take(&mut ours));
            seen.extend(stack.take());
            assert!(
                begun.elapsed() < PATIENCE,
                "{reception:?}: {} is not there",
                case.what
            );
        }
    }
    // What came too often came by now.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let (got, seen) = came.entry("once more").or_default();
    got.extend(take(&mut ours));
    seen.extend(stack.take());
    came
}

#[test]
fn wherever_our_socket_stands_it_and_the_stack_get_the_same_frames() {
    in_namespace(|| {
        let mut cable = cable();
        let [tap, by_type] = BOTH.map(|reception| what_comes(&mut cable, reception));
        for case in cases() {
            let (got, seen) = &tap[case.what];
            assert_eq!(got.len(), case.ours, "{}", case.what);
            assert_eq!(seen.len(), case.stacks, "{}", case.what);
            assert!(
                got.iter().all(|(frame, offload)| *frame == case.frame
                    && offload.checksum == case.offload.checksum
                    && offload.gso == case.offload.gso),
                "{} has been changed on the way: {got:x?}",
                case.what
            );
        }
        for (what, came) in &tap {
            assert_eq!(came, &by_type[what], "{what}");
        }
        assert_eq!(tap["once more"], Default::default());
        let counters = cable.guard.counters().unwrap();
        assert_eq!(counters.ingress.get(Verdict::Lost), 0);
    });
}

/// What the two count is the same, too.
#[test]
fn wherever_our_socket_stands_the_same_is_counted() {
    in_namespace(|| {
        let mut cable = cable();
        let [tap, by_type] = BOTH.map(|reception| {
            let before = cable.guard.counters().unwrap();
            what_comes(&mut cable, reception);
            let after = cable.guard.counters().unwrap();
            let ingress = after.ingress.iter().zip(before.ingress.iter());
            let ingress: Vec<_> = ingress.map(|(a, b)| (a.0, a.1 - b.1)).collect();
            let socket = after.socket.iter().zip(before.socket.iter());
            let is_ours = |verdict: Verdict| !matches!(verdict, Verdict::Other);
            let socket: Vec<_> = socket
                .map(|(a, b)| (a.0, a.1 - b.1))
                .filter(|(verdict, _)| is_ours(*verdict))
                .collect();
            (ingress, socket)
        });
        assert_eq!(tap.0, by_type.0, "at the link's ingress");
        assert_eq!(tap.1, by_type.1, "at our socket");
    });
}

/// The copy for us comes in by the link, which takes nothing while it is down.
#[test]
fn a_frame_that_there_is_no_room_for_is_counted() {
    in_namespace(|| {
        ip("link add a0 type veth peer name b0");
        let a0 = index_of("a0");
        let mut guard = guard_of(a0);
        guard.give_to(GivesTo::One(Reception::ByType)).unwrap();
        let lost = || guard.counters().unwrap().ingress.get(Verdict::Lost);
        let run = |bytes: &[u8]| {
            let mut programs = guard.object.progs_mut();
            let program = programs.find(|program| program.name() == INGRESS_PROGRAM);
            let mut context = [[0; 4]; SK_BUFF_IFINDEX + 1];
            context[SK_BUFF_IFINDEX] = a0.to_ne_bytes();
            let input = ProgramInput {
                data_in: Some(bytes),
                context_in: Some(context.as_flattened_mut()),
                ..ProgramInput::default()
            };
            program.unwrap().test_run(input).unwrap().return_value as i32
        };
        let own = -1;
        assert_eq!(run(&frame(LINK, PLAIN, IPV4)), own);
        assert_eq!(lost(), 0);
        assert_eq!(run(&frame(MacAddr::BROADCAST, PLAIN, IPV4)), own);
        assert_eq!(lost(), 1);
    });
}
