//! How long a connection was in slow start, what it lost there and after it, and how soon it had carried so much: all of it as
//! the wires saw it.
//!
//! **Slow start** lasts from the connection's first segment until the earlier of these:
//! - the first segment that comes to the bottleneck again: its sender has taken one for lost, and goes on otherwise. All
//!   that was dropped until then was sent in slow start, the round trip between the first drop and this included. (BBR does not
//!   leave its own startup for a loss; of what it loses there the part from then on is counted as after it.)
//! - the beginning of the first round in which less than 1.25 times as much came to the bottleneck as in the round before:
//!   in slow start it is twice as much. A round lasts from a first segment until the acknowledgement of that can be back at the
//!   sender: its arrival at the receiver, and the way back. Where something was dropped before such a round was over, that may be why
//!   it is no larger, and what slow start has sent too much is lost in it: then it ends by the first of these two.
//!
//! **Spacing** lasts until four frames come from the sender's port one right behind the other, as fast as its
//! interface carries them, once the first flight is over, which may be a burst of ten: a timer that was late sends two, and
//! clusters have two frames in the round that follows spacing and four in the next, so this is never earlier than its
//! end. A sender that does not space answers with such rows from the second round on.

use serde::Serialize;

use super::queue::{Line, Occupancy};
use super::spacing::Errors;
use super::trace::{Segment, Trace};

/// Frames right behind each other.
const ROW_FRAMES: usize = 4;
/// Of what a frame takes on the sender's wire: closer than so many of it nothing is between two.
const BEHIND_EACH_OTHER: f64 = 1.25;
/// Preamble, FCS and interframe gap of Ethernet.
const FRAMING_BYTES: f64 = 24.0;
const GROWTH_LEAST: f64 = 1.25;

/// What is known of the way.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub line: Line,
    /// From the receiver to the sender, ns.
    pub back: u64,
    pub sender_bps: f64,
}

/// What ended slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    SentAgain,
    NoGrowth,
    /// It was all carried before.
    TheEnd,
}

/// Segments that the bottleneck dropped, by when they came to it. Those while spacing lasted are of slow start, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    pub while_spaced: u64,
    pub in_slow_start: u64,
    pub after: u64,
}

/// Of one connection that had the bottleneck for itself.
#[derive(Clone, Debug, Serialize)]
pub struct SlowStart {
    /// From the first segment, s.
    pub spaced_s: f64,
    pub lasted_s: f64,
    pub ended_by: EndedBy,
    pub lost: Lost,
    /// In the bottleneck's queue.
    pub peak_in_slow_start_bytes: u64,
    pub peak_bytes: u64,
    /// Payload that came to the bottleneck in the last round of slow start.
    pub last_round_bytes: u64,
    pub rounds: usize,
    /// By how much segments came to the receiver off the even row that each round that was spaced should have been.
    pub uneven: Option<Errors>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    from: u64,
    bytes: u64,
    /// Of its first byte.
    sequence: u32,
}

impl SlowStart {
    /// `None`: it carried nothing.
    pub fn of(trace: &Trace, path: Path) -> Option<SlowStart> {
        let begins = trace.entered.first()?.at;
        let data: Vec<Segment> = carrying(&trace.entered);
        let arrived: Vec<Segment> = carrying(&trace.arrived);
        let last = data.last()?.at;
        let rounds = rounds(&data, &arrived, path.back);
        let occupancy = Occupancy::of(trace, path.line);
        let again = first_sent_again(&data).unwrap_or(u64::MAX);
        let first_lost = occupancy.dropped.first().map(|segment| segment.at);
        let no_growth = end_of_growth(&rounds, first_lost).unwrap_or(u64::MAX);
        let (ends, ended_by) = match again.min(no_growth) {
            u64::MAX => (last + 1, EndedBy::TheEnd),
            at if at == no_growth => (at, EndedBy::NoGrowth),
            at => (at, EndedBy::SentAgain),
        };
        let second = rounds.get(1).map_or(u64::MAX, |round| round.from);
        let spaced_until = first_row(&data, second, path.sender_bps).unwrap_or(ends);
        let spaced_until = spaced_until.min(ends);
        let dropped_before = |until: u64| {
            let dropped = occupancy.dropped.iter();
            dropped.filter(|segment| segment.at < until).count() as u64
        };
        let of_slow_start = rounds.iter().take_while(|round| round.from < ends);
        let seconds = |until: u64| until.saturating_sub(begins) as f64 / 1e9;
        Some(SlowStart {
            spaced_s: seconds(spaced_until),
            lasted_s: seconds(ends),
            ended_by,
            lost: Lost {
                while_spaced: dropped_before(spaced_until),
                in_slow_start: dropped_before(ends),
                after: dropped_before(u64::MAX) - dropped_before(ends),
            },
            peak_in_slow_start_bytes: occupancy.peak_until(ends),
            peak_bytes: occupancy.peak_until(u64::MAX),
            last_round_bytes: of_slow_start.clone().last().map_or(0, |round| round.bytes),
            rounds: of_slow_start.count(),
            uneven: Errors::of(&off_even_rows(&rounds, &arrived, spaced_until)),
        })
    }
}

fn carrying(segments: &[Segment]) -> Vec<Segment> {
    let segments = segments.iter().copied();
    segments.filter(|segment| segment.payload > 0).collect()
}

fn first_sent_again(data: &[Segment]) -> Option<u64> {
    let mut newest = 0;
    for segment in data {
        if segment.end() <= newest {
            return Some(segment.at);
        }
        newest = segment.end();
    }
    None
}

/// Each with what came to the bottleneck in it.
fn rounds(data: &[Segment], arrived: &[Segment], back: u64) -> Vec<Round> {
    let mut rounds = Vec::new();
    let (mut data, mut arrived) = (data.iter().peekable(), arrived.iter().peekable());
    while let Some(first) = data.next() {
        while arrived.next_if(|came| came.end() < first.end()).is_some() {}
        let ends = arrived.peek().map_or(u64::MAX, |came| came.at + back);
        let mut bytes = u64::from(first.payload);
        while let Some(more) = data.next_if(|segment| segment.at < ends) {
            bytes += u64::from(more.payload);
        }
        rounds.push(Round {
            from: first.at,
            bytes,
            sequence: first.sequence,
        });
    }
    rounds
}

/// Of a round that was over before anything was lost. The last one may have been cut off by the end of all.
fn end_of_growth(rounds: &[Round], first_lost: Option<u64>) -> Option<u64> {
    let mut three = rounds.windows(3);
    let stopped = three.find(|of| (of[1].bytes as f64) < GROWTH_LEAST * of[0].bytes as f64)?;
    let is_over = stopped[2].from;
    let nothing_lost = first_lost.is_none_or(|lost| lost >= is_over);
    nothing_lost.then_some(stopped[1].from)
}

/// What was between each two segments of a round at the receiver, and what was on average in that round, µs: of the rounds
/// that were over before spacing was, without the first flight.
fn off_even_rows(rounds: &[Round], arrived: &[Segment], spaced_until: u64) -> Vec<(f64, f64)> {
    let mut intervals = Vec::new();
    let mut arrived = arrived.iter().peekable();
    let mut spaced = rounds.windows(2).skip(1);
    while let Some([round, next]) = spaced.next() {
        if next.from > spaced_until {
            break;
        }
        let mut times = Vec::new();
        while let Some(came) = arrived.next_if(|came| came.sequence < next.sequence) {
            if came.sequence >= round.sequence {
                times.push(came.at as f64 / 1e3);
            }
        }
        let (Some(first), Some(last)) = (times.first(), times.last()) else {
            continue;
        };
        let even = (last - first) / (times.len() - 1).max(1) as f64;
        intervals.extend(times.windows(2).map(|pair| (pair[1] - pair[0], even)));
    }
    intervals
}

/// When the first frame came of so many right behind each other, from a time on.
fn first_row(data: &[Segment], from: u64, sender_bps: f64) -> Option<u64> {
    let nanos = |segment: &Segment| {
        let bits = 8.0 * (f64::from(segment.frame_bytes) + FRAMING_BYTES);
        bits / sender_bps * 1e9
    };
    let is_behind = |pair: &[Segment]| {
        let apart = pair[1].at.saturating_sub(pair[0].at) as f64;
        apart <= BEHIND_EACH_OTHER * nanos(&pair[1])
    };
    let begin = data.partition_point(|segment| segment.at < from);
    let mut rows = data[begin..].windows(ROW_FRAMES);
    rows.find(|row| row.windows(2).all(is_behind))
        .map(|row| row[0].at)
}

/// When the first bytes of a connection were all at the receiver, however they came: seconds from its first segment, for each of
/// these amounts; not a number where they never were.
pub fn carried_after(trace: &Trace, amounts: &[u64]) -> Vec<f64> {
    let mut seconds = vec![f64::NAN; amounts.len()];
    let Some(begins) = trace.entered.first().map(|first| first.at) else {
        return seconds;
    };
    let mut whole = Whole::default();
    for segment in &trace.arrived {
        let before = whole.until;
        whole.take(u64::from(segment.sequence), segment.end());
        for (second, &amount) in seconds.iter_mut().zip(amounts) {
            if before < amount && whole.until >= amount {
                *second = segment.at.saturating_sub(begins) as f64 / 1e9;
            }
        }
    }
    seconds
}

/// How far a row of bytes is there without a gap.
#[derive(Debug, Default)]
struct Whole {
    until: u64,
    /// Beyond the first gap: beginnings, with ends.
    beyond: std::collections::BTreeMap<u64, u64>,
}

impl Whole {
    fn take(&mut self, from: u64, to: u64) {
        if from > self.until {
            let end = self.beyond.entry(from).or_default();
            *end = (*end).max(to);
            return;
        }
        self.until = self.until.max(to);
        while let Some(next) = self.beyond.first_entry() {
            if *next.key() > self.until {
                break;
            }
            self.until = self.until.max(next.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::tests::full;
    use super::*;

    const BACK_US: f64 = 99_000.0;
    const PATH: Path = Path {
        line: Line { delay: 99_000_000 },
        back: 99_000_000,
        sender_bps: 1e9,
    };
    /// Of a full frame at 1 Gbit/s, and of its packet at 599 Mbit/s, µs.
    const SENDER_US: f64 = 12.304;
    const LINE_US: f64 = 20.033;

    /// A sender on the wire: each round a number of frames so far apart, into a line with room for so many.
    struct Wires {
        trace: Trace,
        next: u64,
        now: f64,
        free: f64,
        leaves: Vec<f64>,
        room: usize,
    }

    impl Wires {
        fn new(room: usize) -> Wires {
            Wires {
                trace: Trace::default(),
                next: 0,
                now: 0.0,
                free: 0.0,
                leaves: Vec::new(),
                room,
            }
        }

        fn one(&mut self, number: u64, at: f64) {
            let segment = full(number, at);
            self.trace.entered.push(segment);
            let stand = self.leaves.iter().filter(|&&leaves| leaves > at).count();
            if stand >= self.room {
                self.trace.dropped.push(segment);
                return;
            }
            self.free = self.free.max(at) + LINE_US;
            self.leaves.push(self.free);
            self.trace.passed.push(full(number, self.free + BACK_US));
            self.trace
                .arrived
                .push(full(number, self.free + BACK_US + SENDER_US));
        }

        fn round(&mut self, frames: u64, apart: f64) {
            for i in 0..frames {
                self.one(self.next, self.now + i as f64 * apart);
                self.next += 1;
            }
            self.now += 2.0 * BACK_US + 100.0;
        }
    }

    #[test]
    fn a_burst_that_doubles_until_it_overflows_loses_in_slow_start() {
        let mut wires = Wires::new(20);
        for frames in [10, 20, 40, 80] {
            wires.round(frames, SENDER_US);
        }
        let lost = wires.trace.dropped.len() as u64;
        assert!(lost > 0);
        let again = (wires.trace.dropped[0].sequence / 1448).into();
        let at = wires.now;
        wires.one(again, at);
        wires.round(40, SENDER_US);
        let lost_after = wires.trace.dropped.len() as u64 - lost;
        let found = SlowStart::of(&wires.trace, PATH).unwrap();
        assert_eq!(found.ended_by, EndedBy::SentAgain);
        assert!((found.lasted_s - at / 1e6).abs() < 1e-6, "{found:?}");
        let expected = Lost {
            while_spaced: 0,
            in_slow_start: lost,
            after: lost_after,
        };
        let second = (2.0 * BACK_US + 100.0) / 1e6;
        assert_eq!(found.lost, expected);
        assert!((found.spaced_s - second).abs() < 1e-6, "{found:?}");
        assert_eq!(found.peak_in_slow_start_bytes, 20 * 1514);
        assert_eq!((found.rounds, found.last_round_bytes), (4, 80 * 1448));
    }

    #[test]
    fn a_sender_that_stops_to_grow_has_left_slow_start_though_it_lost_nothing() {
        let mut wires = Wires::new(1000);
        for frames in [10, 20, 40, 44, 44, 44] {
            wires.round(frames, SENDER_US);
        }
        let found = SlowStart::of(&wires.trace, PATH).unwrap();
        assert_eq!((found.ended_by, found.rounds), (EndedBy::NoGrowth, 3));
        let three = 3.0 * (2.0 * BACK_US + 100.0) / 1e6;
        assert!((found.lasted_s - three).abs() < 1e-6, "{found:?}");
        assert_eq!(found.lost, Lost::default());
    }

    /// What was sent too much is lost in the round in which the sender has stopped to grow, and not after it.
    #[test]
    fn a_round_that_is_no_larger_because_of_losses_is_still_of_slow_start() {
        let mut wires = Wires::new(20);
        for frames in [10, 20, 40, 80, 84] {
            wires.round(frames, SENDER_US);
        }
        let lost = wires.trace.dropped.len() as u64;
        let again = (wires.trace.dropped[0].sequence / 1448).into();
        let at = wires.now;
        wires.one(again, at);
        wires.round(40, LINE_US);
        let found = SlowStart::of(&wires.trace, PATH).unwrap();
        assert_eq!(found.ended_by, EndedBy::SentAgain);
        assert_eq!((found.lost.in_slow_start, found.lost.after), (lost, 0));
        assert_eq!(found.rounds, 5);
    }

    #[test]
    fn spacing_lasts_until_four_come_right_behind_each_other() {
        let mut wires = Wires::new(1000);
        let begins_at = |wires: &Wires| wires.now / 1e6;
        wires.round(10, SENDER_US);
        wires.round(20, 9_900.0);
        // A timer that was late: two together.
        let begins = wires.now;
        for i in 0..40 {
            let at = begins
                + if i == 1 {
                    SENDER_US
                } else {
                    f64::from(i) * 4950.0
                };
            wires.one(wires.next, at);
            wires.next += 1;
        }
        wires.now += 2.0 * BACK_US + 100.0;
        let ends = begins_at(&wires);
        wires.round(80, SENDER_US);
        wires.round(160, SENDER_US);
        let found = SlowStart::of(&wires.trace, PATH).unwrap();
        assert!((found.spaced_s - ends).abs() < 1e-6, "{found:?}");
        assert_eq!(found.ended_by, EndedBy::TheEnd);
        // 19 + 39 intervals, of which the two about the one that was late were not even.
        let uneven = found.uneven.unwrap();
        assert_eq!((uneven.intervals, uneven.p50_us.round()), (58, 0.0));
        assert!(uneven.p99_us > 4000.0, "{uneven:?}");
    }

    #[test]
    fn an_amount_is_carried_when_the_last_gap_before_it_is_filled() {
        let mut trace = Trace::default();
        trace.entered.push(full(0, 1000.0));
        for (number, at) in [
            (0, 5000.0),
            (2, 6000.0),
            (3, 7000.0),
            (1, 9000.0),
            (5, 9500.0),
        ] {
            trace.arrived.push(full(number, at));
        }
        let after = carried_after(&trace, &[1000, 1448, 1449, 4 * 1448, 4 * 1448 + 1]);
        assert_eq!(after[..4], [0.004, 0.004, 0.008, 0.008]);
        assert!(after[4].is_nan());
        assert!(carried_after(&Trace::default(), &[1])[0].is_nan());
    }

    #[test]
    fn a_connection_that_carried_nothing_has_no_slow_start() {
        assert!(SlowStart::of(&Trace::default(), PATH).is_none());
    }
}
