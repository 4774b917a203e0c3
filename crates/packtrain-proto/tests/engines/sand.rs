//! How long a frame may hold a link, as fast as that was seen to be: alone and beside others, and with each peer.

use crate::segments::{Bed, Cable, frame_to, host, pt0};
use packtrain_proto::config::{Config, LinkId, NodeId};
use packtrain_proto::engine::Engine;
use packtrain_proto::stats::PathSize;
use packtrain_proto::time::Duration;
use packtrain_proto::unit_size::SizeBecause;

const STEP: Duration = Duration::from_micros(200);
/// What 10 Mbit/s are in a step.
const TAKEN: usize = 250;
const A: usize = 0;
const B: usize = 1;
const SLOW: (usize, LinkId) = (A, LinkId(0));

/// So many cables of MTU 9000, of which the first takes 10 Mbit/s from A, as A has seen.
fn bed(cables: u8) -> Bed {
    let all: Vec<Cable> = (0..cables)
        .map(|link| Cable::of(&[(A, link), (B, link)]))
        .collect();
    let mut bed = Bed::new(2, &all);
    for link in 0..cables {
        for side in [A, B] {
            bed.mtus.insert((side, LinkId(link)), 9000);
            bed.set_carrier(side, link, true);
        }
    }
    bed.run(Duration::from_secs(2));
    bed.queues.insert(SLOW, 0);
    for word in 0..200 {
        for _ in 0..4 {
            let mut frame = frame_to(pt0(B), pt0(A), word);
            frame.resize(1400, word);
            bed.send(A, &frame);
        }
        bed.run(STEP);
        let standing = bed.queues.get_mut(&SLOW).expect("it is there");
        *standing = standing.saturating_sub(TAKEN);
    }
    bed
}

fn size(bed: &Bed) -> PathSize {
    bed.paths(A)[0].size
}

#[test]
fn a_slow_link_is_given_no_longer_frames_than_it_may_beside_others_and_alone() {
    let mut bed = bed(2);
    let sizes = |bed: &Bed| -> Vec<_> {
        let sizes = bed.paths(A).into_iter().map(|path| path.size);
        sizes.map(|size| (size.bytes, size.because)).collect()
    };
    let slow = (1500, SizeBecause::SandDelay);
    // What stands there is not bounded, so nothing is said of how long small ones wait.
    let said = bed.engines[A].link_sand(LinkId(0), bed.now);
    assert_eq!((said.frame_bytes_max, said.waits_max), (Some(1514), None));
    assert_eq!(sizes(&bed), [slow, (9000, SizeBecause::LinkMtu)]);
    bed.engines[A].remove_link(LinkId(1), bed.now);
    assert_eq!(sizes(&bed), [slow]);
    let said = bed.engines[A].link_sand(LinkId(0), bed.now);
    assert!(said.waits_max.is_some());
}

#[test]
fn nor_is_it_with_a_peer_that_is_met_when_it_has_shown_how_slow_it_is() {
    let mut bed = bed(1);
    assert_eq!(size(&bed).bytes, 1500);
    bed.engines[B] = Engine::new(Config::new(NodeId(0x9999), pt0(B)), bed.now);
    bed.set_carrier(B, 0, true);
    bed.run(Duration::from_micros(1));
    let peers = bed.seen(A).peers;
    let path = &peers.last().expect("it was heard").paths[0];
    assert_eq!(
        (peers[0].node_id, path.remote_address),
        (NodeId(0x9999), host(B, 0))
    );
    assert_eq!(size(&bed).because, SizeBecause::SandDelay);
}
