//! Hosts with several links, and segments between them: everybody gets what is for everybody once, and
//! no segment sees a `pt0` behind two ports.

use crate::segments::{Bed, Cable, PLAIN, frame_to, group_frame, host, pt0};
use packtrain_proto::config::{Config, LinkId};
use packtrain_proto::engine::Event;
use packtrain_proto::gso;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

const MS: Duration = Duration::from_millis(1);
const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// Two links of each of three hosts, and a plain host, on one switch.
fn one_switch() -> Bed {
    let links = [A, B, C].map(|host| [(host, 0), (host, 1)]).concat();
    Bed::new(3, &[Cable::plain(&links)])
}

/// A and B by cable 0, B and C by cable 1, A and C by cable 2.
fn triangle() -> Bed {
    let cables = [[(A, 0), (B, 0)], [(B, 1), (C, 0)], [(A, 1), (C, 1)]];
    Bed::new(3, &cables.map(|ends| Cable::of(&ends)))
}

/// Two cables from A to B, crossed: each one's first is the other's second.
fn two_cables() -> Bed {
    let cables = [[(A, 0), (B, 1)], [(A, 1), (B, 0)]];
    Bed::new(2, &cables.map(|ends| Cable::of(&ends)))
}

impl Bed {
    /// Everybody sends `n` frames to all, a millisecond apart; returns what is missing or too many.
    #[track_caller]
    fn everybody_is_heard_once(&mut self, n: u8) {
        let hosts = self.engines.len();
        for side in 0..hosts {
            self.out[side].clear();
        }
        for i in 0..n {
            for side in 0..hosts {
                self.send(side, &group_frame(side, i));
            }
            self.run(MS);
        }
        self.run(200 * MS);
        for side in 0..hosts {
            for from in (0..hosts).filter(|from| *from != side) {
                let got: Vec<u8> = self.out[side]
                    .iter()
                    .filter(|frame| **frame == group_frame(from, frame[20]))
                    .map(|frame| frame[20])
                    .collect();
                let expected: Vec<u8> = (0..n).collect();
                assert_eq!(got, expected, "{side} hears {from}");
            }
        }
    }

    fn homes(&self, side: usize) -> Vec<u8> {
        let links = self.engines[side].snapshot(self.now).links;
        let homes = links.iter().filter(|link| link.home);
        homes.map(|link| link.id.0).collect()
    }

    fn moved(&mut self, side: usize) -> Vec<u8> {
        let events = std::mem::take(&mut self.events[side]);
        let moved = events.iter().filter_map(|event| match event {
            Event::HomeMoved { link } => Some(link.0),
            _ => None,
        });
        moved.collect()
    }
}

#[test]
fn two_ports_of_each_on_one_switch_are_one_segment_with_one_home() {
    let mut bed = one_switch();
    // From the first moment: nobody has heard a hello yet.
    bed.everybody_is_heard_once(50);
    for side in [A, B, C] {
        assert_eq!(bed.homes(side), [0]);
        assert_eq!(bed.moved(side), []);
        let ports = bed.ports_of(pt0(side));
        assert_eq!(ports, [(side, 0)], "the switch knows it behind one port");
    }
    assert_eq!(
        bed.plain_got.len(),
        3 * 50,
        "and the plain host hears each once"
    );
}

#[test]
fn in_a_triangle_without_a_switch_each_cable_is_a_segment() {
    let mut bed = triangle();
    bed.everybody_is_heard_once(50);
    for side in [A, B, C] {
        assert_eq!(bed.homes(side), [0, 1]);
        assert_eq!(bed.moved(side), []);
    }
    bed.everybody_is_heard_once(50);
}

#[test]
fn over_two_cables_that_each_end_counts_its_own_way_group_frames_come_once() {
    let mut bed = two_cables();
    bed.everybody_is_heard_once(50);
    bed.set_carrier(A, 0, false);
    bed.set_carrier(B, 1, false);
    bed.everybody_is_heard_once(20);
    bed.set_carrier(A, 0, true);
    bed.set_carrier(B, 1, true);
    bed.everybody_is_heard_once(20);
    bed.run(200 * MS);
    assert_eq!((bed.homes(A), bed.homes(B)), (vec![0, 1], vec![0, 1]));
    assert_eq!((bed.moved(A), bed.moved(B)), (vec![], vec![]));
}

#[test]
fn when_the_home_dies_another_takes_over_says_so_and_stays() {
    let mut bed = one_switch();
    bed.run(500 * MS);
    bed.set_carrier(A, 0, false);
    assert_eq!(bed.homes(A), [1]);
    assert_eq!(bed.moved(A), [1]);
    bed.everybody_is_heard_once(20);
    assert_eq!(bed.ports_of(pt0(A)), [(A, 1)]);
    bed.set_carrier(A, 0, true);
    bed.everybody_is_heard_once(20);
    bed.run(500 * MS);
    assert_eq!(bed.homes(A), [1], "it stays");
    assert_eq!(bed.moved(A), []);
    assert_eq!(bed.ports_of(pt0(A)), [(A, 1)]);
    assert_eq!(bed.moved(B), []);
}

#[test]
fn a_home_that_is_to_leave_gives_way_before_and_what_waits_goes_by_the_next() {
    let mut bed = one_switch();
    bed.run(500 * MS);
    bed.full.insert((A, LinkId(0)));
    bed.run(MS);
    for i in 0..5 {
        bed.send(A, &group_frame(A, i));
    }
    bed.run(MS);
    assert_eq!(bed.out[B].len(), 0, "the local queue is full");
    let now = bed.now;
    bed.engines[A].retire_link(LinkId(0), now);
    bed.run(20 * MS);
    assert_eq!(bed.moved(A), [1]);
    let got: Vec<u8> = bed.out[B].iter().map(|frame| frame[20]).collect();
    assert_eq!(got, [0, 1, 2, 3, 4]);
    bed.engines[A].remove_link(LinkId(0), bed.now);
    bed.everybody_is_heard_once(5);
    assert_eq!(bed.moved(A), []);
}

#[test]
fn what_stands_in_the_queue_of_the_home_before_leaves_before_anything_goes_by_the_next() {
    let mut bed = one_switch();
    bed.plain_says(&frame_to(pt0(A), PLAIN, 99));
    bed.run(500 * MS);
    let standing = (A, LinkId(0));
    let send = |bed: &mut Bed, word: u8| {
        bed.send(A, &frame_to(PLAIN, pt0(A), word));
        bed.run(100 * MS);
        bed.plain_got.len()
    };
    // What the cable takes at once here stands in the queue until the test takes it out.
    bed.queues.insert(standing, 0);
    assert_eq!(send(&mut bed, 0), 1);
    bed.engines[A].retire_link(LinkId(0), bed.now);
    assert_eq!((send(&mut bed, 1), bed.homes(A)), (1, vec![1]));
    bed.queues.insert(standing, 0);
    bed.run(10 * MS);
    assert_eq!(bed.plain_got.len(), 2);
}

#[test]
fn a_home_that_lets_nothing_go_any_more_is_not_waited_for_longer_than_half_a_second() {
    let mut bed = one_switch();
    bed.plain_says(&frame_to(pt0(A), PLAIN, 99));
    bed.run(500 * MS);
    bed.queues.insert((A, LinkId(0)), 0);
    bed.send(A, &frame_to(PLAIN, pt0(A), 0));
    bed.run(MS);
    bed.engines[A].retire_link(LinkId(0), bed.now);
    bed.send(A, &frame_to(PLAIN, pt0(A), 1));
    bed.run(499 * MS);
    assert_eq!(bed.plain_got.len(), 1);
    bed.run(MS);
    assert_eq!(bed.plain_got.len(), 2);
}

#[test]
fn a_plain_host_on_the_second_segment_is_looked_for_everywhere_found_and_spoken_to_there_alone() {
    // A: a cable to B, and a switch with the plain host.
    let mut bed = Bed::new(2, &[Cable::of(&[(A, 0), (B, 0)]), Cable::plain(&[(A, 1)])]);
    bed.run(500 * MS);
    bed.send(A, &frame_to(PLAIN, pt0(A), 1));
    bed.run(10 * MS);
    assert_eq!(bed.plain_got.len(), 1);
    assert_eq!(bed.plain_sent(0, PLAIN), 1, "not known: on the cable, too");
    bed.plain_says(&frame_to(pt0(A), PLAIN, 2));
    bed.run(10 * MS);
    assert_eq!(bed.out[A], [frame_to(pt0(A), PLAIN, 2)]);
    bed.send(A, &frame_to(PLAIN, pt0(A), 3));
    bed.run(10 * MS);
    assert_eq!(bed.plain_got.len(), 2);
    assert_eq!(bed.plain_sent(0, PLAIN), 1, "known: where it is");
    let hosts = bed.engines[A].snapshot(bed.now).hosts;
    assert_eq!((hosts[0].address, hosts[0].link), (PLAIN, LinkId(1)));
    // Without the link it is looked for again.
    bed.engines[A].remove_link(LinkId(1), bed.now);
    bed.send(A, &frame_to(PLAIN, pt0(A), 4));
    bed.run(10 * MS);
    assert_eq!(bed.plain_sent(0, PLAIN), 2);
}

#[test]
fn what_a_station_behind_says_does_not_come_back_by_a_link_that_settles() {
    let ends = [(A, 0), (A, 1), (B, 0)];
    let in_a_bridge = |config: &mut Config| config.promiscuous = true;
    let mut bed = Bed::with(2, &[Cable::of(&ends)], in_a_bridge);
    let behind = MacAddr([2, 0x99, 0, 0, 0, 1]);
    let says = |from, word| frame_to(MacAddr::BROADCAST, from, word);
    bed.send(A, &says(behind, 1));
    bed.run(500 * MS);
    assert_eq!((bed.homes(A), bed.out[B].len()), (vec![0], 1));
    for carrier in [false, true] {
        bed.set_carrier(A, 0, carrier);
        bed.set_carrier(A, 1, carrier);
    }
    // No hello has come back yet: of the second link nobody knows whose segment it is on.
    let before = bed.seen(A).drops.get(DropReason::OwnEcho);
    bed.inject(A, 1, &says(behind, 2));
    bed.inject(A, 1, &says(PLAIN, 3));
    let after = bed.seen(A).drops.get(DropReason::OwnEcho);
    assert_eq!(after, before + 1);
    bed.run(10 * MS);
    assert_eq!(bed.out[A], [says(PLAIN, 3)], "others are heard there");
}

#[test]
fn a_plain_host_is_heard_once_though_two_ports_bring_its_frames() {
    let mut bed = one_switch();
    bed.run(500 * MS);
    bed.plain_says(&frame_to(MacAddr::BROADCAST, PLAIN, 1));
    bed.run(10 * MS);
    // The switch has forgotten where A is, and floods.
    bed.plain_says(&frame_to(pt0(A), PLAIN, 2));
    bed.run(10 * MS);
    for side in [A, B, C] {
        let to_all = frame_to(MacAddr::BROADCAST, PLAIN, 1);
        assert_eq!(bed.out[side].iter().filter(|f| **f == to_all).count(), 1);
    }
    let to_a = frame_to(pt0(A), PLAIN, 2);
    assert_eq!(bed.out[A].iter().filter(|f| **f == to_a).count(), 1);
    // The same words again are no copy.
    bed.plain_says(&to_a);
    bed.run(10 * MS);
    assert_eq!(bed.out[A].iter().filter(|f| **f == to_a).count(), 2);
}

#[test]
fn a_plain_host_behind_a_home_that_died_is_spoken_to_by_the_next_one() {
    let mut bed = one_switch();
    bed.run(500 * MS);
    bed.plain_says(&frame_to(pt0(A), PLAIN, 1));
    bed.run(10 * MS);
    bed.set_carrier(A, 0, false);
    bed.send(A, &frame_to(PLAIN, pt0(A), 2));
    bed.run(10 * MS);
    assert_eq!(bed.plain_got, [frame_to(PLAIN, pt0(A), 2)]);
}

#[test]
fn what_waits_for_a_link_that_settles_is_not_overtaken_when_a_plain_host_turns_up_behind_another() {
    // A: a switch with the plain host, and a cable to B.
    let mut bed = Bed::new(2, &[Cable::plain(&[(A, 0)]), Cable::of(&[(A, 1), (B, 0)])]);
    bed.run(500 * MS);
    bed.set_carrier(A, 1, false);
    bed.set_carrier(A, 1, true);
    for word in 0..5 {
        bed.send(A, &frame_to(PLAIN, pt0(A), word));
    }
    bed.run(MS);
    assert_eq!(bed.plain_got.len(), 0, "they wait");
    bed.plain_says(&frame_to(pt0(A), PLAIN, 99));
    bed.run(MS);
    for word in 5..10 {
        bed.send(A, &frame_to(PLAIN, pt0(A), word));
    }
    bed.run(300 * MS);
    let got: Vec<u8> = bed.plain_got.iter().map(|frame| frame[20]).collect();
    assert_eq!(got, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_station_behind_a_host_is_heard_once_over_two_cables() {
    let mut bed = two_cables();
    for engine in &mut bed.engines {
        engine.handle_host_change(1500, true, bed.now);
    }
    bed.run(500 * MS);
    for i in 0..20 {
        bed.send(A, &frame_to(MacAddr::BROADCAST, PLAIN, i));
        bed.run(MS);
    }
    bed.run(100 * MS);
    let got: Vec<u8> = bed.out[B].iter().map(|frame| frame[20]).collect();
    assert_eq!(got, (0..20).collect::<Vec<_>>());
}

#[test]
fn when_a_trunk_between_two_switches_breaks_each_part_has_a_home() {
    // Link 0 of each on one switch, link 1 on another, and a trunk between them.
    let mut bed = Bed::new(
        2,
        &[Cable::of(&[(A, 0), (B, 0)]), Cable::of(&[(A, 1), (B, 1)])],
    );
    bed.trunk = true;
    bed.set_carrier(A, 1, false);
    bed.set_carrier(B, 1, false);
    bed.run(1000 * MS);
    bed.set_carrier(A, 1, true);
    bed.set_carrier(B, 1, true);
    bed.everybody_is_heard_once(20);
    assert_eq!((bed.homes(A), bed.homes(B)), (vec![0], vec![0]));
    bed.trunk = false;
    bed.run(5000 * MS);
    assert_eq!((bed.homes(A), bed.homes(B)), (vec![0, 1], vec![0, 1]));
    assert_eq!((bed.moved(A), bed.moved(B)), (vec![1], vec![1]));
    bed.everybody_is_heard_once(20);
    bed.trunk = true;
    bed.run(2000 * MS);
    assert_eq!((bed.homes(A), bed.homes(B)), (vec![0], vec![0]));
    assert_eq!((bed.moved(A), bed.moved(B)), (vec![0], vec![0]));
    bed.everybody_is_heard_once(20);
}

#[test]
fn a_frame_too_large_for_one_segment_goes_to_the_peers_by_trains() {
    let mut bed = triangle();
    for side in [A, C] {
        bed.mtus.insert((side, LinkId(1)), 9000);
        bed.set_carrier(side, 1, true);
    }
    bed.run(500 * MS);
    for side in [A, B, C] {
        bed.engines[side].handle_host_change(9000, false, bed.now);
    }
    let mut large = group_frame(A, 9);
    large.resize(4000, 9);
    bed.send(A, &large);
    bed.run(50 * MS);
    assert_eq!(bed.out[B], [large.clone()]);
    assert_eq!(bed.out[C], [large]);
}

#[test]
fn echoes_of_hellos_that_are_not_ours_join_no_segments() {
    let mut bed = two_cables();
    bed.run(500 * MS);
    // A hello of A's link 0 with another source address, and one of B's, on A's link 1.
    let hello = bed.last_group_hello[&(A, LinkId(0))].clone();
    let mut forged = hello.clone();
    forged[6..12].copy_from_slice(&host(B, 1).0);
    for frame in [forged, bed.last_group_hello[&(B, LinkId(1))].clone()] {
        bed.inject(A, 1, &frame);
        assert_eq!(bed.homes(A), [0, 1]);
    }
    let before = bed.engines[A].snapshot(bed.now).drops;
    bed.inject(A, 1, &hello);
    let after = bed.engines[A].snapshot(bed.now).drops;
    let echoes = |drops: &packtrain_proto::stats::Drops| drops.get(DropReason::OwnEcho);
    assert_eq!(echoes(&after), echoes(&before) + 1);
    assert_eq!(bed.homes(A), [0]);
}

#[test]
fn frames_for_a_host_that_was_not_met_yet_come_once_and_in_order() {
    let mut bed = two_cables();
    for i in 0..30 {
        bed.send(A, &frame_to(pt0(B), pt0(A), i));
        bed.run(MS);
    }
    bed.run(300 * MS);
    let got: Vec<u8> = bed.out[B].iter().map(|frame| frame[20]).collect();
    assert_eq!(got, (0..30).collect::<Vec<_>>());
}

#[test]
fn a_copy_is_known_on_a_link_that_joined_after_the_first_one_came() {
    let mut bed = two_cables();
    bed.run(500 * MS);
    bed.engines[B].remove_link(LinkId(0), bed.now);
    bed.full.insert((A, LinkId(1)));
    bed.run(MS);
    bed.send(A, &group_frame(A, 1));
    bed.run(10 * MS);
    assert_eq!(bed.out[B].len(), 1, "by the only link");
    bed.set_carrier(B, 0, true);
    bed.run(400 * MS);
    bed.full.clear();
    bed.run(200 * MS);
    assert_eq!(bed.plain_sent(1, MacAddr::BROADCAST), 1, "the other left");
    assert_eq!(bed.out[B].len(), 1);
}

#[test]
fn a_copy_leaves_no_later_than_a_second_after_another() {
    let mut bed = two_cables();
    bed.run(500 * MS);
    let sent = |bed: &Bed| [0, 1].map(|cable| bed.plain_sent(cable, MacAddr::BROADCAST));
    bed.full.insert((A, LinkId(0)));
    bed.run(MS);
    bed.send(A, &group_frame(A, 1));
    bed.run(1100 * MS);
    bed.full.clear();
    bed.run(10 * MS);
    assert_eq!(sent(&bed), [0, 1]);
    let drops = bed.engines[A].snapshot(bed.now).drops;
    assert_eq!(drops.get(DropReason::SegmentCopy), 1);
    // However long both have waited.
    bed.full.extend([0, 1].map(|link| (A, LinkId(link))));
    bed.run(MS);
    bed.send(A, &group_frame(A, 2));
    bed.run(1100 * MS);
    bed.full.clear();
    bed.run(10 * MS);
    assert_eq!(sent(&bed), [1, 2]);
    let got: Vec<u8> = bed.out[B].iter().map(|frame| frame[20]).collect();
    assert_eq!(got, [1, 2]);
}

/// A datagram for B of so many segments of 100 bytes, as one frame.
fn datagrams_in_one(segments: usize) -> (Vec<u8>, Offload) {
    let payload_len = 100 * segments;
    let mut frame = [&pt0(B).0[..], &PLAIN.0, &[0x08, 0x00]].concat();
    frame.extend([0x45, 0]);
    frame.extend((28 + payload_len as u16).to_be_bytes());
    frame.extend([0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 9, 10, 0, 0, 2]);
    frame.extend([0, 1, 0, 2]);
    frame.extend((8 + payload_len as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..payload_len).map(|at| (at / 100) as u8));
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start: 34,
            offset: 6,
        }),
        gso: Some(Gso {
            kind: GsoKind::UdpL4,
            ecn: false,
            header_len: 42,
            segment_len: 100,
        }),
    };
    (frame, offload)
}

#[test]
fn what_came_of_a_large_frame_in_segments_by_one_link_is_cut_out_of_the_whole_by_another() {
    let mut bed = two_cables();
    bed.run(500 * MS);
    let (whole, offload) = datagrams_in_one(5);
    let mut give = |link: u8, first: usize, count: usize| {
        let engine = &mut bed.engines[B];
        let mut buffer = engine.buffers().take(whole.len());
        let cut = gso::slice(&whole, &offload, first, count, &mut buffer).expect("agrees");
        engine.handle_link_frame(LinkId(link), buffer, cut, bed.now);
        bed.run(MS);
        let payloads = bed.out[B].drain(..).map(|frame| frame[42..].to_vec());
        payloads.collect::<Vec<_>>()
    };
    let payload = |segments: std::ops::Range<usize>| {
        whole[42..][100 * segments.start..][..100 * segments.len()].to_vec()
    };
    assert_eq!(give(0, 1, 1), [payload(1..2)]);
    assert_eq!(give(1, 0, 5), [payload(0..1), payload(2..5)]);
    for segment in [0, 2, 3, 4] {
        assert_eq!(give(0, segment, 1), [[0; 0]; 0], "segment {segment}");
    }
    assert_eq!(give(0, 0, 5), [payload(0..5)], "said again");
}

#[test]
fn a_copy_for_one_segment_that_is_dropped_has_a_reason_and_the_others_go_on() {
    let mut bed = triangle();
    bed.run(200 * MS);
    bed.full.insert((A, LinkId(1)));
    bed.run(MS);
    bed.send(A, &group_frame(A, 7));
    bed.run(MS);
    assert_eq!(bed.out[B], [group_frame(A, 7)]);
    bed.set_carrier(A, 1, false);
    bed.set_carrier(C, 1, false);
    bed.run(MS);
    let drops = |bed: &Bed| {
        let drops = bed.engines[A].snapshot(bed.now).drops;
        drops.iter().collect::<Vec<_>>()
    };
    assert_eq!(drops(&bed), [(DropReason::SegmentCopy, 1)]);
    // Where there is no link, there is no copy.
    bed.send(A, &group_frame(A, 8));
    bed.run(MS);
    assert_eq!(drops(&bed), [(DropReason::SegmentCopy, 1)]);
    assert_eq!(bed.out[B], [group_frame(A, 7), group_frame(A, 8)]);
    assert!(bed.out[C].is_empty());
}

#[test]
fn what_waits_for_a_peer_that_leaves_and_went_to_all_others_goes_to_none_of_them_again() {
    let mut bed = triangle();
    bed.run(200 * MS);
    bed.set_carrier(A, 1, false);
    bed.set_carrier(C, 1, false);
    bed.run(MS);
    // Too large to go plainly: one to each peer, in trains.
    let mut large = group_frame(A, 7);
    large.resize(5000, 7);
    bed.send(A, &large);
    bed.run(100 * MS);
    assert!(bed.out[B] == std::slice::from_ref(&large));
    bed.run(10_000 * MS);
    let snapshot = bed.engines[A].snapshot(bed.now);
    assert_eq!(snapshot.peers.len(), 1, "C was not heard for so long");
    assert!(bed.out[B] == [large], "{} frames", bed.out[B].len());
    assert_eq!(snapshot.drops.get(DropReason::PeerGone), 1);
}

#[test]
fn what_a_station_behind_us_said_to_all_does_not_come_back_when_another_link_becomes_home() {
    let mut bed = one_switch();
    bed.run(500 * MS);
    let behind = MacAddr([2, 0x99, 0, 0, 0, 1]);
    let frame = frame_to(MacAddr::BROADCAST, behind, 7);
    bed.engines[A].handle_host_change(1500, true, bed.now);
    bed.run(MS);
    bed.send(A, &frame);
    let mut left = Vec::new();
    while let Some(transmit) = bed.engines[A].poll_transmit(bed.now) {
        if transmit.frame == frame {
            left.push(transmit.link);
        }
    }
    assert_eq!(left, [LinkId(0)]);
    // The switch has it still, and the port by which it went in is dead.
    bed.set_carrier(A, 0, false);
    assert_eq!(bed.homes(A), [1]);
    bed.inject(A, 1, &frame);
    bed.run(MS);
    assert!(bed.out[A].is_empty());
    // It has moved, and says something else.
    let elsewhere = frame_to(MacAddr::BROADCAST, behind, 8);
    bed.inject(A, 1, &elsewhere);
    bed.run(MS);
    assert_eq!(bed.out[A], [elsewhere]);
}

/// By a faster link they would overtake those that are under way.
#[test]
fn frames_to_a_peer_that_does_not_hear_us_stay_on_the_link_where_it_was_heard_first() {
    let mut bed = two_cables();
    let is_ours = |frame: &[u8]| frame[12..14] == ether_type::PACKTRAIN.to_be_bytes();
    bed.lose =
        Box::new(move |side, link, frame| is_ours(frame) && (side == A || link == LinkId(1)));
    bed.run(1500 * MS);
    let to_b = |bed: &mut Bed, word: u8| {
        bed.send(A, &frame_to(pt0(B), pt0(A), word));
        bed.run(MS);
        [0, 1].map(|cable| bed.plain_sent(cable, pt0(B)))
    };
    assert_eq!(to_b(&mut bed, 1), [0, 1], "heard by the second cable only");
    bed.lose = Box::new(move |side, _, frame| is_ours(frame) && side == A);
    bed.run(1500 * MS);
    assert_eq!(to_b(&mut bed, 2), [0, 2], "heard by both");
    bed.set_carrier(A, 1, false);
    bed.run(MS);
    assert_eq!(to_b(&mut bed, 3), [1, 2], "the second one is cut");
}
