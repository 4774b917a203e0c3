//! No link stands idle for long while frames wait: whatever was lost, what holds the others up is found out.

use crate::segments::{Bed, Cable, frame_to, host, pt0};
use packtrain_proto::config::{Config, LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::engine::Engine;
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{DropReason, PathState};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::train::Train;

const MS: Duration = Duration::from_millis(1);
const A: usize = 0;
const B: usize = 1;
/// Frames of one train each, and more of them than may be ahead of the oldest train under way.
const MANY: usize = 4000;

fn train(message: &[u8]) -> Option<Train<'_>> {
    let is_train = message[12..15] == [0x88, 0xb5, 0x11];
    is_train.then(|| Train::parse(&message[14..]).expect("our own"))
}

/// It has a sequence, and nothing for the host.
fn is_probe(message: &[u8]) -> bool {
    train(message).is_some_and(|train| {
        !train.header.marker
            && message[14 + train.subframes_at..]
                .iter()
                .all(|byte| *byte == 0)
    })
}

/// A and B with a cable for each of their two links, and peers by both.
fn two_cables() -> Bed {
    let cables = [[(A, 0), (B, 0)], [(A, 1), (B, 1)]];
    let mut bed = Bed::new(2, &cables.map(|ends| Cable::of(&ends)));
    bed.run(1500 * MS);
    bed
}

fn long_frame(word: usize) -> Vec<u8> {
    let mut frame = frame_to(pt0(B), pt0(A), word as u8);
    frame.resize(1400, word as u8);
    frame[14..18].copy_from_slice(&(word as u32).to_be_bytes());
    frame
}

impl Bed {
    /// A sends so many frames to B, some each tenth of a millisecond.
    fn send_long_frames(&mut self, words: std::ops::Range<usize>) {
        for word in words {
            self.send(A, &long_frame(word));
            if word % 16 == 0 {
                self.run(MS / 10);
            }
        }
    }

    #[track_caller]
    fn got_long_frames(&self, count: usize) {
        let got = &self.out[B];
        assert_eq!(got.len(), count);
        assert!((0..count).all(|word| got[word] == long_frame(word)));
    }
}

#[test]
fn acknowledgements_that_were_lost_for_all_that_is_out_are_asked_for() {
    let mut bed = two_cables();
    bed.lose = Box::new(|side, _, message| side == B && train(message).is_some());
    for word in 0..60 {
        bed.send(A, &long_frame(word));
    }
    bed.run(20 * MS);
    bed.lose = Box::new(|_, _, _| false);
    assert!(
        bed.engines[A].has_frames_waiting(),
        "all that may be out is"
    );
    bed.run(250 * MS);
    bed.got_long_frames(60);
    assert_eq!(bed.states(A), [PathState::Open; 2]);
}

#[test]
fn no_link_is_dead_while_acknowledgements_are_late_on_all() {
    let cables = [[(A, 0), (B, 0)], [(A, 1), (B, 1)]].map(|ends| Cable::of(&ends));
    let mut bed = Bed::with(2, &cables, |config| config.limits.repair_within = None);
    bed.run(1500 * MS);
    bed.send_long_frames(0..60);
    bed.run(20 * MS);
    // As if what B says waited in a queue of its own: the one link is put to use later than the other.
    bed.lose = Box::new(|side, _, message| side == B && train(message).is_some());
    bed.full.insert((A, LinkId(1)));
    bed.run(MS);
    bed.send_long_frames(60..61);
    bed.run(150 * MS);
    bed.full = [(A, LinkId(0))].into();
    bed.run(MS);
    bed.send_long_frames(61..62);
    bed.run(90 * MS);
    bed.lose = Box::new(|_, _, _| false);
    bed.full.clear();
    bed.run(200 * MS);
    bed.got_long_frames(62);
    assert_eq!(bed.states(A), [PathState::Open; 2]);
    assert_eq!(bed.engines[A].snapshot(bed.now).replay.replayed, 0);
}

#[test]
fn a_path_that_everything_was_lost_on_is_tried_until_it_works() {
    let mut bed = two_cables();
    for cable in &mut bed.cables {
        cable.broken = true;
    }
    bed.send_long_frames(0..60);
    bed.run(900 * MS);
    for cable in &mut bed.cables {
        cable.broken = false;
    }
    assert_eq!(bed.states(A), [PathState::Silent; 2]);
    bed.run(250 * MS);
    assert_eq!(bed.states(A), [PathState::Open; 2]);
    assert!(!bed.engines[A].has_frames_waiting());
}

#[test]
fn a_train_that_is_overdue_goes_again_by_the_link_that_would_stand_idle_for_it() {
    let mut bed = two_cables();
    bed.send_long_frames(0..200);
    bed.cables[0].broken = true;
    bed.send_long_frames(200..MANY);
    bed.run(60 * MS);
    bed.got_long_frames(MANY);
}

#[test]
fn what_has_a_copy_goes_again_though_there_was_no_memory_for_all() {
    let cables = [[(A, 0), (B, 0)], [(A, 1), (B, 1)]].map(|ends| Cable::of(&ends));
    let mut bed = Bed::with(2, &cables, |config| {
        config.limits.replay_bytes_max = 16 << 10;
        config.detection_time = None;
    });
    bed.run(1500 * MS);
    bed.send_long_frames(0..200);
    bed.run(MS);
    bed.got_long_frames(200);
    bed.cables[0].broken = true;
    bed.send_long_frames(200..MANY);
    bed.run(60 * MS);
    let kept = bed.engines[A].snapshot(bed.now).replay.replayed as usize;
    assert!(kept > 2, "{kept}");
    assert!(bed.out[B].len() >= 200 + kept, "{}", bed.out[B].len());
    // The rest counts as lost when the link is silent for long enough to be dead.
    let dropped = |bed: &Bed, reason| bed.engines[A].snapshot(bed.now).drops.get(reason) as usize;
    assert_eq!(dropped(&bed, DropReason::ReplayNotKept), 0);
    bed.run(400 * MS);
    let lost = dropped(&bed, DropReason::ReplayNotKept);
    assert!(lost > 0);
    // A train that is lost may take a piece of one frame more along.
    let missing = MANY - bed.out[B].len();
    assert!((lost..=2 * lost).contains(&missing), "{missing} for {lost}");
}

#[test]
fn what_goes_again_takes_a_link_that_answers_before_one_that_never_did() {
    let cables = [0, 1, 2].map(|link| Cable::of(&[(A, link), (B, link)]));
    let mut bed = Bed::new(2, &cables);
    bed.set_carrier(A, 2, false);
    bed.run(1500 * MS);
    bed.send_long_frames(0..200);
    bed.set_carrier(A, 2, true);
    bed.run(1500 * MS);
    let never_used = (A, LinkId(2));
    bed.full.insert(never_used);
    bed.run(Duration::ZERO);
    bed.cables[0].broken = true;
    bed.cables[2].broken = true;
    (200..220).for_each(|word| bed.send(A, &long_frame(word)));
    bed.run(Duration::ZERO);
    assert!(bed.out[B].len() < 220, "some went by the dead one");
    assert_eq!(bed.states(A)[2], PathState::Open);
    bed.full.remove(&never_used);
    bed.run(250 * MS);
    bed.got_long_frames(220);
}

#[test]
fn a_silent_link_is_tried_though_its_local_queue_is_never_seen_with_room() {
    let mut bed = two_cables();
    bed.send_long_frames(0..200);
    bed.run(MS);
    bed.cables[0].broken = true;
    bed.send_long_frames(200..220);
    bed.run(300 * MS);
    assert_eq!(bed.states(A), [PathState::Silent, PathState::Open]);
    bed.cables[0].broken = false;
    bed.full.insert((A, LinkId(0)));
    bed.run(1500 * MS);
    assert_ne!(bed.states(A)[0], PathState::Silent);
    bed.got_long_frames(220);
}

/// Bytes that leave by each of so many links before anybody is known, and before a queue was seen draining.
fn bytes_at_once(links: u8, rate_bps: u64) -> Vec<usize> {
    let mut now = Instant::ZERO;
    let mut engine = Engine::new(Config::new(NodeId(1), pt0(A)), now);
    for link in 0..links {
        let address = host(A, link);
        let state = LinkState {
            address,
            mark: mark_of(address),
            mtu: 1500,
            carrier: true,
            rate_bps: Some(rate_bps),
        };
        engine.handle_link_state(LinkId(link), state, now);
    }
    // Which link is home on which segment is known by then.
    while now < Instant::ZERO + 2000 * MS {
        now = engine.poll_timeout().expect("it greets").max(now);
        engine.handle_timeout(now);
        while engine.poll_transmit(now).is_some() {}
        (0..links).for_each(|link| engine.handle_link_queue(LinkId(link), 0, now));
    }
    for word in 0..300 {
        let buffer = engine.buffers().copy_of(&long_frame(word));
        engine.handle_host_frame(buffer, Offload::NONE, now);
    }
    let mut bytes = vec![0; usize::from(links)];
    while let Some(transmit) = engine.poll_transmit(now) {
        if transmit.frame[12..14] != [0x88, 0xb5] {
            bytes[usize::from(transmit.link.0)] += transmit.frame.len();
        }
    }
    bytes
}

#[test]
fn frames_as_they_are_fill_no_slow_link_for_seconds_where_there_are_others() {
    let rate_bps = 10_000_000;
    let most = rate_bps as usize / 8 * 4 / 1000 + 1514;
    let shared = bytes_at_once(2, rate_bps);
    assert!(
        shared.iter().all(|bytes| (1..=most).contains(bytes)),
        "{shared:?}"
    );
    assert!(bytes_at_once(1, rate_bps)[0] > 200_000);
}

#[test]
fn a_probe_that_was_lost_holds_nobody_up() {
    let cables = [[(A, 0), (B, 0)], [(A, 1), (B, 1)]];
    let mut bed = Bed::new(2, &cables.map(|ends| Cable::of(&ends)));
    bed.set_carrier(A, 1, false);
    bed.run(1500 * MS);
    bed.set_carrier(A, 1, true);
    let (lost, count) = (std::rc::Rc::new(std::cell::Cell::new(0)), 1);
    let seen = lost.clone();
    bed.lose = Box::new(move |side, _, message| {
        let is_first = side == A && is_probe(message) && seen.get() < count;
        seen.set(seen.get() + u32::from(is_first));
        is_first
    });
    bed.run(1500 * MS);
    assert_eq!(
        (lost.get(), bed.states(A)),
        (count, vec![PathState::Open; 2])
    );
    // Nothing comes behind it by its own link.
    bed.full.insert((A, LinkId(0)));
    bed.run(2 * MS);
    bed.send_long_frames(0..MANY);
    bed.run(60 * MS);
    bed.got_long_frames(MANY);
}
