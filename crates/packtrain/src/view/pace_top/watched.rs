//! The pacer that is looked at, for as long as the view is there: it may end, come back, or not answer.

use std::path::PathBuf;

use super::reading::{Reading, time_between};
use crate::pace::tcp::document::TcpDocument;
use crate::view::history::History;

/// What came of asking it.
#[derive(Debug)]
pub enum Answer {
    Document(Box<TcpDocument>),
    /// It does not run.
    Ended {
        /// That it has left, for nobody has asked it to end.
        log: Option<PathBuf>,
    },
    /// Why there is no document, in words.
    Failed(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing is known of it yet.
    #[default]
    Asked,
    Runs,
    Ended {
        log: Option<PathBuf>,
    },
    Silent(String),
}

#[derive(Clone, Debug, Default)]
pub struct Watched {
    pub state: State,
    /// The last that is known, also when it has ended.
    pub reading: Option<Reading>,
    /// Of all streams, a second.
    pub bits: History,
    /// What totals count from.
    zero: Option<TcpDocument>,
}

impl Watched {
    pub fn take(&mut self, answer: Answer) {
        let document = match answer {
            Answer::Document(document) => *document,
            Answer::Ended { log } => return self.stand_still(State::Ended { log }),
            Answer::Failed(reason) => return self.stand_still(State::Silent(reason)),
        };
        let last = self.reading.as_ref().map(|reading| &reading.document);
        if last.is_some_and(|last| time_between(last, &document).is_none()) {
            // Another one: nothing of the former goes on.
            *self = Watched::default();
        }
        let last = self.reading.as_ref().map(|reading| &reading.document);
        let reading = Reading::new(last, &document, self.zero.as_ref());
        if let Some(bits_per_s) = reading.bits_per_s {
            self.bits.push(bits_per_s);
        }
        self.state = State::Runs;
        self.reading = Some(reading);
    }

    fn stand_still(&mut self, state: State) {
        self.state = state;
        if let Some(reading) = &mut self.reading {
            reading.stand_still();
        }
    }

    /// Totals count from now on.
    pub fn reset(&mut self) {
        if let Some(reading) = &mut self.reading {
            self.zero = Some(reading.document.clone());
            reading.reset();
        }
    }

    pub fn is_reset(&self) -> bool {
        self.zero.is_some()
    }

    /// What rates are known of.
    pub fn measured(&self) -> Option<&Reading> {
        let reading = self.reading.as_ref();
        reading.filter(|reading| reading.time.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::pace_top::tests::{SECOND_NS, document, stream};

    fn answer(pid: u32, time_ns: u64, acked: u64) -> Answer {
        Answer::Document(Box::new(document(pid, time_ns, vec![stream(1, acked)])))
    }

    fn rate(watched: &Watched) -> Option<f64> {
        watched.reading.as_ref()?.bits_per_s
    }

    #[test]
    fn rates_come_with_the_second_answer_and_are_remembered() {
        let mut tcp = Watched::default();
        tcp.take(answer(7, SECOND_NS, 1000));
        assert_eq!((&tcp.state, rate(&tcp)), (&State::Runs, None));
        assert!(tcp.measured().is_none());
        tcp.take(answer(7, 2 * SECOND_NS, 2000));
        tcp.take(answer(7, 2 * SECOND_NS + SECOND_NS / 4, 2001));
        assert!(tcp.bits.last(9).eq([8000.0, 32.0]));
        assert!(tcp.measured().is_some());
    }

    #[test]
    fn one_that_is_started_anew_starts_anew() {
        let mut tcp = Watched::default();
        tcp.take(answer(7, SECOND_NS, 1000));
        tcp.take(answer(7, 2 * SECOND_NS, 2000));
        tcp.reset();
        tcp.take(Answer::Ended { log: None });
        assert_eq!(
            (&tcp.state, rate(&tcp)),
            (&State::Ended { log: None }, None)
        );
        // The stream has gone on without it.
        tcp.take(answer(8, 9 * SECOND_NS, 4000));
        assert_eq!((&tcp.state, rate(&tcp)), (&State::Runs, None));
        assert!(!tcp.is_reset());
        assert_eq!(tcp.bits.last(9).count(), 0);
        tcp.take(answer(8, 10 * SECOND_NS, 5000));
        assert_eq!(rate(&tcp), Some(8000.0));
    }

    #[test]
    fn what_passed_while_it_did_not_answer_is_spread_over_that_time() {
        let mut tcp = Watched::default();
        tcp.take(answer(7, SECOND_NS, 1000));
        tcp.take(Answer::Failed("no answer within 5 s".into()));
        assert_eq!(tcp.state, State::Silent("no answer within 5 s".into()));
        tcp.take(answer(7, 11 * SECOND_NS, 2000));
        assert_eq!(rate(&tcp), Some(800.0));
    }
}
