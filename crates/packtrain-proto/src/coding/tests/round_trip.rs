//! Very many frames through coder and restorer, bit for bit.
//!
//! A few hundred thousand by default; `PACKTRAIN_FRAMES=10000000` for as many, and the number of a train replays it.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::traffic::{Flow, Kind, below, once_in, pick};
use super::{coder, dictionary};
use crate::class::ClassId;
use crate::coding::coder::{Coder, Finished, Treatment};
use crate::coding::restore::Restorer;
use crate::offload::{Gso, GsoKind, Offload, PartialChecksum};
use crate::random::Random;
use crate::wire::coded::{Coding, PLAIN_MAX};
use crate::wire::subframe::{self, InnerHeader, Subframe};

const FRAMES: u64 = 200_000;

const CODINGS: [Coding; 4] = [Coding::Headers, Coding::Lz4, Coding::Zstd, Coding::Mixing];

#[derive(Clone, Debug)]
enum Put {
    Frame(InnerHeader, Vec<u8>),
    First(InnerHeader, (u16, u16), Vec<u8>),
    Next((u16, u16), Vec<u8>),
}

impl Put {
    fn is(&self, read: &Subframe<'_>) -> bool {
        match (self, read) {
            (
                Put::Frame(header, payload),
                Subframe::Frame {
                    header: read,
                    payload: bytes,
                },
            ) => header == read && payload == bytes,
            (
                Put::First(header, (id, total), payload),
                Subframe::First {
                    header: read,
                    id: of,
                    total_len,
                    payload: bytes,
                },
            ) => header == read && (id, total) == (of, total_len) && payload == bytes,
            (
                Put::Next((id, offset), payload),
                Subframe::Next {
                    id: of,
                    offset: at,
                    payload: bytes,
                },
            ) => (id, offset) == (of, at) && payload == bytes,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    frames: u64,
    pieces: u64,
    /// Of each kind.
    kinds: [u64; Kind::ALL.len()],
    trains: u64,
    /// By each coding.
    coded: [u64; CODINGS.len()],
    deltas: u64,
}

impl Passed {
    fn add(&mut self, other: &Passed) {
        self.frames += other.frames;
        self.pieces += other.pieces;
        self.trains += other.trains;
        self.deltas += other.deltas;
        for (sum, n) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += n;
        }
        for (sum, n) in self.coded.iter_mut().zip(other.coded) {
            *sum += n;
        }
    }
}

/// Who codes and restores, and the memory that each keeps.
struct Ends {
    coder: Coder,
    restorer: Restorer,
    out: Vec<u8>,
    region: Vec<u8>,
}

impl Ends {
    fn new() -> Ends {
        let mut restorer = Restorer::default();
        restorer.set_dictionary(Some(dictionary()));
        Ends {
            coder: coder(),
            restorer,
            out: vec![0; PLAIN_MAX],
            region: Vec::new(),
        }
    }

    /// A train of that number, which is filled as an aggregator fills it.
    fn train(&mut self, number: u64, passed: &mut Passed) {
        let mut random = Random::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let random = &mut random;
        // Zstandard takes most of the time, and learns nothing of headers.
        let coding = pick(
            random,
            &[
                CODINGS[0], CODINGS[0], CODINGS[1], CODINGS[1], CODINGS[1], CODINGS[2],
            ],
        );
        let room = pick(
            random,
            &[226, 562, 1466, 1466, 1466, 1466, 3966, 8966, 60_000],
        );
        // Mixing takes a hundred times as long as all else, and is for no longer trains.
        let (coding, room) = match once_in(random, 48) {
            true => (Coding::Mixing, room.min(8966)),
            false => (coding, room),
        };
        self.coder.begin(coding, room);
        let mut flows: Vec<Flow> = (0..1 + below(random, 12))
            .map(|_| Flow::draw(random))
            .collect();
        let treatments = [
            Treatment::Headers,
            Treatment::Headers,
            Treatment::Payload,
            Treatment::Payload,
            Treatment::Plain,
            Treatment::Trial(ClassId(1)),
        ];
        let mut treatment = pick(random, &treatments);
        let mut put: Vec<Put> = Vec::new();
        let mut payload = Vec::new();
        let mut at = 0;
        for _ in 0..pick(random, &[2, 20, 60, 200]) {
            if once_in(random, 3) {
                at = below(random, flows.len() as u64) as usize;
            }
            if once_in(random, 12) {
                treatment = pick(random, &treatments);
            }
            let header = flows[at].next(random, &mut payload);
            if once_in(random, 40) {
                self.put_piece(random, header, &payload, treatment, &mut put);
                continue;
            }
            let header = match once_in(random, 60) {
                true => InnerHeader {
                    offload: GSO,
                    ..header
                },
                false => header,
            };
            let needs = subframe::overhead(&header, &payload, false) + payload.len();
            let promised = self.coder.room(treatment) >= needs;
            let mut is_put = self.coder.put_frame(&header, &payload, treatment);
            assert!(is_put || !promised, "train {number}: what has room is put");
            while !is_put && self.coder.make_room() {
                is_put = self.coder.put_frame(&header, &payload, treatment);
            }
            if !is_put {
                break;
            }
            let kind = Kind::ALL.iter().position(|kind| *kind == flows[at].kind);
            passed.kinds[kind.expect("it is one of them")] += 1;
            passed.frames += 1;
            put.push(Put::Frame(header, payload.clone()));
        }
        let coded_as = CODINGS
            .iter()
            .position(|one| *one == coding)
            .expect("one of them");
        self.comes_out(&put, room, number, passed, coded_as);
    }

    fn put_piece(
        &mut self,
        random: &mut Random,
        header: InnerHeader,
        payload: &[u8],
        treatment: Treatment,
        put: &mut Vec<Put>,
    ) {
        let room = self.coder.room(treatment);
        if room < subframe::overhead(&header, payload, true) + payload.len() {
            return;
        }
        let id = random.up_to(0xffff) as u16;
        let piece = match once_in(random, 2) {
            true => {
                let piece = (id, payload.len() as u16 + 1);
                self.coder.put_piece(
                    |writer| writer.put_first(&header, piece.0, piece.1, payload),
                    treatment,
                );
                Put::First(header, piece, payload.to_vec())
            }
            false => {
                let piece = (id, 9);
                self.coder.put_piece(
                    |writer| writer.put_next(piece.0, piece.1, payload),
                    treatment,
                );
                Put::Next(piece, payload.to_vec())
            }
        };
        put.push(piece);
    }

    /// All that was put, as it was and in its order.
    fn comes_out(
        &mut self,
        put: &[Put],
        room: usize,
        number: u64,
        passed: &mut Passed,
        coded_as: usize,
    ) {
        passed.trains += 1;
        passed.pieces += put
            .iter()
            .filter(|put| !matches!(put, Put::Frame(..)))
            .count() as u64;
        self.region.clear();
        let plain = match self.coder.finish() {
            Finished::Plain(plain) => {
                assert!(plain.len() <= room, "train {number}");
                plain
            }
            Finished::Coded(head, content) => {
                self.region.extend(head.to_bytes());
                self.region.extend_from_slice(content);
                assert!(self.region.len() <= room, "train {number}");
                // Ethernet may have padded it.
                self.region
                    .resize(self.region.len() + (number % 3) as usize * 9, 0);
                let restored = self.restorer.restore(&self.region, &mut self.out);
                let len = restored.unwrap_or_else(|error| panic!("train {number}: {error}"));
                passed.coded[coded_as] += 1;
                &self.out[..len]
            }
        };
        let mut at = 0;
        for (n, one) in put.iter().enumerate() {
            let read = Subframe::parse(&plain[at..]).expect("whole subframes");
            let (read, len) = read.unwrap_or_else(|| panic!("train {number}: {n} frames alone"));
            assert!(
                one.is(&read),
                "train {number}: {one:02x?} has become {read:02x?}"
            );
            at += len;
        }
        assert_eq!(at, plain.len(), "train {number}");
        passed.deltas += u64::from(self.coder.brought().deltas);
    }
}

const GSO: Offload = Offload {
    gso: Some(Gso {
        kind: GsoKind::TcpV4,
        ecn: false,
        header_len: 54,
        segment_len: 100,
    }),
    checksum: Some(PartialChecksum {
        start: 34,
        offset: 16,
    }),
};

#[test]
fn every_frame_of_very_many_comes_out_bit_for_bit() {
    let asked = std::env::var("PACKTRAIN_FRAMES").ok();
    let frames = asked.as_ref().map_or(FRAMES, |text| {
        text.parse().expect("PACKTRAIN_FRAMES is a number")
    });
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let all = Mutex::new(Passed::default());
    let work = || {
        let (mut ends, mut passed) = (Ends::new(), Passed::default());
        while done.load(Ordering::Relaxed) < frames {
            let before = passed.frames;
            ends.train(next.fetch_add(1, Ordering::Relaxed), &mut passed);
            done.fetch_add(passed.frames - before, Ordering::Relaxed);
        }
        all.lock().expect("no one panics").add(&passed);
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let passed = all.into_inner().expect("no one panics");
    let text = format!("{passed:?}");
    println!("{text}");
    if asked.is_some() {
        // Past the capture of tests that pass: who has asked for a number is told it.
        let frames = passed.frames;
        let _ = writeln!(
            std::io::stderr(),
            "{frames} frames came out as they were: {text}"
        );
    }
    assert!(passed.frames >= frames, "{text}");
    // What is never reached is never tested.
    assert!(passed.deltas > passed.frames / 4, "{text}");
    assert!(
        passed.kinds.iter().all(|n| *n > passed.frames / 100),
        "{text}"
    );
    assert!(
        passed.coded.iter().all(|n| *n > passed.trains / 100),
        "{text}"
    );
    assert!(passed.pieces > passed.trains / 10, "{text}");
}
