//! Short flows before others: whose turn it is, where flows of both kinds wait.
//!
//! Those that are no elephants yet go first, but not for ever: beyond [`AHEAD_BYTES_MAX`] they get only as many bytes as the
//! others do, as urgent frames do ([`Ahead`](super::ahead::Ahead)). Among each kind flows take turns as ever. What leaves
//! while none of the others waits has delayed nobody, and does not count.

use crate::queue::ahead::AHEAD_BYTES_MAX;

#[derive(Debug, Default)]
pub struct ShortFirst {
    /// Bytes of short flows that left while others waited, less those of others since.
    bytes: usize,
    chosen: Chosen,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Chosen {
    /// None of the other kind waits.
    #[default]
    Alone,
    ShortAhead,
    Other {
        short_wait: bool,
    },
}

impl ShortFirst {
    /// Whether a short flow is next; some flow waits.
    pub fn choose(&mut self, short_wait: bool, others_wait: bool) -> bool {
        let is_short = short_wait && (!others_wait || self.bytes < AHEAD_BYTES_MAX);
        self.chosen = match (is_short, others_wait) {
            (true, true) => Chosen::ShortAhead,
            (true, false) => Chosen::Alone,
            (false, _) => Chosen::Other { short_wait },
        };
        is_short
    }

    /// Bytes of what was chosen left.
    pub fn charge(&mut self, bytes: usize) {
        self.bytes = match self.chosen {
            Chosen::Alone => self.bytes,
            Chosen::ShortAhead => self.bytes + bytes,
            Chosen::Other { .. } => self.bytes.saturating_sub(bytes),
        };
    }

    /// What was chosen cannot leave now: it is the other kind's turn, if it waits.
    pub fn pass(&mut self) {
        self.bytes = match self.chosen {
            Chosen::ShortAhead => AHEAD_BYTES_MAX,
            Chosen::Other { short_wait: true } => self.bytes.min(AHEAD_BYTES_MAX - 1),
            Chosen::Alone | Chosen::Other { short_wait: false } => self.bytes,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_flows_go_first_up_to_a_bound_and_then_have_as_much_as_the_others() {
        let mut first = ShortFirst::default();
        let mut next = |short, others| {
            let is_short = first.choose(short, others);
            first.charge(1000);
            is_short
        };
        assert!((0..1000).all(|_| next(true, false)), "nobody else waits");
        assert!((0..17).all(|_| next(true, true)));
        let short = (0..1000).filter(|_| next(true, true)).count();
        assert!((499..=501).contains(&short), "{short}");
        assert!((0..17).all(|_| !next(false, true)));
        assert!((0..17).all(|_| next(true, true)), "they have made room");
    }

    #[test]
    fn who_cannot_leave_lets_the_other_kind_go() {
        let mut first = ShortFirst::default();
        for _ in 0..10 {
            assert!(first.choose(true, true));
            first.pass();
            assert!(!first.choose(true, true));
            first.pass();
        }
        assert!(first.choose(true, false));
        first.pass();
        assert!(first.choose(true, false), "there is nobody else");
    }
}
