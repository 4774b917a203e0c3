//! How trains go where the class of their frames says so: by which of several links, and what becomes of those that are lost.

use serde::{Serialize, Serializer};

use crate::class::Repairs;
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

/// What all trains of a lane have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Via {
    /// They go by these, while one of them works; by none: by whichever.
    pub links: LinkSet,
    pub repairs: Repairs,
}

impl Via {
    /// As all go of which no class says anything.
    pub fn is_any(&self) -> bool {
        *self == Via::default()
    }
}

/// How each lane goes: a way that is asked for has one of its own as long as it is.
#[derive(Clone, Debug, Default)]
pub struct Vias {
    /// Of the lane behind the first one, and so on.
    ways: [Via; LANES_MAX - 1],
}

impl Vias {
    /// These ways are asked for from now on; those that were before keep their lane. A lane that nobody asks for any more has its way
    /// until another one takes it, so that what waits in it goes as it was to: one in which nothing `is_under_way`, if there is.
    pub fn set(
        &mut self,
        wanted: impl Iterator<Item = Via> + Clone,
        is_under_way: impl Fn(LaneId) -> bool,
    ) {
        let is_wanted = |way: &Via| !way.is_any() && wanted.clone().any(|w| w == *way);
        for way in wanted.clone().filter(|way| !way.is_any()) {
            if self.ways.contains(&way) {
                continue;
            }
            let free = self.ways.iter().position(Via::is_any);
            let lane_at = |at: usize| LaneId(at as u8 + 1);
            let harm = |at: usize| match is_under_way(lane_at(at)) {
                false => 0,
                true if self.ways[at].repairs != Repairs::Lossless => 1,
                true => 2,
            };
            let left = (0..self.ways.len()).filter(|&at| !is_wanted(&self.ways[at]));
            if let Some(at) = free.or_else(|| left.min_by_key(|&at| harm(at))) {
                self.ways[at] = way;
            }
        }
    }

    /// The lane of frames that go so; of all others, where there are more ways than lanes.
    pub fn lane_of(&self, via: &Via) -> LaneId {
        if via.is_any() {
            return LaneId::FIRST;
        }
        let at = self.ways.iter().position(|way| way == via);
        at.map_or(LaneId::FIRST, |at| LaneId(at as u8 + 1))
    }

    /// How a lane's trains go.
    pub fn of(&self, lane: LaneId) -> Via {
        match lane {
            LaneId::FIRST => Via::default(),
            lane => self.ways[lane.place() - 1],
        }
    }

    /// By which links; empty: by any.
    pub fn links_of(&self, lane: LaneId) -> LinkSet {
        self.of(lane).links
    }

    /// Lanes that are in use, or were: so many of the first ones.
    pub fn lanes(&self) -> usize {
        let last = self.ways.iter().rposition(|way| !way.is_any());
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

    fn by(links: &[u8]) -> Via {
        Via {
            links: set(links),
            ..Via::default()
        }
    }

    #[test]
    fn each_way_has_a_lane_as_long_as_it_is_asked_for() {
        let mut vias = Vias::default();
        let (a, b, c) = (by(&[1]), by(&[2]), by(&[1, 2]));
        assert_eq!((vias.lanes(), vias.lane_of(&a)), (1, LaneId::FIRST));
        vias.set([by(&[]), a, b, a].into_iter(), |_| false);
        assert_eq!((vias.lane_of(&a), vias.lane_of(&b)), (LaneId(1), LaneId(2)));
        assert_eq!((vias.lanes(), vias.lane_of(&by(&[]))), (3, LaneId::FIRST));
        assert_eq!(vias.links_of(LaneId(2)), b.links);
        assert!(vias.links_of(LaneId::FIRST).is_empty());
        // What waits in the lane of `a` goes by its links still.
        vias.set([b].into_iter(), |_| false);
        assert_eq!(vias.of(LaneId(1)), a);
        vias.set([b, c].into_iter(), |_| false);
        assert_eq!((vias.lane_of(&b), vias.lane_of(&c)), (LaneId(2), LaneId(3)));
    }

    #[test]
    fn lanes_that_nobody_asks_for_are_taken_when_no_other_is_left_and_then_any_link_will_do() {
        let mut vias = Vias::default();
        let ways: Vec<Via> = (0..LANES_MAX as u8).map(|link| by(&[link])).collect();
        vias.set(ways[..LANES_MAX - 1].iter().copied(), |_| false);
        vias.set(ways[1..].iter().copied(), |_| false);
        assert_eq!(vias.lane_of(&ways[LANES_MAX - 1]), LaneId(1));
        assert_eq!(vias.lane_of(&ways[0]), LaneId::FIRST);
        vias.set(ways.iter().copied(), |_| false);
        assert_eq!(vias.lane_of(&ways[0]), LaneId::FIRST, "one too many");
        assert_eq!(vias.lanes(), LANES_MAX);
    }

    #[test]
    fn of_lanes_that_nobody_asks_for_the_one_in_which_least_is_lost_is_taken() {
        let again = |link: u8, repairs| Via {
            links: set(&[link]),
            repairs,
        };
        let mut vias = Vias::default();
        let all = [
            Repairs::Lossless,
            Repairs::Off,
            Repairs::Lossless,
            Repairs::Lossless,
        ];
        let ways: Vec<Via> = (0..)
            .zip(all)
            .map(|(n, repairs)| again(n, repairs))
            .collect();
        assert_eq!(ways.len(), LANES_MAX - 1);
        vias.set(ways.into_iter(), |_| false);
        let new = |n: u8| again(100 + n, Repairs::Line);
        let mut is_busy = vec![true, true, false, true];
        for (n, lane) in [(0, 3), (1, 2), (2, 1)] {
            let before = is_busy.clone();
            vias.set(
                [0, 1, 2][..=usize::from(n)].iter().map(|&n| new(n)),
                |lane| before[lane.place() - 1],
            );
            assert_eq!(vias.lane_of(&new(n)), LaneId(lane));
            is_busy[usize::from(lane) - 1] = true;
        }
    }

    #[test]
    fn what_goes_again_otherwise_goes_in_another_lane() {
        let mut vias = Vias::default();
        let again = |links: &[u8], repairs| Via {
            links: set(links),
            repairs,
        };
        let ways = [
            again(&[], Repairs::Lossless),
            again(&[1], Repairs::Lossless),
            again(&[1], Repairs::Line),
            again(&[], Repairs::Off),
        ];
        vias.set(ways.into_iter(), |_| false);
        for (place, way) in ways.iter().enumerate() {
            assert_eq!(vias.lane_of(way), LaneId(place as u8 + 1));
            assert_eq!(vias.of(vias.lane_of(way)), *way);
        }
    }
}
