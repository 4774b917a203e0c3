//! What rides in trains comes out as it was put in, and what is said of sequences is what the books say.

use std::collections::{BTreeMap, BTreeSet};

use packtrain_proto::offload::Offload;
use packtrain_proto::time::Duration;
use packtrain_sim::random::Random;

use crate::books;
use crate::tshark::{Passes, Row, Seen, fields, with_tshark};
use crate::world::{World, datagram, pt0, segment};

const FIELDS: &[&str] = &[
    "packtrain.payload",
    "packtrain.subframe.kind",
    "packtrain.reassembled.data",
    "packtrain.fragment",
    "packtrain.reassembled_in",
    "packtrain.gap.first",
    "packtrain.gap.count",
    "packtrain.gap.lost",
    "packtrain.link_gap.first",
    "packtrain.link_gap.count",
    "packtrain.replay_of",
    "packtrain.duplicate_of",
    "packtrain.acks_frame",
    "packtrain.ack_time",
    "packtrain.ack_rtt",
    "packtrain.acked_by",
    "packtrain.frames",
    "packtrain.pieces",
    "packtrain.drop_reason",
    "packtrain.subframe.placeholder",
    "packtrain.stream",
    "packtrain.gso.segments",
    "eth.src",
    "eth.dst",
    "udp.payload",
    "tcp.payload",
    "ip.len",
];

/// Everything that trains can hold: small frames of several flows, pieces of large ones, GSO frames that fit
/// into a train and that do not.
fn busy(world: &mut World, random: &mut Random) {
    let mut sequence = [1u32; 2];
    for round in 0..40u32 {
        for (from, sequence) in sequence.iter_mut().enumerate() {
            for n in 0..random.below(12) {
                let payload: Vec<u8> = (0..random.between(1, 300))
                    .map(|_| random.next() as u8)
                    .collect();
                world.send(
                    from,
                    &datagram(from, [4000 + n as u16, 9], &payload),
                    Offload::NONE,
                );
            }
            if random.chance(0.3) {
                let payload: Vec<u8> = (0..random.between(2000, 9000))
                    .map(|_| random.next() as u8)
                    .collect();
                world.send(from, &datagram(from, [5000, 9], &payload), Offload::NONE);
            }
            let gso = match round % 3 {
                0 => Some((random.between(3000, 40_000), 1000)),
                1 => Some((700, 300)),
                _ => None,
            };
            if let Some((len, segment_len)) = gso {
                let payload: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
                let (frame, offload) = segment(from, *sequence, &payload, Some(segment_len));
                *sequence += len as u32;
                world.send(from, &frame, offload);
            }
        }
        world.run(random.duration(Duration::from_micros(50), Duration::from_millis(3)));
    }
    world.run(Duration::from_millis(400));
}

fn by_number(rows: &[Row], pick: impl Fn(&Row) -> bool) -> BTreeSet<u64> {
    let numbered = (1..).zip(rows);
    numbered
        .filter(|(_, row)| pick(row))
        .map(|(n, _)| n)
        .collect()
}

fn one_by_number(rows: &[Row], name: &str) -> BTreeMap<u64, u64> {
    let first = |row: &Row| row.numbers(name).first().copied();
    (1..)
        .zip(rows)
        .filter_map(|(n, row)| Some((n, first(row)?)))
        .collect()
}

/// Compares everything that the dissector says of a capture with the books.
fn agree(seen: &[Seen], passes: Passes) -> books::Sequences {
    let rows = fields(seen, passes, FIELDS);
    let trains = books::trains(seen);
    let row = |number: u64| &rows[number as usize - 1];
    let spanning = books::spanning(&trains);

    for train in trains.iter().filter(|train| !train.header.marker) {
        let row = row(train.number);
        let whole: Vec<&[u8]> = train
            .frames
            .iter()
            .map(|(_, payload)| &payload[..])
            .collect();
        let kinds = row.numbers("packtrain.subframe.kind");
        let payloads = row.bytes("packtrain.payload");
        let frames = kinds.iter().zip(&payloads).filter(|&(&kind, _)| kind == 1);
        let frames: Vec<&[u8]> = frames.map(|(_, payload)| &payload[..]).collect();
        assert_eq!(frames, whole, "frame {}", train.number);
        assert_eq!(row.numbers("packtrain.frames"), [whole.len() as u64]);
        assert_eq!(row.numbers("packtrain.pieces"), [train.pieces.len() as u64]);
        // Each went to the Ethernet dissector, with the addresses of both pt0s.
        let done = row.all("packtrain.reassembled.data").len();
        let (src, dst) = (row.all("eth.src"), row.all("eth.dst"));
        assert_eq!(src.len(), 1 + whole.len() + done, "frame {}", train.number);
        assert!(
            src[1..]
                .iter()
                .all(|src| *src == pt0(train.from).to_string()),
            "{src:?}"
        );
        assert!(
            dst[1..]
                .iter()
                .all(|dst| *dst == pt0(1 - train.from).to_string()),
            "{dst:?}"
        );
        assert!(row.all("packtrain.subframe.placeholder").is_empty());
        assert_eq!(row.numbers("packtrain.stream"), [0]);
        let udp = row.bytes("udp.payload");
        let sent = train.frames.iter().filter(|(_, payload)| payload[9] == 17);
        for (_, payload) in sent {
            assert!(
                udp.contains(&payload[28..].to_vec()),
                "frame {}",
                train.number
            );
        }
        let segments = train.frames.iter().filter_map(|(header, payload)| {
            let gso = header.offload.gso?;
            let len = 14 + payload.len() - usize::from(gso.header_len);
            Some(len.div_ceil(usize::from(gso.segment_len)) as u64)
        });
        let segments: Vec<u64> = segments.collect();
        assert!(row.numbers("packtrain.gso.segments").starts_with(&segments));
        for (_, payload) in train.frames.iter().filter(|(_, payload)| payload[9] == 6) {
            assert!(row.bytes("tcp.payload").contains(&payload[40..].to_vec()));
        }
    }

    // Frames in pieces, whole where all pieces came, at the frame that brought the last one.
    let mut expected: Vec<(u64, Vec<u8>)> = Vec::new();
    for frame in &spanning {
        expected.extend(frame.payload.clone().map(|payload| (frame.ends, payload)));
    }
    expected.sort();
    let mut got: Vec<(u64, Vec<u8>)> = Vec::new();
    for (number, row) in (1..).zip(&rows) {
        got.extend(
            row.bytes("packtrain.reassembled.data")
                .into_iter()
                .map(|data| (number, data)),
        );
    }
    got.sort();
    assert_eq!(got.len(), expected.len(), "reassembled frames");
    assert!(got == expected);
    // Of one that a card would cut, into how many segments, after those of the whole frames of that train.
    for frame in spanning.iter().filter(|frame| frame.payload.is_some()) {
        let Some(gso) = frame.header.offload.gso else {
            continue;
        };
        let len = 14 + frame.payload.as_ref().map_or(0, Vec::len) - usize::from(gso.header_len);
        let segments = len.div_ceil(usize::from(gso.segment_len)) as u64;
        let shown = row(frame.ends).numbers("packtrain.gso.segments");
        assert!(shown.contains(&segments), "frame {}", frame.ends);
    }
    let links: usize = rows
        .iter()
        .map(|row| row.all("packtrain.fragment").len())
        .sum();
    let whole = spanning.iter().filter(|frame| frame.payload.is_some());
    assert_eq!(links, whole.map(|frame| frame.pieces).sum::<usize>());

    let sequences = books::sequences(&trains);
    let gaps: BTreeMap<u64, (u32, u32)> = sequences
        .gaps
        .iter()
        .map(|(&n, &(first, count, _))| (n, (first, count)))
        .collect();
    let pairs = |first: &str, count: &str| -> BTreeMap<u64, (u32, u32)> {
        let (first, count) = (one_by_number(&rows, first), one_by_number(&rows, count));
        first
            .into_iter()
            .map(|(n, first)| (n, (first as u32, count[&n] as u32)))
            .collect()
    };
    assert_eq!(pairs("packtrain.gap.first", "packtrain.gap.count"), gaps);
    let (link_gaps, link_behind) = books::link_sequences(&trains);
    assert_eq!(
        pairs("packtrain.link_gap.first", "packtrain.link_gap.count"),
        link_gaps
    );
    let is_behind = |row: &Row| row.says("Link sequence ") && row.mentions(" behind the newest");
    let said = by_number(&rows, |row| {
        row.expert
            .iter()
            .any(|text| text.starts_with("Link sequence ") && text.ends_with(" behind the newest"))
    });
    assert!(said.iter().all(|&n| is_behind(row(n))));
    assert_eq!(said, link_behind);
    assert_eq!(
        one_by_number(&rows, "packtrain.duplicate_of"),
        sequences.duplicates
    );
    assert_eq!(
        one_by_number(&rows, "packtrain.replay_of"),
        sequences.replays
    );
    let without_first = by_number(&rows, |row| {
        row.mentions("as a replay; the first one was not seen")
    });
    assert_eq!(without_first, sequences.replays_without_first);
    let behind = by_number(&rows, |row| {
        row.expert
            .iter()
            .any(|text| text.starts_with("Train ") && text.ends_with(" behind the newest"))
    });
    assert_eq!(behind, sequences.out_of_order);

    let (mut acks, mut rtts) = (Vec::new(), Vec::new());
    for (number, row) in (1..).zip(&rows) {
        let named = row.numbers("packtrain.acks_frame").into_iter();
        let times = row.nanos("packtrain.ack_time").into_iter();
        acks.extend(named.zip(times).map(|(named, time)| (number, named, time)));
        rtts.extend(
            row.nanos("packtrain.ack_rtt")
                .into_iter()
                .map(|rtt| (number, rtt)),
        );
    }
    let expected = books::acknowledgements(&trains);
    let named = expected
        .iter()
        .map(|&(number, named, time, _)| (number, named, time));
    assert_eq!(acks, named.collect::<Vec<_>>());
    // A train that was moved to after its acknowledgement's delay began has no round trip.
    let shown = expected.iter().filter(|&&(.., rtt)| rtt >= 0);
    let shown: Vec<_> = shown.map(|&(number, .., rtt)| (number, rtt)).collect();
    assert!(!shown.is_empty());
    assert_eq!(rtts, shown);

    if passes == Passes::Two {
        let lost: BTreeMap<u64, u64> = sequences
            .gaps
            .iter()
            .filter(|(_, gap)| gap.2 > 0)
            .map(|(&n, gap)| (n, u64::from(gap.2)))
            .collect();
        assert_eq!(one_by_number(&rows, "packtrain.gap.lost"), lost);
        let acknowledged = books::acknowledged(&trains);
        let shown = by_number(&rows, |row| !row.all("packtrain.acked_by").is_empty());
        // A copy has the link sequence of the first, which is the one that counts.
        let copies: BTreeSet<u64> = trains
            .iter()
            .filter(|t| sequences.duplicates.contains_key(&t.number))
            .map(|t| t.number)
            .collect();
        assert_eq!(shown, acknowledged.difference(&copies).copied().collect());
        let probes = trains.iter().filter(|train| train.is_probe());
        let open = probes
            .map(|probe| probe.number)
            .filter(|n| !acknowledged.contains(n));
        let open: BTreeSet<u64> = open.filter(|n| !copies.contains(n)).collect();
        let said = by_number(&rows, |row| row.mentions("names this probe"));
        assert!(
            said.difference(&open).next().is_none()
                && open
                    .difference(&said)
                    .all(|n| sequences.replays.contains_key(n))
        );
        let holed: BTreeSet<u64> = spanning
            .iter()
            .filter(|frame| frame.payload.is_none())
            .map(|frame| frame.begins)
            .collect();
        assert_eq!(
            by_number(&rows, |row| row.mentions(" never came")
                && row.says("reassembly_hole: bytes")),
            holed
        );
    }
    for (number, row) in (1..).zip(&rows) {
        let fine = |reason: &String| ["reassembly_hole", "stray_piece"].contains(&reason.as_str());
        assert!(
            row.all("packtrain.drop_reason").iter().all(fine),
            "frame {number}: {row:?}"
        );
    }
    sequences
}

/// Takes frames out of a capture, doubles some, and moves some a few places later: never a hello.
fn impaired(seen: &[Seen], random: &mut Random) -> Vec<Seen> {
    let mut list: Vec<(f64, Seen)> = Vec::new();
    for (at, frame) in seen.iter().enumerate() {
        let is_train = frame.bytes[12..15] == [0x88, 0xb5, 0x11];
        let at = at as f64;
        if !is_train {
            list.push((at, frame.clone()));
            continue;
        }
        if random.chance(0.03) {
            continue;
        }
        let moved = if random.chance(0.04) {
            random.unit() * 6.0
        } else {
            0.0
        };
        list.push((at + moved, frame.clone()));
        if random.chance(0.03) {
            list.push((at + 0.5 + random.unit() * 5.0, frame.clone()));
        }
    }
    list.sort_by(|a, b| a.0.total_cmp(&b.0));
    // A capture's times rise.
    let mut now = seen[0].at;
    let frames = list.into_iter().map(|(_, frame)| {
        now = now.max(frame.at);
        Seen { at: now, ..frame }
    });
    frames.collect()
}

#[test]
fn frames_come_out_of_trains_as_they_were_put_in() {
    with_tshark!();
    let mut random = Random::new(1);
    let mut world = World::new(&[Duration::from_micros(200)]);
    busy(&mut world, &mut random);
    for passes in [Passes::One, Passes::Two] {
        let books = agree(&world.seen, passes);
        assert_eq!(books, books::Sequences::default(), "one link, nothing lost");
    }
    // The whole of it, once more from the hosts' side: what was given to them is what the capture shows.
    let trains = books::trains(&world.seen);
    let whole: usize = trains.iter().map(|train| train.frames.len()).sum();
    let complete = books::spanning(&trains)
        .iter()
        .filter(|frame| frame.payload.is_some())
        .count();
    assert!(
        whole > 200 && complete > 20,
        "{whole} frames, {complete} in pieces"
    );
    assert_eq!(whole + complete, world.out[0].len() + world.out[1].len());
    // Pieces ride in coded trains as well.
    let coded = trains.iter().filter(|train| train.header.coded);
    let (coded, with_pieces): (Vec<_>, Vec<_>) = coded.partition(|train| train.pieces.is_empty());
    assert!(
        coded.len() > 10 && with_pieces.len() > 10,
        "{} and {} coded trains",
        coded.len(),
        with_pieces.len()
    );
}

#[test]
fn gaps_duplicates_and_disorder_are_those_of_the_books() {
    with_tshark!();
    for (seed, passes) in [(2, &[Passes::One, Passes::Two][..]), (3, &[Passes::Two])] {
        let mut random = Random::new(seed);
        let mut world = World::new(&[Duration::from_micros(300)]);
        busy(&mut world, &mut random);
        let seen = impaired(&world.seen, &mut random);
        for &passes in passes {
            let books = agree(&seen, passes);
            assert!(
                books.gaps.len() > 10 && books.duplicates.len() > 5,
                "seed {seed}: {books:?}"
            );
            assert!(books.out_of_order.len() > 2, "seed {seed}: {books:?}");
        }
    }
}

#[test]
fn trains_that_go_again_by_another_link_name_the_frame_that_was_first() {
    with_tshark!();
    let mut random = Random::new(4);
    let mut world = World::new(&[Duration::from_micros(200), Duration::from_micros(1500)]);
    busy(&mut world, &mut random);
    world.broken[0] = true;
    busy(&mut world, &mut random);
    world.run(Duration::from_secs(2));
    // As the senders see it, and as one sees it who is behind the broken link.
    let books = agree(&world.seen, Passes::Two);
    assert!(!books.replays.is_empty(), "{books:?}");
    let first: BTreeSet<u64> = books.replays.values().copied().collect();
    let mut number = 0;
    let mut behind = world.seen.clone();
    behind.retain(|_| {
        number += 1;
        !first.contains(&number)
    });
    for passes in [Passes::One, Passes::Two] {
        let books = agree(&behind, passes);
        assert!(!books.replays_without_first.is_empty(), "{books:?}");
    }
}
