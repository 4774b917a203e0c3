//! The links of a sender under test, and the peer at their other end: what it says, as frames.

use std::collections::BTreeSet;

use packtrain_proto::buffer::Buffer;
use packtrain_proto::config::{LinkId, LinkState, NodeId, mark_of};
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, MacAddr, ether_type};
use packtrain_proto::wire::hello::{Hello, LinkRecord};
use packtrain_proto::wire::sequence::Sequence;
use packtrain_proto::wire::train::{Ack, Options, TrainHeader, TrainWriter};

pub const LINKS: u8 = 3;
pub const MTU: u16 = 1500;
pub const MTU_SMALL: u16 = 600;
pub const NODE: NodeId = NodeId(0x1111);
const PEER: NodeId = NodeId(0x2222);
const EPOCH: u8 = 7;

/// A link, as the two ends and the world between see it.
#[derive(Clone, Debug)]
pub struct Wire {
    pub own_carrier: bool,
    pub peer_carrier: bool,
    pub is_cut: bool,
    pub own_mtu: u16,
    /// Trains on their way with their link sequences, and the link sequences that came, ever.
    pub on_the_way: Vec<(Sequence, Sequence)>,
    pub came: BTreeSet<u32>,
    pub owes_receipt: bool,
    /// What the engine was told of the other end, and whether it heard it since ours came back.
    pub told_carrier: bool,
    pub heard_at: Instant,
    pub is_heard: bool,
    pub next: Sequence,
}

impl Wire {
    pub fn new(now: Instant) -> Wire {
        Wire {
            own_carrier: true,
            peer_carrier: true,
            is_cut: false,
            own_mtu: MTU,
            on_the_way: Vec::new(),
            came: BTreeSet::new(),
            owes_receipt: false,
            told_carrier: true,
            heard_at: now,
            is_heard: true,
            next: Sequence::FIRST,
        }
    }

    /// What the engine is told of its end.
    pub fn own_state(&self, link: u8) -> LinkState {
        let address = own_address(link);
        LinkState {
            address,
            mark: mark_of(address),
            mtu: self.own_mtu,
            carrier: self.own_carrier,
            rate_bps: None,
        }
    }

    /// Bytes of the largest train.
    pub fn train_max(&self) -> usize {
        usize::from(self.own_mtu.min(MTU)) + HEADER_LEN
    }

    /// What has come by this link.
    pub fn receipt(&self, link: u8, incarnation: u16) -> Option<Ack> {
        let newest = *self.came.last()?;
        let bit = |i: &u64| {
            let sequence = newest.checked_sub(1 + *i as u32);
            sequence.is_some_and(|sequence| self.came.contains(&sequence))
        };
        Some(Ack {
            link,
            incarnation,
            delay_nanos: 0,
            newest: Sequence(newest),
            bitmap: (0..64).filter(bit).map(|i| 1u64 << i).sum(),
        })
    }

    pub fn is_whole(&self) -> bool {
        self.own_carrier && self.peer_carrier && !self.is_cut
    }

    /// By what the engine can know.
    pub fn is_open(&self) -> bool {
        self.own_carrier && self.told_carrier && self.is_heard
    }
}

pub fn own_address(link: u8) -> MacAddr {
    MacAddr([0x0a, 0, 0, 0, link, 1])
}

pub fn peer_address(link: u8) -> MacAddr {
    MacAddr([0x0a, 0, 0, 0, link, 2])
}

pub fn pt0(side: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, side])
}

/// The peer's hello by one of its links.
pub fn hello(by: u8, count: u32, wires: &[Wire], buffer: &mut Buffer) {
    let record = |link: u8| LinkRecord {
        link: LinkId(link),
        carrier: wires[usize::from(link)].peer_carrier,
        unused_by_host: false,
        takes_vlan: false,
        mtu: MTU,
        address: peer_address(link),
        mark: mark_of(peer_address(link)),
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
        link: LinkId(by),
        node_id: PEER,
        recipient: Some(NODE),
        line_id: 0,
        capabilities: 0,
        address: pt0(2),
        mtu: MTU,
        lanes: 1,
        epoch: EPOCH,
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
        source: peer_address(by),
        ether_type: ether_type::PACKTRAIN,
    };
    assert!(buffer.push(&header.to_bytes()));
    hello.emit(buffer);
}

/// The peer's acknowledgement, alone, by one of its links.
pub fn acknowledgement(by: u8, ack: Ack, buffer: &mut Buffer) {
    let header = TrainHeader {
        ack_now: false,
        marker: true,
        replay: false,
        coded: false,
        repairs: false,
        lossless: false,
        lane: 0,
        link: by,
        incarnation: PEER.incarnation() ^ u16::from(EPOCH) << 8,
        train_sequence: Sequence::ZERO,
        link_sequence: Sequence::ZERO,
    };
    let options = Options {
        acks: &[ack],
        ..Options::default()
    };
    TrainWriter::begin(buffer, own_address(by), peer_address(by), &header, &options);
}
