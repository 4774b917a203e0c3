//! One filter that is looked at, for as long as the view is there: it may end, come back, or not answer.

use super::reading::{Reading, Sample};
use crate::filter::document::FilterDocument;
use crate::settings::values::InterfaceName;
use crate::view::history::History;

/// What came of asking it.
#[derive(Debug)]
pub enum Answer {
    Document(Box<FilterDocument>),
    /// It does not run.
    Ended,
    /// Why there is no document, in words.
    Failed(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is known of it yet.
    Asked,
    Runs,
    Ended,
    Silent(String),
}

#[derive(Clone, Debug)]
pub struct Watched {
    pub interface: InterfaceName,
    pub state: State,
    /// The last that is known, also when it has ended.
    pub reading: Option<Reading>,
    /// Frames a second.
    pub handled: History,
    pub useful: History,
    pub dropped: History,
    last: Option<Sample>,
    /// What totals count from.
    zero: Option<FilterDocument>,
}

impl Watched {
    pub fn new(interface: InterfaceName) -> Watched {
        Watched {
            interface,
            state: State::Asked,
            reading: None,
            handled: History::default(),
            useful: History::default(),
            dropped: History::default(),
            last: None,
            zero: None,
        }
    }

    /// `asked_ns`: when the answer came, by the monotonic clock.
    pub fn take(&mut self, answer: Answer, asked_ns: u64) {
        let document = match answer {
            Answer::Document(document) => *document,
            Answer::Ended => return self.stand_still(State::Ended),
            Answer::Failed(reason) => return self.stand_still(State::Silent(reason)),
        };
        let sample = Sample::new(document, asked_ns);
        let last = self.last.as_ref();
        if last.is_some_and(|last| last.until(&sample).is_none()) {
            // Another one: nothing of the former goes on.
            *self = Watched::new(self.interface.clone());
        }
        let reading = Reading::new(self.last.as_ref(), &sample, self.zero.as_ref());
        for (history, measured) in [
            (&mut self.handled, &reading.handled),
            (&mut self.useful, &reading.useful),
            (&mut self.dropped, &reading.dropped),
        ] {
            if let Some(flow) = measured.flow {
                history.push(flow.frames_per_s);
            }
        }
        self.state = State::Runs;
        self.reading = Some(reading);
        self.last = Some(sample);
    }

    fn stand_still(&mut self, state: State) {
        self.state = state;
        if let Some(reading) = &mut self.reading {
            reading.stand_still();
        }
    }

    /// Totals count from now on.
    pub fn reset(&mut self) {
        let Some(last) = &self.last else {
            return;
        };
        self.zero = Some(last.document.clone());
        let Some(reading) = &mut self.reading else {
            return;
        };
        let sums = [
            &mut reading.handled,
            &mut reading.useful,
            &mut reading.dropped,
        ];
        let reasons = reading.reasons.iter_mut().map(|row| &mut row.measured);
        let rules = reading.rules.iter_mut().map(|row| &mut row.measured);
        for measured in sums.into_iter().chain(reasons).chain(rules) {
            measured.total = Default::default();
        }
    }

    pub fn is_reset(&self) -> bool {
        self.zero.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::filter_top::tests::{SECOND_NS, answer};

    fn watched() -> Watched {
        Watched::new("eth1".parse().unwrap())
    }

    fn last_rate(watched: &Watched) -> Option<f64> {
        let flow = watched.reading.as_ref()?.dropped.flow?;
        Some(flow.frames_per_s)
    }

    #[test]
    fn rates_come_with_the_second_answer_and_are_remembered() {
        let mut eth1 = watched();
        eth1.take(answer(7, SECOND_NS, 1000), 0);
        assert_eq!((eth1.state.clone(), last_rate(&eth1)), (State::Runs, None));
        eth1.take(answer(7, 2 * SECOND_NS, 1500), 0);
        assert_eq!(last_rate(&eth1), Some(500.0));
        eth1.take(answer(7, 2 * SECOND_NS + SECOND_NS / 4, 1510), 0);
        assert_eq!(last_rate(&eth1), Some(40.0));
        assert!(eth1.dropped.last(9).eq([500.0, 40.0]));
    }

    #[test]
    fn one_that_is_started_anew_starts_anew() {
        let mut eth1 = watched();
        eth1.take(answer(7, SECOND_NS, 1000), 0);
        eth1.take(answer(7, 2 * SECOND_NS, 1500), 0);
        eth1.reset();
        eth1.take(Answer::Ended, 0);
        assert_eq!((eth1.state.clone(), last_rate(&eth1)), (State::Ended, None));
        assert_eq!(eth1.reading.as_ref().unwrap().document.pid, Some(7));
        // It has counted more by now than the former one had.
        eth1.take(answer(8, 9 * SECOND_NS, 4000), 0);
        assert_eq!((eth1.state.clone(), last_rate(&eth1)), (State::Runs, None));
        let total = eth1.reading.as_ref().unwrap().dropped.total.frames;
        assert_eq!((total, eth1.is_reset()), (4000, false));
        assert_eq!(eth1.dropped.last(9).count(), 0);
        eth1.take(answer(8, 10 * SECOND_NS, 4007), 0);
        assert_eq!(last_rate(&eth1), Some(7.0));
    }

    #[test]
    fn what_passed_while_it_did_not_answer_is_spread_over_that_time() {
        let mut eth1 = watched();
        eth1.take(answer(7, SECOND_NS, 1000), 0);
        eth1.take(Answer::Failed("no answer within 5 s".into()), 0);
        assert_eq!(eth1.state, State::Silent("no answer within 5 s".into()));
        eth1.take(answer(7, 11 * SECOND_NS, 2000), 0);
        assert_eq!(last_rate(&eth1), Some(100.0));
    }

    #[test]
    fn totals_are_nothing_when_they_are_reset_and_grow_from_there() {
        let mut eth1 = watched();
        eth1.reset();
        eth1.take(answer(7, SECOND_NS, 1000), 0);
        eth1.reset();
        let total = |eth1: &Watched| eth1.reading.as_ref().unwrap().dropped.total.frames;
        assert_eq!(total(&eth1), 0);
        eth1.take(answer(7, 2 * SECOND_NS, 1500), 0);
        assert_eq!(total(&eth1), 500);
    }
}
