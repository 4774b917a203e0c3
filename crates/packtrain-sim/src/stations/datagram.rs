//! UDP: a request or its answer, as a frame with all its bytes.

use packtrain_proto::offload::{Offload, PartialChecksum};
use packtrain_proto::wire::ethernet::{self, ether_type};

use crate::checksum::{self, Transport};
use crate::frame::Frame;
use crate::tcp::codec::{HostAddress, fill, is_filled};
use crate::tcp::segment::IPV4_LEN;

const NETWORK: usize = ethernet::HEADER_LEN;
const TRANSPORT: usize = NETWORK + IPV4_LEN;
const UDP_LEN: usize = 8;
const CONTENT: usize = TRANSPORT + UDP_LEN;
/// NFS.
const PORT: u16 = 2049;
/// What is told in it; the rest follows from that.
const TOLD_LEN: usize = 20;
/// What fits into a packet of 1500 bytes.
pub const BYTES_MAX: u64 = 1472;
pub const BYTES_MIN: u64 = TOLD_LEN as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Number of the application.
    pub application: u16,
    pub is_reply: bool,
    /// Whose it is, by the application's count.
    pub from: u32,
    pub serial: u64,
    /// Bytes of its answer.
    pub reply_bytes: u32,
    /// Its own, those that tell all this included.
    pub bytes: u32,
}

impl Datagram {
    /// # Panics
    /// If it is shorter than what is told in it, or longer than a packet.
    pub fn to_frame(self, from: &HostAddress, to: &HostAddress) -> Frame {
        let len = self.bytes as usize;
        assert!((BYTES_MIN..=BYTES_MAX).contains(&u64::from(self.bytes)));
        let mut bytes = vec![0; CONTENT + len];
        bytes[..6].copy_from_slice(&to.mac.0);
        bytes[6..12].copy_from_slice(&from.mac.0);
        bytes[12..14].copy_from_slice(&ether_type::IPV4.to_be_bytes());
        let network = &mut bytes[NETWORK..TRANSPORT];
        network[0] = 0x45;
        network[2..4].copy_from_slice(&((IPV4_LEN + UDP_LEN + len) as u16).to_be_bytes());
        network[6] = 0x40; // don't fragment
        network[8] = 64;
        network[9] = checksum::UDP;
        network[12..16].copy_from_slice(&from.ip);
        network[16..20].copy_from_slice(&to.ip);
        let check = !checksum::sum(0, network);
        network[10..12].copy_from_slice(&check.to_be_bytes());
        // Both ends use the server's port, as NFS clients may: one below 1024 is no more than that.
        let transport = &mut bytes[TRANSPORT..CONTENT];
        transport[..2].copy_from_slice(&PORT.to_be_bytes());
        transport[2..4].copy_from_slice(&PORT.to_be_bytes());
        transport[4..6].copy_from_slice(&((UDP_LEN + len) as u16).to_be_bytes());
        let content = &mut bytes[CONTENT..];
        content[..2].copy_from_slice(&self.application.to_be_bytes());
        content[2] = u8::from(self.is_reply);
        content[4..8].copy_from_slice(&self.from.to_be_bytes());
        content[8..16].copy_from_slice(&self.serial.to_be_bytes());
        content[16..20].copy_from_slice(&self.reply_bytes.to_be_bytes());
        fill(&mut content[TOLD_LEN..], self.serial);
        let found = Transport::find(&bytes).expect("it is UDP");
        found.put_partial(&mut bytes);
        let checksum = PartialChecksum {
            start: TRANSPORT as u16,
            offset: found.field_offset() as u16,
        };
        let offload = Offload {
            checksum: Some(checksum),
            gso: None,
        };
        Frame::new(bytes, offload)
    }

    /// # Panics
    /// If content is not what belongs there.
    pub fn of_frame(frame: &Frame) -> Datagram {
        let word = |at: usize| u16::from_be_bytes([frame.bytes[at], frame.bytes[at + 1]]);
        let end = NETWORK + usize::from(word(NETWORK + 2));
        let content = &frame.bytes[CONTENT..end];
        let (told, rest) = content.split_at(TOLD_LEN);
        let double_word = |at: usize| u32::from_be_bytes(told[at..at + 4].try_into().expect("4"));
        let serial = u64::from_be_bytes(told[8..16].try_into().expect("8"));
        assert!(
            is_filled(rest, serial),
            "content of another datagram than {serial}"
        );
        Datagram {
            application: u16::from_be_bytes([told[0], told[1]]),
            is_reply: told[2] != 0,
            from: double_word(4),
            serial,
            reply_bytes: double_word(16),
            bytes: content.len() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::nic;
    use packtrain_proto::wire::ethernet::MacAddr;

    #[test]
    fn a_datagram_is_what_it_was_also_behind_a_card_that_pads_and_sums() {
        let at = |n: u8| HostAddress {
            mac: MacAddr([2, 0, 0, 0, 0, n]),
            ip: [10, 0, 0, n],
        };
        for bytes in [20, 21, 500, 1472] {
            let datagram = Datagram {
                application: 3,
                is_reply: bytes == 500,
                from: 70_000,
                serial: 1 << 40,
                reply_bytes: 99,
                bytes,
            };
            let frame = datagram.to_frame(&at(1), &at(2));
            assert_eq!(Datagram::of_frame(&frame), datagram);
            let sent = nic::to_wire(frame).expect("its metadata agree");
            let transport = Transport::find(&sent[0].bytes).expect("it is UDP");
            assert!(transport.is_finished(&sent[0].bytes));
            assert_eq!(Datagram::of_frame(&sent[0]), datagram);
        }
    }
}
