//! Blocks of mixing: `docs/wire-format.md`, "Mixing", read anew.
//!
//! Here are the segments that a block holds, and what is known of those before; how bits come out of a block,
//! and which ones are likely, is in the files below.

#[cfg(test)]
mod any_segments;
mod arithmetic;
mod bytes;
mod chance;
mod contexts;
mod history;
mod law;
mod repeats;
mod samples;

use arithmetic::{Bits, Code};
use bytes::Bytes;
use history::History;
use law::Law;
use samples::Samples;

/// More is not restored in one train.
pub const RESTORED_LEN_MAX: usize = 16_384;

/// What stands in a segment, each part behind the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Told = 0,
    Headers = 1,
    Body = 2,
}

const TOLD_LEN: usize = 4;

/// What was learned from a train's blocks so far.
#[derive(Debug)]
pub struct Mixing {
    history: History,
    bytes: Bytes,
    samples: Samples,
    mu_law: Law,
    a_law: Law,
    /// By their kind.
    pub segments: [usize; 3],
}

impl Mixing {
    /// Of a train that begins: nothing.
    pub fn new() -> Mixing {
        Mixing {
            history: History::new(),
            bytes: Bytes::new(),
            samples: Samples::new(),
            mu_law: Law::mu(),
            a_law: Law::a(),
            segments: [0; 3],
        }
    }

    /// Restores the next block behind what is there, to exactly `end` bytes.
    pub fn block(&mut self, block: &[u8], out: &mut Vec<u8>, end: usize) -> Option<()> {
        let mut code = Code::new(block);
        self.segments_of(&mut code, out, end)?;
        code.has_ended().then_some(())
    }

    fn segments_of(&mut self, code: &mut impl Bits, out: &mut Vec<u8>, end: usize) -> Option<()> {
        while out.len() < end {
            self.segment(code, out, end)?;
        }
        Some(())
    }

    fn segment(&mut self, code: &mut impl Bits, out: &mut Vec<u8>, end: usize) -> Option<()> {
        self.history.begin_segment();
        self.read_bytes(Part::Told, TOLD_LEN, code)?;
        let &[kind, headers, high, low] = self.history.part(Part::Told) else {
            return None;
        };
        let headers = usize::from(headers);
        let body = usize::from(u16::from_be_bytes([high, low]));
        if headers + body == 0 || headers + body > end - out.len() {
            return None;
        }
        self.read_bytes(Part::Headers, headers, code)?;
        match kind {
            0 => self.read_bytes(Part::Body, body, code)?,
            1 | 2 => self.read_samples(kind, body, code)?,
            _ => return None,
        }
        self.segments[usize::from(kind)] += 1;
        out.extend_from_slice(self.history.part(Part::Headers));
        out.extend_from_slice(self.history.part(Part::Body));
        Some(())
    }

    fn read_bytes(&mut self, part: Part, len: usize, code: &mut impl Bits) -> Option<()> {
        self.history.begin(part);
        for _ in 0..len {
            let byte = self.bytes.read(&self.history, code);
            self.history.push(byte)?;
        }
        Some(())
    }

    fn read_samples(&mut self, kind: u8, len: usize, code: &mut impl Bits) -> Option<()> {
        self.history.begin(Part::Body);
        self.samples.begin_body();
        let law = if kind == 1 { &self.mu_law } else { &self.a_law };
        for _ in 0..len {
            self.history.push(self.samples.read(law, code))?;
        }
        Some(())
    }
}
