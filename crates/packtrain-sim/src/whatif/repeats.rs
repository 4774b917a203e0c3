//! Frames that are the same as one shortly before: changed, for they carry no number of ours.
//!
//! Frames travel as they were captured, for what is in them decides how they are treated. So they are known by a
//! fingerprint. One that is the same as another that may be under way is changed in its last four bytes: real captures
//! hardly have such, and generated ones have little else.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use packtrain_proto::wire::ethernet::HEADER_LEN;

use super::fingerprints::{AsItIs, fingerprint};

/// As many frames are remembered at least, and twice as many at most: more than are under way together. Of those of a
/// generated capture all but the first are changed, each to something new: however many are under way, they differ.
const REMEMBERED_MIN: usize = 1 << 15;
const TAG_LEN: usize = 4;

type Fingerprints = HashSet<u64, BuildHasherDefault<AsItIs>>;

#[derive(Debug, Default)]
pub(super) struct Repeats {
    newer: Fingerprints,
    older: Fingerprints,
    next_tag: u32,
}

impl Repeats {
    /// The fingerprint of a frame, and whether the frame was changed for it.
    pub fn tell_apart(&mut self, frame: &mut [u8]) -> (u64, bool) {
        let print_of = |frame: &[u8]| {
            let ether_type = u16::from_be_bytes([frame[12], frame[13]]);
            fingerprint(ether_type, &frame[HEADER_LEN..])
        };
        let mut print = print_of(frame);
        let mut is_changed = false;
        while self.older.contains(&print) || !self.newer.insert(print) {
            let at = frame.len() - TAG_LEN;
            self.next_tag = self.next_tag.wrapping_add(1);
            // Not small numbers one after the other: those it may have held before.
            let tag = self.next_tag.wrapping_mul(0x9e37_79b1);
            frame[at..].copy_from_slice(&tag.to_be_bytes());
            print = print_of(frame);
            is_changed = true;
        }
        if self.newer.len() >= REMEMBERED_MIN {
            std::mem::swap(&mut self.newer, &mut self.older);
            self.newer.clear();
        }
        (print, is_changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_frame_again_and_again_is_a_new_one_each_time() {
        let mut repeats = Repeats::default();
        let frame = [7; 64];
        let mut all = HashSet::new();
        for number in 0..3 * REMEMBERED_MIN {
            let mut one = frame;
            let (print, is_changed) = repeats.tell_apart(&mut one);
            assert_eq!(is_changed, number > 0 && one != frame, "{number}");
            assert_eq!(one[..60], frame[..60]);
            // But for the first one, which is forgotten in the end.
            assert!(all.insert(print) || one == frame, "{number}");
        }
    }

    #[test]
    fn frames_that_differ_stay_as_they_are() {
        let mut repeats = Repeats::default();
        for number in 0..2 * REMEMBERED_MIN as u32 {
            let mut frame = [0; 60];
            frame[20..24].copy_from_slice(&number.to_be_bytes());
            let before = frame;
            let (_, is_changed) = repeats.tell_apart(&mut frame);
            assert!(!is_changed && frame == before, "{number}");
        }
    }
}
