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
use super::turn;

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
/// So it is when it was measured beside another test: then it is measured again alone.
#[track_caller]
pub fn judge<T: Debug>(
    what: &str,
    mut measure: impl FnMut() -> T,
    is_right: impl Fn(&T) -> bool,
) -> T {
    if turn::is_beside() {
        let first = measure();
        if is_right(&first) {
            return first;
        }
        ThisMachine.say(&format!(
            "{what}: {first:?} beside another test, again alone"
        ));
    }
    let _alone = turn::alone_meanwhile();
    judge_on(&ThisMachine, what, measure, is_right)
}
