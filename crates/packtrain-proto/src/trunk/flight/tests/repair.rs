use super::*;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u32) -> Instant {
    Instant::ZERO + Duration::from_secs(1) + MS * millis
}

/// Repairs, and knows a round trip of four milliseconds.
fn repairing() -> Flight {
    let mut flight = Flight::new(1514);
    flight.set_repairs([LaneId::FIRST].into_iter().collect(), Duration::ZERO, false);
    for n in 0..8 {
        let sequence = send(&mut flight, Kind::New, at(n * 10));
        let acked = flight.on_ack(&ack(sequence.0, 0), at(n * 10 + 4), &mut drop);
        acked.unwrap();
    }
    flight
}

fn send(flight: &mut Flight, kind: Kind, now: Instant) -> Sequence {
    let mut copy = Buffer::with_capacity(64);
    assert!(copy.push(&flight.next_sequence().0.to_be_bytes()));
    let sent = Sent {
        train: TrainId {
            lane: LaneId::FIRST,
            sequence: flight.next_sequence(),
        },
        bytes: 100,
        copy: Some(copy),
        kind,
        first_sent: Instant::ZERO,
    };
    flight.on_train_sent(sent, now)
}

fn missing(flight: &mut Flight) -> Vec<u32> {
    let missing = flight.take_missing();
    missing.map(|missing| missing.train.sequence.0).collect()
}

#[test]
fn one_that_left_four_places_or_much_later_shows_what_is_missing() {
    let mut flight = repairing();
    let sent: Vec<u32> = (0..6)
        .map(|_| send(&mut flight, Kind::New, at(200)).0)
        .collect();
    // All but the first two; then but the first.
    flight
        .on_ack(&ack(sent[3], 0b1), at(204), &mut drop)
        .unwrap();
    assert_eq!(
        missing(&mut flight),
        [0u32; 0],
        "links may reorder a little"
    );
    flight
        .on_ack(&ack(sent[4], 0b11), at(204), &mut drop)
        .unwrap();
    assert_eq!(missing(&mut flight), [sent[0]]);
    let late = send(&mut flight, Kind::New, at(202)).0;
    flight
        .on_ack(&ack(late, 0b111), at(206), &mut drop)
        .unwrap();
    assert_eq!(missing(&mut flight), [sent[1]]);
    assert_eq!(flight.lost_trains(), 2);
    assert_eq!(flight.copies(), 0);
}

#[test]
fn a_link_that_reorders_is_given_more_time_each_time_that_it_shows() {
    let mut flight = repairing();
    let mut needed = Vec::new();
    for round in 0..4 {
        let now = at(1000 + round * 100);
        let first = send(&mut flight, Kind::New, now).0;
        // One after the other overtakes it.
        let newer = (1..=40).find(|newer| {
            let newest = send(&mut flight, Kind::New, now).0;
            let all_newer = (1u64 << (newer - 1)) - 1;
            flight
                .on_ack(&ack(newest, all_newer), now + MS * 4, &mut drop)
                .unwrap();
            missing(&mut flight) == [first]
        });
        needed.push(newer.expect("it is found missing"));
        let newest = send(&mut flight, Kind::New, now).0;
        flight
            .on_ack(&ack(newest, u64::MAX), now + MS * 4, &mut drop)
            .unwrap();
    }
    assert_eq!(needed, [4, 7, 13, 17]);
}

#[test]
fn what_is_no_copy_or_only_tries_a_link_is_not_missed() {
    let mut flight = repairing();
    let first = flight.on_sent(100, at(200));
    send(&mut flight, Kind::Try, at(200));
    let last = send(&mut flight, Kind::New, at(210));
    flight.on_ack(&ack(last.0, 0), at(214), &mut drop).unwrap();
    assert_eq!(missing(&mut flight), [0u32; 0]);
    assert_eq!(first.next().next(), last);
    assert_eq!(flight.outstanding_trains(), 0);
}

#[test]
fn of_the_end_of_a_burst_a_few_go_again_when_no_acknowledgement_comes_and_more_after_twice_the_time()
 {
    let mut flight = repairing();
    assert_eq!(flight.tail_due(), None);
    let sent: Vec<u32> = (0..6)
        .map(|_| send(&mut flight, Kind::New, at(200)).0)
        .collect();
    let mut copy_of = |copy: &Buffer| {
        let mut again = Buffer::with_capacity(64);
        assert!(again.push(copy));
        Some(again)
    };
    let due = flight.tail_due().expect("something is out");
    let after = due.since(at(200));
    assert_eq!(after, 5 * MS * 5 / 4 + 3 * MS);
    assert_eq!(flight.in_doubt_for(due), None);
    flight.take_tail(&mut copy_of, due);
    assert_eq!(missing(&mut flight), sent[..4]);
    assert_eq!(flight.outstanding_trains(), 6, "it may be only late");
    assert!(flight.in_doubt_for(due).is_some());
    assert_eq!(flight.in_doubt_for(due + 60 * MS), None);
    let next = flight.tail_due().expect("two more");
    assert_eq!(next.since(due), after * 2);
    flight.take_tail(&mut copy_of, next);
    assert_eq!(missing(&mut flight), sent[4..]);
    assert_eq!(flight.tail_due(), None);
    // When they are seen to be lost at last, nothing goes a third time.
    let last = send(&mut flight, Kind::New, at(300));
    flight.on_ack(&ack(last.0, 0), at(304), &mut drop).unwrap();
    assert_eq!(missing(&mut flight), [0u32; 0]);
    assert_eq!((flight.lost_trains(), flight.copies()), (6, 0));
    assert_eq!(flight.in_doubt_for(next), None, "it has answered");
}

#[test]
fn by_an_only_link_what_is_missing_before_one_that_came_is_lost_a_quarter_of_a_round_trip_later() {
    let due_alone = |is_alone| {
        let mut flight = repairing();
        flight.set_repairs(
            [LaneId::FIRST].into_iter().collect(),
            Duration::ZERO,
            is_alone,
        );
        let sent: Vec<u32> = (0..4)
            .map(|_| send(&mut flight, Kind::New, at(200)).0)
            .collect();
        flight
            .on_ack(&ack(sent[2], 0b10), at(204), &mut drop)
            .unwrap();
        let due = flight.tail_due().expect("the second and the last");
        flight.give_up_holes(at(204), &mut drop);
        assert_eq!(missing(&mut flight), [0u32; 0]);
        flight.give_up_holes(due, &mut drop);
        (due.since(at(204)), missing(&mut flight), flight)
    };
    let (after, lost, mut flight) = due_alone(true);
    assert_eq!((after, lost.len(), flight.lost_trains()), (2 * MS, 1, 1));
    // The last one stands behind what else there is to carry.
    let after = flight.tail_due().expect("the last").since(at(204));
    assert_eq!(after, (5 * MS * 5 / 4 + 3 * MS) * 2 + 10 * MS);
    // It comes after all: a link that reorders.
    let lost_one = flight.next_sequence().0 - 3;
    flight
        .on_ack(&ack(lost_one + 1, 0b11), at(207), &mut drop)
        .unwrap();
    let next = send(&mut flight, Kind::New, at(210));
    send(&mut flight, Kind::New, at(210));
    flight
        .on_ack(&ack(next.0 + 1, 0), at(214), &mut drop)
        .unwrap();
    assert!(flight.tail_due().expect("missing").since(at(214)) > 10 * MS);
    // A copy by another link is sent as soon for any that is late.
    let (after, lost, _) = due_alone(false);
    assert_eq!((after, lost.len()), (5 * MS * 5 / 4 + 3 * MS, 0));
}
