//! When nobody sends any more and the network is well, everything drains and all peers are up.

use packtrain_proto::stats::{PathSnapshot, PathState, Snapshot};
use packtrain_proto::time::{Duration, Instant};

use super::work_conserving::LinkSeen;

/// Longest that a link may take to leave: what was under way on it arrives, or is replayed elsewhere.
const LEAVING_MAX: Duration = Duration::from_secs(10);

/// Longest that one which failed again and again is held back.
const HELD_MAX: Duration = Duration::from_millis(12_800);

/// What was sent may still be kept where sequences were altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    Gone,
    /// Who was told of a sequence far ahead, unnoticed, acknowledges that until it is reached: on a link that is silent because of it, at a
    /// try a second. Whoever waits for an answer there keeps its question meanwhile.
    MayBeKept,
}

/// `peers`: how many there are to be.
pub fn check(snapshot: &Snapshot, peers: usize, copies: Copies) -> Result<(), String> {
    let kept_trains = match copies {
        Copies::Gone => snapshot.replay.kept_trains,
        Copies::MayBeKept => 0,
    };
    let in_flight: u64 = snapshot.links.iter().map(|link| link.in_flight_bytes).sum();
    for (name, is) in [
        ("frames wait in queues", snapshot.queue.frames),
        ("bytes wait in queues", snapshot.queue.bytes),
        (
            "trains are held for their order",
            snapshot.resequencer.held_trains,
        ),
        ("frames are in reassembly", snapshot.reassembly.frames),
        ("bytes are in flight", in_flight),
        ("trains are kept for replay", kept_trains),
        (
            "trains wait for their replay",
            snapshot.replay.waiting_trains,
        ),
    ] {
        if is != 0 {
            return Err(format!("{is} {name}, long after the last was sent"));
        }
    }
    let up = snapshot.peers.iter().filter(|peer| peer.up).count();
    if up != peers {
        return Err(format!("{up} of {peers} peers are up"));
    }
    Ok(())
}

/// `paths`: how many there are to each peer. Every one must be of use again.
pub fn check_paths(snapshot: &Snapshot, paths: usize) -> Result<(), String> {
    for peer in &snapshot.peers {
        // One that failed often is held for a while, and works.
        let is_back = |path: &PathSnapshot| {
            let liveness = path.liveness.as_ref();
            liveness.is_some_and(|l| l.held_for.is_some_and(|time| time <= HELD_MAX))
        };
        let of_use = |path: &&PathSnapshot| match path.state {
            PathState::Open | PathState::Backup | PathState::TooSlow => true,
            PathState::Held => is_back(path),
            _ => false,
        };
        let count = peer.paths.iter().filter(of_use).count();
        if count != paths {
            let states: Vec<_> = peer.paths.iter().map(|p| (p.link.0, p.state)).collect();
            return Err(format!(
                "{count} of {paths} paths to {:?} are of use: {states:?}",
                peer.address
            ));
        }
    }
    Ok(())
}

/// A link that is to leave does so.
pub fn check_leaving(link: &LinkSeen, now: Instant) -> Result<(), String> {
    match link.retiring_since {
        Some(since) if now.since(since) > LEAVING_MAX => Err(format!(
            "link {} is to leave since {since:?}, and is still there",
            link.id.0
        )),
        _ => Ok(()),
    }
}
