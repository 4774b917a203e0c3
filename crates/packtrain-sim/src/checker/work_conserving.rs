//! No link stands idle while frames wait that it could carry.
//!
//! A link that the engine itself calls open to a peer ([`PathState::Open`]) has to put a train on its
//! wire within a window, if frames for that peer wait all the time. The window is 300 ms and two of the
//! longest round trips of its segment, each with its serialisation at the link's rate and the lateness
//! of the host: what a bounded number of bytes in flight may have to wait for its acknowledgement, with
//! room for one that was lost and asked for again. Where the engine has measured longer ones by any of its
//! links to the peer, those: nothing may be too far ahead of the oldest train, so all may wait until one
//! counts as late that had to stand in a queue there, and for another that only the same link can carry.
//!
//! Where each flow keeps to a link ([`Balance::keeps_flows`](packtrain_proto::config::Balance::keeps_flows)), frames wait for
//! that one alone.
//!
//! A link that has not shown its rate yet gets no more than 16 KB before some of it is acknowledged. Where that was taken by a cut, or
//! was too long to pass, it counts as lost after 200 ms or four round trips, and where nothing was acknowledged since the last time that it was so,
//! after up to four times as long: it may be idle until then.
//!
//! Where nothing may be lost, the oldest train may be lost several times in a row before it has come, and what is too far ahead of it waits
//! as often for it to be missed.
//!
//! What a class lets wait for others, and may wait still ([`super::held_within`]), waits for no link. Nor does that of which nothing may be
//! lost, while there is no room for a copy of one more train.
//!
//! Not asked: a link that was cut in that time, one whose local queue or window of bytes in flight is
//! full, one that has not answered its first trains yet, one that is to leave, and one whose path has
//! another state: the engine says why it is out.

use packtrain_proto::config::{LinkId, NodeId};
use packtrain_proto::stats::{PathSnapshot, PathState, PeerSnapshot, Snapshot};
use packtrain_proto::time::{Duration, Instant};

use crate::net::network::PortId;
use crate::simulator::StationId;

const WINDOW: Duration = Duration::from_millis(300);
/// So much may be out on a link that has not shown its rate.
const UNPROVEN_BYTES: u64 = 16 << 10;
/// When all of that counts as lost, at first …
const SILENCE_MIN: Duration = Duration::from_millis(200);
const SILENCE_ROUND_TRIPS: u32 = 4;
/// … and as many times as late at most, when nothing was acknowledged in between.
const SILENCE_TIMES: u32 = 4;
/// So often in a row a train is lost of those of which nothing may be, and missed after two round trips.
const LOST_IN_A_ROW: u32 = 4;

/// A link as it is seen from outside its engine.
#[derive(Clone, Copy, Debug)]
pub struct LinkSeen {
    pub station: StationId,
    pub id: LinkId,
    pub port: PortId,
    pub retiring_since: Option<Instant>,
    pub local_queue_bytes: usize,
    /// Since when its segment has been whole; `None` while it is not.
    pub well_since: Option<Instant>,
    /// Since when frames vanish there, and nobody sees it; and whether those do that are sent to this station.
    pub silent_since: Option<(Instant, bool)>,
    /// Longest that an answer takes when all is well.
    pub patience: Duration,
    /// Some class lets nothing be lost, and its links lose.
    pub repeats_losses: bool,
    /// Some class lets nothing be lost, and there is no room for a copy of one more train.
    pub waits_for_copies: bool,
}

#[derive(Debug)]
struct Use {
    station: StationId,
    port: PortId,
    peer: NodeId,
    /// When it was last busy, or had a reason not to be.
    excused_at: Instant,
}

#[derive(Debug, Default)]
pub struct WorkConserving {
    uses: Vec<Use>,
    /// By station: since when frames wait in its engine without a break.
    waiting_since: Vec<Option<Instant>>,
    last_trains: Vec<(StationId, PortId, Instant)>,
}

impl WorkConserving {
    pub fn waits(&mut self, station: StationId, waiting: bool, now: Instant) {
        if self.waiting_since.len() <= station.0 {
            self.waiting_since.resize(station.0 + 1, None);
        }
        let since = &mut self.waiting_since[station.0];
        *since = waiting.then(|| since.unwrap_or(now));
    }

    /// A train with something in it is on the wire.
    pub fn train_left(&mut self, station: StationId, port: PortId, now: Instant) {
        let known = self
            .last_trains
            .iter_mut()
            .find(|(s, p, _)| (*s, *p) == (station, port));
        match known {
            Some((_, _, at)) => *at = now,
            None => self.last_trains.push((station, port, now)),
        }
    }

    /// Looks at one link, often. `is_hold`: whether all that waits for a peer may.
    pub fn look(
        &mut self,
        link: &LinkSeen,
        snapshot: &Snapshot,
        is_hold: impl Fn(&PeerSnapshot) -> bool,
        now: Instant,
    ) -> Result<(), String> {
        let waiting_since = self.waiting_since.get(link.station.0).copied().flatten();
        let last_train = self
            .last_trains
            .iter()
            .find(|(s, p, _)| (*s, *p) == (link.station, link.port))
            .map_or(Instant::ZERO, |(_, _, at)| *at);
        for peer in &snapshot.peers {
            let excused = excused(link, peer) || is_hold(peer);
            let usage = self.use_of(link, peer.node_id, now);
            if excused {
                usage.excused_at = now;
                continue;
            }
            let (Some(waiting), Some(well)) = (waiting_since, link.well_since) else {
                usage.excused_at = now;
                continue;
            };
            let idle_since = usage.excused_at.max(waiting).max(well).max(last_train);
            let measured = peer.paths.iter().filter_map(|path| path.round_trip).max();
            let measured = measured.unwrap_or_default();
            let silence = silence_max(link, peer, measured);
            let round_trips = match link.repeats_losses {
                true => 2 * (1 + LOST_IN_A_ROW),
                false => 2,
            };
            let window = WINDOW.max(silence) + round_trips * measured.max(link.patience);
            if now.since(idle_since) > window {
                return Err(format!(
                    "link {} is open to {:?} and idle since {idle_since:?}, for longer than {window:?}, \
                     while {} frames wait",
                    link.id.0, peer.address, peer.queued_frames
                ));
            }
        }
        Ok(())
    }

    fn use_of(&mut self, link: &LinkSeen, peer: NodeId, now: Instant) -> &mut Use {
        let is_it = |u: &Use| (u.station, u.port, u.peer) == (link.station, link.port, peer);
        let at = self.uses.iter().position(is_it).unwrap_or_else(|| {
            self.uses.push(Use {
                station: link.station,
                port: link.port,
                peer,
                excused_at: now,
            });
            self.uses.len() - 1
        });
        &mut self.uses[at]
    }
}

/// How long it may take until what is out on this link counts as lost, where it gets nothing before; zero: it does.
fn silence_max(link: &LinkSeen, peer: &PeerSnapshot, round_trip: Duration) -> Duration {
    let path = peer.paths.iter().find(|path| path.link == link.id);
    let is_unproven =
        |path: &&PathSnapshot| path.rate_bps.is_none() && path.in_flight_bytes >= UNPROVEN_BYTES;
    path.filter(is_unproven).map_or(Duration::ZERO, |_| {
        SILENCE_MIN.max(round_trip * SILENCE_ROUND_TRIPS) * SILENCE_TIMES
    })
}

/// Whether the link has a reason not to carry anything to this peer at this moment.
fn excused(link: &LinkSeen, peer: &PeerSnapshot) -> bool {
    let path = peer.paths.iter().find(|path| path.link == link.id);
    let Some(path) = path.filter(|path| path.state == PathState::Open && peer.up) else {
        return true;
    };
    path.queued_frames == 0
        || link.retiring_since.is_some()
        || link.waits_for_copies
        || link.local_queue_bytes > 0
        || path.in_flight_bytes >= path.window_bytes
        || path.in_flight_bytes > 0 && path.round_trip.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::config::Config;
    use packtrain_proto::engine::Engine;
    use packtrain_proto::queue::pressure::AutoChoice;
    use packtrain_proto::stats::{HoldSnapshot, PathMeasures, PathSize};
    use packtrain_proto::wire::ethernet::MacAddr;

    const STATION: StationId = StationId(0);
    const PORT: PortId = PortId {
        segment: 0,
        port: 0,
    };
    /// In flight without a round trip so far.
    const UNANSWERED: u64 = 1;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn snapshot(state: PathState, in_flight_bytes: u64) -> Snapshot {
        let config = Config::new(NodeId(1), MacAddr([2; 6]));
        let mut snapshot = Engine::new(config, Instant::ZERO).snapshot(Instant::ZERO);
        let path = PathSnapshot {
            link: LinkId(0),
            remote_link: LinkId(0),
            remote_address: MacAddr([4; 6]),
            round_trip: (in_flight_bytes != UNANSWERED).then_some(Duration::from_millis(1)),
            round_trip_min: None,
            rate_bps: None,
            in_flight_bytes,
            window_bytes: 1000,
            lost_trains: 0,
            liveness: None,
            failures: 0,
            trains_tx: 0,
            queued_frames: 9,
            state,
            measures: PathMeasures::default(),
            size: PathSize::default(),
            direct: None,
            direct_mark: None,
            direct_marks_refused: Vec::new(),
            direct_stripes: false,
            direct_late: 0,
            reordering_seen: false,
        };
        snapshot.peers.push(PeerSnapshot {
            node_id: NodeId(2),
            address: MacAddr([6; 6]),
            up: true,
            away: false,
            software: String::new(),
            capabilities: 0,
            mtu: 1500,
            last_heard: Duration::ZERO,
            paths: vec![path],
            queued_frames: 9,
            queued_bytes: 9000,
            tier: None,
            hold: HoldSnapshot::default(),
            auto: AutoChoice::HasRoom,
            engine_because: None,
            dictionary: None,
            dictionary_unused: None,
        });
        snapshot
    }

    /// Looks every 20 ms for a second; when it objected first, and what it was shown then.
    fn objects_at(mut seen: impl FnMut(u64, &mut WorkConserving) -> (LinkSeen, Snapshot)) -> u64 {
        let mut checker = WorkConserving::default();
        checker.waits(STATION, true, at(0));
        (0..1000)
            .step_by(20)
            .find(|&ms| {
                let (link, snapshot) = seen(ms, &mut checker);
                let look = checker.look(&link, &snapshot, |_| false, at(ms));
                look.is_err()
            })
            .unwrap_or(u64::MAX)
    }

    fn link() -> LinkSeen {
        LinkSeen {
            station: STATION,
            id: LinkId(0),
            port: PORT,
            retiring_since: None,
            local_queue_bytes: 0,
            well_since: Some(Instant::ZERO),
            silent_since: None,
            patience: Duration::from_millis(10),
            repeats_losses: false,
            waits_for_copies: false,
        }
    }

    #[test]
    fn an_open_link_may_be_idle_for_its_window_and_not_longer() {
        let open = || snapshot(PathState::Open, 0);
        assert_eq!(objects_at(|_, _| (link(), open())), 340);
        let one_train = |ms, checker: &mut WorkConserving| {
            if ms == 300 {
                checker.train_left(STATION, PORT, at(ms));
            }
            (link(), open())
        };
        assert_eq!(objects_at(one_train), 640);
        let nothing_waits = |ms, checker: &mut WorkConserving| {
            checker.waits(STATION, ms != 200, at(ms));
            (link(), open())
        };
        assert_eq!(objects_at(nothing_waits), 560);
    }

    #[test]
    fn what_may_wait_for_others_waits_for_no_link() {
        let mut checker = WorkConserving::default();
        checker.waits(STATION, true, at(0));
        let mut look = |ms, held| {
            let open = snapshot(PathState::Open, 0);
            checker.look(&link(), &open, |_| held, at(ms)).is_ok()
        };
        assert!((0..1000).step_by(20).all(|ms| look(ms, true)));
        assert!((1000..1300).step_by(20).all(|ms| look(ms, false)));
        assert!(!look(1320, false));
    }

    #[test]
    fn a_long_round_trip_by_another_link_is_waited_for() {
        let slow = |_, _: &mut WorkConserving| {
            let mut snapshot = snapshot(PathState::Open, 0);
            let path = PathSnapshot {
                link: LinkId(1),
                round_trip: Some(Duration::from_millis(100)),
                ..snapshot.peers[0].paths[0].clone()
            };
            snapshot.peers[0].paths.push(path);
            (link(), snapshot)
        };
        assert_eq!(objects_at(slow), 520);
    }

    #[test]
    fn where_nothing_may_be_lost_a_train_is_missed_several_times() {
        let lossless = LinkSeen {
            repeats_losses: true,
            ..link()
        };
        let open = |_, _: &mut WorkConserving| (lossless, snapshot(PathState::Open, 0));
        assert_eq!(objects_at(open), 420);
    }

    #[test]
    fn what_was_lost_of_a_link_that_has_not_shown_its_rate_is_missed_first() {
        let unproven = |in_flight_bytes| {
            move |_, _: &mut WorkConserving| {
                let mut snapshot = snapshot(PathState::Open, in_flight_bytes);
                snapshot.peers[0].paths[0].window_bytes = 32 << 10;
                (link(), snapshot)
            }
        };
        assert_eq!(objects_at(unproven(UNPROVEN_BYTES - 1)), 340);
        assert_eq!(objects_at(unproven(UNPROVEN_BYTES)), 840);
    }

    #[test]
    fn a_link_with_a_reason_is_left_alone() {
        let never = |link: LinkSeen, snapshot: Snapshot| {
            assert_eq!(objects_at(|_, _| (link, snapshot.clone())), u64::MAX);
        };
        for state in [
            PathState::Closed,
            PathState::Joining,
            PathState::Silent,
            PathState::Held,
            PathState::Retiring,
            PathState::Backup,
            PathState::TooSlow,
        ] {
            never(link(), snapshot(state, 0));
        }
        never(link(), snapshot(PathState::Open, 1000));
        let mut for_others = snapshot(PathState::Open, 0);
        for_others.peers[0].paths[0].queued_frames = 0;
        never(link(), for_others);
        never(link(), snapshot(PathState::Open, UNANSWERED));
        let open = snapshot(PathState::Open, 0);
        never(
            LinkSeen {
                local_queue_bytes: 1,
                ..link()
            },
            open.clone(),
        );
        never(
            LinkSeen {
                well_since: None,
                ..link()
            },
            open.clone(),
        );
        never(
            LinkSeen {
                waits_for_copies: true,
                ..link()
            },
            open.clone(),
        );
        never(
            LinkSeen {
                retiring_since: Some(at(0)),
                ..link()
            },
            open,
        );
    }
}
