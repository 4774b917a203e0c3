//! What a flight tells of its link beside rate and round trip: how much round trips differ, and how many trains are lost.

use super::*;

proptest! {
    /// Against RFC 6298 in floating point, word for word.
    #[test]
    fn jitter_is_the_mean_deviation_of_rfc_6298(
        round_trips_us in proptest::collection::vec(10u64..100_000, 1..60)
    ) {
        let mut flight = Flight::new(1500);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let (mut smoothed, mut deviation) = (0.0, 0.0);
        prop_assert_eq!(flight.round_trip_deviation(), None);
        for (n, us) in round_trips_us.into_iter().enumerate() {
            let sequence = flight.on_sent(1500, now);
            now += Duration::from_micros(us);
            flight.on_ack(&ack(sequence.0, 0), now, &mut drop).unwrap();
            let round_trip = us as f64;
            if n == 0 {
                (smoothed, deviation) = (round_trip, round_trip / 2.0);
            } else {
                deviation = 0.75 * deviation + 0.25 * (smoothed - round_trip).abs();
                smoothed = 0.875 * smoothed + 0.125 * round_trip;
            }
            let told = flight.round_trip_deviation().unwrap().as_nanos() as f64 / 1e3;
            prop_assert!((told - deviation).abs() < 1.0, "{told} for {deviation}");
        }
    }

    /// Against a list of who was lost: all acknowledgements arrive, and name all that has arrived.
    #[test]
    fn of_trains_whose_fate_is_known_so_many_are_lost(
        arrives in proptest::collection::vec(any::<bool>(), 30..300)
    ) {
        let mut flight = Flight::new(1500);
        let at = |n: usize| Instant::ZERO + Duration::from_secs(1) + Duration::from_micros(10 * n as u64);
        let mut lost = 0;
        for (n, arrives_too) in arrives.iter().enumerate() {
            let sequence = flight.on_sent(1500, at(n));
            lost += u64::from(!arrives_too);
            if *arrives_too {
                let before = (1..=64.min(n)).filter(|back| arrives[n - back]);
                let bitmap = before.fold(0u64, |bits, back| bits | 1 << (back - 1));
                flight.on_ack(&ack(sequence.0, bitmap), at(n), &mut drop).unwrap();
            }
        }
        // What is out still is lost, too: nothing comes of it.
        flight.give_up(at(arrives.len()), &mut drop);
        let ppm = flight.loss_ppm(at(arrives.len())).unwrap();
        prop_assert_eq!(flight.lost_trains(), lost);
        prop_assert_eq!(u64::from(ppm), lost * 1_000_000 / arrives.len() as u64);
    }
}

#[test]
fn loss_is_that_of_the_last_seconds_and_what_goes_again_is_not_lost() {
    let mut flight = Flight::new(1500);
    let at = |secs| Instant::ZERO + Duration::from_secs(secs);
    assert_eq!(flight.loss_ppm(at(1)), None);
    flight.on_sent(1500, at(1));
    flight.give_up(at(2), &mut drop);
    assert_eq!(flight.loss_ppm(at(3)), Some(1_000_000));
    let sequence = flight.on_sent(1500, at(20));
    flight
        .on_ack(&ack(sequence.0, 0), at(20), &mut drop)
        .unwrap();
    assert_eq!(flight.loss_ppm(at(20)), Some(0));
    flight.on_sent(1500, at(21));
    flight.take_unacknowledged();
    assert_eq!(flight.loss_ppm(at(21)), Some(0));
}

#[test]
fn how_long_it_is_not_answered_is_told_while_something_is_out() {
    let mut flight = Flight::new(1500);
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let sequence = flight.on_sent(1500, at(1000));
    flight.on_sent(1500, at(1001));
    flight
        .on_ack(&ack(sequence.0, 0), at(1010), &mut drop)
        .unwrap();
    assert_eq!(flight.unanswered_for(at(1200)), Duration::from_millis(190));
    flight.give_up(at(1300), &mut drop);
    assert_eq!(flight.unanswered_for(at(1400)), Duration::ZERO);
}
