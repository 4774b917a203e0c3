//! What a pacer says of itself: the one document that every view reads.

use serde::{Deserialize, Serialize};

use super::rules::LinkRule;
use super::wish::GapWish;
use crate::linux::gap_qdisc::rules::RuleCounters;
use crate::pace::tcp::rules::Share;

/// What tells it from the documents of other pacers.
pub const KIND: &str = "link";

/// `pace status --json` of one interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkPacerDocument {
    /// `link`.
    pub kind: String,
    /// As it is called now.
    pub interface: String,
    /// As it was called when the pacer came: commands go on to say this.
    pub known_as: String,
    /// Of the program that runs it.
    pub version: String,
    /// Null: it was killed, and what it changed stands.
    pub pid: Option<u32>,
    /// What is undone when it ends.
    pub undo: Vec<String>,
    /// Null: frames are followed by no gap, or nothing of it runs.
    pub spacing: Option<SpacingDocument>,
    /// In the order in which they are asked.
    #[serde(default)]
    pub rules: Vec<LinkRuleDocument>,
}

/// Frames that match, and how fast they leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRuleDocument {
    /// The interface, as commands call it.
    pub link: String,
    pub name: String,
    #[serde(rename = "match")]
    pub matches: String,
    /// Bits of IP packets a second, as full-size packets carry them.
    pub rate_bps: u64,
    /// All of the `rule`.
    pub share: Share,
    pub queue_frames_max: u32,
    pub queue_frames: u32,
    pub queue_bytes: u32,
    /// Segments, of a GSO frame.
    pub sent_frames: u64,
    pub sent_bytes: u64,
    /// That found no room in its queue.
    pub dropped_frames: u64,
}

impl LinkRuleDocument {
    pub(super) fn new(link: &str, rule: &LinkRule, counters: RuleCounters) -> LinkRuleDocument {
        LinkRuleDocument {
            link: link.into(),
            name: rule.name.clone(),
            matches: rule.matches.to_string(),
            rate_bps: rule.class.rate_bps,
            share: Share::Rule,
            queue_frames_max: rule.class.queue_frames_max,
            queue_frames: counters.queue_frames,
            queue_bytes: counters.queue_bytes,
            sent_frames: counters.sent_frames,
            sent_bytes: counters.sent_bytes,
            dropped_frames: counters.dropped_frames,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpacingDocument {
    /// What spaces the frames, and why that.
    pub carrier: String,
    pub carrier_because: String,
    /// How large a gap was asked for.
    pub asked: GapWish,
    /// Idle byte times between two frames on the wire, Ethernet's own 12 among them.
    pub gap_bytes: u32,
    pub gap_ns: u64,
    pub line_rate_bps: u64,
    /// Who says so: the `interface`, a `veth` (which says 10 Gbit/s, whatever carries it), or `told`.
    pub line_rate_source: String,
    pub mtu: u32,
    /// Bits of IP packets a second that full-size frames carry at most.
    pub payload_rate_bps: u64,
    /// (gap + MTU) / MTU.
    pub busy_factor: f64,
    /// `split` or `whole`.
    pub gso: String,
    /// Why that.
    pub gso_because: String,
    /// What may be saved up, as time.
    pub burst_ns: u64,
    pub queue_frames_max: u32,
    pub queue_frames: u32,
    pub queue_bytes: u32,
    /// Since it stands. Segments, of a GSO frame.
    pub sent_frames: u64,
    /// As the interface's driver counts them.
    pub sent_bytes: u64,
    /// That found no room in the queue.
    pub dropped_frames: u64,
}
