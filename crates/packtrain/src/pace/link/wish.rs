//! What a person wants of the gap behind an interface's frames.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::PaceError;
use crate::linux::gap_qdisc::Gso;
use crate::settings::values::InterfaceName;
use crate::units::{BitRate, Time};

/// As measured here ([docs/pacing.md](../../../../../docs/pacing.md)): the least with which 0.99 of the rate is kept.
pub const BURST: Duration = Duration::from_micros(80);
pub const BURST_MAX: Duration = Duration::from_millis(10);
/// Shorter than the kernel's timer is late as a rule: there segments leave in pairs and more in any case, and cutting them costs
/// some of the rate.
const SPLIT_NANOS_MIN: u64 = 15_000;
/// As many as an Ethernet interface's own queue holds by default.
pub const QUEUE_FRAMES_MAX: u32 = 1000;

/// How large the gap is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapWish {
    /// Idle on the wire.
    Bytes(u64),
    /// What the paper's driver has in its register for it.
    Register(u32),
    Nanos(u64),
    /// So that no more bits of IP packets a second leave.
    PayloadRateBps(u64),
}

/// At which the interface's bits leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineRateWish {
    /// As its driver says.
    Auto,
    Bps(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GsoWish {
    /// Split, where the timer can tell segments apart.
    Auto,
    Split,
    Whole,
}

impl GsoWish {
    /// `frame_nanos` is what a full-size frame takes with its gap.
    pub(super) fn decide(self, frame_nanos: u64) -> Gso {
        match self {
            GsoWish::Auto if frame_nanos < SPLIT_NANOS_MIN => Gso::Whole,
            GsoWish::Auto | GsoWish::Split => Gso::Split,
            GsoWish::Whole => Gso::Whole,
        }
    }

    pub(super) fn because(self, gso: Gso) -> &'static str {
        match (self, gso) {
            (GsoWish::Auto, Gso::Split) => "the timer can tell them apart",
            (GsoWish::Auto, Gso::Whole) => {
                "segments would follow each other faster than the timer can tell them apart"
            }
            (GsoWish::Split | GsoWish::Whole, _) => "as was said",
        }
    }
}

/// What has been said; of the rest the pacer keeps what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wish {
    pub gap: Option<GapWish>,
    pub line_rate: Option<LineRateWish>,
    pub gso: Option<GsoWish>,
    pub burst_ns: Option<u64>,
    pub queue_frames_max: Option<u32>,
}

/// All that has to be known of a pacer before it can be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaceSettings {
    pub interface: InterfaceName,
    /// `None`: Ethernet's own. It is there for its rules.
    pub gap: Option<GapWish>,
    pub line_rate: LineRateWish,
    pub gso: GsoWish,
    pub burst: Duration,
    pub queue_frames_max: u32,
}

impl PaceSettings {
    pub fn of(interface: InterfaceName, wish: &Wish) -> Result<PaceSettings, PaceError> {
        match wish.gap {
            Some(_) => Ok(PaceSettings::without_gap(interface).changed(wish)),
            None => Err(PaceError::NoGap),
        }
    }

    /// Of one that paces by rules alone.
    pub fn without_gap(interface: InterfaceName) -> PaceSettings {
        PaceSettings {
            interface,
            gap: None,
            line_rate: LineRateWish::Auto,
            gso: GsoWish::Auto,
            burst: BURST,
            queue_frames_max: QUEUE_FRAMES_MAX,
        }
    }

    pub fn changed(&self, wish: &Wish) -> PaceSettings {
        PaceSettings {
            interface: self.interface.clone(),
            gap: wish.gap.or(self.gap),
            line_rate: wish.line_rate.unwrap_or(self.line_rate),
            gso: wish.gso.unwrap_or(self.gso),
            burst: wish.burst_ns.map_or(self.burst, Duration::from_nanos),
            queue_frames_max: wish.queue_frames_max.unwrap_or(self.queue_frames_max),
        }
    }
}

/// As a command line has it.
pub fn gap_text(gap: GapWish) -> String {
    match gap {
        GapWish::Bytes(bytes) => format!("--gap {bytes}B"),
        GapWish::Register(value) => format!("--register {value}"),
        GapWish::Nanos(nanos) => format!("--gap {}", Time(nanos)),
        GapWish::PayloadRateBps(rate_bps) => format!("--rate {}", BitRate(rate_bps)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_stays_and_a_pacer_begins_with_a_gap() {
        let eth1: InterfaceName = "eth1".parse().unwrap();
        let error = PaceSettings::of(eth1.clone(), &Wish::default()).unwrap_err();
        assert!(matches!(error, PaceError::NoGap));
        let first = Wish {
            gap: Some(GapWish::Bytes(512)),
            gso: Some(GsoWish::Whole),
            ..Wish::default()
        };
        let settings = PaceSettings::of(eth1, &first).unwrap();
        assert_eq!(settings.burst, BURST);
        let then = Wish {
            gap: Some(GapWish::Register(8)),
            burst_ns: Some(5),
            ..Wish::default()
        };
        let changed = settings.changed(&then);
        assert_eq!(changed.gso, GsoWish::Whole);
        assert_eq!(changed.gap, Some(GapWish::Register(8)));
        assert_eq!(changed.burst, Duration::from_nanos(5));
    }

    #[test]
    fn a_gap_is_shown_as_it_is_typed() {
        assert_eq!(gap_text(GapWish::Bytes(512)), "--gap 512B");
        assert_eq!(gap_text(GapWish::Nanos(4000)), "--gap 4us");
        assert_eq!(gap_text(GapWish::Register(1023)), "--register 1023");
        let rate = GapWish::PayloadRateBps(599_000_000);
        assert_eq!(gap_text(rate), "--rate 599mbit");
    }
}
