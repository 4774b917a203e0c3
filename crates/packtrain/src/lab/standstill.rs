//! Times at which the machine itself stood still.
//!
//! A virtual machine's processors wait for the host's, one or all of them, whether they have something to do or have just
//! been woken: for 3 to 10 ms now and then, some time in each second where the host is busy. To what is measured
//! meanwhile that is a gap, and nobody's here. A thread on each processor that goes before everything else sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity};

use super::{now, pause};
use crate::linux::scheduling::{run_before_all, stay_on};

const TICK: Duration = Duration::from_millis(1);
/// Who was not seen to run for less may just have waited for the next look.
const NOTED: Duration = Duration::from_millis(2);

/// A processor was not seen to run from then on, for so long: a millisecond more than it stood still at most. What interrupts do
/// counts as well, for nothing goes before them.
#[derive(Clone, Copy, Debug)]
pub struct Standstill {
    pub from: Instant,
    pub lasted: Duration,
}

/// What was seen of all processors.
#[derive(Clone, Debug, Default)]
pub struct Standstills {
    seen: Vec<Standstill>,
    processors: usize,
    watched: Duration,
}

impl Standstills {
    /// The longest of those that lasted into this time, or began in it; zero where none did.
    pub fn longest(&self, from: Instant, until: Instant) -> Duration {
        let touches = |it: &&Standstill| it.from <= until && it.from + it.lasted >= from;
        let lasted = self.seen.iter().filter(touches).map(|it| it.lasted);
        lasted.max().unwrap_or_default()
    }

    /// The share of the processors' time, between the beginning and the end of the watch.
    pub fn share(&self) -> f64 {
        let lasted: Duration = self.seen.iter().map(|it| it.lasted).sum();
        let time = self.watched.as_secs_f64() * self.processors as f64;
        if time > 0.0 {
            lasted.as_secs_f64() / time
        } else {
            0.0
        }
    }
}

/// Looks, from its beginning to its end.
#[derive(Debug)]
pub struct Watch {
    begun: Instant,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Standstill>>>,
}

impl Watch {
    /// Where the right to go before others is missing, ordinary threads are seen to stand still as well.
    pub fn begin() -> Watch {
        let is_over = Arc::new(AtomicBool::new(false));
        let processors = sched_getaffinity(None).unwrap_or_default();
        let ours = (0..CpuSet::MAX_CPU).filter(|&cpu| processors.is_set(cpu));
        let threads = ours.map(|cpu| {
            let is_over = is_over.clone();
            spawn(move || look(cpu, &is_over))
        });
        Watch {
            begun: now(),
            threads: threads.collect(),
            is_over,
        }
    }

    pub fn end(mut self) -> Standstills {
        self.is_over.store(true, Ordering::Relaxed);
        let (processors, watched) = (self.threads.len(), self.begun.elapsed());
        let seen = self.threads.drain(..).flat_map(|thread| {
            let seen = thread.join();
            seen.expect("who only looks has no reason to panic")
        });
        Standstills {
            seen: seen.collect(),
            processors,
            watched,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn look(cpu: usize, is_over: &AtomicBool) -> Vec<Standstill> {
    let _ = stay_on(cpu).and_then(|()| run_before_all());
    let looks = std::iter::from_fn(|| {
        pause(TICK);
        (!is_over.load(Ordering::Relaxed)).then(now)
    });
    between(std::iter::once(now()).chain(looks))
}

/// Where two looks that follow each other are too far apart.
fn between(looks: impl Iterator<Item = Instant>) -> Vec<Standstill> {
    let mut before = None;
    let seen = looks.filter_map(|at| {
        let from = before.replace(at)?;
        let lasted = at.saturating_duration_since(from);
        (lasted >= NOTED).then_some(Standstill { from, lasted })
    });
    seen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_counts_that_reaches_into_the_time() {
        let start = now();
        let ms = |count| start + Duration::from_millis(count);
        let of = |from, lasted| Standstill {
            from: ms(from),
            lasted: Duration::from_millis(lasted),
        };
        let seen = Standstills {
            seen: vec![of(10, 5), of(20, 3), of(40, 9)],
            processors: 2,
            watched: Duration::from_millis(100),
        };
        let longest = |from, until| seen.longest(ms(from), ms(until)).as_millis();
        assert_eq!(longest(0, 100), 9);
        assert_eq!(longest(14, 30), 5);
        assert_eq!(longest(16, 39), 3);
        assert_eq!(longest(24, 39), 0);
        assert_eq!(longest(48, 60), 9);
        assert!((seen.share() - 0.085).abs() < 1e-9);
    }

    #[test]
    fn looks_that_are_two_milliseconds_apart_or_more_have_a_standstill_between_them() {
        let start = now();
        let at_us = [0, 1050, 3049, 5050, 6100, 16_100];
        let seen = between(
            at_us
                .into_iter()
                .map(|us| start + Duration::from_micros(us)),
        );
        let seen = seen
            .iter()
            .map(|it| ((it.from - start).as_micros(), it.lasted.as_micros()));
        assert_eq!(seen.collect::<Vec<_>>(), [(3049, 2001), (6100, 10_000)]);
    }

    #[test]
    fn each_processor_is_looked_at_until_the_end() {
        let from = now();
        let watch = Watch::begin();
        let processors = watch.threads.len();
        assert!(processors > 0);
        pause(Duration::from_millis(50));
        let until = now();
        let seen = watch.end();
        assert_eq!(seen.processors, processors);
        assert!(seen.watched >= Duration::from_millis(50));
        // It may stand still here as well, but then it did so while this waited.
        let longest = seen.longest(from, until);
        assert!(longest <= until - from, "{longest:?}");
        assert!((0.0..=1.0).contains(&seen.share()), "{seen:?}");
    }
}
