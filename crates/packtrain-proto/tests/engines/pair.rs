//! Two engines joined by a wire that does what it should: the contract, used as an owner uses it.

use packtrain_proto::buffer::Buffer;
use packtrain_proto::config::{Config, LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::engine::{Engine, Event};
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;

const LINK: LinkId = LinkId(0);

struct Pair {
    now: Instant,
    engines: [Engine; 2],
    /// Frames that came out, per side.
    out: [Vec<(Vec<u8>, Offload)>; 2],
    wire_frames: usize,
    /// Frames on the wire that are not given to the other side, by number.
    lose: fn(usize) -> bool,
}

fn pt0(side: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, side as u8 + 1])
}

fn engine(side: usize, marked: bool) -> Engine {
    let mut config = Config::new(NodeId(0x1111 * (side as u64 + 1)), pt0(side));
    config.marked_frames = marked;
    config.mtu = 65_521;
    let mut engine = Engine::new(config, Instant::ZERO);
    let address = MacAddr([0x0a, 0, 0, 0, 0, side as u8 + 1]);
    let state = LinkState {
        address,
        mark: mark_of(address),
        mtu: 1500,
        carrier: true,
        rate_bps: None,
    };
    engine.handle_link_state(LINK, state, Instant::ZERO);
    engine
}

impl Pair {
    fn new(marked: bool) -> Pair {
        let mut pair = Pair {
            now: Instant::ZERO,
            engines: [engine(0, marked), engine(1, marked)],
            out: [Vec::new(), Vec::new()],
            wire_frames: 0,
            lose: |_| false,
        };
        pair.run(Duration::from_millis(300));
        for engine in &mut pair.engines {
            let mut events = std::iter::from_fn(|| engine.poll_event());
            assert!(events.any(|event| matches!(event, Event::PeerUp { .. })));
        }
        pair.out = [Vec::new(), Vec::new()];
        pair
    }

    fn send(&mut self, side: usize, frame: &[u8], offload: Offload) {
        let mut buffer = self.engines[side].buffers().take(frame.len());
        assert!(buffer.push(frame));
        self.engines[side].handle_host_frame(buffer, offload, self.now);
    }

    /// Everything that can go now.
    fn settle(&mut self) {
        loop {
            let mut idle = true;
            for side in 0..2 {
                while let Some(delivery) = self.engines[side].poll_delivery(self.now) {
                    let frame = [delivery.head, delivery.body].concat();
                    self.out[side].push((frame, delivery.offload));
                    idle = false;
                }
                let mut sent = Vec::new();
                while let Some(transmit) = self.engines[side].poll_transmit(self.now) {
                    sent.push((transmit.frame.to_vec(), transmit.offload));
                }
                self.engines[side].handle_link_queue(LINK, 0, self.now);
                for (frame, offload) in sent {
                    idle = false;
                    self.wire_frames += 1;
                    assert!(
                        offload.gso.is_some() || frame.len() <= 1514,
                        "{}",
                        frame.len()
                    );
                    if !(self.lose)(self.wire_frames) {
                        let mut buffer = Buffer::with_capacity(frame.len());
                        assert!(buffer.push(&frame));
                        self.engines[1 - side].handle_link_frame(LINK, buffer, offload, self.now);
                    }
                }
            }
            if idle {
                return;
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let next = self
                .engines
                .iter()
                .filter_map(Engine::poll_timeout)
                .min()
                .unwrap();
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            for engine in &mut self.engines {
                engine.handle_timeout(self.now);
            }
        }
    }
}

/// A frame of `len` bytes to the other `pt0` that is neither IPv4 nor IPv6.
fn frame(from: usize, len: usize, fill: u8) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(pt0(1 - from).0);
    frame.extend(pt0(from).0);
    frame.extend([0x90, 0x00]);
    frame.resize(len, fill);
    frame
}

/// An IPv4 TCP GSO frame with an unfinished checksum.
fn gso_frame(payload_len: usize, segment_len: u16) -> (Vec<u8>, Offload) {
    let mut frame = Vec::new();
    frame.extend(pt0(1).0);
    frame.extend(pt0(0).0);
    frame.extend([0x08, 0x00]);
    let total = (40 + payload_len) as u16;
    frame.extend([
        0x45,
        0,
        (total >> 8) as u8,
        total as u8,
        0,
        1,
        0x40,
        0,
        64,
        6,
        0,
        0,
    ]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([
        0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0,
    ]);
    frame.extend((0..payload_len).map(|i| (i / 100) as u8));
    let gso = Gso {
        kind: GsoKind::TcpV4,
        ecn: false,
        header_len: 54,
        segment_len,
    };
    let checksum = Some(PartialChecksum {
        start: 34,
        offset: 16,
    });
    (
        frame,
        Offload {
            checksum,
            gso: Some(gso),
        },
    )
}

#[test]
fn what_goes_into_one_comes_out_of_the_other_packed() {
    let mut pair = Pair::new(true);
    let frames: Vec<_> = (0..100).map(|i| frame(0, 60 + i, i as u8)).collect();
    let before = pair.wire_frames;
    for frame in &frames {
        pair.send(0, frame, Offload::NONE);
    }
    pair.run(Duration::from_millis(50));
    let got: Vec<_> = pair.out[1].iter().map(|(frame, _)| frame.clone()).collect();
    assert_eq!(got, frames);
    let snapshot = pair.engines[0].snapshot(pair.now);
    assert_eq!(snapshot.trains_tx.frames, 100);
    assert!(snapshot.trains_tx.trains <= 9, "{:?}", snapshot.trains_tx);
    assert!(pair.wire_frames - before <= 12);
    assert_eq!(snapshot.drops.total(), 0, "{:?}", snapshot.drops);
    assert_eq!(snapshot.links[0].in_flight_bytes, 0);
}

#[test]
fn a_gso_frame_goes_as_it_is_with_marks_and_in_pieces_without() {
    for marked in [true, false] {
        let mut pair = Pair::new(marked);
        let (frame, offload) = gso_frame(60_000, 1448);
        pair.send(0, &frame, offload);
        pair.run(Duration::from_millis(50));
        assert_eq!(pair.out[1], [(frame, offload)], "marked: {marked}");
        let tx = pair.engines[0].snapshot(pair.now).trains_tx;
        assert_eq!(
            (tx.marked, tx.trains > 0),
            if marked { (1, false) } else { (0, true) }
        );
    }
}

#[test]
fn a_gso_frame_with_a_hole_comes_as_its_complete_segments() {
    let mut pair = Pair::new(false);
    let (frame, offload) = gso_frame(60_000, 1448);
    pair.send(0, &frame, offload);
    pair.lose = |n| n % 16 == 9;
    pair.run(Duration::from_secs(1));
    assert!(pair.out[1].len() > 1);
    let snapshot = pair.engines[1].snapshot(pair.now);
    assert_eq!(snapshot.reassembly.partial, 1);
    let payload: usize = pair.out[1].iter().map(|(frame, _)| frame.len() - 54).sum();
    assert!(
        payload > 45_000 && payload < 60_000 && snapshot.drops.total() == 0,
        "{payload}"
    );
    let sequences: Vec<u32> = pair.out[1]
        .iter()
        .map(|(frame, _)| u32::from_be_bytes(frame[38..42].try_into().unwrap()))
        .collect();
    assert!(
        sequences.windows(2).all(|w| w[0] < w[1]) && sequences[0] == 1,
        "{sequences:?}"
    );
}

#[test]
fn a_jumbo_frame_is_cut_and_put_together() {
    let mut pair = Pair::new(true);
    let jumbo = frame(1, 14 + 65_521, 7);
    let small = frame(1, 60, 8);
    pair.send(1, &jumbo, Offload::NONE);
    pair.send(1, &small, Offload::NONE);
    pair.run(Duration::from_millis(100));
    let got: Vec<usize> = pair.out[0].iter().map(|(frame, _)| frame.len()).collect();
    assert_eq!(got.len(), 2);
    assert!(pair.out[0].iter().any(|(frame, _)| *frame == jumbo));
}

#[test]
fn a_restarted_side_is_met_anew_and_the_rest_forgets_its_former_life() {
    let mut pair = Pair::new(true);
    let mut config = Config::new(NodeId(0x9999), pt0(1));
    config.mtu = 65_521;
    pair.engines[1] = Engine::new(config, pair.now);
    let address = MacAddr([0x0a, 0, 0, 0, 0, 2]);
    let mark = mark_of(address);
    let state = LinkState {
        address,
        mark,
        mtu: 1500,
        carrier: true,
        rate_bps: None,
    };
    pair.engines[1].handle_link_state(LINK, state, pair.now);
    pair.run(Duration::from_millis(300));
    pair.out = [Vec::new(), Vec::new()];
    pair.send(0, &frame(0, 100, 3), Offload::NONE);
    pair.run(Duration::from_millis(10));
    assert_eq!(pair.out[1].len(), 1);
    let snapshot = pair.engines[0].snapshot(pair.now);
    assert_eq!(snapshot.peers.len(), 1);
    assert_eq!(
        (snapshot.peers[0].node_id, snapshot.peers[0].up),
        (NodeId(0x9999), true)
    );
}

#[test]
fn a_host_without_packtrain_is_spoken_to_plainly() {
    let mut pair = Pair::new(true);
    let host = MacAddr([4, 0, 0, 0, 0, 9]);
    let mut out = frame(0, 300, 1);
    out[0..6].copy_from_slice(&host.0);
    pair.send(0, &out, Offload::NONE);
    let sent = pair.engines[0].poll_transmit(pair.now).unwrap();
    assert_eq!(sent.frame, out);
    let mut answer = frame(1, 200, 2);
    answer[0..6].copy_from_slice(&pt0(0).0);
    answer[6..12].copy_from_slice(&host.0);
    let mut buffer = Buffer::with_capacity(answer.len());
    assert!(buffer.push(&answer));
    pair.engines[0].handle_link_frame(LINK, buffer, Offload::NONE, pair.now);
    pair.settle();
    assert_eq!(pair.out[0], [(answer, Offload::NONE)]);
    assert_eq!(pair.engines[0].snapshot(pair.now).hosts[0].address, host);
}
