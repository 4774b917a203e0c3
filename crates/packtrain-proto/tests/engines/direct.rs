//! The direct path: where it leads, when it is closed, and how the engine tells that what went by
//! itself has arrived. What is lost of it: `direct_loss.rs`.

use crate::direct_loss::count;
use crate::support::forger::{Forger, emit};
use crate::support::{LINK, MTU, Pair, frame, link_address, link_state, node, pt0};
use packtrain_proto::config::{Config, LinkId, LinkState, direct_mark_of, mark_of};
use packtrain_proto::direct::DIRECT_CALM;
use packtrain_proto::direct::kinds::DirectKind;
use packtrain_proto::engine::{DirectDestination, DirectSource, Event, OpenTo};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::EngineBecause;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_proto::wire::hello::capability;

pub fn direct_pair() -> Pair {
    direct_pair_with(|_| {})
}

pub fn direct_pair_with(set: impl Fn(&mut Config)) -> Pair {
    let mut pair = Pair::with(|_, config| {
        config.direct_frames = true;
        config.mtu = MTU;
        set(config);
    });
    pair.events = Default::default();
    pair
}

pub fn direct_mark(side: usize) -> MacAddr {
    direct_mark_of(mark_of(link_address(side)).unwrap())
}

/// How side 0 reaches side 1 when nothing stands against it.
pub fn to_side_1() -> DirectDestination {
    DirectDestination {
        address: pt0(1),
        link: LINK,
        remote_address: link_address(1),
        outer_source: direct_mark(0),
        kind: DirectKind::Source,
        vlan: None,
        payload_max: MTU,
        open_to: OpenTo::All,
        stripes: false,
    }
}

fn paths_changed(pair: &mut Pair, side: usize) -> bool {
    pair.settle();
    let events = std::mem::take(&mut pair.events[side]);
    events.contains(&Event::PathsChanged)
}

/// Side 0 has no direct path for this reason, and has said that something changed.
#[track_caller]
fn is_closed(pair: &mut Pair, because: EngineBecause) {
    assert!(paths_changed(pair, 0));
    assert_eq!(pair.engines[0].direct_destinations(), []);
    let peer = &pair.snapshot(0).peers[0];
    assert_eq!(peer.engine_because, Some(because));
}

#[track_caller]
fn is_open(pair: &mut Pair) {
    assert!(paths_changed(pair, 0));
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    let peer = &pair.snapshot(0).peers[0];
    assert_eq!(peer.engine_because, None);
}

fn tell_link(pair: &mut Pair, link: LinkId, change: impl FnOnce(&mut LinkState)) {
    let mut state = link_state(0);
    change(&mut state);
    pair.engines[0].handle_link_state(link, state, pair.now);
}

#[test]
fn two_nodes_that_take_direct_frames_send_them_to_each_other() {
    let pair = direct_pair();
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    let source = DirectSource {
        outer_source: direct_mark(1),
        kind: DirectKind::Source,
        link: None,
        address: pt0(1),
    };
    assert_eq!(pair.engines[0].direct_sources(), [source]);
    let peer = &pair.snapshot(0).peers[0];
    assert_ne!(peer.capabilities & capability::DIRECT_FRAMES, 0);
    assert_eq!(peer.engine_because, None);
}

#[test]
fn who_does_not_take_them_is_sent_none_and_who_may_not_sends_none() {
    let pair = Pair::with(|side, config| {
        config.direct_frames = side == 0;
        config.mtu = MTU;
    });
    let because = |side: usize| pair.snapshot(side).peers[0].engine_because;
    assert_eq!(because(0), Some(EngineBecause::NotOffered));
    assert_eq!(because(1), Some(EngineBecause::Settings));
    for engine in &pair.engines {
        assert_eq!(engine.direct_destinations(), []);
    }
    assert_eq!(pair.engines[1].direct_sources(), []);
}

/// It may send before its second hello has come.
#[test]
fn a_peer_that_knows_us_before_we_know_that_it_does_is_told_by_its_mark() {
    let mut pair = Pair::with(|_, config| {
        config.direct_frames = true;
        config.mtu = MTU;
    });
    // Of what we send nothing arrives: it forgets us, and we hear it all the same.
    pair.lose = Box::new(|from, _| from == 0);
    pair.run(Duration::from_secs(8));
    let peers = pair.snapshot(0).peers;
    assert!(peers.iter().all(|peer| !peer.up), "{peers:?}");
    assert!(pair.engines[0].direct_destinations().is_empty());
    assert_eq!(pair.engines[0].direct_sources().len(), peers.len());
    assert_eq!(peers.len(), 1);
}

#[test]
fn a_peer_that_leaves_takes_its_paths_along() {
    let mut pair = direct_pair();
    pair.ticking[1] = false;
    pair.lose = Box::new(|_, _| true);
    pair.run(Duration::from_secs(5));
    assert!(paths_changed(&mut pair, 0));
    assert_eq!(pair.engines[0].direct_destinations(), []);
    assert_eq!(pair.engines[0].direct_sources(), []);
}

/// A network may let pass only what comes from the addresses that it knows.
#[test]
fn where_our_mark_does_not_pass_nothing_is_sent_with_it_and_when_it_does_it_is() {
    let mut pair = direct_pair();
    let restarted = |pair: &mut Pair| {
        let mut config = crate::support::config(1);
        (config.direct_frames, config.mtu, config.node_id) = (true, MTU, node(7));
        pair.restart(1, config);
        pair.run(Duration::from_secs(20));
    };
    let marks = [direct_mark(0), mark_of(link_address(0)).unwrap()];
    pair.lose = Box::new(move |_, frame| marks.iter().any(|mark| frame[6..12] == mark.0));
    restarted(&mut pair);
    let unanswered = DirectDestination {
        open_to: OpenTo::Nobody,
        ..to_side_1()
    };
    assert_eq!(pair.engines[0].direct_destinations(), [unanswered]);
    let peer = &pair.snapshot(0).peers[0];
    assert_eq!(
        (peer.up, peer.engine_because),
        (true, Some(EngineBecause::Unanswered))
    );
    // A full-size one goes in trains, and not as it is.
    let marked = pair.snapshot(0).trains_tx.marked;
    pair.out = Default::default();
    pair.send(0, &frame(0, 1514, 1), Offload::NONE);
    pair.run(Duration::from_millis(10));
    assert_eq!(pair.out[1].len(), 1);
    assert_eq!(pair.snapshot(0).trains_tx.marked, marked);
    // It is tried now and then.
    pair.lose = Box::new(|_, _| false);
    pair.run(Duration::from_secs(6));
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
    pair.send(0, &frame(0, 1514, 2), Offload::NONE);
    pair.run(Duration::from_millis(10));
    assert_eq!(pair.snapshot(0).trains_tx.marked, marked + 1);
    pair.still_works();
}

/// The way may be another one all at once.
#[test]
fn a_mark_that_does_not_pass_any_more_is_not_used_until_it_is_answered_again() {
    let mut pair = direct_pair();
    count(&mut pair, 100, 100);
    let mark = direct_mark(0);
    pair.lose = Box::new(move |_, frame| frame[6..12] == mark.0);
    for n in 1..20 {
        pair.engines[0].handle_direct_sent(pt0(1), LINK, 100 + n, pair.now);
        pair.run(Duration::from_millis(50));
    }
    pair.run(Duration::from_secs(10));
    let because = pair.snapshot(0).peers[0].engine_because;
    assert_eq!(because, Some(EngineBecause::Unanswered));
    pair.lose = Box::new(|_, _| false);
    pair.run(Duration::from_secs(6));
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
}

#[test]
fn a_link_that_leads_elsewhere_changes_nothing() {
    let mut pair = direct_pair();
    let second = LinkId(1);
    let address = MacAddr([0x0a, 0, 0, 0, 1, 1]);
    tell_link(&mut pair, second, |state| state.address = address);
    assert!(!paths_changed(&mut pair, 0));
    pair.engines[0].handle_direct_congestion(second, pair.now);
    assert!(!paths_changed(&mut pair, 0));
    pair.engines[0].remove_link(second, pair.now);
    assert_eq!(pair.engines[0].direct_destinations(), [to_side_1()]);
}

#[test]
fn without_carrier_or_a_mark_there_is_no_direct_path() {
    let mut pair = direct_pair();
    tell_link(&mut pair, LINK, |state| state.carrier = false);
    is_closed(&mut pair, EngineBecause::NotUp);
    tell_link(&mut pair, LINK, |_| {});
    is_open(&mut pair);
    tell_link(&mut pair, LINK, |state| state.mark = None);
    is_closed(&mut pair, EngineBecause::NoMark);
}

#[test]
fn a_pt0_that_takes_larger_frames_than_the_path_goes_by_the_engine() {
    let mut pair = direct_pair();
    tell_link(&mut pair, LINK, |state| state.mtu = MTU - 1);
    is_closed(&mut pair, EngineBecause::Mtu);
    pair.engines[0].handle_host_change(MTU - 1, false, pair.now);
    assert!(paths_changed(&mut pair, 0));
    let expected = DirectDestination {
        payload_max: MTU - 1,
        ..to_side_1()
    };
    assert_eq!(pair.engines[0].direct_destinations(), [expected]);
    // The peer's `pt0` takes less.
    pair.engines[1].handle_host_change(1000, false, pair.now);
    pair.run(Duration::from_millis(300));
    is_closed(&mut pair, EngineBecause::Mtu);
}

#[test]
fn a_peer_that_sees_disorder_takes_none_until_it_is_over() {
    let mut pair = direct_pair();
    for i in 0..6 {
        // Two trains that change places.
        pair.lose = Box::new(|side, _| side == 0);
        pair.record = true;
        for n in 0..2 {
            pair.send(0, &frame(0, 100, 2 * i + n), Offload::NONE);
            pair.settle();
        }
        let of_side_0 = |(side, ..): &(usize, _, _)| *side == 0;
        let trains: Vec<_> = pair.recorded.drain(..).filter(of_side_0).collect();
        pair.lose = Box::new(|_, _| false);
        for (_, train, offload) in trains.iter().rev() {
            pair.inject(1, train, *offload);
        }
    }
    pair.run(Duration::from_secs(2));
    is_closed(&mut pair, EngineBecause::NotOffered);
    pair.run(Duration::from_secs(12));
    is_open(&mut pair);
}

#[test]
fn congestion_closes_it_until_the_line_was_calm_for_long() {
    let mut pair = direct_pair();
    pair.engines[0].handle_direct_congestion(LinkId(9), pair.now);
    assert!(!paths_changed(&mut pair, 0), "no link of ours");
    pair.engines[0].handle_direct_congestion(LINK, pair.now);
    pair.engines[0].handle_direct_congestion(LINK, pair.now);
    is_closed(&mut pair, EngineBecause::Congestion);
    assert_eq!(pair.snapshot(0).direct.closures.total(), 1);
    let second = Duration::from_secs(1);
    pair.run(second);
    // A queue below, at one of the moments at which it is looked at.
    pair.engines[0].handle_link_queue(LINK, 50_000, pair.now);
    pair.engines[0].handle_timeout(pair.now + second / 4);
    pair.now += second / 4;
    pair.run(DIRECT_CALM - second / 2);
    assert!(!paths_changed(&mut pair, 0));
    pair.run(second);
    is_open(&mut pair);
}

/// The path from the first to the second was open, and is closed.
fn congested_pair() -> Pair {
    let mut pair = direct_pair();
    pair.engines[0].handle_direct_congestion(LINK, pair.now);
    is_closed(&mut pair, EngineBecause::Congestion);
    pair
}

#[test]
fn it_stays_closed_while_small_frames_are_many_and_opens_when_they_end() {
    let mut pair = congested_pair();
    let step = Duration::from_millis(1);
    for _ in 0..4000 {
        for _ in 0..50 {
            pair.send(0, &frame(0, 100, 1), Offload::NONE);
        }
        pair.run(step);
    }
    let because = pair.snapshot(0).peers[0].engine_because;
    assert_eq!(because, Some(EngineBecause::Congestion));
    pair.run(DIRECT_CALM + Duration::from_secs(1));
    is_open(&mut pair);
}

/// 200 ms, one at a time; the owner leaves some unread of so many, or none.
fn sends(pair: &mut Pair, a_millisecond: usize, of_bytes: usize, left_unread: bool) {
    for _ in 0..200 {
        for _ in 0..a_millisecond {
            pair.send(0, &frame(0, of_bytes, 1), Offload::NONE);
        }
        pair.engines[0].handle_host_read(left_unread);
        pair.run(Duration::from_millis(1));
    }
    pair.engines[0].handle_host_read(false);
}

#[test]
fn an_engine_that_cannot_carry_all_small_frames_gives_them_back_for_a_while() {
    let mut pair = congested_pair();
    sends(&mut pair, 100, 100, true);
    is_open(&mut pair);
    let direct = pair.snapshot(0).direct;
    assert!(pair.engines[0].leaves_small_frames() && direct.leaves_small_frames);
    assert_eq!(direct.small_frames_left, 1);
    // A queue closes it all the same, and they do not keep it closed.
    pair.engines[0].handle_direct_congestion(LINK, pair.now);
    is_closed(&mut pair, EngineBecause::Congestion);
    sends(&mut pair, 100, 100, true);
    assert_eq!(pair.snapshot(0).direct.small_frames_left, 1);
    // The host is let go first.
    pair.run(2 * DIRECT_CALM + Duration::from_secs(1));
    is_open(&mut pair);
    pair.run(Duration::from_secs(64));
    assert!(
        paths_changed(&mut pair, 0),
        "nobody is told that they are packed again"
    );
    assert!(!pair.engines[0].leaves_small_frames());
}

#[test]
fn an_engine_that_takes_more_small_frames_than_went_directly_keeps_them() {
    let mut pair = direct_pair();
    let at = pair.now;
    pair.engines[0].handle_direct_small_frames(70_000, at);
    pair.engines[0].handle_direct_congestion(LINK, pair.now);
    is_closed(&mut pair, EngineBecause::Congestion);
    sends(&mut pair, 100, 100, true);
    let because = pair.snapshot(0).peers[0].engine_because;
    assert_eq!(because, Some(EngineBecause::Congestion));
    assert!(!pair.engines[0].leaves_small_frames());
    assert_eq!(pair.snapshot(0).direct.small_frames_left, 0);
}

#[test]
fn small_frames_that_were_given_back_and_go_no_faster_are_packed_after_all() {
    let mut pair = congested_pair();
    sends(&mut pair, 100, 100, true);
    is_open(&mut pair);
    assert!(pair.engines[0].leaves_small_frames());
    // What had stayed ends, and does not count.
    pair.run(Duration::from_millis(200));
    for _ in 0..4 {
        assert!(!paths_changed(&mut pair, 0));
        pair.run(Duration::from_millis(50));
        let now = pair.now;
        pair.engines[0].handle_direct_small_frames(80_000, now);
    }
    assert!(paths_changed(&mut pair, 0), "nobody is told");
    assert!(!pair.engines[0].leaves_small_frames());
}

#[test]
fn nor_are_others_given_back_nor_what_it_can_carry() {
    let mut pair = congested_pair();
    sends(&mut pair, 30, 100, true);
    sends(&mut pair, 100, 1000, true);
    let closed = |pair: &mut Pair| {
        let because = pair.snapshot(0).peers[0].engine_because;
        because == Some(EngineBecause::Congestion) && !pair.engines[0].leaves_small_frames()
    };
    assert!(closed(&mut pair));
    // Not full any more.
    pair.run(Duration::from_millis(400));
    sends(&mut pair, 100, 100, false);
    assert!(closed(&mut pair));
}

#[test]
fn changes_that_nobody_has_read_yet_are_told_once() {
    let mut pair = direct_pair();
    let engine = &mut pair.engines[0];
    for mtu in [1400, 1500, 1400] {
        engine.handle_host_change(mtu, false, pair.now);
        engine.handle_direct_congestion(LINK, pair.now);
    }
    let events = std::iter::from_fn(|| engine.poll_event());
    assert_eq!(events.filter(|e| *e == Event::PathsChanged).count(), 1);
}

/// What a peer that is up has named, as whatever, leads to nobody else.
#[test]
fn direct_marks_of_a_peer_and_of_ourselves_cannot_be_claimed() {
    let mut pair = direct_pair();
    let victims = pair.engines[1].direct_sources();
    assert_eq!(victims[0].outer_source, direct_mark(0));
    let forger = Forger::known_to(&mut pair, 1, 1);
    let mut hello = forger.hello(Some(node(1)));
    hello.address = pt0(0);
    // The victim's direct mark as a link, and a link whose mark or direct mark is it.
    let unmarked = |mark: MacAddr| {
        let MacAddr([a, b, c, d, e, f]) = mark;
        MacAddr([a ^ 0x58, b, c, d, e, f ^ 0xa5])
    };
    let names = [
        direct_mark(0),
        unmarked(direct_mark(0)),
        unmarked(direct_mark_of(direct_mark(0))),
    ];
    assert_eq!(mark_of(names[1]), Some(direct_mark(0)));
    assert_eq!(mark_of(names[2]).map(direct_mark_of), Some(direct_mark(0)));
    for (n, address) in names.into_iter().enumerate() {
        let mut record = forger.record(LinkId(n as u8 + 1));
        (record.address, record.mark) = (address, mark_of(address));
        hello.links.push(record);
    }
    pair.inject(1, &emit(&hello, forger.link), Offload::NONE);
    let sources = pair.engines[1].direct_sources();
    let of_victim = |source: &&DirectSource| source.outer_source == direct_mark(0);
    assert_eq!(sources.iter().filter(of_victim).count(), 1);
    assert_eq!(pair.engines[1].direct_destinations().len(), 1);
    assert!(!pair.engines[1].marks().contains(&direct_mark(0)));
    // A frame from there is none of its marked ones.
    let mut marked = frame(0, 100, 9);
    marked[..6].copy_from_slice(&link_address(1).0);
    marked[6..12].copy_from_slice(&direct_mark(0).0);
    pair.out = Default::default();
    pair.inject(1, &marked, Offload::NONE);
    assert_eq!(pair.out[1], []);
    // Our own: refused as a whole.
    let before = pair.drops(1);
    let own = [mark_of(link_address(1)).unwrap(), direct_mark(1)];
    for address in own {
        let mut hello = forger.hello(Some(node(1)));
        let mut record = forger.record(LinkId(1));
        (record.address, record.mark) = (address, None);
        hello.links.push(record);
        pair.inject(1, &emit(&hello, forger.link), Offload::NONE);
    }
    let dropped = pair.dropped_since(1, &before);
    assert_eq!(dropped, [(packtrain_proto::stats::DropReason::BadHello, 2)]);
}

fn drained(pair: &Pair, side: usize) -> Vec<u64> {
    let ticket = |event: &Event| match event {
        Event::Drained { ticket } => Some(*ticket),
        _ => None,
    };
    pair.events[side].iter().filter_map(ticket).collect()
}

#[test]
fn what_went_by_the_engine_has_arrived_when_a_probe_behind_it_is_acknowledged() {
    let mut pair = direct_pair();
    for i in 0..20 {
        pair.send(0, &frame(0, 100 + i, i as u8), Offload::NONE);
    }
    let drops = [pair.drops(0), pair.drops(1)];
    let received = pair.snapshot(1).trains_rx.trains;
    pair.engines[0].request_drain(7, pair.now);
    assert_eq!(pair.engines[0].poll_event(), None);
    pair.record = true;
    pair.settle();
    assert_eq!(drained(&pair, 0), [7]);
    assert_eq!(pair.out[1].len(), 20);
    let probe = |(side, frame, _): &&(usize, Vec<u8>, Offload)| {
        *side == 0 && frame[12..15] == [0x88, 0xb5, 0x11] && frame[15] == 1 && frame.len() == 30
    };
    assert_eq!(pair.recorded.iter().filter(probe).count(), 1);
    for (side, before) in drops.iter().enumerate() {
        assert_eq!(pair.dropped_since(side, before), []);
    }
    let seen = pair.snapshot(1);
    assert_eq!(
        seen.trains_rx.trains - received,
        pair.snapshot(0).trains_tx.trains
    );
    pair.still_works();
}

#[test]
fn a_probe_behind_a_gap_is_acknowledged_when_what_it_stands_behind_is_delivered() {
    let mut pair = direct_pair();
    let mut losses = 1;
    pair.lose = Box::new(move |side, frame| {
        let lost = side == 0 && frame[14..16] == [0x11, 0] && losses > 0;
        losses -= usize::from(lost);
        lost
    });
    for i in 0..3u8 {
        pair.send(0, &frame(0, 100, i), Offload::NONE);
        pair.settle();
    }
    pair.engines[0].request_drain(7, pair.now);
    pair.settle();
    assert_eq!((pair.out[1].len(), drained(&pair, 0)), (0, vec![]));
    pair.run(Duration::from_millis(30));
    assert_eq!((pair.out[1].len(), drained(&pair, 0)), (2, vec![7]));
}

/// A train that is to be acknowledged at once, as probes are and nothing else in these tests.
fn is_probe(side: usize, frame: &[u8]) -> bool {
    side == 0 && frame[14..16] == [0x11, 1]
}

#[test]
fn a_lost_probe_is_sent_again() {
    let mut pair = direct_pair();
    let mut losses = 2;
    pair.lose = Box::new(move |side, frame| {
        let lost = is_probe(side, frame) && losses > 0;
        losses -= usize::from(lost);
        lost
    });
    pair.engines[0].request_drain(7, pair.now);
    pair.run(Duration::from_millis(399));
    assert_eq!(drained(&pair, 0), []);
    // The lost ones are a gap, which is waited for.
    pair.run(Duration::from_millis(30));
    assert_eq!(drained(&pair, 0), [7]);
    pair.still_works();
}

#[test]
fn who_stays_silent_is_not_asked_for_ever_and_the_next_request_is_not_held_up() {
    let mut pair = direct_pair();
    pair.lose = Box::new(is_probe);
    pair.engines[0].request_drain(7, pair.now);
    pair.run(Duration::from_millis(500));
    pair.engines[0].request_drain(8, pair.now);
    pair.run(Duration::from_millis(499));
    pair.lose = Box::new(|_, _| false);
    pair.run(Duration::from_millis(30));
    assert_eq!(drained(&pair, 0), [8]);
    pair.still_works();
}

#[test]
fn without_a_peer_or_with_one_that_leaves_nobody_is_waited_for() {
    let mut pair = direct_pair();
    pair.lose = Box::new(|_, _| true);
    pair.engines[0].request_drain(7, pair.now);
    pair.settle();
    assert_eq!(drained(&pair, 0), []);
    pair.engines[0].remove_link(LINK, pair.now);
    pair.settle();
    assert_eq!(drained(&pair, 0), [7]);
    pair.engines[0].request_drain(8, pair.now);
    assert!(
        std::iter::from_fn(|| pair.engines[0].poll_event())
            .any(|event| event == Event::Drained { ticket: 8 })
    );
}

#[test]
fn while_something_waits_nobody_is_asked() {
    let mut pair = direct_pair();
    // A local queue that takes nothing more.
    pair.engines[0].handle_link_queue(LINK, 1 << 20, pair.now);
    pair.send(0, &frame(0, 1000, 1), Offload::NONE);
    pair.engines[0].request_drain(7, pair.now);
    assert!(pair.engines[0].poll_transmit(pair.now).is_none());
    pair.engines[0].request_drain(8, pair.now);
    pair.engines[0].handle_link_queue(LINK, 0, pair.now);
    pair.settle();
    assert_eq!(
        drained(&pair, 0),
        [8],
        "the newer in the place of the older"
    );
}
