//! What the frames of an interface begin with, by the numbers of <https://www.tcpdump.org/linktypes.html>.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkType(pub u32);

impl LinkType {
    pub const ETHERNET: LinkType = LinkType(1);

    /// Of those that somebody who meant Ethernet is likely to have.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "BSD loopback",
            1 => "Ethernet",
            9 => "PPP",
            12 | 14 | 101 => "raw IP",
            105 => "Wi-Fi",
            108 => "OpenBSD loopback",
            113 => "Linux cooked, captured on 'any'",
            119 | 127 | 163 => "Wi-Fi in monitor mode",
            187 | 201 => "Bluetooth",
            189 | 220 | 249 => "USB",
            227 => "CAN",
            228 => "raw IPv4",
            229 => "raw IPv6",
            239 => "netfilter log",
            253 => "Linux netlink",
            276 => "Linux cooked v2, captured on 'any'",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        match self.name() {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}
