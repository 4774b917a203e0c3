//! Where a link's frames are taken, kept in step with who else takes frames of it.
//!
//! A move has three steps, with time between them, in which the line goes on: a socket stands at the other place, and
//! the guard gives to both; it gives to the new one alone; the old one, which has been read by now, is closed. The
//! time is for frames that a processor has in hand: they go by what it read when they came.

use std::time::Duration;

use packtrain_proto::time::Instant;

use super::RunningLine;
use super::member::Attached;
use crate::daemon::{Filter, Line};
use crate::linux::guard::{GivesTo, GuardError, Reception};

/// Netlink tells of most that comes to a link and goes, but not of all.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Much longer than a processor has a frame in hand, also one that is taken away from its host meanwhile.
const SETTLED_AFTER: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
enum MoveError {
    #[error("its packet socket: {0}")]
    Socket(#[from] std::io::Error),
    #[error(transparent)]
    Guard(#[from] GuardError),
}

impl RunningLine {
    pub(super) fn step_reception(&mut self) {
        let now = self.clock.now();
        for member in &mut self.members {
            if let Some(next) = member.step_reception(&mut self.line, now) {
                self.line.wake_by(next);
            }
        }
    }
}

impl Attached {
    pub(super) fn filter_of(&self, reception: Reception) -> Filter<'_> {
        Filter {
            reception,
            program: Some(self.guard.filter_of(reception)),
        }
    }

    /// What else takes frames of the link may have come or gone.
    pub(super) fn look_at_reception_soon(&mut self) {
        self.reception_look_at = Instant::ZERO;
    }

    pub(super) fn step_reception(&mut self, line: &mut Line, now: Instant) {
        let next = self.take_step(line, now).unwrap_or_else(|error| {
            tracing::warn!("{}: where its frames are taken: {error}", self.link.name);
            LOOK_INTERVAL
        });
        self.reception_look_at = now + next;
    }

    /// The next step, if there is one to take; says when to look again.
    fn take_step(&mut self, line: &mut Line, now: Instant) -> Result<Duration, MoveError> {
        let wanted = self.guard.best_reception();
        let ifindex = self.link.ifindex;
        let since = self.reception_moved_at.map(|at| now.since(at));
        match self.guard.gives_to() {
            GivesTo::One(current) if current != wanted => {
                line.open_reception(ifindex, self.filter_of(wanted))?;
                self.give_to(GivesTo::Both, now)?;
            }
            _ if since.is_some_and(|since| since < SETTLED_AFTER) => {}
            GivesTo::Both => {
                line.read_last(ifindex, wanted);
                self.give_to(GivesTo::One(wanted), now)?;
                tracing::debug!("{}: frames are taken {wanted:?}", self.link.name);
            }
            GivesTo::One(current) if since.is_some() => {
                self.guard.forget_tapped()?;
                if line.close_receptions_but(ifindex, current) {
                    self.reception_moved_at = None;
                }
            }
            GivesTo::One(_) => return Ok(LOOK_INTERVAL),
        }
        Ok(SETTLED_AFTER)
    }

    fn give_to(&mut self, gives_to: GivesTo, now: Instant) -> Result<(), GuardError> {
        self.guard.give_to(gives_to)?;
        self.reception_moved_at = Some(now);
        Ok(())
    }
}
