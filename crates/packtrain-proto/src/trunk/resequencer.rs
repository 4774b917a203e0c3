//! Puts the trains of one lane back into order, and lets each through once.
//!
//! A gap is lost when nothing that may fill it is under way any more: each train tells which links of
//! its sender still carry something, and up to which train (NEWEST in docs/wire-format.md); such a link
//! is waited for until it has delivered something newer than the gap. Then a moment passes, because hosts do not quite: two processors that take turns at one
//! queue swap frames, and one that is taken away (a virtual one) holds some for milliseconds. How
//! long that moment is, is learned: each gap that was given up halves it, down to a
//! millisecond, each straggler that came too late for it doubles it and more. So a link that loses
//! is soon not waited for, and one that reorders is. (RFC 1990 section 4.1 uses the same rule for
//! multilink PPP, without the moment, and without knowing which links are idle.)
//!
//! A link that stalls, or has died without anybody knowing yet, holds a gap open for much longer than
//! gaps were seen to take, for its trains may be sent again; but not for ever. The same holds for any gap after
//! a link of ours was taken away, until the sender has said what goes again.

use std::collections::VecDeque;

use crate::buffer::Buffer;
use crate::config::LinkId;
use crate::time::{Duration, Instant};
use crate::trunk::under_way::{Delivered, UnderWay};
use crate::wire::sequence::Sequence;
use doubt::Doubt;
use gaps::{Gap, STALL_MIN};
pub use word::Repairing;
use word::Word;

/// Slots of the window: how far ahead of the next expected train one may be.
const WINDOW: usize = 4096;
/// How far ahead one may be while a fence keeps others back: the rest is for gaps behind the fence.
const FENCED_MAX: i32 = (WINDOW / 4 * 3) as i32;
/// What is remembered of trains already let through, to tell a duplicate from a straggler: copies that try a
/// silent link come from as far back as its sender may be ahead of what it has under way.
const HISTORY: usize = WINDOW;
/// How long a gap waits at first, and at least.
const WAIT_START: Duration = Duration::from_millis(16);
const WAIT_MIN: Duration = Duration::from_millis(1);
/// A straggler weighs as much as so many trains in order.
const STRAGGLER_WEIGHT: u32 = 1000;
/// More than so many stragglers, less the trains in order since, make a link that reorders; more
/// than twice as many are not remembered.
const STRAGGLERS_MANY: u32 = 4;
const FADE_AFTER: Duration = Duration::from_secs(10);
/// A train that waits for its turn, or has it now.
#[derive(Debug)]
pub struct Held {
    pub buffer: Buffer,
    /// Where its subframes begin in the buffer.
    pub subframes_at: usize,
    arrived: Instant,
}

/// Why a train was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Duplicate,
    /// Its gap was given up before.
    Late,
    /// Far outside the window.
    Jump,
    /// The bound in bytes.
    Full,
}

/// One lane of one peer.
#[derive(Debug)]
pub struct Resequencer {
    expected: Sequence,
    /// Slot i holds train `expected + i`.
    held: VecDeque<Option<Held>>,
    held_trains: usize,
    held_bytes: usize,
    /// Bit of train `expected − 1 − i`: let through, not given up.
    history: VecDeque<bool>,
    under_way: UnderWay,
    /// How long a gap waits that every link has passed.
    wait: Duration,
    wait_max: Duration,
    stall_max: Duration,
    /// How long gaps that were filled had taken: falls slowly.
    skew: Duration,
    bytes_max: usize,
    gap: Option<Gap>,
    /// Until then, what has come is still read: no gap is given up.
    reads_until: Instant,
    /// The gap for which that was done, by when it was noticed.
    forgiven_since: Option<Instant>,
    doubt: Doubt,
    word: Word,
    gap_given_up_at: Instant,
    /// How long that had been waited for.
    waited: Duration,
    last_straggler: Instant,
    /// Rises with stragglers, falls with trains in order.
    disorder: u32,
    /// What would follow the train refused last, and how many were refused in a row.
    stray_next: Sequence,
    strays: u32,
    /// Since when the sender says that it is far behind us, and no train was taken.
    behind_since: Option<Instant>,
    /// Since when something is held that is newer than all that the sender says to have sent.
    unsent_since: Option<Instant>,
    /// … and since when such a one was the last that told what is under way.
    untold_since: Option<Instant>,
    /// When a train was taken last.
    taken_at: Option<Instant>,
    /// Held trains that were thrown away; the owner counts them.
    pub discarded: u64,
    /// No gap is waited for until nothing is held any more.
    hurried: bool,
    /// What is missing up to this train is not waited for: what comes behind it went on in another lane.
    given_up_to: Option<Sequence>,
    /// … in a row of which nothing was taken, and which may begin earlier than is thought.
    begins_after: Option<Sequence>,
    /// The next train comes after one that was given up, or the window has moved.
    after_gap: bool,
    /// Nothing of this row of sequences has ever been taken, and its sender has not said since when it has copies.
    is_untouched: bool,
    /// From this train on, what comes waits for something that has no place in the order.
    pub fence: Option<Sequence>,
    pub stats: ResequencerStats,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResequencerStats {
    /// Trains given up.
    pub gaps: u64,
    /// Trains that arrived after a newer one.
    pub reordered: u64,
    pub held_bytes_max: usize,
}

impl Resequencer {
    /// `first`: the sequence of the first train that is to come.
    /// `wait_max` and `stall_max`: how long a gap is waited for that nothing under way may fill, and
    /// one that something may.
    pub fn new(
        first: Sequence,
        bytes_max: usize,
        (wait_max, stall_max): (Duration, Duration),
    ) -> Resequencer {
        Resequencer {
            expected: first,
            held: VecDeque::new(),
            held_trains: 0,
            held_bytes: 0,
            history: VecDeque::with_capacity(HISTORY + 1),
            under_way: UnderWay::after(first.minus(1)),
            wait: WAIT_START.min(wait_max),
            wait_max,
            stall_max,
            skew: Duration::ZERO,
            bytes_max,
            gap: None,
            reads_until: Instant::ZERO,
            forgiven_since: None,
            doubt: Doubt::default(),
            word: Word::new(wait_max),
            gap_given_up_at: Instant::ZERO,
            waited: Duration::ZERO,
            last_straggler: Instant::ZERO,
            disorder: 0,
            stray_next: Sequence::ZERO,
            strays: 0,
            behind_since: None,
            unsent_since: None,
            untold_since: None,
            taken_at: None,
            discarded: 0,
            hurried: false,
            given_up_to: None,
            begins_after: None,
            after_gap: false,
            is_untouched: false,
            fence: None,
            stats: ResequencerStats::default(),
        }
    }

    pub fn held_trains(&self) -> usize {
        self.held_trains
    }

    /// It begins with what its sender says to have sent last; what that has copies of may have left before, and comes again.
    pub fn may_begin_earlier(&mut self) {
        self.is_untouched = true;
    }

    /// Where it begins is not known yet.
    pub fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    /// What left before its sender was heard is not lost, where that has copies of it: nothing has been given to the host yet.
    pub fn begin(&mut self, repairs: Repairing, kept_from: Option<Sequence>) {
        let is_untouched = std::mem::take(&mut self.is_untouched);
        let given_up = self.begins_after.take();
        let kept_from = kept_from.filter(|_| is_untouched && repairs == Repairing::Lossless);
        let Some(from) = kept_from.filter(|from| self.is_near(*from)) else {
            return;
        };
        let in_time = given_up.map(Sequence::next);
        let from = in_time.filter(|at| at.is_newer_than(from)).unwrap_or(from);
        self.word.begin(repairs, from);
        if self.expected.is_newer_than(from) {
            self.expected = from;
            self.under_way.restart_after(from.minus(1));
        }
    }

    /// The train that is due: it is never held.
    pub fn expected(&self) -> Sequence {
        self.expected
    }

    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Since when something newer has been there than the train that is due. `None`: nothing is.
    pub fn gap_since(&self) -> Option<Instant> {
        self.gap.map(|gap| gap.since)
    }

    /// Whether stragglers were more than a rare accident lately.
    pub fn reorders(&self, now: Instant) -> bool {
        self.disorder > STRAGGLERS_MANY * STRAGGLER_WEIGHT
            && now.since(self.last_straggler) <= FADE_AFTER
    }

    fn on_straggler(&mut self, now: Instant) {
        const MOST: u32 = 2 * STRAGGLERS_MANY * STRAGGLER_WEIGHT;
        self.stats.reordered += 1;
        self.last_straggler = now;
        self.disorder = (self.disorder + STRAGGLER_WEIGHT).min(MOST);
    }

    /// Takes a train, or gives it back with the reason. Follow with [`Resequencer::poll`]. `link`: the
    /// sender's by which it came; `None`: it was replayed, and its place tells nothing of that link.
    pub fn insert(
        &mut self,
        sequence: Sequence,
        link: Option<LinkId>,
        buffer: Buffer,
        subframes_at: usize,
        now: Instant,
    ) -> Result<(), (Buffer, Refused)> {
        let mut ahead = sequence.distance_from(self.expected);
        if ahead < -(WINDOW as i32) {
            // However many: that is where replays come from.
            return Err((buffer, Refused::Jump));
        }
        // What is sent again is where the sender was once.
        let is_first_copy = link.is_some();
        if ahead >= WINDOW as i32 {
            if !is_first_copy || !self.is_where_the_sender_is(sequence) {
                return Err((buffer, Refused::Jump));
            }
            ahead = 0;
        }
        if ahead < 0 {
            let refused = self.refuse_old(ahead.unsigned_abs() as usize - 1, is_first_copy, now);
            // Of several links, one that was stalled delivers many in a row that are late.
            let may_be_astray =
                refused == Refused::Late && is_first_copy && !self.under_way.names_links();
            if !may_be_astray || !self.is_where_the_sender_is(sequence) {
                return Err((buffer, refused));
            }
            ahead = 0;
        }
        let slot = ahead as usize;
        if self.held.get(slot).is_some_and(Option::is_some) {
            return Err((buffer, Refused::Duplicate));
        }
        if slot > 0 && self.held_bytes + buffer.capacity() > self.bytes_max {
            return Err((buffer, Refused::Full));
        }
        self.strays = 0;
        self.behind_since = None;
        self.taken_at = Some(now);
        if let Some(link) = link {
            self.note(link, sequence, now);
        }
        if slot == 0
            && let Some(gap) = self.gap
        {
            let took = now.since(gap.since);
            self.skew = took.max(self.skew * 31 / 32);
        }
        if self.held.len() <= slot {
            self.held.resize_with(slot + 1, || None);
        }
        self.held_bytes += buffer.capacity();
        self.held_trains += 1;
        self.stats.held_bytes_max = self.stats.held_bytes_max.max(self.held_bytes);
        self.held[slot] = Some(Held {
            buffer,
            subframes_at,
            arrived: now,
        });
        Ok(())
    }

    /// A train of the past: a duplicate of what went through, or one that was given up too early.
    fn refuse_old(&mut self, age: usize, is_first_copy: bool, now: Instant) -> Refused {
        match self.history.get_mut(age) {
            Some(true) => return Refused::Duplicate,
            // So old that nobody knows, and no straggler.
            None => return Refused::Late,
            Some(given_up) => *given_up = true,
        }
        if !is_first_copy {
            self.word
                .on_late(now.since(self.gap_given_up_at) + self.waited);
            return Refused::Late;
        }
        // Given up too early: the next gap waits longer.
        self.on_straggler(now);
        let late = now.since(self.gap_given_up_at) + self.waited;
        self.wait = (late * 2).max(WAIT_MIN).min(self.wait_max);
        Refused::Late
    }

    /// A train, or a marker, has come by the sender's `link`: all that this link had been given before
    /// `sequence` has arrived, or is lost. A train that was replayed tells nothing of the kind.
    pub fn note(&mut self, link: LinkId, sequence: Sequence, now: Instant) {
        if !self.is_near(sequence) {
            return;
        }
        match self.under_way.on_delivered(link, sequence) {
            Delivered::First | Delivered::Again => {}
            Delivered::Newer => self.disorder = self.disorder.saturating_sub(1),
            Delivered::Older => {
                self.on_straggler(now);
                let age = self.gap.map_or(Duration::ZERO, |gap| now.since(gap.since));
                self.wait = self.wait.max(age * 2).min(self.wait_max);
            }
        }
    }

    /// What train or marker `told_by` says of the sender's other links: nothing newer than this is under
    /// way there, and nothing at all on those that it leaves out.
    pub fn on_told(
        &mut self,
        told_by: Sequence,
        links: impl Iterator<Item = (LinkId, Sequence)>,
        (repairs, kept_from): (Repairing, Option<Sequence>),
        now: Instant,
    ) {
        self.begin(repairs, kept_from);
        if self.is_near(told_by) {
            if !self.under_way.on_told(told_by, links, now) {
                return;
            }
            self.doubt.on_told(|| self.under_way.replayed());
            self.word.on_told(told_by, (repairs, kept_from));
            if let Some(passed_since) = self.gap.and_then(|gap| gap.passed_since)
                && self.under_way.replays(self.expected)
            {
                self.word.on_kept(now.since(passed_since));
            }
        }
    }

    /// One of our several links to the sender was taken away: what is missing may be sent again, and the sender
    /// has not said so yet.
    pub fn on_link_removed(&mut self, now: Instant) {
        let until = now + STALL_MIN.min(self.stall_max);
        self.doubt.begin(until, self.under_way.replayed());
    }

    /// The sender has several links, or had: what comes by one may be overtaken by what left later by another. Or what it sends
    /// goes again until it has come.
    pub fn names_links(&self) -> bool {
        self.under_way.names_links() || self.word.is_lossless()
    }

    /// What links lose goes again, for a while, or until it has come.
    pub fn repairs(&self) -> bool {
        self.word.repairs()
    }

    /// When its sender last said anything that tells of this lane.
    pub fn told_at(&self) -> Instant {
        self.under_way.told_at()
    }

    pub fn is_lossless(&self) -> bool {
        self.word.is_lossless()
    }

    /// One that is not was forged, or tells of a long silent loss: nothing follows from it alone.
    fn is_near(&self, sequence: Sequence) -> bool {
        sequence.distance_from(self.expected).unsigned_abs() < WINDOW as u32
    }

    /// Something that has no sequence has arrived and must not overtake what is held: every gap
    /// before that is given up. Follow with [`Resequencer::poll`].
    pub fn hurry(&mut self) {
        self.hurried = self.held_trains > 0;
        self.fence = None;
    }

    /// Whether the train that is due has to wait though it is here. Not where there is no room for more.
    pub fn is_fenced(&self) -> bool {
        let is_due = |fence: Sequence| fence.distance_from(self.expected) <= 0;
        self.fence.is_some_and(is_due) && !self.is_full()
    }

    /// A fence keeps back so much that this train, or some after it, would not be taken. A gap holds its sender back
    /// by what it has under way; what a fence keeps back is acknowledged, and so its sender goes on.
    pub fn crowds_fence(&self, sequence: Sequence, bytes: usize) -> bool {
        let ahead = sequence.distance_from(self.expected);
        let is_far = ahead >= FENCED_MAX;
        self.is_fenced() && (is_far || self.held_bytes + bytes > self.bytes_max / 4 * 3)
    }

    fn is_full(&self) -> bool {
        self.held_bytes + 2048 > self.bytes_max
    }

    /// The newest train that is held, where some of those before it may still come by another link, or are
    /// kept back: what has no sequence goes behind it, and makes nobody hurry.
    pub fn newest_held(&self) -> Option<Sequence> {
        let waits_for_links = self.names_links() && self.held_trains > 0;
        (waits_for_links || self.is_fenced()).then(|| self.newest())
    }

    /// The newest train that is held, or was let through last.
    pub fn newest(&self) -> Sequence {
        self.expected.plus(self.held.len() as u32).minus(1)
    }

    /// The next train in order, and whether a gap was given up just before it.
    pub fn poll(&mut self, now: Instant) -> Option<(Held, bool)> {
        loop {
            if self.is_fenced() {
                return None;
            }
            if self.is_given_up() {
                self.skip_given_up(now);
                continue;
            }
            match self.held.front_mut() {
                None => {
                    self.gap = None;
                    self.hurried = false;
                    return None;
                }
                Some(front @ Some(_)) => {
                    let held = front.take().expect("matched");
                    self.advance(true);
                    self.held_bytes -= held.buffer.capacity();
                    self.held_trains -= 1;
                    self.gap = None;
                    return Some((held, std::mem::take(&mut self.after_gap)));
                }
                Some(None) => {
                    if !self.gap_is_lost(now) {
                        return None;
                    }
                    self.stats.gaps += 1;
                    self.on_gap_given_up(now);
                    self.advance(false);
                    self.after_gap = true;
                }
            }
        }
    }

    /// Trains were given up, and the next one waits for something that is not missing: says so once, for other lanes may go on
    /// meanwhile.
    pub fn take_gap_before_fence(&mut self) -> bool {
        self.is_fenced() && std::mem::take(&mut self.after_gap)
    }

    fn advance(&mut self, let_through: bool) {
        self.held.pop_front();
        self.expected = self.expected.next();
        self.history.push_front(let_through);
        self.history.truncate(HISTORY);
    }
}

impl Held {
    pub fn arrived(&self) -> Instant {
        self.arrived
    }
}

mod astray;
mod doubt;
mod gaps;
#[cfg(test)]
mod tests;
mod word;
