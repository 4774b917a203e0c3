//! Processors that do not fall asleep while times are measured.
//!
//! An idle processor is a virtual one's cue to be taken away, and a real one's to save power: what wakes it up
//! then comes late. A time that is measured over a wire passes three such wake-ups (the wire's timer, its
//! process, the receiver's), and is longer by tens of microseconds than what the wire did.

//!
//! And what they find to do meanwhile tells how much of the processors everybody else needed: the kernel's own count
//! looks 250 times a second who is at work, and so is blind to what works between two looks, as whoever sleeps for a
//! moment again and again.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity};

use super::{Error, Result, now, pause};
use crate::linux::real_time::{run_when_idle, stay_on};

/// Until the spinners have begun, and how long it is then counted how much they do.
const BEGIN: Duration = Duration::from_millis(50);
const CALIBRATED_FOR: Duration = Duration::from_millis(200);
/// Of one turn: some hundred nanoseconds.
const STEPS: u64 = 128;

/// While it lives, each processor that this process may use has something to do that gives way to everything.
pub(super) struct Awake {
    ends: Arc<AtomicBool>,
    /// How often each has turned.
    turns: Vec<Arc<AtomicU64>>,
    spinners: Vec<JoinHandle<io::Result<()>>>,
}

impl Awake {
    pub(super) fn keep() -> io::Result<Awake> {
        let allowed = sched_getaffinity(None)?;
        let mut awake = Awake {
            ends: Arc::default(),
            turns: Vec::new(),
            spinners: Vec::new(),
        };
        for processor in (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)) {
            let ends = Arc::clone(&awake.ends);
            let turns = Arc::<AtomicU64>::default();
            awake.turns.push(Arc::clone(&turns));
            let spinner = std::thread::Builder::new()
                .name(format!("awake-{processor}"))
                .spawn(move || spin_on(processor, &ends, &turns))?;
            awake.spinners.push(spinner);
        }
        Ok(awake)
    }

    fn turns(&self) -> u64 {
        let turns = self.turns.iter();
        turns.map(|turns| turns.load(Ordering::Relaxed)).sum()
    }
}

/// Runs `measure`, and how many seconds of a processor all that ran meanwhile needed: what the spinners did less than
/// when nothing else ran.
pub fn busy_during<T>(measure: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let awake = Awake::keep().map_err(|source| Error::Start {
        command: "threads that keep processors awake".to_owned(),
        source,
    })?;
    pause(BEGIN);
    let turns_for = |run: &mut dyn FnMut()| {
        let (begin, before) = (now(), awake.turns());
        run();
        (
            (awake.turns() - before) as f64,
            begin.elapsed().as_secs_f64(),
        )
    };
    let idle = turns_for(&mut || pause(CALIBRATED_FOR));
    let mut measure = Some(measure);
    let mut result = None;
    let busy = turns_for(&mut || result = measure.take().map(|measure| measure()));
    let result = result.expect("it has been run")?;
    Ok((result, busy_s(awake.turns.len(), idle, busy)))
}

/// Of so many processors; turns and seconds.
fn busy_s(processors: usize, idle: (f64, f64), busy: (f64, f64)) -> f64 {
    let left = busy.0 / (idle.0 / idle.1);
    processors as f64 * (busy.1 - left)
}

/// First of all out of everybody's way: a spinner of the ordinary class would be what it is to prevent.
fn spin_on(processor: usize, ends: &AtomicBool, turns: &AtomicU64) -> io::Result<()> {
    run_when_idle()?;
    stay_on(processor)?;
    while !ends.load(Ordering::Relaxed) {
        // Each step needs the one before, and no hypervisor sees that nothing comes of it.
        black_box((0..STEPS).fold(turns.load(Ordering::Relaxed), |x, step| {
            black_box(x).wrapping_mul(3).wrapping_add(step)
        }));
        turns.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for spinner in self.spinners.drain(..) {
            // One that could not be what it should has left, and the processor may sleep: as without it.
            let _ = spinner.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lab::wait_for;

    /// This process's threads of that name: the scheduler's policy, and ticks of the clock that they have run.
    fn spinners() -> Vec<(String, String, u64)> {
        let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
            panic!("threads cannot be listed");
        };
        let read = |path: std::path::PathBuf| {
            let stat = std::fs::read_to_string(path.join("stat")).ok()?;
            let (head, tail) = stat.rsplit_once(") ")?;
            let (_, name) = head.split_once('(')?;
            let fields: Vec<&str> = tail.split_whitespace().collect();
            // Fields of proc_pid_stat(5), the third is the first here: policy is 41, user time 14.
            let ran = fields[11].parse().ok()?;
            Some((name.to_owned(), fields[38].to_owned(), ran))
        };
        let found = tasks.filter_map(|task| read(task.ok()?.path()));
        found
            .filter(|(name, ..)| name.starts_with("awake-"))
            .collect()
    }

    #[test]
    fn each_processor_has_one_that_gives_way_and_none_stays() {
        let processors = std::thread::available_parallelism().unwrap().get();
        let awake = Awake::keep().unwrap();
        let idle = libc::SCHED_IDLE.to_string();
        let all_run = || {
            let found = spinners();
            let run = |(_, policy, ran): &(_, String, u64)| *policy == idle && *ran > 0;
            found.len() == processors && found.iter().all(run)
        };
        wait_for("threads that spin", Duration::from_secs(60), all_run).unwrap();
        drop(awake);
        assert_eq!(spinners(), []);
    }

    #[test]
    fn what_spinners_did_less_the_others_needed() {
        // Two processors, 1000 turns a second in all: of 2 s a quarter was left.
        assert_eq!(busy_s(2, (200.0, 0.2), (500.0, 2.0)), 3.0);
        assert_eq!(busy_s(2, (200.0, 0.2), (2000.0, 2.0)), 0.0);
    }
}
