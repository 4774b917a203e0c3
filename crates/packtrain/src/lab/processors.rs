//! What the processors of this machine did, by the kernel's count: how much work something was, whoever
//! did it, and how much of the time the machine was not run at all.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// user, nice, system, idle, iowait, irq, softirq, steal; guests, which follow, are in user already.
const COUNTED: usize = 8;
const IDLE: usize = 3;
const IO_WAIT: usize = 4;
const STEAL: usize = 7;

/// What all processors have done since the machine started, in ticks of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    pub all: u64,
    /// In programs and in the kernel, interrupts of both kinds included.
    pub busy: u64,
    /// They had something to do, and were not run.
    pub stolen: u64,
}

impl Ticks {
    pub fn now() -> io::Result<Ticks> {
        let stat = std::fs::read_to_string("/proc/stat")?;
        Ticks::read(&stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Of the text of `/proc/stat`.
    pub fn read(stat: &str) -> Option<Ticks> {
        let mut lines = stat.lines();
        let of_all = lines.find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = of_all.split_whitespace().take(COUNTED).map(str::parse);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        let stolen = *ticks.get(STEAL)?;
        let all = ticks.iter().sum();
        Some(Ticks {
            all,
            busy: all - stolen - ticks[IDLE] - ticks[IO_WAIT],
            stolen,
        })
    }

    /// The share of their time since then in which they were not run.
    pub fn stolen_since(self, before: Ticks) -> f64 {
        // iowait may go back.
        let all = self.all.saturating_sub(before.all).max(1);
        self.stolen.saturating_sub(before.stolen) as f64 / all as f64
    }

    /// The share of their time since then that was used, by us or by whoever else the machine belongs to.
    pub fn used_since(self, before: Ticks) -> f64 {
        let used = |ticks: Ticks| ticks.busy + ticks.stolen;
        let all = self.all.saturating_sub(before.all).max(1);
        used(self).saturating_sub(used(before)) as f64 / all as f64
    }

    /// How long they were busy since then, seconds of one processor.
    pub fn busy_since_s(self, before: Ticks) -> f64 {
        let ticks = self.busy.saturating_sub(before.busy);
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }
}

/// How long each thread of the machine has run, by the scheduler's own clock, ns. Ticks say of a thread that runs for
/// some microseconds again and again only by accident whether it ran. What an interrupt does on a processor
/// that has nothing else to do is nobody's time.
#[derive(Clone, Debug)]
pub struct RunTimes {
    by_thread: BTreeMap<u32, u64>,
    /// All threads of this process, those that have ended too.
    of_this_process: u64,
}

impl RunTimes {
    pub fn now() -> io::Result<RunTimes> {
        let own = std::process::id();
        let mut by_thread = BTreeMap::new();
        for process in numbers_in(Path::new("/proc"))?.filter(|&process| process != own) {
            let tasks = Path::new("/proc").join(process.to_string()).join("task");
            // Those that have ended meanwhile have no threads.
            for thread in numbers_in(&tasks).into_iter().flatten() {
                let path = tasks.join(thread.to_string()).join("schedstat");
                let text = fs::read_to_string(path).unwrap_or_default();
                let ran = text.split_whitespace().next().map(str::parse);
                by_thread.extend(ran.and_then(Result::ok).map(|ran| (thread, ran)));
            }
        }
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Ok(RunTimes {
            by_thread,
            of_this_process: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        })
    }

    /// By all threads together since then, seconds of a processor; without those of other processes that have ended.
    pub fn since_s(&self, before: &RunTimes) -> f64 {
        let ran = self.by_thread.iter().map(|(thread, ran)| {
            let before = before.by_thread.get(thread).copied().unwrap_or_default();
            ran.saturating_sub(before)
        });
        let own = self.of_this_process - before.of_this_process;
        (ran.sum::<u64>() + own) as f64 / 1e9
    }
}

/// How long all threads of a process have run, those that it has now.
pub fn ran(process: u32) -> super::Result<std::time::Duration> {
    let tasks = Path::new("/proc").join(process.to_string()).join("task");
    let failed = |source| super::Error::File {
        path: tasks.display().to_string(),
        source,
    };
    let ran = numbers_in(&tasks).map_err(failed)?.map(|thread| {
        let path = tasks.join(thread.to_string()).join("schedstat");
        let text = fs::read_to_string(path).unwrap_or_default();
        let ran = text.split_whitespace().next();
        ran.and_then(|ran| ran.parse().ok()).unwrap_or(0)
    });
    Ok(std::time::Duration::from_nanos(ran.sum()))
}

/// The entries of a directory whose names are numbers.
fn numbers_in(directory: &Path) -> io::Result<impl Iterator<Item = u32> + use<>> {
    let entries = fs::read_dir(directory)?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

/// Seconds of a processor for each 10⁹ bytes; not a number where nothing came.
pub fn seconds_per_gigabyte(busy_s: f64, bytes: f64) -> f64 {
    if bytes > 0.0 {
        busy_s * 1e9 / bytes
    } else {
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ticks_are_those_of_all_processors_and_no_guest_is_counted_twice() {
        let stat = "cpu  10 20 30 400 50 6 7 80 9 1\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 5 0\n";
        let ticks = Ticks {
            all: 603,
            busy: 73,
            stolen: 80,
        };
        assert_eq!(Ticks::read(stat), Some(ticks));
        let before = Ticks {
            all: 403,
            busy: 0,
            stolen: 30,
        };
        assert_eq!(ticks.stolen_since(before), 0.25);
        assert_eq!(ticks.used_since(before), 0.615);
    }

    #[test]
    fn no_time_at_all_was_not_stolen_and_none_is_given_back() {
        let ticks = |all, stolen| Ticks {
            all,
            busy: 0,
            stolen,
        };
        assert_eq!(ticks(5, 1).stolen_since(ticks(5, 1)), 0.0);
        assert_eq!(ticks(4, 1).stolen_since(ticks(5, 2)), 0.0);
    }

    #[test]
    fn a_text_without_the_line_or_of_a_kernel_without_steal_gives_no_ticks() {
        for stat in [
            "",
            "cpu0 1 2 3 4 5 6 7 8\n",
            "cpu  1 2 3 4\n",
            "cpu  1 2 3 4 5 6 7 x\n",
        ] {
            assert_eq!(Ticks::read(stat), None, "{stat:?}");
        }
    }

    #[test]
    fn what_threads_ran_is_counted_also_when_they_have_ended() {
        let before = RunTimes::now().unwrap();
        let spin = || {
            let mut x = 1_u64;
            for step in 0..50_000_000 {
                x = std::hint::black_box(x.wrapping_mul(3) ^ step);
            }
            x
        };
        std::thread::scope(|scope| {
            scope.spawn(spin).join().unwrap();
        });
        let after = RunTimes::now().unwrap();
        let own = (after.of_this_process - before.of_this_process) as f64 / 1e9;
        assert!(own > 0.001 && after.since_s(&before) >= own, "{own}");
        let times = |of: &[(u32, u64)], own| RunTimes {
            by_thread: of.iter().copied().collect(),
            of_this_process: own,
        };
        let before = times(&[(1, 5_000_000_000), (2, 7)], 10);
        // One goes on, one has ended, one is new.
        let after = times(&[(1, 6_000_000_000), (3, 500_000_000)], 10);
        assert_eq!(after.since_s(&before), 1.5);
    }

    #[test]
    fn work_is_told_by_the_gigabyte() {
        let ticks = |busy| Ticks {
            all: 0,
            busy,
            stolen: 0,
        };
        let hertz = rustix::param::clock_ticks_per_second();
        let busy_s = ticks(5 * hertz).busy_since_s(ticks(2 * hertz));
        assert_eq!(busy_s, 3.0);
        assert_eq!(seconds_per_gigabyte(busy_s, 6e9), 0.5);
        assert!(seconds_per_gigabyte(busy_s, 0.0).is_nan());
    }
}
