//! The classes of a line, made ready to be asked for each frame.
//!
//! What a class asks is mostly the same for all frames of a flow. So the answer for a flow is
//! remembered as a set of classes, a bit each, that the frame may be of; what is left to ask of a frame is what
//! differs: its size, its payload, its mark.

use super::KernelPath;
use super::condition::Condition;
use super::facts::{Facts, FlowFacts};
use super::{Action, CLASSES_MAX, Class, Compress};
use crate::coding::coder::Treatment;
use crate::coding::worth::Worths;
use crate::direct::OpenTo;
use crate::stats::Traffic;
use crate::time::{Duration, Instant};
use crate::trunk::hold_times::HoldTimes;
use crate::trunk::via::Via;

/// Flows that are remembered; two that share a place forget each other.
const FLOWS: usize = 1024;

/// A class's place in the list. Of the rest: behind all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassId(pub u8);

#[derive(Debug)]
pub struct ClassTable {
    classes: Vec<Entry>,
    rest: Traffic,
    rest_action: Action,
    rest_waited: HoldTimes,
    compresses: bool,
    compresses_payload: bool,
    names_ways: bool,
    remembered: Box<[Option<Remembered>]>,
}

#[derive(Debug)]
struct Entry {
    class: Class,
    /// What is asked of flows, and of frames.
    of_flow: Vec<Condition>,
    of_frame: Vec<Condition>,
    /// It has all frames of a flow for ever, or none.
    is_fixed: bool,
    traffic: Traffic,
    /// From when its frames came until they left.
    waited: HoldTimes,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    flow: FlowFacts,
    /// Classes whose conditions on flows it meets.
    candidates: u64,
}

const _: () = assert!(CLASSES_MAX <= 64, "a bit each");

impl ClassTable {
    /// # Panics
    /// With more than [`CLASSES_MAX`].
    pub fn new(classes: Vec<Class>, rest: Action) -> ClassTable {
        assert!(classes.len() <= CLASSES_MAX);
        let mut actions = classes.iter().map(|class| class.action).chain([rest]);
        ClassTable {
            compresses: actions
                .clone()
                .any(|action| action.compress != Compress::Off),
            names_ways: actions.clone().any(|action| !action.via().is_any()),
            compresses_payload: actions.any(|action| action.compress == Compress::Auto),
            classes: classes.into_iter().map(Entry::new).collect(),
            rest: Traffic::default(),
            rest_action: rest,
            rest_waited: HoldTimes::default(),
            remembered: vec![None; FLOWS].into_boxed_slice(),
        }
    }

    /// Other classes from now on. Those that keep their name keep what they have counted. Returns those of before.
    pub fn replace(&mut self, classes: Vec<Class>) -> Vec<Class> {
        let table = ClassTable::new(classes, self.rest_action);
        let before = core::mem::replace(self, table);
        self.rest = before.rest;
        self.rest_waited = before.rest_waited;
        for old in &before.classes {
            let mut same = self.classes.iter_mut();
            if let Some(entry) = same.find(|entry| entry.class.name == old.class.name) {
                entry.traffic = old.traffic;
                entry.waited = old.waited.clone();
            }
        }
        before.classes.into_iter().map(|old| old.class).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Class> + '_ {
        self.classes.iter().map(|entry| &entry.class)
    }

    /// The class of a frame, whose flow has this number.
    #[inline]
    pub fn class_of(&mut self, flow_hash: u32, facts: &Facts) -> ClassId {
        let mut candidates = self.candidates(flow_hash, &facts.flow);
        while candidates != 0 {
            let first = candidates.trailing_zeros();
            let entry = &self.classes[first as usize];
            if entry.of_frame.iter().all(|c| c.holds(facts)) {
                return ClassId(first as u8);
            }
            candidates &= candidates - 1;
        }
        ClassId(self.classes.len() as u8)
    }

    /// How trains of all frames of this flow go. The first class of the flow says it that has all of its frames for
    /// ever: who goes by size, a mark or a code point may have a part of them, and they would lose their order.
    #[inline]
    pub fn via_of(&mut self, flow_hash: u32, facts: &Facts) -> Via {
        if !self.names_ways {
            return Via::default();
        }
        let mut candidates = self.candidates(flow_hash, &facts.flow);
        while candidates != 0 {
            let entry = &self.classes[candidates.trailing_zeros() as usize];
            if entry.is_fixed {
                return entry.class.action.via();
            }
            candidates &= candidates - 1;
        }
        Via::default()
    }

    /// Whether a class says how trains of its frames go.
    pub fn names_ways(&self) -> bool {
        self.names_ways
    }

    #[inline]
    fn candidates(&mut self, flow_hash: u32, flow: &FlowFacts) -> u64 {
        let place = flow_hash as usize % FLOWS;
        if let Some(remembered) = &self.remembered[place]
            && remembered.flow == *flow
        {
            return remembered.candidates;
        }
        let facts = Facts {
            flow: *flow,
            size: 0,
            empty_tcp: false,
            mark: 0,
        };
        let mut candidates = 0;
        for (bit, entry) in self.classes.iter().enumerate() {
            if entry.of_flow.iter().all(|c| c.holds(&facts)) {
                candidates |= 1 << bit;
            }
        }
        self.remembered[place] = Some(Remembered {
            flow: *flow,
            candidates,
        });
        candidates
    }

    /// Of the rest: as the line was told.
    #[inline]
    pub fn action(&self, class: ClassId) -> Action {
        self.classes
            .get(usize::from(class.0))
            .map_or(self.rest_action, |entry| entry.class.action)
    }

    /// Whether there is a class whose frames may be coded.
    #[inline]
    pub fn any_compresses(&self) -> bool {
        self.compresses
    }

    /// … and their payload compressed.
    #[inline]
    pub fn any_compresses_payload(&self) -> bool {
        self.compresses_payload
    }

    /// Whether the payload of its frames is compressed now, or tried, on the link of which `worths` was told.
    #[inline]
    pub fn is_compressed(&self, class: ClassId, worths: &Worths, now: Instant) -> bool {
        self.action(class).compress == Compress::Auto && worths.of(class, now) != Treatment::Headers
    }

    #[inline]
    pub fn count(&mut self, class: ClassId, bytes: usize) {
        match self.classes.get_mut(usize::from(class.0)) {
            Some(entry) => entry.traffic.count(bytes),
            None => self.rest.count(bytes),
        }
    }

    /// A frame of this class has left. One that came before the classes were others may count for another.
    #[inline]
    pub fn note_left(&mut self, class: ClassId, waited: Duration) {
        match self.classes.get_mut(usize::from(class.0)) {
            Some(entry) => entry.waited.record(waited),
            None => self.rest_waited.record(waited),
        }
    }

    /// The classes in their order, each with what it has counted.
    pub fn iter_counted(&self) -> impl Iterator<Item = (&Class, Traffic, &HoldTimes)> + '_ {
        let entries = self.classes.iter();
        entries.map(|entry| (&entry.class, entry.traffic, &entry.waited))
    }

    /// What no class has matched.
    pub fn rest(&self) -> (Action, Traffic, &HoldTimes) {
        (self.rest_action, self.rest, &self.rest_waited)
    }

    /// What is done with the frames of each, of the rest too.
    pub fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        let own = self.iter().map(|class| class.action);
        own.chain([self.rest_action])
    }

    /// Whether frames of any may be lost with a link.
    pub fn have_loss_ok(&self) -> bool {
        self.iter()
            .any(|class| class.action.kernel_path() == KernelPath::LossOk)
    }

    /// Whether frames of any class may go where only these may.
    pub fn uses(&self, open_to: OpenTo) -> bool {
        let takes = |class: &Class| open_to.takes(class.action.kernel_path());
        open_to.takes(self.rest_action.kernel_path()) || self.iter().any(takes)
    }
}

impl Entry {
    fn new(class: Class) -> Entry {
        let conditions = class.matches.conditions().iter().cloned();
        let (of_flow, of_frame) = conditions.partition(|c| c.test.is_of_flow());
        Entry {
            is_fixed: class.matches.is_fixed(),
            class,
            of_flow,
            of_frame,
            traffic: Traffic::default(),
            waited: HoldTimes::default(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
