//! Coded trains between two engines: what is coded, what comes out, and what becomes of a damaged one.

use std::num::NonZero;

use crate::support::{LINK, Pair, link_state, pt0};
use packtrain_proto::class::{Action, Class, Compress};
use packtrain_proto::coding::dictionary::Dictionary;
use packtrain_proto::config::{Config, LinkState, NodeId};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{DictionaryUnused, DropReason};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::checksum;

const CODED: u8 = 0x08;

/// A UDP datagram of a flow from one `pt0` to the other: its number, and what it says.
fn datagram(number: u16, says: &[u8]) -> Vec<u8> {
    let mut frame = [&pt0(1).0[..], &pt0(0).0, &[0x08, 0x00, 0x45, 0]].concat();
    frame.extend((28 + says.len() as u16).to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.extend([0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    let sum = checksum::checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend([0x1b, 0x58, 0x1b, 0x59]);
    frame.extend((8 + says.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(says);
    frame
}

fn json(number: u16) -> Vec<u8> {
    let celsius = number % 37;
    let text = format!(
        "{{\"sensor\":\"outside\",\"celsius\":{celsius}.5,\"humidity\":0.61,\"n\":{number}}}"
    );
    datagram(number, text.as_bytes())
}

/// A pair whose links are known to carry so much, or nothing is known.
fn pair(rate_bps: Option<u64>, set: impl Fn(usize, &mut Config)) -> Pair {
    let mut pair = Pair::with(set);
    for side in 0..2 {
        let state = LinkState {
            rate_bps,
            ..link_state(side)
        };
        pair.engines[side].handle_link_state(LINK, state, pair.now);
    }
    pair
}

/// Sends frames that wait together, and has them come out as they went in. Trains that it took, and how many were coded.
#[track_caller]
fn pass(pair: &mut Pair, frames: &[Vec<u8>]) -> (usize, usize) {
    pair.out = Default::default();
    pair.recorded.clear();
    pair.record = true;
    for frame in frames {
        pair.send(0, frame, Offload::NONE);
    }
    pair.run(Duration::from_millis(50));
    pair.record = false;
    let out: Vec<_> = pair.out[1].iter().map(|(frame, _)| frame).collect();
    assert!(
        out.iter().copied().eq(frames),
        "{} of {}",
        out.len(),
        frames.len()
    );
    let trains = pair.recorded.iter().filter(|(side, frame, _)| {
        const MARKER: u8 = 0x02;
        *side == 0 && frame[12..15] == [0x88, 0xb5, 0x11] && frame[15] & MARKER == 0
    });
    let coded = trains
        .clone()
        .filter(|(_, frame, _)| frame[15] & CODED != 0);
    (trains.clone().count(), coded.count())
}

fn rows(count: u16, make: impl Fn(u16) -> Vec<u8>) -> Vec<Vec<u8>> {
    // From 1: after an IP identification of 0 another one is expected.
    (1..=count).map(make).collect()
}

#[test]
fn frames_that_wait_share_what_their_headers_have_in_common() {
    let frames = rows(292, |n| datagram(n, &[7; 18]));
    let mut with = pair(None, |_, _| {});
    // 73 of them fit: 19 bytes each.
    assert_eq!(pass(&mut with, &frames), (4, 4));
    let snapshot = with.snapshot(0).coding;
    assert_eq!((snapshot.coded_tx, snapshot.deltas_tx), (4, 288));
    assert_eq!(snapshot.saved_payload, 0);
    assert_eq!(with.snapshot(1).coding.coded_rx, 4);
    // What is said of the savings adds up: 60 bytes and 24 around them each, no padding.
    assert_eq!(snapshot.frame_bytes, 292 * 84);
    assert_eq!(snapshot.saved_padding, 0);
    let train = 14 + 16 + 5 + 49 + 72 * 19 + 24;
    assert_eq!(snapshot.train_bytes, 4 * train);
    // 30 bytes of headers are not said again; the head of a coded train is counted against that.
    assert_eq!(snapshot.saved_headers, 4 * (72 * 30 - 5));
    let around = (292 * (24 + 14 - 3) - 4 * (24 + 14 + 16)) as i64;
    assert_eq!(snapshot.saved_framing(), around);
}

#[test]
fn one_frame_alone_is_not_coded() {
    let mut pair = pair(None, |_, _| {});
    for n in 0..20 {
        assert_eq!(pass(&mut pair, &[datagram(n, &[7; 18])]), (1, 0));
    }
    assert_eq!(pair.snapshot(0).coding.coded_tx, 0);
}

#[test]
fn headers_of_large_frames_are_not_worth_telling_apart() {
    let random = |n: u16, len: u64| {
        let seed = u64::from(n) << 16;
        let byte = |at: u64| ((seed + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        datagram(n, &(0..len).map(byte).collect::<Vec<_>>())
    };
    for rate_bps in [None, Some(40_000_000_000)] {
        let mut pair = pair(rate_bps, |_, _| {});
        let (trains, coded) = pass(&mut pair, &rows(40, |n| random(n, 300)));
        // The last frame may be alone.
        assert!(coded >= 9 && trains - coded <= 1, "{coded} of {trains}");
        let (trains, coded) = pass(&mut pair, &rows(40, |n| random(n, 710)));
        assert_eq!((trains, coded), (20, 0));
    }
}

#[test]
fn who_does_not_take_coded_trains_gets_none_and_sends_none() {
    for without in 0..2 {
        let mut pair = pair(None, |side, config| config.coded_trains = side != without);
        let (trains, coded) = pass(&mut pair, &rows(292, |n| datagram(n, &[7; 18])));
        assert_eq!((trains, coded), (10, 0), "without it at {without}");
    }
}

#[test]
fn payload_is_compressed_on_a_slow_link_and_not_on_a_fast_one() {
    let frames = rows(200, json);
    let mut fast = pair(Some(40_000_000_000), |_, _| {});
    let (on_fast, coded) = pass(&mut fast, &frames);
    assert_eq!(on_fast, coded);
    assert_eq!(fast.snapshot(0).coding.saved_payload, 0);
    let mut slow = pair(Some(10_000_000), |_, _| {});
    pass(&mut slow, &frames);
    let (on_slow, coded) = pass(&mut slow, &frames);
    assert_eq!(on_slow, coded);
    assert!(
        3 * on_slow <= on_fast,
        "{on_slow} trains, {on_fast} with headers alone"
    );
    let coding = slow.snapshot(0).coding;
    assert!(coding.saved_payload > coding.saved_headers, "{coding:?}");
}

#[test]
fn on_a_slow_link_trains_are_mixed_to_who_restores_that_in_time() {
    // Nanoseconds a byte that each of the two says.
    let codings = |takes: [u16; 2]| {
        let mut pair = pair(Some(1_000_000), |side, config| {
            config.mixing_ns = NonZero::new(takes[side]).unwrap();
        });
        for _ in 0..2 {
            pass(&mut pair, &rows(40, json));
        }
        codings(&pair, 0)
    };
    for (takes, coding) in [([400, 400], 4), ([400, 20_000], 2), ([20_000, 400], 2)] {
        let codings = codings(takes);
        assert!(
            !codings.is_empty() && codings.iter().all(|of| *of == coding),
            "{takes:?}: {codings:?}"
        );
    }
}

#[test]
fn what_looks_encrypted_is_not_given_to_the_compressor_for_long() {
    let mut pair = pair(Some(10_000_000), |_, _| {});
    let mut state = 1u64;
    let mut frames = |count| -> Vec<Vec<u8>> {
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        let datagram = |n| datagram(n, &(0..90).map(|_| random()).collect::<Vec<u8>>());
        (0..count).map(datagram).collect()
    };
    pass(&mut pair, &frames(100));
    let tried = pair.snapshot(0).coding.tried_bytes;
    assert!(tried >= 4096, "its trial");
    let frames = frames(400);
    pass(&mut pair, &frames);
    let more = pair.snapshot(0).coding.tried_bytes - tried;
    assert!(more < 2000, "{more} bytes more");
    // Headers are told apart all the same.
    assert!(pair.snapshot(0).coding.deltas_tx > 400);
}

#[test]
fn a_class_says_what_is_done_with_its_frames() {
    let saved = |compress| {
        let mut pair = pair(Some(10_000_000), |_, _| {});
        let class = Class {
            name: "json".parse().unwrap(),
            matches: "udp dport 7001".parse().unwrap(),
            links: Vec::new(),
            action: Action {
                compress,
                ..Action::default()
            },
        };
        pair.engines[0].set_classes(vec![class], pair.now);
        for _ in 0..3 {
            pass(&mut pair, &rows(200, json));
        }
        let coding = pair.snapshot(0).coding;
        (coding.saved_headers > 0, coding.saved_payload > 0)
    };
    assert_eq!(saved(Compress::Auto), (true, true));
    assert_eq!(saved(Compress::Headers), (true, false));
    assert_eq!(saved(Compress::Off), (false, false));
}

#[test]
fn a_damaged_train_is_dropped_whole_and_counted() {
    let mut pair = pair(None, |_, _| {});
    pair.record = true;
    for n in 0..60 {
        pair.send(0, &datagram(n, &[n as u8; 18]), Offload::NONE);
    }
    // What would have arrived is caught, and arrives damaged.
    pair.lose = Box::new(|_, frame| frame[12..14] == [0x88, 0xb5] && frame[15] & CODED != 0);
    pair.settle();
    let is_coded =
        |(side, frame, _): &&(usize, Vec<u8>, Offload)| *side == 0 && frame[15] & CODED != 0;
    let caught = pair.recorded.iter().find(is_coded).expect("a coded train");
    let mut damaged = caught.1.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x10;
    pair.lose = Box::new(|_, _| false);
    pair.out = Default::default();
    let before = pair.drops(1);
    pair.inject(1, &damaged, Offload::NONE);
    assert_eq!(pair.out[1].len(), 0, "none of it");
    assert_eq!(
        pair.dropped_since(1, &before),
        [(DropReason::CodedDamaged, 1)]
    );
    pair.still_works();
    // Of a coding that is not known yet.
    let mut unknown = caught_next(&mut pair);
    unknown[14 + 16] = 0x77;
    let before = pair.drops(1);
    pair.inject(1, &unknown, Offload::NONE);
    assert_eq!(
        pair.dropped_since(1, &before),
        [(DropReason::CodedUnknown, 1)]
    );
    pair.still_works();
}

#[test]
fn a_train_whose_delta_has_other_headers_than_its_reference_is_dropped_and_counted() {
    for (flags, is_whole) in [([0x00, 0], true), ([0x20, 0], false)] {
        let mut pair = pair(None, |_, _| {});
        let mut train = caught_next(&mut pair);
        pair.out = Default::default();
        let options = usize::from(u16::from_be_bytes([train[20], train[21]]));
        train.truncate(14 + 16 + options);
        // The second one as a fragment, or as a whole that may become some.
        let mut second = datagram(2, &[7; 18]);
        second[20..22].copy_from_slice(&flags);
        second[24..26].fill(0);
        let sum = checksum::checksum(&second[14..34]);
        second[24..26].copy_from_slice(&sum.to_be_bytes());
        let frames = [datagram(1, &[7; 18]), second];
        let subframe = |frame: &Vec<u8>| [&[1, 0, 46], &frame[14..]].concat();
        let plain = frames.each_ref().map(subframe).concat();
        train.push(1);
        train.extend(crc32fast::hash(&plain).to_be_bytes());
        train.extend(&plain[..49]);
        // Field 10 is told: flags and fragment offset.
        train.extend([0x24, 0x80, 0x08]);
        train.extend(flags);
        train.extend([7; 18]);
        let before = pair.drops(1);
        pair.inject(1, &train, Offload::NONE);
        let came: Vec<_> = pair.out[1].iter().map(|(frame, _)| frame.clone()).collect();
        match is_whole {
            true => assert_eq!(came, frames),
            false => {
                assert_eq!(came, [[0u8; 0]; 0]);
                let dropped = pair.dropped_since(1, &before);
                assert_eq!(dropped, [(DropReason::CodedDamaged, 1)]);
            }
        }
        pair.still_works();
    }
}

/// A coded train that did not arrive.
fn caught_next(pair: &mut Pair) -> Vec<u8> {
    pair.recorded.clear();
    pair.record = true;
    pair.lose = Box::new(|_, frame| frame[12..14] == [0x88, 0xb5] && frame[15] & CODED != 0);
    for n in 0..60 {
        pair.send(0, &datagram(n, &[n as u8; 18]), Offload::NONE);
    }
    pair.settle();
    pair.lose = Box::new(|_, _| false);
    let mut sent = pair.recorded.drain(..);
    let caught = sent.find(|(side, frame, _)| *side == 0 && frame[15] & CODED != 0);
    caught.expect("a coded train").1
}

fn dictionary(numbers: std::ops::Range<u16>) -> Dictionary {
    let text = |n| json(n)[42..].to_vec();
    Dictionary::new(&numbers.flat_map(text).collect::<Vec<u8>>()).unwrap()
}

/// Codings of the coded trains that one side has sent.
fn codings(pair: &Pair, side: usize) -> Vec<u8> {
    let coded = pair
        .recorded
        .iter()
        .filter(|(from, f, _)| *from == side && f[14] == 0x11 && f[15] & CODED != 0);
    let coding = |(_, f, _): &(usize, Vec<u8>, Offload)| {
        let options = usize::from(u16::from_be_bytes([f[20], f[21]]));
        f[14 + 16 + options]
    };
    coded.map(coding).collect()
}

#[test]
fn a_dictionary_is_used_with_who_has_the_same_one_and_with_nobody_else() {
    let (same, other) = (dictionary(0..60), dictionary(100..160));
    let run = |of: [Option<&Dictionary>; 2]| {
        // Too fast for mixing.
        let mut pair = pair(Some(20_000_000), |side, config| {
            config.dictionary = of[side].cloned()
        });
        pass(&mut pair, &rows(200, json));
        let before = pair.snapshot(0).coding.dictionary_tx;
        pair.recorded.clear();
        let (trains, coded) = pass(&mut pair, &rows(200, json));
        assert_eq!(trains, coded);
        let codings = codings(&pair, 0);
        let by_dictionary = codings.iter().filter(|coding| **coding == 3).count() as u64;
        let snapshots = [pair.snapshot(0), pair.snapshot(1)];
        assert_eq!(snapshots[0].coding.dictionary_tx - before, by_dictionary);
        assert_eq!(
            snapshots[1].coding.dictionary_rx,
            snapshots[0].coding.dictionary_tx
        );
        for (snapshot, own, theirs) in
            [(&snapshots[0], of[0], of[1]), (&snapshots[1], of[1], of[0])]
        {
            let told = snapshot
                .dictionary
                .map(|dictionary| (dictionary.id, dictionary.len));
            assert_eq!(told, own.map(|own| (own.id(), own.len())));
            assert_eq!(snapshot.peers[0].dictionary, theirs.map(Dictionary::id));
        }
        let train_bytes = snapshots[0].coding.train_bytes;
        let unused = snapshots.map(|snapshot| snapshot.peers[0].dictionary_unused);
        (train_bytes, codings, unused)
    };
    let (with_zstd, codings, unused) = run([Some(&same), Some(&same)]);
    assert!(codings.iter().all(|coding| *coding == 3), "{codings:?}");
    assert_eq!(unused, [None, None]);
    use DictionaryUnused::{AnotherThere, NoneHere, NoneThere};
    for (of, why) in [
        ([Some(&same), Some(&other)], [AnotherThere, AnotherThere]),
        ([Some(&same), None], [NoneThere, NoneHere]),
        ([None, Some(&same)], [NoneHere, NoneThere]),
        ([None, None], [NoneHere, NoneHere]),
    ] {
        let (with_lz4, codings, unused) = run(of);
        assert!(codings.iter().all(|coding| *coding == 2), "{codings:?}");
        assert_eq!(unused, why.map(Some));
        assert!(with_zstd < with_lz4, "{with_zstd} and {with_lz4}");
    }
}

#[test]
fn why_the_same_dictionary_is_not_used_is_told() {
    let same = dictionary(0..60);
    let unused = |rate_bps, coded_there: bool, compress| {
        let mut pair = pair(rate_bps, |side, config| {
            config.dictionary = Some(same.clone());
            config.coded_trains = side == 0 || coded_there;
            config.rest.compress = compress;
        });
        pair.engines[0].set_classes(Vec::new(), pair.now);
        pass(&mut pair, &rows(200, json));
        assert!(codings(&pair, 0).iter().all(|coding| *coding != 3));
        let snapshot = pair.snapshot(0);
        assert_eq!(snapshot.coding.dictionary_tx, 0);
        snapshot.peers[0].dictionary_unused
    };
    use DictionaryUnused::{Classes, FastLinks, NotCoded};
    let slow = Some(5_000_000);
    assert_eq!(unused(slow, false, Compress::Auto), Some(NotCoded));
    assert_eq!(unused(slow, true, Compress::Off), Some(Classes));
    assert_eq!(unused(slow, true, Compress::Headers), Some(Classes));
    let fast = Some(40_000_000_000);
    assert_eq!(unused(fast, true, Compress::Auto), Some(FastLinks));
}

#[test]
fn who_was_restarted_with_another_dictionary_is_sent_nothing_by_the_former_one() {
    let (same, other) = (dictionary(0..60), dictionary(100..160));
    let mut pair = pair(Some(5_000_000), |_, config| {
        config.dictionary = Some(same.clone())
    });
    for _ in 0..2 {
        pass(&mut pair, &rows(200, json));
    }
    assert!(codings(&pair, 0).contains(&3));
    let rate_bps = Some(5_000_000);
    let mut config = Config::new(NodeId(0x7777), pt0(1));
    config.mtu = 65_521;
    config.dictionary = Some(other);
    pair.restart(1, config);
    let before = [0, 1].map(|side| pair.drops(side));
    let state = LinkState {
        rate_bps,
        ..link_state(1)
    };
    pair.engines[1].handle_link_state(LINK, state, pair.now);
    pair.run(Duration::from_secs(6));
    for _ in 0..2 {
        pass(&mut pair, &rows(200, json));
        let codings = codings(&pair, 0);
        assert!(!codings.is_empty() && !codings.contains(&3), "{codings:?}");
    }
    for (side, before) in before.iter().enumerate() {
        let dropped = pair.dropped_since(side, before);
        let coded = [DropReason::CodedDamaged, DropReason::CodedUnknown];
        assert!(
            !dropped.iter().any(|(reason, _)| coded.contains(reason)),
            "{dropped:?}"
        );
    }
}
