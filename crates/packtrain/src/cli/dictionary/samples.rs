//! What a dictionary is made of: of captured frames, what is left when their headers are told apart.

use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, ether_type};
use packtrain_proto::wire::layout::Layout;

/// More than this a dictionary does not become better by, and the time to make it grows.
const BYTES_MAX: usize = 16 << 20;

/// A captured frame: its EtherType, and what follows that.
#[derive(Clone, Debug)]
pub struct Sample {
    pub ether_type: u16,
    pub payload: Vec<u8>,
    /// Of the headers.
    headers: usize,
}

/// Frames of captures, the first half to learn from; the rest to try on.
#[derive(Debug, Default)]
pub struct Samples {
    frames: Vec<Sample>,
    bytes: usize,
}

impl Samples {
    /// A frame that was captured whole and says something.
    pub fn take(&mut self, frame: &[u8], len_on_wire: usize) {
        let Some(header) = Header::parse(frame) else {
            return;
        };
        let payload = &frame[HEADER_LEN..];
        let headers = usize::from(Layout::of(header.ether_type, payload).len);
        let is_ours = header.ether_type == ether_type::PACKTRAIN;
        if frame.len() < len_on_wire || is_ours || payload.len() <= headers {
            return;
        }
        if self.bytes + payload.len() > BYTES_MAX {
            return;
        }
        self.bytes += payload.len();
        self.frames.push(Sample {
            ether_type: header.ether_type,
            payload: payload.to_vec(),
            headers,
        });
    }

    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// What the first half says: what it is tried on comes later, as it will.
    pub fn to_learn_from(&self) -> Vec<&[u8]> {
        let half = &self.frames[..self.frames.len() / 2];
        half.iter()
            .map(|frame| &frame.payload[frame.headers..])
            .collect()
    }

    pub fn to_try_on(&self) -> &[Sample] {
        &self.frames[self.frames.len() / 2..]
    }
}
