//! When to say hello: to all on a schedule, to a stranger at once, but only so often.

use std::collections::VecDeque;

use crate::buffer::Buffer;
use crate::config::{Limits, LinkId};
use crate::random::Random;
use crate::time::{Duration, Instant};

/// The first hellos come faster.
const HURRIED: u8 = 3;
const HURRIED_INTERVAL: Duration = Duration::from_millis(100);
/// Messages that wait for their link; more are not needed, as the next round comes.
const OUTBOX_MAX: usize = 1024;

#[derive(Debug)]
pub struct Greeter {
    interval: Duration,
    next_round: Instant,
    hurried_left: u8,
    answers_per_second_max: u32,
    answers_left: u32,
    refill_at: Instant,
    outbox: VecDeque<(LinkId, Buffer)>,
    random: Random,
    epoch: u8,
    hellos: u32,
    liveness: u32,
}

impl Greeter {
    pub fn new(seed: u64, limits: &Limits, now: Instant) -> Greeter {
        Greeter {
            interval: limits.hello_interval,
            next_round: now,
            hurried_left: HURRIED,
            answers_per_second_max: limits.hello_answers_per_second_max,
            answers_left: limits.hello_answers_per_second_max,
            refill_at: now,
            outbox: VecDeque::new(),
            random: Random::new(seed ^ 0x5851_f42d_4c95_7f2d),
            epoch: seed as u8,
            hellos: 0,
            liveness: 0,
        }
    }

    /// Something changed that peers should know soon.
    pub fn hurry(&mut self, now: Instant) {
        self.hurried_left = HURRIED;
        self.next_round = now;
    }

    pub fn poll_timeout(&self) -> Instant {
        self.next_round
    }

    /// Whether a round of hellos to all is due; the next is then set.
    pub fn round_is_due(&mut self, now: Instant) -> bool {
        if now < self.next_round {
            return false;
        }
        let interval = if self.hurried_left > 0 {
            self.hurried_left -= 1;
            HURRIED_INTERVAL
        } else {
            // A tenth of jitter, so that the hosts of a segment do not speak in chorus.
            let jitter = self.random.up_to(self.interval.as_nanos() as u64 / 10);
            self.interval - Duration::from_nanos(jitter)
        };
        self.next_round = now + interval;
        true
    }

    /// Whether one more answer to a stranger may go now.
    pub fn may_answer(&mut self, now: Instant) -> bool {
        if now >= self.refill_at {
            self.answers_left = self.answers_per_second_max;
            self.refill_at = now + Duration::from_secs(1);
        }
        let may = self.answers_left > 0;
        self.answers_left = self.answers_left.saturating_sub(1);
        may
    }

    /// Puts a message out; gives it back when too many wait.
    pub fn post(&mut self, link: LinkId, message: Buffer) -> Option<Buffer> {
        if self.outbox.len() >= OUTBOX_MAX {
            return Some(message);
        }
        self.outbox.push_back((link, message));
        None
    }

    pub fn take(&mut self) -> Option<(LinkId, Buffer)> {
        self.outbox.pop_front()
    }

    /// The number of the next hello: never 0.
    pub fn next_count(&mut self) -> u32 {
        self.hellos = self.hellos.wrapping_add(1).max(1);
        self.hellos
    }

    /// The number of the next liveness message, never 0, and its jitter.
    pub fn next_liveness(&mut self) -> (u32, u8) {
        self.liveness = self.liveness.wrapping_add(1).max(1);
        (self.liveness, self.random.up_to(255) as u8)
    }

    /// Another than the last 255: a peer that is met anew must see it.
    pub fn next_epoch(&mut self) -> u8 {
        self.epoch = self.epoch.wrapping_add(1);
        self.epoch
    }
}
