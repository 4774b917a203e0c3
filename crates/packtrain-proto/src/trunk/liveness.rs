//! Whether one of our links and one of a peer's hear each other: the state machine of RFC 5880, with its negotiated
//! intervals, and three differences.
//!
//! - *Whatever comes by the link is a sign of life*, and what went there lately need not be said again: a busy link has
//!   no such messages.
//! - *A link is dead beside one that lives*: it counts as such when another one to the same peer was heard several times
//!   since it was. A peer that was stopped or starved says nothing by any of them, nor do we hear anything when
//!   we were. Where all are silent, it takes ten times as long.
//! - *The detection time is learnt*: a link whose frames once came so late that it seemed dead is waited for twice as
//!   long for a while.

use crate::config::LinkId;
use crate::time::{Duration, Instant};
use crate::wire::liveness::{Diagnostic, Liveness, State};

/// So many messages may be missed.
pub const MULTIPLIER: u8 = 4;
/// All links of a peer are silent for so many detection times: then nobody hears anybody.
const ALONE: u32 = 10;
/// Who looks so much later than he was to, did not run.
const LATE: Duration = Duration::from_millis(2);
/// How late frames came once is remembered for so long, and no more than that much.
const LEARNT_FOR: Duration = Duration::from_secs(30);
const LEARNT_MAX: Duration = Duration::from_millis(250);
/// While it is down, messages are further apart the longer it lasts.
const DOWN_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// However much else goes by the link, messages are no further apart.
const APART_MAX: Duration = Duration::from_secs(1);
/// Who has one link only answers for so long after it was asked.
const ANSWERS_FOR: Duration = Duration::from_secs(3);
/// A link lives that was heard so often, at times so far apart: parts of the detection time.
const LIVES: usize = 4;
const LIVES_APART: u32 = 8;
/// Messages of which it is known when they left.
const SENT_MAX: usize = 32;

/// What the state is after a message with that of the other end.
pub fn after(own: State, heard: State) -> State {
    match (own, heard) {
        (State::Down, State::Down) => State::Init,
        (State::Down, State::Init) => State::Up,
        (State::Down, State::Up) => State::Down,
        (State::Init, State::Down) => State::Init,
        (State::Init, State::Init | State::Up) => State::Up,
        (State::Up, State::Down) => State::Down,
        (State::Up, State::Init | State::Up) => State::Up,
    }
}

/// What has become of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Each hears the other.
    Up,
    /// One does not.
    Down(Diagnostic),
}

/// What the other end said last.
#[derive(Clone, Copy, Debug)]
struct Remote {
    state: State,
    multiplier: u8,
    desired: Duration,
    required: Duration,
    count: u32,
    /// When it came.
    at: Instant,
}

#[derive(Debug)]
pub struct Session {
    pub remote_link: LinkId,
    /// There are several links to the peer. Where there are not, it may be asked by one who sees several.
    pub asks: bool,
    asked_at: Option<Instant>,
    state: State,
    diagnostic: Diagnostic,
    /// When the state changed.
    since: Instant,
    /// It carried trains before anybody asked whether it is alive, and has not failed since.
    trusted: bool,
    /// It seemed dead beside another link that was not.
    failed_alone: bool,
    remote: Option<Remote>,
    /// How often we send at most, and want to hear, as we have said last.
    desired: Duration,
    required: Duration,
    /// The last sign of life of any kind; and the last ones that count, newest first.
    heard_at: Instant,
    lives: [Instant; LIVES],
    /// When it is to be looked at, and that we were late for that once.
    look_at: Instant,
    was_late: bool,
    next_transmit: Instant,
    transmitted_at: Instant,
    /// The other end is to be told something at once.
    has_news: bool,
    /// The newest long one of its polls.
    heard_long: u32,
    /// When the newest messages left, by their counts.
    sent: [(u32, Instant); SENT_MAX],
    sent_at: usize,
    round_trip: Option<Duration>,
    /// The longest silence of late that was none, and when it ended.
    learnt: (Duration, Instant),
}

impl Session {
    /// `required`: how often messages are wanted. `trusted`: trains go by it already.
    pub fn new(remote_link: LinkId, required: Duration, trusted: bool, now: Instant) -> Session {
        Session {
            remote_link,
            asks: false,
            asked_at: None,
            state: State::Down,
            diagnostic: Diagnostic::None,
            since: now,
            trusted,
            failed_alone: false,
            remote: None,
            desired: required,
            required,
            heard_at: now,
            lives: [Instant::ZERO; LIVES],
            look_at: now,
            was_late: false,
            next_transmit: now,
            transmitted_at: now,
            has_news: true,
            heard_long: 0,
            sent: [(0, Instant::ZERO); SENT_MAX],
            sent_at: 0,
            round_trip: None,
            learnt: (Duration::ZERO, Instant::ZERO),
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn diagnostic(&self) -> Diagnostic {
        self.diagnostic
    }

    /// Of messages, smoothed.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Trains may go by it, as far as it is known to live.
    pub fn works(&self) -> bool {
        self.state == State::Up || self.trusted
    }

    /// It was up, and is not.
    pub fn has_failed(&self) -> bool {
        !self.works() && self.diagnostic != Diagnostic::None
    }

    /// How long nothing had been heard when the state changed last.
    pub fn failed_after(&self) -> Duration {
        self.since.since(self.heard_at)
    }

    /// The other end wants to be answered still.
    pub fn is_asked(&self, now: Instant) -> bool {
        self.asked_at.is_some_and(|at| now.since(at) < ANSWERS_FOR)
    }

    /// So long without a word, and the link is dead, if another one lives.
    pub fn detection_time(&self, now: Instant) -> Duration {
        let (multiplier, desired) = match &self.remote {
            Some(remote) => (remote.multiplier, remote.desired),
            None => (MULTIPLIER, self.required),
        };
        let negotiated = self.required.max(desired) * u32::from(multiplier);
        negotiated.max(self.learnt(now) * 2)
    }

    fn learnt(&self, now: Instant) -> Duration {
        let (silence, ended) = self.learnt;
        match now.since(ended) < LEARNT_FOR {
            true => silence,
            false => Duration::ZERO,
        }
    }

    /// Between two messages of ours.
    pub fn interval(&self, now: Instant) -> Duration {
        let required = self.remote.as_ref().map_or(self.desired, |r| r.required);
        let interval = self.desired.max(required);
        match self.state {
            State::Up => interval,
            State::Init | State::Down => {
                let slower = now.since(self.since) / 10;
                interval.max(slower.min(DOWN_INTERVAL_MAX))
            }
        }
    }

    /// Something came by this link.
    pub fn on_life(&mut self, now: Instant) {
        let detection_time = self.detection_time(now);
        // What is read at once tells of one moment, however much it is.
        if now.since(self.lives[0]) * LIVES_APART >= detection_time {
            self.lives.copy_within(..LIVES - 1, 1);
            self.lives[0] = now;
        }
        self.heard_at = now;
        self.look_at = now + detection_time;
        self.was_late = false;
    }

    /// Nothing came for so long that it has to be looked into.
    pub fn is_gap(&self, now: Instant) -> bool {
        now.since(self.heard_at) * 2 > self.detection_time(now)
    }

    /// The silence that ends now was none of a dead link: others were heard in it.
    pub fn learn(&mut self, now: Instant) {
        let silence = now.since(self.heard_at).min(LEARNT_MAX);
        if silence >= self.learnt(now) {
            self.learnt = (silence, now);
        }
    }

    /// Whether this was heard again and again since `other` was heard last.
    pub fn outlives(&self, other: &Session, now: Instant) -> bool {
        self.state == State::Up
            && self.lives[LIVES - 1] > other.heard_at
            && now.since(self.heard_at) < self.detection_time(now)
    }

    /// What the time makes of it. `others`: sessions of the peer by other links.
    pub fn look<'a>(
        &mut self,
        mut others: impl Iterator<Item = &'a Session>,
        now: Instant,
    ) -> Option<Change> {
        if now < self.look_at || self.state == State::Down {
            return None;
        }
        let detection_time = self.detection_time(now);
        let silence = now.since(self.heard_at);
        if silence < detection_time {
            self.look_at = self.heard_at + detection_time;
            return None;
        }
        let late = now.since(self.look_at);
        if late > LATE && !std::mem::replace(&mut self.was_late, true) {
            // We did not run, and what came meanwhile may not be read yet.
            self.look_at = now + late.min(detection_time / 2);
            return None;
        }
        self.failed_alone = others.any(|other| other.outlives(self, now));
        if silence < detection_time * ALONE && !self.failed_alone {
            self.look_at = now + detection_time / 4;
            return None;
        }
        self.go(State::Down, Diagnostic::Expired, now)
    }

    /// Whether a message of this count is news: an older one is a copy, or was overtaken; unless the newest was forged.
    pub fn is_news(&self, count: u32, now: Instant) -> bool {
        let Some(newest) = &self.remote else {
            return true;
        };
        let is_newer = count.wrapping_sub(newest.count) as i32 > 0;
        is_newer || now.since(self.heard_at) > self.detection_time(now)
    }

    /// Takes a message in; `None`: it is no news.
    pub fn on_message(&mut self, said: &Liveness, now: Instant) -> Option<Option<Change>> {
        if !self.is_news(said.count, now) {
            return None;
        }
        let seems_dead = self.state == State::Down && self.failed_alone;
        if seems_dead && said.state == State::Up {
            // When it sent this it heard us still: not the link was dead, but its frames were late.
            self.learn(now);
        }
        let sent = self.sent.iter().find(|(count, _)| *count == said.heard);
        if let Some((_, at)) = sent.filter(|_| said.heard != 0) {
            let took = now.since(*at).saturating_sub(said.heard_age);
            self.round_trip = Some(match self.round_trip {
                Some(before) => before - before / 8 + took / 8,
                None => took,
            });
        }
        self.remote = Some(Remote {
            state: said.state,
            multiplier: said.multiplier,
            desired: said.desired,
            required: said.required,
            count: said.count,
            at: now,
        });
        self.on_life(now);
        if said.asks {
            self.asked_at = Some(now);
        }
        if said.poll {
            if said.is_long {
                self.heard_long = said.count;
            }
            self.has_news = true;
            self.next_transmit = now;
        }
        let state = after(self.state, said.state);
        let diagnostic = match state {
            State::Down if said.diagnostic == Diagnostic::Expired => Diagnostic::NeighborDown,
            // It has begun anew.
            _ => Diagnostic::None,
        };
        Some(self.go(state, diagnostic, now))
    }

    fn go(&mut self, state: State, diagnostic: Diagnostic, now: Instant) -> Option<Change> {
        if state == self.state {
            return None;
        }
        let was = std::mem::replace(&mut self.state, state);
        self.since = now;
        // Who waits for it is told at once.
        self.has_news = true;
        self.next_transmit = now;
        match (was, state) {
            (_, State::Up) => {
                self.trusted = false;
                self.failed_alone = false;
                Some(Change::Up)
            }
            (State::Up, _) => {
                self.diagnostic = diagnostic;
                Some(Change::Down(diagnostic))
            }
            (_, State::Down) if self.trusted => {
                // It has begun to answer, and does not any more.
                self.trusted = false;
                self.diagnostic = diagnostic;
                Some(Change::Down(diagnostic))
            }
            _ => None,
        }
    }

    /// The next message is not to be lost for being long.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    pub fn transmit_at(&self) -> Instant {
        self.next_transmit
    }

    /// Something else left by this link, from which the other end sees as much.
    pub fn on_other_sent(&mut self, now: Instant) {
        let says_up = |remote: &Remote| remote.state == State::Up;
        if self.state == State::Up && self.remote.as_ref().is_some_and(says_up) {
            let latest = self.transmitted_at + APART_MAX;
            let later = (now + self.interval(now)).min(latest);
            self.next_transmit = self.next_transmit.max(later);
        }
    }

    /// The message that is due. `count`: of this node's. `jitter`: 0 … 255, at random.
    pub fn message(
        &mut self,
        link: LinkId,
        incarnation: u16,
        (count, jitter): (u32, u8),
        (desired, required): (Duration, Duration),
        now: Instant,
    ) -> Liveness {
        (self.desired, self.required) = (desired, required);
        let interval = self.interval(now);
        self.next_transmit = now + interval - interval / 4 * u32::from(jitter) / 255;
        self.transmitted_at = now;
        self.has_news = false;
        self.sent[self.sent_at] = (count, now);
        self.sent_at = (self.sent_at + 1) % SENT_MAX;
        Liveness {
            state: self.state,
            diagnostic: self.diagnostic,
            multiplier: MULTIPLIER,
            asks: self.asks,
            poll: false,
            is_long: false,
            link,
            remote_link: self.remote_link,
            incarnation,
            count,
            heard: self.remote.as_ref().map_or(0, |remote| remote.count),
            heard_age: self
                .remote
                .as_ref()
                .map_or(Duration::ZERO, |r| now.since(r.at)),
            // The other end waits for as long as it is told.
            desired: interval,
            required,
            heard_long: self.heard_long,
        }
    }

    /// It cannot leave now.
    pub fn postpone(&mut self, now: Instant) {
        self.next_transmit = now + self.interval(now);
    }

    /// When the next message goes, or the state may change.
    pub fn poll_timeout(&self) -> Instant {
        match self.state {
            State::Down => self.next_transmit,
            State::Init | State::Up => self.next_transmit.min(self.look_at),
        }
    }
}

#[cfg(test)]
mod tests;
