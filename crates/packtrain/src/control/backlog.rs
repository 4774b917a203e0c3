//! The last events of a line, each as the line of JSON that a reader gets; and from where a reader wants them.
//!
//! Readers keep nothing but a place in it. So it is all the memory that they need, however many they are and however
//! slowly they read: who falls behind it is told how many events are forgotten, and goes on with those that are kept.

use std::collections::VecDeque;

use crate::events::{Record, Stamp, What};

/// So many are kept.
pub const EVENTS_KEPT_MAX: usize = 1024;

#[derive(Debug)]
struct Kept {
    at: Stamp,
    line: Box<[u8]>,
}

#[derive(Debug)]
pub(super) struct Backlog {
    kept: VecDeque<Kept>,
    /// Of the next event.
    next: u64,
}

/// The first event that a reader wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// All that there were.
    First,
    /// So many before the next.
    Last(u32),
    /// What happened then, or later.
    Since { unix_ns: u64 },
}

fn line_of(record: &Record) -> Box<[u8]> {
    let mut line = serde_json::to_vec(record).expect("a record has no key but strings");
    line.push(b'\n');
    line.into()
}

impl Backlog {
    pub(super) fn new() -> Backlog {
        Backlog {
            kept: VecDeque::new(),
            next: 1,
        }
    }

    pub(super) fn push(&mut self, what: What, at: Stamp) {
        if self.kept.len() == EVENTS_KEPT_MAX {
            self.kept.pop_front();
        }
        let line = line_of(&Record::new(self.next, at, what));
        self.kept.push_back(Kept { at, line });
        self.next += 1;
    }

    /// Sequence of the next event.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Sequence of the oldest that is kept; that of the next where none is.
    pub(super) fn oldest(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.oldest() - 1
    }

    /// Where a reader begins. Nobody knows when those were that are forgotten: with all that are kept it wants them, too.
    pub(super) fn place(&self, from: From) -> u64 {
        match from {
            From::First => 1,
            From::Last(count) => self.next.saturating_sub(count.into()).max(1),
            From::Since { unix_ns } => {
                let before = self.kept.iter().position(|kept| kept.at.unix_ns >= unix_ns);
                match before {
                    Some(0) => 1,
                    Some(at) => self.oldest() + at as u64,
                    None => self.next,
                }
            }
        }
    }

    /// More of it from `place` on, which moves on, up to the event `until`: about `bytes_max`, and whole lines.
    pub(super) fn read(&self, place: &mut u64, until: u64, bytes_max: usize, out: &mut Vec<u8>) {
        let oldest = self.oldest();
        let until = until.min(self.next);
        if *place < oldest && *place < until {
            let resumes_at = oldest.min(until);
            let count = resumes_at - *place;
            let at = self.kept.front().map(|kept| kept.at).unwrap_or_default();
            out.extend(line_of(&Record::new(
                resumes_at - 1,
                at,
                What::Lost { count },
            )));
            *place = resumes_at;
        }
        while *place < until && out.len() < bytes_max {
            out.extend(&self.kept[(*place - oldest) as usize].line);
            *place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn backlog(events: u64) -> Backlog {
        let mut backlog = Backlog::new();
        for n in 1..=events {
            let what = What::Home {
                link: format!("eth{n}"),
            };
            let at = Stamp {
                unix_ns: n * 1_000_000_000,
                monotonic_ns: n,
            };
            backlog.push(what, at);
        }
        backlog
    }

    fn records(bytes: &[u8]) -> Vec<Record> {
        let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    fn read_from(backlog: &Backlog, from: From) -> Vec<Record> {
        let (mut place, mut out) = (backlog.place(from), Vec::new());
        backlog.read(&mut place, backlog.next(), usize::MAX, &mut out);
        assert_eq!(place, backlog.next());
        records(&out)
    }

    fn sequences(records: &[Record]) -> Vec<u64> {
        records.iter().map(|record| record.sequence).collect()
    }

    #[test]
    fn a_reader_gets_all_the_last_or_those_since_a_time() {
        let backlog = backlog(10);
        assert_eq!(
            sequences(&read_from(&backlog, From::First)),
            (1..=10).collect::<Vec<_>>()
        );
        assert_eq!(sequences(&read_from(&backlog, From::Last(3))), [8, 9, 10]);
        assert_eq!(sequences(&read_from(&backlog, From::Last(0))), [0; 0]);
        assert_eq!(read_from(&backlog, From::Last(99)).len(), 10);
        let since = |unix_ns| sequences(&read_from(&backlog, From::Since { unix_ns }));
        assert_eq!(since(9_000_000_000), [9, 10]);
        assert_eq!(since(8_000_000_001), [9, 10]);
        assert_eq!(since(0).len(), 10);
        assert_eq!(since(10_000_000_001), [0; 0]);
        assert_eq!(read_from(&Backlog::new(), From::First), []);
    }

    #[test]
    fn those_that_are_forgotten_are_counted_to_whom_they_matter() {
        let kept = EVENTS_KEPT_MAX as u64;
        let backlog = backlog(kept + 76);
        assert_eq!((backlog.forgotten(), backlog.oldest()), (76, 77));
        let all = read_from(&backlog, From::First);
        assert_eq!(all.len() as u64, 1 + kept);
        assert_eq!(
            (all[0].sequence, &all[0].what),
            (76, &What::Lost { count: 76 })
        );
        assert_eq!(all[1].sequence, 77);
        assert_eq!(all[0].time, all[1].time);
        assert_eq!(read_from(&backlog, From::Last(5)).len(), 5);
        assert_eq!(
            read_from(
                &backlog,
                From::Since {
                    unix_ns: 200_000_000_000
                }
            )[0]
            .sequence,
            200
        );
        let since = read_from(
            &backlog,
            From::Since {
                unix_ns: 50_000_000_000,
            },
        );
        assert!(
            matches!(since[0].what, What::Lost { .. }),
            "it may have been one of them"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// However little is read at a time, and however much happens between: each event is read once and in order,
        /// or is counted among those that are lost.
        #[test]
        fn what_is_read_and_what_is_lost_are_all(
            steps in proptest::collection::vec((0u64..700, 1usize..60_000), 1..12)
        ) {
            let mut backlog = Backlog::new();
            let (mut place, mut n) = (1, 0);
            let mut seen = 0;
            for (more, bytes_max) in steps {
                for _ in 0..more {
                    n += 1;
                    backlog.push(What::Home { link: "eth1".into() }, Stamp { unix_ns: n, monotonic_ns: n });
                }
                let mut out = Vec::new();
                backlog.read(&mut place, u64::MAX, bytes_max, &mut out);
                prop_assert!(out.len() < bytes_max + 512);
                for record in records(&out) {
                    match record.what {
                        What::Lost { count } => seen += count,
                        _ => seen += 1,
                    }
                    prop_assert_eq!(record.sequence, seen);
                }
                prop_assert_eq!(place, seen + 1);
            }
        }
    }
}
