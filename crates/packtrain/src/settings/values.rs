//! Single values as people write them: parsed once, right ever after.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use packtrain_proto::config::Balance;
use packtrain_proto::wire::ethernet::MacAddr;

use super::{MTU_MAX, MTU_MIN};
use crate::linux::netlink::{IpPrefix, IpPrefixError};
use crate::units::Time;

/// `off`, or a time within these bounds. `None`: neither.
pub fn off_or_time(text: &str, within: RangeInclusive<Duration>) -> Option<Option<Duration>> {
    if text == "off" {
        return Some(None);
    }
    let time = text.parse::<Time>().map(Duration::from).ok();
    time.filter(|time| within.contains(time)).map(Some)
}

/// A name that Linux takes for an interface.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InterfaceName(String);

impl InterfaceName {
    /// `IFNAMSIZ` less the final zero.
    const LEN_MAX: usize = 15;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is no interface name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterfaceNameError {
    #[error("an interface name has 1 to 15 bytes, this one has {0}")]
    Length(usize),
    #[error("an interface name has no {0:?}")]
    Character(char),
    #[error("no interface can be named {0:?}")]
    Reserved(String),
}

impl FromStr for InterfaceName {
    type Err = InterfaceNameError;

    /// Stricter than the kernel's `dev_valid_name`: `%` would make it choose a number itself, and
    /// `all` and `default` have no settings of their own below `/proc/sys/net`.
    fn from_str(text: &str) -> Result<InterfaceName, InterfaceNameError> {
        if text.is_empty() || text.len() > Self::LEN_MAX {
            return Err(InterfaceNameError::Length(text.len()));
        }
        let wrong = |c: &char| matches!(c, '/' | ':' | '%') || !c.is_ascii_graphic();
        if let Some(c) = text.chars().find(wrong) {
            return Err(InterfaceNameError::Character(c));
        }
        if matches!(text, "." | ".." | "all" | "default") {
            return Err(InterfaceNameError::Reserved(text.into()));
        }
        Ok(InterfaceName(text.into()))
    }
}

/// Why a text is no address of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(transparent)]
    Syntax(#[from] IpPrefixError),
    #[error("{0} is no address that a host can have")]
    NotAHost(IpAddr),
}

/// An address for an interface, with the length of its network's prefix.
pub fn parse_address(text: &str) -> Result<IpPrefix, AddressError> {
    let prefix: IpPrefix = text.parse()?;
    let address = prefix.address;
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    if address.is_unspecified() || address.is_multicast() || broadcast {
        return Err(AddressError::NotAHost(address));
    }
    Ok(prefix)
}

/// Why an MTU is none for `pt0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MtuError {
    #[error("an MTU of {0} bytes is too small: at least {MTU_MIN}")]
    TooSmall(u32),
    #[error("an MTU of {0} bytes is too large: at most {MTU_MAX}")]
    TooLarge(u32),
}

/// `pt0`'s MTU, within what a TAP takes.
pub fn check_mtu(mtu: u32) -> Result<u16, MtuError> {
    match u16::try_from(mtu) {
        Ok(mtu) if mtu < MTU_MIN => Err(MtuError::TooSmall(mtu.into())),
        Ok(mtu) if mtu <= MTU_MAX => Ok(mtu),
        _ => Err(MtuError::TooLarge(mtu)),
    }
}

/// Why an address is none for `pt0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MacError {
    #[error(transparent)]
    Syntax(#[from] packtrain_proto::wire::ethernet::MacAddrError),
    #[error("{0} is a group address: an interface has one of its own (the first byte even)")]
    Group(MacAddr),
    #[error("00:00:00:00:00:00 is no address")]
    Zero,
}

/// An address that an interface can have.
pub fn parse_mac(text: &str) -> Result<MacAddr, MacError> {
    let mac: MacAddr = text.parse()?;
    if mac.is_zero() {
        return Err(MacError::Zero);
    }
    if mac.is_group() {
        Err(MacError::Group(mac))
    } else {
        Ok(mac)
    }
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    pub const NAMES: &'static str = "error, warn, info, debug or trace";

    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }

    pub fn as_tracing(self) -> tracing::Level {
        match self {
            LogLevel::Error => tracing::Level::ERROR,
            LogLevel::Warn => tracing::Level::WARN,
            LogLevel::Info => tracing::Level::INFO,
            LogLevel::Debug => tracing::Level::DEBUG,
            LogLevel::Trace => tracing::Level::TRACE,
        }
    }
}

/// Why a text is no log level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no log level: {names}", names = LogLevel::NAMES)]
pub struct LogLevelError(String);

impl FromStr for LogLevel {
    type Err = LogLevelError;

    fn from_str(text: &str) -> Result<LogLevel, LogLevelError> {
        use LogLevel::{Debug, Error, Info, Trace, Warn};
        [Error, Warn, Info, Debug, Trace]
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or_else(|| LogLevelError(text.into()))
    }
}

/// Which way frames take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum PathPolicy {
    /// Frames for which the engine can do nothing go past it, by programs in the kernel.
    #[default]
    Auto,
    /// Every frame goes through the engine.
    Engine,
}

impl PathPolicy {
    pub const NAMES: &'static str = "auto or engine";

    pub fn as_str(self) -> &'static str {
        match self {
            PathPolicy::Auto => "auto",
            PathPolicy::Engine => "engine",
        }
    }
}

impl fmt::Display for PathPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no path: {names}", names = PathPolicy::NAMES)]
pub struct PathPolicyError(String);

impl FromStr for PathPolicy {
    type Err = PathPolicyError;

    fn from_str(text: &str) -> Result<PathPolicy, PathPolicyError> {
        [PathPolicy::Auto, PathPolicy::Engine]
            .into_iter()
            .find(|policy| policy.as_str() == text)
            .ok_or_else(|| PathPolicyError(text.into()))
    }
}

/// Which of several links a train takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum BalancePolicy {
    /// The one by which it arrives first.
    #[default]
    EarliestFinish,
    /// One after the other.
    RoundRobin,
    /// The first that works; the others wait for its failure.
    ActiveBackup,
    /// Bytes in proportion to the links' weights.
    Weighted,
    /// By two links each: those by which it arrives first and next.
    Duplicate,
    /// A flow by one link: by MAC addresses and EtherType.
    HashMac,
    /// A flow by one link: by IP addresses.
    HashIp,
    /// A flow by one link: by IP addresses, protocol and ports.
    HashPort,
}

impl BalancePolicy {
    pub const NAMES: &'static str = "earliest-finish, round-robin, active-backup, weighted, duplicate, hash-mac, hash-ip or hash-port";

    pub fn as_str(self) -> &'static str {
        match self {
            BalancePolicy::EarliestFinish => "earliest-finish",
            BalancePolicy::RoundRobin => "round-robin",
            BalancePolicy::ActiveBackup => "active-backup",
            BalancePolicy::Weighted => "weighted",
            BalancePolicy::Duplicate => "duplicate",
            BalancePolicy::HashMac => "hash-mac",
            BalancePolicy::HashIp => "hash-ip",
            BalancePolicy::HashPort => "hash-port",
        }
    }
}

impl From<BalancePolicy> for Balance {
    fn from(policy: BalancePolicy) -> Balance {
        match policy {
            BalancePolicy::EarliestFinish => Balance::EarliestFinish,
            BalancePolicy::RoundRobin => Balance::RoundRobin,
            BalancePolicy::ActiveBackup => Balance::ActiveBackup,
            BalancePolicy::Weighted => Balance::Weighted,
            BalancePolicy::Duplicate => Balance::Duplicate,
            BalancePolicy::HashMac => Balance::HashMac,
            BalancePolicy::HashIp => Balance::HashIp,
            BalancePolicy::HashPort => Balance::HashPort,
        }
    }
}

impl fmt::Display for BalancePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text names no way to choose a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no way to choose a link: {names}", names = BalancePolicy::NAMES)]
pub struct BalancePolicyError(String);

impl FromStr for BalancePolicy {
    type Err = BalancePolicyError;

    fn from_str(text: &str) -> Result<BalancePolicy, BalancePolicyError> {
        let mut all = BalancePolicy::value_variants().iter().copied();
        all.find(|policy| policy.as_str() == text)
            .ok_or_else(|| BalancePolicyError(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_names_are_those_that_the_kernel_takes() {
        for right in ["eth0", "pt-a_1", "enp0s31f6.100", "a", "123456789012345"] {
            assert_eq!(right.parse::<InterfaceName>().unwrap().as_str(), right);
        }
        let text = |name: &str| name.parse::<InterfaceName>().unwrap_err().to_string();
        assert_eq!(
            text(""),
            "an interface name has 1 to 15 bytes, this one has 0"
        );
        assert_eq!(
            text("1234567890123456"),
            "an interface name has 1 to 15 bytes, this one has 16"
        );
        assert_eq!(text("a/b"), "an interface name has no '/'");
        assert_eq!(text("pt%d"), "an interface name has no '%'");
        assert_eq!(text("a b"), "an interface name has no ' '");
        assert_eq!(text(".."), "no interface can be named \"..\"");
        assert_eq!(text("all"), "no interface can be named \"all\"");
    }

    #[test]
    fn an_address_needs_a_prefix_length_and_is_a_hosts() {
        for right in ["10.9.0.1/24", "10.9.0.1/32", "fd00::1/64", "fe80::1/128"] {
            assert_eq!(parse_address(right).unwrap().to_string(), right);
        }
        for text in [
            "10.9.0.1",
            "10.9.0/24",
            "10.9.0.1/33",
            "fd00::1/129",
            "10.9.0.1/x",
        ] {
            let error = parse_address(text).unwrap_err();
            assert!(matches!(error, AddressError::Syntax(_)), "{text}");
        }
        for text in [
            "0.0.0.0/0",
            "224.0.0.1/4",
            "255.255.255.255/32",
            "ff02::1/64",
            "::/0",
        ] {
            let error = parse_address(text).unwrap_err();
            assert!(matches!(error, AddressError::NotAHost(_)), "{text}");
        }
    }

    #[test]
    fn an_mtu_is_within_what_a_tap_takes() {
        assert_eq!(check_mtu(67), Err(MtuError::TooSmall(67)));
        assert_eq!(check_mtu(68), Ok(68));
        assert_eq!(check_mtu(65_521), Ok(65_521));
        assert_eq!(check_mtu(65_522), Err(MtuError::TooLarge(65_522)));
        assert_eq!(check_mtu(1 << 20), Err(MtuError::TooLarge(1 << 20)));
    }

    #[test]
    fn an_own_address_is_neither_group_nor_zero() {
        assert!(parse_mac("02:00:00:00:00:01").is_ok());
        assert_eq!(parse_mac("00:00:00:00:00:00"), Err(MacError::Zero));
        assert!(matches!(
            parse_mac("03:00:00:00:00:01"),
            Err(MacError::Group(_))
        ));
        assert!(matches!(
            parse_mac("02:00:00:00:00"),
            Err(MacError::Syntax(_))
        ));
    }

    #[test]
    fn a_path_has_one_name_in_a_file_and_on_the_command_line() {
        assert_eq!(PathPolicy::default(), PathPolicy::Auto);
        for &policy in PathPolicy::value_variants() {
            let name = policy.to_string();
            assert_eq!(name.parse(), Ok(policy));
            assert_eq!(
                <PathPolicy as ValueEnum>::from_str(&name, false),
                Ok(policy)
            );
        }
        for text in ["kernel", "Auto", "auto ", ""] {
            assert_eq!(
                text.parse::<PathPolicy>().unwrap_err().to_string(),
                format!("{text:?} is no path: auto or engine")
            );
        }
    }

    #[test]
    fn a_balance_has_one_name_in_a_file_and_on_the_command_line() {
        assert_eq!(Balance::from(BalancePolicy::default()), Balance::default());
        let all: Vec<Balance> = BalancePolicy::value_variants()
            .iter()
            .map(|&policy| policy.into())
            .collect();
        assert_eq!(all, Balance::ALL);
        for &policy in BalancePolicy::value_variants() {
            let name = policy.to_string();
            assert_eq!(name.parse(), Ok(policy));
            assert_eq!(
                <BalancePolicy as ValueEnum>::from_str(&name, false),
                Ok(policy)
            );
        }
        assert_eq!(
            "lacp".parse::<BalancePolicy>().unwrap_err().to_string(),
            "\"lacp\" is no way to choose a link: earliest-finish, round-robin, active-backup, weighted, \
             duplicate, hash-mac, hash-ip or hash-port"
        );
    }
}
