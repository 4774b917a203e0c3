//! What duplicate acknowledgements tell of a loss, without SACK: Reno (RFC 5681, 3.2) and NewReno (RFC 6582).
//!
//! The RFCs make the window larger by a segment for each duplicate acknowledgement, because a segment has left the
//! network, and small again in the end. Here the window stays what it is, and what is under way becomes less instead, which
//! lets the same segments leave: pipe = what is not acknowledged − `left`. A partial acknowledgement takes from `left` what it
//! acknowledges but for one segment, the one that had gone again: RFC 6582's "deflate the congestion window by the amount of
//! new data acknowledged … add back SMSS bytes".
//!
//! Of what two duplicate acknowledgements let leave before a loss is known (RFC 3042) the same is true.
//!
//! Where a partial acknowledgement takes in what came before the recovery began, the RFC's window falls below its threshold for that;
//! here, as in Linux, it does not. What is left out: RFC 6582's heuristics (section 4), and its "impatient" timer: each partial acknowledgement sets it
//! anew.

/// When a fast recovery ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Reno: at the first acknowledgement of something new. Each further loss of the same window waits for three duplicates
    /// of its own, and is a reduction of its own; or for the timer.
    AtAnyProgress,
    /// NewReno: when everything is acknowledged that was sent before it began. Each partial acknowledgement names one
    /// loss, so that one is repaired in a round trip.
    AtAll,
}

const DUP_THRESH: u32 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct DuplicateAcks {
    ends: Ends,
    /// In a row.
    count: u32,
    /// Bytes that they say have left the network.
    left: u64,
    is_repairing: bool,
    /// RFC 6582's "recover": what was sent before it belongs to a loss that the window was reduced for.
    recover: Option<u64>,
    /// While less than this is acknowledged, what the timer made go again causes duplicates that say nothing.
    timed_out_to: u64,
    /// The most that was ever known to have arrived.
    delivered: u64,
}

/// What an acknowledgement means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    /// Bytes that are known to have arrived and were not.
    pub delivered: u64,
    /// The first segment that is missing is lost.
    pub first_is_lost: bool,
}

impl DuplicateAcks {
    pub fn new(ends: Ends) -> DuplicateAcks {
        DuplicateAcks {
            ends,
            count: 0,
            left: 0,
            is_repairing: false,
            recover: None,
            timed_out_to: 0,
            delivered: 0,
        }
    }

    pub fn left(&self) -> u64 {
        self.left
    }

    /// `first_len`: of the first of the segments that this one acknowledges.
    pub fn advanced(&mut self, by: u64, first_len: u64, acknowledged: u64) -> Meaning {
        self.count = 0;
        let is_partial = self.recover.is_some_and(|recover| acknowledged < recover);
        self.is_repairing &= is_partial && self.ends == Ends::AtAll;
        self.left = match self.is_repairing {
            true => self.left.saturating_sub(by - first_len),
            false => 0,
        };
        self.means(acknowledged, self.is_repairing)
    }

    /// `behind`: bytes that were sent behind the first segment that is missing: no more can have left.
    pub fn duplicate(&mut self, mss: u64, behind: u64, acknowledged: u64) -> Meaning {
        if acknowledged < self.timed_out_to {
            return self.means(acknowledged, false);
        }
        self.count += 1;
        let is_new = self.recover.is_none_or(|recover| acknowledged > recover);
        let begins = self.count == DUP_THRESH && (is_new || self.ends == Ends::AtAnyProgress);
        let first_is_lost = begins && !self.is_repairing;
        if self.is_repairing || self.count < DUP_THRESH || begins {
            self.left = (self.left + mss).min(behind);
        }
        self.means(acknowledged, first_is_lost)
    }

    fn means(&mut self, acknowledged: u64, first_is_lost: bool) -> Meaning {
        let known = self.delivered;
        self.delivered = known.max(acknowledged + self.left);
        Meaning {
            delivered: self.delivered - known,
            first_is_lost,
        }
    }

    /// Until how much is acknowledged?
    pub fn begin_recovery(&mut self, acknowledged: u64, next: u64) -> u64 {
        self.is_repairing = true;
        self.recover = Some(next);
        match self.ends {
            Ends::AtAnyProgress => acknowledged + 1,
            Ends::AtAll => next,
        }
    }

    pub fn timed_out(&mut self, next: u64) {
        (self.count, self.left, self.is_repairing) = (0, 0, false);
        self.recover = Some(next);
        self.timed_out_to = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 10;

    /// Ten segments are under way, and the first is lost: the third duplicate says so.
    fn in_recovery(ends: Ends) -> (DuplicateAcks, u64) {
        let mut state = DuplicateAcks::new(ends);
        let lost = [1, 2, 3].map(|_| state.duplicate(MSS, 90, 0).first_is_lost);
        assert_eq!((lost, state.left()), ([false, false, true], 30));
        let until = state.begin_recovery(0, 100);
        (state, until)
    }

    #[test]
    fn each_duplicate_takes_a_segment_from_the_network_and_no_more_than_there_are() {
        let (mut state, _) = in_recovery(Ends::AtAll);
        for left in [40, 50, 60, 70, 80, 90, 90] {
            assert!(!state.duplicate(MSS, 90, 0).first_is_lost);
            assert_eq!(state.left(), left);
        }
    }

    #[test]
    fn a_partial_acknowledgement_of_newreno_names_the_next_loss_and_leaves_one_segment_less_under_way()
     {
        let (mut state, until) = in_recovery(Ends::AtAll);
        assert_eq!(until, 100);
        (0..5).for_each(|_| {
            state.duplicate(MSS, 90, 0);
        });
        // 0 and 4 were lost: what went again takes 1 to 3 with it, which had left already.
        let pipe_before = 100 - state.left();
        let meaning = state.advanced(40, 10, 40);
        assert_eq!(
            meaning,
            Meaning {
                delivered: 10,
                first_is_lost: true
            }
        );
        assert_eq!(60 - state.left(), pipe_before - MSS);
        let meaning = state.advanced(60, 10, 100);
        assert_eq!((meaning.first_is_lost, state.left()), (false, 0));
        assert_eq!(meaning.delivered, 100 - 80 - 10);
    }

    #[test]
    fn any_progress_ends_renos_and_the_next_loss_needs_three_duplicates_again() {
        let (mut state, until) = in_recovery(Ends::AtAnyProgress);
        assert_eq!(until, 1);
        let meaning = state.advanced(40, 10, 40);
        assert_eq!((meaning.first_is_lost, state.left()), (false, 0));
        let lost = [1, 2, 3].map(|_| state.duplicate(MSS, 50, 40).first_is_lost);
        assert_eq!(lost, [false, false, true]);
    }

    #[test]
    fn duplicates_of_what_newreno_has_repaired_begin_nothing_until_something_new_is_acknowledged() {
        let (mut state, _) = in_recovery(Ends::AtAll);
        state.advanced(100, 10, 100);
        let lost = [1, 2, 3, 4].map(|_| state.duplicate(MSS, 90, 100).first_is_lost);
        // As limited transmit has it, and no more.
        assert_eq!((lost, state.left()), ([false; 4], 20));
        state.advanced(10, 10, 110);
        let lost = [1, 2, 3].map(|_| state.duplicate(MSS, 90, 110).first_is_lost);
        assert_eq!(lost, [false, false, true]);
    }

    #[test]
    fn duplicates_say_nothing_while_the_timers_work_is_not_acknowledged() {
        for ends in [Ends::AtAnyProgress, Ends::AtAll] {
            let mut state = DuplicateAcks::new(ends);
            state.timed_out(100);
            for _ in 0..5 {
                assert!(!state.duplicate(MSS, 90, 50).first_is_lost);
            }
            assert_eq!(state.left(), 0);
            assert!(!state.advanced(30, 10, 80).first_is_lost);
        }
    }
}
