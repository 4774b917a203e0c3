//! What a resequencer has to do, after docs/wire-format.md: nothing is kept but what has happened, and each
//! answer is worked out anew from all of it. Here is what has happened, and what becomes of each train.

// The fuzz target takes this file by its path, and what is below it would be looked for elsewhere.
#[path = "order/said.rs"]
mod said;
#[path = "order/waits.rs"]
mod waits;
#[path = "order/word.rs"]
mod word;

use packtrain_proto::config::LinkId;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::trunk::resequencer::{Refused, Repairing};
use packtrain_proto::wire::sequence::Sequence;

use crate::breakage::Breakage;
pub use waits::COPIES_SILENT_MAX;

const WINDOW: i32 = 4096;
const REMEMBERED: usize = WINDOW as usize;
const BEHIND_MAX: i32 = 1024;
const IN_A_ROW: usize = 16;
const STALL_MIN: Duration = Duration::from_millis(1200);
const BEHIND_FOR: Duration = Duration::from_millis(1500);
/// No sender has more trains under way.
const SPAN: i32 = 3072;
/// Room for one more train, of the usual size.
const ROOM: usize = 2048;

#[derive(Clone, Debug)]
enum What {
    Began {
        first: Sequence,
    },
    Taken {
        train: Sequence,
        bytes: usize,
    },
    /// The first gap was filled, so long after it was noticed.
    Filled {
        took: Duration,
    },
    /// Refused, and perhaps a sign that we are astray.
    Stray {
        train: Sequence,
    },
    CameLate {
        train: Sequence,
    },
    /// By its own link, so long after it could have been waited for.
    TooLate {
        late: Duration,
    },
    /// Everything before this train has come by this link, or is lost.
    Passed {
        link: LinkId,
        train: Sequence,
        is_newer: bool,
    },
    /// By one that its own link was given later; the first gap was so old.
    Overtaken {
        gap_age: Duration,
    },
    Told {
        by: Sequence,
        links: Vec<(LinkId, Sequence)>,
        /// What links lose that live may go again.
        repairs: Repairing,
        /// The oldest train that its sender keeps.
        kept_from: Option<Sequence>,
    },
    /// The train that is due goes again, it was said, so long after nothing seemed to bring it.
    WordKept {
        took: Duration,
    },
    /// A train came because it was sent again, so long after nothing seemed to bring it, and too late.
    AgainTooLate {
        took: Duration,
    },
    /// What links that had died carried goes again, up to this train.
    GoesAgain {
        newest: Sequence,
    },
    /// A link was taken away, and the sender has said only that older trains go again.
    LinkRemoved {
        told: Option<Sequence>,
    },
    /// The next train is missing: whether something may still bring it.
    Missed {
        nothing_brings_it: bool,
    },
    GivenUp {
        train: Sequence,
        waited: Duration,
        learns: bool,
        /// Nobody has said in time that it goes again.
        breaks_word: bool,
    },
    LetThrough {
        train: Sequence,
    },
    Hurry,
    NothingHeld,
    Moved {
        to: Sequence,
        discarded: usize,
    },
    SaidBehind,
    SaidNear,
    /// A hello says that something held was never sent, or that all was.
    SaidUnsent,
    SaidSent,
    /// A hello says that what told last what is under way was never sent, or that it was.
    SaidUntold,
    SaidTold,
    /// Nothing is known any more of what comes after this train.
    Forgotten {
        after: Sequence,
    },
    /// Held, and never sent.
    Discarded {
        trains: Vec<Sequence>,
    },
    /// Another lane has waited up to this train in vain.
    LetGo {
        last: Sequence,
    },
}

#[derive(Clone, Debug)]
struct Event {
    at: Instant,
    what: What,
}

/// A train whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub train: Sequence,
    pub arrived: Instant,
    pub after_gap: bool,
}

#[derive(Debug)]
pub struct Order {
    history: Vec<Event>,
    bytes_max: usize,
    wait_max: Duration,
    stall_max: Duration,
    breakage: Option<Breakage>,
}

impl Order {
    pub fn new(
        first: Sequence,
        bytes_max: usize,
        (wait_max, stall_max): (Duration, Duration),
        breakage: Option<Breakage>,
    ) -> Order {
        let begin = Event {
            at: Instant::ZERO,
            what: What::Began { first },
        };
        Order {
            history: vec![begin],
            bytes_max,
            wait_max,
            stall_max,
            breakage,
        }
    }

    fn is(&self, breakage: Breakage) -> bool {
        self.breakage == Some(breakage)
    }

    fn log(&mut self, at: Instant, what: What) {
        self.history.push(Event { at, what });
    }

    /// What has happened since something of this kind.
    fn since(&self, is_end: impl Fn(&What) -> bool) -> &[Event] {
        let end = self.history.iter().rposition(|event| is_end(&event.what));
        &self.history[end.map_or(0, |end| end + 1)..]
    }

    /// What still counts after the window has moved.
    fn present(&self) -> &[Event] {
        self.since(|what| matches!(what, What::Moved { .. }))
    }

    pub fn expected(&self) -> Sequence {
        let mut events = self.history.iter().rev();
        let last = events.find_map(|event| match event.what {
            What::LetThrough { train } | What::GivenUp { train, .. } => Some(train.next()),
            What::Moved { to, .. } | What::Began { first: to } => Some(to),
            _ => None,
        });
        last.expect("it has begun")
    }

    /// Trains that were taken, and have not left.
    fn held(&self) -> Vec<(Sequence, usize, Instant)> {
        let expected = self.expected();
        let ends = |what: &What| matches!(what, What::NothingHeld | What::Moved { .. });
        let mut held = Vec::new();
        for event in self.since(ends) {
            match &event.what {
                What::Taken { train, bytes } => held.push((*train, *bytes, event.at)),
                What::Discarded { trains } => held.retain(|(train, ..)| !trains.contains(train)),
                _ => {}
            }
        }
        held.retain(|(train, ..)| !expected.is_newer_than(*train));
        held
    }

    pub fn held_trains(&self) -> usize {
        self.held().len()
    }

    pub fn held_bytes(&self) -> usize {
        self.held().iter().map(|(_, bytes, _)| bytes).sum()
    }

    pub fn newest_held(&self) -> Option<Sequence> {
        let trains = self.held().into_iter().map(|(train, ..)| train);
        let newest = trains.reduce(|a, b| if b.is_newer_than(a) { b } else { a });
        newest.filter(|_| self.names_links() || self.is_lossless())
    }

    /// The train before the next one, as far as it is remembered: let through, or given up.
    fn is_remembered(&self, train: Sequence) -> Option<bool> {
        let gone = self
            .present()
            .iter()
            .rev()
            .filter_map(|event| match event.what {
                What::LetThrough { train } => Some((train, true)),
                What::GivenUp { train, .. } => Some((train, false)),
                _ => None,
            });
        let remembered = if self.is(Breakage::MemoryIsShort) {
            100
        } else {
            REMEMBERED
        };
        let mut gone = gone.take(remembered);
        gone.find(|(t, _)| *t == train).map(|(_, through)| through)
    }

    fn is_near(&self, train: Sequence) -> bool {
        train.distance_from(self.expected()).unsigned_abs() < WINDOW as u32
    }

    /// `link`: that by which it came, unless it was sent again.
    pub fn insert(
        &mut self,
        train: Sequence,
        link: Option<LinkId>,
        bytes: usize,
        now: Instant,
    ) -> Result<(), Refused> {
        let ahead = train.distance_from(self.expected());
        let refused = match ahead {
            _ if ahead < -WINDOW => return Err(Refused::Jump),
            _ if ahead >= WINDOW => Some(Refused::Jump),
            _ if ahead < 0 => Some(self.refuse_old(train, link.is_some(), now)),
            _ => None,
        };
        if let Some(reason) = refused {
            let astray = match reason {
                Refused::Jump => true,
                Refused::Late => !self.names_links() || self.is(Breakage::LateOnesMoveTheWindow),
                Refused::Duplicate | Refused::Full => false,
            };
            // What is sent again is where the sender was once.
            let is_new = link.is_some() || self.is(Breakage::ReplaysMoveTheWindow);
            if !astray || !is_new {
                return Err(reason);
            }
            self.log(now, What::Stray { train });
            let in_a_row = if self.is(Breakage::OneStrayMoves) {
                1
            } else {
                IN_A_ROW
            };
            if self.strays_in_a_row() < in_a_row {
                return Err(reason);
            }
            self.move_to(train, now);
        }
        let held = self.held();
        if held.iter().any(|(t, ..)| *t == train) {
            return Err(Refused::Duplicate);
        }
        let is_next = train == self.expected();
        let fits = self.held_bytes() + bytes <= self.bytes_max || self.is(Breakage::NoBound);
        if !is_next && !fits {
            return Err(Refused::Full);
        }
        let by = match self.is(Breakage::ReplaysPass) {
            true => Some(link.unwrap_or(LinkId(0))),
            false => link,
        };
        if let Some(by) = by {
            self.pass(by, train, now);
        }
        if is_next && let Some(since) = self.gap_since() {
            let took = now.since(since);
            self.log(now, What::Filled { took });
        }
        self.log(now, What::Taken { train, bytes });
        Ok(())
    }

    fn refuse_old(&mut self, train: Sequence, is_first_copy: bool, now: Instant) -> Refused {
        let came = |event: &Event| matches!(event.what, What::CameLate { train: t } if t == train);
        match self.is_remembered(train) {
            None => return Refused::Late,
            Some(true) => return Refused::Duplicate,
            Some(false) if self.present().iter().any(came) => return Refused::Duplicate,
            Some(false) => {}
        }
        self.log(now, What::CameLate { train });
        let mut events = self.history.iter().rev();
        let last = events.find_map(|event| match event.what {
            What::GivenUp { waited, .. } => Some(now.since(event.at) + waited),
            _ => None,
        });
        let late = last.expect("it was given up");
        let what = match is_first_copy {
            true => What::TooLate { late },
            false => What::AgainTooLate { took: late },
        };
        self.log(now, what);
        Refused::Late
    }

    fn strays_in_a_row(&self) -> usize {
        let since = self.since(|what| matches!(what, What::Taken { .. } | What::Moved { .. }));
        let strays: Vec<Sequence> = since
            .iter()
            .filter_map(|event| match event.what {
                What::Stray { train } => Some(train),
                _ => None,
            })
            .collect();
        let breaks = strays
            .windows(2)
            .rposition(|pair| pair[0].next() != pair[1]);
        strays.len() - breaks.map_or(0, |at| at + 1)
    }

    fn move_to(&mut self, to: Sequence, now: Instant) {
        let discarded = self.held_trains();
        self.log(now, What::Moved { to, discarded });
    }

    /// A marker, or a train of this link's own.
    pub fn pass(&mut self, link: LinkId, train: Sequence, now: Instant) {
        if !self.is_near(train) {
            return;
        }
        let newest = self.passed_by(link);
        match newest {
            Some(newest) if newest == train => {}
            Some(newest) if newest.is_newer_than(train) => {
                let gap_age = self
                    .gap_since()
                    .map_or(Duration::ZERO, |since| now.since(since));
                self.log(now, What::Overtaken { gap_age });
            }
            _ => {
                let is_newer = newest.is_some();
                self.log(
                    now,
                    What::Passed {
                        link,
                        train,
                        is_newer,
                    },
                );
            }
        }
    }

    pub fn marker(&mut self, link: LinkId, train: Sequence, now: Instant) {
        if !self.is(Breakage::MarkersSayNothing) {
            self.pass(link, train, now);
        }
    }

    /// What still counts of what was told, and of what links have brought.
    fn told_lately(&self) -> &[Event] {
        self.since(|what| matches!(what, What::Moved { .. } | What::Forgotten { .. }))
    }

    /// The train after which nothing is known.
    fn began_after(&self) -> Sequence {
        let mut events = self.history.iter().rev();
        let first = events.find_map(|event| match event.what {
            What::Moved { to: first, .. } | What::Began { first } => Some(first.minus(1)),
            What::Forgotten { after } => Some(after),
            _ => None,
        });
        first.expect("it has begun")
    }

    pub fn hurry(&mut self, now: Instant) {
        let what = match self.held_trains() {
            0 => What::NothingHeld,
            _ => What::Hurry,
        };
        self.log(now, what);
    }

    fn is_hurried(&self) -> bool {
        let since = self.since(|what| matches!(what, What::NothingHeld));
        since.iter().any(|event| matches!(event.what, What::Hurry))
    }

    /// What is held and was never sent, by all hellos of a while, and was there before them.
    fn discard_unsent(&mut self, newest: Sequence, now: Instant) {
        let mut unsent = self.held();
        unsent.retain(|(train, ..)| train.is_newer_than(newest));
        if unsent.is_empty() || self.is(Breakage::WhatIsForgedStays) {
            return self.log(now, What::SaidSent);
        }
        self.log(now, What::SaidUnsent);
        let ends = |what: &What| {
            matches!(
                what,
                What::SaidSent | What::Discarded { .. } | What::Moved { .. }
            )
        };
        let said = |event: &&Event| matches!(event.what, What::SaidUnsent);
        let since = self.since(ends).iter().find(said).expect("just now").at;
        if now.since(since) >= BEHIND_FOR {
            let overtook =
                |arrived: Instant| arrived > since && !self.is(Breakage::NobodyOvertakesAHello);
            unsent.retain(|(_, _, arrived)| !overtook(*arrived));
            let trains = unsent.into_iter().map(|(train, ..)| train).collect();
            self.log(now, What::Discarded { trains });
        }
    }

    /// What was told by what was never sent, by all hellos of a while, and before them.
    fn forget_unsent(&mut self, newest: Sequence, now: Instant) {
        if !self.told_by().is_newer_than(newest) || self.is(Breakage::WhatIsForgedTells) {
            return self.log(now, What::SaidTold);
        }
        self.log(now, What::SaidUntold);
        let ends = |what: &What| {
            matches!(
                what,
                What::SaidTold | What::Forgotten { .. } | What::Moved { .. }
            )
        };
        let said = |event: &&Event| matches!(event.what, What::SaidUntold);
        let since = self.since(ends).iter().find(said).expect("just now").at;
        if now.since(since) < BEHIND_FOR {
            return;
        }
        match self.told_at().is_none_or(|at| at <= since) {
            true => {
                let after = self.expected().minus(1);
                self.log(now, What::Forgotten { after });
            }
            false => self.log(now, What::SaidTold),
        }
    }

    /// Another lane goes on without what is missing up to there.
    pub fn give_up_to(&mut self, last: Sequence, now: Instant) {
        let ahead = last.distance_from(self.expected());
        if (0..SPAN).contains(&ahead) {
            self.log(now, What::LetGo { last });
        }
    }

    fn is_let_go(&self, train: Sequence) -> bool {
        let mut events = self.present().iter().rev();
        let last = events.find_map(|event| match event.what {
            What::LetGo { last } => Some(last),
            _ => None,
        });
        let is_let_go = last.is_some_and(|last| !train.is_newer_than(last));
        is_let_go && !self.is(Breakage::LanesWaitForAll)
    }

    /// What a hello says was sent last.
    pub fn newest_sent(&mut self, newest: Sequence, now: Instant) {
        self.discard_unsent(newest, now);
        self.forget_unsent(newest, now);
        let ahead = newest.next().distance_from(self.expected());
        let several = self.names_links();
        let is_behind = ahead < if several { 0 } else { -BEHIND_MAX };
        if !is_behind && ahead < WINDOW {
            return self.log(now, What::SaidNear);
        }
        let may_be_late = is_behind && !self.is(Breakage::HellosAreNeverLate);
        if may_be_late && !several {
            let is_taking = |event: &&Event| matches!(event.what, What::Taken { .. });
            let last = self.history.iter().rev().find(is_taking);
            if last.is_some_and(|last| now.since(last.at) < self.wait_max) {
                return;
            }
        } else if may_be_late {
            self.log(now, What::SaidBehind);
            let ends = |what: &What| {
                matches!(
                    what,
                    What::SaidNear | What::Taken { .. } | What::Moved { .. }
                )
            };
            let said = |event: &&Event| matches!(event.what, What::SaidBehind);
            let first = self.since(ends).iter().find(said).expect("just now");
            if now.since(first.at) < BEHIND_FOR {
                return;
            }
        }
        self.move_to(newest.next(), now);
    }

    pub fn poll(&mut self, now: Instant) -> Option<Turn> {
        loop {
            let held = self.held();
            let next = self.expected();
            let is_missing = !held.iter().any(|(train, ..)| *train == next);
            if is_missing && self.is_let_go(next) {
                self.log(
                    now,
                    What::GivenUp {
                        train: next,
                        waited: Duration::ZERO,
                        learns: false,
                        breaks_word: false,
                    },
                );
                continue;
            }
            if held.is_empty() {
                self.log(now, What::NothingHeld);
                return None;
            }
            if let Some((train, _, arrived)) = held.iter().copied().find(|(t, ..)| *t == next) {
                let ends = |what: &What| matches!(what, What::LetThrough { .. });
                let gap =
                    |event: &Event| matches!(event.what, What::GivenUp { .. } | What::Moved { .. });
                let after_gap = self.since(ends).iter().any(gap);
                self.log(now, What::LetThrough { train });
                return Some(Turn {
                    train,
                    arrived,
                    after_gap,
                });
            }
            let nothing_brings_it = !self.may_come(next);
            self.log(now, What::Missed { nothing_brings_it });
            let is_due = self.poll_timeout().expect("just seen") <= now;
            let is_full = self.held_bytes() + ROOM > self.bytes_max;
            if !is_due && !is_full && !self.is_hurried() {
                return None;
            }
            let passed_since = self.passed_since();
            let waited = passed_since.map_or(Duration::ZERO, |since| now.since(since));
            let is_hurried = self.is_hurried();
            self.log(
                now,
                What::GivenUp {
                    train: next,
                    waited,
                    learns: waited >= self.wait() && !is_hurried,
                    breaks_word: passed_since.is_some() && !is_hurried,
                },
            );
        }
    }

    fn count(&self, counts: impl Fn(&What) -> bool) -> u64 {
        let events = self.history.iter().filter(|event| counts(&event.what));
        events.count() as u64
    }

    pub fn gaps(&self) -> u64 {
        self.count(|what| matches!(what, What::GivenUp { .. }))
    }

    pub fn reordered(&self) -> u64 {
        self.count(|what| matches!(what, What::Overtaken { .. } | What::TooLate { .. }))
    }

    pub fn discarded(&self) -> u64 {
        let moves = self.history.iter().map(|event| match event.what {
            What::Moved { discarded, .. } => discarded as u64,
            What::Discarded { ref trains } => trains.len() as u64,
            _ => 0,
        });
        moves.sum()
    }
}
