//! Counters, as plain structs. The CLI and the exporters read a copy ([`crate::engine::Engine::snapshot`]).

use serde::Serialize;

use crate::class::Action;
use crate::config::{LinkId, Mode, NodeId};
use crate::direct::OpenTo;
use crate::direct::kinds::{DirectKind, KindRefused};
use crate::queue::pressure::AutoChoice;
use crate::time::Duration;
use crate::wire::ethernet::MacAddr;
use crate::wire::liveness::{Diagnostic, State};

mod direct;
mod path;

pub use direct::{Closures, DirectSnapshot, EngineBecause, SmallFrameRates};
pub use path::{PathBecause, PathMeasures, PathSize};

macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];
            /// As in `status --json`.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    /// Why a frame, or a message of the wire, went no further. Each is counted where it happens.
    DropReason {
        // From the host.
        /// Fewer bytes than an Ethernet header, or nothing after it.
        Runt = "runt",
        /// Larger than anything on the way may be.
        TooLarge = "too_large",
        /// An EtherType of packtrain's own, inside packtrain.
        Nested = "nested",
        /// Offload metadata that does not agree with the frame.
        BadGso = "bad_gso",
        /// Too large for a host without packtrain on this link.
        TooLargeForPlain = "too_large_for_plain",
        /// Too large for the `pt0` of a peer behind which its addressee is.
        TooLargeForPeer = "too_large_for_peer",
        /// No member link with carrier.
        NoLink = "no_link",
        /// The flow queues are full.
        QueueFull = "queue_full",
        /// Its flow had more waiting than one may.
        FlowQueueFull = "flow_queue_full",
        /// CoDel's decision.
        Codel = "codel",
        /// Of a frame that goes once to each segment, the one for a segment: its queue was too full, or its
        /// link is gone. Another segment had its own.
        SegmentCopy = "segment_copy",
        /// The link's own queue refused it.
        LinkRefused = "link_refused",
        /// A train of a link that died, too large for those that are left.
        ReplayTooLarge = "replay_too_large",
        /// A train of a link that died, or is so slow that it seemed to, of which no copy was kept: the memory for
        /// that was full, or it had left while that link was the only one. It may come still.
        ReplayNotKept = "replay_not_kept",
        // From the wire.
        UnknownVersion = "unknown_version",
        UnknownType = "unknown_type",
        Truncated = "truncated",
        UnknownCriticalOption = "unknown_critical_option",
        BadOption = "bad_option",
        /// A train from nobody that we know.
        UnknownPeer = "unknown_peer",
        StaleIncarnation = "stale_incarnation",
        BadLane = "bad_lane",
        BadSubframe = "bad_subframe",
        SubframeEmpty = "subframe_empty",
        /// A train sequence far from the window.
        SequenceJump = "sequence_jump",
        Duplicate = "duplicate",
        /// Arrived after its gap was given up.
        Late = "late",
        ReassemblyHole = "reassembly_hole",
        ReassemblyTimeout = "reassembly_timeout",
        ReassemblyFull = "reassembly_full",
        ReassemblyBadPiece = "reassembly_bad_piece",
        /// A later piece of a frame whose first one did not come, or that is counted as dropped: each
        /// piece counts, beside the frame.
        StrayPiece = "stray_piece",
        ResequencerFull = "resequencer_full",
        /// A marked frame from a link that is no peer's.
        BadMark = "bad_mark",
        BadHello = "bad_hello",
        /// A liveness message that says what none can, or is for another link.
        BadLiveness = "bad_liveness",
        /// … that was heard before, or was overtaken by another one.
        StaleLiveness = "stale_liveness",
        /// A coded train, by a coding that we do not know.
        CodedUnknown = "coded_unknown",
        /// A coded train that does not restore to what its checksum says: none of its frames is delivered.
        CodedDamaged = "coded_damaged",
        /// An aggregate of the DFAP paper with wrong offsets, or of what cannot ride in one.
        BadAggregate = "bad_aggregate",
        /// A hello or a train for a line that speaks only aggregates.
        OtherMode = "other_mode",
        OtherLine = "other_line",
        /// The peer table or its rate limit was full.
        PeerTableFull = "peer_table_full",
        /// It was under way to or from a peer that left.
        PeerGone = "peer_gone",
        /// It cannot go directly, and the peer's engine is away.
        PeerAway = "peer_away",
        /// Our own frame came back.
        OwnEcho = "own_echo",
        /// Not for this host.
        NotForUs = "not_for_us",
        /// `pt0` did not take it.
        HostRefused = "host_refused",
        BadAck = "bad_ack",
    }
}

reasons! {
    /// What ended a train.
    FlushReason {
        /// The link had room and nothing more was waiting: 1-persistent.
        IdleLink = "queue_empty",
        /// No room for another byte.
        Full = "full",
        /// What waits next may not share it.
        Boundary = "boundary",
        /// Those in it had waited for others as long as they may.
        Timer = "timer",
        /// They were as many as the DFAP paper lets wait.
        Count = "count",
        /// One that may not wait took those along that did.
        Exempt = "exempt",
        /// It carries no frame: an acknowledgement, a marker, a probe.
        Control = "control",
    }
}

/// A counter for each reason.
#[derive(Clone, Debug)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Default for Drops {
    fn default() -> Drops {
        Drops([0; DropReason::ALL.len()])
    }
}

impl Drops {
    pub fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    pub fn count_many(&mut self, reason: DropReason, n: u64) {
        self.0[reason as usize] += n;
    }

    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that happened.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL
            .iter()
            .map(|&r| (r, self.get(r)))
            .filter(|&(_, n)| n > 0)
    }
}

impl Serialize for Drops {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(r, n)| (r.as_str(), n)))
    }
}

/// Frames and bytes, one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    pub frames: u64,
    pub bytes: u64,
}

impl Traffic {
    pub fn count(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

/// Trains of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trains {
    /// Trains with subframes, and probes.
    pub trains: u64,
    /// Whole frames, and frames whose last piece rode in a train.
    pub frames: u64,
    /// Pieces of frames.
    pub pieces: u64,
    /// Trains without subframes: acknowledgements and markers.
    pub markers: u64,
    /// Frames that went as they are, with a mark.
    pub marked: u64,
    /// Frames to or from hosts without packtrain, and group frames.
    pub plain: u64,
    /// Aggregates of the DFAP paper, and the frames in them.
    pub aggregates: u64,
    pub aggregated: u64,
}

/// What carried the host's frames that left, and what would have: [`crate::data_units`] says exactly what counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DataUnits {
    /// Trains, aggregates and frames as links were given them.
    pub given: u64,
    /// The same on a wire, where GSO frames are the segments that they stand for.
    pub on_wire: u64,
    /// Packets of 1500 bytes that the same frames would have needed.
    pub packets_of_1500: u64,
}

/// What ended the trains that were sent, a counter for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flushes([u64; FlushReason::ALL.len()]);

impl Flushes {
    pub fn count(&mut self, reason: FlushReason) {
        self.0[reason as usize] += 1;
    }

    pub fn get(&self, reason: FlushReason) -> u64 {
        self.0[reason as usize]
    }
}

impl Serialize for Flushes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = FlushReason::ALL.iter();
        serializer.collect_map(all.map(|&reason| (reason.as_str(), self.get(reason))))
    }
}

/// A copy of everything worth reading, taken at one instant. No clock reading of its own.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    pub node_id: NodeId,
    pub address: MacAddr,
    pub mtu: u16,
    /// Frames taken from and given to the host.
    pub host_rx: Traffic,
    pub host_tx: Traffic,
    pub links: Vec<LinkSnapshot>,
    pub peers: Vec<PeerSnapshot>,
    /// Stations without packtrain.
    pub hosts: Vec<HostSnapshot>,
    pub trains_tx: Trains,
    pub trains_rx: Trains,
    pub flushes: Flushes,
    pub train_sizes: TrainSizesSnapshot,
    pub data_units: DataUnits,
    pub coding: CodingSnapshot,
    /// What payload is compressed with to and from peers that have the same one.
    pub dictionary: Option<DictionarySnapshot>,
    pub dfap: DfapSnapshot,
    /// In their order; the last is the rest.
    pub classes: Vec<ClassSnapshot>,
    pub queue: QueueSnapshot,
    pub sand: SandSnapshot,
    pub elephants: ElephantsSnapshot,
    pub resequencer: ResequencerSnapshot,
    pub replay: ReplaySnapshot,
    pub reassembly: ReassemblySnapshot,
    pub direct: DirectSnapshot,
    pub too_big: TooBigSnapshot,
    pub drops: Drops,
}

/// What trains have saved of what their frames would have taken each alone; bytes as Ethernet spends them, preamble, FCS
/// and gap included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CodingSnapshot {
    /// Trains that left coded, and such that came.
    pub coded_tx: u64,
    pub coded_rx: u64,
    /// Those of them that were compressed with the dictionary.
    pub dictionary_tx: u64,
    pub dictionary_rx: u64,
    /// Frames of them whose headers were told apart from another's.
    pub deltas_tx: u64,
    /// The frames in trains, each as it would have left alone; a GSO frame as its segments.
    pub frame_bytes: u64,
    /// The trains.
    pub train_bytes: u64,
    /// Of the difference: padding of short frames, headers told apart, payload compressed. The rest is framing: headers,
    /// preambles and gaps of Ethernet; it is negative where trains cost more than they save.
    pub saved_padding: u64,
    pub saved_headers: u64,
    pub saved_payload: u64,
    /// What was given to the compressor.
    pub tried_bytes: u64,
    /// What filling a train with what is compressed costs the processor, as its owner has measured it: nanoseconds for 1,000
    /// bytes.
    pub cost_ns_per_kb: u64,
}

impl CodingSnapshot {
    pub fn saved_framing(&self) -> i64 {
        let others = self.saved_padding + self.saved_headers + self.saved_payload;
        self.frame_bytes as i64 - self.train_bytes as i64 - others as i64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DictionarySnapshot {
    /// By which both ends name it.
    pub id: u32,
    pub len: usize,
}

/// Why no train to a peer is compressed with the dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DictionaryUnused {
    /// This node has none.
    NoneHere,
    /// Trains cannot go to it now.
    NotUp,
    /// Trains to it are not coded: by our settings, or because it does not take such.
    NotCoded,
    /// The peer has none.
    NoneThere,
    /// The peer has another one.
    AnotherThere,
    /// No class has its payload compressed.
    Classes,
    /// How much the links to it carry is not known yet.
    RateUnknown,
    /// The links to it are so fast that compressing would take longer than it saves.
    FastLinks,
}

#[derive(Clone, Debug, Serialize)]
pub struct ClassSnapshot {
    pub name: String,
    /// As people write it; `None` of the rest.
    pub matches: Option<String>,
    pub action: Action,
    /// Of the action, as their owner calls them.
    pub links: Vec<String>,
    /// Frames that the host has sent to the engine.
    pub traffic: Traffic,
    /// From when those that left had come.
    pub waited: HoldSnapshot,
}

#[derive(Clone, Debug, Serialize)]
pub struct LinkSnapshot {
    pub id: LinkId,
    pub address: MacAddr,
    pub mtu: u16,
    pub carrier: bool,
    /// Measured, else the driver's; bit/s.
    pub rate_bps: Option<u64>,
    /// Age of the measurement; `None` when the rate is not a measured one.
    pub rate_age: Option<Duration>,
    pub sand: LinkSand,
    /// Bytes of ours in the link's local queue, as last told.
    pub local_queue_bytes: u64,
    pub local_queue_age: Option<Duration>,
    /// Sent in trains and not acknowledged, all peers.
    pub in_flight_bytes: u64,
    /// Frames for hosts without packtrain, and group frames, leave its segment by it.
    pub home: bool,
    /// Whether its owner says that a switch has it in a link aggregation, and whether that is so.
    pub lag: Option<LagUse>,
    /// It is to leave: no new trains are put on it, unless the only others are joining.
    pub retiring: bool,
    pub tx: Traffic,
    pub rx: Traffic,
    /// Trains with subframes of all peers, replays included.
    pub trains_tx: u64,
    pub trains_rx: u64,
    pub drops: Drops,
}

#[derive(Clone, Debug, Serialize)]
pub struct PeerSnapshot {
    pub node_id: NodeId,
    pub address: MacAddr,
    /// Both directions are known to work.
    pub up: bool,
    /// Its engine is away, and only direct frames reach it.
    pub away: bool,
    pub software: String,
    pub capabilities: u32,
    pub mtu: u16,
    pub last_heard: Duration,
    pub paths: Vec<PathSnapshot>,
    pub queued_frames: u64,
    pub queued_bytes: u64,
    /// Of the links that carry trains to it; `None` before any could.
    pub tier: Option<u8>,
    /// What came of it, and waited for its turn.
    pub hold: HoldSnapshot,
    /// What was done last with a frame to it that left it to the engine whether it waits.
    pub auto: AutoChoice,
    /// Why not all frames to it may go past the engine.
    pub engine_because: Option<EngineBecause>,
    /// The dictionary that it has.
    pub dictionary: Option<u32>,
    /// `None`: payload to it is compressed with ours, where that is worth it.
    pub dictionary_unused: Option<DictionaryUnused>,
}

/// Whether the two links of a path hear each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LivenessSnapshot {
    pub state: State,
    /// Why it was down last.
    pub diagnostic: Diagnostic,
    /// So long without a word, and it is dead.
    pub detection_time: Duration,
    /// Between two messages of ours while nothing else goes there.
    pub interval: Duration,
    /// Of such messages.
    pub round_trip: Option<Duration>,
    /// It is back, and is used in so long.
    pub held_for: Option<Duration>,
}

/// One of our links to one of the peer's.
#[derive(Clone, Debug, Serialize)]
pub struct PathSnapshot {
    pub link: LinkId,
    pub remote_link: LinkId,
    pub remote_address: MacAddr,
    pub round_trip: Option<Duration>,
    pub round_trip_min: Option<Duration>,
    pub rate_bps: Option<u64>,
    pub in_flight_bytes: u64,
    pub window_bytes: u64,
    pub lost_trains: u64,
    pub liveness: Option<LivenessSnapshot>,
    /// How often it has died.
    pub failures: u64,
    /// Trains put on it, replays included.
    pub trains_tx: u64,
    /// Of those that wait for the peer, frames that may go by it.
    pub queued_frames: u64,
    pub state: PathState,
    pub measures: PathMeasures,
    pub size: PathSize,
    /// Which frames may go by it past the engine.
    pub direct: Option<OpenTo>,
    /// By what those are known; `None`: nothing was answered yet.
    pub direct_mark: Option<DirectKind>,
    /// Why not by the others.
    pub direct_marks_refused: Vec<(DirectKind, KindRefused)>,
    /// Flows that may be lost with a link are spread over it and others.
    pub direct_stripes: bool,
    /// Direct frames that the peer had by it long after later ones of their flow.
    pub direct_late: u64,
    pub reordering_seen: bool,
}

/// What a path is used for now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PathState {
    /// Trains go over it.
    #[default]
    Open,
    /// One of its ends has no carrier, or too small an MTU.
    Closed,
    /// New: what went unsequenced by another path has to arrive before.
    Joining,
    /// Its trains were not acknowledged for too long: they were replayed on others, and copies show
    /// whether it works again.
    Silent,
    /// It has to show first that it works: it is new, or came back a moment ago.
    Held,
    /// It is to leave: what is under way on it arrives, and nothing new is put on it, unless the only others are joining.
    Retiring,
    /// It works, and the settings use another one.
    Backup,
    /// So much slower than the others that more would have to wait for its trains than can.
    TooSlow,
}

/// What is known of a link aggregation that somebody has set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LagUse {
    /// Nothing speaks against it.
    Used,
    /// Our own hello came back by another link of it, as it does not where a switch takes them for one.
    Refused,
}

impl LagUse {
    pub fn as_str(self) -> &'static str {
        match self {
            LagUse::Used => "used",
            LagUse::Refused => "refused",
        }
    }
}

/// How many frames the trains and aggregates that left carried, and how full they were: what is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrainSizesSnapshot {
    pub frames: Vec<FramesBucket>,
    pub fill: Vec<FillBucket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FramesBucket {
    /// Whole frames, and last pieces; 255 stands for more, too.
    pub frames: u16,
    pub trains: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FillBucket {
    /// Of what the link takes, and five percent less at least.
    pub percent_max: u8,
    pub trains: u64,
}

/// The DFAP paper's protocol.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DfapSnapshot {
    pub mode: Mode,
    /// Those that are sent aggregates.
    pub stations: Vec<StationSnapshot>,
    /// Whether waits are on by the traffic count; `None`: no class goes by it.
    pub is_on: Option<bool>,
    /// Packets a second over its last fifteen intervals.
    pub average_per_second: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct StationSnapshot {
    pub address: MacAddr,
    pub ether_type: u16,
    /// The settings name it.
    pub listed: bool,
    /// Our link to it, as frames were queued last.
    pub home: LinkId,
    pub queued_frames: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct HostSnapshot {
    pub address: MacAddr,
    pub link: LinkId,
    pub last_heard: Duration,
}

/// What small frames wait for at a link, as fast as it is: what stands in its local queue, and the frame before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkSand {
    /// At which its local queue was seen draining lately, bit/s.
    pub rate_bps: Option<u64>,
    /// Bytes of the longest frame that goes at once; `None`: as long as the link takes.
    pub frame_bytes_max: Option<u64>,
    /// How long one waits at most with what may stand now. `None`: nobody knows, or has to.
    pub waits_max: Option<Duration>,
    /// The owner was too late to keep the link busy with less.
    pub is_late: bool,
}

/// How long small frames have waited here: in the engine for their turn, and then for what stood in the link's local queue.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SandSnapshot {
    /// What was asked for.
    pub delay_max: Option<Duration>,
    pub waited: HoldSnapshot,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct QueueSnapshot {
    pub frames: u64,
    pub bytes: u64,
    pub flows: u64,
    pub frames_max_seen: u64,
    pub bytes_max_seen: u64,
    /// Frames that CoDel has marked (RFC 3168), and would have dropped if their senders did not understand that; those that had
    /// come with a mark included.
    pub marked: u64,
}

/// Flows of the host's frames that the engine was given; of those that went past it nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ElephantsSnapshot {
    /// Bytes that a mouse may send.
    pub bytes_max: u32,
    /// Flows of the last seconds that have sent more, and others.
    pub elephants: u64,
    pub mice: u64,
    /// Ever: a flow's frames before it was an elephant are a mouse's.
    pub of_elephants: Traffic,
    pub of_mice: Traffic,
    /// Flows that were forgotten before they were idle: there were too many.
    pub evicted: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ResequencerSnapshot {
    pub held_trains: u64,
    pub held_bytes: u64,
    pub held_bytes_max_seen: u64,
    /// Sequences given up as lost.
    pub gaps: u64,
    pub reordered: u64,
}

/// How long what came of a peer waited for its turn, and how much of it did: trains, and frames outside
/// trains where they waited behind some. Times are those of buckets, at most an eighth too long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HoldSnapshot {
    pub trains: u64,
    /// For a microsecond or longer.
    pub held_trains: u64,
    /// So many of all trains were held no longer; zero: not at all.
    pub p50: Duration,
    pub p99: Duration,
    pub p999: Duration,
    pub max: Duration,
    /// Those that are not empty, shortest first.
    pub buckets: Vec<HoldBucket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HoldBucket {
    /// All of it was held shorter than this, by a ninth of it at most; in the first for less than a
    /// microsecond.
    pub below: Duration,
    pub trains: u64,
}

/// Trains of which a copy is kept, in case that their link dies.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ReplaySnapshot {
    pub kept_trains: u64,
    pub kept_bytes: u64,
    pub kept_bytes_max_seen: u64,
    /// Waiting to be sent again.
    pub waiting_trains: u64,
    /// Sent again on another link, ever.
    pub replayed: u64,
    /// Of those, what a link had lost that lives.
    pub repaired: u64,
    /// Lost on such a link, and not sent again: too late, or too many.
    pub not_repaired: u64,
    /// Sent by a second link too, ever, because the class or the line says so; and not: no other had room, or trains had to say
    /// which direct frames they must not overtake.
    pub duplicated: u64,
    pub not_duplicated: u64,
    /// Sent without a copy, ever: the memory for copies was full.
    pub not_kept: u64,
}

/// Frames that were too long for where they would have to go, by what their senders were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TooBigSnapshot {
    /// By ICMP: how much goes through.
    pub told: u64,
    /// Nothing, because too many were told just then.
    pub withheld: u64,
    /// Nothing, because nobody is told of such a frame, or its addressee may have packtrain.
    pub untold: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ReassemblySnapshot {
    pub frames: u64,
    pub bytes: u64,
    pub bytes_max_seen: u64,
    pub completed: u64,
    /// GSO frames with a hole, delivered as their complete segments.
    pub partial: u64,
}
