//! How fast the host's frames should be taken: backpressure, worked out.
//!
//! A TAP takes every frame at once and charges no socket for it, so a sender would fill our queues
//! until something is dropped. When a line is slower than its host, the owner shapes `pt0`
//! to the rate given here: then the queue stands where sockets are charged for it, as
//! on a NIC, and only as much stands in the engine as it needs to pack (the target below).
//!
//! The line's speed is what it takes while something waits for it all the time, in host bytes: no
//! matter what packing makes of them, and how many links there are. The rate is that
//! speed, a tenth more while nothing waits and a tenth less for each target that waits too much. A
//! rate that is used up though nothing waits is too low, and grows: so a speed measured too low mends itself.
//!
//! What waits is the least that waited in a step, as CoDel's standing queue is: frames come in lumps
//! of up to 64 KB, and a glance shows the lump or the gap behind it. What an owner never reads to the end
//! waits too, before us, where nobody sees how much.

use crate::fullness::Fullness;
use crate::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(10);
/// Of a longer step nothing is learned: nobody looked in between.
const STEP_MAX: Duration = Duration::from_millis(50);
/// The wait in the engine that is aimed at, in time and at least in bytes: two GSO frames of the
/// smallest kind that TCP makes.
const TARGET: Duration = Duration::from_millis(2);
const TARGET_BYTES_MIN: f64 = 6000.0;
/// How many samples the measured speed is a mean of, about.
const SAMPLES: f64 = 8.0;
/// A wait of so many targets calls for shaping, when it lasts for [`ENGAGE_AFTER`].
const ENGAGE_TARGETS: f64 = 2.0;
const ENGAGE_AFTER: Duration = Duration::from_millis(10);
/// Without a wait for so long, shaping ends.
const RELEASE_AFTER: Duration = Duration::from_secs(2);
/// What stays unread before us has no known length: it counts as so many targets.
const UNREAD_TARGETS: f64 = 3.0;
const PROPORTION: f64 = 0.1;
/// However much waits, half of the line's speed is let in: shapers count debts as time, and what was
/// overdrawn at a rate cut to almost nothing is paid back for seconds.
const ERROR_MIN: f64 = -5.0;
/// How much of the rate must be used for it to be the limit, and what it then grows by in a step;
/// not beyond so many times what is really taken, or it would overshoot while the links'
/// local queues fill.
const USED: f64 = 0.75;
/// Waits so near to each other are of one busy time.
const LUMPS_APART_MAX: Duration = Duration::from_millis(50);
const GROWTH: f64 = 1.02;
/// Who takes less than this share of what the links carry is not bound by them.
const BOUND: f64 = 0.7;
const GROWTH_MAX: f64 = 1.15;

/// The plain mean of the first samples, and a moving one of later ones.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    value: f64,
    samples: f64,
}

impl Mean {
    fn add(&mut self, sample: f64) {
        self.samples = (self.samples + 1.0).min(SAMPLES);
        self.value += (sample - self.value) / self.samples;
    }
}

#[derive(Debug)]
pub struct Intake {
    next_step: Instant,
    stepped_at: Instant,
    taken_before: u64,
    /// The least that waited since the last step, bytes.
    waiting_min: usize,
    /// The owner has been heard of since the last step, and each time it had left frames unread.
    host_stood: Option<bool>,
    /// What the line takes, host bits a second.
    speed: Option<Mean>,
    /// What was taken lately, whether or not anything waited, host bits a second.
    taken_bps: f64,
    /// Since when too much waits.
    long_since: Option<Instant>,
    waited_at: Instant,
    /// Of the owner, who had left frames unread though none waited in the engine: then he is the limit, and not the line.
    owner_full: Fullness,
    rate_bps: Option<u64>,
}

impl Intake {
    pub fn new(now: Instant) -> Intake {
        Intake {
            next_step: now,
            stepped_at: now,
            taken_before: 0,
            waiting_min: 0,
            host_stood: None,
            speed: None,
            taken_bps: 0.0,
            long_since: None,
            waited_at: now,
            owner_full: Fullness::default(),
            rate_bps: None,
        }
    }

    /// The rate at which the host's frames are taken now; `None`: as they come.
    pub fn rate_bps(&self) -> Option<u64> {
        self.rate_bps
    }

    /// What is taken, host bits a second, while it is as much as the owner can though the line could more.
    pub fn owner_is_full(&self, now: Instant) -> Option<u64> {
        self.owner_full
            .is_full(now)
            .then_some(self.taken_bps as u64)
    }

    /// … and was when it was looked at last: that it is full fades slowly.
    pub fn owner_is_full_still(&self) -> bool {
        self.owner_full.was_left(self.stepped_at)
    }

    fn note_who_is_full(&mut self, standing: usize, host_stood: bool, now: Instant) {
        match standing > 0 {
            true => self.owner_full.forget(),
            false => self.owner_full.note(host_stood, now),
        }
    }

    /// Something was taken: so much waits still.
    pub fn on_taken(&mut self, waiting_bytes: usize) {
        self.waiting_min = self.waiting_min.min(waiting_bytes);
    }

    /// The owner took frames from the host, and left some unread, or read all.
    pub fn on_read(&mut self, left_unread: bool) {
        let stood = self.host_stood.unwrap_or(true);
        self.host_stood = Some(stood && left_unread);
    }

    /// The links carry another sum of rates, bit/s, from now on. What the host is let send follows, as far as it was they that bounded it.
    pub fn on_capacity(&mut self, before: u64, after: u64) {
        let (before, after) = (before as f64, after as f64);
        let Some(speed) = &mut self.speed else {
            return;
        };
        let changed = match after < before {
            true => speed.value.min(after),
            false if speed.value >= before * BOUND => speed.value * after / before,
            false => speed.value,
        };
        if changed != speed.value {
            // What is measured from now on tells more than what was.
            (speed.value, speed.samples) = (changed, speed.samples.min(1.0));
        }
    }

    /// When to step next; only while something waits or is shaped.
    pub fn poll_timeout(&self, waiting_bytes: usize) -> Option<Instant> {
        let stood = self.host_stood == Some(true);
        (waiting_bytes > 0 || stood || self.rate_bps.is_some()).then_some(self.next_step)
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.next_step <= now
    }

    /// One step of control, when it is time for one: `waiting_bytes` in the engine, and
    /// `taken_bytes` that have gone out of it and of the links' local queues, ever. Returns the new rate when it has
    /// changed.
    pub fn step(
        &mut self,
        waiting_bytes: usize,
        taken_bytes: u64,
        now: Instant,
    ) -> Option<Option<u64>> {
        if !self.is_due(now) {
            return None;
        }
        let standing = std::mem::replace(&mut self.waiting_min, waiting_bytes).min(waiting_bytes);
        let host_stood = self.host_stood.take() == Some(true);
        self.measure(standing > 0 || host_stood, taken_bytes, now);
        self.note_who_is_full(standing, host_stood, now);
        let rate_bps = self.decide(standing, host_stood, now);
        let moved = match (self.rate_bps, rate_bps) {
            (Some(a), Some(b)) => a.abs_diff(b) > a / 100,
            (a, b) => a != b,
        };
        if moved {
            self.rate_bps = rate_bps;
        }
        moved.then_some(rate_bps)
    }

    fn measure(&mut self, stood: bool, taken: u64, now: Instant) {
        let interval = now.since(self.stepped_at);
        // Local queues are counted in bytes of the wire, which may be more than the host's.
        let bytes = taken.saturating_sub(self.taken_before);
        self.next_step = now + STEP;
        self.stepped_at = now;
        self.taken_before = taken;
        if stood {
            self.waited_at = now;
        }
        if interval.is_zero() || interval > STEP_MAX {
            return;
        }
        if bytes == 0 && self.speed.is_none() {
            // Before the line's first frame stands what went past the engine: that is not its speed.
            return;
        }
        let sample = bytes as f64 * 8.0 / interval.as_secs_f64();
        self.taken_bps += (sample - self.taken_bps) / SAMPLES;
        if stood || self.is_more_between_waits(sample) {
            self.speed.get_or_insert_default().add(sample);
        } else if let (Some(speed), Some(rate)) = (&mut self.speed, self.rate_bps)
            && sample > rate as f64 * USED
        {
            let most = (self.taken_bps * GROWTH_MAX).max(speed.value);
            speed.value = (speed.value * GROWTH).min(most);
        }
    }

    /// A line that takes frames in lumps has something waiting in the steps in which it takes little, and nothing in those
    /// between: of these alone, its speed would be measured too low, the host held back to that, and trains
    /// that could be full would hold no more than the host is let send.
    fn is_more_between_waits(&self, sample: f64) -> bool {
        let has_waited = self.stepped_at.since(self.waited_at) <= LUMPS_APART_MAX;
        let speed = self.speed.map(|mean| mean.value);
        has_waited && self.rate_bps.is_some() && speed.is_some_and(|speed| sample > speed)
    }

    fn decide(&mut self, standing: usize, host_stood: bool, now: Instant) -> Option<u64> {
        let speed = self.speed.map(|mean| mean.value).filter(|&bps| bps > 0.0)?;
        let target = (speed / 8.0 * TARGET.as_secs_f64()).max(TARGET_BYTES_MIN);
        let unread = if host_stood { UNREAD_TARGETS } else { 0.0 };
        let targets = standing as f64 / target + unread;
        if self.rate_bps.is_none() {
            if targets < ENGAGE_TARGETS {
                self.long_since = None;
                return None;
            }
            let since = *self.long_since.get_or_insert(now);
            if now.since(since) < ENGAGE_AFTER {
                return None;
            }
        } else if now.since(self.waited_at) > RELEASE_AFTER {
            self.long_since = None;
            self.speed = None;
            return None;
        }
        let error = (1.0 - targets).max(ERROR_MIN);
        Some((speed * (1.0 + PROPORTION * error)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that offers `offered_bps` in frames of `frame` bytes to a line whose speed is
    /// `line_bps` at each millisecond. Returns the wait in the engine in milliseconds, mean and
    /// maximum, and the share of the line that was used, over the last two seconds of five.
    fn run(offered_bps: f64, frame: f64, line_bps: impl Fn(u64) -> f64) -> (f64, f64, f64) {
        let mut intake = Intake::new(Instant::ZERO);
        let mut rate = None;
        let (mut waiting, mut credit, mut taken) = (0.0f64, 0.0f64, 0.0f64);
        let (mut sum, mut max, mut used, mut could) = (0.0, 0.0f64, 0.0, 0.0);
        for ms in 0..5000u64 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            credit += rate.map_or(offered_bps, |r: u64| offered_bps.min(r as f64)) / 8000.0;
            while credit >= frame {
                credit -= frame;
                waiting += frame;
            }
            let line = line_bps(ms) / 8000.0;
            let goes = waiting.min(line);
            waiting -= goes;
            taken += goes;
            intake.on_taken(waiting as usize);
            if let Some(changed) = intake.step(waiting as usize, taken as u64, now) {
                rate = changed;
            }
            if ms >= 3000 {
                let wait_ms = waiting / line;
                sum += wait_ms;
                max = max.max(wait_ms);
                used += goes;
                could += line;
            }
        }
        (sum / 2000.0, max, used / could)
    }

    #[test]
    fn a_greedy_host_is_held_at_a_short_wait_and_fills_the_line() {
        for (line, frame) in [
            (10_000_000.0, 3000.0),
            (100_000_000.0, 16_000.0),
            (1_000_000_000.0, 64_000.0),
        ] {
            let (mean, max, used) = run(10.0 * line, frame, |_| line);
            assert!(mean < 6.0 && max < 12.0, "{line}: {mean} {max}");
            assert!(used > 0.97, "{line}: {used}");
        }
    }

    #[test]
    fn a_line_that_takes_frames_in_lumps_is_measured_over_all_of_them() {
        let mut intake = Intake::new(Instant::ZERO);
        let (mut taken, mut now) = (0, Instant::ZERO);
        let mut step = |waiting: usize, bytes: u64| {
            intake.on_taken(waiting);
            taken += bytes;
            intake.step(waiting, taken, now);
            now += STEP;
            intake.rate_bps()
        };
        (0..10).for_each(|_| _ = step(100_000, 10_000));
        // In one step it takes little, and something waits all the time; in the next it takes that, too.
        let mut rates = Vec::new();
        for _ in 0..100 {
            step(3000, 3000);
            step(3000, 3000);
            rates.push(step(0, 24_000).unwrap());
        }
        // On average a megabyte a second.
        let last = rates[rates.len() - 10..].iter().min().unwrap();
        assert!((8_000_000..14_000_000).contains(last), "{last}");
    }

    #[test]
    fn a_line_that_is_known_to_be_worth_more_or_less_is_filled_at_once() {
        let rate_after = |times: f64| {
            let mut intake = Intake::new(Instant::ZERO);
            let mut rate = None;
            for ms in (0..300u64).step_by(10) {
                let now = Instant::ZERO + Duration::from_millis(ms);
                rate = intake.step(100_000, ms * 12_500, now).unwrap_or(rate);
            }
            let before = rate.expect("held back") as f64;
            intake.on_capacity(100_000_000, (1e8 * times) as u64);
            // As much is taken in each step as the line is worth by now, and as much waits for it.
            for step in 1..=2 {
                let now = Instant::ZERO + Duration::from_millis(290 + 10 * step);
                let taken = 290.0 * 12_500.0 + 125_000.0 * times * step as f64;
                let waiting = (100_000.0 * times) as usize;
                rate = intake.step(waiting, taken as u64, now).unwrap_or(rate);
            }
            rate.expect("still held back") as f64 / before
        };
        assert!((1.9..2.1).contains(&rate_after(2.0)));
        assert!((0.45..0.55).contains(&rate_after(0.5)));
        // One that others than the links bound keeps what it has.
        let speed_after = |before: u64, after: u64| {
            let mut intake = Intake::new(Instant::ZERO);
            intake.speed.get_or_insert_default().add(1e8);
            intake.on_capacity(before, after);
            intake.speed.map(|mean| mean.value)
        };
        assert_eq!(speed_after(400_000_000, 800_000_000), Some(1e8));
        assert_eq!(speed_after(400_000_000, 200_000_000), Some(1e8));
        assert_eq!(speed_after(400_000_000, 50_000_000), Some(5e7));
    }

    #[test]
    fn what_stood_on_the_links_before_the_first_frame_does_not_make_the_line_slow() {
        let mut intake = Intake::new(Instant::ZERO);
        // Nothing comes through for 100 ms, then a megabyte a second.
        for ms in (0..130u64).step_by(10) {
            let taken = ms.saturating_sub(100) * 1000;
            intake.on_taken(500_000);
            intake.step(500_000, taken, Instant::ZERO + Duration::from_millis(ms));
        }
        // Half of it is let in while so much waits.
        let rate = intake.rate_bps().expect("held back");
        assert!((3_900_000..4_100_000).contains(&rate), "{rate}");
    }

    #[test]
    fn a_line_that_becomes_faster_is_filled_again() {
        let (_, _, used) = run(1e9, 16_000.0, |ms| if ms < 1000 { 1e7 } else { 4e8 });
        assert!(used > 0.95, "{used}");
    }

    #[test]
    fn a_line_that_becomes_slower_has_a_short_wait_again() {
        let (mean, _, used) = run(1e9, 3000.0, |ms| if ms < 1000 { 1e8 } else { 1e7 });
        assert!(mean < 8.0 && used > 0.97, "{mean} {used}");
    }

    #[test]
    fn a_host_slower_than_the_line_is_left_alone() {
        let mut intake = Intake::new(Instant::ZERO);
        for ms in 0..1000u64 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            assert_eq!(intake.step(1500, ms * 6000, now), None);
        }
    }

    /// A host of which `unread(ms)` is left unread at each millisecond, while the links take 12 Mbit/s.
    /// Returns the last rate of half a second.
    fn run_unread(unread: impl Fn(u64) -> bool) -> Option<u64> {
        let mut intake = Intake::new(Instant::ZERO);
        let mut rate = None;
        for ms in 0..500u64 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            intake.on_read(unread(ms));
            intake.on_taken(0);
            if intake.poll_timeout(0).is_some_and(|at| at <= now) {
                rate = intake.step(0, ms * 1500, now).unwrap_or(rate);
            }
        }
        rate
    }

    #[test]
    fn what_is_never_read_to_the_end_is_held_back_though_nothing_waits_behind() {
        let rate = run_unread(|_| true).expect("held back");
        assert!((8_000_000..12_000_000).contains(&rate), "{rate}");
        assert_eq!(
            run_unread(|ms| ms % 9 != 0),
            None,
            "read empty in each step"
        );
    }

    #[test]
    fn the_first_samples_count_alike_and_a_local_queue_that_grew_is_no_underflow() {
        let mut mean = Mean::default();
        [10.0, 20.0, 30.0]
            .into_iter()
            .for_each(|sample| mean.add(sample));
        assert!((mean.value - 20.0).abs() < 1e-9, "{mean:?}");
        let mut intake = Intake::new(Instant::ZERO);
        for (ms, gone) in [(0, 0), (10, 50_000), (20, 49_000), (30, 49_000)] {
            let now = Instant::ZERO + Duration::from_millis(ms);
            intake.on_taken(100_000);
            intake.step(100_000, gone, now);
        }
        assert!(
            intake.rate_bps.is_some_and(|bps| bps < 40_000_000),
            "{intake:?}"
        );
    }

    #[test]
    fn shaping_ends_when_nothing_waits_any_more() {
        let mut intake = Intake::new(Instant::ZERO);
        let mut rate = None;
        for ms in 0..5000u64 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let (waiting, taken) = if ms < 1000 {
                (100_000, ms * 12_500)
            } else {
                (0, 12_500_000)
            };
            rate = intake.step(waiting, taken, now).unwrap_or(rate);
            if ms == 500 {
                assert!(rate.is_some());
            }
        }
        assert_eq!(rate, None);
    }
}
