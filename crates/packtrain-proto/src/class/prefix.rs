//! Networks as people write them: `10.0.0.0/8`, `fd00::/8`, or a single address.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use crate::wire::packet::IpVersion;

/// An IP address as a number. An IPv4 address stands in the last 32 bits, and the rest is 0.
pub fn number_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// All addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    version: IpVersion,
    /// Nothing is set behind the prefix.
    address: u128,
    mask: u128,
}

/// Why a text is no prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    #[error("{0:?} is no IP address")]
    Address(String),
    #[error("{text:?} is no prefix length: a number from 0 to {max}")]
    Length { text: String, max: u32 },
    #[error("{given} has bits behind its prefix: write it as {meant}")]
    HostBits { given: String, meant: Prefix },
}

impl Prefix {
    pub fn version(&self) -> IpVersion {
        self.version
    }

    /// The number of an address and the bits of it that count.
    pub fn address_and_mask(&self) -> (u128, u128) {
        (self.address, self.mask)
    }

    #[inline]
    pub fn contains(&self, version: IpVersion, address: u128) -> bool {
        self.version == version && address & self.mask == self.address
    }

    fn bits(version: IpVersion) -> u32 {
        match version {
            IpVersion::V4 => 32,
            IpVersion::V6 => 128,
        }
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Prefix, PrefixError> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| PrefixError::Address(address.into()))?;
        let version = match address {
            IpAddr::V4(_) => IpVersion::V4,
            IpAddr::V6(_) => IpVersion::V6,
        };
        let max = Prefix::bits(version);
        let len = match len {
            None => max,
            Some(len) => {
                let number = len.parse().ok().filter(|&number| number <= max);
                number.ok_or_else(|| PrefixError::Length {
                    text: len.into(),
                    max,
                })?
            }
        };
        let host_bits = max - len;
        let all = u128::MAX >> (128 - max);
        let mask = all & u128::MAX.checked_shl(host_bits).unwrap_or(0);
        let number = number_of(address);
        let prefix = Prefix {
            version,
            address: number & mask,
            mask,
        };
        if number != prefix.address {
            return Err(PrefixError::HostBits {
                given: text.into(),
                meant: prefix,
            });
        }
        Ok(prefix)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = match self.version {
            IpVersion::V4 => IpAddr::V4(Ipv4Addr::from_bits(self.address as u32)),
            IpVersion::V6 => IpAddr::V6(Ipv6Addr::from_bits(self.address)),
        };
        let len = self.mask.count_ones();
        if len == Prefix::bits(self.version) {
            write!(f, "{address}")
        } else {
            write!(f, "{address}/{len}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_comes_back() {
        for text in [
            "10.0.0.0/8",
            "10.9.0.1",
            "0.0.0.0/0",
            "fd00::/8",
            "::/0",
            "fe80::1",
        ] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!(
            "10.9.0.1/32".parse::<Prefix>().unwrap().to_string(),
            "10.9.0.1"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        assert_eq!(error("10.0.0/8"), "\"10.0.0\" is no IP address");
        assert_eq!(
            error("10.0.0.0/33"),
            "\"33\" is no prefix length: a number from 0 to 32"
        );
        assert_eq!(
            error("fd00::/x"),
            "\"x\" is no prefix length: a number from 0 to 128"
        );
        assert_eq!(
            error("10.9.0.1/24"),
            "10.9.0.1/24 has bits behind its prefix: write it as 10.9.0.0/24"
        );
    }

    #[test]
    fn an_address_is_inside_by_its_first_bits_and_its_version() {
        let inside = |prefix: &str, address: &str| {
            let address: IpAddr = address.parse().unwrap();
            let version = if address.is_ipv4() {
                IpVersion::V4
            } else {
                IpVersion::V6
            };
            prefix
                .parse::<Prefix>()
                .unwrap()
                .contains(version, number_of(address))
        };
        assert!(inside("10.0.0.0/8", "10.255.3.4"));
        assert!(!inside("10.0.0.0/8", "11.0.0.1"));
        assert!(inside("0.0.0.0/0", "11.0.0.1"));
        assert!(!inside("0.0.0.0/0", "::1"));
        assert!(!inside("::/0", "0.0.0.1"));
        assert!(inside("fd00::/127", "fd00::1"));
        assert!(!inside("fd00::/127", "fd00::2"));
        assert!(!inside("10.9.0.1", "10.9.0.2"));
    }
}
