//! Every scenario that comes along is run in its quick form, and what it expects has to come.

use std::fmt::Write as _;
use std::thread::available_parallelism;

use packtrain_study::builtin;
use packtrain_study::judge::{Check, Verdict, judge};
use packtrain_study::sweep::{Plan, Results, sweep};

/// Of all runs of a quick form together: a second or two of a processor, measured in what does not depend on it.
const EVENTS_MAX: u64 = 40_000_000;

#[test]
fn every_scenario_shows_in_its_quick_form_what_it_says_and_is_quick() {
    let failures: String = builtin::names().map(failures_of).collect();
    assert!(failures.is_empty(), "{failures}");
}

/// Each in a line of its own.
fn failures_of(name: &str) -> String {
    let read = builtin::read(name).expect("it comes along");
    let scenario = match read {
        Ok(scenario) => scenario,
        Err(errors) => return format!("{errors}\n"),
    };
    let plan = Plan {
        quick: true,
        settings: scenario.settings(true, &[]).expect("nothing is set"),
        varied: scenario
            .varied(true, &[])
            .expect("nothing is varied but as it says"),
        seeds: (1..=scenario.seeds(true).into()).collect(),
    };
    let jobs = available_parallelism().map_or(1, |jobs| jobs.get());
    let results = match sweep(&scenario, plan, jobs, None, &()) {
        Ok(results) => results,
        Err(error) => return format!("{name}: {error}\n"),
    };
    let mut failures = String::new();
    for verdict in judge(&scenario, &results) {
        if verdict.met() != Some(true) {
            let _ = writeln!(failures, "{name}: {}", words(&verdict));
        }
    }
    let events = events(&results);
    if events > EVENTS_MAX {
        let _ = writeln!(
            failures,
            "{name}: {events} events, and {EVENTS_MAX} are quick"
        );
    }
    failures
}

fn events(results: &Results) -> u64 {
    let runs = results.points.iter().flat_map(|point| &point.runs);
    runs.map(|run| run.events).sum()
}

fn words(verdict: &Verdict) -> String {
    let Verdict { says, that, .. } = verdict;
    let unmet = verdict.checks.iter().filter(|check| !check.met);
    let unmet: Vec<String> = unmet.map(at).collect();
    let why = match &verdict.why_not {
        Some(why) => format!("not judged: {why}"),
        None => unmet.join("; "),
    };
    format!("{says} ({that}): {why}")
}

fn at(check: &Check) -> String {
    let terms = check.terms.iter();
    let terms: Vec<String> = terms
        .map(|(term, value)| format!("{term} is {value:.4}"))
        .collect();
    let trouble = check.trouble.as_deref().unwrap_or_default();
    format!("at {}: {} {trouble}", check.at, terms.join(", "))
}
