//! Against a link that is a bucket: what comes in above its rate stands, and leaves in its time.

use super::*;

const GBIT: u64 = 1_000_000_000;

/// A link of which nobody is told the rate.
struct Bucket {
    rate_bps: u64,
    others_bps: u64,
    /// Bytes.
    stands: f64,
    now: Instant,
    longest_wait: Duration,
}

impl Bucket {
    fn new(rate_bps: u64) -> Bucket {
        Bucket {
            rate_bps,
            others_bps: 0,
            // What TCP has under way when it is shaped first.
            stands: rate_bps as f64 / 8.0 * 0.0027,
            now: Instant::ZERO,
            longest_wait: Duration::ZERO,
        }
    }

    /// What was seen when so much was let out, a tenth of a millisecond at a time.
    fn pass(&mut self, time: Duration, ours_bps: u64, waits: bool) -> Seen {
        const STEP_S: f64 = 1e-4;
        let steps = time.as_micros() / 100;
        let mut seen = Seen {
            elapsed: time,
            waits,
            all: Some(0),
            ..Seen::default()
        };
        let (mut ours, mut all) = (0.0, 0.0);
        for _ in 0..steps {
            let came = ours_bps as f64 / 8.0 * STEP_S;
            ours += came;
            self.stands += came + self.others_bps as f64 / 8.0 * STEP_S;
            let left = self.stands.min(self.rate_bps as f64 / 8.0 * STEP_S);
            self.stands -= left;
            all += left;
            if self.stands > 0.0 {
                seen.stood += Duration::from_micros(100);
                seen.stood_left += left as u64;
            }
            let wait = Duration::from_secs_f64(self.stands * 8.0 / self.rate_bps as f64);
            self.longest_wait = self.longest_wait.max(wait);
        }
        seen.ours = ours as u64;
        seen.all = Some(all as u64);
        self.now += time;
        seen
    }

    /// Until it gives up; so many looks at most, and bytes that went.
    fn run(&mut self, shaping: &mut Shaping, looks: u32) -> Result<u64, GivenUp> {
        let mut sent = 0;
        for _ in 0..looks {
            let seen = self.pass(shaping.look_after(), shaping.rate_bps(), true);
            sent += seen.ours;
            shaping.look(&seen, self.now)?;
        }
        Ok(sent)
    }
}

#[test]
fn what_stands_is_drained_and_then_hardly_anything_does_at_nearly_the_whole_rate() {
    for rate_bps in [GBIT / 4, GBIT, 2 * GBIT - 100_000_000] {
        // What was measured first, in a few milliseconds, is wrong by some percent.
        for first in [rate_bps / 100 * 97, rate_bps, rate_bps / 100 * 104] {
            let mut link = Bucket::new(rate_bps);
            let mut shaping = Shaping::new(first, link.now);
            link.run(&mut shaping, 40).unwrap();
            link.longest_wait = Duration::ZERO;
            let began = link.now;
            let sent = link.run(&mut shaping, 200).unwrap();
            let took = link.now.since(began);
            let share = sent as f64 * 8.0 / took.as_secs_f64() / rate_bps as f64;
            assert!(
                (0.97..0.985).contains(&share),
                "{rate_bps}, {first}: {share}"
            );
            assert!(
                link.longest_wait < Duration::from_micros(500),
                "{rate_bps}, {first}: {:?}",
                link.longest_wait
            );
        }
    }
}

#[test]
fn a_link_that_became_slower_is_followed_at_once_and_one_that_became_faster_within_seconds() {
    let mut link = Bucket::new(GBIT);
    let mut shaping = Shaping::new(GBIT, link.now);
    link.run(&mut shaping, 100).unwrap();
    link.rate_bps = GBIT / 2;
    link.run(&mut shaping, 10).unwrap();
    let near = |shaping: &Shaping, bps: u64| shaping.link_bps().abs_diff(bps) < bps / 50;
    assert!(near(&shaping, GBIT / 2), "{shaping:?}");
    link.rate_bps = GBIT;
    let began = link.now;
    while !near(&shaping, GBIT) && link.now.since(began) < Duration::from_secs(60) {
        link.run(&mut shaping, 1).unwrap();
    }
    let took = link.now.since(began);
    assert!(took < Duration::from_secs(8), "{took:?}: {shaping:?}");
}

#[test]
fn a_link_that_was_slow_for_a_moment_after_a_long_time_is_soon_used_as_before() {
    let mut link = Bucket::new(GBIT);
    let mut shaping = Shaping::new(GBIT, link.now);
    link.run(&mut shaping, 4000).unwrap();
    link.rate_bps = GBIT / 2;
    link.run(&mut shaping, 20).unwrap();
    link.rate_bps = GBIT;
    let began = link.now;
    while shaping.link_bps() < GBIT / 100 * 95 {
        link.run(&mut shaping, 1).unwrap();
        assert!(
            link.now.since(began) < Duration::from_secs(8),
            "{shaping:?}"
        );
    }
    // Nor does a host that stands still for one look see a slow link.
    let stopped = Seen {
        elapsed: Duration::from_millis(90),
        stood: Duration::from_millis(90),
        stood_left: 12_000,
        waits: true,
        ..Seen::default()
    };
    shaping.look(&stopped, link.now).unwrap();
    assert!(shaping.link_bps() < SHAPED_MIN_BPS, "{shaping:?}");
    link.run(&mut shaping, 1).unwrap();
}

#[test]
fn what_others_send_there_is_left_to_them() {
    let mut link = Bucket::new(GBIT);
    link.others_bps = GBIT / 10;
    let mut shaping = Shaping::new(GBIT, link.now);
    link.run(&mut shaping, 100).unwrap();
    link.longest_wait = Duration::ZERO;
    link.run(&mut shaping, 100).unwrap();
    assert!(
        link.longest_wait < Duration::from_millis(1),
        "{:?}",
        link.longest_wait
    );
    let rate = shaping.rate_bps();
    assert!((GBIT / 100 * 86..GBIT / 100 * 90).contains(&rate), "{rate}");
}

#[test]
fn who_does_not_use_what_is_let_out_is_not_asked_to_take_more() {
    let mut link = Bucket::new(GBIT);
    let mut shaping = Shaping::new(GBIT, link.now);
    for _ in 0..1000 {
        let seen = link.pass(shaping.look_after(), GBIT / 10, false);
        shaping.look(&seen, link.now).unwrap();
    }
    assert_eq!(shaping.link_bps(), GBIT);
}

#[test]
fn a_queue_that_stands_whatever_is_done_is_given_up_and_so_is_a_rate_that_is_not_for_this() {
    let mut link = Bucket::new(GBIT);
    link.others_bps = 2 * GBIT;
    let mut shaping = Shaping::new(GBIT, link.now);
    assert_eq!(link.run(&mut shaping, 100), Err(GivenUp::NotOurs));
    for (rate_bps, why) in [(GBIT / 10, GivenUp::Slow), (4 * GBIT, GivenUp::Fast)] {
        let mut link = Bucket::new(GBIT);
        let mut shaping = Shaping::new(GBIT, link.now);
        link.run(&mut shaping, 20).unwrap();
        link.rate_bps = rate_bps;
        assert_eq!(link.run(&mut shaping, 2000), Err(why));
    }
}
