//! Strangers who want to hear of their links.

use std::cell::Cell;
use std::rc::Rc;

use packtrain_proto::config::{Limits, LinkId};
use packtrain_proto::stats::{DropReason, PathState};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::hello::capability;
use packtrain_proto::wire::liveness::{Diagnostic, Liveness, State};

use super::segments::{Bed, Cable, frame_to, host, pt0};
use super::support::forger::{Forger, emit};

const MS: Duration = Duration::from_millis(1);
const A: usize = 0;
const B: usize = 1;

fn is_liveness(message: &[u8]) -> bool {
    message[12..15] == [0x88, 0xb5, 0x14]
}

/// It asks whether that link of the side lives, and wants to be answered at once.
fn asks(forger: &Forger, incarnation: u16, link: u8, side: usize) -> Vec<u8> {
    let said = Liveness {
        state: State::Down,
        diagnostic: Diagnostic::None,
        multiplier: 4,
        asks: true,
        poll: true,
        is_long: false,
        link: super::support::LINK,
        remote_link: LinkId(link),
        incarnation,
        count: 1,
        heard: 0,
        heard_age: Duration::ZERO,
        desired: MS,
        required: MS,
        heard_long: 0,
    };
    let mut message = packtrain_proto::buffer::Buffer::with_capacity(100);
    said.emit(&mut message);
    [
        &host(side, link).0[..],
        &forger.link.0,
        &[0x88, 0xb5],
        &message,
    ]
    .concat()
}

#[test]
fn a_hundred_thousand_who_ask_whether_their_links_live_take_nothing_from_a_peer() {
    let cables = [0, 1].map(|link| Cable::of(&[(A, link), (B, link)]));
    let mut bed = Bed::new(2, &cables);
    bed.run(1500 * MS);
    let said = Rc::new(Cell::new(0u64));
    let counts = said.clone();
    bed.lose = Box::new(move |side, _, message| {
        counts.set(counts.get() + u64::from(side == B && is_liveness(message)));
        false
    });
    let (begun, mut asked) = (bed.now, 0);
    let node = bed.engines[B].snapshot(bed.now).node_id;
    for n in 0..100_000u32 {
        let (forger, link) = (Forger::new(n + 1), (n % 2) as u8);
        let mut hello = forger.hello((n % 3 > 0).then_some(node));
        hello.capabilities |= capability::LIVENESS | capability::POLLS | capability::REPAIR;
        bed.inject(B, link, &emit(&hello, forger.link));
        if n % 4 == 0 {
            bed.inject(B, link, &asks(&forger, forger.incarnation, link, B));
            asked += 1;
        }
        if n % 20 == 0 {
            bed.send(A, &frame_to(pt0(B), pt0(A), n as u8));
            bed.run(MS);
        }
    }
    let limits = Limits::default();
    let seen = bed.engines[B].snapshot(bed.now);
    assert!(seen.peers.len() <= limits.peers_max);
    assert!(seen.drops.get(DropReason::PeerTableFull) > 90_000);
    assert_eq!(bed.out[B].len(), 5000, "what the peer sent");
    let of_peer = |bed: &Bed, side: usize| {
        let seen = bed.engines[side].snapshot(bed.now);
        let peer = seen.peers.into_iter().find(|p| p.address == pt0(1 - side));
        peer.expect("it is there").paths
    };
    for side in [A, B] {
        let paths = of_peer(&bed, side);
        assert!(paths.iter().all(|path| path.state == PathState::Open));
        assert!(paths.iter().all(|path| path.failures == 0), "{paths:?}");
    }
    // All sessions together take their turns, a millisecond apart; who asks is answered no more often than it asks.
    let milliseconds = bed.now.since(begun).as_millis() as u64;
    let most = milliseconds * 11 / 10 + asked;
    assert!(said.get() <= most, "{} of {most}", said.get());
    // Nothing of it is left, and a dead link is found as soon as ever.
    bed.run(Duration::from_secs(8));
    assert_eq!(bed.engines[B].snapshot(bed.now).peers.len(), 1);
    bed.lose = Box::new(|_, link, _| link == LinkId(0));
    bed.run(60 * MS);
    let states = |side| {
        of_peer(&bed, side)
            .iter()
            .map(|p| p.state)
            .collect::<Vec<_>>()
    };
    assert_eq!(states(A), [PathState::Silent, PathState::Open]);
    assert_eq!(states(B), [PathState::Silent, PathState::Open]);
}
