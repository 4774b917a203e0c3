//! Many runs: every combination of what is varied, with every seed, on as many processors as there are.
//!
//! What comes out does not depend on how many ran at once, nor on what was kept of an earlier try.

mod plan;
pub mod store;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use packtrain_settings::toml_reader::FileErrors;

pub use plan::Plan;

use self::store::{Store, StoreError};
use crate::expression::Value;
use crate::interval::Interval;
use crate::judge::contradiction;
use crate::model::{Progress, Series};
use crate::parameters::Settings;
use crate::run::{Run, run};
use crate::scenario::Scenario;
use crate::vary::{RUNS_MAX, Vary, VaryError, points};

#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    pub plan: Plan,
    /// Each combination of what is varied, the last one varied fastest.
    pub points: Vec<Point>,
    /// Of a single run.
    pub series: Vec<Series>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub settings: Settings,
    /// What the scenario computes of its parameters.
    pub lets: Vec<(String, Value)>,
    /// One a seed, in their order.
    pub runs: Vec<Run>,
    /// In the order of the scenario's values.
    pub means: Vec<Interval>,
}

#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error(transparent)]
    Vary(#[from] VaryError),
    /// The scenario cannot be what it is to be at a point.
    #[error("at {at}:\n{errors}")]
    Point { at: String, errors: FileErrors },
    /// Nothing that comes out could meet it.
    #[error("the expectation {says:?} cannot be judged: {what}")]
    Expectation { says: String, what: String },
    #[error("seed {seed} at {at}: {what}")]
    Run { at: String, seed: u64, what: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who wants to know how far it is; from several threads.
pub trait Watcher: Sync {
    /// `share`: of all work, from 0 to 1. `done` of `runs` have ended.
    fn at(&self, share: f64, done: usize, runs: usize);
}

impl Watcher for () {
    fn at(&self, _: f64, _: usize, _: usize) {}
}

/// One run, with what went on during it.
pub fn single(
    scenario: &Scenario,
    plan: Plan,
    watcher: &dyn Watcher,
) -> Result<Results, SweepError> {
    assert!(plan.varied.is_empty() && plan.seeds.len() == 1, "one run");
    let prepared = scenario.prepare(&plan.settings);
    let prepared =
        prepared.map_err(|errors| point_error(scenario, &plan, &plan.settings, errors))?;
    let progress = Single(watcher);
    let (run, series) = run(scenario, &prepared, plan.seeds[0], &progress)
        .map_err(|what| run_error(scenario, &plan, &plan.settings, plan.seeds[0], what))?;
    let point = point(plan.settings.clone(), prepared.lets, vec![run]);
    Ok(Results {
        plan,
        points: vec![point],
        series,
    })
}

struct Single<'a>(&'a dyn Watcher);

impl Progress for Single<'_> {
    fn at(&self, share: f64) {
        self.0.at(share, 0, 1);
    }
}

/// All points with all seeds, `jobs` at once. What the store has is not run again, and what is run is put there.
pub fn sweep(
    scenario: &Scenario,
    plan: Plan,
    jobs: usize,
    mut store: Option<&mut Store>,
    watcher: &dyn Watcher,
) -> Result<Results, SweepError> {
    let all = points(&plan.settings, &plan.varied)?;
    let seeds = plan.seeds.len();
    if all.len() * seeds > RUNS_MAX {
        let points = all.len();
        return Err(VaryError::TooManyRuns { points, seeds }.into());
    }
    let mut lets = Vec::with_capacity(all.len());
    // All mistakes before hours are spent.
    for settings in &all {
        let prepared = scenario.prepare(settings);
        let prepared = prepared.map_err(|errors| point_error(scenario, &plan, settings, errors))?;
        lets.push(prepared.lets);
    }
    let foreseen = foreseen(scenario, &plan, &all, &lets);
    if let Some((says, what)) = contradiction(scenario, &foreseen) {
        return Err(SweepError::Expectation { says, what });
    }
    let mut runs: Vec<Option<Run>> = vec![None; all.len() * seeds];
    if let Some(store) = &store {
        for (task, run) in runs.iter_mut().enumerate() {
            *run = store.get(&at(&plan, &all[task / seeds]), plan.seeds[task % seeds]);
        }
    }
    let tasks: Vec<usize> = (0..runs.len())
        .filter(|task| runs[*task].is_none())
        .collect();
    let board = Board::new(runs.len(), runs.len() - tasks.len(), watcher);
    board.tell();
    let next = AtomicUsize::new(0);
    let work = |tell: mpsc::Sender<(usize, Result<Run, SweepError>)>| {
        while let Some(&task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (settings, seed) = (&all[task / seeds], plan.seeds[task % seeds]);
            let progress = OneOfMany {
                board: &board,
                task,
            };
            let result = match scenario.prepare(settings) {
                Ok(prepared) => run(scenario, &prepared, seed, &progress)
                    .map(|(run, _)| run)
                    .map_err(|what| run_error(scenario, &plan, settings, seed, what)),
                Err(errors) => Err(point_error(scenario, &plan, settings, errors)),
            };
            board.ended(task);
            if tell.send((task, result)).is_err() {
                return;
            }
        }
    };
    let mut failed: Option<(usize, SweepError)> = None;
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            let tell = tell.clone();
            scope.spawn(|| work(tell));
        }
        drop(tell);
        for (task, result) in told {
            let kept = result.and_then(|run| {
                if let Some(store) = &mut store {
                    store.put(&at(&plan, &all[task / seeds]), &run)?;
                }
                Ok(run)
            });
            match kept {
                Ok(run) => runs[task] = Some(run),
                // The first one, whoever was fastest.
                Err(error) => {
                    next.store(tasks.len(), Ordering::Relaxed);
                    if failed.as_ref().is_none_or(|(before, _)| task < *before) {
                        failed = Some((task, error));
                    }
                }
            }
        }
    });
    if let Some((_, error)) = failed {
        return Err(error);
    }
    let mut runs = runs
        .into_iter()
        .map(|run| run.expect("each was run or kept"));
    let points = all.into_iter().zip(lets);
    let points = points
        .map(|(settings, lets)| point(settings, lets, runs.by_ref().take(seeds).collect()))
        .collect();
    Ok(Results {
        plan,
        points,
        series: Vec::new(),
    })
}

/// The points of a sweep before it has run, where each value is 1.
fn foreseen(
    scenario: &Scenario,
    plan: &Plan,
    all: &[Settings],
    lets: &[Vec<(String, Value)>],
) -> Results {
    let run = Run {
        seed: 0,
        values: vec![1.0; scenario.values.len()],
        events: 0,
        hops: 0,
    };
    let points = all.iter().zip(lets);
    let points =
        points.map(|(settings, lets)| point(settings.clone(), lets.clone(), vec![run.clone()]));
    Results {
        plan: plan.clone(),
        points: points.collect(),
        series: Vec::new(),
    }
}

fn point(settings: Settings, lets: Vec<(String, Value)>, runs: Vec<Run>) -> Point {
    let values = runs.first().map_or(0, |run| run.values.len());
    let mean = |value: usize| {
        let all: Vec<f64> = runs.iter().map(|run| run.values[value]).collect();
        Interval::of(&all)
    };
    Point {
        settings,
        lets,
        means: (0..values).map(mean).collect(),
        runs,
    }
}

/// The place of a point: the values of what is varied, exactly.
fn at(plan: &Plan, settings: &Settings) -> Vec<(String, String)> {
    let varied = plan.varied.iter().map(|vary| {
        let value = settings.get(&vary.name).expect("it is varied");
        (vary.name.clone(), store::exact(value))
    });
    varied.collect()
}

/// As people read it: `F = 13, rtt = 100ms`.
pub fn words_at(scenario: &Scenario, varied: &[Vary], settings: &Settings) -> String {
    let word = |vary: &Vary| {
        let value = settings.get(&vary.name)?;
        let parameter = scenario.parameters.get(&vary.name).ok()?;
        Some(format!("{} = {}", vary.name, parameter.print(value)))
    };
    let words: Vec<String> = varied.iter().filter_map(word).collect();
    match words.is_empty() {
        true => "these settings".into(),
        false => words.join(", "),
    }
}

fn point_error(
    scenario: &Scenario,
    plan: &Plan,
    settings: &Settings,
    errors: FileErrors,
) -> SweepError {
    SweepError::Point {
        at: words_at(scenario, &plan.varied, settings),
        errors,
    }
}

fn run_error(
    scenario: &Scenario,
    plan: &Plan,
    settings: &Settings,
    seed: u64,
    what: String,
) -> SweepError {
    SweepError::Run {
        at: words_at(scenario, &plan.varied, settings),
        seed,
        what,
    }
}

/// How far all runs are.
struct Board<'a> {
    shares: Mutex<Shares>,
    watcher: &'a dyn Watcher,
}

struct Shares {
    /// Of those that run.
    under_way: Vec<(usize, f64)>,
    done: usize,
    runs: usize,
}

impl<'a> Board<'a> {
    fn new(runs: usize, done: usize, watcher: &'a dyn Watcher) -> Board<'a> {
        let shares = Shares {
            under_way: Vec::new(),
            done,
            runs,
        };
        Board {
            shares: Mutex::new(shares),
            watcher,
        }
    }

    fn change(&self, change: impl FnOnce(&mut Shares)) {
        let mut shares = self.shares.lock().expect("nobody panics with it");
        change(&mut shares);
        let (done, runs) = (shares.done, shares.runs);
        let under_way: f64 = shares.under_way.iter().map(|(_, share)| share).sum();
        drop(shares);
        let share = (done as f64 + under_way) / runs.max(1) as f64;
        self.watcher.at(share.min(1.0), done, runs);
    }

    fn tell(&self) {
        self.change(|_| ());
    }

    fn ended(&self, task: usize) {
        self.change(|shares| {
            shares.under_way.retain(|(under_way, _)| *under_way != task);
            shares.done += 1;
        });
    }
}

struct OneOfMany<'a> {
    board: &'a Board<'a>,
    task: usize,
}

impl Progress for OneOfMany<'_> {
    fn at(&self, share: f64) {
        self.board.change(|shares| {
            let mut under_way = shares.under_way.iter_mut();
            match under_way.find(|(task, _)| *task == self.task) {
                Some((_, known)) => *known = share,
                None => shares.under_way.push((self.task, share)),
            }
        });
    }
}

#[cfg(test)]
mod tests;
