//! Everything kept for one node with packtrain: its links, what waits for it, what is in flight to it, the
//! order of what comes from it.

use core::num::NonZero;

use crate::aggregator::Aggregator;
use crate::config::{Limits, LinkId, NodeId};
use crate::link::TRAIN_MTU_MIN;
use crate::queue::drr::FlowQueues;
use crate::queue::frame::QueuedFrame;
use crate::time::{Duration, Instant};
use crate::trunk::flight::Flight;
use crate::trunk::hold_times::HoldTimes;
use crate::trunk::join::Join;
use crate::trunk::lane::{LANES_MAX, LaneCounts, LaneRx, LaneTx};
use crate::trunk::liveness::Session;
use crate::trunk::receipts::Receipts;
use crate::trunk::repair::RepairBudget;
use crate::trunk::told::ToldState;
use crate::trunk::unsequenced::UnsequencedFrames;
use crate::wire::ethernet::{self, MacAddr};
use crate::wire::hello::{Hello, LinkRecord};
use crate::wire::sequence::Sequence;

mod lanes;
mod path;
mod repairs;

pub use path::{Answering, Path, Silence};
pub use repairs::RepairUntil;

/// A hello is late by fewer than so many others, or it is not late.
const HELLOS_LATE_MAX: u32 = 256;
/// No hello takes longer: when none was the newest for so long, the number of that one was wrong.
const HELLO_LATE_MAX: Duration = Duration::from_secs(4);
/// An MTU with room for a hello that names as many links as one can.
const HELLO_MTU_MIN: usize = 512;

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
    /// Its engine takes all that it can of what it is sent.
    pub full: bool,
    /// Much of what it sends goes past both engines.
    pub past: bool,
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
    /// Of lanes of which nothing has come: up to this train others have waited for them in vain.
    given_up_unheard: [Option<Sequence>; LANES_MAX],
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
            full: false,
            past: false,
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
            given_up_unheard: [None; LANES_MAX],
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
                path.striping.restart();
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

    /// What our trains to it carry: our life, and what we keep for it.
    pub fn incarnation(&self, own: NodeId) -> u16 {
        session(own, self.epoch)
    }

    /// What its trains to us carry. `None`: it has not named us yet.
    pub fn remote_incarnation(&self) -> Option<u16> {
        Some(session(self.node_id, self.remote_epoch?))
    }

    /// Whether it was heard before, in the same row of sequences.
    pub fn left_in(&self, epoch: u8) -> bool {
        self.left_at.is_some_and(|(left_in, _)| left_in == epoch)
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
        self.given_up_unheard = [None; LANES_MAX];
        let others = newest_in_lanes.iter().take(LANES_MAX - 1);
        let firsts = [first]
            .into_iter()
            .chain(others.map(|newest| newest.next()));
        self.rx = firsts.map(|first| LaneRx::new(first, limits)).collect();
        self.receipts.clear();
        for path in &mut self.paths {
            path.direct.restart();
            path.striping.restart();
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
