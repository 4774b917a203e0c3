//! One line: the engine between its TAP and its member links, and the event loop that drives it.
//!
//! A turn of the loop takes a bounded batch from the host and from each link, so that none
//! starves another, and then gives out what the engine has for them, in the order of the
//! engine's contract ([`packtrain_proto::engine`]). No turn allocates once buffers are warm.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use packtrain_proto::class::Class;
use packtrain_proto::config::{Config, LinkId};
use packtrain_proto::engine::{Engine, Event};
use packtrain_proto::offload::Offload;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use super::coding_time::CodingTime;
use super::host_frames::HostFrames;
use super::member::{Attached, Outcome};
use super::members::Members;
use crate::clock::Clock;
use crate::linux::alarm::Alarm;
use crate::linux::coalescer::Coalescer;
use crate::linux::direct::{Tally, take_mark};
use crate::linux::epoll::{Epoll, Interest};
use crate::linux::ring::Ring;
use crate::linux::tap::Tap;
use drain::DrainWanted;

mod away;
mod direct;
mod drain;
mod links;
mod report;

pub use drain::DrainBegun;
pub use report::{MemberReport, Report};

/// What a link gives in a turn, in frames and in bytes as what comes from the host.
const BATCH_FRAMES: usize = 64;
const BATCH_BYTES: usize = 48 * 1024;
/// What a turn puts on the links, at most.
const TRANSMIT_FRAMES: usize = 256;
const TRANSMIT_BYTES: usize = 1 << 20;

/// How long a source that is known to be ready may keep us from looking for others.
const LOOK_INTERVAL: Duration = Duration::from_micros(100);

/// So long news that come one after the other are taken before frames.
const NEWS_FIRST_MAX: Duration = Duration::from_millis(1);

const TOKEN_TAP: u64 = 0;
const TOKEN_ALARM: u64 = 1;
const TOKEN_OTHERS: u64 = 1 << 32;
const TOKEN_LINKS: u64 = 2 << 32;
/// The number among a link's sockets of the one that sends; the others have those of [`Inlet::number`].
const SENDS: u8 = 0;

fn token_of(link: LinkId, number: u8) -> u64 {
    TOKEN_LINKS + (u64::from(number) << 8) + u64::from(link.0)
}

/// Link and number of such a token.
fn link_of(token: u64) -> (LinkId, u8) {
    let [link, number, ..] = (token - TOKEN_LINKS).to_le_bytes();
    (LinkId(link), number)
}

/// Why a line cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("the host's interface is gone or broken: {0}")]
    Host(#[source] io::Error),
    #[error("waiting for events: {0}")]
    Wait(#[source] io::Error),
}

/// Which of the descriptors given to [`Line::watch`] have something to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Woken(u32);

impl Woken {
    pub fn contains(self, number: u8) -> bool {
        self.0 & (1 << number) != 0
    }
}

#[derive(Debug)]
pub struct Line {
    clock: Clock,
    engine: Engine,
    address: MacAddr,
    promiscuous: bool,
    tap: Tap,
    coalescer: Coalescer,
    /// What comes from the host, by the TAP and by a ring.
    from_host: HostFrames,
    members: Members,
    epoll: Epoll,
    /// Rings when the engine wants to be called.
    alarm: Alarm,
    /// What compressing costs.
    coding_time: CodingTime,
    /// The engine had more to send than a turn takes.
    more_to_send: bool,
    /// When the descriptors were last asked who is ready.
    looked_at: Instant,
    /// For how long it has slept, ever.
    slept: Duration,
    /// Since when frames wait because there were news.
    frames_wait_since: Option<Instant>,
    /// Frames of `pt0`'s own may carry their marks in the place of their source address.
    tells_marks: bool,
    /// Frames of the host, ever.
    host_frames: u64,
    /// A drain is asked of the engine once all that has a ticket was read.
    drain: DrainWanted,
    /// The owner wants a turn by then.
    wake_by: Option<Instant>,
    /// How many frames go past the engine, and whether flows come back to it.
    tally: Option<Tally>,
    /// Of the counts that were told last.
    direct_sum: u32,
    /// Before which a queue of ours is that direct frames go through.
    shaped_link: Option<LinkId>,
}

impl Line {
    /// A line over the links of these names, none of which is attached yet.
    pub fn new(
        config: Config,
        tap: Tap,
        links: impl IntoIterator<Item = String>,
        clock: Clock,
    ) -> io::Result<Line> {
        let epoll = Epoll::new()?;
        epoll.add(tap.as_fd(), TOKEN_TAP, Interest::ReadWhileReady)?;
        let alarm = Alarm::new()?;
        epoll.add(&alarm, TOKEN_ALARM, Interest::Read)?;
        let mut members = Members::new();
        for name in links {
            members.add(name).map_err(io::Error::other)?;
        }
        Ok(Line {
            clock,
            address: config.address,
            promiscuous: config.promiscuous,
            engine: Engine::new(config, clock.now()),
            tap,
            coalescer: Coalescer::new(),
            from_host: HostFrames::new(),
            members,
            epoll,
            alarm,
            coding_time: CodingTime::default(),
            more_to_send: false,
            looked_at: clock.now(),
            slept: Duration::ZERO,
            frames_wait_since: None,
            tells_marks: false,
            host_frames: 0,
            drain: DrainWanted::default(),
            wake_by: None,
            tally: None,
            direct_sum: 0,
            shaped_link: None,
        })
    }

    /// Which frames are treated in a way of their own, in the order in which they are compared.
    pub fn classes(&self) -> Vec<Class> {
        self.engine.classes().cloned().collect()
    }

    /// # Panics
    /// With more than [`packtrain_proto::class::CLASSES_MAX`].
    pub fn set_classes(&mut self, classes: Vec<Class>) {
        // Once and for ever: some that have one may stand before us when no class asks any more.
        self.tells_marks |= classes.iter().any(|class| class.matches.asks_for_marks());
        self.engine.set_classes(classes, self.clock.now());
    }

    /// Small frames of the host come by this ring from now on. `waits_before`: frames may wait before `pt0` of which the
    /// ring's program knows nothing.
    pub fn set_ring(&mut self, ring: Ring, waits_before: bool) {
        let now = self.clock.now();
        self.from_host.set_ring(ring, waits_before, now);
    }

    /// Whether the host is held back by the queue before `pt0`: so that it can be, frames do not go by the ring then.
    pub fn hold_host_back(&mut self, holds_back: bool) {
        self.from_host.hold_back(holds_back, self.clock.now());
    }

    /// Reports in [`Line::turn`] when this descriptor becomes readable, for as long as it is.
    pub fn watch(&self, fd: impl AsFd, number: u8) -> io::Result<()> {
        assert!(u32::from(number) < u32::BITS, "numbers are bits of a word");
        self.epoll.add(
            fd,
            TOKEN_OTHERS + u64::from(number),
            Interest::ReadWhileReady,
        )
    }

    /// Sends frames as if the host had sent them.
    pub fn send_as_host<'a>(&mut self, frames: impl IntoIterator<Item = &'a [u8]>) {
        let now = self.clock.now();
        for frame in frames {
            let copy = self.engine.buffers().copy_of(frame);
            self.engine.handle_host_frame(copy, Offload::NONE, now);
        }
        self.transmit();
    }

    /// Stations behind `pt0` ([`Engine::stations_behind`]).
    pub fn stations_behind(&self) -> Vec<MacAddr> {
        self.engine.stations_behind()
    }

    /// `pt0` was given another MTU, or wants frames for other stations as well, or no longer.
    pub fn host_changed(&mut self, mtu: u16, promiscuous: bool) {
        self.promiscuous = promiscuous;
        for attached in self
            .members
            .iter_mut()
            .filter_map(|member| member.attached.as_mut())
        {
            // Fails only where the interface is going: its absence will be told.
            let _ = attached.set_promiscuous(promiscuous);
        }
        self.engine
            .handle_host_change(mtu, promiscuous, self.clock.now());
    }

    pub fn tap_ifindex(&self) -> u32 {
        self.tap.ifindex()
    }

    /// Whether the host sees `pt0` as one that something is plugged into.
    pub fn set_carrier(&self, up: bool) -> io::Result<()> {
        self.tap.set_carrier(up)
    }

    /// Outer source addresses of frames for us ([`Engine::marks`]).
    pub fn marks(&self) -> Vec<MacAddr> {
        self.engine.marks()
    }

    /// For how long it has slept, ever: there was nothing to do, or it waited for a processor to do it.
    pub fn slept(&self) -> Duration {
        self.slept
    }

    /// The owner wants [`Line::turn`] to return by then, once.
    pub fn wake_by(&mut self, at: Instant) {
        self.wake_by = Some(self.wake_by.map_or(at, |other| other.min(at)));
    }

    pub fn poll_event(&mut self) -> Option<Event> {
        self.engine.poll_event()
    }

    /// Waits until something can be done, and does it.
    pub fn turn(&mut self) -> Result<Woken, LineError> {
        let woken = if self.has_work() {
            self.look_around()?
        } else {
            self.set_alarm().map_err(LineError::Wait)?;
            self.sleep()?
        };
        if woken != Woken::default() && self.news_come_first() {
            return Ok(woken);
        }
        self.frames_wait_since = None;
        let now = self.clock.now();
        self.handle_time(now);
        self.take_from_host(now)?;
        for at in 0..self.members.len() {
            self.take_from_link(at, now);
        }
        let mut attached = self.members.iter().filter_map(|m| m.attached.as_ref());
        let left_unread = attached.any(Attached::is_readable);
        self.engine.handle_links_read(left_unread, now);
        self.deliver(now);
        self.transmit();
        Ok(woken)
    }

    /// Says goodbye to the peers, and gives the links a moment to take it.
    pub fn leave(&mut self) {
        /// A goodbye that is lost costs the peers a few seconds of silence, no more.
        const AT_MOST: Duration = Duration::from_millis(100);
        let until = self.clock.now() + AT_MOST;
        self.engine.say_goodbye(self.clock.now());
        self.deliver(self.clock.now());
        loop {
            self.transmit();
            let left = until.since(self.clock.now());
            let held = self.members.iter().filter_map(|m| m.attached.as_ref());
            let done = !self.more_to_send && !held.into_iter().any(Attached::holds_frames);
            if done || left.is_zero() {
                return;
            }
            let _ = self.wait(Some(left.min(Duration::from_millis(1))));
        }
    }

    /// That a link has lost its carrier tells what the next acknowledgement means. But who looks after news may
    /// take as long as the next needs to come: frames do not wait for that without end.
    fn news_come_first(&mut self) -> bool {
        if !self.has_work() {
            self.frames_wait_since = None;
            return true;
        }
        let since = *self.frames_wait_since.get_or_insert(self.looked_at);
        self.looked_at.since(since) < NEWS_FIRST_MAX
    }

    /// Whether the next turn need not wait for anything.
    fn has_work(&self) -> bool {
        let mut attached = self.members.iter().filter_map(|m| m.attached.as_ref());
        self.more_to_send || self.from_host.may_have_more() || attached.any(Attached::is_readable)
    }

    /// Sees to it that a wait without a timeout ends when the engine wants to be called.
    fn set_alarm(&mut self) -> io::Result<()> {
        let wanted = [self.engine.poll_timeout(), self.wake_by.take()];
        match wanted.into_iter().flatten().min() {
            Some(at) => self.alarm.ring_by(at, self.clock.now()),
            None => Ok(()),
        }
    }

    /// Asks what else is ready while there is work: now and then, because the answer costs as much
    /// as a small frame.
    fn look_around(&mut self) -> Result<Woken, LineError> {
        if self.clock.now().since(self.looked_at) < LOOK_INTERVAL {
            return Ok(Woken::default());
        }
        self.wait(Some(Duration::ZERO))
    }

    fn sleep(&mut self) -> Result<Woken, LineError> {
        let at_most = match self.from_host.may_sleep() {
            true => None,
            false => Some(Duration::ZERO),
        };
        let woken = self.wait(at_most);
        self.from_host.is_awake();
        woken
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<Woken, LineError> {
        let mut woken = Woken::default();
        let before = self.clock.now();
        let events = self.epoll.wait(timeout).map_err(LineError::Wait)?;
        let now = self.clock.now();
        let waited = now.since(before);
        self.looked_at = now;
        self.slept += waited;
        for ready in events {
            match ready.token {
                TOKEN_TAP => self.from_host.on_tap_ready(waited),
                TOKEN_ALARM => self.alarm.rang(),
                token if token < TOKEN_LINKS => woken.0 |= 1 << (token - TOKEN_OTHERS),
                token => {
                    let (link, number) = link_of(token);
                    if let Some(member) = self.members.get_mut(link)
                        && let Some(attached) = &mut member.attached
                    {
                        attached.on_ready(number, waited);
                    }
                }
            }
        }
        Ok(woken)
    }

    fn handle_time(&mut self, now: Instant) {
        if self.engine.poll_timeout().is_some_and(|at| at <= now) {
            self.engine.handle_timeout(now);
        }
    }

    fn take_from_host(&mut self, now: Instant) -> Result<(), LineError> {
        let before = self.host_frames;
        // Not in turns that only a link's frames have begun: it asks the kernel.
        if self.engine.asks_for_backlog() && self.from_host.may_have_more() {
            self.tell_queues(true, now);
        }
        loop {
            let (tap, pool) = (&mut self.tap, self.engine.buffers());
            let next = self
                .from_host
                .next(tap, pool, now)
                .map_err(LineError::Host)?;
            let Some((mut frame, offload)) = next else {
                break;
            };
            self.host_frames += 1;
            let mark = match self.tells_marks {
                true => take_mark(&mut frame, self.address),
                false => 0,
            };
            self.engine
                .handle_marked_host_frame(frame, offload, mark, now);
        }
        self.from_host.end_turn(now);
        self.begin_drain(now);
        if self.host_frames != before {
            self.look_for_flows_that_left();
        }
        self.engine.handle_host_read(self.from_host.may_have_more());
        Ok(())
    }

    fn take_from_link(&mut self, at: usize, now: Instant) {
        let member = &mut self.members[at];
        let Some(attached) = &mut member.attached else {
            return;
        };
        for inlet in &mut attached.inlets {
            let mut bytes = 0;
            for _ in 0..BATCH_FRAMES {
                if !inlet.readable.is_ready() {
                    break;
                }
                let pool = self.engine.buffers();
                let errors = &mut member.counters.receive_errors;
                let Some((frame, offload)) = inlet.receive(pool, errors) else {
                    break;
                };
                bytes += frame.len();
                self.engine
                    .handle_link_frame(member.id, frame, offload, now);
                if bytes > BATCH_BYTES {
                    break;
                }
            }
            // What stands in the next one came later.
            if inlet.readable.is_ready() {
                break;
            }
        }
    }

    fn deliver(&mut self, now: Instant) {
        let mut refused = 0;
        while let Some(delivery) = self.engine.poll_delivery(now) {
            refused += self.coalescer.send(&delivery, &self.tap);
        }
        refused += self.coalescer.flush(&self.tap);
        for _ in 0..refused {
            self.engine.handle_delivery_refused();
        }
    }

    fn transmit(&mut self) {
        self.more_to_send = false;
        let (mut frames, mut bytes) = (0, 0);
        let mut frames_wait = false;
        loop {
            let now = self.clock.now();
            self.tell_queues(frames_wait, now);
            let frames_before = frames;
            loop {
                let is_timed = self.coding_time.times_next();
                let cpu_before = is_timed.then(|| self.clock.thread_cpu());
                let Some(transmit) = self.engine.poll_transmit(now) else {
                    break;
                };
                let took = cpu_before.map(|before| self.clock.thread_cpu().saturating_sub(before));
                frames += 1;
                bytes += transmit.frame.len();
                let link = transmit.link;
                // The engine is told of the links that are here, and of no other.
                let place = self.members.place(link).expect("a link of ours");
                let member = &mut self.members[place];
                let outcome = match &mut member.attached {
                    Some(attached) => {
                        attached.transmit(transmit.frame, transmit.offload, &mut member.counters)
                    }
                    None => Outcome::Refused,
                };
                match outcome {
                    Outcome::Sent => {}
                    Outcome::Refused => self.engine.handle_transmit_refused(link, now),
                    Outcome::Held => self.tell_queue(place, now),
                }
                let compressed = self.engine.compressed_bytes();
                if let Some((bytes, took)) = self.coding_time.on_poll(compressed, took) {
                    self.engine.handle_coding_time(bytes as usize, took);
                }
                if frames >= TRANSMIT_FRAMES || bytes >= TRANSMIT_BYTES {
                    self.more_to_send = true;
                    break;
                }
            }
            // A link that took everything at once has room again: ask once more.
            let asked = std::mem::replace(&mut frames_wait, self.engine.has_frames_waiting());
            if self.more_to_send || (frames == frames_before && asked) || !frames_wait {
                break;
            }
        }
        self.await_room();
    }

    /// Tells the engine what stands on the links where that matters, and retries what is held.
    fn tell_queues(&mut self, frames_wait: bool, now: Instant) {
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            let Some(attached) = &mut member.attached else {
                continue;
            };
            if !member.leaving && !attached.is_worth_asking(frames_wait) {
                continue;
            }
            for _ in 0..attached.retry(&mut member.counters) {
                self.engine.handle_transmit_refused(member.id, now);
            }
            self.tell_queue(at, now);
        }
    }

    fn tell_queue(&mut self, at: usize, now: Instant) {
        let member = &mut self.members[at];
        let Some(attached) = &mut member.attached else {
            return;
        };
        attached.follow_queue_limit(self.engine.link_queue_limit(member.id));
        let standing = attached.ask_standing_bytes();
        self.engine.handle_link_queue(member.id, standing, now);
        let blocked = attached.holds_frames();
        self.engine.handle_link_blocked(member.id, blocked);
    }

    /// Where a link is full, asks to be woken when its queue falls; where it is not, the wake-ups
    /// would come for nothing.
    fn await_room(&mut self) {
        for member in self.members.iter_mut() {
            let Some(attached) = &mut member.attached else {
                continue;
            };
            let full = attached.is_full(self.engine.link_queue_limit(member.id));
            if full == attached.awaits_room {
                continue;
            }
            let interest = if full {
                Interest::ReadWrite
            } else {
                Interest::Read
            };
            let token = token_of(member.id, SENDS);
            if self
                .epoll
                .modify(attached.socket.as_fd(), token, interest)
                .is_ok()
            {
                attached.awaits_room = full;
            }
        }
    }
}
