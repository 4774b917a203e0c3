//! A sender with several links, what they do to its trains, and a receiver that is held to the model.

use std::collections::{BTreeMap, BTreeSet};

use packtrain_proto::buffer::Buffer;
use packtrain_proto::config::LinkId;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::trunk::resequencer::{Refused, Repairing, Resequencer};
use packtrain_proto::wire::sequence::Sequence;
use packtrain_proto::wire::train::{REPLAYED, REPLAYED_FROM};

use crate::arrival_step::Step;
use crate::breakage::Breakage;
use crate::order::{COPIES_SILENT_MAX, Order, Turn};

const LINKS: u8 = 3;
const WAITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
const STALL_MIN: Duration = Duration::from_millis(1200);
const SENT_AT_ONCE_MAX: u8 = 40;
const RECENT: usize = 64;
/// Room for one more train of the usual size.
const ROOM: usize = 2048;
const REPAIRING: [Repairing; 3] = [Repairing::No, Repairing::InTime, Repairing::Lossless];
/// How far senders let the newest train be ahead of the oldest that is under way.
const SPAN: u32 = 3072;

#[derive(Clone, Debug)]
struct Message {
    train: Sequence,
    link: u8,
    is_marker: bool,
    is_replay: bool,
    told: Vec<(LinkId, Sequence)>,
    repairs: Repairing,
    kept_from: Option<Sequence>,
    bytes: usize,
}

/// A train of which the sender does not know what became of it.
#[derive(Clone, Copy, Debug)]
struct Out {
    train: Sequence,
    is_replay: bool,
    /// It has left the link, by one end or the other.
    has_left: bool,
}

/// A failed comparison, or a broken promise.
pub type Failure = String;

pub struct Arrivals {
    now: Instant,
    real: Resequencer,
    model: Order,
    next: Sequence,
    wires: [Vec<Message>; LINKS as usize],
    out: [Vec<Out>; LINKS as usize],
    /// Copies that are to be sent again, by distance from the first: sequences wrap.
    waiting: BTreeSet<u32>,
    first: Sequence,
    recent: Vec<Message>,
    honest: bool,
    /// Trains that a link lost: nothing is promised of them, even if they are sent again.
    lost: BTreeSet<u32>,
    /// Of those, what the sender has not sent again yet.
    missing: BTreeSet<u32>,
    repairs: Repairing,
    /// When a link was taken away that carried this train: for so long the receiver expects it by others.
    removed: BTreeMap<u32, Instant>,
    /// When each train came that was taken and waits.
    holding: BTreeMap<u32, Instant>,
    given: BTreeSet<u32>,
    taken: u64,
    bytes_max: usize,
    checks_promises: bool,
}

fn index(link: u8) -> usize {
    usize::from(link % LINKS)
}

impl Arrivals {
    pub fn new(first: Sequence, bytes_max: usize, breakage: Option<Breakage>) -> Arrivals {
        Arrivals {
            // Not at the origin of time, which stands for never.
            now: Instant::from_nanos(60_000_000_000),
            real: Resequencer::new(first, bytes_max, WAITS),
            model: Order::new(first, bytes_max, WAITS, breakage),
            next: first,
            wires: Default::default(),
            out: Default::default(),
            waiting: BTreeSet::new(),
            first,
            recent: Vec::new(),
            honest: true,
            lost: BTreeSet::new(),
            missing: BTreeSet::new(),
            repairs: REPAIRING[first.0 as usize % REPAIRING.len()],
            removed: BTreeMap::new(),
            holding: BTreeMap::new(),
            given: BTreeSet::new(),
            taken: 0,
            bytes_max,
            checks_promises: breakage.is_none(),
        }
    }

    fn number(&self, train: Sequence) -> u32 {
        train.0.wrapping_sub(self.first.0)
    }

    /// What may still arrive by other links, as the sender knows it.
    fn told(&self, by: usize) -> Vec<(LinkId, Sequence)> {
        let replayed = self.out.iter().flatten().filter(|out| out.is_replay);
        let replayed = replayed.map(|out| self.number(out.train));
        let again: BTreeSet<u32> = replayed.chain(self.waiting.iter().copied()).collect();
        let name = |link: u8, number: u32| (LinkId(link), self.first.plus(number));
        let mut told = Vec::new();
        told.extend(again.last().map(|newest| name(REPLAYED, *newest)));
        let oldest = again.first().filter(|_| self.repairs != Repairing::No);
        told.extend(oldest.map(|oldest| name(REPLAYED_FROM, *oldest)));
        for link in (0..usize::from(LINKS)).filter(|link| *link != by) {
            let own = self.out[link].iter().filter(|out| !out.is_replay);
            if let Some(newest) = own.map(|out| self.number(out.train)).max() {
                told.push((LinkId(link as u8), self.first.plus(newest)));
            }
        }
        told
    }

    /// The oldest train of which the sender has a copy, if nothing may be lost.
    fn kept_from(&self, train: Sequence) -> Option<Sequence> {
        let out = self.out.iter().flatten().map(|out| self.number(out.train));
        let kept = out.chain(self.waiting.iter().copied());
        let kept = kept.chain(self.missing.iter().copied());
        let oldest = kept.fold(self.number(train), u32::min);
        (self.repairs == Repairing::Lossless).then(|| self.first.plus(oldest))
    }

    fn put(&mut self, link: u8, train: Sequence, is_replay: bool, bytes: usize) {
        let at = index(link);
        let told = if is_replay { Vec::new() } else { self.told(at) };
        self.wires[at].push(Message {
            train,
            link: at as u8,
            is_marker: false,
            is_replay,
            told,
            repairs: self.repairs,
            kept_from: self.kept_from(train),
            bytes,
        });
        self.out[at].push(Out {
            train,
            is_replay,
            has_left: false,
        });
    }

    fn send(&mut self, link: u8, bytes: usize) {
        if !self.has_span() {
            return;
        }
        let train = self.next;
        self.next = train.next();
        self.put(link, train, false, bytes);
    }

    fn left(&mut self, message: &Message) {
        let out = self.out[index(message.link)].iter_mut();
        for out in out.filter(|out| out.train == message.train) {
            out.has_left |= !message.is_marker;
        }
    }

    /// What has come by this link is known to have come, and what was lost before it to be lost.
    fn acknowledge(&mut self, link: u8) {
        let out = &mut self.out[index(link)];
        let under_way = out.iter().position(|out| !out.has_left);
        let known = under_way.unwrap_or(out.len());
        out.drain(..known);
    }

    fn arrive(&mut self, message: Message) -> Result<(), Failure> {
        self.left(&message);
        self.recent.push(message.clone());
        if self.recent.len() > RECENT {
            self.recent.remove(0);
        }
        self.receive(&message)
    }

    /// As the engine does it.
    fn receive(&mut self, message: &Message) -> Result<(), Failure> {
        let (train, by, now) = (message.train, LinkId(message.link), self.now);
        if !message.is_replay {
            let told = message.told.iter().copied();
            let says = (message.repairs, message.kept_from);
            self.real.on_told(train, told, says, now);
            self.model.tell(train, &message.told, says, now);
        }
        if message.is_marker {
            self.real.note(by, train, now);
            self.model.marker(by, train, now);
        } else {
            let link = (!message.is_replay).then_some(by);
            let mut buffer = Buffer::with_capacity(message.bytes);
            let fits = buffer.push(&train.0.to_be_bytes());
            assert!(fits);
            let real = self.real.insert(train, link, buffer, 0, now);
            let real: Result<(), Refused> = real.map_err(|(_, refused)| refused);
            let model = self.model.insert(train, link, message.bytes, now);
            self.same(&format!("taken: {message:?}"), real, model)?;
            if real.is_ok() {
                self.taken += 1;
                self.holding.insert(self.number(train), now);
            } else if real == Err(Refused::Full) {
                // The sender learns nothing of it: what it may send again is not expected.
                self.lost.insert(self.number(train));
            }
        }
        self.poll()
    }

    fn same<T: PartialEq + std::fmt::Debug>(
        &self,
        what: &str,
        real: T,
        model: T,
    ) -> Result<(), Failure> {
        match real == model {
            true => Ok(()),
            false => Err(format!(
                "{what} at {:?}: {real:?}, by the model {model:?}",
                self.now
            )),
        }
    }

    fn poll(&mut self) -> Result<(), Failure> {
        let now = self.now;
        loop {
            let from = self.number(self.real.expected());
            let is_full = self.real.held_bytes() + ROOM > self.bytes_max;
            let real = self.real.poll(now).map(|(held, after_gap)| Turn {
                train: Sequence(u32::from_be_bytes(held.buffer[..4].try_into().unwrap())),
                arrived: held.arrived(),
                after_gap,
            });
            let model = self.model.poll(now);
            self.same("the next", real, model)?;
            let to = match real {
                Some(turn) => self.number(turn.train),
                None => self.number(self.real.expected()),
            };
            if self.honest && self.checks_promises && !is_full {
                self.check_given_up(from..to)?;
            }
            let Some(turn) = real else {
                break;
            };
            self.holding.remove(&to);
            let rises = self.given.last().is_none_or(|last| *last < to);
            let once = self.given.insert(to);
            if self.honest && !(rises && once) {
                return Err(format!("{:?} comes out of order, or twice", turn.train));
            }
        }
        self.same("expected", self.real.expected(), self.model.expected())?;
        let sleeps = self.real.poll_timeout().is_none_or(|at| at > now);
        self.same("each wake-up leads further", sleeps, true)?;
        let bounded = self.real.held_bytes() <= self.bytes_max || !self.checks_promises;
        self.same("within its bound", bounded, true)
    }

    fn compare(&self) -> Result<(), Failure> {
        let (real, model, now) = (&self.real, &self.model, self.now);
        self.same("held", real.held_trains(), model.held_trains())?;
        self.same("held bytes", real.held_bytes(), model.held_bytes())?;
        self.same("the newest held", real.newest_held(), model.newest_held())?;
        self.same("the wake-up", real.poll_timeout(), model.poll_timeout())?;
        self.same("reorders", real.reorders(now), model.reorders(now))?;
        self.same("gaps", real.stats.gaps, model.gaps())?;
        self.same("reordered", real.stats.reordered, model.reordered())?;
        self.same("discarded", real.discarded, model.discarded())
    }

    /// What may still come is not given up, unless it takes too long. By what is on the links and what the
    /// sender is about to send again, whatever it has told.
    fn check_given_up(&self, given_up: std::ops::Range<u32>) -> Result<(), Failure> {
        let waits_since = self.holding.values().min();
        let stalled = waits_since.is_none_or(|since| self.now.since(*since) >= STALL_MIN);
        for number in given_up {
            let train = self.first.plus(number);
            let comes = |m: &Message| m.train == train && !m.is_marker;
            let comes = self.wires.iter().flatten().any(comes) || self.waiting.contains(&number);
            let removed = self.removed.get(&number);
            let is_forgotten = removed.is_some_and(|at| self.now.since(*at) >= STALL_MIN);
            if comes && !stalled && !is_forgotten && !self.lost.contains(&number) {
                return Err(format!(
                    "{train:?} is given up at {:?}, and may come",
                    self.now
                ));
            }
        }
        Ok(())
    }

    /// The receiver could not hold more, and senders know.
    fn has_span(&self) -> bool {
        let out = self.out.iter().flatten().map(|out| self.number(out.train));
        let oldest = out.chain(self.waiting.first().copied()).min();
        oldest.is_none_or(|oldest| self.number(self.next) - oldest < SPAN)
    }

    pub fn step(&mut self, step: &Step) -> Result<(), Failure> {
        self.honest &= step.is_honest();
        self.take(step)?;
        self.compare()
    }

    fn take(&mut self, step: &Step) -> Result<(), Failure> {
        match *step {
            Step::Send { link, large } => self.send(link, if large { 3500 } else { 100 }),
            Step::SendMany { trains } => {
                for n in 0..trains % SENT_AT_ONCE_MAX {
                    self.send(n, 100);
                }
            }
            Step::Arrives { link, acknowledged } => {
                let wire = &mut self.wires[index(link)];
                if !wire.is_empty() {
                    let message = wire.remove(0);
                    self.arrive(message)?;
                }
                if acknowledged {
                    self.acknowledge(link);
                }
            }
            Step::AllArrive { link } => {
                for message in std::mem::take(&mut self.wires[index(link)]) {
                    self.arrive(message)?;
                }
            }
            Step::Overtakes { link, nth } => {
                let wire = &mut self.wires[index(link)];
                if !wire.is_empty() {
                    let message = wire.remove(usize::from(nth) % wire.len());
                    self.arrive(message)?;
                }
            }
            Step::Lost { link, nth } => {
                let wire = &mut self.wires[index(link)];
                if !wire.is_empty() {
                    let message = wire.remove(usize::from(nth) % wire.len());
                    self.left(&message);
                    if !message.is_marker {
                        let number = self.number(message.train);
                        self.lost.insert(number);
                        self.missing.insert(number);
                    }
                }
            }
            Step::Acknowledged { link } => self.acknowledge(link),
            Step::Marker { link } => self.put_marker(link),
            Step::Dies { link, stalls } => {
                if !stalls {
                    self.wires[index(link)].clear();
                }
                for out in std::mem::take(&mut self.out[index(link)]) {
                    self.waiting.insert(self.number(out.train));
                }
            }
            Step::Flickers { link, gone } => self.flicker(link, gone)?,
            Step::SentAgain { link } => {
                if let Some(number) = self.waiting.pop_first() {
                    self.put(link, self.first.plus(number), true, 100);
                }
            }
            Step::Repairs => {
                let at = REPAIRING.iter().position(|one| *one == self.repairs);
                self.repairs = REPAIRING[(at.expect("one of them") + 1) % REPAIRING.len()];
            }
            Step::FindsMissing { nth } => {
                let nth = usize::from(nth) % self.missing.len().max(1);
                if let Some(number) = self.missing.iter().nth(nth).copied() {
                    self.missing.remove(&number);
                    self.waiting.insert(number);
                }
            }
            Step::ComesAgain { nth } => {
                if !self.recent.is_empty() {
                    let message = self.recent[usize::from(nth) % self.recent.len()].clone();
                    self.receive(&message)?;
                }
            }
            Step::Wait { micros } => {
                self.now += Duration::from_micros(u64::from(micros));
                self.poll()?;
            }
            Step::WaitUntilDue { early } => {
                if let Some(due) = self.real.poll_timeout() {
                    let before = Duration::from_nanos(u64::from(early));
                    self.now = self.now.max(due - before);
                    self.poll()?;
                }
            }
            Step::Stream { trains, lost_every } => self.stream(trains, lost_every)?,
            Step::Hurry => {
                self.real.hurry();
                self.model.hurry(self.now);
                self.poll()?;
            }
            Step::Hello { behind } => {
                let newest = self.next.minus(1 + u32::from(behind));
                self.real.on_newest_sent(newest, self.now);
                self.model.newest_sent(newest, self.now);
                self.poll()?;
            }
            Step::LetGo { behind } => {
                let last = self.next.minus(1 + u32::from(behind));
                self.real.give_up_to(last);
                self.model.give_up_to(last, self.now);
                self.poll()?;
            }
            Step::Forged {
                ahead,
                trains,
                link,
            } => {
                let train = self.next.plus(ahead as u32);
                for n in 0..u32::from(trains) {
                    self.receive(&forged(train.plus(n), link))?;
                }
            }
            Step::ForgedMarker { ahead, link, names } => {
                let train = self.next.plus(ahead as u32);
                let told = |link| (LinkId(link), train.minus(u32::from(link)));
                // Both of one sequence: nobody knows which was sent last.
                for named in [names, names / 2] {
                    self.receive(&Message {
                        is_marker: true,
                        told: (0..named).map(told).collect(),
                        ..forged(train, link)
                    })?;
                }
            }
        }
        Ok(())
    }

    fn flicker(&mut self, link: u8, gone: u8) -> Result<(), Failure> {
        let is_replay = |out: &Out| out.is_replay;
        if !self.waiting.is_empty() || self.out.iter().flatten().any(is_replay) {
            return Ok(()); // of which link the sender speaks, nobody could know
        }
        let wire = &mut self.wires[index(link)];
        let gone = usize::from(gone) % (wire.len() + 1);
        wire.drain(..gone);
        for out in std::mem::take(&mut self.out[index(link)]) {
            let number = self.number(out.train);
            self.waiting.insert(number);
            self.removed.insert(number, self.now);
        }
        self.real.on_link_removed(self.now);
        self.model.link_removed(self.now);
        self.poll()
    }

    fn put_marker(&mut self, link: u8) {
        let at = index(link);
        let told = self.told(at);
        self.wires[at].push(Message {
            train: self.next.minus(1),
            link: at as u8,
            is_marker: true,
            is_replay: false,
            told,
            repairs: self.repairs,
            kept_from: self.kept_from(self.next),
            bytes: 0,
        });
    }

    /// By one link alone, and acknowledged at once.
    fn stream(&mut self, trains: u16, lost_every: u8) -> Result<(), Failure> {
        for n in 1..=trains {
            self.send(lost_every, 100);
            let Some(sent) = self.wires[index(lost_every)].pop() else {
                break;
            };
            let lost = lost_every > 8 && n % u16::from(lost_every) == 0;
            if !self.wires[index(lost_every)].is_empty() {
                self.wires[index(lost_every)].push(sent);
            } else if lost {
                self.left(&sent);
                self.lost.insert(self.number(sent.train));
            } else {
                self.arrive(sent)?;
                self.acknowledge(lost_every);
            }
        }
        Ok(())
    }

    /// As long as the first gap may be waited for. Whether that was for a copy.
    fn wait_to_the_end(&mut self) -> Result<bool, Failure> {
        // A link that was away, and the sender had nothing to say of: for as long what is lost may go again.
        let known_at = self
            .model
            .doubt_until()
            .map_or(self.now, |at| at.max(self.now));
        // And as long a sender that repairs may take to say what goes again.
        let word = WAITS.0.max(self.model.word_awaited_for());
        let has_copy = self.model.has_copy();
        self.now = known_at
            + match has_copy {
                true => word.max(COPIES_SILENT_MAX),
                false => word,
            };
        self.poll()?;
        Ok(has_copy)
    }

    /// Everything that is under way arrives, and each link brings something newer: nothing is held any more.
    pub fn end(&mut self) -> Result<(), Failure> {
        while let Some(number) = self.waiting.pop_first() {
            self.put(0, self.first.plus(number), true, 100);
        }
        for round in 0..2 {
            for link in 0..LINKS {
                for message in std::mem::take(&mut self.wires[index(link)]) {
                    self.arrive(message)?;
                }
                self.acknowledge(link);
            }
            if round == 0 {
                (0..LINKS).for_each(|link| self.send(link, 100));
            }
        }
        self.put_marker(0);
        let marker = self.wires[0].pop().expect("just sent");
        self.arrive(marker)?;
        let waited_for_copies = self.wait_to_the_end()?;
        // Behind what was given up stands one, perhaps, of which the sender has a copy.
        if !waited_for_copies && self.model.has_copy() {
            self.wait_to_the_end()?;
        }
        if !self.honest || !self.checks_promises {
            return Ok(());
        }
        self.same("held at the end", self.real.held_trains(), 0)?;
        let out = self.given.len() as u64 + self.real.discarded;
        self.same("all that was taken comes out", out, self.taken)
    }
}

fn forged(train: Sequence, link: u8) -> Message {
    Message {
        train,
        link: link % LINKS,
        is_marker: false,
        is_replay: link >= 128,
        told: Vec::new(),
        repairs: match link % 32 {
            0 => Repairing::InTime,
            16 => Repairing::Lossless,
            _ => Repairing::No,
        },
        kept_from: (link % 32 == 16).then_some(train),
        bytes: 100,
    }
}
