//! By which of several links frames go, where their class says so.

use serde::{Serialize, Serializer};

use crate::config::LinkId;
use crate::trunk::lane::{LANES_MAX, LaneId};

/// Some links of a line, by their numbers. The default has none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkSet([u64; 4]);

impl LinkSet {
    pub fn add(&mut self, link: LinkId) {
        self.0[usize::from(link.0) / 64] |= 1 << (link.0 % 64);
    }

    pub fn has(&self, link: LinkId) -> bool {
        self.0[usize::from(link.0) / 64] >> (link.0 % 64) & 1 != 0
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|part| part.count_ones() as usize).sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = LinkId> + '_ {
        (0..=u8::MAX).map(LinkId).filter(|&link| self.has(link))
    }
}

impl FromIterator<LinkId> for LinkSet {
    fn from_iter<T: IntoIterator<Item = LinkId>>(links: T) -> LinkSet {
        let mut set = LinkSet::default();
        links.into_iter().for_each(|link| set.add(link));
        set
    }
}

impl std::fmt::Debug for LinkSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(self.iter().map(|link| link.0))
            .finish()
    }
}

impl Serialize for LinkSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|link| link.0))
    }
}

/// Links of each lane: a set that is asked for has one of its own as long as it is.
#[derive(Clone, Debug, Default)]
pub struct Vias {
    /// Of the lane behind the first one, and so on.
    sets: [LinkSet; LANES_MAX - 1],
}

impl Vias {
    /// These sets are asked for from now on; those that were before keep their lane. A lane that nobody asks for any more has its links
    /// until another one takes it, so that what waits in it goes as it was to.
    pub fn set(&mut self, wanted: impl Iterator<Item = LinkSet> + Clone) {
        let is_wanted = |set: &LinkSet| !set.is_empty() && wanted.clone().any(|w| w == *set);
        for set in wanted.clone().filter(|set| !set.is_empty()) {
            if self.sets.contains(&set) {
                continue;
            }
            let free = self.sets.iter().position(LinkSet::is_empty);
            let free = free.or_else(|| self.sets.iter().position(|set| !is_wanted(set)));
            if let Some(at) = free {
                self.sets[at] = set;
            }
        }
    }

    /// The lane of frames that go by these links; of any, where there are more sets than lanes.
    pub fn lane_of(&self, links: &LinkSet) -> LaneId {
        if links.is_empty() {
            return LaneId::FIRST;
        }
        let at = self.sets.iter().position(|set| set == links);
        at.map_or(LaneId::FIRST, |at| LaneId(at as u8 + 1))
    }

    /// By which links a lane's trains go; empty: by any.
    pub fn links_of(&self, lane: LaneId) -> LinkSet {
        match lane {
            LaneId::FIRST => LinkSet::default(),
            lane => self.sets[lane.place() - 1],
        }
    }

    /// Lanes that are in use, or were: so many of the first ones.
    pub fn lanes(&self) -> usize {
        let last = self.sets.iter().rposition(|set| !set.is_empty());
        last.map_or(1, |last| last + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(links: &[u8]) -> LinkSet {
        links.iter().map(|&link| LinkId(link)).collect()
    }

    #[test]
    fn a_set_has_what_was_put_in() {
        let links = set(&[0, 63, 64, 255]);
        let all: Vec<u8> = links.iter().map(|link| link.0).collect();
        assert_eq!((all, links.len()), (vec![0, 63, 64, 255], 4));
        assert!(!links.has(LinkId(1)) && !links.is_empty() && set(&[]).is_empty());
        assert_eq!(format!("{links:?}"), "{0, 63, 64, 255}");
    }

    #[test]
    fn each_set_has_a_lane_as_long_as_it_is_asked_for() {
        let mut vias = Vias::default();
        let (a, b, c) = (set(&[1]), set(&[2]), set(&[1, 2]));
        assert_eq!((vias.lanes(), vias.lane_of(&a)), (1, LaneId::FIRST));
        vias.set([set(&[]), a, b, a].into_iter());
        assert_eq!((vias.lane_of(&a), vias.lane_of(&b)), (LaneId(1), LaneId(2)));
        assert_eq!((vias.lanes(), vias.lane_of(&set(&[]))), (3, LaneId::FIRST));
        assert_eq!(vias.links_of(LaneId(2)), b);
        assert!(vias.links_of(LaneId::FIRST).is_empty());
        // What waits in the lane of `a` goes by its links still.
        vias.set([b].into_iter());
        assert_eq!(vias.links_of(LaneId(1)), a);
        vias.set([b, c].into_iter());
        assert_eq!((vias.lane_of(&b), vias.lane_of(&c)), (LaneId(2), LaneId(3)));
    }

    #[test]
    fn lanes_that_nobody_asks_for_are_taken_when_no_other_is_left_and_then_any_link_will_do() {
        let mut vias = Vias::default();
        let sets: Vec<LinkSet> = (0..LANES_MAX as u8).map(|link| set(&[link])).collect();
        vias.set(sets[..LANES_MAX - 1].iter().copied());
        vias.set(sets[1..].iter().copied());
        assert_eq!(vias.lane_of(&sets[LANES_MAX - 1]), LaneId(1));
        assert_eq!(vias.lane_of(&sets[0]), LaneId::FIRST);
        vias.set(sets.iter().copied());
        assert_eq!(vias.lane_of(&sets[0]), LaneId::FIRST, "one too many");
        assert_eq!(vias.lanes(), LANES_MAX);
    }
}
