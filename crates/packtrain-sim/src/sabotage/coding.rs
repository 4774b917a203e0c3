//! Coded trains that say what they should not: as if who coded them, or who restored them, had made a mistake.
//!
//! Their checksum is made right again where they still restore to something, for a wrong one is found at once.

use crate::checker::inside::{self, blocks, coded};
use crate::frame::Frame;
use crate::random::Random;

/// Most places that are tried in one train.
const TRIES: usize = 30;

/// A DELTA is told apart from another frame than its reference. `false`: there is none, or it makes no difference.
/// `len_max`: the frame becomes no longer.
pub fn name_another_slot(frame: &mut Frame, len_max: usize, random: &mut Random) -> bool {
    const NAMES_SLOT: u8 = 0x80;
    let Some((plain, at, restored)) = without_blocks(frame, len_max) else {
        return false;
    };
    if restored.spots.firsts.is_empty() {
        return false;
    }
    (0..TRIES).any(|_| {
        let spot = at + coded::HEADER_LEN + random.pick(&restored.spots.firsts);
        let slot = random.below(8) as u8;
        let altered = altered(&plain, at, |bytes| match bytes[spot] & NAMES_SLOT {
            0 => {
                bytes[spot] |= NAMES_SLOT;
                bytes.insert(spot + 1, slot);
            }
            _ => bytes[spot + 1] = bytes[spot + 1] & 0x80 | slot,
        });
        take(frame, altered.filter(|altered| altered.len() <= len_max))
    })
}

/// A field of a DELTA that is not what was expected is not told.
pub fn leave_a_field_out(frame: &mut Frame, len_max: usize, random: &mut Random) -> bool {
    let Some((plain, at, restored)) = without_blocks(frame, len_max) else {
        return false;
    };
    if restored.spots.values.is_empty() {
        return false;
    }
    (0..TRIES).any(|_| {
        let value = random.pick(&restored.spots.values);
        let content = at + coded::HEADER_LEN;
        let altered = altered(&plain, at, |bytes| {
            // Seven bits a byte; a mask of the same length is a number all the same.
            bytes[content + value.mask.start + value.bit / 7] &= !(1 << (value.bit % 7));
            bytes.drain(content + value.bytes.start..content + value.bytes.end);
        });
        take(frame, altered)
    })
}

/// Bytes change on the way, and nobody compares the checksum.
pub fn change_unseen(frame: &mut Frame, random: &mut Random) -> bool {
    let Some((at, _, _)) = opened(frame) else {
        return false;
    };
    let content = at + coded::HEADER_LEN;
    (0..TRIES).any(|_| {
        let altered = altered(&frame.bytes, at, |bytes| {
            let hit = random.between(content as u64, bytes.len() as u64 - 1) as usize;
            bytes[hit] ^= 1 << random.below(8);
        });
        take(frame, altered)
    })
}

/// The last of several blocks is not there.
pub fn lose_a_block(frame: &mut Frame) -> bool {
    let Some((at, coding, _)) = opened(frame) else {
        return false;
    };
    if coding == coded::CODED_SUBFRAMES {
        return false;
    }
    let content = at + coded::HEADER_LEN;
    match &blocks::places(&frame.bytes[content..])[..] {
        [_, .., last] => {
            let end = content + last.start;
            let altered = altered(&frame.bytes, at, |bytes| bytes.truncate(end));
            take(frame, altered)
        }
        _ => false,
    }
}

/// The last block ends a byte too early, and does not restore.
pub fn cut_a_block_short(frame: &mut Frame) -> bool {
    let Some((at, coding, _)) = opened(frame) else {
        return false;
    };
    if coding == coded::CODED_SUBFRAMES {
        return false;
    }
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

/// A coded train with its subframes coded and in no blocks, where they are and what they restore to.
fn without_blocks(frame: &Frame, len_max: usize) -> Option<(Vec<u8>, usize, coded::Restored)> {
    let at = inside::content_at(&frame.bytes).filter(|_| inside::is_coded(&frame.bytes))?;
    let plain = coded::without_blocks(&frame.bytes[at..])?;
    let bytes = [&frame.bytes[..at], &plain].concat();
    let restored = inside::restored(&bytes)?;
    (bytes.len() <= len_max).then_some((bytes, at, restored))
}

/// A train altered, if what it restores to is then something, and something else.
fn altered(before: &[u8], coded_at: usize, change: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
    let was = inside::restored(before)?;
    let mut bytes = before.to_vec();
    change(&mut bytes);
    let is_something = coded::seal(&mut bytes[coded_at..], was.dictionary);
    let is_other = is_something && inside::restored(&bytes)?.subframes != was.subframes;
    is_other.then_some(bytes)
}

fn take(frame: &mut Frame, altered: Option<Vec<u8>>) -> bool {
    let is_altered = altered.is_some();
    if let Some(bytes) = altered {
        frame.bytes = bytes;
    }
    is_altered
}
