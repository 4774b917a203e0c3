//! What may come out of order by what is promised: what a receiver does not wait for any longer (FENCE and BEHIND in
//! docs/wire-format.md).
//!
//! *No room.* Trains that wait for direct frames, or for those of another lane, are let go when those that come would find no
//! room. What was under way then may come behind what was let go.
//!
//! *Lost.* When no direct frame has come for 20 ms and a round trip, those that are missing are lost. One that comes all
//! the same, after such a silence, may come behind what has waited for it: a frame of many segments takes as long on a wire of
//! a few Mbit/s.

use packtrain_proto::time::{Duration, Instant};

use crate::simulator::StationId;

/// Longer than this, and a round trip, nobody waits for direct frames while none come.
const QUIET: Duration = Duration::from_millis(20);

/// Of one station.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    let_go_at: Option<Instant>,
    /// When the last direct frame came.
    direct_came_at: Instant,
    /// The last time in which none came for long, and how long that is.
    silence: Option<(Instant, Instant, Duration)>,
}

#[derive(Debug)]
pub struct Excused {
    waits: Vec<Waits>,
}

impl Excused {
    pub fn new(stations: usize) -> Excused {
        Excused {
            waits: vec![Waits::default(); stations],
        }
    }

    /// It says that it had no room for more that would wait.
    pub fn let_go(&mut self, station: StationId, now: Instant) {
        self.waits[station.0].let_go_at = Some(now);
    }

    /// A direct frame has come to it, by a way there and back that takes so long at most.
    pub fn direct_came(&mut self, station: StationId, round_trip: Duration, now: Instant) {
        let waits = &mut self.waits[station.0];
        let last = std::mem::replace(&mut waits.direct_came_at, now);
        let long = QUIET + round_trip;
        if now.since(last) >= long {
            waits.silence = Some((last, now, long));
        }
    }

    /// Whether what was sent then may come behind what was sent later.
    pub fn may_be_overtaken(&self, station: StationId, sent_at: Instant, is_direct: bool) -> bool {
        let waits = &self.waits[station.0];
        let has_no_room = waits.let_go_at.is_some_and(|at| sent_at <= at);
        let is_missed = |(since, until, long): (Instant, Instant, Duration)| {
            until.since(since.max(sent_at)) >= long
        };
        has_no_room || is_direct && waits.silence.is_some_and(is_missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: StationId = StationId(1);
    const ROUND_TRIP: Duration = Duration::from_millis(5);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn what_was_under_way_when_there_was_no_room_is_excused_and_nothing_later() {
        let mut excused = Excused::new(2);
        assert!(!excused.may_be_overtaken(STATION, at(10), false));
        excused.let_go(STATION, at(20));
        assert!(excused.may_be_overtaken(STATION, at(10), false));
        assert!(!excused.may_be_overtaken(STATION, at(21), true));
        assert!(!excused.may_be_overtaken(StationId(0), at(10), false));
    }

    #[test]
    fn a_direct_frame_is_excused_that_was_under_way_in_a_long_silence() {
        let mut excused = Excused::new(2);
        for ms in [100, 124, 149] {
            excused.direct_came(STATION, ROUND_TRIP, at(ms));
        }
        // From 124 to 149.
        assert!(excused.may_be_overtaken(STATION, at(110), true));
        assert!(excused.may_be_overtaken(STATION, at(124), true));
        assert!(!excused.may_be_overtaken(STATION, at(125), true));
        assert!(!excused.may_be_overtaken(STATION, at(110), false));
    }
}
