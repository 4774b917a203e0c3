//! How long a round trip is (RFC 6298), as Linux reckons it.

use packtrain_proto::time::Duration;

/// Before anything was measured (RFC 6298, 2.1).
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// What data begin with where the handshake has measured nothing, since its SYN went again (5.7).
const RTO_FALLBACK: Duration = Duration::from_secs(3);
/// Linux' `TCP_RTO_MAX`.
const RTO_MAX: Duration = Duration::from_secs(120);
/// Linux' `TCP_RTO_MIN`. The RFC has a second there, and for the whole timeout; Linux means the part that the
/// variance stands for, so that on a long path that never varies 200 ms are left as well.
const VARIANCE_PART_MIN_NS: u64 = 200_000_000;

/// In nanoseconds: it is reckoned with for each acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttEstimator {
    smoothed_ns: Option<u64>,
    variance_ns: u64,
    min_ns: Option<u64>,
    opened_unmeasured: bool,
    /// How often the timer has expired since something was measured.
    expired: u32,
    /// It has since something new was acknowledged.
    has_expired: bool,
}

impl RttEstimator {
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed_ns.map(Duration::from_nanos)
    }

    pub fn min(&self) -> Option<Duration> {
        self.min_ns.map(Duration::from_nanos)
    }

    /// A round trip of what has been sent once (Karn's rule is the caller's). `shortest`: of the newest of
    /// what was acknowledged together, which waited least.
    pub fn sample(&mut self, rtt: Duration, shortest: Duration) {
        // Only this ends the longer wait (5, Karn): what went again says nothing of the round trip that made the timer expire.
        self.expired = 0;
        let [rtt, shortest] = [rtt, shortest].map(|time| time.as_nanos() as u64);
        self.min_ns = Some(self.min_ns.map_or(shortest, |min| min.min(shortest)));
        let Some(smoothed) = self.smoothed_ns else {
            self.smoothed_ns = Some(rtt);
            self.variance_ns = rtt / 2;
            return;
        };
        self.variance_ns = (self.variance_ns * 3 + smoothed.abs_diff(rtt)) / 4;
        self.smoothed_ns = Some((smoothed * 7 + rtt) / 8);
    }

    /// How long to wait for an acknowledgement.
    pub fn timeout(&self) -> Duration {
        let once = self.timeout_unprolonged();
        if self.expired == 0 {
            return once.min(RTO_MAX);
        }
        let prolonged = once.saturating_mul(1u32.checked_shl(self.expired).unwrap_or(u32::MAX));
        prolonged.min(RTO_MAX)
    }

    /// The same, as if the timer had not expired since something was measured.
    pub fn timeout_unprolonged(&self) -> Duration {
        let Some(smoothed) = self.smoothed_ns else {
            return match self.opened_unmeasured {
                true => RTO_FALLBACK,
                false => RTO_INITIAL,
            };
        };
        let part = (self.variance_ns * 4).max(VARIANCE_PART_MIN_NS);
        Duration::from_nanos(smoothed + part)
    }

    /// The connection is open, and nobody knows how long that took.
    pub fn opens_unmeasured(&mut self) {
        self.opened_unmeasured = true;
        self.begin_anew();
    }

    /// It did not expire for want of an acknowledgement of data.
    pub fn begin_anew(&mut self) {
        (self.expired, self.has_expired) = (0, false);
    }

    /// It has, and nothing new was acknowledged since.
    pub fn has_expired(&self) -> bool {
        self.has_expired
    }

    /// Nothing came: the next wait is twice as long (5.5).
    pub fn expire(&mut self) {
        self.expired += 1;
        self.has_expired = true;
    }

    /// Something new was acknowledged.
    pub fn progress(&mut self) {
        self.has_expired = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_timeout_is_a_second_then_three_round_trips_and_comes_near_to_one() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout(), ms(1000));
        rtt.sample(ms(400), ms(400));
        assert_eq!(rtt.timeout(), ms(400) + ms(800));
        (0..50).for_each(|_| rtt.sample(ms(400), ms(400)));
        assert_eq!(rtt.timeout(), ms(600));
    }

    #[test]
    fn who_had_to_ask_twice_to_be_heard_waits_three_seconds_until_something_is_measured() {
        let mut rtt = RttEstimator::default();
        rtt.expire();
        assert_eq!(rtt.timeout(), ms(2000));
        rtt.opens_unmeasured();
        assert_eq!(rtt.timeout(), ms(3000));
        rtt.sample(ms(100), ms(100));
        assert_eq!(rtt.timeout(), ms(300));
    }

    #[test]
    fn a_sample_moves_the_mean_by_an_eighth_and_the_variance_by_a_quarter() {
        let mut rtt = RttEstimator::default();
        rtt.sample(ms(80), ms(80));
        rtt.sample(ms(160), ms(150));
        assert_eq!(rtt.smoothed(), Some(ms(90)));
        assert_eq!(rtt.variance_ns, 50_000_000);
        assert_eq!(rtt.min(), Some(ms(80)));
        rtt.sample(ms(90), ms(70));
        assert_eq!(rtt.min(), Some(ms(70)));
    }

    #[test]
    fn each_expiry_doubles_the_wait_up_to_two_minutes_and_a_round_trip_ends_that() {
        let mut rtt = RttEstimator::default();
        rtt.sample(ms(100), ms(100));
        for wait in [300, 600, 1200, 2400] {
            assert_eq!(rtt.timeout(), ms(wait));
            rtt.expire();
        }
        (0..100).for_each(|_| rtt.expire());
        assert_eq!(rtt.timeout(), RTO_MAX);
        rtt.progress();
        assert_eq!((rtt.timeout(), rtt.has_expired()), (RTO_MAX, false));
        rtt.sample(ms(100), ms(100));
        assert_eq!(rtt.timeout(), ms(300));
    }
}
