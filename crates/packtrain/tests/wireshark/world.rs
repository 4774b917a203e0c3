//! Two engines joined by links of their own, each with a delay, and what a capture sees of them.

use packtrain_proto::buffer::Buffer;
use packtrain_proto::config::{Config, LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::engine::Engine;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::checksum;
use packtrain_proto::wire::ethernet::MacAddr;

use crate::tshark::Seen;

const MTU: u16 = 1500;

pub fn pt0(side: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, side as u8 + 1])
}

pub fn link_address(side: usize, link: usize) -> MacAddr {
    MacAddr([0x0a, 0, 0, 0, link as u8, side as u8 + 1])
}

struct UnderWay {
    due: Instant,
    to: usize,
    link: usize,
    bytes: Vec<u8>,
}

pub struct World {
    pub now: Instant,
    pub engines: [Engine; 2],
    delays: Vec<Duration>,
    rate_bps: Option<u64>,
    /// Takes what is sent, and nobody gets it; no carrier tells.
    pub broken: Vec<bool>,
    under_way: Vec<UnderWay>,
    /// All that was sent, as both ends of all links see it.
    pub seen: Vec<Seen>,
    /// What each host was given.
    pub out: [Vec<Vec<u8>>; 2],
}

pub fn config(side: usize, node: u64) -> Config {
    let mut config = Config::new(NodeId(node), pt0(side));
    // Frames as they are would leave nothing for trains; the capture is of the trains.
    config.marked_frames = false;
    config.mtu = 65_521;
    config
}

impl World {
    /// Engines that have met, over links of these delays.
    pub fn new(delays: &[Duration]) -> World {
        World::over(delays, None)
    }

    /// … which are known to be so fast: only there payload is compressed.
    pub fn over(delays: &[Duration], rate_bps: Option<u64>) -> World {
        let engine = |side: usize| {
            let node = 0x0101_0101_0101_1111 * (side as u64 + 1);
            Engine::new(config(side, node), Instant::ZERO)
        };
        let mut world = World {
            now: Instant::ZERO,
            engines: [engine(0), engine(1)],
            delays: delays.to_vec(),
            rate_bps,
            broken: vec![false; delays.len()],
            under_way: Vec::new(),
            seen: Vec::new(),
            out: [Vec::new(), Vec::new()],
        };
        for side in 0..2 {
            world.plug(side);
        }
        world.run(Duration::from_millis(1500));
        for side in 0..2 {
            let peers = world.engines[side].snapshot(world.now).peers;
            assert!(peers.len() == 1 && peers[0].up, "{peers:?}");
        }
        world
    }

    fn plug(&mut self, side: usize) {
        for link in 0..self.delays.len() {
            let address = link_address(side, link);
            let state = LinkState {
                address,
                mark: mark_of(address),
                mtu: MTU,
                carrier: true,
                rate_bps: self.rate_bps,
            };
            self.engines[side].handle_link_state(LinkId(link as u8), state, self.now);
        }
    }

    /// A side begins its life anew.
    pub fn restart(&mut self, side: usize, node: u64) {
        self.engines[side] = Engine::new(config(side, node), self.now);
        self.plug(side);
    }

    pub fn send(&mut self, side: usize, frame: &[u8], offload: Offload) {
        let buffer = self.engines[side].buffers().copy_of(frame);
        self.engines[side].handle_host_frame(buffer, offload, self.now);
    }

    fn step(&mut self) -> bool {
        let mut moved = false;
        for side in 0..2 {
            while let Some(delivery) = self.engines[side].poll_delivery(self.now) {
                self.out[side].push([delivery.head, delivery.body].concat());
                moved = true;
            }
            while let Some(transmit) = self.engines[side].poll_transmit(self.now) {
                let (link, bytes) = (usize::from(transmit.link.0), transmit.frame.to_vec());
                self.seen.push(Seen::new(self.now, bytes.clone()));
                if !self.broken[link] {
                    let due = self.now + self.delays[link];
                    self.under_way.push(UnderWay {
                        due,
                        to: 1 - side,
                        link,
                        bytes,
                    });
                }
                moved = true;
            }
            while self.engines[side].poll_event().is_some() {}
            for link in 0..self.delays.len() {
                self.engines[side].handle_link_queue(LinkId(link as u8), 0, self.now);
            }
        }
        while let Some(at) = self
            .under_way
            .iter()
            .position(|frame| frame.due <= self.now)
        {
            let frame = self.under_way.remove(at);
            let mut buffer = Buffer::with_capacity(frame.bytes.len());
            assert!(buffer.push(&frame.bytes));
            let link = LinkId(frame.link as u8);
            self.engines[frame.to].handle_link_frame(link, buffer, Offload::NONE, self.now);
            moved = true;
        }
        moved
    }

    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            for _ in 0..100_000 {
                if !self.step() {
                    break;
                }
            }
            let wakes = self.engines.iter().filter_map(Engine::poll_timeout);
            let next = wakes
                .chain(self.under_way.iter().map(|frame| frame.due))
                .min();
            let Some(next) = next.filter(|&next| next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            for engine in &mut self.engines {
                engine.handle_timeout(self.now);
            }
        }
    }
}

fn ipv4(from: usize, protocol: u8, len: usize, id: u16) -> Vec<u8> {
    let mut bytes = [&pt0(1 - from).0[..], &pt0(from).0, &[0x08, 0x00]].concat();
    let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    ip.extend([10, 0, 0, from as u8 + 1, 10, 0, 0, 2 - from as u8]);
    ip[2..4].copy_from_slice(&(20 + len as u16).to_be_bytes());
    ip[4..6].copy_from_slice(&id.to_be_bytes());
    let sum = checksum::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(ip);
    bytes
}

/// A datagram between the two `pt0`s, without a checksum, that says `payload`.
pub fn datagram(from: usize, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut frame = ipv4(from, 17, 8 + payload.len(), 0);
    frame.extend(ports[0].to_be_bytes());
    frame.extend(ports[1].to_be_bytes());
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// A TCP segment, or several as a GSO frame.
pub fn segment(
    from: usize,
    sequence: u32,
    payload: &[u8],
    segment_len: Option<u16>,
) -> (Vec<u8>, Offload) {
    let mut frame = ipv4(from, 6, 20 + payload.len(), 7);
    frame.extend([0x9c, 0x40, 0x1f, 0x90]); // 40000 > 8080
    frame.extend(sequence.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    let Some(segment_len) = segment_len else {
        return (frame, Offload::NONE);
    };
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start: 34,
            offset: 16,
        }),
        gso: Some(Gso {
            kind: GsoKind::TcpV4,
            ecn: false,
            header_len: 54,
            segment_len,
        }),
    };
    (frame, offload)
}
