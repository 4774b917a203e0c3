//! Plain frames have no sequence: a host with several segments sends one to each of them, and whoever
//! shares two of those with it hears it twice. The second is known by its bytes, segment by segment
//! ([`name`]), whatever a card makes of it on the way.
//!
//! Of equal ones as many are taken as came by one link at most: a host may say the same twice, and
//! then both come by each link. All that comes is counted, also on links on which it is not taken, so
//! that another link can go on where one has ended. What was taken long ago is expected on no link any
//! more, or a host that says the same each second would not be heard for as long where it turns up next.

mod name;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use crate::config::LinkId;
use crate::offload::Offload;
use crate::time::{Duration, Instant};

/// How much later a copy may come. One leaves at most [`COPIES_APART_MAX`] after another; then it may
/// stand below, on a slow link of which no rate is known, and on the way.
const AGE_MAX: Duration = Duration::from_secs(4);
/// How much later than the first of a frame's copies another one may leave.
pub const COPIES_APART_MAX: Duration = Duration::from_secs(1);
/// Segments that are remembered.
const SEGMENTS_MAX: usize = 32_768;

/// What of a frame has not come before.
#[derive(Debug, PartialEq, Eq)]
pub enum New {
    All,
    Nothing,
    /// These of its segments.
    Segments(Vec<Range<usize>>),
}

#[derive(Debug)]
pub struct Duplicates {
    /// What was new when it came, and whether it was taken.
    recent: VecDeque<(u64, bool, Instant)>,
    segments: HashMap<u64, Known, BuildHasherDefault<Hashed>>,
    /// How often one came by a link, of those that are known.
    arrivals: HashMap<(u64, LinkId), u32, BuildHasherDefault<Hashed>>,
    /// Links that have brought something.
    links: Vec<LinkId>,
    seed: u64,
    /// Of the frame that is looked at.
    names: Vec<u64>,
    runs: Vec<Range<usize>>,
}

/// Of a segment that came lately.
#[derive(Debug, Default)]
struct Known {
    /// How often it was taken, and how often of that long ago.
    takings: u32,
    old: u32,
    /// How often it stands in `recent`.
    recent: u32,
}

/// Names are hashes with a seed already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are names, and links");
    }

    fn write_u64(&mut self, name: u64) {
        self.0 ^= name;
    }

    fn write_u8(&mut self, link: u8) {
        self.0 = self.0.wrapping_add(u64::from(link) << 48 | u64::from(link));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Duplicates {
    pub fn new(seed: u64) -> Duplicates {
        Duplicates {
            recent: VecDeque::new(),
            segments: HashMap::default(),
            arrivals: HashMap::default(),
            links: Vec::new(),
            seed,
            names: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// A frame has come by `link`, where it is taken or not; `offload` agrees with it. Says what of it is no
    /// copy of what was taken.
    pub fn look(
        &mut self,
        frame: &[u8],
        offload: &Offload,
        (link, taken): (LinkId, bool),
        now: Instant,
    ) -> New {
        self.forget_old(now);
        if !self.links.contains(&link) {
            self.links.push(link);
        }
        let mut names = std::mem::take(&mut self.names);
        let mut runs = std::mem::take(&mut self.runs);
        name::names_of(self.seed, frame, offload.gso, &mut names);
        runs.clear();
        for (at, &name) in names.iter().enumerate() {
            if !self.arrives(name, link, taken, now) {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
        let new = match &runs[..] {
            [] => New::Nothing,
            [all] if all.len() == names.len() => New::All,
            some => New::Segments(some.to_vec()),
        };
        (self.names, self.runs) = (names, runs);
        new
    }

    /// Whether it is new.
    fn arrives(&mut self, name: u64, link: LinkId, taken: bool, now: Instant) -> bool {
        let known = self.segments.entry(name).or_default();
        let arrivals = self.arrivals.entry((name, link)).or_default();
        *arrivals = (*arrivals).max(known.old) + 1;
        let is_new = *arrivals > known.takings;
        if is_new {
            known.takings += u32::from(taken);
            known.recent += 1;
            self.recent.push_back((name, taken, now));
        }
        is_new
    }

    /// A link has left. What it has brought may still come by others.
    pub fn forget_link(&mut self, link: LinkId) {
        self.links.retain(|of| *of != link);
        self.arrivals.retain(|(_, of), _| *of != link);
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some(&(name, taken, came)) = self.recent.front() {
            if self.recent.len() < SEGMENTS_MAX && now.since(came) < AGE_MAX {
                return;
            }
            self.recent.pop_front();
            let known = self.segments.get_mut(&name).expect("it is recent");
            known.old += u32::from(taken);
            known.recent -= 1;
            if known.recent == 0 {
                self.segments.remove(&name);
                for &link in &self.links {
                    self.arrivals.remove(&(name, link));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::gso;
    use crate::gso::tests::gso_frames;

    const A: LinkId = LinkId(0);
    const B: LinkId = LinkId(1);
    const C: LinkId = LinkId(2);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn is_new(duplicates: &mut Duplicates, frame: &[u8], link: LinkId, now: Instant) -> bool {
        duplicates.look(frame, &Offload::NONE, (link, true), now) == New::All
    }

    /// Which of these are taken, if each may be.
    fn taken(duplicates: &mut Duplicates, frames: &[(&[u8], LinkId)], now: Instant) -> Vec<bool> {
        let each = frames.iter();
        each.map(|&(frame, link)| is_new(duplicates, frame, link, now))
            .collect()
    }

    #[test]
    fn of_one_frame_on_each_link_the_first_is_taken_and_another_frame_is_another() {
        let mut duplicates = Duplicates::new(7);
        let frames: [(&[u8], _); 6] = [
            (b"one", B),
            (b"one", A),
            (b"two", A),
            (b"one", C),
            (b"two", B),
            (b"on", B),
        ];
        let expected = [true, false, true, false, false, true];
        assert_eq!(taken(&mut duplicates, &frames, at(0)), expected);
    }

    #[test]
    fn what_is_said_twice_is_taken_twice_whatever_is_lost_or_late() {
        let mut duplicates = Duplicates::new(7);
        let same: [(&[u8], _); 4] = [(b"x", A), (b"x", A), (b"x", B), (b"x", B)];
        let expected = [true, true, false, false];
        assert_eq!(taken(&mut duplicates, &same, at(0)), expected);
        // A loses the next one, and has the one after.
        let next: [(&[u8], _); 3] = [(b"x", B), (b"x", A), (b"x", B)];
        assert_eq!(taken(&mut duplicates, &next, at(1)), [true, false, true]);
    }

    #[test]
    fn a_link_that_was_only_counted_goes_on_where_another_ends() {
        let mut duplicates = Duplicates::new(7);
        for _ in 0..5 {
            duplicates.look(b"x", &Offload::NONE, (B, false), at(0));
            assert!(is_new(&mut duplicates, b"x", A, at(0)));
        }
        assert!(is_new(&mut duplicates, b"x", B, at(1)), "the sixth");
        assert!(!is_new(&mut duplicates, b"x", A, at(2)), "a late one");
    }

    #[test]
    fn a_frame_that_is_whole_by_one_link_and_cut_by_another_comes_once() {
        for (frame, offload) in gso_frames() {
            let count = gso::segment_count(frame.len(), &offload.gso.expect("a GSO frame"));
            let cut = |first: usize, n: usize| {
                let mut out = Buffer::with_capacity(frame.len());
                let offload = gso::slice(&frame, &offload, first, n, &mut out).expect("agrees");
                (out, offload)
            };
            let mut duplicates = Duplicates::new(7);
            let mut look = |(frame, offload): &(Buffer, Offload), link| {
                duplicates.look(frame, offload, (link, true), at(0))
            };
            // One in the middle by A, the whole by B, and then the rest by A, in two parts.
            assert_eq!(look(&cut(1, 1), A), New::All);
            let others = New::Segments(vec![0..1, 2..count]);
            assert_eq!(look(&cut(0, count), B), others);
            assert_eq!(look(&cut(0, 1), A), New::Nothing);
            assert_eq!(look(&cut(2, count - 2), A), New::Nothing);
            // Sent again, it is no copy.
            assert_eq!(look(&cut(0, count), B), New::All);
            assert_eq!(look(&cut(0, count), A), New::Nothing);
        }
    }

    #[test]
    fn what_comes_four_seconds_later_is_no_copy() {
        let mut duplicates = Duplicates::new(7);
        assert_eq!(taken(&mut duplicates, &[(b"x", A)], at(0)), [true]);
        assert_eq!(taken(&mut duplicates, &[(b"x", B)], at(3999)), [false]);
        // The same words each second: neither is forgotten while they go on.
        for second in 4..20 {
            let both: [(&[u8], _); 2] = [(b"x", A), (b"x", B)];
            let now = at(second * 1000 + 500);
            assert_eq!(taken(&mut duplicates, &both, now), [true, false]);
        }
        // Their host is elsewhere from now on: what was taken of late may be what comes there.
        for second in 20..40 {
            let now = at(second * 1000 + 500);
            let is_late = second < 23;
            assert_eq!(taken(&mut duplicates, &[(b"x", C)], now), [!is_late]);
        }
    }

    #[test]
    fn little_is_remembered_and_nothing_of_links_that_have_left() {
        let mut duplicates = Duplicates::new(7);
        for n in 0..40_000u32 {
            taken(&mut duplicates, &[(&n.to_be_bytes(), A)], at(0));
        }
        assert_eq!(duplicates.recent.len(), SEGMENTS_MAX);
        assert_eq!(duplicates.segments.len(), SEGMENTS_MAX);
        assert_eq!(duplicates.arrivals.len(), SEGMENTS_MAX);
        duplicates.forget_link(A);
        assert!(duplicates.arrivals.is_empty());
        let last = 39_999u32.to_be_bytes();
        assert_eq!(taken(&mut duplicates, &[(&last, B)], at(0)), [false]);
        assert_eq!(taken(&mut duplicates, &[(b"x", B)], at(4000)), [true]);
        assert_eq!(
            (duplicates.segments.len(), duplicates.arrivals.len()),
            (1, 1)
        );
    }
}
