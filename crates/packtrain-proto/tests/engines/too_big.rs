//! Frames that are longer than what a host without packtrain takes: whoever sent them is told how much goes through, and nobody else.

use crate::segments::{Bed, Cable, PLAIN, frame_to, host, pt0};
use packtrain_proto::config::{LinkId, LinkState, mark_of};
use packtrain_proto::gso;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::stats::{DropReason, TooBigSnapshot};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::checksum;
use packtrain_proto::wire::ethernet::MacAddr;

const MS: Duration = Duration::from_millis(1);
const A: usize = 0;
const B: usize = 1;
const GUEST: MacAddr = MacAddr([2, 0, 0, 0, 9, 9]);

/// Two hosts with large frames and a plain one on a switch, who have met.
fn bed(mtus: [u16; 2]) -> Bed {
    let mut bed = strangers(mtus);
    bed.run(2000 * MS);
    bed.plain_says(&frame_to(MacAddr::BROADCAST, PLAIN, 1));
    bed.run(10 * MS);
    bed.out.iter_mut().for_each(Vec::clear);
    bed
}

fn strangers(mtus: [u16; 2]) -> Bed {
    let mut bed = Bed::with(2, &[Cable::plain(&[(A, 0), (B, 0)])], |config| {
        config.mtu = 65_521;
    });
    for (engine, mtu) in bed.engines.iter_mut().zip(mtus) {
        engine.handle_host_change(mtu, false, bed.now);
    }
    bed
}

/// UDP in IPv4, or TCP, of this many bytes after the EtherType.
fn packet(to: MacAddr, from: MacAddr, protocol: u8, len: u16) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x08, 0x00, 0x45, 0]].concat();
    frame.extend(len.to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    let sum = checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.resize(14 + usize::from(len), 7);
    frame[14 + 20 + 12] = 0x50;
    frame
}

fn udp(to: MacAddr, len: u16) -> Vec<u8> {
    packet(to, pt0(A), 17, len)
}

/// For whom it is, from whom it seems to be, and the MTU that it names.
fn read(answer: &[u8]) -> (MacAddr, MacAddr, u16) {
    assert_eq!(answer[12..14], [0x08, 0x00]);
    assert_eq!(checksum::checksum(&answer[14..34]), 0);
    assert_eq!(answer[26..34], [10, 9, 0, 2, 10, 9, 0, 1]);
    assert_eq!(answer[34..36], [3, 4]);
    assert_eq!(checksum::checksum(&answer[34..]), 0);
    let addresses = [&answer[..6], &answer[6..12]].map(MacAddr::from_slice);
    let mtu = u16::from_be_bytes([answer[40], answer[41]]);
    (addresses[0], addresses[1], mtu)
}

fn counts(bed: &Bed, side: usize) -> TooBigSnapshot {
    bed.seen(side).too_big
}

fn told(told: u64) -> TooBigSnapshot {
    TooBigSnapshot {
        told,
        ..Default::default()
    }
}

#[test]
fn a_host_is_told_how_much_a_host_without_packtrain_takes() {
    let mut bed = bed([65_521; 2]);
    bed.send(A, &udp(PLAIN, 60_000));
    bed.run(MS);
    assert_eq!(bed.out[A].len(), 1);
    assert_eq!(read(&bed.out[A][0]), (pt0(A), PLAIN, 1500));
    assert_eq!(bed.seen(A).drops.get(DropReason::TooLargeForPlain), 1);
    assert_eq!(counts(&bed, A), told(1));
    bed.plain_got.clear();
    bed.send(A, &udp(PLAIN, 1500));
    bed.run(MS);
    assert_eq!(bed.plain_got, [udp(PLAIN, 1500)]);
    // What no router tells anybody of: frames that are not IP, or for a group.
    let mut other = udp(PLAIN, 3000);
    other[12] = 0x90;
    bed.send(A, &other);
    bed.run(MS);
    assert_eq!(bed.out[A].len(), 1);
    assert_eq!(counts(&bed, A).untold, 1);
}

#[test]
fn between_hosts_with_packtrain_any_frame_goes_whole_and_nobody_is_told() {
    for mtus in [[65_521; 2], [65_521, 1500]] {
        let mut bed = bed(mtus);
        bed.send(A, &udp(pt0(B), 65_521));
        bed.run(100 * MS);
        assert_eq!(bed.out[B], [udp(pt0(B), 65_521)]);
        assert_eq!(counts(&bed, A), told(0));
    }
}

#[test]
fn a_node_that_is_being_met_or_is_away_is_not_taken_for_a_host_without() {
    let mut bed = strangers([65_521; 2]);
    bed.send(A, &udp(pt0(B), 60_000));
    bed.run(2000 * MS);
    assert!(bed.out[A].is_empty());
    let untold = |untold| TooBigSnapshot {
        untold,
        ..Default::default()
    };
    assert_eq!(counts(&bed, A), untold(1));
    bed.stop(B);
    bed.run(Duration::from_secs(6));
    assert!(bed.seen(A).peers.is_empty());
    bed.send(A, &udp(pt0(B), 60_000));
    bed.run(MS);
    assert!(bed.out[A].is_empty());
    assert_eq!(counts(&bed, A), untold(2));
    // But whoever speaks plainly in its place is one.
    bed.plain_says(&frame_to(MacAddr::BROADCAST, pt0(B), 1));
    bed.run(MS);
    bed.out[A].clear();
    bed.send(A, &udp(pt0(B), 60_000));
    bed.run(MS);
    assert_eq!(read(&bed.out[A][0]), (pt0(A), pt0(B), 1500));
}

#[test]
fn a_station_behind_us_is_told_itself() {
    let mut bed = bed([65_521; 2]);
    bed.send(A, &packet(PLAIN, GUEST, 17, 9000));
    bed.run(MS);
    assert_eq!(read(&bed.out[A][0]), (GUEST, PLAIN, 1500));
}

#[test]
fn what_a_peers_bridge_would_drop_is_told_and_what_is_for_itself_goes_whole() {
    let mut bed = bed([65_521, 1400]);
    bed.send(B, &frame_to(MacAddr::BROADCAST, GUEST, 1));
    bed.run(1500 * MS);
    bed.out.iter_mut().for_each(Vec::clear);
    bed.send(A, &udp(GUEST, 1405));
    bed.send(A, &udp(GUEST, 1400));
    bed.run(10 * MS);
    assert_eq!(read(&bed.out[A][0]), (pt0(A), GUEST, 1400));
    assert_eq!(bed.seen(A).drops.get(DropReason::TooLargeForPeer), 1);
    // Its bridge takes all that is for others.
    bed.engines[B].handle_host_change(1400, true, bed.now);
    bed.send(A, &udp(GUEST, 1400));
    bed.run(10 * MS);
    assert_eq!(bed.out[B], [udp(GUEST, 1400)]);
}

#[test]
fn of_segments_to_be_cut_the_first_is_told_of() {
    let mut bed = bed([65_521; 2]);
    let send = |bed: &mut Bed, segment_len: u16| {
        let mut frame = packet(PLAIN, pt0(A), 6, 60_000);
        let offload = Offload {
            checksum: Some(PartialChecksum {
                start: 34,
                offset: gso::TCP_CHECKSUM_OFFSET,
            }),
            gso: Some(Gso {
                kind: GsoKind::TcpV4,
                ecn: false,
                header_len: 54,
                segment_len,
            }),
        };
        frame[50..52].copy_from_slice(&[1, 2]);
        let buffer = bed.engines[A].buffers().copy_of(&frame);
        bed.engines[A].handle_host_frame(buffer, offload, bed.now);
        bed.run(MS);
    };
    send(&mut bed, 1460);
    assert!(bed.out[A].is_empty());
    send(&mut bed, 8960);
    assert_eq!(read(&bed.out[A][0]), (pt0(A), PLAIN, 1500));
    let quoted = &bed.out[A][0][42..];
    assert_eq!(quoted[2..4], 9000_u16.to_be_bytes(), "its own length");
    assert_eq!(checksum::checksum(&quoted[..20]), 0);
    assert_eq!(counts(&bed, A), told(1));
}

#[test]
fn what_waits_while_a_link_comes_to_take_less_is_told_of() {
    let mut bed = bed([65_521; 2]);
    bed.full.insert((A, LinkId(0)));
    bed.run(10 * MS);
    bed.send(A, &udp(PLAIN, 1500));
    bed.run(10 * MS);
    let address = host(A, 0);
    let state = LinkState {
        address,
        mark: mark_of(address),
        mtu: 1000,
        carrier: true,
        rate_bps: None,
    };
    bed.engines[A].handle_link_state(LinkId(0), state, bed.now);
    bed.full.clear();
    bed.run(10 * MS);
    assert_eq!(read(&bed.out[A][0]), (pt0(A), PLAIN, 1000));
}

#[test]
fn a_flood_is_answered_no_more_than_a_router_would_and_all_of_it_is_counted() {
    let mut bed = bed([65_521; 2]);
    for _ in 0..300 {
        bed.send(A, &udp(PLAIN, 60_000));
    }
    bed.run(MS);
    assert_eq!(bed.out[A].len(), 50);
    let counted = TooBigSnapshot {
        told: 50,
        withheld: 250,
        untold: 0,
    };
    assert_eq!(counts(&bed, A), counted);
}
