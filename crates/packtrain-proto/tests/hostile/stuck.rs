//! States that nothing must get stuck in, and inputs of the owner that are odd but honest.

use packtrain_proto::config::{LinkId, LinkState, mark_of};
use packtrain_proto::engine::Event;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

use super::support::forger::{Forger, emit, whole};
use super::support::{LINK, Pair, frame, link_address, link_state, node};

#[test]
fn an_acknowledgement_owed_over_a_link_without_carrier_does_not_keep_the_owner_awake() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    let train = forger.train(1, &whole(&[1; 60])).bytes();
    let buffer = pair.engines[1].buffers().copy_of(&train);
    pair.engines[1].handle_link_frame(LINK, buffer, Offload::NONE, pair.now);
    let down = LinkState {
        carrier: false,
        ..link_state(1)
    };
    pair.engines[1].handle_link_state(LINK, down, pair.now);
    // `run` sees to it that time passes.
    pair.run(Duration::from_secs(1));
    pair.engines[1].handle_link_state(LINK, link_state(1), pair.now);
    pair.run(Duration::from_secs(1));
    pair.still_works();
}

#[test]
fn a_host_frame_from_no_address_is_no_station_to_tell_of() {
    let mut pair = Pair::new(true);
    for source in [MacAddr([0; 6]), MacAddr::BROADCAST] {
        let mut odd = frame(0, 100, 1);
        odd[6..12].copy_from_slice(&source.0);
        pair.send(0, &odd, Offload::NONE);
        pair.run(Duration::from_secs(2));
    }
    assert_eq!(pair.out[1].len(), 2);
    pair.still_works();
}

#[test]
fn any_link_mtu_of_our_own_is_survived_with_frames_in_the_queue() {
    for mtu in (0..400u16).step_by(7).chain([576, 9000, u16::MAX]) {
        let mut pair = Pair::new(false);
        // The first piece leaves, the rest waits while the link changes.
        for i in 0..40 {
            pair.send(0, &frame(0, 60_000, i), Offload::NONE);
        }
        for _ in 0..10 {
            assert!(pair.engines[0].poll_transmit(pair.now).is_some());
        }
        let state = LinkState {
            mtu,
            ..link_state(0)
        };
        pair.engines[0].handle_link_state(LINK, state, pair.now);
        pair.record = true;
        // Larger frames than the other side takes are lost.
        pair.lose = Box::new(|_, frame| frame.len() > 1514);
        pair.run(Duration::from_millis(500));
        for (side, frame, _) in &pair.recorded {
            assert!(
                *side == 1 || frame.len() <= usize::from(mtu) + 14,
                "{mtu}: {}",
                frame.len()
            );
        }
        pair.engines[0].handle_link_state(LINK, link_state(0), pair.now);
        pair.run(Duration::from_secs(8));
        pair.still_works();
    }
}

#[test]
fn a_peer_that_moves_to_another_of_its_links_is_followed() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    forger.link = MacAddr([6, 6, 6, 6, 6, 6]);
    let mut hello = forger.hello(Some(node(1)));
    hello.link = LinkId(4);
    hello.links = vec![forger.record(LinkId(4))];
    pair.inject(1, &emit(&hello, forger.link), Offload::NONE);
    pair.record = true;
    let mut out = frame(1, 100, 1);
    out[..6].copy_from_slice(&forger.pt0.0);
    pair.send(1, &out, Offload::NONE);
    pair.settle();
    let to: Vec<_> = pair
        .recorded
        .iter()
        .map(|(_, frame, _)| MacAddr::from_slice(frame))
        .collect();
    assert_eq!(to, [forger.link]);
    pair.still_works();
}

/// Trains came in all the time, but nobody called about time: then everyone has been heard when
/// they were heard, and not later.
#[test]
fn a_peer_is_forgotten_in_time_though_the_owner_was_late_once() {
    let mut pair = Pair::new(true);
    pair.ticking[1] = false;
    for _ in 0..30 {
        pair.run(Duration::from_secs(1));
    }
    pair.ticking[1] = true;
    pair.events = Default::default();
    pair.run(Duration::from_millis(10));
    pair.lose = Box::new(|side, _| side == 0);
    pair.run(Duration::from_millis(4500));
    let down = |event: &Event| matches!(event, Event::PeerDown { .. });
    assert!(pair.events[1].iter().any(down), "{:?}", pair.events[1]);
}

#[test]
fn our_own_lateness_is_nobodys_silence() {
    let mut pair = Pair::new(true);
    pair.run(Duration::from_secs(2));
    pair.events = Default::default();
    // Stopped: neither time nor frames.
    pair.now += Duration::from_secs(60);
    pair.run(Duration::from_secs(3));
    for events in &pair.events {
        assert!(
            !events
                .iter()
                .any(|event| matches!(event, Event::PeerDown { .. })),
            "{events:?}"
        );
    }
    pair.still_works();
}

#[test]
fn a_link_without_an_address_of_its_own_speaks_to_nobody() {
    let mut pair = Pair::new(true);
    for address in [MacAddr([0; 6]), MacAddr::BROADCAST] {
        let state = LinkState {
            address,
            mark: mark_of(address),
            ..link_state(0)
        };
        pair.engines[0].handle_link_state(LINK, state, pair.now);
        pair.run(Duration::from_secs(2));
    }
    pair.engines[0].handle_link_state(LINK, link_state(0), pair.now);
    pair.run(Duration::from_secs(2));
    pair.still_works();
}

#[test]
fn a_link_state_that_is_told_again_unchanged_causes_no_hellos() {
    let mut pair = Pair::new(true);
    pair.run(Duration::from_secs(2));
    let before = pair.snapshot(0).links[0].tx.frames;
    for _ in 0..100 {
        pair.engines[0].handle_link_state(LINK, link_state(0), pair.now);
        pair.run(Duration::from_millis(10));
    }
    let sent = pair.snapshot(0).links[0].tx.frames - before;
    assert!(sent <= 6, "{sent}");
}

/// What a peer that leaves has under way is counted, whatever state it is in.
#[test]
fn what_was_under_way_from_a_peer_that_leaves_is_counted() {
    let mut pair = Pair::new(true);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    forger.send(
        &mut pair,
        1,
        &super::support::forger::first(1, 5000, &[0; 100]),
    );
    assert_eq!(pair.snapshot(1).reassembly.frames, 1);
    let mut bye = forger.hello(None);
    bye.goodbye = true;
    super::counts(&mut pair, &[(DropReason::PeerGone, 1)], |pair| {
        pair.inject(1, &emit(&bye, forger.link), Offload::NONE);
    });
    assert_eq!(pair.snapshot(1).reassembly.bytes, 0);
    pair.still_works();
    let _ = link_address(0);
}

/// A train that comes to nothing takes no acknowledgement along.
#[test]
fn an_acknowledgement_is_not_lost_with_a_frame_that_no_train_can_carry() {
    let mut pair = Pair::new(false);
    let mut forger = Forger::known_to(&mut pair, 1, 1);
    let narrow = LinkState {
        mtu: 300,
        ..link_state(1)
    };
    pair.engines[1].handle_link_state(LINK, narrow, pair.now);
    pair.run(Duration::from_secs(1));
    let train = forger.train(1, &whole(&[1; 60])).bytes();
    let buffer = pair.engines[1].buffers().copy_of(&train);
    pair.engines[1].handle_link_frame(LINK, buffer, Offload::NONE, pair.now);
    let (mut huge_headers, offload) = gso_behind_hop_by_hop_options();
    huge_headers[..6].copy_from_slice(&forger.pt0.0);
    pair.record = true;
    super::counts(&mut pair, &[(DropReason::TooLarge, 1)], |pair| {
        pair.send(1, &huge_headers, offload);
        pair.settle();
    });
    pair.run(Duration::from_millis(2));
    let to = |(_, frame, _): &(usize, Vec<u8>, Offload)| frame[..6] == forger.link.0;
    assert_eq!(pair.recorded.iter().filter(|sent| to(sent)).count(), 1);
    pair.record = false;
    pair.still_works();
}

/// IPv6 and TCP, with 400 bytes between them.
fn gso_behind_hop_by_hop_options() -> (Vec<u8>, Offload) {
    let mut frame = frame(1, 14, 0);
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((400u16 + 20 + 3000).to_be_bytes());
    frame.extend([0, 64]);
    frame.extend([0xfd; 32]);
    frame.extend([6, 49]);
    // Padding options: of 253 bytes at most each.
    frame.extend([1, 200]);
    frame.extend([0; 200]);
    frame.extend([1, 194]);
    frame.extend([0; 194]);
    let start = frame.len() as u16;
    frame.extend([
        0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0,
    ]);
    frame.extend([7; 3000]);
    let gso = Gso {
        kind: GsoKind::TcpV6,
        ecn: false,
        header_len: start + 20,
        segment_len: 1000,
    };
    let checksum = Some(PartialChecksum { start, offset: 16 });
    (
        frame,
        Offload {
            checksum,
            gso: Some(gso),
        },
    )
}

/// What a peer says of its link does not make the queue below ours any longer.
#[test]
fn the_window_at_the_start_is_of_what_both_links_carry() {
    let mut pair = Pair::new(true);
    let forger = Forger::new(1);
    let mut hello = forger.hello(Some(node(1)));
    hello.links[0].mtu = u16::MAX;
    pair.inject(1, &emit(&hello, forger.link), Offload::NONE);
    for peer in pair.snapshot(1).peers {
        assert_eq!(peer.paths[0].window_bytes, 32 * 1024);
    }
}
