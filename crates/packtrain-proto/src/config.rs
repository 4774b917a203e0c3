//! What the engine is told once, at its start.

use core::num::NonZero;

use crate::class::Action;
use crate::coding::dictionary::Dictionary;
use crate::coding::worth::MIXING_NS_EXPECTED;
use crate::dfap::best_fit::Order;
use crate::elephants::ELEPHANT_BYTES;
use crate::queue::shares::Weight;
use crate::sand::{SAND_DELAY_MAX, SandBound};
use crate::time::Duration;
pub use crate::unit_size::SizeLaw;
use crate::wire::dfap;
use crate::wire::ethernet::MacAddr;

/// A member link's number, as small as it looks on the wire. Numbers are the caller's choice and
/// are not reused for another link within one life of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct LinkId(pub u8);

/// Four messages of ten milliseconds.
pub const DETECTION_TIME: Duration = Duration::from_millis(40);
pub const HOLD_TIME: Duration = Duration::from_millis(100);
/// Later, whoever speaks by the line has mostly sent it again.
pub const REPAIR_WITHIN: Duration = Duration::from_millis(50);

const QUEUED_BYTES_MAX: usize = 16 << 20;
/// Half the room of all: whatever one flow does, others find as much. It is a window of 1 Gbit/s and 67 ms, or of 100 Mbit/s and 670 ms:
/// what a sender may send at once by the longest and fastest lines that one flow is expected to fill, and CoDel
/// has its say long before so much stands.
pub const FLOW_QUEUE_BYTES_MAX: usize = QUEUED_BYTES_MAX / 2;

/// A node's name for one life of its engine: drawn anew at each start, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct NodeId(pub u64);

impl NodeId {
    /// What trains carry of it.
    pub fn incarnation(self) -> u16 {
        self.0 as u16
    }
}

/// Which of several links a train takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// The one by which it arrives first, of those that have room.
    #[default]
    EarliestFinish,
    /// One after the other, those that have no room left out.
    RoundRobin,
    /// The first that works; the others wait for its failure.
    ActiveBackup,
    /// Bytes in proportion to the links' weights, those that have no room left out.
    Weighted,
    /// As by `EarliestFinish`, and by the one by which it arrives next too.
    Duplicate,
    /// A flow by one link as long as that works: by MAC addresses and EtherType.
    HashMac,
    /// … by IP addresses; what is no IP, as by `HashMac`.
    HashIp,
    /// … by IP addresses, protocol and ports; fragments and what has no ports by addresses and protocol, what is no IP as by
    /// `HashMac`.
    HashPort,
}

impl Balance {
    pub const ALL: [Balance; 8] = [
        Balance::EarliestFinish,
        Balance::RoundRobin,
        Balance::ActiveBackup,
        Balance::Weighted,
        Balance::Duplicate,
        Balance::HashMac,
        Balance::HashIp,
        Balance::HashPort,
    ];

    /// Whether each flow keeps to one link.
    pub fn keeps_flows(self) -> bool {
        match self {
            Balance::EarliestFinish
            | Balance::RoundRobin
            | Balance::ActiveBackup
            | Balance::Weighted
            | Balance::Duplicate => false,
            Balance::HashMac | Balance::HashIp | Balance::HashPort => true,
        }
    }
}

/// What a line speaks with those who speak it too. To all others, plain frames go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Trains (docs/wire-format.md), and aggregates with those who know only these.
    #[default]
    Trains,
    /// Aggregates of the DFAP paper alone.
    Dfap,
}

/// Of the DFAP paper's protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DfapConfig {
    /// By which our aggregates are known.
    pub ether_type: u16,
    /// The list of capable systems, beside those that are heard.
    pub stations: Vec<MacAddr>,
    pub order: Order,
    /// What waits and intervals are multiples of.
    pub tick: Duration,
}

impl Default for DfapConfig {
    fn default() -> DfapConfig {
        DfapConfig {
            ether_type: dfap::ETHER_TYPE,
            stations: Vec::new(),
            order: Order::default(),
            tick: Duration::from_millis(10),
        }
    }
}

/// What a link's own host has no use for, so that direct frames may look like it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unused {
    /// Frames without a tag: it has no addresses but link-local ones, nor anything else that they could be meant for.
    pub untagged: bool,
    /// Those in the VLAN of [`Config::direct_vlan`].
    pub vlan: bool,
}

/// What leaves a link's local queue in the order in which it was given to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOrder {
    /// Everything: it is one queue, or none.
    Whole,
    /// What one socket gives to it: ours, but not with what others give.
    Socket,
    /// Frames of one flow, and trains: all of those look alike to it.
    Flow,
}

/// Settings of one line. Every bound of the engine is here.
#[derive(Clone, Debug)]
pub struct Config {
    pub node_id: NodeId,
    /// Nodes of different lines ignore each other.
    pub line_id: u32,
    /// `pt0`'s own address.
    pub address: MacAddr,
    /// `pt0`'s MTU: payload bytes after the EtherType.
    pub mtu: u16,
    /// Send full-size and GSO frames as they are where one link carries them.
    pub marked_frames: bool,
    /// Direct frames are taken from links before they come here, and sent past us: whoever owns the
    /// engine can do both. Only then they are offered to peers.
    pub direct_frames: bool,
    /// The VLAN in which direct frames may go where marks do not pass; nobody else uses it between these links.
    pub direct_vlan: Option<u16>,
    /// By what the length of trains is chosen.
    pub size: SizeLaw,
    /// Offer to take coded trains, and send them to who takes them.
    pub coded_trains: bool,
    /// What payload to and from nodes that have the same one is compressed with.
    pub dictionary: Option<Dictionary>,
    /// What it takes this node to code or to restore a byte by mixing, nanoseconds: peers are told.
    pub mixing_ns: NonZero<u16>,
    pub balance: Balance,
    /// A flow that has sent more is an elephant.
    pub elephant_bytes: u32,
    /// Frames of flows that are no elephants go before those of others.
    pub short_flows_first: bool,
    /// Where CoDel would drop a frame whose sender understands marks, it is marked.
    pub ecn: bool,
    /// Of several links to a peer, one that is silent for so long is dead, if another one lives. `None`: nobody asks,
    /// and what is not acknowledged tells.
    pub detection_time: Option<Duration>,
    /// So long a link has to work that was dead, before it carries trains again; longer where that happens often.
    pub hold_time: Duration,
    /// Links of a higher tier carry trains also while all of the lower ones are full.
    pub tier_spill: bool,
    pub mode: Mode,
    pub dfap: DfapConfig,
    /// What is done with frames that no class matches.
    pub rest: Action,
    /// `pt0` stands in a bridge: frames for other stations than `pt0` are taken from links too.
    pub promiscuous: bool,
    /// Name and version, as peers see them.
    pub software: String,
    pub limits: Limits,
    /// Seeds everything that is random in the engine (flow hashing, hello jitter).
    pub seed: u64,
}

/// The bounds in time, count and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub peers_max: usize,
    pub stations_max: usize,
    /// Frames that wait in flow queues, all together.
    pub queued_frames_max: usize,
    pub queued_bytes_max: usize,
    /// How long a small frame may wait at a link behind what it was given before, at the link's rate: longer frames are cut for
    /// it, and as little stands there. `None`: as long as it takes.
    pub sand_delay_max: Option<Duration>,
    /// Bytes that one flow may have waiting for one destination. `None`: as many as all may.
    pub flow_queue_bytes_max: Option<usize>,
    pub codel_target: Duration,
    pub codel_interval: Duration,
    /// DRR quantum, bytes.
    pub quantum: usize,
    pub reassembly_bytes_max: usize,
    pub reassembly_age_max: Duration,
    /// Of one peer; and of all together, beyond which each holds one train out of turn at most.
    pub resequencer_bytes_max: usize,
    pub resequencer_bytes_total_max: usize,
    /// How long a gap waits at most that every link has passed.
    pub resequencer_wait_max: Duration,
    /// How long one waits at most that a link may still fill.
    pub resequencer_stall_max: Duration,
    /// Trains kept until they are acknowledged, of one peer, and of all together. Where less is allowed than one large train
    /// takes ([`crate::buffer::LARGE_CAPACITY`]), of such trains nothing is kept, also of those that may not be lost.
    pub replay_bytes_max: usize,
    pub replay_bytes_total_max: usize,
    /// What a link has lost that lives goes again, by whichever is the best, if it may arrive so soon after it left
    /// first. `None`: it is lost.
    pub repair_within: Option<Duration>,
    pub hello_interval: Duration,
    pub peer_silence_max: Duration,
    pub station_age_max: Duration,
    /// Answers to unknown nodes a second.
    pub hello_answers_per_second_max: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            peers_max: 256,
            stations_max: 4096,
            queued_frames_max: 8192,
            queued_bytes_max: QUEUED_BYTES_MAX,
            flow_queue_bytes_max: Some(FLOW_QUEUE_BYTES_MAX),
            sand_delay_max: Some(SAND_DELAY_MAX),
            codel_target: Duration::from_millis(5),
            codel_interval: Duration::from_millis(100),
            quantum: 1514,
            reassembly_bytes_max: 4 << 20,
            reassembly_age_max: Duration::from_millis(500),
            resequencer_bytes_max: 16 << 20,
            resequencer_bytes_total_max: 32 << 20,
            resequencer_wait_max: Duration::from_millis(50),
            resequencer_stall_max: Duration::from_secs(2),
            replay_bytes_max: 16 << 20,
            replay_bytes_total_max: 32 << 20,
            repair_within: Some(REPAIR_WITHIN),
            hello_interval: Duration::from_secs(1),
            peer_silence_max: Duration::from_millis(3500),
            station_age_max: Duration::from_secs(300),
            hello_answers_per_second_max: 200,
        }
    }
}

impl Config {
    pub fn sand(&self) -> SandBound {
        SandBound(self.limits.sand_delay_max)
    }

    /// Defaults for everything but what names the node.
    pub fn new(node_id: NodeId, address: MacAddr) -> Config {
        Config {
            node_id,
            line_id: 0,
            address,
            mtu: 1500,
            marked_frames: true,
            direct_frames: false,
            direct_vlan: None,
            size: SizeLaw::default(),
            coded_trains: true,
            dictionary: None,
            mixing_ns: MIXING_NS_EXPECTED,
            balance: Balance::default(),
            elephant_bytes: ELEPHANT_BYTES,
            short_flows_first: false,
            ecn: true,
            detection_time: Some(DETECTION_TIME),
            hold_time: HOLD_TIME,
            tier_spill: false,
            mode: Mode::default(),
            dfap: DfapConfig::default(),
            rest: Action::default(),
            promiscuous: false,
            software: String::from("packtrain"),
            limits: Limits::default(),
            seed: node_id.0,
        }
    }
}

/// A member link as the caller sees it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// The link's own MAC address: the outer source of trains.
    pub address: MacAddr,
    /// Outer source of frames that go as they are; `None` where the link must not use one.
    pub mark: Option<MacAddr>,
    /// Payload bytes after the EtherType.
    pub mtu: u16,
    pub carrier: bool,
    /// As the driver says, bit/s; `None` where it does not know.
    pub rate_bps: Option<u64>,
}

/// What a member link is used for, as its owner wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// A link carries nothing while one of a lower tier works.
    pub tier: u8,
    /// How much of what several links carry is this one's, where weights are asked for. At least 1.
    pub weight: Weight,
    /// It counts as no faster than that, bit/s, whatever is measured.
    pub rate_max_bps: Option<u64>,
    /// A switch has it in a static link aggregation with the others of which this is said.
    pub in_lag: bool,
}

impl Default for LinkSettings {
    fn default() -> LinkSettings {
        LinkSettings {
            tier: 1,
            weight: 1,
            rate_max_bps: None,
            in_lag: false,
        }
    }
}

/// The mark that belongs to a link address (docs/wire-format.md).
pub fn mark_of(address: MacAddr) -> Option<MacAddr> {
    if address.is_zero() {
        return None;
    }
    let mut mark = address.0;
    mark[0] = ((mark[0] ^ 0x5a) & 0xfe) | 0x02;
    mark[5] ^= 0xa5;
    Some(MacAddr(mark))
}

/// The direct mark that belongs to a mark (docs/wire-format.md). It differs in a byte that a
/// manufacturer's addresses have in common, or it could be the mark of a neighbour.
pub fn direct_mark_of(mark: MacAddr) -> MacAddr {
    let mut direct = mark.0;
    direct[1] ^= 0x5a;
    MacAddr(direct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_mark_and_direct_mark_of_a_link_are_three_addresses_of_stations() {
        for last in 0..=u8::MAX {
            for first in (0..=u8::MAX).step_by(2) {
                let address = MacAddr([first, 1, 2, 3, 4, last]);
                let mark = mark_of(address).unwrap();
                let direct = direct_mark_of(mark);
                assert!(direct != mark && direct != address && mark != address);
                assert!(direct.is_local() && !direct.is_group());
            }
        }
    }
}
