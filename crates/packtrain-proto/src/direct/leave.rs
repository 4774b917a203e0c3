//! What the program before `pt0` does with each frame (`direct_leave` of `bpf/direct.bpf.c`): its rules, written
//! down once more. Nobody sends by this; the program and those that stand for it in tests are held to it.

use std::collections::{BTreeMap, BTreeSet};

use super::{DIRECT_WAYS_MAX, DirectDestination, OpenTo};
use crate::class::KernelPath;
use crate::config::LinkId;
use crate::wire::ethernet::MacAddr;

/// A frame of a `pt0`, as far as it decides which way it takes.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    pub to: MacAddr,
    /// Of its flow: those that share one wait for each other.
    pub slot: u32,
    pub path: KernelPath,
    /// Bytes of the largest frame that it becomes on the wire, after the EtherType.
    pub payload: u16,
}

/// Which way it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Direct(LinkId),
    /// `returns`: the frames of its flow before it went directly.
    Engine {
        returns: bool,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Of its last frame that went to the engine.
    ticket: u64,
    /// By which the frames since then have gone.
    link: Option<LinkId>,
}

#[derive(Debug, Default)]
pub struct Leave {
    destinations: Vec<DirectDestination>,
    closed: BTreeSet<LinkId>,
    slots: BTreeMap<u32, Slot>,
    tickets: u64,
    drained: u64,
}

impl Leave {
    /// Links that were closed are open again.
    pub fn set_destinations(&mut self, destinations: Vec<DirectDestination>) {
        self.destinations = destinations;
        self.closed.clear();
    }

    /// Its queue stands, or small frames are many.
    pub fn close(&mut self, link: LinkId) {
        self.closed.insert(link);
    }

    /// Everything that had a ticket up to this one was delivered.
    pub fn set_drained(&mut self, ticket: u64) {
        self.drained = ticket;
    }

    /// Frames that went to the engine, ever.
    pub fn tickets(&self) -> u64 {
        self.tickets
    }

    pub fn frame(&mut self, frame: &Leaving) -> Left {
        let slot = self.slots.get(&frame.slot).copied().unwrap_or_default();
        let may_go = frame.path != KernelPath::Engine && slot.ticket <= self.drained;
        let way = self.way(frame, slot.link).filter(|_| may_go);
        let slot = self.slots.entry(frame.slot).or_default();
        if let Some(link) = way {
            slot.link = Some(link);
            return Left::Direct(link);
        }
        self.tickets += 1;
        slot.ticket = self.tickets;
        let returns = slot.link.take().is_some();
        Left::Engine { returns }
    }

    /// By the link that its flow has gone before, or one by its slot.
    fn way(&self, frame: &Leaving, before: Option<LinkId>) -> Option<LinkId> {
        let leads_there =
            |d: &&DirectDestination| d.address == frame.to && d.open_to != OpenTo::Nobody;
        let ways = self.destinations.iter().filter(leads_there);
        let ways: Vec<_> = ways.take(DIRECT_WAYS_MAX).collect();
        let first = frame.slot as usize % ways.len().max(1);
        let in_turn = ways[first..].iter().chain(&ways[..first]);
        let may_be_taken = |way: &&&DirectDestination| {
            let is_closed = self.closed.contains(&way.link) && frame.path != KernelPath::Direct;
            before.is_none_or(|link| link == way.link)
                && way.open_to.takes(frame.path)
                && !is_closed
        };
        let mut open = in_turn.filter(may_be_taken);
        let way = open.next()?;
        (frame.payload <= way.payload_max).then_some(way.link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn way(link: u8, open_to: OpenTo) -> DirectDestination {
        DirectDestination {
            address: PEER,
            link: LinkId(link),
            remote_address: MacAddr([2, 0, 0, 0, 1, link]),
            outer_source: MacAddr([6, 0, 0, 0, 1, link]),
            kind: Default::default(),
            vlan: None,
            payload_max: 1500,
            open_to,
        }
    }

    fn frame(slot: u32, path: KernelPath) -> Leaving {
        Leaving {
            to: PEER,
            slot,
            path,
            payload: 1500,
        }
    }

    const ENGINE: Left = Left::Engine { returns: false };
    const BACK: Left = Left::Engine { returns: true };

    fn by(link: u8) -> Left {
        Left::Direct(LinkId(link))
    }

    #[test]
    fn a_flow_stays_on_its_link_and_leaves_it_by_way_of_the_engine() {
        let mut leave = Leave::default();
        leave.set_destinations(vec![way(4, OpenTo::All), way(5, OpenTo::All)]);
        let send = |leave: &mut Leave, slot| leave.frame(&frame(slot, KernelPath::Auto));
        assert_eq!([send(&mut leave, 0), send(&mut leave, 1)], [by(4), by(5)]);
        leave.close(LinkId(4));
        assert_eq!([send(&mut leave, 0), send(&mut leave, 0)], [BACK, ENGINE]);
        assert_eq!([send(&mut leave, 2), send(&mut leave, 1)], [by(5), by(5)]);
        leave.set_drained(leave.tickets());
        assert_eq!(send(&mut leave, 0), by(5));
        // There are others, and it is one of them still.
        leave.set_destinations(vec![way(3, OpenTo::All), way(5, OpenTo::All)]);
        assert_eq!(send(&mut leave, 0), by(5));
        leave.set_destinations(vec![way(3, OpenTo::All)]);
        assert_eq!(send(&mut leave, 0), BACK);
    }

    #[test]
    fn a_link_is_open_to_more_and_more_frames() {
        use KernelPath::{Auto, Direct, Engine, LossOk};
        for (open_to, least) in [
            (OpenTo::Nobody, 4),
            (OpenTo::Classes, 3),
            (OpenTo::LossOk, 2),
            (OpenTo::All, 1),
        ] {
            for (number, path) in [Engine, Auto, LossOk, Direct].into_iter().enumerate() {
                let mut leave = Leave::default();
                leave.set_destinations(vec![way(4, open_to)]);
                let goes = leave.frame(&frame(0, path)) == by(4);
                assert_eq!(goes, number >= least, "{open_to:?} {path:?}");
                leave.close(LinkId(4));
                let goes = leave.frame(&frame(9, path)) == by(4);
                assert_eq!(goes, number == 3 && least < 4, "{open_to:?} {path:?}");
            }
        }
        let mut leave = Leave::default();
        leave.set_destinations(vec![way(4, OpenTo::All)]);
        let large = Leaving {
            payload: 1501,
            ..frame(0, Direct)
        };
        assert_eq!(leave.frame(&large), ENGINE);
    }
}
