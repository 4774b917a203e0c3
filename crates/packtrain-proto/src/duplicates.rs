//! Plain frames have no sequence: a host with several segments sends one to each of them, and whoever
//! shares two of those with it hears it twice. The second is known by its bytes.
//!
//! Of equal frames as many are taken as came by one link at most: a host may say the same twice, and
//! then both come by each link. All that comes is counted, also on links on which it is not taken, so
//! that another link can go on where one has ended. What this cannot see: a copy that a card has cut,
//! merged, or finished the checksum of, is another frame.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

use crate::config::LinkId;
use crate::gso;
use crate::time::{Duration, Instant};

/// How much later a copy may come: what the queues of two segments can differ by.
const AGE_MAX: Duration = Duration::from_secs(2);
const FRAMES_MAX: usize = 8192;
/// Of huge frames, so much is looked at: headers with sequences, and more. Of others all, for their
/// checksums, by which they may differ most, are left out.
const BYTES_MAX: usize = 2048;
/// A card fills frames up to this length, with zeros (IEEE 802.3, without the FCS).
const FRAME_LEN_MIN: usize = 60;

#[derive(Debug)]
pub struct Duplicates {
    recent: VecDeque<(u64, Instant)>,
    /// When a frame came last, and how often it was taken.
    frames: HashMap<u64, (Instant, u32)>,
    /// How often it came by a link.
    arrivals: HashMap<(u64, LinkId), u32>,
    /// Links that have brought something, also those that have left since.
    links: Vec<LinkId>,
    seed: u64,
}

impl Duplicates {
    pub fn new(seed: u64) -> Duplicates {
        Duplicates {
            recent: VecDeque::new(),
            frames: HashMap::new(),
            arrivals: HashMap::new(),
            links: Vec::new(),
            seed,
        }
    }

    /// A frame has come. Says whether it is a copy of one that was taken.
    pub fn is_duplicate(&mut self, frame: &[u8], link: LinkId, taken: bool, now: Instant) -> bool {
        self.forget_old(now);
        let name = self.name_of(frame);
        self.recent.push_back((name, now));
        if !self.links.contains(&link) {
            self.links.push(link);
        }
        let arrivals = self.arrivals.entry((name, link)).or_default();
        *arrivals += 1;
        let (came_last, takings) = self.frames.entry(name).or_default();
        *came_last = now;
        let is_new = *arrivals > *takings;
        *takings += u32::from(taken && is_new);
        !is_new
    }

    fn name_of(&self, frame: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_usize(frame.len().max(FRAME_LEN_MIN));
        let seen = &frame[..frame.len().min(BYTES_MAX)];
        match gso::transport_checksum_at(frame).filter(|&at| at + 2 <= seen.len()) {
            Some(at) => {
                hasher.write(&seen[..at]);
                hasher.write(&seen[at + 2..]);
            }
            None => hasher.write(seen),
        }
        hasher.write(&[0; FRAME_LEN_MIN][seen.len().min(FRAME_LEN_MIN)..]);
        hasher.finish()
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some(&(name, came)) = self.recent.front() {
            if self.recent.len() < FRAMES_MAX && now.since(came) < AGE_MAX {
                return;
            }
            self.recent.pop_front();
            // It may have come again since.
            if self
                .frames
                .get(&name)
                .is_some_and(|(last, _)| *last == came)
            {
                self.frames.remove(&name);
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

    const A: LinkId = LinkId(0);
    const B: LinkId = LinkId(1);
    const C: LinkId = LinkId(2);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Which of these are taken, if each may be.
    fn taken(duplicates: &mut Duplicates, frames: &[(&[u8], LinkId)], now: Instant) -> Vec<bool> {
        let each = frames.iter();
        each.map(|&(frame, link)| !duplicates.is_duplicate(frame, link, true, now))
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
            duplicates.is_duplicate(b"x", B, false, at(0));
            assert!(!duplicates.is_duplicate(b"x", A, true, at(0)));
        }
        assert!(!duplicates.is_duplicate(b"x", B, true, at(1)), "the sixth");
        assert!(duplicates.is_duplicate(b"x", A, true, at(2)), "a late one");
    }

    #[test]
    fn a_short_frame_that_was_filled_up_and_a_finished_checksum_make_no_other_frame() {
        let mut duplicates = Duplicates::new(7);
        let (short, filled) = ([3; 42], [[3; 42].as_slice(), &[0; 18]].concat());
        assert!(!duplicates.is_duplicate(&short, A, true, at(0)));
        assert!(duplicates.is_duplicate(&filled, B, true, at(0)));
        let mut datagram = [[2; 12].as_slice(), &[8, 0, 0x45, 0, 0, 50]].concat();
        datagram.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        datagram.resize(64, 5);
        let (mut finished, mut other) = (datagram.clone(), datagram.clone());
        finished[40..42].copy_from_slice(&[8, 9]);
        other[63] = 6;
        assert!(!duplicates.is_duplicate(&datagram, A, true, at(0)));
        assert!(duplicates.is_duplicate(&finished, B, true, at(0)));
        assert!(!duplicates.is_duplicate(&other, B, true, at(0)));
    }

    #[test]
    fn what_comes_two_seconds_later_is_no_copy_and_little_is_remembered() {
        let mut duplicates = Duplicates::new(7);
        assert_eq!(taken(&mut duplicates, &[(b"x", A)], at(0)), [true]);
        assert_eq!(taken(&mut duplicates, &[(b"x", B)], at(1999)), [false]);
        // The same words each second: neither is forgotten while they go on.
        for second in 2..20 {
            let both: [(&[u8], _); 2] = [(b"x", A), (b"x", B)];
            let now = at(second * 1000 + 500);
            assert_eq!(taken(&mut duplicates, &both, now), [true, false]);
        }
        assert_eq!(taken(&mut duplicates, &[(b"x", C)], at(30_000)), [true]);
        for n in 0..10_000u32 {
            taken(&mut duplicates, &[(&n.to_be_bytes(), A)], at(30_000));
        }
        assert_eq!(duplicates.recent.len(), FRAMES_MAX);
        assert_eq!(duplicates.frames.len(), FRAMES_MAX);
        assert_eq!(duplicates.arrivals.len(), FRAMES_MAX);
    }
}
