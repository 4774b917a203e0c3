//! Context mixing: a train as it is expected byte by byte, each by what came before it in the train, and coded as short as
//! it was likely. It takes a hundred times longer than LZ4 and carries half as much again; slow links have the time.
//!
//! The format is in docs/wire-format.md ("Mixing"). Encoder and decoder are the same code, so that both learn the same.

mod arithmetic;
mod bytes;
mod chance;
mod contexts;
mod history;
mod logistic;
mod mixer;
mod samples;

pub use arithmetic::Mark;
use arithmetic::{Bits, Decoder, Encoder};
use bytes::{Bytes, Part};
use logistic::Stretch;
use samples::{Law, Samples};

use crate::wire::layout::{Layout, RTP_LEN};

/// A train of this coding restores to no more.
pub const PLAIN_MAX: usize = 16 * 1024;
/// A segment's headers are so long at most; what is longer is body.
const HEADERS_MAX: usize = 255;
/// Of what is told of a segment: its kind, and both lengths.
const TOLD_LEN: usize = 4;

/// What a segment's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bytes,
    Samples(Law),
}

impl Kind {
    fn to_byte(self) -> u8 {
        match self {
            Kind::Bytes => 0,
            Kind::Samples(Law::Mu) => 1,
            Kind::Samples(Law::A) => 2,
        }
    }

    fn of_byte(byte: u8) -> Option<Kind> {
        match byte {
            0 => Some(Kind::Bytes),
            1 => Some(Kind::Samples(Law::Mu)),
            2 => Some(Kind::Samples(Law::A)),
            _ => None,
        }
    }
}

/// How a subframe is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    kind: Kind,
    body_len: usize,
}

impl Segment {
    /// Of a frame with this payload behind its EtherType.
    pub fn of(layout: &Layout, payload: &[u8]) -> Segment {
        let with_rtp = layout
            .may_be_rtp(payload)
            .then(|| layout.with_rtp(payload.len()))
            .flatten();
        let sound = with_rtp.and_then(|rtp| {
            let body = &payload[usize::from(rtp.len)..];
            let head = &payload[usize::from(rtp.len - RTP_LEN)..];
            let kind = Kind::Samples(law_of(head, body)?);
            let body_len = body.len();
            Some(Segment { kind, body_len })
        });
        sound.unwrap_or(Segment {
            kind: Kind::Bytes,
            body_len: payload.len() - usize::from(layout.len),
        })
    }

    /// Bytes of which nothing is known.
    pub const fn of_bytes() -> Segment {
        Segment {
            kind: Kind::Bytes,
            body_len: 0,
        }
    }

    pub fn is_samples(&self) -> bool {
        self.kind != Kind::Bytes
    }
}

/// Of what has an RTP header, and is as long as a telephone sends it: so many times 5 ms. Other things begin with such a
/// byte, too, but those have zeros, which would be the loudest there is, or loud.
fn law_of(rtp: &[u8], body: &[u8]) -> Option<Law> {
    const STEP: usize = 40;
    const LEN_MAX: usize = 480;
    /// Version 2, nothing added.
    const FIRST: u8 = 0x80;
    let law = match rtp[1] & 0x7f {
        // RFC 3551, table 4: PCMU and PCMA.
        0 => Law::Mu,
        8 => Law::A,
        _ => return None,
    };
    let is_as_long = body.len().is_multiple_of(STEP) && (STEP..=LEN_MAX).contains(&body.len());
    let zeros = body.iter().filter(|&&byte| byte == 0).count();
    (rtp[0] == FIRST && is_as_long && zeros < body.len() / 8).then_some(law)
}

/// What both ends have learned from a train.
#[derive(Debug)]
struct Learned {
    stretch: Stretch,
    bytes: Bytes,
    samples: Samples,
    /// There are samples among it.
    has_samples: bool,
}

impl Default for Learned {
    fn default() -> Learned {
        Learned {
            stretch: Stretch::new(),
            bytes: Bytes::default(),
            samples: Samples::default(),
            has_samples: false,
        }
    }
}

impl Learned {
    fn forget(&mut self) {
        self.bytes.forget();
        if core::mem::take(&mut self.has_samples) {
            self.samples.forget();
        }
    }

    /// Codes what stands in `bytes`, or puts there what was coded.
    fn code<B: Bits>(&mut self, bits: &mut B, part: Part, kind: Kind, bytes: &mut [u8]) {
        self.bytes.begin(part);
        match kind {
            Kind::Bytes => {
                for byte in bytes {
                    *byte = self.bytes.code(bits, *byte, &self.stretch);
                }
            }
            Kind::Samples(law) => {
                self.has_samples = true;
                self.samples.begin(law);
                for byte in bytes {
                    *byte = self.samples.code(bits, *byte, &self.stretch);
                    self.bytes.push(*byte);
                }
            }
        }
        self.bytes.end();
    }

    /// What is told of a segment, and it.
    fn code_segment<B: Bits>(&mut self, bits: &mut B, kind: Kind, parts: [&mut [u8]; 2]) {
        let [headers, body] = parts;
        self.code(bits, Part::Headers, Kind::Bytes, headers);
        self.code(bits, Part::Body, kind, body);
    }
}

/// Writes blocks.
#[derive(Debug, Default)]
pub struct Writer {
    learned: Learned,
    encoder: Encoder,
    /// A segment: its bytes are given back as they are.
    scratch: Vec<u8>,
}

impl Writer {
    /// A new train.
    pub fn begin_train(&mut self) {
        self.learned.forget();
        self.encoder.begin();
    }

    /// A new block of the same train.
    pub fn begin_block(&mut self) {
        self.encoder.begin();
    }

    /// The block's length, if it ends here.
    pub fn block_len(&self) -> usize {
        self.encoder.len()
    }

    pub fn mark(&self) -> Mark {
        self.encoder.mark()
    }

    /// The block ends there. What came behind has been learned and is not in it: no more may be put into this train.
    pub fn end_at(&mut self, mark: Mark) {
        self.encoder.back_to(mark);
    }

    /// Whether the train may have a subframe of this length.
    pub fn takes(&self, len: usize) -> bool {
        self.learned.bytes.takes(TOLD_LEN + len)
    }

    /// A subframe, which it takes.
    pub fn put(&mut self, segment: Segment, subframe: &[u8]) {
        let headers_len = (subframe.len() - segment.body_len.min(subframe.len())).min(HEADERS_MAX);
        let body_len = subframe.len() - headers_len;
        let kind = match body_len == segment.body_len {
            true => segment.kind,
            false => Kind::Bytes,
        };
        let mut told = [
            kind.to_byte(),
            headers_len as u8,
            (body_len >> 8) as u8,
            body_len as u8,
        ];
        let Writer {
            learned,
            encoder,
            scratch,
        } = self;
        learned.code(encoder, Part::Told, Kind::Bytes, &mut told);
        scratch.clear();
        scratch.extend_from_slice(subframe);
        let (headers, body) = scratch.split_at_mut(headers_len);
        learned.code_segment(encoder, kind, [headers, body]);
    }

    pub fn finish_block(&mut self) -> &[u8] {
        self.encoder.finish()
    }

    /// Mixes a train's worth of numbers that are like each other, for who wants to know how long that takes here. Gives how many
    /// bytes they were.
    pub fn try_out(&mut self) -> usize {
        const ROWS: u32 = 24;
        self.begin_train();
        let mut len = 0;
        for row in 0..ROWS {
            let numbers = (0..16u32).flat_map(|n| (row * n + (row ^ n) * 0x01_0101).to_be_bytes());
            let numbers: Vec<u8> = numbers.collect();
            self.put(Segment::of_bytes(), &numbers);
            len += TOLD_LEN + numbers.len();
        }
        self.finish_block();
        len
    }
}

/// Reads them.
#[derive(Debug, Default)]
pub struct Reader {
    learned: Learned,
}

impl Reader {
    pub fn begin_train(&mut self) {
        self.learned.forget();
    }

    /// What a block restores to, which fills `out`. `None`: it does not.
    pub fn restore(&mut self, block: &[u8], mut out: &mut [u8]) -> Option<()> {
        let mut decoder = Decoder::new(block);
        while !out.is_empty() {
            let mut told = [0; TOLD_LEN];
            self.learned
                .code(&mut decoder, Part::Told, Kind::Bytes, &mut told);
            let kind = Kind::of_byte(told[0])?;
            let headers_len = usize::from(told[1]);
            let body_len = usize::from(u16::from_be_bytes([told[2], told[3]]));
            let (segment, rest) = out.split_at_mut_checked(headers_len + body_len)?;
            // Work for nothing is not done.
            if segment.is_empty()
                || !self.learned.bytes.takes(segment.len())
                || decoder.is_beyond_end()
            {
                return None;
            }
            let (headers, body) = segment.split_at_mut(headers_len);
            self.learned
                .code_segment(&mut decoder, kind, [headers, body]);
            out = rest;
        }
        decoder.is_at_end().then_some(())
    }
}

#[cfg(test)]
mod tests;
