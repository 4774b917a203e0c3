//! Everything kept for one node with packtrain: its links, what waits for it, what is in flight to it, the
//! order of what comes from it.

use core::num::NonZero;
use std::collections::VecDeque;

use crate::aggregator::Aggregator;
use crate::buffer::Buffer;
use crate::config::{Limits, LinkId, NodeId};
use crate::direct::counts::DirectCounts;
use crate::direct::fence::FenceWait;
use crate::direct::gate::DirectGate;
use crate::direct::kinds::KindChoice;
use crate::link::TRAIN_MTU_MIN;
use crate::queue::drr::FlowQueues;
use crate::queue::frame::QueuedFrame;
use crate::stats::PathState;
use crate::time::{Duration, Instant};
use crate::trunk::balance::admission::Admission;
use crate::trunk::balance::weighted::Served;
use crate::trunk::damping::Damping;
use crate::trunk::flight::Flight;
use crate::trunk::hold_times::HoldTimes;
use crate::trunk::join::Join;
use crate::trunk::lane::{LANES_MAX, LaneCounts, LaneId, LaneRx, LaneTx, TrainId};
use crate::trunk::lane_waits::Progress;
use crate::trunk::liveness::Session;
use crate::trunk::path_mtu::PathMtu;
use crate::trunk::receipts::Receipts;
use crate::trunk::repair::RepairBudget;
use crate::trunk::told::{ToldRate, ToldState};
use crate::trunk::unsequenced::UnsequencedFrames;
use crate::wire::ethernet::{self, MacAddr};
use crate::wire::hello::{Hello, LINKS_MAX, LinkRecord, capability};
use crate::wire::liveness::State;
use crate::wire::sequence::Sequence;
use crate::wire::train::{Ack, Behind, Fence};

/// A hello is late by fewer than so many others, or it is not late.
const HELLOS_LATE_MAX: u32 = 256;
/// No hello takes longer: when none was the newest for so long, the number of that one was wrong.
const HELLO_LATE_MAX: Duration = Duration::from_secs(4);
/// What a lane sent last is at the other end by then, and given to its host or given up.
const LANE_RESTS: Duration = Duration::from_secs(12);
/// More of them an acknowledgement does not name.
const SAID_FENCES_MAX: usize = 64;
/// An MTU with room for a hello that names as many links as one can.
const HELLO_MTU_MIN: usize = 512;

/// One of our links to one of the peer's.
#[derive(Debug)]
pub struct Path {
    pub link: LinkId,
    pub remote_link: LinkId,
    pub remote_address: MacAddr,
    pub remote_mtu: u16,
    pub remote_carrier: bool,
    pub flight: Flight,
    /// When the other end was.
    pub last_heard: Instant,
    /// All links of the peer that are heard on this one of ours, and when last: a switch may lie between.
    heard: Vec<(LinkId, Instant)>,
    /// Its trains were not acknowledged for too long.
    pub silent: Option<Silence>,
    /// Whether its two links hear each other; `None`: nobody asks.
    pub session: Option<Session>,
    pub damping: Damping,
    /// What went by another path before, without a sequence, must arrive first.
    pub joining: bool,
    /// Our link had no carrier, and nothing was heard on it since: its other end may still have none.
    pub unheard: bool,
    /// Its other end is gone, and what is under way is lost.
    pub broken: bool,
    pub trains_tx: u64,
    /// How long frames may be that pass it, where that can be asked.
    pub mtu: Option<PathMtu>,
    /// What it has carried for its weight.
    pub served: Served,
    /// Whether others are to wait for what it carries.
    pub admission: Admission,
    /// Of frames that went past both engines.
    pub direct: DirectCounts,
    /// By what those are known.
    pub direct_kinds: KindChoice,
    /// When another line was heard from the same link of the peer.
    pub other_line: Option<Instant>,
    /// To those, by what both ends have counted.
    pub direct_gate: DirectGate,
    /// The newest trains by this path that have said what the raised fences of their lane say.
    said_fences: VecDeque<(LaneId, Sequence)>,
    /// Trains, by whichever path, that wait for direct frames of this one.
    pub fence: FenceWait,
    /// What the owner was told of it.
    pub told: ToldState<PathState>,
    pub told_rate: ToldRate,
}

impl Path {
    fn new(link: LinkId, record: &LinkRecord, flight: Flight, now: Instant) -> Path {
        Path {
            link,
            remote_link: record.link,
            remote_address: record.address,
            remote_mtu: record.mtu,
            remote_carrier: record.carrier,
            flight,
            last_heard: now,
            heard: vec![(record.link, now)],
            silent: None,
            session: None,
            damping: Damping::default(),
            joining: false,
            unheard: false,
            broken: false,
            trains_tx: 0,
            mtu: None,
            served: Served::default(),
            admission: Admission::default(),
            direct: DirectCounts::default(),
            direct_kinds: KindChoice::default(),
            other_line: None,
            direct_gate: DirectGate::default(),
            said_fences: VecDeque::new(),
            fence: FenceWait::default(),
            told: ToldState::default(),
            told_rate: ToldRate::default(),
        }
    }

    /// This train says what the raised fences of its lane say.
    pub fn note_said_fences(&mut self, lane: LaneId, sequence: Sequence) {
        if self.said_fences.len() == SAID_FENCES_MAX {
            self.said_fences.pop_front();
        }
        self.said_fences.push_back((lane, sequence));
    }

    pub fn has_heard(&self, remote_link: LinkId) -> bool {
        self.heard.iter().any(|(link, _)| *link == remote_link)
    }

    fn note_heard(&mut self, remote_link: LinkId, now: Instant) {
        self.unheard = false;
        match self.heard.iter_mut().find(|(link, _)| *link == remote_link) {
            Some((_, heard)) => *heard = now,
            None => {
                // A peer names no more links than that at once.
                if self.heard.len() >= LINKS_MAX {
                    let oldest = (0..self.heard.len()).min_by_key(|&at| self.heard[at].1);
                    self.heard.swap_remove(oldest.expect("some"));
                }
                self.heard.push((remote_link, now));
            }
        }
        if self.remote_link == remote_link {
            self.last_heard = now;
        }
    }

    /// Bytes of the largest train, outer header included, over our link of `frame_max`.
    pub fn train_max(&self, frame_max: usize) -> usize {
        let nominal = self.nominal_max(frame_max);
        let found = self.mtu.as_ref().map(PathMtu::bytes);
        found.map_or(nominal, |found| found.min(nominal))
    }

    /// … as both ends say.
    pub fn nominal_max(&self, frame_max: usize) -> usize {
        frame_max.min(usize::from(self.remote_mtu) + ethernet::HEADER_LEN)
    }

    /// What our link of `frame_max` and the other end take may be something else; and once it is known to live it can be
    /// asked what passes.
    pub fn follow_mtu(&mut self, frame_max: usize, answers_polls: bool, now: Instant) {
        let nominal = self.nominal_max(frame_max);
        if let Some(mtu) = &mut self.mtu {
            return mtu.set_nominal(nominal);
        }
        let is_up = |session: &Session| session.state() == State::Up;
        if answers_polls && self.session.as_ref().is_some_and(is_up) {
            self.mtu = Some(PathMtu::new(nominal, self.trains_tx > 0, now));
        }
    }

    /// Long frames are lost on it: they may not pass any more.
    pub fn doubt_mtu(&mut self, now: Instant) {
        if let Some(mtu) = &mut self.mtu {
            mtu.doubt(now);
        }
    }

    /// Nothing shows that it works, and something that it does not.
    pub fn is_silent(&self) -> bool {
        self.silent.is_some() || self.session.as_ref().is_some_and(Session::has_failed)
    }

    /// It is to show first that it works.
    pub fn is_held(&self) -> bool {
        let is_watched =
            |session: &Session| !session.works() || self.damping.held_until().is_some();
        self.session.as_ref().is_some_and(is_watched)
    }

    /// Whether the other end takes trains.
    pub fn is_open(&self) -> bool {
        self.remote_carrier && !self.unheard && self.remote_mtu >= TRAIN_MTU_MIN
    }
}

/// One of our links that answers one of the peer's.
#[derive(Debug)]
pub struct Answering {
    pub link: LinkId,
    pub session: Session,
}

/// Of a path: a copy of one of its trains, sent again and again, shows when it works again.
#[derive(Debug)]
pub struct Silence {
    pub sample: Buffer,
    pub next_try: Instant,
    pub interval: Duration,
    /// Since when a try is due and the link's local queue is full.
    pub no_room_since: Option<Instant>,
    /// How long nothing had been acknowledged by then.
    pub unanswered_for: Duration,
}

#[derive(Debug)]
pub struct Peer {
    pub node_id: NodeId,
    /// Its `pt0`'s.
    pub address: MacAddr,
    pub capabilities: u32,
    pub mtu: u16,
    /// So many it takes.
    pub lanes: u8,
    /// In which it takes direct frames.
    pub direct_vlan: Option<u16>,
    /// The dictionary that it has.
    pub dictionary: Option<u32>,
    /// What it takes it to restore a byte of mixing, nanoseconds; not every one says it.
    pub mixing_ns: Option<NonZero<u16>>,
    pub software: String,
    /// It hears us: trains may go.
    pub up: bool,
    /// Its engine is away, and only direct frames reach it.
    pub away: bool,
    pub last_heard: Instant,
    /// When it last said that it hears us.
    pub last_confirmed: Instant,
    /// What tells one of our states for it from an earlier one, and its for us.
    pub epoch: u8,
    /// `None`: it has not named us yet, and what it sends may be for our former life.
    pub remote_epoch: Option<u8>,
    /// Its epoch, and the train that was due, when it was forgotten before.
    pub(crate) left_at: Option<(u8, Sequence)>,
    /// When we last asked for it.
    pub epoch_asked: Option<Instant>,
    /// Of the newest of its hellos, and when it came.
    hello_count: u32,
    newest_hello_at: Instant,
    /// Its links, as it says.
    pub links: Vec<LinkRecord>,
    /// What of it the table's indexes were last made from: `pt0`'s address, and the links.
    pub(crate) indexed: Option<(MacAddr, Vec<LinkRecord>)>,
    pub paths: Vec<Path>,
    /// Pairs of links that are none of our paths and are asked for by the other end: it has chosen others.
    pub answering: Vec<Answering>,
    /// Our link on which what it sends to everybody is taken.
    pub group_link: Option<LinkId>,
    /// Our home link by which frames as they are go to it, as long as they can: by another one they
    /// might overtake.
    pub plain_home: Option<LinkId>,
    pub receipts: Vec<Receipts>,
    /// It stands in the list of peers to acknowledge.
    pub ack_listed: bool,
    pub queues: FlowQueues,
    /// Frames that came since classes have named other links, while some wait that came before; `None`: none do.
    pub later: Option<Vec<QueuedFrame>>,
    pub aggregator: Aggregator,
    /// By [`LaneId::place`]; there is at least one.
    pub tx: Vec<LaneTx>,
    /// What its links lose that live goes again so soon after it left first; `None`: it is lost.
    repair_within: Option<Duration>,
    pub repair_budget: RepairBudget,
    pub join: Option<Join>,
    /// Of the links that carry trains to it, as was told last.
    pub tier_in_use: Option<u8>,
    /// When its links were last looked at for which are worth being waited for.
    pub admitted_at: Instant,
    /// The link by which the last train left.
    pub last_link: LinkId,
    /// Ours by which its last train came.
    pub last_arrival: LinkId,
    /// When an acknowledgement last went by that.
    pub answered_by_arrival_at: Instant,
    /// By [`LaneId::place`]; there is at least one.
    pub rx: Vec<LaneRx>,
    /// Of those that are no more.
    rx_before: LaneCounts,
    pub hold_times: HoldTimes,
    /// Frames without a sequence that came while trains were held.
    pub unsequenced: UnsequencedFrames,
    /// Whether frames go past the engine, as the owner was told.
    pub told_direct: ToldState<bool>,
}

impl Peer {
    pub(crate) fn new(hello: &Hello, epoch: u8, limits: &Limits, now: Instant) -> Peer {
        Peer {
            node_id: hello.node_id,
            address: hello.address,
            capabilities: hello.capabilities,
            mtu: hello.mtu,
            lanes: hello.lanes,
            direct_vlan: hello.direct_vlan,
            dictionary: hello.dictionary,
            mixing_ns: hello.mixing_ns,
            software: hello.software.clone(),
            up: false,
            away: false,
            last_heard: now,
            last_confirmed: now,
            epoch,
            remote_epoch: None,
            left_at: None,
            epoch_asked: None,
            hello_count: 0,
            newest_hello_at: now,
            links: hello.links.clone(),
            indexed: None,
            paths: Vec::new(),
            answering: Vec::new(),
            group_link: None,
            plain_home: None,
            receipts: Vec::new(),
            ack_listed: false,
            queues: FlowQueues::new(limits.quantum),
            later: None,
            aggregator: Aggregator::default(),
            tx: vec![LaneTx::default()],
            repair_within: limits.repair_within,
            repair_budget: RepairBudget::default(),
            join: None,
            tier_in_use: None,
            admitted_at: Instant::ZERO,
            last_link: LinkId(0),
            last_arrival: LinkId(0),
            answered_by_arrival_at: Instant::ZERO,
            rx: vec![LaneRx::new(Sequence::FIRST, limits)],
            rx_before: LaneCounts::default(),
            hold_times: HoldTimes::default(),
            unsequenced: UnsequencedFrames::default(),
            told_direct: ToldState::known(false, now),
        }
    }

    /// All that is asked about its links and ours.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        let of_paths = self.paths.iter().filter_map(|path| path.session.as_ref());
        of_paths.chain(self.answering.iter().map(|answering| &answering.session))
    }

    /// By whichever of its links it is the longest, as far as is known.
    pub fn longest_round_trip(&self) -> Duration {
        let of_path = |path: &Path| {
            let asked = path.session.as_ref().and_then(Session::round_trip);
            asked.max(path.flight.round_trip())
        };
        let longest = self.paths.iter().filter_map(of_path).max();
        longest.unwrap_or_default()
    }

    /// What a link loses that lives goes again so soon after it left first. `None`: not to this peer, or nothing could arrive in
    /// that time.
    pub fn repairs_within(&self) -> Option<Duration> {
        let waits = self.capabilities & capability::REPAIR != 0;
        let in_time = |within: Duration| {
            let mut paths = self.paths.iter();
            paths.any(|path| path.flight.repaired_after() <= within)
        };
        self.repair_within
            .filter(|within| waits && self.paths.len() > 1 && in_time(*within))
    }

    pub fn path(&self, link: LinkId) -> Option<&Path> {
        self.paths.iter().find(|path| path.link == link)
    }

    pub fn path_mut(&mut self, link: LinkId) -> Option<&mut Path> {
        self.paths.iter_mut().find(|path| path.link == link)
    }

    /// Whether a hello of this number is newer than all before. One that is much older was forged, or
    /// those before it were.
    pub fn is_newest(&mut self, count: u32, now: Instant) -> bool {
        let behind = self.hello_count.wrapping_sub(count);
        let is_behind = (1..HELLOS_LATE_MAX).contains(&behind);
        let may_be_late = now.since(self.newest_hello_at) < HELLO_LATE_MAX;
        let is_old = count != 0 && self.hello_count != 0 && is_behind && may_be_late;
        if !is_old {
            self.hello_count = count;
            self.newest_hello_at = now;
        }
        !is_old
    }

    /// Takes in what a hello says, heard on our `link` (its largest frame: `frame_max`) from the
    /// peer's link `record`. Of one that is not the newest, only that it was heard.
    pub fn update(
        &mut self,
        hello: &Hello,
        is_newest: bool,
        (link, frame_max): (LinkId, usize),
        record: &LinkRecord,
        limits: &Limits,
        now: Instant,
    ) {
        self.last_heard = now;
        if is_newest {
            self.address = hello.address;
            self.capabilities = hello.capabilities;
            self.mtu = hello.mtu;
            self.lanes = hello.lanes;
            self.direct_vlan = hello.direct_vlan;
            self.dictionary = hello.dictionary;
            self.mixing_ns = hello.mixing_ns;
            if self.software != hello.software {
                self.software.clone_from(&hello.software);
            }
            self.links.clone_from(&hello.links);
        }
        match self.paths.iter_mut().find(|path| path.link == link) {
            Some(path) => path.note_heard(record.link, now),
            None => {
                let frame_max = frame_max.min(usize::from(record.mtu) + ethernet::HEADER_LEN);
                let mut path = Path::new(link, record, Flight::new(frame_max), now);
                // Before it was up, nothing was sent to it.
                path.joining = self.up && !self.paths.is_empty();
                self.paths.push(path);
            }
        }
        // Over a link of a small MTU a hello may leave some links out.
        let names_all = usize::from(record.mtu) >= HELLO_MTU_MIN;
        self.choose_remote_links(names_all, limits.peer_silence_max, now);
        self.follow_fences();
        for path in &mut self.paths {
            if let Some(record) = self.links.iter().find(|r| r.link == path.remote_link) {
                path.broken |= path.is_open() && !record.carrier;
                if !path.is_open() {
                    path.silent = None;
                }
                path.remote_address = record.address;
                path.remote_mtu = record.mtu;
                path.remote_carrier = record.carrier;
            }
        }
    }

    /// Each link of ours has one of the peer's as its other end: as long as it works the same, but not one
    /// that another link of ours has while one is free, or a switch would send all to one port.
    fn choose_remote_links(&mut self, names_all: bool, silence_max: Duration, now: Instant) {
        for at in 0..self.paths.len() {
            let path = &self.paths[at];
            let works = |&(remote, heard): &(LinkId, Instant)| {
                let carries = match self.links.iter().find(|record| record.link == remote) {
                    Some(record) => record.carrier && record.mtu >= TRAIN_MTU_MIN,
                    None => !names_all && remote == path.remote_link && path.is_open(),
                };
                carries && now.since(heard) < silence_max
            };
            let is_others = |remote: LinkId| {
                let others = self.paths.iter().enumerate();
                others
                    .into_iter()
                    .any(|(other, p)| other != at && p.remote_link == remote)
            };
            let working = || path.heard.iter().filter(|heard| works(heard));
            let current = working().find(|(remote, _)| *remote == path.remote_link);
            let free = working().find(|(remote, _)| !is_others(*remote));
            let wanted = match (current, free) {
                (Some(current), _) if !is_others(current.0) => current,
                (_, Some(free)) => free,
                (Some(current), None) => current,
                (None, None) => match working().next() {
                    Some(any) => any,
                    None => continue,
                },
            };
            let (remote_link, last_heard) = *wanted;
            let other_end_is_lost = current.is_none();
            let path = &mut self.paths[at];
            let is_another = path.remote_link != remote_link;
            path.broken |= other_end_is_lost && is_another;
            if is_another {
                // Neither end has counted what goes directly between these two.
                path.direct.restart();
                path.fence.restart();
                path.mtu = None;
            }
            path.remote_link = remote_link;
            path.last_heard = last_heard;
        }
    }

    /// What had to arrive before the newest paths are used has arrived, or never will.
    pub fn end_join(&mut self) {
        self.join = None;
        self.paths.iter_mut().for_each(|path| path.joining = false);
    }

    /// It is to go again.
    pub fn push_replay(&mut self, train: TrainId, message: Buffer) {
        self.tx_mut(train.lane).replay.push(train.sequence, message);
    }

    /// So many lanes may be used to it, if it takes as many.
    pub fn use_lanes(&mut self, count: usize) {
        if self.tx.len() < count {
            self.tx.resize_with(count, LaneTx::default);
        }
    }

    /// In which lane trains go that are to be of this one.
    pub fn lane_towards(&self, wanted: LaneId) -> LaneId {
        match wanted.place() < self.tx.len().min(usize::from(self.lanes)) {
            true => wanted,
            false => LaneId::FIRST,
        }
    }

    /// The lanes in which anything was ever sent to it, and the first one.
    pub fn lanes_tx(&self) -> impl Iterator<Item = LaneId> + use<> {
        LaneId::first(self.tx.len())
    }

    /// … in which anything came of it, and the first one.
    pub fn lanes_rx(&self) -> impl Iterator<Item = LaneId> + use<> {
        LaneId::first(self.rx.len())
    }

    pub fn tx_of(&self, lane: LaneId) -> &LaneTx {
        &self.tx[lane.place()]
    }

    pub fn tx_mut(&mut self, lane: LaneId) -> &mut LaneTx {
        &mut self.tx[lane.place()]
    }

    pub fn rx_of(&self, lane: LaneId) -> &LaneRx {
        &self.rx[lane.place()]
    }

    pub fn rx_mut(&mut self, lane: LaneId) -> &mut LaneRx {
        &mut self.rx[lane.place()]
    }

    /// This train of the lane has come: it may be the first that is heard of it, and of others before it.
    pub fn hear_lane(&mut self, lane: LaneId, train: Sequence, limits: &Limits) {
        while self.rx.len() <= lane.place() {
            let first = match self.rx.len() == lane.place() {
                true => train,
                false => Sequence::FIRST,
            };
            self.rx.push(LaneRx::heard_first(first, limits));
        }
    }

    /// What the lanes have counted, those of before too.
    pub fn lane_counts(&self) -> LaneCounts {
        let mut sum = self.rx_before;
        self.rx.iter().for_each(|lane| sum.add(lane));
        sum
    }

    /// A frame without a sequence would not overtake anything, nor be overtaken: nothing waits to go again, no train of its lane says
    /// what it must not overtake, and no other lane is in use, for it would wait for that.
    pub fn goes_in_turn(&self, lane: LaneId, now: Instant) -> bool {
        let lane = self.lane_towards(lane);
        let mut others = self.lanes_tx().filter(|other| *other != lane);
        let tx = self.tx_of(lane);
        tx.fences.is_empty() && tx.replay.is_empty() && !others.any(|lane| self.is_busy(lane, now))
    }

    /// Whether stragglers were more than a rare accident lately.
    pub fn reorders(&self, now: Instant) -> bool {
        self.rx.iter().any(|lane| lane.resequencer.reorders(now))
    }

    /// Of trains that wait for their turn.
    pub fn held_bytes(&self) -> usize {
        self.rx
            .iter()
            .map(|lane| lane.resequencer.held_bytes())
            .sum()
    }

    /// Something is held for what is missing before it.
    pub fn holds_trains(&self) -> bool {
        self.rx
            .iter()
            .any(|lane| lane.resequencer.held_trains() > 0)
    }

    /// Our trains of the lane after these say so, until it has heard it.
    pub fn raise_fence(&mut self, lane: LaneId, fence: Fence) {
        self.tx_mut(lane).fences.raise(fence);
        self.forget_fenced(lane);
    }

    fn forget_fenced(&mut self, lane: LaneId) {
        for path in &mut self.paths {
            path.said_fences.retain(|(of, _)| *of != lane);
        }
    }

    /// Once a train that said so is acknowledged, and so all of its lane that may be late are known to wait.
    pub fn lower_fences(&mut self, ack: &Ack) {
        let Some(path) = self.path(LinkId(ack.link)) else {
            return;
        };
        let said = path.said_fences.iter();
        let heard = said.filter(|(_, sequence)| ack.names(*sequence));
        let heard: Vec<LaneId> = heard.map(|(lane, _)| *lane).collect();
        for lane in heard {
            self.tx_mut(lane).fences.lower();
            self.forget_fenced(lane);
        }
    }

    /// After all that may have changed which trains wait for direct frames.
    pub fn follow_fences(&mut self) {
        for lane in self.lanes_rx() {
            let paths = self.paths.iter();
            let held = paths.filter_map(|path| path.fence.holds_from(lane));
            let rx = self.rx_of(lane);
            let first = held.chain(rx.waits.holds_from()).reduce(Sequence::older_of);
            self.rx_mut(lane).resequencer.fence = first;
        }
    }

    fn progress(&self) -> impl Fn(LaneId) -> Option<Progress> + use<> {
        let of_lane = |lane: &LaneRx| Progress {
            expected: lane.resequencer.expected(),
            holds: lane.resequencer.held_trains() > 0,
        };
        let all: Vec<Progress> = self.rx.iter().map(of_lane).collect();
        move |lane| all.get(lane.place()).copied()
    }

    /// Some wait for others.
    pub fn lanes_wait(&self) -> bool {
        self.rx.iter().any(|lane| !lane.waits.is_empty())
    }

    /// A train of the lane has said which others come before some of it.
    pub fn wait_behind(&mut self, lane: LaneId, behind: &Behind, now: Instant) {
        let (other, last) = (LaneId(behind.lane), behind.last);
        let rx = self.rx.get(other.place());
        let has_come = rx.is_some_and(|rx| rx.resequencer.expected().is_newer_than(last));
        if other != lane && other.place() < LANES_MAX && !has_come {
            let waits = &mut self.rx_mut(lane).waits;
            waits.add(behind.from, (other, last), now);
            self.follow_fences();
        }
    }

    /// Lanes that wait for others may have been given what they wait for.
    pub fn settle_lane_waits(&mut self, now: Instant) -> bool {
        if !self.lanes_wait() {
            return false;
        }
        let progress = self.progress();
        let before: Vec<_> = self.rx.iter().map(|lane| lane.resequencer.fence).collect();
        for lane in &mut self.rx {
            lane.waits.settle(&progress, now);
        }
        self.follow_fences();
        let after = self.rx.iter().map(|lane| lane.resequencer.fence);
        !after.eq(before)
    }

    /// When one has waited for others in vain.
    pub fn lane_waits_due(&self) -> Option<Instant> {
        if !self.lanes_wait() {
            return None;
        }
        let progress = self.progress();
        let lanes = self.rx.iter();
        lanes
            .filter_map(|lane| lane.waits.poll_timeout(&progress))
            .min()
    }

    /// Something of the lane may be under way still, or wait at the other end.
    fn is_busy(&self, lane: LaneId, now: Instant) -> bool {
        let tx = self.tx_of(lane);
        let is_out = |path: &Path| path.flight.outstanding_in(lane) > 0;
        let was_sent = tx.next_train != Sequence::FIRST && now.since(tx.sent_at) < LANE_RESTS;
        was_sent || !tx.replay.is_empty() || self.paths.iter().any(is_out)
    }

    /// What goes from now on comes behind all that has gone in other lanes.
    pub fn order_lanes(&mut self, now: Instant) {
        for lane in self.lanes_tx() {
            let from = self.tx_of(lane).next_train;
            for other in self.lanes_tx().filter(|other| *other != lane) {
                if self.is_busy(other, now) {
                    let next = self.tx_of(other).next_train;
                    let behind = Behind {
                        lane: other.0,
                        from,
                        last: next.minus(1),
                    };
                    self.tx_mut(lane).fences.raise_behind(behind);
                    self.forget_fenced(lane);
                }
            }
        }
    }

    /// What our trains to it carry: our life, and what we keep for it.
    pub fn incarnation(&self, own: NodeId) -> u16 {
        session(own, self.epoch)
    }

    /// What its trains to us carry. `None`: it has not named us yet.
    pub fn remote_incarnation(&self) -> Option<u16> {
        Some(session(self.node_id, self.remote_epoch?))
    }

    /// The first train that is to come of a row of sequences that is new to us. `named`: the first behind what
    /// a hello says is sent; it may be an old one, that others have overtaken.
    pub fn first_of_row(&mut self, epoch: u8, named: Sequence) -> Sequence {
        match self.left_at.take() {
            Some((left_in, due)) if left_in == epoch && due.is_newer_than(named) => due,
            _ => named,
        }
    }

    /// The peer began anew what it keeps for us, and sends `first` next. Returns how many trains
    /// and frames were under way: none of them will be whole. A piece of now must not be taken for
    /// one of a frame of before.
    pub fn restart_reception(
        &mut self,
        first: Sequence,
        newest_in_lanes: &[Sequence],
        limits: &Limits,
    ) -> u64 {
        let under_way = self.trains_and_frames_held();
        self.unsequenced.clear();
        // What was counted stays.
        self.rx_before = self.lane_counts();
        let others = newest_in_lanes.iter().take(LANES_MAX - 1);
        let firsts = [first]
            .into_iter()
            .chain(others.map(|newest| newest.next()));
        self.rx = firsts.map(|first| LaneRx::new(first, limits)).collect();
        self.receipts.clear();
        for path in &mut self.paths {
            path.direct.restart();
            path.direct_kinds.begin_anew();
            path.fence.restart();
        }
        under_way as u64
    }

    /// What has come of it, and not been given to the host yet.
    pub fn trains_and_frames_held(&self) -> usize {
        self.rx.iter().map(LaneRx::held).sum::<usize>() + self.unsequenced.len()
    }

    pub fn receipts_of(&mut self, remote_link: u8) -> &mut Receipts {
        let at = match self.receipts.iter().position(|r| r.link == remote_link) {
            Some(at) => at,
            None => {
                self.receipts.push(Receipts::new(remote_link));
                self.receipts.len() - 1
            }
        };
        &mut self.receipts[at]
    }
}

/// Trains of one row of sequences: a straggler of an earlier row must not be taken for one of now.
fn session(sender: NodeId, epoch: u8) -> u16 {
    sender.incarnation() ^ u16::from(epoch) << 8
}
