//! When nobody sends any more and the network is well, everything drains and all peers are up.

use packtrain_proto::stats::Snapshot;

/// `peers`: how many there are to be.
pub fn check(snapshot: &Snapshot, peers: usize) -> Result<(), String> {
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
