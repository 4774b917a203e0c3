//! Small frames that go by the engine: whether they are so many that packing them pays, and whether it does.
//!
//! Packing saves the wire frames, and costs the processor copies. Where the wire is what is short, or a card and its
//! driver, it pays; where it is the processor that both hosts of a test share, or one that is slow, the engine carries
//! fewer of them than would go past it. Which of the two it is shows when the engine has them: it takes all that the
//! host sends, or it leaves frames unread though none of those that it has waits for a link. Then it gives them back:
//! for a time many small frames are no reason to close the direct path.

use crate::time::{Duration, Instant};
use crate::wire::packet::Packet;

/// Fewer a second than this are not worth packing. Half of what closes the direct path
/// (`bpf/direct.bpf.c`), so that it does not come and go.
const MANY_PER_SECOND: u64 = 40_000;
const BYTES_MAX: usize = 300;

/// A rate over less than this says nothing.
const MEASURE: Duration = Duration::from_millis(20);
/// How long small frames are left to the direct path when packing them did not pay, at first and at last: twice as long
/// each time that it is found again soon after.
const GIVEN_BACK_MIN: Duration = Duration::from_secs(64);
const GIVEN_BACK_MAX: Duration = Duration::from_secs(1024);

/// Those that the host has sent since it was last looked, and when that was.
#[derive(Debug, Default)]
pub struct SmallFrames {
    frames: u64,
    looked_at: Instant,
    /// At the last look.
    were_many: bool,
    given_back: Option<GivenBack>,
    /// How often they were given back.
    pub times_given_back: u64,
}

#[derive(Clone, Copy, Debug)]
struct GivenBack {
    until: Instant,
    /// How long.
    term: Duration,
    is_over: bool,
}

impl SmallFrames {
    pub fn begin(&mut self, now: Instant) {
        (self.frames, self.looked_at, self.were_many) = (0, now, false);
    }

    /// A frame that the host has sent. Acknowledgements of a flow in the other direction are as
    /// many as that is fast, and would only be late in a train: they do not count.
    #[inline]
    pub fn on_host_frame(&mut self, frame: &[u8]) {
        let is_small = frame.len() <= BYTES_MAX
            && !Packet::parse(frame).is_ok_and(|packet| packet.is_empty_tcp());
        self.frames += u64::from(is_small);
    }

    /// Whether those since the last look are so many that the engine is to keep them.
    pub fn look(&mut self, now: Instant) -> bool {
        let frames = core::mem::take(&mut self.frames);
        let elapsed = now.since(core::mem::replace(&mut self.looked_at, now));
        self.were_many = is_many(frames, elapsed);
        self.were_many && self.are_packed()
    }

    /// Many of them close the direct path; not while packing them has been seen not to pay.
    pub fn are_packed(&self) -> bool {
        self.given_back.is_none_or(|given| given.is_over)
    }

    /// Now and then: packing is tried again after a while.
    pub fn pass_time(&mut self, now: Instant) {
        if let Some(given) = &mut self.given_back {
            given.is_over |= now >= given.until;
        }
    }

    /// The engine takes as many frames as it can, and the links would take more. Whether it has to do with small ones,
    /// which are given back from now on.
    pub fn on_engine_full(&mut self, now: Instant) -> bool {
        let elapsed = now.since(self.looked_at);
        let are_many = match elapsed >= MEASURE {
            true => is_many(self.frames, elapsed),
            false => self.were_many,
        };
        if !are_many || !self.are_packed() {
            return false;
        }
        let term = match self.given_back {
            Some(before) if now.since(before.until) < before.term => {
                (before.term * 2).min(GIVEN_BACK_MAX)
            }
            _ => GIVEN_BACK_MIN,
        };
        self.given_back = Some(GivenBack {
            until: now + term,
            term,
            is_over: false,
        });
        self.times_given_back += 1;
        true
    }
}

fn is_many(frames: u64, elapsed: Duration) -> bool {
    frames > MANY_PER_SECOND * elapsed.as_micros() as u64 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn many_small_frames_are_many_and_many_large_or_a_few_are_not() {
        let mut small = SmallFrames::default();
        small.begin(at(0));
        let mut after = |frames: u64, len: usize, ms: u64| {
            (0..frames).for_each(|_| small.on_host_frame(&vec![0; len]));
            small.look(at(ms))
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
            small.look(at(ms))
        };
        assert!(!after(&tcp(0), 1000));
        let mut padded = tcp(0);
        padded.resize(60, 0);
        assert!(!after(&padded, 2000));
        assert!(after(&tcp(1), 3000));
    }

    /// Sent in 50 ms, 100 bytes each, before the engine was found full.
    fn is_given_back(small: &mut SmallFrames, frames: u64, since_ms: u64) -> bool {
        small.begin(at(since_ms));
        (0..frames).for_each(|_| small.on_host_frame(&[0; 100]));
        small.on_engine_full(at(since_ms + 50))
    }

    #[test]
    fn an_engine_that_is_full_of_small_frames_gives_them_back_and_of_others_not() {
        let mut small = SmallFrames::default();
        assert!(!is_given_back(&mut small, 1_900, 0));
        assert!(small.are_packed());
        assert!(is_given_back(&mut small, 2_100, 100));
        assert!(!small.are_packed());
        // Nor do they keep the path closed now.
        (0..100_000).for_each(|_| small.on_host_frame(&[0; 100]));
        assert!(!small.look(at(250)));
        assert_eq!(small.times_given_back, 1);
        small.pass_time(at(149 + 64_000));
        assert!(!small.are_packed());
        small.pass_time(at(150 + 64_000));
        assert!(small.are_packed());
    }

    #[test]
    fn what_was_many_at_a_look_a_moment_ago_still_is() {
        let mut small = SmallFrames::default();
        small.begin(at(0));
        (0..10_000).for_each(|_| small.on_host_frame(&[0; 100]));
        assert!(small.look(at(100)));
        assert!(small.on_engine_full(at(101)));
        assert!(
            !small.on_engine_full(at(102)),
            "they are given back already"
        );
    }

    #[test]
    fn packing_that_does_not_pay_is_tried_less_and_less_often_and_after_long_as_at_first() {
        let mut small = SmallFrames::default();
        let (mut ms, mut terms) = (0, Vec::new());
        for _ in 0..6 {
            assert!(is_given_back(&mut small, 5_000, ms));
            ms += 50;
            let began = ms;
            while !small.are_packed() {
                ms += 1_000;
                small.pass_time(at(ms));
            }
            terms.push((ms - began) / 1000);
        }
        assert_eq!(terms, [64, 128, 256, 512, 1024, 1024]);
        ms += 1_024_000;
        assert!(is_given_back(&mut small, 5_000, ms));
        small.pass_time(at(ms + 50 + 64_000));
        assert!(small.are_packed());
    }
}
