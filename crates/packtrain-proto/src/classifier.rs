//! Which frames belong together: the flow of a frame, as a number.
//!
//! Frames of one flow keep their order and share one queue. The number is keyed by a seed, so
//! that nobody outside can choose addresses and ports that all fall into one queue.

use crate::config::Balance;
use crate::wire::ethernet::MacAddr;
use crate::wire::packet::{IpVersion, Packet, PacketError, field};

/// Below it, the field holds a length (IEEE 802.3, 3.2.6).
const ETHER_TYPE_MIN: u16 = 1536;

/// Gives each frame its flow's number.
#[derive(Clone, Debug)]
pub struct Classifier {
    keys: [u64; 4],
}

impl Classifier {
    pub fn new(seed: u64) -> Classifier {
        // SplitMix64 (Steele, Lea, Flood 2014): any seed, 0 too, gives four unrelated keys.
        let mut state = seed;
        let keys = core::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Classifier { keys }
    }

    /// The number of the frame's flow: equal for
    /// - TCP and UDP: addresses, protocol and ports;
    /// - other IP, and every fragment: addresses and protocol. Later fragments have no ports, and
    ///   the first must not be sent ahead of them;
    /// - all else, malformed IP too: MAC addresses and EtherType (frames with a length in its
    ///   place are all of one type).
    ///
    /// VLAN tags are looked behind and do not count.
    pub fn flow_hash(&self, frame: &[u8]) -> u32 {
        self.flow_hash_of(frame, &Packet::parse(frame))
    }

    /// [`Classifier::flow_hash`], with what [`Packet::parse`] says of the frame.
    #[inline]
    pub fn flow_hash_of(&self, frame: &[u8], parsed: &Result<Packet, PacketError>) -> u32 {
        let &Ok(Packet {
            network_start,
            ip: Some(ip),
            ..
        }) = parsed
        else {
            return self.hash_ethernet(frame);
        };
        let ports = match ip.transport {
            Some(_) => read32(&frame[ip.transport_start..]),
            None => 0,
        };
        let upper = u64::from(ports) << 8 | u64::from(ip.protocol);
        self.hash_ip(&frame[network_start..], ip.version, upper)
    }

    /// Which share of all flows this one is in, where each keeps to one link; all frames of a flow are in the same.
    /// `flow_hash`: the frame's.
    #[inline]
    pub fn share_of(
        &self,
        balance: Balance,
        frame: &[u8],
        parsed: &Result<Packet, PacketError>,
        flow_hash: u32,
    ) -> u8 {
        let hash = match balance {
            Balance::EarliestFinish
            | Balance::RoundRobin
            | Balance::ActiveBackup
            | Balance::Weighted
            | Balance::Duplicate => return 0,
            Balance::HashMac => self.hash_ethernet(frame),
            Balance::HashIp => match parsed {
                Ok(Packet {
                    network_start,
                    ip: Some(ip),
                    ..
                }) => self.hash_ip(&frame[*network_start..], ip.version, 0),
                _ => self.hash_ethernet(frame),
            },
            Balance::HashPort => flow_hash,
        };
        // Not the bits by which the queues' buckets go.
        (hash >> 24) as u8
    }

    /// The addresses of an IP header, and what is to count besides.
    #[inline]
    fn hash_ip(&self, network: &[u8], version: IpVersion, besides: u64) -> u32 {
        match version {
            IpVersion::V4 => self.mix(read64(&network[field::IPV4_ADDRESSES]), besides),
            IpVersion::V6 => {
                let addresses = &network[field::IPV6_ADDRESSES];
                let source = self.fold(read64(addresses), read64(&addresses[8..]));
                let both = self.fold(read64(&addresses[16..]) ^ source, read64(&addresses[24..]));
                self.mix(both, besides)
            }
        }
    }

    fn hash_ethernet(&self, frame: &[u8]) -> u32 {
        // A runt is refused before it has a flow; give it one all the same.
        let Some(header) = frame.first_chunk::<14>() else {
            return 0;
        };
        const _: () = assert!(size_of::<MacAddr>() == 6);
        let mut header = *header;
        if u16::from_be_bytes([header[12], header[13]]) < ETHER_TYPE_MIN {
            // IEEE 802.3: there stands the length, which differs from frame to frame.
            header[12..14].fill(0);
        }
        // 14 bytes in two words that overlap.
        self.mix(read64(&header), read64(&header[6..]))
    }

    #[inline]
    fn mix(&self, a: u64, b: u64) -> u32 {
        let hash = product(self.fold(a, b) ^ self.keys[2], self.keys[3] | 1);
        (hash >> 32) as u32 ^ hash as u32
    }

    /// Two words into one, each under its own key, so that no order of the two is like another.
    #[inline]
    fn fold(&self, a: u64, b: u64) -> u64 {
        product(a ^ self.keys[0], b ^ self.keys[1])
    }
}

/// Both halves of the product: every bit of either factor reaches every bit of the result.
#[inline]
fn product(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

#[inline]
fn read64(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(*bytes.first_chunk().expect("8 bytes"))
}

#[inline]
fn read32(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes(*bytes.first_chunk().expect("4 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ethernet::ether_type;
    use crate::wire::packet::protocol;
    use std::collections::HashSet;

    const SEEDS: [u64; 4] = [0, 1, 2, u64::MAX];

    fn udp4(source: [u8; 4], destination: [u8; 4], ports: [u16; 2]) -> Vec<u8> {
        let mut frame = [[2; 6], [4; 6]].concat();
        frame.extend(ether_type::IPV4.to_be_bytes());
        frame.extend([0x45, 0, 0, 46, 0, 7, 0x40, 0, 64, protocol::UDP, 0, 0]);
        frame.extend(source);
        frame.extend(destination);
        frame.extend(ports[0].to_be_bytes());
        frame.extend(ports[1].to_be_bytes());
        frame.extend([0, 26, 0, 0]);
        frame.resize(64, 0xaa);
        frame
    }

    fn udp6(source: u8, destination: u8, ports: [u16; 2], fragment: bool) -> Vec<u8> {
        let mut frame = [[2; 6], [4; 6]].concat();
        frame.extend(ether_type::IPV6.to_be_bytes());
        frame.extend([0x60, 0, 0, 0, 0, 16]);
        frame.extend([
            if fragment {
                protocol::FRAGMENT
            } else {
                protocol::UDP
            },
            64,
        ]);
        for last in [source, destination] {
            frame.extend([0xfd; 15]);
            frame.push(last);
        }
        if fragment {
            frame.extend([protocol::UDP, 0, 0, 1, 0, 0, 0, 9]);
        }
        frame.extend(ports[0].to_be_bytes());
        frame.extend(ports[1].to_be_bytes());
        frame.resize(90, 0);
        frame
    }

    /// The number of each frame, asserted to be equal or different under every seed.
    fn assert_same(expected: bool, a: &[u8], b: &[u8]) {
        for seed in SEEDS {
            let classifier = Classifier::new(seed);
            let same = classifier.flow_hash(a) == classifier.flow_hash(b);
            assert_eq!(same, expected, "seed {seed}: {a:02x?} {b:02x?}");
        }
    }

    #[test]
    fn each_of_the_five_values_makes_another_flow_and_nothing_else_does() {
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let frame = udp4(a, b, [1000, 2000]);
        assert_same(false, &frame, &udp4([10, 0, 0, 3], b, [1000, 2000]));
        assert_same(false, &frame, &udp4(a, [10, 0, 0, 3], [1000, 2000]));
        assert_same(false, &frame, &udp4(a, b, [1001, 2000]));
        assert_same(false, &frame, &udp4(a, b, [1000, 2001]));
        let mut tcp = frame.clone();
        tcp[23] = protocol::TCP;
        tcp[46] = 0x50;
        assert_same(false, &frame, &tcp);
        for at in (0..12).chain([15, 18, 19, 22, 24, 25]).chain(38..64) {
            let mut other = frame.clone();
            other[at] ^= 1;
            assert_same(true, &frame, &other);
        }
        let mut tagged = frame.clone();
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        assert_same(true, &frame, &tagged);
    }

    #[test]
    fn both_directions_are_different_flows() {
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        assert_same(false, &udp4(a, b, [1, 2]), &udp4(b, a, [2, 1]));
    }

    #[test]
    fn all_fragments_of_a_datagram_are_one_flow() {
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let mut first = udp4(a, b, [1000, 2000]);
        first[20] = 0x20;
        let mut later = udp4(a, b, [0x1234, 0x5678]);
        later[21] = 0x90;
        assert_same(true, &first, &later);
        assert_same(false, &first, &udp4(a, b, [1000, 2000]));
        assert_same(true, &udp6(1, 2, [1, 2], true), &udp6(1, 2, [3, 4], true));
        assert_same(false, &udp6(1, 2, [1, 2], true), &udp6(1, 3, [1, 2], true));
    }

    #[test]
    fn ipv6_flows_differ_by_addresses_and_ports() {
        let frame = udp6(1, 2, [7, 8], false);
        for other in [
            udp6(3, 2, [7, 8], false),
            udp6(1, 3, [7, 8], false),
            udp6(1, 2, [7, 9], false),
        ] {
            assert_same(false, &frame, &other);
        }
        let mut label = frame.clone();
        label[17] = 9;
        assert_same(true, &frame, &label);
    }

    /// Whether two frames are in one share, under each of many seeds: 1 of 256 are by chance.
    fn share_together(balance: Balance, a: &[u8], b: &[u8]) -> bool {
        let share = |seed, frame: &[u8]| {
            let classifier = Classifier::new(seed);
            let parsed = Packet::parse(frame);
            classifier.share_of(balance, frame, &parsed, classifier.flow_hash(frame))
        };
        let same = (0..64).filter(|&seed| share(seed, a) == share(seed, b));
        match same.count() {
            64 => true,
            0..=4 => false,
            count => panic!("{count} of 64 seeds put them together"),
        }
    }

    #[test]
    fn what_is_kept_to_one_link_is_what_the_policy_names() {
        use Balance::{HashIp, HashMac, HashPort};
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let frame = udp4(a, b, [1000, 2000]);
        let other_port = udp4(a, b, [1001, 2000]);
        let other_host = udp4([10, 0, 0, 3], b, [1000, 2000]);
        let mut other_mac = frame.clone();
        other_mac[11] ^= 1;
        let mut other_protocol = frame.clone();
        other_protocol[23] = protocol::TCP;
        other_protocol[46] = 0x50;
        let mut fragment = frame.clone();
        fragment[20] = 0x20;
        let mut arp = frame.clone();
        arp[12..14].copy_from_slice(&ether_type::ARP.to_be_bytes());
        let cases: [(&[u8], [bool; 3]); 6] = [
            (&other_port, [true, true, false]),
            (&other_host, [true, false, false]),
            (&other_mac, [false, true, true]),
            (&other_protocol, [true, true, false]),
            (&fragment, [true, true, false]),
            (&arp, [false, false, false]),
        ];
        for (at, (other, expected)) in cases.into_iter().enumerate() {
            let together = [HashMac, HashIp, HashPort].map(|by| share_together(by, &frame, other));
            assert_eq!(together, expected, "case {at}");
        }
        let six = udp6(1, 2, [7, 8], false);
        let (port6, host6) = (udp6(1, 2, [7, 9], false), udp6(1, 3, [7, 8], false));
        assert!(share_together(HashIp, &six, &port6) && !share_together(HashIp, &six, &host6));
        assert!(!share_together(HashPort, &six, &port6));
        // Those of one datagram stay together, and one that is no IP goes by its Ethernet header.
        let later = [0x90; 1];
        let mut rest = fragment.clone();
        rest[21..22].copy_from_slice(&later);
        assert!(share_together(HashPort, &fragment, &rest));
        let mut arp_of_another = arp.clone();
        arp_of_another[5] ^= 1;
        for by in [HashMac, HashIp, HashPort] {
            assert!(!share_together(by, &arp, &arp_of_another));
            let mut answer = arp.clone();
            answer[30] ^= 1;
            assert!(share_together(by, &arp, &answer));
        }
        for by in Balance::ALL.into_iter().filter(|by| !by.keeps_flows()) {
            assert!(share_together(by, &frame, &arp));
        }
    }

    #[test]
    fn other_frames_flow_by_their_ethernet_header() {
        let mut arp = [[0xff; 6], [4; 6]].concat();
        arp.extend(ether_type::ARP.to_be_bytes());
        arp.resize(60, 0);
        for at in 0..14 {
            let mut other = arp.clone();
            other[at] ^= 0x40;
            assert_same(false, &arp, &other);
        }
        let mut other = arp.clone();
        other[20] = 9;
        assert_same(true, &arp, &other);
        // IPv4 by its EtherType only.
        let mut broken = arp.clone();
        broken[12..14].copy_from_slice(&ether_type::IPV4.to_be_bytes());
        assert_same(false, &arp, &broken);
        assert_eq!(Classifier::new(1).flow_hash(&arp[..13]), 0);
    }

    #[test]
    fn frames_with_a_length_for_a_type_are_one_flow_whatever_their_length() {
        let llc = |length: u16| {
            let mut frame = [[2; 6], [4; 6]].concat();
            frame.extend(length.to_be_bytes());
            frame.resize(14 + usize::from(length).max(46), 0xaa);
            frame
        };
        for seed in SEEDS {
            let hash = |length| Classifier::new(seed).flow_hash(&llc(length));
            assert_eq!(hash(3), hash(1500));
            assert_ne!(hash(1500), hash(1536));
        }
    }

    #[test]
    fn another_seed_gives_other_numbers() {
        let frame = udp4([10, 0, 0, 1], [10, 0, 0, 2], [1, 2]);
        let numbers: HashSet<u32> = (0..100)
            .map(|seed| Classifier::new(seed).flow_hash(&frame))
            .collect();
        assert_eq!(numbers.len(), 100);
    }

    /// Ports that count up, addresses that count up: what real hosts do, and what a weak hash
    /// puts into few buckets.
    #[test]
    fn neighbouring_flows_spread_evenly() {
        const FLOWS: usize = 1 << 15;
        const BUCKETS: usize = 1 << 10;
        for seed in SEEDS {
            let classifier = Classifier::new(seed);
            let ports = (0..FLOWS).map(|i| udp4([10, 0, 0, 1], [10, 0, 0, 2], [i as u16, 53]));
            let hosts = (0..FLOWS).map(|i| {
                udp4(
                    [10, 0, (i >> 8) as u8, i as u8],
                    [10, 0, 0, 2],
                    [5060, 5060],
                )
            });
            let hosts6 = (0..FLOWS).map(|i| udp6((i >> 8) as u8, i as u8, [5060, 5060], false));
            let sets: [Vec<Vec<u8>>; 3] = [ports.collect(), hosts.collect(), hosts6.collect()];
            for (set, frames) in sets.iter().enumerate() {
                for shift in [0, 22] {
                    let mut load = [0usize; BUCKETS];
                    for frame in frames {
                        load[(classifier.flow_hash(frame) >> shift) as usize % BUCKETS] += 1;
                    }
                    // 32 expected, deviation 5.7: within six deviations, and a chi-square near
                    // its degrees of freedom (1023, deviation 45).
                    let chi_square: f64 =
                        load.iter().map(|&n| (n as f64 - 32.0).powi(2) / 32.0).sum();
                    assert!(load.iter().all(|&n| n <= 70), "seed {seed}, set {set}");
                    assert!(
                        (700.0..1350.0).contains(&chi_square),
                        "{seed}, {set}: {chi_square}"
                    );
                }
            }
        }
    }
}
