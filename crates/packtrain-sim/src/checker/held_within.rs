//! On an idle line nothing waits but what a class lets wait, and no longer than that.
//!
//! After each step of an engine: if it has room on an open path to a peer, then all that waits for that
//! peer are frames whose time is not over (what the class that a frame had when it came lets it wait),
//! and together they do not fill a train. And it must be called again before the first of these budgets is
//! over: what it left waiting on an idle line is gone at its next step, or may still wait. So a hold that never
//! ends, one that ends late, one of a frame that no class lets wait, and a forgotten timer are seen at the first
//! instant at which they matter, exactly.
//!
//! How many frames wait for a peer, the engine says; which of them may, is known here: from a class table that
//! is asked one match after the other, and from what was seen leaving. All that wait must be among those
//! that came, may wait and have not left. Frames that the engine has dropped, and those of which the first
//! piece is too short to tell what it is, stand among them until their budget is over: for so long, at
//! most, they may hide another.
//!
//! Leaving earlier is no mistake: a budget is a permission.

use packtrain_proto::class::{Class, Facts, Pack, Repairs};
use packtrain_proto::config::LinkId;
use packtrain_proto::stats::{PathState, PeerSnapshot, Snapshot};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::trunk::via::LinkSet;
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr};
use packtrain_proto::wire::packet::Packet;

use super::inside::Question;
use crate::frame::Frame;
use crate::simulator::StationId;
use crate::workload::flow::Recipient;
use crate::workload::identity::Identity;

/// Of a train and of a subframe, as docs/wire-format.md has them.
const TRAIN_HEADER_LEN: u64 = 16;
const SUBFRAME_HEADER_LEN: u64 = 3;

/// A question whether all has arrived has its place among the trains and is no bytes in flight: where there are
/// several paths, nothing may be too far ahead of it before it is answered, or counts as lost.
const ANSWER_MAX: Duration = Duration::from_millis(300);
/// Older questions are not looked at.
const ASKED_AGE_MAX: Duration = Duration::from_secs(10);
/// So many trains are too far.
const SPAN_TRAINS: u32 = 192;
/// … and half as many of all lanes together of which nothing may be lost. There are no more of them.
const LOSSLESS_LANES_MAX: usize = 4;

/// A link of a host, as far as it matters to whether anything may wait for it.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub link: LinkId,
    pub local_queue_bytes: usize,
    pub mtu: u16,
}

#[derive(Clone, Copy, Debug)]
struct Patient {
    what: Identity,
    to: Recipient,
    came: Instant,
    until: Instant,
}

/// What was left waiting on an idle line.
#[derive(Clone, Copy, Debug)]
struct Left {
    peer: StationId,
    frames: u64,
    at: Instant,
}

#[derive(Debug, Default)]
struct Station {
    classes: Vec<Class>,
    /// Some class lets nothing be lost, or did: of its frames none may be too far ahead of one that is not acknowledged.
    repairs: bool,
    /// By which links trains go, or went, of which nothing may be lost: a lane for each.
    lossless: Vec<LinkSet>,
    /// Of the DFAP paper's waits.
    tick: Duration,
    /// Most that its timers go off too late.
    lateness_max: Duration,
    patients: Vec<Patient>,
    left: Vec<Left>,
    /// When it asked a peer whether all has arrived.
    asked: Vec<Asked>,
}

/// A question that has left.
#[derive(Clone, Copy, Debug)]
struct Asked {
    question: Question,
    /// When it did so last.
    at: Instant,
    /// Trains that left since it did so first.
    trains: u32,
}

#[derive(Debug, Default)]
pub struct HeldWithin {
    stations: Vec<Station>,
}

/// The definition: the first class that matches says it.
pub fn pack_of(classes: &[Class], bytes: &[u8]) -> Pack {
    let facts = Facts::of(bytes, &Packet::parse(bytes), 0);
    let class = classes.iter().find(|class| class.matches.matches(&facts));
    class.map_or(Pack::Queued, |class| class.action.pack)
}

/// How long a frame may wait for others at most.
fn may_wait(pack: Pack, tick: Duration) -> Option<Duration> {
    match pack {
        Pack::Queued | Pack::Now => None,
        Pack::Within(budget) | Pack::Scaled(budget) => Some(budget),
        Pack::DfapRandom | Pack::DfapStraight => Some(10 * tick),
        Pack::Auto => Some(Duration::from_millis(1)),
    }
}

impl HeldWithin {
    pub fn new(stations: usize) -> HeldWithin {
        HeldWithin {
            stations: (0..stations).map(|_| Station::default()).collect(),
        }
    }

    /// Its frames are of these classes from now on.
    pub fn classes(
        &mut self,
        station: StationId,
        classes: Vec<Class>,
        (tick, lateness_max): (Duration, Duration),
    ) {
        let station = &mut self.stations[station.0];
        let mut actions = classes.iter().map(|class| &class.action);
        station.repairs |= actions.any(|action| action.repairs.are_asked_for());
        for action in classes.iter().map(|class| &class.action) {
            if action.repairs == Repairs::Lossless && !station.lossless.contains(&action.links) {
                station.lossless.push(action.links);
            }
        }
        station.classes = classes;
        station.tick = tick;
        station.lateness_max = lateness_max;
    }

    /// Its engine is a new one.
    pub fn restarted(&mut self, station: StationId) {
        let station = &mut self.stations[station.0];
        station.patients.clear();
        station.left.clear();
        station.asked.clear();
    }

    /// An engine is given a frame by its host: how it is to be treated.
    pub fn came(
        &mut self,
        station: StationId,
        frame: &Frame,
        (what, to): (Identity, Recipient),
        now: Instant,
    ) -> Pack {
        let station = &mut self.stations[station.0];
        let pack = pack_of(&station.classes, &frame.bytes);
        if let Some(budget) = may_wait(pack, station.tick) {
            let late = station.lateness_max;
            station.patients.retain(|p| p.until + late >= now);
            station.patients.push(Patient {
                what,
                to,
                came: now,
                until: now + budget,
            });
        }
        pack
    }

    /// Whether what was lost may have gone again because a class asked for it.
    pub fn repairs(&self) -> bool {
        self.stations.iter().any(|station| station.repairs)
    }

    /// Whether some class of a station lets nothing be lost, or did.
    pub fn lets_nothing_be_lost(&self, station: StationId) -> bool {
        !self.stations[station.0].lossless.is_empty()
    }

    pub fn is_empty(&self, station: StationId) -> bool {
        self.stations[station.0].patients.is_empty()
    }

    /// A frame leaves, or its first piece. In a train, one for everybody leaves for one peer and may wait for another.
    pub fn left(&mut self, station: StationId, what: Identity, in_train: bool) {
        let is_it = |p: &Patient| (p.what.flow, p.what.sequence) == (what.flow, what.sequence);
        let stays = |p: &Patient| !is_it(p) || in_train && p.to == Recipient::All;
        self.stations[station.0].patients.retain(stays);
    }

    /// A probe leaves: a train itself, behind earlier ones. Or it leaves again, because its link has died: then its answer takes as long
    /// anew, and all that left since it did so first is as far ahead of it.
    pub fn asks(&mut self, station: StationId, question: Question, now: Instant) {
        self.train_left(station);
        let asked = &mut self.stations[station.0].asked;
        match asked.iter_mut().find(|asked| asked.question == question) {
            Some(asked) => asked.at = now,
            None => asked.push(Asked {
                question,
                at: now,
                trains: 0,
            }),
        }
    }

    /// A train leaves that carries something.
    pub fn train_left(&mut self, station: StationId) {
        let asked = &mut self.stations[station.0].asked;
        asked.iter_mut().for_each(|asked| asked.trains += 1);
    }

    /// An engine is called at this moment. `Err`: it should have been before.
    pub fn called(&mut self, station: StationId, now: Instant) -> Result<(), String> {
        let station = &self.stations[station.0];
        for left in &station.left {
            let may = |p: &&Patient| p.came <= left.at && p.until + station.lateness_max >= now;
            let may = station.count(left.peer, may);
            if left.frames > may {
                return Err(format!(
                    "of {} frames that wait for {:?} on an idle line since {:?} only {may} may, and nobody \
                     has asked for the engine before",
                    left.frames, left.peer, left.at
                ));
            }
        }
        Ok(())
    }

    /// An engine has done all it wants to, and waits. `whose`: the stations that its peers are.
    pub fn look(
        &mut self,
        station: StationId,
        snapshot: &Snapshot,
        lines: &[Line],
        whose: impl Fn(MacAddr) -> Option<StationId>,
        now: Instant,
    ) -> Result<(), String> {
        let station = &mut self.stations[station.0];
        station.left.clear();
        station
            .asked
            .retain(|asked| now.since(asked.at) < ASKED_AGE_MAX);
        station.look_at_stations(snapshot, lines, &whose, now)?;
        let replays = snapshot.replay.waiting_trains > 0;
        for peer in &snapshot.peers {
            // What an only link has lost may go again as well: nothing may be too far ahead of that.
            let repairs = station.repairs || peer.paths.iter().any(|path| path.size.mends);
            let waiting = waiting_idly(peer, lines, repairs);
            if waiting == 0 || replays {
                continue;
            }
            let may_go_again = peer.paths.len() > 1 || repairs;
            if may_go_again && station.may_wait_for_an_answer(peer, now) {
                continue;
            }
            let Some(who) = whose(peer.address) else {
                continue;
            };
            let may = station.count(who, |p| p.until > now);
            if waiting > may {
                return Err(format!(
                    "{waiting} frames wait for {who:?} on an idle line, and only {may} may"
                ));
            }
            if fills_a_train(peer, lines) {
                return Err(format!(
                    "{} frames of {} bytes wait for {who:?} on an idle line, and fill a train",
                    peer.queued_frames, peer.queued_bytes
                ));
            }
            station.left.push(Left {
                peer: who,
                frames: waiting,
                at: now,
            });
        }
        Ok(())
    }

    /// Nothing waits in its engine.
    pub fn nothing_waits(&mut self, station: StationId) {
        self.stations[station.0].left.clear();
    }

    /// Whether all that waits for a peer may, and does not fill a train.
    pub fn is_hold(
        &self,
        station: StationId,
        peer: &PeerSnapshot,
        lines: &[Line],
        who: StationId,
        now: Instant,
    ) -> bool {
        let station = &self.stations[station.0];
        let may = station.count(who, |p| p.until + station.lateness_max >= now);
        peer.queued_frames <= may && !fills_a_train(peer, lines)
    }
}

impl Station {
    /// The same of those that take aggregates. These go plainly by one home link, so room there is all they need. But
    /// who is full leaves what is over in hand, and behind that nothing waits for more.
    fn look_at_stations(
        &mut self,
        snapshot: &Snapshot,
        lines: &[Line],
        whose: impl Fn(MacAddr) -> Option<StationId>,
        now: Instant,
    ) -> Result<(), String> {
        let is_idle = |link| {
            let line = lines.iter().find(|line| line.link == link);
            let is_home = snapshot
                .links
                .iter()
                .any(|l| l.id == link && l.home && l.carrier);
            is_home && line.is_some_and(|line| line.local_queue_bytes == 0)
        };
        for to in &snapshot.dfap.stations {
            let who = whose(to.address).filter(|_| to.queued_frames > 0 && is_idle(to.home));
            let Some(who) = who else {
                continue;
            };
            let may = self.count(who, |p| p.until > now);
            if to.queued_frames > may {
                return Err(format!(
                    "{} frames wait for the station {who:?} on an idle line, and only {may} may",
                    to.queued_frames
                ));
            }
            self.left.push(Left {
                peer: who,
                frames: to.queued_frames,
                at: now,
            });
        }
        Ok(())
    }

    fn may_wait_for_an_answer(&self, peer: &PeerSnapshot, now: Instant) -> bool {
        let round_trips = peer.paths.iter().filter_map(|path| path.round_trip);
        let longest = round_trips.max().unwrap_or_default();
        let open = |at: Instant| now.since(at) <= ANSWER_MAX + 2 * longest;
        let mut asked = self.asked.iter();
        asked.any(|asked| open(asked.at) && asked.trains + 1 >= self.span_trains())
    }

    /// How many trains may be ahead of an unanswered question at least.
    fn span_trains(&self) -> u32 {
        match self.lossless.len().min(LOSSLESS_LANES_MAX) as u32 {
            0 => SPAN_TRAINS,
            lanes => SPAN_TRAINS / 2 / lanes,
        }
    }

    fn count(&self, peer: StationId, holds: impl Fn(&&Patient) -> bool) -> u64 {
        let is_for = |p: &&Patient| p.to == Recipient::All || p.to == Recipient::Station(peer);
        self.patients.iter().filter(is_for).filter(holds).count() as u64
    }
}

/// Frames for the peer of which a train could leave at once. Where there are several paths, or it `repairs`, only if all of them are
/// free: else the one with room may be no use, because nothing may be too far ahead of the oldest train. Where each flow keeps
/// to one of them, those that wait for another do not count.
fn waiting_idly(peer: &PeerSnapshot, lines: &[Line], repairs: bool) -> u64 {
    let is_alone = peer.paths.len() == 1 && !repairs;
    let all_are_free = peer.paths.iter().all(|path| path.in_flight_bytes == 0);
    let has_no_queue = |link: LinkId| {
        let line = lines.iter().find(|line| line.link == link);
        line.is_some_and(|line| line.local_queue_bytes == 0)
    };
    if !peer.up || !is_alone && !all_are_free {
        return 0;
    }
    let open = peer
        .paths
        .iter()
        .filter(|path| path.state == PathState::Open && has_no_queue(path.link));
    let has_window = open.filter(|path| path.in_flight_bytes < path.window_bytes);
    let for_them: u64 = has_window.map(|path| path.queued_frames).sum();
    // Each has all of them, or its own.
    for_them.min(peer.queued_frames)
}

/// Whether what waits fills a train of any path to the peer.
fn fills_a_train(peer: &PeerSnapshot, lines: &[Line]) -> bool {
    let is_path = |line: &&Line| peer.paths.iter().any(|path| path.link == line.link);
    let mtu = lines.iter().filter(is_path).map(|line| line.mtu).max();
    let header = HEADER_LEN as u64;
    let saved = peer.queued_frames * (header - SUBFRAME_HEADER_LEN);
    header + TRAIN_HEADER_LEN + peer.queued_bytes >= u64::from(mtu.unwrap_or(0)) + header + saved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::flow::tests::one_of_each;
    use packtrain_proto::class::Action;
    use packtrain_proto::config::{Config, NodeId};
    use packtrain_proto::engine::Engine;
    use packtrain_proto::queue::pressure::AutoChoice;
    use packtrain_proto::stats::{HoldSnapshot, PathMeasures, PathSize, PathSnapshot};

    const STATION: StationId = StationId(0);
    const PEER: StationId = StationId(1);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn what(sequence: u32) -> Identity {
        Identity {
            flow: 0,
            sequence,
            segment: 0,
        }
    }

    /// All frames may wait for 10 ms, and those that came by then do.
    fn with_frames(came: &[u64]) -> HeldWithin {
        let mut checker = HeldWithin::new(2);
        let patient = Class {
            name: "patient".parse().unwrap(),
            matches: "any".parse().unwrap(),
            links: Vec::new(),
            action: Action {
                pack: Pack::Within(Duration::from_millis(10)),
                ..Action::default()
            },
        };
        let millisecond = Duration::from_millis(1);
        checker.classes(STATION, vec![patient], (millisecond, millisecond));
        let frame = one_of_each()[0].frame(0);
        for (sequence, &ms) in (0..).zip(came) {
            let what = (what(sequence), Recipient::Station(PEER));
            checker.came(STATION, &frame, what, at(ms));
        }
        checker
    }

    fn path(link: u8, in_flight_bytes: u64) -> PathSnapshot {
        PathSnapshot {
            link: LinkId(link),
            remote_link: LinkId(0),
            remote_address: MacAddr([4; 6]),
            round_trip: None,
            round_trip_min: None,
            rate_bps: None,
            in_flight_bytes,
            window_bytes: 1000,
            lost_trains: 0,
            liveness: None,
            failures: 0,
            trains_tx: 0,
            queued_frames: 1000,
            state: PathState::Open,
            measures: PathMeasures::default(),
            size: PathSize::default(),
            direct: None,
            direct_mark: None,
            direct_marks_refused: Vec::new(),
            direct_stripes: false,
            direct_late: 0,
            reordering_seen: false,
        }
    }

    fn waiting(frames: u64) -> Snapshot {
        let config = Config::new(NodeId(1), MacAddr([2; 6]));
        let mut snapshot = Engine::new(config, Instant::ZERO).snapshot(Instant::ZERO);
        snapshot.peers.push(PeerSnapshot {
            node_id: NodeId(2),
            address: MacAddr([6; 6]),
            up: true,
            away: false,
            software: String::new(),
            capabilities: 0,
            mtu: 1500,
            last_heard: Duration::ZERO,
            paths: vec![path(0, 0)],
            queued_frames: frames,
            queued_bytes: frames * 100,
            tier: None,
            hold: HoldSnapshot::default(),
            auto: AutoChoice::HasRoom,
            engine_because: None,
            dictionary: None,
            dictionary_unused: None,
        });
        snapshot
    }

    fn line(link: u8, local_queue_bytes: usize) -> Line {
        Line {
            link: LinkId(link),
            local_queue_bytes,
            mtu: 1500,
        }
    }

    fn is_fine(checker: &mut HeldWithin, snapshot: &Snapshot, lines: &[Line], ms: u64) -> bool {
        let look = checker.look(STATION, snapshot, lines, |_| Some(PEER), at(ms));
        look.is_ok()
    }

    #[test]
    fn what_may_wait_does_until_its_budget_is_over_and_nothing_else_waits() {
        let lines = [line(0, 0)];
        let mut checker = with_frames(&[0, 3]);
        assert!(is_fine(&mut checker, &waiting(2), &lines, 9));
        assert!(!is_fine(&mut checker, &waiting(3), &lines, 9));
        assert!(!is_fine(&mut checker, &waiting(2), &lines, 10));
        assert!(is_fine(&mut checker, &waiting(1), &lines, 12));
        assert!(!is_fine(&mut checker, &waiting(1), &lines, 13));
        // The younger one has left, and the other stays behind.
        let mut checker = with_frames(&[0, 3]);
        checker.left(STATION, what(1), true);
        assert!(is_fine(&mut checker, &waiting(1), &lines, 9));
        assert!(!is_fine(&mut checker, &waiting(1), &lines, 10));
        assert!(!is_fine(&mut with_frames(&[]), &waiting(1), &lines, 0));
    }

    #[test]
    fn who_leaves_it_waiting_must_be_back_when_the_budget_is_over() {
        let mut checker = with_frames(&[0, 3]);
        assert!(is_fine(&mut checker, &waiting(2), &[line(0, 0)], 4));
        assert!(
            checker.called(STATION, at(11)).is_ok(),
            "a timer may be late"
        );
        assert!(checker.called(STATION, at(12)).is_err());
        checker.nothing_waits(STATION);
        assert!(checker.called(STATION, at(12)).is_ok());
    }

    #[test]
    fn a_full_train_does_not_wait() {
        let mut checker = with_frames(&[0; 30]);
        // A train of 1514 bytes with 16 of header takes sixteen frames of 86 bytes and 3.
        assert!(is_fine(&mut checker, &waiting(16), &[line(0, 0)], 1));
        assert!(!is_fine(&mut checker, &waiting(17), &[line(0, 0)], 1));
    }

    #[test]
    fn a_line_without_room_excuses_all() {
        let excused = |paths: Vec<PathSnapshot>, lines: &[Line]| {
            let mut snapshot = waiting(1);
            snapshot.peers[0].paths = paths;
            is_fine(&mut with_frames(&[]), &snapshot, lines, 0)
        };
        assert!(excused(vec![path(0, 0)], &[line(0, 1)]));
        assert!(excused(vec![path(0, 1000)], &[line(0, 0)]));
        assert!(!excused(vec![path(0, 999)], &[line(0, 0)]));
        let closed = PathSnapshot {
            state: PathState::Closed,
            ..path(0, 0)
        };
        assert!(excused(vec![closed.clone()], &[line(0, 0)]));
        let two = [line(0, 0), line(1, 0)];
        assert!(!excused(vec![closed, path(1, 0)], &two));
        assert!(excused(vec![path(0, 500), path(1, 0)], &two));
    }

    #[test]
    fn a_frame_for_everybody_that_left_for_one_peer_may_wait_for_another() {
        let mut checker = with_frames(&[]);
        let frame = one_of_each()[0].frame(0);
        checker.came(STATION, &frame, (what(0), Recipient::All), at(0));
        checker.left(STATION, what(0), true);
        assert!(is_fine(&mut checker, &waiting(1), &[line(0, 0)], 1));
        checker.left(STATION, what(0), false);
        assert!(!is_fine(&mut checker, &waiting(1), &[line(0, 0)], 1));
    }
}
