//! Coded trains that say what they should not: as if who coded them, or who restored them, had made a mistake.
//!
//! Their checksum is made right again where they still restore to something, for a wrong one is found at once.

use crate::checker::inside::{self, blocks, coded};
use crate::frame::Frame;
use crate::random::Random;

/// Most places that are tried in one train.
const TRIES: usize = 30;

/// A DELTA is told apart from another frame than its reference. `false`: there is none, or it makes no difference.
pub fn name_another_slot(frame: &mut Frame, random: &mut Random) -> bool {
    let Some((at, coding, restored)) = opened(frame) else {
        return false;
    };
    let content = at + coded::HEADER_LEN;
    if coding != coded::CODED_SUBFRAMES || restored.spots.slots.is_empty() {
        return false;
    }
    (0..TRIES).any(|_| {
        let spot = content + random.pick(&restored.spots.slots);
        alter(frame, at, |bytes| {
            let others = bytes[spot] & 0x80;
            bytes[spot] = others | random.below(8) as u8;
        })
    })
}

/// A field of a DELTA that is not what was expected is not told.
pub fn leave_a_field_out(frame: &mut Frame, random: &mut Random) -> bool {
    let Some((at, coding, restored)) = opened(frame) else {
        return false;
    };
    let content = at + coded::HEADER_LEN;
    if coding != coded::CODED_SUBFRAMES || restored.spots.values.is_empty() {
        return false;
    }
    (0..TRIES).any(|_| {
        let value = random.pick(&restored.spots.values);
        alter(frame, at, |bytes| {
            // Seven bits a byte; a mask of the same length is a number all the same.
            bytes[content + value.mask.start + value.bit / 7] &= !(1 << (value.bit % 7));
            bytes.drain(content + value.bytes.start..content + value.bytes.end);
        })
    })
}

/// Bytes change on the way, and nobody compares the checksum.
pub fn change_unseen(frame: &mut Frame, random: &mut Random) -> bool {
    let Some((at, _, _)) = opened(frame) else {
        return false;
    };
    let content = at + coded::HEADER_LEN;
    (0..TRIES).any(|_| {
        alter(frame, at, |bytes| {
            let hit = random.between(content as u64, bytes.len() as u64 - 1) as usize;
            bytes[hit] ^= 1 << random.below(8);
        })
    })
}

/// The last of several blocks is not there.
pub fn lose_a_block(frame: &mut Frame) -> bool {
    let Some((at, coded::BLOCKS, _)) = opened(frame) else {
        return false;
    };
    let content = at + coded::HEADER_LEN;
    match &blocks::places(&frame.bytes[content..])[..] {
        [_, .., last] => alter(frame, at, |bytes| bytes.truncate(content + last.start)),
        _ => false,
    }
}

/// The last block ends a byte too early, and does not restore.
pub fn cut_a_block_short(frame: &mut Frame) -> bool {
    let Some((at, coded::BLOCKS, _)) = opened(frame) else {
        return false;
    };
    let content = at + coded::HEADER_LEN;
    let Some(last) = blocks::places(&frame.bytes[content..]).pop() else {
        return false;
    };
    let (start, end) = (content + last.start, content + last.end);
    // Its length, without the bit that says whether it is as it was.
    let len = u16::from_be_bytes([frame.bytes[start], frame.bytes[start + 1]]) - 1;
    if len & 0x7fff == 0 {
        return false;
    }
    frame.bytes[start..start + 2].copy_from_slice(&len.to_be_bytes());
    frame.bytes.truncate(end - 1);
    true
}

/// Of a train that is coded: where, how, and what it restores to.
fn opened(frame: &Frame) -> Option<(usize, u8, coded::Restored)> {
    let restored = inside::restored(&frame.bytes)?;
    let at = inside::content_at(&frame.bytes)?;
    Some((at, frame.bytes[at], restored))
}

/// Alters a train, if what it restores to is then something, and something else.
fn alter(frame: &mut Frame, coded_at: usize, change: impl FnOnce(&mut Vec<u8>)) -> bool {
    let before = inside::restored(&frame.bytes).map(|restored| restored.subframes);
    let mut bytes = frame.bytes.clone();
    change(&mut bytes);
    if !coded::seal(&mut bytes[coded_at..]) {
        return false;
    }
    let after = inside::restored(&bytes).map(|restored| restored.subframes);
    let is_other = after.is_some() && after != before;
    if is_other {
        frame.bytes = bytes;
    }
    is_other
}
