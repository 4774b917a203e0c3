//! T is measured: one interval after the other on a connection made for it.

use std::thread::JoinHandle;
use std::time::Duration;

use super::gaps::{Found, INTERVALS, Next, Tried, next};
use crate::clock::Clock;
use crate::linux::pace::probe::{self, FLIGHT_MAX, Probe, ProbeError};

/// Gaps of an interval that are looked at: as many as this time has, and no fewer or more than these.
const LASTS: Duration = Duration::from_millis(20);
const GAPS: (u128, u128) = (40, 256);
/// Of long ones fewer are enough, in so much time.
const LASTS_MOST: Duration = Duration::from_millis(80);
const GAPS_LEAST: u128 = 12;
/// A flight is spread over so much time at most: a longer one has fewer segments.
const FLIGHT_LASTS: Duration = Duration::from_millis(40);
/// After so long no other interval is begun. Ordinarily all is over in a tenth of it; where programs wait for a processor each flight waits with
/// them for its beginning.
const DEADLINE: Duration = Duration::from_secs(2);

/// A measurement under way.
#[derive(Debug)]
pub struct Measuring(JoinHandle<Result<Found, ProbeError>>);

impl Measuring {
    /// Of a T no shorter than `least`.
    pub fn begin(least: Duration) -> Result<Measuring, ProbeError> {
        probe::on_thread(move |probe| measure(probe, least)).map(Measuring)
    }

    pub fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for it.
    pub fn found(self) -> Result<Found, ProbeError> {
        match self.0.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn measure(probe: &mut Probe, least: Duration) -> Result<Found, ProbeError> {
    let clock = Clock::start();
    let begun = clock.now();
    let mut tried = Vec::with_capacity(INTERVALS.len());
    loop {
        let interval = match next(&tried, least) {
            Next::Found(found) => return Ok(found),
            Next::Try(_) if clock.now().since(begun) > DEADLINE => return Err(ProbeError::TooLate),
            Next::Try(interval) => interval,
        };
        let mut gaps = Vec::new();
        let (flight, wanted) = plan(interval);
        while gaps.len() < wanted {
            gaps.extend(probe.flight(interval, flight)?);
        }
        tried.push(Tried::new(interval, &gaps));
        tracing::debug!("{:?}", tried.last());
    }
}

/// Segments of a flight, which have one gap less, and gaps that are wanted.
fn plan(interval: Duration) -> (usize, usize) {
    let in_time = |time: Duration| time.as_nanos() / interval.as_nanos();
    let (least, most) = GAPS;
    let least = least.min(in_time(LASTS_MOST).max(GAPS_LEAST));
    let wanted = in_time(LASTS).clamp(least, most);
    let flight = 1 + in_time(FLIGHT_LASTS).clamp(4, FLIGHT_MAX as u128 - 1);
    (flight as usize, wanted as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::test_namespace::{in_namespace, run};

    #[test]
    fn all_intervals_together_are_over_soon() {
        let lasts = |interval: &Duration| {
            let (flight, wanted) = plan(*interval);
            assert!(flight <= FLIGHT_MAX && wanted >= 12, "{interval:?}");
            *interval * wanted.next_multiple_of(flight - 1) as u32
        };
        let all: Duration = INTERVALS.iter().map(lasts).sum();
        assert!(all < DEADLINE, "{all:?}");
    }

    #[test]
    fn t_is_measured_in_a_namespace_of_its_own_and_nothing_is_left() {
        in_namespace(|| {
            let state = || run("ip -s link") + &run("ip addr") + &run("ss -tan");
            let before = state();
            let found = Measuring::begin(Duration::from_millis(1)).unwrap().found();
            let found = found.unwrap();
            eprintln!("{found:?}");
            let sane = INTERVALS[0]..=INTERVALS[INTERVALS.len() - 1];
            assert!(sane.contains(&found.timer.interval), "{found:?}");
            assert!(found.used.interval >= Duration::from_millis(1), "{found:?}");
            assert!(found.used.gaps >= 12, "{found:?}");
            assert_eq!(state(), before);
            let threads = std::fs::read_dir("/proc/self/task").unwrap();
            let names =
                threads.filter_map(|it| std::fs::read_to_string(it.ok()?.path().join("comm")).ok());
            assert!(
                !names
                    .into_iter()
                    .any(|name| name.trim() == probe::THREAD_NAME)
            );
        });
    }
}
