//! What a dictionary brings for frames that it has not seen: in trains as full as they can be.

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
        }
    }

    pub fn advice(&self) -> String {
        let (with, without) = (self.dictionary_bytes as f64, self.lz4_bytes as f64);
        match with < WORTH * without {
            true => "Give it to both ends: packtrain up … --dictionary FILE".to_owned(),
            false => "It brings hardly more than compression without one: leave it.".to_owned(),
        }
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
