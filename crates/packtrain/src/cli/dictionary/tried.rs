//! What a dictionary brings for frames that it has not seen: in trains as full as they can be.

use std::path::Path;

use packtrain_proto::coding::coder::{Coder, Finished, Treatment};
use packtrain_proto::coding::dictionary::{Dictionary, Zstd};
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::coded::{Coding, HEAD_LEN};
use packtrain_proto::wire::subframe::InnerHeader;
use serde::Serialize;

use super::samples::{Sample, Samples};

/// For subframes, in a train of 1500 bytes.
const ROOM: usize = 1484;
/// Less than this is not worth a file that both ends must have.
const WORTH: f64 = 0.9;

/// Bytes of the same frames' subframes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tried {
    pub frames: usize,
    pub plain_bytes: usize,
    pub headers_bytes: usize,
    pub lz4_bytes: usize,
    pub dictionary_bytes: usize,
    pub mixing_bytes: usize,
}

impl Tried {
    pub fn of(samples: &Samples, dictionary: &Dictionary) -> Tried {
        let frames = samples.to_try_on();
        let coded = |coding, treatment| bytes_of(frames, dictionary, coding, treatment);
        Tried {
            frames: frames.len(),
            plain_bytes: coded(Coding::Headers, Treatment::Plain),
            headers_bytes: coded(Coding::Headers, Treatment::Headers),
            lz4_bytes: coded(Coding::Lz4, Treatment::Payload),
            dictionary_bytes: coded(Coding::Zstd, Treatment::Payload),
            mixing_bytes: coded(Coding::Mixing, Treatment::Payload),
        }
    }

    pub fn is_worth_it(&self) -> bool {
        (self.dictionary_bytes as f64) < WORTH * self.lz4_bytes as f64
    }

    pub fn advice(&self, file: &Path) -> String {
        if !self.is_worth_it() {
            return "It brings hardly more than compression without one: leave it.".to_owned();
        }
        // Who has one is compressed with it, where without it would be mixed.
        let but_where = match self.mixing_bytes < self.dictionary_bytes {
            true => " (but links of less than 5 Mbit/s carry more without it)",
            false => "",
        };
        format!(
            "Give it to both ends{but_where}: packtrain up … --dictionary {}",
            file.display()
        )
    }
}

fn bytes_of(
    frames: &[Sample],
    dictionary: &Dictionary,
    coding: Coding,
    treatment: Treatment,
) -> usize {
    let mut coder = Coder::default();
    coder.set_dictionary(Zstd::new(dictionary).ok());
    let mut bytes = 0;
    let mut rest = frames.iter().peekable();
    while rest.peek().is_some() {
        coder.begin(coding, ROOM);
        let mut put = 0;
        while let Some(frame) = rest.peek() {
            let header = InnerHeader {
                addresses: None,
                ether_type: frame.ether_type,
                offload: Offload::NONE,
            };
            if coder.put_frame(&header, &frame.payload, treatment) {
                put += 1;
                rest.next();
            } else if !coder.make_room() {
                break;
            }
        }
        if put == 0 {
            // Larger than a train: it goes in pieces, which change nothing here.
            bytes += rest.next().map_or(0, |frame| frame.payload.len());
        }
        bytes += match coder.finish() {
            Finished::Plain(plain) => plain.len(),
            Finished::Coded(_, content) => HEAD_LEN + content.len(),
        };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::made_of;
    use super::super::tests::{json, samples};
    use super::*;

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1u64;
        let next = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        (0..bytes).map(next).collect()
    }

    #[test]
    fn what_is_like_what_it_has_learned_is_worth_it() {
        let samples = samples(600, json);
        let (_, dictionary) = made_of(&samples, 2048).unwrap();
        let tried = Tried::of(&samples, &dictionary);
        assert_eq!(tried.frames, 300);
        assert!(
            tried.plain_bytes > tried.headers_bytes
                && tried.headers_bytes > tried.lz4_bytes
                && tried.lz4_bytes > tried.dictionary_bytes
                && tried.lz4_bytes > tried.mixing_bytes,
            "{tried:?}"
        );
        assert!(tried.is_worth_it());
    }

    #[test]
    fn where_mixing_does_better_without_one_the_advice_says_so() {
        let mut tried = Tried {
            lz4_bytes: 1000,
            dictionary_bytes: 600,
            mixing_bytes: 700,
            ..Tried::default()
        };
        let advice = |tried: Tried| tried.advice(Path::new("a/j.dict"));
        assert_eq!(
            advice(tried),
            "Give it to both ends: packtrain up … --dictionary a/j.dict"
        );
        tried.mixing_bytes = 500;
        assert_eq!(
            advice(tried),
            "Give it to both ends (but links of less than 5 Mbit/s carry more without it): packtrain up … --dictionary a/j.dict"
        );
    }

    #[test]
    fn what_comes_later_and_is_anything_else_is_told_to_be_not_worth_it() {
        let noise = noise(600 * 90);
        let samples = samples(600, |n| match n {
            0..300 => json(n),
            _ => noise[usize::from(n) * 90..][..90].to_vec(),
        });
        let (_, dictionary) = made_of(&samples, 2048).unwrap();
        let tried = Tried::of(&samples, &dictionary);
        assert!(!tried.is_worth_it(), "{tried:?}");
        assert!(tried.advice(Path::new("j.dict")).ends_with("leave it."));
    }

    #[test]
    fn frames_that_no_train_holds_count_as_they_are() {
        let samples = samples(80, |n| match n {
            0..79 => json(n),
            _ => noise(4000),
        });
        let (_, dictionary) = made_of(&samples, 2048).unwrap();
        let tried = Tried::of(&samples, &dictionary);
        assert!(tried.dictionary_bytes > 4000, "{tried:?}");
    }
}
