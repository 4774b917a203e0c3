//! Duplicate acknowledgements by what is under way against RFC 6582's own words, which inflate the window.

use std::collections::{BTreeSet, VecDeque};

use packtrain_proto::time::Instant;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::scoreboard::{Detection, Scoreboard};

const MSS: u64 = 10;
const NOW: Instant = Instant::ZERO;

/// In segments.
struct Model {
    cwnd: u64,
    ssthresh: u64,
    una: u64,
    next: u64,
    duplicates: u64,
    /// "The initial value of recover": nothing was repaired.
    recover: Option<u64>,
    is_recovering: bool,
}

impl Model {
    /// Whether the first that is missing goes again.
    fn acknowledged(&mut self, to: u64, window: u64) -> bool {
        if to == self.una {
            self.duplicates += 1;
            if self.is_recovering {
                // 3.2, 3: "For each additional duplicate ACK received … cwnd MUST be incremented by SMSS."
                self.cwnd += 1;
                return false;
            }
            // 3.2, 2: "the Cumulative Acknowledgment field covers more than recover".
            let covers = self.recover.is_none_or(|recover| to > recover);
            if self.duplicates != 3 || !covers {
                return false;
            }
            // "ssthresh = max (FlightSize / 2, 2*SMSS)", without what limited transmit has sent; "cwnd to ssthresh plus 3*SMSS".
            let flight = (self.next - self.una).min(self.cwnd);
            self.ssthresh = (flight / 2).max(2);
            self.cwnd = self.ssthresh + 3;
            self.recover = Some(self.next);
            self.is_recovering = true;
            return true;
        }
        let by = to - self.una;
        self.una = to;
        self.duplicates = 0;
        if !self.is_recovering {
            return false;
        }
        if self.recover.is_some_and(|recover| to >= recover) {
            // "Set cwnd to … ssthresh"; here it has grown again at once.
            self.is_recovering = false;
            self.cwnd = window;
            return false;
        }
        // "Deflate the congestion window by the amount of new data acknowledged …, then add back SMSS bytes".
        // Not below the threshold: what came before the recovery began was no duplicate of it.
        self.cwnd = (self.cwnd + 1).saturating_sub(by).max(self.ssthresh);
        true
    }

    fn may_send(&self) -> bool {
        // RFC 3042: two more.
        let limited = if self.is_recovering {
            0
        } else {
            self.duplicates.min(2)
        };
        self.next - self.una < self.cwnd + limited
    }
}

struct Walk {
    random: Random,
    board: Scoreboard,
    model: Model,
    window: u64,
    under_way: VecDeque<u64>,
    came: BTreeSet<u64>,
    until: Option<u64>,
}

impl Walk {
    fn sends(&mut self) {
        loop {
            let cwnd = match self.until {
                Some(_) => self.model.ssthresh,
                None => self.window,
            };
            let may = self.board.pipe() + MSS <= cwnd * MSS;
            assert_eq!(may, self.model.may_send(), "at {}", self.model.una);
            if !may {
                return;
            }
            self.board.send_new(MSS as u32, NOW);
            self.under_way.push_back(self.model.next);
            self.model.next += 1;
        }
    }

    /// Whether anything has.
    fn something_comes(&mut self) -> bool {
        let Some(segment) = self.under_way.pop_front() else {
            return false;
        };
        if self.random.chance(0.03) {
            return true;
        }
        self.came.insert(segment);
        let una = self.model.una;
        let to = (una..).find(|n| !self.came.contains(n)).expect("some is");
        self.board.acknowledge(to * MSS, &[], NOW);
        let goes_again = self.model.acknowledged(to, self.window);
        self.until.take_if(|until| to * MSS >= *until);
        if self.until.is_none() && self.board.has_loss() {
            self.until = Some(self.board.begin_recovery());
        }
        assert_eq!(self.until.is_some(), self.model.is_recovering);
        let lost = self.until.and_then(|until| self.board.lost(until));
        assert_eq!(lost.is_some(), goes_again);
        if let Some(part) = lost {
            assert_eq!(part.offset, to * MSS);
            self.board.resend(part, NOW);
            self.under_way.push_back(to);
        }
        true
    }
}

#[test]
fn newreno_by_what_is_under_way_is_newreno_by_a_window_that_is_inflated() {
    let mut recovered = 0;
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let window = random.between(4, 40);
        let mut walk = Walk {
            random,
            board: Scoreboard::with(MSS, Detection::NEW_RENO),
            model: Model {
                cwnd: window,
                ssthresh: window,
                una: 0,
                next: 0,
                duplicates: 0,
                recover: None,
                is_recovering: false,
            },
            window,
            under_way: VecDeque::new(),
            came: BTreeSet::new(),
            until: None,
        };
        // Until what went again is lost, and only the timer helps.
        for _ in 0..500 {
            walk.sends();
            if !walk.something_comes() {
                break;
            }
        }
        recovered += u64::from(walk.model.recover.is_some()) * walk.model.una;
    }
    assert!(recovered > 5000, "{recovered}");
}
