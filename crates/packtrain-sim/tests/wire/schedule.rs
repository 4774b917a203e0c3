//! When frames leave: against a line and a bucket as a person would reckon them.

use packtrain_proto::queue::codel::{Codel, CodelParams};
use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::frame::Frame;
use packtrain_sim::net::packet_cap::PacketCapConfig;
use packtrain_sim::net::queue::{Discipline, QueueConfig, QueueLimit};
use packtrain_sim::net::rate::{RateConfig, RateLevel};
use packtrain_sim::net::wire::{Passed, Wire, WireConfig, WireDrop};
use packtrain_sim::random::Random;
use proptest::prelude::*;
use std::collections::VecDeque;

use crate::support::{Driven, any_frame, bare, duration, ip, magnitude};

const SECOND: i128 = 1_000_000_000;

/// A line that has been busy since a certain nanosecond and has sent so many bits since.
struct Line {
    bps: i128,
    busy_since: i128,
    bits: i128,
}

impl Line {
    fn send(&mut self, bits: i128, from: i128) -> i128 {
        if (from - self.busy_since) * self.bps > self.bits * SECOND {
            (self.busy_since, self.bits) = (from, 0);
        }
        self.bits += bits;
        let nanos = (self.bits * SECOND + self.bps - 1).div_euclid(self.bps);
        self.busy_since + nanos
    }
}

/// A bucket that is filled drop by drop, a thousand million a frame.
struct Bucket {
    per_second: i128,
    holds: i128,
    level: i128,
    looked_at: i128,
}

impl Bucket {
    fn look(&mut self, now: i128) {
        self.level += (now - self.looked_at) * self.per_second;
        self.looked_at = now;
        let full = self.holds * SECOND;
        // Full for less than a nanosecond: nothing has run over yet.
        if self.level >= full + self.per_second {
            self.level = full;
        }
    }

    /// When so many frames may begin; 0 if they might have at once.
    fn ready(&self, frames: i128) -> i128 {
        match frames.min(self.holds) * SECOND - self.level {
            ..=0 => 0,
            missing => self.looked_at + (missing + self.per_second - 1).div_euclid(self.per_second),
        }
    }
}

struct Model {
    limit: QueueLimit,
    level: RateLevel,
    line: Option<Line>,
    bucket: Option<Bucket>,
    last_left: i128,
    /// What was taken: bytes, segments, and when it left.
    taken: Vec<(usize, usize, i128)>,
}

impl Model {
    fn new(config: &WireConfig) -> Model {
        Model {
            limit: config.queue.limit,
            level: config.rate.map_or(RateLevel::Ethernet, |rate| rate.level),
            line: config.rate.map(|rate| Line {
                bps: i128::from(rate.bps),
                busy_since: 0,
                bits: 0,
            }),
            bucket: config.packet_cap.map(|cap| Bucket {
                per_second: i128::from(cap.frames_per_second),
                holds: i128::from(cap.burst_frames),
                level: i128::from(cap.burst_frames) * SECOND,
                looked_at: 0,
            }),
            last_left: 0,
            taken: Vec::new(),
        }
    }

    fn offer(&mut self, frame: &Frame, now: i128) -> bool {
        let standing = self.taken.iter().filter(|(_, _, left)| *left > now);
        let (mut count, mut bytes, mut frames) = (0, frame.bytes.len(), frame.segment_count());
        for (len, segments, _) in standing {
            count += 1;
            bytes += len;
            frames += segments;
        }
        let within = match self.limit {
            QueueLimit::Bytes(limit) => bytes <= limit,
            QueueLimit::Frames(limit) => frames <= limit,
        };
        if !within && count > 0 {
            return false;
        }
        let segments = frame.segment_count();
        let ready = self.bucket.as_ref().map(|b| b.ready(segments as i128));
        let from = now.max(ready.unwrap_or(0));
        let begins = from.max(self.last_left);
        if let Some(bucket) = &mut self.bucket {
            bucket.look(begins);
            bucket.level -= segments as i128 * SECOND;
        }
        let bits = match self.level {
            RateLevel::Ethernet => frame.wire_bits(),
            RateLevel::Ip => frame.ip_bits(),
        };
        self.last_left = match &mut self.line {
            Some(line) => line.send(i128::from(bits), from),
            None => begins,
        };
        self.taken
            .push((frame.bytes.len(), segments, self.last_left));
        true
    }
}

fn any_config() -> impl Strategy<Value = WireConfig> {
    let rate = (magnitude(5, 11), any::<bool>()).prop_map(|(bps, ip)| RateConfig {
        bps,
        level: if ip {
            RateLevel::Ip
        } else {
            RateLevel::Ethernet
        },
    });
    let cap =
        (magnitude(1, 7), 1u64..30).prop_map(|(frames_per_second, burst_frames)| PacketCapConfig {
            frames_per_second,
            burst_frames,
        });
    let limit = prop_oneof![
        (0usize..60_000).prop_map(QueueLimit::Bytes),
        (0usize..60).prop_map(QueueLimit::Frames),
    ];
    (prop::option::of(rate), prop::option::of(cap), limit).prop_map(|(rate, packet_cap, limit)| {
        WireConfig {
            rate,
            packet_cap,
            queue: QueueConfig {
                limit,
                discipline: Discipline::DropTail,
            },
            ..WireConfig::unrated(Duration::ZERO)
        }
    })
}

proptest! {
    #[test]
    fn frames_are_taken_and_leave_exactly_when_a_line_and_a_bucket_let_them(
        config in any_config(),
        frames in prop::collection::vec((any_frame(), prop::bool::weighted(0.3), duration(8)), 1..150),
    ) {
        let mut driven = Driven::new(&config, 1);
        let mut model = Model::new(&config);
        let (mut sizes, mut begins_by) = (Vec::new(), Vec::new());
        for (frame, pauses, gap) in frames {
            if pauses {
                driven.run_for(gap);
            }
            let now = driven.now.as_nanos().into();
            prop_assert_eq!(driven.offer(frame.clone()), model.offer(&frame, now));
            if model.taken.len() > sizes.len() {
                sizes.push((config.rate.map_or(0, |rate| rate.bits(&frame)), frame.segment_count()));
                begins_by.push(driven.now);
            }
        }
        driven.drain();
        let left: Vec<i128> = driven.arrivals().iter().map(|(_, at)| at.as_nanos().into()).collect();
        let expected: Vec<i128> = model.taken.iter().map(|taken| taken.2).collect();
        prop_assert_eq!(&left, &expected);

        // The same once more, as promises: over every interval, whatever the model thinks.
        for i in 0..left.len() {
            let (mut bits, mut frames) = (0, 0);
            let mut longest = 0;
            for j in i..left.len() {
                let time = left[j] - left[i];
                if let Some(rate) = config.rate.filter(|_| j > i) {
                    bits += i128::from(sizes[j].0);
                    // The first of them began when the one before had left; ends are rounded up.
                    prop_assert!(bits * SECOND <= (time + 1) * i128::from(rate.bps));
                }
                if let Some(cap) = config.packet_cap.filter(|_| config.rate.is_none()) {
                    frames += sizes[j].1 as i128;
                    longest = longest.max(sizes[j].1 as i128);
                    let burst = longest.max(cap.burst_frames.into());
                    let allowed = burst * SECOND + (time + 1) * i128::from(cap.frames_per_second);
                    prop_assert!(frames * SECOND <= allowed);
                }
            }
        }
        prop_assert_eq!(driven.wire.counters.left, left.len() as u64);
        let bytes: usize = model.taken.iter().map(|taken| taken.0).sum();
        prop_assert_eq!(driven.wire.counters.left_bytes, bytes as u64);
    }
}

#[test]
fn a_line_that_is_never_idle_is_busy_all_the_time() {
    let mut driven = Driven::new(&WireConfig::perfect(9_990_000_000, Duration::ZERO), 1);
    for _ in 0..1000 {
        driven.offer(bare(60));
    }
    driven.drain();
    let counters = driven.wire.counters;
    // 1000 times 672 bits, of which none has a whole number of nanoseconds.
    assert_eq!(counters.busy, Duration::from_nanos(67_268));
    assert_eq!(counters.busy, driven.now.since(Instant::ZERO));
    driven.run_for(Duration::from_secs(1));
    driven.offer(bare(60));
    driven.drain();
    assert_eq!(driven.wire.counters.busy, Duration::from_nanos(67_268 + 68));
}

/// On a clock nobody is told in time, and lateness must not add up to another rate.
#[test]
fn who_is_told_late_that_frames_have_left_delays_none_of_them() {
    let config = WireConfig::perfect(7_000_000, Duration::from_millis(1));
    let arrivals = |late: bool| {
        let mut wire = Wire::new(&config, &mut Random::new(1));
        let (mut due, mut arrivals) = (None::<Instant>, Vec::new());
        for burst in 0..20u64 {
            let begins = Instant::ZERO + Duration::from_millis(10) * burst as u32;
            while let Some(at) = due.filter(|&at| at <= begins) {
                // Late: not before the next burst comes.
                due = wire.sent(if late { begins } else { at }, |passed| match passed {
                    Passed::Arrives(at, _) => arrivals.push(at),
                    Passed::Dropped(..) => unreachable!("nothing harms it"),
                });
            }
            for _ in 0..burst {
                let alone = wire.offer(bare(500), begins).expect("there is room");
                due = due.or(alone);
            }
        }
        arrivals
    };
    let in_time = arrivals(false);
    assert!(in_time.len() > 100);
    assert_eq!(arrivals(true), in_time);
}

/// Time that a frame waits for its token is not time that the wire sends.
#[test]
fn a_wire_that_waits_for_tokens_is_not_busy() {
    let config = WireConfig {
        packet_cap: Some(PacketCapConfig {
            frames_per_second: 1000,
            burst_frames: 1,
        }),
        ..WireConfig::perfect(1_000_000_000, Duration::ZERO)
    };
    let mut driven = Driven::new(&config, 1);
    (0..11).for_each(|_| assert!(driven.offer(bare(60))));
    driven.drain();
    assert_eq!(driven.now, Instant::from_nanos(10_000_672));
    assert_eq!(driven.wire.counters.busy, Duration::from_nanos(11 * 672));
}

const PARAMS: CodelParams = CodelParams {
    target: Duration::from_millis(5),
    interval: Duration::from_millis(100),
};

fn codel(ecn: bool) -> WireConfig {
    WireConfig {
        queue: QueueConfig {
            limit: QueueLimit::Bytes(4 << 20),
            discipline: Discipline::Codel {
                params: PARAMS,
                ecn,
            },
        },
        ..WireConfig::perfect(10_000_000, Duration::ZERO)
    }
}

const CODEL_FRAME_BYTES: usize = 1226;
/// With all that the wire costs, at 10 Mbit/s.
const CODEL_FRAME_TIME: Duration = Duration::from_millis(1);

/// The wire's drops, and those of a queue that is taken from by its CoDel, a frame a millisecond.
fn codel_drops(gaps_us: &[u64]) -> (Vec<u32>, Vec<u32>) {
    let mut driven = Driven::new(&codel(false), 1);
    let (mut queue, mut state) = (VecDeque::new(), Codel::new());
    let (mut expected, mut free) = (Vec::new(), Instant::ZERO);
    let mut take = |queue: &mut VecDeque<(u32, Instant)>, until: Instant| {
        while let Some(&(number, entered)) = queue.front() {
            let begins = entered.max(free);
            if begins >= until {
                return;
            }
            queue.pop_front();
            let behind = queue.len() * CODEL_FRAME_BYTES;
            let sojourn = begins.since(entered);
            match state.should_drop(sojourn, behind, CODEL_FRAME_BYTES, begins, &PARAMS) {
                true => expected.push(number),
                false => free = begins + CODEL_FRAME_TIME,
            }
        }
    };
    for (number, gap) in gaps_us.iter().enumerate() {
        driven.run_for(Duration::from_micros(*gap));
        take(&mut queue, driven.now + Duration::from_nanos(1));
        queue.push_back((number as u32, driven.now));
        assert!(driven.offer(bare(CODEL_FRAME_BYTES)));
    }
    driven.drain();
    take(&mut queue, Instant::from_nanos(u64::MAX));
    assert_eq!(driven.wire.counters.codel, expected.len() as u64);
    assert_eq!(driven.wire.counters.dropped(), expected.len() as u64);
    (driven.dropped(WireDrop::Codel), expected)
}

#[test]
fn an_overloaded_wire_drops_what_codel_does_at_the_head() {
    let gaps: Vec<u64> = (0..6000)
        .map(|i| if i % 3 == 0 { 501 } else { 803 })
        .collect();
    let (dropped, expected) = codel_drops(&gaps);
    assert!(dropped.len() > 20, "{}", dropped.len());
    assert_eq!(dropped, expected);
    // In the middle of what stood there, not at its end.
    assert!(dropped[0] < 300, "{dropped:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_comes_the_wire_drops_what_codel_does(
        phases in prop::collection::vec((200u64..1500, 1usize..500), 1..6),
    ) {
        let gaps: Vec<u64> = phases.iter().flat_map(|&(gap, count)| vec![gap; count]).collect();
        let (dropped, expected) = codel_drops(&gaps);
        prop_assert_eq!(dropped, expected);
    }
}

#[test]
fn codel_with_ecn_marks_what_is_capable_of_it_and_drops_the_rest() {
    for (ecn, dropped, marked) in [(0, true, false), (1, false, true), (3, false, false)] {
        let mut driven = Driven::new(&codel(true), 1);
        for _ in 0..2000 {
            driven.offer(ip(false, 1, ecn, 1180));
            driven.run_for(Duration::from_micros(700));
        }
        driven.drain();
        let counters = driven.wire.counters;
        assert_eq!(
            (counters.codel > 0, counters.marked > 0),
            (dropped, marked),
            "ECN {ecn}"
        );
    }
}
