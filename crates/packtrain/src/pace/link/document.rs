//! What a pacer says of itself: the one document that every view reads.

use serde::{Deserialize, Serialize};

use super::wish::GapWish;

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
    /// Null: nothing of it runs.
    pub spacing: Option<SpacingDocument>,
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
