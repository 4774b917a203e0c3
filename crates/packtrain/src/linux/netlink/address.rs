//! IP addresses with their prefixes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::message::{Attributes, u32_at, value_u32};

/// Bytes of `ifaddrmsg`: family (1), prefix length (1), flags (1), scope (1), index (4).
pub(super) const IFADDR_LEN: usize = 8;

/// An address and the length of its network's prefix, as in `10.9.0.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IpPrefix {
    pub address: IpAddr,
    pub prefix_len: u8,
}

/// Why a text is no address with a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IpPrefixError {
    #[error("{0:?} has no prefix length: write it as in 10.9.0.1/24 or fd00::1/64")]
    NoPrefix(String),
    #[error("{0:?} is no IPv4 or IPv6 address")]
    Address(String),
    #[error("a prefix length here is a number from 0 to {max}: {text:?}")]
    PrefixLen { text: String, max: u8 },
}

impl FromStr for IpPrefix {
    type Err = IpPrefixError;

    fn from_str(text: &str) -> Result<IpPrefix, IpPrefixError> {
        let (address, prefix_len) = text
            .split_once('/')
            .ok_or_else(|| IpPrefixError::NoPrefix(text.to_owned()))?;
        let address: IpAddr = address
            .parse()
            .map_err(|_| IpPrefixError::Address(address.to_owned()))?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        // Digits alone: `u8::from_str` would take "+24" as well.
        let digits = prefix_len.bytes().all(|byte| byte.is_ascii_digit());
        match prefix_len.parse() {
            Ok(prefix_len) if digits && prefix_len <= max => Ok(IpPrefix {
                address,
                prefix_len,
            }),
            _ => Err(IpPrefixError::PrefixLen {
                text: prefix_len.to_owned(),
                max,
            }),
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    pub ifindex: u32,
    pub prefix: IpPrefix,
    /// Duplicate address detection has not ended: it is not used yet.
    pub tentative: bool,
    /// Valid on this link alone (`fe80::…`, `169.254.…` as configured).
    pub link_scope: bool,
}

impl InterfaceAddress {
    /// From the payload of a `RTM_NEWADDR` or `RTM_DELADDR`.
    pub(super) fn parse(payload: &[u8]) -> Option<InterfaceAddress> {
        let header = payload.get(..IFADDR_LEN)?;
        let family = i32::from(header[0]);
        let mut flags = u32::from(header[2]);
        let mut address = None;
        let mut local = None;
        for (kind, value) in Attributes(&payload[IFADDR_LEN..]) {
            match kind {
                libc::IFA_ADDRESS => address = ip_address(family, value),
                libc::IFA_LOCAL => local = ip_address(family, value),
                libc::IFA_FLAGS => flags = value_u32(value)?,
                _ => {}
            }
        }
        // Where both are there, IFA_ADDRESS is the other end of a point-to-point interface.
        let prefix = IpPrefix {
            address: local.or(address)?,
            prefix_len: header[1],
        };
        Some(InterfaceAddress {
            ifindex: u32_at(header, 4),
            prefix,
            tentative: flags & libc::IFA_F_TENTATIVE != 0,
            link_scope: header[3] == libc::RT_SCOPE_LINK,
        })
    }
}

fn ip_address(family: i32, value: &[u8]) -> Option<IpAddr> {
    match family {
        libc::AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into()),
        libc::AF_INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_reads_back_as_it_is_written() {
        for text in [
            "10.9.0.1/24",
            "0.0.0.0/0",
            "10.9.0.1/32",
            "fd00::1/64",
            "::/0",
            "fe80::1/128",
        ] {
            assert_eq!(text.parse::<IpPrefix>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_prefix_says_what_is_wrong_with_it() {
        let cases = [
            ("10.9.0.1", "no prefix length"),
            ("10.9.0/24", "no IPv4 or IPv6 address"),
            ("/24", "no IPv4 or IPv6 address"),
            ("10.9.0.1/33", "from 0 to 32"),
            ("10.9.0.1/", "from 0 to 32"),
            ("10.9.0.1/+24", "from 0 to 32"),
            ("10.9.0.1/24/1", "from 0 to 32"),
            ("fd00::1/129", "from 0 to 128"),
        ];
        for (text, words) in cases {
            let error = text.parse::<IpPrefix>().expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
