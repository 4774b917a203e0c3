//! What of a lane's trains goes again where a link loses it that lives.

use super::Peer;
use crate::class::Repairs;
use crate::time::Duration;
use crate::trunk::lane::{LaneId, Lanes};
use crate::wire::hello::capability;
use crate::wire::sequence::Sequence;

/// By the only link there is, what goes again may be lost as well, and has nowhere else to go: as often it may be tried in the time.
const TRIES_ALONE: u32 = 6;
/// … each of which takes so much longer where nothing comes behind it.
const TAIL_ALONE: Duration = Duration::from_millis(10);
const WITHIN_ALONE_MAX: Duration = Duration::from_secs(1);

/// Until when what was lost goes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairUntil {
    /// So soon after it left first it has to arrive.
    After(Duration),
    Arrived,
}

impl Peer {
    /// Else it gives up what is missing before it can have gone again.
    fn waits_for_repairs(&self) -> bool {
        self.capabilities & capability::REPAIR != 0
    }

    /// How soon after it left first what of this lane a link loses that lives goes again. `None`: not to this peer, or nothing
    /// could arrive in that time.
    pub fn repairs(&self, lane: LaneId) -> Option<RepairUntil> {
        if !self.waits_for_repairs() {
            return None;
        }
        let within = match self.tx_of(lane).repairs {
            Repairs::Off => None,
            Repairs::Line => self.within_by_line(),
            Repairs::Within(within) => Some(within),
            Repairs::Lossless => return Some(RepairUntil::Arrived),
        };
        let in_time = |within: &Duration| {
            let mut paths = self.paths.iter();
            paths.any(|path| path.flight.repaired_after() <= *within)
        };
        within.filter(in_time).map(RepairUntil::After)
    }

    /// There is one link, and it loses by bits that are wrong, or most.
    fn mends(&self) -> bool {
        matches!(&self.paths[..], [path] if path.errors.repairs())
    }

    /// What the only link loses by bits that are wrong could go again.
    pub fn could_mend(&self) -> bool {
        self.waits_for_repairs() && self.repair_within.is_some()
    }

    fn within_by_line(&self) -> Option<Duration> {
        let within = self.repair_within?;
        match &self.paths[..] {
            [path] => path.errors.repairs().then(|| {
                let longer = (path.flight.repaired_after() + TAIL_ALONE) * TRIES_ALONE;
                longer.clamp(within, WITHIN_ALONE_MAX.max(within))
            }),
            _ => Some(within),
        }
    }

    /// Of which that is so.
    pub fn lanes_repaired(&self) -> Lanes {
        let lanes = self.lanes_tx();
        lanes.filter(|&lane| self.repairs(lane).is_some()).collect()
    }

    /// So many of them.
    pub fn lossless_lanes(&self) -> u32 {
        let lanes = self.lanes_tx();
        lanes.filter(|&lane| self.is_lossless(lane)).count() as u32
    }

    /// The oldest train of the lane of which a copy is there; none: the next one.
    pub fn kept_from(&self, lane: LaneId) -> Sequence {
        let tx = self.tx_of(lane);
        let paths = self.paths.iter();
        let under_way = paths.filter_map(|path| path.flight.oldest_kept(lane));
        let all = under_way.chain(tx.replay.oldest());
        all.fold(tx.next_train, Sequence::older_of)
    }

    /// What is held of lanes in which nothing may be lost.
    pub fn lossless_bytes(&self) -> usize {
        let orders = self.rx.iter().map(|lane| &lane.resequencer);
        let lossless = orders.filter(|order| order.is_lossless());
        lossless.map(|order| order.held_bytes()).sum()
    }

    /// … also by the only link there is.
    pub fn repairs_alone(&self) -> bool {
        let mut lanes = self.lanes_tx();
        lanes.any(|lane| self.may_go_again_alone(lane))
    }

    /// What of this lane is lost goes again even by the only link that there is.
    pub fn may_go_again_alone(&self, lane: LaneId) -> bool {
        let lane = self.lane_towards(lane);
        let repairs = self.tx_of(lane).repairs;
        let is_wanted = repairs.are_asked_for() || repairs == Repairs::Line && self.mends();
        is_wanted && self.repairs(lane).is_some()
    }

    /// What of this lane is lost goes again until it has arrived.
    pub fn is_lossless(&self, lane: LaneId) -> bool {
        // Asked for each train: the others' times need not be looked at.
        self.tx_of(lane).repairs == Repairs::Lossless && self.waits_for_repairs()
    }
}
