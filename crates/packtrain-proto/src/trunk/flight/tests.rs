use super::delivery::WINDOW_MAX;
use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

mod measures;
mod repair;

fn ack(newest: u32, bitmap: u64) -> Ack {
    Ack {
        link: 0,
        incarnation: 0,
        delay_nanos: 0,
        newest: Sequence(newest),
        bitmap,
    }
}

/// Runs a link of `rate_bps` and one-way `delay` that is never short of trains for `for_`.
fn run(flight: &mut Flight, rate_bps: u64, delay: Duration, start: Instant, for_: Duration) {
    let bytes = 1500;
    let serialise = Duration::from_nanos(bytes as u64 * 8 * 1_000_000_000 / rate_bps);
    let mut free_at = start;
    let mut arrivals: VecDeque<(Instant, Sequence)> = VecDeque::new();
    let mut now = start;
    while now < start + for_ {
        while flight.has_room(0) {
            free_at = free_at.max(now) + serialise;
            let sequence = flight.on_sent(bytes, now);
            arrivals.push_back((free_at + delay + delay, sequence));
        }
        let (at, sequence) = arrivals.pop_front().unwrap();
        now = at;
        flight.on_ack(&ack(sequence.0, 0), now, &mut drop).unwrap();
    }
}

proptest! {
    #[test]
    fn an_acknowledgement_names_its_newest_and_a_train_before_it_for_each_bit(
        bitmap in prop_oneof![Just(0), Just(u64::MAX), Just(1 << 63), any::<u64>()],
        newest in prop_oneof![0..130_usize, Just(16 * 1024)],
    ) {
        let is_named = |&at: &usize| {
            let back = newest - at;
            back == 0 || (back <= 64 && bitmap >> (back - 1) & 1 == 1)
        };
        let expected: Vec<usize> = (0..=newest).rev().filter(is_named).collect();
        let named: Vec<usize> = named_by(&ack(9, bitmap), newest).collect();
        prop_assert_eq!(named, expected);
    }
}

/// Acknowledgements of a link of 100 Mbit/s that have stood while we were away: some are read, then trains leave, then the
/// others are read, and those trains arrive by a link that has run dry meanwhile.
#[test]
fn what_was_acknowledged_while_we_were_away_does_not_make_a_link_fast() {
    let rate_bps = 100_000_000;
    let mut flight = Flight::new(1500);
    let half_way = Duration::from_micros(100);
    run(
        &mut flight,
        rate_bps,
        half_way,
        Instant::ZERO,
        Duration::from_millis(500),
    );
    let mut now = Instant::ZERO + Duration::from_millis(500);
    for _ in 0..50 {
        while flight.has_room(0) {
            flight.on_sent(1500, now);
        }
        now += Duration::from_millis(8);
        let first = flight.next.minus(flight.records.len() as u32);
        let out: Vec<Sequence> = (0..flight.records.len() as u32)
            .map(|n| Sequence(first.0 + n))
            .collect();
        let (read, later) = out.split_at(out.len() / 2);
        for sequence in read {
            flight.on_ack(&ack(sequence.0, 0), now, &mut drop).unwrap();
        }
        let sent = flight.on_sent(1500, now);
        now += Duration::from_micros(50);
        for sequence in later {
            flight.on_ack(&ack(sequence.0, 0), now, &mut drop).unwrap();
        }
        now += Duration::from_micros(300);
        flight.on_ack(&ack(sent.0, 0), now, &mut drop).unwrap();
    }
    let (bps, _) = flight.rate_bps().unwrap();
    // Without a look at when they were sent, it was a thousand times as fast.
    assert!(bps < rate_bps * 2, "{bps}");
}

#[test]
fn what_stands_in_the_local_queue_does_not_use_up_the_window() {
    let mut flight = Flight::new(1500);
    while flight.has_room(0) {
        flight.on_sent(1500, Instant::ZERO);
    }
    assert!(flight.has_room(3000) && flight.wants_ack(3000));
    let all = flight.in_flight_bytes();
    assert!(flight.has_room(all) && !flight.wants_ack(all));
}

#[test]
fn it_finds_the_rate_and_keeps_the_queue_below_short() {
    for (rate_bps, delay) in [
        (1_000_000, Duration::from_micros(100)),
        (100_000_000, Duration::from_micros(50)),
        (100_000_000, Duration::from_millis(50)),
        (5_000_000_000, Duration::from_micros(20)),
    ] {
        let mut flight = Flight::new(1514);
        run(
            &mut flight,
            rate_bps,
            delay,
            Instant::ZERO,
            Duration::from_secs(4),
        );
        let (measured, _) = flight.rate_bps().unwrap();
        let ratio = measured as f64 / rate_bps as f64;
        assert!((0.97..1.03).contains(&ratio), "{rate_bps}: {ratio}");
        let round_trip = delay * 2 + ACK_DELAY_MAX;
        let needed = rate_bps as u128 / 8 * round_trip.as_nanos() / 1_000_000_000;
        let window = flight.window_bytes() as u128;
        assert!(
            window > needed.min(WINDOW_MAX as u128 - 1),
            "{rate_bps} {delay:?}: {window}"
        );
        assert!(
            window < needed * 14 / 10 + 16_384,
            "{rate_bps} {delay:?}: {window} {needed}"
        );
    }
}

#[test]
fn it_follows_a_link_that_becomes_slower_and_faster_again() {
    let mut flight = Flight::new(1514);
    let delay = Duration::from_millis(1);
    let second = Duration::from_secs(1);
    run(&mut flight, 100_000_000, delay, Instant::ZERO, second * 2);
    run(
        &mut flight,
        10_000_000,
        delay,
        Instant::ZERO + second * 2,
        second * 4,
    );
    let (slow, _) = flight.rate_bps().unwrap();
    assert!((9_500_000..10_500_000).contains(&slow), "{slow}");
    run(
        &mut flight,
        100_000_000,
        delay,
        Instant::ZERO + second * 6,
        second * 3,
    );
    let (fast, _) = flight.rate_bps().unwrap();
    assert!(fast > 95_000_000, "{fast}");
}

/// What a sender does that has `cwnd` out, and a byte more for each that is acknowledged, until it has `cwnd_max`.
/// Returns the bytes that were out when there was no room first, if that happened.
fn double_each_round_trip(
    flight: &mut Flight,
    rate_bps: u64,
    delay: Duration,
    cwnd_max: usize,
) -> Option<usize> {
    let bytes = 1500;
    let serialise = Duration::from_nanos(bytes as u64 * 8 * 1_000_000_000 / rate_bps);
    let mut cwnd = 10 * bytes;
    let (mut now, mut free_at) = (Instant::ZERO, Instant::ZERO);
    let mut arrivals: VecDeque<(Instant, Sequence)> = VecDeque::new();
    while cwnd < cwnd_max {
        while arrivals.len() * bytes < cwnd {
            if !flight.has_room(0) {
                return Some(flight.in_flight_bytes());
            }
            free_at = free_at.max(now) + serialise;
            let sequence = flight.on_sent(bytes, now);
            arrivals.push_back((free_at + delay + delay, sequence));
        }
        flight.on_source_empty();
        let (at, sequence) = arrivals.pop_front().unwrap();
        now = at;
        flight.on_ack(&ack(sequence.0, 0), now, &mut drop).unwrap();
        cwnd += bytes;
    }
    None
}

#[test]
fn who_doubles_with_each_round_trip_never_waits_before_the_link_is_full() {
    for (rate_bps, delay) in [
        (100_000_000, Duration::from_millis(1)),
        (100_000_000, Duration::from_millis(25)),
        (20_000_000, Duration::from_millis(99)),
        (1_000_000_000, Duration::from_millis(5)),
    ] {
        let mut flight = Flight::new(1514);
        let round_trip = delay * 2;
        let fills = rate_bps as u128 / 8 * round_trip.as_nanos() / 1_000_000_000;
        let waited = double_each_round_trip(&mut flight, rate_bps, delay, fills as usize);
        assert_eq!(waited, None, "{rate_bps} {delay:?}: {fills} fill it");
    }
}

#[test]
fn on_a_slow_link_who_doubles_is_held_back_soon() {
    let mut flight = Flight::new(1514);
    let delay = Duration::from_millis(1);
    let out = double_each_round_trip(&mut flight, 1_000_000, delay, 1 << 20);
    assert!(out.is_some_and(|out| out < 3 * 32 * 1024), "{out:?}");
}

#[test]
fn a_few_trains_now_and_then_say_nothing_of_the_rate() {
    let mut flight = Flight::new(1514);
    let round_trip = Duration::from_millis(50);
    let mut now = Instant::ZERO;
    for _ in 0..100 {
        let sequence = flight.on_sent(115, now);
        now += round_trip;
        flight.on_ack(&ack(sequence.0, 0), now, &mut drop).unwrap();
        // Others had frames to send all the time.
        now += Duration::from_millis(1);
    }
    assert!(flight.rate_bps().is_none(), "{:?}", flight.rate_bps());
    assert!(flight.is_proven(), "it may have more");
}

#[test]
fn the_bound_shrinks_to_what_is_out_for_a_link_that_dies_takes_as_much() {
    let mut flight = Flight::new(1514);
    let (rate_bps, delay) = (100_000_000, Duration::from_millis(10));
    let filled = double_each_round_trip(&mut flight, rate_bps, delay, 240_000);
    assert_eq!(filled, None);
    let wide = flight.window_bytes();
    assert!(wide > 240_000, "{wide}");
    let start = Instant::ZERO + Duration::from_secs(2);
    run(&mut flight, rate_bps, delay, start, Duration::from_secs(1));
    let (full, fills) = (flight.window_bytes(), 250_000);
    assert!(full > fills && full < fills * 3 / 2 + 16_384, "{full}");
}

#[test]
fn the_only_link_starts_with_what_its_local_queue_shows() {
    let mut flight = Flight::new(1514);
    let sequence = flight.on_sent(100, Instant::ZERO);
    let at = Instant::ZERO + Duration::from_millis(200);
    flight.on_ack(&ack(sequence.0, 0), at, &mut drop).unwrap();
    // 100 Mbit/s have 2.5 MB out in 200 ms.
    while flight.in_flight_bytes() < 2_000_000 {
        flight.on_sent(1500, at);
    }
    assert!(!flight.has_room(0) && !flight.has_room_alone(0, None));
    assert!(flight.has_room_alone(0, Some(100_000_000)));
    assert!(!flight.has_room_alone(0, Some(10_000_000)));
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_refused() {
    let mut flight = Flight::new(1514);
    assert_eq!(
        flight.on_ack(&ack(1, 0), Instant::ZERO, &mut drop),
        Err(NeverSent)
    );
    flight.on_sent(100, Instant::ZERO);
    assert_eq!(
        flight.on_ack(&ack(2, 0), Instant::ZERO, &mut drop),
        Err(NeverSent)
    );
    assert_eq!(
        flight.on_ack(&ack(1, u64::MAX), Instant::ZERO, &mut drop),
        Ok(true)
    );
    assert_eq!(flight.in_flight_bytes(), 0);
    assert_eq!(
        flight.on_ack(&ack(1, 0), Instant::ZERO, &mut drop),
        Ok(false)
    );
}

#[test]
fn silence_gives_the_window_back() {
    let mut flight = Flight::new(1514);
    flight.on_sent(1000, Instant::ZERO);
    let at = flight.poll_timeout().unwrap();
    assert!(flight.is_silent(at));
    flight.give_up(at, &mut drop);
    assert_eq!((flight.in_flight_bytes(), flight.lost_trains()), (0, 1));
    assert_eq!(flight.poll_timeout(), None);
    // The acknowledgement comes after all.
    assert_eq!(flight.on_ack(&ack(1, 0), at, &mut drop), Ok(false));
}

const LANE: LaneId = LaneId::FIRST;

#[test]
fn what_is_under_way_is_told_of_each_lane_by_itself() {
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let (first, other) = (LANE, LaneId(3));
    let sent = |lane, train, kind| Sent {
        train: TrainId {
            lane,
            sequence: Sequence(train),
        },
        bytes: 100,
        copy: None,
        kind,
        first_sent: Instant::ZERO,
    };
    let mut flight = Flight::new(1514);
    assert_eq!(flight.marker_due(other), None);
    for (lane, train, kind, ms) in [
        (first, 50, Kind::New, 0),
        (other, 1, Kind::New, 1),
        (first, 51, Kind::New, 2),
        (other, 2, Kind::New, 3),
        (first, 20, Kind::Replay, 4),
    ] {
        flight.on_train_sent(sent(lane, train, kind), at(ms));
    }
    let told = |flight: &Flight, lane| {
        (
            flight.oldest_outstanding(lane),
            flight.newest_outstanding(lane),
            flight.oldest_replay(lane),
            flight.outstanding_in(lane),
        )
    };
    let named = |train| Some(Sequence(train));
    let of_first = (named(20), named(51), named(20), 3);
    assert_eq!(told(&flight, first), of_first);
    assert_eq!(told(&flight, other), (named(1), named(2), None, 2));
    assert_eq!(told(&flight, LaneId(1)), (None, None, None, 0));
    assert_eq!(flight.marker_due(other), Some(at(3) + ACK_DELAY_MAX));
    flight.on_marker_sent(first, at(5));
    assert_eq!(
        (flight.told_at(first), flight.told_at(other)),
        (at(5), at(3))
    );
    assert!(flight.marker_due(first).is_none() && flight.marker_due(other).is_some());
    // Of the other lane nothing is left, and of the first the one before.
    flight.on_ack(&ack(5, 0b0111), at(8), &mut drop).unwrap();
    assert_eq!(told(&flight, other), (None, None, None, 0));
    assert_eq!(flight.marker_due(other), None);
    assert_eq!(told(&flight, first), (named(50), named(50), None, 1));
    flight.take_unacknowledged();
    assert_eq!(told(&flight, first), (None, None, None, 0));
}

#[test]
fn the_oldest_train_is_overdue_a_while_after_the_last_word_and_a_probe_after_it_left() {
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let kept = |train: u32, bytes, kind| Sent {
        train: TrainId {
            lane: LANE,
            sequence: Sequence(train),
        },
        bytes,
        copy: Some(Buffer::with_capacity(10)),
        kind,
        first_sent: Instant::ZERO,
    };
    let mut flight = Flight::new(1514);
    assert_eq!(flight.overdue_at(LANE), None);
    flight.on_train_sent(kept(1, 100, Kind::New), at(0));
    assert_eq!(flight.overdue_at(LANE), Some(at(0) + SILENCE_MIN));
    flight.on_train_sent(kept(2, 100, Kind::New), at(1));
    flight.on_train_sent(kept(3, 100, Kind::New), at(2));
    flight.on_ack(&ack(1, 0), at(8), &mut drop).unwrap();
    // A round trip of 8 ms and what delays an acknowledgement, a quarter more, and 5 ms.
    let late = Duration::from_micros(16_250);
    assert_eq!(flight.overdue_at(LANE), Some(at(8) + late));
    // A replay is older than what it stands behind, and a try keeps nobody waiting.
    flight.on_train_sent(kept(u32::MAX, 100, Kind::Try), at(9));
    flight.on_train_sent(kept(0, 0, Kind::Replay), at(10));
    assert!(flight.oldest_is_probe(LANE));
    assert_eq!(flight.overdue_at(LANE), Some(at(10) + late));
    assert!(flight.give_up_oldest_probe(LANE, &mut drop));
    assert!(!flight.give_up_oldest_probe(LANE, &mut drop));
    assert_eq!(flight.oldest_outstanding(LANE), Some(Sequence(2)));
    // Without a copy, going again would lose it: the others do, and it is waited for.
    flight.on_sent(100, at(11));
    assert_eq!(flight.overdue_at(LANE), Some(at(8) + late));
    let again = flight.take_kept().into_iter();
    let again: Vec<_> = again
        .map(|u| (u.train.sequence.0, u.copy.is_some()))
        .collect();
    assert_eq!(again, [(2, true), (3, true)]);
    assert_eq!(
        (flight.overdue_at(LANE), flight.in_flight_bytes()),
        (None, 200),
        "the one without a copy, and the try"
    );
    assert!(flight.is_silent(at(8) + SILENCE_MIN));
}

#[test]
fn a_link_shows_life_when_it_has_answered_and_is_not_late() {
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut flight = Flight::new(1514);
    assert!(!flight.shows_life(at(0)), "it was never heard");
    flight.on_sent(100, at(0));
    flight.on_ack(&ack(1, 0), at(8), &mut drop).unwrap();
    assert!(flight.shows_life(at(1000)), "nothing is out");
    flight.on_sent(100, at(1000));
    let late = Duration::from_micros(16_250);
    assert!(flight.shows_life(at(1000) + late));
    assert!(!flight.shows_life(at(1001) + late));
}

proptest! {
    /// Against a set of what is out.
    #[test]
    fn bytes_in_flight_are_what_is_neither_named_nor_given_up(
        steps in proptest::collection::vec((0u8..3, 0u32..80, any::<u64>()), 1..300)
    ) {
        let mut flight = Flight::new(1514);
        let mut out: HashSet<u32> = HashSet::new();
        let mut next = 1u32;
        for (kind, back, bitmap) in steps {
            if kind < 2 {
                flight.on_sent(100, Instant::ZERO);
                out.insert(next);
                next += 1;
            } else if next > 1 {
                let newest = next.saturating_sub(1 + back).max(1);
                let oldest = out.iter().min().copied().unwrap_or(next);
                flight.on_ack(&ack(newest, bitmap), Instant::ZERO, &mut drop).unwrap();
                if newest >= oldest {
                    out.retain(|&s| {
                        let named = s == newest
                            || (s < newest && newest - s <= 64
                                && bitmap >> (newest - s - 1) & 1 == 1);
                        !named && s as i64 >= newest as i64 - super::repair::REORDER_TRAINS_MAX as i64
                    });
                }
            }
            prop_assert_eq!(flight.in_flight_bytes(), out.len() * 100);
        }
    }
}

#[test]
fn a_probe_that_goes_again_may_be_under_way_for_as_long_as_one_takes_to_arrive() {
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let again = |train, bytes| Sent {
        train: TrainId {
            lane: LANE,
            sequence: Sequence(train),
        },
        bytes,
        copy: None,
        kind: Kind::Replay,
        first_sent: Instant::ZERO,
    };
    let mut flight = Flight::new(1500);
    flight.on_sent(1500, at(0));
    flight.on_ack(&ack(1, 0), at(10), &mut drop).unwrap();
    let late_after = flight.late_after();
    let sent_at = at(100);
    flight.on_train_sent(again(7, 0), sent_at);
    assert!(flight.may_bring_replays(sent_at + late_after));
    let later = sent_at + late_after + Duration::from_millis(1);
    assert!(!flight.may_bring_replays(later));
    // A train is acknowledged when it arrives.
    flight.on_train_sent(again(8, 100), sent_at);
    assert!(flight.may_bring_replays(later));
    flight
        .on_ack(&ack(3, 0), sent_at + Duration::from_millis(10), &mut drop)
        .unwrap();
    assert!(!flight.may_bring_replays(later));
}

/// Bit/s that a link of `rate_bps` and one-way `delay` delivers in `for_`.
fn delivered_bps(
    flight: &mut Flight,
    (rate_bps, delay): (u64, Duration),
    start: Instant,
    for_: Duration,
) -> f64 {
    let before = flight.delivery.delivered_bytes();
    run(flight, rate_bps, delay, start, for_);
    let bytes = flight.delivery.delivered_bytes() - before;
    bytes as f64 * 8.0 / for_.as_secs_f64()
}

#[test]
fn the_queue_behind_a_link_that_is_busy_for_minutes_does_not_grow() {
    for (rate_bps, delay) in [
        (1_000_000, Duration::from_millis(20)),
        (10_000_000, Duration::from_millis(10)),
        (100_000_000, Duration::from_millis(25)),
        (1_000_000_000, Duration::from_micros(100)),
    ] {
        let mut flight = Flight::new(1514);
        let link = (rate_bps, delay);
        let bps = delivered_bps(&mut flight, link, Instant::ZERO, Duration::from_secs(120));
        assert!(bps > 0.98 * rate_bps as f64, "{link:?}: {bps}");
        let alone = delay * 2 + Duration::from_nanos(12_000_000_000_000 / rate_bps);
        let least = flight.round_trip_min().unwrap();
        assert!(least <= alone * 11 / 10, "{link:?}: {least:?}");
        let needed = bytes_of(rate_bps, alone + ACK_DELAY_MAX);
        let window = flight.window_bytes();
        assert!(
            window <= needed * 14 / 10 + 4 * 1514,
            "{link:?}: {window} of {needed}"
        );
    }
}

fn bytes_of(rate_bps: u64, time: Duration) -> usize {
    (u128::from(rate_bps) * time.as_nanos() / 8_000_000_000) as usize
}

#[test]
fn a_path_that_becomes_longer_is_no_queue() {
    let second = Duration::from_secs(1);
    for (before, after) in
        [(1, 25), (25, 100)].map(|(a, b)| (Duration::from_millis(a), Duration::from_millis(b)))
    {
        let rate_bps = 100_000_000;
        let mut flight = Flight::new(1514);
        run(&mut flight, rate_bps, before, Instant::ZERO, second * 4);
        let at = Instant::ZERO + second * 4;
        run(&mut flight, rate_bps, after, at, second * 3);
        let bps = delivered_bps(&mut flight, (rate_bps, after), at + second * 3, second * 2);
        let least = flight.round_trip_min().unwrap();
        assert!(bps > 75e6, "{before:?}, {after:?}: {bps}, {least:?}");
        assert!(least >= after * 2, "{before:?}, {after:?}: {least:?}");
        // And shorter again, which each train shows.
        run(&mut flight, rate_bps, before, at + second * 5, second);
        let least = flight.round_trip_min().unwrap();
        assert!(least < before * 2 + Duration::from_millis(1), "{least:?}");
    }
}

#[test]
fn after_a_rest_a_longer_path_is_known_by_its_first_train() {
    let mut flight = Flight::new(1514);
    let ms = Duration::from_millis;
    let mut exchange = |at: Instant, takes: Duration| {
        let sequence = flight.on_sent(100, at);
        flight
            .on_ack(&ack(sequence.0, 0), at + takes, &mut drop)
            .unwrap();
        flight.round_trip_min().unwrap()
    };
    for n in 0..10 {
        exchange(Instant::ZERO + ms(100) * n, ms(2));
    }
    let later = Instant::ZERO + ms(1000);
    // For a while it is believed: the train may have waited for a processor, or for others' frames.
    assert_eq!(exchange(later + ms(1000), ms(40)), ms(2));
    assert_eq!(exchange(later + ms(20_000), ms(40)), ms(40));
    assert_eq!(exchange(later + ms(20_100), ms(30)), ms(30));
}
