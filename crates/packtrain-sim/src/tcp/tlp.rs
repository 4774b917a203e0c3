//! Tail loss probes (RFC 8985, section 7): when nothing comes for about two round trips, one segment is sent, new or the last
//! one again, so that its acknowledgement tells what was lost. The timer would take longer, and end in slow start.
//!
//! As Linux has it (`tcp_schedule_loss_probe`, `tcp_process_tlp_ack`). Duplicates are not reported (DSACK), so that a copy that was
//! for nothing is known by a duplicate acknowledgement only; where that one is lost, the window is reduced for it.

use packtrain_proto::time::Duration;

use super::rack::TIMER_SLACK;

/// Linux' `TCP_TIMEOUT_INIT`: without a round trip.
const TIMEOUT_INITIAL: Duration = Duration::from_secs(1);
/// Linux' `TCP_RTO_MIN`: a single segment may wait so long at a receiver that delays its acknowledgement.
const ACK_DELAY_MAX: Duration = Duration::from_millis(200);

/// A probe that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    /// TLP.end_seq: what was sent before it ends here.
    end: u64,
    /// It was sent before.
    is_copy: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tlp {
    probe: Option<Probe>,
}

impl Tlp {
    /// How long to wait, from the last segment that was sent or acknowledged. `is_single`: no other is under way.
    pub fn timeout(rtt_smoothed: Option<Duration>, is_single: bool) -> Duration {
        let Some(rtt) = rtt_smoothed else {
            return TIMEOUT_INITIAL;
        };
        rtt * 2
            + match is_single {
                true => ACK_DELAY_MAX,
                false => TIMER_SLACK,
            }
    }

    /// One at a time.
    pub fn is_outstanding(&self) -> bool {
        self.probe.is_some()
    }

    /// It was sent, and what is under way ends here.
    pub fn sent(&mut self, end: u64, is_copy: bool) {
        self.probe = Some(Probe { end, is_copy });
    }

    /// Whether the probe has repaired a loss, which nothing else told of: then it is a reduction. `is_duplicate`: nothing new is
    /// acknowledged.
    pub fn acknowledged(&mut self, to: u64, is_duplicate: bool) -> bool {
        let Some(probe) = self.probe.filter(|probe| to >= probe.end) else {
            return false;
        };
        let has_repaired = probe.is_copy && to > probe.end;
        // Of a copy both came, or nothing is known until something behind it is acknowledged.
        if !probe.is_copy || has_repaired || is_duplicate {
            self.probe = None;
        }
        has_repaired
    }

    /// A loss is being repaired anyway, or the timer has expired.
    pub fn reset(&mut self) {
        self.probe = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(100));

    #[test]
    fn a_probe_waits_for_two_round_trips_and_for_a_delayed_acknowledgement() {
        let timeouts = [(RTT, false), (RTT, true), (None, false)];
        let ms = timeouts.map(|(rtt, is_single)| Tlp::timeout(rtt, is_single).as_millis());
        assert_eq!(ms, [202, 400, 1000]);
    }

    #[test]
    fn new_data_that_come_are_no_loss() {
        let mut tlp = Tlp::default();
        tlp.sent(100, false);
        assert!(!tlp.acknowledged(90, false) && tlp.is_outstanding());
        assert!(!tlp.acknowledged(100, false) && !tlp.is_outstanding());
    }

    #[test]
    fn a_copy_was_for_nothing_if_a_duplicate_says_so_and_otherwise_repaired_a_loss() {
        let mut tlp = Tlp::default();
        tlp.sent(100, true);
        assert!(!tlp.acknowledged(100, false) && tlp.is_outstanding());
        assert!(!tlp.acknowledged(100, true) && !tlp.is_outstanding());
        assert!(!tlp.acknowledged(110, false));
        tlp.sent(100, true);
        assert!(!tlp.acknowledged(100, false));
        assert!(tlp.acknowledged(110, false) && !tlp.is_outstanding());
    }
}
