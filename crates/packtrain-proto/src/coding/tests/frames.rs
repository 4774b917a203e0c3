//! Frames of flows, right ones and odd ones.

use proptest::prelude::*;

use super::header;
use crate::coding::coder::{Coder, Treatment};
use crate::wire::checksum;
use crate::wire::ethernet::{MacAddr, ether_type};
use crate::wire::subframe::{self, InnerHeader};

/// A frame, and what may be done with it.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub header: InnerHeader,
    pub payload: Vec<u8>,
    pub treatment: Treatment,
}

impl Drawn {
    pub fn plain_len(&self) -> usize {
        subframe::overhead(&self.header, &self.payload, false) + self.payload.len()
    }

    pub fn put_to(&self, coder: &mut Coder) -> bool {
        coder.put_frame(&self.header, &self.payload, self.treatment)
    }

    pub fn as_read(&self) -> (InnerHeader, Vec<u8>) {
        (self.header, self.payload.clone())
    }
}

/// Frames of one UDP flow over IPv4, as a host sends them.
#[derive(Debug)]
pub struct InFrames {
    count: u16,
}

impl InFrames {
    pub fn udp() -> InFrames {
        InFrames { count: 0 }
    }

    pub fn next(&mut self, bytes: usize) -> Drawn {
        let data: Vec<u8> = (0..bytes)
            .map(|at| (at as u16 * 7 + self.count * 31) as u8)
            .collect();
        self.saying(&data)
    }

    /// One over IPv6, without a checksum.
    pub fn over_ipv6(&mut self, bytes: usize) -> Drawn {
        Drawn {
            header: header(ether_type::IPV6),
            payload: ipv6(17, 7, 1, &udp([4000, 5000], &vec![7; bytes])),
            treatment: Treatment::Headers,
        }
    }

    pub fn saying(&mut self, data: &[u8]) -> Drawn {
        self.count += 1;
        Drawn {
            header: header(ether_type::IPV4),
            payload: ipv4(17, self.count, [10, 9, 0, 1], &udp([4000, 5000], data)),
            treatment: Treatment::Headers,
        }
    }
}

fn udp(ports: [u16; 2], data: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(ports[0].to_be_bytes());
    datagram.extend(ports[1].to_be_bytes());
    datagram.extend((8 + data.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(data);
    datagram
}

const TO: [u8; 4] = [10, 9, 0, 2];

/// With right checksums of both.
fn ipv4(protocol: u8, id: u16, from: [u8; 4], above: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + above.len() as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0x40, 0, 64, protocol, 0, 0]);
    packet.extend(from);
    packet.extend(TO);
    let sum = checksum::checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(above);
    let at = match protocol {
        17 if above.len() >= 8 => 26,
        6 if above.len() >= 20 => 36,
        _ => return packet,
    };
    let parts = [
        checksum::sum(&packet[12..20]),
        u16::from(protocol),
        above.len() as u16,
        checksum::sum(&packet[20..]),
    ];
    let sum = match !parts.into_iter().fold(0, checksum::add) {
        0 if protocol == 17 => 0xffff,
        sum => sum,
    };
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn ipv6(next: u8, flow: u32, from: u8, above: &[u8]) -> Vec<u8> {
    let mut packet = (0x6000_0000 | flow & 0xf_ffff).to_be_bytes().to_vec();
    packet.extend((above.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, from]);
    packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99]);
    packet.extend(above);
    packet
}

/// What one frame of a row is made of.
#[derive(Clone, Debug)]
struct Recipe {
    kind: u8,
    flow: u8,
    id: u16,
    sequence: u32,
    data: Vec<u8>,
    /// A byte of the headers is another one: options, lengths, sums, fragments, versions.
    damage: Option<(u8, u8)>,
    treatment: Treatment,
    has_addresses: bool,
}

impl Recipe {
    fn cook(&self) -> Drawn {
        let ports = [4000 + u16::from(self.flow), 5000];
        let from = [10, 9, 0, self.flow % 3];
        let rtp = |data: &[u8]| {
            let mut packet = vec![0x80, self.id as u8 & 0x80];
            packet.extend((self.sequence as u16).to_be_bytes());
            packet.extend(self.sequence.wrapping_mul(160).to_be_bytes());
            packet.extend([1, 2, 3, self.flow]);
            packet.extend(data);
            packet
        };
        let tcp = |options: &[u8]| {
            let mut segment = ports.map(u16::to_be_bytes).concat();
            segment.extend(self.sequence.to_be_bytes());
            segment.extend((self.sequence / 3).to_be_bytes());
            segment.extend([
                (5 + options.len() as u8 / 4) << 4,
                0x10,
                1,
                self.id as u8,
                0,
                0,
                0,
                0,
            ]);
            segment.extend(options);
            segment.extend(&self.data);
            segment
        };
        let mut timed = vec![1, 1, 8, 10];
        timed.extend((self.sequence / 1000).to_be_bytes());
        timed.extend((self.sequence / 2000).to_be_bytes());
        let (ether, mut payload) = match self.kind {
            0 | 1 => (
                ether_type::IPV4,
                ipv4(17, self.id, from, &udp(ports, &self.data)),
            ),
            2 => (
                ether_type::IPV4,
                ipv4(17, self.id, from, &udp(ports, &rtp(&self.data))),
            ),
            3 => (ether_type::IPV4, ipv4(6, self.id, from, &tcp(&[]))),
            4 => (ether_type::IPV4, ipv4(6, self.id, from, &tcp(&timed))),
            5 => (
                ether_type::IPV6,
                ipv6(17, 7, self.flow, &udp(ports, &self.data)),
            ),
            6 => (ether_type::IPV6, ipv6(6, 7, self.flow, &tcp(&timed))),
            7 => (ether_type::IPV4, ipv4(1, self.id, from, &self.data)),
            8 => {
                let mut tagged = vec![0, 5, 0x08, 0];
                tagged.extend(ipv4(17, self.id, from, &udp(ports, &self.data)));
                (ether_type::VLAN, tagged)
            }
            9 => (ether_type::ARP, self.data.clone()),
            // Padding, as Ethernet adds it.
            10 => {
                let mut padded = ipv4(6, self.id, from, &tcp(&[]));
                padded.extend([0; 6]);
                (ether_type::IPV4, padded)
            }
            _ => (ether_type::IPV4, self.data.clone()),
        };
        if let Some((at, by)) = self.damage {
            let at = usize::from(at) % payload.len().min(64);
            payload[at] ^= by;
        }
        let mut header = header(ether);
        if self.has_addresses {
            header.addresses = Some((
                MacAddr([2, 0, 0, 0, 0, 1]),
                MacAddr([2, 0, 0, 0, 0, self.flow]),
            ));
        }
        Drawn {
            header,
            payload,
            treatment: self.treatment,
        }
    }
}

prop_compose! {
    fn recipe()(
        kind in 0u8..12,
        flow in 0u8..5,
        id in prop_oneof![Just(0u16), 100u16..110, any::<u16>()],
        sequence in prop_oneof![1000u32..1010, any::<u32>()],
        data in prop_oneof![
            prop::collection::vec(any::<u8>(), 1..60),
            prop::collection::vec(Just(0x41u8), 1..300),
            prop::collection::vec(any::<u8>(), 300..1300),
        ],
        damage in prop::option::weighted(0.2, (any::<u8>(), any::<u8>())),
        treatment in prop_oneof![
            1 => Just(Treatment::Plain),
            3 => Just(Treatment::Headers),
            3 => Just(Treatment::Payload),
        ],
        has_addresses in prop::bool::weighted(0.1),
    ) -> Recipe {
        Recipe { kind, flow, id, sequence, data, damage, treatment, has_addresses }
    }
}

/// Rows of frames: a recipe, and again the same with what changes from frame to frame.
pub fn any_frames(frames_max: usize) -> impl Strategy<Value = Vec<Drawn>> {
    let rows = prop::collection::vec((recipe(), 1usize..12), 1..frames_max / 4);
    rows.prop_map(move |rows| {
        let mut frames = Vec::new();
        for (recipe, count) in rows {
            for step in 0..count as u16 {
                let mut next = recipe.clone();
                next.id = next.id.wrapping_add(if next.id == 0 { 0 } else { step });
                next.sequence = next.sequence.wrapping_add(u32::from(step));
                frames.push(next.cook());
            }
        }
        frames.truncate(frames_max);
        frames
    })
}
