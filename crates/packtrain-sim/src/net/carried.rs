//! What a wire carries, as far as a wire wants to know it.

use packtrain_proto::wire::ethernet::{HEADER_LEN, ether_type};

use super::corruption::{Corrupted, Corruption};
use super::ecn::{self, Marking};
use crate::frame::Frame;
use crate::random::mix;

/// A frame with all its bytes, or what stands for one where only its length counts.
pub trait Carried: Clone + std::fmt::Debug {
    /// Bytes, as queues count them.
    fn len_bytes(&self) -> usize;

    /// Frames that it becomes on a wire; never 0.
    fn segment_count(&self) -> usize;

    /// As [`Frame::wire_bits`].
    fn wire_bits(&self) -> u64;

    /// As [`Frame::ip_bits`].
    fn ip_bits(&self) -> u64;

    /// As [`Frame::checked_bits`].
    fn checked_bits(&self) -> u64;

    /// Puts Congestion Experienced on it, if it is capable of that.
    fn mark(&mut self) -> Marking;

    /// Lets bits flip. What has no bytes asks [`Corruption::hits`].
    fn strike(&mut self, corruption: &mut Corruption) -> Corrupted;

    /// The same for all that belongs together, and different for what does not. Mixed: each of its bits is as good as any other.
    fn flow_hash(&self) -> u64;
}

impl Carried for Frame {
    fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn segment_count(&self) -> usize {
        self.segment_count()
    }

    fn wire_bits(&self) -> u64 {
        self.wire_bits()
    }

    fn ip_bits(&self) -> u64 {
        self.ip_bits()
    }

    fn checked_bits(&self) -> u64 {
        self.checked_bits()
    }

    fn mark(&mut self) -> Marking {
        ecn::mark(self)
    }

    fn strike(&mut self, corruption: &mut Corruption) -> Corrupted {
        corruption.strike(&mut self.bytes)
    }

    /// IP addresses, the protocol and its ports, behind at most two VLAN tags. Of fragments no ports, since only the first one has
    /// them. Of what is not IP: MAC addresses and EtherType.
    fn flow_hash(&self) -> u64 {
        let (kind, start) = self.network();
        let packet = &self.bytes[start..];
        match kind {
            ether_type::IPV4 if packet.len() >= 20 && packet[0] >> 4 == 4 => ipv4_flow(packet),
            ether_type::IPV6 if packet.len() >= 40 && packet[0] >> 4 == 6 => ipv6_flow(packet),
            _ => hash(u64::from(kind), &self.bytes[..HEADER_LEN - 2]),
        }
    }
}

fn ipv4_flow(packet: &[u8]) -> u64 {
    const MORE_AND_OFFSET: u16 = 0x3fff;
    let protocol = packet[9];
    let header_len = usize::from(packet[0] & 15) * 4;
    let is_fragment = u16::from_be_bytes([packet[6], packet[7]]) & MORE_AND_OFFSET != 0;
    let behind = packet.get(header_len..).filter(|_| !is_fragment);
    hash(flow_seed(protocol, behind), &packet[12..20])
}

/// Extension headers are not looked behind: what has them is told apart by its addresses.
fn ipv6_flow(packet: &[u8]) -> u64 {
    hash(flow_seed(packet[6], packet.get(40..)), &packet[8..40])
}

/// The protocol and, where it has some, its ports.
fn flow_seed(protocol: u8, behind: Option<&[u8]>) -> u64 {
    const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136]; // TCP, UDP, DCCP, SCTP, UDP-Lite
    let ports = behind.and_then(|behind| behind.first_chunk::<4>());
    let ports = ports.filter(|_| WITH_PORTS.contains(&protocol));
    // No EtherType is so short.
    let seed = u64::from(protocol) << 32 | 1 << 40;
    seed | ports.map_or(0, |ports| u64::from(u32::from_be_bytes(*ports)))
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(seed), |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_be_bytes(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::offload::Offload;
    use std::collections::BTreeSet;

    /// A UDP datagram between these hosts and ports.
    #[derive(Clone, Copy)]
    struct Datagram {
        ipv6: bool,
        tags: usize,
        hosts: [u8; 2],
        ports: [u16; 2],
        protocol: u8,
        more_fragments: bool,
        payload_len: usize,
    }

    const PLAIN: Datagram = Datagram {
        ipv6: false,
        tags: 0,
        hosts: [1, 2],
        ports: [1000, 53],
        protocol: 17,
        more_fragments: false,
        payload_len: 30,
    };

    fn frame(of: Datagram) -> Frame {
        let mut bytes = vec![2; 12];
        (0..of.tags).for_each(|_| bytes.extend([0x81, 0, 0, 9]));
        let [from, to] = of.hosts;
        if of.ipv6 {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 38, of.protocol, 64]);
            bytes.extend([0; 15]);
            bytes.push(from);
            bytes.extend([0; 15]);
            bytes.push(to);
        } else {
            let fragment = if of.more_fragments { 0x20 } else { 0 };
            bytes.extend([8, 0, 0x45, 0, 0, 58, 0, 0, fragment, 0, 64, of.protocol]);
            bytes.extend([0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        }
        bytes.extend(of.ports.iter().flat_map(|port| port.to_be_bytes()));
        bytes.resize(bytes.len() + of.payload_len, 7);
        Frame::new(bytes, Offload::NONE)
    }

    fn flow(of: Datagram) -> u64 {
        frame(of).flow_hash()
    }

    #[test]
    fn each_address_port_and_protocol_makes_another_flow_and_nothing_else_does() {
        for ipv6 in [false, true] {
            let plain = Datagram { ipv6, ..PLAIN };
            let flows = BTreeSet::from([
                flow(plain),
                flow(Datagram {
                    hosts: [3, 2],
                    ..plain
                }),
                flow(Datagram {
                    hosts: [2, 1],
                    ..plain
                }),
                flow(Datagram {
                    ports: [1001, 53],
                    ..plain
                }),
                flow(Datagram {
                    ports: [53, 1000],
                    ..plain
                }),
                flow(Datagram {
                    protocol: 6,
                    ..plain
                }),
                flow(Datagram {
                    ipv6: !ipv6,
                    ..plain
                }),
            ]);
            assert_eq!(flows.len(), 7);
            for tags in 0..=2 {
                assert_eq!(
                    flow(Datagram {
                        tags,
                        payload_len: 400,
                        ..plain
                    }),
                    flow(plain)
                );
            }
        }
    }

    #[test]
    fn what_has_no_ports_is_told_apart_by_its_addresses() {
        let same = |of: Datagram| {
            flow(of)
                == flow(Datagram {
                    ports: [9, 9],
                    ..of
                })
        };
        assert!(same(Datagram {
            protocol: 47,
            ..PLAIN
        }));
        assert!(same(Datagram {
            more_fragments: true,
            ..PLAIN
        }));
        assert!(!same(PLAIN));
    }

    #[test]
    fn what_is_not_ip_is_told_apart_by_mac_addresses_and_ether_type() {
        let other = |at: usize| {
            let mut bytes = vec![0; 60];
            bytes[12..14].copy_from_slice(&0x88b5u16.to_be_bytes());
            bytes[at] ^= 1;
            Frame::new(bytes, Offload::NONE).flow_hash()
        };
        let same = other(20);
        assert_eq!(same, other(59));
        let different = BTreeSet::from([same, other(0), other(6), other(11), other(13)]);
        assert_eq!(different.len(), 5);
        // It says that it is IP, and is too short for it.
        let mut bytes = vec![0; 14];
        bytes[12..14].copy_from_slice(&ether_type::IPV4.to_be_bytes());
        assert_ne!(Frame::new(bytes, Offload::NONE).flow_hash(), same);
    }

    #[test]
    fn flows_that_differ_in_one_bit_spread_over_a_table() {
        let places: BTreeSet<u64> = (0..256)
            .map(|port| {
                flow(Datagram {
                    ports: [port, 53],
                    ..PLAIN
                }) % 1024
            })
            .collect();
        // 256 balls in 1024 bins fill 226 of them, give or take 5.
        assert!((205..248).contains(&places.len()), "{}", places.len());
    }
}
