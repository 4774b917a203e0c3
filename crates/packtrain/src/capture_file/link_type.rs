//! What the packets of an interface begin with, by the numbers of <https://www.tcpdump.org/linktypes.html>.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkType(pub u32);

impl LinkType {
    pub const BSD_LOOPBACK: LinkType = LinkType(0);
    pub const ETHERNET: LinkType = LinkType(1);
    /// What libpcap calls DLT_RAW, in the files of those who wrote that down instead.
    pub const RAW_DLT: LinkType = LinkType(12);
    /// As OpenBSD has it.
    pub const RAW_DLT_OPENBSD: LinkType = LinkType(14);
    pub const RAW: LinkType = LinkType(101);
    pub const OPENBSD_LOOPBACK: LinkType = LinkType(108);
    pub const LINUX_COOKED: LinkType = LinkType(113);
    pub const IPV4: LinkType = LinkType(228);
    pub const IPV6: LinkType = LinkType(229);
    pub const LINUX_COOKED_V2: LinkType = LinkType(276);

    /// Of those that somebody who meant Ethernet is likely to have.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            LinkType::BSD_LOOPBACK => "BSD loopback",
            LinkType::ETHERNET => "Ethernet",
            LinkType::RAW_DLT | LinkType::RAW_DLT_OPENBSD | LinkType::RAW => "raw IP",
            LinkType::OPENBSD_LOOPBACK => "OpenBSD loopback",
            LinkType::LINUX_COOKED => "Linux cooked, captured on 'any'",
            LinkType::IPV4 => "raw IPv4",
            LinkType::IPV6 => "raw IPv6",
            LinkType::LINUX_COOKED_V2 => "Linux cooked v2, captured on 'any'",
            LinkType(9) => "PPP",
            LinkType(105) => "Wi-Fi",
            LinkType(119 | 127 | 163) => "Wi-Fi in monitor mode",
            LinkType(187 | 201) => "Bluetooth",
            LinkType(189 | 220 | 249) => "USB",
            LinkType(227) => "CAN",
            LinkType(239) => "netfilter log",
            LinkType(253) => "Linux netlink",
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
