//! What two documents of a filter say of the time between them.

use std::collections::BTreeMap;
use std::time::Duration;

use packtrain_proto::filter::Reason;

use crate::cli::reason_words;
use crate::filter::document::{Amount, FilterDocument};
use crate::view::rate::{self, per_second};

/// A document, and when it was.
#[derive(Clone, Debug)]
pub struct Sample {
    pub at_ns: u64,
    pub document: FilterDocument,
}

impl Sample {
    /// By the filter's own time; one that does not say it is of when it was asked.
    pub fn new(document: FilterDocument, asked_ns: u64) -> Sample {
        let at_ns = match document.time_ns {
            0 => asked_ns,
            time_ns => time_ns,
        };
        Sample { at_ns, document }
    }

    /// The time between, if `later` goes on counting where this has: of a filter that was started anew nothing can be said.
    pub fn until(&self, later: &Sample) -> Option<Duration> {
        let is_the_same = self.document.pid == later.document.pid
            && self.document.handled.frames <= later.document.handled.frames;
        is_the_same
            .then(|| rate::between(self.at_ns, later.at_ns))
            .flatten()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    pub frames_per_s: f64,
    pub bytes_per_s: f64,
}

impl Flow {
    /// Of the frames themselves: without preamble, checksum and gap.
    pub fn bits_per_s(&self) -> f64 {
        self.bytes_per_s * 8.0
    }

    fn between(before: Amount, after: Amount, time: Duration) -> Option<Flow> {
        Some(Flow {
            frames_per_s: per_second(before.frames, after.frames, time)?,
            bytes_per_s: per_second(before.bytes, after.bytes, time)?,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Since the filter was started, or since a person has set it to nothing.
    pub total: Amount,
    /// `None`: not known, or not any more.
    pub flow: Option<Flow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReasonReading {
    /// As documents have it.
    pub name: String,
    pub words: String,
    pub is_drop: bool,
    pub measured: Measured,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RuleReading {
    pub name: String,
    /// `allow`, `deny` or `limit`.
    pub verdict: String,
    /// What of, and of a limit how much.
    pub decides: String,
    pub measured: Measured,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The later one.
    pub document: FilterDocument,
    /// `None`: there is none before it.
    pub time: Option<Duration>,
    pub handled: Measured,
    pub useful: Measured,
    pub dropped: Measured,
    /// Of which something was ever counted.
    pub reasons: Vec<ReasonReading>,
    /// In the order in which they are asked.
    pub rules: Vec<RuleReading>,
}

impl Reading {
    /// `zero`: what totals count from.
    pub fn new(before: Option<&Sample>, after: &Sample, zero: Option<&FilterDocument>) -> Reading {
        let time = before.and_then(|before| before.until(after));
        let before = before.map(|before| &before.document);
        let measure = |amount: fn(&FilterDocument) -> Option<Amount>| {
            let now = amount(&after.document).unwrap_or_default();
            let flow = time.and_then(|time| Flow::between(amount(before?)?, now, time));
            measured(now, flow, zero.and_then(amount))
        };
        let reasons = reasons(before, &after.document, time, zero);
        let rules = rules(before, &after.document, time, zero);
        Reading {
            handled: measure(|d| Some(d.handled)),
            useful: measure(|d| Some(d.useful)),
            dropped: measure(|d| Some(d.dropped)),
            reasons,
            rules,
            time,
            document: after.document.clone(),
        }
    }

    /// It has ended: what it counted stays, and nothing passes it any more.
    pub fn stand_still(&mut self) {
        self.time = None;
        let sums = [&mut self.handled, &mut self.useful, &mut self.dropped];
        let reasons = self.reasons.iter_mut().map(|reason| &mut reason.measured);
        let rules = self.rules.iter_mut().map(|rule| &mut rule.measured);
        for measured in sums.into_iter().chain(reasons).chain(rules) {
            measured.flow = None;
        }
    }
}

fn measured(now: Amount, flow: Option<Flow>, zero: Option<Amount>) -> Measured {
    let zero = zero.unwrap_or_default();
    // A rule that was taken away and has come back counts from its own beginning.
    let total = Amount {
        frames: now.frames.checked_sub(zero.frames).unwrap_or(now.frames),
        bytes: now.bytes.checked_sub(zero.bytes).unwrap_or(now.bytes),
    };
    Measured { total, flow }
}

fn reasons(
    before: Option<&FilterDocument>,
    after: &FilterDocument,
    time: Option<Duration>,
    zero: Option<&FilterDocument>,
) -> Vec<ReasonReading> {
    let of = |document: &FilterDocument, name: &str| {
        let count = document.reasons.get(name);
        // What a document does not name it has not counted.
        count.map_or_else(Amount::default, |count| Amount {
            frames: count.frames,
            bytes: count.bytes,
        })
    };
    let words: BTreeMap<&str, &str> = Reason::ALL
        .iter()
        .map(|reason| (reason.as_str(), reason_words(*reason)))
        .collect();
    let counted = after.reasons.iter().filter(|(_, count)| count.frames > 0);
    counted
        .map(|(name, count)| {
            let now = of(after, name);
            let flow = time.and_then(|time| Flow::between(of(before?, name), now, time));
            ReasonReading {
                name: name.clone(),
                // A newer filter has reasons that we do not know.
                words: words.get(name.as_str()).map_or(name.as_str(), |w| w).into(),
                is_drop: count.verdict == "drop",
                measured: measured(now, flow, zero.map(|zero| of(zero, name))),
            }
        })
        .collect()
}

fn rules(
    before: Option<&FilterDocument>,
    after: &FilterDocument,
    time: Option<Duration>,
    zero: Option<&FilterDocument>,
) -> Vec<RuleReading> {
    let of = |document: &FilterDocument, name: &str| {
        let rule = document.rules.iter().find(|rule| rule.name == name)?;
        Some(Amount {
            frames: rule.frames,
            bytes: rule.bytes,
        })
    };
    after
        .rules
        .iter()
        .map(|rule| {
            let now = Amount {
                frames: rule.frames,
                bytes: rule.bytes,
            };
            // One that has just come has counted from nothing, but since when nobody knows.
            let flow = time.and_then(|time| Flow::between(of(before?, &rule.name)?, now, time));
            let decides = match &rule.limit {
                Some(limit) => format!("{limit}: {}", rule.matches),
                None => rule.matches.clone(),
            };
            RuleReading {
                name: rule.name.clone(),
                verdict: rule.verdict.clone(),
                decides,
                measured: measured(now, flow, zero.and_then(|zero| of(zero, &rule.name))),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::filter_top::tests::{SECOND_NS, document};

    fn sample(at_s: f64, pid: u32, drops: u64, rule_frames: u64) -> Sample {
        let at_ns = (at_s * SECOND_NS as f64) as u64;
        Sample::new(document("eth1", pid, at_ns, drops, rule_frames), 1)
    }

    fn frames_per_s(measured: &Measured) -> Option<f64> {
        measured.flow.map(|flow| flow.frames_per_s)
    }

    #[test]
    fn rates_are_by_the_time_that_the_filter_itself_has_measured() {
        let (before, after) = (sample(10.0, 7, 1000, 10), sample(10.5, 7, 2500, 20));
        let reading = Reading::new(Some(&before), &after, None);
        assert_eq!(reading.time, Some(Duration::from_millis(500)));
        assert_eq!(frames_per_s(&reading.dropped), Some(3000.0));
        assert_eq!(frames_per_s(&reading.useful), Some(0.0));
        assert_eq!(frames_per_s(&reading.handled), Some(3000.0));
        let flow = reading.dropped.flow.unwrap();
        assert_eq!(flow.bits_per_s(), 3000.0 * 60.0 * 8.0);
        assert_eq!(reading.dropped.total.frames, 2500);
        let arp = reading.reasons.iter().find(|r| r.name == "foreign_arp");
        assert_eq!(frames_per_s(&arp.unwrap().measured), Some(3000.0));
        assert_eq!(arp.unwrap().words, "ARP that concerns others");
        assert_eq!(frames_per_s(&reading.rules[0].measured), Some(20.0));
    }

    #[test]
    fn a_filter_that_does_not_say_its_time_is_measured_by_ours() {
        let at = |asked_ns| Sample::new(document("eth1", 7, 0, asked_ns / 1000, 0), asked_ns);
        let reading = Reading::new(Some(&at(SECOND_NS)), &at(2 * SECOND_NS), None);
        assert_eq!(reading.time, Some(Duration::from_secs(1)));
    }

    #[test]
    fn of_another_process_or_a_first_document_no_rate_is_told() {
        let after = sample(11.0, 8, 5, 0);
        for before in [
            None,
            // Another process, whatever it has counted.
            Some(sample(10.0, 7, 0, 0)),
            Some(sample(10.0, 7, 1000, 0)),
            // The same number again, which counts from the start.
            Some(sample(10.0, 8, 1000, 0)),
            // No time has passed, or it went back.
            Some(sample(11.0, 8, 5, 0)),
            Some(sample(12.0, 8, 5, 0)),
        ] {
            let reading = Reading::new(before.as_ref(), &after, None);
            assert_eq!(reading.time, None, "{before:?}");
            assert_eq!(frames_per_s(&reading.handled), None);
            assert!(reading.reasons.iter().all(|r| r.measured.flow.is_none()));
            assert!(reading.rules.iter().all(|r| r.measured.flow.is_none()));
        }
    }

    #[test]
    fn a_rule_that_was_replaced_has_no_rate_and_its_own_total() {
        let (before, mut after) = (sample(10.0, 7, 0, 100), sample(11.0, 7, 0, 3));
        let reading = Reading::new(Some(&before), &after, Some(&before.document));
        assert_eq!(frames_per_s(&reading.rules[0].measured), None);
        assert_eq!(reading.rules[0].measured.total.frames, 3);
        after.document.rules[0].name = "new".into();
        let reading = Reading::new(Some(&before), &after, None);
        assert_eq!(frames_per_s(&reading.rules[0].measured), None);
        assert_eq!(frames_per_s(&reading.handled), Some(0.0));
    }

    #[test]
    fn totals_count_from_where_they_were_set_to_nothing() {
        let (before, after) = (sample(10.0, 7, 1000, 10), sample(11.0, 7, 1500, 20));
        let reading = Reading::new(Some(&before), &after, Some(&before.document));
        assert_eq!(reading.dropped.total.frames, 500);
        assert_eq!(reading.useful.total.frames, 0);
        assert_eq!(reading.rules[0].measured.total.frames, 10);
        // Rates are what they were.
        assert_eq!(frames_per_s(&reading.dropped), Some(500.0));
    }

    #[test]
    fn what_has_ended_keeps_its_totals_and_has_no_rates() {
        let (before, after) = (sample(10.0, 7, 1000, 10), sample(11.0, 7, 1500, 20));
        let mut reading = Reading::new(Some(&before), &after, None);
        reading.stand_still();
        assert_eq!(reading.dropped.total.frames, 1500);
        assert_eq!(frames_per_s(&reading.dropped), None);
        assert!(reading.reasons.iter().all(|r| r.measured.flow.is_none()));
    }
}
