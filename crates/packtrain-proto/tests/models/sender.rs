//! An engine with several links, a peer that acknowledges what it is told to, and what the links do: the
//! engine is held to the model of what it keeps and sends again.

use std::collections::{BTreeMap, BTreeSet};

use packtrain_proto::config::{Config, LinkId};
use packtrain_proto::engine::Engine;
use packtrain_proto::offload::Offload;
use packtrain_proto::stats::{DropReason, PathSnapshot, PathState};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, ether_type};
use packtrain_proto::wire::sequence::Sequence;
use packtrain_proto::wire::train::{self, Ack, REPLAYED, Train};

use crate::breakage::Breakage;
use crate::copies::{Copies, Kind, Sending};
use crate::far_end::{
    LINKS, MTU, MTU_SMALL, NODE, Wire, acknowledgement, hello, peer_address, pt0,
};
use crate::sending_step::Step;

pub type Failure = String;

/// What a copy of a train of an ordinary MTU takes.
const COPY_BYTES: usize = 2048;
const SILENCE_MIN: Duration = Duration::from_millis(200);
/// Nothing is waited for any longer, whatever the others do.
const DEAD_AFTER_MAX: Duration = Duration::from_millis(2200);
const EXPIRES_AFTER: Duration = Duration::from_millis(3500);
const HELLO_INTERVAL: Duration = Duration::from_secs(1);

pub struct Sender {
    now: Instant,
    engine: Engine,
    model: Copies,
    wires: Vec<Wire>,
    /// Without outer header and train header.
    bodies: BTreeMap<u32, Vec<u8>>,
    next_train: Sequence,
    /// Trains that have come by any link.
    came: BTreeSet<u32>,
    incarnation: u16,
    hellos: u32,
    next_hello: Instant,
    said: Vec<Ack>,
    copies_max: usize,
    breakage: Option<Breakage>,
    too_large: u64,
    replayed: u64,
    /// Trains that a link lost and lives, or that could not be sent again: nothing is promised of them.
    excused: BTreeSet<u32>,
}

fn fail<T>(what: String) -> Result<T, Failure> {
    Err(what)
}

impl Sender {
    pub fn new(copies_max: usize, breakage: Option<Breakage>) -> Sender {
        let now = Instant::from_nanos(60_000_000_000);
        let mut config = Config::new(NODE, pt0(1));
        config.marked_frames = false;
        config.limits.replay_bytes_max = copies_max * COPY_BYTES;
        let mut sender = Sender {
            now,
            engine: Engine::new(config, now),
            model: Copies::new(breakage),
            wires: vec![Wire::new(now); usize::from(LINKS)],
            bodies: BTreeMap::new(),
            next_train: Sequence::FIRST,
            came: BTreeSet::new(),
            incarnation: 0,
            hellos: 0,
            next_hello: now,
            said: Vec::new(),
            copies_max,
            breakage,
            too_large: 0,
            replayed: 0,
            excused: BTreeSet::new(),
        };
        (0..LINKS).for_each(|link| sender.tell_own_state(link));
        sender
            .pass(Duration::from_millis(500))
            .expect("nothing has happened yet");
        let mut paths = sender.paths().into_iter();
        assert!(paths.all(|path| path.state == PathState::Open));
        sender
    }

    fn is(&self, breakage: Breakage) -> bool {
        self.breakage == Some(breakage)
    }

    fn wire(&mut self, link: u8) -> &mut Wire {
        &mut self.wires[usize::from(link % LINKS)]
    }

    fn tell_own_state(&mut self, link: u8) {
        let state = self.wires[usize::from(link)].own_state(link);
        self.engine.handle_link_state(LinkId(link), state, self.now);
    }

    fn paths(&self) -> Vec<PathSnapshot> {
        let seen = self.engine.snapshot(self.now);
        let mut paths = seen
            .peers
            .into_iter()
            .next()
            .map_or(Vec::new(), |peer| peer.paths);
        paths.sort_by_key(|path| path.link);
        paths
    }

    /// The peer says hello by every link that is whole.
    fn say_hello(&mut self) -> Result<(), Failure> {
        self.next_hello = self.now + HELLO_INTERVAL;
        self.hellos += 1;
        for link in 0..LINKS {
            if !self.wires[usize::from(link)].is_whole() {
                continue;
            }
            let mut buffer = self.engine.buffers().take(MTU.into());
            hello(link, self.hellos, &self.wires, &mut buffer);
            // What it says of the others may end them.
            let was_open: Vec<bool> = self.wires.iter().map(Wire::is_open).collect();
            self.engine
                .handle_link_frame(LinkId(link), buffer, Offload::NONE, self.now);
            let now = self.now;
            let speaks = self.wire(link);
            speaks.is_heard = true;
            speaks.heard_at = now;
            for other in 0..LINKS {
                // Nobody has heard it for too long, while it was said to be closed at the other end.
                let paths = self.paths();
                let path = paths.get(usize::from(other));
                let is_closed = path.is_some_and(|path| path.state == PathState::Closed);
                let wire = self.wire(other);
                let is_back = !wire.told_carrier && wire.peer_carrier;
                if is_back && is_closed && now.since(wire.heard_at) > EXPIRES_AFTER {
                    wire.is_heard = false;
                }
                wire.told_carrier = wire.peer_carrier;
                let has_died = was_open[usize::from(other)] && !wire.told_carrier;
                if has_died {
                    self.model.died(other, now);
                }
            }
        }
        self.settle()
    }

    /// The acknowledgement arrives by the first link that is whole.
    fn acknowledge(&mut self, ack: Ack, is_false: bool) -> Result<(), Failure> {
        let Some(by) = (0..LINKS).find(|link| self.wires[usize::from(*link)].is_whole()) else {
            return Ok(());
        };
        let mut buffer = self.engine.buffers().take(COPY_BYTES);
        acknowledgement(by, ack, &mut buffer);
        let bad_before = self.dropped(DropReason::BadAck);
        self.engine
            .handle_link_frame(LinkId(by), buffer, Offload::NONE, self.now);
        let bad = self.dropped(DropReason::BadAck) - bad_before;
        if is_false {
            self.same("a false acknowledgement is refused", bad, 1)?;
        } else {
            self.same("refused", bad, 0)?;
            self.said.push(ack);
            self.wire(ack.link).owes_receipt = false;
            self.model.acknowledged(ack, self.now);
        }
        self.settle()
    }

    fn receipt(&self, link: u8) -> Option<Ack> {
        let link = link % LINKS;
        self.wires[usize::from(link)].receipt(link, self.incarnation)
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.engine.snapshot(self.now).drops.get(reason)
    }

    fn same<T: PartialEq + std::fmt::Debug>(
        &self,
        what: &str,
        real: T,
        model: T,
    ) -> Result<(), Failure> {
        match real == model {
            true => Ok(()),
            false => fail(format!(
                "{what} at {:?}: {real:?}, by the model {model:?}",
                self.now
            )),
        }
    }

    fn train_max(&self, link: u8) -> usize {
        self.wires[usize::from(link)].train_max()
    }

    /// Bytes of a train that is sent again.
    fn replay_len(&self, train: Sequence) -> usize {
        HEADER_LEN + train::HEADER_LEN + self.bodies[&train.0].len()
    }

    /// Takes out all that the engine wants done.
    fn settle(&mut self) -> Result<(), Failure> {
        for _ in 0..10_000 {
            for link in 0..LINKS {
                self.engine.handle_link_queue(LinkId(link), 0, self.now);
            }
            let silent: Vec<bool> = self.paths().iter().map(is_silent).collect();
            let transmit = self.engine.poll_transmit(self.now);
            let transmit = transmit.map(|t| (t.link.0, t.frame.to_vec()));
            self.look_for_too_large()?;
            let Some((link, frame)) = transmit else {
                while self.engine.poll_event().is_some() {}
                return self.compare();
            };
            let header = Header::parse(&frame).expect("an Ethernet frame");
            if header.ether_type == ether_type::PACKTRAIN
                && let Ok(train) = Train::parse(&frame[HEADER_LEN..])
            {
                self.same("addressed to", header.destination, peer_address(link))?;
                let body = &frame[HEADER_LEN + train.subframes_at..];
                self.on_train(link, &train, body, &silent)?;
            }
        }
        fail(format!("transmits without end at {:?}", self.now))
    }

    /// Only where there are links and all of them are too small, and the first that waits first.
    fn look_for_too_large(&mut self) -> Result<(), Failure> {
        let dropped = self.dropped(DropReason::ReplayTooLarge);
        while self.too_large < dropped {
            self.too_large += 1;
            let Some(first) = self.model.waiting().first().copied() else {
                return fail(format!("nothing waits that is too large at {:?}", self.now));
            };
            let len = self.replay_len(first);
            let is_open = |link: &u8| self.wires[usize::from(*link)].is_open();
            let mut open = (0..LINKS).filter(is_open);
            self.same(
                "dropped with no link there",
                open.clone().count() == 0,
                false,
            )?;
            let fits_any = open.any(|link| len <= self.train_max(link));
            self.same("too large for every link", fits_any, false)?;
            self.model.too_large(first, self.now);
            self.excused.insert(first.0);
        }
        Ok(())
    }

    fn on_train(
        &mut self,
        link: u8,
        train: &Train<'_>,
        body: &[u8],
        silent: &[bool],
    ) -> Result<(), Failure> {
        let head = train.header;
        let wire = self.wires[usize::from(link)].clone();
        self.incarnation = head.incarnation;
        self.same("the link that it names", head.link, link)?;
        self.same("goes by a link that is open", wire.is_open(), true)?;
        if head.replay {
            let options = train.acks().count() + train.newest().count();
            self.same("options of a replay", options, 0)?;
        } else {
            self.check_told(link, train)?;
        }
        if head.marker {
            self.same("marker", head.train_sequence, self.next_train.minus(1))?;
            return self.same("marker", head.link_sequence, wire.next.minus(1));
        }
        self.same("link sequence", head.link_sequence, wire.next)?;
        let replayed = self.engine.snapshot(self.now).replay.replayed;
        let kind = match head.replay {
            false => Kind::New,
            true if replayed > self.replayed => Kind::Replay,
            true => Kind::Try,
        };
        self.replayed = replayed;
        let len = HEADER_LEN + train.subframes_at + body.len();
        self.same("fits its link", len <= self.train_max(link), true)?;
        let works = |other: u8| {
            let at = usize::from(other);
            self.wires[at].is_open() && !silent[at] && len <= self.train_max(other)
        };
        let some_work = (0..LINKS).any(works);
        let may_be_used = !silent[usize::from(link)] || !some_work;
        self.check_order(kind, link, head.train_sequence, body)?;
        match kind {
            Kind::New => {
                self.same(
                    &format!("{head:?} by a link that works"),
                    may_be_used || body.is_empty(),
                    true,
                )?;
                self.same("new train", head.train_sequence, self.next_train)?;
                self.next_train = self.next_train.next();
                self.bodies.insert(head.train_sequence.0, body.to_vec());
            }
            Kind::Replay => {
                self.same(&format!("{head:?} by a link that works"), may_be_used, true)?
            }
            Kind::Try => self.same("tried is what is silent", silent[usize::from(link)], true)?,
        }
        let whole = self
            .bodies
            .get(&head.train_sequence.0)
            .map(|whole| whole == body);
        self.same("the same bytes", whole, Some(true))?;
        let waited = usize::from(kind == Kind::Replay);
        let kept = self.model.kept(LINKS) - waited;
        let fits = kept < self.copies_max || self.is(Breakage::AllIsKept);
        self.model.sent(Sending {
            link,
            sequence: head.link_sequence,
            train: head.train_sequence,
            kind,
            is_probe: body.is_empty(),
            is_kept: kind != Kind::Try && fits,
            at: self.now,
        });
        let wire = self.wire(link);
        wire.next = wire.next.next();
        if wire.is_whole() {
            wire.on_the_way
                .push((head.train_sequence, head.link_sequence));
        } else {
            self.excused.insert(head.train_sequence.0);
        }
        Ok(())
    }

    /// What waits goes before anything new that could go by the same link, and the oldest of it first.
    fn check_order(
        &self,
        kind: Kind,
        link: u8,
        train: Sequence,
        body: &[u8],
    ) -> Result<(), Failure> {
        let waiting = self.model.waiting();
        let first = waiting.first().copied();
        match kind {
            Kind::Try => Ok(()),
            Kind::Replay if self.is(Breakage::WaitingGoesLast) => {
                fail(String::from("what waits goes first"))
            }
            Kind::Replay => self.same("sent again", Some(train), first),
            // A probe asks whether all before it has arrived, whatever that takes.
            Kind::New if body.is_empty() => Ok(()),
            Kind::New => {
                let fits = first.filter(|first| self.replay_len(*first) <= self.train_max(link));
                self.same("waits before a new train", fits, None)
            }
        }
    }

    fn check_told(&self, link: u8, train: &Train<'_>) -> Result<(), Failure> {
        let mut told: BTreeMap<u8, Sequence> = train.newest().map(|n| (n.link, n.train)).collect();
        let replayed = told.remove(&REPLAYED);
        self.same("told", told, self.model.told(link, LINKS))?;
        let least = match self.is(Breakage::ReplaysAreNotTold) {
            true => None,
            false => self.model.newest_replayed(LINKS),
        };
        match (replayed, least) {
            (None, None) => Ok(()),
            (Some(replayed), Some(least)) if replayed.0 >= least.0 => Ok(()),
            _ => self.same("told of what is sent again", replayed, least),
        }
    }

    fn compare(&self) -> Result<(), Failure> {
        let seen = self.engine.snapshot(self.now);
        let (real, model) = (seen.replay, &self.model);
        let kept = model.kept(LINKS);
        self.same("kept", real.kept_trains, kept as u64)?;
        self.same("bytes kept", real.kept_bytes, (kept * COPY_BYTES) as u64)?;
        let bound = (self.copies_max * COPY_BYTES) as u64;
        let bounded = real.kept_bytes_max_seen <= bound || self.breakage.is_some();
        self.same("within its bound", bounded, true)?;
        self.same("waiting", real.waiting_trains, model.waiting().len() as u64)?;
        self.same("sent again", real.replayed, model.count(Kind::Replay))?;
        self.same("not kept", real.not_kept, model.sent_without_copy())?;
        let lost = seen.drops.get(DropReason::ReplayNotKept);
        self.same("lost, not kept", lost, model.lost_without_copy())?;
        for path in self.paths() {
            let standing = model.standing(path.link.0);
            self.same("round trip", path.round_trip, standing.round_trip)?;
            self.same("in flight", path.in_flight_bytes > 0, standing.has_data())?;
        }
        Ok(())
    }

    /// The engine's time has come: what it does with links that do not answer.
    fn tick(&mut self) -> Result<(), Failure> {
        let before = self.paths();
        self.engine.handle_timeout(self.now);
        let paths = self.paths();
        for (before, after) in before.iter().zip(&paths) {
            let link = after.link.0;
            let standing = self.model.standing(link);
            let now = self.now;
            let silence = now.since(standing.progress_at);
            let becomes = |state| after.state == state && before.state != state;
            let is_gone = standing.has_data() && after.in_flight_bytes == 0;
            let out = standing.out.iter();
            if becomes(PathState::Closed) {
                let unheard = now.since(self.wires[usize::from(link)].heard_at);
                self.same("closed too early", unheard > EXPIRES_AFTER, true)?;
                self.wire(link).is_heard = false;
                self.model.died(link, now);
            } else if after.lost_trains > before.lost_trains {
                let early = standing.has_data() && silence < SILENCE_MIN;
                self.same("given up too early", early, false)?;
                let trains: Vec<u32> = out.map(|sending| sending.train.0).collect();
                self.excused.extend(trains);
                self.model.gave_up(link, now);
            } else if becomes(PathState::Silent) && !is_gone {
                // All are silent, and each is tried; or nobody knows how long it takes.
                let works = |path: &PathSnapshot| {
                    let other = self.model.standing(path.link.0);
                    let answers =
                        !other.has_data() || now.since(other.progress_at) < other.late_after();
                    path.link.0 != link && path.state == PathState::Open && answers
                };
                let one_works = paths.iter().any(works);
                let is_known = standing.round_trip.is_some();
                self.same("tried while another works", one_works && is_known, false)?;
                self.same("tried too early", silence < SILENCE_MIN, false)?;
            } else if is_gone {
                self.same("silent too early", silence < SILENCE_MIN, false)?;
                let without = out.filter(|sending| !sending.is_kept);
                let trains: Vec<u32> = without.map(|sending| sending.train.0).collect();
                self.excused.extend(trains);
                self.model.died(link, now);
            }
        }
        for link in 0..LINKS {
            let standing = self.model.standing(link);
            let silence = self.now.since(standing.progress_at);
            let bound = DEAD_AFTER_MAX + standing.round_trip.unwrap_or_default() * 4;
            let waits_for_ever = standing.has_data() && silence > bound;
            self.same("waits for a silent link", waits_for_ever, false)?;
        }
        self.settle()
    }

    fn advance(&mut self, time: Duration) -> Result<(), Failure> {
        let end = self.now + time;
        let mut at_one_instant = 0;
        loop {
            let due = self.engine.poll_timeout().unwrap_or(end);
            let next = due.min(self.next_hello).min(end);
            at_one_instant = if next > self.now {
                0
            } else {
                at_one_instant + 1
            };
            self.same("time stands still", at_one_instant > 20, false)?;
            self.now = self.now.max(next);
            if due <= self.now {
                self.tick()?;
            }
            if self.next_hello <= self.now {
                self.say_hello()?;
            }
            if self.now >= end {
                return Ok(());
            }
        }
    }

    fn arrive(&mut self, link: u8, trains: usize) {
        let wire = self.wire(link);
        let n = trains.min(wire.on_the_way.len());
        let arrived: Vec<_> = wire.on_the_way.drain(..n).collect();
        wire.owes_receipt |= n > 0;
        wire.came
            .extend(arrived.iter().map(|(_, sequence)| sequence.0));
        self.came.extend(arrived.iter().map(|(train, _)| train.0));
    }

    fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        let end = self.now + time;
        while self.now < end {
            for link in 0..LINKS {
                self.arrive(link, usize::MAX);
                let owes = self.wires[usize::from(link)].owes_receipt;
                if owes && let Some(ack) = self.receipt(link) {
                    self.acknowledge(ack, false)?;
                }
            }
            self.advance(Duration::from_millis(10))?;
        }
        Ok(())
    }

    /// Whether another link would still be whole.
    fn can_do_without(&self, link: u8) -> bool {
        let other = |other: &u8| *other != link % LINKS;
        (0..LINKS)
            .filter(other)
            .any(|other| self.wires[usize::from(other)].is_whole())
    }

    pub fn step(&mut self, step: &Step) -> Result<(), Failure> {
        match *step {
            Step::HostSends { frames, len } => {
                for _ in 0..frames {
                    let header = Header {
                        destination: pt0(2),
                        source: pt0(1),
                        ether_type: 0x9000,
                    };
                    let mut frame = header.to_bytes().to_vec();
                    frame.resize(usize::from(len), self.next_train.0 as u8);
                    let buffer = self.engine.buffers().copy_of(&frame);
                    self.engine
                        .handle_host_frame(buffer, Offload::NONE, self.now);
                }
                self.settle()
            }
            Step::Arrive { link, trains } => {
                self.arrive(link, usize::from(trains % 32));
                Ok(())
            }
            Step::Lost { link, nth } => {
                let wire = self.wire(link);
                if !wire.on_the_way.is_empty() {
                    let at = usize::from(nth) % wire.on_the_way.len();
                    let (train, _) = wire.on_the_way.remove(at);
                    self.excused.insert(train.0);
                }
                Ok(())
            }
            Step::Acknowledged { link } => match self.receipt(link) {
                Some(ack) => self.acknowledge(ack, false),
                None => Ok(()),
            },
            Step::AcknowledgedAgain { nth } => {
                let said = self.said.len();
                match self.said.get(said.wrapping_sub(1 + usize::from(nth % 16))) {
                    Some(&ack) => self.acknowledge(ack, false),
                    None => Ok(()),
                }
            }
            Step::AcknowledgedFalsely { link, ahead } => {
                let next = self.wire(link).next;
                let ack = Ack {
                    link: link % LINKS,
                    incarnation: self.incarnation,
                    delay_nanos: 0,
                    newest: next.plus(u32::from(ahead)),
                    bitmap: u64::MAX,
                };
                self.acknowledge(ack, true)
            }
            Step::Cut { link } if self.wire(link).is_cut || self.can_do_without(link) => {
                let wire = self.wire(link);
                wire.is_cut = !wire.is_cut;
                let lost: Vec<_> = wire.on_the_way.drain(..).collect();
                self.excused.extend(lost.iter().map(|(train, _)| train.0));
                Ok(())
            }
            Step::OwnCarrier { link } if !self.wire(link).own_carrier => {
                self.wire(link).own_carrier = true;
                self.tell_own_state(link % LINKS);
                self.say_hello()
            }
            Step::OwnCarrier { link } if self.can_do_without(link) => {
                let wire = self.wire(link);
                wire.own_carrier = false;
                wire.is_heard = false;
                wire.on_the_way.clear();
                self.tell_own_state(link % LINKS);
                self.excuse_what_was_not_kept(link);
                self.model.died(link % LINKS, self.now);
                self.settle()
            }
            Step::PeerCarrier { link }
                if !self.wire(link).peer_carrier || self.can_do_without(link) =>
            {
                let wire = self.wire(link);
                wire.peer_carrier = !wire.peer_carrier;
                wire.on_the_way.clear();
                self.excuse_what_was_not_kept(link);
                self.say_hello()
            }
            Step::Cut { .. } | Step::OwnCarrier { .. } | Step::PeerCarrier { .. } => Ok(()),
            Step::OwnMtu { link } => {
                self.change_mtu(link % LINKS);
                self.settle()
            }
            Step::OwnMtus => {
                (0..LINKS).for_each(|link| self.change_mtu(link));
                self.settle()
            }
            Step::Wait { micros } => self.advance(Duration::from_micros(micros.into())),
            Step::Pass { millis } => self.pass(Duration::from_millis(millis.into())),
        }
    }

    fn change_mtu(&mut self, link: u8) {
        let wire = self.wire(link);
        wire.own_mtu = if wire.own_mtu == MTU { MTU_SMALL } else { MTU };
        self.tell_own_state(link);
    }

    fn excuse_what_was_not_kept(&mut self, link: u8) {
        let out = self.model.standing(link % LINKS).out;
        let without = out.iter().filter(|sending| !sending.is_kept);
        self.excused.extend(without.map(|sending| sending.train.0));
    }

    /// All links are whole again, and everything is acknowledged: nothing is kept any more, and all that a
    /// link took with it has come.
    pub fn end(&mut self) -> Result<(), Failure> {
        for link in 0..LINKS {
            let wire = self.wire(link);
            wire.is_cut = false;
            wire.peer_carrier = true;
            wire.own_carrier = true;
            wire.own_mtu = MTU;
            self.tell_own_state(link);
        }
        self.say_hello()?;
        self.pass(Duration::from_secs(6))?;
        self.same("kept at the end", self.model.kept(LINKS), 0)?;
        let sent = 1..self.next_train.0;
        let missing = |train: &u32| !self.came.contains(train) && !self.excused.contains(train);
        let missing: Vec<u32> = sent.filter(missing).collect();
        self.same("missing", missing, Vec::new())
    }
}

fn is_silent(path: &PathSnapshot) -> bool {
    path.state == PathState::Silent
}
