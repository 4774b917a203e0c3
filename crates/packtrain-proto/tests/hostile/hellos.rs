//! Hellos that lie, and hellos without end.

use packtrain_proto::config::{Limits, LinkId, mark_of};
use packtrain_proto::engine::Event;
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::DropReason;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_proto::wire::hello::Hello;

use super::counts;
use super::support::forger::{Forger, emit};
use super::support::{Pair, frame, link_address, node, pt0};

#[test]
fn a_hello_cut_at_any_byte_is_truncated_and_brings_nobody_in() {
    let mut pair = Pair::new(true);
    let forger = Forger::new(1);
    let mut hello = forger.hello(Some(node(1)));
    hello.stations = vec![MacAddr([4; 6]); 3];
    let bytes = emit(&hello, forger.link);
    for cut in 0..bytes.len() {
        let reason = match cut {
            0..14 => DropReason::Runt,
            _ => DropReason::Truncated,
        };
        counts(&mut pair, &[(reason, 1)], |pair| {
            pair.inject(1, &bytes[..cut], Offload::NONE)
        });
    }
    assert_eq!(pair.snapshot(1).peers.len(), 1);
    pair.still_works();
}

/// A lie, and its counter.
type Case<'a> = (DropReason, &'a dyn Fn(&mut Hello, &mut MacAddr));

#[test]
fn a_hello_from_ourselves_of_another_line_or_with_our_addresses_brings_nobody_in() {
    let cases: &[Case] = &[
        (DropReason::OwnEcho, &|hello, _| hello.node_id = node(1)),
        (DropReason::OtherLine, &|hello, _| hello.line_id = 1),
        (DropReason::OtherLine, &|hello, _| hello.line_id = u32::MAX),
        (DropReason::BadHello, &|hello, _| hello.address = pt0(1)),
        // From a link that it does not name, or that has another address.
        (DropReason::BadHello, &|hello, _| hello.link = LinkId(7)),
        (DropReason::BadHello, &|_, source| *source = MacAddr([8; 6])),
        // As if from our own link.
        (DropReason::BadHello, &|hello, source| {
            (*source, hello.links[0].address) = (link_address(1), link_address(1));
            hello.links[0].mark = mark_of(link_address(1));
        }),
        // Marks that are not derived from the link's address: they could be anybody's.
        (DropReason::BadHello, &|hello, _| {
            hello.links[0].mark = Some(MacAddr([4, 0, 0, 0, 0, 9]))
        }),
        (DropReason::BadHello, &|hello, _| {
            hello.links[0].mark = Some(pt0(0))
        }),
    ];
    let mut pair = Pair::new(true);
    for (reason, change) in cases {
        let forger = Forger::new(1);
        let (mut hello, mut source) = (forger.hello(Some(node(1))), forger.link);
        change(&mut hello, &mut source);
        counts(&mut pair, &[(*reason, 1)], |pair| {
            pair.inject(1, &emit(&hello, source), Offload::NONE);
        });
        assert_eq!(pair.snapshot(1).peers.len(), 1);
        pair.still_works();
    }
}

/// Whatever MTU a peer claims for its link, frames to it go or are counted.
#[test]
fn any_link_mtu_in_a_hello_is_survived() {
    for mtu in (0..400).chain([575, 576, 9000, u16::MAX]) {
        for later in [false, true] {
            let mut pair = Pair::new(true);
            let forger = Forger::new(1);
            let mut hello = forger.hello(Some(node(1)));
            if later {
                pair.inject(1, &emit(&hello, forger.link), Offload::NONE);
            }
            hello.links[0].mtu = mtu;
            pair.inject(1, &emit(&hello, forger.link), Offload::NONE);
            let out = |len: usize| {
                let mut out = frame(1, len, 3);
                out[..6].copy_from_slice(&forger.pt0.0);
                out
            };
            pair.strays = 0;
            pair.record = true;
            for len in [15, 60, 500, 1514, 30_000] {
                let out = out(len);
                pair.send(1, &out, Offload::NONE);
                pair.run(Duration::from_millis(2));
            }
            let largest = pair.recorded.iter().map(|(_, frame, _)| frame.len()).max();
            if mtu >= 256 {
                assert!(
                    largest.unwrap() <= 14 + usize::from(mtu).min(1500),
                    "{mtu}: {largest:?}"
                );
            }
            // It falls silent, and is forgotten with all that waited for it.
            pair.run(Duration::from_secs(5));
            pair.still_works();
        }
    }
}

#[test]
fn a_storm_of_strangers_leaves_the_peer_up_and_costs_a_bounded_answer() {
    let mut pair = Pair::new(true);
    pair.events = Default::default();
    let sent_before = pair.snapshot(1).links[0].tx.frames;
    let start = pair.now;
    for n in 0..100_000u32 {
        let forger = Forger::new(n + 1);
        let recipient = (n % 3 == 0).then_some(node(1));
        let mut hello = forger.hello(recipient);
        hello.answer = n % 2 == 0;
        let bytes = emit(&hello, forger.link);
        let buffer = pair.engines[1].buffers().copy_of(&bytes);
        pair.engines[1].handle_link_frame(super::support::LINK, buffer, Offload::NONE, pair.now);
        if n % 10 == 0 {
            pair.run(Duration::from_micros(500));
        }
    }
    let seconds = pair.now.since(start).as_secs_f64();
    assert!(seconds > 4.9, "{seconds}");
    let limits = Limits::default();
    let seen = pair.snapshot(1);
    assert!(seen.peers.len() <= limits.peers_max);
    let refused = seen.drops.get(DropReason::PeerTableFull);
    assert!(refused > 98_000, "{refused}");
    // Answers, and the round of each second to whoever stands in the table.
    let sent = (seen.links[0].tx.frames - sent_before) as f64;
    let bound = seconds.ceil()
        * f64::from(limits.hello_answers_per_second_max + limits.peers_max as u32 + 20);
    assert!(sent <= bound, "{sent} of {bound}");
    let down =
        |event: &Event| matches!(event, Event::PeerDown { node_id, .. } if *node_id == node(0));
    assert!(!pair.events[1].iter().any(down));
    pair.still_works();
    // When it is over, nothing is left of it.
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.snapshot(1).peers.len(), 1);
    pair.still_works();
}

#[test]
fn a_flood_of_requests_for_an_answer_is_answered_at_the_set_rate() {
    let mut pair = Pair::new(true);
    let forger = Forger::known_to(&mut pair, 1, 1);
    let mut hello = forger.hello(Some(node(1)));
    hello.answer = true;
    let bytes = emit(&hello, forger.link);
    let before = pair.snapshot(1).links[0].tx.frames;
    for _ in 0..20_000 {
        pair.inject(1, &bytes, Offload::NONE);
        pair.run(Duration::from_micros(100));
    }
    let sent = pair.snapshot(1).links[0].tx.frames - before;
    assert!(sent <= 3 * 200 + 30, "{sent}");
    pair.still_works();
}

/// A node that claims the links, the marks and the address of a peer that is up.
#[test]
fn what_belongs_to_a_peer_that_is_up_cannot_be_claimed() {
    let mut pair = Pair::new(true);
    let forger = Forger::known_to(&mut pair, 1, 1);
    let mut hello = forger.hello(Some(node(1)));
    let victim = Forger::as_side(&pair, 0);
    hello.links.push(victim.record(LinkId(1)));
    hello.address = pt0(0);
    counts(&mut pair, &[], |pair| {
        pair.inject(1, &emit(&hello, forger.link), Offload::NONE)
    });
    pair.still_works();
    pair.run(Duration::from_secs(1));
    pair.inject(1, &emit(&hello, forger.link), Offload::NONE);
    pair.still_works();
}

#[test]
fn stations_that_a_hello_claims_fill_the_table_and_no_more() {
    let mut pair = Pair::new(true);
    for n in 0..40u16 {
        let forger = Forger::new(u32::from(n) + 1);
        let mut hello = forger.hello(Some(node(1)));
        hello.stations = (0..256u16)
            .map(|i| {
                let [a, b] = n.to_be_bytes();
                let [c, d] = i.to_be_bytes();
                MacAddr([2, 0x55, a, b, c, d])
            })
            .chain([pt0(0), pt0(1)])
            .take(256)
            .collect();
        hello.stations[0] = pt0(0);
        hello.stations[1] = pt0(1);
        pair.inject(1, &emit(&hello, forger.link), Offload::NONE);
    }
    pair.still_works();
    pair.run(Duration::from_secs(5));
    pair.still_works();
}

#[test]
fn a_hello_with_a_number_ahead_of_its_time_shuts_the_true_ones_out_for_seconds_only() {
    let mut pair = Pair::new(true);
    let forger = Forger::new(1);
    let say = |pair: &mut Pair, recipient, count| {
        let hello = Hello {
            count,
            ..forger.hello(recipient)
        };
        pair.inject(1, &emit(&hello, forger.link), Offload::NONE);
        let peers = pair.snapshot(1).peers;
        peers
            .iter()
            .any(|peer| peer.node_id == forger.node_id && peer.up)
    };
    say(&mut pair, None, 200);
    let mut up = Vec::new();
    for count in 1..=6 {
        up.push(say(&mut pair, Some(node(1)), count));
        pair.run(Duration::from_secs(1));
    }
    assert_eq!(up, [false, false, false, false, true, true]);
    pair.still_works();
}
