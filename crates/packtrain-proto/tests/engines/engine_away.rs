//! A node whose engine is away: its peers keep its direct path, and drop what only its engine would take.

use crate::support::{LINK, MTU, Pair, config, frame, link_address, pt0};
use packtrain_proto::config::{LinkId, direct_mark_of, mark_of};
use packtrain_proto::engine::{Event, OpenTo, PeerDownReason, Word};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{DropReason, EngineBecause};
use packtrain_proto::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn direct_config(side: usize) -> packtrain_proto::config::Config {
    let mut config = config(side);
    config.direct_frames = true;
    config.mtu = MTU;
    config
}

/// Side 1 is about to be away: what is to be said for it.
fn direct_pair() -> (Pair, Word) {
    let mut pair = Pair::with(|side, config| *config = direct_config(side));
    let words = pair.engines[1].words_for_absence(pair.now);
    let [word] = <[Word; 1]>::try_from(words).expect("one link");
    pair.events = Default::default();
    (pair, word)
}

/// Side 1's engine is called no more, and nothing reaches it.
fn leave(pair: &mut Pair) {
    pair.ticking[1] = false;
    pair.lose = Box::new(|_, _| true);
}

fn say(pair: &mut Pair, frame: &[u8]) {
    pair.inject(0, frame, Offload::NONE);
}

/// Time passes, and it is said each second that side 1 is away, while side 0 sends directly.
fn stay_away(pair: &mut Pair, word: &Word, seconds: u64) {
    for _ in 0..20 * seconds {
        pair.run(SECOND / 20);
        pair.direct_sent[0] += 100;
        let (sent, now) = (pair.direct_sent[0], pair.now);
        pair.engines[0].handle_direct_sent(pt0(1), LINK, sent, now);
        if pair.now.as_nanos() % 1_000_000_000 < 50_000_000 {
            say(pair, &word.away);
        }
    }
}

#[track_caller]
fn is_direct(pair: &Pair) {
    let destinations = pair.engines[0].direct_destinations();
    let open = destinations.iter().map(|to| (to.address, to.open_to));
    assert_eq!(open.collect::<Vec<_>>(), [(pt0(1), OpenTo::All)]);
    let sources = pair.engines[0].direct_sources();
    let direct_mark = direct_mark_of(mark_of(link_address(1)).unwrap());
    assert!(
        sources
            .iter()
            .any(|source| source.outer_source == direct_mark)
    );
}

#[test]
fn its_direct_path_stays_as_long_as_somebody_says_that_it_is_away() {
    let (mut pair, word) = direct_pair();
    leave(&mut pair);
    say(&mut pair, &word.away);
    stay_away(&mut pair, &word, 60);
    is_direct(&pair);
    assert!(pair.engines[0].has_peer_away());
    let peer = &pair.snapshot(0).peers[0];
    assert_eq!((peer.up, peer.away), (true, true));
    assert_eq!(peer.engine_because, None);
    assert!(
        !pair.events[0]
            .iter()
            .any(|event| matches!(event, Event::PeerDown { .. }))
    );
    // Nobody speaks for it any more.
    pair.run(5 * SECOND);
    assert_eq!(pair.engines[0].direct_destinations(), []);
    assert!(!pair.engines[0].has_peer_away());
}

#[test]
fn without_a_word_the_path_closes_when_answers_cease() {
    let (mut pair, _) = direct_pair();
    leave(&mut pair);
    for _ in 0..20 {
        pair.run(SECOND / 20);
        pair.direct_sent[0] += 100;
        let (sent, now) = (pair.direct_sent[0], pair.now);
        pair.engines[0].handle_direct_sent(pt0(1), LINK, sent, now);
    }
    let open = |to: &packtrain_proto::engine::DirectDestination| to.open_to == OpenTo::All;
    assert!(!pair.engines[0].direct_destinations().iter().any(open));
}

#[test]
fn the_goodbye_ends_it_at_once() {
    let (mut pair, word) = direct_pair();
    leave(&mut pair);
    say(&mut pair, &word.away);
    stay_away(&mut pair, &word, 2);
    say(&mut pair, &word.goodbye);
    assert_eq!(pair.engines[0].direct_destinations(), []);
    let goodbye = |event: &Event| matches!(event, Event::PeerDown { reason, .. } if *reason == PeerDownReason::Goodbye);
    assert!(pair.events[0].iter().any(goodbye));
}

#[test]
fn what_only_the_engine_would_take_is_dropped_and_so_every_flow_may_go_directly() {
    let (mut pair, word) = direct_pair();
    leave(&mut pair);
    // Under way when it is heard, and asked for: nobody will ever acknowledge it.
    pair.send(0, &frame(0, 200, 1), Offload::NONE);
    pair.settle();
    pair.engines[0].request_drain(7, pair.now);
    pair.run(SECOND / 100);
    assert!(!pair.events[0].contains(&Event::Drained { ticket: 7 }));
    say(&mut pair, &word.away);
    assert!(pair.events[0].contains(&Event::Drained { ticket: 7 }));
    for fill in 0..10 {
        pair.send(0, &frame(0, 200, fill), Offload::NONE);
    }
    pair.settle();
    assert_eq!(pair.drops(0).get(DropReason::PeerAway), 10);
    assert_eq!(pair.snapshot(0).queue.frames, 0);
    pair.engines[0].request_drain(8, pair.now);
    pair.settle();
    assert!(pair.events[0].contains(&Event::Drained { ticket: 8 }));
}

#[test]
fn a_path_that_a_queue_has_closed_is_open_to_it() {
    let (mut pair, word) = direct_pair();
    pair.engines[0].handle_direct_congestion(LINK, pair.now);
    let because = pair.snapshot(0).peers[0].engine_because;
    assert_eq!(because, Some(EngineBecause::Congestion));
    leave(&mut pair);
    say(&mut pair, &word.away);
    is_direct(&pair);
    assert_eq!(pair.snapshot(0).peers[0].engine_because, None);
    pair.engines[0].handle_direct_congestion(LINK, pair.now);
    is_direct(&pair);
}

#[test]
fn frames_may_go_directly_while_we_are_away_though_a_queue_stands_now() {
    let (mut pair, _) = direct_pair();
    let open = pair.engines[0].direct_destinations();
    assert_eq!(pair.engines[0].destinations_in_absence(), open);
    pair.engines[0].handle_direct_congestion(LINK, pair.now);
    assert_eq!(pair.engines[0].direct_destinations(), []);
    assert_eq!(pair.engines[0].destinations_in_absence(), open);
}

#[test]
fn when_it_is_back_it_is_a_new_node_and_all_is_as_before() {
    let (mut pair, word) = direct_pair();
    leave(&mut pair);
    say(&mut pair, &word.away);
    stay_away(&mut pair, &word, 5);
    let mut again = direct_config(1);
    again.node_id.0 ^= 0x5555;
    pair.restart(1, again);
    pair.ticking[1] = true;
    pair.lose = Box::new(|_, _| false);
    pair.run(SECOND / 2);
    // What was said for its former life comes late, and says nothing of this one.
    say(&mut pair, &word.away);
    say(&mut pair, &word.goodbye);
    assert!(!pair.engines[0].has_peer_away());
    is_direct(&pair);
    pair.still_works();
}

#[test]
fn a_link_that_no_hello_can_leave_by_has_no_words() {
    let (mut pair, _) = direct_pair();
    let mut state = crate::support::link_state(1);
    state.carrier = false;
    pair.engines[1].handle_link_state(LinkId(0), state, pair.now);
    assert_eq!(pair.engines[1].words_for_absence(pair.now), []);
}
