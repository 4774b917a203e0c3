//! Figures of a virtual machine, which is not always run when it wants to be. What was measured while it was
//! away says nothing of the program, be it a rate, a round trip or processor time; what was measured while it
//! was there does.

mod judging;

use std::fmt::Debug;
use std::io::Write;
use std::time::Duration;

use judging::{Machine, judge_on};
use packtrain::lab::processors::Ticks;

use super::cabled::pause;

/// It is away for seconds at a time.
const PAUSE: Duration = Duration::from_millis(1500);

struct ThisMachine;

impl Machine for ThisMachine {
    fn ticks(&self) -> Ticks {
        Ticks::now().expect("a line of all processors in /proc/stat")
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
