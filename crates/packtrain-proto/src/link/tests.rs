use super::*;

fn link() -> Link {
    let state = LinkState {
        address: MacAddr([2; 6]),
        mark: None,
        mtu: 1500,
        carrier: true,
        rate_bps: None,
    };
    Link::new(LinkId(0), state, SandBound(None))
}

#[test]
fn a_standing_queue_shows_its_rate_and_is_then_kept_to_a_millisecond() {
    let mut link = link();
    let mut now = Instant::ZERO;
    let mut queued = 0usize;
    // 100 Mbit/s: 12,500 bytes a millisecond.
    for _ in 0..600 {
        while link.has_room() {
            link.on_given(1514);
            queued += 1514;
        }
        now += Duration::from_micros(200);
        queued = queued.saturating_sub(2500);
        link.on_told(queued, now);
    }
    let bps = link.drain_rate_bps(now).unwrap();
    assert!((99_000_000..101_000_000).contains(&bps), "{bps}");
    assert!(
        (12_300..12_700).contains(&link.queue_limit()),
        "{}",
        link.queue_limit()
    );
    assert!(
        link.cuts(3_000, now) && !link.cuts(1_514, now),
        "what one train holds is not cut"
    );
}

/// A link that takes 5000 frames a second, to which trains of `lens` bytes are given, one after the other. How many stood
/// when the last one was given.
fn of_5000_a_second(lens: impl Iterator<Item = usize>) -> usize {
    short_of_frames(lens).1
}

fn short_of_frames(lens: impl Iterator<Item = usize>) -> (Link, usize, Instant) {
    let mut link = link();
    let mut now = Instant::ZERO;
    let mut queue = std::collections::VecDeque::new();
    let mut lens = lens.peekable();
    loop {
        while let Some(len) = lens.next_if(|_| link.has_room()) {
            link.on_given(len);
            link.on_train(len);
            queue.push_back(len);
        }
        if lens.peek().is_none() {
            return (link, queue.len(), now);
        }
        now += Duration::from_micros(200);
        queue.pop_front();
        link.on_told(queue.iter().sum(), now);
    }
}

#[test]
fn of_small_trains_no_more_stand_than_of_full_ones() {
    assert_eq!(of_5000_a_second([1500; 600].into_iter()), 5);
    assert_eq!(of_5000_a_second([300; 2000].into_iter()), 5);
    // When they have become small just now, though in bytes there would be room for two dozen; and long after that.
    for (since, standing) in [(40, 7), (1000, 6)] {
        let became_small = [1500; 600].into_iter().chain(vec![300; since]);
        assert_eq!(of_5000_a_second(became_small), standing, "{since}");
    }
}

#[test]
fn the_rate_of_full_trains_is_not_taken_from_small_ones() {
    for len in [300, 750, 1514] {
        let (mut link, _, now) = short_of_frames([len; 2000].into_iter());
        let measured = link.drain_rate_bps(now).unwrap();
        assert!(measured.abs_diff(len as u64 * 40_000) < measured / 20);
        let of_full = link.rate_of_full_trains(measured);
        assert!(of_full.abs_diff(1514 * 40_000) < of_full / 15, "{of_full}");
        // No more than it says of itself.
        link.state.rate_bps = Some(20_000_000);
        assert_eq!(link.rate_of_full_trains(measured), measured.max(20_000_000));
    }
    assert_eq!(link().rate_of_full_trains(1000), 1000);
}

#[test]
fn frames_that_nobody_can_share_have_room_by_their_bytes() {
    let mut link = link();
    let (mut now, mut queued) = (Instant::ZERO, 0usize);
    // 100 Mbit/s, frames of 100 bytes to hosts that take no trains.
    for _ in 0..200 {
        while link.has_room() {
            link.on_given(100);
            link.on_train(link.frame_max());
            queued += 100;
        }
        now += Duration::from_micros(200);
        queued -= 2500;
        link.on_told(queued, now);
    }
    let limit = link.queue_limit();
    assert!((12_000..14_000).contains(&limit), "{limit}");
}

#[test]
fn a_link_that_was_never_seen_draining_is_believed_its_rate_where_others_wait_for_it() {
    let mut link = link();
    assert_eq!(link.shared_queue_limit(), LIMIT_UNKNOWN);
    for (bps, limit) in [
        (1_000_000, 3 * 1514),
        (100_000_000, 50_000),
        (10_000_000_000, LIMIT_UNKNOWN),
    ] {
        link.state.rate_bps = Some(bps);
        assert_eq!(link.queue_limit(), LIMIT_UNKNOWN, "it is alone");
        assert_eq!(link.shared_queue_limit(), limit);
    }
    link.state.rate_bps = Some(1_000_000);
    link.on_given(3 * 1514);
    assert!(link.has_room() && !link.has_shared_room());
    link.drain.rate_bps = Some((100_000_000, Instant::ZERO));
    assert!(link.has_shared_room(), "it was seen faster than it says");
}

#[test]
fn a_standstill_that_ends_all_at_once_is_not_taken_for_a_slow_link() {
    let mut link = link();
    let mut now = Instant::ZERO;
    for _ in 0..50 {
        while link.has_room() {
            link.on_given(60_000);
        }
        let standing = link.drain.fill();
        for _ in 0..4 {
            link.on_told(standing, now);
            now += Duration::from_millis(1);
        }
        link.on_told(0, now);
        now += Duration::from_millis(1);
        assert!(!link.cuts(65_000, now), "{:?}", link.drain_rate_bps(now));
    }
}

#[test]
fn a_link_that_is_fast_now_and_then_is_not_a_slow_one_that_frames_are_cut_for() {
    let mut link = link();
    let now = std::cell::Cell::new(Instant::ZERO);
    link.on_told(100_000, now.get());
    // 100 KB stand all the time; so many are drained in so many milliseconds.
    let drain = |link: &mut Link, bytes: usize, ms: u64| {
        link.on_given(bytes);
        now.set(now.get() + Duration::from_millis(ms));
        link.on_told(100_000, now.get());
        link.drain_rate_bps(now.get()).expect("it stood")
    };
    for _ in 0..10 {
        for _ in 0..8 {
            drain(&mut link, 50_000, 5);
        }
        let rate_bps = drain(&mut link, 100_000, 2);
        assert!(rate_bps < CUT_BELOW_BPS, "{rate_bps}");
        assert!(!link.cuts(64_000, now.get()));
    }
    for _ in 0..25 {
        drain(&mut link, 50_000, 5);
    }
    assert!(link.cuts(64_000, now.get()), "slow for 125 ms");
    let later = now.get() + RATE_AGE_MAX;
    assert!(!link.cuts(64_000, later), "that was long ago");
}

#[test]
fn a_queue_that_is_never_seen_standing_has_no_rate() {
    let mut link = link();
    for i in 0..100 {
        link.on_given(60_000);
        link.on_told(0, Instant::ZERO + Duration::from_micros(i));
    }
    assert_eq!(link.drain_rate_bps(Instant::ZERO), None);
    assert!(!link.cuts(64_000, Instant::ZERO));
}

#[test]
fn a_queue_that_ran_dry_though_more_waited_may_be_deeper_for_a_while() {
    let mut link = link();
    link.drain.rate_bps = Some((100_000_000, Instant::ZERO));
    let limit = link.queue_limit();
    let mut now = Instant::ZERO;
    for _ in 0..10 {
        link.on_given(limit);
        now += Duration::from_millis(20);
        link.on_kept_back();
        link.on_told(0, now);
    }
    assert_eq!(link.queue_limit(), 4 * limit);
    for _ in 0..30 {
        link.on_given(limit);
        now += Duration::from_millis(501);
        link.on_kept_back();
        link.on_told(100, now);
    }
    assert_eq!(link.queue_time.get(), queue_time::UNBOUND_MIN);
}

/// A shaper lets the last frame go that it has tokens for, and pays for it later.
#[test]
fn a_queue_that_was_empty_before_its_link_can_have_carried_all_of_it_did_not_run_dry() {
    for (micros, is_dry) in [(150, false), (400, true)] {
        let mut link = Link::new(
            LinkId(0),
            link().state,
            SandBound(Some(Duration::from_micros(200))),
        );
        link.drain.rate_bps = Some((1_000_000_000, Instant::ZERO));
        let before = link.queue_time.get();
        let now = Instant::ZERO + Duration::from_millis(1);
        link.on_told(0, now);
        link.on_given(25_000);
        link.on_kept_back();
        link.on_told(0, now + Duration::from_micros(micros));
        assert_eq!(link.queue_time.get() > before, is_dry, "{micros} µs");
    }
}

/// Frames stay long for some seconds when less may stand again, and two of them are more than that.
#[test]
fn a_link_that_becomes_slower_while_its_frames_are_long_is_seen_to() {
    let state = LinkState {
        mtu: 65_000,
        ..link().state
    };
    let mut link = Link::new(
        LinkId(0),
        state,
        SandBound(Some(Duration::from_micros(200))),
    );
    link.drain.rate_bps = Some((1_000_000_000, Instant::ZERO));
    let mut now = Instant::ZERO;
    for told in 0..120 {
        now += Duration::from_millis(20);
        link.on_given(100_000);
        if told < 20 {
            link.on_kept_back();
        }
        link.on_told(0, now);
    }
    assert!(link.queue_limit() < link.frame_at_once_max());
    let mut queued = 0;
    for _ in 0..600 {
        while link.has_room() {
            let frame = link.frame_at_once_max();
            link.on_given(frame);
            queued += frame;
        }
        now += Duration::from_micros(100);
        queued -= 1250;
        link.on_told(queued, now);
    }
    let bps = link.drain_rate_bps(now).expect("it was seen");
    assert!((90_000_000..110_000_000).contains(&bps), "{bps}");
}

#[test]
fn single_small_frames_that_are_slow_to_go_are_no_measurement() {
    let mut link = link();
    let mut now = Instant::ZERO;
    for _ in 0..1000 {
        link.on_given(100);
        for _ in 0..3 {
            now += Duration::from_micros(20);
            link.on_told(100, now);
        }
        link.on_told(0, now);
    }
    assert_eq!(link.drain_rate_bps(now), None);
    assert_eq!(link.queue_limit(), LIMIT_UNKNOWN);
}

#[test]
fn without_carrier_there_is_no_room() {
    let mut link = link();
    assert!(link.has_room());
    link.state.carrier = false;
    assert!(!link.has_room());
}

/// 1 Gbit/s, an MTU of 9000, and an owner that is told every 20 µs: how long what stood there took the link at most, microseconds, once its
/// rate was known.
fn stood_for(sand: SandBound) -> u64 {
    let mut link = Link::new(
        LinkId(0),
        LinkState {
            mtu: 9000,
            ..link().state
        },
        sand,
    );
    let (mut now, mut queued, mut longest) = (Instant::ZERO, 0usize, 0);
    for round in 0..2000 {
        while link.has_room() {
            let frame = link.frame_at_once_max();
            link.on_given(frame);
            link.on_train(frame);
            queued += frame;
        }
        if round > 1000 {
            longest = longest.max(queued);
        }
        now += Duration::from_micros(20);
        queued = queued.saturating_sub(2500);
        link.on_told(queued, now);
    }
    (longest * 8 / 1000) as u64
}

#[test]
fn no_more_stands_than_a_small_frame_may_wait_for() {
    let bound = |micros| SandBound(Some(Duration::from_micros(micros)));
    assert!(
        (150..=200).contains(&stood_for(bound(200))),
        "{}",
        stood_for(bound(200))
    );
    assert!((400..=500).contains(&stood_for(bound(500))));
    assert!((1000..=1100).contains(&stood_for(SandBound(None))));
}
