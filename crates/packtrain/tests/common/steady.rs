//! Figures of a virtual machine, which is not always run when it wants to be. What was measured while it was
//! away says nothing of the program, be it a rate, a round trip or processor time; what was measured while it
//! was there does.

use std::fmt::Debug;
use std::io::Write;
use std::time::Duration;

use super::cabled::pause;

/// Below this share a wrong figure is the program's: bounds of figures leave a tenth of room and more, so that
/// so little makes none wrong. A machine that is there is robbed of a tick now and then as well, which is half a
/// percent of a second of two processors.
pub const STOLEN_MAX: f64 = 0.02;
/// A machine that is away for longer than so many runs take may be so for the whole day.
pub const RUNS_MAX: usize = 4;
/// It is away for seconds at a time.
const PAUSE: Duration = Duration::from_millis(1500);

/// What all processors have done since the machine started, in ticks of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    pub all: u64,
    /// They had something to do, and were not run.
    pub stolen: u64,
}

impl Ticks {
    /// Of the text of `/proc/stat`.
    pub fn read(stat: &str) -> Option<Ticks> {
        /// user, nice, system, idle, iowait, irq, softirq, steal; guests, which follow, are in user already.
        const COUNTED: usize = 8;
        let mut lines = stat.lines();
        let of_all = lines.find_map(|line| line.strip_prefix("cpu "))?;
        let ticks = of_all.split_whitespace().take(COUNTED).map(str::parse);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        let stolen = *ticks.get(COUNTED - 1)?;
        Some(Ticks {
            all: ticks.iter().sum(),
            stolen,
        })
    }

    /// The share of their time since then in which they were not run.
    pub fn stolen_since(self, before: Ticks) -> f64 {
        // iowait may go back.
        let all = self.all.saturating_sub(before.all).max(1);
        self.stolen.saturating_sub(before.stolen) as f64 / all as f64
    }
}

/// What is measured on, and who is told of it.
pub trait Machine {
    fn ticks(&self) -> Ticks;
    fn pause(&self);
    fn say(&self, line: &str);
}

struct ThisMachine;

impl Machine for ThisMachine {
    fn ticks(&self) -> Ticks {
        let stat = std::fs::read_to_string("/proc/stat").expect("/proc is there");
        Ticks::read(&stat).expect("a line of all processors")
    }

    fn pause(&self) {
        pause(PAUSE);
    }

    /// Past the test harness, which shows what a test prints only when it fails.
    fn say(&self, line: &str) {
        let mut stderr = std::io::stderr().lock();
        writeln!(stderr, "{line}").expect("standard error is open");
    }
}

/// Measures, and fails when it is wrong although the machine was there. When it was away, a wrong figure is
/// discarded and measured again. It gives the last one, which is wrong only if none could be judged. What
/// must hold whatever the machine does, `measure` asserts itself.
#[track_caller]
pub fn judge<T: Debug>(what: &str, measure: impl FnMut() -> T, is_right: impl Fn(&T) -> bool) -> T {
    judge_on(&ThisMachine, what, measure, is_right)
}

#[track_caller]
pub fn judge_on<T: Debug>(
    machine: &impl Machine,
    what: &str,
    mut measure: impl FnMut() -> T,
    is_right: impl Fn(&T) -> bool,
) -> T {
    let mut run = 1;
    loop {
        let before = machine.ticks();
        let value = measure();
        let stolen = machine.ticks().stolen_since(before);
        if is_right(&value) {
            return value;
        }
        let percent = stolen * 100.0;
        assert!(
            stolen >= STOLEN_MAX,
            "{what}: {value:?}, and the machine was there: {percent:.1} % stolen"
        );
        machine.say(&format!(
            "DISCARDED: {what}: {value:?}, {percent:.1} % stolen"
        ));
        if run == RUNS_MAX {
            machine.say(&format!(
                "NOT JUDGED: {what}: the machine was away in each of {RUNS_MAX} runs"
            ));
            return value;
        }
        run += 1;
        machine.pause();
    }
}
