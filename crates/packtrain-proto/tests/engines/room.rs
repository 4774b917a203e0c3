//! How much stands on a link below the engine: of what others may join, as many as of full ones; of what nobody can join, as
//! many bytes as the link takes in that time, however short the frames are.

use std::cell::Cell;
use std::rc::Rc;

use crate::segments::{Bed, Cable, frame_to, pt0 as bed_pt0};
use crate::support::{LINK, Pair, config, frame, link_address, link_state, pt0};
use packtrain_proto::config::{Config, LinkId, LinkState, Mode, NodeId};
use packtrain_proto::engine::Engine;
use packtrain_proto::offload::Offload;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

const STATION: MacAddr = MacAddr([2, 0, 0, 0, 9, 9]);
const STEP: Duration = Duration::from_micros(200);
/// What 100 Mbit/s are in a step.
const TAKEN: usize = 2500;
/// A millisecond of it, where small frames may wait.
const ROOM: usize = 5 * TAKEN;

fn engine(set: impl Fn(&mut Config)) -> Engine {
    let mut config = config(0);
    config.limits.sand_delay_max = None;
    set(&mut config);
    let mut engine = Engine::new(config, Instant::ZERO);
    engine.handle_link_state(LINK, link_state(0), Instant::ZERO);
    engine
}

/// Bytes that stand on the link when the engine gives it no more, at the end of half a second in which more frames of this type wait all
/// the time: of 1400 bytes first, and then of 100.
fn standing(engine: &mut Engine, kind: u16) -> usize {
    let (mut now, mut queued, mut left_at_last) = (Instant::ZERO, 0usize, 0);
    for step in 0..2500 {
        let (count, len) = if step < 500 { (4, 1400) } else { (60, 100) };
        for _ in 0..count {
            let buffer = engine.buffers().copy_of(&frame_of(kind, len));
            engine.handle_host_frame(buffer, Offload::NONE, now);
        }
        while let Some(transmit) = engine.poll_transmit(now) {
            queued += transmit.frame.len();
        }
        left_at_last = queued;
        now += STEP;
        queued = queued.saturating_sub(TAKEN);
        engine.handle_link_queue(LINK, queued, now);
        if engine.poll_timeout().is_some_and(|at| at <= now) {
            engine.handle_timeout(now);
        }
    }
    left_at_last
}

fn frame_of(kind: u16, len: usize) -> Vec<u8> {
    let mut frame = [&STATION.0[..], &pt0(0).0, &kind.to_be_bytes()].concat();
    frame.resize(len, 7);
    frame
}

#[test]
fn short_frames_for_hosts_that_take_none_together_have_room_by_their_bytes() {
    let mut engine = engine(|_| {});
    let standing = standing(&mut engine, ether_type::IPV4);
    assert!((ROOM..ROOM + 100).contains(&standing), "{standing}");
}

#[test]
fn so_have_those_of_a_station_for_aggregates_that_cannot_ride_in_one() {
    let mut engine = engine(|config| {
        config.mode = Mode::Dfap;
        config.dfap.stations = vec![STATION];
    });
    // An 802.3 length.
    let standing = standing(&mut engine, 86);
    assert!((ROOM..ROOM + 100).contains(&standing), "{standing}");
}

/// Where it is woken later than that, what waits stands until something else happens.
#[test]
fn an_engine_that_gives_no_more_is_called_when_there_is_room_whatever_other_links_do() {
    for has_another in [false, true] {
        let mut pair = Pair::new(false);
        let mut now = pair.now;
        let engine = &mut pair.engines[0];
        if has_another {
            let state = LinkState {
                address: link_address(7),
                carrier: false,
                ..link_state(0)
            };
            engine.handle_link_state(LinkId(1), state, now);
        }
        let give = |engine: &mut Engine, len: usize, now: Instant| {
            let buffer = engine.buffers().copy_of(&frame(0, len, 1));
            engine.handle_host_frame(buffer, Offload::NONE, now);
            let mut bytes = 0;
            while let Some(transmit) = engine.poll_transmit(now) {
                bytes += transmit.frame.len();
            }
            bytes
        };
        // 100 Mbit/s, and nobody acknowledges anything: so little is sent.
        for len in [1400, 1400, 1400, 1400, 1400, 1400, 1400] {
            let queued = 8 * TAKEN + give(engine, len, now);
            engine.handle_link_queue(LINK, queued, now);
            now += STEP * 5;
            engine.handle_link_queue(LINK, queued - 5 * TAKEN, now);
        }
        // Small trains, until they are what the link has.
        for _ in 0..60 {
            engine.handle_link_queue(LINK, 0, now);
            assert_ne!(give(engine, 60, now), 0, "there is room");
        }
        let is_refused = |&queued: &usize| {
            engine.handle_link_queue(LINK, queued, now);
            give(engine, 60, now) == 0
        };
        let standing = (0..40_000).step_by(100).find(is_refused).expect("a bound");
        let limit = engine.link_queue_limit(LINK);
        let what = format!("another link {has_another}: {standing} of {limit}");
        assert!(standing >= limit, "{what}");
        // It is the short one that is meant, where there is but one.
        assert!(has_another || limit < ROOM / 4, "{what}");
    }
}

/// What is known of its link counts for it from its first frame on.
#[test]
fn who_comes_to_a_link_that_is_known_to_be_slow_is_sent_no_longer_trains_than_others() {
    const MS: Duration = Duration::from_millis(1);
    let mut bed = Bed::with(2, &[Cable::of(&[(0, 0), (1, 0)])], |config| {
        config.coded_trains = false;
    });
    for side in [0, 1] {
        bed.mtus.insert((side, LINK), 9000);
        bed.set_carrier(side, LINK.0, true);
    }
    bed.run(1500 * MS);
    // 8 Mbit/s.
    for step in 0..20 {
        bed.queues.insert((0, LINK), 200_000 - step * 10_000);
        bed.run(10 * MS);
    }
    assert!(
        bed.seen(0).links[0]
            .rate_bps
            .is_some_and(|bps| bps < 10_000_000)
    );
    bed.queues.clear();
    let longest = Rc::new(Cell::new(0));
    let seen = longest.clone();
    bed.lose = Box::new(move |side, _, message| {
        if side == 0 {
            seen.set(seen.get().max(message.len()));
        }
        false
    });
    bed.engines[1] = Engine::new(Config::new(NodeId(0x9999), bed_pt0(1)), bed.now);
    bed.set_carrier(1, LINK.0, true);
    let is_there = |bed: &Bed| {
        let peers = bed.seen(0).peers;
        peers
            .iter()
            .any(|peer| peer.up && peer.node_id == NodeId(0x9999))
    };
    while !is_there(&bed) {
        bed.run(MS / 10);
    }
    let mut frame = frame_to(bed_pt0(1), bed_pt0(0), 1);
    frame.resize(5000, 1);
    bed.send(0, &frame);
    bed.run(100 * MS);
    assert_eq!(bed.out[1], [frame]);
    assert!((1000..=1514).contains(&longest.get()), "{}", longest.get());
}
