//! Somebody on the segment who speaks the format, and says what he likes.

use packtrain_proto::buffer::Buffer;
use packtrain_proto::config::{LinkId, NodeId, mark_of};
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::{Header, MacAddr, ether_type};
use packtrain_proto::wire::hello::{Hello, LinkRecord};
use packtrain_proto::wire::sequence::Sequence;

use super::{LINK, Pair, link_address, node, pt0};

/// A train as raw as it can be.
#[derive(Clone, Debug)]
pub struct RawTrain {
    pub destination: MacAddr,
    pub source: MacAddr,
    pub first: u8,
    pub flags: u8,
    pub lane: u8,
    pub link: u8,
    pub incarnation: u16,
    pub options: Vec<u8>,
    /// What it says of them.
    pub options_len: Option<u16>,
    pub train: u32,
    pub link_sequence: u32,
    pub body: Vec<u8>,
}

impl RawTrain {
    pub fn bytes(&self) -> Vec<u8> {
        let header = Header {
            destination: self.destination,
            source: self.source,
            ether_type: ether_type::PACKTRAIN,
        };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend([self.first, self.flags, self.lane, self.link]);
        bytes.extend(self.incarnation.to_be_bytes());
        let options_len = self.options_len.unwrap_or(self.options.len() as u16);
        bytes.extend(options_len.to_be_bytes());
        bytes.extend(self.train.to_be_bytes());
        bytes.extend(self.link_sequence.to_be_bytes());
        bytes.extend(&self.options);
        bytes.extend(&self.body);
        bytes
    }
}

pub const FRAME: u8 = 1;
pub const FIRST: u8 = 2;
pub const NEXT: u8 = 3;

/// A subframe with an EtherType; `fields`: what stands between it and the payload.
pub fn subframe(kind: u8, ether_type: u16, fields: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x40 | kind];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend(ether_type.to_be_bytes());
    bytes.extend(fields);
    bytes.extend(payload);
    bytes
}

pub fn first(id: u16, total: u16, payload: &[u8]) -> Vec<u8> {
    let fields = [id.to_be_bytes(), total.to_be_bytes()].concat();
    subframe(FIRST, 0x9000, &fields, payload)
}

pub fn next(id: u16, offset: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![NEXT];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend(id.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub fn whole(payload: &[u8]) -> Vec<u8> {
    subframe(FRAME, 0x9000, &[], payload)
}

/// An option: type, length, value.
pub fn option(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, value.len() as u8], value].concat()
}

pub fn ack(link: u8, incarnation: u16, newest: u32, bitmap: u64) -> Vec<u8> {
    let mut value = vec![link, 0];
    value.extend(incarnation.to_be_bytes());
    value.extend([0; 4]);
    value.extend(newest.to_be_bytes());
    value.extend(bitmap.to_be_bytes());
    option(1, &value)
}

/// A node of its own, with what it has sent.
#[derive(Clone, Debug)]
pub struct Forger {
    pub node_id: NodeId,
    pub pt0: MacAddr,
    pub link: MacAddr,
    pub incarnation: u16,
    pub train: u32,
    pub link_sequence: u32,
}

const EPOCH: u8 = 7;

impl Forger {
    pub fn new(n: u32) -> Forger {
        let [a, b, c, d] = n.to_be_bytes();
        let node_id = NodeId(0xf000_0000_0000 + (u64::from(n) << 16) + 0xabcd);
        Forger {
            node_id,
            incarnation: node_id.incarnation() ^ u16::from(EPOCH) << 8,
            pt0: MacAddr([2, 0xf0, a, b, c, d]),
            link: MacAddr([6, 0xf0, a, b, c, d]),
            train: 0,
            link_sequence: 0,
        }
    }

    /// Speaks to the one as the other of the two.
    pub fn as_side(pair: &Pair, side: usize) -> Forger {
        Forger {
            node_id: node(side),
            incarnation: pair.incarnation(side, link_address(1 - side)),
            pt0: pt0(side),
            link: link_address(side),
            train: 0,
            link_sequence: 0,
        }
    }

    /// One that the side takes for a peer that is up.
    pub fn known_to(pair: &mut Pair, side: usize, n: u32) -> Forger {
        let forger = Forger::new(n);
        let hello = forger.hello(Some(node(side)));
        pair.inject(side, &emit(&hello, forger.link), Offload::NONE);
        let is_up =
            |peer: &packtrain_proto::stats::PeerSnapshot| peer.node_id == forger.node_id && peer.up;
        assert!(pair.snapshot(side).peers.iter().any(is_up));
        forger
    }

    pub fn hello(&self, recipient: Option<NodeId>) -> Hello {
        Hello {
            answer: false,
            goodbye: false,
            away: false,
            full: false,
            past: false,
            link: LINK,
            node_id: self.node_id,
            recipient,
            line_id: 0,
            capabilities: 3,
            address: self.pt0,
            mtu: 1500,
            lanes: 1,
            epoch: EPOCH,
            count: 0,
            links: vec![self.record(LINK)],
            stations: Vec::new(),
            direct_vlan: None,
            dictionary: None,
            mixing_ns: None,
            newest_in_lanes: Vec::new(),
            software: String::from("forged"),
        }
    }

    pub fn record(&self, link: LinkId) -> LinkRecord {
        LinkRecord {
            link,
            carrier: true,
            unused_by_host: false,
            takes_vlan: false,
            mtu: 1500,
            address: self.link,
            mark: mark_of(self.link),
            rate_kbps: None,
            newest_train: Sequence(self.train),
            newest_link: Sequence(self.link_sequence),
        }
    }

    /// The next train to a side.
    pub fn train(&mut self, side: usize, body: &[u8]) -> RawTrain {
        self.train = self.train.wrapping_add(1);
        self.link_sequence = self.link_sequence.wrapping_add(1);
        RawTrain {
            destination: link_address(side),
            source: self.link,
            first: 0x11,
            flags: 0,
            lane: 0,
            link: LINK.0,
            incarnation: self.incarnation,
            options: Vec::new(),
            options_len: None,
            train: self.train,
            link_sequence: self.link_sequence,
            body: body.to_vec(),
        }
    }

    pub fn send(&mut self, pair: &mut Pair, side: usize, body: &[u8]) {
        let train = self.train(side, body).bytes();
        pair.inject(side, &train, Offload::NONE);
    }
}

/// A hello to the group.
pub fn emit(hello: &Hello, source: MacAddr) -> Vec<u8> {
    let mut buffer = Buffer::with_capacity(8192);
    let header = Header {
        destination: MacAddr::HELLO,
        source,
        ether_type: ether_type::PACKTRAIN,
    };
    assert!(buffer.push(&header.to_bytes()));
    hello.emit(&mut buffer);
    buffer.to_vec()
}
