//! The least round trip of a link: what a train takes that waits for no other.
//!
//! A bound of rate × least round trip, and a little, keeps a link busy only if a queue stands that long further down. A least
//! that was merely the smallest of the last seconds would have that queue in it, the bound would grow by it, and the queue by
//! the bound: in two minutes from 20 ms to half a second. So, as in BBR (Cardwell et al. 2016), a least that nothing has
//! confirmed for [`CONFIRMED_FOR`] is looked for: for a round trip no more is out than half of what a link has that keeps up.
//! What a train takes then, it takes without waiting. The same finds a path that has become longer, which is not to be
//! told from a queue otherwise (BBR calls it ProbeRTT); where each train takes half as long again as it should, it is looked for at once.

use crate::time::{Duration, Instant};

/// For how long a least is believed that no train has come near.
const CONFIRMED_FOR: Duration = Duration::from_secs(5);
/// Or so many round trips, if that is longer: looking takes one of them.
const CONFIRMED_FOR_ROUNDS: u32 = 40;
/// How near: an eighth of it, and what clocks and processors add.
const NEAR: Duration = Duration::from_micros(100);
/// After so many round trips in a row of which each train is late, it is looked for, …
const LATE_ROUNDS: u8 = 3;
/// … but not again so soon.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// What trains may be late by besides: they may wait for a processor.
const LATE: Duration = Duration::from_millis(4);
/// Where the local queue always stands, no train is alone: the least of so much time and two round trips is taken then.
const PROBE_MIN: Duration = Duration::from_millis(4);

#[derive(Debug, Default)]
pub(super) struct RoundTripMin {
    least: Option<Duration>,
    /// When a train came as fast, or nearly.
    confirmed_at: Instant,
    late_rounds: u8,
    probed_at: Instant,
    probe: Option<Probe>,
}

#[derive(Debug)]
struct Probe {
    since: Instant,
    /// Of trains that left since.
    least: Option<Duration>,
}

impl RoundTripMin {
    pub fn get(&self) -> Option<Duration> {
        self.least
    }

    /// No more than half of what a link has out that keeps up is to be out now.
    pub fn is_probed(&self) -> bool {
        self.probe.is_some()
    }

    /// A train that left at `sent_at` has taken so long. `is_alone`: no more was out with it than may be when the least is
    /// looked for. `smooth`: what trains take on average.
    pub fn on_sample(
        &mut self,
        round_trip: Duration,
        (sent_at, is_alone): (Instant, bool),
        smooth: Duration,
        now: Instant,
    ) {
        let Some(least) = self.least else {
            return self.set(round_trip, now);
        };
        if round_trip <= least {
            return self.set(round_trip, now);
        }
        if round_trip <= least + least / 8 + NEAR {
            self.confirmed_at = now;
            self.probe = None;
            return;
        }
        let believed_for = CONFIRMED_FOR.max(smooth * CONFIRMED_FOR_ROUNDS);
        let is_old = now.since(self.confirmed_at) > believed_for;
        if is_alone && (is_old || self.probe.is_some()) {
            return self.set(round_trip, now);
        }
        match &mut self.probe {
            None if is_old => self.begin(now),
            None => {}
            Some(probe) if sent_at >= probe.since => {
                let least = probe
                    .least
                    .map_or(round_trip, |least| least.min(round_trip));
                probe.least = Some(least);
                if now.since(probe.since) > smooth * 2 + PROBE_MIN {
                    self.set(least, now);
                }
            }
            Some(_) => {}
        }
    }

    /// A round trip is over, of which the fastest train took so long. `little`: what may stand on the way.
    pub fn on_round(&mut self, fastest: Duration, little: Duration, now: Instant) {
        let Some(least) = self.least else { return };
        let is_late = fastest > least + least / 2 + little + LATE;
        self.late_rounds = if is_late { self.late_rounds + 1 } else { 0 };
        let may_probe =
            now.since(self.probed_at) > PROBE_INTERVAL.max(least * CONFIRMED_FOR_ROUNDS);
        if self.late_rounds >= LATE_ROUNDS && may_probe && self.probe.is_none() {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Instant) {
        self.late_rounds = 0;
        self.probed_at = now;
        self.probe = Some(Probe {
            since: now,
            least: None,
        });
    }

    fn set(&mut self, least: Duration, now: Instant) {
        self.least = Some(least);
        self.confirmed_at = now;
        self.late_rounds = 0;
        self.probe = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u32) -> Instant {
        Instant::ZERO + MS * ms
    }

    /// One that leaves so that it comes now.
    fn sample(least: &mut RoundTripMin, takes: Duration, is_alone: bool, now: Instant) {
        let sent_at = Instant::from_nanos(now.as_nanos() - takes.as_nanos() as u64);
        least.on_sample(takes, (sent_at, is_alone), takes, now);
    }

    #[test]
    fn what_nothing_confirms_is_probed_and_found_with_little_out() {
        let mut least = RoundTripMin::default();
        sample(&mut least, 10 * MS, false, at(100));
        sample(&mut least, 15 * MS, false, at(5100));
        assert_eq!((least.get(), least.is_probed()), (Some(10 * MS), false));
        sample(&mut least, 15 * MS, false, at(5101));
        assert!(least.is_probed());
        // What left before says nothing of it, and what is not alone may have waited.
        sample(&mut least, 15 * MS, false, at(5105));
        assert!(least.is_probed());
        sample(&mut least, 12 * MS, true, at(5120));
        assert_eq!((least.get(), least.is_probed()), (Some(12 * MS), false));
    }

    #[test]
    fn who_never_is_alone_looks_for_two_round_trips() {
        let mut least = RoundTripMin::default();
        sample(&mut least, 10 * MS, false, at(100));
        sample(&mut least, 30 * MS, false, at(5101));
        assert!(least.is_probed());
        for (takes, now) in [(25, 5130), (22, 5140), (28, 5145)] {
            sample(&mut least, takes * MS, false, at(now));
            assert_eq!(least.get(), Some(10 * MS));
        }
        sample(&mut least, 26 * MS, false, at(5170));
        assert_eq!((least.get(), least.is_probed()), (Some(22 * MS), false));
    }

    #[test]
    fn what_comes_near_confirms_it_and_what_is_less_is_it() {
        let mut least = RoundTripMin::default();
        for second in 1..60 {
            sample(&mut least, 10 * MS, false, at(1000 * second));
            sample(&mut least, 11 * MS, false, at(1000 * second + 1));
            sample(&mut least, 30 * MS, true, at(1000 * second + 2));
            assert_eq!((least.get(), least.is_probed()), (Some(10 * MS), false));
        }
        sample(&mut least, 9 * MS, false, at(61_000));
        assert_eq!(least.get(), Some(9 * MS));
    }

    #[test]
    fn three_late_round_trips_in_a_row_have_it_looked_for_but_not_all_the_time() {
        let mut least = RoundTripMin::default();
        sample(&mut least, 10 * MS, false, at(2000));
        let mut looks = 0;
        for round in 0..100 {
            let now = at(2100 + 30 * round);
            let looked = least.is_probed();
            least.on_round(if round % 4 == 3 { 10 } else { 30 } * MS, MS, now);
            looks += u32::from(least.is_probed() && !looked);
            if least.is_probed() {
                sample(&mut least, 10 * MS, true, now);
            }
        }
        // In three seconds.
        assert!((2..=4).contains(&looks), "{looks}");
        let mut least = RoundTripMin::default();
        sample(&mut least, 10 * MS, false, at(2000));
        for round in 0..100 {
            let late = if round % 3 == 2 { 10 } else { 30 } * MS;
            least.on_round(late, MS, at(2100 + 30 * round));
            assert!(!least.is_probed());
        }
    }
}
