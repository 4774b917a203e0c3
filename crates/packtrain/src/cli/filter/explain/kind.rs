//! What a frame carries, as the NIMA paper's tables tell protocols apart (section 3).

use packtrain_proto::wire::ethernet::{MacAddr, ether_type};
use packtrain_proto::wire::packet::{self, Packet};

/// What stands where the EtherType would is a length below this (IEEE 802.3, 3.2.6).
const ETHER_TYPE_MIN: u16 = 1536;
const LLDP: u16 = 0x88cc;
const EAPOL: u16 = 0x888e;
const IPX: [u16; 2] = [0x8137, 0x8138];
/// IEEE 802.1D, 7.12.3.
const BRIDGES: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0]);

macro_rules! named {
    ($(#[$doc:meta])* $name:ident: $($variant:ident = $key:literal $words:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($variant,)* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// As programs read it.
            pub fn key(self) -> &'static str {
                match self { $($name::$variant => $key,)* }
            }

            /// As a person reads it.
            pub fn words(self) -> &'static str {
                match self { $($name::$variant => $words,)* }
            }
        }
    };
}

named! {
    /// In the order of the paper's table, with what has come since.
    Protocol:
    Ipv4 = "ipv4" "IPv4",
    Ipv6 = "ipv6" "IPv6",
    Ipx = "ipx" "IPX",
    Arp = "arp" "ARP",
    SpanningTree = "spanning_tree" "spanning tree",
    NetBeui = "netbeui" "NetBEUI",
    Cdp = "cdp" "CDP",
    Vtp = "vtp" "Cisco VTP",
    Edp = "edp" "EDP",
    Lldp = "lldp" "LLDP",
    Eapol = "eapol" "EAPOL",
    Packtrain = "packtrain" "packtrain",
    Other = "other" "other",
}

named! {
    /// Over IP; others are not told apart.
    Transport:
    Tcp = "tcp" "TCP",
    Udp = "udp" "UDP",
    Icmp = "icmp" "ICMP",
    Igmp = "igmp" "IGMP",
    Icmp6 = "icmp6" "ICMPv6",
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub protocol: Protocol,
    /// Of IP alone.
    pub transport: Option<Transport>,
}

impl Protocol {
    /// The transports that have a row of their own below it.
    pub fn transports(self) -> &'static [Transport] {
        match self {
            Protocol::Ipv4 => &[
                Transport::Tcp,
                Transport::Udp,
                Transport::Icmp,
                Transport::Igmp,
            ],
            Protocol::Ipv6 => &[Transport::Tcp, Transport::Udp, Transport::Icmp6],
            _ => &[],
        }
    }
}

impl Transport {
    /// In the header of IP (Protocol Numbers, IANA).
    fn number(self) -> u8 {
        match self {
            Transport::Icmp => 1,
            Transport::Igmp => 2,
            Transport::Tcp => packet::protocol::TCP,
            Transport::Udp => packet::protocol::UDP,
            Transport::Icmp6 => 58,
        }
    }
}

impl Kind {
    pub fn of(frame: &[u8]) -> Kind {
        let protocol = protocol(frame);
        let transport = match protocol {
            Protocol::Ipv4 | Protocol::Ipv6 => transport(frame),
            _ => None,
        };
        let has_row = |transport: &Transport| protocol.transports().contains(transport);
        Kind {
            protocol,
            transport: transport.filter(has_row),
        }
    }
}

/// What is too short for an EtherType is another one.
fn protocol(frame: &[u8]) -> Protocol {
    let Ok(tags) = packet::behind_tags(frame) else {
        return Protocol::Other;
    };
    match tags.ether_type {
        ether_type::IPV4 => Protocol::Ipv4,
        ether_type::IPV6 => Protocol::Ipv6,
        ether_type::ARP => Protocol::Arp,
        ether_type::PACKTRAIN => Protocol::Packtrain,
        LLDP => Protocol::Lldp,
        EAPOL => Protocol::Eapol,
        other if IPX.contains(&other) => Protocol::Ipx,
        length if length < ETHER_TYPE_MIN => {
            let destination = MacAddr::from_slice(frame);
            behind_length(destination, &frame[tags.network_start..])
        }
        _ => Protocol::Other,
    }
}

/// Logical link control (IEEE 802.2), or what Novell put in its place.
fn behind_length(destination: MacAddr, payload: &[u8]) -> Protocol {
    match payload {
        // IPX's checksum, which is not used.
        [0xff, 0xff, ..] | [0xe0, 0xe0, ..] => Protocol::Ipx,
        [0xf0, 0xf0, ..] => Protocol::NetBeui,
        [0x42, 0x42, ..] if destination == BRIDGES => Protocol::SpanningTree,
        [0xaa, 0xaa, 0x03, a, b, c, d, e, ..] => {
            match ([*a, *b, *c], u16::from_be_bytes([*d, *e])) {
                ([0, 0, 0], ether_type) if IPX.contains(&ether_type) => Protocol::Ipx,
                ([0, 0, 0x0c], 0x2000) => Protocol::Cdp,
                ([0, 0, 0x0c], 0x2003) => Protocol::Vtp,
                // One tree for each VLAN.
                ([0, 0, 0x0c], 0x010b) => Protocol::SpanningTree,
                ([0, 0xe0, 0x2b], 0x00bb) => Protocol::Edp,
                _ => Protocol::Other,
            }
        }
        _ => Protocol::Other,
    }
}

/// Of a frame that ends within its headers, what the first of them says.
fn transport(frame: &[u8]) -> Option<Transport> {
    let number = match Packet::parse(frame).ok().and_then(|packet| packet.ip) {
        Some(ip) => ip.protocol,
        None => {
            let tags = packet::behind_tags(frame).ok()?;
            let at = match tags.ether_type {
                ether_type::IPV4 => packet::field::IPV4_PROTOCOL,
                _ => packet::field::IPV6_NEXT_HEADER,
            };
            *frame.get(tags.network_start + at)?
        }
    };
    let mut all = Transport::ALL.iter().copied();
    all.find(|transport| transport.number() == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(destination: [u8; 6], behind_addresses: &[u8]) -> Vec<u8> {
        let mut frame = [destination, [2, 0, 0, 0, 0, 1]].concat();
        frame.extend(behind_addresses);
        frame.resize(60.max(frame.len()), 0);
        frame
    }

    fn protocol_of(behind_addresses: &[u8]) -> Protocol {
        Kind::of(&frame(BRIDGES.0, behind_addresses)).protocol
    }

    #[test]
    fn protocols_are_known_by_ether_type_by_link_control_and_by_its_extension() {
        for (bytes, expected) in [
            (&[0x08, 0x06][..], Protocol::Arp),
            (&[0x81, 0x00, 0, 5, 0x08, 0x06], Protocol::Arp),
            (&[0x81, 0x37], Protocol::Ipx),
            (&[0x81, 0x38], Protocol::Ipx),
            (&[0, 30, 0xff, 0xff], Protocol::Ipx),
            (&[0, 30, 0xe0, 0xe0, 3], Protocol::Ipx),
            (&[0, 30, 0xaa, 0xaa, 3, 0, 0, 0, 0x81, 0x37], Protocol::Ipx),
            (&[0, 38, 0x42, 0x42, 3], Protocol::SpanningTree),
            (
                &[0, 50, 0xaa, 0xaa, 3, 0, 0, 12, 1, 0x0b],
                Protocol::SpanningTree,
            ),
            (&[0, 30, 0xf0, 0xf0, 3], Protocol::NetBeui),
            (&[0, 30, 0xaa, 0xaa, 3, 0, 0, 12, 0x20, 0], Protocol::Cdp),
            (&[0, 30, 0xaa, 0xaa, 3, 0, 0, 12, 0x20, 3], Protocol::Vtp),
            (
                &[0, 30, 0xaa, 0xaa, 3, 0, 0xe0, 0x2b, 0, 0xbb],
                Protocol::Edp,
            ),
            (&[0, 30, 0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0], Protocol::Other),
            (&[0x88, 0xcc], Protocol::Lldp),
            (&[0x88, 0x8e], Protocol::Eapol),
            (&[0x88, 0xb5], Protocol::Packtrain),
            (&[0x12, 0x34], Protocol::Other),
        ] {
            assert_eq!(protocol_of(bytes), expected, "{bytes:x?}");
        }
        let elsewhere = frame([2, 0, 0, 0, 0, 2], &[0, 38, 0x42, 0x42, 3]);
        assert_eq!(Kind::of(&elsewhere).protocol, Protocol::Other);
    }

    #[test]
    fn ip_says_its_transport_also_where_that_is_cut_off() {
        let mut ipv4 = vec![0x08, 0x00, 0x45, 0, 0, 40];
        ipv4.resize(2 + 20, 0);
        ipv4[2 + 9] = 6;
        let whole = frame([2; 6], &ipv4);
        for len in [24, 34, whole.len()] {
            let kind = Kind::of(&whole[..len]);
            assert_eq!(kind.transport, Some(Transport::Tcp), "{len}");
        }
        assert_eq!(Kind::of(&whole[..23]).transport, None);
        // Hop-by-hop options, and MLD behind them.
        let mut ipv6 = vec![0x86, 0xdd, 0x60, 0, 0, 0, 0, 16, 0, 1];
        ipv6.resize(2 + 40, 0);
        ipv6.extend([58, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0, 0, 0, 0, 0]);
        let kind = Kind::of(&frame([0x33; 6], &ipv6));
        assert_eq!(kind.protocol, Protocol::Ipv6);
        assert_eq!(kind.transport, Some(Transport::Icmp6));
    }

    #[test]
    fn a_frame_cut_at_any_byte_is_of_some_kind() {
        for behind in [
            &[0, 30, 0xaa, 0xaa, 3, 0, 0, 12, 0x20, 0][..],
            &[0x86, 0xdd],
        ] {
            let whole = frame(BRIDGES.0, behind);
            for len in 0..whole.len() {
                Kind::of(&whole[..len]);
            }
            assert_eq!(Kind::of(&whole[..13]).protocol, Protocol::Other);
        }
    }
}
