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
//! gaps were seen to take, for its trains may be sent again; but not for ever.

use std::collections::VecDeque;

use crate::buffer::Buffer;
use crate::config::LinkId;
use crate::time::{Duration, Instant};
use crate::wire::sequence::Sequence;

/// Slots of the window: how far ahead of the next expected train one may be.
const WINDOW: usize = 4096;
/// What is remembered of trains already let through, to tell a duplicate from a straggler.
const HISTORY: usize = 1024;
/// So many trains refused for their sequence, each one after the other: that is where the sender
/// is. A long silent loss, or one false sequence, must not lock a peer out for good.
const STRAYS_MAX: u32 = 16;
/// How long a gap waits at first, and at least.
const WAIT_START: Duration = Duration::from_millis(16);
const WAIT_MIN: Duration = Duration::from_millis(1);
/// How long a gap that a link may still fill is waited for at least: by then its sender has found out
/// that it is dead (`flight`), and sent the train again.
const STALL_MIN: Duration = Duration::from_millis(1200);
/// … and as many times the longest that one took of late.
const STALL_SKEWS: u32 = 4;
/// A straggler weighs as much as so many trains in order.
const STRAGGLER_WEIGHT: u32 = 1000;
/// More than so many stragglers, less the trains in order since, make a link that reorders; more
/// than twice as many are not remembered.
const STRAGGLERS_MANY: u32 = 4;
const FADE_AFTER: Duration = Duration::from_secs(10);
/// Longer than what a sender says of itself is under way.
const BEHIND_FOR: Duration = Duration::from_millis(1500);

/// A train that waits for its turn, or has it now.
#[derive(Debug)]
pub struct Held {
    pub buffer: Buffer,
    /// Where its subframes begin in the buffer.
    pub subframes_at: usize,
    arrived: Instant,
}

/// The first gap.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// When it was noticed.
    since: Instant,
    /// Since when nothing is under way that may fill it.
    passed_since: Option<Instant>,
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
    /// The newest that each link of the sender delivered, for links that delivered anything.
    newest: Vec<(LinkId, Sequence)>,
    /// What the sender's other links may still deliver, and the train that told so.
    under_way: Vec<(LinkId, Sequence)>,
    told_by: Sequence,
    /// It has spoken of other links: what comes late may be theirs.
    several_links: bool,
    /// How long a gap waits that every link has passed.
    wait: Duration,
    wait_max: Duration,
    stall_max: Duration,
    /// How long gaps that were filled had taken: falls slowly.
    skew: Duration,
    bytes_max: usize,
    gap: Option<Gap>,
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
    /// Held trains that were thrown away; the owner counts them.
    pub discarded: u64,
    /// No gap is waited for until nothing is held any more.
    hurried: bool,
    /// The window has moved: the next train comes after a gap.
    moved: bool,
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
            newest: Vec::new(),
            under_way: Vec::new(),
            told_by: first.minus(1),
            several_links: false,
            wait: WAIT_START.min(wait_max),
            wait_max,
            stall_max,
            skew: Duration::ZERO,
            bytes_max,
            gap: None,
            gap_given_up_at: Instant::ZERO,
            waited: Duration::ZERO,
            last_straggler: Instant::ZERO,
            disorder: 0,
            stray_next: Sequence::ZERO,
            strays: 0,
            behind_since: None,
            discarded: 0,
            hurried: false,
            moved: false,
            stats: ResequencerStats::default(),
        }
    }

    pub fn held_trains(&self) -> usize {
        self.held_trains
    }

    /// The train that is due: it is never held.
    pub fn expected(&self) -> Sequence {
        self.expected
    }

    pub fn held_bytes(&self) -> usize {
        self.held_bytes
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
        if ahead >= WINDOW as i32 {
            if !self.is_where_the_sender_is(sequence) {
                return Err((buffer, Refused::Jump));
            }
            ahead = 0;
        }
        if ahead < 0 {
            let refused = self.refuse_old(ahead.unsigned_abs() as usize - 1, link.is_some(), now);
            // Of several links, one that was stalled delivers many in a row that are late.
            let may_be_astray = refused == Refused::Late && !self.several_links;
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

    /// Counts a train whose sequence is refused. After enough of them in a row the window moves to
    /// where they are.
    fn is_where_the_sender_is(&mut self, sequence: Sequence) -> bool {
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
    /// forged train has led us astray, or more was lost than the window holds. Where there are several
    /// links, what it says may be overtaken by what it sent since: it is right when it still says so after a
    /// while in which nothing was taken.
    pub fn on_newest_sent(&mut self, newest: Sequence, now: Instant) {
        let ahead = newest.next().distance_from(self.expected);
        let behind_max = match self.several_links {
            true => 0,
            false => HISTORY as i32,
        };
        let is_behind = ahead < -behind_max;
        if !is_behind && ahead < WINDOW as i32 {
            self.behind_since = None;
            return;
        }
        if self.several_links && is_behind {
            let since = *self.behind_since.get_or_insert(now);
            if now.since(since) < BEHIND_FOR {
                return;
            }
        }
        self.move_to(newest.next());
    }

    fn move_to(&mut self, sequence: Sequence) {
        self.discarded += self.held_trains as u64;
        self.held.clear();
        self.held_trains = 0;
        self.held_bytes = 0;
        self.history.clear();
        self.newest.clear();
        self.under_way.clear();
        self.told_by = sequence.minus(1);
        self.gap = None;
        self.expected = sequence;
        self.strays = 0;
        self.behind_since = None;
        self.moved = true;
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
        match self.newest.iter_mut().find(|(l, _)| *l == link) {
            None => self.newest.push((link, sequence)),
            Some((_, newest)) if sequence.is_newer_than(*newest) => {
                *newest = sequence;
                self.disorder = self.disorder.saturating_sub(1);
            }
            Some((_, newest)) if sequence != *newest => {
                self.on_straggler(now);
                let age = self.gap.map_or(Duration::ZERO, |gap| now.since(gap.since));
                self.wait = self.wait.max(age * 2).min(self.wait_max);
            }
            Some(_) => {}
        }
    }

    /// What train or marker `told_by` says of the sender's other links: nothing newer than this is under
    /// way there, and nothing at all on those that it leaves out.
    pub fn on_told(&mut self, told_by: Sequence, links: impl Iterator<Item = (LinkId, Sequence)>) {
        if self.told_by.is_newer_than(told_by) || !self.is_near(told_by) {
            return;
        }
        self.told_by = told_by;
        self.under_way.clear();
        self.under_way.extend(links);
        self.several_links |= !self.under_way.is_empty();
    }

    /// One that is not was forged, or tells of a long silent loss: nothing follows from it alone.
    fn is_near(&self, sequence: Sequence) -> bool {
        sequence.distance_from(self.expected).unsigned_abs() < WINDOW as u32
    }

    /// Something that has no sequence has arrived and must not overtake what is held: every gap
    /// before that is given up. Follow with [`Resequencer::poll`].
    pub fn hurry(&mut self) {
        self.hurried = self.held_trains > 0;
    }

    /// The newest train that is held, where some of those before it may still come by another link: what
    /// has no sequence goes behind it, and makes nobody hurry.
    pub fn newest_held(&self) -> Option<Sequence> {
        let waits_for_links = self.several_links && self.held_trains > 0;
        waits_for_links.then(|| self.expected.plus(self.held.len() as u32).minus(1))
    }

    /// The next train in order, and whether a gap was given up just before it.
    pub fn poll(&mut self, now: Instant) -> Option<(Held, bool)> {
        let mut gap = false;
        loop {
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
                    gap |= std::mem::take(&mut self.moved);
                    return Some((held, gap));
                }
                Some(None) => {
                    if !self.gap_is_lost(now) {
                        return None;
                    }
                    self.stats.gaps += 1;
                    self.on_gap_given_up(now);
                    self.advance(false);
                    gap = true;
                }
            }
        }
    }

    fn on_gap_given_up(&mut self, now: Instant) {
        let passed_since = self.gap.and_then(|gap| gap.passed_since);
        self.waited = passed_since.map_or(Duration::ZERO, |since| now.since(since));
        let to_the_end = self.waited >= self.wait && !self.hurried;
        // Several trains in a row are one gap.
        if to_the_end && self.gap_given_up_at != now {
            self.wait = (self.wait / 2).max(WAIT_MIN).min(self.wait_max);
        }
        self.gap_given_up_at = now;
    }

    fn advance(&mut self, let_through: bool) {
        self.held.pop_front();
        self.expected = self.expected.next();
        self.history.push_front(let_through);
        self.history.truncate(HISTORY);
    }

    /// Whether nothing is under way that may fill the first gap.
    fn is_passed(&self) -> bool {
        let delivered_newer = |link: LinkId| {
            let newest = self.newest.iter().find(|(l, _)| *l == link);
            newest.is_some_and(|(_, newest)| newest.is_newer_than(self.expected))
        };
        // What an older train told says nothing of it.
        if self.several_links && self.expected.is_newer_than(self.told_by) {
            return false;
        }
        self.under_way
            .iter()
            .all(|&(link, newest)| self.expected.is_newer_than(newest) || delivered_newer(link))
    }

    fn gap_is_lost(&mut self, now: Instant) -> bool {
        let passed = self.is_passed();
        let mut gap = match self.gap {
            Some(gap) => gap,
            None => {
                let arrivals = self.held.iter().flatten().map(|held| held.arrived);
                let since = arrivals.min().unwrap_or(now);
                Gap {
                    since,
                    passed_since: passed.then_some(since),
                }
            }
        };
        gap.passed_since = match passed {
            true => Some(gap.passed_since.unwrap_or(now)),
            false => None,
        };
        self.gap = Some(gap);
        if now.since(self.last_straggler) > FADE_AFTER {
            self.disorder = 0;
        }
        self.hurried || now >= self.given_up_at(gap) || self.held_bytes + 2048 > self.bytes_max
    }

    fn given_up_at(&self, gap: Gap) -> Instant {
        let stall = (self.skew * STALL_SKEWS).max(STALL_MIN).min(self.stall_max);
        let stalled_at = gap.since + stall;
        gap.passed_since
            .map_or(stalled_at, |since| stalled_at.min(since + self.wait))
    }

    /// When a gap is given up though nothing arrives.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.gap.map(|gap| self.given_up_at(gap))
    }
}

impl Held {
    pub fn arrived(&self) -> Instant {
        self.arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WAIT_MAX: Duration = Duration::from_millis(50);
    const STALL_MAX: Duration = Duration::from_secs(3);
    const WAITS: (Duration, Duration) = (WAIT_MAX, STALL_MAX);
    const LINK: LinkId = LinkId(0);

    fn train(n: u32) -> Buffer {
        let mut buffer = Buffer::with_capacity(64);
        assert!(buffer.push(&n.to_be_bytes()));
        buffer
    }

    fn number(held: &Held) -> u32 {
        u32::from_be_bytes(held.buffer[..4].try_into().unwrap())
    }

    fn insert(r: &mut Resequencer, n: u32, link: LinkId, now: Instant) -> Result<(), Refused> {
        r.insert(Sequence(n), Some(link), train(n), 0, now)
            .map_err(|(_, refused)| refused)
    }

    fn drain(r: &mut Resequencer, now: Instant) -> Vec<u32> {
        core::iter::from_fn(|| r.poll(now))
            .map(|(held, _)| number(&held))
            .collect()
    }

    #[test]
    fn a_link_that_loses_and_keeps_order_is_soon_not_waited_for() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        let mut now = Instant::ZERO;
        for n in 0..10 {
            let waits = (WAIT_START / (1 << n)).max(WAIT_MIN);
            insert(&mut r, 2 * n + 2, LINK, now).unwrap();
            assert_eq!(drain(&mut r, now), [] as [u32; 0]);
            assert_eq!(r.poll_timeout(), Some(now + waits));
            now += waits;
            assert_eq!(drain(&mut r, now), [2 * n + 2]);
        }
        assert_eq!(r.stats.gaps, 10);
    }

    #[test]
    fn in_a_hurry_nothing_is_waited_for_once() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        r.hurry();
        for n in [2, 4] {
            insert(&mut r, n, LINK, Instant::ZERO).unwrap();
        }
        assert_eq!(drain(&mut r, Instant::ZERO), [] as [u32; 0]);
        r.hurry();
        assert_eq!(drain(&mut r, Instant::ZERO), [2, 4]);
        insert(&mut r, 6, LINK, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO), [] as [u32; 0]);
    }

    /// Told by a train or marker: what is under way on other links.
    fn told(r: &mut Resequencer, by: u32, links: &[(LinkId, u32)]) {
        let links = links.iter().map(|&(link, n)| (link, Sequence(n)));
        r.on_told(Sequence(by), links);
    }

    #[test]
    fn on_two_links_a_gap_waits_until_both_have_something_newer() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        let other = LinkId(1);
        insert(&mut r, 1, LINK, Instant::ZERO).unwrap();
        insert(&mut r, 2, other, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO), [1, 2]);
        told(&mut r, 4, &[(other, 3)]);
        insert(&mut r, 4, LINK, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO), [] as [u32; 0]);
        assert_eq!(r.poll_timeout(), Some(Instant::ZERO + STALL_MIN));
        let later = Instant::ZERO + WAIT_START * 3;
        insert(&mut r, 5, other, later).unwrap();
        assert_eq!(drain(&mut r, later), [] as [u32; 0], "perhaps overtaken");
        assert_eq!(drain(&mut r, later + WAIT_START), [4, 5]);
    }

    #[test]
    fn a_link_that_is_idle_or_was_given_nothing_so_old_is_not_waited_for() {
        for under_way in [&[][..], &[(LinkId(1), 2)]] {
            let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
            for n in [1, 2] {
                insert(&mut r, n, LINK, Instant::ZERO).unwrap();
            }
            drain(&mut r, Instant::ZERO);
            told(&mut r, 4, under_way);
            insert(&mut r, 4, LINK, Instant::ZERO).unwrap();
            assert_eq!(drain(&mut r, Instant::ZERO + WAIT_START), [4]);
        }
    }

    #[test]
    fn a_marker_by_the_link_itself_says_that_nothing_more_is_coming() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        let other = LinkId(1);
        told(&mut r, 2, &[(other, 1)]);
        insert(&mut r, 2, LINK, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO + WAIT_MAX), [] as [u32; 0]);
        let later = Instant::ZERO + WAIT_MAX;
        r.note(other, Sequence(2), later);
        assert_eq!(drain(&mut r, later), [] as [u32; 0]);
        assert_eq!(drain(&mut r, later + WAIT_START), [2]);
    }

    #[test]
    fn what_an_older_train_tells_is_not_believed_against_a_newer_one() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        told(&mut r, 5, &[(LinkId(1), 4)]);
        insert(&mut r, 5, LINK, Instant::ZERO).unwrap();
        told(&mut r, 3, &[]);
        insert(&mut r, 3, LINK, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO + WAIT_MAX), [] as [u32; 0]);
        assert_eq!(drain(&mut r, Instant::ZERO + STALL_MIN), [3, 5]);
        // Nor what tells of trains that nobody can have reached.
        told(&mut r, 100_000, &[]);
        r.note(LinkId(1), Sequence(100_000), Instant::ZERO);
        told(&mut r, 8, &[(LinkId(1), 7)]);
        insert(&mut r, 8, LINK, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO + WAIT_MAX), [] as [u32; 0]);
    }

    #[test]
    fn trains_that_a_stalled_link_delivers_late_do_not_take_the_window_back() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        let other = LinkId(1);
        told(&mut r, 51, &[(other, 50)]);
        insert(&mut r, 51, LINK, Instant::ZERO).unwrap();
        let mut now = Instant::ZERO;
        let mut out = Vec::new();
        while out.is_empty() {
            now = r.poll_timeout().unwrap_or(now);
            out = drain(&mut r, now);
        }
        assert_eq!((out, now), (vec![51], Instant::ZERO + STALL_MIN));
        for n in 1..=50 {
            assert_eq!(insert(&mut r, n, other, now), Err(Refused::Late));
        }
        insert(&mut r, 52, LINK, now).unwrap();
        assert_eq!(drain(&mut r, now), [52]);
        // A hello that was overtaken says that the sender is far behind: only when it still does.
        for n in 53..2000 {
            insert(&mut r, n, LINK, now).unwrap();
            drain(&mut r, now);
        }
        r.on_newest_sent(Sequence(500), now);
        assert_ne!(insert(&mut r, 501, LINK, now), Ok(()));
        r.on_newest_sent(Sequence(500), now + BEHIND_FOR);
        insert(&mut r, 501, LINK, now).unwrap();
        assert_eq!(drain(&mut r, now), [501]);
    }

    #[test]
    fn a_replay_fills_its_gap_and_tells_nothing_of_the_link_by_which_it_came() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        insert(&mut r, 1, LINK, Instant::ZERO).unwrap();
        drain(&mut r, Instant::ZERO);
        told(&mut r, 4, &[(LinkId(0xff), 3)]);
        insert(&mut r, 4, LINK, Instant::ZERO).unwrap();
        let later = Instant::ZERO + STALL_MIN / 2;
        assert_eq!(drain(&mut r, later), [] as [u32; 0]);
        for n in [2, 3] {
            r.insert(Sequence(n), None, train(n), 0, later).unwrap();
        }
        assert_eq!(drain(&mut r, later), [2, 3, 4]);
        let again = r.insert(Sequence(3), None, train(3), 0, later);
        assert_eq!(again.unwrap_err().1, Refused::Duplicate);
        assert_eq!(r.stats.reordered, 0);
    }

    #[test]
    fn a_link_that_reorders_is_waited_for_from_the_second_time_on() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        insert(&mut r, 2, LINK, at(0)).unwrap();
        assert_eq!(drain(&mut r, at(16)), [2]);
        assert_eq!(insert(&mut r, 1, LINK, at(20)), Err(Refused::Late));
        insert(&mut r, 4, LINK, at(21)).unwrap();
        assert_eq!(drain(&mut r, at(60)), [] as [u32; 0]);
        insert(&mut r, 3, LINK, at(61)).unwrap();
        assert_eq!(drain(&mut r, at(61)), [3, 4]);
        assert_eq!(r.stats.reordered, 2);
    }

    #[test]
    fn a_rare_straggler_is_an_accident_many_are_a_habit_and_habits_are_forgotten() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        let mut next = 1;
        // So many trains in order, then two that are swapped.
        let mut straggler_after = |r: &mut Resequencer, in_order: u32| {
            let swapped = next + in_order;
            for n in (next..swapped).chain([swapped + 1, swapped]) {
                insert(r, n, LINK, Instant::ZERO).unwrap();
                drain(r, Instant::ZERO);
            }
            next = swapped + 2;
            r.reorders(Instant::ZERO)
        };
        for _ in 0..20 {
            assert!(!straggler_after(&mut r, 2000), "one in 2000");
        }
        let often = (0..20)
            .map(|_| straggler_after(&mut r, 100))
            .collect::<Vec<_>>();
        assert!(!often[0] && often[19], "one in 100: {often:?}");
        assert!(!straggler_after(&mut r, 9000), "since then it kept order");
        assert!(
            (0..20)
                .map(|_| straggler_after(&mut r, 100))
                .last()
                .unwrap()
        );
        assert!(!r.reorders(Instant::ZERO + FADE_AFTER * 2), "long ago");
    }

    #[test]
    fn each_refusal_has_its_reason() {
        let mut r = Resequencer::new(Sequence::FIRST, 2 * 64 + 10, WAITS);
        insert(&mut r, 1, LINK, Instant::ZERO).unwrap();
        assert_eq!(
            insert(&mut r, 1, LINK, Instant::ZERO),
            Err(Refused::Duplicate)
        );
        drain(&mut r, Instant::ZERO);
        assert_eq!(
            insert(&mut r, 1, LINK, Instant::ZERO),
            Err(Refused::Duplicate)
        );
        assert_eq!(
            insert(&mut r, 2 + 4096, LINK, Instant::ZERO),
            Err(Refused::Jump)
        );
        insert(&mut r, 4, LINK, Instant::ZERO).unwrap();
        insert(&mut r, 5, LINK, Instant::ZERO).unwrap();
        assert_eq!(insert(&mut r, 6, LINK, Instant::ZERO), Err(Refused::Full));
        assert_eq!(drain(&mut r, Instant::ZERO + WAIT_START), [4, 5]);
        assert_eq!(insert(&mut r, 3, LINK, Instant::ZERO), Err(Refused::Late));
        assert_eq!(
            insert(&mut r, 3, LINK, Instant::ZERO),
            Err(Refused::Duplicate)
        );
    }

    #[test]
    fn a_sender_far_ahead_is_followed_after_some_trains_in_a_row() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        let mut insert = |sequence: u32| {
            let buffer = Buffer::with_capacity(64);
            let taken = r.insert(Sequence(sequence), Some(LINK), buffer, 0, Instant::ZERO);
            while r.poll(Instant::ZERO + WAIT_START).is_some() {}
            taken.map_err(|(_, refused)| refused)
        };
        assert_eq!(insert(1), Ok(()));
        // One false sequence is none, and neither is one again and again.
        for _ in 0..3 * STRAYS_MAX {
            assert_eq!(insert(1_000_000), Err(Refused::Jump));
        }
        assert_eq!(insert(2), Ok(()));
        for i in 1..STRAYS_MAX {
            assert_eq!(insert(500_000 + i), Err(Refused::Jump));
        }
        for i in STRAYS_MAX..100 {
            assert_eq!(insert(500_000 + i), Ok(()));
        }
        assert_eq!(insert(3), Err(Refused::Jump));
    }

    #[test]
    fn only_the_sender_itself_takes_the_window_back_beyond_its_memory() {
        let mut r = Resequencer::new(Sequence(10_000), 1 << 20, WAITS);
        for n in 1..3 * STRAYS_MAX {
            assert_eq!(insert(&mut r, n, LINK, Instant::ZERO), Err(Refused::Jump));
        }
        // Overtaken by some trains, or ahead of some that are lost: nothing new.
        for (n, newest) in [9_000, 9_998, 9_999, 10_500].into_iter().enumerate() {
            r.on_newest_sent(Sequence(newest), Instant::ZERO);
            let next = 10_000 + n as u32;
            insert(&mut r, next, LINK, Instant::ZERO).unwrap();
            assert_eq!(drain(&mut r, Instant::ZERO), [next]);
        }
        r.on_newest_sent(Sequence(102), Instant::ZERO);
        insert(&mut r, 103, LINK, Instant::ZERO).unwrap();
        let (held, gap) = r.poll(Instant::ZERO).unwrap();
        assert_eq!((number(&held), gap, r.held_bytes()), (103, true, 0));
        r.on_newest_sent(Sequence(1_000_000), Instant::ZERO);
        insert(&mut r, 1_000_001, LINK, Instant::ZERO).unwrap();
        assert_eq!(drain(&mut r, Instant::ZERO), [1_000_001]);
    }

    #[test]
    fn a_window_led_astray_by_one_false_sequence_comes_back() {
        let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
        let mut insert = |sequence: u32| {
            let buffer = Buffer::with_capacity(64);
            let taken = r.insert(Sequence(sequence), Some(LINK), buffer, 0, Instant::ZERO);
            while r.poll(Instant::ZERO + WAIT_START).is_some() {}
            taken.map_err(|(_, refused)| refused)
        };
        assert_eq!(insert(1), Ok(()));
        assert_eq!(insert(1000), Ok(()));
        for i in 2..1 + STRAYS_MAX {
            assert_eq!(insert(i), Err(Refused::Late));
        }
        for i in 1 + STRAYS_MAX..100 {
            assert_eq!(insert(i), Ok(()));
            assert_eq!(insert(i), Err(Refused::Duplicate));
        }
    }

    proptest! {
        /// Whatever arrives, in whatever order: what comes out rises, each once, and everything that
        /// was taken comes out.
        #[test]
        fn what_comes_out_rises_and_all_that_was_taken_comes_out(
            arrivals in proptest::collection::vec((1u32..200, 0u8..3, 0u64..2000), 1..300)
        ) {
            let mut r = Resequencer::new(Sequence::FIRST, 1 << 20, WAITS);
            let mut now = Instant::ZERO;
            let mut taken = Vec::new();
            let mut out = Vec::new();
            for (n, link, micros) in arrivals {
                now += Duration::from_micros(micros);
                if insert(&mut r, n, LinkId(link), now).is_ok() {
                    taken.push(n);
                }
                out.extend(drain(&mut r, now));
                if r.held_trains() > 0 {
                    prop_assert!(r.poll_timeout().is_some_and(|at| at > now));
                }
            }
            now += WAIT_MAX;
            for _ in 0..300 {
                out.extend(drain(&mut r, now));
                now += STALL_MAX;
            }
            prop_assert!(out.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", out);
            taken.sort_unstable();
            prop_assert_eq!(out, taken);
            prop_assert_eq!(r.held_bytes(), 0);
        }
    }
}
