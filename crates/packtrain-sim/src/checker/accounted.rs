//! Nothing vanishes: a frame that did not come out was counted by someone, with a reason.
//!
//! *Exactly*, where no frame was lost on any wire: then as many frames are missing as the engines
//! say that they dropped. A lost train takes several frames or pieces of frames with it, and what
//! the receiver counts of them (a hole, a late train) overlaps; so with losses it is a bound: no
//! more may be missing than all these counts together explain.

use std::collections::{BTreeMap, BTreeSet};

use packtrain_proto::stats::{DropReason, Drops, Snapshot};
use packtrain_proto::time::Instant;

use super::reach::Copies;
use crate::simulator::StationId;
use crate::workload::identity::Identity;

/// What a run is held to in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// What does not come out was counted, or was lost by a wire.
    Accounts,
    /// What is lost by a wire is no excuse either: another link had to bring it.
    Everything,
    /// … or the same one after all: there is a copy of each train, or it has not left.
    Copies,
}

/// Of all engines in all their lives.
#[derive(Clone, Debug, Default)]
pub struct EngineDrops {
    pub drops: Drops,
    /// GSO frames that came as their complete segments only.
    pub partial: u64,
    /// Frames that stood in engines that ended, and trains in links and peers then: a bound.
    pub ended_with: u64,
}

impl EngineDrops {
    /// What one engine says of itself.
    pub fn add_life(&mut self, snapshot: &Snapshot) {
        self.add_drops(&snapshot.drops);
        self.partial += snapshot.reassembly.partial;
    }

    pub fn add_past(&mut self, past: &EngineDrops) {
        self.add_drops(&past.drops);
        self.partial += past.partial;
        self.ended_with += past.ended_with;
    }

    fn add_drops(&mut self, drops: &Drops) {
        for (reason, count) in drops.iter() {
            self.drops.count_many(reason, count);
        }
    }
}

/// What the drop of one of a reason means for frames that were to come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// A frame that a host sent is missing.
    Frame,
    /// A message of the wire: a train with all that it carries.
    Message,
    /// Nothing is missing: a copy, a stranger's, a frame that another has.
    Nothing,
}

fn meaning(reason: DropReason) -> Meaning {
    match reason {
        DropReason::Runt
        | DropReason::TooLarge
        | DropReason::Nested
        | DropReason::BadGso
        | DropReason::TooLargeForPlain
        | DropReason::TooLargeForPeer
        | DropReason::NoLink
        | DropReason::QueueFull
        | DropReason::FlowQueueFull
        | DropReason::Codel
        | DropReason::SegmentCopy
        | DropReason::SubframeEmpty
        | DropReason::ReassemblyHole
        | DropReason::ReassemblyTimeout
        | DropReason::ReassemblyFull
        | DropReason::ReassemblyBadPiece
        | DropReason::BadMark
        | DropReason::HostRefused => Meaning::Frame,
        DropReason::LinkRefused
        | DropReason::ReplayTooLarge
        | DropReason::ReplayNotKept
        | DropReason::UnknownPeer
        | DropReason::StaleIncarnation
        | DropReason::PeerGone
        | DropReason::BadLane
        | DropReason::BadSubframe
        | DropReason::SequenceJump
        | DropReason::Late
        | DropReason::ResequencerFull
        | DropReason::UnknownVersion
        | DropReason::UnknownType
        | DropReason::Truncated
        | DropReason::UnknownCriticalOption
        | DropReason::BadAggregate
        | DropReason::CodedUnknown
        | DropReason::CodedDamaged
        | DropReason::BadOption => Meaning::Message,
        _ => Meaning::Nothing,
    }
}

/// What an engine may count in a network that loses and alters nothing.
fn harmless(reason: DropReason) -> bool {
    matches!(
        reason,
        DropReason::TooLargeForPlain
            | DropReason::NoLink
            | DropReason::QueueFull
            | DropReason::FlowQueueFull
            | DropReason::Codel
            | DropReason::SegmentCopy
            // A slow link may be taken for dead. What has no copy comes late then, and that is looked at.
            | DropReason::ReplayNotKept
            | DropReason::NotForUs
            | DropReason::OtherMode
            | DropReason::OwnEcho
    )
}

#[derive(Debug)]
pub struct Accounted {
    /// By flow and sequence: those that were sent, and how they went as they are.
    frames: Vec<Vec<Option<Copies>>>,
    sent: u64,
    lost_items: u64,
    lost_as_they_are: BTreeSet<(u16, u32)>,
    /// Longer than one of their host's links took by which it would have gone to a segment.
    longer_than_a_home: BTreeSet<(u16, u32)>,
    /// Coded trains that came damaged, and the frames that began in them.
    damaged_trains: u64,
    damaged: BTreeSet<(u16, u32)>,
    /// Those that went past the engines; `true`: its class says that it may be lost.
    direct: BTreeMap<(u16, u32), bool>,
    wire_losses: u64,
    items_per_train_max: u64,
}

impl Accounted {
    pub fn new(flows: usize) -> Accounted {
        Accounted {
            frames: vec![Vec::new(); flows],
            sent: 0,
            lost_items: 0,
            lost_as_they_are: BTreeSet::new(),
            longer_than_a_home: BTreeSet::new(),
            damaged_trains: 0,
            damaged: BTreeSet::new(),
            direct: BTreeMap::new(),
            wire_losses: 0,
            items_per_train_max: 1,
        }
    }

    pub fn sent(&mut self, flow: usize, sequence: u32, now: Instant) {
        let frames = &mut self.frames[flow];
        let sequence = sequence as usize;
        if frames.len() <= sequence {
            frames.resize(sequence + 1, None);
        }
        frames[sequence] = Some(Copies {
            sent_at: now,
            ..Copies::default()
        });
        self.sent += 1;
    }

    pub fn was_sent(&self, what: Identity) -> bool {
        let frames = &self.frames[usize::from(what.flow)];
        matches!(frames.get(what.sequence as usize), Some(Some(_)))
    }

    pub fn frames_sent(&self) -> u64 {
        self.sent
    }

    /// One behind the newest sequence of a flow.
    pub fn sent_until(&self, flow: usize) -> u32 {
        self.frames[flow].len() as u32
    }

    pub fn sent_sequences(&self, flow: usize) -> impl Iterator<Item = u32> + '_ {
        let frames = self.frames[flow].iter().enumerate();
        frames
            .filter(|(_, frame)| frame.is_some())
            .map(|(sequence, _)| sequence as u32)
    }

    /// `has_met`: whether its sender had sent any train; `is_blind`: it could not know which of its links lead to this segment.
    pub fn went_as_it_is(
        &mut self,
        what: Identity,
        segment: usize,
        (has_met, is_blind): (bool, bool),
        now: Instant,
    ) {
        let frames = &mut self.frames[usize::from(what.flow)];
        if let Some(Some(copies)) = frames.get_mut(what.sequence as usize) {
            copies.twice_unknowingly |= is_blind && copies.has_left_on(segment);
            copies.left_on(segment, now);
            copies.before_any_train |= !has_met;
        }
    }

    pub fn came_as_it_is(&mut self, what: Identity, station: StationId) {
        let frames = &mut self.frames[usize::from(what.flow)];
        if let Some(Some(copies)) = frames.get_mut(what.sequence as usize) {
            copies.came_to(station);
        }
    }

    /// A host hands it to its engine, while one of its homes takes no frame so long.
    pub fn is_longer_than_a_home(&mut self, what: Identity) {
        self.longer_than_a_home.insert((what.flow, what.sequence));
    }

    /// It was too long for a segment when it was handed over, and has gone to none as it is: to whom it was for by trains, if it was for all.
    pub fn went_by_trains_for_its_length(&self, what: Identity) -> bool {
        let is_long = self
            .longer_than_a_home
            .contains(&(what.flow, what.sequence));
        is_long && self.as_it_is(what).is_none()
    }

    pub fn was_lost_as_it_is(&self, what: Identity) -> bool {
        self.lost_as_they_are.contains(&(what.flow, what.sequence))
    }

    pub fn went_directly(&mut self, what: Identity, may_be_lost: bool) {
        self.direct.insert((what.flow, what.sequence), may_be_lost);
    }

    /// When its host sent it, if it was.
    pub fn sent_at(&self, what: Identity) -> Option<Instant> {
        let frames = &self.frames[usize::from(what.flow)];
        let copies = frames.get(what.sequence as usize)?.as_ref();
        copies.map(|copies| copies.sent_at)
    }

    pub fn has_gone_directly(&self, what: Identity) -> bool {
        self.direct.contains_key(&(what.flow, what.sequence))
    }

    /// Whether it went past the engines, and its class says that it may be lost with a link.
    pub fn may_be_lost(&self, what: Identity) -> bool {
        let direct = self.direct.get(&(what.flow, what.sequence));
        direct.copied().unwrap_or(false)
    }

    /// As it is, and its sender had not sent any train yet.
    pub fn went_before_any_train(&self, what: Identity) -> bool {
        let copies = self.as_it_is(what);
        copies.is_some_and(|copies| copies.before_any_train)
    }

    pub fn frames_direct(&self) -> u64 {
        self.direct.len() as u64
    }

    /// `None`: it left by trains only, or not at all.
    pub fn as_it_is(&self, what: Identity) -> Option<&Copies> {
        let frames = &self.frames[usize::from(what.flow)];
        let copies = frames.get(what.sequence as usize)?.as_ref();
        copies.filter(|copies| copies.segments != 0)
    }

    pub fn train_left(&mut self, items: u64) {
        self.items_per_train_max = self.items_per_train_max.max(items);
    }

    pub fn train_lost(&mut self, items: u64) {
        self.wire_losses += 1;
        self.lost_items += items;
    }

    /// Who gets it drops it as a whole: what was in it is missing, and no more.
    pub fn train_damaged(&mut self, items: u64, frames: impl Iterator<Item = Identity>) {
        self.train_lost(items);
        self.damaged_trains += 1;
        self.damaged
            .extend(frames.map(|what| (what.flow, what.sequence)));
    }

    pub fn was_damaged(&self, what: Identity) -> bool {
        self.damaged.contains(&(what.flow, what.sequence))
    }

    pub fn frames_damaged(&self) -> u64 {
        self.damaged.len() as u64
    }

    pub fn lost_as_it_is(&mut self, what: Identity) {
        self.wire_losses += 1;
        self.lost_as_they_are.insert((what.flow, what.sequence));
    }

    /// `missing`: frames that did not come out whole, once for each station that they were for;
    /// at most `others` for one frame. Those that a wire has lost as they are are not among them.
    /// `moves_home`: so many have come as they are, perhaps by a link that was not the home one then.
    pub fn settle(
        &self,
        missing: u64,
        others: u64,
        moves_home: Option<u64>,
        engines: &EngineDrops,
    ) -> Result<(), String> {
        let of = |meaning_of: Meaning| -> u64 {
            let drops = engines.drops.iter();
            drops
                .filter(|(r, _)| meaning(*r) == meaning_of)
                .map(|(_, count)| count)
                .sum()
        };
        let frames = of(Meaning::Frame);
        // What was not sent again is missing only where a wire has lost it.
        let not_again = match self.wire_losses {
            0 => engines.drops.get(DropReason::ReplayNotKept),
            _ => 0,
        };
        // What was in these is known.
        let damaged = engines.drops.get(DropReason::CodedDamaged);
        let damaged = damaged.min(self.damaged_trains);
        let messages = of(Meaning::Message) - not_again - damaged;
        let quiet = self.wire_losses == 0 && engines.ended_with == 0 && messages == 0;
        if quiet && others == 1 && moves_home.is_none() && missing != frames {
            return Err(format!(
                "{missing} of {} frames are missing, no wire lost any, and engines count {:?}",
                self.sent,
                counts(&engines.drops)
            ));
        }
        let elsewhere = engines.drops.get(DropReason::NotForUs);
        let explained = frames * others
            + moves_home.unwrap_or(0).min(elsewhere)
            + messages * self.items_per_train_max
            + self.lost_items
            + engines.partial
            + engines.ended_with;
        if missing > explained {
            return Err(format!(
                "{missing} of {} frames are missing; wires lost {} trains' subframes, engines count \
                 {:?}: {explained} at most",
                self.sent,
                self.lost_items,
                counts(&engines.drops)
            ));
        }
        Ok(())
    }

    /// Where wires lose only what others could have brought, or what has to go again until it comes, between two hosts, and
    /// nobody restarts: as many frames are missing as queues were too short for, but for trains that could not be sent
    /// again. Frames that went as they are to a station that nobody knows yet are not among the missing;
    /// `has_copies`: those of a flow go by trains, and none of them may be lost as it is, but what went past the
    /// engines and may, and what went before any train.
    pub fn settle_lossless(
        &self,
        missing: u64,
        has_copies: impl Fn(u16) -> bool,
        kept: Kept,
        engines: &EngineDrops,
    ) -> Result<(), String> {
        let of = |reasons: &[DropReason]| -> u64 {
            let counts = reasons.iter().map(|&reason| engines.drops.get(reason));
            counts.sum()
        };
        let frames = of(&[
            DropReason::QueueFull,
            DropReason::FlowQueueFull,
            DropReason::Codel,
            DropReason::NoLink,
            DropReason::TooLargeForPlain,
        ]);
        // A copy that no link takes that is left is counted, and no mistake.
        let too_large = of(&[DropReason::ReplayTooLarge]);
        let trains = match kept {
            Kept::Copies => too_large,
            _ => too_large + of(&[DropReason::ReplayNotKept]),
        };
        let most = frames + trains * self.items_per_train_max;
        if missing > most || missing < frames {
            return Err(format!(
                "{missing} of {} frames are missing where {frames} to {most} may be; wires lost {} \
                 messages, engines count {:?}",
                self.sent,
                self.wire_losses,
                counts(&engines.drops)
            ));
        }
        let mut lost = self.lost_as_they_are.iter();
        let may_be_lost = |&(flow, sequence): &(u16, u32)| {
            let what = Identity {
                flow,
                sequence,
                segment: 0,
            };
            self.may_be_lost(what) || self.went_before_any_train(what)
        };
        match lost.find(|what| has_copies(what.0) && !may_be_lost(what)) {
            None => Ok(()),
            Some((flow, sequence)) => Err(format!(
                "frame {sequence} of flow {flow} went as it is, and was lost, and a train would have been \
                 sent again"
            )),
        }
    }

    /// In a network without faults, and where no queue was too short: nothing may have been
    /// dropped for a reason that only faults, or mistakes, give.
    ///
    /// `come_twice`: what goes to several segments, and what an acknowledgement that is late lets go again, comes more than once,
    /// and is given once.
    pub fn settle_faultless(&self, engines: &EngineDrops, come_twice: bool) -> Result<(), String> {
        if self.wire_losses > 0 {
            return Ok(());
        }
        match engines.drops.iter().find(|(reason, _)| {
            let is_copy = come_twice && *reason == DropReason::Duplicate;
            !harmless(*reason) && !is_copy
        }) {
            None => Ok(()),
            Some(_) => Err(format!("without any fault: {:?}", counts(&engines.drops))),
        }
    }
}

fn counts(drops: &Drops) -> Vec<(&'static str, u64)> {
    drops
        .iter()
        .map(|(reason, count)| (reason.as_str(), count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_is_too_long_for_a_home_has_gone_by_trains_unless_it_went_as_it_is() {
        let what = |sequence| Identity {
            flow: 0,
            sequence,
            segment: 0,
        };
        let mut accounted = Accounted::new(1);
        (0..3).for_each(|sequence| accounted.sent(0, sequence, Instant::ZERO));
        accounted.is_longer_than_a_home(what(1));
        accounted.is_longer_than_a_home(what(2));
        accounted.went_as_it_is(what(2), 0, (true, false), Instant::ZERO);
        let by_trains = |sequence| accounted.went_by_trains_for_its_length(what(sequence));
        assert_eq!([0, 1, 2].map(by_trains), [false, true, false]);
    }
}
