//! What rules look at in a frame: what classes look at, and some more.

use super::condition::Cast;
use crate::class::Facts;
use crate::class::facts::UNTAGGED;
use crate::wire::ethernet::{HEADER_LEN, MacAddr};
use crate::wire::packet::{self, Packet, Transport, field};

/// Longest size that is told apart: what a driver hands over is no longer (an IP packet ends there too), and so a size is a
/// number of 16 bits to the program that looks it up. What is longer counts as so long.
pub const SIZE_MAX: u32 = 65_535;

/// Where the inner tag stands in a frame with two: behind the addresses, the outer tag, and its own type.
const INNER_TAG: usize = 18;
/// First byte of what two tags precede.
const BEHIND_TWO_TAGS: usize = 22;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleFacts {
    /// Its mark is 0, and its size at most [`SIZE_MAX`]. What stands in headers that are not whole is not known, as classes
    /// have it.
    pub class: Facts,
    /// Of a frame with a whole Ethernet header, and so for the other.
    pub source_mac: Option<MacAddr>,
    pub destination_mac: Option<MacAddr>,
    /// The id in the second tag, or [`UNTAGGED`].
    pub inner_vlan: u16,
    /// A piece of an IP datagram.
    pub fragment: bool,
    /// TCP with SYN and without ACK; whatever the other flags are.
    pub syn: bool,
}

impl RuleFacts {
    pub fn of(frame: &[u8]) -> RuleFacts {
        let parsed = Packet::parse(frame);
        let mut class = Facts::of(frame, &parsed, 0);
        class.size = class.size.min(SIZE_MAX);
        let mac = |at: usize| match frame.len() >= HEADER_LEN {
            true => Some(MacAddr::from_slice(&frame[at..])),
            false => None,
        };
        let inner_vlan = match packet::behind_tags(frame) {
            Ok(tags) if tags.network_start == BEHIND_TWO_TAGS => {
                u16::from_be_bytes([frame[INNER_TAG], frame[INNER_TAG + 1]]) & 0x0fff
            }
            _ => UNTAGGED,
        };
        let ip = parsed.ok().and_then(|packet| packet.ip);
        RuleFacts {
            class,
            destination_mac: mac(0),
            source_mac: mac(6),
            inner_vlan,
            fragment: ip.is_some_and(|ip| ip.fragment),
            syn: ip.is_some_and(|ip| {
                let is_tcp = matches!(ip.transport, Some(Transport::Tcp { .. }));
                // A TCP header that was recognised is all there.
                is_tcp && frame[ip.transport_start + field::TCP_FLAGS] & (SYN | ACK) == SYN
            }),
        }
    }

    /// `None` of a frame whose header is not whole.
    pub fn cast(&self) -> Option<Cast> {
        self.destination_mac.map(|mac| match mac {
            MacAddr::BROADCAST => Cast::Broadcast,
            mac if mac.is_group() => Cast::Multicast,
            _ => Cast::Unicast,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::rules::generate::{FrameShape, Network};
    use crate::wire::packet::protocol;

    fn tcp(flags: u8) -> FrameShape {
        FrameShape {
            protocol: protocol::TCP,
            flags,
            ..FrameShape::default()
        }
    }

    #[test]
    fn a_syn_has_no_ack() {
        for (flags, is_syn) in [
            (0x02, true),
            (0xc2, true),
            (0x12, false),
            (0x10, false),
            (0, false),
        ] {
            assert_eq!(RuleFacts::of(&tcp(flags).bytes()).syn, is_syn, "{flags:#x}");
        }
        let udp = FrameShape {
            protocol: protocol::UDP,
            ..tcp(0x02)
        };
        assert!(!RuleFacts::of(&udp.bytes()).syn);
    }

    #[test]
    fn the_inner_of_two_tags_is_known_and_one_tag_is_the_outer() {
        let facts = |tags: &[u16]| {
            let frame = FrameShape {
                tags: tags.to_vec(),
                ..tcp(0)
            };
            let facts = RuleFacts::of(&frame.bytes());
            (facts.class.flow.vlan, facts.inner_vlan)
        };
        assert_eq!(facts(&[]), (UNTAGGED, UNTAGGED));
        assert_eq!(facts(&[7]), (7, UNTAGGED));
        assert_eq!(facts(&[7, 4095]), (7, 4095));
    }

    #[test]
    fn who_is_meant_shows_in_the_first_address() {
        let cast = |destination| {
            let frame = FrameShape {
                macs: [MacAddr([2; 6]), destination],
                ..tcp(0)
            };
            let facts = RuleFacts::of(&frame.bytes());
            assert_eq!(facts.source_mac, Some(MacAddr([2; 6])));
            assert_eq!(facts.destination_mac, Some(destination));
            facts.cast().unwrap()
        };
        assert_eq!(cast(MacAddr::BROADCAST), Cast::Broadcast);
        assert_eq!(cast(MacAddr::HELLO), Cast::Multicast);
        assert_eq!(cast(MacAddr([2; 6])), Cast::Unicast);
    }

    #[test]
    fn a_fragment_is_one_in_both_versions() {
        for network in [Network::v4(), Network::v6()] {
            for fragment in [false, true] {
                let frame = FrameShape {
                    network: network.clone(),
                    fragment,
                    ..tcp(0x02)
                };
                let facts = RuleFacts::of(&frame.bytes());
                assert_eq!((facts.fragment, facts.syn), (fragment, !fragment));
            }
        }
    }

    #[test]
    fn what_is_not_whole_is_not_known() {
        let frame = FrameShape {
            tags: vec![7, 8],
            ..tcp(0x02)
        };
        let bytes = frame.bytes();
        for len in 0..=bytes.len() {
            let facts = RuleFacts::of(&bytes[..len]);
            assert_eq!(facts.class.size, len as u32);
            assert_eq!(facts.cast().is_some(), len >= 14);
            assert_eq!(facts.source_mac.is_some(), len >= 14);
            assert_eq!(facts.inner_vlan, if len >= 22 { 8 } else { UNTAGGED });
            assert_eq!(facts.syn, len >= 22 + 20 + 20);
        }
    }

    #[test]
    fn a_size_is_told_apart_up_to_64_kilobytes() {
        assert_eq!(RuleFacts::of(&[0; 65_534]).class.size, 65_534);
        assert_eq!(RuleFacts::of(&vec![0; 70_000]).class.size, 65_535);
    }
}
