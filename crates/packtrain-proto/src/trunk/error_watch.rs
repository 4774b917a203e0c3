//! Whether the only path to a peer is known to lose trains by bits that are wrong, and what is done to find out.
//!
//! Most frames of a single path go past the engine, or as they are: nobody numbers them, and of those that are lost no more is known than
//! their number, if that. So when some are lost the path is *looked at*: for some seconds all of them go in trains, which are acknowledged one by
//! one. Bits that are wrong then show, and as long as they do what is lost goes again, by the same path, and trains are as long as carries
//! most (`unit_size.rs`). Otherwise all is as before, and the next look is later.
//!
//! ```text
//!           something is lost, and the last look is long enough ago
//!   Quiet ───────────────────────────────────────────────────────────▶ Looking
//!     ▲ ▲                          nothing is found in its time            │
//!     │ └──────────────────────────────────────────────────────────────────┤
//!     │  so few would be lost that it does not matter      bits are wrong  ▼
//!     └────────────────────────────────────────────────────────────── Mending
//! ```
//!
//! Where most are lost, or many that are long, there is no time for that: a TCP whose first windows vanish sends one segment for each of
//! its timeouts, from which nothing could be found. What is lost goes again from the beginning of such a look, and trains are short
//! meanwhile ([`crate::trunk::flight`]). That many are lost a queue does too that is full: of them it is looked at as often as of a few.

use super::bit_errors::Estimate;
use super::recent::Recent;
use crate::time::{Duration, Instant};

/// Of a million of the longest trains that pass, so many are lost, and it matters; so few, and it does not any more.
const MATTERS_PPM: f64 = 500.0;
const ENDS_PPM: f64 = 100.0;
/// A look takes so long, and longer where something was lost in it.
const LOOK: Duration = Duration::from_secs(5);
const LOOK_MAX: Duration = Duration::from_secs(20);
/// Trains that are lost while it is looked, and it is no end yet.
const LOST_IN_LOOK: u64 = 2;
/// A look because many were lost is for somebody who waits for long by now: it begins when so many trains were sent, or ends after so long.
const TRAINS_IN_URGENT_LOOK: u64 = 16;
const URGENT_LOOK_MAX: Duration = Duration::from_secs(120);
/// After a look that found nothing, until the next one; twice as long each time, up to …
const AGAIN_AFTER: Duration = Duration::from_secs(30);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(960);
/// Of frames that nobody numbers so many are lost lately, at least and of a million, and it is looked at.
const HINT_MIN: u64 = 3;
const HINT_PPM: u64 = 500;
/// One in so many is many.
const MANY_OF: u64 = 8;
/// Of the frames that could go as they are, one goes in a train, which is acknowledged, for so many bytes: of segments, which live or die
/// by themselves, those of one. So one in sixteen of full ones on each Ethernet, and all that are so long.
const SAMPLED_BYTES: usize = 24 * 1024;
/// A frame of more segments than these is many trains, which take several times as long as the frame whole: behind them the link runs dry,
/// and small frames wait. It is chosen no more often than this.
const FEW_SEGMENTS: usize = 4;
const MANY_APART: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Quiet,
    Looking {
        since: Instant,
        lost_before: u64,
        haste: Haste,
    },
    Mending,
}

/// With which it is looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Haste {
    No,
    /// Many were lost. When so many trains were sent, ever, the look begins.
    UntilSent(u64),
    Sent,
}

/// What follows from frames that nobody numbers and that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnumbered {
    AsBefore,
    /// It is looked at from now on.
    Looks,
    /// Most were, or many and it is time to look at it: at once, if they may have been long.
    ManyLost,
}

/// Of one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorWatch {
    state: State,
    next_look: Instant,
    again_after: Option<Duration>,
    unnumbered: Recent,
    unnumbered_sent: u32,
    unnumbered_lost: u64,
    as_they_are: usize,
    /// When a frame of many segments may be chosen next.
    next_many: Instant,
}

impl ErrorWatch {
    /// All frames are to go in trains.
    pub fn wants_trains(&self) -> bool {
        self.state != State::Quiet
    }

    /// Bits are wrong, and trains are as long as carries most.
    pub fn mends(&self) -> bool {
        self.state == State::Mending
    }

    /// Trains are to be short, until it is known how long they may be.
    pub fn is_urgent(&self) -> bool {
        self.repairs() && !self.mends()
    }

    /// What is lost is to go again.
    pub fn repairs(&self) -> bool {
        match self.state {
            State::Quiet => false,
            State::Looking { haste, .. } => haste != Haste::No,
            State::Mending => true,
        }
    }

    /// A frame of so many bytes could go as it is, of which on the wire none is longer than `each`: whether it is to go in trains instead.
    pub fn samples(&mut self, bytes: usize, each: usize, now: Instant) -> bool {
        self.as_they_are += each;
        let is_many = bytes > each * FEW_SEGMENTS;
        if self.as_they_are < SAMPLED_BYTES || (is_many && now < self.next_many) {
            return false;
        }
        self.as_they_are = 0;
        if is_many {
            self.next_many = now + MANY_APART;
        }
        true
    }

    /// Of the frames that nobody numbers so many have gone, ever, and so many were lost.
    pub fn on_unnumbered(
        &mut self,
        sent: u32,
        lost: u64,
        trains_lost: u64,
        now: Instant,
    ) -> Unnumbered {
        let more = lost.saturating_sub(self.unnumbered_lost);
        self.unnumbered_lost = lost;
        let since = sent.wrapping_sub(self.unnumbered_sent);
        self.unnumbered_sent = sent;
        self.unnumbered.add(more as i64, u64::from(since), now);
        let (lost, all) = self.unnumbered.get(now).unwrap_or_default();
        let is_hint = more > 0 && lost >= HINT_MIN && lost * 1_000_000 >= all * HINT_PPM;
        match is_hint {
            true if lost * 2 >= all => Unnumbered::ManyLost,
            true if lost * MANY_OF >= all && self.is_time(now) => Unnumbered::ManyLost,
            true if self.look(trains_lost, now) => Unnumbered::Looks,
            _ => Unnumbered::AsBefore,
        }
    }

    /// A train that was one of few was lost. `trains_lost`: so many ever. Says whether anything has changed.
    pub fn look(&mut self, trains_lost: u64, now: Instant) -> bool {
        let is_time = self.is_time(now);
        if is_time {
            self.state = State::Looking {
                since: now,
                lost_before: trains_lost.saturating_sub(1),
                haste: Haste::No,
            };
        }
        is_time
    }

    fn is_time(&self, now: Instant) -> bool {
        self.state == State::Quiet && now >= self.next_look
    }

    /// Hardly anything that is long arrives, whenever it was looked at last. So many trains were sent ever, and lost.
    pub fn look_at_once(&mut self, trains_sent: u64, trains_lost: u64, now: Instant) {
        if !self.mends() {
            self.state = State::Looking {
                since: now,
                lost_before: trains_lost,
                haste: Haste::UntilSent(trains_sent + TRAINS_IN_URGENT_LOOK),
            };
        }
    }

    /// What is known by now of trains of so many bytes, the longest that pass. `gains`: it could be mended. Says whether anything has
    /// changed.
    pub fn follow(
        &mut self,
        known: Option<Estimate>,
        (longest, gains): (usize, bool),
        (trains_sent, trains_lost): (u64, u64),
        now: Instant,
    ) -> bool {
        let before = self.state;
        let ppm = known.map_or(0.0, |known| known.hazard(longest) * 1e6);
        self.state = match self.state {
            State::Quiet | State::Looking { .. } if gains && ppm >= MATTERS_PPM => {
                self.again_after = None;
                State::Mending
            }
            State::Looking {
                lost_before,
                haste: Haste::UntilSent(enough),
                ..
            } if trains_sent >= enough => State::Looking {
                since: now,
                lost_before,
                haste: Haste::Sent,
            },
            State::Looking {
                since,
                lost_before,
                haste,
            } => {
                let is_open = trains_lost >= lost_before + LOST_IN_LOOK;
                let time = match haste {
                    Haste::UntilSent(_) => URGENT_LOOK_MAX,
                    _ if is_open => LOOK_MAX,
                    _ => LOOK,
                };
                match gains && now.since(since) < time {
                    true => self.state,
                    false => self.rest(now),
                }
            }
            State::Mending if gains && ppm >= ENDS_PPM => State::Mending,
            State::Mending => self.rest(now),
            State::Quiet => State::Quiet,
        };
        before != self.state
    }

    fn rest(&mut self, now: Instant) -> State {
        let after = self.again_after.unwrap_or(AGAIN_AFTER);
        self.next_look = now + after;
        self.again_after = Some((after * 2).min(AGAIN_AFTER_MAX));
        State::Quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn known(rate: f64) -> Option<Estimate> {
        (rate > 0.0).then_some(Estimate {
            rate,
            other: 0.0,
            trains: 1000,
            lost: 20,
        })
    }

    const FULL: (usize, bool) = (1514, true);

    #[test]
    fn it_looks_when_frames_are_lost_that_nobody_numbers_and_mends_what_it_finds() {
        let mut watch = ErrorWatch::default();
        let mut lost = |sent, lost, millis| watch.on_unnumbered(sent, lost, 0, at(millis));
        assert_eq!(lost(1000, 1, 100), Unnumbered::AsBefore);
        assert_eq!(lost(2000, 2, 200), Unnumbered::AsBefore);
        assert_eq!(lost(3000, 3, 300), Unnumbered::Looks);
        assert_eq!(lost(3000, 4, 310), Unnumbered::AsBefore, "it looks already");
        assert!(watch.wants_trains() && !watch.mends() && !watch.repairs());
        assert!(!watch.follow(None, FULL, (1000, 3), at(800)));
        assert!(watch.follow(known(1e-6), FULL, (1000, 9), at(900)));
        assert!(watch.mends());
        // As long as it is so, and a little less.
        assert!(!watch.follow(known(2e-8), FULL, (1000, 9), at(9000)));
        assert!(watch.follow(known(5e-9), FULL, (1000, 9), at(9100)));
        assert!(!watch.wants_trains());
    }

    #[test]
    fn who_finds_nothing_looks_less_and_less_often() {
        let (mut watch, mut millis, mut looks) = (ErrorWatch::default(), 0, Vec::new());
        for lost in 1.. {
            millis += 100;
            if watch.look(lost, at(millis)) {
                looks.push(millis / 1000);
            }
            watch.follow(None, FULL, (1000, 0), at(millis));
            if looks.len() == 5 {
                break;
            }
        }
        let apart: Vec<u64> = looks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(apart, [35, 65, 125, 245]);
    }

    #[test]
    fn a_look_in_which_something_is_lost_takes_its_time_and_one_that_could_mend_nothing_none() {
        let mut watch = ErrorWatch::default();
        assert!(watch.look(1, at(1000)));
        assert!(!watch.follow(None, FULL, (1000, 2), at(15_000)));
        assert!(watch.follow(None, FULL, (1000, 2), at(21_000)));
        let mut watch = ErrorWatch::default();
        watch.look(1, at(1000));
        assert!(watch.follow(known(1e-5), (1514, false), (1000, 2), at(1001)));
        assert!(!watch.wants_trains());
    }

    #[test]
    fn where_most_are_lost_it_is_said_at_any_time_and_what_is_lost_goes_again() {
        let mut watch = ErrorWatch::default();
        assert!(watch.look(1, at(0)));
        assert!(watch.follow(None, FULL, (1000, 0), at(5000)));
        let mut lost = |sent, lost| watch.on_unnumbered(sent, lost, 0, at(6000));
        assert_eq!(lost(3, 2), Unnumbered::AsBefore);
        assert_eq!(lost(9, 4), Unnumbered::AsBefore, "the next look is later");
        assert_eq!(lost(10, 5), Unnumbered::ManyLost);
        watch.look_at_once(0, 0, at(6000));
        assert!(watch.wants_trains() && watch.repairs() && !watch.mends());
        assert!(watch.follow(known(1e-5), FULL, (1000, 9), at(6100)));
        assert!(watch.mends() && watch.repairs());
        watch.look_at_once(0, 0, at(6200));
        assert!(watch.mends(), "it is known already");
    }

    #[test]
    fn where_many_are_lost_it_is_said_as_often_as_it_is_time_to_look() {
        let mut watch = ErrorWatch::default();
        let lost = |watch: &mut ErrorWatch, sent, lost, millis| {
            watch.on_unnumbered(sent, lost, 0, at(millis))
        };
        assert_eq!(lost(&mut watch, 16, 2, 10), Unnumbered::AsBefore);
        assert_eq!(lost(&mut watch, 33, 4, 20), Unnumbered::Looks, "too few");
        assert!(watch.follow(None, FULL, (1000, 0), at(5020)));
        assert_eq!(lost(&mut watch, 40, 7, 5030), Unnumbered::AsBefore);
        assert_eq!(lost(&mut watch, 64, 10, 35_030), Unnumbered::ManyLost);
    }

    #[test]
    fn a_look_that_is_urgent_takes_its_time_from_when_something_was_sent() {
        let mut watch = ErrorWatch::default();
        watch.look_at_once(10, 0, at(0));
        for (sent, millis) in [(10, 5000), (25, 30_000), (25, 119_999)] {
            assert!(!watch.follow(None, FULL, (sent, 0), at(millis)));
            assert!(watch.is_urgent(), "{sent}, {millis}");
        }
        watch.follow(None, FULL, (26, 0), at(119_999));
        assert!(!watch.follow(None, FULL, (90, 0), at(124_998)));
        assert!(watch.is_urgent());
        assert!(watch.follow(None, FULL, (90, 0), at(124_999)));
        assert!(!watch.is_urgent() && !watch.wants_trains());
        watch.look_at_once(30, 0, at(200_000));
        assert!(watch.follow(None, FULL, (30, 0), at(320_000)), "for ever");
    }

    #[test]
    fn one_frame_in_some_goes_in_a_train_and_seldom_one_that_is_many() {
        let mut watch = ErrorWatch::default();
        let mut sampled = |bytes, each, apart_ms| {
            let is_one = |n: &u64| watch.samples(bytes, each, at(n * apart_ms));
            (1000..1340).filter(is_one).count()
        };
        assert_eq!(sampled(1514, 1514, 1), 20);
        assert_eq!(sampled(6000, 1514, 1), 20);
        assert_eq!(sampled(65_014, 65_014, 1), 340);
        assert_eq!(sampled(30_000, 1514, 10), 7);
    }
}
