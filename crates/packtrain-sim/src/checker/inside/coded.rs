//! What a coded train was before it was coded: `docs/wire-format.md`, "Coded trains", read anew.
//!
//! Slow and obvious: every field is looked up in the document's list, every checksum is summed over, and
//! nothing is kept but what the document says is kept. The engine's own reader is not asked.

use super::blocks;
use super::delta::{self, Reader, Spots};
use super::mixing::{self, Mixing};
use super::zstandard;
use crate::dictionaries::Known;

pub const CODED_SUBFRAMES: u8 = 1;
pub const LZ4: u8 = 2;
pub const ZSTANDARD: u8 = 3;
pub const MIXING: u8 = 4;
/// Coding and checksum.
pub const HEADER_LEN: usize = 5;
/// A train that would restore to more is dropped.
const RESTORED_LEN_MAX: usize = 65_535;

/// A coded train's subframes as they were, and how they were told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub subframes: Vec<u8>,
    pub deltas: usize,
    pub lz4_blocks: usize,
    pub zstandard_blocks: usize,
    /// With which those are compressed.
    pub dictionary: Option<Known>,
    pub mixed_blocks: usize,
    /// Of bytes, of µ-law and of A-law.
    pub mixed_segments: [usize; 3],
    /// Where, among the coded subframes.
    pub spots: Spots,
    /// Whether they are what the train's checksum says that they were.
    pub is_what_was: bool,
}

/// Of all that follows a train's options, for who has this dictionary. `None`: it does not restore to anything.
pub fn restore(coded: &[u8], dictionary: Option<Known>) -> Option<Restored> {
    let coding = *coded.first()?;
    let told = u32::from_be_bytes(coded.get(1..HEADER_LEN)?.try_into().ok()?);
    let content = &coded[HEADER_LEN..];
    let mut restored = match coding {
        CODED_SUBFRAMES => delta::subframes(&mut Reader::new(content), RESTORED_LEN_MAX)?,
        _ => {
            let (plain, told) = out_of_blocks(coding, content, dictionary)?;
            let restored = delta::subframes(&mut Reader::new(&plain), RESTORED_LEN_MAX)?;
            Restored {
                subframes: restored.subframes,
                deltas: restored.deltas,
                spots: restored.spots,
                ..told
            }
        }
    };
    restored.is_what_was = crc32(&restored.subframes) == told;
    Some(restored)
}

/// The coded subframes that are in a train's blocks, and how these were told.
fn out_of_blocks(
    coding: u8,
    content: &[u8],
    dictionary: Option<Known>,
) -> Option<(Vec<u8>, Restored)> {
    let mut told = Restored::default();
    let plain = match coding {
        LZ4 => {
            let (plain, compressed) = blocks::restore(content, RESTORED_LEN_MAX, blocks::lz4)?;
            told.lz4_blocks = compressed;
            plain
        }
        ZSTANDARD => {
            let known = dictionary?;
            let block =
                |block: &[u8], out: &mut Vec<u8>, end| zstandard::restore(block, known, out, end);
            let (plain, compressed) = blocks::restore(content, RESTORED_LEN_MAX, block)?;
            (told.zstandard_blocks, told.dictionary) = (compressed, dictionary);
            plain
        }
        MIXING => {
            let mut mixing = Mixing::new();
            let block = |block: &[u8], out: &mut Vec<u8>, end| mixing.block(block, out, end);
            let (plain, compressed) = blocks::restore(content, mixing::RESTORED_LEN_MAX, block)?;
            told.mixed_blocks = compressed;
            told.mixed_segments = mixing.segments;
            plain
        }
        _ => return None,
    };
    Some((plain, told))
}

/// … with whichever dictionary of those that there are it restores to what was.
pub fn restore_by_any(coded: &[u8]) -> Option<Restored> {
    let restored = |with| restore(coded, with).filter(|restored| restored.is_what_was);
    match *coded.first()? {
        ZSTANDARD => Known::ALL
            .into_iter()
            .find_map(|known| restored(Some(known))),
        _ => restored(None),
    }
}

/// Blocks put together: the same train by the first coding.
pub fn without_blocks(coded: &[u8]) -> Option<Vec<u8>> {
    let content = coded.get(HEADER_LEN..)?;
    let dictionary = match coded[0] {
        CODED_SUBFRAMES => return Some(coded.to_vec()),
        ZSTANDARD => restore_by_any(coded)?.dictionary,
        _ => None,
    };
    let (plain, _) = out_of_blocks(coded[0], content, dictionary)?;
    Some([&[CODED_SUBFRAMES], &coded[1..HEADER_LEN], &plain].concat())
}

/// Makes the checksum that of what the train restores to. `false`: it restores to nothing.
pub fn seal(coded: &mut [u8], dictionary: Option<Known>) -> bool {
    let Some(restored) = restore(coded, dictionary) else {
        return false;
    };
    coded[1..HEADER_LEN].copy_from_slice(&crc32(&restored.subframes).to_be_bytes());
    true
}

/// IEEE 802.3's: reflected, begun with ones, and inverted in the end.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, &byte| {
        crc >> 8 ^ OF_BYTE[usize::from(crc as u8 ^ byte)]
    })
}

/// What the division leaves of each byte: bit by bit, it would take most of the time of a simulation.
const OF_BYTE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_its_catalogue() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn subframes_come_as_they_are_and_padding_does_not() {
        let frame = [1, 0, 2, 0x4a, 0xbb];
        let crc = crc32(&frame).to_be_bytes();
        for padding in [&[][..], &[0], &[0, 7, 9]] {
            let coded = [&[1][..], &crc, &frame, padding].concat();
            let restored = restore(&coded, None).unwrap();
            assert!(restored.is_what_was);
            assert_eq!(restored.subframes, frame);
        }
        let mut damaged = [&[1][..], &crc, &frame].concat();
        damaged[9] ^= 1;
        assert!(!restore(&damaged, None).unwrap().is_what_was);
        assert!(seal(&mut damaged, None));
        assert!(restore(&damaged, None).unwrap().is_what_was);
        damaged[0] = 3;
        assert_eq!(restore(&damaged, None), None);
    }

    /// The bytes of a vector: two digits each, and comments from `#` on.
    fn vector(text: &str) -> Vec<u8> {
        let without_comments = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(""));
        let digits: String = without_comments.flat_map(str::split_whitespace).collect();
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn the_documents_vectors_restore_to_the_calls_that_they_tell_of() {
        let vectors = [
            (
                include_str!("../../../../../docs/vectors/train-coded-headers.hex"),
                44,
                0,
            ),
            (
                include_str!("../../../../../docs/vectors/train-coded-lz4.hex"),
                80,
                1,
            ),
        ];
        for (text, len, lz4_blocks) in vectors {
            let train = vector(text);
            let restored = super::super::restored(&train).expect("a right checksum");
            assert_eq!((restored.deltas, restored.lz4_blocks), (3, lz4_blocks));
            // The low bytes of RTP's sequence and source: three packets of one call, one of the other.
            let call = |payload: Vec<u8>| {
                assert_eq!(payload.len(), len);
                (payload[31], payload[39])
            };
            let calls: Vec<_> = super::super::whole_frames(&train)
                .into_iter()
                .map(call)
                .collect();
            assert_eq!(calls, [(7, 1), (9, 2), (8, 1), (9, 1)]);
        }
    }

    #[test]
    fn the_documents_vector_of_mixing_restores_to_two_calls_and_text() {
        let text = include_str!("../../../../../docs/vectors/train-coded-mixing.hex");
        let train = vector(text);
        let restored = super::super::restored(&train).expect("a right checksum");
        assert_eq!((restored.deltas, restored.mixed_blocks), (4, 1));
        assert_eq!(restored.mixed_segments, [2, 2, 1]);
        let frames = super::super::whole_frames(&train);
        let text = |frame: &[u8]| String::from_utf8_lossy(&frame[28..]).into_owned();
        // Of RTP's type and sequence: two packets of one call, one of the other.
        let call = |n: usize| (frames[n].len(), frames[n][29], frames[n][31]);
        assert_eq!(
            [call(0), call(1), call(3)],
            [(80, 0, 7), (80, 8, 9), (80, 0, 8)]
        );
        assert_eq!(text(&frames[2]), "temperature=21.4 humidity=61");
        assert_eq!(text(&frames[4]), "temperature=21.5 humidity=60");
    }

    /// A frame as it is, and a DELTA of it; the second frame is what that restores to.
    fn with_delta(first: &[u8], delta: &[u8], second: &[u8]) -> Vec<u8> {
        let subframe = |payload: &[u8]| [&[1, 0, payload.len() as u8], payload].concat();
        let plain = [subframe(first), subframe(second)].concat();
        let crc = crc32(&plain).to_be_bytes();
        [&[1][..], &crc, &subframe(first), delta].concat()
    }

    #[test]
    fn a_delta_whose_headers_are_others_than_its_references_restores_to_nothing() {
        // UDP over IPv4 that says two bytes; the identification goes on from frame to frame.
        let packet = |id: u8, flags: [u8; 2], behind: &[u8]| {
            let mut packet = vec![
                0x45,
                0,
                0,
                20 + behind.len() as u8,
                0,
                id,
                flags[0],
                flags[1],
            ];
            packet.extend([64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
            let check = !crate::checksum::sum(0, &packet);
            packet[10..12].copy_from_slice(&check.to_be_bytes());
            packet.extend(behind);
            packet
        };
        let udp = [0, 7, 0, 8, 0, 10, 0, 0, 0xaa, 0xbb];
        for (flags, is_whole) in [([0x40, 0], true), ([0x20, 0], false), ([0, 9], false)] {
            let (first, second) = (packet(1, [0, 0], &udp), packet(2, flags, &udp));
            let delta = [&[0x24, 0x80, 0x08], &flags[..], &second[28..]].concat();
            let restored = restore(&with_delta(&first, &delta, &second), None);
            assert_eq!(
                restored.is_some_and(|restored| restored.is_what_was),
                is_whole
            );
        }
        // Half of a UDP header is payload, and becomes no header by being longer.
        for (len, is_same) in [(7, true), (8, false)] {
            let (first, second) = (packet(1, [0, 0], &udp[..4]), packet(2, [0, 0], &udp[..len]));
            let delta = [&[0x44, second.len() as u8], &second[20..]].concat();
            let restored = restore(&with_delta(&first, &delta, &second), None);
            assert_eq!(
                restored.is_some_and(|restored| restored.is_what_was),
                is_same
            );
        }
    }
}
