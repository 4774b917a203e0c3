//! Two engines and a wire of one memory copy.

#[allow(dead_code)] // what shares this file does not share all of it
pub mod crowd;

use packtrain_proto::config::{Config, LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::engine::Engine;
use packtrain_proto::offload::Offload;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;

const LINK: LinkId = LinkId(0);

pub struct Pair {
    now: Instant,
    near: Engine,
    far: Engine,
    template: Vec<u8>,
    pub delivered: u64,
}

fn engine(side: u8) -> Engine {
    let config = Config::new(NodeId(u64::from(side)), MacAddr([2, 0, 0, 0, 0, side]));
    let mut engine = Engine::new(config, Instant::ZERO);
    let address = MacAddr([0x0a, 0, 0, 0, 0, side]);
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
    pub fn new() -> Pair {
        let mut template = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        template.extend([
            0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        template.extend([0, 1, 0, 2, 0, 0, 0, 0]);
        template.resize(1514, 0xa5);
        let mut pair = Pair {
            now: Instant::ZERO,
            near: engine(1),
            far: engine(2),
            template,
            delivered: 0,
        };
        for _ in 0..100 {
            pair.now += Duration::from_millis(10);
            pair.near.handle_timeout(pair.now);
            pair.far.handle_timeout(pair.now);
            pair.settle();
        }
        assert!(pair.near.snapshot(pair.now).peers[0].up);
        pair
    }

    /// `frames` frames of `len` bytes from `flows` senders, through both engines.
    pub fn round(&mut self, frames: usize, flows: usize, len: usize) {
        self.now += Duration::from_micros(200);
        for i in 0..frames {
            self.template[34..36].copy_from_slice(&((i % flows) as u16).to_be_bytes());
            let buffer = self.near.buffers().copy_of(&self.template[..len]);
            self.near.handle_host_frame(buffer, Offload::NONE, self.now);
        }
        let before = self.delivered;
        self.near.handle_timeout(self.now);
        self.far.handle_timeout(self.now);
        self.settle();
        assert_eq!(self.delivered - before, frames as u64);
    }

    fn settle(&mut self) {
        loop {
            let mut idle = true;
            while let Some(transmit) = self.near.poll_transmit(self.now) {
                let buffer = self.far.buffers().copy_of(transmit.frame);
                self.far
                    .handle_link_frame(LINK, buffer, transmit.offload, self.now);
                while self.far.poll_delivery(self.now).is_some() {
                    self.delivered += 1;
                }
                idle = false;
            }
            self.near.handle_link_queue(LINK, 0, self.now);
            while let Some(transmit) = self.far.poll_transmit(self.now) {
                let buffer = self.near.buffers().copy_of(transmit.frame);
                self.near
                    .handle_link_frame(LINK, buffer, transmit.offload, self.now);
                idle = false;
            }
            self.far.handle_link_queue(LINK, 0, self.now);
            if idle {
                return;
            }
        }
    }
}
