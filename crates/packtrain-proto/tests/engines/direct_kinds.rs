//! By what direct frames are known, where a network does not let direct marks pass.

use crate::support::forger::Forger;
use crate::support::forger::emit;
use crate::support::{LINK, MTU, Pair, frame, link_address, pt0};
use packtrain_proto::config::{Unused, direct_mark_of, mark_of};
use packtrain_proto::direct::kinds::{DirectKind, KindRefused};
use packtrain_proto::engine::{DirectSource, OpenTo};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{EngineBecause, PathSnapshot};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

fn direct_mark(side: usize) -> MacAddr {
    direct_mark_of(mark_of(link_address(side)).unwrap())
}

/// Two nodes over a network that lets no mark pass, and their hosts use their links or not.
fn behind_port_security(unused: [bool; 2]) -> Pair {
    let mut pair = Pair::with(|_, config| {
        config.direct_frames = true;
        config.mtu = MTU;
    });
    for (side, unused) in unused.into_iter().enumerate() {
        set_use(&mut pair, side, unused);
    }
    let links = [link_address(0), link_address(1)];
    let is_from_link = move |frame: &[u8]| links.iter().any(|link| frame[6..12] == link.0);
    begin_to_lose(&mut pair, move |frame| !is_from_link(frame));
    pair
}

/// A network that loses these from now on. What was answered before is found not to be any more.
fn begin_to_lose(pair: &mut Pair, is_lost: impl Fn(&[u8]) -> bool + 'static) {
    pair.lose = Box::new(move |_, frame| is_lost(frame));
    for n in 1..20 {
        for side in 0..2 {
            let to = pt0(1 - side);
            pair.engines[side].handle_direct_sent(to, LINK, n, pair.now);
        }
        pair.run(Duration::from_millis(50));
    }
    pair.run(Duration::from_secs(10));
}

fn set_use(pair: &mut Pair, side: usize, untagged: bool) {
    let unused = Unused {
        untagged,
        vlan: false,
    };
    pair.engines[side].handle_link_use(LINK, unused, pair.now);
}

fn path(pair: &Pair, side: usize) -> PathSnapshot {
    pair.snapshot(side).peers[0].paths[0].clone()
}

fn because(pair: &Pair, side: usize) -> Option<EngineBecause> {
    pair.snapshot(side).peers[0].engine_because
}

fn unmarked_from(side: usize) -> DirectSource {
    DirectSource {
        outer_source: link_address(side),
        kind: DirectKind::None,
        link: Some(LINK),
        address: pt0(side),
    }
}

#[test]
fn between_links_that_their_hosts_do_not_use_they_go_without_a_mark() {
    let mut pair = behind_port_security([true; 2]);
    for side in 0..2 {
        let to = pair.engines[side].direct_destinations();
        assert_eq!(to.len(), 1);
        let outer = (to[0].outer_source, to[0].kind, to[0].open_to);
        assert_eq!(outer, (link_address(side), DirectKind::None, OpenTo::All));
        let sources = pair.engines[side].direct_sources();
        assert!(sources.contains(&unmarked_from(1 - side)), "{sources:?}");
        assert_eq!(sources.len(), 2, "by its mark as well");
        let path = path(&pair, side);
        assert_eq!(path.direct_mark, Some(DirectKind::None));
        let refused = [(DirectKind::Source, KindRefused::Unanswered)];
        assert_eq!(path.direct_marks_refused, refused);
    }
    // The engine's own frames as they are have a mark, which does not pass.
    let marked = pair.snapshot(0).trains_tx.marked;
    pair.send(0, &frame(0, 1514, 1), Offload::NONE);
    pair.run(Duration::from_millis(10));
    assert_eq!(pair.snapshot(0).trains_tx.marked, marked);
    pair.still_works();
}

#[test]
fn where_one_of_the_hosts_uses_its_link_they_go_by_the_engine() {
    for unused in [[false, false], [true, false], [false, true]] {
        let pair = behind_port_security(unused);
        for (side, is_unused) in unused.into_iter().enumerate() {
            assert_eq!(because(&pair, side), Some(EngineBecause::Unanswered));
            let sources = pair.engines[side].direct_sources();
            assert!(!sources.contains(&unmarked_from(1 - side)));
            let expected = match is_unused {
                true => KindRefused::NotOffered,
                false => KindRefused::OwnTraffic,
            };
            let refused = [
                (DirectKind::Source, KindRefused::Unanswered),
                (DirectKind::None, expected),
            ];
            assert_eq!(path(&pair, side).direct_marks_refused, refused);
            assert_eq!(path(&pair, side).direct_mark, None);
        }
    }
}

#[test]
fn the_mark_comes_first_where_it_passes() {
    let mut pair = Pair::with(|_, config| {
        config.direct_frames = true;
        config.mtu = MTU;
    });
    for side in 0..2 {
        set_use(&mut pair, side, true);
    }
    pair.run(Duration::from_secs(10));
    for side in 0..2 {
        let to = pair.engines[side].direct_destinations();
        assert_eq!(to[0].outer_source, direct_mark(side));
        assert_eq!(path(&pair, side).direct_mark, Some(DirectKind::Source));
        let refused = [(DirectKind::None, KindRefused::NotTried)];
        assert_eq!(path(&pair, side).direct_marks_refused, refused);
    }
}

/// The host that begins to use its link ends it in that moment, and the other end by its next hello.
#[test]
fn an_address_on_one_of_the_links_ends_it_at_both_ends_at_once() {
    let mut pair = behind_port_security([true; 2]);
    set_use(&mut pair, 1, false);
    let sources = pair.engines[1].direct_sources();
    assert!(!sources.contains(&unmarked_from(0)), "{sources:?}");
    let open = |pair: &Pair, side: usize| {
        let to = pair.engines[side].direct_destinations();
        to.iter().any(|to| to.open_to != OpenTo::Nobody)
    };
    assert!(!open(&pair, 1));
    assert!(open(&pair, 0));
    pair.run(Duration::from_millis(1));
    assert!(!open(&pair, 0), "it was told");
    let sources = pair.engines[0].direct_sources();
    assert!(!sources.contains(&unmarked_from(1)), "{sources:?}");
    pair.run(Duration::from_secs(10));
    assert_eq!(because(&pair, 0), Some(EngineBecause::Unanswered));
    // And again when the address has gone.
    set_use(&mut pair, 1, true);
    pair.run(Duration::from_secs(20));
    for side in 0..2 {
        assert_eq!(path(&pair, side).direct_mark, Some(DirectKind::None));
        assert_eq!(because(&pair, side), None);
    }
}

#[test]
fn what_is_not_answered_any_more_begins_anew_with_the_mark() {
    let mut pair = behind_port_security([true; 2]);
    // Nothing of direct frames passes, whatever it comes from; then all.
    pair.lose = Box::new(|_, frame| frame.len() > 31 && frame[14] == 0x11 && frame[30] == 3);
    for n in 20..40 {
        pair.engines[0].handle_direct_sent(pt0(1), LINK, n, pair.now);
        pair.run(Duration::from_millis(50));
    }
    assert_eq!(because(&pair, 0), Some(EngineBecause::Unanswered));
    assert_eq!(path(&pair, 0).direct_mark, None);
    pair.lose = Box::new(|_, _| false);
    pair.run(Duration::from_secs(20));
    assert_eq!(because(&pair, 0), None);
}

/// Another line of the same two hosts over the same links: nothing would tell its frames from ours.
#[test]
fn a_line_beside_it_over_the_same_links_ends_it_as_long_as_it_is_heard() {
    let mut pair = behind_port_security([true; 2]);
    let other_line = |pair: &Pair| {
        let mut hello = Forger::as_side(pair, 0).hello(None);
        (hello.line_id, hello.node_id.0) = (5, 77);
        emit(&hello, link_address(0))
    };
    for _ in 0..20 {
        let bytes = other_line(&pair);
        pair.inject(1, &bytes, Offload::NONE);
        pair.run(Duration::from_secs(1));
    }
    assert_eq!(because(&pair, 0), Some(EngineBecause::Unanswered));
    assert_eq!(because(&pair, 1), Some(EngineBecause::Unanswered));
    let refused = |side: usize| path(&pair, side).direct_marks_refused[1].1;
    assert_eq!(refused(0), KindRefused::NotOffered);
    assert_eq!(refused(1), KindRefused::OtherLine);
    pair.run(Duration::from_secs(20));
    for side in 0..2 {
        assert_eq!(path(&pair, side).direct_mark, Some(DirectKind::None));
    }
}

/// Who does not know the kind does not name it, and is never asked by it.
#[test]
fn a_node_that_does_not_know_it_is_asked_by_its_mark_alone() {
    let mut pair = behind_port_security([true, false]);
    pair.record = true;
    pair.recorded.clear();
    pair.run(Duration::from_secs(30));
    let reports = pair.recorded.iter().filter(|(side, frame, _)| {
        *side == 0 && frame.len() > 31 && frame[14] == 0x11 && frame[30] == 3
    });
    let mut sources: Vec<_> = reports.map(|(_, frame, _)| frame[6..12].to_vec()).collect();
    sources.dedup();
    assert_eq!(sources, [direct_mark(0).0.to_vec()]);
}

const VLAN: u16 = 100;

/// Two hosts that use their links themselves, and name a VLAN for direct frames, which is free on their links.
fn behind_port_security_in_vlans(named: [Option<u16>; 2], is_free: [bool; 2]) -> Pair {
    let mut pair = Pair::with(|side, config| {
        config.direct_frames = true;
        config.direct_vlan = named[side];
        config.mtu = MTU;
    });
    for (side, vlan) in is_free.into_iter().enumerate() {
        let unused = Unused {
            untagged: false,
            vlan,
        };
        pair.engines[side].handle_link_use(LINK, unused, pair.now);
    }
    let links = [link_address(0), link_address(1)];
    let is_from_link = move |frame: &[u8]| links.iter().any(|link| frame[6..12] == link.0);
    begin_to_lose(&mut pair, move |frame| !is_from_link(frame));
    pair
}

fn tagged_from(side: usize) -> DirectSource {
    DirectSource {
        kind: DirectKind::Vlan,
        ..unmarked_from(side)
    }
}

#[test]
fn between_links_that_their_hosts_use_they_go_in_the_vlan_that_both_name() {
    let mut pair = behind_port_security_in_vlans([Some(VLAN); 2], [true; 2]);
    for side in 0..2 {
        let to = pair.engines[side].direct_destinations();
        let outer = to.iter().map(|to| (to.outer_source, to.vlan, to.open_to));
        let expected = (link_address(side), Some(VLAN), OpenTo::All);
        assert_eq!(outer.collect::<Vec<_>>(), [expected]);
        let sources = pair.engines[side].direct_sources();
        assert!(sources.contains(&tagged_from(1 - side)), "{sources:?}");
        assert!(!sources.contains(&unmarked_from(1 - side)), "{sources:?}");
        let path = path(&pair, side);
        assert_eq!(path.direct_mark, Some(DirectKind::Vlan));
        let refused = [
            (DirectKind::Source, KindRefused::Unanswered),
            (DirectKind::None, KindRefused::OwnTraffic),
        ];
        assert_eq!(path.direct_marks_refused, refused);
    }
    pair.still_works();
}

#[test]
fn a_vlan_that_only_one_names_or_another_or_that_the_host_uses_is_not_tried() {
    let cases = [
        ([Some(VLAN), None], [true, true]),
        ([Some(VLAN), Some(VLAN + 1)], [true, true]),
        ([Some(VLAN), Some(VLAN)], [true, false]),
    ];
    for (named, is_free) in cases {
        let pair = behind_port_security_in_vlans(named, is_free);
        let refused = &path(&pair, 0).direct_marks_refused;
        assert_eq!(refused[2], (DirectKind::Vlan, KindRefused::NotOffered));
        for side in 0..2 {
            assert_eq!(because(&pair, side), Some(EngineBecause::Unanswered));
            let sources = pair.engines[side].direct_sources();
            assert!(!sources.contains(&tagged_from(1 - side)));
        }
    }
}

#[test]
fn a_vlan_that_does_not_pass_is_asked_in_vain() {
    let mut pair = behind_port_security_in_vlans([Some(VLAN); 2], [true; 2]);
    let links = [link_address(0), link_address(1)];
    begin_to_lose(&mut pair, move |frame| {
        frame[12..14] == [0x81, 0] || links.iter().all(|link| frame[6..12] != link.0)
    });
    for side in 0..2 {
        assert_eq!(because(&pair, side), Some(EngineBecause::Unanswered));
        assert_eq!(path(&pair, side).direct_mark, None);
    }
    pair.still_works();
}

/// A switch may change the priority that stands beside the VLAN in the tag.
#[test]
fn what_is_said_in_the_vlan_has_its_tag() {
    let mut pair = behind_port_security_in_vlans([Some(VLAN); 2], [true; 2]);
    pair.record = true;
    pair.recorded.clear();
    for n in 20..40 {
        pair.engines[0].handle_direct_sent(pt0(1), LINK, n, pair.now);
        pair.run(Duration::from_millis(50));
    }
    let mut tagged = pair
        .recorded
        .iter()
        .filter(|(side, frame, _)| *side == 0 && frame[12..14] == [0x81, 0]);
    let (_, frame, _) = tagged.next_back().expect("said in it").clone();
    assert_eq!(frame[6..12], link_address(0).0);
    assert_eq!(frame[14..18], [0, VLAN as u8, 0x88, 0xb5]);
    let drops = |pair: &Pair| format!("{:?}", pair.snapshot(1).drops);
    let before = drops(&pair);
    let mut with_priority = frame.clone();
    with_priority[14] |= 0xa0;
    pair.inject(1, &with_priority, Offload::NONE);
    assert_eq!(drops(&pair), before, "taken");
    let mut of_another = frame.clone();
    of_another[15] += 1;
    pair.inject(1, &of_another, Offload::NONE);
    assert_ne!(drops(&pair), before, "nobody's");
}
