//! An engine that knows many peers, each by every link, and has nothing to tell them.

use packtrain_proto::buffer::Buffer;
use packtrain_proto::config::{Config, LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::engine::Engine;
use packtrain_proto::offload::Offload;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{Header, MacAddr, ether_type};
use packtrain_proto::wire::hello::{Hello, LinkRecord};
use packtrain_proto::wire::sequence::Sequence;

const LINKS: u8 = 2;
const OWN: NodeId = NodeId(1);

pub struct Crowd {
    pub now: Instant,
    pub engine: Engine,
}

fn address(kind: u8, n: usize) -> MacAddr {
    let [.., a, b] = (n as u32).to_be_bytes();
    MacAddr([kind, 0, 0, 0, a, b])
}

/// Of peer `n`, from its `link`.
fn hello(n: usize, link: u8, count: u32) -> Vec<u8> {
    let link_address = |link: u8| address(0x0a + 4 * link, n);
    let record = |link: u8| LinkRecord {
        link: LinkId(link),
        carrier: true,
        unused_by_host: false,
        takes_vlan: false,
        mtu: 1500,
        address: link_address(link),
        mark: mark_of(link_address(link)),
        rate_kbps: None,
        newest_train: Sequence::ZERO,
        newest_link: Sequence::ZERO,
    };
    let hello = Hello {
        answer: false,
        goodbye: false,
        away: false,
        full: false,
        past: false,
        link: LinkId(link),
        node_id: NodeId(n as u64 + 2),
        recipient: Some(OWN),
        line_id: 0,
        capabilities: 0,
        address: address(2, n),
        mtu: 1500,
        lanes: 1,
        epoch: 1,
        count,
        links: (0..LINKS).map(record).collect(),
        stations: Vec::new(),
        direct_vlan: None,
        dictionary: None,
        mixing_ns: None,
        newest_in_lanes: Vec::new(),
        software: String::new(),
    };
    let header = Header {
        destination: MacAddr::HELLO,
        source: link_address(link),
        ether_type: ether_type::PACKTRAIN,
    };
    let mut message = Buffer::with_capacity(1514);
    assert!(message.push(&header.to_bytes()));
    hello.emit(&mut message);
    message.to_vec()
}

impl Crowd {
    pub fn new(peers: usize) -> Crowd {
        let mut config = Config::new(OWN, address(2, 0xffff));
        config.limits.peers_max = peers;
        config.limits.peer_silence_max = Duration::from_secs(1 << 20);
        let mut crowd = Crowd {
            now: Instant::ZERO,
            engine: Engine::new(config, Instant::ZERO),
        };
        for link in 0..LINKS {
            let link_address = address(0x22 + 4 * link, 0xffff);
            let state = LinkState {
                address: link_address,
                mark: mark_of(link_address),
                mtu: 1500,
                carrier: true,
                rate_bps: None,
            };
            crowd
                .engine
                .handle_link_state(LinkId(link), state, crowd.now);
        }
        for n in 0..peers {
            for link in 0..LINKS {
                let message = hello(n, link, 1 + u32::from(link));
                let frame = crowd.engine.buffers().copy_of(&message);
                let id = LinkId(link);
                crowd
                    .engine
                    .handle_link_frame(id, frame, Offload::NONE, crowd.now);
                crowd.drain();
            }
            // Strangers are answered a few hundred times a second.
            crowd.now += Duration::from_millis(20);
        }
        // What began with a peer has its end: hurried hellos, and second paths that are waited for.
        for _ in 0..4000 {
            crowd.now += Duration::from_millis(1);
            crowd.engine.handle_timeout(crowd.now);
            crowd.drain();
        }
        let seen = crowd.engine.snapshot(crowd.now);
        assert!(
            seen.peers
                .iter()
                .all(|peer| peer.up && peer.paths.len() == 2)
        );
        assert_eq!(seen.peers.len(), peers);
        crowd
    }

    fn drain(&mut self) {
        while self.engine.poll_transmit(self.now).is_some() {}
        while self.engine.poll_event().is_some() {}
        for link in 0..LINKS {
            self.engine.handle_link_queue(LinkId(link), 0, self.now);
        }
    }
}
