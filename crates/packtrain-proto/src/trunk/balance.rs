//! Which of several links the next train takes.
//!
//! By default the one by which it arrives first: what stands before it there, at that link's rate, and
//! the link's own delay. A link that has no room is passed over, so an idle one always takes what would
//! else wait: pure earliest finish would wait for the fastest link, and leave slow ones unused for as long
//! as senders keep the fast one's queue short.

use arrayvec::ArrayVec;

use crate::buffer::SMALL_CAPACITY;
use crate::config::{Balance, LinkId};
use crate::time::Duration;
use crate::wire::hello::LINKS_MAX;

/// What the others would have to wait for a train of a slower link, at most. The receiver gives up a
/// gap after no less than twice as long.
const SKEW_MAX: Duration = Duration::from_millis(200);
/// … and at most half of so many trains of theirs, which the receiver has to hold meanwhile: it has a
/// window of 4096, and memory of which large trains take much.
const SPAN_TRAINS: u32 = 3072;
const SPAN_LARGE_TRAINS: u32 = 192;

/// How far the newest train may be ahead of the oldest that is under way. `bytes`: of a train.
pub fn span_trains_max(bytes: usize) -> u32 {
    match bytes <= SMALL_CAPACITY {
        true => SPAN_TRAINS,
        false => SPAN_LARGE_TRAINS,
    }
}

/// How well a path may be used. Worse ones are used only where there is no better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    Open,
    /// Nobody knows yet whether it works, or it came back a moment ago.
    Held,
    /// Its trains were not acknowledged for too long.
    Silent,
    /// What went by another path, without a sequence, must arrive first.
    Joining,
    /// It is to leave.
    Retiring,
}

/// How fast a path is, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    Measured(u64),
    /// What it counts as until it is measured.
    Expected(u64),
}

impl Rate {
    fn bps(self) -> u64 {
        let (Rate::Measured(bps) | Rate::Expected(bps)) = self;
        bps
    }

    fn measured_bps(self) -> Option<u64> {
        match self {
            Rate::Measured(bps) => Some(bps),
            Rate::Expected(_) => None,
        }
    }
}

/// A path over which trains can go now.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Whatever the caller knows it by.
    pub at: usize,
    pub link: LinkId,
    pub standing: Standing,
    pub has_room: bool,
    pub rate: Rate,
    /// What has to leave, or arrive, before a train that is put there now.
    pub ahead_bytes: usize,
    /// The least round trip: all differ from each other as the ways there do, because acknowledgements
    /// come back by the same way.
    pub delay: Duration,
}

impl Candidate {
    /// When a train of `bytes` has arrived.
    pub fn finish(&self, bytes: usize) -> Duration {
        let bits = (self.ahead_bytes + bytes) as u64 * 8;
        let nanos = bits.saturating_mul(1_000_000_000) / self.rate.bps().max(1);
        let transfer = Duration::from_nanos(nanos);
        transfer + self.delay
    }
}

/// Paths that take part, and when a train has arrived by each.
pub type Part = ArrayVec<(Candidate, Duration), LINKS_MAX>;

/// How much later than by the fastest path a train may arrive.
fn skew_max(part: &Part, bytes: usize) -> Duration {
    let rates = part.iter().filter_map(|(c, _)| c.rate.measured_bps());
    let rate_bps: u64 = rates.sum();
    let bits = u64::from(span_trains_max(bytes) / 2) * bytes as u64 * 8;
    let held = Duration::from_nanos(bits.saturating_mul(1_000_000_000) / rate_bps.max(1));
    held.min(SKEW_MAX)
}

/// The paths that take part: of the best standing that there is, those that are not so slow that the
/// others would have to wait for them for too long. There are no more candidates than a line has links.
pub fn taking_part(
    candidates: impl Iterator<Item = Candidate>,
    balance: Balance,
    bytes: usize,
) -> Part {
    let with_finish = |candidate: Candidate| (candidate, candidate.finish(bytes));
    let mut part: Part = candidates.map(with_finish).take(LINKS_MAX).collect();
    let Some(best) = part.iter().map(|(c, _)| c.standing).min() else {
        return part;
    };
    part.retain(|(c, _)| c.standing == best);
    match balance {
        Balance::ActiveBackup => {
            let active = part.iter().map(|(c, _)| c.link).min();
            part.retain(|(c, _)| Some(c.link) == active);
        }
        Balance::EarliestFinish | Balance::RoundRobin => {
            let first = part.iter().map(|(_, finish)| *finish).min();
            let latest = first.unwrap_or_default() + skew_max(&part, bytes);
            part.retain(|(_, finish)| *finish <= latest);
        }
    }
    part
}

/// The path for the next train, if one that takes part has room. `last`: the link that was used last.
pub fn choose(part: &Part, balance: Balance, last: LinkId) -> Option<usize> {
    let with_room = part.iter().filter(|(c, _)| c.has_room);
    // In a circle, from the one after the last.
    let turn = |link: LinkId| link.0.wrapping_sub(last.0).wrapping_sub(1);
    let chosen = match balance {
        Balance::EarliestFinish => with_room.min_by_key(|(c, finish)| (*finish, turn(c.link))),
        Balance::RoundRobin | Balance::ActiveBackup => with_room.min_by_key(|(c, _)| turn(c.link)),
    };
    chosen.map(|(c, _)| c.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidate(at: usize, rate_mbit: u64, ahead_bytes: usize, delay_ms: u64) -> Candidate {
        Candidate {
            at,
            link: LinkId(at as u8),
            standing: Standing::Open,
            has_room: true,
            rate: Rate::Measured(rate_mbit * 1_000_000),
            ahead_bytes,
            delay: Duration::from_millis(delay_ms),
        }
    }

    fn chosen(candidates: &[Candidate], balance: Balance, last: u8) -> Option<usize> {
        let part = taking_part(candidates.iter().copied(), balance, 1500);
        choose(&part, balance, LinkId(last))
    }

    #[test]
    fn a_train_takes_the_link_by_which_it_arrives_first() {
        use Balance::EarliestFinish;
        let fast = candidate(0, 100, 12_500, 0);
        let slow = candidate(1, 20, 0, 0);
        assert_eq!(chosen(&[fast, slow], EarliestFinish, 0), Some(1));
        let far = candidate(1, 20, 0, 2);
        assert_eq!(chosen(&[fast, far], EarliestFinish, 0), Some(0));
        let full = Candidate {
            has_room: false,
            ..fast
        };
        assert_eq!(
            chosen(&[full, far], EarliestFinish, 0),
            Some(1),
            "or it waits"
        );
        let new = Candidate {
            rate: Rate::Expected(u64::MAX),
            ..far
        };
        let near = Candidate {
            delay: Duration::ZERO,
            ..new
        };
        assert_eq!(chosen(&[fast, near], EarliestFinish, 0), Some(1));
    }

    #[test]
    fn links_that_are_alike_take_turns() {
        for balance in [Balance::EarliestFinish, Balance::RoundRobin] {
            let alike = [0, 1, 2].map(|at| candidate(at, 100, 0, 1));
            let mut last = 0;
            let order = [(); 6].map(|()| {
                last = chosen(&alike, balance, last as u8).unwrap();
                last
            });
            assert_eq!(order, [1, 2, 0, 1, 2, 0], "{balance:?}");
        }
    }

    #[test]
    fn a_backup_waits_for_the_active_link_to_fail_and_not_for_it_to_be_full() {
        let mut links = [0, 1].map(|at| candidate(at, 100, 0, 1));
        assert_eq!(chosen(&links, Balance::ActiveBackup, 0), Some(0));
        links[0].has_room = false;
        assert_eq!(chosen(&links, Balance::ActiveBackup, 0), None);
        links[0].standing = Standing::Silent;
        assert_eq!(chosen(&links, Balance::ActiveBackup, 0), Some(1));
        assert_eq!(chosen(&links[..1], Balance::ActiveBackup, 0), None);
        links[0].has_room = true;
        assert_eq!(chosen(&links[..1], Balance::ActiveBackup, 0), Some(0));
    }

    #[test]
    fn a_link_that_all_others_would_have_to_wait_for_takes_no_part() {
        let fast = Candidate {
            has_room: false,
            ..candidate(0, 1000, 0, 0)
        };
        let late = candidate(1, 1000, 0, 300);
        assert_eq!(chosen(&[fast, late], Balance::EarliestFinish, 0), None);
        // 100 ms of 2 Gbit/s are more than a receiver can hold.
        let less = candidate(1, 1000, 0, 100);
        assert_eq!(chosen(&[fast, less], Balance::EarliestFinish, 0), None);
        let slow_fast = Candidate {
            has_room: false,
            ..candidate(0, 10, 0, 0)
        };
        let slow_late = candidate(1, 10, 0, 100);
        assert_eq!(
            chosen(&[slow_fast, slow_late], Balance::EarliestFinish, 0),
            Some(1)
        );
        assert_eq!(chosen(&[late], Balance::EarliestFinish, 0), Some(1));
    }

    proptest! {
        #[test]
        fn whoever_takes_part_and_has_room_is_not_kept_waiting(
            links in proptest::collection::vec(
                (0u8..4, any::<bool>(), proptest::option::of(1u64..1000), 0usize..100_000, 0u64..100),
                1..9
            ),
            last in 0u8..9,
            balance in 0u8..3,
        ) {
            use Standing::*;
            let balance = [Balance::EarliestFinish, Balance::RoundRobin, Balance::ActiveBackup][usize::from(balance)];
            let all: Vec<Candidate> = links
                .iter()
                .enumerate()
                .map(|(at, &(standing, has_room, rate, ahead, delay))| Candidate {
                    standing: [Open, Silent, Joining, Retiring][usize::from(standing)],
                    has_room,
                    rate: match rate {
                        Some(mbit) => Rate::Measured(mbit * 1_000_000),
                        None => Rate::Expected(u64::MAX),
                    },
                    ..candidate(at, 1, ahead, delay)
                })
                .collect();
            let part = taking_part(all.iter().copied(), balance, 1500);
            let part: Vec<Candidate> = part.into_iter().map(|(c, _)| c).collect();
            let best = all.iter().map(|c| c.standing).min();
            prop_assert!(!part.is_empty() && part.iter().all(|c| Some(c.standing) == best));
            let chosen = chosen(&all, balance, last);
            prop_assert_eq!(chosen.is_some(), part.iter().any(|c| c.has_room));
            if let Some(at) = chosen {
                prop_assert!(all[at].has_room && part.iter().any(|c| c.at == at));
                if balance == Balance::EarliestFinish {
                    let sooner = |c: &&Candidate| c.has_room && c.finish(1500) < all[at].finish(1500);
                    prop_assert_eq!(part.iter().filter(sooner).count(), 0);
                }
            }
        }
    }
}
