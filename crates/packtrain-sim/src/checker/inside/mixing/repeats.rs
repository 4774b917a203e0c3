//! "A match": a place before which the history is as it is before its end, so that the same may follow.

const BUCKETS: usize = 4096;
const LEN_MIN: usize = 4;
const LEN_MAX: usize = 31;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Of the byte that is expected.
    at: usize,
    pub len: usize,
}

#[derive(Debug)]
pub struct Repeats {
    /// How long the history was behind four bytes that fell here; 0: there were none.
    buckets: Vec<usize>,
    pub current: Option<Match>,
}

impl Repeats {
    pub fn new() -> Repeats {
        Repeats {
            buckets: vec![0; BUCKETS],
            current: None,
        }
    }

    /// The last of the history has come just now.
    pub fn on_byte(&mut self, history: &[u8]) {
        let (&byte, before) = history.split_last().expect("there is one");
        self.current = self.current.and_then(|Match { at, len }| {
            let is_followed = before[at] == byte;
            is_followed.then_some(Match {
                at: at + 1,
                len: (len + 1).min(LEN_MAX),
            })
        });
        let Some(&last_four) = history.last_chunk() else {
            return;
        };
        let v = u32::from_be_bytes(last_four);
        let bucket = &mut self.buckets[(v.wrapping_mul(0x9e37_79b1) >> 20) as usize];
        let at = core::mem::replace(bucket, history.len());
        if self.current.is_none() && at != 0 {
            let pairs = history[..at].iter().rev().zip(history.iter().rev());
            let same = pairs.take(LEN_MAX).take_while(|(a, b)| a == b);
            let len = same.count();
            self.current = (len >= LEN_MIN).then_some(Match { at, len });
        }
    }
}

impl Match {
    pub fn expected(self, history: &[u8]) -> u8 {
        history[self.at]
    }
}
