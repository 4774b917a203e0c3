//! What was measured so far.

use std::path::Path;

use super::WireLateness;
use super::row::{Better, Row, Runs};
use super::stage::{Flow, Stage, Way};
use super::subflows::SubflowUse;
use super::wires::WireOf;
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::link_use::{self, LinkUse};
use crate::lab::one_link::path_use::PathCounts;
use crate::lab::standstill::Watch;
use crate::status::StatusDocument;

/// Where processors stand still for more of the time, a figure says more of the machine than of a line: there it is measured
/// again, by whatever way it was, and the one counts in which they stood still the least.
const STOOD_STILL_MAX: f64 = 0.03;
const AGAIN_MAX: usize = 3;

#[derive(Debug)]
pub struct Bench<'a> {
    pub packtrain: &'a Path,
    pub rounds: usize,
    pub mptcp_unavailable: Option<String>,
    pub figures: Vec<Row>,
    pub links: Vec<LinkUse>,
    pub paths: Vec<PathCounts>,
    pub subflows: Vec<SubflowUse>,
    pub lateness: Vec<WireLateness>,
}

impl<'a> Bench<'a> {
    pub fn new(packtrain: &'a Path, rounds: usize) -> Bench<'a> {
        Bench {
            packtrain,
            rounds,
            mptcp_unavailable: None,
            figures: Vec::new(),
            links: Vec::new(),
            paths: Vec::new(),
            subflows: Vec::new(),
            lateness: Vec::new(),
        }
    }

    /// Hosts and wires of their own: what a line has learned of others is not to count.
    pub fn stage(&mut self, wires: &[WireOf]) -> Result<Stage> {
        let stage = Stage::set(self.packtrain, wires)?;
        self.mptcp_unavailable = stage.mptcp_unavailable.clone();
        Ok(stage)
    }

    /// Each way `rounds` times in turns; who begins alternates as well. What went over each link meanwhile is noted.
    pub fn in_turns<T>(
        &mut self,
        of: (&str, &Stage),
        ways: &[Way],
        measure: impl FnMut(Way, usize) -> Result<T>,
    ) -> Result<Runs<T>> {
        self.in_turns_again(of, ways, 0, measure)
    }

    /// The same of what can be measured again where the machine was away meanwhile.
    pub fn in_turns_where_it_ran<T>(
        &mut self,
        of: (&str, &Stage),
        ways: &[Way],
        measure: impl FnMut(Way, usize) -> Result<T>,
    ) -> Result<Runs<T>> {
        self.in_turns_again(of, ways, AGAIN_MAX, measure)
    }

    fn in_turns_again<T>(
        &mut self,
        (part, stage): (&str, &Stage),
        ways: &[Way],
        again_max: usize,
        mut measure: impl FnMut(Way, usize) -> Result<T>,
    ) -> Result<Runs<T>> {
        let mut ways = stage.available(ways);
        stage.lateness()?;
        let (mut runs, mut stood, mut again) = (Runs::new(), Vec::new(), 0);
        for round in 0..self.rounds {
            eprintln!("{part}: round {} of {}", round + 1, self.rounds);
            for &way in &ways {
                let mut measured = Measured::of(stage, way, || measure(way, round))?;
                for _ in 0..again_max {
                    if measured.stood_still <= STOOD_STILL_MAX {
                        break;
                    }
                    let percent = measured.stood_still * 100.0;
                    eprintln!("once more: processors stood still for {percent:.1} % of the time");
                    again += 1;
                    let next = Measured::of(stage, way, || measure(way, round))?;
                    if next.stood_still < measured.stood_still {
                        measured = next;
                    }
                }
                stood.push(measured.stood_still);
                runs.entry(way).or_default().push(measured.result);
                if let (Some(line), Some((before, after))) = (way.line(), measured.used) {
                    self.note_use(part, line, (&before, &after));
                }
            }
            ways.rotate_left(1);
        }
        self.lateness.push(WireLateness {
            part: part.to_owned(),
            lateness: stage.lateness()?,
            stood_still: stood.into_iter().collect(),
            again,
        });
        Ok(runs)
    }

    /// What A sent through a line between two of its documents; one row for all rounds of a part.
    pub fn note_use(
        &mut self,
        part: &str,
        line: &'static str,
        (before, after): (&StatusDocument, &StatusDocument),
    ) {
        let counters = [before, after].map(link_use::counters);
        for of in link_use::uses(part, line, &counters[0], &counters[1]) {
            let same = |noted: &&mut LinkUse| {
                (&noted.part, noted.line, noted.sent.id) == (&of.part, of.line, of.sent.id)
            };
            match self.links.iter_mut().find(same) {
                Some(noted) => noted.sent.add(&of.sent),
                None => self.links.push(of),
            }
        }
        let counts = PathCounts::between(part, line, before, after);
        let same = |noted: &&mut PathCounts| noted.part == part && noted.line == line;
        match self.paths.iter_mut().find(same) {
            Some(noted) => noted.add(counts),
            None => self.paths.push(counts),
        }
    }

    /// What MPTCP's subflows of these rounds carried.
    pub fn note_subflows<'b>(&mut self, part: &str, flows: impl Iterator<Item = &'b Flow>) {
        let rounds: Vec<_> = flows.filter_map(|flow| flow.subflows.clone()).collect();
        self.subflows.extend(SubflowUse::of(part, &rounds));
    }

    pub fn promise<T>(
        &mut self,
        name: impl Into<String>,
        of: (Unit, Target, Better),
        runs: &Runs<T>,
        number: impl Fn(&T) -> f64,
    ) {
        self.figures.push(Row::of(name, of, runs, number));
    }
}

/// What was measured once, by one way.
struct Measured<T> {
    result: T,
    /// The share of their time that processors stood still meanwhile.
    stood_still: f64,
    /// A's line before and after.
    used: Option<(StatusDocument, StatusDocument)>,
}

impl<T> Measured<T> {
    fn of(stage: &Stage, way: Way, measure: impl FnOnce() -> Result<T>) -> Result<Measured<T>> {
        let status = || way.line().map(|line| stage.a.status_of(line)).transpose();
        let before = status()?;
        let watch = Watch::begin();
        let result = measure()?;
        let stood_still = watch.end().share();
        Ok(Measured {
            result,
            stood_still,
            used: before.zip(status()?),
        })
    }
}
