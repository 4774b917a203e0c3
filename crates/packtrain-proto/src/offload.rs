//! What a frame leaves to others: the checksum still to be filled in, the segments still to be cut.
//!
//! The same facts as in Linux' `virtio_net_hdr` (`include/uapi/linux/virtio_net.h`), as typed
//! values. Offsets count from the first byte of the Ethernet header.

use serde::Serialize;

/// A checksum that is not finished: the field at `start + offset` holds the sum of the pseudo
/// header, and the sum of everything from `start` on is still to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct PartialChecksum {
    /// First byte that the sum covers.
    pub start: u16,
    /// Where the field lies, counted from `start` (16 for TCP, 6 for UDP).
    pub offset: u16,
}

/// Which protocol's segments a GSO frame stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum GsoKind {
    TcpV4,
    TcpV6,
    /// One UDP datagram a segment (`UDP_SEGMENT`), not IP fragments.
    UdpL4,
}

/// One frame that stands for a row of segments with equal headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Gso {
    pub kind: GsoKind,
    /// Congestion Window Reduced is set, and must stay on the first segment only.
    pub ecn: bool,
    /// Length of all headers, Ethernet included, in bytes.
    pub header_len: u16,
    /// Payload bytes of each segment but the last.
    pub segment_len: u16,
}

/// Everything that a frame still needs done to it. Default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Offload {
    pub checksum: Option<PartialChecksum>,
    pub gso: Option<Gso>,
}

impl Offload {
    pub const NONE: Offload = Offload {
        checksum: None,
        gso: None,
    };

    pub fn is_none(&self) -> bool {
        *self == Offload::NONE
    }
}
