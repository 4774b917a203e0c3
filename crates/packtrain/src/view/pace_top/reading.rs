//! What two documents of the pacer of TCP say of the time between them.

use std::collections::HashMap;
use std::time::Duration;

use crate::pace::tcp::document::{ByPhase, CountersDocument, StreamDocument, TcpDocument};
use crate::view::rate::{self, per_second};

/// The time between, if `later` is of the same process: of one that was started anew nothing can be said.
pub fn time_between(before: &TcpDocument, later: &TcpDocument) -> Option<Duration> {
    let is_the_same =
        before.pid == later.pid && before.counters.slow_starts <= later.counters.slow_starts;
    is_the_same
        .then(|| rate::between(before.time_ns, later.time_ns))
        .flatten()
}

#[derive(Clone, Debug, PartialEq)]
pub struct StreamReading {
    pub stream: StreamDocument,
    /// Bits of segments without headers that were acknowledged, a second; `None`: not known, or not any more.
    pub bits_per_s: Option<f64>,
    /// Segments, since the look before.
    pub retransmitted_lately: Option<u32>,
    /// Segments, since it began or since a person has set totals to nothing.
    pub retransmitted: u32,
    pub lost: ByPhase,
}

/// Of all streams since the pacer came, or since a person has set them to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub slow_starts: u64,
    /// Those of them whose path was known.
    pub slow_starts_known: u64,
    pub ended_at_path: u64,
    pub ended_by_delay: u64,
    pub ended_by_loss: u64,
    pub lost: ByPhase,
}

impl Totals {
    fn of(counters: &CountersDocument) -> Totals {
        Totals {
            slow_starts: counters.slow_starts,
            slow_starts_known: counters.slow_starts_known,
            ended_at_path: counters.ended_at_path,
            ended_by_delay: counters.ended_by_delay,
            ended_by_loss: counters.cut.spacing + counters.cut.clusters,
            lost: counters.lost,
        }
    }

    fn since(&self, zero: &Totals) -> Totals {
        let since = |of: fn(&Totals) -> u64| of(self).saturating_sub(of(zero));
        Totals {
            slow_starts: since(|t| t.slow_starts),
            slow_starts_known: since(|t| t.slow_starts_known),
            ended_at_path: since(|t| t.ended_at_path),
            ended_by_delay: since(|t| t.ended_by_delay),
            ended_by_loss: since(|t| t.ended_by_loss),
            lost: lost_since(self.lost, zero.lost),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The later one.
    pub document: TcpDocument,
    /// `None`: there is none before it.
    pub time: Option<Duration>,
    pub streams: Vec<StreamReading>,
    /// Streams that are in it now.
    pub phases: ByPhase,
    /// Of all streams that are in both documents: what one carried that ended in between is not told any more. `None`: all of
    /// them are new, or no time is known.
    pub bits_per_s: Option<f64>,
    pub retransmitted_lately: Option<u64>,
    pub totals: Totals,
}

impl Reading {
    /// `zero`: what totals count from.
    pub fn new(
        before: Option<&TcpDocument>,
        after: &TcpDocument,
        zero: Option<&TcpDocument>,
    ) -> Reading {
        let time = before.and_then(|before| time_between(before, after));
        let streams_before = before.map(by_ends).unwrap_or_default();
        let streams_zero = zero.map(by_ends).unwrap_or_default();
        let is_one = by_ends(after);
        let streams: Vec<StreamReading> = after
            .streams
            .iter()
            .map(|stream| {
                let ends = ends_of(stream);
                // Which of several is which nobody knows.
                let is_known = is_one.get(&ends).is_some_and(Option::is_some);
                let earlier = |documents: &ByEnds<'_>| {
                    let found = documents.get(&ends).copied().flatten();
                    found
                        .filter(|earlier| is_known && goes_on(earlier, stream))
                        .cloned()
                };
                let zero = earlier(&streams_zero);
                stream_reading(stream, time.zip(earlier(&streams_before)), zero.as_ref())
            })
            .collect();
        let totals = Totals::of(&after.counters);
        let zero = zero.map(|zero| Totals::of(&zero.counters));
        let is_known = streams.is_empty() || streams.iter().any(|s| s.bits_per_s.is_some());
        // Of none it is 0, and not -0 as floats are added up.
        let bits = streams.iter().filter_map(|s| s.bits_per_s);
        let bits = bits.fold(0.0, |sum, bits| sum + bits);
        let lately = streams.iter().filter_map(|s| s.retransmitted_lately);
        Reading {
            time,
            phases: phases(&after.streams),
            bits_per_s: time.filter(|_| is_known).map(|_| bits),
            retransmitted_lately: time.map(|_| lately.map(u64::from).sum()),
            totals: totals.since(&zero.unwrap_or_default()),
            streams,
            document: after.clone(),
        }
    }

    /// It has ended: what was counted stays, and nobody tells what passes.
    pub fn stand_still(&mut self) {
        self.time = None;
        self.bits_per_s = None;
        self.retransmitted_lately = None;
        for stream in &mut self.streams {
            stream.bits_per_s = None;
            stream.retransmitted_lately = None;
        }
    }

    /// Totals are nothing now.
    pub fn reset(&mut self) {
        self.totals = Totals::default();
        for stream in &mut self.streams {
            stream.retransmitted = 0;
            stream.lost = ByPhase::default();
        }
    }
}

type Ends<'a> = (&'a str, &'a str);
/// `None`: several have these ends, in several network namespaces.
type ByEnds<'a> = HashMap<Ends<'a>, Option<&'a StreamDocument>>;

fn ends_of(stream: &StreamDocument) -> Ends<'_> {
    (&stream.local, &stream.remote)
}

fn by_ends(document: &TcpDocument) -> ByEnds<'_> {
    let mut found = ByEnds::with_capacity(document.streams.len());
    for stream in &document.streams {
        found
            .entry(ends_of(stream))
            .and_modify(|one| *one = None)
            .or_insert(Some(stream));
    }
    found
}

/// Otherwise it is another one between the same ends.
fn goes_on(before: &StreamDocument, after: &StreamDocument) -> bool {
    before.bytes_acked <= after.bytes_acked && before.retransmitted <= after.retransmitted
}

fn stream_reading(
    stream: &StreamDocument,
    before: Option<(Duration, StreamDocument)>,
    zero: Option<&StreamDocument>,
) -> StreamReading {
    let before = before.as_ref();
    let bytes_per_s =
        before.and_then(|(time, before)| per_second(before.bytes_acked, stream.bytes_acked, *time));
    StreamReading {
        bits_per_s: bytes_per_s.map(|bytes| bytes * 8.0),
        retransmitted_lately: before.map(|(_, b)| stream.retransmitted - b.retransmitted),
        retransmitted: stream.retransmitted - zero.map_or(0, |zero| zero.retransmitted),
        lost: lost_since(stream.lost, zero.map(|zero| zero.lost).unwrap_or_default()),
        stream: stream.clone(),
    }
}

fn lost_since(now: ByPhase, zero: ByPhase) -> ByPhase {
    ByPhase {
        spacing: now.spacing.saturating_sub(zero.spacing),
        clusters: now.clusters.saturating_sub(zero.clusters),
        free: now.free.saturating_sub(zero.free),
    }
}

fn phases(streams: &[StreamDocument]) -> ByPhase {
    let count = |phase: &str| streams.iter().filter(|s| s.phase == phase).count() as u64;
    ByPhase {
        spacing: count("spacing"),
        clusters: count("clusters"),
        free: count("free"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::pace_top::tests::{SECOND_NS, document, stream};

    fn rates(reading: &Reading) -> Vec<Option<f64>> {
        reading.streams.iter().map(|s| s.bits_per_s).collect()
    }

    #[test]
    fn rates_are_by_what_was_acknowledged_between_two_documents_and_not_the_kernels() {
        let before = document(7, SECOND_NS, vec![stream(1, 1000), stream(2, 0)]);
        let mut later = stream(1, 126_000);
        later.retransmitted = 3;
        let after = document(7, SECOND_NS + SECOND_NS / 2, vec![later, stream(2, 0)]);
        let reading = Reading::new(Some(&before), &after, None);
        assert_eq!(reading.time, Some(Duration::from_millis(500)));
        assert_eq!(rates(&reading), [Some(2e6), Some(0.0)]);
        assert_eq!(reading.bits_per_s, Some(2e6));
        let lately: Vec<_> = reading
            .streams
            .iter()
            .map(|s| s.retransmitted_lately)
            .collect();
        assert_eq!(lately, [Some(3), Some(0)]);
        assert_eq!(reading.retransmitted_lately, Some(3));
    }

    #[test]
    fn a_new_stream_has_its_first_rate_at_its_second_look_and_one_that_ended_is_gone() {
        let documents = [
            document(7, SECOND_NS, vec![stream(1, 0)]),
            document(7, 2 * SECOND_NS, vec![stream(2, 5000), stream(1, 1000)]),
            document(7, 3 * SECOND_NS, vec![stream(2, 6000)]),
        ];
        let reading = Reading::new(None, &documents[0], None);
        assert_eq!((reading.bits_per_s, rates(&reading)), (None, vec![None]));
        let reading = Reading::new(Some(&documents[0]), &documents[1], None);
        assert_eq!(rates(&reading), [None, Some(8000.0)]);
        assert_eq!(reading.streams[0].retransmitted_lately, None);
        assert_eq!(reading.bits_per_s, Some(8000.0));
        let reading = Reading::new(Some(&documents[1]), &documents[2], None);
        assert_eq!(rates(&reading), [Some(8000.0)]);
        let only_new = document(7, 4 * SECOND_NS, vec![stream(3, 6000)]);
        assert_eq!(
            Reading::new(Some(&documents[2]), &only_new, None).bits_per_s,
            None
        );
        let none = document(7, 5 * SECOND_NS, Vec::new());
        let sum = Reading::new(Some(&only_new), &none, None).bits_per_s;
        assert!(sum.is_some_and(|sum| sum == 0.0 && sum.is_sign_positive()));
        assert_eq!(reading.streams[0].stream.remote, stream(2, 0).remote);
    }

    #[test]
    fn another_stream_between_the_same_ends_has_no_rate_and_neither_have_two_at_once() {
        let before = document(7, SECOND_NS, vec![stream(1, 9000), stream(2, 0)]);
        let mut with_less = stream(2, 10_000);
        let after = |more: Vec<_>| document(7, 2 * SECOND_NS, more);
        let reading = Reading::new(Some(&before), &after(vec![stream(1, 8999)]), None);
        assert_eq!(rates(&reading), [None]);
        // The same ends, in two network namespaces.
        let twice = after(vec![stream(1, 9500), stream(1, 9600)]);
        let reading = Reading::new(Some(&before), &twice, None);
        assert_eq!(rates(&reading), [None, None]);
        let reading = Reading::new(
            Some(&twice),
            &document(7, 3 * SECOND_NS, vec![stream(1, 9700)]),
            None,
        );
        assert_eq!(rates(&reading), [None]);
        // It has been sent again less than before: it is another one.
        let mut resent = stream(2, 0);
        resent.retransmitted = 5;
        with_less.retransmitted = 4;
        let before = document(7, SECOND_NS, vec![resent]);
        let reading = Reading::new(Some(&before), &after(vec![with_less]), None);
        assert_eq!(rates(&reading), [None]);
        assert_eq!(reading.streams[0].retransmitted, 4);
    }

    #[test]
    fn of_another_process_or_without_time_no_rate_is_told() {
        let after = document(8, 3 * SECOND_NS, vec![stream(1, 5000)]);
        let mut with_more = document(8, SECOND_NS, vec![stream(1, 0)]);
        with_more.counters.slow_starts += 1;
        for before in [
            None,
            // Another process, whatever it has counted.
            Some(document(7, SECOND_NS, vec![stream(1, 0)])),
            // The same number again, which counts from the start.
            Some(with_more),
            // No time has passed, or it went back.
            Some(document(8, 3 * SECOND_NS, vec![stream(1, 0)])),
            Some(document(8, 4 * SECOND_NS, vec![stream(1, 0)])),
        ] {
            let reading = Reading::new(before.as_ref(), &after, None);
            assert_eq!(reading.time, None, "{before:?}");
            assert_eq!((reading.bits_per_s, rates(&reading)), (None, vec![None]));
        }
    }

    #[test]
    fn totals_and_what_was_lost_count_from_where_they_were_set_to_nothing() {
        let at = |seconds: u64| {
            let mut one = stream(1, seconds * 1000);
            one.retransmitted = 10 * seconds as u32;
            one.lost.clusters = 4 * seconds;
            let mut document = document(7, seconds * SECOND_NS, vec![one]);
            document.counters.slow_starts = 2 * seconds;
            document.counters.cut.spacing = seconds;
            document.counters.cut.clusters = 2 * seconds;
            document.counters.lost.free = 5 * seconds;
            document
        };
        let reading = Reading::new(Some(&at(2)), &at(3), None);
        assert_eq!(reading.totals.slow_starts, 6);
        assert_eq!(reading.totals.ended_by_loss, 9);
        assert_eq!(reading.streams[0].retransmitted, 30);
        let mut reading = Reading::new(Some(&at(2)), &at(3), Some(&at(1)));
        assert_eq!(reading.totals.slow_starts, 4);
        assert_eq!(reading.totals.lost.free, 10);
        assert_eq!(reading.streams[0].retransmitted, 20);
        assert_eq!(reading.streams[0].lost.clusters, 8);
        // Of the last interval it is what it was.
        assert_eq!(reading.streams[0].retransmitted_lately, Some(10));
        reading.reset();
        assert_eq!(reading.totals, Totals::default());
        assert_eq!(reading.streams[0].retransmitted, 0);
    }

    #[test]
    fn streams_are_counted_by_what_they_do_now_and_have_no_rates_when_nobody_tells() {
        let mut streams: Vec<_> = (1..=4).map(|n| stream(n, 0)).collect();
        for (stream, phase) in streams.iter_mut().zip(["spacing", "spacing", "clusters"]) {
            stream.phase = phase.into();
        }
        let before = document(7, SECOND_NS, streams.clone());
        let after = document(7, 2 * SECOND_NS, streams);
        let mut reading = Reading::new(Some(&before), &after, None);
        let expected = ByPhase {
            spacing: 2,
            clusters: 1,
            free: 1,
        };
        assert_eq!(reading.phases, expected);
        assert_eq!(reading.bits_per_s, Some(0.0));
        reading.stand_still();
        assert_eq!(reading.phases, expected);
        assert_eq!((reading.time, reading.bits_per_s), (None, None));
        assert!(reading.streams.iter().all(|s| s.bits_per_s.is_none()));
    }
}
