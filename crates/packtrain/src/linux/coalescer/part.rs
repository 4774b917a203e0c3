//! A datagram or a TCP segment of which everything is right, and the headers of several of them as one.

use packtrain_proto::gso::{TCP_CHECKSUM_OFFSET, UDP_CHECKSUM_OFFSET};
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::wire::checksum::{add, sum};
use packtrain_proto::wire::ethernet::{HEADER_LEN, ether_type};
use packtrain_proto::wire::packet::{
    IPV4_HEADER_LEN, IPV6_HEADER_LEN, UDP_HEADER_LEN, field, protocol,
};

const TCP_HEADER_LEN: usize = 20;
const TCP_HEADER_LEN_MAX: usize = 60;
const TCP_ACK_NUMBER: core::ops::Range<usize> = 8..12;
const TCP_WINDOW: core::ops::Range<usize> = 14..16;
const TCP_URGENT: core::ops::Range<usize> = 18..20;
/// Bytes of the headers of what is put together, at most.
pub(super) const HEADERS_MAX: usize = HEADER_LEN + IPV6_HEADER_LEN + TCP_HEADER_LEN_MAX;
const DONT_FRAGMENT: u16 = 0x4000;

mod flag {
    pub(super) const PSH: u8 = 0x08;
    pub(super) const ACK: u8 = 0x10;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Datagram,
    Segment,
}

/// Where its parts are, and what of it the next one depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) kind: Kind,
    ip_len: usize,
    transport_len: usize,
    pub(super) payload_len: usize,
    /// Of a segment; a datagram has none.
    sequence: u32,
    /// A segment that its sender wants given to the program at once: only the last of several is.
    pub(super) pushes: bool,
}

fn word(bytes: &[u8], range: core::ops::Range<usize>) -> u16 {
    u16::from_be_bytes([bytes[range.start], bytes[range.start + 1]])
}

/// The sum of the pseudo header of `len` bytes of this protocol behind this IP header.
pub(super) fn pseudo_header(ip: &[u8], protocol: u8, len: u16) -> u16 {
    let addresses = match ip.len() {
        IPV4_HEADER_LEN => &ip[field::IPV4_ADDRESSES],
        _ => &ip[field::IPV6_ADDRESSES],
    };
    add(sum(addresses), add(u16::from(protocol), len))
}

impl Part {
    /// Nothing that could not be told again from the first one's headers: no options of IP, no fragment, no
    /// padding, no missing or wrong checksum, but one that is still to be finished; of TCP nothing but data,
    /// acknowledged.
    pub(super) fn parse(head: &[u8], packet: &[u8], offload: &Offload) -> Option<Part> {
        if offload.gso.is_some() {
            return None;
        }
        let ip_len = match u16::from_be_bytes([head[12], head[13]]) {
            ether_type::IPV4 => IPV4_HEADER_LEN,
            ether_type::IPV6 => IPV6_HEADER_LEN,
            _ => return None,
        };
        // With at least a byte of payload.
        if packet.len() <= ip_len + UDP_HEADER_LEN {
            return None;
        }
        let (ip, transport) = packet.split_at(ip_len);
        let ip_is_right = if ip_len == IPV4_HEADER_LEN {
            ip[0] == 0x45
                && usize::from(word(ip, field::IPV4_TOTAL_LEN)) == packet.len()
                && word(ip, field::IPV4_FRAGMENT) & !DONT_FRAGMENT == 0
                // In this form, because that is how it will be written again.
                && sum(ip) == u16::MAX
                && ip[field::IPV4_CHECKSUM] != [0xff, 0xff]
        } else {
            ip[0] >> 4 == 6 && usize::from(word(ip, field::IPV6_PAYLOAD_LEN)) == transport.len()
        };
        if !ip_is_right {
            return None;
        }
        let protocol = match ip_len {
            IPV4_HEADER_LEN => ip[field::IPV4_PROTOCOL],
            _ => ip[field::IPV6_NEXT_HEADER],
        };
        let part = match protocol {
            protocol::UDP => Part::datagram(ip_len, transport)?,
            protocol::TCP => Part::segment(ip_len, transport)?,
            _ => return None,
        };
        let pseudo = pseudo_header(ip, protocol, transport.len() as u16);
        let is_right = match offload.checksum {
            None => part.has_checksum(transport) && add(pseudo, sum(transport)) == u16::MAX,
            // Its sum so far stands in its place.
            Some(partial) => {
                let at = usize::from(part.checksum_offset());
                partial == part.partial_checksum() && word(transport, at..at + 2) == pseudo
            }
        };
        is_right.then_some(part)
    }

    fn datagram(ip_len: usize, udp: &[u8]) -> Option<Part> {
        let is_right = usize::from(word(udp, field::UDP_LEN)) == udp.len();
        is_right.then(|| Part {
            kind: Kind::Datagram,
            ip_len,
            transport_len: UDP_HEADER_LEN,
            payload_len: udp.len() - UDP_HEADER_LEN,
            sequence: 0,
            pushes: false,
        })
    }

    fn checksum_offset(&self) -> u16 {
        match self.kind {
            Kind::Datagram => UDP_CHECKSUM_OFFSET,
            Kind::Segment => TCP_CHECKSUM_OFFSET,
        }
    }

    fn partial_checksum(&self) -> PartialChecksum {
        PartialChecksum {
            start: (HEADER_LEN + self.ip_len) as u16,
            offset: self.checksum_offset(),
        }
    }

    /// One that is there, and written as it will be again.
    fn has_checksum(&self, transport: &[u8]) -> bool {
        let at = usize::from(self.checksum_offset());
        let other = match self.kind {
            Kind::Datagram => [0, 0],
            Kind::Segment => [0xff, 0xff],
        };
        transport[at..at + 2] != other
    }

    fn segment(ip_len: usize, tcp: &[u8]) -> Option<Part> {
        let transport_len = usize::from(*tcp.get(field::TCP_DATA_OFFSET)? >> 4) * 4;
        if transport_len < TCP_HEADER_LEN || tcp.len() <= transport_len {
            return None;
        }
        let flags = tcp[field::TCP_FLAGS];
        // The low bits of the data offset's byte are flags, too.
        let is_data = flags & !flag::PSH == flag::ACK && tcp[field::TCP_DATA_OFFSET] & 0x0f == 0;
        is_data.then(|| Part {
            kind: Kind::Segment,
            ip_len,
            transport_len,
            payload_len: tcp.len() - transport_len,
            sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            pushes: flags & flag::PSH != 0,
        })
    }

    pub(super) fn headers_len(&self) -> usize {
        HEADER_LEN + self.ip_len + self.transport_len
    }

    /// Whether a packet that is the `count`th behind the one that this is of, with what is said of it, would come out of
    /// a cut of all of them as it is.
    pub(super) fn leads_to(
        &self,
        packet: &[u8],
        next: &Part,
        next_packet: &[u8],
        count: usize,
    ) -> bool {
        let same = |range: core::ops::Range<usize>| packet[range.clone()] == next_packet[range];
        let same_lengths = (next.kind, next.ip_len, next.transport_len)
            == (self.kind, self.ip_len, self.transport_len)
            && next.payload_len <= self.payload_len;
        same_lengths && self.same_ip(packet, next_packet, count) && {
            let at = self.ip_len;
            let within = |range: core::ops::Range<usize>| at + range.start..at + range.end;
            let same_ports = same(within(0..4));
            match self.kind {
                Kind::Datagram => same_ports,
                Kind::Segment => {
                    let sent = (count * self.payload_len) as u32;
                    same_ports
                        && next.sequence == self.sequence.wrapping_add(sent)
                        && same(within(TCP_ACK_NUMBER))
                        && same(within(TCP_WINDOW))
                        && same(within(TCP_URGENT))
                        && same(within(TCP_HEADER_LEN..self.transport_len))
                }
            }
        }
    }

    fn same_ip(&self, packet: &[u8], next: &[u8], count: usize) -> bool {
        let same = |range: core::ops::Range<usize>| packet[range.clone()] == next[range];
        match self.ip_len {
            IPV4_HEADER_LEN => {
                let id = |packet: &[u8]| word(packet, field::IPV4_ID);
                let due = id(packet).wrapping_add(count as u16);
                let free = word(packet, field::IPV4_FRAGMENT) == DONT_FRAGMENT;
                // All but length, identification and checksum.
                same(0..2) && same(6..10) && same(12..20) && (free || id(next) == due)
            }
            _ => same(0..4) && same(6..IPV6_HEADER_LEN),
        }
    }

    /// Makes the headers of the first those of all of them.
    pub(super) fn write_headers(
        &self,
        headers: &mut [u8],
        payload_bytes: usize,
        pushes: bool,
    ) -> Offload {
        let len = (self.transport_len + payload_bytes) as u16;
        let (ip, transport) = headers[HEADER_LEN..].split_at_mut(self.ip_len);
        if self.ip_len == IPV4_HEADER_LEN {
            let total_len = IPV4_HEADER_LEN as u16 + len;
            ip[field::IPV4_TOTAL_LEN].copy_from_slice(&total_len.to_be_bytes());
            ip[field::IPV4_CHECKSUM].fill(0);
            let checksum = !sum(ip);
            ip[field::IPV4_CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
        } else {
            ip[field::IPV6_PAYLOAD_LEN].copy_from_slice(&len.to_be_bytes());
        }
        let protocol = match self.kind {
            Kind::Datagram => {
                transport[field::UDP_LEN].copy_from_slice(&len.to_be_bytes());
                protocol::UDP
            }
            Kind::Segment => {
                if pushes {
                    transport[field::TCP_FLAGS] |= flag::PSH;
                }
                protocol::TCP
            }
        };
        let at = usize::from(self.checksum_offset());
        transport[at..at + 2].copy_from_slice(&pseudo_header(ip, protocol, len).to_be_bytes());
        Offload {
            checksum: Some(self.partial_checksum()),
            gso: Some(Gso {
                kind: match (self.kind, self.ip_len) {
                    (Kind::Datagram, _) => GsoKind::UdpL4,
                    (Kind::Segment, IPV4_HEADER_LEN) => GsoKind::TcpV4,
                    (Kind::Segment, _) => GsoKind::TcpV6,
                },
                ecn: false,
                header_len: self.headers_len() as u16,
                segment_len: self.payload_len as u16,
            }),
        }
    }
}
