//! What a capture holds, by a bookkeeping that is slow and plain: everything is looked up in all that was seen.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use packtrain_proto::coding::restore::Restorer;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};
use packtrain_proto::wire::subframe::{InnerHeader, Subframe};
use packtrain_proto::wire::train::{self, Ack, Train, TrainHeader};

use crate::tshark::Seen;
use crate::world::link_address;

/// A train of the capture, read by the engine's parsers.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Its frame number, from 1.
    pub number: u64,
    pub at: Instant,
    pub from: usize,
    pub header: TrainHeader,
    pub acks: Vec<Ack>,
    pub frames: Vec<(InnerHeader, Vec<u8>)>,
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
pub struct Piece {
    pub id: u16,
    pub offset: u16,
    pub first: Option<(InnerHeader, u16)>,
    pub payload: Vec<u8>,
}

impl Logged {
    pub fn is_probe(&self) -> bool {
        !self.header.marker && self.frames.is_empty() && self.pieces.is_empty()
    }
}

/// A train's subframes as they were before they were coded, if they were. `None`: it does not restore.
pub fn subframes(message: &[u8], at: usize) -> Option<Cow<'_, [u8]>> {
    if !train::is_coded(message) {
        return Some(Cow::Borrowed(&message[at..]));
    }
    let mut plain = vec![0; usize::from(u16::MAX)];
    let len = Restorer::default().restore(&message[at..], &mut plain);
    plain.truncate(len.ok()?);
    Some(Cow::Owned(plain))
}

/// The trains of a capture of two sides' links.
pub fn trains(frames: &[Seen]) -> Vec<Logged> {
    let is_of =
        |side: usize, source: MacAddr| (0..8).any(|link| link_address(side, link) == source);
    let mut list = Vec::new();
    for (n, seen) in frames.iter().enumerate() {
        let bytes = &seen.bytes;
        if bytes[12..14] != ether_type::PACKTRAIN.to_be_bytes() {
            continue;
        }
        let message = &bytes[HEADER_LEN..];
        let Ok(train) = Train::parse(message) else {
            continue;
        };
        let source = MacAddr::from_slice(&bytes[6..]);
        let from = (0..2)
            .find(|&side| is_of(side, source))
            .expect("one of the two");
        let mut logged = Logged {
            number: n as u64 + 1,
            at: seen.at,
            from,
            header: train.header,
            acks: train.acks().collect(),
            frames: Vec::new(),
            pieces: Vec::new(),
        };
        let subframes = subframes(message, train.subframes_at).expect("an engine's own train");
        let mut rest = &subframes[..];
        while let Some((subframe, len)) = Subframe::parse(rest).expect("an engine's own train") {
            match subframe {
                Subframe::Frame { header, payload } => {
                    logged.frames.push((header, payload.to_vec()))
                }
                Subframe::First {
                    header,
                    id,
                    total_len,
                    payload,
                } => logged.pieces.push(Piece {
                    id,
                    offset: 0,
                    first: Some((header, total_len)),
                    payload: payload.to_vec(),
                }),
                Subframe::Next {
                    id,
                    offset,
                    payload,
                } => logged.pieces.push(Piece {
                    id,
                    offset,
                    first: None,
                    payload: payload.to_vec(),
                }),
            }
            rest = &rest[len..];
        }
        list.push(logged);
    }
    list
}

/// What is to be said of the trains' sequences, by frame number.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sequences {
    /// First missing, how many, and how many of these never came.
    pub gaps: BTreeMap<u64, (u32, u32, u32)>,
    /// Frame that was first.
    pub duplicates: BTreeMap<u64, u64>,
    pub replays: BTreeMap<u64, u64>,
    pub replays_without_first: BTreeSet<u64>,
    pub out_of_order: BTreeSet<u64>,
}

/// One side's trains, in the order of the capture. Of one life: no wrap, no restart.
fn of_side(trains: &[Logged], from: usize) -> Vec<&Logged> {
    let counts = |train: &&Logged| train.from == from && !train.header.marker;
    trains.iter().filter(counts).collect()
}

pub fn sequences(trains: &[Logged]) -> Sequences {
    let mut books = Sequences::default();
    for from in 0..2 {
        let row = of_side(trains, from);
        let sequence = |train: &Logged| train.header.train_sequence.0;
        for (at, train) in row.iter().enumerate() {
            let (before, own) = (&row[..at], sequence(train));
            if let Some(first) = before.iter().find(|other| sequence(other) == own) {
                let is_copy = before.iter().any(|other| {
                    (other.header.link, other.header.link_sequence)
                        == (train.header.link, train.header.link_sequence)
                });
                let list = match train.header.replay && !is_copy {
                    true => &mut books.replays,
                    false => &mut books.duplicates,
                };
                list.insert(train.number, first.number);
                continue;
            }
            if train.header.replay {
                books.replays_without_first.insert(train.number);
            }
            let Some(newest) = before.iter().map(|other| sequence(other)).max() else {
                continue;
            };
            if own > newest + 1 {
                let came = |wanted: u32| row.iter().any(|other| sequence(other) == wanted);
                let never = (newest + 1..own).filter(|&wanted| !came(wanted)).count();
                books
                    .gaps
                    .insert(train.number, (newest + 1, own - newest - 1, never as u32));
            } else if own < newest && !train.header.replay {
                books.out_of_order.insert(train.number);
            }
        }
    }
    books
}

/// By frame number, the gaps of links: first missing and how many; and what came behind the newest of its link.
pub fn link_sequences(trains: &[Logged]) -> (BTreeMap<u64, (u32, u32)>, BTreeSet<u64>) {
    let (mut gaps, mut behind) = (BTreeMap::new(), BTreeSet::new());
    for from in 0..2 {
        let mut links: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
        for train in of_side(trains, from) {
            let seen = links.entry(train.header.link).or_default();
            let own = train.header.link_sequence.0;
            if let Some(&newest) = seen.iter().max() {
                if own > newest + 1 {
                    gaps.insert(train.number, (newest + 1, own - newest - 1));
                } else if own < newest && !seen.contains(&own) {
                    behind.insert(train.number);
                }
            }
            seen.push(own);
        }
    }
    (gaps, behind)
}

/// Per acknowledgement that names as newest a train of the capture: its frame, that train's, the time between.
pub fn acknowledgements(trains: &[Logged]) -> Vec<(u64, u64, i64, i64)> {
    let mut list = Vec::new();
    for (at, train) in trains.iter().enumerate() {
        for ack in &train.acks {
            let named = trains[..at].iter().find(|other| {
                other.from != train.from
                    && !other.header.marker
                    && other.header.link == ack.link
                    && other.header.incarnation == ack.incarnation
                    && other.header.link_sequence == ack.newest
            });
            if let Some(named) = named {
                let time = train.at.as_nanos() as i64 - named.at.as_nanos() as i64;
                list.push((
                    train.number,
                    named.number,
                    time,
                    time - i64::from(ack.delay_nanos),
                ));
            }
        }
    }
    list
}

/// Trains that an acknowledgement of the capture names, the newest or in its bitmap.
pub fn acknowledged(trains: &[Logged]) -> BTreeSet<u64> {
    let mut list = BTreeSet::new();
    for (at, train) in trains.iter().enumerate() {
        for ack in &train.acks {
            for other in &trains[..at] {
                let is_its = other.from != train.from
                    && !other.header.marker
                    && other.header.link == ack.link;
                if is_its && ack.names(other.header.link_sequence) {
                    list.insert(other.number);
                }
            }
        }
    }
    list
}

/// A frame that came in pieces.
#[derive(Clone, Debug)]
pub struct Spanning {
    pub header: InnerHeader,
    /// `None`: a piece is missing.
    pub payload: Option<Vec<u8>>,
    /// Of the piece that came first by its sequence, and of the one that came last of all.
    pub begins: u64,
    pub ends: u64,
    pub pieces: usize,
}

/// Frames in pieces, put together in the order of train sequences.
pub fn spanning(trains: &[Logged]) -> Vec<Spanning> {
    let mut list = Vec::new();
    for from in 0..2 {
        let mut in_order: BTreeMap<u32, &Logged> = BTreeMap::new();
        for train in of_side(trains, from) {
            in_order
                .entry(train.header.train_sequence.0)
                .or_insert(train);
        }
        let mut open: BTreeMap<u16, (Spanning, u16, Vec<u8>)> = BTreeMap::new();
        for train in in_order.values() {
            for piece in &train.pieces {
                if let Some((header, total)) = piece.first {
                    let new = Spanning {
                        header,
                        payload: None,
                        begins: train.number,
                        ends: train.number,
                        pieces: 0,
                    };
                    if let Some((old, ..)) = open.insert(piece.id, (new, total, Vec::new())) {
                        list.push(old);
                    }
                }
                let Some((frame, total, bytes)) = open.get_mut(&piece.id) else {
                    continue;
                };
                if usize::from(piece.offset) != bytes.len() {
                    continue; // a hole: never to be filled, as all that came is here in its order
                }
                bytes.extend(&piece.payload);
                frame.pieces += 1;
                frame.ends = frame.ends.max(train.number);
                if bytes.len() == usize::from(*total) {
                    frame.payload = Some(bytes.clone());
                    list.push(open.remove(&piece.id).expect("it is open").0);
                }
            }
        }
        list.extend(open.into_values().map(|(frame, ..)| frame));
    }
    list
}
