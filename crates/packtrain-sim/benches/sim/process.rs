//! What the kernel knows of this process.

use std::fs;

/// Of `/proc/*/stat`, on every machine that Linux runs on (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;

#[allow(clippy::disallowed_methods)] // what is measured is the wall's time
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Time of the processor, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub user: f64,
    pub system: f64,
}

impl Spent {
    /// By this process.
    pub fn here() -> Spent {
        Spent::read(13)
    }

    /// By those that it began, and that have ended.
    pub fn by_children() -> Spent {
        Spent::read(15)
    }

    fn read(field: usize) -> Spent {
        let stat = fs::read_to_string("/proc/self/stat").expect("this is Linux");
        // The name before the third field may have spaces.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .into_iter()
            .flat_map(str::split_whitespace)
            .collect();
        let seconds =
            |field: usize| fields[field - 2].parse::<f64>().expect("ticks") / TICKS_PER_SECOND;
        Spent {
            user: seconds(field),
            system: seconds(field + 1),
        }
    }

    pub fn since(self, before: Spent) -> Spent {
        Spent {
            user: self.user - before.user,
            system: self.system - before.system,
        }
    }
}

/// Memory that this process has now.
pub fn rss_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|kib| kib.parse().ok())
        .expect("a number of kB")
}
