//! What happens to a frame on its way, behind the queue and the rate.

use packtrain_proto::time::Instant;

use super::counters::WireDrop;
use super::{Passed, Wire};
use crate::net::bit_errors::BitErrors;
use crate::net::carried::Carried;
use crate::net::corruption::{Corrupted, Corruption};
use crate::net::duplication::Duplication;
use crate::net::loss::Loss;
use crate::random::{Random, mix};

/// What chance decides: each by a generator of its own, so that a change of one leaves the others what
/// they would have been.
#[derive(Clone, Copy, Debug)]
pub(super) enum Impairment {
    Loss,
    BitErrors,
    Corruption,
    Duplication,
    Jitter,
    Reordering,
    Early,
}

impl Impairment {
    pub fn random(self, seed: u64) -> Random {
        Random::new(mix(seed).wrapping_add(self as u64))
    }
}

impl<F: Carried> Wire<F> {
    pub(super) fn pass(&mut self, frame: F, leaves: Instant, passed: &mut impl FnMut(Passed<F>)) {
        if self.harms {
            return self.pass_harmed(frame, leaves, passed);
        }
        self.counters.arriving += 1;
        let at = self.delay.in_order(self.delay.on_time(leaves));
        passed(Passed::Arrives(at, frame));
    }

    fn pass_harmed(&mut self, mut frame: F, leaves: Instant, passed: &mut impl FnMut(Passed<F>)) {
        if let Some(reason) = self.fate(&mut frame) {
            self.counters.count(reason);
            return passed(Passed::Dropped(reason, frame));
        }
        let duplication = self.duplication.as_mut().filter(|_| !self.healed);
        let more = duplication.map_or(0, Duplication::more_copies);
        self.counters.more_copies += more as u64;
        self.counters.arriving += 1 + more as u64;
        for _ in 0..more {
            passed(Passed::Arrives(self.arrival(leaves), frame.clone()));
        }
        passed(Passed::Arrives(self.arrival(leaves), frame));
    }

    fn fate(&mut self, frame: &mut F) -> Option<WireDrop> {
        if self.cut.is_some() {
            return Some(WireDrop::Cut);
        }
        if self.healed {
            return None;
        }
        let lost = match self.known.take() {
            Some(known) => known,
            None => self.lost(frame.checked_bits()),
        };
        if lost.is_some() {
            return lost;
        }
        let strike = |corruption: &mut Corruption| frame.strike(corruption);
        match self.corruption.as_mut().map_or(Corrupted::No, strike) {
            Corrupted::No => None,
            Corrupted::Seen => Some(WireDrop::Corrupted),
            Corrupted::Unseen => {
                self.counters.altered += 1;
                None
            }
        }
    }

    /// What chance does to a frame of so many bits.
    pub(super) fn lost(&mut self, bits: u64) -> Option<WireDrop> {
        if self.loss.as_mut().is_some_and(Loss::takes) {
            return Some(WireDrop::Loss);
        }
        let hit = |errors: &mut BitErrors| errors.hit(bits);
        let is_hit = self.bit_errors.as_mut().is_some_and(hit);
        is_hit.then_some(WireDrop::BitErrors)
    }

    fn arrival(&mut self, leaves: Instant) -> Instant {
        let at = match &mut self.jitter {
            Some(jitter) => jitter.arrival(leaves, self.healed, &mut self.delay),
            None => self.delay.in_order(self.delay.on_time(leaves)),
        };
        match self.reordering.as_mut().filter(|_| !self.healed) {
            Some(reordering) => reordering.arrival(at),
            None => at,
        }
    }
}
