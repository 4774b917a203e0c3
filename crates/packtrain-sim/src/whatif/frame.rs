//! A captured frame, and what is known of it before anything is replayed.

use packtrain_proto::class::{ClassTable, Facts, facts::FlowFacts};
use packtrain_proto::classifier::Classifier;
use packtrain_proto::gso;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, MacAddr};
use packtrain_proto::wire::packet::{Ip, IpVersion, Packet, Transport};

use super::fingerprints::fold;
use super::repeats::Repeats;
use super::wire::Cost;

/// One frame of a [`super::Batch`].
#[derive(Clone, Copy, Debug)]
pub struct Captured {
    /// Since the first frame of the capture.
    pub at: Instant,
    /// Where its bytes lie in the batch, what was not captured filled in.
    pub(super) start: usize,
    pub len: usize,
    pub source: MacAddr,
    pub destination: MacAddr,
    /// Behind that of the last class: the rest.
    pub class: u8,
    pub flow_hash: u32,
    pub flow: FlowFacts,
    /// The same for both directions.
    pub conversation: u64,
    pub fingerprint: u64,
    /// It is one that a card cuts, or has put together.
    pub offload: Offload,
    pub cost: Cost,
}

/// Looks at frames: the classes of a line, as the line itself would find them.
#[derive(Debug)]
pub(super) struct Examiner {
    pub table: ClassTable,
    repeats: Repeats,
    /// Frames that were changed so that they can be told apart.
    pub told_apart: u64,
    classifier: Classifier,
    mtu: u16,
}

/// Why a frame is not replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It has no addresses, or nothing behind them, or one of a group for its source.
    NoFrame,
    /// Of packtrain's own EtherType.
    OfPacktrain,
    /// Longer than the link's MTU, and not what a card would cut.
    TooLong,
}

/// Bytes behind the EtherType without which no two frames could be told apart.
const PAYLOAD_BYTES_MIN: usize = 4;
const VLAN_TAG_LEN: usize = 4;

impl Examiner {
    pub fn new(table: ClassTable, mtu: u16) -> Examiner {
        Examiner {
            table,
            repeats: Repeats::default(),
            told_apart: 0,
            classifier: Classifier::new(0),
            mtu,
        }
    }

    pub fn examine(
        &mut self,
        frame: &mut [u8],
        at: Instant,
        start: usize,
    ) -> Result<Captured, Unfit> {
        let header = Header::parse(frame).ok_or(Unfit::NoFrame)?;
        let Header {
            source,
            destination,
            ether_type,
        } = header;
        let is_nobody = source.is_group() || source.is_zero();
        if frame.len() < HEADER_LEN + PAYLOAD_BYTES_MIN || is_nobody {
            return Err(Unfit::NoFrame);
        }
        if ether_type == packtrain_proto::wire::ethernet::ether_type::PACKTRAIN {
            return Err(Unfit::OfPacktrain);
        }
        let parsed = Packet::parse(frame);
        let offload = match &parsed {
            Ok(packet) => offload_of(frame, packet, self.mtu).ok_or(Unfit::TooLong)?,
            Err(_) if frame.len() > usize::from(self.mtu) + HEADER_LEN + VLAN_TAG_LEN => {
                return Err(Unfit::TooLong);
            }
            Err(_) => Offload::NONE,
        };
        let facts = Facts::of(frame, &parsed, 0);
        let flow_hash = self.classifier.flow_hash_of(frame, &parsed);
        let class = self.table.class_of(flow_hash, &facts);
        let (fingerprint, is_changed) = self.repeats.tell_apart(frame);
        self.told_apart += u64::from(is_changed);
        Ok(Captured {
            at,
            start,
            len: frame.len(),
            source,
            destination,
            class: class.0,
            flow_hash,
            flow: facts.flow,
            conversation: conversation_of(&header, &facts.flow),
            fingerprint,
            offload,
            cost: Cost::of(frame.len(), &offload),
        })
    }
}

/// A frame longer than a link takes was seen before a card had cut it, or after one had put it together: it is
/// replayed as such a one. `None`: it is none that a card cuts.
fn offload_of(frame: &[u8], packet: &Packet, mtu: u16) -> Option<Offload> {
    let tags = if packet.vlan.is_some() {
        VLAN_TAG_LEN
    } else {
        0
    };
    if frame.len() <= usize::from(mtu) + HEADER_LEN + tags {
        return Some(Offload::NONE);
    }
    let ip: &Ip = packet.ip.as_ref()?;
    let header_len = packet.header_len()?;
    let segment_len = usize::from(mtu).checked_sub(header_len - packet.network_start)?;
    let (kind, checksum_offset) = match (ip.transport?, ip.version) {
        (Transport::Tcp { .. }, IpVersion::V4) => (GsoKind::TcpV4, gso::TCP_CHECKSUM_OFFSET),
        (Transport::Tcp { .. }, IpVersion::V6) => (GsoKind::TcpV6, gso::TCP_CHECKSUM_OFFSET),
        (Transport::Udp, _) => (GsoKind::UdpL4, gso::UDP_CHECKSUM_OFFSET),
    };
    let offload = Offload {
        gso: Some(Gso {
            kind,
            ecn: false,
            header_len: u16::try_from(header_len).ok()?,
            segment_len: u16::try_from(segment_len).ok()?,
        }),
        checksum: Some(PartialChecksum {
            start: u16::try_from(ip.transport_start).ok()?,
            offset: checksum_offset,
        }),
    };
    gso::check(frame, &offload).ok()?;
    Some(offload)
}

/// Addresses and ports, in whichever direction; without IP, the addresses of the frame and its EtherType.
fn conversation_of(header: &Header, flow: &FlowFacts) -> u64 {
    let number = |address: MacAddr| {
        let mut bytes = [0; 8];
        bytes[2..].copy_from_slice(&address.0);
        u64::from_be_bytes(bytes)
    };
    let end =
        |address: u128, port: u16| fold(fold(address as u64, (address >> 64) as u64), port.into());
    let (ends, rest) = match flow.ip {
        Some(ip) => {
            let [from, to] = flow.ports.unwrap_or_default();
            let ends = [end(flow.source, from), end(flow.destination, to)];
            (ends, u64::from(ip.protocol))
        }
        None => {
            let ends = [number(header.source), number(header.destination)];
            (ends, u64::from(flow.ether_type) << 8)
        }
    };
    // The order of the two does not count.
    let both = ends[0].wrapping_add(ends[1]) ^ ends[0].min(ends[1]).rotate_left(17);
    fold(both, rest << 16 | u64::from(flow.vlan))
}
