//! Which flows take turns with each other: those whose frames are sent alike.
//!
//! A train goes by one link, or by two, by whichever or by some alone, and so do all frames in it; so frames that go differently stand in
//! *bands*. Where each flow keeps to one link, those of a band are divided once more ([`Shares`]). Bands take turns by
//! what has left of each for each of its flows, so that a flow gets as much in one as in the other.

use std::collections::VecDeque;

use crate::config::LinkId;
use crate::queue::ahead::Ahead;
use crate::queue::shares::{Shares, Weight};
use crate::queue::short_first::ShortFirst;
use crate::trunk::balance::weighted::Served;
use crate::trunk::lane::{LANES_MAX, LaneId};

/// Of a frame, and of those that may ride with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BandId {
    /// By which links they go.
    pub lane: LaneId,
    /// By two of them, where there are as many.
    pub twice: bool,
}

/// So many there may be.
pub const BANDS_MAX: usize = 2 * LANES_MAX;

impl BandId {
    /// Of frames that go by one link, whichever.
    pub const FIRST: BandId = BandId {
        lane: LaneId::FIRST,
        twice: false,
    };

    pub(super) fn at(place: usize) -> BandId {
        BandId {
            lane: LaneId((place / 2) as u8),
            twice: place % 2 == 1,
        }
    }

    pub(super) fn place(self) -> usize {
        2 * self.lane.place() + usize::from(self.twice)
    }
}

/// When a band's turn is, beside those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BandTurn {
    served: Served,
    pub band: BandId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    New,
    Old,
}

/// Flows in their order, new ones first.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) new: VecDeque<u16>,
    pub(super) old: VecDeque<u16>,
}

impl Lists {
    pub(super) fn list(&mut self, list: List) -> &mut VecDeque<u16> {
        match list {
            List::New => &mut self.new,
            List::Old => &mut self.old,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.new.iter().chain(&self.old).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.new.len() + self.old.len()
    }
}

/// Flows that take turns with each other.
#[derive(Debug, Default)]
pub(super) struct FlowTurns {
    pub(super) long: Lists,
    /// Those whose head is to go before others.
    pub(super) short: Lists,
    pub(super) short_first: ShortFirst,
    pub(super) ahead: Ahead,
    pub(super) frames: usize,
    /// Of those, frames of which a piece has left, and not the last.
    pub(super) begun: usize,
}

impl FlowTurns {
    pub(super) fn lists(&mut self, is_short: bool) -> &mut Lists {
        match is_short {
            true => &mut self.short,
            false => &mut self.long,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.long.iter().chain(self.short.iter())
    }

    pub(super) fn flows(&self) -> usize {
        self.long.len() + self.short.len()
    }
}

#[derive(Debug)]
pub(super) struct Band {
    pub(super) shares: Shares,
    /// One for all links, or one for each.
    pub(super) turns: Vec<FlowTurns>,
    served: Served,
}

impl Default for Band {
    fn default() -> Band {
        Band {
            shares: Shares::default(),
            turns: vec![FlowTurns::default()],
            served: Served::default(),
        }
    }
}

impl Band {
    pub(super) fn frames(&self) -> usize {
        self.turns.iter().map(|turns| turns.frames).sum()
    }

    pub(super) fn flows(&self) -> usize {
        self.turns.iter().map(FlowTurns::flows).sum()
    }

    /// Whose turns lead to this link; `None`: no flow keeps to it.
    pub(super) fn place_of(&self, link: LinkId) -> Option<usize> {
        match self.shares.links() {
            [] => Some(0),
            _ => self.shares.place_of_link(link),
        }
    }

    pub(super) fn frames_for(&self, link: LinkId) -> usize {
        let place = self.place_of(link);
        place.map_or(0, |place| self.turns[place].frames)
    }

    pub(super) fn turn(&self, band: BandId) -> BandTurn {
        BandTurn {
            served: self.served,
            band,
        }
    }

    /// Another one is next, which had as much.
    pub(super) fn settle(&mut self, next: BandTurn) {
        self.served.settle(next.served);
    }

    pub(super) fn charge(&mut self, bytes: usize) {
        let flows = self.flows().clamp(1, Weight::MAX.into());
        self.served.add(bytes, flows as Weight);
    }
}
