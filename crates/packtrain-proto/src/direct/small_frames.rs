//! Small frames that go by the engine: whether they are so many that packing them pays.

use crate::time::Instant;
use crate::wire::packet::Packet;

/// Fewer a second than this are not worth packing. Half of what closes the direct path
/// (`bpf/direct.bpf.c`), so that it does not come and go.
const MANY_PER_SECOND: u64 = 40_000;
const BYTES_MAX: usize = 300;

/// Those that the host has sent since it was last looked, and when that was.
#[derive(Debug, Default)]
pub struct SmallFrames {
    frames: u64,
    looked_at: Instant,
}

impl SmallFrames {
    pub fn begin(&mut self, now: Instant) {
        (self.frames, self.looked_at) = (0, now);
    }

    /// A frame that the host has sent. Acknowledgements of a flow in the other direction are as
    /// many as that is fast, and would only be late in a train: they do not count.
    #[inline]
    pub fn on_host_frame(&mut self, frame: &[u8]) {
        let is_small = frame.len() <= BYTES_MAX
            && !Packet::parse(frame).is_ok_and(|packet| packet.is_empty_tcp());
        self.frames += u64::from(is_small);
    }

    /// Whether packing those since the last look paid.
    pub fn were_many(&mut self, now: Instant) -> bool {
        let frames = core::mem::take(&mut self.frames);
        let elapsed = now.since(core::mem::replace(&mut self.looked_at, now));
        frames > MANY_PER_SECOND * elapsed.as_micros() as u64 / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn many_small_frames_are_many_and_many_large_or_a_few_are_not() {
        let mut small = SmallFrames::default();
        small.begin(at(0));
        let mut after = |frames: u64, len: usize, ms: u64| {
            (0..frames).for_each(|_| small.on_host_frame(&vec![0; len]));
            small.were_many(at(ms))
        };
        assert!(after(12_000, 106, 250));
        assert!(!after(12_000, 1514, 500));
        assert!(!after(9_000, 106, 750));
        assert!(after(25_000, 300, 1250));
        assert!(!after(0, 0, 1500));
    }

    /// IPv4 and TCP, with so many bytes of payload.
    fn tcp(payload: u16) -> Vec<u8> {
        let mut frame = vec![0; 54 + usize::from(payload)];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(40 + payload).to_be_bytes());
        frame[23] = 6;
        frame[46] = 0x50;
        frame
    }

    #[test]
    fn acknowledgements_of_a_fast_flow_are_not_many_however_many_they_are() {
        let mut small = SmallFrames::default();
        small.begin(at(0));
        let mut after = |frame: &[u8], ms: u64| {
            (0..100_000).for_each(|_| small.on_host_frame(frame));
            small.were_many(at(ms))
        };
        assert!(!after(&tcp(0), 1000));
        let mut padded = tcp(0);
        padded.resize(60, 0);
        assert!(!after(&padded, 2000));
        assert!(after(&tcp(1), 3000));
    }
}
