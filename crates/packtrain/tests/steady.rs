//! How figures are judged, by a made-up machine that is away.

mod common;

use std::cell::{Cell, RefCell};

use common::steady::{Machine, RUNS_MAX, Ticks, judge_on};

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

#[test]
fn the_ticks_are_those_of_all_processors_and_no_guest_is_counted_twice() {
    let stat = "cpu  10 20 30 400 50 6 7 80 9 1\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 5 0\n";
    let ticks = Ticks {
        all: 603,
        stolen: 80,
    };
    assert_eq!(Ticks::read(stat), Some(ticks));
    let before = Ticks {
        all: 403,
        stolen: 30,
    };
    assert_eq!(ticks.stolen_since(before), 0.25);
}

#[test]
fn no_time_at_all_was_not_stolen_and_none_is_given_back() {
    let ticks = |all, stolen| Ticks { all, stolen };
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
