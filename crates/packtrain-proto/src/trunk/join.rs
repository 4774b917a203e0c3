//! A second link of a line: what went by the first one alone, as frames without a sequence, must have
//! arrived before anything goes by the second, or it would be overtaken.
//!
//! A probe behind it on the first link tells: it is acknowledged in its turn ([`crate::drain`]).

use crate::config::LinkId;
use crate::time::{Duration, Instant};
use crate::wire::sequence::Sequence;
use crate::wire::train::Ack;

const PATIENCE: Duration = Duration::from_millis(200);
/// A peer that answers none of so many, and still is up, is not waited for any longer.
const TRIES_MAX: usize = 8;
/// … nor one that is silent for longer, though frames stand in the link's local queue.
const SILENT_MAX: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub struct Join {
    /// All of them left after what must arrive: an answer to any will do.
    probes: Vec<(LinkId, Sequence)>,
    next_probe: Instant,
    /// The older link is silent: so long it is waited for.
    until: Option<Instant>,
}

impl Join {
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.poll_timeout() && self.probes.len() < TRIES_MAX
    }

    pub fn poll_timeout(&self) -> Instant {
        match self.until {
            // One stands there, and another behind it tells no more.
            Some(until) if !self.probes.is_empty() => self.next_probe.max(until),
            _ => self.next_probe,
        }
    }

    /// What must arrive stands in the local queue of a link that is silent: whether it is waited for.
    pub fn waits_on_silence(&mut self, now: Instant) -> bool {
        now < *self.until.get_or_insert(now + SILENT_MAX)
    }

    pub fn on_sent(&mut self, link: LinkId, sequence: Sequence, now: Instant) {
        self.probes.push((link, sequence));
        self.next_probe = now + PATIENCE;
    }

    /// Whether this answers.
    pub fn is_answered_by(&self, ack: &Ack) -> bool {
        let mut probes = self.probes.iter();
        probes.any(|&(link, sequence)| link.0 == ack.link && ack.names(sequence))
    }

    pub fn is_hopeless(&self, now: Instant) -> bool {
        now >= self.poll_timeout() && self.probes.len() >= TRIES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_any_probe_ends_it_and_so_does_patience() {
        let mut join = Join::default();
        let mut now = Instant::ZERO;
        assert!(join.is_due(now));
        for sequence in 1..=TRIES_MAX as u32 {
            assert!(join.is_due(now) && !join.is_hopeless(now));
            join.on_sent(LinkId(2), Sequence(sequence), now);
            assert!(!join.is_due(now));
            now = join.poll_timeout();
        }
        assert!(!join.is_due(now) && join.is_hopeless(now));
        let ack = |link, newest| Ack {
            link,
            newest: Sequence(newest),
            ..Ack::default()
        };
        assert!(join.is_answered_by(&ack(2, 3)));
        assert!(!join.is_answered_by(&ack(1, 3)) && !join.is_answered_by(&ack(2, 9)));
    }

    #[test]
    fn a_link_that_is_silent_is_waited_for_half_a_second_from_when_that_was_seen() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut join = Join::default();
        join.on_sent(LinkId(2), Sequence(1), at(100));
        assert_eq!(join.poll_timeout(), at(300));
        assert!(join.waits_on_silence(at(150)));
        // Meanwhile no other probe stands behind the first.
        assert_eq!(join.poll_timeout(), at(650));
        assert!(!join.is_due(at(649)) && join.is_due(at(650)));
        assert!(join.waits_on_silence(at(649)) && !join.waits_on_silence(at(650)));
        // It has answered since then, and is asked as ever.
        join.on_sent(LinkId(2), Sequence(2), at(700));
        assert_eq!(join.poll_timeout(), at(900));
    }
}
