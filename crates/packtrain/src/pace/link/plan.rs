//! From what is wanted and what the interface is to how its frames are spaced.

use packtrain_proto::pacing::gap::{Gap, Line};

use super::PaceError;
use super::wish::{GapWish, LineRateWish, PaceSettings};
use crate::linux::gap_qdisc::{Gso, Spacing};
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
    /// `None`: frames are followed by no more than Ethernet's own gap, and nobody need know at which rate they leave.
    pub(super) gap: Option<PlannedGap>,
    pub(super) spacing: Spacing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedGap {
    pub(super) asked: GapWish,
    pub(super) line: Line,
    pub(super) line_rate_source: LineRateSource,
    pub(super) gap: Gap,
}

/// `speed_bps` is what the interface says.
pub(super) fn plan(
    settings: &PaceSettings,
    link: &Link,
    speed_bps: Option<u64>,
) -> Result<Plan, PaceError> {
    let gap = settings
        .gap
        .map(|asked| plan_gap(asked, settings, link, speed_bps));
    let gap = gap.transpose()?;
    let charge = gap.map(|gap| gap.line.charge(gap.gap));
    let gso = match (gap, charge) {
        (Some(gap), Some(charge)) => settings.gso.decide(charge.nanos(gap.line.full_len())),
        _ => Gso::Whole,
    };
    Ok(Plan {
        gap,
        spacing: Spacing {
            gap: charge,
            mtu: link.mtu,
            burst: settings.burst,
            gso,
            queue_frames_max: settings.queue_frames_max,
        },
    })
}

fn plan_gap(
    asked: GapWish,
    settings: &PaceSettings,
    link: &Link,
    speed_bps: Option<u64>,
) -> Result<PlannedGap, PaceError> {
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
    let gap = match asked {
        GapWish::Bytes(bytes) => Gap::of_bytes(bytes)?,
        GapWish::Register(value) => Gap::of_register(value)?,
        GapWish::Nanos(nanos) => line.gap_of_nanos(nanos)?,
        GapWish::PayloadRateBps(rate_bps) => line.gap_of_payload_rate(rate_bps)?,
    };
    Ok(PlannedGap {
        asked,
        line,
        line_rate_source,
        gap,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::link::wish::{GsoWish, Wish};

    fn link(kind: Option<&str>) -> Link {
        Link {
            ifindex: 3,
            name: "eth1".into(),
            address: Default::default(),
            mtu: 1500,
            mtu_min: None,
            mtu_max: None,
            is_ethernet: true,
            up: true,
            carrier: true,
            reports_carrier: true,
            carrier_losses: None,
            master: None,
            lower: None,
            kind: kind.map(Into::into),
            vlan_id: None,
            qdisc: None,
            promiscuity: 0,
        }
    }

    fn settings(gap: GapWish, line_rate: LineRateWish) -> PaceSettings {
        let wish = Wish {
            gap: Some(gap),
            line_rate: Some(line_rate),
            ..Wish::default()
        };
        PaceSettings::of("eth1".parse().unwrap(), &wish).unwrap()
    }

    const GIGABIT: u64 = 1_000_000_000;

    #[test]
    fn the_same_gap_is_had_by_bytes_register_time_and_rate() {
        for gap in [
            GapWish::Bytes(1012),
            GapWish::Register(1008),
            GapWish::Nanos(8096),
            GapWish::PayloadRateBps(591_016_549),
        ] {
            let plan = plan(
                &settings(gap, LineRateWish::Auto),
                &link(None),
                Some(GIGABIT),
            )
            .unwrap();
            assert_eq!(plan.gap.unwrap().gap.bytes(), 1012, "{gap:?}");
            assert_eq!(plan.spacing.gap.unwrap().overhead, 1024);
        }
    }

    #[test]
    fn frames_are_cut_where_the_timer_can_space_their_segments_unless_somebody_decides() {
        let gso = |gap, line_rate_bps, gso| {
            let settings = PaceSettings {
                gso,
                ..settings(GapWish::Bytes(gap), LineRateWish::Bps(line_rate_bps))
            };
            plan(&settings, &link(None), None).unwrap().spacing.gso
        };
        // 12.3 µs, 16.3 µs and 1.6 µs with the gap.
        for (gap, line_rate_bps, decided) in [
            (12, GIGABIT, Gso::Whole),
            (512, GIGABIT, Gso::Split),
            (512, 10 * GIGABIT, Gso::Whole),
        ] {
            assert_eq!(gso(gap, line_rate_bps, GsoWish::Auto), decided);
            assert_eq!(gso(gap, line_rate_bps, GsoWish::Split), Gso::Split);
            assert_eq!(gso(gap, line_rate_bps, GsoWish::Whole), Gso::Whole);
        }
    }

    #[test]
    fn who_wants_no_gap_need_not_know_the_line_rate() {
        let settings = PaceSettings::without_gap("tap0".parse().unwrap());
        let plan = plan(&settings, &link(Some("tun")), None).unwrap();
        assert_eq!((plan.gap, plan.spacing.gap), (None, None));
        assert_eq!(plan.spacing.gso, Gso::Whole);
    }

    #[test]
    fn who_is_asked_for_the_line_rate_and_who_is_believed() {
        let planned = |line_rate, kind, speed_bps| {
            plan(
                &settings(GapWish::Bytes(12), line_rate),
                &link(kind),
                speed_bps,
            )
            .map(|plan| plan.gap.unwrap())
            .map(|gap| (gap.line.rate_bps, gap.line_rate_source))
        };
        let auto = LineRateWish::Auto;
        let told = LineRateWish::Bps(5_000_000);
        assert_eq!(
            planned(auto, None, Some(GIGABIT)).unwrap(),
            (GIGABIT, LineRateSource::Interface)
        );
        assert_eq!(
            planned(auto, Some("veth"), Some(10 * GIGABIT)).unwrap(),
            (10 * GIGABIT, LineRateSource::Veth)
        );
        for speed_bps in [None, Some(10_000_000)] {
            assert_eq!(
                planned(told, Some("tun"), speed_bps).unwrap(),
                (5_000_000, LineRateSource::Told)
            );
        }
        let unknown = |kind, speed| planned(auto, kind, speed).unwrap_err();
        let error = unknown(Some("tun"), Some(10_000_000));
        assert_eq!(
            error.to_string(),
            "the line rate of eth1 is not known: a TAP is as fast as its program"
        );
        assert_eq!(
            error.hint().as_deref(),
            Some("--line-rate says it, as in --line-rate 1gbit")
        );
        assert!(matches!(unknown(None, None), PaceError::NoLineRate { .. }));
    }
}
