//! The engine alone, no I/O: 64-byte frames packed, sent, unpacked and delivered, both ends on one
//! core. `cargo bench -p packtrain-proto`; the column to read is Mitem/s.

mod support;

use divan::{Bencher, black_box, counter::ItemsCount};
use support::Pair;
use support::crowd::Crowd;

fn main() {
    divan::main();
}

/// `flows` senders of 64-byte UDP frames; each round queues 512 frames and lets them through.
#[divan::bench(args = [1, 16, 1024])]
fn small_frames(bencher: Bencher, flows: usize) {
    let mut pair = Pair::new();
    bencher
        .counter(ItemsCount::new(512usize))
        .bench_local(|| pair.round(512, flows, 64));
}

/// 1400-byte frames: nothing to pack, one frame a train.
#[divan::bench]
fn large_frames(bencher: Bencher) {
    let mut pair = Pair::new();
    bencher
        .counter(ItemsCount::new(64usize))
        .bench_local(|| pair.round(64, 16, 1400));
}

/// The host is known to so many, by two links each, and has nothing to send: what each round of the owner
/// costs for their sake.
#[divan::bench(args = [1, 16, 256, 1024])]
fn idle_transmit(bencher: Bencher, peers: usize) {
    let mut crowd = Crowd::new(peers);
    let now = crowd.now;
    bencher.bench_local(|| black_box(crowd.engine.poll_transmit(now)).is_some());
}

#[divan::bench(args = [1, 16, 256, 1024])]
fn idle_timeout(bencher: Bencher, peers: usize) {
    let crowd = Crowd::new(peers);
    bencher.bench_local(|| black_box(crowd.engine.poll_timeout()));
}
