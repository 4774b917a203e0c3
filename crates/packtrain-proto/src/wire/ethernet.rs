//! Ethernet II: addresses, EtherTypes, the 14 bytes before everything.
//!
//! ```text
//!  0               6              12      14
//! +---------------+---------------+-------+----------
//! |  destination  |    source     | type  | payload …
//! +---------------+---------------+-------+----------
//! ```

use core::fmt;
use core::str::FromStr;

use serde::{Serialize, Serializer};

/// Bytes of an Ethernet header.
pub const HEADER_LEN: usize = 14;

/// An EtherType, or an 802.3 length when below 1536.
pub mod ether_type {
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    pub const VLAN: u16 = 0x8100;
    pub const QINQ: u16 = 0x88a8;
    pub const IPV6: u16 = 0x86dd;
    /// IEEE 802 local experimental EtherType 1: packtrain's own (docs/wire-format.md).
    pub const PACKTRAIN: u16 = 0x88b5;
}

/// Shortest frame, without FCS (IEEE 802.3, section 4.4.2); shorter ones are padded.
pub const FRAME_LEN_MIN: usize = 60;
/// FCS, preamble and start delimiter, and the gap between frames.
const AROUND_LEN: usize = 4 + 8 + 12;

/// Bytes that a wire spends for a frame of `len`.
#[inline]
pub fn on_wire(len: usize) -> usize {
    len.max(FRAME_LEN_MIN) + AROUND_LEN
}

/// How many of them are padding.
#[inline]
pub fn padding(len: usize) -> usize {
    FRAME_LEN_MIN.saturating_sub(len)
}

/// A 48-bit MAC address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// Where hellos go: a locally administered group address of packtrain's own.
    pub const HELLO: MacAddr = MacAddr([0x03, 0x70, 0x74, 0x00, 0x00, 0x01]);

    pub fn from_slice(bytes: &[u8]) -> MacAddr {
        let mut octets = [0; 6];
        octets.copy_from_slice(&bytes[..6]);
        MacAddr(octets)
    }

    /// Broadcast or multicast.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// A group that no bridge forwards (IEEE 802.1Q, 8.6.3): LLDP, STP, EAPOL, pause frames.
    pub const fn is_for_next_port(self) -> bool {
        matches!(self.0, [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f])
    }

    /// Locally administered.
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 == 2
    }

    pub const fn is_zero(self) -> bool {
        matches!(self.0, [0, 0, 0, 0, 0, 0])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a MAC address has six pairs of hexadecimal digits, as in 02:00:00:00:00:01")]
pub struct MacAddrError;

impl FromStr for MacAddr {
    type Err = MacAddrError;
    fn from_str(text: &str) -> Result<MacAddr, MacAddrError> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().filter(|p| p.len() == 2).ok_or(MacAddrError)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| MacAddrError)?;
        }
        if parts.next().is_some() {
            Err(MacAddrError)
        } else {
            Ok(MacAddr(octets))
        }
    }
}

impl Serialize for MacAddr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The addresses and type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub destination: MacAddr,
    pub source: MacAddr,
    pub ether_type: u16,
}

impl Header {
    /// `None` for a runt: fewer bytes than a header has.
    pub fn parse(frame: &[u8]) -> Option<Header> {
        let bytes = frame.get(..HEADER_LEN)?;
        Some(Header {
            destination: MacAddr::from_slice(&bytes[0..6]),
            source: MacAddr::from_slice(&bytes[6..12]),
            ether_type: u16::from_be_bytes([bytes[12], bytes[13]]),
        })
    }

    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..6].copy_from_slice(&self.destination.0);
        bytes[6..12].copy_from_slice(&self.source.0);
        bytes[12..14].copy_from_slice(&self.ether_type.to_be_bytes());
        bytes
    }
}
