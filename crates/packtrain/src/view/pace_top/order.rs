//! Which rows are shown, and by what they stand in their order.

use std::cmp::Ordering;

use super::reading::StreamReading;
use crate::pace::tcp::document::PathDocument;

/// All but the names: the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamSort {
    Rate,
    Rtt,
    /// Those of the last interval before those of all the time.
    Retransmitted,
    Window,
    Name,
}

impl StreamSort {
    pub fn as_str(self) -> &'static str {
        match self {
            StreamSort::Rate => "rate",
            StreamSort::Rtt => "RTT",
            StreamSort::Retransmitted => "retrans",
            StreamSort::Window => "cwnd",
            StreamSort::Name => "name",
        }
    }

    pub fn next(self) -> StreamSort {
        match self {
            StreamSort::Rate => StreamSort::Rtt,
            StreamSort::Rtt => StreamSort::Retransmitted,
            StreamSort::Retransmitted => StreamSort::Window,
            StreamSort::Window => StreamSort::Name,
            StreamSort::Name => StreamSort::Rate,
        }
    }

    /// What is equal stands by its names, so that rows do not dance.
    pub fn sort(self, streams: &mut [StreamReading], is_turned: bool) {
        let name = |s: &StreamReading| (s.stream.remote.clone(), s.stream.local.clone());
        streams.sort_by(|a, b| {
            let order = match self {
                StreamSort::Rate => {
                    let rate = |s: &StreamReading| s.bits_per_s.unwrap_or(0.0);
                    rate(b).total_cmp(&rate(a))
                }
                StreamSort::Rtt => b.stream.srtt_us.cmp(&a.stream.srtt_us),
                StreamSort::Retransmitted => {
                    let sent =
                        |s: &StreamReading| (s.retransmitted_lately.unwrap_or(0), s.retransmitted);
                    sent(b).cmp(&sent(a))
                }
                StreamSort::Window => b.stream.cwnd.cmp(&a.stream.cwnd),
                StreamSort::Name => Ordering::Equal,
            };
            turned(order, is_turned && self != StreamSort::Name)
                .then_with(|| turned(name(a).cmp(&name(b)), is_turned && self == StreamSort::Name))
        });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSort {
    /// On which something is sent, then those that were full last.
    Full,
    Rate,
    Rtt,
    Name,
}

impl PathSort {
    pub fn as_str(self) -> &'static str {
        match self {
            PathSort::Full => "full",
            PathSort::Rate => "rate",
            PathSort::Rtt => "RTT",
            PathSort::Name => "name",
        }
    }

    pub fn next(self) -> PathSort {
        match self {
            PathSort::Full => PathSort::Rate,
            PathSort::Rate => PathSort::Rtt,
            PathSort::Rtt => PathSort::Name,
            PathSort::Name => PathSort::Full,
        }
    }

    /// What is equal stays as it is in documents: by address.
    pub fn sort(self, paths: &mut [PathDocument], is_turned: bool) {
        paths.sort_by(|a, b| {
            let order = match self {
                PathSort::Full => {
                    let age = |path: &PathDocument| path.age_seconds.unwrap_or(f64::INFINITY);
                    let sends = |path: &PathDocument| path.sending > 0;
                    (sends(b).cmp(&sends(a))).then(age(a).total_cmp(&age(b)))
                }
                PathSort::Rate => b.rate_bps.cmp(&a.rate_bps),
                PathSort::Rtt => b.rtt_min_us.cmp(&a.rtt_min_us),
                PathSort::Name => a.destination.cmp(&b.destination),
            };
            turned(order, is_turned)
        });
    }
}

fn turned(order: Ordering, is_turned: bool) -> Ordering {
    match is_turned {
        true => order.reverse(),
        false => order,
    }
}

/// Has all of the words, in whatever letters.
pub fn has_words(words: &str, row: &str) -> bool {
    let row = row.to_lowercase();
    let words = words.to_lowercase();
    words.split_whitespace().all(|word| row.contains(word))
}

/// What words are looked for in.
pub fn words_of(of: &StreamReading) -> String {
    let stream = &of.stream;
    let rule = stream.rule.as_deref().unwrap_or_default();
    format!("{} {} {} {rule}", stream.local, stream.remote, stream.phase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::pace_top::reading::Reading;
    use crate::view::pace_top::tests::{SECOND_NS, document, path, stream};

    /// Each is the first by one of them.
    fn streams() -> Vec<StreamReading> {
        let before = document(7, SECOND_NS, vec![stream(1, 0), stream(2, 0), stream(3, 0)]);
        let mut streams = vec![
            stream(3, 100),
            stream(1, 9000),
            stream(2, 500),
            stream(4, 1),
        ];
        streams[0].srtt_us = 999_000;
        streams[2].retransmitted = 2;
        streams[3].retransmitted = 80;
        streams[3].cwnd = 5000;
        let after = document(7, 2 * SECOND_NS, streams);
        Reading::new(Some(&before), &after, None).streams
    }

    fn ports(streams: &[StreamReading]) -> String {
        let last = |s: &StreamReading| s.stream.local.chars().last();
        streams.iter().filter_map(last).collect()
    }

    #[test]
    fn streams_stand_as_they_are_sorted_and_turned_round() {
        let mut sort = StreamSort::Rate;
        for (expected, turned) in [
            ("1234", "4321"),
            // Equal ones by name, also when the others are turned round.
            ("3124", "1243"),
            // What was sent again lately goes before what ever was.
            ("2413", "1342"),
            ("4123", "1234"),
            ("1234", "4321"),
        ] {
            let mut rows = streams();
            sort.sort(&mut rows, false);
            assert_eq!(ports(&rows), expected, "{sort:?}");
            sort.sort(&mut rows, true);
            assert_eq!(ports(&rows), turned, "{sort:?} turned");
            sort = sort.next();
        }
        assert_eq!(sort, StreamSort::Rate);
    }

    #[test]
    fn paths_stand_as_they_are_sorted_those_in_use_first() {
        let all = || {
            let mut paths = vec![
                path("10.0.0.1", Some(5e6 as u64), 9000, Some(100.0)),
                path("10.0.0.2", None, 70_000, None),
                path("10.0.0.3", Some(90e6 as u64), 20, Some(3.0)),
            ];
            paths[1].sending = 1;
            paths
        };
        let mut sort = PathSort::Full;
        for (expected, turned) in [
            ("231", "132"),
            ("312", "213"),
            ("213", "312"),
            ("123", "321"),
        ] {
            let seen = |is_turned| {
                let mut paths = all();
                sort.sort(&mut paths, is_turned);
                let last = |p: &PathDocument| p.destination.chars().last();
                paths.iter().filter_map(last).collect::<String>()
            };
            assert_eq!(
                (seen(false).as_str(), seen(true).as_str()),
                (expected, turned)
            );
            sort = sort.next();
        }
        assert_eq!(sort, PathSort::Full);
    }

    #[test]
    fn words_are_looked_for_in_any_order_and_in_whatever_letters() {
        let row = words_of(&streams()[0]);
        for words in ["", "  ", "free", "FREE 10.9.0.2", "10.9 10.9.0.1"] {
            assert!(has_words(words, &row), "{words:?} in {row}");
        }
        for words in ["spacing", "free 192.0.2.1"] {
            assert!(!has_words(words, &row), "{words:?} in {row}");
        }
    }
}
