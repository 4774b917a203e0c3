//! What the flood is made of: the mix of the NIMA paper's Fig. 3, and frames of one kind alone.

use std::net::Ipv4Addr;

use packtrain_proto::wire::ethernet::MacAddr;

use crate::linux::flood::{
    HEADER_LEN, MARK, Mix, Template, VARIES_ARP, VARIES_DESTINATION, VARIES_IPV4,
};

/// Of the host that gets the flood, and of the other one.
pub const HOST_MAC: MacAddr = MacAddr([0x02, 0x50, 0, 0, 0, 1]);
pub const WIRE_MAC: MacAddr = MacAddr([0x02, 0x50, 0, 0, 0, 2]);
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 200, 255, 1);
pub const WIRE: Ipv4Addr = Ipv4Addr::new(10, 200, 255, 2);
pub const PREFIX_LEN: u8 = 16;
/// That the host's program has joined.
pub const JOINED: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
/// Where it listens; nobody listens on the other one.
pub const OPEN_PORT: u16 = 9000;
pub const CLOSED_PORT: u16 = 9001;

/// As Ethernet counts, with the checksum: the sizes of the paper.
pub const SIZES: [usize; 3] = [64, 300, 1518];
const CHECKSUM_LEN: usize = 4;
const ETHERNET_LEN: usize = 14;
const IPV4_LEN: usize = 20;

const STATION: MacAddr = MacAddr([0x02, 0x53, 0, 0, 1, 0]);
const STATION_IPV4: Ipv4Addr = Ipv4Addr::new(10, 200, 1, 0);
const OTHER: MacAddr = MacAddr([0x02, 0x54, 0, 0, 0, 0]);
const OTHER_IPV4: Ipv4Addr = Ipv4Addr::new(10, 200, 2, 0);
const FOREIGN_GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 2);
const BROADCAST: MacAddr = MacAddr([0xff; 6]);

const IPV4_TYPE: u16 = 0x0800;
const ARP_TYPE: u16 = 0x0806;
const IPX_TYPE: u16 = 0x8137;
const LLDP_TYPE: u16 = 0x88cc;
const LOCAL_TYPE: u16 = 0x88b6;

/// What a program is handed of a frame of this size.
pub fn frame_len(size: usize) -> usize {
    size - CHECKSUM_LEN
}

/// What a packet of the mix is, as Fig. 3 calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UDP to the host's open port.
    Unicast,
    Promiscuous,
    /// Half of them of the group that the host has joined.
    JoinedGroup,
    ForeignGroup,
    Ipx,
    NetBeui,
    /// That asks for others.
    Arp,
    Broadcast,
    SpanningTree,
    Cdp,
    Lldp,
    /// A type that nobody knows, for others.
    Unknown,
    /// UDP to a port of the host's that is closed; not of the mix.
    ClosedPort,
}

impl Kind {
    /// Whether policy `host` lets it pass.
    pub fn passes(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Unicast | JoinedGroup | Ipx | Broadcast | SpanningTree | Lldp | ClosedPort
        )
    }
}

/// Fig. 3, in percent; what it calls "multicast" and "misc." in parts.
const FIGURE_3: [(Kind, usize); 12] = [
    (Kind::Unicast, 5),
    (Kind::Promiscuous, 60),
    (Kind::JoinedGroup, 1),
    (Kind::ForeignGroup, 1),
    (Kind::Ipx, 3),
    (Kind::NetBeui, 1),
    (Kind::Arp, 20),
    (Kind::Broadcast, 5),
    (Kind::SpanningTree, 1),
    (Kind::Cdp, 1),
    (Kind::Lldp, 1),
    (Kind::Unknown, 1),
];
/// The slots are filled in steps of as many, which has no divisor in common with 100: kinds are spread.
const STEP: usize = 37;

/// The paper's mix in frames of this size.
pub fn paper(size: usize) -> Mix {
    let kinds: Vec<u8> = FIGURE_3
        .iter()
        .zip(0..)
        .flat_map(|(&(_, share), number)| std::iter::repeat_n(number, share))
        .collect();
    let mut order = vec![0; kinds.len()];
    for (place, kind) in kinds.iter().enumerate() {
        order[place * STEP % kinds.len()] = *kind;
    }
    Mix {
        templates: FIGURE_3
            .iter()
            .map(|&(kind, _)| template(kind, size))
            .collect(),
        order,
    }
}

/// Nothing else.
pub fn only(kind: Kind, size: usize) -> Mix {
    Mix {
        templates: vec![template(kind, size)],
        order: vec![0],
    }
}

/// As the first of such a flood is, for who judges one alone.
pub fn whole_frame(kind: Kind, size: usize) -> Vec<u8> {
    let mut frame = template(kind, size).header.to_vec();
    if template(kind, size).varies & VARIES_IPV4 != 0 {
        let checksum = checksum(&frame[ETHERNET_LEN..ETHERNET_LEN + IPV4_LEN]);
        frame[ETHERNET_LEN + 10..ETHERNET_LEN + 12].copy_from_slice(&checksum.to_be_bytes());
    }
    frame.resize(frame_len(size), 0);
    frame
}

fn template(kind: Kind, size: usize) -> Template {
    let mut template = unmarked(kind, size);
    template.header[MARK] = kind.passes().into();
    template
}

fn unmarked(kind: Kind, size: usize) -> Template {
    let udp = |to: MacAddr, address, port, varies| Template {
        header: udp(to, address, port, size),
        varies: VARIES_IPV4 | varies,
    };
    let plain = |to: MacAddr, ether_type, bytes: &[u8], varies| Template {
        header: ethernet(to, ether_type, bytes),
        varies,
    };
    // Of 802.3: the length stands where the type would.
    let length = (frame_len(size) - ETHERNET_LEN) as u16;
    match kind {
        Kind::Unicast => udp(HOST_MAC, HOST, OPEN_PORT, 0),
        Kind::ClosedPort => udp(HOST_MAC, HOST, CLOSED_PORT, 0),
        Kind::Promiscuous => udp(OTHER, OTHER_IPV4, OPEN_PORT, VARIES_DESTINATION),
        Kind::JoinedGroup => udp(group(JOINED), JOINED, OPEN_PORT, 0),
        Kind::ForeignGroup => udp(group(FOREIGN_GROUP), FOREIGN_GROUP, OPEN_PORT, 0),
        Kind::Broadcast => udp(BROADCAST, Ipv4Addr::new(10, 200, 255, 255), 137, 0),
        Kind::Ipx => plain(BROADCAST, IPX_TYPE, &[0xff, 0xff], 0),
        Kind::NetBeui => {
            let functional = MacAddr([3, 0, 0, 0, 0, 1]);
            plain(functional, length, &[0xf0, 0xf0, 0x03], 0)
        }
        Kind::Arp => plain(BROADCAST, ARP_TYPE, &arp_request(), VARIES_ARP),
        Kind::SpanningTree => {
            let bridges = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);
            plain(bridges, length, &[0x42, 0x42, 0x03], 0)
        }
        Kind::Cdp => {
            let cisco = MacAddr([0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcc]);
            let snap = [0xaa, 0xaa, 0x03, 0, 0, 0x0c, 0x20, 0];
            plain(cisco, length, &snap, 0)
        }
        Kind::Lldp => plain(MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]), LLDP_TYPE, &[], 0),
        Kind::Unknown => plain(OTHER, LOCAL_TYPE, &[], VARIES_DESTINATION),
    }
}

/// RFC 1112, 6.4.
fn group(address: Ipv4Addr) -> MacAddr {
    let [_, b, c, d] = address.octets();
    MacAddr([0x01, 0x00, 0x5e, b & 0x7f, c, d])
}

fn ethernet(to: MacAddr, ether_type: u16, bytes: &[u8]) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..6].copy_from_slice(&to.0);
    header[6..12].copy_from_slice(&STATION.0);
    header[12..14].copy_from_slice(&ether_type.to_be_bytes());
    header[ETHERNET_LEN..ETHERNET_LEN + bytes.len()].copy_from_slice(bytes);
    header
}

/// Without a checksum of UDP, which IPv4 allows.
fn udp(to: MacAddr, address: Ipv4Addr, port: u16, size: usize) -> [u8; HEADER_LEN] {
    let len = (frame_len(size) - ETHERNET_LEN) as u16;
    let mut bytes = vec![0x45, 0];
    bytes.extend(len.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    bytes.extend(STATION_IPV4.octets());
    bytes.extend(address.octets());
    bytes.extend(0x8000_u16.to_be_bytes());
    bytes.extend(port.to_be_bytes());
    bytes.extend((len - IPV4_LEN as u16).to_be_bytes());
    ethernet(to, IPV4_TYPE, &bytes)
}

fn arp_request() -> Vec<u8> {
    let mut bytes = vec![0, 1, 0x08, 0, 6, 4, 0, 1];
    bytes.extend(STATION.0);
    bytes.extend(STATION_IPV4.octets());
    bytes.extend([0; 6]);
    bytes.extend([10, 200, 0x80, 7]);
    bytes
}

/// RFC 1071.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let mut sum: u32 = words
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use packtrain_proto::filter::{Host, Interface, Policy, decide};

    use super::*;

    #[test]
    fn the_mix_is_that_of_the_papers_figure_3() {
        let share = |kinds: &[Kind]| {
            let of = FIGURE_3.iter().filter(|(kind, _)| kinds.contains(kind));
            of.map(|(_, share)| share).sum::<usize>()
        };
        assert_eq!(share(&[Kind::Unicast]), 5);
        assert_eq!(share(&[Kind::Promiscuous]), 60);
        assert_eq!(share(&[Kind::JoinedGroup, Kind::ForeignGroup]), 2);
        assert_eq!(share(&[Kind::Ipx]), 3);
        assert_eq!(share(&[Kind::NetBeui]), 1);
        assert_eq!(share(&[Kind::Arp]), 20);
        assert_eq!(share(&[Kind::Broadcast]), 5);
        let rest = [Kind::SpanningTree, Kind::Cdp, Kind::Lldp, Kind::Unknown];
        assert_eq!(share(&rest), 4);
        let mix = paper(64);
        for (number, (kind, share)) in FIGURE_3.iter().enumerate() {
            let times = mix
                .order
                .iter()
                .filter(|&&slot| usize::from(slot) == number);
            assert_eq!(times.count(), *share, "{kind:?}");
        }
        // No kind stands in a row of its own.
        let longest = mix.order.chunk_by(|a, b| a == b).map(<[u8]>::len).max();
        assert!(longest < Some(12), "{longest:?}");
    }

    /// Whether policy `host` lets it pass is what the model says.
    #[test]
    fn what_is_marked_is_what_a_filter_lets_pass() {
        let host = Host {
            interface: Interface {
                unicast: vec![HOST_MAC],
                groups: vec![group(JOINED)],
                addresses: vec![HOST.into()],
                ..Interface::default()
            },
            local: vec![format!("{HOST}/32").parse().unwrap()],
            ..Host::default()
        };
        let mut passes = 0;
        for (kind, share) in FIGURE_3 {
            let frame = whole_frame(kind, 64);
            let decision = decide(&frame, false, &host, Policy::Host, false);
            assert_eq!(kind.passes(), !decision.is_drop(), "{kind:?}: {decision:?}");
            assert_eq!(frame[MARK] != 0, kind.passes(), "{kind:?}");
            passes += if kind.passes() { share } else { 0 };
        }
        assert_eq!(passes, 16);
    }

    #[test]
    fn a_whole_frame_has_the_papers_size_and_a_checksum_that_is_right() {
        for size in SIZES {
            let frame = whole_frame(Kind::Unicast, size);
            assert_eq!(frame.len() + 4, size);
            assert_eq!(checksum(&frame[14..34]), 0, "{size}");
            let len = u16::from_be_bytes([frame[16], frame[17]]);
            assert_eq!(usize::from(len) + 18, size);
        }
        let arp = whole_frame(Kind::Arp, 64);
        assert_eq!(arp[12..14], [0x08, 0x06]);
        // It asks for 10.200.128.7, which is nobody's.
        assert_eq!(arp[38..42], [10, 200, 0x80, 7]);
    }
}
