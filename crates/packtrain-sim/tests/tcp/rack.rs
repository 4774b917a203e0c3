//! The scoreboard by time against RFC 8985's own words, section 6.2: all segments are looked at each time.

use std::ops::Range;

use packtrain_proto::time::{Duration, Instant};
use packtrain_sim::random::Random;
use packtrain_sim::tcp::rack::{Seen, TIMER_SLACK};
use packtrain_sim::tcp::scoreboard::{Detection, Part, Scoreboard};

const MSS: u64 = 4;

#[derive(Clone, Copy)]
struct Segment {
    part: Part,
    sent: Instant,
    sacked: bool,
    lost: bool,
    /// Since it was lost, or by a probe.
    under_way_again: bool,
    retransmitted: bool,
}

#[derive(Default)]
struct Model {
    /// Those that are not acknowledged with all before them.
    segments: Vec<Segment>,
    next: u64,
    newest: (Instant, u64),
    rtt: Duration,
    fack: u64,
    reordering_seen: bool,
    advanced: bool,
    due: Option<Instant>,
}

impl Model {
    /// "RACK_sent_after".
    fn sent_after(&self, segment: &Segment) -> bool {
        let end = segment.part.offset + u64::from(segment.part.len);
        self.newest > (segment.sent, end)
    }

    fn acknowledge(
        &mut self,
        to: u64,
        sacks: &[Range<u64>],
        rtt_min: Option<Duration>,
        now: Instant,
    ) {
        let fack = self.fack;
        let is_told = |segment: &Segment, ranges: &[Range<u64>]| {
            ranges
                .iter()
                .any(|range| range.contains(&segment.part.offset))
        };
        // Those that are told of by SACK first, in the order of the blocks, as the scoreboard reads them.
        let cumulative = 0..to;
        let in_order = sacks.iter().chain([&cumulative]);
        for range in in_order {
            for segment in &mut self.segments {
                if segment.sacked || !is_told(segment, std::slice::from_ref(range)) {
                    continue;
                }
                segment.sacked = true;
                let end = segment.part.offset + u64::from(segment.part.len);
                self.reordering_seen |= end < fack && !segment.retransmitted;
                self.fack = self.fack.max(end);
                let rtt = now.since(segment.sent);
                if segment.retransmitted && rtt_min.is_none_or(|min| rtt < min) {
                    continue;
                }
                (self.rtt, self.advanced) = (rtt, true);
                self.newest = self.newest.max((segment.sent, end));
            }
        }
        self.segments.retain(|segment| segment.part.offset >= to);
    }

    /// "RACK_detect_loss", with Linux' window.
    fn detect(&mut self, seen: &Seen, now: Instant) {
        if !std::mem::take(&mut self.advanced) && self.due.is_none_or(|due| due > now) {
            return;
        }
        let sacked = self.segments.iter().filter(|segment| segment.sacked);
        let is_eager = !self.reordering_seen && (seen.is_recovering || sacked.count() >= 3);
        let window = match is_eager {
            true => Duration::ZERO,
            false => {
                (seen.rtt_min.unwrap_or_default() / 4).min(seen.rtt_smoothed.unwrap_or_default())
            }
        };
        self.due = None;
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            let waits = !segment.sacked && (!segment.lost || segment.under_way_again);
            if !waits || !self.sent_after(&segment) {
                continue;
            }
            let lost_at = segment.sent + self.rtt + window;
            if lost_at <= now {
                self.segments[index].lost = true;
                self.segments[index].under_way_again = false;
            } else {
                // "timeout = max(remaining, timeout)".
                self.due = self.due.max(Some(lost_at + TIMER_SLACK));
            }
        }
    }

    fn time_out(&mut self, now: Instant) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if !segment.sacked && (index == 0 || segment.sent + self.rtt <= now) {
                (segment.lost, segment.under_way_again) = (true, false);
            }
        }
    }

    fn pipe(&self) -> u64 {
        let missing = self.segments.iter().filter(|segment| !segment.sacked);
        let copies = |segment: &Segment| {
            u64::from(segment.part.len)
                * (u64::from(!segment.lost) + u64::from(segment.under_way_again))
        };
        missing.map(copies).sum()
    }

    fn lost(&self) -> Option<Part> {
        let goes = |segment: &&Segment| segment.lost && !segment.sacked && !segment.under_way_again;
        self.segments.iter().find(goes).map(|segment| segment.part)
    }

    fn has_loss(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|segment| segment.lost && !segment.sacked)
    }
}

struct Walk {
    random: Random,
    board: Scoreboard,
    model: Model,
    came: Vec<Part>,
    under_way: Vec<Part>,
    acknowledged: u64,
    rtt_min: Option<Duration>,
    until: Option<u64>,
    now: Instant,
    losses: u64,
    reordered: bool,
}

impl Walk {
    fn seen(&self) -> Seen {
        Seen {
            rtt_min: self.rtt_min,
            rtt_smoothed: self.rtt_min.map(|min| min * 2),
            is_recovering: self.until.is_some(),
        }
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(self.random.below(12));
        let now = self.now;
        match self.random.below(20) {
            0..7 if self.model.segments.len() < 40 => {
                let len = if self.random.chance(0.2) {
                    self.random.between(1, MSS)
                } else {
                    MSS
                };
                let part = self.board.send_new(len as u32, now);
                self.model.segments.push(Segment {
                    part,
                    sent: now,
                    sacked: false,
                    lost: false,
                    under_way_again: false,
                    retransmitted: false,
                });
                self.model.next += len;
                self.under_way.push(part);
            }
            7..13 if !self.under_way.is_empty() => self.something_comes(),
            13..17 => {
                if let Some(part) = self.board.lost(0) {
                    self.resend(part);
                }
            }
            17 if self.random.chance(0.2) => {
                // A probe.
                if let Some(part) = self.board.last_missing() {
                    self.resend(part);
                }
            }
            18 if self.random.chance(0.05) => {
                self.board.time_out(now);
                self.model.time_out(now);
                self.until = Some(self.model.next);
            }
            _ => {
                if self.board.detects_at().is_some_and(|due| due <= now) {
                    self.detect();
                }
            }
        }
        self.compare();
    }

    fn resend(&mut self, part: Part) {
        self.board.resend(part, self.now);
        let mut segments = self.model.segments.iter_mut();
        let segment = segments
            .find(|segment| segment.part == part)
            .expect("it is under way");
        (segment.sent, segment.under_way_again, segment.retransmitted) = (self.now, true, true);
        self.under_way.push(part);
    }

    fn something_comes(&mut self) {
        let ordered = self.random.chance(if self.reordered { 0.6 } else { 1.0 });
        let any = self.random.below(self.under_way.len() as u64) as usize;
        let part = self.under_way.remove(if ordered { 0 } else { any });
        if self.random.chance(0.15) {
            return;
        }
        self.came.push(part);
        self.came.sort_by_key(|part| part.offset);
        let mut sacks: Vec<Range<u64>> = Vec::new();
        let mut to = 0;
        for part in &self.came {
            let end = part.offset + u64::from(part.len);
            match sacks.last_mut() {
                _ if part.offset <= to => to = to.max(end),
                Some(last) if part.offset <= last.end => last.end = last.end.max(end),
                _ => sacks.push(part.offset..end),
            }
        }
        let newest = sacks.iter().position(|range| range.contains(&part.offset));
        let rest = self.random.below(4) as usize;
        let mut told: Vec<_> = newest
            .map(|index| sacks.remove(index))
            .into_iter()
            .collect();
        told.extend(sacks.into_iter().rev().take(rest));
        if self.random.chance(0.1) {
            return; // the acknowledgement is lost
        }
        let now = self.now;
        self.model.acknowledge(to, &told, self.rtt_min, now);
        let news = self.board.acknowledge(to, &told, now);
        assert_eq!(news.advanced, to - self.acknowledged);
        self.acknowledged = to;
        if let Some((_, newest)) = news.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(newest, |min| min.min(newest)));
        }
        self.until.take_if(|until| to >= *until);
        self.detect();
    }

    fn detect(&mut self) {
        let (seen, now, lost) = (self.seen(), self.now, self.board.lost_ever());
        self.board.detect(&seen, now);
        self.model.detect(&seen, now);
        self.losses += u64::from(self.board.lost_ever() > lost);
        if self.until.is_none() && self.board.has_loss() {
            self.until = Some(self.board.begin_recovery());
        }
    }

    fn compare(&mut self) {
        let (board, model) = (&mut self.board, &self.model);
        assert_eq!(board.next(), model.next);
        assert_eq!(board.pipe(), model.pipe());
        assert_eq!(board.lost(0), model.lost());
        assert_eq!(board.has_loss(), model.has_loss());
        assert_eq!(board.detects_at(), model.due);
        assert_eq!(board.flight_segments(), model.segments.len() as u64);
    }
}

#[test]
fn what_is_lost_by_time_is_what_the_rfc_says_looking_at_every_segment() {
    let (mut losses, mut acknowledged) = (0, 0);
    for seed in 0..120 {
        let mut walk = Walk {
            random: Random::new(seed),
            board: Scoreboard::with(MSS, Detection::Rack),
            model: Model::default(),
            came: Vec::new(),
            under_way: Vec::new(),
            acknowledged: 0,
            rtt_min: None,
            until: None,
            now: Instant::ZERO,
            losses: 0,
            reordered: seed % 2 == 0,
        };
        for _ in 0..400 {
            walk.step();
        }
        losses += walk.losses;
        acknowledged += walk.acknowledged;
    }
    assert!(
        losses > 500 && acknowledged > 10_000,
        "{losses} {acknowledged}"
    );
}
