//! What travels in the simulator: bytes of an Ethernet frame without FCS, and what is still to be
//! done to it.

use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, ether_type};

/// Preamble, start delimiter, FCS and the gap between frames: paid on the wire, seen by nobody.
pub const WIRE_OVERHEAD_BYTES: usize = 24;
/// Shortest frame on a real wire, without FCS.
pub const FRAME_BYTES_MIN: usize = 60;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub bytes: Vec<u8>,
    pub offload: Offload,
}

impl Frame {
    pub fn new(bytes: Vec<u8>, offload: Offload) -> Frame {
        assert!(
            bytes.len() >= HEADER_LEN,
            "{} bytes are no frame",
            bytes.len()
        );
        Frame { bytes, offload }
    }

    pub fn header(&self) -> Header {
        Header::parse(&self.bytes).expect("checked when it was made")
    }

    /// How many frames it is once it is on a wire that knows no GSO.
    pub fn segment_count(&self) -> usize {
        match self.offload.gso {
            None => 1,
            Some(gso) => {
                let payload = self.bytes.len().saturating_sub(usize::from(gso.header_len));
                payload.div_ceil(usize::from(gso.segment_len).max(1)).max(1)
            }
        }
    }

    /// Length of the longest frame that it becomes on the wire.
    pub fn segment_bytes_max(&self) -> usize {
        match self.offload.gso {
            None => self.bytes.len(),
            Some(gso) => {
                let whole = usize::from(gso.header_len) + usize::from(gso.segment_len);
                whole.min(self.bytes.len())
            }
        }
    }

    /// Bits on the wire, all that nobody sees included.
    pub fn wire_bits(&self) -> u64 {
        let count = self.segment_count();
        let headers = self
            .offload
            .gso
            .map_or(0, |gso| usize::from(gso.header_len));
        let bytes = self.bytes.len().max(FRAME_BYTES_MIN)
            + (count - 1) * headers
            + count * WIRE_OVERHEAD_BYTES;
        8 * bytes as u64
    }

    /// Whether it is within what a link of this MTU takes: a VLAN tag comes on top, as Linux has
    /// it.
    pub fn fits(&self, mtu: u16) -> bool {
        let tagged = matches!(
            self.header().ether_type,
            ether_type::VLAN | ether_type::QINQ
        );
        let limit = usize::from(mtu) + HEADER_LEN + if tagged { 4 } else { 0 };
        self.segment_bytes_max() <= limit
    }
}
