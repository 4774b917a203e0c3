//! Who watches. Each promise has a checker of its own, apart from what it checks: none of them asks
//! the engine what it meant.
//!
//! | checker | what holds |
//! |---|---|
//! | [`unchanged`] | what comes out is what went in, or whole segments of it |
//! | [`once`] | … and comes out once |
//! | [`echoes`] | … unless its sender could not know that two of its links are on one segment |
//! | [`in_order`] | … in the order of its flow |
//! | [`excused`] | … unless its receiver had no room for what waits, or had to take it for lost |
//! | [`drained`] | … and not after its engine said that all of before has arrived |
//! | [`addressee`] | … where it was meant to, and a plain host notices nothing |
//! | [`accounted`] | what does not come out is counted, with a reason |
//! | [`told`] | … and who is told that its frames are too long is told what is right |
//! | [`reach`] | … unless no cable led to where it was to go |
//! | [`bounded`] | no queue grows beyond its limit |
//! | [`work_conserving`] | no open link stands idle while frames wait for it |
//! | [`found_dead`] | a link that carries nothing to an end is given up there while another one lives, and soon |
//! | [`held_within`] | … at no moment, but for what a class lets wait, and no longer than that |
//! | [`starved`] | … nor behind other flows for more than these may send in turn |
//! | [`progress`] | nothing is stuck when the network is well again, and time moves on |

pub mod accounted;
pub mod addressee;
pub mod aggregate;
pub mod bounded;
pub mod coded_trains;
pub mod drained;
pub mod echoes;
mod ending;
pub mod excused;
pub mod found_dead;
pub mod held_within;
pub mod in_order;
pub mod inside;
mod judge;
mod leaving;
pub mod lives;
pub mod once;
pub mod progress;
pub mod reach;
pub mod record;
pub mod sand_bound;
pub mod starved;
pub mod told;
pub mod unchanged;
pub mod work_conserving;

use core::fmt;

use packtrain_proto::class::{Class, Pack};
use packtrain_proto::config::{Config, Limits};
use packtrain_proto::stats::{PeerSnapshot, Snapshot};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

use crate::frame::Frame;
use crate::net::network::{PortId, Refused};
use crate::simulator::StationId;
use crate::workload::flow::Flow;
use crate::workload::identity::{Identity, identify};
use accounted::Accounted;
pub use coded_trains::CodedTrains;
use drained::Drained;
use echoes::Echoes;
use excused::Excused;
use found_dead::FoundDead;
use held_within::{HeldWithin, Line};
use in_order::InOrder;
use lives::Lives;
use once::Once;
use reach::Reach;
use record::Record;
use starved::Starved;
use work_conserving::{LinkSeen, WorkConserving};

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub checker: &'static str,
    pub at: Instant,
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}: {}", self.checker, self.at, self.text)
    }
}

/// What the network may do to frames that travel as they are, without a sequence: nobody can set
/// that right, and nobody is to be blamed for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkFaults {
    pub duplicates: bool,
    pub reorders: bool,
    /// Bytes change and no FCS tells: only what concerns the hosts themselves is checked.
    pub alters: bool,
    /// Links come, go and are cut, or there are several on a segment: group frames, and those to a
    /// station that nobody knows yet, go to each segment without a sequence. They are taken on another
    /// one from one moment to the next, and for a moment two hosts may not agree which.
    pub moves_home: bool,
}

/// A station, as far as it matters to what it may receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationFacts {
    pub address: MacAddr,
    pub packtrain: bool,
    /// It stands in a bridge: what is flooded to it may be for others.
    pub promiscuous: bool,
}

#[derive(Debug)]
pub struct Checkers {
    flows: Vec<Flow>,
    faults: NetworkFaults,
    stations: Vec<StationFacts>,
    once: Once,
    in_order: InOrder,
    excused: Excused,
    drained: Drained,
    accounted: Accounted,
    reach: Reach,
    echoes: Echoes,
    lives: Lives,
    work_conserving: WorkConserving,
    found_dead: FoundDead,
    held_within: HeldWithin,
    starved: Starved,
    record: Option<Record>,
    /// `Some`: frames are those of applications, which see for themselves what they get. It is kept for them, and nothing
    /// is checked but that hosts send what cards take.
    handed_on: Option<Vec<(StationId, Frame)>>,
    violation: Option<Violation>,
    pumps: u64,
    pub frames_delivered: u64,
    /// Frames that left in aggregates.
    pub frames_aggregated: u64,
    pub coded: CodedTrains,
}

impl Checkers {
    /// A snapshot costs more than the work of most events. The maxima that it holds are kept by
    /// the engine at every step, so none is missed between two.
    const PUMPS_PER_SNAPSHOT: u64 = 64;

    pub fn new(flows: Vec<Flow>, stations: Vec<StationFacts>, faults: NetworkFaults) -> Checkers {
        let (flow_count, station_count) = (flows.len(), stations.len());
        Checkers {
            flows,
            faults,
            once: Once::new(flow_count, station_count),
            in_order: InOrder::new(flow_count, station_count),
            excused: Excused::new(station_count),
            drained: Drained::new(flow_count),
            accounted: Accounted::new(flow_count),
            reach: Reach::default(),
            echoes: Echoes::default(),
            lives: Lives::new(flow_count, station_count),
            work_conserving: WorkConserving::default(),
            found_dead: FoundDead::default(),
            held_within: HeldWithin::new(station_count),
            starved: Starved::new(station_count),
            stations,
            record: None,
            handed_on: None,
            violation: None,
            pumps: 0,
            frames_delivered: 0,
            frames_aggregated: 0,
            coded: CodedTrains::default(),
        }
    }

    /// Of hosts whose frames are those of applications.
    pub fn for_applications(stations: Vec<StationFacts>) -> Checkers {
        Checkers {
            handed_on: Some(Vec::new()),
            ..Checkers::new(Vec::new(), stations, NetworkFaults::default())
        }
    }

    /// Nothing is checked of what hosts do in between.
    pub fn only_hand_on(&self) -> bool {
        self.handed_on.is_some()
    }

    /// What came out since the last call, for applications; `room` is empty, and kept for the next time.
    pub fn take_handed_on(&mut self, room: &mut Vec<(StationId, Frame)>) {
        if let Some(frames) = &mut self.handed_on {
            core::mem::swap(frames, room);
        }
    }

    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    pub fn faults(&self) -> NetworkFaults {
        self.faults
    }

    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// The first objection stands: what follows from it would only hide it.
    pub fn object(&mut self, checker: &'static str, at: Instant, text: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { checker, at, text });
        }
    }

    /// A host's stack hands a frame over.
    pub fn sent(&mut self, flow: usize, sequence: u32, now: Instant) {
        self.accounted.sent(flow, sequence, now);
    }

    /// A link of a station's line has carrier, or has none, or has left the line.
    pub fn link(&mut self, station: StationId, port: PortId, carrier: bool, now: Instant) {
        self.reach.link(station, port, carrier, now);
        if !carrier {
            self.echoes.carrier_lost(station, port);
        }
    }

    /// A host asks its engine to say when all that it was handed has arrived.
    pub fn drain_asked(&mut self, station: StationId, ticket: u64) {
        let flows = self.flows.iter().enumerate();
        let own = flows.filter(|(_, flow)| flow.from == station);
        let ends = own.map(|(flow, _)| (flow, self.accounted.sent_until(flow)));
        let ends = ends.collect();
        self.drained.asked(station, ticket, ends);
    }

    /// The engine says so.
    pub fn drain_happened(&mut self, station: StationId, ticket: u64) {
        self.drained.happened(station, ticket);
    }

    pub fn restarted(&mut self, station: StationId, now: Instant) {
        self.drained.forget();
        self.once.restarted(station);
        self.echoes.restarted(station);
        self.lives.restarted(station, now);
        self.held_within.restarted(station);
        for (flow, _) in self
            .flows
            .iter()
            .enumerate()
            .filter(|(_, f)| f.from == station)
        {
            self.lives
                .flow_begins_anew(flow, self.accounted.sent_until(flow));
        }
    }

    /// From now on, what comes out is remembered.
    pub fn keep_record(&mut self) {
        self.record = Some(Record::new(self.flows.len()));
    }

    /// What came out since then.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    pub fn frames_direct(&self) -> u64 {
        self.accounted.frames_direct()
    }

    /// A frame has come to a host, by a link.
    pub fn came(&mut self, station: StationId, port: PortId, frame: &Frame) {
        if self.only_hand_on() {
            return;
        }
        let header = frame.header();
        if header.destination == MacAddr::HELLO {
            self.echoes.came(station, port, header.source);
        }
        if header.ether_type == ether_type::PACKTRAIN {
            return;
        }
        for part in aggregate::frames_in(frame) {
            if let Some(identity) = identify(&part.bytes, &self.flows) {
                self.accounted.came_as_it_is(identity, station);
            }
        }
    }

    /// A direct frame has come to a host, by a way there and back that takes so long at most.
    pub fn direct_came(&mut self, station: StationId, round_trip: Duration, now: Instant) {
        self.excused.direct_came(station, round_trip, now);
    }

    /// An engine says that it let go what waited, for want of room.
    pub fn let_go(&mut self, station: StationId, now: Instant) {
        if self.only_hand_on() {
            return;
        }
        self.excused.let_go(station, now);
    }

    /// A frame came out at a host.
    pub fn delivered(&mut self, station: StationId, frame: &Frame, now: Instant) {
        self.frames_delivered += 1;
        if let Some(frames) = &mut self.handed_on {
            return frames.push((station, frame.clone()));
        }
        if let Err((checker, text)) = self.judge(station, frame) {
            let text = format!("{station:?} is given {}: {text}", describe(frame));
            self.object(checker, now, text);
        }
    }

    /// The network dropped a frame.
    pub fn lost(&mut self, frame: &Frame) {
        if self.only_hand_on() {
            return;
        }
        if frame.header().ether_type == ether_type::PACKTRAIN {
            self.accounted.train_lost(inside::items(&frame.bytes));
            return;
        }
        for part in aggregate::frames_in(frame) {
            if let Some(identity) = identify(&part.bytes, &self.flows) {
                self.accounted.lost_as_it_is(identity);
            }
        }
    }

    /// A card refused a frame that no honest engine gives it.
    pub fn refused(&mut self, station: StationId, mistake: Refused, now: Instant) {
        if !(self.faults.alters && mistake == Refused::BadOffload) {
            self.object(
                "well formed",
                now,
                format!("{station:?} sends a frame: {mistake:?}"),
            );
        }
    }

    /// A plain host met a frame of packtrain that its card did not filter out.
    pub fn noticed(&mut self, station: StationId, frame: &Frame, now: Instant) {
        if !self.faults.alters {
            let text = format!(
                "{station:?} has no packtrain and is sent {}",
                describe(frame)
            );
            self.object("addressee", now, text);
        }
    }

    /// Whether frames wait in a station's engine, after each of its steps.
    pub fn waits(&mut self, station: StationId, waiting: bool, now: Instant) {
        if self.only_hand_on() {
            return;
        }
        self.work_conserving.waits(station, waiting, now);
    }

    /// The classes of a station's frames, from now on.
    /// `tick`: what the waits of the DFAP paper are multiples of.
    pub fn classes(
        &mut self,
        station: StationId,
        classes: Vec<Class>,
        (tick, lateness_max): (Duration, Duration),
    ) {
        self.starved.classes(station, classes.clone());
        self.held_within
            .classes(station, classes, (tick, lateness_max));
    }

    /// An engine begins, so configured.
    pub fn begins(&mut self, station: StationId, config: &Config) {
        self.starved.begins(station, config);
    }

    /// Before an engine sends, and after: how many frames wait in it for the `pt0` of this address.
    pub fn look_for_starved(&mut self, station: StationId, waiting_for: impl Fn(MacAddr) -> usize) {
        if self.only_hand_on() || self.faults.alters {
            return;
        }
        let stations = &self.stations;
        let for_station = |to: StationId| waiting_for(stations[to.0].address);
        self.starved.look(station, for_station);
    }

    /// An engine is given a frame by its host, whose homes take such of `mtu` bytes, the least of them. Of which flow it is, and how it is
    /// to be treated.
    pub fn taken_in(
        &mut self,
        station: StationId,
        (frame, mtu): (&Frame, Option<u16>),
        now: Instant,
    ) -> Option<(u16, Pack)> {
        if self.only_hand_on() {
            return None;
        }
        let what = identify(&frame.bytes, &self.flows)?;
        if mtu.is_some_and(|mtu| frame.payload_bytes_max() > usize::from(mtu)) {
            self.accounted.is_longer_than_a_home(what);
        }
        let to = self.flows[usize::from(what.flow)].to;
        let pack = self.held_within.came(station, frame, (what, to), now);
        if !self.faults.alters {
            self.starved.came(station, frame, (what, to));
        }
        Some((what.flow, pack))
    }

    /// A station's engine is called.
    pub fn called(&mut self, station: StationId, now: Instant) {
        if self.only_hand_on() {
            return;
        }
        if self.faults.alters {
            return;
        }
        if let Err(text) = self.held_within.called(station, now) {
            self.object("held within", now, format!("{station:?}: {text}"));
        }
    }

    /// Nothing waits in a station's engine.
    pub fn nothing_waits(&mut self, station: StationId) {
        if self.only_hand_on() {
            return;
        }
        self.held_within.nothing_waits(station);
    }

    /// What waits in a station's engine when it wants nothing more for now.
    pub fn still_waits(
        &mut self,
        station: StationId,
        snapshot: &Snapshot,
        lines: &[Line],
        now: Instant,
    ) {
        if self.faults.alters {
            return; // as with idle links
        }
        let stations = &self.stations;
        let whose = |address| station_of(stations, address);
        let look = self.held_within.look(station, snapshot, lines, whose, now);
        if let Err(text) = look {
            self.object("held within", now, format!("{station:?}: {text}"));
        }
    }

    pub fn look_at_link(
        &mut self,
        link: &LinkSeen,
        snapshot: &Snapshot,
        lines: &[Line],
        now: Instant,
    ) {
        let station = link.station;
        if let Err(text) = progress::check_leaving(link, now) {
            self.object("progress", now, format!("{station:?}: {text}"));
        }
        if self.faults.alters {
            return; // an altered hello may close or open what is not
        }
        let is_hold = |peer: &PeerSnapshot| {
            let who = station_of(&self.stations, peer.address);
            let held = &self.held_within;
            who.is_some_and(|who| held.is_hold(station, peer, lines, who, now))
        };
        let look = self.work_conserving.look(link, snapshot, is_hold, now);
        if let Err(text) = look {
            self.object("work conserving", now, format!("{station:?}: {text}"));
        }
    }

    /// Whether some class of a station does, or did.
    pub fn lets_nothing_be_lost(&self, station: StationId) -> bool {
        self.held_within.lets_nothing_be_lost(station)
    }

    /// All links of a station.
    pub fn look_for_dead(&mut self, links: &[LinkSeen], snapshot: &Snapshot, now: Instant) {
        if self.faults.alters {
            return;
        }
        if let Err(text) = self.found_dead.look(links, snapshot, now) {
            let station = links.first().map(|link| link.station);
            self.object("found dead", now, format!("{station:?}: {text}"));
        }
    }

    /// Dead paths that were seen to be known for that.
    pub fn paths_found_dead(&self) -> u64 {
        self.found_dead.found
    }

    pub fn endless(&mut self, station: StationId, poll: &str, now: Instant) {
        self.object(
            "time moves on",
            now,
            format!("{poll} of {station:?} never ends"),
        );
    }

    pub fn wants_snapshot(&mut self) -> bool {
        if self.only_hand_on() {
            return false;
        }
        self.pumps += 1;
        self.pumps.is_multiple_of(Self::PUMPS_PER_SNAPSHOT)
    }

    pub fn looked_at(
        &mut self,
        station: StationId,
        snapshot: &Snapshot,
        limits: &Limits,
        now: Instant,
    ) {
        if let Err(text) = bounded::check(snapshot, limits) {
            self.object("bounded", now, format!("{station:?}: {text}"));
        }
    }

    pub fn frames_sent(&self) -> u64 {
        self.accounted.frames_sent()
    }

    /// Where a host is, its peers know; where those behind it are, they learn.
    /// Whether it goes to a station of which nobody ever hears, neither frames nor hellos.
    pub fn to_who_never_speaks(&self, flow: usize) -> bool {
        let to = self.flows[flow].destination;
        !self.is_a_hosts_own(to) && self.flows.iter().all(|flow| flow.source != to)
    }

    fn is_a_hosts_own(&self, address: MacAddr) -> bool {
        self.stations
            .iter()
            .any(|station| station.address == address)
    }

    fn recipients(&self, flow: usize) -> impl Iterator<Item = StationId> + '_ {
        let flow = &self.flows[flow];
        (0..self.stations.len()).map(StationId).filter(|&station| {
            addressee::check(flow, station, &self.stations) == addressee::Verdict::Meant
        })
    }
}

fn station_of(stations: &[StationFacts], address: MacAddr) -> Option<StationId> {
    let mut stations = stations.iter();
    let at = stations.position(|station| station.address == address);
    at.map(StationId)
}

fn describe(frame: &Frame) -> String {
    let header = frame.header();
    let gso = if frame.offload.gso.is_some() {
        " GSO"
    } else {
        ""
    };
    format!(
        "{} bytes{gso} {} > {} type {:04x}",
        frame.bytes.len(),
        header.source,
        header.destination,
        header.ether_type
    )
}

/// A part of a frame, by its first segment, for those who keep an order.
pub type Position = (u32, usize);

impl Identity {
    pub fn position(self) -> Position {
        (self.sequence, usize::from(self.segment))
    }
}
