//! How figures are judged, by a made-up machine that is away.

#[path = "live/common/steady/judging.rs"]
mod judging;

use std::cell::{Cell, RefCell};

use judging::{Machine, RUNS_MAX, judge_on};
use packtrain::lab::processors::Ticks;

/// Of which so many percent are stolen in each run, and then nothing; and what it was asked to do.
#[derive(Default)]
struct MadeUp {
    stolen: Vec<u64>,
    looks: Cell<usize>,
    runs: Cell<usize>,
    pauses: Cell<usize>,
    said: RefCell<Vec<String>>,
}

impl Machine for MadeUp {
    /// A run takes a hundred ticks; each is between two looks.
    fn ticks(&self) -> Ticks {
        let looks = self.looks.replace(self.looks.get() + 1);
        let run = looks.div_ceil(2);
        Ticks {
            all: 1000 + 100 * run as u64,
            busy: 0,
            stolen: 70 + self.stolen.iter().take(run).sum::<u64>(),
        }
    }

    fn pause(&self) {
        self.pauses.set(self.pauses.get() + 1);
    }

    fn say(&self, line: &str) {
        self.said.borrow_mut().push(line.to_owned());
    }
}

impl MadeUp {
    fn robbed(stolen: &[u64]) -> MadeUp {
        MadeUp {
            stolen: stolen.to_vec(),
            ..MadeUp::default()
        }
    }

    /// Measures these figures one after the other, of which 70 and more is right.
    fn judge(&self, figures: &[u64]) -> u64 {
        let measure = || figures[self.runs.replace(self.runs.get() + 1)];
        judge_on(self, "a rate", measure, |&rate| rate >= 70)
    }

    fn counts(&self) -> (usize, usize) {
        (self.runs.get(), self.pauses.get())
    }
}

#[test]
fn a_right_figure_is_right_whatever_the_machine_did() {
    for stolen in [0, 1, 95] {
        let machine = MadeUp::robbed(&[stolen]);
        assert_eq!(machine.judge(&[70]), 70);
        assert_eq!(machine.counts(), (1, 0));
        assert!(machine.said.borrow().is_empty());
    }
}

#[test]
#[should_panic(expected = "a rate: 69, and the machine was there: 0.0 % stolen")]
fn a_wrong_figure_of_a_machine_that_was_there_fails_at_once() {
    MadeUp::robbed(&[0]).judge(&[69]);
}

#[test]
#[should_panic(expected = "a rate: 69, and the machine was there: 1.0 % stolen")]
fn a_tick_that_is_stolen_excuses_nothing() {
    MadeUp::robbed(&[1]).judge(&[69]);
}

#[test]
fn a_wrong_figure_of_a_machine_that_was_away_is_measured_again() {
    let machine = MadeUp::robbed(&[2, 95, 40]);
    assert_eq!(machine.judge(&[69, 3, 80]), 80);
    assert_eq!(machine.counts(), (3, 2));
    let said = [
        "DISCARDED: a rate: 69, 2.0 % stolen",
        "DISCARDED: a rate: 3, 95.0 % stolen",
    ];
    assert_eq!(*machine.said.borrow(), said);
}

#[test]
#[should_panic(expected = "a rate: 60, and the machine was there: 0.0 % stolen")]
fn what_is_wrong_once_the_machine_is_back_fails() {
    MadeUp::robbed(&[95, 95]).judge(&[3, 4, 60]);
}

#[test]
fn what_could_never_be_judged_does_not_fail_and_ends() {
    let machine = MadeUp::robbed(&[50; RUNS_MAX]);
    assert_eq!(machine.judge(&[7; RUNS_MAX]), 7);
    assert_eq!(machine.counts(), (RUNS_MAX, RUNS_MAX - 1));
    let said = machine.said.borrow();
    assert_eq!(said.len(), RUNS_MAX + 1);
    let last = "NOT JUDGED: a rate: the machine was away in each of 4 runs";
    assert_eq!(said[RUNS_MAX], last);
}
