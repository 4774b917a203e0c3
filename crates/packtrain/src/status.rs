//! The status document: what `status --json` prints, and every other view of a line reads.
//!
//! It is stable: fields are added, none is renamed or given another meaning within one `schema`.
//! `docs/status.schema.json` describes each; a test keeps the two together. Units are in the
//! names; ages and durations are seconds, because that is what JSON's readers plot.

mod build;
mod counters;
mod direct;
mod words;

use std::collections::BTreeMap;

pub use packtrain_proto::stats::LagUse;
use serde::{Deserialize, Serialize};

pub use build::{LineFacts, LinkFacts};
pub use direct::{ClosuresBecause, Direct, DirectShaper, SmallFrameRates};
pub use words::path_because;

/// The document's own version: goes up when a field is renamed, removed or changes its meaning.
pub const SCHEMA: u32 = 1;

/// Why frames went no further outside of the engine, which has reasons of its own
/// (`DropReason`): before `pt0`, and on the way in and out of a link.
pub mod drop_reason {
    /// The queue before `pt0` was full.
    pub const INTAKE_FULL: &str = "intake_full";
    /// The host sent faster than the line could read, and nothing told it to wait.
    pub const HOST_OVERRUN: &str = "host_overrun";
    /// The host's frame has offload metadata that is not understood, or no whole header.
    pub const HOST_UNREPRESENTABLE: &str = "host_unrepresentable";
    /// The kernel dropped it because the line did not read in time.
    pub const SOCKET_OVERRUN: &str = "socket_overrun";
    /// Larger than any frame may be.
    pub const SOCKET_TRUNCATED: &str = "socket_truncated";
    /// As the host's, from a link.
    pub const SOCKET_UNREPRESENTABLE: &str = "socket_unrepresentable";
    /// The kernel had no memory or no room to bring it from the link's ingress to packtrain, or to `pt0`.
    pub const GUARD_LOST: &str = "guard_lost";
    /// Direct frames that found the queue of ours before the link full.
    pub const DIRECT_QUEUE_FULL: &str = "direct_queue_full";
    /// The link's own queueing discipline was full: of all that was given to it since the link joined,
    /// direct frames and its own traffic alike.
    pub const LINK_QDISC: &str = "link_qdisc";

    pub const ALL: [&str; 9] = [
        INTAKE_FULL,
        HOST_OVERRUN,
        HOST_UNREPRESENTABLE,
        SOCKET_OVERRUN,
        SOCKET_TRUNCATED,
        SOCKET_UNREPRESENTABLE,
        GUARD_LOST,
        DIRECT_QUEUE_FULL,
        LINK_QDISC,
    ];
}

/// Counts by reason: `DropReason::as_str`, and those of [`drop_reason`].
pub type Counts = BTreeMap<String, u64>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusDocument {
    pub schema: u32,
    pub name: String,
    pub ifindex: u32,
    /// Of the running daemon, which an upgrade of the binary does not change.
    pub version: String,
    pub pid: u32,
    pub uptime_s: f64,
    pub node_id: String,
    pub line_id: u32,
    /// Which of several links a train takes.
    pub balance: String,
    /// Links of a higher tier carry trains also while all of the lower ones are full.
    #[serde(default)]
    pub tier_spill: bool,
    /// What is spoken with hosts that speak it too: `trains` or `dfap`.
    #[serde(default)]
    pub mode: String,
    #[serde(default)]
    pub dfap: Dfap,
    /// `pt0`'s MAC address.
    pub address: String,
    /// `pt0`'s IP addresses, with prefix length.
    pub addresses: Vec<String>,
    pub mtu: u32,
    pub up: bool,
    pub promiscuous: bool,
    pub host: Host,
    pub links: Vec<Link>,
    pub peers: Vec<Peer>,
    pub hosts: Vec<PlainHost>,
    pub trains: Trains,
    #[serde(default)]
    pub coding: Coding,
    /// What payload is compressed with to and from peers that have the same one; null where the line was given none.
    #[serde(default)]
    pub dictionary: Option<Dictionary>,
    /// In the order in which frames are compared with them; the last is what none of them matches.
    #[serde(default)]
    pub classes: Vec<Class>,
    pub direct: Direct,
    /// Null where nothing of the line stays when its daemon ends.
    #[serde(default)]
    pub stay: Option<Stay>,
    /// Null where the kernel gives no means of holding the host back.
    pub intake: Option<Intake>,
    pub coalesced: Coalesced,
    pub queue: Queue,
    #[serde(default)]
    pub flows: Flows,
    #[serde(default)]
    pub sand: Sand,
    pub resequencer: Resequencer,
    pub replay: Replay,
    pub reassembly: Reassembly,
    #[serde(default)]
    pub too_big: TooBig,
    pub drops: Counts,
    pub warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub frames: u64,
    pub bytes: u64,
}

/// What the host's stack gave to `pt0` and got from it by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    pub taken: Traffic,
    pub given: Traffic,
}

/// Frames that are treated in a way of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    pub name: String,
    /// Null of the rest.
    #[serde(rename = "match")]
    pub matches: Option<String>,
    /// When its frames leave, in the words of `settings::packing`.
    pub pack: String,
    /// `auto`, `engine` or `direct`.
    pub path: String,
    /// Its frames may be lost with a link.
    pub loss_ok: bool,
    /// What of its frames is compressed: `auto`, `headers` or `off`.
    #[serde(default)]
    pub compress: String,
    /// Where there are several links, its frames go by two of them.
    #[serde(default)]
    pub duplicate: bool,
    /// By which its frames go while one of them works; none: by whichever.
    #[serde(default)]
    pub links: Vec<String>,
    /// What becomes of its frames that a link loses, in the words of `settings::repair`.
    #[serde(default)]
    pub repair: String,
    /// What the host has sent of it to the engine.
    pub taken: Traffic,
    /// From when those that left had come; `trains` are frames here.
    #[serde(default)]
    pub waited: Hold,
}

/// The protocol of the DFAP paper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dfap {
    /// Hosts that are sent aggregates.
    pub stations: Vec<Station>,
    /// Whether its traffic count has switched waits on; null where no class waits by it.
    pub waits: Option<bool>,
    /// Frames of the host, on average, by that count; null before the first.
    pub frames_per_second: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Station {
    pub address: String,
    pub ether_type: u16,
    /// The settings name it; others have said so, or have sent one.
    pub listed: bool,
    pub queued_frames: u64,
}

/// A member link's condition, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkCondition {
    /// No interface has its name.
    Absent,
    /// It is set down.
    Down,
    NoCarrier,
    Up,
}

impl LinkCondition {
    pub fn as_str(self) -> &'static str {
        match self {
            LinkCondition::Absent => "absent",
            LinkCondition::Down => "down",
            LinkCondition::NoCarrier => "no-carrier",
            LinkCondition::Up => "up",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    pub id: u8,
    pub name: String,
    pub ifindex: Option<u32>,
    pub state: LinkCondition,
    pub carrier: bool,
    pub mtu: Option<u32>,
    pub address: Option<String>,
    pub rate_bps: Option<u64>,
    /// Age of the measurement; null when the rate is the driver's word or not known.
    pub rate_age_s: Option<f64>,
    /// At which frames that went past the engine left its queue when they stood there last, and how long ago that was seen;
    /// null while it was not.
    #[serde(default)]
    pub direct_rate_bps: Option<u64>,
    #[serde(default)]
    pub direct_rate_age_s: Option<f64>,
    /// The queue of ours that direct frames wait in, so that none stands in the link's own; null while there is none.
    #[serde(default)]
    pub direct_shaper: Option<DirectShaper>,
    /// It carries nothing while a link of a lower tier works.
    #[serde(default)]
    pub tier: u8,
    /// How much of what several links carry is its own, where weights are asked for.
    #[serde(default)]
    pub weight: u8,
    /// It counts as no faster; null where nobody has said so.
    #[serde(default)]
    pub rate_max_bps: Option<u64>,
    /// `used` where a switch has it in a static link aggregation, `refused` where our own hello came back by another link of that; null
    /// where nobody has said so.
    #[serde(default)]
    pub lag: Option<LagUse>,
    /// The kind of its root qdisc; null where nobody looks at it.
    #[serde(default)]
    pub qdisc: Option<String>,
    /// By what it is known that more is sent than it, or the way behind it, carries.
    #[serde(default)]
    pub congestion_signals: Vec<String>,
    pub backlog_bytes: u64,
    pub backlog_age_s: Option<f64>,
    pub in_flight_bytes: u64,
    /// How long a small frame waits there at most, by what may stand and the longest frame, at the rate at which it was seen draining;
    /// null where it was not, or nobody asks.
    #[serde(default)]
    pub sand_waits_max_s: Option<f64>,
    /// Bytes of the longest frame that goes at once, so that small ones need not wait; null: as long as the link takes.
    #[serde(default)]
    pub sand_frame_bytes_max: Option<u64>,
    /// The daemon was too late, or had too much to do, to keep the link busy with less.
    #[serde(default)]
    pub sand_late: bool,
    /// Hosts without packtrain are reached by it.
    pub home: bool,
    /// It is to leave the line.
    pub retiring: bool,
    pub tx: Traffic,
    pub rx: Traffic,
    /// Trains that carried something, of all peers.
    pub trains_tx: u64,
    pub trains_rx: u64,
    pub drops: Counts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    pub node_id: String,
    /// MAC addresses: its `pt0`'s first.
    pub addresses: Vec<String>,
    pub up: bool,
    /// Its engine is away: only direct frames reach it, and come from it.
    #[serde(default)]
    pub away: bool,
    pub version: String,
    pub capabilities: Vec<String>,
    pub mtu: u32,
    pub last_heard_s: f64,
    pub queued_frames: u64,
    pub queued_bytes: u64,
    /// Of the links that carry trains to it; null before any could.
    #[serde(default)]
    pub tier: Option<u8>,
    pub hold: Hold,
    /// What was done last with a frame to it of a class that packs by `auto`: `has_room`, `full_trains`, `alone`, or
    /// `waits`.
    #[serde(default)]
    pub auto: String,
    /// For so long at most.
    #[serde(default)]
    pub auto_wait_s: Option<f64>,
    pub path: PeerPath,
    /// Why by the engine; null where direct.
    pub path_because: Option<String>,
    /// The id of the dictionary that it has; null where it has none.
    #[serde(default)]
    pub dictionary: Option<String>,
    /// Why payload to it is not compressed with ours; null where it is, if that is worth it.
    #[serde(default)]
    pub dictionary_unused: Option<String>,
    pub links: Vec<PeerLink>,
}

/// How long what came of a peer waited for its turn: trains, and frames outside trains where they waited
/// behind some.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    pub trains: u64,
    /// For a microsecond or longer.
    pub held_trains: u64,
    /// Of all trains; 0: not held.
    pub p50_s: f64,
    pub p99_s: f64,
    pub p999_s: f64,
    pub max_s: f64,
    /// How many were held how long; those of no trains are left out.
    pub buckets: Vec<HoldBucket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HoldBucket {
    pub below_s: f64,
    pub trains: u64,
}

/// How frames go to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerPath {
    /// In the kernel, past the engine; but for frames that it does not take, and flows of which some
    /// are under way by the engine.
    Direct,
    Engine,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerLink {
    /// Ours.
    pub link: String,
    /// The peer's number for its own.
    pub remote_link: u8,
    pub remote_address: String,
    pub round_trip_s: Option<f64>,
    pub round_trip_min_s: Option<f64>,
    /// How much it differs from the smoothed one, on average.
    #[serde(default)]
    pub round_trip_jitter_s: Option<f64>,
    pub rate_bps: Option<u64>,
    /// When it was seen last.
    #[serde(default)]
    pub rate_age_s: Option<f64>,
    /// Payload bytes of the longest frame that passes it, and that both ends take.
    #[serde(default)]
    pub mtu: Option<u16>,
    #[serde(default)]
    pub mtu_of_ends: Option<u16>,
    /// Payload bytes of the longest train that is made for it, and why: `unit_size::SizeBecause` in a word.
    #[serde(default)]
    pub size_bytes: u16,
    #[serde(default)]
    pub size_because: String,
    /// Of a bit to be wrong, of how many trains that is known, and how many of them were lost. Null while too few were.
    #[serde(default)]
    pub bit_error_rate: Option<f64>,
    #[serde(default)]
    pub bit_error_trains: Option<u64>,
    #[serde(default)]
    pub bit_error_lost: Option<u64>,
    /// It is the only one, and loses by that: what it loses goes again.
    #[serde(default)]
    pub mends: bool,
    /// Of a million trains of the last seconds, those that were lost: ours, and the peer's.
    #[serde(default)]
    pub tx_loss_ppm: Option<u32>,
    #[serde(default)]
    pub rx_loss_ppm: Option<u32>,
    /// How much later than by the best path of the peer a train is there, and the peer's are here.
    #[serde(default)]
    pub tx_later_s: Option<f64>,
    #[serde(default)]
    pub rx_later_s: Option<f64>,
    pub in_flight_bytes: u64,
    pub window_bytes: u64,
    pub lost_trains: u64,
    pub trains_tx: u64,
    /// How often it has died.
    #[serde(default)]
    pub failures: u64,
    /// Whether its two links hear each other; null where nobody asks.
    #[serde(default)]
    pub liveness: Option<Liveness>,
    /// What it is used for: `stats::PathState` in a word.
    pub state: String,
    /// Whose frames may go by it past the engine: `all`, `loss_ok` and those of classes that go directly,
    /// only `classes` that do, or, until the peer has answered, `nobody`. Null where that is not possible.
    pub direct: Option<String>,
    /// By what those are known at the other end: `source`, an address of their own; `none`, nothing but the links'
    /// addresses; or `vlan`, those in a VLAN. Null until the peer has answered by one of them.
    #[serde(default)]
    pub direct_mark: Option<String>,
    /// Why not by the others.
    #[serde(default)]
    pub direct_marks_refused: BTreeMap<String, String>,
    /// Large frames of TCP flows that may be lost with a link (`loss_ok`) each take the one of such links by which they are there
    /// first.
    #[serde(default)]
    pub direct_stripes: bool,
    /// Of those that went by it, the peer had so many long after later ones of their flow.
    #[serde(default)]
    pub direct_late: u64,
    pub reordering_seen: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Liveness {
    /// `down`, `init` or `up`, as in RFC 5880.
    pub state: String,
    /// Why it was down last: `none`, `expired` or `neighbor_down`.
    pub diagnostic: String,
    /// So long without a word, and the path is dead.
    pub detection_time_s: f64,
    /// Between two messages of ours while nothing else goes there.
    pub interval_s: f64,
    pub round_trip_s: Option<f64>,
    /// It has failed, is back, and carries trains again in so long.
    pub held_for_s: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlainHost {
    pub address: String,
    pub link: String,
    pub last_heard_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trains {
    pub tx: TrainCounts,
    pub rx: TrainCounts,
    /// Of the trains sent; null before the first.
    pub frames_per_train_mean: Option<f64>,
    pub flush: Counts,
    /// How many frames the trains and aggregates carried that were sent: so many trains of each number; 255 stands
    /// for more, too.
    #[serde(default)]
    pub frames_per_train: Vec<FramesBucket>,
    /// How full they were, in percent of what the link takes: at most so many, and less than five below.
    #[serde(default)]
    pub fill: Vec<FillBucket>,
    #[serde(default)]
    pub data_units: DataUnits,
}

/// What carried the host's frames that left by the engine, each once, and what would have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DataUnits {
    /// Trains, aggregates and frames as links were given them.
    pub given: u64,
    /// The same on a wire, where GSO frames are cut into the segments that they stand for.
    pub on_wire: u64,
    /// Packets of 1500 bytes that the same frames would have needed.
    pub packets_of_1500: u64,
    /// Those given ÷ these packets; null before the first.
    pub ratio: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesBucket {
    pub frames: u16,
    pub trains: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FillBucket {
    pub percent_max: u8,
    pub trains: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainCounts {
    pub trains: u64,
    pub frames: u64,
    pub pieces: u64,
    pub markers: u64,
    pub marked: u64,
    pub plain: u64,
    /// Aggregates of the DFAP paper, and the frames in them.
    #[serde(default)]
    pub aggregates: u64,
    #[serde(default)]
    pub aggregated: u64,
}

/// What trains have saved of what their frames would have taken each alone, and by what; bytes as Ethernet spends them,
/// preamble, checksum and gap included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Coding {
    /// The frames in trains that were sent, each as it would have left alone; a GSO frame as its segments.
    pub frame_bytes: u64,
    /// The trains.
    pub train_bytes: u64,
    /// The difference, by what it comes from.
    pub saved: Saved,
    /// Trains that left coded, and such that came.
    pub coded_tx: u64,
    pub coded_rx: u64,
    /// Frames of those sent whose headers were told apart from another's.
    pub told_apart: u64,
    /// What was given to the compressor.
    pub compressed_bytes: u64,
    /// What a million bytes of it take of a processor, packed and compressed; null before the first.
    pub cpu_s_per_mb: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dictionary {
    /// By which both ends name it.
    pub id: String,
    pub bytes: u64,
    /// Where it was read when the line was started.
    pub file: Option<String>,
    /// Trains that were compressed with it, sent and restored; among those of `coding`.
    pub trains_tx: u64,
    pub trains_rx: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Headers, preambles and gaps of Ethernet; negative where trains cost more than they save.
    pub framing: SavedBytes,
    /// Of frames that are shorter than Ethernet's shortest.
    pub padding: SavedBytes,
    /// Headers of frames, told apart from those of others.
    pub headers: SavedBytes,
    /// Payload, compressed.
    pub payload: SavedBytes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedBytes {
    pub bytes: i64,
    /// Of the bytes of all frames; null before the first.
    pub percent: Option<f64>,
}

/// What stays of a line whose daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stay {
    /// How long, when nobody starts it again.
    pub seconds: u64,
    /// Its keeper is at work.
    pub kept: bool,
    /// Frames can go directly to some peer: if the daemon ended now, they would flow on.
    pub carries: bool,
}

/// Where the host is held back, before its frames reach the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intake {
    /// Null: frames are taken as they come.
    pub rate_bps: Option<u64>,
    pub waiting_frames: u64,
    pub waiting_bytes: u64,
    /// Null: there is none, and all frames come by the TAP.
    pub ring: Option<HostRing>,
}

/// How the host's frames came to the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRing {
    /// Small ones that were read out of shared memory.
    pub frames: u64,
    /// Others.
    pub tap_frames: u64,
    /// Of these, those that went to the TAP because the ring had no room.
    pub full: u64,
}

/// Frames of one flow that were given to the host as one GSO frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalesced {
    pub datagrams: u64,
    /// GSO frames that they made.
    pub frames: u64,
    /// … and segments of TCP.
    #[serde(default)]
    pub segments: u64,
    #[serde(default)]
    pub segment_frames: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    pub frames: u64,
    pub bytes: u64,
    pub flows: u64,
    pub frames_max_seen: u64,
    pub bytes_max_seen: u64,
    /// Frames that CoDel has marked, and would have dropped if their senders did not understand that.
    #[serde(default)]
    pub marked: u64,
}

/// Small frames of mice that the engine has sent: how long each waited, for its turn and then for what stood on its link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sand {
    /// How long one may wait at a link; null: as long as it takes.
    pub max_delay_s: Option<f64>,
    /// Of frames here, not of trains.
    pub waited: Hold,
}

/// Of the host's frames that the engine was given; flows that go past it are not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// A flow that has sent more is an elephant.
    pub elephant_bytes: u32,
    /// Flows of the last five seconds.
    pub elephants: u64,
    pub mice: u64,
    /// Ever.
    pub of_elephants: Traffic,
    pub of_mice: Traffic,
    /// Flows that were forgotten while they were in use: there were too many.
    pub evicted: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resequencer {
    pub held_trains: u64,
    pub held_bytes: u64,
    pub held_bytes_max_seen: u64,
    pub gaps: u64,
    pub reordered: u64,
}

/// Trains of which a copy is kept, in case that their link dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    pub kept_trains: u64,
    pub kept_bytes: u64,
    pub kept_bytes_max_seen: u64,
    pub waiting_trains: u64,
    pub replayed: u64,
    pub repaired: u64,
    pub not_repaired: u64,
    #[serde(default)]
    pub duplicated: u64,
    #[serde(default)]
    pub not_duplicated: u64,
    pub not_kept: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reassembly {
    pub frames: u64,
    pub bytes: u64,
    pub bytes_max_seen: u64,
    pub completed: u64,
    pub partial: u64,
}

/// Frames that were too long for where they would have to go, by what their senders were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooBig {
    pub told: u64,
    pub withheld: u64,
    pub untold: u64,
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
