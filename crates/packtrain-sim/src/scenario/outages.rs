//! What happens to the cables of one line: cut and whole again, in and out of the line.

use packtrain_proto::time::{Duration, Instant};

use crate::net::cut::{Cut, Outage};
use crate::random::Random;

/// Between two troubles of one cable.
const GAP_MIN: Duration = Duration::from_millis(5);

/// What may happen.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub cables: usize,
    /// When the sources stop: all is over by then.
    pub end: Instant,
    /// Nothing before.
    pub start: Instant,
    /// Cuts that no end ever sees, of all.
    pub silent: f64,
    /// Links that leave and join, of all troubles.
    pub moves: f64,
    /// Some cable is well at every moment, and has been for so long. `None`: all may be gone at once.
    pub one_well_for: Option<Duration>,
    /// How long an outage is at most.
    pub outage_max: Duration,
    /// A cable that is cut stays so until then, whatever ends before. `None`: they come back.
    pub for_good: Option<Instant>,
}

/// A link joins or leaves the line of one of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub at: Instant,
    pub cable: usize,
    pub host: usize,
    pub joins: bool,
}

#[derive(Clone, Debug)]
pub struct Outages {
    pub cuts: Vec<Cut>,
    pub moves: Vec<Move>,
    /// By cable, then host: whether it is in the line at the start, and at the end.
    pub at_start: Vec<[bool; 2]>,
    pub at_end: Vec<[bool; 2]>,
}

/// From when until when a cable is of no use; for ever if it leaves.
type Span = (Instant, Instant);

const FOR_EVER: Instant = Instant::from_nanos(u64::MAX);

impl Outages {
    pub fn draw(rules: &Rules, count: u64, random: &mut Random) -> Outages {
        let mut drawn = Outages {
            cuts: Vec::new(),
            moves: Vec::new(),
            at_start: vec![[true; 2]; rules.cables],
            at_end: vec![[true; 2]; rules.cables],
        };
        let mut cuts: Vec<Vec<Outage>> = vec![Vec::new(); rules.cables];
        let mut spans: Vec<Vec<Span>> = vec![Vec::new(); rules.cables];
        for _ in 0..count {
            let cable = random.below(rules.cables as u64) as usize;
            let is_move = random.chance(rules.moves);
            let late = is_move && random.chance(0.25);
            let from = match late {
                true => Instant::ZERO,
                false => random_instant(rules.start, rules.end, random),
            };
            let longest = rules.outage_max.as_nanos() as u64;
            let until = from + Duration::from_nanos(random.magnitude(1_000_000, longest));
            // The two ends do not act, or see, at the same moment.
            let apart = match random.below(3) {
                0 => [Duration::ZERO; 2],
                _ => {
                    let lag = Duration::from_nanos(random.magnitude(100_000, 200_000_000));
                    match random.chance(0.5) {
                        true => [lag, Duration::ZERO],
                        false => [Duration::ZERO, lag],
                    }
                }
            };
            let until = rules.for_good.unwrap_or(until);
            let over = until + apart[0].max(apart[1]);
            let for_good = is_move && !late && random.chance(0.3);
            let span = (from, if for_good { FOR_EVER } else { over });
            let ends = rules.for_good.is_some() || over < rules.end;
            let fits = ends && free(&spans[cable], span);
            spans[cable].push(span);
            if !fits || !rules.allow(&spans) {
                spans[cable].pop();
                continue;
            }
            if !is_move {
                let noticed = apart.map(|lag| lag.min(until.since(from) / 2));
                let seen = !random.chance(rules.silent);
                // Of those that nobody sees, two of five in one direction; without a draw, for seeds to stay what they were.
                let by_chance = (from.as_nanos() % 5) as usize;
                cuts[cable].push(Outage {
                    from,
                    until,
                    seen,
                    lag: noticed,
                    port: (!seen && by_chance < 2).then_some(by_chance),
                });
                continue;
            }
            // Sometimes only one of them has it out of the line.
            let hosts = *random.pick(&[[true, true], [true, true], [true, false], [false, true]]);
            for host in (0..2).filter(|&host| hosts[host]) {
                if late {
                    drawn.at_start[cable][host] = false;
                } else {
                    drawn.add_move(from + apart[host], cable, host, false);
                }
                if for_good {
                    drawn.at_end[cable][host] = false;
                } else {
                    drawn.add_move(until + apart[host], cable, host, true);
                }
            }
        }
        for outages in &mut cuts {
            outages.sort_by_key(|outage| outage.from);
        }
        drawn.cuts = cuts.into_iter().map(Cut::new).collect();
        drawn
    }

    fn add_move(&mut self, at: Instant, cable: usize, host: usize, joins: bool) {
        self.moves.push(Move {
            at,
            cable,
            host,
            joins,
        });
    }

    /// When something goes: traffic that is under way then is what matters.
    pub fn losses(&self) -> Vec<Instant> {
        let cuts = self.cuts.iter().flat_map(|cut| cut.outages());
        let leaving = self.moves.iter().filter(|m| !m.joins).map(|m| m.at);
        cuts.map(|outage| outage.from).chain(leaving).collect()
    }

    /// Cables that are in the line of both hosts in the end.
    pub fn whole_at_end(&self) -> usize {
        self.at_end
            .iter()
            .filter(|ends| **ends == [true; 2])
            .count()
    }
}

impl Rules {
    fn allow(&self, spans: &[Vec<Span>]) -> bool {
        let stays = |spans: &&Vec<Span>| spans.iter().all(|span| span.1 != FOR_EVER);
        if spans.iter().filter(stays).count() == 0 {
            return false; // the probes at the end need one
        }
        let Some(settles) = self.one_well_for else {
            return true;
        };
        let well = |spans: &Vec<Span>, at: Instant| {
            spans
                .iter()
                .all(|&(from, until)| at < from || until != FOR_EVER && at > until + settles)
        };
        let starts = spans.iter().flatten().map(|span| span.0);
        starts
            .filter(|&at| at > Instant::ZERO)
            .chain([self.start])
            .all(|at| spans.iter().any(|spans| well(spans, at)))
    }
}

fn free(taken: &[Span], (from, until): Span) -> bool {
    taken.iter().all(|&(other_from, other_until)| {
        let before = until != FOR_EVER && until + GAP_MIN < other_from;
        let after = other_until != FOR_EVER && other_until + GAP_MIN < from;
        before || after
    })
}

fn random_instant(start: Instant, end: Instant, random: &mut Random) -> Instant {
    start + random.duration(Duration::ZERO, end.since(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(one_well_for: Option<Duration>) -> Rules {
        Rules {
            cables: 3,
            end: Instant::ZERO + Duration::from_secs(8),
            start: Instant::ZERO + Duration::from_secs(2),
            silent: 0.3,
            moves: 0.4,
            one_well_for,
            outage_max: Duration::from_secs(1),
            for_good: None,
        }
    }

    /// By cable and host, whether anything is wrong with it at `at`.
    fn well(outages: &Outages, cable: usize, at: Instant) -> bool {
        let cut = outages.cuts[cable].well_since(at).is_none();
        (0..2).all(|host| {
            let mut plugged = outages.at_start[cable][host];
            let mut moves: Vec<_> = outages.moves.clone();
            moves.sort_by_key(|m| m.at);
            for m in moves.iter().filter(|m| m.cable == cable && m.host == host) {
                if m.at <= at {
                    plugged = m.joins;
                }
            }
            plugged && !cut
        })
    }

    #[test]
    fn one_cable_is_always_well_where_the_rules_say_so() {
        let (mut cuts, mut moves) = (0, 0);
        for seed in 0..200 {
            let settles = Duration::from_millis(1500);
            let outages = Outages::draw(&rules(Some(settles)), 20, &mut Random::new(seed));
            cuts += outages
                .cuts
                .iter()
                .map(|c| c.outages().len())
                .sum::<usize>();
            moves += outages.moves.len();
            for ms in 2000..8000 {
                let at = Instant::ZERO + Duration::from_millis(ms);
                assert!(
                    (0..3).any(|cable| well(&outages, cable, at)),
                    "seed {seed} at {at:?}: {outages:?}"
                );
            }
        }
        assert!(cuts > 400 && moves > 400, "{cuts} cuts, {moves} moves");
    }

    #[test]
    fn what_is_in_the_line_in_the_end_is_what_the_moves_lead_to() {
        for seed in 0..200 {
            let outages = Outages::draw(&rules(None), 12, &mut Random::new(seed));
            let mut plugged = outages.at_start.clone();
            let mut moves = outages.moves.clone();
            moves.sort_by_key(|m| m.at);
            for m in moves {
                assert_ne!(plugged[m.cable][m.host], m.joins, "seed {seed}");
                plugged[m.cable][m.host] = m.joins;
            }
            assert_eq!(plugged, outages.at_end, "seed {seed}");
            assert!(outages.whole_at_end() >= 1);
        }
    }
}
