//! Links that die while nobody is told, in one direction or both; and everything that looks like it and is not.

use crate::segments::{Bed, Cable, frame_to, host, pt0};
use packtrain_proto::config::LinkId;
use packtrain_proto::stats::{DropReason, LivenessSnapshot, PathSnapshot, PathState};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::liveness::{Diagnostic, State};

const MS: Duration = Duration::from_millis(1);
const A: usize = 0;
const B: usize = 1;

fn two_cables() -> Bed {
    let cables = [0, 1].map(|link| Cable::of(&[(A, link), (B, link)]));
    let mut bed = Bed::new(2, &cables);
    bed.run(1500 * MS);
    bed
}

fn is_liveness(message: &[u8]) -> bool {
    message[12..15] == [0x88, 0xb5, 0x14]
}

impl Bed {
    fn liveness(&self, side: usize, link: usize) -> LivenessSnapshot {
        self.paths(side)[link]
            .liveness
            .clone()
            .expect("it is watched")
    }

    fn failures(&self) -> Vec<u64> {
        let of = |side| self.paths(side).into_iter().map(|path| path.failures);
        of(A).chain(of(B)).collect()
    }

    /// Runs until both ends know that link 0 is dead; how long that took.
    fn time_to_know(&mut self) -> Duration {
        let since = self.now;
        let both = [PathState::Silent, PathState::Open];
        while self.states(A) != both || self.states(B) != both {
            self.run(MS);
            assert!(
                self.now.since(since) < 1000 * MS,
                "{:?}",
                self.liveness(A, 0)
            );
        }
        self.now.since(since)
    }

    fn drops(&self, side: usize, reason: DropReason) -> u64 {
        self.engines[side].snapshot(self.now).drops.get(reason)
    }
}

#[test]
fn a_link_that_dies_idle_in_whichever_direction_is_known_at_both_ends_within_fifty_milliseconds() {
    for from in [None, Some(A), Some(B)] {
        let mut bed = two_cables();
        assert_eq!(bed.states(A), [PathState::Open; 2]);
        assert_eq!(bed.liveness(A, 0).state, State::Up);
        bed.lose = Box::new(move |side, link, _| {
            link == LinkId(0) && from.is_none_or(|from| from == side)
        });
        let took = bed.time_to_know();
        assert!((28 * MS..=50 * MS).contains(&took), "{from:?}: {took:?}");
        let why = [A, B].map(|side| bed.liveness(side, 0).diagnostic);
        let told = match from {
            None => [Diagnostic::Expired; 2],
            // Who hears still is told.
            Some(A) => [Diagnostic::NeighborDown, Diagnostic::Expired],
            Some(_) => [Diagnostic::Expired, Diagnostic::NeighborDown],
        };
        assert_eq!(why, told);
        bed.run(300 * MS);
        bed.lose = Box::new(|_, _, _| false);
        // Asked for every 30 ms by then, and held for 100.
        bed.run(200 * MS);
        assert_eq!(bed.states(A), [PathState::Open; 2], "{from:?}");
        assert_eq!(bed.states(B), [PathState::Open; 2], "{from:?}");
        assert_eq!(bed.failures(), [1, 0, 1, 0]);
    }
}

#[test]
fn what_was_under_way_on_it_goes_again_in_its_order() {
    let mut bed = two_cables();
    let words = 200;
    for word in 0..words {
        if word == 40 {
            bed.cables[0].broken = true;
        }
        bed.send(A, &frame_to(pt0(B), pt0(A), word));
        bed.run(MS / 2);
    }
    bed.run(60 * MS);
    let got: Vec<u8> = bed.out[B].iter().map(|frame| frame[79]).collect();
    assert!(got.iter().copied().eq(0..words), "{got:?}");
}

#[test]
fn where_there_is_nothing_to_choose_nobody_asks() {
    let mut bed = Bed::new(2, &[Cable::of(&[(A, 0), (B, 0)])]);
    bed.lose = Box::new(|_, _, message| {
        assert!(!is_liveness(message));
        false
    });
    bed.run(3000 * MS);
    assert!(bed.paths(A)[0].liveness.is_none());
}

#[test]
fn nor_does_anybody_ask_a_peer_that_does_not_know_how() {
    let cables = [0, 1].map(|link| Cable::of(&[(A, link), (B, link)]));
    let mut bed = Bed::with(2, &cables, |config| {
        config.detection_time = config.detection_time.filter(|_| config.address == pt0(A));
    });
    bed.lose = Box::new(|_, _, message| {
        assert!(!is_liveness(message));
        false
    });
    bed.run(3000 * MS);
    assert!(bed.paths(A).iter().all(|path| path.liveness.is_none()));
    assert_eq!(bed.states(A), [PathState::Open; 2]);
}

/// One link here, two there, by a switch: who has one answers.
#[test]
fn who_has_one_link_answers_who_has_two() {
    let mut bed = Bed::new(2, &[Cable::of(&[(A, 0), (A, 1), (B, 0)])]);
    bed.run(1500 * MS);
    let seen = |bed: &Bed| {
        let up = |path: &PathSnapshot| path.liveness.as_ref().is_some_and(|l| l.state == State::Up);
        [A, B].map(|side| bed.paths(side).iter().filter(|path| up(path)).count())
    };
    // B has one path, by whichever of A's links, and A has two, which both live.
    assert_eq!(seen(&bed), [2, 1]);
    assert_eq!(bed.states(A), [PathState::Open; 2]);
    bed.set_carrier(A, 1, false);
    bed.run(8000 * MS);
    assert_eq!(seen(&bed), [0, 0], "nobody asks any more");
    assert!(bed.states(A).contains(&PathState::Open));
}

#[test]
fn over_a_switch_whichever_pairs_both_ends_have_chosen_all_are_up() {
    for hosts in [2, 3] {
        let ends: Vec<(usize, u8)> = (0..hosts).flat_map(|side| [(side, 0), (side, 1)]).collect();
        let mut bed = Bed::new(hosts, &[Cable::of(&ends)]);
        bed.run(3000 * MS);
        for side in 0..hosts {
            assert_eq!(bed.paths(side).len(), 2 * (hosts - 1));
            for path in bed.paths(side) {
                let liveness = path.liveness.expect("it is watched");
                assert_eq!(liveness.state, State::Up, "{hosts} hosts, {side}");
            }
        }
    }
}

#[test]
fn a_peer_that_is_stopped_is_no_dead_link_and_nor_are_we() {
    for pause in [30, 45, 80, 300, 1000, 3000] {
        for side in [A, B] {
            let mut bed = two_cables();
            bed.stop(side);
            bed.run(pause * MS);
            bed.resume(side);
            bed.run(300 * MS);
            for side in [A, B] {
                assert_eq!(bed.states(side), [PathState::Open; 2], "{pause} ms");
                let held = bed
                    .paths(side)
                    .into_iter()
                    .any(|path| path.liveness.unwrap().held_for.is_some());
                assert!(!held, "{pause} ms");
            }
            if pause < 400 {
                assert_eq!(bed.failures(), [0; 4], "{pause} ms");
            }
        }
    }
}

#[test]
fn frames_that_come_late_teach_and_kill_once() {
    let mut bed = two_cables();
    let delayed = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let keep = delayed.clone();
    // Of what A sends by its first link, all waits for 120 ms, from now on.
    bed.lose = Box::new(move |side, link, frame| {
        let waits = side == A && link == LinkId(0);
        if waits {
            keep.borrow_mut().push(frame.to_vec());
        }
        waits
    });
    let mut due: std::collections::VecDeque<(Instant, Vec<u8>)> = Default::default();
    let mut died = 0;
    for _ in 0..3000 {
        bed.run(MS);
        for frame in delayed.borrow_mut().drain(..) {
            due.push_back((bed.now + 120 * MS, frame));
        }
        while due.front().is_some_and(|(at, _)| *at <= bed.now) {
            let (_, frame) = due.pop_front().expect("some");
            bed.inject(B, 0, &frame);
        }
        died = bed.failures()[2];
    }
    assert_eq!(died, 1, "the delay came at once, and stays");
    assert!(bed.liveness(B, 0).detection_time > 120 * MS);
    assert_eq!(bed.states(B), [PathState::Open; 2]);
}

#[test]
fn a_link_that_flaps_is_held_longer_each_time() {
    let mut bed = two_cables();
    let mut held = Vec::new();
    for _ in 0..4 {
        bed.cables[0].broken = true;
        bed.run(60 * MS);
        bed.cables[0].broken = false;
        let back = bed.now;
        while bed.states(A)[0] != PathState::Open {
            bed.run(MS);
            assert!(bed.now.since(back) < 3000 * MS);
        }
        held.push(bed.now.since(back).as_millis() as u64);
    }
    for (took, hold) in held.iter().zip([100, 200, 400, 800]) {
        assert!((hold..hold + 40).contains(took), "{held:?}");
    }
}

#[test]
fn a_held_link_is_used_where_there_is_no_better_one() {
    let mut bed = two_cables();
    bed.cables[0].broken = true;
    bed.run(60 * MS);
    bed.cables[0].broken = false;
    bed.run(40 * MS);
    assert_eq!(bed.states(A), [PathState::Held, PathState::Open]);
    for side in [A, B] {
        bed.set_carrier(side, 1, false);
    }
    bed.send(A, &frame_to(pt0(B), pt0(A), 7));
    bed.run(5 * MS);
    assert_eq!(bed.out[B].len(), 1);
}

#[test]
fn forged_and_replayed_messages_do_no_more_than_a_moments_harm() {
    let mut bed = two_cables();
    let heard = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let keep = heard.clone();
    bed.lose = Box::new(move |side, link, frame| {
        if side == B && link == LinkId(0) && is_liveness(frame) {
            keep.borrow_mut().push(frame.to_vec());
        }
        false
    });
    bed.run(500 * MS);
    let old = heard.borrow().clone();
    assert!(old.len() > 20);
    // Again, in whatever order: nothing changes, and each is counted.
    for frame in old.iter().rev() {
        bed.inject(A, 0, frame);
    }
    assert_eq!(bed.drops(A, DropReason::StaleLiveness), old.len() as u64);
    bed.run(100 * MS);
    assert_eq!(bed.failures(), [0; 4]);
    // For another link of ours, of nobody, of a former life, in no state.
    let altered = |at: usize, xor: u8| {
        let mut frame = old[0].clone();
        frame[at] ^= xor;
        frame
    };
    for (frame, reason) in [
        (altered(18, 1), DropReason::BadLiveness),
        (altered(15, 0xf0), DropReason::BadLiveness),
        (altered(9, 0x40), DropReason::UnknownPeer),
        (altered(20, 1), DropReason::StaleIncarnation),
    ] {
        let before = bed.drops(A, reason);
        bed.inject(A, 0, &frame);
        assert_eq!(bed.drops(A, reason), before + 1, "{reason:?}");
    }
    // Somebody says Down for B, with a count far ahead: the link is out for a while, and comes back by itself.
    let mut down = altered(15, 0x30 ^ 0x11);
    down[22..26].copy_from_slice(&0x4000_0000_u32.to_be_bytes());
    bed.inject(A, 0, &down);
    assert_eq!(bed.states(A), [PathState::Silent, PathState::Open]);
    bed.run(400 * MS);
    assert_eq!(bed.states(A), [PathState::Open; 2]);
    assert_eq!(bed.states(B), [PathState::Open; 2]);
    // By all links, without end: what is sent arrives all the same.
    for n in 0..300u32 {
        for link in 0..2 {
            let mut down = down.clone();
            down[0..6].copy_from_slice(&host(A, link).0);
            down[6..12].copy_from_slice(&host(B, link).0);
            down[17] = link;
            down[18] = link;
            down[22..26].copy_from_slice(&(0x5000_0000 + n).to_be_bytes());
            bed.inject(A, link, &down);
        }
        bed.send(A, &frame_to(pt0(B), pt0(A), n as u8));
        bed.run(2 * MS);
    }
    bed.run(100 * MS);
    let got: Vec<u8> = bed.out[B].iter().map(|frame| frame[79]).collect();
    assert!(
        got.iter().copied().eq((0..300u32).map(|n| n as u8)),
        "{} came",
        got.len()
    );
}

#[test]
fn a_busy_link_carries_no_more_than_a_message_a_second() {
    let mut bed = two_cables();
    let count = std::rc::Rc::new(std::cell::Cell::new(0));
    let counts = count.clone();
    bed.lose = Box::new(move |_, _, frame| {
        counts.set(counts.get() + u32::from(is_liveness(frame)));
        false
    });
    bed.run(1000 * MS);
    let idle = count.replace(0);
    // Two links, two ends, a hundred each and up to a third more.
    assert!((400..=540).contains(&idle), "{idle}");
    for n in 0..2000u32 {
        for side in [A, B] {
            bed.send(side, &frame_to(pt0(1 - side), pt0(side), n as u8));
        }
        bed.run(MS);
    }
    let busy = count.get();
    assert!(busy <= 16, "{busy} in two seconds");
}

#[test]
fn a_silence_that_ended_in_time_teaches_and_one_of_a_dead_link_does_not() {
    let mut bed = two_cables();
    let at_first = bed.liveness(A, 0).detection_time;
    // Nearly dead, while the other link is heard.
    bed.cables[0].broken = true;
    for n in 0..18u8 {
        bed.send(B, &frame_to(pt0(A), pt0(B), n));
        bed.run(MS);
    }
    bed.cables[0].broken = false;
    bed.run(100 * MS);
    assert_eq!(bed.failures(), [0; 4]);
    let learnt = bed.liveness(A, 0).detection_time;
    assert!((at_first + MS..=80 * MS).contains(&learnt), "{learnt:?}");

    // Dead for long, with trains that come as soon as it works again.
    let mut bed = two_cables();
    bed.cables[0].broken = true;
    bed.run(3000 * MS);
    bed.cables[0].broken = false;
    for n in 0..2000u32 {
        bed.send(B, &frame_to(pt0(A), pt0(B), n as u8));
        bed.run(MS);
    }
    assert_eq!(bed.states(A), [PathState::Open; 2]);
    assert_eq!(bed.liveness(A, 0).detection_time, at_first);
}
