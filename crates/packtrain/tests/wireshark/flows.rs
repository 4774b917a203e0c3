//! What hosts say to each other in captures of coded trains: flows of kinds that the coding knows, and of some that it does not.

use packtrain_sim::checksum::Transport;
use packtrain_sim::random::Random;

use crate::world::pt0;

/// What the frames of a flow are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Udp,
    /// UDP that seldom has one.
    OftenWithoutChecksum,
    UdpOverIpv6,
    Tagged,
    TwiceTagged,
    Rtp,
    Tcp,
    TimedTcp,
    TimedTcpOverIpv6,
    /// From another station than `pt0`.
    OfAStation,
    Icmp,
    Arp,
}

pub const KINDS: [Kind; 12] = {
    use Kind::*;
    [
        Udp,
        OftenWithoutChecksum,
        UdpOverIpv6,
        Tagged,
        TwiceTagged,
        Rtp,
        Tcp,
        TimedTcp,
        TimedTcpOverIpv6,
        OfAStation,
        Icmp,
        Arp,
    ]
};

/// The flow of a kind, from one side.
pub struct Flow {
    kind: Kind,
    pub from: usize,
    sent: u32,
    tcp_sequence: u32,
}

impl Flow {
    pub fn new(kind: Kind, from: usize) -> Flow {
        Flow {
            kind,
            from,
            sent: 0,
            tcp_sequence: u32::MAX - 500, // it wraps
        }
    }

    pub fn next(&mut self, random: &mut Random) -> Vec<u8> {
        self.sent += 1;
        let len = random.between(20, 160) as usize;
        let text = format!(
            "{{\"reading\": {}, \"of\": \"the same meter\", \"unit\": \"V\"}}",
            self.sent
        );
        let content: Vec<u8> = match random.chance(0.2) {
            true => (0..len).map(|_| random.next() as u8).collect(),
            false => text.bytes().cycle().take(len).collect(),
        };
        let mut frame = [&pt0(1 - self.from).0[..], &pt0(self.from).0].concat();
        if self.kind == Kind::OfAStation {
            frame[11] = 0x77;
        }
        let is_v6 = matches!(self.kind, Kind::UdpOverIpv6 | Kind::TimedTcpOverIpv6);
        let ether_type = match is_v6 {
            _ if self.kind == Kind::Arp => [0x08, 0x06],
            true => [0x86, 0xdd],
            false => [0x08, 0x00],
        };
        frame.extend(ether_type);
        if self.kind == Kind::Arp {
            frame.extend([0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 9, 10, 0, 0, 9]);
            frame.extend([2, 0, 0, 0, 0, 8, 10, 0, 0, self.sent as u8]);
            return frame;
        }
        frame.extend(self.packet(is_v6, &content));
        let has_checksum = self.kind != Kind::OftenWithoutChecksum || self.sent.is_multiple_of(4);
        if has_checksum && let Some(transport) = Transport::find(&frame) {
            transport.put_finished(&mut frame);
        }
        let tags = match self.kind {
            Kind::Tagged => &[0x81, 0x00, 0, 5][..],
            Kind::TwiceTagged => &[0x88, 0xa8, 0, 7, 0x81, 0x00, 0, 5],
            _ => &[],
        };
        frame.splice(12..12, tags.iter().copied());
        frame
    }

    fn packet(&mut self, is_v6: bool, content: &[u8]) -> Vec<u8> {
        let transport = self.transport(content);
        let protocol = match self.kind {
            Kind::Tcp | Kind::TimedTcp | Kind::TimedTcpOverIpv6 => 6,
            Kind::Icmp => 1,
            _ => 17,
        };
        let len = transport.len() as u16;
        let ends = [self.from as u8 + 1, 2 - self.from as u8];
        let mut ip = match is_v6 {
            false => {
                let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
                ip[2..4].copy_from_slice(&(20 + len).to_be_bytes());
                ip[4..6].copy_from_slice(&(self.sent as u16 * 3 / 2).to_be_bytes());
                ip.extend(ends.map(|end| [10, 0, 0, end]).concat());
                let sum = packtrain_proto::wire::checksum::checksum(&ip);
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
                ip
            }
            true => {
                let hops = if self.sent.is_multiple_of(5) { 63 } else { 64 };
                let mut ip = vec![0x60, 0, 0, 0, 0, 0, protocol, hops];
                ip[4..6].copy_from_slice(&len.to_be_bytes());
                let end = |end| [&[0xfd; 15][..], &[end]].concat();
                ip.extend(ends.map(end).concat());
                ip
            }
        };
        ip.extend(transport);
        ip
    }

    fn transport(&mut self, content: &[u8]) -> Vec<u8> {
        let is_timed = matches!(self.kind, Kind::TimedTcp | Kind::TimedTcpOverIpv6);
        let mut bytes = vec![0x0f, 0xa0 + self.kind as u8, 0x13, 0x8c];
        match self.kind {
            Kind::Icmp => bytes = vec![8, 0, 0, 0, 0, 1, 0, self.sent as u8],
            Kind::Tcp | Kind::TimedTcp | Kind::TimedTcpOverIpv6 => {
                bytes.extend(self.tcp_sequence.to_be_bytes());
                self.tcp_sequence = self.tcp_sequence.wrapping_add(content.len() as u32);
                bytes.extend((self.sent / 3 * 1448).to_be_bytes());
                bytes.extend([if is_timed { 0x80 } else { 0x50 }, 0x18, 2, 0, 0, 0, 0, 0]);
                if is_timed {
                    bytes.extend([1, 1, 8, 10]);
                    bytes.extend((self.sent * 7).to_be_bytes());
                    bytes.extend((self.sent / 2).to_be_bytes());
                }
            }
            _ => {
                let rtp_len = if self.kind == Kind::Rtp { 12 } else { 0 };
                bytes.extend((8 + rtp_len + content.len() as u16).to_be_bytes());
                bytes.extend([0, 0]);
                if self.kind == Kind::Rtp {
                    bytes.extend([0x80, 0]);
                    bytes.extend((self.sent as u16).to_be_bytes());
                    bytes.extend((self.sent * 160).to_be_bytes());
                    bytes.extend([0xca, 0x11, 0, 1]);
                }
            }
        }
        bytes.extend(content);
        bytes
    }
}
