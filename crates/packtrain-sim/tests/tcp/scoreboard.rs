//! The scoreboard against RFC 6675's own words, octet by octet.

use std::collections::BTreeSet;
use std::ops::Range;

use packtrain_proto::time::Instant;
use packtrain_sim::random::Random;
use packtrain_sim::tcp::scoreboard::{Part, Scoreboard};

const SMSS: u64 = 4;
const DUP_THRESH: usize = 3;

/// Octets have their numbers; "after" is one behind the last.
#[derive(Default)]
struct Model {
    /// HighACK + 1.
    acknowledged: u64,
    /// HighData + 1.
    next: u64,
    /// HighRxt + 1.
    resent_to: u64,
    sacked: BTreeSet<u64>,
    /// All of these were given up when the timer expired.
    given_up_to: u64,
    segments: Vec<Part>,
}

impl Model {
    fn unsacked(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        (self.acknowledged..self.next).filter(|octet| !self.sacked.contains(octet))
    }

    /// "IsLost (SeqNum): … when either DupThresh discontiguous SACKed sequences have arrived above 'SeqNum' or
    /// more than (DupThresh - 1) * SMSS bytes with sequence numbers greater than 'SeqNum' have been SACKed."
    fn is_lost(&self, octet: u64) -> bool {
        let above: Vec<u64> = self.sacked.range(octet + 1..).copied().collect();
        let begins = |&&at: &&u64| at == octet + 1 || !self.sacked.contains(&(at - 1));
        let sequences = above.iter().filter(begins).count();
        let bytes = above.len() as u64;
        let by_sacks = sequences >= DUP_THRESH || bytes > (DUP_THRESH as u64 - 1) * SMSS;
        by_sacks || octet < self.given_up_to
    }

    /// "SetPipe (): … for each octet 'S1' that has not been SACKed: (a) if IsLost (S1) returns false: pipe is
    /// incremented by 1; (b) if S1 <= HighRxt: pipe is incremented by 1."
    fn pipe(&self) -> u64 {
        let each = self
            .unsacked()
            .map(|octet| u64::from(!self.is_lost(octet)) + u64::from(octet < self.resent_to));
        each.sum()
    }

    /// NextSeg, (1): "the smallest unSACKed sequence number 'S2' that meets … (1.a) S2 is greater than HighRxt,
    /// (1.b) S2 is less than the highest octet covered by any received SACK, (1.c) IsLost (S2) returns true". What
    /// is given up needs no (1.b).
    fn lost(&self, below: u64) -> Option<u64> {
        let first = self.unsacked().find(|&octet| octet >= self.resent_to)?;
        let behind =
            first < self.given_up_to || self.sacked.last().is_some_and(|&last| first < last);
        (first < below && behind && self.is_lost(first)).then_some(first)
    }

    /// (3): "an unSACKed sequence number 'S3' that meets the criteria … (1.a) and (1.b)".
    fn missing(&self, below: u64) -> Option<u64> {
        let first = self.unsacked().find(|&octet| octet >= self.resent_to)?;
        (first < below && self.sacked.last().is_some_and(|&last| first < last)).then_some(first)
    }

    fn segment(&self, octet: u64) -> Part {
        let within =
            |part: &&Part| (part.offset..part.offset + u64::from(part.len)).contains(&octet);
        *self.segments.iter().find(within).expect("it was sent")
    }
}

/// What has come to the other end, and a receiver's words for it.
#[derive(Default)]
struct Other {
    octets: BTreeSet<u64>,
}

impl Other {
    fn acknowledgement(&self, newest: u64, random: &mut Random) -> (u64, Vec<Range<u64>>) {
        let to = (0..)
            .find(|octet| !self.octets.contains(octet))
            .expect("some is missing");
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for &octet in self.octets.range(to..) {
            match ranges.last_mut().filter(|last| last.end == octet) {
                Some(last) => last.end += 1,
                None => ranges.push(octet..octet + 1),
            }
        }
        // The newest one, and some of the others: the rest was told before, or was lost with its acknowledgement.
        let told =
            |range: &Range<u64>, random: &mut Random| range.contains(&newest) || random.chance(0.4);
        ranges.retain(|range| told(range, random));
        ranges.truncate(4);
        (to, ranges)
    }
}

struct Walk {
    random: Random,
    board: Scoreboard,
    model: Model,
    other: Other,
    under_way: Vec<Part>,
    recovery_until: Option<u64>,
    now: u64,
}

impl Walk {
    fn step(&mut self) {
        self.now += 1;
        let now = Instant::from_nanos(self.now);
        match self.random.below(20) {
            0..7 if self.model.next < self.model.acknowledged + 40 * SMSS => {
                // Most are whole.
                let short = self.random.chance(0.2);
                let len = if short {
                    self.random.between(1, SMSS)
                } else {
                    SMSS
                };
                let part = self.board.send_new(len as u32, now);
                assert_eq!(part.offset, self.model.next);
                self.model.next += len;
                self.model.segments.push(part);
                self.under_way.push(part);
            }
            7..14 if !self.under_way.is_empty() => self.something_comes(now),
            14..18 if self.recovery_until.is_some() => self.resend(now),
            18 if self.random.chance(0.1) => {
                self.board.lose_all();
                self.model.given_up_to = self.model.next;
                self.model.resent_to = self.model.acknowledged;
                self.recovery_until = Some(self.model.next);
            }
            _ => {}
        }
        self.compare();
    }

    fn something_comes(&mut self, now: Instant) {
        // Often in order, now and then not at all.
        let ordered = self.random.chance(0.6);
        let any = self.random.below(self.under_way.len() as u64) as usize;
        let part = self.under_way.remove(if ordered { 0 } else { any });
        if self.random.chance(0.15) {
            return;
        }
        self.other
            .octets
            .extend(part.offset..part.offset + u64::from(part.len));
        let (to, sacks) = self.other.acknowledgement(part.offset, &mut self.random);
        if self.random.chance(0.1) {
            return; // the acknowledgement is lost
        }
        let known = self.model.acknowledged + self.model.sacked.len() as u64;
        let news = self.board.acknowledge(to, &sacks, now);
        let model = &mut self.model;
        assert_eq!(news.advanced, to - model.acknowledged);
        model.acknowledged = to;
        model.sacked.extend(sacks.into_iter().flatten());
        model.sacked = model.sacked.split_off(&to);
        let knows = model.acknowledged + model.sacked.len() as u64;
        // What was SACKed and is acknowledged now is not delivered twice.
        assert_eq!(news.delivered, knows - known);
        self.recovery_until.take_if(|until| to >= *until);
        if self.recovery_until.is_none() && self.board.has_loss() {
            self.board.begin_recovery();
            self.model.resent_to = to;
            self.recovery_until = Some(self.model.next);
        }
    }

    fn resend(&mut self, now: Instant) {
        let until = self.recovery_until.expect("asked before");
        let part = self.board.lost(until).or_else(|| self.board.missing(until));
        let Some(part) = part else {
            return;
        };
        self.board.resend(part, now);
        self.model.resent_to = part.offset + u64::from(part.len);
        self.under_way.push(part);
    }

    fn compare(&mut self) {
        let (board, model) = (&mut self.board, &self.model);
        assert_eq!(board.acknowledged(), model.acknowledged);
        assert_eq!(board.next(), model.next);
        assert_eq!(board.flight(), model.next - model.acknowledged);
        assert_eq!(board.sacked_bytes(), model.sacked.len() as u64);
        assert_eq!(board.pipe(), model.pipe());
        let first = model.acknowledged;
        let has_loss = first < model.next && model.is_lost(first);
        assert_eq!(board.has_loss(), has_loss);
        if let Some(until) = self.recovery_until {
            let part = |octet: Option<u64>| octet.map(|octet| model.segment(octet));
            assert_eq!(board.lost(until), part(model.lost(until)));
            assert_eq!(board.missing(until), part(model.missing(until)));
            let last = model.unsacked().next_back();
            assert_eq!(board.rescue(), part(last));
        }
    }
}

#[test]
fn the_scoreboard_says_what_the_rfc_says_octet_by_octet() {
    let (mut recoveries, mut acknowledged) = (0, 0);
    for seed in 0..120 {
        let mut walk = Walk {
            random: Random::new(seed),
            board: Scoreboard::new(SMSS),
            model: Model::default(),
            other: Other::default(),
            under_way: Vec::new(),
            recovery_until: None,
            now: 0,
        };
        for _ in 0..400 {
            let before = walk.recovery_until;
            walk.step();
            recoveries += u64::from(walk.recovery_until.is_some() && walk.recovery_until != before);
        }
        acknowledged += walk.model.acknowledged;
    }
    assert!(
        recoveries > 500 && acknowledged > 20_000,
        "{recoveries} {acknowledged}"
    );
}
