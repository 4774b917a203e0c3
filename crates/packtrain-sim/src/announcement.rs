//! What a host says to a segment when it has moved from one port to another: a gratuitous ARP of an
//! address, which switches learn from.

use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

use crate::frame::{FRAME_BYTES_MIN, Frame};

/// The addresses of IP are left zero: nobody here has a neighbour table.
pub fn of(address: MacAddr) -> Frame {
    let mut bytes = Vec::with_capacity(FRAME_BYTES_MIN);
    bytes.extend_from_slice(&MacAddr::BROADCAST.0);
    bytes.extend_from_slice(&address.0);
    bytes.extend_from_slice(&ether_type::ARP.to_be_bytes());
    bytes.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    bytes.extend_from_slice(&address.0);
    bytes.resize(FRAME_BYTES_MIN, 0);
    Frame::new(bytes, Offload::NONE)
}

/// Whether this is one, of whichever address.
pub fn is_one(frame: &Frame) -> bool {
    *frame == of(frame.header().source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::flow::tests::one_of_each;
    use crate::workload::identity::identify;

    #[test]
    fn an_announcement_is_known_and_is_no_flows_frame() {
        let flows = one_of_each();
        let address = MacAddr([2, 3, 4, 5, 6, 7]);
        assert!(is_one(&of(address)));
        assert_eq!(identify(&of(address).bytes, &flows), None);
        assert!(flows.iter().all(|flow| !is_one(&flow.frame(3))));
    }
}
