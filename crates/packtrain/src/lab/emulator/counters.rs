//! What a wire has carried and dropped, as commands show it.

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::net::medium::StationCounters;
use packtrain_sim::net::wire::WireCounters;
use serde::{Deserialize, Serialize};

/// A wire, and each of its directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WireStatus {
    pub name: String,
    /// Of the interfaces at its two ends; a switch's port has the wire's.
    pub carrier: bool,
    pub directions: [DirectionStatus; 2],
}

/// Since the lab was made, and over the last second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionStatus {
    pub from: String,
    pub to: String,
    /// Frames vanish, and nobody is told.
    pub silent: bool,
    pub offered_frames: u64,
    pub offered_bytes: u64,
    /// What has left the queue and was sent, lost on the way or not.
    pub sent_frames: u64,
    pub sent_bytes: u64,
    pub arrived_frames: u64,
    pub duplicated_frames: u64,
    pub altered_frames: u64,
    pub marked_frames: u64,
    pub dropped: Dropped,
    /// Of the direction into a hub: what frames met on its medium, behind the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<HubStatus>,
    pub queued_bytes: u64,
    /// How long something was being sent, in all; into a hub: by whomever.
    pub busy_s: f64,
    /// Of the last whole second.
    pub bits_per_second: u64,
    pub frames_per_second: u64,
    pub drops_per_second: u64,
    /// Share of that second in which something was being sent, into a hub by whomever; 0 where the wire has no rate.
    pub utilisation: f64,
}

/// How the station at a hub's port has fared on the shared medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubStatus {
    /// Heard by everybody else.
    pub sent_frames: u64,
    pub sent_bytes: u64,
    /// Frames whose first attempt had to wait for somebody else.
    pub deferred_frames: u64,
    /// Attempts that failed.
    pub collisions: u64,
    /// Frames given up after 16 attempts.
    pub given_up_frames: u64,
}

impl DirectionStatus {
    /// Adds what happened at the station that this direction leads to.
    pub fn meets(&mut self, station: &StationCounters) {
        self.dropped.queue_full += station.queue_full;
        self.dropped.cut += station.cut;
        self.dropped.collisions += station.excessive_collisions;
        self.hub = Some(HubStatus {
            sent_frames: station.sent_frames,
            sent_bytes: station.sent_bytes,
            deferred_frames: station.deferred,
            collisions: station.collisions,
            given_up_frames: station.excessive_collisions,
        });
    }
}

/// Frames, by why they went no further.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    pub queue_full: u64,
    pub codel: u64,
    /// By random early detection.
    #[serde(default)]
    pub early: u64,
    pub cut: u64,
    pub loss: u64,
    pub bit_errors: u64,
    /// Offload metadata that contradicts the frame.
    pub bad_offload: u64,
    /// Given up by a hub's station after 16 attempts.
    pub collisions: u64,
    /// The host sent it and the emulator came too late for it: no property of the wire.
    pub emulator_late: u64,
}

impl Dropped {
    pub fn total(&self) -> u64 {
        self.queue_full
            + self.codel
            + self.early
            + self.cut
            + self.loss
            + self.bit_errors
            + self.bad_offload
            + self.collisions
            + self.emulator_late
    }
}

/// Turns counters into rates, once a second.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    since: Instant,
    before: WireCounters,
    bits_per_second: u64,
    frames_per_second: u64,
    drops_per_second: u64,
    utilisation: f64,
}

impl Meter {
    /// Looks at the counters; to be called every second.
    pub fn look(&mut self, now: Instant, counters: &WireCounters) {
        let seconds = now.since(self.since).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let per_second = |now: u64, before: u64| ((now - before) as f64 / seconds) as u64;
        let before = &self.before;
        self.bits_per_second = 8 * per_second(counters.left_bytes, before.left_bytes);
        self.frames_per_second = per_second(counters.left, before.left);
        self.drops_per_second = per_second(counters.dropped(), before.dropped());
        let busy = counters.busy.saturating_sub(before.busy);
        self.utilisation = (busy.as_secs_f64() / seconds).min(1.0);
        self.since = now;
        self.before = *counters;
    }

    pub fn status(&self, counters: &WireCounters, queued_bytes: usize) -> DirectionStatus {
        DirectionStatus {
            offered_frames: counters.offered,
            offered_bytes: counters.offered_bytes,
            sent_frames: counters.left,
            sent_bytes: counters.left_bytes,
            arrived_frames: counters.arriving,
            duplicated_frames: counters.more_copies,
            altered_frames: counters.altered,
            marked_frames: counters.marked,
            dropped: Dropped {
                queue_full: counters.queue_full,
                codel: counters.codel,
                early: counters.early,
                cut: counters.cut,
                loss: counters.lost,
                bit_errors: counters.bit_errors + counters.corrupted,
                bad_offload: counters.bad_offload,
                collisions: 0,
                emulator_late: 0,
            },
            queued_bytes: queued_bytes as u64,
            busy_s: counters.busy.as_secs_f64(),
            bits_per_second: self.bits_per_second,
            frames_per_second: self.frames_per_second,
            drops_per_second: self.drops_per_second,
            utilisation: self.utilisation,
            ..DirectionStatus::default()
        }
    }
}

/// Between two looks.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_last_look_and_totals_of_all_time() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut meter = Meter::default();
        let mut counters = WireCounters {
            left: 500,
            ..WireCounters::default()
        };
        meter.look(at(1000), &counters);
        counters.left = 1500;
        counters.left_bytes = 250_000;
        counters.lost = 40;
        counters.busy = Duration::from_millis(500);
        meter.look(at(3000), &counters);
        let status = meter.status(&counters, 7);
        assert_eq!(status.sent_frames, 1500);
        assert_eq!(
            (status.frames_per_second, status.drops_per_second),
            (500, 20)
        );
        assert_eq!(
            (status.bits_per_second, status.queued_bytes),
            (1_000_000, 7)
        );
        assert!((status.utilisation - 0.25).abs() < 1e-9);
        assert_eq!(status.dropped.total(), 40);
    }

    #[test]
    fn what_a_hubs_station_drops_is_dropped_in_the_direction_to_it() {
        let station = StationCounters {
            sent_frames: 100,
            queue_full: 1,
            cut: 2,
            excessive_collisions: 3,
            collisions: 70,
            deferred: 40,
            ..StationCounters::default()
        };
        let wire = WireCounters {
            lost: 4,
            ..WireCounters::default()
        };
        let mut status = Meter::default().status(&wire, 0);
        assert_eq!(status.hub, None);
        status.meets(&station);
        assert_eq!(status.dropped.total(), 10);
        let hub = status.hub.unwrap();
        assert_eq!((hub.sent_frames, hub.deferred_frames), (100, 40));
        assert_eq!((hub.collisions, hub.given_up_frames), (70, 3));
    }
}
