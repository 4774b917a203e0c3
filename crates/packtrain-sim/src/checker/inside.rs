//! How many frames, or pieces of frames, a train carries: for the accounts of what a link lost.
//!
//! A reading of `docs/wire-format.md` of its own, so that a mistake of the engine's writer is not
//! believed because its reader makes the same.

#[cfg(test)]
mod against_the_coder;
pub mod blocks;
pub mod coded;
mod delta;
mod headers;
mod mixing;
mod zstandard;

use core::ops::Range;
use std::borrow::Cow;

use coded::Restored;

const HEADER_LEN: usize = 14 + 16;
const OPTIONS_LEN_AT: usize = 14 + 6;

const FLAGS_AT: usize = 14 + 1;
const LANE_AT: usize = 14 + 2;
const INCARNATION_AT: usize = 14 + 4;
const SEQUENCE_AT: usize = 14 + 8;
const MARKER: u8 = 0x02;
const REPLAY: u8 = 0x04;
const CODED: u8 = 0x08;

const FRAME: u8 = 1;
const FIRST: u8 = 2;
const NEXT: u8 = 3;
const ADDRESSES: (u8, usize) = (0x80, 12);
const ETHER_TYPE: (u8, usize) = (0x40, 2);
const OFFLOAD: (u8, usize) = (0x20, 8);

/// A frame of the workload says which one it is in so many bytes behind its EtherType.
const DESCRIBED_WITHIN: usize = 128;

/// Subframes of a train; 0 for other messages, and as far as it can be read for broken ones.
pub fn items(frame: &[u8]) -> u64 {
    subframes(&as_it_was(frame)).count() as u64
}

/// A train that was made before, and for another path perhaps.
pub fn goes_again(frame: &[u8]) -> bool {
    is_train(frame) && frame[FLAGS_AT] & REPLAY != 0
}

/// A train that carries nothing and is no marker: a question whether all before it has arrived.
fn is_probe(frame: &[u8]) -> bool {
    is_train(frame) && frame[FLAGS_AT] & (MARKER | CODED) == 0 && items(frame) == 0
}

/// Which question it is, also when it goes again: its lane, the sender's life, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    lane: u8,
    incarnation: [u8; 2],
    sequence: [u8; 4],
}

/// The one that a train is.
pub fn question(frame: &[u8]) -> Option<Question> {
    is_probe(frame).then(|| Question {
        lane: frame[LANE_AT],
        incarnation: [frame[INCARNATION_AT], frame[INCARNATION_AT + 1]],
        sequence: core::array::from_fn(|at| frame[SEQUENCE_AT + at]),
    })
}

fn is_train(frame: &[u8]) -> bool {
    frame.len() >= HEADER_LEN && frame[14] == 0x11
}

/// Where a train's subframes begin, or what they are coded into.
pub fn content_at(frame: &[u8]) -> Option<usize> {
    let at = HEADER_LEN + usize::from(headers::be16(frame.get(..HEADER_LEN)?, OPTIONS_LEN_AT));
    (is_train(frame) && at <= frame.len()).then_some(at)
}

pub fn is_coded(frame: &[u8]) -> bool {
    is_train(frame) && frame[FLAGS_AT] & CODED != 0
}

/// What a coded train was; `None` for all else, and for what does not restore to what its checksum says.
pub fn restored(frame: &[u8]) -> Option<Restored> {
    let at = content_at(frame).filter(|_| is_coded(frame))?;
    coded::restore_by_any(&frame[at..])
}

/// How a coded train is coded.
pub fn coding(frame: &[u8]) -> Option<u8> {
    let at = content_at(frame).filter(|_| is_coded(frame))?;
    frame.get(at).copied()
}

/// A coded train as it had been without being coded; all else as it is.
pub fn as_it_was(frame: &[u8]) -> Cow<'_, [u8]> {
    match is_coded(frame) {
        false => Cow::Borrowed(frame),
        true => Cow::Owned(with_subframes(frame, restored(frame))),
    }
}

/// A coded train with what it restores to.
pub fn with_subframes(frame: &[u8], restored: Option<Restored>) -> Vec<u8> {
    let content = content_at(frame).unwrap_or(HEADER_LEN);
    let mut plain = frame[..content].to_vec();
    plain[FLAGS_AT] &= !CODED;
    plain.extend(restored.unwrap_or_default().subframes);
    plain
}

/// Payloads of the whole frames in a train: what follows their EtherType.
pub fn whole_frames(frame: &[u8]) -> Vec<Vec<u8>> {
    let plain = as_it_was(frame);
    let payload = |(_, kind, range): (u8, u8, Range<usize>)| match kind {
        FRAME => plain.get(range).map(<[u8]>::to_vec),
        _ => None,
    };
    subframes(&plain).filter_map(payload).collect()
}

/// Of each frame in a train, whole or in its first piece: its EtherType behind two addresses of nobody, and
/// what it begins with.
pub fn starts(frame: &[u8]) -> Vec<Vec<u8>> {
    let plain = as_it_was(frame);
    let begins = |(_, kind, _): &(u8, u8, Range<usize>)| matches!(*kind, FRAME | FIRST);
    let beginning = subframes(&plain).filter(begins);
    beginning.filter_map(|one| start(&plain, one)).collect()
}

fn start(plain: &[u8], (flags, kind, range): (u8, u8, Range<usize>)) -> Option<Vec<u8>> {
    let fields = if kind == FRAME { 0 } else { 4 };
    let payload = plain.get(range.clone())?;
    let ether_type = match flags & ETHER_TYPE.0 {
        0 if payload.first()? >> 4 == 4 => [0x08, 0x00],
        0 => [0x86, 0xdd],
        _ => {
            let offload = if flags & OFFLOAD.0 == 0 { 0 } else { OFFLOAD.1 };
            let at = range.start - fields - offload - ETHER_TYPE.1;
            [plain[at], plain[at + 1]]
        }
    };
    let beginning = &payload[..payload.len().min(DESCRIBED_WITHIN)];
    Some([&[0; 12], &ether_type[..], beginning].concat())
}

/// A frame in a train, or a piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub place: Place,
    /// Bytes of payload.
    pub len: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// With what [`starts`] says of it.
    Whole {
        start: Vec<u8>,
    },
    /// … and the number of its pieces, and the bytes of all.
    First {
        start: Vec<u8>,
        piece: u16,
        of: usize,
    },
    Next {
        piece: u16,
        at: usize,
    },
}

/// What is in a train that is not coded, one after the other.
pub fn parts(plain: &[u8]) -> impl Iterator<Item = Part> + '_ {
    let part = |(flags, kind, range): (u8, u8, Range<usize>)| {
        let (from, len) = (range.start, range.len());
        let fields = || [from - 4, from - 2].map(|at| headers::be16(plain, at));
        let place = match kind {
            NEXT => {
                let [piece, at] = fields();
                let at = at.into();
                Place::Next { piece, at }
            }
            _ => {
                let start = start(plain, (flags, kind, range))?;
                match kind {
                    FRAME => Place::Whole { start },
                    _ => {
                        let [piece, of] = fields();
                        let of = of.into();
                        Place::First { start, piece, of }
                    }
                }
            }
        };
        Some(Part { place, len })
    };
    subframes(plain).filter_map(part)
}

/// Moves the end of the first of two whole frames, both without fields of their own, a byte behind where it was.
/// Whether there are such.
pub fn move_boundary(frame: &mut [u8]) -> bool {
    if is_coded(frame) {
        return false;
    }
    let all: Vec<_> = subframes(frame).collect();
    let is_bare = |(flags, kind, _): &&(u8, u8, Range<usize>)| *flags == 0 && *kind == FRAME;
    let Some(pair) = all
        .windows(2)
        .find(|two| two.iter().all(|one| is_bare(&one)))
    else {
        return false;
    };
    let (first, second) = (pair[0].2.clone(), pair[1].2.clone());
    if second.len() < 2 {
        return false;
    }
    // The byte that followed the second's header ends the first now.
    frame[first.end..second.start + 1].rotate_right(1);
    for (at, len) in [
        (first.start - 2, first.len() + 1),
        (first.end + 2, second.len() - 1),
    ] {
        frame[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
    }
    true
}

/// Flags, kind and payload of each.
fn subframes(frame: &[u8]) -> impl Iterator<Item = (u8, u8, Range<usize>)> + '_ {
    let mut at = content_at(frame).unwrap_or(frame.len());
    core::iter::from_fn(move || {
        // END may be the last byte of all.
        let first = frame.get(at..at + 3)?;
        let (flags, kind) = (first[0] & 0xf0, first[0] & 0x0f);
        let position = match kind {
            FRAME => 0,
            FIRST | NEXT => 4,
            _ => return None,
        };
        let fields: usize = [ADDRESSES, ETHER_TYPE, OFFLOAD]
            .iter()
            .filter(|(flag, _)| flags & flag != 0)
            .map(|(_, len)| len)
            .sum();
        let length = usize::from(u16::from_be_bytes([first[1], first[2]]));
        let start = at + 3 + fields + position;
        at = start + length;
        Some((flags, kind, start..at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(options: &[u8], subframes: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 14];
        frame.extend([0x11, 0, 0, 0, 0, 7, 0, options.len() as u8]);
        frame.extend([0; 8]);
        frame.extend(options);
        frame.extend(subframes);
        frame
    }

    #[test]
    fn every_subframe_of_a_train_counts_and_padding_does_not() {
        // A frame of 2 bytes, one with addresses and type, a first and a later piece, the end.
        let mut subframes = vec![0x01, 0, 2, 0xaa, 0xaa, 0xc1, 0, 1];
        subframes.extend([0; 14]);
        subframes.extend([0xbb, 0x22, 0, 1]);
        subframes.extend([0; 8 + 4]);
        subframes.extend([0xcc, 0x03, 0, 3, 0, 1, 0, 1, 0xdd, 0xdd, 0xdd]);
        assert_eq!(items(&train(&[], &subframes)), 4);
        subframes.extend([0, 0x01, 0, 1, 0xee]);
        assert_eq!(items(&train(&[1, 2, 0, 0], &subframes)), 4);
        let whole = train(&[], &subframes);
        assert_eq!(whole_frames(&whole), [&[0xaa, 0xaa][..], &[0xbb]]);
        let starts = starts(&whole);
        assert_eq!(starts.len(), 3, "the later piece begins nothing");
        assert_eq!(starts[0][12..], [0x86, 0xdd, 0xaa, 0xaa]);
        assert_eq!(starts[1][12..], [0, 0, 0xbb]);
        let parts: Vec<_> = parts(&whole).collect();
        let start = |at: usize| starts[at].clone();
        let (piece, at) = (1, 1);
        let places = [
            Place::Whole { start: start(0) },
            Place::Whole { start: start(1) },
            Place::First {
                start: start(2),
                piece: 0,
                of: 0,
            },
            Place::Next { piece, at },
        ];
        assert_eq!(
            parts.iter().map(|part| &part.place).collect::<Vec<_>>(),
            places.iter().collect::<Vec<_>>()
        );
        assert_eq!(
            parts.iter().map(|part| part.len).collect::<Vec<_>>(),
            [2, 1, 1, 3]
        );
    }

    #[test]
    fn a_boundary_is_moved_between_two_bare_frames() {
        let two = [0x01, 0, 2, 0xaa, 0xab, 0x01, 0, 3, 0xba, 0xbb, 0xbc];
        let mut frame = train(&[], &two);
        assert!(move_boundary(&mut frame));
        assert_eq!(
            whole_frames(&frame),
            [&[0xaa, 0xab, 0xba][..], &[0xbb, 0xbc][..]]
        );
        assert!(!move_boundary(&mut train(&[], &two[..5])));
    }

    #[test]
    fn other_messages_carry_nothing() {
        let mut hello = train(&[], &[0x01, 0, 1, 0xaa]);
        hello[14] = 0x12;
        assert_eq!((items(&hello), items(&hello[..20]), items(&[])), (0, 0, 0));
    }
}
