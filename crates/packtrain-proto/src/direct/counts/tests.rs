use super::*;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// An end that sends, and an answer to it `later` ms after each message.
struct Sender {
    counts: DirectCounts,
    ms: u64,
    sent: u32,
    received: u32,
    overtakes: bool,
}

impl Sender {
    fn new(sent: u32, received: u32) -> Sender {
        Sender {
            counts: DirectCounts::default(),
            ms: 1,
            sent,
            received,
            overtakes: false,
        }
    }

    /// `sent` more, of which `received` had come when the marker did.
    fn sample(&mut self, sent: u32, received: u32, later: u64) -> Option<Signal> {
        self.ms += 100;
        self.sent = self.sent.wrapping_add(sent);
        self.received = self.received.wrapping_add(received);
        assert_eq!(self.counts.on_sent(self.sent, at(self.ms)), None);
        let report = self.counts.take_report(at(self.ms)).unwrap();
        assert_eq!(report.sent, self.sent.wrapping_add(FIRST));
        let answer = DirectReport {
            seen_sent: report.sent,
            seen_received: self.received,
            ..DirectReport::default()
        };
        let heard = self
            .counts
            .on_report(&answer, self.overtakes, at(self.ms + later));
        // Said again, it says nothing.
        assert_eq!(
            self.counts
                .on_report(&answer, self.overtakes, at(self.ms + 99))
                .signal,
            None
        );
        heard.signal
    }
}

#[test]
fn one_in_fifty_that_is_lost_is_told_and_less_is_only_counted() {
    for start in [0, u32::MAX - 150] {
        let mut end = Sender::new(start, start);
        assert_eq!(end.sample(100, 100, 1), None);
        assert_eq!(end.sample(1000, 981, 1), None);
        assert_eq!(end.sample(1000, 980, 1), Some(Signal::Loss));
        assert_eq!(end.sample(1000, 1000, 1), None);
        assert_eq!(end.counts.lost(), 39);
    }
}

#[test]
fn a_few_frames_say_nothing_until_they_are_enough() {
    let mut end = Sender::new(0, 0);
    assert_eq!(end.sample(10, 10, 1), None);
    assert_eq!(end.sample(40, 36, 1), None);
    assert_eq!(end.sample(23, 20, 1), None);
    assert_eq!(end.counts.lost(), 0);
    assert_eq!(end.sample(1, 0, 1), Some(Signal::Loss), "8 of 64");
}

#[test]
fn of_a_few_frames_one_in_eight_is_lost_as_soon_as_that_is_sure() {
    for overtakes in [false, true] {
        let mut end = Sender::new(0, 0);
        end.overtakes = overtakes;
        assert_eq!(end.sample(10, 10, 1), None);
        for (sent, received) in [(6, 4); 4] {
            assert_eq!(end.sample(sent, received, 1), None, "too few to close it");
        }
        // Where the marker overtakes, they may stand in a queue.
        assert_eq!(end.counts.lost(), if overtakes { 0 } else { 4 });
        if !overtakes {
            assert_eq!(end.sample(0, 0, 1), None);
            assert_eq!(end.counts.lost(), 8, "the last ones as well");
        }
        if overtakes {
            let told = [(); 3].map(|()| end.sample(0, 0, 1));
            assert_eq!(told, [None, None, Some(Signal::Loss)], "none came");
            assert_eq!(end.counts.lost(), 8);
        }
    }
}

/// The link keeps the order, but who knows what comes behind it.
#[test]
fn many_that_are_missing_once_may_have_been_overtaken_further_on() {
    let mut end = Sender::new(0, 0);
    assert_eq!(end.sample(10, 10, 1), None);
    for _ in 0..20 {
        assert_eq!(end.sample(20, 16, 1), None);
        assert_eq!(end.sample(20, 24, 1), None, "they have come");
    }
    assert_eq!(end.counts.lost(), 0);
    assert_eq!(end.sample(32, 28, 1), None);
    assert_eq!(end.counts.lost(), 0, "it is asked again");
    // Of a flow that has become faster it is as sure.
    assert_eq!(end.sample(60, 60, 1), None);
    assert_eq!(end.counts.lost(), 4);
}

#[test]
fn who_counts_more_for_a_moment_has_lost_nothing_when_that_is_over() {
    let mut end = Sender::new(0, 0);
    assert_eq!(end.sample(1000, 1000, 1), None);
    assert_eq!(end.sample(1000, 1800, 1), None, "it was looked at late");
    assert_eq!(end.sample(1000, 200, 1), None);
    assert_eq!(end.sample(1000, 900, 1), Some(Signal::Loss));
    assert_eq!(end.counts.lost(), 100);
}

#[test]
fn where_a_marker_may_overtake_it_is_asked_again_while_most_are_missing_and_what_does_not_come_is_lost()
 {
    let mut end = Sender::new(0, 0);
    end.overtakes = true;
    assert_eq!(end.sample(10, 10, 1), None);
    // They stand in a queue.
    for (sent, received) in [(10, 0), (0, 2), (0, 2), (0, 1), (1, 6)] {
        assert_eq!(end.sample(sent, received, 1), None);
    }
    assert_eq!(end.counts.lost(), 0);
    // Nothing new is said of what has come.
    end.ms += 100;
    end.counts.on_sent(end.sent, at(end.ms));
    assert_eq!(end.counts.take_report(at(end.ms)), None);
    let signals = [20, 0, 0, 0].map(|sent| end.sample(sent, 0, 1));
    assert_eq!(signals, [None, None, None, Some(Signal::Loss)]);
    assert_eq!(end.counts.lost(), 20);
}

/// At 60 Gbit/s a millisecond is 5,000 segments, and a message that a busy processor sends later by it goes with a count
/// of before.
#[test]
fn a_fast_flow_that_begins_between_the_count_and_the_message_has_lost_nothing() {
    let mut end = Sender::new(0, 0);
    assert_eq!(end.sample(100, 100, 1), None);
    assert_eq!(end.sample(316, 316 + 4543, 1), None);
    assert_eq!(end.sample(4771, 4771 - 4543 + 89, 1), None);
    assert_eq!(end.sample(100_000, 100_000 - 89, 1), None);
    assert_eq!(end.counts.lost(), 0);
    assert_eq!(end.sample(100_000, 98_000, 1), Some(Signal::Loss));
    assert_eq!(end.counts.lost(), 2000);
}

#[test]
fn frames_that_the_marker_overtakes_are_not_lost_and_those_that_stay_missing_are() {
    let mut end = Sender::new(0, 0);
    end.overtakes = true;
    assert_eq!(end.sample(0, 0, 1), None);
    // A queue that fills and empties: up to 300 stand there.
    for (sent, received) in [(1000, 700), (1000, 1300), (1000, 700), (1000, 1000)] {
        assert_eq!(end.sample(sent, received, 1), None);
    }
    for (sent, received) in [(1000, 1300), (1000, 700), (10, 310)] {
        assert_eq!(end.sample(sent, received, 1), None);
    }
    assert_eq!(end.counts.lost(), 0);
    let mut signals = (0..9).map(|_| end.sample(1000, 900, 1));
    assert_eq!(signals.position(|signal| signal.is_some()), Some(3));
    assert!(end.counts.lost() > 0);
}

#[test]
fn an_end_that_begins_anew_has_lost_nothing() {
    // The receiver knows us from before, or does not yet.
    for (sent, received) in [(0, 900_000), (900_000, 0), (0, 50)] {
        let mut end = Sender::new(sent, received);
        for _ in 0..3 {
            assert_eq!(end.sample(1000, 1000, 1), None, "{sent} {received}");
        }
        end.received = 0;
        assert_eq!(end.sample(1000, 1000, 1), None);
        assert_eq!(end.sample(1000, 1000, 1), None);
        end.sent = 0;
        assert_eq!(end.sample(10, 1000, 1), None);
        assert_eq!(end.sample(1000, 1000, 1), None);
        assert_eq!(end.counts.lost(), 0);
    }
}

#[test]
fn a_queue_that_stands_somewhere_is_told_and_one_late_answer_is_not() {
    let mut end = Sender::new(0, 0);
    assert_eq!(end.sample(10, 10, 2), None);
    for later in [90, 23, 23, 23, 23, 22, 23, 23, 23, 23, 23] {
        assert_eq!(end.sample(10, 10, later), None, "{later}");
    }
    assert_eq!(end.sample(10, 10, 23), Some(Signal::Delay));
}

#[test]
fn a_peer_that_has_answered_and_does_not_any_more_is_not_reached() {
    let mut end = Sender::new(0, 0);
    let silent = |end: &mut Sender, ms: u64| {
        end.ms += ms;
        end.sent += 10;
        let signal = end.counts.on_sent(end.sent, at(end.ms));
        (signal, end.counts.take_report(at(end.ms)).is_some())
    };
    // Never heard, it may be one that does not know how.
    for _ in 0..20 {
        assert_eq!(silent(&mut end, 50).0, None);
    }
    (end.sent, end.ms) = (0, end.ms + 500);
    assert_eq!(end.sample(10, 10, 1), None);
    // Not more often than is worth while.
    assert_eq!(silent(&mut end, 30), (None, false));
    for expected in [None, None, None, None, Some(Signal::Loss)] {
        assert_eq!(silent(&mut end, 50), (expected, true));
    }
    // Nothing is known of it any more, and it is asked as one that is new.
    assert!(!end.counts.is_known());
    assert_eq!(silent(&mut end, 400), (None, false));
    assert_eq!(silent(&mut end, 100), (None, true));
    end.ms += 500;
    assert_eq!(end.sample(10, 10, 1), None);
    assert!(end.counts.is_known());
    // Who was away itself has not read what was answered.
    for _ in 0..3 {
        assert_eq!(silent(&mut end, 50), (None, true));
    }
    assert_eq!(silent(&mut end, 200), (None, true));
    assert_eq!(silent(&mut end, 50), (None, true));
}

#[test]
fn over_a_long_way_an_answer_is_waited_for() {
    let mut end = Sender::new(0, 0);
    assert_eq!(end.sample(10, 10, 200), None);
    end.ms += 200;
    let mut signals = (0..20).map(|_| {
        end.ms += 50;
        end.sent += 10;
        let signal = end.counts.on_sent(end.sent, at(end.ms));
        end.counts.take_report(at(end.ms));
        signal
    });
    // 150 ms, and a round trip and a half of 200 ms.
    assert_eq!(signals.position(|signal| signal.is_some()), Some(9));
}

#[test]
fn what_is_said_before_the_count_is_known_is_what_was_known_before() {
    let mut counts = DirectCounts::default();
    let said = |sent| DirectReport {
        sent,
        ..DirectReport::default()
    };
    assert!(counts.on_report(&said(10), false, at(1)).asks);
    counts.on_received(10.into());
    assert!(counts.on_report(&said(20), false, at(2)).asks);
    let seen = |report: DirectReport| (report.seen_sent, report.seen_received);
    assert_eq!(counts.take_report(at(3)).map(seen), Some((10, 10)));
    counts.on_received(19.into());
    assert_eq!(counts.take_report(at(4)).map(seen), Some((20, 19)));
    assert!(!counts.on_report(&said(20), false, at(5)).asks);
}

/// Both ask as soon as they know each other, and each answers before it is answered.
#[test]
fn over_a_long_way_two_ends_that_ask_at_once_know_how_long_it_is() {
    let mut ends = [DirectCounts::default(), DirectCounts::default()];
    // When, to whom, what.
    let mut under_way: Vec<(u64, usize, DirectReport)> = Vec::new();
    for ms in 0..200 {
        let arrived: Vec<_> = under_way.extract_if(.., |said| said.0 == ms).collect();
        for (_, to, report) in arrived {
            let heard = ends[to].on_report(&report, false, at(ms));
            assert_eq!(heard.signal, None);
            if heard.asks {
                ends[to].on_received(0.into());
            }
        }
        for (from, end) in ends.iter_mut().enumerate() {
            end.on_sent(0, at(ms));
            let report = end.take_report(at(ms));
            under_way.extend(report.map(|report| (ms + 25, 1 - from, report)));
        }
    }
    for end in ends {
        assert_eq!(end.least_round_trip(), Some(Duration::from_millis(50)));
    }
}

#[test]
fn two_ends_that_have_said_all_are_silent() {
    let mut ends = [DirectCounts::default(), DirectCounts::default()];
    ends[0].on_sent(5, at(1));
    ends[1].on_sent(7, at(1));
    let mut said = 0;
    for turn in 0..20 {
        let (speaker, hearer) = (turn % 2, 1 - turn % 2);
        let now = at(turn as u64 + 1);
        if let Some(report) = ends[speaker].take_report(now) {
            said += 1;
            if ends[hearer].on_report(&report, false, now).asks {
                ends[hearer].on_received(report.sent.into());
            }
        }
    }
    assert!(said <= 4, "{said} messages");
    assert_eq!(ends[0].take_report(at(50)), None);
    ends[0].on_sent(5, at(1000));
    assert_eq!(ends[0].take_report(at(1000)), None);
}

/// Both send all the time, so that each message could tell of more.
#[test]
fn two_ends_that_send_to_each_other_do_not_answer_each_others_answers() {
    const ON_THE_WAY_US: u64 = 100;
    const COUNT_EVERY_US: u64 = 50_000;
    let at = |us: u64| Instant::ZERO + Duration::from_micros(us);
    let frames = |us: u64| us as u32;
    let mut ends = [DirectCounts::default(), DirectCounts::default()];
    let mut under_way: [Vec<(u64, DirectReport)>; 2] = Default::default();
    let mut messages = 0;
    for us in 1..=1_000_000 {
        for (end, other) in [(0, 1), (1, 0)] {
            let arrived: Vec<_> = under_way[end]
                .extract_if(.., |(due, _)| *due == us)
                .collect();
            let counts = &mut ends[end];
            for (_, report) in arrived {
                let heard = counts.on_report(&report, false, at(us));
                assert_eq!(heard.signal, None);
                if heard.asks {
                    counts.on_sent(frames(us), at(us));
                    counts.on_received(frames(us.saturating_sub(ON_THE_WAY_US)).into());
                }
            }
            if us % COUNT_EVERY_US == 1 {
                assert_eq!(counts.on_sent(frames(us), at(us)), None);
            }
            if let Some(report) = counts.take_report(at(us)) {
                messages += 1;
                under_way[other].push((us + ON_THE_WAY_US, report));
            }
        }
    }
    assert!(ends.iter().all(DirectCounts::is_known));
    assert_eq!(ends.map(|end| end.lost()), [0, 0]);
    // Twenty counts a second of each, an answer to each, and what both say first.
    assert!((80..=84).contains(&messages), "{messages}");
}
