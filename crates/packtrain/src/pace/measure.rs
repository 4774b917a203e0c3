//! The gaps between the frames that pass an interface, by the times at which the kernel saw them.
//!
//! A gap is what is left of the time between two frames' beginnings when the first one's own time at the line rate is taken
//! away: preamble, frame, FCS. A frame that is many segments (GSO on the way out, GRO on the way in) is seen once, and nothing of what
//! is between its segments; behind such a one the time that is left over is shared out among them.

use hdrhistogram::Histogram;
use packtrain_proto::pacing::gap::{AROUND_LEN, FRAME_LEN_MIN, Line, segments};

/// A longer one is counted as this.
const GAP_NS_MAX: u64 = 60_000_000_000;
const DIGITS: u8 = 3;
/// Of each further segment: Ethernet, IPv4, TCP with time stamps.
const SEGMENT_HEADERS_LEN: u32 = 14 + 20 + 32;

#[derive(Debug)]
pub struct GapTally {
    line: Line,
    /// When the last frame began, how long it was, and of how many segments.
    last: Option<Passed>,
    first_ns: u64,
    frames: u64,
    bytes: u64,
    gso_frames: u64,
    /// Began before the one before it could have left a line of this rate.
    too_close: u64,
    gaps_ns: Histogram<u64>,
    /// Of each segment, behind frames that are many.
    segment_gaps_ns: Histogram<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Passed {
    at_ns: u64,
    len: u32,
    segments: u32,
}

impl GapTally {
    pub fn new(line: Line) -> GapTally {
        let histogram = || Histogram::new_with_bounds(1, GAP_NS_MAX, DIGITS).expect("fixed bounds");
        GapTally {
            line,
            last: None,
            first_ns: 0,
            frames: 0,
            bytes: 0,
            gso_frames: 0,
            too_close: 0,
            gaps_ns: histogram(),
            segment_gaps_ns: histogram(),
        }
    }

    /// A frame of `len` bytes, without its FCS, has begun to pass.
    pub fn frame(&mut self, at_ns: u64, len: u32) {
        let passed = Passed {
            at_ns,
            len,
            segments: segments(len, self.line.mtu),
        };
        match self.last.replace(passed) {
            Some(last) => self.gap(last, at_ns),
            None => self.first_ns = at_ns,
        }
        self.frames += 1;
        self.bytes += u64::from(len);
        self.gso_frames += u64::from(passed.segments > 1);
    }

    fn gap(&mut self, last: Passed, at_ns: u64) {
        let own_bytes = u64::from(last.len.max(FRAME_LEN_MIN))
            + u64::from((last.segments - 1) * SEGMENT_HEADERS_LEN)
            + u64::from(last.segments * AROUND_LEN);
        let since = at_ns.saturating_sub(last.at_ns);
        let left = since.checked_sub(self.line.nanos(own_bytes));
        self.too_close += u64::from(left.is_none());
        let left = left.unwrap_or(0);
        match last.segments {
            1 => self.gaps_ns.saturating_record(left),
            many => self
                .segment_gaps_ns
                .saturating_record(left / u64::from(many)),
        }
    }

    pub fn line(&self) -> Line {
        self.line
    }

    pub fn frames(&self) -> u64 {
        self.frames
    }

    pub fn gso_frames(&self) -> u64 {
        self.gso_frames
    }

    pub fn too_close(&self) -> u64 {
        self.too_close
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Between the first frame and the last one.
    pub fn nanos(&self) -> u64 {
        let last = self.last.map_or(self.first_ns, |last| last.at_ns);
        last.saturating_sub(self.first_ns)
    }

    /// Of frames, bit/s; the last one is not over yet.
    pub fn rate_bps(&self) -> f64 {
        let last = self.last.map_or(0, |last| u64::from(last.len));
        let bits = (self.bytes - last) as f64 * 8.0;
        match self.nanos() {
            0 => 0.0,
            nanos => bits * 1e9 / nanos as f64,
        }
    }

    /// Behind single frames.
    pub fn gaps_ns(&self) -> &Histogram<u64> {
        &self.gaps_ns
    }

    /// Behind frames that are many segments, for each of these.
    pub fn segment_gaps_ns(&self) -> &Histogram<u64> {
        &self.segment_gaps_ns
    }

    /// So much time in bytes of the line.
    pub fn byte_times(&self, nanos: u64) -> u64 {
        let bits = u128::from(nanos) * u128::from(self.line.rate_bps);
        (bits / 8_000_000_000) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: Line = Line {
        rate_bps: 1_000_000_000,
        mtu: 1500,
    };

    #[test]
    fn a_gap_is_what_is_left_when_the_frames_own_time_is_over() {
        let mut tally = GapTally::new(GIGABIT);
        // 1526 bytes and a gap of 512 take 16,304 ns, 72 bytes and a gap of 512 take 4672 ns.
        for (at_ns, len) in [(1_000, 1514), (17_304, 42), (21_976, 1514)] {
            tally.frame(at_ns, len);
        }
        assert_eq!((tally.frames(), tally.too_close()), (3, 0));
        let gaps = tally.gaps_ns();
        assert_eq!(gaps.len(), 2);
        for gap_ns in [gaps.min(), gaps.max()] {
            // To three digits.
            assert!(gap_ns.abs_diff(4096) <= 4, "{gap_ns}");
        }
        assert_eq!(tally.byte_times(4096), 512);
        assert_eq!(tally.nanos(), 20_976);
        let bps = tally.rate_bps();
        assert!((bps - 1556.0 * 8e9 / 20_976.0).abs() < 1.0, "{bps}");
    }

    #[test]
    fn a_frame_that_comes_before_the_last_one_can_have_left_has_no_gap_before_it() {
        let mut tally = GapTally::new(GIGABIT);
        tally.frame(0, 1514);
        tally.frame(1_000, 1514);
        assert_eq!((tally.too_close(), tally.gaps_ns().max()), (1, 0));
        // Nor one that seems to come from the past.
        tally.frame(500, 1514);
        assert_eq!(tally.too_close(), 2);
    }

    #[test]
    fn behind_many_segments_each_has_its_share() {
        let mut tally = GapTally::new(GIGABIT);
        // Three full segments, each followed by 512 bytes.
        tally.frame(0, 66 + 3 * 1448);
        tally.frame(3 * 16_304, 60);
        assert_eq!((tally.gso_frames(), tally.gaps_ns().len()), (1, 0));
        let gap_ns = tally.segment_gaps_ns().max();
        assert!(gap_ns.abs_diff(4096) <= 4, "{gap_ns}");
    }

    #[test]
    fn nothing_has_passed_yet() {
        let tally = GapTally::new(GIGABIT);
        assert_eq!((tally.frames(), tally.nanos()), (0, 0));
        assert_eq!(tally.rate_bps(), 0.0);
    }
}
