//! From what is wanted and what the interface is to how its frames are spaced.

use packtrain_proto::pacing::gap::{Gap, Line};

use super::PaceError;
use super::wish::{GapWish, LineRateWish, PaceSettings};
use crate::linux::gap_qdisc::Spacing;
use crate::linux::netlink::Link;

/// Who has said at which rate the interface's bits leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineRateSource {
    /// Its driver.
    Interface,
    /// A veth says 10 Gbit/s, whatever carries it.
    Veth,
    /// A person.
    Told,
}

impl LineRateSource {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            LineRateSource::Interface => "interface",
            LineRateSource::Veth => "veth",
            LineRateSource::Told => "told",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) line: Line,
    pub(super) line_rate_source: LineRateSource,
    pub(super) gap: Gap,
    pub(super) spacing: Spacing,
}

/// `speed_bps` is what the interface says.
pub(super) fn plan(
    settings: &PaceSettings,
    link: &Link,
    speed_bps: Option<u64>,
) -> Result<Plan, PaceError> {
    let unknown = |because| PaceError::NoLineRate {
        interface: link.name.clone(),
        because,
    };
    let (rate_bps, line_rate_source) = match (settings.line_rate, speed_bps, link.kind.as_deref()) {
        (LineRateWish::Bps(rate_bps), ..) => (rate_bps, LineRateSource::Told),
        (_, _, Some("tun")) => {
            return Err(unknown("a TAP is as fast as its program"));
        }
        (_, None, _) => return Err(unknown("its driver does not say")),
        (_, Some(speed_bps), Some("veth")) => (speed_bps, LineRateSource::Veth),
        (_, Some(speed_bps), _) => (speed_bps, LineRateSource::Interface),
    };
    let line = Line {
        rate_bps,
        mtu: link.mtu,
    };
    let gap = match settings.gap {
        GapWish::Bytes(bytes) => Gap::of_bytes(bytes)?,
        GapWish::Register(value) => Gap::of_register(value)?,
        GapWish::Nanos(nanos) => line.gap_of_nanos(nanos)?,
        GapWish::PayloadRateBps(rate_bps) => line.gap_of_payload_rate(rate_bps)?,
    };
    Ok(Plan {
        line,
        line_rate_source,
        gap,
        spacing: Spacing {
            charge: line.charge(gap),
            mtu: link.mtu,
            burst: settings.burst,
            gso: settings.gso.into(),
            queue_frames_max: settings.queue_frames_max,
        },
    })
}
