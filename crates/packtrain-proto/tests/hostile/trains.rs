//! Trains that are not what the format says.

use packtrain_proto::offload::Offload;
use packtrain_proto::stats::DropReason;
use packtrain_proto::trunk::lane::LANES_MAX;
use packtrain_proto::wire::ethernet::MacAddr;

use super::counts;
use super::support::forger::{
    FIRST, FRAME, Forger, RawTrain, ack, first, next, option, subframe, whole,
};
use super::support::{Pair, pt0};

type Change<'a> = &'a dyn Fn(&mut RawTrain);

/// Sends trains of a known peer to side 1 and looks at what they add.
#[track_caller]
fn each_counts(reason: DropReason, changes: &[Change]) {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    for change in changes {
        let mut train = forger.train(1, &whole(&[7; 60]));
        change(&mut train);
        counts(&mut pair, &[(reason, 1)], |pair| {
            pair.inject(1, &train.bytes(), Offload::NONE);
        });
        assert_eq!(pair.out[1], []);
    }
    pair.still_works();
}

#[test]
fn a_train_cut_at_any_byte_gives_what_stands_before_the_cut() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    let parts = [
        whole(&[1; 60]),
        first(9, 200, &[2; 80]),
        next(9, 80, &[3; 120]),
    ];
    let mut model = forger.train(1, &parts.concat());
    model.options = ack(0, pair.incarnation(1, forger.link), 0, 0);
    let head_len = 14 + 16 + model.options.len();
    // Lengths at which nothing is torn, and the frames that come out of them.
    let ends: Vec<(usize, usize)> = parts
        .iter()
        .scan(head_len, |at, part| {
            *at += part.len();
            Some(*at)
        })
        .zip([1, 1, 2])
        .chain([(head_len, 0)])
        .collect();
    let len = model.bytes().len();
    for cut in 0..=len {
        let mut train = forger.train(1, &model.body);
        train.options = model.options.clone();
        let bytes = &train.bytes()[..cut];
        let whole_frames = ends
            .iter()
            .filter(|(end, _)| *end <= cut)
            .map(|e| e.1)
            .max();
        let expected: &[_] = match cut {
            0..14 => &[(DropReason::Runt, 1)],
            _ if ends.iter().any(|(end, _)| *end == cut) => &[],
            _ => &[(DropReason::Truncated, 1)],
        };
        if cut < head_len {
            // Never taken: its sequence is still free.
            forger.train -= 1;
        }
        // A frame whose rest was cut off waits, until the next takes its id over.
        let taken_over = pair.snapshot(1).reassembly.frames > 0
            && cut >= head_len + parts[0].len() + parts[1].len();
        let mut expected = expected.to_vec();
        if taken_over {
            expected.push((DropReason::ReassemblyHole, 1));
        }
        counts(&mut pair, &expected, |pair| {
            pair.inject(1, bytes, Offload::NONE)
        });
        assert_eq!(pair.out[1].len(), whole_frames.unwrap_or(0), "cut at {cut}");
        pair.out[1].clear();
    }
    pair.still_works();
}

#[test]
fn every_version_and_type_but_ours_is_counted_and_skipped() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    for first in (0..=255u8).filter(|first| ![0x11, 0x12].contains(first)) {
        let mut train = forger.train(1, &whole(&[7; 60]));
        train.first = first;
        let reason = match first >> 4 {
            // A station's message that it is not.
            1 if first == 0x13 => DropReason::BadHello,
            1 if first == 0x14 => DropReason::BadLiveness,
            1 => DropReason::UnknownType,
            _ => DropReason::UnknownVersion,
        };
        counts(&mut pair, &[(reason, 1)], |pair| {
            pair.inject(1, &train.bytes(), Offload::NONE);
        });
    }
    pair.still_works();
}

#[test]
fn lengths_beyond_the_frame_are_truncated_trains_or_bad_options() {
    each_counts(
        DropReason::Truncated,
        &[
            &|train| train.options_len = Some(u16::MAX),
            &|train| train.options_len = Some(train.body.len() as u16 + 1),
            &|train| train.body[1..3].copy_from_slice(&u16::MAX.to_be_bytes()),
            &|train| train.body[2] += 1,
            &|train| train.body = first(1, 65_535, &[0; 60])[..40].to_vec(),
            &|train| train.body = next(1, 0, &[0; 60])[..66].to_vec(),
            &|train| train.body = vec![0xe0 | FRAME, 0, 1, 0],
        ],
    );
    each_counts(
        DropReason::BadOption,
        &[
            &|train| train.options = vec![0x55],
            &|train| train.options = vec![0x55, 1],
            &|train| train.options = vec![0x55, 255, 0, 0],
            &|train| train.options = option(1, &[0; 19]),
            &|train| train.options = option(1, &[0; 21]),
            &|train| train.options = option(1, &[]),
            &|train| train.options_len = Some(1),
        ],
    );
}

#[test]
fn an_unknown_option_is_skipped_and_a_critical_one_drops_the_train() {
    each_counts(
        DropReason::UnknownCriticalOption,
        &[
            &|train| train.options = option(0x81, &[0; 25]),
            &|train| train.options = option(0xff, &[]),
            &|train| train.options = [option(0x55, &[1; 9]), option(0x80, &[2])].concat(),
        ],
    );
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    let mut train = forger.train(1, &whole(&[7; 60]));
    train.options = [option(0x7f, &[9; 255]), option(2, &[]), option(0, &[0; 3])].concat();
    counts(&mut pair, &[], |pair| {
        pair.inject(1, &train.bytes(), Offload::NONE)
    });
    assert_eq!(pair.out[1].len(), 1);
    pair.still_works();
}

#[test]
fn a_subframe_that_cannot_be_ends_its_train_and_what_came_before_is_delivered() {
    let good = whole(&[1; 60]);
    let offload = [1, 16, 0, 54, 5, 0xa8, 0, 34];
    let mut cases = vec![
        (vec![0x40 | FRAME, 0, 0, 0x90, 0], DropReason::SubframeEmpty),
        (vec![FRAME, 0, 0], DropReason::SubframeEmpty),
        (vec![FIRST, 0, 0, 0, 0, 0, 9], DropReason::SubframeEmpty),
        (next(1, 0, &[]), DropReason::SubframeEmpty),
        (subframe(FRAME, 0x88b5, &[], &[0; 60]), DropReason::Nested),
        (
            subframe(FIRST, 0x88b5, &[0, 1, 9, 0], &[0; 60]),
            DropReason::Nested,
        ),
        // Neither IPv4 nor IPv6, and no EtherType.
        (vec![FRAME, 0, 1, 0x90], DropReason::BadSubframe),
        // A first piece that is all there is, or more.
        (first(1, 60, &[0; 60]), DropReason::BadSubframe),
        (first(1, 0, &[0; 60]), DropReason::BadSubframe),
        // Past the largest payload.
        (next(1, 65_500, &[0; 60]), DropReason::BadSubframe),
    ];
    cases.extend((4..16).map(|kind| {
        (
            subframe(kind, 0x9000, &[], &[0; 60]),
            DropReason::BadSubframe,
        )
    }));
    for flags in [0x10, 0x50, 0x90, 0xf0] {
        let mut bytes = good.clone();
        bytes[0] = flags | FRAME;
        cases.push((bytes, DropReason::BadSubframe));
    }
    for flags in [0x80, 0x40, 0x20, 0x10] {
        let mut bytes = next(1, 0, &[0; 60]);
        bytes[0] |= flags;
        cases.push((bytes, DropReason::BadSubframe));
    }
    for kind in [0, 4, 5, 0x7f, 0x80, 0xff] {
        let mut fields = offload;
        fields[0] = kind;
        let mut bytes = subframe(FRAME, 0x0800, &fields, &[0x45; 60]);
        bytes[0] |= 0x20;
        cases.push((bytes, DropReason::BadGso));
    }
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    for (bad, reason) in cases {
        counts(&mut pair, &[(reason, 1)], |pair| {
            forger.send(pair, 1, &[&good[..], &bad, &good].concat());
        });
        assert_eq!(pair.out[1].len(), 1, "{bad:02x?}");
        pair.out[1].clear();
    }
    pair.still_works();
}

#[test]
fn trains_of_nobody_of_a_former_life_of_another_lane_or_for_another_are_refused() {
    let changes: &[(DropReason, Change)] = &[
        (DropReason::UnknownPeer, &|train| {
            train.source = MacAddr([6; 6])
        }),
        (DropReason::UnknownPeer, &|train| {
            train.source = MacAddr([0; 6])
        }),
        (DropReason::UnknownPeer, &|train| {
            train.source = MacAddr([0xff; 6])
        }),
        (DropReason::StaleIncarnation, &|train| {
            train.incarnation ^= 1
        }),
        (DropReason::StaleIncarnation, &|train| train.incarnation = 0),
        (DropReason::BadLane, &|train| train.lane = LANES_MAX as u8),
        (DropReason::BadLane, &|train| train.lane = 255),
        (DropReason::NotForUs, &|train| {
            train.destination = MacAddr([4; 6])
        }),
        (DropReason::NotForUs, &|train| train.destination = pt0(1)),
        (DropReason::NotForUs, &|train| {
            train.destination = MacAddr::BROADCAST
        }),
    ];
    for (reason, change) in changes {
        each_counts(*reason, &[*change]);
    }
}

#[test]
fn acknowledgements_of_what_was_never_sent_change_nothing() {
    let mut pair = Pair::new(false);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    let own = pair.incarnation(1, forger.link);
    let mut real = Forger::as_side(&pair, 0);
    real.train = pair.snapshot(0).trains_tx.trains as u32;
    for (link, flip, newest, reason) in [
        (0, 0, 1, DropReason::BadAck),
        (0, 0, 1 << 30, DropReason::BadAck),
        (0, 1, 0, DropReason::StaleIncarnation),
        (200, 0x100, 0, DropReason::StaleIncarnation),
    ] {
        let options = ack(link, own ^ flip, newest, u64::MAX);
        let mut marker = forger.train(1, &[]);
        (marker.flags, marker.options) = (2, options);
        counts(&mut pair, &[(reason, 1)], |pair| {
            pair.inject(1, &marker.bytes(), Offload::NONE);
        });
        // The same in the name of the real peer, with frames under way to it.
        pair.send(1, &super::support::frame(1, 300, 5), Offload::NONE);
        let sent = pair.engines[1]
            .poll_transmit(pair.now)
            .map(|t| t.frame.to_vec())
            .unwrap();
        let mut marker = RawTrain {
            source: real.link,
            incarnation: real.incarnation,
            ..marker
        };
        let own = pair.incarnation(1, real.link);
        marker.options = ack(link, own ^ flip, newest, u64::MAX);
        if reason == DropReason::BadAck {
            let next = u32::from_be_bytes(sent[26..30].try_into().unwrap()) + 1;
            marker.options = ack(0, own, next, u64::MAX);
        }
        counts(&mut pair, &[(reason, 1)], |pair| {
            pair.inject(1, &marker.bytes(), Offload::NONE);
        });
        pair.inject(0, &sent, Offload::NONE);
    }
    pair.still_works();
    assert_eq!(pair.snapshot(1).links[0].in_flight_bytes, 0);
}

#[test]
fn what_is_for_another_station_or_comes_from_ourselves_is_not_delivered() {
    let addressed = |destination: MacAddr, source: MacAddr| {
        let mut bytes = vec![0xc0 | FRAME, 0, 60];
        bytes.extend(destination.0);
        bytes.extend(source.0);
        bytes.extend([0x90, 0]);
        bytes.extend([5; 60]);
        bytes
    };
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    let foreign = MacAddr([4, 0, 0, 0, 0, 9]);
    for destination in [foreign, pt0(0), MacAddr([0; 6])] {
        counts(&mut pair, &[(DropReason::NotForUs, 1)], |pair| {
            forger.send(pair, 1, &addressed(destination, foreign));
        });
    }
    counts(&mut pair, &[(DropReason::OwnEcho, 1)], |pair| {
        forger.send(pair, 1, &addressed(MacAddr::BROADCAST, pt0(1)));
    });
    assert_eq!(pair.out[1], []);
    // Groups are for everyone.
    counts(&mut pair, &[], |pair| {
        forger.send(pair, 1, &addressed(MacAddr::BROADCAST, foreign));
    });
    assert_eq!(pair.out[1].len(), 1);
    pair.still_works();
}

#[test]
fn frames_to_the_link_with_a_mark_that_is_no_peers_are_counted_as_such() {
    let mut pair = Pair::new(true);
    let stranger = Forger::new(1);
    let mut frame = super::support::frame(0, 1000, 3);
    frame[..6].copy_from_slice(&super::support::link_address(1).0);
    let marks = [
        (
            packtrain_proto::config::mark_of(stranger.link).unwrap(),
            DropReason::BadMark,
        ),
        // What no mark can look like.
        (MacAddr([0; 6]), DropReason::NotForUs),
        (MacAddr::BROADCAST, DropReason::NotForUs),
    ];
    for (mark, reason) in marks {
        frame[6..12].copy_from_slice(&mark.0);
        counts(&mut pair, &[(reason, 1)], |pair| {
            pair.inject(1, &frame, Offload::NONE);
        });
    }
    // A peer's mark, to somebody else or with nothing in it.
    let mark = super::support::link_state(0).mark.unwrap();
    frame[6..12].copy_from_slice(&mark.0);
    counts(&mut pair, &[(DropReason::Runt, 1)], |pair| {
        pair.inject(1, &frame[..14], Offload::NONE);
    });
    frame[..6].copy_from_slice(&pt0(1).0);
    counts(&mut pair, &[(DropReason::NotForUs, 1)], |pair| {
        pair.inject(1, &frame, Offload::NONE);
    });
    assert_eq!(pair.out[1], []);
    pair.still_works();
}
