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
        (part, stage): (&str, &Stage),
        ways: &[Way],
        mut measure: impl FnMut(Way, usize) -> Result<T>,
    ) -> Result<Runs<T>> {
        let mut ways = stage.available(ways);
        stage.lateness()?;
        let (mut runs, mut stood) = (Runs::new(), Vec::new());
        for round in 0..self.rounds {
            eprintln!("{part}: round {} of {}", round + 1, self.rounds);
            for &way in &ways {
                let before = way.line().map(|line| stage.a.status_of(line)).transpose()?;
                let watch = Watch::begin();
                let result = measure(way, round)?;
                stood.push(watch.end().share());
                runs.entry(way).or_default().push(result);
                if let (Some(line), Some(before)) = (way.line(), before) {
                    self.note_use(part, line, (&before, &stage.a.status_of(line)?));
                }
            }
            ways.rotate_left(1);
        }
        self.lateness.push(WireLateness {
            part: part.to_owned(),
            lateness: stage.lateness()?,
            stood_still: stood.into_iter().collect(),
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
