//! Where the sender is, when its sequences are far from where we are.

use super::{Resequencer, WINDOW};
use crate::time::{Duration, Instant};
use crate::wire::sequence::Sequence;

/// A sender that says to be further behind than this is right.
const BEHIND_MAX: i32 = 1024;
/// So many trains refused for their sequence, each one after the other: that is where the sender
/// is. A long silent loss, or one false sequence, must not lock a peer out for good.
pub(super) const STRAYS_MAX: u32 = 16;
/// Longer than what a sender says of itself is under way.
pub(super) const BEHIND_FOR: Duration = Duration::from_millis(1500);

impl Resequencer {
    /// Counts a train whose sequence is refused. After enough of them in a row the window moves to
    /// where they are.
    pub(super) fn is_where_the_sender_is(&mut self, sequence: Sequence) -> bool {
        let follows = self.strays > 0 && sequence == self.stray_next;
        self.strays = if follows { self.strays + 1 } else { 1 };
        self.stray_next = sequence.next();
        if self.strays < STRAYS_MAX {
            return false;
        }
        self.move_to(sequence);
        true
    }

    /// What the sender says is the newest that it has sent: far from where we are, it is right. A
    /// forged train has led us astray, or more was lost than the window holds. That we are ahead of it may be
    /// because what it said was overtaken by what it sent since. On one link that is over when nothing was taken for as
    /// long as any straggler is waited for; where there are several, it is right when it still says so after a while in
    /// which nothing was taken.
    pub fn on_newest_sent(&mut self, newest: Sequence, now: Instant) {
        self.discard_unsent(newest, now);
        self.forget_unsent(newest, now);
        let ahead = newest.next().distance_from(self.expected);
        let behind_max = match self.under_way.names_links() {
            true => 0,
            false => BEHIND_MAX,
        };
        let is_behind = ahead < -behind_max;
        if !is_behind && ahead < WINDOW as i32 {
            self.behind_since = None;
            return;
        }
        if is_behind && self.under_way.names_links() {
            let since = *self.behind_since.get_or_insert(now);
            if now.since(since) < BEHIND_FOR {
                return;
            }
        } else if is_behind
            && self
                .taken_at
                .is_some_and(|at| now.since(at) < self.wait_max)
        {
            return;
        }
        self.move_to(newest.next());
    }

    /// What is held that its sender has not sent was altered on its way, or forged. Nothing will ever fill the gap before it, and when that
    /// was given up, all that the sender sends until it is there would be late. What was held before its sender said so has not
    /// overtaken that, when it says so still, after a while.
    fn discard_unsent(&mut self, newest: Sequence, now: Instant) {
        let holds_unsent = self.held_trains > 0 && self.newest().is_newer_than(newest);
        if !holds_unsent {
            self.unsent_since = None;
            return;
        }
        let since = *self.unsent_since.get_or_insert(now);
        if now.since(since) < BEHIND_FOR {
            return;
        }
        self.unsent_since = None;
        let first = newest.next().distance_from(self.expected).max(0);
        for slot in self.held.iter_mut().skip(first as usize) {
            if let Some(held) = slot.take_if(|held| held.arrived <= since) {
                self.held_bytes -= held.buffer.capacity();
                self.held_trains -= 1;
                self.discarded += 1;
                self.gap = None;
            }
        }
        while self.held.back().is_some_and(Option::is_none) {
            self.held.pop_back();
        }
    }

    /// What a train told that its sender has not sent stands before all that it tells until it is there: gaps would be given up too early
    /// meanwhile, and of lossless lanes nobody would know that there are copies. What was told since it began to say so has overtaken that.
    fn forget_unsent(&mut self, newest: Sequence, now: Instant) {
        if !self.under_way.told_by().is_newer_than(newest) {
            self.untold_since = None;
            return;
        }
        let since = *self.untold_since.get_or_insert(now);
        if now.since(since) < BEHIND_FOR {
            return;
        }
        self.untold_since = None;
        if self.under_way.told_at() <= since {
            self.under_way.restart_after(self.expected.minus(1));
        }
    }

    pub(super) fn move_to(&mut self, sequence: Sequence) {
        self.discarded += self.held_trains as u64;
        self.held.clear();
        self.held_trains = 0;
        self.held_bytes = 0;
        self.history.clear();
        self.under_way.restart_after(sequence.minus(1));
        self.gap = None;
        self.expected = sequence;
        self.strays = 0;
        self.behind_since = None;
        self.unsent_since = None;
        self.untold_since = None;
        self.given_up_to = None;
        self.begins_after = None;
        self.after_gap = true;
    }
}
