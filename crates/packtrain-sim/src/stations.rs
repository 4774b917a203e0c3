//! Applications on hosts that share segments: cables, switches and hubs with CSMA/CD, in virtual time.
//!
//! ```text
//!  application      bytes, datagrams, a disk
//!  connection       TCP's two ends, frames with all their bytes
//!  outlet           what stands before pt0 or the card: sockets are charged for it
//!  host             packtrain's engine, or none
//!  segment          cable, switch, hub
//! ```
//!
//! Hosts are those of the checked scenarios ([`crate::host`], [`crate::plain_host`]), and so is the
//! [`Simulator`] that drives them: they keep the engine's contract in all of its parts (links that come
//! and go, queues told, refusals), and the hosts of [`crate::whatif`] have wires of their own instead of
//! segments. The checkers are left out: their frames are numbered by a workload, while these belong to
//! applications, which see for themselves what they get. What comes out is handed on to them, and each byte
//! of it must be what was sent.
//!
//! The simulator has its events, and what is above the hosts has its own; at equal times the network's
//! come first. A run depends on its setup alone.
//!
//! Left out: the direct path past the engine, the time that hosts take for a frame, and GSO frames.

mod application;
mod bulk;
mod config;
mod connection;
mod copies;
mod core;
mod counts;
mod datagram;
mod flood;
mod outlet;
mod ping_pong;
mod report;
pub mod segments;
#[cfg(test)]
mod tests;
mod transactions;

use packtrain_proto::time::{Duration, Instant};

use self::application::Application;
use self::bulk::Bulk;
pub use self::config::{
    ApplicationConfig, BulkConfig, CopiesConfig, Disks, FloodConfig, Kind, Line, Over,
    PingPongConfig, Setup, StationConfig, Step, TransactionKind, TransactionsConfig, With,
};
use self::copies::Copies;
use self::core::{Came, Core, Event};
pub use self::counts::{Counts, PortCount, SegmentCount, StationCount};
pub use self::datagram::{BYTES_MAX as DATAGRAM_BYTES_MAX, BYTES_MIN as DATAGRAM_BYTES_MIN};
use self::flood::Flood;
use self::ping_pong::PingPong;
pub use self::report::Report;
use self::transactions::Transactions;
use crate::simulator::Simulator;
use crate::tcp::sender::SenderCounters;

#[derive(Debug)]
pub struct Stations {
    core: Core,
    applications: Vec<Box<dyn Application>>,
    events: u64,
    counting_since: Instant,
    counts_before: Counts,
}

impl Stations {
    /// # Panics
    /// If a station has no port, one without packtrain has several, or an application names one that is not there.
    pub fn new(setup: Setup) -> Stations {
        let mut core = Core::new(setup.segments, setup.stations, setup.seed);
        let mut applications: Vec<Box<dyn Application>> = Vec::new();
        for (number, config) in setup.applications.into_iter().enumerate() {
            applications.push(match config {
                ApplicationConfig::Bulk(config) => Box::new(Bulk::new(config, number, &mut core)),
                ApplicationConfig::Flood(config) => Box::new(Flood::new(config, number, &mut core)),
                ApplicationConfig::PingPong(config) => {
                    Box::new(PingPong::new(config, number, &mut core))
                }
                ApplicationConfig::Transactions(config) => {
                    Box::new(Transactions::new(config, number, &mut core))
                }
                ApplicationConfig::Copies(config) => {
                    Box::new(Copies::new(config, number, &mut core))
                }
            });
        }
        let counts_before = core.counts();
        Stations {
            core,
            applications,
            events: 0,
            counting_since: Instant::ZERO,
            counts_before,
        }
    }

    pub fn now(&self) -> Instant {
        self.core.now()
    }

    /// Everything that is due by then.
    ///
    /// # Panics
    /// If a byte arrives that is not what was sent, or a host sends what no card takes.
    pub fn run_until(&mut self, until: Instant) {
        while let Some(event) = self.core.next(until) {
            self.events += 1;
            self.happen(event);
        }
        self.core.idle_until(until);
    }

    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now() + time);
    }

    /// What was before is not counted: hosts had to meet, and connections to fill their paths.
    pub fn begin_counting(&mut self) {
        let now = self.now();
        self.counting_since = now;
        self.counts_before = self.core.counts();
        for application in &mut self.applications {
            application.report_mut().begin(now);
        }
    }

    pub fn counting_for(&self) -> Duration {
        self.now().since(self.counting_since)
    }

    /// Of segments and stations, since counting began.
    pub fn counts(&self) -> Counts {
        self.core.counts().since(&self.counts_before)
    }

    /// Of the application with this number in the setup, since counting began.
    pub fn report(&self, application: usize) -> &Report {
        self.applications[application].report()
    }

    /// Bytes of content that arrived, bits a second, since counting began.
    pub fn goodput_bps(&self, application: usize) -> f64 {
        self.report(application).bytes as f64 * 8.0 / self.counting_for().as_secs_f64()
    }

    /// Longest time without a byte of it, since counting began.
    pub fn longest_pause(&self, application: usize) -> Duration {
        self.report(application).longest_pause(self.now())
    }

    /// What the senders of its connections have counted, ever.
    pub fn senders(&self, application: usize) -> SenderCounters {
        let mut all = SenderCounters::default();
        for connection in self.core.connections_of(application) {
            all += connection.sender.counters;
        }
        all
    }

    /// Bytes of content that each of its connections has brought, ever.
    pub fn delivered(&self, application: usize) -> impl Iterator<Item = u64> {
        let connections = self.core.connections_of(application);
        connections.map(|connection| connection.receiver.next())
    }

    /// All of the network's at a time are one.
    pub fn events_done(&self) -> u64 {
        self.events
    }

    pub fn simulator(&self) -> &Simulator {
        self.core.simulator()
    }

    /// Where wires can be changed while they carry.
    pub fn simulator_mut(&mut self) -> &mut Simulator {
        self.core.simulator_mut()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Network => self.network(),
            Event::Start { application } => self.applications[application].start(&mut self.core),
            Event::Timer { application, token } => {
                self.applications[application].timer(token, &mut self.core);
            }
            Event::Sender(connection) => self.core.sender_timer(connection),
            Event::Receiver(connection) => self.core.receiver_timer(connection),
            Event::Outlet(station) => self.core.outlet_timer(station),
        }
        self.core.let_all_out();
    }

    fn network(&mut self) {
        let mut frames = self.core.run_network();
        for (station, frame) in frames.drain(..) {
            match self.core.read(station, &frame) {
                None => {}
                Some((application, Came::Bytes { connection, bytes })) => {
                    self.applications[application].delivered(connection, bytes, &mut self.core);
                }
                Some((application, Came::Acknowledged { connection })) => {
                    self.applications[application].acknowledged(connection, &mut self.core);
                }
                Some((application, Came::Datagram(datagram))) => {
                    self.applications[application].datagram(&datagram, &mut self.core);
                }
            }
        }
        self.core.keep_room(frames);
    }
}
