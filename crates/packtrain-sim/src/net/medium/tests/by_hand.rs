//! A few frames, and times that one can reckon by hand.

use super::*;

#[test]
fn a_station_alone_sends_at_the_full_rate_with_gaps_of_96_bits() {
    for rate_bps in [RATE_BPS, 10 * RATE_BPS] {
        let config = MediumConfig::one_hub(rate_bps, 2);
        let mut medium = Medium::new(config, Random::new(1));
        for id in 0..100 {
            medium.offer(0, frame(id, 1518), Instant::ZERO).unwrap();
        }
        let heard = run(&mut medium, at(2_000_000));
        assert_eq!(heard.len(), 100);
        for (k, heard) in (0..).zip(heard) {
            let begun = Instant::ZERO + bits(k * (LONG + 96), rate_bps) + config.propagation;
            let expected = Heard::Frame {
                from: 0,
                by: Stations(0b10),
                frame: frame(k as u32, 1518),
                begun_at: begun,
                at: begun + bits(LONG, rate_bps),
            };
            assert_eq!(heard, expected);
        }
        assert_eq!(medium.counters().busy, 100 * bits(LONG, rate_bps));
        assert_eq!(medium.station_counters(0).deferred, 0);
    }
}

#[test]
fn a_frame_is_padded_to_64_bytes_on_the_wire_and_stays_as_it_is_for_who_hears_it() {
    let mut medium = medium(2, 1);
    medium.offer(0, frame(7, 20), at(10)).unwrap();
    let expected = Heard::Frame {
        from: 0,
        by: Stations(0b10),
        frame: frame(7, 20),
        begun_at: at(10 + WAY),
        at: at(10 + WAY + SHORT),
    };
    assert_eq!(run(&mut medium, at(10_000)), [expected]);
}

#[test]
fn two_that_begin_at_once_collide_jam_and_draw_who_goes_first() {
    let mut seen = [false; 4];
    for seed in 0..32 {
        let mut random = Random::new(seed);
        let draws = [random.fork(), random.fork()].map(|mut own| own.below(2));
        let mut medium = medium(2, seed);
        medium.offer(0, frame(0, 64), Instant::ZERO).unwrap();
        medium.offer(1, frame(1, 64), Instant::ZERO).unwrap();
        // Each hears the other at 101 and jams until 133, which is heard until 234.
        run(&mut medium, at(132));
        assert!(medium.stations.iter().all(|s| s.sending.is_some()));
        assert_eq!(medium.counters().collision, Duration::ZERO);
        run(&mut medium, at(133));
        assert!(medium.stations.iter().all(|s| s.sending.is_none()));
        assert_eq!(medium.counters().collision, BIT * 133);
        assert_eq!(medium.counters().collisions, 1);
        for (station, draw) in draws.into_iter().enumerate() {
            let counters = medium.station_counters(station);
            assert_eq!((counters.collisions, counters.late_collisions), (1, 0));
            let ready = at(133 + 512 * draw);
            assert_eq!(medium.stations[station].ready_at, ready);
        }
        // 0 slots: at the end of the gap, 234 + 96. 1 slot: at 133 + 512, if nobody is heard.
        match draws {
            [0, 0] => {
                run(&mut medium, at(330));
                assert_eq!([0, 1].map(|s| begun(&medium, s)), [Some(at(330)); 2]);
            }
            [1, 1] => {
                run(&mut medium, at(645));
                assert_eq!([0, 1].map(|s| begun(&medium, s)), [Some(at(645)); 2]);
            }
            _ => {
                let winner = usize::from(draws[1] == 0);
                let heard = run(&mut medium, at(100_000));
                let times = heard.iter().map(|heard| match *heard {
                    Heard::Frame { from, at, .. } => (from, at),
                    _ => panic!(),
                });
                let loser_begins = 330 + SHORT + WAY + 96;
                let expected = [
                    (winner, at(330 + SHORT + WAY)),
                    (1 - winner, at(loser_begins + SHORT + WAY)),
                ];
                assert!(times.eq(expected), "{heard:?}");
                assert_eq!(medium.station_counters(winner).single_collisions(), 1);
            }
        }
        seen[(2 * draws[0] + draws[1]) as usize] = true;
    }
    assert_eq!(seen, [true; 4], "all that can be drawn was");
}

#[test]
fn a_collision_within_the_preamble_waits_for_its_end_before_it_jams() {
    let config = MediumConfig {
        propagation: BIT * 20,
        ..MediumConfig::one_hub(RATE_BPS, 2)
    };
    let mut medium = Medium::new(config, Random::new(1));
    medium.offer(0, frame(0, 64), Instant::ZERO).unwrap();
    medium.offer(1, frame(1, 64), Instant::ZERO).unwrap();
    run(&mut medium, at(96));
    assert_eq!(medium.counters().collision, BIT * 96);
}

#[test]
fn who_begins_one_bit_before_it_would_have_heard_the_other_collides() {
    let mut medium = medium(2, 1);
    medium.offer(0, frame(0, 64), Instant::ZERO).unwrap();
    medium.offer(1, frame(1, 64), at(WAY - 1)).unwrap();
    // 0 hears it at 201, after its preamble; 1 hears at 101, in its own, which ends at 164.
    run(&mut medium, at(250));
    let ends = [201 + 32, 164 + 32].map(at);
    for (station, end) in ends.into_iter().enumerate() {
        assert_eq!(medium.station_counters(station).collisions, 1);
        let waits = medium.stations[station].ready_at.since(end);
        assert!(waits == Duration::ZERO || waits == BIT * 512, "{waits:?}");
    }
}

#[test]
fn who_wants_to_begin_as_it_hears_the_other_or_one_bit_later_defers() {
    for late in [0, 1] {
        let mut medium = medium(2, 1);
        medium.offer(0, frame(0, 64), Instant::ZERO).unwrap();
        medium.offer(1, frame(1, 64), at(WAY + late)).unwrap();
        let heard = run(&mut medium, at(100_000));
        let ends: Vec<Instant> = heard.iter().map(Heard::at).collect();
        let second_begins = WAY + SHORT + 96;
        assert_eq!(ends, [SHORT + WAY, second_begins + SHORT + WAY].map(at));
        let counters = [0, 1].map(|s| *medium.station_counters(s));
        assert_eq!(counters.map(|c| c.collisions), [0, 0]);
        assert_eq!(counters.map(|c| c.deferred), [0, 1]);
    }
}

#[test]
fn who_waits_meets_the_next_frame_of_the_station_that_it_waited_for() {
    let draws_nothing = |seed: &u64| Random::new(*seed).fork().below(2) == 0;
    let mut medium = medium(2, (0..).find(draws_nothing).unwrap());
    medium.offer(0, frame(0, 64), Instant::ZERO).unwrap();
    medium.offer(0, frame(1, 64), Instant::ZERO).unwrap();
    medium.offer(1, frame(2, 64), at(300)).unwrap();
    run(&mut medium, at(SHORT + WAY + 96));
    let begins = [SHORT + 96, SHORT + WAY + 96].map(|bits| Some(at(bits)));
    assert_eq!([0, 1].map(|s| begun(&medium, s)), begins);
    run(&mut medium, at(SHORT + 96 + 2 * WAY));
    let collisions = [0, 1].map(|s| medium.station_counters(s).collisions);
    assert_eq!(collisions, [1, 1]);
    // 1 jams at once, behind its preamble: from 773 until 869, heard until 970. A gap later 0 may go.
    let again = SHORT + 96 + 394;
    run(&mut medium, at(again - 1));
    assert_eq!(begun(&medium, 0), None);
    run(&mut medium, at(again));
    assert_eq!(begun(&medium, 0), Some(at(again)));
    // Only 1 had to wait before its first attempt; that of 0 waited for the gap after its own frame.
    run(&mut medium, at(100_000));
    let deferred = [0, 1].map(|s| medium.station_counters(s).deferred);
    assert_eq!(deferred, [0, 1]);
}

#[test]
fn a_carrier_counts_in_the_first_two_thirds_of_a_gap_and_not_in_the_last() {
    // A piece of 5 bits from 0 is heard from 101 until 106; the gap after it ends at 202, its first two
    // thirds at 170. 1 begins before it hears the piece, and is heard by 2 at 151, or at 176.
    for (begins, jams_until, expected) in [(50, 146, 146 + WAY + 96), (75, 171, 202)] {
        let mut medium = medium(3, 1);
        medium.offer(0, frame(0, 64), Instant::ZERO).unwrap();
        medium.cut(0, at(5));
        medium.offer(1, frame(1, 64), at(begins)).unwrap();
        medium.offer(2, frame(2, 64), at(110)).unwrap();
        run(&mut medium, at(jams_until));
        assert_eq!(begun(&medium, 1), None);
        run(&mut medium, at(expected - 1));
        assert_eq!(begun(&medium, 2), None);
        run(&mut medium, at(expected));
        assert_eq!(begun(&medium, 2), Some(at(expected)));
    }
}

#[test]
fn the_propagations_of_one_hub_are_those_of_the_standards_budgets() {
    let of = MediumConfig::propagation_of_one_hub;
    assert_eq!(of(10_000_000), Duration::from_nanos(10_100));
    assert_eq!(of(100_000_000), Duration::from_nanos(2_070));
    for rate_bps in [1, 56_000, 1_000_000, 3_000_000, 155_000_000, 1_000_000_000] {
        MediumConfig::one_hub(rate_bps, 2).check();
    }
}

#[test]
#[should_panic(expected = "not within half a slot")]
fn a_propagation_of_half_a_slot_is_refused() {
    let config = MediumConfig {
        propagation: BIT * 256,
        ..MediumConfig::one_hub(RATE_BPS, 2)
    };
    Medium::new(config, Random::new(1));
}

// ---- Bounds, cuts, rates

#[test]
fn a_full_queue_refuses_by_bytes_and_an_empty_one_takes_anything() {
    let config = MediumConfig {
        queue_bytes_max: 1000,
        ..MediumConfig::one_hub(RATE_BPS, 2)
    };
    let mut medium = Medium::new(config, Random::new(1));
    medium.offer(0, frame(0, 1518), Instant::ZERO).unwrap();
    assert_eq!(medium.queued_bytes(0), 1514);
    assert_eq!(
        medium.offer(0, frame(1, 64), at(LONG - 1)),
        Err(frame(1, 64))
    );
    // The first one's last bit has left.
    medium.offer(0, frame(2, 504), at(LONG)).unwrap();
    medium.offer(0, frame(3, 504), at(LONG)).unwrap();
    assert_eq!(medium.queued_bytes(0), 1000);
    medium.offer(0, frame(4, 64), at(LONG)).unwrap_err();
    assert_eq!(medium.station_counters(0).queue_full, 2);
}

#[test]
fn a_cable_that_is_pulled_ends_the_frame_there_and_takes_the_queue() {
    let mut medium = medium(3, 1);
    medium.offer(0, frame(0, 1518), Instant::ZERO).unwrap();
    medium.offer(0, frame(1, 64), Instant::ZERO).unwrap();
    medium.offer(1, frame(2, 64), at(500)).unwrap();
    let lost = medium.cut(0, at(1000));
    assert_eq!(lost, [frame(0, 1518), frame(1, 64)]);
    assert_eq!(medium.queued_bytes(0), 0);
    let refused = medium.offer(0, frame(3, 64), at(1000));
    assert_eq!(refused, Err(frame(3, 64)));
    assert_eq!(medium.station_counters(0).cut, 3);
    // 1 hears the end of the piece at 1101.
    let expected = Heard::Frame {
        from: 1,
        by: Stations(0b100),
        frame: frame(2, 64),
        begun_at: at(1000 + WAY + 96 + WAY),
        at: at(1000 + WAY + 96 + WAY + SHORT),
    };
    assert_eq!(run(&mut medium, at(100_000)), [expected]);
    assert_eq!(medium.counters().busy, BIT * (1000 + SHORT as u32));
    assert_eq!(medium.counters().collision, Duration::ZERO);
}

#[test]
fn a_station_that_is_mended_waits_for_the_gap_and_for_who_is_sending() {
    let mut medium = medium(2, 1);
    medium.offer(0, frame(0, 1518), Instant::ZERO).unwrap();
    medium.cut(0, at(1000));
    medium.mend(0, at(1010));
    medium.offer(0, frame(1, 1518), at(1020)).unwrap();
    run(&mut medium, at(1096));
    assert_eq!(begun(&medium, 0), Some(at(1096)));
    medium.cut(1, at(2000));
    medium.mend(1, at(2010));
    medium.offer(1, frame(2, 64), at(2020)).unwrap();
    let heard = run(&mut medium, at(100_000));
    let ends: Vec<_> = heard.iter().map(Heard::at).collect();
    let first_ends = 1096 + LONG + WAY;
    assert_eq!(ends, [first_ends, first_ends + 96 + SHORT + WAY].map(at));
    assert_eq!(medium.station_counters(1).collisions, 0);
}

#[test]
fn who_was_cut_off_in_the_meantime_has_not_heard_a_frame() {
    let mut medium = medium(4, 1);
    medium.offer(0, frame(0, 64), Instant::ZERO).unwrap();
    medium.cut(1, at(50));
    medium.cut(2, at(60));
    medium.mend(1, at(WAY));
    medium.mend(2, at(WAY + 1));
    medium.cut(3, at(WAY + SHORT - 1));
    let heard = run(&mut medium, at(10_000));
    let Heard::Frame { by, .. } = heard[0] else {
        panic!()
    };
    assert_eq!(by.iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn at_another_rate_what_was_sent_whole_is_heard_and_the_rest_goes_again() {
    let mut medium = medium(3, 1);
    medium.offer(0, frame(0, 64), Instant::ZERO).unwrap();
    medium.offer(0, frame(1, 64), Instant::ZERO).unwrap();
    let now = at(SHORT + 96 + 2);
    let (rate_bps, way) = (10 * RATE_BPS, Duration::from_nanos(2_070));
    // The first one's last bits are on their way, the second one has begun.
    medium.set_rate(rate_bps, way, now);
    let heard = run(&mut medium, at(10_000));
    let begun = now + bits(96, rate_bps) + way;
    let times: Vec<_> = heard.iter().map(Heard::at).collect();
    // The first is heard at once: but its last bit would have come 3 bits later.
    assert_eq!(times, [now, begun + bits(SHORT, rate_bps)]);
    assert_eq!(medium.station_counters(0).sent_frames, 2);
    let busy = BIT * (SHORT + 2) as u32 + bits(SHORT, rate_bps);
    assert_eq!(medium.counters().busy, busy);
}
