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
    pub tcp: Option<TcpFrame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpFrame {
    pub bytes: u32,
    /// It becomes several segments.
    pub is_large: bool,
}

/// What is seen of a link's own queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkQueue {
    pub backlog_bytes: u32,
    /// Bytes a millisecond that leave it, as far as that is known.
    pub rate: Option<u32>,
}

/// What a link is taken for of which nothing is known while nothing is of any: 10 Gbit/s, in bytes a millisecond.
const RATE_UNKNOWN: u32 = 1_250_000;
/// By how much the fastest may be faster: a slower one brings less than the disorder takes.
const SLOWER: u32 = 3;
/// … and by how much for a frame that is on the slower one for so long at most, ns.
const SLOWER_SHORT: u32 = 5;
const SHORT: u64 = 200_000;
/// After so many frames that found the flow's link idle one goes by another idle one.
const STAYS: u32 = 64;
/// More than any frame takes by a link that is idle, ns.
const STANDS: u64 = 1 << 40;

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
    /// … and the last of those that are spread.
    stripe: Option<LinkId>,
    /// Large ones of these in a row that found it idle, and went there.
    stayed: u32,
}

/// Which way a frame takes.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    way: &'a DirectDestination,
    is_spread: bool,
    /// It goes there this once, and those after it by the link of before.
    probes: bool,
    /// What its slot says of how often it stayed with its link from then on.
    stayed: u32,
}

#[derive(Debug, Default)]
pub struct Leave {
    destinations: Vec<DirectDestination>,
    closed: BTreeSet<LinkId>,
    queues: BTreeMap<LinkId, LinkQueue>,
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

    pub fn set_queue(&mut self, link: LinkId, queue: LinkQueue) {
        self.queues.insert(link, queue);
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
        let chosen = may_go.then(|| self.choose(frame, &slot)).flatten();
        let fits = chosen.filter(|chosen| frame.payload <= chosen.way.payload_max);
        let goes = fits.map(|chosen| (chosen.way.link, chosen.is_spread, chosen.probes));
        let stayed = chosen.map_or(slot.stayed, |chosen| chosen.stayed);
        let slot = self.slots.entry(frame.slot).or_default();
        slot.stayed = stayed;
        if let Some((link, is_spread, probes)) = goes {
            // Apart from each other: a flow that shares the slot keeps to its link.
            match is_spread {
                true if probes => {}
                true => slot.stripe = Some(link),
                false => slot.link = slot.link.or(Some(link)),
            }
            return Left::Direct(link);
        }
        self.tickets += 1;
        slot.ticket = self.tickets;
        let returns = slot.link.is_some() || slot.stripe.is_some();
        (slot.link, slot.stripe) = (None, None);
        Left::Engine { returns }
    }

    fn choose(&self, frame: &Leaving, slot: &Slot) -> Option<Chosen<'_>> {
        let leads_there =
            |d: &&DirectDestination| d.address == frame.to && d.open_to != OpenTo::Nobody;
        let ways = self.destinations.iter().filter(leads_there);
        let ways: Vec<_> = ways.take(DIRECT_WAYS_MAX).collect();
        let chosen = |way, is_spread, stayed| Chosen {
            way,
            is_spread,
            probes: false,
            stayed,
        };
        if let Some(stripe) = self.stripe(&ways, frame, slot) {
            return Some(stripe);
        }
        if let Some(way) = self.stripe_before(&ways, frame, slot) {
            return Some(chosen(way, true, slot.stayed));
        }
        let way = self.way_in_order(&ways, frame, slot.link)?;
        Some(chosen(way, false, slot.stayed))
    }

    fn may_take(&self, way: &DirectDestination, path: KernelPath) -> bool {
        let is_closed = self.closed.contains(&way.link) && path != KernelPath::Direct;
        way.open_to.takes(path) && !is_closed
    }

    /// By the link that its flow has gone before, or one by its slot.
    fn way_in_order<'a>(
        &self,
        ways: &[&'a DirectDestination],
        frame: &Leaving,
        before: Option<LinkId>,
    ) -> Option<&'a DirectDestination> {
        let first = frame.slot as usize % ways.len().max(1);
        let mut in_turn = ways[first..].iter().chain(&ways[..first]).copied();
        in_turn.find(|way| {
            before.is_none_or(|link| link == way.link) && self.may_take(way, frame.path)
        })
    }

    /// Those that a flow takes in turns, of which there are several. `None`: of this frame's none is spread.
    fn ways_of_stripes<'a>(
        &self,
        ways: &[&'a DirectDestination],
        frame: &Leaving,
    ) -> Option<Vec<&'a DirectDestination>> {
        let are_several = ways.iter().filter(|way| way.stripes).count() > 1;
        let is_spread = are_several && frame.path == KernelPath::LossOk && frame.tcp.is_some();
        let may_be = |way: &&DirectDestination| way.stripes && self.may_take(way, frame.path);
        is_spread.then(|| ways.iter().copied().filter(may_be).collect())
    }

    /// A small frame follows the large one before it.
    fn stripe_before<'a>(
        &self,
        ways: &[&'a DirectDestination],
        frame: &Leaving,
        slot: &Slot,
    ) -> Option<&'a DirectDestination> {
        let mut ways = self.ways_of_stripes(ways, frame)?.into_iter();
        frame.tcp.filter(|tcp| !tcp.is_large)?;
        ways.find(|way| slot.stripe == Some(way.link))
    }

    /// By the link by which it is there first, as long as one is idle by one that is: the one that its flow has gone before, or
    /// the fastest.
    fn stripe<'a>(
        &self,
        ways: &[&'a DirectDestination],
        frame: &Leaving,
        slot: &Slot,
    ) -> Option<Chosen<'a>> {
        let ways = self.ways_of_stripes(ways, frame)?;
        let bytes = frame.tcp.filter(|tcp| tcp.is_large)?.bytes;
        let queue = |way: &DirectDestination| self.queues.get(&way.link).copied();
        let rate = |way: &DirectDestination| queue(way).and_then(|queue| queue.rate);
        let known = ways.iter().filter_map(|way| rate(way));
        let fastest = known.max().unwrap_or(RATE_UNKNOWN);
        let takes = |way: &DirectDestination, bytes: u32| {
            let rate = rate(way).unwrap_or(fastest);
            u64::from(bytes) * 1_000_000 / u64::from(rate)
        };
        let late_by = |way: &&DirectDestination| {
            let backlog = queue(way).unwrap_or_default().backlog_bytes;
            match backlog {
                0 if slot.stripe == Some(way.link) && slot.stayed < STAYS => 0,
                0 if slot.stripe == Some(way.link) => STANDS - 1,
                0 => takes(way, bytes),
                _ => STANDS + takes(way, bytes) + takes(way, backlog),
            }
        };
        let is_fast_enough = |way: &DirectDestination| {
            let slower = match takes(way, bytes) > SHORT {
                true => SLOWER,
                false => SLOWER_SHORT,
            };
            rate(way).is_none_or(|rate| rate.saturating_mul(slower) >= fastest)
        };
        let ways = ways.iter().copied().filter(|way| is_fast_enough(way));
        let with_lateness = ways.clone().map(|way| (way, late_by(&way)));
        let (way, late) = with_lateness.min_by_key(|(_, late)| *late)?;
        let is_last = |way: &DirectDestination| slot.stripe == Some(way.link);
        let mut idle = ways.filter(|way| queue(way).is_none_or(|queue| queue.backlog_bytes == 0));
        Some(Chosen {
            way,
            is_spread: true,
            probes: !is_last(way) && idle.any(is_last),
            stayed: match late {
                0 if is_last(way) => slot.stayed + 1,
                _ => 0,
            },
        })
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
            stripes: true,
        }
    }

    fn frame(slot: u32, path: KernelPath) -> Leaving {
        Leaving {
            to: PEER,
            slot,
            path,
            payload: 1500,
            tcp: None,
        }
    }

    const LARGE: Option<TcpFrame> = Some(TcpFrame {
        bytes: 60_000,
        is_large: true,
    });

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

    /// Which ways frames of 60,000 bytes of one flow take, each of which stands there from then on.
    fn taken(rates: [Option<u32>; 2], frames: usize) -> [usize; 2] {
        let mut leave = Leave::default();
        leave.set_destinations(vec![way(4, OpenTo::LossOk), way(5, OpenTo::LossOk)]);
        let mut taken = [0; 2];
        for _ in 0..frames {
            for (link, (rate, taken)) in (4..).zip(rates.into_iter().zip(taken)) {
                let backlog_bytes = taken as u32 * 60_000;
                let queue = LinkQueue {
                    backlog_bytes,
                    rate,
                };
                leave.set_queue(LinkId(link), queue);
            }
            let bulk = Leaving {
                tcp: LARGE,
                ..frame(0, KernelPath::LossOk)
            };
            match leave.frame(&bulk) {
                Left::Direct(link) => taken[usize::from(link.0) - 4] += 1,
                other => panic!("{other:?}"),
            }
        }
        taken
    }

    #[test]
    fn frames_of_a_flow_take_each_the_link_by_which_they_are_there_first() {
        assert_eq!(taken([None, None], 20), [10, 10]);
        assert_eq!(taken([Some(300_000), Some(600_000)], 30), [10, 20]);
        assert_eq!(taken([Some(600_000), Some(200_000)], 40), [30, 10]);
        assert_eq!(taken([Some(600_000), Some(199_999)], 40), [40, 0]);
        // They are on this one for 0.2 ms.
        assert_eq!(taken([Some(1_500_000), Some(300_000)], 60), [50, 10]);
        assert_eq!(taken([Some(1_500_001), Some(300_000)], 40), [40, 0]);
        assert_eq!(taken([Some(1_499_950), Some(299_990)], 40), [40, 0]);
        // As fast as the fastest, until it is known.
        assert_eq!(taken([Some(600_000), None], 20), [10, 10]);
    }

    #[test]
    fn now_and_then_another_idle_link_has_its_turn() {
        let mut leave = Leave::default();
        leave.set_destinations(vec![way(4, OpenTo::LossOk), way(5, OpenTo::LossOk)]);
        let bulk = Leaving {
            tcp: LARGE,
            ..frame(0, KernelPath::LossOk)
        };
        let mut last = by(4);
        let mut stays = Vec::new();
        let mut stayed = 0;
        for _ in 0..200 {
            let now = leave.frame(&bulk);
            if now != std::mem::replace(&mut last, now) {
                stays.push(std::mem::take(&mut stayed));
            }
            stayed += 1;
        }
        assert_eq!(stays, [65, 1, 64, 1, 64, 1]);
        // One on which something stands is none of them.
        let stands = LinkQueue {
            backlog_bytes: 1,
            rate: None,
        };
        let Left::Direct(LinkId(link)) = last else {
            panic!("{last:?}");
        };
        leave.set_queue(LinkId(9 - link), stands);
        assert!((0..200).all(|_| leave.frame(&bulk) == last));
    }

    #[test]
    fn what_is_no_bulk_keeps_to_its_link_and_so_does_what_may_not_be_lost() {
        let mut leave = Leave::default();
        leave.set_destinations(vec![way(4, OpenTo::All), way(5, OpenTo::All)]);
        let busy = LinkQueue {
            backlog_bytes: 60_000,
            rate: None,
        };
        let bulk = |path| Leaving {
            tcp: LARGE,
            ..frame(0, path)
        };
        assert_eq!(leave.frame(&bulk(KernelPath::LossOk)), by(4));
        leave.set_queue(LinkId(4), busy);
        assert_eq!(leave.frame(&frame(0, KernelPath::LossOk)), by(4));
        assert_eq!(leave.frame(&bulk(KernelPath::Auto)), by(4));
        assert_eq!(leave.frame(&bulk(KernelPath::Direct)), by(4));
        assert_eq!(leave.frame(&bulk(KernelPath::LossOk)), by(5));
        // Its small frames follow; a flow that shares its slot does not.
        let small = Leaving {
            tcp: Some(TcpFrame {
                bytes: 1000,
                is_large: false,
            }),
            ..frame(0, KernelPath::LossOk)
        };
        assert_eq!(leave.frame(&small), by(5));
        assert_eq!(leave.frame(&frame(0, KernelPath::LossOk)), by(4));
        // The other one is closed: there is nothing to choose.
        leave.close(LinkId(4));
        leave.set_queue(LinkId(5), busy);
        assert_eq!(leave.frame(&bulk(KernelPath::LossOk)), by(5));
        leave.close(LinkId(5));
        assert_eq!(leave.frame(&bulk(KernelPath::LossOk)), BACK);
    }

    #[test]
    fn one_way_that_takes_stripes_is_none() {
        let mut leave = Leave::default();
        let alone = DirectDestination {
            stripes: false,
            ..way(4, OpenTo::LossOk)
        };
        leave.set_destinations(vec![alone, way(5, OpenTo::LossOk)]);
        leave.set_queue(
            LinkId(4),
            LinkQueue {
                backlog_bytes: 1,
                rate: None,
            },
        );
        let bulk = Leaving {
            tcp: LARGE,
            ..frame(0, KernelPath::LossOk)
        };
        assert_eq!([leave.frame(&bulk), leave.frame(&bulk)], [by(4); 2]);
    }
}
