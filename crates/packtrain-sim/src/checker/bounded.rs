//! No queue beyond its limit, ever.

use packtrain_proto::config::Limits;
use packtrain_proto::stats::Snapshot;

/// A limit is checked before a frame is put in, so one frame may stand above it.
const FRAME_BYTES_MAX: u64 = 65_536 + 64;

pub fn check(snapshot: &Snapshot, limits: &Limits) -> Result<(), String> {
    let queue = &snapshot.queue;
    let resequencer = &snapshot.resequencer;
    let reassembly = &snapshot.reassembly;
    let replay = &snapshot.replay;
    let peers = snapshot.peers.len() as u64;
    let hosts = snapshot.hosts.len() as u64;
    let bytes = |max: usize| max as u64 + FRAME_BYTES_MAX;
    // The limits of what is received hold for each peer.
    let all_peers = |max: usize| bytes(max) * peers.max(1);
    for (name, is, max) in [
        (
            "queued frames",
            queue.frames.max(queue.frames_max_seen),
            limits.queued_frames_max as u64,
        ),
        (
            "queued bytes",
            queue.bytes.max(queue.bytes_max_seen),
            bytes(limits.queued_bytes_max),
        ),
        (
            "bytes held for the order of one peer's trains",
            resequencer.held_bytes_max_seen,
            bytes(limits.resequencer_bytes_max),
        ),
        (
            "bytes held for the order of all peers' trains",
            resequencer.held_bytes,
            all_peers(limits.resequencer_bytes_max),
        ),
        (
            "bytes held for the order of all peers' trains together",
            resequencer.held_bytes,
            // Beyond it each peer holds one train at most.
            limits.resequencer_bytes_total_max as u64 + FRAME_BYTES_MAX * peers.max(1),
        ),
        (
            "bytes of trains kept for replay",
            replay.kept_bytes,
            all_peers(limits.replay_bytes_max).min(bytes(limits.replay_bytes_total_max)),
        ),
        (
            "bytes of trains ever kept for replay at once",
            replay.kept_bytes_max_seen,
            bytes(limits.replay_bytes_total_max),
        ),
        (
            "bytes in the reassembly of one peer's frames",
            reassembly.bytes_max_seen,
            bytes(limits.reassembly_bytes_max),
        ),
        (
            "bytes in the reassembly of all peers' frames",
            reassembly.bytes,
            all_peers(limits.reassembly_bytes_max),
        ),
        ("peers", peers, limits.peers_max as u64),
        ("plain hosts", hosts, limits.stations_max as u64),
    ] {
        if is > max {
            return Err(format!("{is} {name}, and {max} is the limit"));
        }
    }
    Ok(())
}
