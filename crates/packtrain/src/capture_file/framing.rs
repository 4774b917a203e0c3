//! Packets of interfaces that are not Ethernet's, as the Ethernet frames that they would be.
//!
//! What a link has instead of an Ethernet header goes, and one of 14 bytes takes its place: its EtherType is what
//! that says or what the packet begins with, its addresses are those that are known. VLAN tags within the packet stay.
//! Nothing is padded: frames may be shorter than Ethernet's 60 bytes. Where the file does not know an address,
//!
//! | it is | for |
//! |---|---|
//! | `02:00:00:00:00:01` | the host that captured |
//! | `02:00:00:00:00:02` | whoever is at the other end |
//! | `02:00:00:00:00:03` | another station, which another than us sends to |
//! | that of the group | IPv4 and IPv6 multicast (RFC 1112, 6.4; RFC 2464, 7), limited broadcast |
//! | `03:00:00:00:00:00` | other groups |
//!
//! ```text
//!  Linux cooked:     packet type (2), hardware type (2), length of the address (2), source (8), protocol (2)
//!  Linux cooked v2:  protocol (2), unused (2), interface (4), hardware type (2), packet type (1),
//!                    length of the address (1), source (8)
//!  loopback:         address family (4), in the byte order of that host; OpenBSD: big-endian
//! ```

use super::byte_order::ByteOrder;
use super::ends::{Direction, Ends, IpAddresses};
use super::error::Cause;
use super::link_type::LinkType;

type MacAddr = [u8; 6];

const HERE: MacAddr = [2, 0, 0, 0, 0, 1];
const THERE: MacAddr = [2, 0, 0, 0, 0, 2];
const ELSEWHERE: MacAddr = [2, 0, 0, 0, 0, 3];
const SOME_GROUP: MacAddr = [3, 0, 0, 0, 0, 0];
const BROADCAST: MacAddr = [0xff; 6];

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// What stands for a type is a length below it.
const ETHERTYPE_MIN: u16 = 0x0600;
const LENGTH_MAX: usize = 1500;

/// How a packet lies in what was captured of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Ethernet,
    Cooked,
    CookedV2,
    /// 4 or 6, by its first four bits.
    Ip,
    Ipv4,
    Ipv6,
    Loopback,
}

/// What is to be put before a packet, in the place of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub ethernet: [u8; 14],
    pub replaces: usize,
}

impl Framing {
    pub fn of(link_type: LinkType) -> Result<Framing, Cause> {
        Ok(match link_type {
            LinkType::ETHERNET => Framing::Ethernet,
            LinkType::LINUX_COOKED => Framing::Cooked,
            LinkType::LINUX_COOKED_V2 => Framing::CookedV2,
            LinkType::RAW | LinkType::RAW_DLT | LinkType::RAW_DLT_OPENBSD => Framing::Ip,
            LinkType::IPV4 => Framing::Ipv4,
            LinkType::IPV6 => Framing::Ipv6,
            LinkType::BSD_LOOPBACK | LinkType::OPENBSD_LOOPBACK => Framing::Loopback,
            other => return Err(Cause::NotEthernet(other)),
        })
    }

    /// `None` for a frame as it is. Of a packet of `len` bytes these were captured.
    pub fn header(
        self,
        packet: &[u8],
        len: usize,
        direction: Option<Direction>,
        ends: &mut Ends,
    ) -> Result<Option<Header>, Cause> {
        match self {
            Framing::Ethernet => return Ok(None),
            Framing::Cooked => Cooked::v1(packet)?.header(packet, len),
            Framing::CookedV2 => Cooked::v2(packet)?.header(packet, len),
            Framing::Ip => ip(packet, 0, version(packet)?, direction, ends),
            Framing::Ipv4 => ip(packet, 0, ETHERTYPE_IPV4, direction, ends),
            Framing::Ipv6 => ip(packet, 0, ETHERTYPE_IPV6, direction, ends),
            Framing::Loopback => ip(packet, 4, family(packet)?, direction, ends),
        }
        .map(Some)
    }
}

fn header(destination: MacAddr, source: MacAddr, ethertype: u16, replaces: usize) -> Header {
    let mut ethernet = [0; 14];
    ethernet[..6].copy_from_slice(&destination);
    ethernet[6..12].copy_from_slice(&source);
    ethernet[12..].copy_from_slice(&ethertype.to_be_bytes());
    Header { ethernet, replaces }
}

/// On a link that has two ends, and says nothing of them.
fn ip(
    packet: &[u8],
    replaces: usize,
    ethertype: u16,
    direction: Option<Direction>,
    ends: &mut Ends,
) -> Result<Header, Cause> {
    let addresses = IpAddresses::of(ethertype, &packet[replaces..]);
    let direction = direction.unwrap_or_else(|| ends.direction(addresses.as_ref()));
    let (destination, source) = match direction {
        Direction::Out => (THERE, HERE),
        Direction::In => (HERE, THERE),
    };
    let destination = addresses.and_then(|it| it.group()).unwrap_or(destination);
    Ok(header(destination, source, ethertype, replaces))
}

fn version(packet: &[u8]) -> Result<u16, Cause> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => Ok(ETHERTYPE_IPV4),
        Some(6) => Ok(ETHERTYPE_IPV6),
        Some(other) => malformed(format!("IP of version {other}")),
        None => malformed("nothing of it was captured, its version neither"),
    }
}

fn family(packet: &[u8]) -> Result<u16, Cause> {
    let Some(family) = packet.first_chunk() else {
        return malformed("its address family was not captured");
    };
    // Families are small numbers, which tells the byte order.
    let family = u32::from_le_bytes(*family).min(u32::from_be_bytes(*family));
    match family {
        2 => Ok(ETHERTYPE_IPV4),
        // Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS.
        10 | 23 | 24 | 28 | 30 => Ok(ETHERTYPE_IPV6),
        other => Err(Cause::NoFrame(format!(
            "a loopback packet of address family {other}"
        ))),
    }
}

/// What Linux says of a packet that it gives without its link's header.
#[derive(Clone, Copy, Debug)]
struct Cooked {
    len: usize,
    packet_type: u16,
    hardware: u16,
    address: Option<MacAddr>,
    protocol: u16,
}

/// To whom a packet goes (`PACKET_HOST` and so on).
mod packet_type {
    pub const HOST: u16 = 0;
    pub const BROADCAST: u16 = 1;
    pub const MULTICAST: u16 = 2;
    pub const OTHER_HOST: u16 = 3;
    pub const OUTGOING: u16 = 4;
}

impl Cooked {
    fn v1(packet: &[u8]) -> Result<Cooked, Cause> {
        const BYTES: usize = 16;
        let word = Cooked::words(packet, BYTES)?;
        Ok(Cooked {
            len: BYTES,
            packet_type: word(0),
            hardware: word(2),
            address: Cooked::address(word(4), &packet[6..12]),
            protocol: word(14),
        })
    }

    fn v2(packet: &[u8]) -> Result<Cooked, Cause> {
        const BYTES: usize = 20;
        let word = Cooked::words(packet, BYTES)?;
        Ok(Cooked {
            len: BYTES,
            packet_type: packet[10].into(),
            hardware: word(8),
            address: Cooked::address(packet[11].into(), &packet[12..18]),
            protocol: word(0),
        })
    }

    fn words(packet: &[u8], bytes: usize) -> Result<impl Fn(usize) -> u16, Cause> {
        match packet.len() < bytes {
            true => malformed(format!(
                "{} bytes of it were captured, of a header of {bytes}",
                packet.len()
            )),
            false => Ok(|at| ByteOrder::Big.u16(packet, at)),
        }
    }

    fn address(len: u16, bytes: &[u8]) -> Option<MacAddr> {
        (len == 6).then(|| bytes.try_into().expect("six bytes"))
    }

    fn header(self, packet: &[u8], len: usize) -> Result<Header, Cause> {
        let ethertype = self.ethertype(len.saturating_sub(self.len))?;
        let group = || IpAddresses::of(ethertype, &packet[self.len..]).and_then(|it| it.group());
        let (destination, source) = match self.packet_type {
            packet_type::HOST => (HERE, THERE),
            packet_type::BROADCAST => (BROADCAST, THERE),
            packet_type::MULTICAST => (group().unwrap_or(SOME_GROUP), THERE),
            packet_type::OTHER_HOST => (ELSEWHERE, THERE),
            packet_type::OUTGOING => (group().unwrap_or(THERE), HERE),
            other => return malformed(format!("a cooked packet of type {other}")),
        };
        let source = self.address.unwrap_or(source);
        Ok(header(destination, source, ethertype, self.len))
    }

    fn ethertype(self, payload_len: usize) -> Result<u16, Cause> {
        // Of these the protocol is something else, or nothing.
        if let Some(name) = match self.hardware {
            280 => Some("CAN"),
            770 => Some("frame relay"),
            801..=803 => Some("Wi-Fi in monitor mode"),
            824 => Some("netlink"),
            _ => None,
        } {
            return Err(Cause::NoFrame(format!("a cooked packet of {name}")));
        }
        match self.protocol {
            // Novell's frames and those with LLC have a length.
            1 | 4 if payload_len <= LENGTH_MAX => Ok(payload_len as u16),
            ETHERTYPE_MIN.. => Ok(self.protocol),
            other => Err(Cause::NoFrame(format!(
                "a cooked packet of protocol {other:#06x}, of hardware type {}",
                self.hardware
            ))),
        }
    }
}

fn malformed<T>(what: impl Into<String>) -> Result<T, Cause> {
    Err(Cause::Malformed(what.into()))
}
