//! Processors that do not fall asleep while times are measured.
//!
//! An idle processor is a virtual one's cue to be taken away, and a real one's to save power: what wakes it up
//! then comes late. A time that is measured over a wire passes three such wake-ups (the wire's timer, its
//! process, the receiver's), and is longer by tens of microseconds than what the wire did.

use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, sched_getaffinity};

use crate::linux::scheduling::{run_when_idle, stay_on};

/// While it lives, each processor that this process may use has something to do that gives way to everything.
#[derive(Debug)]
pub(in crate::lab) struct Awake {
    ends: Arc<AtomicBool>,
    spinners: Vec<JoinHandle<io::Result<()>>>,
}

impl Awake {
    pub(in crate::lab) fn keep() -> io::Result<Awake> {
        let allowed = sched_getaffinity(None)?;
        let mut awake = Awake {
            ends: Arc::default(),
            spinners: Vec::new(),
        };
        for processor in (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)) {
            let ends = Arc::clone(&awake.ends);
            let spinner = std::thread::Builder::new()
                .name(format!("awake-{processor}"))
                .spawn(move || spin_on(processor, &ends))?;
            awake.spinners.push(spinner);
        }
        Ok(awake)
    }
}

/// First of all out of everybody's way: a spinner of the ordinary class would be what it is to prevent.
fn spin_on(processor: usize, ends: &AtomicBool) -> io::Result<()> {
    run_when_idle()?;
    stay_on(processor)?;
    while !ends.load(Ordering::Relaxed) {
        spin_loop();
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
}
