//! The kernel's part of the direct path: the programs before `pt0`, at the way out of a link and at the way into
//! `pt0`, and what the daemon does to serve them.
//!
//! Which way a frame takes, [`Leave`] says. Everything else is written down here anew: counts, the queues of a card,
//! and when the engine is asked whether what went to it has arrived.

use std::collections::BTreeMap;

use packtrain_proto::class::{Class, Facts, KernelPath};
use packtrain_proto::config::{LinkId, LinkOrder};
use packtrain_proto::direct::leave::{Leave, Leaving, Left};
use packtrain_proto::direct::{DirectDestination, DirectSource};
use packtrain_proto::engine::Engine;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};
use packtrain_proto::wire::packet::Packet;

use super::watch::Watch;
use crate::frame::Frame;
use crate::random::Random;

/// Flows share slots, as by a hash.
const SLOTS: u32 = 16;
/// Of a card that has several, where direct frames and trains overtake each other.
const CARD_QUEUES: u32 = 2;
/// How long a frame may have to wait for its queue's turn.
const CARD_QUEUE_MAX: Duration = Duration::from_micros(200);
/// What stands there for longer is sent at once: a card holds so much, and no more.
const CARD_STANDS_MAX: Duration = Duration::from_millis(5);
const VLAN_TAG_LEN: usize = 4;

/// How soon the daemon looks again, at first and at last.
const TURN_MIN: Duration = Duration::from_millis(1);
const TURN_MAX: Duration = Duration::from_millis(50);
/// A question that was lost on the way is asked again.
const PATIENCE: Duration = Duration::from_secs(3);

/// What went which way, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectCounters {
    /// Frames that left directly.
    pub direct: u64,
    /// Frames that went to the engine.
    pub engine: u64,
    /// Flows that came back to the engine.
    pub returns: u64,
    /// Links that were closed because their queue stood.
    pub congested: u64,
    /// Direct frames, or segments of them, that were given to the host.
    pub came: u64,
}

/// Whether all that has a ticket up to this one was delivered.
#[derive(Clone, Copy, Debug)]
struct Question {
    number: u64,
    ticket: u64,
    at: Instant,
}

/// Where a frame goes that leaves directly, and as what.
#[derive(Clone, Debug)]
pub struct Redirected {
    pub link: LinkId,
    /// With the outer addresses.
    pub frame: Frame,
    pub path: KernelPath,
    /// When it leaves the card's queue; `None`: the card has but one.
    pub leaves_card: Option<Instant>,
}

/// Which of a host's cards have several queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cards {
    None,
    EverySecond,
    All,
}

impl Cards {
    fn has_several_queues(self, link: LinkId) -> bool {
        match self {
            Cards::None => false,
            Cards::EverySecond => link.0 % 2 == 1,
            Cards::All => true,
        }
    }
}

#[derive(Debug)]
pub struct Kernel {
    leave: Leave,
    destinations: Vec<DirectDestination>,
    sources: Vec<DirectSource>,
    /// Segments that have left, to this `pt0` by this link.
    sent: BTreeMap<(MacAddr, LinkId), u32>,
    /// Segments that have come, by this link with this direct mark.
    came: BTreeMap<(LinkId, MacAddr), u32>,
    /// The engine has not been told of all that has left.
    untold: bool,
    flows_left: bool,
    watches: BTreeMap<LinkId, Watch>,
    /// Closed by a watch, and the engine does not know.
    closed: Vec<LinkId>,
    cards: Cards,
    /// When the last frame of a card's queue leaves it.
    card_free: BTreeMap<(LinkId, u32), Instant>,
    random: Random,
    asked: Option<Question>,
    drained: u64,
    turn_planned: bool,
    turn_interval: Duration,
    pub counters: DirectCounters,
}

impl Kernel {
    pub fn new(cards: Cards, random: Random) -> Kernel {
        Kernel {
            leave: Leave::default(),
            destinations: Vec::new(),
            sources: Vec::new(),
            sent: BTreeMap::new(),
            came: BTreeMap::new(),
            untold: false,
            flows_left: false,
            watches: BTreeMap::new(),
            closed: Vec::new(),
            cards,
            card_free: BTreeMap::new(),
            random,
            asked: None,
            drained: 0,
            turn_planned: false,
            turn_interval: TURN_MIN,
            counters: DirectCounters::default(),
        }
    }

    /// The programs went with the daemon, and its next life has new ones, that have counted nothing.
    pub fn restart(&mut self) {
        let random = self.random.fork();
        *self = Kernel {
            card_free: core::mem::take(&mut self.card_free),
            turn_planned: self.turn_planned,
            counters: self.counters,
            ..Kernel::new(self.cards, random)
        };
    }

    pub fn order_of(&self, link: LinkId) -> LinkOrder {
        match self.cards.has_several_queues(link) {
            true => LinkOrder::Flow,
            false => LinkOrder::Whole,
        }
    }

    /// The program before `pt0`. `None`: the frame goes to the engine.
    pub fn leave(
        &mut self,
        frame: &Frame,
        flow: u16,
        (host, classes): (MacAddr, &[Class]),
        now: Instant,
    ) -> Option<Redirected> {
        let path = path_of(classes, &frame.bytes);
        let header = frame.header();
        let is_its_own = header.source == host && header.ether_type != ether_type::PACKTRAIN;
        let slot = u32::from(flow) % SLOTS;
        let left = self.leave.frame(&Leaving {
            to: header.destination,
            slot,
            // A frame of somebody behind it has a ticket as well.
            path: if is_its_own { path } else { KernelPath::Engine },
            payload: payload_of(frame),
            // Nothing puts them in order behind it.
            tcp: None,
        });
        let link = match left {
            Left::Direct(link) => link,
            Left::Engine { returns } => {
                self.counters.engine += 1;
                self.counters.returns += u64::from(returns);
                self.flows_left |= returns;
                return None;
            }
        };
        Some(self.redirect(frame, (link, slot, path), now))
    }

    fn redirect(
        &mut self,
        frame: &Frame,
        (link, slot, path): (LinkId, u32, KernelPath),
        now: Instant,
    ) -> Redirected {
        let to = frame.header().destination;
        let mut ways = self.destinations.iter();
        let way = ways.find(|way| (way.address, way.link) == (to, link));
        let way = way.expect("it is chosen among them");
        let mut outer = frame.clone();
        outer.bytes[..6].copy_from_slice(&way.remote_address.0);
        outer.bytes[6..12].copy_from_slice(&way.outer_source.0);
        let sent = self.sent.entry((to, link)).or_default();
        *sent = sent.wrapping_add(frame.segment_count() as u32);
        self.untold = true;
        self.counters.direct += 1;
        Redirected {
            link,
            frame: outer,
            path,
            leaves_card: self.leaves_card(link, slot, now),
        }
    }

    fn leaves_card(&mut self, link: LinkId, slot: u32, now: Instant) -> Option<Instant> {
        if !self.cards.has_several_queues(link) {
            return None;
        }
        let busy_for = self.random.duration(Duration::ZERO, CARD_QUEUE_MAX);
        let free = self.card_free.entry((link, slot % CARD_QUEUES));
        let free = free.or_default();
        *free = (now + CARD_STANDS_MAX)
            .min((*free).max(now) + busy_for)
            .max(*free);
        Some(*free)
    }

    /// The same frame by another way to the same peer, as no honest program sends it. `None`: there is none.
    pub fn misled(&self, redirected: &Redirected) -> Option<Redirected> {
        let way_of = |link| self.destinations.iter().find(|way| way.link == link);
        let to = way_of(redirected.link)?.address;
        let mut ways = self.destinations.iter();
        let other = ways.find(|way| way.address == to && way.link != redirected.link)?;
        let mut misled = redirected.clone();
        misled.link = other.link;
        misled.frame.bytes[..6].copy_from_slice(&other.remote_address.0);
        misled.frame.bytes[6..12].copy_from_slice(&other.outer_source.0);
        Some(misled)
    }

    /// The program at the way out of a link, before which so many bytes wait.
    pub fn watch(&mut self, link: LinkId, len: usize, queued_bytes: usize, now: Instant) {
        let watch = self.watches.entry(link).or_default();
        if watch.frame(len, queued_bytes > 0, now) {
            self.counters.congested += 1;
            self.leave.close(link);
            self.closed.push(link);
        }
    }

    /// Closed by force, for the engine does not know.
    pub fn close(&mut self, link: LinkId) {
        self.leave.close(link);
    }

    /// The program at the way in: what the host is given past the engine, if it is a peer's direct frame to this
    /// link.
    pub fn arrive(
        &mut self,
        link: LinkId,
        address: MacAddr,
        host: MacAddr,
        frame: &Frame,
    ) -> Option<Frame> {
        let header = frame.header();
        if header.destination != address || header.ether_type == ether_type::PACKTRAIN {
            return None;
        }
        let mut sources = self.sources.iter();
        let source = sources.find(|source| source.outer_source == header.source)?;
        let mut inner = frame.clone();
        inner.bytes[..6].copy_from_slice(&host.0);
        inner.bytes[6..12].copy_from_slice(&source.address.0);
        let came = self.came.entry((link, source.outer_source)).or_default();
        *came = came.wrapping_add(frame.segment_count() as u32);
        self.counters.came += 1;
        Some(inner)
    }

    /// The engine has decided anew.
    pub fn publish(&mut self, engine: &mut Engine, now: Instant) {
        // First nobody goes direct: what went to a new one before it was a peer was never asked for.
        self.asked = None;
        self.set_drained(0);
        self.destinations = engine.direct_destinations();
        self.sources = engine.direct_sources();
        self.leave.set_destinations(self.destinations.clone());
        self.turn_interval = TURN_MIN;
        self.tell_sent(engine, now);
    }

    pub fn tell_sent(&mut self, engine: &mut Engine, now: Instant) {
        for (&(address, link), &sent) in &self.sent {
            engine.handle_direct_sent(address, link, sent, now);
        }
        self.untold = false;
    }

    /// The answer to `Event::DirectAsked`.
    pub fn answer(
        &mut self,
        engine: &mut Engine,
        (address, link): (MacAddr, LinkId),
        direct_mark: MacAddr,
        now: Instant,
    ) {
        let sent = self.sent.get(&(address, link)).copied().unwrap_or(0);
        engine.handle_direct_sent(address, link, sent, now);
        let came = self.came.get(&(link, direct_mark)).copied().unwrap_or(0);
        engine.handle_direct_received(link, direct_mark, came, now);
    }

    /// After frames were taken from the host: whether some are of flows that went directly before.
    pub fn take_flows_left(&mut self) -> bool {
        core::mem::take(&mut self.flows_left)
    }

    pub fn take_closed(&mut self) -> Vec<LinkId> {
        core::mem::take(&mut self.closed)
    }

    /// The ticket that the engine is to be asked for, if any is.
    pub fn wants_to_know(&self, now: Instant) -> Option<u64> {
        let waits = self
            .asked
            .is_some_and(|asked| now.since(asked.at) < PATIENCE);
        let ticket = self.leave.tickets();
        let wants = !self.destinations.is_empty() && ticket > self.drained && !waits;
        wants.then_some(ticket)
    }

    pub fn asks(&mut self, number: u64, ticket: u64, now: Instant) {
        self.asked = Some(Question {
            number,
            ticket,
            at: now,
        });
    }

    /// The answer to the question of this number.
    pub fn on_drained(&mut self, number: u64) {
        if let Some(asked) = self.asked.take_if(|asked| asked.number == number) {
            self.set_drained(asked.ticket);
        }
    }

    pub fn set_drained(&mut self, ticket: u64) {
        self.drained = ticket;
        self.leave.set_drained(ticket);
    }

    /// When the daemon is to look next, if it has something to look for, and is not about to.
    pub fn plan_turn(&mut self, now: Instant) -> Option<Instant> {
        let has_work = self.untold
            || !self.closed.is_empty()
            || self.asked.is_some()
            || self.wants_to_know(now).is_some();
        if !has_work {
            self.turn_interval = TURN_MIN;
        }
        if !has_work || self.turn_planned {
            return None;
        }
        self.turn_planned = true;
        let interval = self.turn_interval;
        self.turn_interval = (interval * 2).min(TURN_MAX);
        Some(now + interval)
    }

    pub fn turn_begins(&mut self) {
        self.turn_planned = false;
    }
}

/// The definition: the first class that matches says it.
fn path_of(classes: &[Class], bytes: &[u8]) -> KernelPath {
    let facts = Facts::of(bytes, &Packet::parse(bytes), 0);
    let class = classes.iter().find(|class| class.matches.matches(&facts));
    class.map_or(KernelPath::Auto, |class| class.action.kernel_path())
}

/// Bytes after the EtherType of the largest frame that it becomes; a tag comes on top of an MTU.
fn payload_of(frame: &Frame) -> u16 {
    let is_tagged = frame.header().ether_type == ether_type::VLAN;
    let around = HEADER_LEN + if is_tagged { VLAN_TAG_LEN } else { 0 };
    frame.segment_bytes_max().saturating_sub(around) as u16
}
