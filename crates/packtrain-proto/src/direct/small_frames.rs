//! Many small frames: whether they are to be packed, or to go past the engine.
//!
//! Packing saves the wire frames, and costs the processor copies. Where the wire is what is short, or a card and its
//! driver, it pays; where it is the processor that both hosts of a test share, or one that is slow, the engine carries
//! fewer of them than would go past it. It shows when there are more than the engine can take, so that it leaves frames
//! unread though none of those that it has waits for a link. Then what it takes is compared with what went directly a
//! moment before, while they were many; where that is not clearly less, or not known, they are given back, to find out.
//! Given back, many small frames are no reason to close the direct path. What was found holds for a while.

use crate::stats::SmallFrameRates;
use crate::time::{Duration, Instant};
use crate::wire::packet::Packet;

/// Fewer a second than this are not worth packing. Half of what closes the direct path
/// (`bpf/direct.bpf.c`), so that it does not come and go.
const MANY_PER_SECOND: u64 = 40_000;
const BYTES_MAX: usize = 300;

/// A rate over less than this says nothing.
const MEASURE: Duration = Duration::from_millis(100);
/// An engine that was not seen full for longer than this was not in between. Where programs move between processors, one that
/// is at its limit reads all now and then.
const FULL_GAP_MAX: Duration = Duration::from_millis(250);
/// What went directly is of the same load as what the engine is full of now, if it was not longer ago.
const SAME_LOAD: Duration = Duration::from_millis(500);
/// So many samples in a row of what goes directly show what that path carries, in a row when they are not further apart
/// than this; and that it is less than what the engine does, when it is less than nine tenths.
const SAMPLES: u32 = 3;
const SAMPLE_GAP_MAX: Duration = Duration::from_millis(150);
/// How long it holds who carries more. That it is the direct path, twice as long each time that it is found again soon
/// after: to try the engine again may leave flows with it that never rest. The other way it costs next to nothing.
const TERM_MIN: Duration = Duration::from_secs(64);
const TERM_MAX: Duration = Duration::from_secs(1024);

/// Those that the engine takes, those that go directly, and who is to have them.
#[derive(Debug, Default)]
pub struct SmallFrames {
    /// Those that the engine has taken, while they were counted.
    taken: u64,
    looked: Count,
    full: Option<Full>,
    /// What the engine took a second when it was full of them last.
    packed_per_second: Option<u64>,
    /// How many went directly a second, while they were many, and when.
    direct: Option<(u64, Instant)>,
    found: Option<Found>,
    trial: Option<Trial>,
    /// How often they were given back.
    pub times_given_back: u64,
}

/// How many the engine had taken then.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    taken: u64,
    at: Instant,
}

impl Count {
    /// A second, since then.
    fn rate(self, taken: u64, now: Instant) -> u64 {
        let elapsed_us = now.since(self.at).as_micros().max(1) as u64;
        (taken - self.taken) * 1_000_000 / elapsed_us
    }
}

/// The engine is full, and what it takes is measured.
#[derive(Clone, Copy, Debug)]
struct Full {
    since: Count,
    seen_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Engine,
    Direct,
}

/// Who carries more small frames.
#[derive(Clone, Copy, Debug)]
struct Found {
    carrier: Carrier,
    until: Instant,
    /// How long.
    term: Duration,
    is_over: bool,
}

impl Found {
    fn new(carrier: Carrier, term: Duration, now: Instant) -> Found {
        Found {
            carrier,
            until: now + term,
            term,
            is_over: false,
        }
    }

    fn engine(now: Instant) -> Found {
        Found::new(Carrier::Engine, TERM_MIN, now)
    }

    fn direct(before: Option<Found>, now: Instant) -> Found {
        let is_soon_after = |before: &Found| {
            before.carrier == Carrier::Direct && now.since(before.until) < before.term
        };
        let term = before
            .filter(is_soon_after)
            .map_or(TERM_MIN, |before| (before.term * 2).min(TERM_MAX));
        Found::new(Carrier::Direct, term, now)
    }
}

/// They were given back, and it is not known yet whether rightly.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// What the engine took, a second, when it was full.
    packed_per_second: u64,
    /// What all samples say together, and when the last one was.
    sum_per_second: u64,
    samples: u32,
    sampled: Count,
}

impl SmallFrames {
    pub fn begin(&mut self, now: Instant) {
        self.looked = self.count(now);
        self.full = None;
    }

    /// They were given back, and it is being found out whether rightly: those that come nevertheless are to be told of.
    #[inline]
    pub fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// A frame that the host has sent. Acknowledgements of a flow in the other direction are as
    /// many as that is fast, and would only be late in a train: they do not count.
    #[inline]
    pub fn on_host_frame(&mut self, frame: &[u8]) {
        let is_small = frame.len() <= BYTES_MAX
            && !Packet::parse(frame).is_ok_and(|packet| packet.is_empty_tcp());
        self.taken += u64::from(is_small);
    }

    /// Whether those since the last look are so many that the engine is to keep them.
    pub fn look(&mut self, now: Instant) -> bool {
        let count = self.count(now);
        let before = core::mem::replace(&mut self.looked, count);
        before.rate(count.taken, now) > MANY_PER_SECOND && self.are_packed()
    }

    /// What was measured last of either way, while they were many.
    pub fn rates(&self) -> SmallFrameRates {
        SmallFrameRates {
            direct: self.direct.map(|(per_second, _)| per_second),
            engine: self.packed_per_second,
        }
    }

    fn count(&self, now: Instant) -> Count {
        Count {
            taken: self.taken,
            at: now,
        }
    }

    /// What a full engine takes, a second, each time that it is known anew.
    fn full_rate(&mut self, now: Instant) -> Option<u64> {
        let count = self.count(now);
        let begun = Full {
            since: count,
            seen_at: now,
        };
        let full = self.full.get_or_insert(begun);
        if now.since(core::mem::replace(&mut full.seen_at, now)) > FULL_GAP_MAX {
            *full = begun;
        }
        if now.since(full.since.at) < MEASURE {
            return None;
        }
        let since = core::mem::replace(&mut full.since, count);
        Some(since.rate(count.taken, now))
    }

    /// Many of them close the direct path; not while packing them has been seen not to pay.
    pub fn are_packed(&self) -> bool {
        let is_direct = |found: Found| found.carrier == Carrier::Direct && !found.is_over;
        !self.found.is_some_and(is_direct)
    }

    /// Now and then: what was found is looked at again after a while.
    pub fn pass_time(&mut self, now: Instant) {
        if let Some(found) = &mut self.found
            && now >= found.until
        {
            found.is_over = true;
            self.trial = None;
        }
    }

    /// In the last of the windows in which a program counts them so many a second have gone directly. Whether they were
    /// given back, and are to be packed after all.
    pub fn on_direct(&mut self, per_second: u64, now: Instant) -> bool {
        if per_second <= MANY_PER_SECOND {
            return false;
        }
        self.direct = Some((per_second, now));
        let count = self.count(now);
        let Some(trial) = &mut self.trial else {
            return false;
        };
        let before = core::mem::replace(&mut trial.sampled, count);
        if now.since(before.at) > SAMPLE_GAP_MAX {
            (trial.sum_per_second, trial.samples) = (0, 0);
            return false;
        }
        // Flows that never rest have stayed with the engine, and it shares the processor.
        trial.sum_per_second += per_second + before.rate(count.taken, now);
        trial.samples += 1;
        if trial.samples < SAMPLES {
            return false;
        }
        let is_less = trial.sum_per_second / u64::from(SAMPLES) < trial.packed_per_second / 10 * 9;
        self.trial = None;
        if is_less {
            self.found = Some(Found::engine(now));
        }
        is_less
    }

    /// The engine takes as many frames as it can, and the links would take more: every few milliseconds while it is so.
    /// Whether it has to do with small ones, which are given back from now on.
    pub fn on_engine_full(&mut self, now: Instant) -> bool {
        let full_rate = self.full_rate(now);
        let Some(packed_per_second) = full_rate.filter(|&rate| rate > MANY_PER_SECOND) else {
            return false;
        };
        self.packed_per_second = Some(packed_per_second);
        if let Some(trial) = &mut self.trial {
            // It has got into its stride, with flows that stayed.
            trial.packed_per_second = trial.packed_per_second.max(packed_per_second);
        }
        if self.found.is_some_and(|found| !found.is_over) {
            return false;
        }
        // The first window has a sender that has just begun, and shows a sixth less than later ones.
        let is_less = |(per_second, at): (u64, Instant)| {
            now.since(at) < SAME_LOAD && per_second <= packed_per_second / 4 * 3
        };
        if self.direct.is_some_and(is_less) {
            self.found = Some(Found::engine(now));
            return false;
        }
        self.found = Some(Found::direct(self.found, now));
        self.trial = Some(Trial {
            packed_per_second,
            sum_per_second: 0,
            samples: 0,
            sampled: self.count(now),
        });
        self.times_given_back += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn many_small_frames_are_many_and_many_large_or_a_few_are_not() {
        let mut small = SmallFrames::default();
        small.begin(at(0));
        let mut after = |frames: u64, len: usize, ms: u64| {
            (0..frames).for_each(|_| small.on_host_frame(&vec![0; len]));
            small.look(at(ms))
        };
        assert!(after(12_000, 106, 250));
        assert!(!after(12_000, 1514, 500));
        assert!(!after(9_000, 106, 750));
        assert!(after(25_000, 300, 1250));
        assert!(!after(0, 0, 1500));
    }

    /// IPv4 and TCP, with so many bytes of payload.
    fn tcp(payload: u16) -> Vec<u8> {
        let mut frame = vec![0; 54 + usize::from(payload)];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(40 + payload).to_be_bytes());
        frame[23] = 6;
        frame[46] = 0x50;
        frame
    }

    #[test]
    fn acknowledgements_of_a_fast_flow_are_not_many_however_many_they_are() {
        let mut small = SmallFrames::default();
        small.begin(at(0));
        let mut after = |frame: &[u8], ms: u64| {
            (0..100_000).for_each(|_| small.on_host_frame(frame));
            small.look(at(ms))
        };
        assert!(!after(&tcp(0), 1000));
        let mut padded = tcp(0);
        padded.resize(60, 0);
        assert!(!after(&padded, 2000));
        assert!(after(&tcp(1), 3000));
    }

    /// 100 bytes each.
    fn send(small: &mut SmallFrames, frames: u64) {
        (0..frames).for_each(|_| small.on_host_frame(&[0; 100]));
    }

    /// So many are sent in 100 ms to an engine that is full. Whether they are given back.
    fn is_given_back(small: &mut SmallFrames, frames: u64, since_ms: u64) -> bool {
        small.begin(at(since_ms));
        stays_full(small, frames, since_ms)
    }

    fn stays_full(small: &mut SmallFrames, frames: u64, since_ms: u64) -> bool {
        small.on_engine_full(at(since_ms));
        let steps = (1..=10).map(|step| {
            send(small, frames / 10);
            small.on_engine_full(at(since_ms + 10 * step))
        });
        steps.fold(false, |before, is_now| before | is_now)
    }

    #[test]
    fn an_engine_that_is_full_of_small_frames_gives_them_back_and_of_others_not() {
        let mut small = SmallFrames::default();
        assert!(!is_given_back(&mut small, 4_000, 0));
        assert!(small.are_packed());
        assert!(is_given_back(&mut small, 4_100, 100));
        assert!(!small.are_packed());
        // Nor do they keep the path closed now.
        send(&mut small, 100_000);
        assert!(!small.look(at(250)));
        assert_eq!(small.times_given_back, 1);
        small.pass_time(at(199 + 64_000));
        assert!(!small.are_packed());
        small.pass_time(at(200 + 64_000));
        assert!(small.are_packed());
    }

    #[test]
    fn what_is_sent_while_the_engine_is_not_full_does_not_count() {
        let mut small = SmallFrames::default();
        small.begin(at(0));
        // For less than it takes to measure, with pauses.
        for ms in [0, 400, 800] {
            for step in 0..10 {
                send(&mut small, 10_000);
                assert!(!small.on_engine_full(at(ms + 10 * step)));
            }
            send(&mut small, 1_000_000);
        }
        // In between it was not: none of those is in the rate.
        assert!(!stays_full(&mut small, 3_900, 1_200));
        assert_eq!(small.rates().engine, None);
        assert!(stays_full(&mut small, 4_100, 1_300));
        small.on_direct(50_000, at(1_400));
        let rates = SmallFrameRates {
            direct: Some(50_000),
            engine: Some(41_000),
        };
        assert_eq!(small.rates(), rates);
        assert!(!stays_full(&mut small, 4_100, 1_400), "they are given back");
    }

    #[test]
    fn packing_that_does_not_pay_is_tried_less_and_less_often_and_after_long_as_at_first() {
        let mut small = SmallFrames::default();
        let (mut ms, mut terms) = (0, Vec::new());
        for _ in 0..6 {
            assert!(is_given_back(&mut small, 10_000, ms));
            ms += 100;
            let began = ms;
            while !small.are_packed() {
                ms += 1_000;
                small.pass_time(at(ms));
            }
            terms.push((ms - began) / 1000);
        }
        assert_eq!(terms, [64, 128, 256, 512, 1024, 1024]);
        ms += 1_024_000;
        assert!(is_given_back(&mut small, 10_000, ms));
        small.pass_time(at(ms + 100 + 64_000));
        assert!(small.are_packed());
    }

    /// The engine takes 100,000 a second.
    const TAKEN_IN_100_MS: u64 = 10_000;

    #[test]
    fn an_engine_that_takes_clearly_more_than_went_directly_a_moment_ago_keeps_them_and_is_asked_again_later()
     {
        for (per_second, ago_ms, is_kept) in [
            (75_000, 499, true),
            (75_001, 499, false),
            (75_000, 500, false),
            // Not many: they may have been all that there were.
            (40_000, 100, false),
        ] {
            let mut small = SmallFrames::default();
            small.on_direct(per_second, at(1_000 - ago_ms));
            let is_given = is_given_back(&mut small, TAKEN_IN_100_MS, 900);
            assert_eq!(is_given, !is_kept, "{per_second} {ago_ms} ms ago");
            assert_eq!(small.are_packed(), is_kept);
        }
        let mut small = SmallFrames::default();
        small.on_direct(75_000, at(800));
        assert!(!is_given_back(&mut small, TAKEN_IN_100_MS, 900));
        assert!(!is_given_back(&mut small, TAKEN_IN_100_MS, 64_899));
        small.pass_time(at(65_000));
        assert!(is_given_back(&mut small, TAKEN_IN_100_MS, 65_000));
    }

    /// Given back at 100 ms, and then so many a second each 50 ms, directly and by the engine. When they were found to be
    /// less than the engine had taken.
    fn trial(small: &mut SmallFrames, rates: &[(u64, u64)]) -> Option<u64> {
        assert!(is_given_back(small, TAKEN_IN_100_MS, 0));
        small.look(at(100));
        let mut found = None;
        for (n, &(directly, by_engine)) in (1..).zip(rates) {
            let ms = 100 + 50 * n;
            send(small, by_engine / 20);
            if small.on_direct(directly, at(ms)) {
                found.get_or_insert(ms);
            }
            if n % 2 == 0 {
                small.look(at(ms));
            }
        }
        found
    }

    #[test]
    fn what_is_given_back_and_goes_no_faster_is_packed_after_all() {
        let mut small = SmallFrames::default();
        let less = [(89_000, 0); 8];
        assert_eq!(trial(&mut small, &less), Some(250));
        assert!(small.are_packed() && !small.is_on_trial());
        // Full again, it is known.
        assert!(!is_given_back(&mut small, TAKEN_IN_100_MS, 10_000));
        small.pass_time(at(64_250));
        assert!(is_given_back(&mut small, TAKEN_IN_100_MS, 64_250));
        assert_eq!(small.times_given_back, 2);
    }

    #[test]
    fn what_is_given_back_and_goes_as_fast_with_what_has_stayed_is_right_and_not_judged_again() {
        for rates in [(90_000, 0), (45_000, 45_000)] {
            let mut small = SmallFrames::default();
            // Then the host has less to send.
            let rates = [[rates; 3], [(50_000, 0); 3]].concat();
            assert_eq!(trial(&mut small, &rates), None);
            assert!(!small.are_packed() && !small.is_on_trial());
        }
    }

    #[test]
    fn samples_that_are_not_in_a_row_or_not_of_many_show_nothing() {
        let mut small = SmallFrames::default();
        assert!(is_given_back(&mut small, TAKEN_IN_100_MS, 0));
        for n in 0..20 {
            // Two in a row; what the engine takes in between is no part of them.
            let ms = 100 + 1_000 * n;
            small.on_direct(50_000, at(ms));
            small.on_direct(50_000, at(ms + 50));
            assert!(!small.on_direct(40_000, at(ms + 100)));
            assert!(!small.on_direct(50_000, at(ms + 251)));
            send(&mut small, 1_000_000);
        }
        assert!(!small.are_packed() && small.is_on_trial());
    }

    #[test]
    fn an_engine_that_gets_faster_after_it_has_given_them_back_is_measured_by_that() {
        let mut small = SmallFrames::default();
        assert!(is_given_back(&mut small, TAKEN_IN_100_MS, 0));
        assert!(!stays_full(&mut small, 2 * TAKEN_IN_100_MS, 200));
        let found = [1_000, 1_050, 1_100, 1_150].map(|ms| small.on_direct(150_000, at(ms)));
        assert_eq!(found, [false, false, false, true]);
    }
}
