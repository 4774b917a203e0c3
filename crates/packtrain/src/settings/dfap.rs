//! The protocol of the DFAP paper, as people set it.

use std::fmt;
use std::str::FromStr;

use packtrain_proto::config::{DfapConfig, Mode};
use packtrain_proto::dfap::best_fit::Order;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::dfap::{ETHER_TYPE, ETHER_TYPE_OF_FOOTNOTE};
use packtrain_proto::wire::ethernet::MacAddr;

use crate::units::Time;

/// From what today's timers keep to what the paper's machines had, and ten times that.
pub const TICK_MIN: Duration = Duration::from_micros(50);
pub const TICK_MAX: Duration = Duration::from_millis(100);

/// What a line speaks with hosts that speak it too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ModePolicy {
    /// Trains, and aggregates with hosts that know only these.
    #[default]
    Trains,
    /// The aggregates of the DFAP paper alone: no order is restored, nothing is acknowledged.
    Dfap,
}

impl ModePolicy {
    pub const NAMES: &'static str = "trains or dfap";

    pub fn as_str(self) -> &'static str {
        match self {
            ModePolicy::Trains => "trains",
            ModePolicy::Dfap => "dfap",
        }
    }
}

impl From<ModePolicy> for Mode {
    fn from(policy: ModePolicy) -> Mode {
        match policy {
            ModePolicy::Trains => Mode::Trains,
            ModePolicy::Dfap => Mode::Dfap,
        }
    }
}

impl From<Mode> for ModePolicy {
    fn from(mode: Mode) -> ModePolicy {
        match mode {
            Mode::Trains => ModePolicy::Trains,
            Mode::Dfap => ModePolicy::Dfap,
        }
    }
}

impl fmt::Display for ModePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a text names no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no mode: {names}", names = ModePolicy::NAMES)]
pub struct ModePolicyError(String);

impl FromStr for ModePolicy {
    type Err = ModePolicyError;

    fn from_str(text: &str) -> Result<ModePolicy, ModePolicyError> {
        [ModePolicy::Trains, ModePolicy::Dfap]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| ModePolicyError(text.into()))
    }
}

/// How aggregates are made and known, in either mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DfapSettings {
    pub ether_type: u16,
    /// Hosts that take aggregates, beside those that say so.
    pub stations: Vec<MacAddr>,
    /// Of two packets that do not fit, the larger goes first, though it may be the later of its flow.
    pub strict: bool,
    pub tick: Duration,
}

impl Default for DfapSettings {
    fn default() -> DfapSettings {
        let DfapConfig {
            ether_type, tick, ..
        } = DfapConfig::default();
        DfapSettings {
            ether_type,
            stations: Vec::new(),
            strict: false,
            tick,
        }
    }
}

impl From<&DfapSettings> for DfapConfig {
    fn from(settings: &DfapSettings) -> DfapConfig {
        DfapConfig {
            ether_type: settings.ether_type,
            stations: settings.stations.clone(),
            order: match settings.strict {
                true => Order::Strict,
                false => Order::OfFlows,
            },
            tick: settings.tick,
        }
    }
}

/// Why a number is no EtherType of aggregates, or a text no tick.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DfapError {
    #[error("{0:?} is no type of aggregates: 0xbbbb, as in the paper's figure, or 0xaaaa")]
    EtherType(String),
    #[error("{0:?} is no tick: {least} to {most}", least = Time::from(TICK_MIN), most = Time::from(TICK_MAX))]
    Tick(String),
}

pub fn check_ether_type(number: u32) -> Result<u16, DfapError> {
    [ETHER_TYPE, ETHER_TYPE_OF_FOOTNOTE]
        .into_iter()
        .find(|kind| u32::from(*kind) == number)
        .ok_or_else(|| DfapError::EtherType(format!("{number:#x}")))
}

pub fn parse_ether_type(text: &str) -> Result<u16, DfapError> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = hex.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let number = number.ok_or_else(|| DfapError::EtherType(text.into()))?;
    check_ether_type(number).map_err(|_| DfapError::EtherType(text.into()))
}

pub fn parse_tick(text: &str) -> Result<Duration, DfapError> {
    let tick = text.parse::<Time>().ok();
    tick.map(|tick| Duration::from_nanos(tick.0))
        .filter(|tick| (TICK_MIN..=TICK_MAX).contains(tick))
        .ok_or_else(|| DfapError::Tick(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_has_one_name_in_a_file_and_on_the_command_line() {
        use clap::ValueEnum;
        for &mode in ModePolicy::value_variants() {
            let name = mode.to_string();
            assert_eq!(name.parse(), Ok(mode));
            assert_eq!(<ModePolicy as ValueEnum>::from_str(&name, false), Ok(mode));
            assert_eq!(ModePolicy::from(Mode::from(mode)), mode);
        }
        let error = "packets".parse::<ModePolicy>().unwrap_err();
        assert_eq!(error.to_string(), "\"packets\" is no mode: trains or dfap");
    }

    #[test]
    fn the_types_are_those_of_the_paper() {
        assert_eq!(parse_ether_type("0xbbbb"), Ok(0xbbbb));
        assert_eq!(parse_ether_type("0XAAAA"), Ok(0xaaaa));
        assert_eq!(check_ether_type(0xbbbb), Ok(0xbbbb));
        let error = |text: &str| parse_ether_type(text).unwrap_err().to_string();
        for wrong in ["bbbb", "0x0800", "0x", "48059", "0x1bbbb"] {
            let expected = format!(
                "{wrong:?} is no type of aggregates: 0xbbbb, as in the paper's figure, or 0xaaaa"
            );
            assert_eq!(error(wrong), expected);
        }
    }

    #[test]
    fn a_tick_is_within_what_timers_keep_and_what_hosts_bear() {
        assert_eq!(parse_tick("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(parse_tick("50us"), Ok(TICK_MIN));
        for wrong in ["49us", "101ms", "10", "0"] {
            let error = parse_tick(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("{wrong:?} is no tick: 50us to 100ms"));
        }
    }
}
