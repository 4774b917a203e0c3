//! Links that a switch takes for one (a static link aggregation), toward hosts without packtrain and with.

use std::collections::BTreeSet;

use crate::segments::{Bed, Cable, PLAIN, frame_to, group_frame, pt0};
use packtrain_proto::config::{Balance, LinkId, LinkSettings};
use packtrain_proto::stats::LagUse;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

const LINKS: u8 = 3;

/// Frames of so many flows to a host, one of each.
fn flows(to: MacAddr, count: u16) -> Vec<Vec<u8>> {
    let frame = |port: u16| {
        let mut frame = [&to.0[..], &pt0(0).0, &[0x08, 0x00]].concat();
        let mut ip = [0; 20];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&28u16.to_be_bytes());
        (ip[8], ip[9]) = (64, 17);
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 9]);
        frame.extend(ip);
        frame.extend([port.to_be_bytes(), [0, 9], [0, 8], [0, 0]].concat());
        frame
    };
    (1..=count).map(frame).collect()
}

/// A host with three links that a switch takes for one, or not, and behind it a plain host and `others` with packtrain.
fn bed(balance: Balance, others: usize, is_lag: bool) -> Bed {
    let ends: Vec<(usize, u8)> = (0..LINKS)
        .map(|link| (0, link))
        .chain((1..=others).map(|side| (side, 0)))
        .collect();
    let mut cable = Cable::plain(&ends);
    cable.lag_of = is_lag.then_some(0);
    met(Bed::with(1 + others, &[cable], |config| {
        config.balance = balance
    }))
}

/// The links have what is said of them, and it is known where the plain host is.
fn met(mut bed: Bed) -> Bed {
    for link in 0..LINKS {
        set_lag(&mut bed, link, true);
    }
    bed.run(Duration::from_millis(1500));
    bed.plain_says(&frame_to(pt0(0), PLAIN, 1));
    bed.run(Duration::from_millis(1));
    bed.ports_of(pt0(0));
    bed.plain_got.clear();
    bed.out[0].clear();
    bed
}

fn set_lag(bed: &mut Bed, link: u8, in_lag: bool) {
    let settings = LinkSettings {
        in_lag,
        ..LinkSettings::default()
    };
    bed.engines[0].handle_link_settings(LinkId(link), settings, bed.now);
}

fn uses(bed: &Bed) -> Vec<Option<LagUse>> {
    bed.seen(0).links.iter().map(|link| link.lag).collect()
}

fn links_of(bed: &mut Bed) -> BTreeSet<u8> {
    let ports = bed.ports_of(pt0(0));
    ports.into_iter().map(|(_, link)| link).collect()
}

#[test]
fn flows_to_a_plain_host_go_by_all_of_them_and_each_by_one() {
    for balance in [
        Balance::EarliestFinish,
        Balance::Weighted,
        Balance::HashPort,
    ] {
        let mut bed = bed(balance, 0, true);
        assert_eq!(uses(&bed), [Some(LagUse::Used); 3]);
        let frames = flows(PLAIN, 60);
        let mut by_links = BTreeSet::new();
        for frame in &frames {
            let mut links = BTreeSet::new();
            for _ in 0..4 {
                bed.send(0, frame);
                bed.run(Duration::from_millis(1));
                links.extend(links_of(&mut bed));
            }
            assert_eq!(links.len(), 1, "a flow by several links");
            by_links.extend(links);
        }
        assert_eq!(by_links.len(), LINKS.into(), "{balance:?}");
        assert_eq!(bed.plain_got.len(), 4 * frames.len());
    }
}

#[test]
fn by_addresses_a_host_has_one_and_as_a_backup_all_have_one() {
    for balance in [Balance::HashMac, Balance::HashIp, Balance::ActiveBackup] {
        let mut bed = bed(balance, 0, true);
        for frame in flows(PLAIN, 40) {
            bed.send(0, &frame);
        }
        bed.run(Duration::from_millis(1));
        assert_eq!(links_of(&mut bed).len(), 1, "{balance:?}");
    }
}

#[test]
fn by_turns_each_frame_takes_the_next_that_works() {
    let mut bed = bed(Balance::RoundRobin, 0, true);
    let frame = &flows(PLAIN, 1)[0];
    let mut took = Vec::new();
    for n in 0..9 {
        if n == 6 {
            bed.set_carrier(0, 1, false);
        }
        bed.send(0, frame);
        bed.run(Duration::from_millis(1));
        took.extend(links_of(&mut bed));
    }
    assert_eq!(took.len(), 9, "one copy of each");
    let all: BTreeSet<u8> = took[..3].iter().copied().collect();
    assert_eq!(all.len(), LINKS.into());
    assert_eq!(took[..3], took[3..6]);
    assert!(!took[6..].contains(&1) && took[6] != took[7]);
    assert_eq!(bed.plain_got.len(), 9);
}

#[test]
fn of_what_is_for_everybody_there_is_one_copy_by_whichever() {
    let mut bed = bed(Balance::RoundRobin, 0, true);
    for n in 0..6 {
        bed.send(0, &group_frame(0, n));
    }
    bed.run(Duration::from_millis(1));
    assert_eq!(bed.plain_got.len(), 6);
    assert_eq!(links_of(&mut bed).len(), LINKS.into());
    // And what comes for all is taken by whichever link the switch has chosen for it.
    for n in 0..40 {
        let source = MacAddr([4, 0, 0, 0, 1, n]);
        bed.plain_says(&frame_to(MacAddr::BROADCAST, source, n));
    }
    bed.run(Duration::from_millis(1));
    assert_eq!(bed.out[0].len(), 40);
}

#[test]
fn what_waits_for_one_that_dies_goes_by_the_others() {
    let mut bed = bed(Balance::RoundRobin, 0, true);
    for link in 0..LINKS {
        bed.full.insert((0, LinkId(link)));
    }
    // They are told so.
    bed.run(Duration::from_millis(1));
    for n in 0..9 {
        let frame = match n % 2 {
            0 => group_frame(0, n),
            _ => frame_to(PLAIN, pt0(0), n),
        };
        bed.send(0, &frame);
    }
    bed.run(Duration::from_millis(1));
    assert_eq!(bed.plain_got.len(), 0);
    bed.set_carrier(0, 0, false);
    bed.full.clear();
    bed.run(Duration::from_millis(300));
    let words: BTreeSet<u8> = bed.plain_got.iter().map(|frame| frame[20]).collect();
    assert_eq!((bed.plain_got.len(), words.len()), (9, 9));
    assert!(!links_of(&mut bed).contains(&0));
}

#[test]
fn one_that_comes_back_or_is_added_carries_again() {
    let mut bed = bed(Balance::RoundRobin, 0, true);
    bed.set_carrier(0, 0, false);
    bed.run(Duration::from_millis(500));
    bed.set_carrier(0, 0, true);
    bed.run(Duration::from_millis(500));
    bed.ports_of(pt0(0));
    for frame in flows(PLAIN, 6) {
        bed.send(0, &frame);
    }
    bed.run(Duration::from_millis(1));
    assert_eq!(links_of(&mut bed).len(), LINKS.into());
    // One that is said to be in it no more is a segment of its own, for all that is known.
    set_lag(&mut bed, 2, false);
    bed.run(Duration::from_millis(500));
    assert_eq!(uses(&bed), [Some(LagUse::Used), Some(LagUse::Used), None]);
}

/// Of a frame for everybody each segment gets one copy: that of the aggregation does not die with the link for which it waits.
#[test]
fn a_copy_that_waits_for_one_that_dies_goes_by_another_and_the_other_segment_has_its_own() {
    let ends: Vec<(usize, u8)> = (0..LINKS).map(|link| (0, link)).collect();
    let mut lag = Cable::plain(&ends);
    lag.lag_of = Some(0);
    let other = Cable::of(&[(0, LINKS), (1, 0)]);
    let mut bed = met(Bed::with(2, &[lag, other], |config| {
        config.balance = Balance::RoundRobin;
    }));
    for link in 0..LINKS {
        bed.full.insert((0, LinkId(link)));
    }
    bed.run(Duration::from_millis(1));
    bed.out[1].clear();
    for n in 0..6 {
        bed.send(0, &group_frame(0, n));
    }
    bed.run(Duration::from_millis(1));
    assert_eq!((bed.plain_got.len(), bed.out[1].len()), (0, 6));
    bed.set_carrier(0, 1, false);
    bed.full.clear();
    bed.run(Duration::from_millis(500));
    let words: BTreeSet<u8> = bed.plain_got.iter().map(|frame| frame[20]).collect();
    assert_eq!((bed.plain_got.len(), words.len()), (6, 6));
    assert_eq!(bed.out[1].len(), 6);
}

/// A host's frames come by whichever port the switch has chosen for each: neither has it moved, nor are two that are equal copies.
#[test]
fn equal_frames_by_two_ports_are_two_frames() {
    let mut bed = bed(Balance::EarliestFinish, 0, true);
    let frame = frame_to(pt0(0), PLAIN, 7);
    for link in [0, 1, 2, 1, 0] {
        bed.inject(0, link, &frame);
    }
    bed.run(Duration::from_millis(1));
    assert_eq!(bed.out[0].len(), 5);
    let hosts = bed.seen(0).hosts;
    let of_plain = hosts.iter().filter(|host| host.address == PLAIN);
    let links: Vec<LinkId> = of_plain.map(|host| host.link).collect();
    assert_eq!(links, [LinkId(0)]);
}

/// A carrier that comes back says nothing of the switch: until our hellos had time to, it carries nothing.
#[test]
fn one_that_was_refused_stays_so_when_a_cable_comes_and_goes() {
    let mut bed = bed(Balance::RoundRobin, 0, false);
    bed.set_carrier(0, 1, false);
    bed.run(Duration::from_millis(300));
    bed.set_carrier(0, 1, true);
    bed.run(Duration::from_millis(1));
    assert_eq!(uses(&bed), [Some(LagUse::Refused); 3]);
    bed.ports_of(pt0(0));
    for frame in flows(PLAIN, 9) {
        bed.send(0, &frame);
    }
    bed.run(Duration::from_millis(1));
    assert_eq!(links_of(&mut bed).len(), 1);
}

/// The settings say so and the switch does not know: its other ports bring our own hellos back.
#[test]
fn where_the_switch_has_none_all_goes_by_the_home_link_as_it_would_without() {
    let mut bed = bed(Balance::RoundRobin, 0, false);
    assert_eq!(uses(&bed), [Some(LagUse::Refused); 3]);
    for frame in flows(PLAIN, 30) {
        bed.send(0, &frame);
    }
    bed.send(0, &group_frame(0, 1));
    bed.run(Duration::from_millis(1));
    assert_eq!(links_of(&mut bed), [0].into());
    assert_eq!(bed.plain_got.len(), 31);
    bed.plain_says(&frame_to(MacAddr::BROADCAST, PLAIN, 9));
    bed.run(Duration::from_millis(1));
    assert_eq!(bed.out[0].len(), 1);
}

/// What is for one of the links comes by any.
#[test]
fn trains_come_by_whichever_port_the_switch_has_chosen() {
    let mut bed = bed(Balance::EarliestFinish, 1, true);
    let peer = |bed: &Bed, side: usize| bed.seen(side).peers[0].up;
    assert!(peer(&bed, 0) && peer(&bed, 1));
    bed.out[0].clear();
    bed.out[1].clear();
    for n in 0..200u8 {
        bed.send(0, &frame_to(pt0(1), pt0(0), n));
        bed.send(1, &frame_to(pt0(0), pt0(1), n));
        bed.run(Duration::from_millis(1));
    }
    bed.run(Duration::from_millis(50));
    for side in 0..2 {
        let words: Vec<u8> = bed.out[side].iter().map(|frame| frame[20]).collect();
        assert_eq!(words, (0..200).collect::<Vec<u8>>(), "side {side}");
    }
    // Nobody is told that its frames may come without a sequence.
    assert_eq!(bed.ports_of(pt0(0)), []);
}
