use super::*;
use proptest::prelude::*;

const INTERVAL: Duration = Duration::from_millis(10);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(1) + Duration::from_millis(millis)
}

fn said(state: State, diagnostic: Diagnostic, count: u32) -> Liveness {
    Liveness {
        state,
        diagnostic,
        multiplier: MULTIPLIER,
        asks: true,
        poll: false,
        is_long: false,
        link: LinkId(0),
        remote_link: LinkId(0),
        incarnation: 0,
        count,
        heard: 0,
        heard_age: Duration::ZERO,
        desired: INTERVAL,
        required: INTERVAL,
        heard_long: 0,
    }
}

/// One that is up, and was heard last at that time.
fn up(last_heard: Instant) -> Session {
    let mut session = Session::new(LinkId(0), INTERVAL, false, at(0));
    session.on_message(&said(State::Init, Diagnostic::None, 1), at(0));
    assert_eq!(session.state(), State::Up);
    hear_until(&mut session, last_heard);
    session
}

/// Each 10 ms.
fn hear_until(session: &mut Session, last: Instant) {
    while session.heard_at < last {
        session.on_life((session.heard_at + INTERVAL).min(last));
    }
}

#[test]
fn the_state_machine_is_that_of_rfc_5880() {
    use State::{Down, Init, Up};
    // Section 6.8.6: by own state, then by what is heard: down, init, up.
    let table = [
        (Down, [Init, Up, Down]),
        (Init, [Init, Up, Up]),
        (Up, [Down, Up, Up]),
    ];
    for (own, row) in table {
        for (heard, next) in [Down, Init, Up].into_iter().zip(row) {
            assert_eq!(after(own, heard), next, "{own:?} hears {heard:?}");
        }
    }
}

#[test]
fn two_ends_come_up_in_three_messages_whoever_speaks_first() {
    let mut ends = [0, 1].map(|_| Session::new(LinkId(0), INTERVAL, false, at(0)));
    let mut messages = 0;
    let mut speaker = 0;
    while ends.iter().any(|end| end.state() != State::Up) {
        messages += 1;
        let message =
            ends[speaker].message(LinkId(0), 0, (messages, 0), (INTERVAL, INTERVAL), at(1));
        ends[1 - speaker].on_message(&message, at(1));
        speaker = 1 - speaker;
    }
    assert_eq!(messages, 3);
}

#[test]
fn a_link_is_dead_when_another_was_heard_again_and_again_since() {
    let mut dead = up(at(100));
    let mut alive = up(at(139));
    assert_eq!(dead.look([&alive].into_iter(), at(139)), None);
    assert_eq!(dead.poll_timeout().max(dead.look_at), at(140));
    hear_until(&mut alive, at(140));
    let change = dead.look([&alive].into_iter(), at(140));
    assert_eq!(change, Some(Change::Down(Diagnostic::Expired)));
    assert!(dead.has_failed() && !dead.works());
    assert!(
        dead.transmit_at() <= at(140),
        "the other end is told at once"
    );
}

#[test]
fn who_is_silent_by_all_links_is_waited_for_ten_times_as_long() {
    let mut one = up(at(100));
    let two = up(at(100));
    for ms in 101..500 {
        assert_eq!(one.look([&two].into_iter(), at(ms)), None, "{ms}");
    }
    let change = one.look([&two].into_iter(), at(500));
    assert_eq!(change, Some(Change::Down(Diagnostic::Expired)));
}

#[test]
fn after_a_pause_of_the_peer_each_link_has_the_time_of_four_messages() {
    let mut one = up(at(100));
    let mut two = up(at(100));
    // It was stopped for 300 ms, and the first of its frames comes by the other link.
    two.on_life(at(400));
    assert_eq!(one.look([&two].into_iter(), at(400)), None);
    hear_until(&mut two, at(424));
    assert_eq!(one.look([&two].into_iter(), at(424)), None);
    two.on_life(at(430));
    // Many that are read at one moment are one.
    (0..10).for_each(|_| two.on_life(at(430)));
    hear_until(&mut two, at(440));
    let change = one.look([&two].into_iter(), at(440));
    assert_eq!(change, Some(Change::Down(Diagnostic::Expired)));
}

#[test]
fn nobody_is_dead_for_our_own_lateness() {
    let mut one = up(at(100));
    let mut two = up(at(100));
    // The other's frames are read first.
    two.on_life(at(400));
    assert_eq!(one.look([&two].into_iter(), at(400)), None);
    one.on_life(at(401));
    hear_until(&mut two, at(435));
    assert_eq!(one.look([&two].into_iter(), at(435)), None);
    // A little late: there may be something to read, once.
    let mut one = up(at(100));
    let mut two = up(at(100));
    (0..10).for_each(|_| two.on_life(at(155)));
    assert_eq!(one.look([&two].into_iter(), at(155)), None);
    assert_eq!(one.poll_timeout().max(one.look_at), at(170));
    hear_until(&mut two, at(190));
    assert!(one.look([&two].into_iter(), at(190)).is_some());
}

#[test]
fn what_the_other_end_says_takes_it_down_at_once() {
    let mut session = up(at(100));
    let change = session.on_message(&said(State::Down, Diagnostic::Expired, 9), at(101));
    assert_eq!(change, Some(Some(Change::Down(Diagnostic::NeighborDown))));
    assert!(session.has_failed());
    // … but one that has only begun anew has not failed.
    let mut session = up(at(100));
    let change = session.on_message(&said(State::Down, Diagnostic::None, 9), at(101));
    assert_eq!(change, Some(Some(Change::Down(Diagnostic::None))));
    assert!(!session.has_failed() && !session.works());
}

#[test]
fn copies_of_old_messages_are_no_news_and_a_forged_count_is_not_for_long() {
    let mut session = up(at(0));
    assert!(
        session
            .on_message(&said(State::Up, Diagnostic::None, 7), at(10))
            .is_some()
    );
    let replayed = said(State::Down, Diagnostic::Expired, 3);
    assert_eq!(session.on_message(&replayed, at(20)), None);
    assert_eq!(session.state(), State::Up);
    assert!(
        session
            .on_message(&said(State::Up, Diagnostic::None, 1 << 30), at(20))
            .is_some()
    );
    for ms in 21..=60 {
        assert_eq!(
            session.on_message(&said(State::Up, Diagnostic::None, 8), at(ms)),
            None
        );
    }
    assert!(
        session
            .on_message(&said(State::Up, Diagnostic::None, 9), at(61))
            .is_some()
    );
    assert!(
        session
            .on_message(&said(State::Up, Diagnostic::None, 10), at(62))
            .is_some()
    );
}

#[test]
fn one_that_seemed_dead_and_was_late_is_waited_for_longer_for_a_while() {
    let mut late = up(at(100));
    let mut other = up(at(141));
    assert!(late.look([&other].into_iter(), at(141)).is_some());
    // What the other end sent before it heard of that comes after all.
    late.on_message(&said(State::Up, Diagnostic::None, 5), at(190));
    assert_eq!(late.detection_time(at(200)), Duration::from_millis(180));
    late.on_message(&said(State::Down, Diagnostic::NeighborDown, 6), at(191));
    late.on_message(&said(State::Up, Diagnostic::None, 7), at(192));
    assert_eq!(late.state(), State::Up);
    hear_until(&mut other, at(371));
    assert_eq!(late.look([&other].into_iter(), at(371)), None);
    hear_until(&mut other, at(372));
    assert!(late.look([&other].into_iter(), at(372)).is_some());
    assert_eq!(late.detection_time(at(30_300)), Duration::from_millis(40));
    // Nobody makes us wait for more than half a second by that.
    let mut late = up(at(100));
    assert!(late.look([&up(at(141))].into_iter(), at(141)).is_some());
    late.on_message(&said(State::Up, Diagnostic::None, 5), at(9000));
    assert_eq!(late.detection_time(at(9000)), Duration::from_millis(500));
}

#[test]
fn the_slower_of_both_sets_the_pace_and_the_time() {
    let mut session = up(at(0));
    let slow = Liveness {
        desired: INTERVAL * 5,
        required: INTERVAL * 3,
        multiplier: 3,
        ..said(State::Up, Diagnostic::None, 4)
    };
    session.on_message(&slow, at(1));
    assert_eq!(session.detection_time(at(1)), INTERVAL * 15);
    assert_eq!(session.interval(at(1)), INTERVAL * 3);
    let message = session.message(LinkId(0), 0, (1, 255), (INTERVAL, INTERVAL), at(2));
    assert_eq!(message.desired, INTERVAL * 3);
    assert_eq!(
        session.transmit_at(),
        at(2) + INTERVAL * 3 * 3 / 4,
        "with all its jitter"
    );
}

#[test]
fn a_link_that_stays_down_is_asked_less_and_less_often() {
    let session = Session::new(LinkId(0), INTERVAL, false, at(0));
    let intervals = [0, 100, 1000, 10_000, 100_000].map(|ms| session.interval(at(ms)));
    let millis = intervals.map(|interval| interval.as_millis());
    assert_eq!(millis, [10, 10, 100, 1000, 1000]);
}

#[test]
fn what_leaves_besides_says_as_much_while_both_are_up() {
    let mut session = up(at(0));
    session.on_other_sent(at(5));
    assert!(
        session.transmit_at() <= at(5),
        "the other end is not known to be up"
    );
    session.on_message(&said(State::Up, Diagnostic::None, 4), at(6));
    session.on_other_sent(at(7));
    assert_eq!(session.transmit_at(), at(7) + INTERVAL);
}

#[test]
fn an_echo_tells_the_round_trip() {
    let mut session = up(at(0));
    session.message(LinkId(0), 0, (77, 0), (INTERVAL, INTERVAL), at(10));
    let echo = Liveness {
        heard: 77,
        heard_age: Duration::from_millis(4),
        ..said(State::Up, Diagnostic::None, 4)
    };
    session.on_message(&echo, at(17));
    assert_eq!(session.round_trip(), Some(Duration::from_millis(3)));
    let unknown = Liveness {
        heard: 78,
        count: 5,
        ..echo
    };
    session.on_message(&unknown, at(90));
    assert_eq!(session.round_trip(), Some(Duration::from_millis(3)));
}

proptest! {
    /// Two ends of two links, of which one loses what it likes: however messages and losses fall, the link that loses nothing
    /// stays up, and the other one is up again soon after it has ceased to lose.
    #[test]
    fn the_link_that_carries_everything_never_dies(
        lost in proptest::collection::vec(any::<[bool; 2]>(), 0..400),
        jitter in any::<[u8; 8]>(),
    ) {
        let mut ends = [0, 1].map(|_| [0, 1].map(|_| Session::new(LinkId(0), INTERVAL, false, at(0))));
        let mut count = 0;
        let mut came_up = false;
        for ms in 0..lost.len() as u64 * 5 + 1500 {
            let loses = lost.get(ms as usize / 5).copied().unwrap_or_default();
            for end in 0..2 {
                for link in 0..2 {
                    if ends[end][link].transmit_at() <= at(ms) {
                        count += 1;
                        let by_chance = (count, jitter[count as usize % 8]);
                        let message = ends[end][link].message(LinkId(0), 0, by_chance, (INTERVAL, INTERVAL), at(ms));
                        if link == 0 || !loses[end] {
                            ends[1 - end][link].on_message(&message, at(ms));
                        }
                    }
                    let [first, second] = &mut ends[end];
                    let (this, other) = if link == 0 { (first, second) } else { (second, first) };
                    this.look([&*other].into_iter(), at(ms));
                }
            }
            let is_up = ends.iter().all(|end| end[0].state() == State::Up);
            prop_assert!(is_up || !came_up, "at {ms} ms");
            came_up |= is_up;
        }
        prop_assert!(came_up && ends.iter().all(|end| end[1].state() == State::Up));
    }
}
