//! Which fields the headers of an inner frame have, and what each is expected to be in the next frame of the
//! same flow. The tables are in docs/wire-format.md: both ends must have the same.
//!
//! A layout is found by looking at one frame alone, so that who restores finds it in the frame that another one
//! is restored from. What it does not know is payload.

use super::ethernet::ether_type;
use super::packet::protocol;

/// More headers than these have none: two tags, IPv4 and TCP with all their options, RTP.
pub const HEADERS_MAX: usize = 8 + 60 + 60 + RTP_LEN as usize;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const TCP_LEN: usize = 20;
const UDP_LEN: usize = 8;
/// RFC 3550, section 5.1, without contributing sources.
pub const RTP_LEN: u8 = 12;
const TAG_LEN: usize = 4;
const TAGS_MAX: usize = 2;

/// What a field is expected to be: `reference` is its value in the frame that this one is told apart from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The same.
    Same,
    /// One more.
    Next,
    /// IPv4's identification: one more, and 0 stays 0 (RFC 6864, section 4.1).
    Identification,
    /// As much more as the frame is longer.
    Length,
    /// TCP's sequence: behind what the reference carries.
    AfterSegment,
    /// RTP's time: as many more as the reference carries bytes, one a sample.
    AfterSamples,
    /// The right checksum of the IPv4 header.
    NetworkSum,
    /// The right checksum of the segment or datagram; where the reference has none (0, UDP), none.
    TransportSum,
}

/// How a value is written that is not what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// As it stands.
    Whole,
    /// Its distance from what was expected: zigzag, seven bits a byte.
    Distance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Network,
    Transport,
    Rtp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub base: Base,
    /// Bytes from its base.
    pub at: u8,
    pub width: u8,
    pub rule: Rule,
    pub spelling: Spelling,
}

const fn field(base: Base, at: u8, width: u8, rule: Rule, spelling: Spelling) -> Field {
    Field {
        base,
        at,
        width,
        rule,
        spelling,
    }
}

/// One list of fields behind another one.
const fn joined<const N: usize>(first: &[Field], second: &[Field]) -> [Field; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [TTL; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() {
            first[at]
        } else {
            second[at - first.len()]
        };
        at += 1;
    }
    all
}

use Base::{Network, Rtp, Transport};
use Rule::{
    AfterSamples, AfterSegment, Identification, Length, NetworkSum, Next, Same, TransportSum,
};
use Spelling::{Distance, Whole};

const TTL: Field = field(Network, 8, 1, Same, Whole);
const ID: Field = field(Network, 4, 2, Identification, Distance);
const SOURCE: Field = field(Network, 12, 4, Same, Whole);
const DESTINATION: Field = field(Network, 16, 4, Same, Whole);
const SOURCE_6: Field = field(Network, 8, 16, Same, Whole);
const DESTINATION_6: Field = field(Network, 24, 16, Same, Whole);
const SOURCE_PORT: Field = field(Transport, 0, 2, Same, Distance);
const DESTINATION_PORT: Field = field(Transport, 2, 2, Same, Distance);

/// Of IPv4, what seldom differs: behind what the transport has.
const IPV4_SELDOM: [Field; 7] = [
    SOURCE,
    DESTINATION,
    field(Network, 2, 2, Length, Distance),
    TTL,
    field(Network, 1, 1, Same, Whole),
    field(Network, 6, 2, Same, Whole),
    field(Network, 10, 2, NetworkSum, Whole),
];
const IPV6_SELDOM: [Field; 5] = [
    SOURCE_6,
    DESTINATION_6,
    field(Network, 4, 2, Length, Distance),
    field(Network, 7, 1, Same, Whole),
    field(Network, 0, 4, Same, Whole),
];
const UDP_SUM: Field = field(Transport, 6, 2, TransportSum, Whole);
const UDP_LENGTH: Field = field(Transport, 4, 2, Length, Distance);

/// The expected ones of each transport, those first that differ most often: the first seven cost one byte of mask.
const UDP: [Field; 4] = [SOURCE_PORT, DESTINATION_PORT, UDP_SUM, UDP_LENGTH];
const RTP: [Field; 8] = [
    field(Rtp, 4, 4, AfterSamples, Distance),
    field(Rtp, 2, 2, Next, Distance),
    SOURCE_PORT,
    DESTINATION_PORT,
    field(Rtp, 8, 4, Same, Whole),
    field(Rtp, 0, 2, Same, Whole),
    UDP_SUM,
    UDP_LENGTH,
];
const TCP: [Field; 8] = [
    field(Transport, 8, 4, Same, Distance), // acknowledgement
    field(Transport, 4, 4, AfterSegment, Distance), // sequence
    field(Transport, 14, 2, Same, Distance), // window
    field(Transport, 13, 1, Same, Whole),   // flags
    SOURCE_PORT,
    DESTINATION_PORT,
    field(Transport, 16, 2, TransportSum, Whole),
    field(Transport, 18, 2, Same, Whole), // urgent
];
/// RFC 7323's option, where it stands alone or first, as appendix A has it.
const TIMES: [Field; 2] = [
    field(Transport, 24, 4, Same, Distance),
    field(Transport, 28, 4, Same, Distance),
];
const TIMED_TCP: [Field; 10] = joined(&TIMES, &TCP);

const IPV4_FIELDS: [Field; 8] = joined(&[ID], &IPV4_SELDOM);
const IPV4_UDP: [Field; 12] = joined(&[ID], &joined::<11>(&UDP, &IPV4_SELDOM));
const IPV4_RTP: [Field; 16] = joined(&[ID], &joined::<15>(&RTP, &IPV4_SELDOM));
const IPV4_TCP: [Field; 16] = joined(&[ID], &joined::<15>(&TCP, &IPV4_SELDOM));
const IPV4_TIMED_TCP: [Field; 18] = joined(&[ID], &joined::<17>(&TIMED_TCP, &IPV4_SELDOM));
const IPV6_UDP: [Field; 9] = joined(&UDP, &IPV6_SELDOM);
const IPV6_RTP: [Field; 13] = joined(&RTP, &IPV6_SELDOM);
const IPV6_TCP: [Field; 13] = joined(&TCP, &IPV6_SELDOM);
const IPV6_TIMED_TCP: [Field; 15] = joined(&TIMED_TCP, &IPV6_SELDOM);

/// Fields of the longest list: bits of the mask.
pub const FIELDS_MAX: usize = IPV4_TIMED_TCP.len();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Above {
    /// Fragments, and what we do not know.
    Nothing,
    Udp,
    Rtp,
    Tcp,
    TimedTcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ip {
    None,
    V4,
    V6,
}

/// Where the headers of a frame stand, from its first byte after the EtherType, and how long they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    ip: Ip,
    above: Above,
    pub network_at: u8,
    pub transport_at: u8,
    /// Of all headers: what follows is payload.
    pub len: u8,
}

const UNKNOWN: Layout = Layout {
    ip: Ip::None,
    above: Above::Nothing,
    network_at: 0,
    transport_at: 0,
    len: 0,
};

impl Layout {
    /// Of what follows this EtherType.
    pub fn of(mut ether_type: u16, payload: &[u8]) -> Layout {
        let mut at = 0;
        for _ in 0..TAGS_MAX {
            if !matches!(ether_type, ether_type::VLAN | ether_type::QINQ) {
                break;
            }
            let Some(tag) = payload.get(at..at + TAG_LEN) else {
                return UNKNOWN;
            };
            ether_type = u16::from_be_bytes([tag[2], tag[3]]);
            at += TAG_LEN;
        }
        let headers = match ether_type {
            ether_type::IPV4 => of_ipv4(payload, at),
            ether_type::IPV6 => of_ipv6(payload, at),
            _ => None,
        };
        headers.unwrap_or(UNKNOWN)
    }

    /// The same with an RTP header behind UDP's; `None` where there is no room for one.
    pub fn with_rtp(self, payload_len: usize) -> Option<Layout> {
        let fits = payload_len >= usize::from(self.len) + usize::from(RTP_LEN);
        (self.above == Above::Udp && fits).then_some(Layout {
            above: Above::Rtp,
            len: self.len + RTP_LEN,
            ..self
        })
    }

    /// Whether what follows the UDP header of a frame may be RTP: version 2, and room for it.
    pub fn may_be_rtp(&self, payload: &[u8]) -> bool {
        let rtp = payload.get(usize::from(self.len)..).unwrap_or_default();
        self.above == Above::Udp && rtp.len() >= usize::from(RTP_LEN) && rtp[0] >> 6 == 2
    }

    pub fn fields(&self) -> &'static [Field] {
        match (self.ip, self.above) {
            (Ip::None, _) => &[],
            (Ip::V4, Above::Nothing) => &IPV4_FIELDS,
            (Ip::V4, Above::Udp) => &IPV4_UDP,
            (Ip::V4, Above::Rtp) => &IPV4_RTP,
            (Ip::V4, Above::Tcp) => &IPV4_TCP,
            (Ip::V4, Above::TimedTcp) => &IPV4_TIMED_TCP,
            (Ip::V6, Above::Nothing) => &IPV6_SELDOM,
            (Ip::V6, Above::Udp) => &IPV6_UDP,
            (Ip::V6, Above::Rtp) => &IPV6_RTP,
            (Ip::V6, Above::Tcp) => &IPV6_TCP,
            (Ip::V6, Above::TimedTcp) => &IPV6_TIMED_TCP,
        }
    }

    pub fn place(&self, field: &Field) -> usize {
        let base = match field.base {
            Network => usize::from(self.network_at),
            Transport => usize::from(self.transport_at),
            Rtp => usize::from(self.transport_at) + UDP_LEN,
        };
        base + usize::from(field.at)
    }

    pub fn is_ipv4(&self) -> bool {
        self.ip == Ip::V4
    }

    pub fn is_ip(&self) -> bool {
        self.ip != Ip::None
    }

    pub fn has_transport(&self) -> bool {
        self.above != Above::Nothing
    }

    pub fn is_tcp(&self) -> bool {
        matches!(self.above, Above::Tcp | Above::TimedTcp)
    }

    /// Where the addresses stand, both together.
    pub fn addresses(&self) -> core::ops::Range<usize> {
        let at = usize::from(self.network_at);
        match self.ip {
            Ip::None => 0..0,
            Ip::V4 => at + 12..at + 20,
            Ip::V6 => at + 8..at + 40,
        }
    }
}

fn of_ipv4(payload: &[u8], at: usize) -> Option<Layout> {
    let header = payload.get(at..at + IPV4_LEN)?;
    let len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || len < IPV4_LEN || payload.len() < at + len {
        return None;
    }
    let ip = Layout {
        ip: Ip::V4,
        above: Above::Nothing,
        network_at: at as u8,
        transport_at: (at + len) as u8,
        len: (at + len) as u8,
    };
    // Neither more fragments nor an offset: all of the transport header is there.
    let is_whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    Some(match is_whole {
        true => with_transport(ip, header[9], payload),
        false => ip,
    })
}

fn of_ipv6(payload: &[u8], at: usize) -> Option<Layout> {
    let header = payload.get(at..at + IPV6_LEN)?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let ip = Layout {
        ip: Ip::V6,
        above: Above::Nothing,
        network_at: at as u8,
        transport_at: (at + IPV6_LEN) as u8,
        len: (at + IPV6_LEN) as u8,
    };
    Some(with_transport(ip, header[6], payload))
}

fn with_transport(ip: Layout, next: u8, payload: &[u8]) -> Layout {
    let transport = &payload[usize::from(ip.transport_at)..];
    let (above, len) = match next {
        protocol::UDP => (Above::Udp, UDP_LEN),
        protocol::TCP if transport.len() >= TCP_LEN => {
            let len = usize::from(transport[12] >> 4) * 4;
            let is_timed =
                len >= TCP_LEN + 12 && transport.len() >= len && transport[20..24] == [1, 1, 8, 10];
            match is_timed {
                true => (Above::TimedTcp, len),
                false => (Above::Tcp, len),
            }
        }
        _ => return ip,
    };
    let shortest = match above {
        Above::Udp => UDP_LEN,
        _ => TCP_LEN,
    };
    if len < shortest || transport.len() < len {
        return ip;
    }
    Layout {
        above,
        len: ip.len + len as u8,
        ..ip
    }
}

const _: () = assert!(
    HEADERS_MAX < 256 && FIELDS_MAX <= 28,
    "a byte, and four bytes of mask"
);
