//! Coding by itself: frames into trains, and out of them again, as the engine does it.

use packtrain_proto::coding::coder::{Brought, Coder, Finished, Treatment};
use packtrain_proto::coding::restore::Restorer;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::coded::{Coding, PLAIN_MAX};
use packtrain_proto::wire::ethernet::ether_type;
use packtrain_proto::wire::subframe::InnerHeader;

/// For subframes in a frame of 1500 bytes, with what a train says besides.
const ROOM: usize = 1470;

/// IPv4, without what Ethernet says.
const HEADER: InnerHeader = InnerHeader {
    addresses: None,
    ether_type: ether_type::IPV4,
    offload: Offload::NONE,
};

/// Both ends.
#[derive(Debug)]
pub struct Ends {
    coder: Coder,
    restorer: Restorer,
    train: Vec<u8>,
    restored: Vec<u8>,
}

/// What packets have become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coded {
    pub packets: usize,
    pub trains: usize,
    pub packet_bytes: usize,
    /// Of the trains, without what is around what they carry.
    pub train_bytes: usize,
    pub saved_headers: usize,
    pub saved_payload: usize,
    /// What was given to the compressor.
    pub tried: usize,
}

impl Coded {
    /// The share of what was compressed.
    #[cfg(test)]
    pub fn payload_share_saved(&self) -> f64 {
        self.saved_payload as f64 / self.tried.max(1) as f64
    }

    fn add(&mut self, brought: &Brought, train_bytes: usize) {
        self.trains += 1;
        self.train_bytes += train_bytes;
        self.saved_headers += brought.headers;
        self.saved_payload += brought.payload;
        self.tried += brought.tried;
    }
}

impl Default for Ends {
    fn default() -> Ends {
        Ends {
            coder: Coder::default(),
            restorer: Restorer::default(),
            train: Vec::new(),
            restored: vec![0; PLAIN_MAX],
        }
    }
}

impl Ends {
    /// All of these IPv4 packets, in full trains.
    pub fn pass(&mut self, coding: Coding, packets: &[Vec<u8>]) -> Coded {
        let treatment = match coding {
            Coding::Headers => Treatment::Headers,
            Coding::Lz4 | Coding::Zstd | Coding::Mixing => Treatment::Payload,
        };
        let mut coded = Coded {
            packets: packets.len(),
            packet_bytes: packets.iter().map(Vec::len).sum(),
            ..Coded::default()
        };
        let mut rest = packets.iter().peekable();
        while rest.peek().is_some() {
            self.coder.begin(coding, ROOM);
            while let Some(packet) = rest.peek() {
                if self.coder.put_frame(&HEADER, packet, treatment) {
                    rest.next();
                } else if !self.coder.make_room() {
                    break;
                }
            }
            self.train.clear();
            match self.coder.finish() {
                Finished::Coded(head, content) => {
                    self.train.extend_from_slice(&head.to_bytes());
                    self.train.extend_from_slice(content);
                    let restored = self.restorer.restore(&self.train, &mut self.restored);
                    std::hint::black_box(restored.expect("what was coded restores"));
                }
                Finished::Plain(subframes) => self.train.extend_from_slice(subframes),
            }
            assert!(!self.train.is_empty(), "a packet fits into a train");
            coded.add(self.coder.brought(), self.train.len());
        }
        coded
    }
}

/// The share of payload that compressing saves, where each of these senders' payloads, in turns, is a datagram of its own.
#[cfg(test)]
pub fn interleaved_share_saved(of: &[Vec<Vec<u8>>]) -> f64 {
    let of: Vec<&[Vec<u8>]> = of.iter().map(Vec::as_slice).collect();
    let packets = super::traffic::packet::in_turns(&of);
    Ends::default()
        .pass(Coding::Lz4, &packets)
        .payload_share_saved()
}
