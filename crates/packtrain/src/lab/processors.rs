//! What the processors of this machine did, by the kernel's count: how much work something was, whoever
//! did it, and how much of the time the machine was not run at all.

use std::io;

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

    /// How long they were busy since then, seconds of one processor.
    pub fn busy_since_s(self, before: Ticks) -> f64 {
        let ticks = self.busy.saturating_sub(before.busy);
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }
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
