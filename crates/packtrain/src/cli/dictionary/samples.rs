//! What a dictionary is made of: of captured frames, what is left when their headers are told apart.

use std::fmt;

use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, ether_type};
use packtrain_proto::wire::layout::Layout;
use serde::Serialize;

use crate::cli::view::words::count;

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
    left_out: LeftOut,
}

/// Frames that there is nothing to learn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The capture has only how they begin.
    pub cut_short: u64,
    /// Captured at a link, not at `pt0`.
    pub of_packtrain: u64,
    /// Headers, and nothing behind them.
    pub without_payload: u64,
    /// There were enough before.
    pub beyond_enough: u64,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            (self.cut_short, "cut short by the capture"),
            (
                self.of_packtrain,
                "of packtrain itself (captured at a link, not at pt0)",
            ),
            (self.without_payload, "without payload"),
            (self.beyond_enough, "beyond the first 16 MiB"),
        ];
        let some = rows.iter().filter(|(frames, _)| *frames > 0);
        for (at, (frames, what)) in some.enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{} {what}", count(*frames))?;
        }
        Ok(())
    }
}

impl Samples {
    /// A frame that was captured whole and says something; others are counted.
    pub fn take(&mut self, frame: &[u8], len_on_wire: usize) {
        let Some(header) = Header::parse(frame) else {
            self.left_out.cut_short += 1;
            return;
        };
        let payload = &frame[HEADER_LEN..];
        let headers = usize::from(Layout::of(header.ether_type, payload).len);
        let reason = if header.ether_type == ether_type::PACKTRAIN {
            &mut self.left_out.of_packtrain
        } else if frame.len() < len_on_wire {
            &mut self.left_out.cut_short
        } else if payload.len() <= headers {
            &mut self.left_out.without_payload
        } else if self.left_out.beyond_enough > 0 || self.bytes + payload.len() > BYTES_MAX {
            &mut self.left_out.beyond_enough
        } else {
            self.bytes += payload.len();
            self.frames.push(Sample {
                ether_type: header.ether_type,
                payload: payload.to_vec(),
                headers,
            });
            return;
        };
        *reason += 1;
    }

    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    pub fn left_out(&self) -> LeftOut {
        self.left_out
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

#[cfg(test)]
mod tests {
    use super::super::tests::{datagram, samples};
    use super::*;

    #[test]
    fn headers_are_nothing_to_learn_from_and_what_comes_later_is_to_try_on() {
        let samples = samples(5, |n| vec![n as u8; 10]);
        assert_eq!(samples.to_learn_from(), [[0; 10], [1; 10]]);
        let tried: Vec<_> = samples.to_try_on().iter().collect();
        assert_eq!(tried.len(), 3);
        assert_eq!(tried[0].payload, datagram(2, &[2; 10])[14..]);
        assert_eq!(tried[0].ether_type, 0x0800);
    }

    #[test]
    fn what_is_left_out_is_counted_by_its_reason() {
        let mut samples = Samples::default();
        let whole = datagram(1, &[7; 40]);
        samples.take(&whole[..50], whole.len());
        samples.take(&whole[..9], whole.len());
        let mut ours = whole.clone();
        ours[12..14].copy_from_slice(&[0x88, 0xb5]);
        // Whose it is, is known of one that is cut as well.
        samples.take(&ours[..50], ours.len());
        samples.take(&datagram(1, &[]), 42);
        assert_eq!(samples.frames(), 0);
        samples.take(&whole, whole.len());
        assert_eq!(samples.frames(), 1);
        let left_out = LeftOut {
            cut_short: 2,
            of_packtrain: 1,
            without_payload: 1,
            beyond_enough: 0,
        };
        assert_eq!(samples.left_out(), left_out);
        assert_eq!(
            left_out.to_string(),
            "2 cut short by the capture, 1 of packtrain itself (captured at a link, not at pt0), 1 without payload"
        );
        assert_eq!(LeftOut::default().to_string(), "");
    }

    #[test]
    fn enough_is_enough_and_the_smaller_ones_that_follow_are_not_taken_either() {
        let mut samples = Samples::default();
        let large = datagram(1, &[7; 60_000]);
        let fit = BYTES_MAX / (large.len() - HEADER_LEN);
        for _ in 0..fit + 2 {
            samples.take(&large, large.len());
        }
        let small = datagram(1, &[7; 10]);
        samples.take(&small, small.len());
        assert_eq!(
            (samples.frames(), samples.left_out().beyond_enough),
            (fit, 3)
        );
    }
}
