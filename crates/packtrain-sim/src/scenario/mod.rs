//! Whole experiments from a seed: who is there, what the network does to them, what they send, and
//! the course of it.
//!
//! ```text
//! traffic with faults │ sources stop, the network heals │ rest: everything drains │ probes │ accounts
//! ```
//!
//! A run says nothing unless what was planned happened: [`Report::faults_missing`] names the
//! configured faults that did not, and the run is to be repeated with more effort.

pub mod classes;
pub mod direct;
pub mod draw;
mod hardships;
pub mod links;
pub mod mesh;
pub mod outages;
pub mod pair;
pub mod three;

use packtrain_proto::time::{Duration, Instant};

use crate::checker::accounted::{EngineDrops, Kept};
use crate::checker::progress::{self, Copies};
use crate::checker::{Checkers, CodedTrains, Violation};
use crate::sabotage::Breakage;
use crate::simulator::{Simulator, Station, StationId};

/// What to do to which host, to see whether a checker finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sabotage {
    pub station: StationId,
    pub breakage: Breakage,
}

/// What a seed is to become.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub seed: u64,
    /// Each step more is twice the traffic and time.
    pub effort: u32,
    pub sabotage: Option<Sabotage>,
}

impl Order {
    pub const EFFORT_MAX: u32 = 7;

    pub fn new(seed: u64) -> Order {
        Order {
            seed,
            effort: 0,
            sabotage: None,
        }
    }
}

/// Each of them, with the courses that it has.
pub const ALL: [fn(Order) -> Report; 11] = [
    pair::run,
    three::run,
    three::run_aggregates,
    links::run,
    links::run_carrier_cuts,
    links::run_silent_cuts,
    links::run_lossless,
    mesh::run,
    direct::run,
    direct::run_links,
    direct::run_carrier_cuts,
];

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub violation: Option<Violation>,
    pub faults_missing: Vec<&'static str>,
    pub frames_sent: u64,
    pub frames_delivered: u64,
    /// Virtual time.
    pub ended_at: Instant,
    /// Of the saboteur, if there was one.
    pub strikes: u64,
    /// Trains sent again on another link, by engines that lived to the end.
    pub replayed: u64,
    /// Paths that were dead and known for it, each time that somebody looked.
    pub found_dead: u64,
    /// Processes that did not run for a while.
    pub stops: u64,
    /// Frames that a segment did not let pass for their length.
    pub too_long: u64,
    /// Frames that left in aggregates of the DFAP paper.
    pub aggregated: u64,
    /// Frames that went past the engines.
    pub direct: u64,
    /// Flows that came back from there.
    pub returns: u64,
    pub coded: CodedTrains,
    /// All hosts have been given the same dictionary.
    pub has_one_dictionary: bool,
    /// Coded trains that came and were restored, by engines that lived to the end.
    pub restored: u64,
    /// Of how many frames that were too long engines that lived to the end have told their hosts.
    pub told: u64,
}

/// An experiment that is ready to run.
#[derive(Debug)]
pub struct Experiment {
    pub simulator: Simulator,
    /// How long sources send.
    pub traffic: Duration,
    /// How much later the network heals.
    pub quiet: Duration,
    /// Longest time that the network, once well, may need to carry what waits.
    pub drain_max: Duration,
    /// Flows that only send when everything is at rest, to see whether the line still stands.
    pub probes: Vec<usize>,
    /// Nothing was configured that could lose, alter, double or reorder a frame.
    pub faultless: bool,
    pub restarts: u64,
    /// What the end is held to.
    pub kept: Kept,
    /// How many peers each packtrain host has to find.
    pub peers: Vec<usize>,
    /// Paths to each peer that must be of use in the end. `None`: one link a host, and nothing to
    /// choose.
    pub paths: Option<usize>,
    /// Hosts choose their links, or pack: not every wire need carry enough to harm something.
    pub choice: bool,
}

/// Frames that each probe flow sends.
const PROBES: u32 = 32;
/// Of them, those that may be lost where sequences were altered unnoticed on the way: a receiver
/// that was led astray needs some trains to find back.
const PROBES_ASTRAY: u32 = 20;
/// A train whose sequence was altered counts as arrived, and is waited for as long as it might go again where nothing may be lost. Then those
/// behind it come, and what has begun in them is waited for as long.
const ASTRAY_MAX: Duration = Duration::from_secs(20);
/// Between two probes of one flow.
const PROBE_GAP: Duration = Duration::from_millis(40);

impl Experiment {
    pub fn run(&mut self) -> Report {
        self.simulator.start();
        self.simulator.run_for(self.traffic);
        if !self.quiet.is_zero() {
            self.simulator.stop_sources();
            self.simulator.run_for(self.quiet);
        }
        let mut faults_missing = match self.choice {
            true => self.simulator.network.kinds_missing(),
            false => self.simulator.network.faults_missing(),
        };
        if self.simulator.restarts < self.restarts {
            faults_missing.push("restart");
        }
        self.simulator.network.heal();
        self.simulator.stop_sources();
        for station in &mut self.simulator.stations {
            let Station::Packtrain(host) = station else {
                continue;
            };
            if let Some(saboteur) = &mut host.saboteur {
                saboteur.sources_stopped();
            }
            if let Some(damage) = &mut host.damage {
                damage.is_over = true;
            }
        }
        self.rest();
        self.probe();
        self.settle();
        let saboteurs = self
            .simulator
            .hosts()
            .filter_map(|host| host.saboteur.as_ref());
        let strikes = saboteurs.map(|saboteur| saboteur.strikes).sum();
        let snapshots = || self.simulator.hosts().map(|host| host.snapshot(self.now()));
        let replayed = snapshots().map(|snapshot| snapshot.replay.replayed).sum();
        let restored = snapshots().map(|snapshot| snapshot.coding.coded_rx).sum();
        let told = snapshots().map(|snapshot| snapshot.too_big.told).sum();
        let direct = self.simulator.hosts().map(|host| host.direct_counters());
        let checkers = &self.simulator.checkers;
        Report {
            violation: checkers.violation().cloned(),
            faults_missing,
            frames_sent: checkers.frames_sent(),
            frames_delivered: checkers.frames_delivered,
            ended_at: self.simulator.now(),
            strikes,
            replayed,
            found_dead: checkers.paths_found_dead(),
            stops: self.simulator.stops,
            too_long: self.simulator.network.frames_too_long(),
            aggregated: checkers.frames_aggregated,
            direct: checkers.frames_direct(),
            returns: direct.map(|direct| direct.returns).sum(),
            coded: checkers.coded,
            has_one_dictionary: self.has_one_dictionary(),
            restored,
            told,
        }
    }

    fn has_one_dictionary(&self) -> bool {
        let mut all = self.simulator.hosts().map(|host| &host.config().dictionary);
        let first = all.next().and_then(Option::as_ref);
        first.is_some() && all.all(|other| other.as_ref() == first)
    }

    fn now(&self) -> Instant {
        self.simulator.now()
    }

    fn at_rest(&self) -> bool {
        let now = self.simulator.now();
        self.simulator
            .hosts()
            .zip(&self.peers)
            .all(|(host, &peers)| {
                let check = progress::check(&host.snapshot(now), peers, Copies::Gone);
                check.is_ok()
            })
    }

    /// Of trains of which nothing may be lost, some may be sought where they are not.
    fn has_what_went_astray(&self) -> bool {
        let checkers = &self.simulator.checkers;
        let mut stations = (0..self.simulator.stations.len()).map(StationId);
        checkers.faults().alters && stations.any(|station| checkers.lets_nothing_be_lost(station))
    }

    /// Waits until everything has drained, and objects if it does not.
    fn rest(&mut self) {
        let lasts = match self.has_what_went_astray() {
            true => ASTRAY_MAX,
            false => Duration::ZERO,
        };
        let end = self.simulator.now() + self.drain_max + lasts;
        if !self.faultless {
            // Who missed three hellos finds out only now; and false claims of who is behind whom,
            // altered on the way, hold as long.
            self.simulator.run_for(Duration::from_secs(4));
        }
        while self.simulator.now() < end && !self.at_rest() {
            self.simulator.run_for(Duration::from_millis(250));
            if self.simulator.checkers.violation().is_some() {
                return;
            }
        }
        let now = self.simulator.now();
        for i in 0..self.simulator.stations.len() {
            if let Station::Packtrain(host) = &self.simulator.stations[i] {
                let snapshot = host.snapshot(now);
                let limits = host.config().limits.clone();
                self.simulator
                    .checkers
                    .looked_at(StationId(i), &snapshot, &limits, now);
                self.simulator
                    .checkers
                    .at_rest(StationId(i), &snapshot, self.peers[i], now);
            }
        }
    }

    fn probe(&mut self) {
        for sequence in 0..PROBES {
            for &flow in &self.probes {
                if self.simulator.checkers.violation().is_none() {
                    self.simulator.send(flow, sequence);
                }
            }
            self.simulator.run_for(PROBE_GAP);
        }
        self.simulator
            .run_for(self.drain_max.min(Duration::from_secs(3)));
        let now = self.simulator.now();
        let astray = self.simulator.checkers.faults().alters;
        let first = if astray { PROBES_ASTRAY } else { 0 };
        // One altered bit of a source address, and who never speaks is where it never was until that is forgotten,
        // after minutes: its frames go to that segment alone, as by any switch.
        let has_several_segments = self.paths.is_some();
        let may_go_astray = |checkers: &Checkers, flow| {
            astray && has_several_segments && checkers.to_who_never_speaks(flow)
        };
        for &flow in &self.probes {
            if !may_go_astray(&self.simulator.checkers, flow) {
                self.simulator.checkers.all_came(flow, first, now);
            }
        }
        let Some(paths) = self.paths else { return };
        for i in 0..self.simulator.stations.len() {
            if let Station::Packtrain(host) = &self.simulator.stations[i] {
                let snapshot = host.snapshot(now);
                let checkers = &mut self.simulator.checkers;
                checkers.all_links_back(StationId(i), &snapshot, paths, now);
            }
        }
    }

    fn settle(&mut self) {
        let now = self.simulator.now();
        let mut engines = EngineDrops::default();
        for host in self.simulator.hosts() {
            engines.add_life(&host.snapshot(now));
            engines.add_past(host.past());
        }
        self.simulator.checkers.settle(self.kept, &engines, now);
        if self.faultless {
            self.simulator.checkers.settle_faultless(&engines, now);
        }
    }
}

/// Runs an order, with more effort as long as a configured fault did not happen.
pub fn run_until_faults_happen(order: Order, run: fn(Order) -> Report) -> Report {
    let mut order = order;
    loop {
        let report = run(order);
        let enough = report.faults_missing.is_empty() || report.violation.is_some();
        if enough || order.effort == Order::EFFORT_MAX {
            return report;
        }
        order.effort += 1;
    }
}
