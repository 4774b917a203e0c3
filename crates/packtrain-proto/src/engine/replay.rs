//! Copies of trains, and what is sent again.

use arrayvec::ArrayVec;

use super::Engine;
use super::paths::{best_path_again, charge_weighted, has_room, link_of, pass_sizes};
use super::repair::LOSSLESS_WITHIN;
use super::transmit::Outgoing;
use crate::buffer::{Buffer, BufferPool};
use crate::config::{Balance, Limits};
use crate::direct::fence::FENCES_MAX;
use crate::peer::{Path, Peer, RepairUntil, Silence};
use crate::stats::{DropReason, ReplaySnapshot};
use crate::time::{Duration, Instant};
use crate::trunk::balance::Policy;
use crate::trunk::flight::{Flight, Kind, Sent, Unacknowledged};
use crate::trunk::lane::{LANES_MAX, LaneId, LaneTx, TrainId};
use crate::trunk::receipts::Receipts;
use crate::wire::ethernet::HEADER_LEN;
use crate::wire::sequence::Sequence;
use crate::wire::subframe;
use crate::wire::train::{self, Behind, Fence, Options, Train, TrainHeader, TrainWriter};

/// Between two copies that show whether a silent link works again.
const TRY_INTERVAL: Duration = Duration::from_millis(100);
const TRY_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// … and while no other link works, and everything waits.
const TRY_INTERVAL_MAX_ALONE: Duration = Duration::from_millis(200);
/// … and while its local queue is full.
const TRY_INTERVAL_FULL: Duration = Duration::from_millis(20);
/// … but no longer: frames as they are may fill it again and again, and nobody would ever learn that it works.
const NO_ROOM_MAX: Duration = Duration::from_millis(100);

/// How much of the memory for copies is used, and what became of them.
#[derive(Debug, Default)]
pub(super) struct Copies {
    bytes: usize,
    bytes_max: usize,
    /// Trains of all peers that are to be sent again.
    pub(super) waiting: usize,
    replayed: u64,
    pub(super) repaired: u64,
    pub(super) not_repaired: u64,
    /// Trains that went by a second link, and that were to and did not.
    pub(super) duplicated: u64,
    pub(super) not_duplicated: u64,
    not_kept: u64,
}

impl Copies {
    pub(super) fn keep(&mut self, copy: &Buffer) {
        self.bytes += copy.capacity();
        self.bytes_max = self.bytes_max.max(self.bytes);
    }

    pub(super) fn has_room(&self, limits: &Limits, peer: &Peer, bytes: usize) -> bool {
        kept_bytes(peer) + bytes <= limits.replay_bytes_max
            && self.bytes + bytes <= limits.replay_bytes_total_max
    }

    /// It goes again, if it does not wait for that already.
    pub(super) fn send_again(
        &mut self,
        peer: &mut Peer,
        (train, copy, first_sent): (TrainId, Buffer, Instant),
        pool: &mut BufferPool,
    ) {
        match peer.push_replay(train, copy, first_sent) {
            None => self.waiting += 1,
            Some(copy) => self.release(copy, pool),
        }
    }

    /// What was to go again and has arrived meanwhile.
    pub(super) fn forget_arrived(
        &mut self,
        peer: &mut Peer,
        arrived: impl Iterator<Item = TrainId>,
        pool: &mut BufferPool,
    ) {
        for train in arrived {
            if let Some(copy) = peer.tx_mut(train.lane).replay.remove(train.sequence) {
                self.waiting -= 1;
                self.release(copy, pool);
            }
        }
    }

    /// A copy that nobody needs any more.
    pub(super) fn release(&mut self, copy: Buffer, pool: &mut BufferPool) {
        self.bytes -= copy.capacity();
        pool.give_back(copy);
    }
}

fn kept_bytes(peer: &Peer) -> usize {
    let in_flight = peer.paths.iter().map(|path| path.flight.copies_bytes());
    let waiting = peer.tx.iter().map(|lane| lane.replay.bytes());
    in_flight.sum::<usize>() + waiting.sum::<usize>()
}

fn is_probe(message: &[u8]) -> bool {
    let train = Train::parse(&message[HEADER_LEN..]).expect("our own train");
    !subframe::has_any(&message[HEADER_LEN + train.subframes_at..])
}

fn train_of(message: &[u8]) -> TrainId {
    let train = Train::parse(&message[HEADER_LEN..]).expect("our own train");
    TrainId {
        lane: LaneId(train.header.lane),
        sequence: train.header.train_sequence,
    }
}

/// What a train says of its own place in the order, and since when there are copies: all else that stood before its subframes
/// is long past when it goes again.
struct OwnOrder {
    fences: ArrayVec<Fence, FENCES_MAX>,
    behind: ArrayVec<Behind, LANES_MAX>,
    kept_from: Option<Sequence>,
}

impl OwnOrder {
    fn of(train: &Train<'_>) -> OwnOrder {
        OwnOrder {
            fences: train.fences().take(FENCES_MAX).collect(),
            behind: train.behind().take(LANES_MAX).collect(),
            kept_from: train.kept_from(),
        }
    }

    fn options(&self) -> Options<'_> {
        Options {
            fences: &self.fences,
            behind: &self.behind,
            kept_from: self.kept_from,
            ..Options::default()
        }
    }
}

/// Bytes of it when it goes again.
fn len_again(message: &[u8]) -> usize {
    let train = Train::parse(&message[HEADER_LEN..]).expect("our own train");
    let left_out = train.subframes_at - train::HEADER_LEN;
    message.len() - left_out + OwnOrder::of(&train).options().len()
}

impl Engine {
    /// Whether a copy of this train is kept, in case that its link dies before it is acknowledged.
    fn keeps_copy(&mut self, slot: usize, lane: LaneId, is_probe: bool, message: &Buffer) -> bool {
        let Some(peer) = self.peers.get(slot) else {
            return false;
        };
        // The peer may be found on another of our links later.
        let is_alone = peer.paths.len() == 1 && self.links.len() == 1;
        if is_alone && (is_probe || !peer.may_go_again_alone(lane)) {
            return false;
        }
        let fits = self
            .copies
            .has_room(&self.config.limits, peer, message.capacity());
        match fits {
            true => self.copies.keep(message),
            false => self.copies.not_kept += 1,
        }
        fits
    }

    /// What leaves by a path, into the records of it. `message` goes out from there, or by `outgoing`.
    pub(super) fn send_train(
        &mut self,
        (slot, at): (usize, usize),
        train: TrainId,
        (message, bytes): (Buffer, usize),
        (kind, first_sent): (Kind, Instant),
        now: Instant,
    ) -> Option<(Outgoing, Sequence)> {
        let is_probe = bytes == 0;
        let keeps =
            kind != Kind::Duplicate && self.keeps_copy(slot, train.lane, is_probe, &message);
        let len = message.len();
        let peer = self.peers.get_mut(slot)?;
        let says_fences = kind == Kind::New && !peer.tx_of(train.lane).fences.is_empty();
        let path = &mut peer.paths[at];
        let (lent, copy) = match keeps {
            true => (None, Some(message)),
            false => (Some(message), None),
        };
        let sent = Sent {
            train,
            bytes,
            copy,
            kind,
            first_sent,
        };
        let sequence = path.flight.on_train_sent(sent, now);
        if says_fences {
            path.note_said_fences(train.lane, sequence);
        }
        if let Some(session) = &mut path.session {
            session.on_other_sent(now);
        }
        path.trains_tx += 1;
        let link = path.link;
        if kind != Kind::Duplicate {
            peer.last_link = link;
        }
        if kind == Kind::New {
            peer.repair_budget.on_new_train();
        }
        if self.config.balance == Balance::Weighted {
            charge_weighted(&self.links, peer, at, len);
        }
        self.outgoing = lent;
        if let Some(link) = self.link_mut(link) {
            link.trains_tx += 1;
        }
        let outgoing = Outgoing::train(link, keeps.then_some(slot), len);
        Some((outgoing, sequence))
    }

    /// Nothing that is under way on this path will arrive: it goes again by the others.
    pub(super) fn replay_path(&mut self, slot: usize, at: usize) {
        self.end_join_behind(slot, at);
        self.replay(slot, at, Flight::take_unacknowledged);
    }

    /// It is late: what has a copy goes again by the others. The rest is waited for, and it is tried.
    pub(super) fn replay_late_path(&mut self, slot: usize, at: usize, now: Instant) {
        self.try_path(slot, at, now);
        self.end_join_behind(slot, at);
        self.replay(slot, at, Flight::take_kept);
    }

    /// Its trains that are longer than this are lost.
    pub(super) fn replay_longer_than(&mut self, slot: usize, at: usize, bytes: usize) {
        self.replay(slot, at, |flight| flight.take_longer_than(bytes));
    }

    fn replay(
        &mut self,
        slot: usize,
        at: usize,
        take: impl FnOnce(&mut Flight) -> Vec<Unacknowledged>,
    ) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        if peer.paths.len() == 1 {
            return;
        }
        // What we had acknowledged by it is lost as well.
        peer.receipts.iter_mut().for_each(Receipts::take_back);
        if !std::mem::replace(&mut peer.ack_listed, true) {
            self.ack_slots.push(slot);
        }
        for unacknowledged in take(&mut peer.paths[at].flight) {
            match unacknowledged.copy {
                Some(copy) => {
                    let again = (unacknowledged.train, copy, unacknowledged.first_sent);
                    self.copies.send_again(peer, again, &mut self.pool);
                }
                None => self.counters.drops.count(DropReason::ReplayNotKept),
            }
        }
    }

    /// What is under way on this path counts as lost: what may not be goes again.
    pub(super) fn give_up_path(&mut self, slot: usize, at: usize, now: Instant) {
        let (copies, pool) = (&mut self.copies, &mut self.pool);
        if let Some(peer) = self.peers.get_mut(slot) {
            let lossless: ArrayVec<LaneId, LANES_MAX> = peer
                .lanes_tx()
                .filter(|&lane| peer.is_lossless(lane))
                .collect();
            for kept in peer.paths[at].flight.take_kept_of(&lossless) {
                let is_in_time = now.since(kept.first_sent) <= LOSSLESS_WITHIN;
                match kept.copy {
                    Some(copy) if is_in_time => {
                        copies.send_again(peer, (kept.train, copy, kept.first_sent), pool);
                    }
                    Some(copy) => {
                        copies.not_repaired += 1;
                        copies.release(copy, pool);
                    }
                    None => {}
                }
            }
            let flight = &mut peer.paths[at].flight;
            flight.give_up(now, &mut |copy| copies.release(copy, pool));
        }
    }

    /// A peer leaves, and so does what was kept for it.
    pub(super) fn release_copies(&mut self, peer: &mut Peer) {
        for path in &mut peer.paths {
            for unacknowledged in path.flight.take_unacknowledged() {
                if let Some(copy) = unacknowledged.copy {
                    self.copies.release(copy, &mut self.pool);
                }
            }
        }
        let lanes = peer.tx.iter_mut();
        for waiting in lanes.flat_map(|lane| std::iter::from_fn(|| lane.replay.pop())) {
            self.copies.waiting -= 1;
            self.counters.drops.count(DropReason::PeerGone);
            self.copies.release(waiting.message, &mut self.pool);
        }
    }

    /// The next train that is sent again, before all that is new.
    pub(super) fn take_replay(&mut self, now: Instant) -> Option<Outgoing> {
        if self.copies.waiting == 0 {
            return None;
        }
        for slot in self.peers.slots() {
            let Some(peer) = self.peers.get(slot) else {
                continue;
            };
            for lane in peer.lanes_tx() {
                let outgoing = self.take_replay_in(slot, lane, now);
                if outgoing.is_some() {
                    return outgoing;
                }
            }
        }
        None
    }

    fn take_replay_in(&mut self, slot: usize, lane: LaneId, now: Instant) -> Option<Outgoing> {
        let via = self.vias.links_of(lane);
        while let Some(peer) = self.peers.get(slot)
            && let Some(waiting) = peer.tx_of(lane).replay.first()
        {
            let len = len_again(&waiting.message);
            let open = pass_sizes(&self.links, peer);
            // A closed path may never come back: where another is open, no train waits for it.
            let is_too_large = open.max().is_some_and(|len_max| len > len_max);
            let at = match is_too_large {
                true => None,
                false => {
                    let policy = Policy::of(&self.config);
                    Some(best_path_again(
                        &self.links,
                        peer,
                        (policy, &via),
                        len,
                        now,
                    )?)
                }
            };
            let waiting = self.peers.get_mut(slot)?.tx_mut(lane).replay.pop()?;
            self.copies.waiting -= 1;
            let Some(at) = at else {
                self.counters.drops.count(DropReason::ReplayTooLarge);
                self.copies.release(waiting.message, &mut self.pool);
                continue;
            };
            let message = self.readdressed(slot, at, &waiting.message, false)?;
            self.copies.release(waiting.message, &mut self.pool);
            self.copies.replayed += 1;
            let bytes = if is_probe(&message) { 0 } else { message.len() };
            let train = TrainId {
                lane,
                sequence: waiting.train,
            };
            let to = (slot, at);
            let kind = (Kind::Replay, waiting.first_sent);
            let sent = self.send_train(to, train, (message, bytes), kind, now);
            return sent.map(|(outgoing, _)| outgoing);
        }
        None
    }

    /// This path is not used any more until it acknowledges something.
    pub(super) fn silence_path(&mut self, slot: usize, at: usize, now: Instant) {
        self.try_path(slot, at, now);
        if !self.join_waits_for_silent_path(slot, at, now) {
            self.replay(slot, at, Flight::take_unacknowledged);
        } else if let Some(peer) = self.peers.get_mut(slot) {
            // It has nowhere else to go: it is looked at again soon.
            peer.paths[at].flight.wait_on(now);
        }
    }

    /// Copies of a train that this path has not acknowledged are to show whether it works.
    pub(super) fn try_path(&mut self, slot: usize, at: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let path = &mut peer.paths[at];
        if path.silent.is_some() {
            return; // it is being tried
        }
        let Some(copy) = path.flight.outstanding_copy() else {
            return; // nothing to try it with: new trains will
        };
        path.silent = Some(Silence {
            sample: self.pool.copy_of(copy),
            next_try: now,
            interval: TRY_INTERVAL,
            no_room_since: None,
            unanswered_for: path.flight.unanswered_for(now),
        });
    }

    /// A copy of an old train shows whether a silent link works again: the receiver acknowledges it, and
    /// drops it as the duplicate that it is.
    pub(super) fn take_try(&mut self, now: Instant) -> Option<Outgoing> {
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            let due = |path: &Path| {
                let silence = path.silent.as_ref();
                silence.is_some_and(|s| s.next_try <= now) && link_of(&self.links, path).is_some()
            };
            let position = |peer: &Peer| peer.paths.iter().position(due);
            let Some(at) = self.peers.get(slot).and_then(position) else {
                continue;
            };
            let peer = self.peers.get_mut(slot)?;
            let len_max = pass_sizes(&self.links, peer).min().unwrap_or(0);
            let works = |path: &Path| !path.is_silent() && link_of(&self.links, path).is_some();
            let interval_max = match peer.paths.iter().any(works) {
                true => TRY_INTERVAL_MAX,
                false => TRY_INTERVAL_MAX_ALONE,
            };
            let path = &mut peer.paths[at];
            let Some(mut silence) = path.silent.take() else {
                continue;
            };
            if len_again(&silence.sample) > len_max {
                continue; // only new trains can tell
            }
            let link = self.links.iter().find(|link| link.id == path.link);
            let waits_since = *silence.no_room_since.get_or_insert(now);
            let may_wait = now.since(waits_since) < NO_ROOM_MAX;
            if may_wait && !link.is_some_and(|link| has_room(&self.links, link)) {
                // Behind what stands in the local queue still, another train shows nothing.
                silence.next_try = now + TRY_INTERVAL_FULL;
                path.silent = Some(silence);
                continue;
            }
            path.flight.on_source_empty();
            silence.no_room_since = None;
            silence.next_try = now + silence.interval;
            silence.interval = (silence.interval * 2).min(interval_max);
            let message = self.readdressed(slot, at, &silence.sample, true);
            let path = &mut self.peers.get_mut(slot)?.paths[at];
            path.silent = Some(silence);
            path.trains_tx += 1;
            let message = message?;
            let (link, len) = (path.link, message.len());
            // Nothing waits for it, and it says nothing of the link's rate.
            let sent = Sent {
                train: train_of(&message),
                bytes: 0,
                copy: None,
                kind: Kind::Try,
                first_sent: now,
            };
            path.flight.on_train_sent(sent, now);
            self.outgoing = Some(message);
            return Some(Outgoing::train(link, None, len));
        }
        None
    }

    /// When the next copy goes by a silent path.
    pub(super) fn try_timeout(&self, path: &Path) -> Option<Instant> {
        let silence = path.silent.as_ref()?;
        link_of(&self.links, path).map(|_| silence.next_try)
    }

    /// The subframes of a train under a new header. Without most options, so that it is no longer than before.
    pub(super) fn readdressed(
        &mut self,
        slot: usize,
        at: usize,
        message: &[u8],
        is_try: bool,
    ) -> Option<Buffer> {
        let peer = self.peers.get(slot)?;
        let path = &peer.paths[at];
        let link = self.links.iter().find(|link| link.id == path.link)?;
        let train = Train::parse(&message[HEADER_LEN..]).expect("our own train");
        let repairs = peer.repairs(LaneId(train.header.lane));
        let header = TrainHeader {
            repairs: repairs.is_some(),
            lossless: repairs == Some(RepairUntil::Arrived),
            ack_now: is_try || path.flight.wants_ack(link.local_queue_bytes()),
            replay: true,
            link: path.link.0,
            link_sequence: path.flight.next_sequence(),
            ..train.header
        };
        let mut buffer = self.pool.take(message.len());
        let (to, from) = (path.remote_address, link.state.address);
        let mut order = OwnOrder::of(&train);
        if let Some(from) = &mut order.kept_from {
            // As of now: with it a lane may begin of which only what goes again has come. Of what is to go again
            // there is a copy still; what tries a link may have come long ago.
            let oldest = peer.kept_from(LaneId(train.header.lane));
            *from = match is_try {
                true => oldest,
                false => oldest.older_of(train.header.train_sequence),
            };
        }
        let mut writer = TrainWriter::begin(&mut buffer, to, from, &header, &order.options());
        writer.put_subframes(&message[HEADER_LEN + train.subframes_at..]);
        Some(buffer)
    }

    pub(super) fn replay_snapshot(&self) -> ReplaySnapshot {
        let peers = || self.peers.iter().map(|(_, peer)| peer);
        let in_flight = peers().flat_map(|peer| &peer.paths);
        let lanes = peers().flat_map(|peer| &peer.tx);
        let waiting: usize = lanes.map(|lane: &LaneTx| lane.replay.len()).sum();
        let kept: usize = in_flight.map(|path| path.flight.copies()).sum();
        ReplaySnapshot {
            kept_trains: (kept + waiting) as u64,
            kept_bytes: self.copies.bytes as u64,
            kept_bytes_max_seen: self.copies.bytes_max as u64,
            waiting_trains: waiting as u64,
            replayed: self.copies.replayed,
            repaired: self.copies.repaired,
            not_repaired: self.copies.not_repaired,
            duplicated: self.copies.duplicated,
            not_duplicated: self.copies.not_duplicated,
            not_kept: self.copies.not_kept,
        }
    }
}
