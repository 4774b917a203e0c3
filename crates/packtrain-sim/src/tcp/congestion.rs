//! How much may be under way: slow start and congestion avoidance of Reno (RFC 5681).
//!
//! In bytes. What is acknowledged counts by its bytes, and not by its acknowledgements (RFC 3465), without the
//! limit L of that RFC, as in Linux: delayed acknowledgements then slow nothing down.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reno {
    mss: u64,
    cwnd: u64,
    /// `u64::MAX`: nothing is known.
    ssthresh: u64,
    /// Acknowledged in congestion avoidance since the window grew.
    counted: u64,
}

impl Reno {
    /// # Panics
    /// Without a window, or segments.
    pub fn new(mss: u64, initial_segments: u64) -> Reno {
        assert!(mss > 0 && initial_segments > 0);
        Reno {
            mss,
            cwnd: initial_segments * mss,
            ssthresh: u64::MAX,
            counted: 0,
        }
    }

    pub fn cwnd(&self) -> u64 {
        self.cwnd
    }

    pub fn cwnd_segments(&self) -> u64 {
        self.cwnd / self.mss
    }

    pub fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Where slow start is to end, of a path that is known.
    pub fn set_ssthresh(&mut self, bytes: u64) {
        self.ssthresh = bytes.max(2 * self.mss);
    }

    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// So many bytes have arrived. What slow start does not need counts in congestion avoidance, which adds a
    /// segment for each window.
    pub fn grow(&mut self, bytes: u64) {
        let bytes = self.grow_in_slow_start(bytes);
        self.counted += bytes;
        while self.counted >= self.cwnd {
            self.counted -= self.cwnd;
            self.cwnd += self.mss;
        }
    }

    /// The same, but congestion avoidance adds a segment for each so many.
    pub fn grow_for_each(&mut self, segments: u64, bytes: u64) {
        let bytes = self.grow_in_slow_start(bytes);
        let each = segments * self.mss;
        // What was counted while it took more adds a segment, and no more: else the end of a plateau, where it takes a hundred
        // windows, would be a leap (Linux' `tcp_cong_avoid_ai`).
        if self.counted >= each {
            self.counted = 0;
            self.cwnd += self.mss;
        }
        self.counted += bytes;
        let more = self.counted / each;
        self.counted -= more * each;
        self.cwnd += more * self.mss;
    }

    /// What it does not need.
    fn grow_in_slow_start(&mut self, mut bytes: u64) -> u64 {
        if self.in_slow_start() {
            let step = bytes.min(self.ssthresh - self.cwnd);
            self.cwnd += step;
            bytes -= step;
            self.counted = 0;
        }
        bytes
    }

    /// The window is this one, as somebody knows of the path; not above the threshold.
    pub fn open(&mut self, bytes: u64) {
        self.cwnd = bytes.min(self.ssthresh);
    }

    /// Something was lost, of so many bytes that were under way: half of them, or two segments.
    pub fn reduce(&mut self, flight: u64) {
        self.halve(flight);
        self.cwnd = self.ssthresh;
    }

    /// Something was lost, and so many segments are left.
    pub fn reduce_to(&mut self, segments: u64) {
        self.ssthresh = segments.max(2) * self.mss;
        self.cwnd = self.ssthresh;
        self.counted = 0;
    }

    /// Nothing came back at all: one segment, and slow start to what the window was reduced to.
    pub fn collapse(&mut self) {
        self.cwnd = self.mss;
        self.counted = 0;
    }

    /// The same, and as much as is still under way may stay there.
    pub fn collapse_beside(&mut self, pipe: u64) {
        self.collapse();
        self.cwnd += pipe;
    }

    /// The window while it comes down: somebody else says how.
    pub fn hold(&mut self, bytes: u64) {
        self.cwnd = bytes;
    }

    /// It has come down.
    pub fn settle(&mut self) {
        self.cwnd = self.ssthresh;
    }

    /// What was sent by limited transmit is under way, too, but no part of the window (RFC 3042).
    fn halve(&mut self, flight: u64) {
        self.ssthresh = (flight.min(self.cwnd) / 2).max(2 * self.mss);
        self.counted = 0;
    }

    /// Nothing was sent for a timeout: what the window says is old (RFC 5681, 4.1).
    pub fn restart(&mut self, initial_segments: u64) {
        self.cwnd = self.cwnd.min(initial_segments * self.mss);
        self.counted = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_counts_bytes_and_ends_exactly_at_its_threshold() {
        let mut reno = Reno::new(100, 10);
        reno.set_ssthresh(1250);
        reno.grow(100);
        assert_eq!((reno.cwnd(), reno.in_slow_start()), (1100, true));
        // 150 are left of it, and the other 50 count for the next segment.
        reno.grow(200);
        assert_eq!((reno.cwnd(), reno.in_slow_start()), (1250, false));
        reno.grow(1199);
        assert_eq!(reno.cwnd(), 1250);
        reno.grow(1);
        assert_eq!(reno.cwnd(), 1350);
    }

    #[test]
    fn a_window_of_acknowledgements_adds_a_segment() {
        let mut reno = Reno::new(100, 10);
        reno.reduce(800);
        assert_eq!(reno.cwnd(), 400);
        for (windows, cwnd) in [(4, 500), (5, 600), (6, 700)] {
            (0..windows).for_each(|_| reno.grow(100));
            assert_eq!(reno.cwnd(), cwnd);
        }
    }

    #[test]
    fn what_was_counted_while_a_segment_took_more_is_no_leap() {
        let mut reno = Reno::new(100, 10);
        reno.reduce(2000);
        reno.grow_for_each(500, 40_000);
        assert_eq!(reno.cwnd(), 500);
        reno.grow_for_each(5, 100);
        assert_eq!(reno.cwnd(), 600);
        // And from there as it is said.
        (0..4).for_each(|_| reno.grow_for_each(5, 100));
        assert_eq!(reno.cwnd(), 700);
    }

    #[test]
    fn a_loss_leaves_half_of_the_window_and_at_least_two_segments() {
        let mut reno = Reno::new(100, 10);
        reno.reduce(1200);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (500, 500));
        reno.reduce(300);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (200, 200));
    }

    #[test]
    fn a_timeout_leaves_a_segment_and_is_one_loss_however_often_it_comes() {
        let mut reno = Reno::new(100, 10);
        reno.reduce(1000);
        reno.collapse();
        reno.collapse();
        assert_eq!((reno.cwnd(), reno.ssthresh()), (100, 500));
        assert!(reno.in_slow_start());
    }

    #[test]
    fn idleness_leaves_the_initial_window_and_never_more_than_there_was() {
        let mut reno = Reno::new(100, 10);
        reno.grow(1000);
        reno.restart(10);
        assert_eq!(reno.cwnd(), 1000);
        reno.collapse();
        reno.restart(10);
        assert_eq!(reno.cwnd(), 100);
    }
}
