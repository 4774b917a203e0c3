//! All that was coded in a train, where its segments' parts stand in it, and what it repeats.

use core::ops::Range;

use super::Part;
use super::repeats::Repeats;

const LEN_MAX: usize = 20_480;

#[derive(Debug)]
pub struct History {
    bytes: Vec<u8>,
    pub repeats: Repeats,
    /// Of the segment before, and of this one as far as it is there.
    before: [Range<usize>; 3],
    now: [Range<usize>; 3],
    pub part: Part,
    pub len_max: usize,
}

/// What stands at the same column of the same part of the segment before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Above {
    pub byte: u8,
    /// The byte before it in the history; 0 if nothing is.
    pub left: u8,
}

impl History {
    pub fn new() -> History {
        History {
            bytes: Vec::new(),
            repeats: Repeats::new(),
            before: [0..0, 0..0, 0..0],
            now: [0..0, 0..0, 0..0],
            part: Part::Told,
            len_max: LEN_MAX,
        }
    }

    pub fn begin_segment(&mut self) {
        let end = self.bytes.len();
        let nothing = || end..end;
        let now = [nothing(), nothing(), nothing()];
        self.before = core::mem::replace(&mut self.now, now);
    }

    pub fn begin(&mut self, part: Part) {
        let end = self.bytes.len();
        self.now[part as usize] = end..end;
        self.part = part;
    }

    /// `None`: it is too long.
    pub fn push(&mut self, byte: u8) -> Option<()> {
        self.bytes.push(byte);
        self.now[self.part as usize].end = self.bytes.len();
        self.repeats.on_byte(&self.bytes);
        (self.bytes.len() <= self.len_max).then_some(())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Of this segment.
    pub fn part(&self, part: Part) -> &[u8] {
        &self.bytes[self.now[part as usize].clone()]
    }

    pub fn column(&self) -> usize {
        self.now[self.part as usize].len()
    }

    pub fn above(&self) -> Option<Above> {
        let at = self.before[self.part as usize].clone().nth(self.column())?;
        Some(Above {
            byte: self.bytes[at],
            left: at.checked_sub(1).map_or(0, |left| self.bytes[left]),
        })
    }

    /// The last byte is number 1, and what would be before the first is 0.
    pub fn last(&self, number: usize) -> u32 {
        let at = self.bytes.len().checked_sub(number);
        at.map_or(0, |at| u32::from(self.bytes[at]))
    }
}
