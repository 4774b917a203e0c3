//! Offload metadata that lies. A kernel acts on it, so it must agree with the frame to the byte,
//! or never reach one.

use packtrain_proto::gso;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;

use super::counts;
use super::support::forger::{FIRST, FRAME, Forger, next, subframe};
use super::support::{Pair, link_address, link_state, pt0};

/// The option field of a subframe.
pub fn field(offload: &Offload) -> [u8; 8] {
    let (gso, checksum) = (offload.gso.unwrap(), offload.checksum.unwrap());
    let kind = match gso.kind {
        GsoKind::TcpV4 => 1,
        GsoKind::TcpV6 => 2,
        GsoKind::UdpL4 => 3,
    };
    let mut bytes = [0; 8];
    bytes[0] = kind | if gso.ecn { 0x80 } else { 0 };
    bytes[1] = checksum.offset as u8;
    bytes[2..4].copy_from_slice(&gso.header_len.to_be_bytes());
    bytes[4..6].copy_from_slice(&gso.segment_len.to_be_bytes());
    bytes[6..8].copy_from_slice(&checksum.start.to_be_bytes());
    bytes
}

/// What follows the Ethernet header of an honest GSO frame.
pub fn honest(kind: GsoKind, payload_len: usize) -> (u16, Vec<u8>, Offload) {
    let udp = kind == GsoKind::UdpL4;
    let transport_len = if udp { 8 } else { 20 };
    let v6 = kind == GsoKind::TcpV6;
    let mut packet = Vec::new();
    let protocol = if udp { 17 } else { 6 };
    if v6 {
        packet.extend([0x60, 0, 0, 0]);
        packet.extend(((transport_len + payload_len) as u16).to_be_bytes());
        packet.extend([protocol, 64]);
        packet.extend([0xfd; 32]);
    } else {
        packet.extend([0x45, 0]);
        packet.extend(((20 + transport_len + payload_len) as u16).to_be_bytes());
        packet.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    }
    let start = 14 + packet.len() as u16;
    packet.extend([0, 80, 0, 81]);
    if udp {
        packet.extend(((8 + payload_len) as u16).to_be_bytes());
        packet.extend([0, 0]);
    } else {
        packet.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    }
    packet.resize(packet.len() + payload_len, 0x33);
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start,
            offset: if udp { 6 } else { 16 },
        }),
        gso: Some(Gso {
            kind,
            ecn: false,
            header_len: start + transport_len as u16,
            segment_len: 500,
        }),
    };
    (if v6 { 0x86dd } else { 0x0800 }, packet, offload)
}

/// Every lie of one field: about the headers, and in them.
fn lies(kind: GsoKind) -> Vec<(u16, Vec<u8>, Offload)> {
    let (ether_type, packet, offload) = honest(kind, 1200);
    let mut lies = Vec::new();
    let mut claim = |change: &dyn Fn(&mut Gso, &mut PartialChecksum)| {
        let mut offload = offload;
        let (mut gso, mut checksum) = (offload.gso.unwrap(), offload.checksum.unwrap());
        change(&mut gso, &mut checksum);
        offload.gso = Some(gso);
        offload.checksum = Some(checksum);
        lies.push((ether_type, packet.clone(), offload));
    };
    for other in [GsoKind::TcpV4, GsoKind::TcpV6, GsoKind::UdpL4] {
        if other != kind {
            claim(&|gso, _| gso.kind = other);
        }
    }
    for wrong in [
        0u16,
        1,
        13,
        14,
        33,
        34,
        41,
        43,
        53,
        55,
        66,
        75,
        1000,
        1300,
        u16::MAX,
    ] {
        claim(&|gso, _| gso.header_len = wrong);
        claim(&|_, checksum| checksum.start = wrong);
        claim(&|_, checksum| {
            if wrong != checksum.offset {
                checksum.offset = wrong % 256;
            }
        });
    }
    claim(&|gso, _| gso.segment_len = 0);
    claim(&|gso, _| gso.segment_len = u16::MAX);
    if kind == GsoKind::UdpL4 {
        claim(&|gso, _| gso.ecn = true);
        claim(&|gso, _| gso.segment_len = 9); // more segments than a kernel cuts
    }
    // The packet's own lengths and protocols.
    let transport = usize::from(offload.checksum.unwrap().start) - 14;
    let mut places = vec![0];
    match kind {
        GsoKind::TcpV6 => places.extend([4, 5, 6]),
        _ => places.extend([2, 3, 6, 7, 9]),
    }
    match kind {
        GsoKind::UdpL4 => places.extend([transport + 4, transport + 5]),
        _ => places.push(transport + 12),
    }
    for at in places {
        for flip in [0x01u8, 0x10, 0x20] {
            let mut packet = packet.clone();
            packet[at] ^= flip;
            lies.push((ether_type, packet, offload));
        }
    }
    // Only what really is one: a flag bit that means nothing is no lie.
    lies.retain(|(ether_type, packet, offload)| {
        gso::check(&ethernet(*ether_type, packet), offload).is_err()
    });
    assert!(lies.len() > 40, "{}", lies.len());
    lies
}

pub fn ethernet(ether_type: u16, packet: &[u8]) -> Vec<u8> {
    let head = [&pt0(1).0[..], &pt0(0).0, &ether_type.to_be_bytes()].concat();
    [head, packet.to_vec()].concat()
}

const KINDS: [GsoKind; 3] = [GsoKind::TcpV4, GsoKind::TcpV6, GsoKind::UdpL4];

fn with_offload(
    kind: u8,
    ether_type: u16,
    offload: &Offload,
    rest: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let fields = [&field(offload), rest].concat();
    let mut bytes = subframe(kind, ether_type, &fields, payload);
    bytes[0] |= 0x20;
    bytes
}

#[test]
fn metadata_that_lies_in_a_train_is_never_delivered() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    for kind in KINDS {
        let (ether_type, packet, offload) = honest(kind, 1200);
        counts(&mut pair, &[], |pair| {
            forger.send(
                pair,
                1,
                &with_offload(FRAME, ether_type, &offload, &[], &packet),
            );
        });
        assert_eq!(pair.out[1].pop().unwrap().1, offload);
        for (ether_type, packet, offload) in lies(kind) {
            counts(&mut pair, &[(DropReason::BadGso, 1)], |pair| {
                forger.send(
                    pair,
                    1,
                    &with_offload(FRAME, ether_type, &offload, &[], &packet),
                );
            });
            assert_eq!(pair.out[1], [], "{offload:?}");
        }
    }
    pair.still_works();
}

#[test]
fn metadata_that_lies_about_pieces_is_never_delivered_whole_or_in_segments() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    for kind in KINDS {
        for holed in [false, true] {
            for (ether_type, packet, offload) in lies(kind) {
                let total = (packet.len() as u16).to_be_bytes();
                let (head, tail) = packet.split_at(700);
                let piece = with_offload(
                    FIRST,
                    ether_type,
                    &offload,
                    &[&[0, 5], &total[..]].concat(),
                    head,
                );
                let before = pair.drops(1);
                forger.send(&mut pair, 1, &piece);
                if holed {
                    forger.train(1, &[]); // never arrives
                    forger.send(&mut pair, 1, &next(5, 710, &tail[10..]));
                } else {
                    forger.send(&mut pair, 1, &next(5, 700, tail));
                }
                while pair.snapshot(1).resequencer.held_bytes > 0 {
                    // What came after a gap is looked at when the gap has been waited for.
                    pair.run(Duration::from_millis(1));
                }
                let mut dropped = pair.dropped_since(1, &before);
                // Some lies are seen in the first piece already.
                dropped.retain(|drop| *drop != (DropReason::StrayPiece, 1));
                assert_eq!(dropped, [(DropReason::BadGso, 1)], "{offload:?}");
                assert_eq!(pair.out[1], [], "{offload:?}");
            }
        }
    }
    assert_eq!(pair.snapshot(1).reassembly.bytes, 0);
    pair.still_works();
}

#[test]
fn metadata_that_lies_about_a_frame_as_it_is_is_never_delivered() {
    let mark = link_state(0).mark.unwrap();
    for (destination, source) in [
        (link_address(1), mark),
        (pt0(1), pt0(0)),
        (pt0(1), link_address(9)),
    ] {
        let mut pair = Pair::new(true);
        for kind in KINDS {
            let addressed = |ether_type: u16, packet: &[u8]| {
                let mut frame = ethernet(ether_type, packet);
                frame[..6].copy_from_slice(&destination.0);
                frame[6..12].copy_from_slice(&source.0);
                frame
            };
            let (ether_type, packet, offload) = honest(kind, 1200);
            pair.inject(1, &addressed(ether_type, &packet), offload);
            assert_eq!(pair.out[1].pop().unwrap().1, offload);
            for (ether_type, packet, offload) in lies(kind) {
                counts(&mut pair, &[(DropReason::BadGso, 1)], |pair| {
                    pair.inject(1, &addressed(ether_type, &packet), offload);
                });
            }
            let outside = Offload {
                checksum: Some(PartialChecksum {
                    start: 1200,
                    offset: 100,
                }),
                gso: None,
            };
            counts(&mut pair, &[(DropReason::BadGso, 1)], |pair| {
                pair.inject(1, &addressed(ether_type, &packet), outside);
            });
            assert_eq!(pair.out[1], []);
        }
        pair.still_works();
    }
}
