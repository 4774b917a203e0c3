//! How many frames, or pieces of frames, a train carries: for the accounts of what a link lost.
//!
//! A reading of `docs/wire-format.md` of its own, so that a mistake of the engine's writer is not
//! believed because its reader makes the same.

const HEADER_LEN: usize = 14 + 16;
const OPTIONS_LEN_AT: usize = 14 + 6;

const ADDRESSES: (u8, usize) = (0x80, 12);
const ETHER_TYPE: (u8, usize) = (0x40, 2);
const OFFLOAD: (u8, usize) = (0x20, 8);

/// Subframes of a train; 0 for other messages, and as far as it can be read for broken ones.
pub fn items(frame: &[u8]) -> u64 {
    if frame.len() < HEADER_LEN || frame[14] != 0x11 {
        return 0;
    }
    let options = u16::from_be_bytes([frame[OPTIONS_LEN_AT], frame[OPTIONS_LEN_AT + 1]]);
    let mut at = HEADER_LEN + usize::from(options);
    let mut count = 0;
    while let Some(first) = frame.get(at..at + 4) {
        let (flags, kind) = (first[0] & 0xf0, first[0] & 0x0f);
        let position = match kind {
            1 => 0,
            2 | 3 => 4,
            _ => break,
        };
        let fields: usize = [ADDRESSES, ETHER_TYPE, OFFLOAD]
            .iter()
            .filter(|(flag, _)| flags & flag != 0)
            .map(|(_, len)| len)
            .sum();
        let length = usize::from(u16::from_be_bytes([first[2], first[3]]));
        at += 4 + fields + position + length;
        count += 1;
    }
    count
}
