//! The lanes of a peer: which are in use, and what keeps the order between them, and between them and direct frames.

use super::{Path, Peer};
use crate::buffer::Buffer;
use crate::config::{Limits, LinkId};
use crate::time::{Duration, Instant};
use crate::trunk::lane::{LANES_MAX, LaneCounts, LaneId, LaneRx, LaneTx, TrainId};
use crate::trunk::lane_waits::Progress;
use crate::trunk::via::Vias;
use crate::wire::sequence::Sequence;
use crate::wire::train::{Ack, Behind, Fence};

/// What a lane sent last is at the other end by then, and given to its host or given up.
const LANE_RESTS: Duration = Duration::from_secs(12);

impl Peer {
    /// It is to go again. Gives back what waits for that already.
    pub fn push_replay(
        &mut self,
        train: TrainId,
        message: Buffer,
        first_sent: Instant,
    ) -> Option<Buffer> {
        let replay = &mut self.tx_mut(train.lane).replay;
        replay.push(train.sequence, message, first_sent)
    }

    /// Trains may go to it in so many ways, if it takes as many lanes.
    pub fn use_lanes(&mut self, vias: &Vias) {
        if self.tx.len() < vias.lanes() {
            self.tx.resize_with(vias.lanes(), LaneTx::default);
        }
        for lane in self.lanes_tx() {
            self.tx_mut(lane).repairs = vias.of(lane).repairs;
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

    /// Trains were sent to it in this lane, or may be.
    pub fn has_lane(&self, lane: LaneId) -> bool {
        lane.place() < self.tx.len()
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

    /// Anything was heard of this lane.
    pub fn has_heard(&self, lane: LaneId) -> bool {
        lane.place() < self.rx.len()
    }

    /// This train of the lane has come: it may be the first that is heard of it, and of others before it.
    pub fn hear_lane(&mut self, lane: LaneId, train: Sequence, limits: &Limits) {
        while self.rx.len() <= lane.place() {
            let first = match self.rx.len() == lane.place() {
                true => train,
                false => Sequence::FIRST,
            };
            let given_up = self.given_up_unheard[self.rx.len()].take();
            self.rx.push(LaneRx::heard_first(first, given_up, limits));
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

    /// We may not have been running: before anything that has come is taken in.
    pub fn forgive_lateness(&mut self, now: Instant) {
        let lanes = self.rx.iter_mut();
        lanes.for_each(|lane| lane.resequencer.forgive_lateness(now));
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
        let may_go_again = |lane: &LaneRx| {
            let order = &lane.resequencer;
            order.names_links() || order.repairs()
        };
        let may_go_again = self.rx.iter().any(may_go_again);
        let of_lane = |lane: &LaneRx| Progress {
            expected: begun_at(lane),
            holds: lane.resequencer.held_trains() > 0,
            by_one_link: self.links.len() == 1 && !may_go_again && !lane.resequencer.is_untouched(),
            is_lossless: lane.resequencer.is_lossless(),
            told_at: lane.resequencer.told_at(),
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
        let begun_at = rx.and_then(begun_at);
        let has_come = begun_at.is_some_and(|expected| expected.is_newer_than(last));
        if other != lane && other.place() < LANES_MAX && !has_come {
            let waits = &mut self.rx_mut(lane).waits;
            waits.add(behind.from, (other, last), now);
            self.follow_fences();
        }
    }

    /// Lanes that wait for others may have been given what they wait for, or have waited for it in vain: of those lanes what is
    /// there comes first, and what is not comes too late. Whether more trains may be let through.
    pub fn settle_lane_waits(&mut self, now: Instant, in_vain: &mut dyn FnMut(LaneId)) -> bool {
        if !self.lanes_wait() {
            return false;
        }
        let progress = self.progress();
        let before: Vec<_> = self.rx.iter().map(|lane| lane.resequencer.fence).collect();
        let mut missed = Vec::new();
        for lane in &mut self.rx {
            missed.extend(lane.waits.settle(&progress, now));
        }
        self.give_up_in_lanes(missed, in_vain);
        self.follow_fences();
        let after = self.rx.iter().map(|lane| lane.resequencer.fence);
        !after.eq(before)
    }

    /// What is missing up to these trains was waited for in vain.
    fn give_up_in_lanes(
        &mut self,
        missed: Vec<(LaneId, Sequence)>,
        in_vain: &mut dyn FnMut(LaneId),
    ) {
        for (lane, last) in missed {
            match self.rx.get_mut(lane.place()) {
                Some(rx) => rx.resequencer.give_up_to(last),
                None => {
                    let before = &mut self.given_up_unheard[lane.place()];
                    let newer = |before: &Sequence| before.is_newer_than(last);
                    *before = before.filter(newer).or(Some(last));
                }
            }
            in_vain(lane);
        }
    }

    /// Some wait for others, and what is missing there is not lost for sure when something has come that left later.
    pub fn lanes_wait_for_what_may_come(&self) -> bool {
        if !self.lanes_wait() {
            return false;
        }
        let progress = self.progress();
        let is_lost = |lane| progress(lane).is_some_and(|of| of.by_one_link);
        let mut others = self.rx.iter().flat_map(|lane| lane.waits.others());
        others.any(|lane| !is_lost(lane))
    }

    /// Lanes wait for others no longer where these wait for none, and so bring nothing more now; where all do, for none. Of those
    /// what is there comes first, if nothing of them may come again.
    pub fn let_lanes_go(&mut self, in_vain: &mut dyn FnMut(LaneId)) {
        let progress = self.progress();
        let lanes = self.rx.iter();
        let waits: Vec<bool> = lanes.map(|lane| lane.resequencer.is_fenced()).collect();
        let is_stuck = |lane: LaneId| !waits.get(lane.place()).copied().unwrap_or(false);
        let is_lost = |lane: &LaneId| progress(*lane).is_some_and(|of| of.by_one_link);
        let mut in_circles = true;
        let mut missed = Vec::new();
        for lane in &mut self.rx {
            let gone = lane.waits.let_go(is_stuck);
            in_circles &= gone.is_empty();
            missed.extend(gone.into_iter().filter(|(lane, _)| is_lost(lane)));
        }
        self.give_up_in_lanes(missed, in_vain);
        for lane in self.rx.iter_mut().filter(|_| in_circles) {
            lane.waits.let_go(|_| true);
        }
        self.paths.iter_mut().for_each(|path| path.fence.give_up());
        self.follow_fences();
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
    pub fn is_busy(&self, lane: LaneId, now: Instant) -> bool {
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
}

/// The train that is due; `None`: it may begin with older ones than are thought of now.
fn begun_at(lane: &LaneRx) -> Option<Sequence> {
    let order = &lane.resequencer;
    (!order.is_untouched()).then(|| order.expected())
}
