//! The engine: what travels and what decides, composed of the parts beside this file.
//!
//! # The contract
//! The engine does no I/O and reads no clock. Its owner calls, and `now` never goes back:
//!
//! - `handle_*` tells it what happened: a frame from the host, a frame from a link, a link's
//!   state, a link's local queue, time that passed. None of them blocks, and each may change what
//!   every `poll_*` gives.
//! - `poll_*` takes out what it wants done, one thing a call, until `None`:
//!   [`Engine::poll_transmit`] (put this on that link), [`Engine::poll_delivery`] (give this to the
//!   host), [`Engine::poll_event`]. What they return is borrowed until the next call.
//! - [`Engine::poll_timeout`] is when [`Engine::handle_timeout`] is to be called at the latest.
//!
//! The order after each `handle_*`, or after a batch of them, is: deliveries, then transmits,
//! then events, then the timeout.
//!
//! ## Room on a link
//! `poll_transmit` gives a frame for a link only while what stands below is less than the link's
//! limit: bytes in its local queue, as told by [`Engine::handle_link_queue`] plus what was given
//! since, and bytes in flight that no acknowledgement has named. After each batch the owner tells
//! the local queue again when it has changed and matters: while something stands there, while
//! frames wait in the engine, or after a few full-size frames; a link that never has a local queue
//! needs no telling beyond 0. Where [`Engine::asks_for_backlog`], it is told before frames of the host are given,
//! too. [`Engine::link_queue_limit`] says below which fill the owner is to wake up and tell.

use std::collections::VecDeque;

use crate::buffer::{Buffer, BufferPool};
use crate::class::{self, ClassTable};
use crate::classifier::Classifier;
use crate::coding::coder::Coder;
use crate::coding::dictionary::Zstd;
use crate::coding::restore::Restorer;
use crate::coding::worth::Worths;
use crate::config::{Config, LinkId, LinkState, NodeId};
use crate::dfap::stations::Stations;
use crate::direct::rest::Rest;
use crate::direct::small_frames::SmallFrames;
use crate::drain::Drain;
use crate::duplicates::Duplicates;
use crate::elephants::Elephants;
use crate::former_homes::FormerHomes;
use crate::greeter::Greeter;
use crate::intake::Intake;
use crate::link::Link;
use crate::offload::Offload;
use crate::peer::Peer;
use crate::peer_table::PeerTable;
use crate::queue::plain::{PlainQueues, Spread};
use crate::reassembly::Complete;
use crate::sand::SandWaits;
use crate::segments::Segments;
use crate::station_table::{StationTable, StationsBehind};
use crate::stats::{
    CodingSnapshot, DataUnits, DropReason, Drops, EngineBecause, Flushes, PathBecause, PathState,
    Traffic, Trains,
};
use crate::time::{Duration, Instant};
use crate::train_sizes::TrainSizes;
use crate::trunk::via::Vias;
use crate::turns::Turns;
use crate::waiting::Waiting;
use crate::wire::ethernet::{HEADER_LEN, MacAddr};
use crate::wire::train::REPLAYED_FROM;

mod answer;
mod away;
mod capacity;
mod dfap;
mod direct;
mod direct_counts;
mod drain;
mod duplicate;
mod from_host;
mod from_link;
mod full;
mod greet;
mod head;
mod home;
mod join;
mod kinds;
mod lanes;
mod late;
mod liveness;
mod paths;
mod release;
mod repair;
mod replay;
mod rest;
mod retire;
mod sand;
mod silence;
mod size;
mod snapshot;
mod tell;
mod tiers;
mod timers;
mod to_host;
mod too_big;
mod transmit;
mod wait;
mod watch;
mod way;

pub use crate::direct::{DirectDestination, DirectSource, OpenTo};
pub use away::Word;

use capacity::Carrying;
use direct::Published;
use direct_counts::DirectTotals;
use full::Full;
use lanes::LaneChange;
use replay::Copies;
use rest::Kept;
use to_host::{Arrival, Unbundling, Unpacking};
use too_big::TooBig;

/// Bytes that one destination may send before another has its turn.
const TURN_BYTES: usize = 16 * 1024;
/// What a hello can tell of stations behind us.
const STATIONS_BEHIND_MAX: usize = 168;

/// A frame to put on a link.
#[derive(Debug)]
pub struct Transmit<'a> {
    pub link: LinkId,
    pub frame: &'a [u8],
    pub offload: Offload,
}

/// A frame to give to the host: `head` (the Ethernet header) and `body` one after the other.
#[derive(Debug)]
pub struct Delivery<'a> {
    pub head: &'a [u8],
    pub body: &'a [u8],
    pub offload: Offload,
}

impl Delivery<'_> {
    #[allow(clippy::len_without_is_empty)] // a frame has at least a header
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

/// What the owner may want to log, or must act upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    PeerUp {
        node_id: NodeId,
        address: MacAddr,
    },
    PeerDown {
        node_id: NodeId,
        address: MacAddr,
        reason: PeerDownReason,
    },
    /// The set of outer source addresses that mark frames for us has changed: read
    /// [`Engine::marks`] again.
    MarksChanged,
    /// The rate at which the host's frames should be taken, bit/s: the line is slower than the
    /// host. `None`: as they come.
    IntakeRate {
        rate_bps: Option<u64>,
        /// Longer frames would be cut, so that small ones need not wait for them, bytes: the host is to make none.
        frame_max: usize,
    },
    /// Where frames may go past the engine, or come from, has changed: read
    /// [`Engine::direct_destinations`] and [`Engine::direct_sources`] again.
    PathsChanged,
    /// A peer wants to know how many of its direct frames have come, of this direct mark on this link:
    /// [`Engine::handle_direct_received`]; and first, as the answer says so, how many have gone to its `pt0`:
    /// [`Engine::handle_direct_sent`].
    DirectAsked {
        link: LinkId,
        direct_mark: MacAddr,
        address: MacAddr,
    },
    /// Flows rest for some milliseconds, that they may change to the direct path: [`Engine::request_drain`] is wanted at once, and
    /// again when it is answered, until then.
    FlowsRest,
    /// What [`Engine::request_drain`] asked for has happened.
    Drained {
        ticket: u64,
    },
    /// What was under way on a link that [`Engine::retire_link`] was told of has arrived, or has had
    /// its time: [`Engine::remove_link`] loses nothing now.
    LinkRetired {
        link: LinkId,
    },
    /// Hosts without packtrain reach us by this link from now on, and did so by another one before:
    /// its segment's switches and neighbours are to be told.
    HomeMoved {
        link: LinkId,
    },
    /// Trains to a peer are carried by links of another tier from now on.
    TierChanged {
        node_id: NodeId,
        address: MacAddr,
        from: u8,
        to: u8,
    },
    /// A host that speaks no trains is sent aggregates from now on; or no longer.
    StationUp {
        address: MacAddr,
    },
    StationDown {
        address: MacAddr,
    },
    /// The traffic count of the DFAP paper has switched waits on, or off.
    WaitsSwitched {
        on: bool,
    },
    /// A path to a peer that is up is used in another way, or for the first time. Of one that changes all the time not
    /// every change is told.
    PathChanged {
        node_id: NodeId,
        address: MacAddr,
        link: LinkId,
        /// `None`: it is gone with its link.
        state: Option<PathState>,
        because: PathBecause,
        /// What was told last, how long that had lasted, and how many changes since were not told.
        before: Option<PathState>,
        lasted: Duration,
        skipped: u32,
    },
    /// A path's measured rate has differed by more than a quarter from what was told last, for a second at least.
    PathRate {
        node_id: NodeId,
        address: MacAddr,
        link: LinkId,
        /// `None`: it was not known.
        before_bps: Option<u64>,
        rate_bps: u64,
    },
    /// Other frames pass a path than was told last, payload bytes. Of one that lets pass what both its ends take nothing is told at
    /// first.
    PathMtu {
        node_id: NodeId,
        address: MacAddr,
        link: LinkId,
        before: u16,
        mtu: u16,
        /// What both ends take.
        mtu_of_ends: u16,
    },
    /// Frames to a peer go past the engine, all that are not kept back for a reason of their own; or no longer. For a second at
    /// least.
    DirectChanged {
        node_id: NodeId,
        address: MacAddr,
        /// Why they go by the engine; `None`: they do not.
        because: Option<EngineBecause>,
        lasted: Duration,
        skipped: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerDownReason {
    /// It said goodbye.
    Goodbye,
    /// Not heard for too long.
    Silent,
    /// Heard, but it has not heard us for too long.
    Deaf,
    /// The same link now speaks for another node id.
    Restarted,
    /// None of our links reaches it any more.
    NoLink,
}

/// One line: one `pt0` and its member links.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    pool: BufferPool,
    classifier: Classifier,
    elephants: Elephants,
    classes: ClassTable,
    /// By which links frames go whose classes say so.
    vias: Vias,
    lane_change: LaneChange,
    links: Vec<Link>,
    peers: PeerTable,
    stations: StationTable,
    stations_behind: StationsBehind,
    /// Frames that wait may have to go another way than when they came.
    stations_moved: bool,
    /// Frames for hosts without packtrain, and group frames.
    plain: PlainQueues,
    /// Those of them that take aggregates.
    dfap_stations: Stations,
    waiting: Waiting,
    coder: Coder,
    restorer: Restorer,
    worths: Worths,
    segments: Segments,
    former_homes: FormerHomes,
    duplicates: Duplicates,
    spread: Spread,
    /// How many frames have taken their turn among links that a switch takes for one; wraps.
    plain_turns: usize,
    turns: Turns,
    queued_frames: usize,
    queued_bytes: usize,
    /// Host bytes that the links have taken, ever.
    taken_bytes: u64,
    greeter: Greeter,
    intake: Intake,
    carrying: Carrying,
    /// The direct path may be closed to somebody, by some link.
    gates_closed: bool,
    /// … since when these are counted.
    small_frames: SmallFrames,
    full: Full,
    rest: Rest,
    kept: Kept,
    published: Published,
    drain: Drain,
    copies: Copies,
    too_big: TooBig,
    /// Pairs of links that are asked whether they live, about.
    liveness_sessions: u32,
    /// Peers that are owed an acknowledgement.
    ack_slots: Vec<usize>,
    /// Peers, and our link to each, that are to be told of direct frames.
    direct_reports: Vec<(usize, LinkId)>,
    /// Trains in order, and frames as they are, on their way to the host.
    arrivals: VecDeque<Arrival>,
    unpacking: Option<Unpacking>,
    unbundling: Option<Unbundling>,
    /// Frames put together again, ahead of `arrivals`.
    complete: VecDeque<Complete>,
    /// What the last poll lent out.
    outgoing: Option<Buffer>,
    /// What left last, by a second link.
    second: Option<duplicate::Second>,
    delivering: Option<Buffer>,
    delivery_head: [u8; HEADER_LEN],
    events: VecDeque<Event>,
    leaving: bool,
    next_expiry: Instant,
    /// When the engine was last called about time.
    ticked_at: Instant,
    counters: Counters,
}

/// Everything that is counted and belongs to no part.
#[derive(Debug, Default)]
struct Counters {
    host_rx: Traffic,
    host_tx: Traffic,
    trains_tx: Trains,
    trains_rx: Trains,
    flushes: Flushes,
    train_sizes: TrainSizes,
    data_units: DataUnits,
    coding: CodingSnapshot,
    drops: Drops,
    /// Frames that CoDel has marked, and not dropped.
    marked: u64,
    queue_frames_max: usize,
    queue_bytes_max: usize,
    sand: SandWaits,
    let_go_for_room: u64,
    /// Of peers that have left.
    gaps: u64,
    reordered: u64,
    held_bytes_max: usize,
    reassembled: u64,
    reassembled_partly: u64,
    reassembly_bytes_max: usize,
    direct: DirectTotals,
}

impl Counters {
    /// Keeps what a peer that leaves has counted.
    fn retire(&mut self, peer: &Peer) {
        let under_way = peer.trains_and_frames_held();
        self.drops
            .count_many(DropReason::PeerGone, under_way as u64);
        let counts = peer.lane_counts();
        let (order, pieces) = (counts.order, counts.pieces);
        self.gaps += order.gaps;
        self.reordered += order.reordered;
        self.held_bytes_max = self.held_bytes_max.max(order.held_bytes_max);
        self.reassembled += pieces.completed;
        self.reassembled_partly += pieces.partial;
        self.reassembly_bytes_max = self.reassembly_bytes_max.max(pieces.bytes_max);
        peer.paths.iter().for_each(|path| self.direct.add(path));
    }
}

impl Engine {
    pub fn new(config: Config, now: Instant) -> Engine {
        let limits = &config.limits;
        let mut dfap_stations = Stations::new(limits.quantum, config.seed);
        for &station in &config.dfap.stations {
            dfap_stations.list(station, config.dfap.ether_type);
        }
        let mut engine = Engine {
            pool: BufferPool::new(),
            classifier: Classifier::new(config.seed),
            elephants: Elephants::new(config.elephant_bytes),
            classes: ClassTable::new(class::defaults(), config.rest),
            vias: Vias::default(),
            lane_change: LaneChange::None,
            links: Vec::new(),
            peers: PeerTable::new(limits.peers_max, config.seed),
            stations: StationTable::new(limits.stations_max, limits.station_age_max, config.seed),
            stations_behind: StationsBehind::new(
                STATIONS_BEHIND_MAX,
                limits.station_age_max,
                config.seed,
            ),
            stations_moved: false,
            plain: PlainQueues::new(limits.quantum),
            dfap_stations,
            waiting: Waiting::new(config.dfap.tick, config.seed, now),
            coder: Coder::default(),
            restorer: Restorer::default(),
            worths: Worths::new(config.mixing_ns),
            segments: Segments::new(limits.peer_silence_max),
            former_homes: FormerHomes::default(),
            duplicates: Duplicates::new(config.seed),
            spread: Spread::default(),
            plain_turns: 0,
            turns: Turns::new(TURN_BYTES),
            queued_frames: 0,
            queued_bytes: 0,
            taken_bytes: 0,
            greeter: Greeter::new(config.seed, limits, now),
            intake: Intake::new(now),
            carrying: Carrying::new(),
            gates_closed: false,
            small_frames: SmallFrames::default(),
            full: Full::default(),
            rest: Rest::default(),
            kept: Kept::default(),
            published: Published::default(),
            drain: Drain::default(),
            copies: Copies::default(),
            too_big: TooBig::default(),
            liveness_sessions: 0,
            ack_slots: Vec::new(),
            direct_reports: Vec::new(),
            arrivals: VecDeque::new(),
            unpacking: None,
            unbundling: None,
            complete: VecDeque::new(),
            outgoing: None,
            second: None,
            delivering: None,
            delivery_head: [0; HEADER_LEN],
            events: VecDeque::new(),
            leaving: false,
            next_expiry: now,
            ticked_at: now,
            counters: Counters::default(),
            config,
        };
        engine.waiting.set_classes(engine.classes.actions());
        if let Some(dictionary) = &engine.config.dictionary {
            let zstd = || Zstd::new(dictionary).expect("it was tried, and there is memory");
            engine.coder.set_dictionary(Some(zstd()));
            engine.restorer.set_dictionary(Some(zstd()));
        }
        engine
    }

    /// Buffers to read frames into.
    pub fn buffers(&mut self) -> &mut BufferPool {
        &mut self.pool
    }

    fn link(&self, id: LinkId) -> Option<&Link> {
        self.links.iter().find(|link| link.id == id)
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.id == id)
    }

    /// A link joined, or its state changed.
    pub fn handle_link_state(&mut self, link: LinkId, state: LinkState, now: Instant) {
        debug_assert!(link.0 < REPLAYED_FROM, "it stands for what goes again");
        if state.carrier && !self.links.iter().any(|link| link.state.carrier) {
            self.too_big.on_carrier(now);
        }
        match self.link_mut(link) {
            // Whoever follows the links' notifications tells the same again and again.
            Some(known) if known.state == state => return,
            Some(known) => {
                let carried = known.carries_trains();
                known.state = state;
                if carried && !known.carries_trains() {
                    self.on_link_down(link, now);
                }
            }
            None => {
                let sand = self.config.sand();
                self.links.push(Link::new(link, state, sand));
                self.plain.add(link);
                self.follow_sand(now);
            }
        }
        self.peers.touch_all();
        self.follow_liveness_of_all(now);
        if !state.carrier {
            self.former_homes.on_left(link, None);
        }
        self.segments.set_carrier(link, state.carrier, now);
        self.update_homes(now);
        self.greeter.hurry(now);
        self.publish_paths();
    }

    /// A link left.
    pub fn remove_link(&mut self, link: LinkId, now: Instant) {
        self.leave_segment(link, now);
        self.former_homes.on_left(link, None);
        for gone in self.links.extract_if(.., |l| l.id == link) {
            self.counters.direct.add_gate(&gone.direct_gate);
        }
        self.peers.touch_all();
        self.stations.forget_link(link);
        self.duplicates.forget_link(link);
        let mut orphans = Vec::new();
        for slot in self.peers.slots() {
            let Some(peer) = self.peers.get(slot) else {
                continue;
            };
            if let Some(at) = peer.paths.iter().position(|path| path.link == link) {
                self.remove_path(slot, at, now);
            }
            if self
                .peers
                .get(slot)
                .is_some_and(|peer| peer.paths.is_empty())
            {
                orphans.push(slot);
            }
        }
        for slot in orphans {
            self.remove_peer(slot, PeerDownReason::NoLink, now);
        }
        // What an only link may take at once is another matter than beside others.
        self.follow_sand(now);
        self.follow_liveness_of_all(now);
        self.redirect_plain_of(link, now);
        self.publish_paths();
    }

    /// Stations behind our own `pt0`, as far as they were heard.
    pub fn stations_behind(&self) -> Vec<MacAddr> {
        self.stations_behind.iter().collect()
    }

    /// Whether what stands on the links is to be told before a frame of the host is given, too: it may wait only while a
    /// queue stands. What was sent since the last time counts as standing, however long ago that was.
    pub fn asks_for_backlog(&self) -> bool {
        self.waiting.asks_for_backlog()
    }

    /// How many bytes of ours stand in the link's local queue now.
    pub fn handle_link_queue(&mut self, link: LinkId, queued_bytes: usize, now: Instant) {
        let Some(known) = self.link_mut(link) else {
            return;
        };
        let is_rated_anew = known.on_told(queued_bytes, now);
        let left = known.left_bytes();
        self.former_homes.on_left(link, Some(left));
        if is_rated_anew {
            self.follow_sand_on(link, now);
        }
    }

    /// What `poll_transmit` gave for this link waits at the owner, because not even a small frame has room, or no
    /// longer does. While it does, a link is given no acknowledgements: they would only grow old behind it.
    pub fn handle_link_blocked(&mut self, link: LinkId, blocked: bool) {
        let known = self.link_mut(link).filter(|link| link.blocked != blocked);
        if let Some(link) = known {
            link.blocked = blocked;
            self.peers.touch_all();
        }
    }

    /// How long the poll took that gave the last train, if that went through the compressor with so many bytes: what it costs
    /// decides on which links it is worth it. Optional; see [`Engine::compressed_bytes`].
    pub fn handle_coding_time(&mut self, compressed_bytes: usize, took: Duration) {
        self.worths.on_cost(compressed_bytes, took);
    }

    /// What was given to the compressor, ever.
    pub fn compressed_bytes(&self) -> u64 {
        self.counters.coding.tried_bytes
    }

    /// The link's local queue refused a frame that `poll_transmit` gave; it is lost, and counted.
    pub fn handle_transmit_refused(&mut self, link: LinkId, now: Instant) {
        match self.link_mut(link) {
            Some(link) => link.on_refused(now),
            None => self.counters.drops.count(DropReason::LinkRefused),
        }
    }

    /// The host did not take a delivery; it is lost, and counted.
    pub fn handle_delivery_refused(&mut self) {
        self.counters.drops.count(DropReason::HostRefused);
    }

    /// The owner has read what it wants for now of what the host sent, and left frames unread, or
    /// there are no more. What stays unread all the time is held back where sockets are charged for it.
    pub fn handle_host_read(&mut self, left_unread: bool) {
        self.intake.on_read(left_unread);
    }

    /// `pt0` was given another MTU, or put into or taken out of a bridge.
    pub fn handle_host_change(&mut self, mtu: u16, promiscuous: bool, now: Instant) {
        self.config.mtu = mtu;
        self.config.promiscuous = promiscuous;
        self.greeter.hurry(now);
        self.publish_paths();
    }

    /// Leaves: the next `poll_transmit`s give the goodbyes. The engine is not to be used after.
    pub fn say_goodbye(&mut self, now: Instant) {
        self.leaving = true;
        // What was kept back is the host's before the line is gone.
        self.rest.end();
        self.greet_all(true, now);
    }

    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if let Some(Event::Drained { .. }) = event {
            // What it kept from the host comes with the deliveries of the next turn.
            if self.rest.on_told() {
                self.note_rest(true, self.ticked_at);
            }
        }
        event
    }

    /// Whether the host's frames wait in the engine.
    pub fn has_frames_waiting(&self) -> bool {
        self.queued_frames > 0
    }

    /// How many of them take turns on the way to the peer of this `pt0`: those that wait for a change of lanes do not yet.
    pub fn frames_waiting_for(&self, address: MacAddr) -> usize {
        let mut peers = self.peers.iter().map(|(_, peer)| peer);
        let peer = peers.find(|peer| peer.address == address);
        peer.map_or(0, |peer| peer.queues.frames())
    }

    /// How often trains that waited for direct frames, or for those of other lanes, were let go before these, because nothing more
    /// would have found room: no order is promised then to what is under way.
    pub fn times_let_go_for_room(&self) -> u64 {
        self.counters.let_go_for_room
    }

    /// Bytes that may stand in the link's local queue.
    pub fn link_queue_limit(&self, link: LinkId) -> usize {
        let limit = match self.links.len() {
            1 => Link::queue_limit,
            _ => Link::shared_queue_limit,
        };
        self.link(link).map_or(0, limit)
    }

    /// Outer source addresses of marked frames for us: of every peer's links.
    pub fn marks(&self) -> Vec<MacAddr> {
        self.peers.marks().collect()
    }

    fn recycle(&mut self, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer {
            self.pool.give_back(buffer);
        }
    }
}
