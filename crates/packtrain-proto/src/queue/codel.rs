//! CoDel: drops from a queue that stands, not from one that comes and goes (RFC 8289).
//!
//! ```text
//!                 above target for an interval: drop one
//!  +-------------+ ---------------------------------------> +------------+ -+ each interval/√count:
//!  | not dropping|                                          |  dropping  |  | drop one,
//!  +-------------+ <--------------------------------------- +------------+ <+ count + 1
//!                 below target, or an MTU or less is left
//! ```
//!
//! Where a frame can be marked (RFC 3168), the mark is the drop: the next one is as far away as it would be after a drop (as
//! in Linux, `codel_impl.h`), and the frame goes on.
//!
//! The RFC's `deque` takes frames out itself. Here the queue's owner does, and asks about each:
//! the answers are those of the RFC's loop, one call a turn of it.

use crate::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// The waiting time that a queue may keep for good.
    pub target: Duration,
    /// How long it may be exceeded: a round trip of the slowest flows.
    pub interval: Duration,
}

/// How the senders of a queue are told that it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aqm {
    pub codel: CodelParams,
    /// Frames are marked rather than dropped whose senders understand that (RFC 3168).
    pub ecn: bool,
}

impl CodelParams {
    /// Of flows whose round trips are no shorter than this: who sends more slowly is seen to do so only
    /// after that, and a queue that comes with one round trip goes with the next.
    pub fn over(self, round_trip: Duration) -> CodelParams {
        CodelParams {
            interval: self.interval.max(round_trip * 2),
            ..self
        }
    }
}

/// The state of one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codel {
    /// When the waiting time will have been above the target for an interval; `None` while it is
    /// not above.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    /// Drops since dropping began, and what it began with.
    count: u32,
    last_count: u32,
    /// The last answer was a drop by schedule; the next one is set if the queue still stands.
    reschedule: bool,
}

impl Codel {
    pub fn new() -> Codel {
        Codel::default()
    }

    /// Whether the frame just taken out is to be dropped, and the next one taken.
    ///
    /// `sojourn` is how long it waited, `queued_bytes_after` what the queue holds without it, and
    /// `mtu` the largest frame: with so little left the link would run dry. `now` never goes back,
    /// and stays while answers are `true`. Since what empties the queue is never dropped, nobody
    /// needs to tell when it is empty.
    pub fn should_drop(
        &mut self,
        sojourn: Duration,
        queued_bytes_after: usize,
        mtu: usize,
        now: Instant,
        params: &CodelParams,
    ) -> bool {
        let stands = self.stands(sojourn, queued_bytes_after <= mtu, now, params);
        let reschedule = core::mem::take(&mut self.reschedule);
        if !stands {
            self.dropping = false;
            return false;
        }
        if !self.dropping {
            self.begin(now, params);
            return true;
        }
        if reschedule {
            self.drop_next = control_law(self.drop_next, self.count, params);
        }
        if now < self.drop_next {
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.reschedule = true;
        true
    }

    /// Whether the waiting time has been above the target for an interval (`dodequeue`).
    fn stands(
        &mut self,
        sojourn: Duration,
        nearly_empty: bool,
        now: Instant,
        params: &CodelParams,
    ) -> bool {
        if sojourn < params.target || nearly_empty {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            Some(at) => now >= at,
            None => {
                self.first_above = Some(now + params.interval);
                false
            }
        }
    }

    fn begin(&mut self, now: Instant, params: &CodelParams) {
        self.dropping = true;
        // If it was dropping a moment ago, the rate at which it ended is where to go on: a queue
        // that needed it then needs it now. 16 intervals, as in the RFC and in Linux.
        let delta = self.count - self.last_count;
        let recently = now.since(self.drop_next) < params.interval.saturating_mul(16);
        self.count = if delta > 1 && recently { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, self.count, params);
    }
}

/// The next drop: the more have not helped, the sooner. The square root makes the rate of a TCP
/// flow fall linearly.
fn control_law(from: Instant, count: u32, params: &CodelParams) -> Instant {
    let nanos = params.interval.as_nanos() as f64 / f64::from(count).sqrt();
    from + Duration::from_nanos(nanos as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const PARAMS: CodelParams = CodelParams {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
    };
    const MTU: usize = 1500;

    /// RFC 8289, section 5, line by line, in nanoseconds.
    #[derive(Default)]
    struct Model {
        queue: VecDeque<(u64, usize)>,
        first_above_time: u64,
        drop_next: u64,
        count: u32,
        lastcount: u32,
        dropping: bool,
        dropped: Vec<u64>,
    }

    impl Model {
        fn control_law(t: u64, count: u32) -> u64 {
            t + (PARAMS.interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64
        }

        fn dodequeue(&mut self, now: u64) -> (Option<(u64, usize)>, bool) {
            let mut ok_to_drop = false;
            let packet = self.queue.pop_front();
            match packet {
                None => self.first_above_time = 0,
                Some((enqueued, _)) => {
                    let sojourn_time = now - enqueued;
                    let bytes: usize = self.queue.iter().map(|packet| packet.1).sum();
                    if u128::from(sojourn_time) < PARAMS.target.as_nanos() || bytes <= MTU {
                        self.first_above_time = 0;
                    } else if self.first_above_time == 0 {
                        self.first_above_time = now + PARAMS.interval.as_nanos() as u64;
                    } else if now >= self.first_above_time {
                        ok_to_drop = true;
                    }
                }
            }
            (packet, ok_to_drop)
        }

        fn drop(&mut self, packet: Option<(u64, usize)>) {
            self.dropped.push(packet.expect("ok to drop").0);
        }

        fn deque(&mut self, now: u64) -> Option<(u64, usize)> {
            let (mut packet, mut ok_to_drop) = self.dodequeue(now);
            if self.dropping {
                if !ok_to_drop {
                    self.dropping = false;
                }
                while now >= self.drop_next && self.dropping {
                    self.drop(packet);
                    self.count += 1;
                    (packet, ok_to_drop) = self.dodequeue(now);
                    if !ok_to_drop {
                        self.dropping = false;
                    } else {
                        self.drop_next = Model::control_law(self.drop_next, self.count);
                    }
                }
            } else if ok_to_drop {
                self.drop(packet);
                (packet, _) = self.dodequeue(now);
                self.dropping = true;
                let delta = self.count - self.lastcount;
                self.count = 1;
                let since = now as i64 - self.drop_next as i64;
                if delta > 1 && since < 16 * PARAMS.interval.as_nanos() as i64 {
                    self.count = delta;
                }
                self.drop_next = Model::control_law(now, self.count);
                self.lastcount = self.count;
            }
            packet
        }
    }

    /// A queue with our CoDel, as its owner runs it.
    #[derive(Default)]
    struct Queue {
        codel: Codel,
        queue: VecDeque<(u64, usize)>,
        bytes: usize,
        dropped: Vec<u64>,
    }

    impl Queue {
        fn enqueue(&mut self, now: u64, len: usize) {
            self.queue.push_back((now, len));
            self.bytes += len;
        }

        fn dequeue(&mut self, now: u64) -> Option<(u64, usize)> {
            while let Some((enqueued, len)) = self.queue.pop_front() {
                self.bytes -= len;
                let sojourn = Duration::from_nanos(now - enqueued);
                let at = Instant::from_nanos(now);
                if !self
                    .codel
                    .should_drop(sojourn, self.bytes, MTU, at, &PARAMS)
                {
                    return Some((enqueued, len));
                }
                self.dropped.push(enqueued);
            }
            None
        }
    }

    const MS: u64 = 1_000_000;

    proptest! {
        #[test]
        fn it_drops_what_the_rfcs_pseudocode_drops(
            // Phases of load: milliseconds between arrivals and between departures (in tenths),
            // how many, and a pause after.
            phases in prop::collection::vec((0u64..30, 1u64..30, 1usize..400, 0u64..3000), 1..8),
            len in 40usize..3000,
        ) {
            let mut now = MS;
            let mut model = Model::default();
            let mut queue = Queue::default();
            for (arrival, departure, count, pause) in phases {
                let (mut arrives, mut departs) = (now, now);
                for _ in 0..count {
                    now = arrives.min(departs);
                    if arrives <= departs {
                        model.queue.push_back((now, len));
                        queue.enqueue(now, len);
                        arrives += arrival * MS / 10;
                    } else {
                        prop_assert_eq!(queue.dequeue(now), model.deque(now));
                        departs += departure * MS / 10;
                    }
                    prop_assert_eq!(&queue.dropped, &model.dropped);
                    if arrival == 0 && queue.queue.len() > 2000 {
                        break;
                    }
                }
                // Drain, or not, then let time pass.
                for _ in 0..count {
                    now += departure * MS / 10;
                    prop_assert_eq!(queue.dequeue(now), model.deque(now));
                    prop_assert_eq!(&queue.dropped, &model.dropped);
                }
                now += pause * MS;
            }
        }

        #[test]
        fn below_the_target_nothing_is_ever_dropped(
            waits in prop::collection::vec((0u64..5 * MS, 0u64..200 * MS), 1..300),
        ) {
            let mut codel = Codel::new();
            let mut now = Instant::ZERO;
            for (sojourn, gap) in waits {
                now += Duration::from_nanos(gap);
                let sojourn = Duration::from_nanos(sojourn);
                prop_assert!(!codel.should_drop(sojourn, 1 << 20, MTU, now, &PARAMS));
            }
        }
    }

    /// The times, in µs, of drops from a queue that stands from 0 on, asked every 10 µs.
    fn drops_of_a_standing_queue(codel: &mut Codel, from_us: u64, to_us: u64) -> Vec<u64> {
        let stands = |codel: &mut Codel, us: u64| {
            let now = Instant::from_nanos(us * 1000);
            codel.should_drop(Duration::from_millis(20), 1 << 20, MTU, now, &PARAMS)
        };
        let mut drops = Vec::new();
        for us in (from_us..to_us).step_by(10) {
            while stands(codel, us) {
                drops.push(us);
            }
        }
        drops
    }

    #[test]
    fn drops_are_an_interval_apart_divided_by_the_root_of_their_count() {
        let drops = drops_of_a_standing_queue(&mut Codel::new(), 0, 1_000_000);
        // The first after one interval, then 100/√1, 100/√2, … ms.
        let mut expected = 100_000.0;
        for (i, &at) in drops.iter().enumerate() {
            assert!(
                (at as f64 - expected).abs() <= 10.0 * (i + 1) as f64,
                "drop {i} at {at} µs"
            );
            expected += 100_000.0 / ((i + 1) as f64).sqrt();
        }
        // 2·√n intervals hold n drops: 1 + about (9 / 2)² in the nine intervals after the first.
        assert_eq!(drops.len(), 27);
    }

    #[test]
    fn a_burst_shorter_than_an_interval_passes_whole() {
        let mut codel = Codel::new();
        for round in 0..20 {
            let from = round * 200_000;
            assert_eq!(
                drops_of_a_standing_queue(&mut codel, from, from + 99_990),
                [0; 0]
            );
            let now = Instant::from_nanos((from + 100_000) * 1000);
            assert!(!codel.should_drop(Duration::from_millis(1), 1 << 20, MTU, now, &PARAMS));
        }
    }

    #[test]
    fn the_last_mtu_is_never_dropped() {
        let mut codel = Codel::new();
        let late = Duration::from_secs(9);
        for ms in 0..1000 {
            let now = Instant::from_nanos(ms * MS);
            assert!(!codel.should_drop(late, MTU, MTU, now, &PARAMS));
        }
        for ms in 1000..2000 {
            let now = Instant::from_nanos(ms * MS);
            if codel.should_drop(late, MTU + 1, MTU, now, &PARAMS) {
                return;
            }
        }
        panic!("a byte more was never dropped either");
    }

    #[test]
    fn dropping_soon_again_goes_on_at_the_rate_it_had() {
        let mut codel = Codel::new();
        let first = drops_of_a_standing_queue(&mut codel, 0, 1_000_000);
        let now = Instant::from_nanos(1_000_000_000);
        assert!(!codel.should_drop(Duration::ZERO, 1 << 20, MTU, now, &PARAMS));
        let mut later = codel.clone();

        let again = drops_of_a_standing_queue(&mut codel, 1_000_010, 1_500_000);
        let gap = 100_000.0 / ((first.len() - 1) as f64).sqrt();
        assert!(
            (((again[1] - again[0]) as f64) - gap).abs() <= 20.0,
            "{again:?}"
        );

        let fresh = drops_of_a_standing_queue(&mut later, 4_000_000, 4_500_000);
        assert_eq!(fresh[1] - fresh[0], 100_000);
    }

    /// The RFC moves the time of the next drop on only while it stays in dropping.
    #[test]
    fn the_pause_counts_from_the_last_drop_that_was_due() {
        let ask = |codel: &mut Codel, ms: u64, sojourn_ms: u64| {
            let now = Instant::from_nanos(ms * MS);
            codel.should_drop(
                Duration::from_millis(sojourn_ms),
                1 << 20,
                MTU,
                now,
                &PARAMS,
            )
        };
        let mut codel = Codel::new();
        assert!(!ask(&mut codel, 0, 20));
        assert!(ask(&mut codel, 100, 20), "begins; the next is due at 200");
        assert!(ask(&mut codel, 200, 20), "the second");
        assert!(ask(&mut codel, 271, 20), "the third, due at 270.7");
        assert!(!ask(&mut codel, 271, 1), "leaves");
        // Dropping begins again 16 intervals after 270.7, within 16 after what would have followed.
        assert!(!ask(&mut codel, 1780, 20));
        assert!(ask(&mut codel, 1880, 20));
        assert!(
            !ask(&mut codel, 1979, 20),
            "the rate of the last time is forgotten"
        );
        assert!(ask(&mut codel, 1980, 20));
    }
}
