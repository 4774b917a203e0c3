//! How many data units carried the host's frames, and how many packets of 1500 bytes would have: what rocks save (the XLF paper counts
//! so, and finds 8 %).
//!
//! Counted is what the engine gives to links for frames of the host, once: trains, aggregates, frames as they are and plain ones. Not what
//! it says itself (hellos, acknowledgements), nor what goes twice or again. A frame counts where its last byte leaves.
//!
//! - *given*: what a link was given at once. Who handles it next (a queue, a virtual link, a bridge, the peer) does so once for each.
//! - *on a wire*: the same where nobody cuts or joins behind the wire: a GSO frame is the segments that a card makes of it.
//! - *packets of 1500*: those that the same frames would have been between hosts whose links have that MTU. A GSO frame's payload in segments
//!   of no more than fits, and of no more than its own; a longer frame's payload behind headers of its own in each; one that is no IP
//!   in pieces of 1500.

use crate::gso;
use crate::offload::{Gso, Offload};
use crate::stats::DataUnits;
use crate::wire::ethernet::HEADER_LEN;
use crate::wire::packet::{IPV4_HEADER_LEN, IPV6_HEADER_LEN, Ip, IpVersion, Packet, behind_tags};

const MTU: usize = 1500;

impl DataUnits {
    /// A train or an aggregate leaves, with something of the host's in it.
    pub fn on_train(&mut self) {
        self.given += 1;
        self.on_wire += 1;
    }

    /// A frame leaves as it is.
    pub fn on_frame(&mut self, frame: &[u8], offload: &Offload) {
        self.given += 1;
        self.on_wire += match &offload.gso {
            Some(gso) => gso::segment_count(frame.len(), gso) as u64,
            None => 1,
        };
        self.packets_of_1500 += packets_of_1500(frame, offload);
    }
}

/// … that a frame of the host would have needed.
pub fn packets_of_1500(frame: &[u8], offload: &Offload) -> u64 {
    let packets = match &offload.gso {
        Some(gso) => of_gso(frame, gso),
        // Mostly: tags are on top.
        None if frame.len() <= HEADER_LEN + MTU => 1,
        None => of_long(frame),
    };
    packets as u64
}

fn of_gso(frame: &[u8], gso: &Gso) -> usize {
    let header_len = usize::from(gso.header_len);
    let start = behind_tags(frame).map_or(HEADER_LEN, |tags| tags.network_start);
    let room = (start + MTU).saturating_sub(header_len);
    let segment_len = room.min(gso.segment_len.into()).max(1);
    frame.len().saturating_sub(header_len).div_ceil(segment_len)
}

fn of_long(frame: &[u8]) -> usize {
    let (start, headers) = match Packet::parse(frame) {
        Ok(packet) => {
            let headers = packet.ip.map_or(0, |ip| repeated(&packet, &ip));
            (packet.network_start, headers)
        }
        Err(_) => (HEADER_LEN, 0),
    };
    let payload = (frame.len() - start).saturating_sub(headers);
    payload.div_ceil(MTU.saturating_sub(headers).max(1)).max(1)
}

/// Headers that each packet would have: of TCP, or of IP where datagrams become fragments.
fn repeated(packet: &Packet, ip: &Ip) -> usize {
    use crate::wire::packet::Transport::Tcp;
    match ip.transport {
        Some(Tcp { header_len }) => ip.transport_start + header_len - packet.network_start,
        _ => match ip.version {
            IpVersion::V4 => IPV4_HEADER_LEN,
            IpVersion::V6 => IPV6_HEADER_LEN,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::GsoKind;
    use crate::wire::ethernet::ether_type;
    use crate::wire::packet::protocol;

    /// Of IPv4; all of it is there.
    fn frame(tagged: bool, transport: u8, len: usize) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if tagged {
            frame.extend([0x81, 0, 0, 7]);
        }
        frame.extend(ether_type::IPV4.to_be_bytes());
        let start = frame.len();
        frame.resize(start + len, 0);
        frame[start] = 0x45;
        frame[start + 2..start + 4].copy_from_slice(&(len as u16).to_be_bytes());
        frame[start + 9] = transport;
        if transport == protocol::TCP {
            frame[start + 32] = 0x80;
        }
        frame
    }

    fn gso(frame: &[u8], segment_len: u16) -> Offload {
        let header_len = Packet::parse(frame).unwrap().header_len().unwrap();
        Offload {
            checksum: None,
            gso: Some(Gso {
                kind: GsoKind::TcpV4,
                ecn: false,
                header_len: header_len as u16,
                segment_len,
            }),
        }
    }

    #[test]
    fn what_fits_is_one_packet_and_a_tag_is_on_top() {
        for tagged in [false, true] {
            for (len, packets) in [(28, 1), (1500, 1), (1501, 2)] {
                let frame = frame(tagged, protocol::UDP, len);
                assert_eq!(packets_of_1500(&frame, &Offload::NONE), packets, "{len}");
            }
        }
        assert_eq!(packets_of_1500(&[0; 60], &Offload::NONE), 1);
        assert_eq!(packets_of_1500(&[0; 14 + 3001], &Offload::NONE), 3);
    }

    #[test]
    fn each_packet_of_a_long_frame_has_headers_of_its_own() {
        // TCP with 32 bytes of header: 1448 of payload each.
        let tcp = |payload: usize| frame(false, protocol::TCP, 52 + payload);
        assert_eq!(packets_of_1500(&tcp(2 * 1448), &Offload::NONE), 2);
        assert_eq!(packets_of_1500(&tcp(2 * 1448 + 1), &Offload::NONE), 3);
        // A datagram in fragments: 1480 each.
        let udp = |payload: usize| frame(false, protocol::UDP, 20 + payload);
        assert_eq!(packets_of_1500(&udp(6 * 1480), &Offload::NONE), 6);
        assert_eq!(packets_of_1500(&udp(6 * 1480 + 1), &Offload::NONE), 7);
    }

    #[test]
    fn a_gso_frame_is_one_given_its_segments_on_a_wire_and_more_where_these_are_longer() {
        for (tagged, segment_len, segments, packets) in [
            (false, 1448, 40, 40),
            (true, 1448, 40, 40),
            (false, 8948, 7, 40),
            (false, 536, 109, 109),
        ] {
            let large = frame(tagged, protocol::TCP, 52 + 40 * 1448);
            let offload = gso(&large, segment_len);
            let mut units = DataUnits::default();
            units.on_frame(&large, &offload);
            units.on_train();
            let expected = DataUnits {
                given: 2,
                on_wire: segments + 1,
                packets_of_1500: packets,
            };
            assert_eq!(units, expected, "{segment_len}");
        }
    }

    #[test]
    fn whatever_a_frame_says_there_is_an_answer() {
        for len in [0, 1, 13, 14, 1515, 65_535] {
            for header_len in [0, 54, 1600, u16::MAX] {
                for segment_len in [0, 1, u16::MAX] {
                    let offload = Offload {
                        gso: Some(Gso {
                            kind: GsoKind::UdpL4,
                            ecn: false,
                            header_len,
                            segment_len,
                        }),
                        checksum: None,
                    };
                    packets_of_1500(&vec![0x81; len], &offload);
                }
            }
            packets_of_1500(&vec![0x81; len], &Offload::NONE);
        }
    }
}
