//! Flows that go ahead of others, because the frame at their head is of a class that says *now*.
//!
//! They go first, but not for ever: beyond [`AHEAD_BYTES_MAX`] they get only as many bytes as the others
//! do. So who marks everything as urgent takes half of a busy link at most, and delays another by no
//! more than those bytes.

use std::collections::VecDeque;

/// Bytes that urgent frames may be ahead of what the others had.
pub const AHEAD_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug, Default)]
pub struct Ahead {
    /// In the order in which they became urgent. Some may not be any more.
    flows: VecDeque<u16>,
    /// Bytes that left ahead, less those of others that left since.
    bytes: usize,
    /// What was chosen last goes ahead.
    chosen: bool,
}

impl Ahead {
    /// It has an urgent head, and was not here.
    pub fn add(&mut self, flow: u16) {
        self.flows.push_back(flow);
    }

    /// It is not to be here any more.
    pub fn forget(&mut self, flow: u16) {
        self.flows.retain(|&other| other != flow);
    }

    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.flows.iter().copied()
    }

    /// The flow that goes ahead now, if one may. Those for which `stays` does not hold are forgotten on the way.
    pub fn select(&mut self, mut stays: impl FnMut(u16) -> bool) -> Option<u16> {
        while self.flows.front().is_some_and(|&flow| !stays(flow)) {
            self.flows.pop_front();
        }
        let may = self.bytes < AHEAD_BYTES_MAX;
        let flow = self.flows.front().copied().filter(|_| may);
        self.chosen = flow.is_some();
        flow
    }

    /// What was chosen cannot leave now: another has its turn. Says whether it was ahead of its own.
    pub fn pass(&mut self) -> bool {
        if self.chosen {
            self.bytes = AHEAD_BYTES_MAX;
        }
        self.chosen
    }

    /// Bytes of what was chosen left; says whether ahead of its turn.
    pub fn charge(&mut self, bytes: usize) -> bool {
        self.bytes = match self.chosen {
            // The last one may be larger than what was left: others have as much before the next.
            true => self.bytes + bytes,
            false => self.bytes.saturating_sub(bytes),
        };
        self.chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who leaves, 1000 bytes at a time, while `others` wait too.
    fn next(ahead: &mut Ahead, urgent: impl Fn(u16) -> bool) -> Option<u16> {
        let flow = ahead.select(urgent);
        assert_eq!(ahead.charge(1000), flow.is_some());
        flow
    }

    #[test]
    fn they_go_first_up_to_a_bound_and_then_take_turns_with_the_others() {
        let mut ahead = Ahead::default();
        ahead.add(7);
        let first: Vec<_> = (0..17).map(|_| next(&mut ahead, |_| true)).collect();
        assert_eq!(first, [Some(7); 17]);
        let mut urgent = 0;
        for _ in 0..1000 {
            urgent += u32::from(next(&mut ahead, |_| true).is_some());
        }
        assert!((499..=501).contains(&urgent), "{urgent}");
    }

    #[test]
    fn who_is_urgent_no_more_is_forgotten_and_who_passes_makes_room() {
        let mut ahead = Ahead::default();
        ahead.add(1);
        ahead.add(2);
        assert_eq!(next(&mut ahead, |flow| flow == 2), Some(2));
        assert_eq!(ahead.iter().collect::<Vec<_>>(), [2]);
        assert_eq!(ahead.select(|_| true), Some(2));
        ahead.pass();
        assert_eq!(next(&mut ahead, |_| true), None);
        assert_eq!(next(&mut ahead, |_| true), Some(2));
        assert_eq!(next(&mut ahead, |_| false), None);
        assert_eq!(ahead.iter().count(), 0);
    }
}
