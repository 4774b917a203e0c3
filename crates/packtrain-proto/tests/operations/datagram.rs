//! UDP datagrams that know who they are, alone or many in a GSO frame.

use packtrain_proto::gso;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::wire::ethernet::MacAddr;

/// Ethernet, IPv4 and UDP.
pub const HEADERS: usize = 42;
const ID_LEN: usize = 12;

/// One datagram: who sent it, in which flow, and the how-manieth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    pub side: u8,
    pub flow: u16,
    pub number: u64,
}

impl Id {
    fn to_bytes(self) -> [u8; ID_LEN] {
        let mut bytes = [self.side; ID_LEN];
        bytes[2..4].copy_from_slice(&self.flow.to_be_bytes());
        bytes[4..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    fn of(payload: &[u8]) -> Id {
        Id {
            side: payload[0],
            flow: u16::from_be_bytes([payload[2], payload[3]]),
            number: u64::from_be_bytes(payload[4..ID_LEN].try_into().unwrap()),
        }
    }

    /// The byte that fills the rest.
    fn fill(self) -> u8 {
        (self.number as u8).wrapping_mul(31) ^ self.flow as u8
    }
}

/// A frame from `first` on: `count` datagrams of `segment_len` bytes each.
pub fn frame(
    to: MacAddr,
    from: MacAddr,
    first: Id,
    count: usize,
    segment_len: usize,
) -> (Vec<u8>, Offload) {
    let segment_len = segment_len.max(ID_LEN);
    let len = count * segment_len;
    let mut frame = [&to.0[..], &from.0, &[8, 0, 0x45, 0]].concat();
    frame.extend(((28 + len) as u16).to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, first.side]);
    frame.extend([10, 0, 0, 1 - first.side]);
    frame.extend(first.flow.to_be_bytes());
    frame.extend([0, 9]);
    frame.extend(((8 + len) as u16).to_be_bytes());
    frame.extend([0, 0]);
    for i in 0..count {
        let id = Id {
            number: first.number + i as u64,
            ..first
        };
        let end = frame.len() + segment_len;
        frame.extend(id.to_bytes());
        frame.resize(end, id.fill());
    }
    let mut offload = Offload::NONE;
    if count > 1 {
        offload = Offload {
            checksum: Some(PartialChecksum {
                start: 34,
                offset: gso::UDP_CHECKSUM_OFFSET,
            }),
            gso: Some(Gso {
                kind: GsoKind::UdpL4,
                ecn: false,
                header_len: HEADERS as u16,
                segment_len: segment_len as u16,
            }),
        };
    }
    (frame, offload)
}

/// The datagrams that a delivered frame stands for, each of them whole.
pub fn ids(frame: &[u8], offload: &Offload) -> Vec<Id> {
    gso::check(frame, offload).expect("the host would be lied to");
    let payload = &frame[HEADERS..];
    let segment_len = offload
        .gso
        .map_or(payload.len(), |gso| usize::from(gso.segment_len));
    let datagrams = payload.chunks(segment_len);
    datagrams
        .map(|datagram| {
            let id = Id::of(datagram);
            assert!(
                datagram[ID_LEN..].iter().all(|&byte| byte == id.fill()),
                "{id:?}"
            );
            id
        })
        .collect()
}
