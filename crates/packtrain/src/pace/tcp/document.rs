//! What the pacer of TCP says of itself: the one document that every view reads.

use packtrain_proto::pacing::spacing::Phase;
use serde::{Deserialize, Serialize};

use super::precision::PrecisionDocument;
use super::rules::{NamedRule, RuleRate, RuleWish, Rules, Share};
use crate::linux::pace::{Counters, RememberedPath, Shown};

/// Which pacer's document it is.
pub const KIND: &str = "tcp";

/// `pace status --json` of TCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpDocument {
    /// [`KIND`].
    pub kind: String,
    pub version: String,
    pub pid: u32,
    /// As the kernel calls the congestion control.
    pub congestion_control: String,
    /// Whose connections are taken.
    pub cgroup: String,
    pub all_namespaces: bool,
    /// Only connections that a rule is about.
    pub rules_only: bool,
    /// In the order in which they are asked.
    pub rules: Vec<RuleDocument>,
    /// None: all.
    pub dport: Vec<(u16, u16)>,
    pub sport: Vec<(u16, u16)>,
    pub dst: Vec<String>,
    /// T.
    pub precision_ns: u64,
    pub precision: PrecisionDocument,
    /// Seconds; null: paths are not remembered.
    pub remembered_seconds: Option<f64>,
    /// MIN_RTT_THRESH and MAX_RTT_THRESH; null: HyStart++ is off.
    pub hystart_us: Option<(u32, u32)>,
    pub counters: CountersDocument,
    /// The kernel's count of time when all this was read: nanoseconds of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    pub streams: Vec<StreamDocument>,
    pub paths: Vec<PathDocument>,
}

/// Of all connections since the pacer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountersDocument {
    /// Connections that were taken when they were established, and those that were there before.
    pub taken: u64,
    pub taken_late: u64,
    /// That the kernel would not have.
    pub refused: u64,
    /// That have another congestion control by now, because their application has chosen one.
    #[serde(default)]
    pub left: u64,
    /// Slow starts that began spaced, and those of them whose path was remembered.
    pub slow_starts: u64,
    pub slow_starts_known: u64,
    /// Of these, those that went on with half of the remembered window, and those of them that lost by that.
    #[serde(default)]
    pub jumped: u64,
    #[serde(default)]
    pub retreated: u64,
    /// Windows that were cut.
    pub cut: ByPhase,
    /// Segments that were taken for lost.
    pub lost: ByPhase,
    /// Slow starts that ended at the window of a remembered path, and by a round trip that had grown.
    pub ended_at_path: u64,
    pub ended_by_delay: u64,
}

/// By what the connection did when it was noticed: one round trip after it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByPhase {
    pub spacing: u64,
    pub clusters: u64,
    pub free: u64,
}

/// Streams that match, and how fast they leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleDocument {
    pub name: String,
    #[serde(rename = "match")]
    pub matches: String,
    /// Bits of IP packets a second, as full-size segments carry them; null: what the path carries.
    pub rate_bps: Option<u64>,
    /// Who has it together: each `stream` has it, all to a `destination`, or all of the `rule`.
    pub share: Share,
    /// That it is about now.
    pub streams: u64,
    /// Those that send now.
    pub sending: u64,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamDocument {
    pub local: String,
    pub remote: String,
    /// `spacing`, `clusters` or `free`.
    pub phase: String,
    pub interval_ns: Option<u64>,
    /// Bits of segments without headers, a second, delivered lately.
    pub rate_bps: Option<u64>,
    pub srtt_us: u32,
    pub rtt_min_us: u32,
    /// Segments.
    pub cwnd: u32,
    pub ssthresh: Option<u32>,
    pub in_flight: u32,
    /// Bytes.
    pub mss: u32,
    pub bytes_acked: u64,
    /// Segments.
    pub retransmitted: u32,
    pub lost: ByPhase,
    pub knows_path: bool,
    /// Something of it is under way.
    pub is_sending: bool,
    /// The rule that it is of.
    pub rule: Option<String>,
    /// Bits of segments without headers, a second, that the rule gives it now; null: as many as go.
    pub ruled_bps: Option<u64>,
}

/// A destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathDocument {
    pub destination: String,
    /// What it carried when it was full; null: it has not been.
    pub rate_bps: Option<u64>,
    pub rtt_min_us: u32,
    /// Since it was full.
    pub age_seconds: Option<f64>,
    pub connections: u64,
    /// Windows cut in slow start.
    pub losses: u64,
    /// Streams with something under way.
    pub sending: i32,
}

pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Free => "free",
        Phase::Spacing => "spacing",
        Phase::Clusters => "clusters",
    }
}

/// In the order of the programs: free, spacing, clusters.
fn by_phase<T: Into<u64>>([free, spacing, clusters]: [T; 3]) -> ByPhase {
    ByPhase {
        spacing: spacing.into(),
        clusters: clusters.into(),
        free: free.into(),
    }
}

impl From<Counters> for CountersDocument {
    fn from(of: Counters) -> CountersDocument {
        CountersDocument {
            taken: of.taken,
            taken_late: of.taken_late,
            refused: of.refused,
            left: of.left,
            slow_starts: of.begun,
            slow_starts_known: of.begun_known,
            jumped: of.jumped,
            retreated: of.retreated,
            cut: by_phase(of.cut),
            lost: by_phase(of.lost),
            ended_at_path: of.ended_at_path,
            ended_by_delay: of.ended_by_delay,
        }
    }
}

impl RuleDocument {
    pub fn new(of: &NamedRule, streams: &[Shown]) -> RuleDocument {
        let of_it = streams.iter().filter(|it| it.rule == Some(of.told.id));
        let sending = of_it.clone().filter(|it| it.is_sending).count() as u64;
        RuleDocument {
            name: of.name.clone(),
            matches: of.matches.to_string(),
            rate_bps: match of.rate {
                RuleRate::Bps(bps) => Some(bps),
                RuleRate::Auto => None,
            },
            share: of.share,
            streams: of_it.count() as u64,
            sending,
        }
    }

    /// To ask for it once more.
    pub fn wish(&self) -> RuleWish {
        RuleWish {
            name: Some(self.name.clone()),
            matches: self.matches.clone(),
            rate: self.rate_bps.map_or(RuleRate::Auto, RuleRate::Bps),
            share: self.share,
            before: None,
        }
    }
}

impl StreamDocument {
    pub fn new(of: &Shown, rules: &Rules) -> StreamDocument {
        let rule = of
            .rule
            .and_then(|id| rules.iter().find(|it| it.told.id == id));
        StreamDocument {
            local: of.local.to_string(),
            remote: of.remote.to_string(),
            phase: phase_name(of.phase).into(),
            interval_ns: of.interval_ns,
            rate_bps: of.delivery_rate.map(|rate| rate * 8),
            srtt_us: of.srtt_us,
            rtt_min_us: of.rtt_min_us,
            cwnd: of.cwnd,
            ssthresh: of.ssthresh,
            in_flight: of.in_flight,
            mss: of.mss,
            bytes_acked: of.bytes_acked,
            retransmitted: of.retransmitted,
            lost: by_phase(of.lost_in),
            knows_path: of.knows_path,
            is_sending: of.is_sending,
            rule: rule.map(|rule| rule.name.clone()),
            ruled_bps: of.ruled_rate.map(|rate| rate * 8),
        }
    }
}

impl PathDocument {
    pub fn new(of: &RememberedPath, now_ns: u64) -> PathDocument {
        let age = |since: u64| now_ns.saturating_sub(since) as f64 / 1e9;
        PathDocument {
            destination: of.address.to_canonical().to_string(),
            rate_bps: of.path.map(|path| path.rate_bytes_per_s * 8),
            rtt_min_us: of.rtt_min_us,
            age_seconds: of.path.map(|_| age(of.full_at_ns)),
            connections: of.connections,
            losses: of.losses,
            sending: of.sending,
        }
    }
}
