//! The bytes of a train so far, and where the last of them stood before: what followed there may follow here.

/// What a train restores to, and what is told of its segments, is no more: it takes some milliseconds.
pub const HISTORY_MAX: usize = 20 * 1024;
/// So many bytes must be the same.
const MATCH_MIN: usize = 4;
/// More of them say no more.
pub const MATCH_MAX: usize = 31;
const BUCKETS: usize = 4096;

#[derive(Debug)]
pub struct History {
    bytes: Vec<u8>,
    /// Where what followed bytes of this hash stood last; 0: nowhere.
    buckets: Box<[u32; BUCKETS]>,
    /// Where what may follow stands, and how many bytes before it are the same.
    match_at: usize,
    match_len: usize,
}

impl Default for History {
    fn default() -> History {
        History {
            bytes: Vec::with_capacity(HISTORY_MAX),
            buckets: Box::new([0; BUCKETS]),
            match_at: 0,
            match_len: 0,
        }
    }
}

impl History {
    pub fn forget(&mut self) {
        self.bytes.clear();
        self.buckets.fill(0);
        self.match_len = 0;
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn at(&self, at: usize) -> u8 {
        self.bytes[at]
    }

    /// So many bytes back; 0 before the first.
    #[inline]
    pub fn back(&self, by: usize) -> u32 {
        let at = self.bytes.len().checked_sub(by);
        at.map_or(0, |at| u32::from(self.bytes[at]))
    }

    pub fn push(&mut self, byte: u8) {
        let is_followed = self.match_len > 0 && self.bytes[self.match_at] == byte;
        self.bytes.push(byte);
        match is_followed {
            true => {
                self.match_len = (self.match_len + 1).min(MATCH_MAX);
                self.match_at += 1;
            }
            false => self.match_len = 0,
        }
        let end = self.bytes.len();
        let Some(last) = self.bytes.last_chunk::<MATCH_MIN>() else {
            return;
        };
        let word = u32::from_be_bytes(*last);
        let bucket = &mut self.buckets[(word.wrapping_mul(0x9e37_79b1) >> 20) as usize];
        let before = *bucket as usize;
        *bucket = end as u32;
        if self.match_len > 0 || before == 0 {
            return;
        }
        let same = (1..=MATCH_MAX.min(before))
            .take_while(|&by| self.bytes[before - by] == self.bytes[end - by])
            .count();
        if same >= MATCH_MIN {
            (self.match_at, self.match_len) = (before, same);
        }
    }

    /// What may follow, and how many bytes speak for it.
    #[inline]
    pub fn expected(&self) -> Option<(u8, usize)> {
        (self.match_len > 0).then(|| (self.bytes[self.match_at], self.match_len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_is_expected_again() {
        let mut history = History::default();
        for &byte in b"abcdefgh-abcd" {
            history.push(byte);
        }
        assert_eq!(history.expected(), Some((b'e', 4)));
        history.push(b'e');
        assert_eq!(history.expected(), Some((b'f', 5)));
        history.push(b'x');
        assert_eq!(history.expected(), None);
        assert_eq!(
            (history.back(1), history.back(14)),
            (u32::from(b'x'), u32::from(b'b'))
        );
        assert_eq!(history.back(100), 0);
        history.forget();
        for &byte in b"abcd" {
            history.push(byte);
        }
        assert_eq!(history.expected(), None);
    }
}
