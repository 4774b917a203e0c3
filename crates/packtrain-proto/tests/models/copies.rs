//! What a sender with several links has to keep and to send again, after docs/wire-format.md: nothing is kept
//! but what has happened, and each answer is worked out anew from all of it.

use std::collections::BTreeMap;

use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::sequence::Sequence;
use packtrain_proto::wire::train::Ack;

use crate::breakage::Breakage;

/// Newer ones by the same link, and a train is lost; a probe, which is acknowledged in its turn.
const NEWER_MAX: i32 = 16;
const NEWER_THAN_A_PROBE_MAX: i32 = 64;
const ACK_DELAY_MAX: Duration = Duration::from_millis(1);
const LATE_MIN: Duration = Duration::from_millis(5);
/// … while no round trip is known.
const UNKNOWN_LATE: Duration = Duration::from_millis(200);
/// An answer to what counted as lost tells how late the link is, …
const ANSWER_LATE_MAX: Duration = Duration::from_secs(3);
/// … and is known as one for so long.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    New,
    Replay,
    /// A copy that shows whether a silent link works again.
    Try,
}

/// A train that was put on a link.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    pub link: u8,
    /// The link's own number of it.
    pub sequence: Sequence,
    pub train: Sequence,
    pub kind: Kind,
    pub is_probe: bool,
    pub is_kept: bool,
    pub at: Instant,
}

#[derive(Clone, Debug)]
enum What {
    Sent(Sending),
    Acknowledged(Ack),
    Died {
        link: u8,
    },
    /// Nothing else worked, and what was under way counts as lost.
    GaveUp {
        link: u8,
    },
    /// A waiting train fits none of the links that are left.
    TooLarge {
        train: Sequence,
    },
}

#[derive(Clone, Debug)]
struct Event {
    at: Instant,
    what: What,
}

/// What is known of one link at the end of what has happened.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    pub out: Vec<Sending>,
    /// What counted as lost because nothing was acknowledged.
    given_up: Vec<Sending>,
    pub round_trip: Option<Duration>,
    /// When something was acknowledged last, or put on it while nothing was out.
    pub progress_at: Instant,
}

impl Standing {
    fn sample(&mut self, sample: Duration) {
        let before = self.round_trip;
        self.round_trip = Some(before.map_or(sample, |r| (r * 7 + sample) / 8));
    }

    /// What counted as lost may be acknowledged after all.
    fn answer_late(&mut self, ack: &Ack, is_named: impl Fn(&Sending) -> bool, at: Instant) {
        self.given_up
            .retain(|sending| at.since(sending.at) <= REMEMBERED_FOR);
        let mut given_up = self.given_up.iter();
        let newest = given_up.find(|sending| sending.sequence == ack.newest);
        if let Some(late) = newest.map(|sending| at.since(sending.at)) {
            let delay = Duration::from_nanos(u64::from(ack.delay_nanos));
            let sample = late.saturating_sub(delay);
            if sample <= ANSWER_LATE_MAX {
                self.sample(sample);
            }
            self.progress_at = at;
        }
        self.given_up.retain(|sending| !is_named(sending));
    }

    pub fn has_data(&self) -> bool {
        self.out.iter().any(Sending::has_bytes)
    }

    /// No acknowledgement takes so long when all is well.
    pub fn late_after(&self) -> Duration {
        match self.round_trip {
            Some(round_trip) => (round_trip + ACK_DELAY_MAX) * 5 / 4 + LATE_MIN,
            None => UNKNOWN_LATE,
        }
    }
}

impl Sending {
    /// Its silence means something.
    fn has_bytes(&self) -> bool {
        !self.is_probe && self.kind != Kind::Try
    }
}

#[derive(Debug)]
pub struct Copies {
    history: Vec<Event>,
    breakage: Option<Breakage>,
}

impl Copies {
    pub fn new(breakage: Option<Breakage>) -> Copies {
        Copies {
            history: Vec::new(),
            breakage,
        }
    }

    fn is(&self, breakage: Breakage) -> bool {
        self.breakage == Some(breakage)
    }

    fn log(&mut self, at: Instant, what: What) {
        self.history.push(Event { at, what });
    }

    pub fn sent(&mut self, sending: Sending) {
        self.log(sending.at, What::Sent(sending));
    }

    pub fn acknowledged(&mut self, ack: Ack, now: Instant) {
        self.log(now, What::Acknowledged(ack));
    }

    pub fn died(&mut self, link: u8, now: Instant) {
        self.log(now, What::Died { link });
    }

    pub fn gave_up(&mut self, link: u8, now: Instant) {
        self.log(now, What::GaveUp { link });
    }

    pub fn too_large(&mut self, train: Sequence, now: Instant) {
        self.log(now, What::TooLarge { train });
    }

    /// Of the first so many events.
    fn standing_after(&self, events: usize, link: u8) -> Standing {
        let mut standing = Standing::default();
        for event in &self.history[..events] {
            match event.what {
                What::Sent(sending) if sending.link == link => {
                    if !standing.has_data() {
                        standing.progress_at = event.at;
                    }
                    standing.out.push(sending);
                }
                What::Acknowledged(ack) if ack.link == link => {
                    self.acknowledge(&mut standing, &ack, event.at);
                }
                What::GaveUp { link: l } if l == link => {
                    let out = std::mem::take(&mut standing.out).into_iter();
                    standing.given_up.extend(out.filter(Sending::has_bytes));
                }
                What::Died { link: l } if l == link => standing.out.clear(),
                _ => {}
            }
        }
        standing
    }

    pub fn standing(&self, link: u8) -> Standing {
        self.standing_after(self.history.len(), link)
    }

    fn acknowledge(&self, standing: &mut Standing, ack: &Ack, at: Instant) {
        let behind = |sending: &Sending| ack.newest.distance_from(sending.sequence);
        let is_named = |sending: &Sending| match behind(sending) {
            0 => true,
            n @ 1..=64 => ack.bitmap >> (n - 1) & 1 == 1 && !self.is(Breakage::BitmapsAreIgnored),
            _ => false,
        };
        standing.answer_late(ack, is_named, at);
        let named = |sending: &&Sending| is_named(sending);
        if let Some(newest) = standing.out.iter().rfind(named) {
            standing.progress_at = at;
            if newest.sequence == ack.newest {
                let delay = Duration::from_nanos(u64::from(ack.delay_nanos));
                standing.sample(at.since(newest.at).saturating_sub(delay));
            }
        }
        let late_after = standing.late_after();
        let knows = standing.round_trip.is_some();
        let is_lost = |sending: &Sending| match behind(sending) {
            ..=0 => false,
            n if !sending.has_bytes() => n > NEWER_THAN_A_PROBE_MAX,
            n => n > NEWER_MAX || (knows && at.since(sending.at) > late_after),
        };
        let is_lost = |sending: &Sending| is_lost(sending) && !self.is(Breakage::NothingIsEverLost);
        standing
            .out
            .retain(|sending| !is_named(sending) && !is_lost(sending));
    }

    /// Trains that wait to be sent again, and whether a copy of each that died was kept; and how many were
    /// lost because there was none.
    fn died_so_far(&self) -> (BTreeMap<u32, Sequence>, u64) {
        let mut waiting = BTreeMap::new();
        let mut without_copy = 0;
        for (at, event) in self.history.iter().enumerate() {
            match event.what {
                What::Died { link } => {
                    let standing = self.standing_after(at, link);
                    for sending in standing.out.iter().filter(|s| s.kind != Kind::Try) {
                        if sending.is_kept {
                            waiting.insert(sending.train.0, sending.train);
                        } else {
                            without_copy += 1;
                        }
                    }
                }
                What::GaveUp { link } if self.is(Breakage::WhatWasGivenUpGoesAgain) => {
                    for sending in self.standing_after(at, link).out {
                        waiting.insert(sending.train.0, sending.train);
                    }
                }
                What::Sent(Sending {
                    kind: Kind::Replay,
                    train,
                    ..
                }) => {
                    waiting.remove(&train.0);
                }
                What::TooLarge { train } => {
                    waiting.remove(&train.0);
                }
                _ => {}
            }
        }
        (waiting, without_copy)
    }

    /// In the order in which they go. (A sender's first train is 1, and runs are short: none wraps.)
    pub fn waiting(&self) -> Vec<Sequence> {
        let mut waiting: Vec<Sequence> = self.died_so_far().0.into_values().collect();
        if self.is(Breakage::NewestGoesFirst) {
            waiting.reverse();
        }
        waiting
    }

    pub fn lost_without_copy(&self) -> u64 {
        self.died_so_far().1
    }

    /// Copies of what is out on these links, and of what waits.
    pub fn kept(&self, links: u8) -> usize {
        let out = (0..links).flat_map(|link| self.standing(link).out);
        out.filter(|sending| sending.is_kept).count() + self.waiting().len()
    }

    pub fn count(&self, kind: Kind) -> u64 {
        let of_kind = |event: &&Event| matches!(event.what, What::Sent(s) if s.kind == kind);
        self.history.iter().filter(of_kind).count() as u64
    }

    pub fn sent_without_copy(&self) -> u64 {
        let without = |event: &&Event| matches!(event.what, What::Sent(s) if s.kind != Kind::Try && !s.is_kept);
        self.history.iter().filter(without).count() as u64
    }

    /// The newest train that may still come because it is sent again. `None`: none may.
    pub fn newest_replayed(&self, links: u8) -> Option<Sequence> {
        let out = (0..links).flat_map(|link| self.standing(link).out);
        let replays = out.filter(|sending| sending.kind == Kind::Replay);
        let all = replays.map(|sending| sending.train).chain(self.waiting());
        all.max_by_key(|train| train.0)
    }

    /// The newest train of its own that this link may still bring.
    pub fn newest_own(&self, link: u8) -> Option<Sequence> {
        let out = self.standing(link).out;
        let own = out.iter().filter(|sending| sending.kind == Kind::New);
        own.map(|sending| sending.train).max_by_key(|train| train.0)
    }

    /// What a train by this link has to say of the others; of what is sent again, at least this.
    pub fn told(&self, by: u8, links: u8) -> BTreeMap<u8, Sequence> {
        let others = (0..links).filter(|link| *link != by || self.is(Breakage::OwnLinkIsTold));
        others
            .filter_map(|link| Some((link, self.newest_own(link)?)))
            .collect()
    }
}
