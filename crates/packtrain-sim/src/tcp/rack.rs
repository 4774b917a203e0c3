//! RACK (RFC 8985, section 6): a segment is lost when one that was sent later has come, and some time has passed.
//!
//! Here is what it knows: which segment that came was sent last, and how long the others are waited for. As Linux has it
//! (`tcp_recovery.c`): that is nothing as long as nobody has seen segments change their order and three have come behind one, or a
//! loss is being repaired; and then a quarter of the least round trip.
//!
//! What is left out: duplicates are not reported (DSACK, RFC 2883), so that the reordering window never grows beyond that quarter;
//! and the number of segments that overtake one (`tp->reordering`) stays three.

use packtrain_proto::time::{Duration, Instant};

const DUP_THRESH: u64 = 3;
/// Linux' `TCP_TIMEOUT_MIN_US`: its timers leave an acknowledgement that is about to come so much time.
pub const TIMER_SLACK: Duration = Duration::from_millis(2);

/// What the connection knows when an acknowledgement has been taken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub rtt_min: Option<Duration>,
    pub rtt_smoothed: Option<Duration>,
    /// A loss is being repaired.
    pub is_recovering: bool,
}

/// A segment that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// When it was sent, the last time.
    pub sent: Instant,
    pub end: u64,
    /// It was sent more than once.
    pub is_ambiguous: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: of all that came what was sent last.
    newest: (Instant, u64),
    /// RACK.rtt.
    rtt: Duration,
    /// RACK.fack, and what it was before this acknowledgement: in which order its own segments came nobody knows.
    highest: u64,
    highest_before: u64,
    is_reordering_seen: bool,
    has_advanced: bool,
    rtt_min: Option<Duration>,
}

impl Rack {
    /// An acknowledgement is taken in from here on.
    pub fn begin(&mut self) {
        self.highest_before = self.highest;
    }

    /// Steps 2 and 3.
    pub fn came(&mut self, segment: Came, now: Instant) {
        if !segment.is_ambiguous && segment.end < self.highest_before {
            self.is_reordering_seen = true;
        }
        self.highest = self.highest.max(segment.end);
        let rtt = now.since(segment.sent);
        // So soon: it is the original that came, and not what went again.
        if segment.is_ambiguous && self.rtt_min.is_none_or(|min| rtt < min) {
            return;
        }
        self.rtt = rtt;
        self.has_advanced = true;
        self.newest = self.newest.max((segment.sent, segment.end));
    }

    pub fn is_reordering_seen(&self) -> bool {
        self.is_reordering_seen
    }

    pub fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Whether something came since it was asked.
    pub fn take_advanced(&mut self) -> bool {
        core::mem::take(&mut self.has_advanced)
    }

    /// Something that was sent after it has come (RACK_sent_after).
    pub fn is_overtaken(&self, sent: Instant, end: u64) -> bool {
        (sent, end) < self.newest
    }

    /// The least round trip.
    pub fn learn(&mut self, rtt_min: Option<Duration>) {
        self.rtt_min = rtt_min;
    }

    /// Steps 4 and 5: how long after it was sent a segment that is overtaken is lost. `sacked`: segments.
    pub fn patience(&self, seen: &Seen, sacked: u64) -> Duration {
        self.rtt + self.window(seen, sacked)
    }

    fn window(&self, seen: &Seen, sacked: u64) -> Duration {
        if !self.is_reordering_seen && (seen.is_recovering || sacked >= DUP_THRESH) {
            return Duration::ZERO;
        }
        let quarter = seen.rtt_min.unwrap_or_default() / 4;
        quarter.min(seen.rtt_smoothed.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    const SEEN: Seen = Seen {
        rtt_min: Some(ms(100)),
        rtt_smoothed: Some(ms(120)),
        is_recovering: false,
    };

    fn came(rack: &mut Rack, sent_ms: u64, end: u64, is_ambiguous: bool, now_ms: u64) {
        rack.begin();
        let segment = Came {
            sent: at(sent_ms),
            end,
            is_ambiguous,
        };
        rack.came(segment, at(now_ms));
    }

    #[test]
    fn the_window_is_a_quarter_of_the_least_round_trip_and_nothing_once_three_came_without_reordering()
     {
        let mut rack = Rack::default();
        came(&mut rack, 0, 10, false, 110);
        assert_eq!(rack.patience(&SEEN, 2), ms(110 + 25));
        assert_eq!(rack.patience(&SEEN, 3), ms(110));
        let recovering = Seen {
            is_recovering: true,
            ..SEEN
        };
        assert_eq!(rack.patience(&recovering, 0), ms(110));
        // Short round trips after a long one.
        let shorter = Seen {
            rtt_smoothed: Some(ms(20)),
            ..SEEN
        };
        assert_eq!(rack.patience(&shorter, 0), ms(110 + 20));
    }

    #[test]
    fn who_has_seen_reordering_waits_in_any_case() {
        let mut rack = Rack::default();
        came(&mut rack, 0, 30, false, 100);
        came(&mut rack, 0, 10, false, 101);
        assert!(rack.is_reordering_seen());
        let recovering = Seen {
            is_recovering: true,
            ..SEEN
        };
        assert_eq!(rack.patience(&recovering, 9), ms(101 + 25));
    }

    #[test]
    fn what_one_acknowledgement_tells_of_and_what_goes_again_is_no_reordering() {
        let mut rack = Rack::default();
        rack.begin();
        for end in [50, 10, 20] {
            let segment = Came {
                sent: at(0),
                end,
                is_ambiguous: false,
            };
            rack.came(segment, at(100));
        }
        came(&mut rack, 90, 30, true, 200);
        assert!(!rack.is_reordering_seen());
    }

    #[test]
    fn a_copy_that_came_sooner_than_any_round_trip_is_the_original() {
        let mut rack = Rack::default();
        came(&mut rack, 0, 10, false, 100);
        rack.learn(SEEN.rtt_min);
        came(&mut rack, 150, 20, true, 200);
        assert!(!rack.is_overtaken(at(140), 30));
        came(&mut rack, 150, 20, true, 250);
        assert!(rack.is_overtaken(at(140), 30));
        // Of the same time the one that ends first.
        assert!(rack.is_overtaken(at(150), 19) && !rack.is_overtaken(at(150), 20));
    }
}
