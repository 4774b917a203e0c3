//! Mistakes that only several links allow.

use std::collections::VecDeque;
use std::ops::Range;

use crate::checker::inside;
use crate::frame::Frame;

const FLAGS_AT: usize = 15;
const LANE_AT: usize = 16;
const LINK_AT: usize = 17;
const TRAIN_SEQUENCE_AT: usize = 22;
const OPTIONS_AT: usize = 30;
const MARKER: u8 = 0x02;
const REPLAY: u8 = 0x04;
const LOSSLESS: u8 = 0x20;
const ACK: u8 = 0x01;
const NEWEST: u8 = 0x02;
const BEHIND: u8 = 0x05;
const KEPT_FROM: u8 = 0x06;
/// No receiver knows it, and each skips it.
const UNKNOWN: u8 = 0x33;

/// Incoming messages that a train is held for, until one of another link comes.
const HELD_FOR: u32 = 12;
/// Deliveries after which a copy comes.
const COPY_AFTER: u32 = 20;

pub fn is_train(frame: &Frame) -> bool {
    frame.bytes.len() >= OPTIONS_AT && frame.bytes[14] == 0x11
}

pub fn is_replay(frame: &Frame) -> bool {
    is_train(frame) && frame.bytes[FLAGS_AT] & (REPLAY | MARKER) == REPLAY
}

pub fn link(frame: &Frame) -> u8 {
    frame.bytes[LINK_AT]
}

/// Says that nothing is under way on other links, and in a marker that trains were sent that were not.
/// `false`: there is nothing of that in it.
pub fn lie(frame: &mut Frame, by: u32) -> bool {
    if !is_train(frame) {
        return false;
    }
    let mut lied = false;
    if frame.bytes[FLAGS_AT] & MARKER != 0 {
        let sequence = &mut frame.bytes[TRAIN_SEQUENCE_AT..TRAIN_SEQUENCE_AT + 4];
        let named = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]);
        sequence.copy_from_slice(&named.wrapping_add(by).to_be_bytes());
        lied = true;
    }
    for value in options_of(frame, NEWEST) {
        // Link (1), how far behind this train the newest there is (3).
        for entry in frame.bytes[value].chunks_exact_mut(4) {
            entry[1..].fill(0xff);
            lied = true;
        }
    }
    lied
}

/// Does not say behind which trains of other lanes it comes. `false`: it comes behind none.
pub fn forget_order(frame: &mut Frame) -> bool {
    if !is_train(frame) {
        return false;
    }
    let behind = options_of(frame, BEHIND);
    for value in &behind {
        frame.bytes[value.start - 2] = UNKNOWN;
    }
    !behind.is_empty()
}

/// Does not say that nothing of its lane may be lost. `false`: it may.
pub fn may_be_lost(frame: &mut Frame) -> bool {
    if !is_train(frame) || frame.bytes[FLAGS_AT] & LOSSLESS == 0 {
        return false;
    }
    frame.bytes[FLAGS_AT] &= !LOSSLESS;
    true
}

/// Says that there is no copy of anything before this train. `false`: there is none.
pub fn deny_copies(frame: &mut Frame) -> bool {
    if !is_train(frame) {
        return false;
    }
    let mut own = [0; 4];
    own.copy_from_slice(&frame.bytes[TRAIN_SEQUENCE_AT..TRAIN_SEQUENCE_AT + 4]);
    let mut lied = false;
    for value in options_of(frame, KEPT_FROM) {
        lied |= frame.bytes[value.clone()] != own;
        frame.bytes[value].copy_from_slice(&own);
    }
    lied
}

/// Acknowledges all before the newest that has come. `false`: it says so anyway, or nothing.
pub fn acknowledge_all(frame: &mut Frame) -> bool {
    if !is_train(frame) {
        return false;
    }
    let mut lied = false;
    for value in options_of(frame, ACK) {
        let bitmap = &mut frame.bytes[value.end - 8..value.end];
        lied |= bitmap != [0xff; 8];
        bitmap.fill(0xff);
    }
    lied
}

/// Where the values of a train's options of this kind stand.
fn options_of(frame: &Frame, wanted: u8) -> Vec<Range<usize>> {
    let options = usize::from(u16::from_be_bytes([frame.bytes[20], frame.bytes[21]]));
    let end = (OPTIONS_AT + options).min(frame.bytes.len());
    let mut found = Vec::new();
    let mut at = OPTIONS_AT;
    while at + 2 <= end {
        let (kind, len) = (frame.bytes[at], usize::from(frame.bytes[at + 1]));
        let value = at + 2..(at + 2 + len).min(end);
        at = value.end;
        if kind == wanted {
            found.push(value);
        }
    }
    found
}

/// Lets a train pass one that another link brought before it.
#[derive(Debug, Default)]
pub struct EarlyRelease {
    held: Option<(Frame, u32)>,
}

impl EarlyRelease {
    /// What the engine is given; `true`: two trains have changed places.
    pub fn incoming(&mut self, mut frame: Frame, strikes: bool) -> (Vec<Frame>, bool) {
        let Some((mut held, waited)) = self.held.take() else {
            if strikes && carries_whole_frames(&frame) {
                self.held = Some((frame, 0));
                return (Vec::new(), false);
            }
            return (vec![frame], false);
        };
        let is_of_lane = frame.bytes.get(LANE_AT) == held.bytes.get(LANE_AT);
        if carries_whole_frames(&frame) && is_of_lane && link(&frame) != link(&held) {
            let place = TRAIN_SEQUENCE_AT..TRAIN_SEQUENCE_AT + 4;
            held.bytes[place.clone()].swap_with_slice(&mut frame.bytes[place]);
            return (vec![frame, held], true);
        }
        if waited == HELD_FOR {
            return (vec![held, frame], false);
        }
        self.held = Some((held, waited + 1));
        (vec![frame], false)
    }
}

/// Only such trains can change places without tearing a frame.
fn carries_whole_frames(frame: &Frame) -> bool {
    is_train(frame)
        && frame.bytes[FLAGS_AT] & (MARKER | REPLAY) == 0
        && inside::items(&frame.bytes) > 0
        && inside::items(&frame.bytes) == inside::whole_frames(&frame.bytes).len() as u64
}

/// Gives what a replayed train brought to the host a second time, later.
#[derive(Debug, Default)]
pub struct ReplayTwice {
    /// Payloads that trains that were sent again brought, and nobody has been given.
    brought: VecDeque<Vec<u8>>,
    copy: Option<(Frame, u32)>,
}

impl ReplayTwice {
    pub fn incoming(&mut self, frame: &Frame) {
        if is_replay(frame) {
            self.brought.extend(inside::whole_frames(&frame.bytes));
        }
    }

    /// The delivery, and perhaps an older one again.
    pub fn delivery(&mut self, frame: Frame) -> Vec<Frame> {
        match self.copy.take() {
            None => {
                let came = |payload: &Vec<u8>| frame.bytes[14..] == **payload;
                if let Some(at) = self.brought.iter().position(came) {
                    self.brought.drain(..=at);
                    self.copy = Some((frame.clone(), 0));
                }
                vec![frame]
            }
            Some((copy, COPY_AFTER)) => vec![frame, copy],
            Some((copy, waited)) => {
                self.copy = Some((copy, waited + 1));
                vec![frame]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::offload::Offload;

    fn train(link: u8, sequence: u32, flags: u8, options: &[u8], payload: &[u8]) -> Frame {
        let mut bytes = vec![0; 14];
        bytes.extend([0x11, flags, 0, link, 0, 7, 0, options.len() as u8]);
        bytes.extend(sequence.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(options);
        if !payload.is_empty() {
            bytes.extend([1, 0, payload.len() as u8]);
            bytes.extend(payload);
        }
        Frame::new(bytes, Offload::NONE)
    }

    #[test]
    fn a_lie_is_in_a_marker_and_in_what_a_train_says_of_other_links() {
        let newest = [2, 4, 1, 0, 0, 9];
        let mut marker = train(0, 5, MARKER, &[], &[]);
        assert!(lie(&mut marker, 100));
        assert_eq!(marker, train(0, 105, MARKER, &[], &[]));
        let mut told = train(0, 5, 0, &newest, &[1, 2]);
        assert!(lie(&mut told, 100));
        assert_eq!(told, train(0, 5, 0, &[2, 4, 1, 0xff, 0xff, 0xff], &[1, 2]));
        assert!(!lie(&mut train(0, 5, 0, &[], &[1]), 100));
    }

    #[test]
    fn copies_are_denied_of_what_came_before() {
        let kept_from = |n: u8| [6, 4, 0, 0, 0, n];
        let mut frame = train(0, 9, LOSSLESS, &kept_from(5), &[1]);
        assert!(deny_copies(&mut frame));
        assert_eq!(frame, train(0, 9, LOSSLESS, &kept_from(9), &[1]));
        assert!(!deny_copies(&mut frame));
        assert!(may_be_lost(&mut frame));
        assert_eq!(frame, train(0, 9, 0, &kept_from(9), &[1]));
        assert!(!may_be_lost(&mut frame));
    }

    #[test]
    fn trains_of_two_links_change_places_and_those_of_one_do_not() {
        let mut early = EarlyRelease::default();
        assert_eq!(early.incoming(train(0, 5, 0, &[], b"five"), true).0, []);
        let same_link = train(0, 6, 0, &[], b"six");
        assert_eq!(
            early.incoming(same_link.clone(), true),
            (vec![same_link], false)
        );
        let (given, struck) = early.incoming(train(1, 7, 0, &[], b"seven"), false);
        assert!(struck);
        assert_eq!(
            given,
            [train(1, 5, 0, &[], b"seven"), train(0, 7, 0, &[], b"five")]
        );
    }

    #[test]
    fn what_a_replay_brought_comes_again_after_twenty_others() {
        let mut twice = ReplayTwice::default();
        twice.incoming(&train(0, 5, REPLAY, &[], b"again"));
        let of = |payload: &[u8]| {
            let mut bytes = vec![0; 14];
            bytes.extend(payload);
            Frame::new(bytes, Offload::NONE)
        };
        assert_eq!(twice.delivery(of(b"other")).len(), 1);
        assert_eq!(twice.delivery(of(b"again")).len(), 1);
        let counts: Vec<usize> = (0..30).map(|_| twice.delivery(of(b"x")).len()).collect();
        assert_eq!(counts.iter().sum::<usize>(), 31);
        assert_eq!(counts[20], 2);
    }
}
