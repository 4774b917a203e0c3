//! Proportional rate reduction (RFC 6937, RFC 9937): on the way from the old window to the new one, so much is sent for each
//! segment that is delivered that the reduction takes the whole round trip, and neither a pause nor a burst.
//!
//! In the variant of Linux (`tcp_cwnd_reduction`): below the threshold as much is sent as is delivered (CRB), and a segment more
//! (SSRB) when an acknowledgement advances and nothing more is lost by it. What may be sent is rounded up to whole segments.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prr {
    mss: u64,
    /// RecoverFS; in Linux the window.
    prior: u64,
    ssthresh: u64,
    delivered: u64,
    out: u64,
}

impl Prr {
    /// From the window `prior` to `ssthresh`.
    ///
    /// # Panics
    /// Without a window.
    pub fn new(mss: u64, prior: u64, ssthresh: u64) -> Prr {
        assert!(mss > 0 && prior > 0);
        Prr {
            mss,
            prior,
            ssthresh,
            delivered: 0,
            out: 0,
        }
    }

    /// The window, when so much has been delivered and so much is under way. `progresses`: the acknowledgement advances, and
    /// nothing more is lost by it. `None`: it is the old one still.
    pub fn acknowledged(&mut self, delivered: u64, progresses: bool, pipe: u64) -> Option<u64> {
        if delivered == 0 {
            return None;
        }
        self.delivered += delivered;
        let mut may_go = match pipe.checked_sub(self.ssthresh) {
            // Above: in proportion.
            Some(1..) => {
                let together = u128::from(self.delivered) * u128::from(self.ssthresh);
                let together = together.div_ceil(u128::from(self.prior)) as u64;
                self.whole(together).saturating_sub(self.out)
            }
            Some(0) | None => {
                let left = self.whole(self.delivered).saturating_sub(self.out);
                let more = if progresses { self.mss } else { 0 };
                let most = self.ssthresh - pipe;
                (left.max(self.whole(delivered)) + more).min(most)
            }
        };
        // The first of what is lost goes again at once.
        if self.out == 0 {
            may_go = may_go.max(self.mss);
        }
        Some(pipe + may_go)
    }

    fn whole(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.mss)
    }

    pub fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// The window in the end.
    pub fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 100;

    /// Acknowledgements of a segment each, while a window of `prior` is under way of which `lost` are: how many leave with each.
    fn leave(prior: u64, ssthresh: u64, lost: u64, progresses: bool) -> (Vec<u64>, u64) {
        let mut prr = Prr::new(MSS, prior * MSS, ssthresh * MSS);
        let mut pipe = (prior - lost) * MSS;
        let left = (0..prior - lost).map(|_| {
            pipe -= MSS;
            let cwnd = prr.acknowledged(MSS, progresses, pipe).expect("one came");
            let mut left = 0;
            while pipe + MSS <= cwnd {
                pipe += MSS;
                prr.sent(MSS);
                left += 1;
            }
            left
        });
        (left.collect(), pipe / MSS)
    }

    #[test]
    fn half_a_window_leaves_by_one_for_two_all_through_the_round_trip() {
        let (left, pipe) = leave(20, 10, 1, false);
        // The proportion, until what is under way has come down to it; then one for one.
        let halves: Vec<u64> = (0..16).map(|n| (n + 1) % 2).collect();
        assert_eq!(left[..16], halves);
        assert_eq!((&left[16..], pipe), (&[0, 1, 1][..], 10));
    }

    #[test]
    fn seven_tenths_leave_seven_of_ten() {
        let (left, pipe) = leave(100, 70, 1, false);
        assert_eq!(left[..50].iter().sum::<u64>(), 35);
        assert_eq!(pipe, 70);
        assert!(left.iter().all(|&left| left <= 1), "no burst");
    }

    #[test]
    fn below_the_threshold_one_leaves_for_one_and_one_more_where_it_progresses() {
        let (left, pipe) = leave(20, 10, 15, false);
        assert_eq!((left, pipe), (vec![1; 5], 5));
        let (left, pipe) = leave(20, 10, 15, true);
        assert_eq!((left, pipe), (vec![2; 5], 10));
    }

    #[test]
    fn the_first_leaves_whatever_is_under_way_and_nothing_new_changes_nothing() {
        let mut prr = Prr::new(MSS, 20 * MSS, 10 * MSS);
        assert_eq!(prr.acknowledged(0, false, 1000), None);
        assert_eq!(prr.acknowledged(1, false, 1900), Some(2000));
        prr.sent(MSS);
        assert_eq!(prr.acknowledged(1, false, 1900), Some(1900));
    }
}
