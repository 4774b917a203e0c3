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

#[derive(Debug, Default)]
pub struct Join {
    /// All of them left after what must arrive: an answer to any will do.
    probes: Vec<(LinkId, Sequence)>,
    next_probe: Instant,
}

impl Join {
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next_probe && self.probes.len() < TRIES_MAX
    }

    pub fn poll_timeout(&self) -> Instant {
        self.next_probe
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
        now >= self.next_probe && self.probes.len() >= TRIES_MAX
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
}
