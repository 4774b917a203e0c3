//! What hosts send, and what they should not: flows of all kinds, each of which goes on from frame to frame; and frames that
//! are cut, padded, or wrong somewhere.

use crate::offload::Offload;
use crate::random::Random;
use crate::wire::checksum;
use crate::wire::ethernet::{MacAddr, ether_type};
use crate::wire::subframe::InnerHeader;

/// What a flow's frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Udp,
    Tcp,
    /// With times (RFC 7323), first or behind others.
    TimedTcp,
    /// With options that change from segment to segment.
    OddTcp,
    Rtp,
    Icmp,
    /// IPv4 with options of its own, right and wrong ones.
    IpOptions,
    Fragments,
    /// IPv6 with one to three extension headers.
    Extensions,
    Gre,
    Vxlan,
    Gtp,
    IpInIp,
    Esp,
    Arp,
    /// Of an EtherType that nobody knows, or a length.
    OtherThanIp,
    /// Fewer bytes than a header has.
    Short,
    /// Any bytes where a header should be.
    Noise,
}

impl Kind {
    pub const ALL: [Kind; 18] = [
        Kind::Udp,
        Kind::Tcp,
        Kind::TimedTcp,
        Kind::OddTcp,
        Kind::Rtp,
        Kind::Icmp,
        Kind::IpOptions,
        Kind::Fragments,
        Kind::Extensions,
        Kind::Gre,
        Kind::Vxlan,
        Kind::Gtp,
        Kind::IpInIp,
        Kind::Esp,
        Kind::Arp,
        Kind::OtherThanIp,
        Kind::Short,
        Kind::Noise,
    ];
}

pub fn below(random: &mut Random, n: u64) -> u64 {
    random.up_to(n - 1)
}

/// One time in so many.
pub fn once_in(random: &mut Random, times: u64) -> bool {
    below(random, times) == 0
}

pub fn pick<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[below(random, list.len() as u64) as usize]
}

fn fill(random: &mut Random, out: &mut [u8]) {
    for chunk in out.chunks_mut(8) {
        let word = random.up_to(u64::MAX).to_be_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

#[derive(Clone, Debug)]
pub struct Flow {
    pub kind: Kind,
    is_v6: bool,
    addresses: Option<(MacAddr, MacAddr)>,
    tags: Vec<[u8; 4]>,
    ends: [u8; 2],
    ports: [u16; 2],
    len: usize,
    is_random: bool,
    /// 0: it sends none, as a socket that does not fragment.
    id: u16,
    sequence: u32,
    acknowledged: u32,
    time: u32,
    has_checksum: bool,
    /// A frame is wrong somewhere once in so many.
    wrong_once_in: u64,
}

impl Flow {
    pub fn draw(random: &mut Random) -> Flow {
        let kind = pick(random, &Kind::ALL);
        let tags = pick(random, &[0, 0, 0, 0, 1, 2, 3]);
        let tag = |random: &mut Random| {
            let tpid = pick(random, &[[0x81, 0x00], [0x88, 0xa8]]);
            [
                tpid[0],
                tpid[1],
                below(random, 3) as u8,
                below(random, 4) as u8,
            ]
        };
        let mac = |random: &mut Random| MacAddr([2, 0, 0, 0, 0, below(random, 4) as u8]);
        Flow {
            kind,
            is_v6: match kind {
                Kind::Extensions => true,
                Kind::IpOptions | Kind::Fragments => false,
                _ => once_in(random, 3),
            },
            addresses: once_in(random, 4).then(|| (mac(random), mac(random))),
            tags: (0..tags).map(|_| tag(random)).collect(),
            ends: [below(random, 4) as u8, below(random, 4) as u8],
            ports: [
                below(random, 1 << 16) as u16,
                pick(random, &[53, 443, 2049, 5004]),
            ],
            len: pick(random, &[1, 4, 18, 40, 64, 160, 400, 1200]),
            is_random: once_in(random, 2),
            id: pick(random, &[0, 1, 0xfffe, 0x1234]),
            sequence: pick(random, &[0, 1000, u32::MAX - 1000]),
            acknowledged: random.up_to(u64::MAX) as u32,
            time: random.up_to(u64::MAX) as u32,
            has_checksum: !once_in(random, 5),
            wrong_once_in: pick(random, &[2, 8, 30, 1000]),
        }
    }

    /// The next frame; its payload stands in `out`.
    pub fn next(&mut self, random: &mut Random, out: &mut Vec<u8>) -> InnerHeader {
        let len = match below(random, 5) {
            0 => 1 + below(random, 300) as usize,
            _ => self.len,
        };
        let mut content = vec![0; len];
        if self.is_random {
            fill(random, &mut content);
        } else {
            let text = b"{\"value\": 17, \"unit\": \"celsius\"}, ";
            let start = below(random, 3) as usize;
            for (at, byte) in content.iter_mut().enumerate() {
                *byte = text[(start + at) % text.len()];
            }
        }
        self.time = self.time.wrapping_add(below(random, 200) as u32);
        self.id = match self.id {
            0 => 0,
            _ if once_in(random, 9) => random.up_to(0xffff) as u16,
            id => id.wrapping_add(1),
        };
        out.clear();
        let mut ether_type = self.packet(&content, random, out);
        if once_in(random, self.wrong_once_in) {
            be_wrong(random, out);
        }
        if out.is_empty() {
            out.push(0x45);
        }
        for tag in self.tags.iter().rev() {
            out.splice(
                ..0,
                [tag[2], tag[3], (ether_type >> 8) as u8, ether_type as u8],
            );
            ether_type = u16::from_be_bytes([tag[0], tag[1]]);
        }
        InnerHeader {
            addresses: self.addresses,
            ether_type,
            offload: Offload::NONE,
        }
    }

    /// Its EtherType.
    fn packet(&mut self, content: &[u8], random: &mut Random, out: &mut Vec<u8>) -> u16 {
        let of_ip = match self.is_v6 {
            true => ether_type::IPV6,
            false => ether_type::IPV4,
        };
        match self.kind {
            Kind::Arp => {
                out.extend([0, 1, 8, 0, 6, 4, 0, pick(random, &[1, 2])]);
                out.extend([2, 0, 0, 0, 0, self.ends[0], 10, 0, 0, self.ends[0]]);
                out.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, self.ends[1]]);
                return ether_type::ARP;
            }
            Kind::OtherThanIp => {
                out.extend(content);
                return pick(random, &[0x1234, 0x8847, 0x88cc, 0x8863, 60]);
            }
            Kind::Short => {
                let start = [0x45, 0, 0, 40, 0, 1, 0, 0, 64, pick(random, &[6, 17])];
                let v6 = [0x60, 0, 0, 0, 0, 20, pick(random, &[6, 17]), 64];
                let (start, most): (&[u8], u64) = match self.is_v6 {
                    true => (&v6, 60),
                    false => (&start, 40),
                };
                out.extend(start);
                out.resize(1 + below(random, most) as usize, 7);
                return of_ip;
            }
            Kind::Noise => {
                out.extend(content);
                out[0] = pick(
                    random,
                    &[0x45, 0x46, 0x4f, 0x44, 0x60, 0x6f, 0x50, content[0]],
                );
                return pick(random, &[of_ip, of_ip, ether_type::VLAN]);
            }
            _ => {}
        }
        let mut above = Vec::with_capacity(content.len() + 64);
        let protocol = self.above_ip(content, random, &mut above);
        match self.is_v6 {
            true => self.ipv6(protocol, &above, random, out),
            false => self.ipv4(protocol, &above, random, out),
        }
        of_ip
    }

    /// Its protocol.
    fn above_ip(&mut self, content: &[u8], random: &mut Random, out: &mut Vec<u8>) -> u8 {
        const UDP: u8 = 17;
        match self.kind {
            Kind::Tcp | Kind::TimedTcp | Kind::OddTcp => {
                self.tcp(content, random, out);
                6
            }
            Kind::Icmp => {
                out.extend([8, 0, 0, 0, 0, 7]);
                out.extend((self.sequence as u16).to_be_bytes());
                self.sequence = self.sequence.wrapping_add(1);
                out.extend(content);
                if self.is_v6 { 58 } else { 1 }
            }
            Kind::Gre => {
                let has_key = self.ports[0] & 1 == 1;
                out.extend([if has_key { 0x20 } else { 0 }, 0, 0x08, 0x00]);
                if has_key {
                    out.extend([0, 0, 0, 5]);
                }
                self.inner(content, out);
                47
            }
            Kind::IpInIp => {
                self.inner(content, out);
                4
            }
            Kind::Esp => {
                out.extend([0, 0, 0x10, self.ends[0]]);
                out.extend(self.sequence.to_be_bytes());
                self.sequence = self.sequence.wrapping_add(1);
                out.extend(content);
                50
            }
            Kind::Rtp => {
                let mut packet = vec![0x80, pick(random, &[8, 8, 8, 0x88])];
                packet.extend((self.sequence as u16).to_be_bytes());
                packet.extend(self.time.to_be_bytes());
                packet.extend([9, 9, 9, self.ends[0]]);
                self.sequence = self.sequence.wrapping_add(1);
                self.time = self.time.wrapping_add(content.len() as u32);
                packet.extend(content);
                self.udp(self.ports, &packet, out);
                UDP
            }
            Kind::Vxlan => {
                let mut packet = vec![8, 0, 0, 0, 0, 0, 42, 0];
                packet.extend([2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 1, 8, 0]);
                self.inner(content, &mut packet);
                self.udp([self.ports[0], 4789], &packet, out);
                UDP
            }
            Kind::Gtp => {
                let mut packet = vec![0x30, 0xff];
                packet.extend((content.len() as u16 + 28).to_be_bytes());
                packet.extend([0, 0, 0, self.ends[1]]);
                self.inner(content, &mut packet);
                self.udp([2152, 2152], &packet, out);
                UDP
            }
            _ => {
                self.udp(self.ports, content, out);
                UDP
            }
        }
    }

    /// A packet in a packet.
    fn inner(&self, content: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend([0x45, 0]);
        out.extend((28 + content.len() as u16).to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend([0, 0, 64, 17, 0, 0, 10, 1, 0, self.ends[0], 10, 2, 0, 1]);
        let sum = checksum::checksum(&out[start..]);
        out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        self.udp([80, 8080], content, out);
    }

    fn udp(&self, ports: [u16; 2], content: &[u8], out: &mut Vec<u8>) {
        out.extend(ports[0].to_be_bytes());
        out.extend(ports[1].to_be_bytes());
        out.extend((8 + content.len() as u16).to_be_bytes());
        out.extend([0, 0]);
        out.extend(content);
    }

    fn tcp(&mut self, content: &[u8], random: &mut Random, out: &mut Vec<u8>) {
        let mut times = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        times[4..8].copy_from_slice(&self.time.to_be_bytes());
        times[8..].copy_from_slice(&(self.time / 3).to_be_bytes());
        let mut options = Vec::new();
        if self.kind == Kind::TimedTcp {
            options.extend(times);
        }
        if self.kind == Kind::OddTcp {
            let sack = [1, 1, 5, 10, 0, 0, 7, below(random, 256) as u8, 0, 0, 9, 0];
            let maximum = [2, 4, 5, 0xb4];
            // Of a length that says it goes on where nothing is, too.
            let wrong = [8, 200, 0, 0];
            for _ in 0..below(random, 4) {
                match below(random, 4) {
                    0 => options.extend(times),
                    1 => options.extend(sack),
                    2 => options.extend(maximum),
                    _ => options.extend(wrong),
                }
            }
            options.truncate(40);
        }
        out.extend(self.ports[0].to_be_bytes());
        out.extend(self.ports[1].to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.acknowledged.to_be_bytes());
        out.push((((20 + options.len()) / 4) << 4) as u8);
        out.push(pick(random, &[0x10, 0x10, 0x10, 0x18, 0x11, 0x02]));
        out.extend([1, pick(random, &[245, 245, 246]), 0, 0, 0, 0]);
        out.extend(options);
        // Some carry nothing.
        let carried = match once_in(random, 4) {
            true => 0,
            false => content.len(),
        };
        out.extend(&content[..carried]);
        self.sequence = match below(random, 12) {
            0 => random.up_to(u64::MAX) as u32,
            1 => self.sequence,
            _ => self.sequence.wrapping_add(carried as u32),
        };
        if once_in(random, 2) {
            self.acknowledged = self.acknowledged.wrapping_add(1448);
        }
    }

    fn ipv4(&self, protocol: u8, above: &[u8], random: &mut Random, out: &mut Vec<u8>) {
        let options = match self.kind {
            Kind::IpOptions => 4 * (1 + below(random, 10) as usize),
            _ => 0,
        };
        let fragment: u16 = match self.kind {
            Kind::Fragments => pick(random, &[0x2000, 0x2005, 0x0009, 0x3fff]),
            _ => pick(random, &[0x4000, 0x4000, 0x4000, 0]),
        };
        let header_len = 20 + options;
        out.extend([
            0x40 | (header_len / 4) as u8,
            pick(random, &[0, 0, 0, 0xb8]),
        ]);
        out.extend(((header_len + above.len()) as u16).to_be_bytes());
        out.extend(self.id.to_be_bytes());
        out.extend(fragment.to_be_bytes());
        out.extend([pick(random, &[64, 64, 64, 63]), protocol, 0, 0]);
        out.extend([10, 0, 0, self.ends[0], 10, 0, 1, self.ends[1]]);
        // Router alert, and the end of the list; or anything.
        let alert = [0x94, 4, 0, 0];
        for n in 0..options {
            out.push(match self.is_random {
                true => below(random, 256) as u8,
                false => alert.get(n).copied().unwrap_or(0),
            });
        }
        let sum = checksum::checksum(&out[..header_len]);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
        out.extend(above);
        if self.has_checksum && self.kind != Kind::Fragments {
            finish(
                &mut out[header_len..],
                protocol,
                [10, 0, 0, self.ends[0], 10, 0, 1, self.ends[1]].as_slice(),
            );
        }
    }

    fn ipv6(&self, protocol: u8, above: &[u8], random: &mut Random, out: &mut Vec<u8>) {
        let mut extensions = Vec::new();
        let mut first = protocol;
        if self.kind == Kind::Extensions {
            for _ in 0..1 + below(random, 3) {
                // Hop by hop, destination, routing; a fragment's has no length. Each names what comes behind it.
                let this = pick(random, &[0, 60, 43, 44]);
                extensions.splice(..0, [first, 0, 1, 4, 0, 0, 0, below(random, 3) as u8]);
                first = this;
            }
        }
        out.extend([0x60, pick(random, &[0, 0, 0, 0x10]), 0x34, self.ends[0]]);
        out.extend(((extensions.len() + above.len()) as u16).to_be_bytes());
        out.extend([first, pick(random, &[64, 64, 64, 255])]);
        let mut ends = [0xfd; 32];
        (ends[15], ends[31]) = (self.ends[0], self.ends[1]);
        out.extend(ends);
        out.extend(&extensions);
        let at = out.len();
        out.extend(above);
        if self.has_checksum {
            finish(&mut out[at..], protocol, &ends);
        }
    }
}

/// The right checksum of a segment or datagram, between these addresses.
fn finish(above: &mut [u8], protocol: u8, addresses: &[u8]) {
    let at = match protocol {
        17 if above.len() >= 8 => 6,
        6 if above.len() >= 20 => 16,
        _ => return,
    };
    above[at..at + 2].fill(0);
    let parts = [
        checksum::sum(addresses),
        u16::from(protocol),
        above.len() as u16,
        checksum::sum(above),
    ];
    let sum = match !parts.into_iter().fold(0, checksum::add) {
        0 if protocol == 17 => 0xffff,
        sum => sum,
    };
    above[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// In one way or another.
fn be_wrong(random: &mut Random, packet: &mut Vec<u8>) {
    let within =
        |random: &mut Random, packet: &[u8]| below(random, packet.len().min(90) as u64) as usize;
    match below(random, 6) {
        // A bit of the headers, most likely: lengths, options, sums, versions, protocols.
        0 | 1 => {
            let at = within(random, packet);
            packet[at] ^= 1 << below(random, 8);
        }
        2 => {
            let at = within(random, packet);
            packet[at] = pick(random, &[0, 0xff, 0x45, 0x60]);
        }
        3 => {
            let len = below(random, packet.len() as u64) as usize;
            packet.truncate(len);
        }
        4 => {
            let padding = 1 + below(random, 46) as usize;
            packet.resize(packet.len() + padding, 0);
        }
        // What comes behind is payload, whatever its length says.
        _ => {
            let at = within(random, packet);
            let mut bytes = [0; 4];
            fill(random, &mut bytes);
            packet.splice(at..at, bytes);
        }
    }
}
