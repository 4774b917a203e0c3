//! Mistakes on purpose, to check the checkers: a host whose engine seems to make them.
//!
//! The saboteur sits on the engine's boundary and alters what passes, so the engine that is tested
//! has no hooks in it. What it does looks from outside as if the engine did it.

mod coding;
mod new_last;
mod trunk;

use packtrain_proto::class::Pack;
use packtrain_proto::config::{Config, LinkId};
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{PathState, Snapshot};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{HEADER_LEN, ether_type};
use packtrain_proto::wire::liveness::State;

use crate::checker::aggregate::is_one as is_aggregate;
use crate::checker::inside::{items, move_boundary};
use crate::frame::Frame;
use crate::host::kernel::Redirected;
use crate::random::Random;
use new_last::NewLast;
use trunk::{EarlyRelease, ReplayTwice};

macro_rules! breakages {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Breakage { $($(#[$doc])* $name,)* }
        impl Breakage {
            pub const ALL: &'static [Breakage] = &[$(Breakage::$name,)*];
        }
    };
}

breakages! {
    /// Pieces of a frame change places between two trains.
    FragmentsSwapped,
    DuplicateDelivered,
    /// The same frame again, long after.
    DuplicateDeliveredLate,
    FlowReordered,
    ByteChanged,
    Truncated,
    DeliveryDroppedSilently,
    /// Two segments of a GSO frame change places.
    SegmentsSwapped,
    /// What a host sends comes back to itself.
    DeliveredToWrongHost,
    /// From some time on nothing leaves any more.
    TransmitLeaks,
    /// Deliveries of one kind are held for ever.
    DeliveryLeaks,
    /// A frame of before a restart is delivered again after it.
    ReplayedAfterRestart,
    AddressesSwapped,
    EtherTypeChanged,
    VlanTagChanged,
    /// A train is not sent, and nobody counts it.
    TrainLostSilently,
    /// Of a frame for everybody, the copy for one segment is not sent, and nobody counts it.
    GroupCopyLostSilently,
    /// A frame that no host sent.
    Invented,
    /// GSO metadata with another segment length.
    SegmentLengthChanged,
    /// A partial checksum passed as a finished one.
    ChecksumLeftUnfinished,
    BroadcastDeliveredTwice,
    QueueUnbounded,
    ReassemblyUnbounded,
    /// A hole in a frame filled with zeros.
    HoleDelivered,
    /// The timeout stands in the past for ever.
    TimeGoesBack,
    /// No timeout is asked for: hellos and acknowledgements never go.
    NeverWakes,
    /// A frame longer than the link takes.
    TrainTooLong,
    /// Trains to everybody instead of to one.
    TrainsToEverybody,
    /// All is said to have arrived as soon as somebody asks.
    DrainedTooEarly,
    /// What came in a train that was sent again is delivered twice.
    ReplayDeliveredTwice,
    /// A train is let through before an older one that another link brings.
    GapReleasedEarly,
    /// Trains are named as sent that were not.
    MarkerLies,
    /// Trains do not say behind which others of another lane they come.
    LanesNotOrdered,
    /// Trains are acknowledged that have not come.
    AcknowledgedUnseen,
    /// Trains of classes in which nothing may be lost do not say so.
    LosslessNotSaid,
    /// There are said to be no copies of what came before a train.
    CopiesDenied,
    /// Nothing is ever put on one of the links.
    LinkKeptIdle,
    /// What is put on one of the links never leaves.
    LinkSwallows,
    /// Trains that are to be sent again are not, and nobody counts it.
    ReplayLostSilently,
    /// A path that is dead is said to be open, and its other end to be heard.
    DeathDenied,
    /// A frame of a class that says *now* goes ahead of one of its own flow.
    UrgentOvertakesItsFlow,
    /// What a class lets wait for others waits for ever.
    HoldNeverEnds,
    /// … or for some milliseconds more.
    HoldEndsLate,
    /// A frame waits for others that no class lets wait.
    HeldWithoutClass,
    /// One that is to go ahead of all others does.
    UrgentHeld,
    /// Frames are treated by the classes of before.
    ClassesKept,
    /// The programs are told that all has arrived as soon as the engine would be asked.
    DirectTooEarly,
    /// The engine is not told that flows have come back from the direct path.
    FencesNotRaised,
    /// A flow goes directly by another link, and not by way of the engine.
    FlowChangesLink,
    /// A direct frame is counted as sent, and is not.
    DirectLostSilently,
    /// A packet of an aggregate begins a byte later than it does.
    OffsetWrong,
    /// Of two frames in a train, the second begins a byte later than it did.
    BoundaryMoved,
    /// A frame is told apart from another one than its reference.
    DeltaOfAnotherSlot,
    /// A field is not told that is another than was expected.
    FieldNotTold,
    /// A coded train is not compared with its checksum.
    ChecksumNotLookedAt,
    /// The last block of a coded train is missing, and its checksum is none of it.
    BlockLost,
    /// Frames are as long as links take, and as much stands there as keeps them busy.
    SandBoundIgnored,
    /// A flow whose turn it is sends for as long as it has frames.
    QuantumIgnored,
    /// A flow that has just begun goes behind those that have had their turns.
    NewFlowsLast,
    /// The last block of a coded train ends too early.
    BlockCutShort,
}

impl Breakage {
    /// Only a line of several links can be broken in this way.
    pub fn needs_links(self) -> bool {
        matches!(
            self,
            Breakage::ReplayDeliveredTwice
                | Breakage::GapReleasedEarly
                | Breakage::MarkerLies
                | Breakage::LanesNotOrdered
                | Breakage::LinkKeptIdle
                | Breakage::LinkSwallows
                | Breakage::ReplayLostSilently
                | Breakage::DeathDenied
                | Breakage::AcknowledgedUnseen
                | Breakage::LosslessNotSaid
                | Breakage::CopiesDenied
        )
    }

    /// Only where frames go past the engine.
    pub fn needs_direct(self) -> bool {
        matches!(
            self,
            Breakage::DirectTooEarly
                | Breakage::FencesNotRaised
                | Breakage::FlowChangesLink
                | Breakage::DirectLostSilently
        )
    }
}

#[derive(Debug)]
pub struct Saboteur {
    breakage: Breakage,
    random: Random,
    held: Vec<Frame>,
    waits: u64,
    smuggled: Vec<Frame>,
    early_release: EarlyRelease,
    new_last: NewLast,
    replay_twice: ReplayTwice,
    seen: u64,
    /// Bytes of the longest frame that has left by a link: so long a one may be.
    longest: usize,
    restarted: bool,
    resting: bool,
    /// How often it struck.
    pub strikes: u64,
}

impl Saboteur {
    pub fn new(breakage: Breakage, random: Random) -> Saboteur {
        Saboteur {
            breakage,
            random,
            held: Vec::new(),
            waits: 0,
            smuggled: Vec::new(),
            early_release: EarlyRelease::default(),
            new_last: NewLast::default(),
            replay_twice: ReplayTwice::default(),
            seen: 0,
            longest: 0,
            restarted: false,
            resting: false,
            strikes: 0,
        }
    }

    /// One in twenty: most of the run goes well, as with real mistakes.
    fn strikes(&mut self) -> bool {
        let strikes = self.random.chance(0.05) && !self.resting;
        self.strikes += u64::from(strikes);
        strikes
    }

    /// From the host to the engine; of which flow, and how it is to be treated.
    pub fn from_host(&mut self, frame: Frame, (flow, pack): (u16, Pack)) -> Vec<Frame> {
        let is_group = frame.header().destination.is_group();
        let is_kept = match self.breakage {
            Breakage::NewFlowsLast if !is_group => {
                let (frames, struck) = self.new_last.hand_over(frame, flow, self.resting);
                self.strikes += u64::from(struck);
                return frames;
            }
            Breakage::UrgentOvertakesItsFlow => return self.overtake(frame, flow, pack),
            Breakage::HoldNeverEnds => pack.may_wait(),
            Breakage::HeldWithoutClass => pack == Pack::Queued,
            Breakage::UrgentHeld => pack == Pack::Now,
            _ => false,
        };
        if is_kept && !is_group && self.strikes() {
            self.held.push(frame);
            return Vec::new();
        }
        vec![frame]
    }

    /// Holds a frame back until an urgent one of its flow comes, which goes first, or any other.
    fn overtake(&mut self, frame: Frame, flow: u16, pack: Pack) -> Vec<Frame> {
        let Some(before) = self.held.pop() else {
            if pack != Pack::Queued || self.resting || !self.random.chance(0.2) {
                return vec![frame];
            }
            self.waits = flow.into();
            self.held.push(frame);
            return Vec::new();
        };
        if self.waits == u64::from(flow) && pack == Pack::Now {
            self.strikes += 1;
            return vec![frame, before];
        }
        vec![before, frame]
    }

    /// What is to be overtaken is handed over before anybody asks for all of before, or changes its class.
    pub fn kept_back(&mut self) -> Vec<Frame> {
        match self.breakage {
            Breakage::UrgentOvertakesItsFlow => self.held.pop().into_iter().collect(),
            _ => self.new_last.release(),
        }
    }

    /// Frames that seem to be in their queue, and are not.
    pub fn held_back(&self) -> usize {
        self.new_last.held()
    }

    fn held_bytes(&self) -> u64 {
        self.held.iter().map(|frame| frame.bytes.len() as u64).sum()
    }

    /// It seems as if its engine had frames that wait.
    pub fn holds_frames(&self) -> bool {
        let breakages = [
            Breakage::HoldNeverEnds,
            Breakage::HeldWithoutClass,
            Breakage::UrgentHeld,
        ];
        breakages.contains(&self.breakage) && !self.held.is_empty()
    }

    /// What its engine is told when it begins.
    pub fn config(&mut self, config: &mut Config) {
        if self.breakage == Breakage::SandBoundIgnored {
            config.limits.sand_delay_max = None;
            self.strikes += 1;
        }
        if self.breakage == Breakage::QuantumIgnored {
            config.limits.quantum = 1 << 24;
            self.strikes += 1;
        }
    }

    pub fn keeps_its_classes(&mut self) -> bool {
        let keeps = self.breakage == Breakage::ClassesKept;
        self.strikes += u64::from(keeps);
        keeps
    }

    /// From the engine to the wire.
    pub fn outgoing(&mut self, mut frame: Frame) -> Vec<Frame> {
        let train = frame.header().ether_type == ether_type::PACKTRAIN;
        self.seen += 1;
        if train {
            self.longest = self.longest.max(frame.bytes.len());
        }
        let breakage = self.breakage;
        match breakage {
            Breakage::FragmentsSwapped if train => return self.swap_fragments(frame),
            Breakage::DeliveredToWrongHost
                if !train && frame.header().destination.is_group() && self.strikes() =>
            {
                self.smuggled.push(frame.clone());
            }
            Breakage::TransmitLeaks if self.seen > 200 => {
                self.strikes += 1;
                return Vec::new();
            }
            Breakage::TrainLostSilently if items(&frame.bytes) > 0 && self.strikes() => {
                return Vec::new();
            }
            Breakage::GroupCopyLostSilently
                if !train && frame.header().destination.is_group() && self.strikes() =>
            {
                return Vec::new();
            }
            Breakage::ReplayLostSilently if trunk::is_replay(&frame) && !self.resting => {
                self.strikes += 1;
                return Vec::new();
            }
            Breakage::LinkSwallows if trunk::is_train(&frame) && trunk::link(&frame) == 1 => {
                self.strikes += 1;
                return Vec::new();
            }
            Breakage::MarkerLies if !self.resting && self.random.chance(0.5) => {
                self.strikes += u64::from(trunk::lie(&mut frame, 200));
            }
            Breakage::LanesNotOrdered => {
                self.strikes += u64::from(trunk::forget_order(&mut frame));
            }
            Breakage::LosslessNotSaid => {
                self.strikes += u64::from(trunk::may_be_lost(&mut frame));
            }
            Breakage::CopiesDenied => {
                self.strikes += u64::from(trunk::deny_copies(&mut frame));
            }
            Breakage::AcknowledgedUnseen if !self.resting => {
                self.strikes += u64::from(trunk::acknowledge_all(&mut frame));
            }
            Breakage::OffsetWrong if is_aggregate(&frame) && self.strikes() => {
                // The low byte of the second packet's offset.
                let low = &mut frame.bytes[HEADER_LEN + 2];
                *low = low.wrapping_add(1);
            }
            Breakage::BoundaryMoved if train && self.strikes() => {
                self.strikes -= u64::from(!move_boundary(&mut frame.bytes));
            }
            Breakage::DeltaOfAnotherSlot if train && self.strikes() => {
                let struck = coding::name_another_slot(&mut frame, self.longest, &mut self.random);
                self.strikes -= u64::from(!struck);
            }
            Breakage::FieldNotTold if train && self.strikes() => {
                let struck = coding::leave_a_field_out(&mut frame, self.longest, &mut self.random);
                self.strikes -= u64::from(!struck);
            }
            Breakage::BlockLost if train && self.strikes() => {
                self.strikes -= u64::from(!coding::lose_a_block(&mut frame));
            }
            Breakage::BlockCutShort if train && self.strikes() => {
                self.strikes -= u64::from(!coding::cut_a_block_short(&mut frame));
            }
            Breakage::TrainTooLong if train && self.strikes() => {
                let len = frame.bytes.len() + 65_536;
                frame.bytes.resize(len, 0);
            }
            Breakage::TrainsToEverybody if train && self.strikes() => {
                frame.bytes[..6].fill(0xff);
            }
            _ => {}
        }
        vec![frame]
    }

    /// From the wire to the engine.
    pub fn incoming(&mut self, mut frame: Frame) -> Vec<Frame> {
        let breakage = self.breakage;
        match breakage {
            Breakage::ChecksumNotLookedAt if self.strikes() => {
                let struck = coding::change_unseen(&mut frame, &mut self.random);
                self.strikes -= u64::from(!struck);
            }
            Breakage::ReplayDeliveredTwice => self.replay_twice.incoming(&frame),
            Breakage::GapReleasedEarly => {
                let strikes = !self.resting && self.random.chance(0.3);
                let (frames, struck) = self.early_release.incoming(frame, strikes);
                self.strikes += u64::from(struck);
                return frames;
            }
            _ => {}
        }
        let header = frame.header();
        if self.breakage == Breakage::BroadcastDeliveredTwice
            && header.destination.is_group()
            && header.ether_type != ether_type::PACKTRAIN
            && self.strikes()
        {
            return vec![frame.clone(), frame];
        }
        vec![frame]
    }

    /// From the engine to the host.
    pub fn delivery(&mut self, mut frame: Frame) -> Vec<Frame> {
        let len = frame.bytes.len();
        let gso = frame.offload.gso;
        let tagged = frame.header().ether_type == ether_type::VLAN;
        let breakage = self.breakage;
        match breakage {
            Breakage::DuplicateDelivered if self.strikes() => return vec![frame.clone(), frame],
            Breakage::DuplicateDeliveredLate => return self.repeat_later(frame),
            Breakage::FlowReordered => return self.delay_one(frame),
            Breakage::ReplayDeliveredTwice => {
                let frames = self.replay_twice.delivery(frame);
                self.strikes += frames.len() as u64 - 1;
                return frames;
            }
            Breakage::ByteChanged if self.strikes() => {
                let at = self.random.below(len as u64) as usize;
                frame.bytes[at] ^= 1 << self.random.below(8);
            }
            Breakage::Truncated if len > 15 && self.strikes() => {
                frame.bytes.truncate(len - 1);
            }
            Breakage::DeliveryDroppedSilently if self.strikes() => return Vec::new(),
            Breakage::SegmentsSwapped => {
                let Some(gso) = gso else { return vec![frame] };
                let (start, segment) = (usize::from(gso.header_len), usize::from(gso.segment_len));
                if len >= start + 2 * segment && self.strikes() {
                    let (first, rest) = frame.bytes[start..].split_at_mut(segment);
                    first.swap_with_slice(&mut rest[..segment]);
                }
            }
            Breakage::DeliveryLeaks if len > 200 && self.strikes() => {
                self.held.push(frame);
                return Vec::new();
            }
            Breakage::ReplayedAfterRestart => return self.replay(frame),
            Breakage::AddressesSwapped if self.strikes() => {
                let (to, rest) = frame.bytes.split_at_mut(6);
                to.swap_with_slice(&mut rest[..6]);
            }
            Breakage::EtherTypeChanged if self.strikes() => frame.bytes[13] ^= 1,
            Breakage::VlanTagChanged if tagged && self.strikes() => frame.bytes[15] ^= 1,
            Breakage::Invented if self.strikes() => {
                let mut invented = Frame::new(frame.bytes.clone(), Offload::NONE);
                for byte in &mut invented.bytes[14..] {
                    *byte = self.random.below(256) as u8;
                }
                return vec![frame, invented];
            }
            Breakage::SegmentLengthChanged => {
                if let Some(gso) = frame.offload.gso.as_mut().filter(|_| self.strikes()) {
                    gso.segment_len -= 1;
                }
            }
            Breakage::ChecksumLeftUnfinished
                if gso.is_none() && frame.offload.checksum.is_some() && self.strikes() =>
            {
                frame.offload.checksum = None;
            }
            Breakage::HoleDelivered if len > 1000 && self.strikes() => {
                frame.bytes[600..900].fill(0);
            }
            _ => {}
        }
        vec![frame]
    }

    /// Deliveries of its own making.
    pub fn smuggled(&mut self) -> Vec<Frame> {
        core::mem::take(&mut self.smuggled)
    }

    pub fn drains_early(&mut self) -> bool {
        let early = self.breakage == Breakage::DrainedTooEarly;
        self.strikes += u64::from(early);
        early
    }

    /// From the program before `pt0` to a link; `misled`: by another one. `None`: it is not sent.
    pub fn redirected(
        &mut self,
        redirected: Redirected,
        misled: impl FnOnce(&Redirected) -> Option<Redirected>,
    ) -> Option<Redirected> {
        let breakage = self.breakage;
        match breakage {
            Breakage::DirectLostSilently if self.strikes() => None,
            Breakage::FlowChangesLink if !self.resting && self.random.chance(0.05) => {
                let other = misled(&redirected);
                self.strikes += u64::from(other.is_some());
                Some(other.unwrap_or(redirected))
            }
            _ => Some(redirected),
        }
    }

    pub fn believes_early(&mut self) -> bool {
        let early = self.breakage == Breakage::DirectTooEarly;
        self.strikes += u64::from(early);
        early
    }

    pub fn hides_flows_that_left(&mut self) -> bool {
        let hides = self.breakage == Breakage::FencesNotRaised;
        self.strikes += u64::from(hides);
        hides
    }

    /// What the engine is told of a local queue: a full one gets nothing.
    pub fn local_queue(&mut self, link: LinkId, queued_bytes: usize) -> usize {
        if self.breakage == Breakage::LinkKeptIdle && link.0 == 1 && !self.resting {
            self.strikes += 1;
            return 64 << 20;
        }
        queued_bytes
    }

    pub fn timeout(&mut self, wanted: Option<Instant>, now: Instant) -> Option<Instant> {
        match self.breakage {
            Breakage::TimeGoesBack => {
                self.strikes += 1;
                Some(now - Duration::from_millis(1))
            }
            Breakage::NeverWakes => {
                self.strikes += 1;
                None
            }
            Breakage::HoldEndsLate => {
                self.strikes += 1;
                wanted.map(|at| at + Duration::from_millis(5))
            }
            _ => wanted,
        }
    }

    pub fn snapshot(&self, snapshot: &mut Snapshot) {
        match self.breakage {
            Breakage::QueueUnbounded => snapshot.queue.bytes_max_seen += self.seen << 20,
            Breakage::ReassemblyUnbounded => snapshot.reassembly.bytes_max_seen += self.seen << 20,
            Breakage::DeathDenied => {
                let paths = snapshot.peers.iter_mut().flat_map(|peer| &mut peer.paths);
                for path in paths.filter(|path| path.state == PathState::Silent) {
                    path.state = PathState::Open;
                    if let Some(liveness) = &mut path.liveness {
                        liveness.state = State::Up;
                    }
                }
            }
            Breakage::HoldNeverEnds | Breakage::HeldWithoutClass | Breakage::UrgentHeld => {
                let (frames, bytes) = (self.held.len() as u64, self.held_bytes());
                snapshot.queue.frames += frames;
                snapshot.queue.bytes += bytes;
                for peer in snapshot.peers.iter_mut().filter(|peer| peer.up) {
                    peer.queued_frames += frames;
                    peer.queued_bytes += bytes;
                    for path in &mut peer.paths {
                        path.queued_frames += frames;
                    }
                }
            }
            _ => {}
        }
    }

    /// The sources have stopped. What drops silently does so no more: the probes would show it, and
    /// the accounts are to.
    pub fn sources_stopped(&mut self) {
        self.resting = matches!(
            self.breakage,
            Breakage::DeliveryDroppedSilently
                | Breakage::DeliveryLeaks
                | Breakage::TrainLostSilently
                | Breakage::GroupCopyLostSilently
                | Breakage::ReplayLostSilently
                | Breakage::MarkerLies
                | Breakage::GapReleasedEarly
                | Breakage::UrgentOvertakesItsFlow
                | Breakage::NewFlowsLast
                | Breakage::DirectLostSilently
                | Breakage::BlockLost
                | Breakage::BlockCutShort
        );
    }

    pub fn restarted(&mut self) {
        self.restarted = true;
    }

    fn repeat_later(&mut self, frame: Frame) -> Vec<Frame> {
        self.waits += 1;
        if self.held.is_empty() {
            self.waits = 0;
            self.held.push(frame.clone());
        } else if self.waits == 30 {
            self.strikes += 1;
            return vec![frame, self.held.remove(0)];
        }
        vec![frame]
    }

    fn delay_one(&mut self, frame: Frame) -> Vec<Frame> {
        if self.held.is_empty() {
            if self.strikes() {
                self.waits = 4;
                self.held.push(frame);
                return Vec::new();
            }
        } else {
            self.waits -= 1;
            if self.waits == 0 {
                return vec![frame, self.held.remove(0)];
            }
        }
        vec![frame]
    }

    fn replay(&mut self, frame: Frame) -> Vec<Frame> {
        if !self.restarted {
            self.held.truncate(0);
            self.held.push(frame.clone());
        } else if let Some(old) = self.held.pop() {
            self.strikes += 1;
            return vec![old, frame];
        }
        vec![frame]
    }

    fn swap_fragments(&mut self, mut frame: Frame) -> Vec<Frame> {
        let Some(range) = piece(&frame.bytes) else {
            // Nothing to swap with: what is held must not wait for ever.
            let mut frames = core::mem::take(&mut self.held);
            frames.push(frame);
            return frames;
        };
        let Some(mut before) = self.held.pop() else {
            self.held.push(frame);
            return Vec::new();
        };
        let other = piece(&before.bytes).expect("held for it");
        let len = range.len().min(other.len());
        let (a, b) = (other.start, range.start);
        if before.bytes[a..a + len] != frame.bytes[b..b + len] {
            before.bytes[a..a + len].swap_with_slice(&mut frame.bytes[b..b + len]);
            self.strikes += 1;
        }
        vec![before, frame]
    }
}

/// The payload of the piece that a train begins with, if it begins with a NEXT.
fn piece(train: &[u8]) -> Option<core::ops::Range<usize>> {
    const SUBFRAMES: usize = 14 + 16;
    if train.get(14) != Some(&0x11) {
        return None;
    }
    let options = usize::from(u16::from_be_bytes([*train.get(20)?, *train.get(21)?]));
    let at = SUBFRAMES + options;
    if train.get(at)? & 0x0f != 3 {
        return None;
    }
    let len = usize::from(u16::from_be_bytes([
        *train.get(at + 2)?,
        *train.get(at + 3)?,
    ]));
    let start = at + 7;
    (start + len <= train.len()).then_some(start..start + len)
}
