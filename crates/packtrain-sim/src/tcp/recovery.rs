//! What goes next while a loss is repaired, and otherwise (RFC 6675, sections 4 and 5; RFC 5681, 3.1).
//!
//! A loss that is found while the window comes down for a mark begins a recovery of its own length, though no reduction of its
//! own; Linux ends both together.

use super::scoreboard::{Part, Scoreboard};

/// A window of loss that is being repaired; it ends when everything is acknowledged that was sent before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The window is halved. `first`: the first of what is lost goes again whatever the window says.
    Fast { until: u64, first: bool },
    /// Slow start from one segment.
    Timeout { until: u64 },
    /// Nothing is lost, but the window is cut for a mark, and for a loss that is found now it is not cut again.
    Marked { until: u64 },
}

impl Recovery {
    pub fn until(self) -> u64 {
        match self {
            Recovery::Fast { until, .. }
            | Recovery::Timeout { until }
            | Recovery::Marked { until } => until,
        }
    }
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// New data, of this length.
    New(u32),
    Again(Part),
    Rescue(Part),
}

/// NextSeg, and before it whether the window has room for a segment. `new`: how many bytes of new data could go in one.
pub fn choose(
    recovery: Option<Recovery>,
    board: &mut Scoreboard,
    has_room: bool,
    new: Option<u32>,
) -> Option<Choice> {
    let new = new.map(Choice::New);
    match recovery {
        Some(Recovery::Fast { first, .. }) if !has_room && !first => None,
        Some(Recovery::Fast { until, .. }) => {
            let lost = board.lost(until).map(Choice::Again);
            if !has_room {
                return lost;
            }
            let next = lost.or(new);
            let next = next.or_else(|| board.missing(until).map(Choice::Again));
            next.or_else(|| board.rescue().map(Choice::Rescue))
        }
        _ if !has_room => None,
        Some(Recovery::Timeout { until }) => board.lost(until).map(Choice::Again).or(new),
        Some(Recovery::Marked { .. }) | None => new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::time::Instant;

    const NOW: Instant = Instant::ZERO;

    /// Ten segments of ten bytes, of which these came, and the first did not.
    fn board(came: &[u64]) -> Scoreboard {
        let mut board = Scoreboard::new(10);
        (0..10).for_each(|_| {
            board.send_new(10, NOW);
        });
        let sacks: Vec<_> = came.iter().map(|n| n * 10..n * 10 + 10).collect();
        board.acknowledge(0, &sacks, NOW);
        board
    }

    fn part(n: u64) -> Part {
        Part {
            offset: n * 10,
            len: 10,
        }
    }

    #[test]
    fn what_is_lost_goes_before_what_is_new_and_what_may_be_lost_after_it() {
        let mut board = board(&[2, 4, 5, 7]);
        board.begin_recovery();
        let fast = Some(Recovery::Fast {
            until: 100,
            first: false,
        });
        let mut next = |new| {
            let choice = choose(fast, &mut board, true, new);
            match choice {
                Some(Choice::Again(part)) => board.resend(part, NOW),
                Some(Choice::Rescue(part)) => board.resend_rescue(part, NOW),
                Some(Choice::New(_)) | None => {}
            }
            choice
        };
        // Behind 0, 1 and 3 came three; behind 6 one; behind 8 and 9 none.
        assert_eq!(next(Some(10)), Some(Choice::Again(part(0))));
        assert_eq!(next(Some(10)), Some(Choice::Again(part(1))));
        assert_eq!(next(Some(10)), Some(Choice::Again(part(3))));
        assert_eq!(next(Some(10)), Some(Choice::New(10)));
        assert_eq!(next(None), Some(Choice::Again(part(6))));
        assert_eq!(next(None), Some(Choice::Rescue(part(9))));
        assert_eq!(next(None), None);
    }

    #[test]
    fn without_room_only_the_first_of_a_recovery_goes() {
        let mut board = board(&[1, 2, 3]);
        let fast = |first| Some(Recovery::Fast { until: 100, first });
        let again = Some(Choice::Again(part(0)));
        assert_eq!(choose(fast(true), &mut board, false, Some(10)), again);
        assert_eq!(choose(fast(false), &mut board, false, Some(10)), None);
        assert_eq!(choose(None, &mut board, false, Some(10)), None);
        let timeout = Some(Recovery::Timeout { until: 100 });
        assert_eq!(choose(timeout, &mut board, false, Some(10)), None);
        // It has come before its turn: nothing new goes in its place.
        board.begin_recovery();
        board.acknowledge(40, &[], NOW);
        assert_eq!(choose(fast(true), &mut board, false, Some(10)), None);
    }

    #[test]
    fn after_a_timeout_all_that_is_missing_goes_in_order_and_then_what_is_new() {
        let mut board = board(&[1, 2]);
        board.lose_all();
        let timeout = Some(Recovery::Timeout { until: 100 });
        for n in [0, 3, 4, 5, 6, 7, 8, 9] {
            let choice = choose(timeout, &mut board, true, Some(10));
            assert_eq!(choice, Some(Choice::Again(part(n))));
            board.resend(part(n), NOW);
        }
        let choice = choose(timeout, &mut board, true, Some(10));
        assert_eq!(choice, Some(Choice::New(10)));
        assert_eq!(choose(timeout, &mut board, true, None), None);
    }
}
