//! When a wrong figure is the program's, and when it is the machine's.

use std::fmt::Debug;

use packtrain::lab::processors::Ticks;

/// Below this share a wrong figure is the program's: bounds of figures leave a tenth of room and more, so that
/// so little makes none wrong. A machine that is there is robbed of a tick now and then as well, which is half a
/// percent of a second of two processors.
const STOLEN_MAX: f64 = 0.02;
/// A machine that is away for longer than so many runs take may be so for the whole day.
pub const RUNS_MAX: usize = 4;

/// What is measured on, and who is told of it.
pub trait Machine {
    fn ticks(&self) -> Ticks;
    fn pause(&self);
    fn say(&self, line: &str);
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
