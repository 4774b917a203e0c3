//! The wires of a lab at work: a process between the interfaces of its hosts.
//!
//! A host's port is a TAP in its namespace; what the host sends is read here, goes through the very
//! network that the simulator has ([`packtrain_sim::net`]), on the clock instead of in virtual time,
//! and is written to the TAPs where it arrives. An event is handled for the time at which it was due,
//! so a wire keeps its rate and its order even where this process came late; how late is counted
//! ([`Lateness`]), because an experiment on a late wire says nothing.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::time::Duration;

use packtrain_proto::buffer::BufferPool;
use packtrain_proto::engine::Delivery;
use packtrain_proto::time::Instant;
use packtrain_sim::event_queue::EventQueue;
use packtrain_sim::frame::Frame;
use packtrain_sim::net::network::{NetEvent, Network, Outcome, PortId, WireId};
use packtrain_sim::random::Random;

use crate::clock::{Clock, Wall};
use crate::lab::pause;
use crate::linux::epoll::{Epoll, Interest};
use crate::pcapng::Interface;

pub mod capture;
pub mod counters;
pub mod lateness;
pub mod plan;
pub mod port;
pub mod protocol;
pub mod service;

use capture::{Capture, Captures};
pub use lateness::{Lateness, TICK};
pub use plan::Plan;
pub use port::Port;

/// Frames of one port before the next one has its turn.
const BATCH_FRAMES: usize = 32;

/// Nothing came for so long: nobody needs to look.
const TRAFFIC_FOR: Duration = Duration::from_millis(100);

/// The kernel keeps 5 % of each second for what is not of the real-time class, and takes that at once: who has run for 950 ms of a second
/// is kept from his processor for 50. Who waits awake leaves nothing by waiting: so the wires leave as much of each 2 ms on purpose.
const SHARED_IN: Duration = Duration::from_millis(2);
const LEFT_TO_OTHERS: Duration = Duration::from_micros(120);
/// A wait that is not longer is the call itself.
const CALL: Duration = Duration::from_micros(2);

/// To set a timer, to sleep and to be woken take about as long: what comes sooner is waited for awake.
const AWAKE_FOR: Duration = Duration::from_micros(10);

const TOKEN_COMMANDS: u64 = u64::MAX;

/// What a turn of the loop found besides frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    ByFrames,
    /// The descriptor that was given to [`Emulator::watch`] has something to say.
    ByCommand,
}

#[derive(Debug)]
pub struct Emulator {
    clock: Clock,
    wall: Wall,
    pub(super) network: Network,
    events: EventQueue<NetEvent>,
    pub(super) ports: Vec<Port>,
    /// By segment and port: which of the ports above it is.
    places: Vec<Vec<Option<usize>>>,
    epoll: Epoll,
    readable: Vec<bool>,
    pool: BufferPool,
    captures: Captures,
    pub lateness: Lateness,
    /// When the clock is to be looked at next, while there is traffic.
    next_look: Option<Instant>,
    /// When a frame came last.
    traffic_at: Instant,
    /// What others had of the processor since then.
    shared_since: Instant,
    left_to_others: Duration,
    /// Frames that the host did not take, its interface being down.
    pub not_taken: u64,
}

impl Emulator {
    /// `ports` are those of the plan, in its order.
    pub fn new(plan: &Plan, ports: Vec<Port>) -> io::Result<Emulator> {
        let mut events = EventQueue::default();
        let mut random = Random::new(plan.seed);
        let mut network = Network::new(plan.segments.clone(), &mut random, &mut events);
        network.cut_where_frames_count();
        for &(a, b) in &plan.joins {
            network.join(a, b);
        }
        let mut places: Vec<Vec<Option<usize>>> = Vec::new();
        places.extend(plan.segments.iter().map(|s| vec![None; s.up.len()]));
        let epoll = Epoll::new()?;
        for (index, port) in ports.iter().enumerate() {
            places[port.place.segment][port.place.port] = Some(index);
            epoll.add(port, index as u64, Interest::ReadWhileReady)?;
        }
        // A timer that may be late by the usual 50 µs would be most of what a wire may be late.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let clock = Clock::start();
        Ok(Emulator {
            wall: clock.wall(),
            clock,
            network,
            events,
            readable: vec![false; ports.len()],
            ports,
            places,
            epoll,
            pool: BufferPool::new(),
            captures: Captures::default(),
            lateness: Lateness::default(),
            next_look: None,
            traffic_at: Instant::ZERO,
            shared_since: Instant::ZERO,
            left_to_others: Duration::ZERO,
            not_taken: 0,
        })
    }

    /// Wakes [`Emulator::turn`] when there is something to read.
    pub fn watch(&self, commands: impl AsFd) -> io::Result<()> {
        self.epoll
            .add(commands, TOKEN_COMMANDS, Interest::ReadWhileReady)
    }

    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Carries what is there to be carried, and waits for more: for the next event, at the longest.
    pub fn turn(&mut self) -> io::Result<Woken> {
        self.deliver_due();
        for index in 0..self.ports.len() {
            if self.readable[index] && self.take_in(index).is_err() {
                self.give_up(index);
            }
        }
        self.network.take_lost();
        let sightings = self.network.take_sightings();
        let rate_of = |wire| self.network.wire(wire).config().rate;
        self.captures.tell(sightings, rate_of);
        self.wait()
    }

    /// From now on what becomes of the frames on these wires is told to a capture.
    pub fn begin_capture(
        &mut self,
        wires: Vec<(WireId, Interface)>,
        limits: capture::Limits,
    ) -> Capture {
        let watched: Vec<WireId> = wires.iter().map(|&(wire, _)| wire).collect();
        let clock = (self.wall, self.now());
        let begun = self.captures.begin(wires, limits, limits.bounds(), clock);
        self.keep_for_captures(&watched);
        begun
    }

    pub fn end_capture(&mut self, number: u64) {
        let wires = self.captures.end(number);
        self.keep_for_captures(&wires);
    }

    /// As much as the captures want of these wires' frames.
    fn keep_for_captures(&mut self, wires: &[WireId]) {
        for &wire in wires {
            self.network.watch(wire, self.captures.wanted_of(wire));
        }
    }

    /// To be called before the process ends, so that captures are whole.
    pub fn end_captures(&mut self) {
        self.captures.finish();
    }

    fn wait(&mut self) -> io::Result<Woken> {
        let now = self.share(self.clock.now());
        if let Some(at) = self.next_look {
            self.lateness.record_look(now.since(at));
        }
        let is_traffic = now.since(self.traffic_at) < TRAFFIC_FOR;
        self.next_look = is_traffic.then(|| now + TICK);
        let next = self
            .events
            .next_at()
            .into_iter()
            .chain(self.next_look)
            .min();
        let timeout = match self.readable.contains(&true) {
            true => Some(Duration::ZERO),
            false => next.map(|at| asleep_for(at.since(now))),
        };
        let mut woken = Woken::ByFrames;
        let ready = self.epoll.wait(timeout)?;
        let waited = self.clock.now().since(now);
        self.left_to_others += waited.saturating_sub(CALL);
        for ready in ready {
            match ready.token {
                TOKEN_COMMANDS => woken = Woken::ByCommand,
                index => self.readable[index as usize] = true,
            }
        }
        Ok(woken)
    }

    /// Leaves to others what they have not had yet: what is due meanwhile is late by that, and nothing by 50 ms. The time after it.
    fn share(&mut self, now: Instant) -> Instant {
        if now.since(self.shared_since) < SHARED_IN {
            return now;
        }
        let missing = LEFT_TO_OTHERS.saturating_sub(self.left_to_others);
        self.left_to_others = Duration::ZERO;
        self.shared_since = now;
        if missing.is_zero() {
            return now;
        }
        pause(missing);
        self.shared_since = self.clock.now();
        self.shared_since
    }

    /// Takes a bounded batch from a host's port into the wire that begins there.
    fn take_in(&mut self, index: usize) -> io::Result<()> {
        for _ in 0..BATCH_FRAMES {
            let port = &mut self.ports[index];
            let Some((bytes, offload)) = port.receive(&mut self.pool)? else {
                self.readable[index] = false;
                return Ok(());
            };
            let place = port.place;
            let frame = Frame::new(bytes, offload);
            // Wires are told what comes in the order of its times.
            let now = self.deliver_due();
            self.traffic_at = now;
            // What does not find room is counted by the wire.
            let _ = self.network.enter(place, frame, now, &mut self.events);
        }
        self.deliver_due();
        Ok(())
    }

    /// A host may delete its interface, and that takes this wire's end and nothing else.
    fn give_up(&mut self, index: usize) {
        self.readable[index] = false;
        // Otherwise it would be readable for ever.
        let _ = self.epoll.remove(&self.ports[index]);
        // Into the lab's log.
        eprintln!(
            "{} is gone: its wire ends there until the lab is made anew",
            self.ports[index].name()
        );
    }

    /// Lets everything happen whose time has come, and gives the time until which it has.
    fn deliver_due(&mut self) -> Instant {
        let mut now = self.clock.now();
        while let Some(at) = self.events.next_at() {
            if at > now {
                now = self.clock.now();
                if at > now {
                    break;
                }
            }
            let (at, event) = self.events.pop().expect("looked before");
            match self.network.handle(event, at, &mut self.events) {
                Outcome::Delivered(place, frame) => {
                    self.lateness.record(self.clock.now().since(at));
                    self.give(place, &frame);
                }
                Outcome::Nothing | Outcome::Drained(_) | Outcome::MediumDrained { .. } => {}
                Outcome::Carrier { .. } => unreachable!("a lab's cuts are commands"),
            }
        }
        now
    }

    fn give(&mut self, place: PortId, frame: &Frame) {
        let Some(index) = self.places[place.segment][place.port] else {
            return; // a port of a switch with nobody behind
        };
        let delivery = Delivery {
            head: &frame.bytes,
            body: &[],
            offload: frame.offload,
        };
        if self.ports[index].send(&delivery).is_err() {
            self.not_taken += 1;
        }
    }
}

/// Of the time until something is due.
fn asleep_for(until: Duration) -> Duration {
    match until < AWAKE_FOR {
        true => Duration::ZERO,
        false => until,
    }
}
