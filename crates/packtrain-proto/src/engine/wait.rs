//! Frames that may wait for others: for how long, and what time does to it.

use super::paths::{link_of, train_max};
use super::{Engine, Event};
use crate::class::Action;
use crate::queue::frame::QueuedFrame;
use crate::time::Instant;
use crate::turns::Destination;
use crate::waiting::{Standing, Verdict};
use crate::wire::ethernet::HEADER_LEN;

impl Engine {
    /// One more frame of the host, for the traffic count.
    #[inline]
    pub(super) fn count_traffic(&mut self, now: Instant) {
        if self.waiting.traffic_count().is_some() {
            self.step_traffic_count(now);
            self.waiting.on_host_frame();
        }
    }

    /// Time has passed for waits.
    pub(super) fn step_waits(&mut self, now: Instant) {
        self.step_traffic_count(now);
        for (_, station) in self.dfap_stations.iter_mut() {
            station.queues.ripen(now);
        }
    }

    fn step_traffic_count(&mut self, now: Instant) {
        if self.waiting.handle_timeout(now) {
            let on = self.waiting.aggregates();
            self.events.push_back(Event::WaitsSwitched { on });
        }
    }

    /// What becomes of a frame that is put into the queue of this destination, and how long it may wait there. Asked
    /// as if it were when the frame came: one that is queued again does not wait anew.
    #[inline]
    pub(super) fn let_wait(
        &mut self,
        destination: Destination,
        frame: &mut QueuedFrame,
    ) -> Verdict {
        let action = self.classes.action(frame.class);
        if !action.pack.may_wait() {
            return Verdict::Leave;
        }
        let verdict = self.decide_wait(destination, frame, &action);
        frame.hold_until = match verdict {
            Verdict::Wait { at_most, .. } => Some(at_most),
            // Those that wait leave with it.
            Verdict::Leave | Verdict::Enough => None,
        };
        verdict
    }

    fn decide_wait(
        &mut self,
        destination: Destination,
        frame: &QueuedFrame,
        action: &Action,
    ) -> Verdict {
        let now = frame.enqueued;
        let links = &self.links;
        let (queues, mtu, has_backlog) = match destination {
            // Plain frames share no train with others.
            Destination::Plain(_) => return Verdict::Leave,
            Destination::Peer(slot) => {
                let peer = self.peers.get_mut(slot).expect("looked up just now");
                let mut open = peer.paths.iter().filter_map(|path| {
                    let link = link_of(links, path)?;
                    Some(link.local_queue_bytes() > 0 || !path.flight.has_room(0))
                });
                let has_backlog = open.any(|has| has);
                let mtu = train_max(links, peer).unwrap_or(0);
                (&mut peer.queues, mtu, has_backlog)
            }
            Destination::Station(slot) => {
                let station = self.dfap_stations.get_mut(slot);
                let station = station.expect("looked up just now");
                let home = links.iter().find(|link| link.id == station.home);
                let has_backlog = home.is_some_and(|link| link.local_queue_bytes() > 0);
                let mtu = home.map_or(0, |link| {
                    HEADER_LEN + station.data_max(link.frame_max() - HEADER_LEN)
                });
                (&mut station.queues, mtu, has_backlog)
            }
        };
        let packets = queues.frames() + 1;
        let bytes = queues.bytes() + frame.buffer.len();
        let standing = Standing {
            packets,
            bytes: bytes.saturating_sub(packets * HEADER_LEN),
            mtu: mtu.saturating_sub(HEADER_LEN),
            has_backlog,
        };
        self.waiting
            .decide(action, standing, queues.prospects(), now)
    }
}
