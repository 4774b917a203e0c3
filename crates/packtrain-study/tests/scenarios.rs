//! Every scenario that comes along is run in its quick form: what it expects has to come, and the same on every machine.

use std::fmt::Write as _;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use packtrain_study::builtin;
use packtrain_study::expression::Expression;
use packtrain_study::judge::{Check, Verdict, judge};
use packtrain_study::scenario::Scope;
use packtrain_study::sweep::{Plan, Results, sweep};
use packtrain_study::vary::points;

/// Of all runs of a quick form together: a second or two of a processor, measured in what does not depend on it.
const EVENTS_MAX: u64 = 40_000_000;

/// A line for each scenario: its name, and a digest of all that came out.
const DIGESTS: &str = include_str!("digests.txt");

type Judged = Result<(Results, Vec<Verdict>), String>;

static JUDGED: LazyLock<Vec<(&str, Judged)>> =
    LazyLock::new(|| builtin::names().map(|name| (name, judged(name))).collect());

fn judged(name: &str) -> Judged {
    let scenario = builtin::read(name).expect("it comes along");
    let scenario = scenario.map_err(|errors| errors.to_string())?;
    let plan = Plan {
        quick: true,
        settings: scenario.settings(true, &[]).expect("nothing is set"),
        varied: scenario
            .varied(true, &[])
            .expect("nothing is varied but as it says"),
        seeds: (1..=scenario.seeds(true).into()).collect(),
    };
    let jobs = available_parallelism().map_or(1, |jobs| jobs.get());
    let results =
        sweep(&scenario, plan, jobs, None, &()).map_err(|error| format!("{name}: {error}"))?;
    let verdicts = judge(&scenario, &results);
    Ok((results, verdicts))
}

#[test]
fn every_scenario_shows_in_its_quick_form_what_it_says_and_is_quick() {
    let failures: String = JUDGED
        .iter()
        .map(|(name, judged)| match judged {
            Ok((results, verdicts)) => failures_of(name, results, verdicts),
            Err(error) => format!("{error}\n"),
        })
        .collect();
    assert!(failures.is_empty(), "{failures}");
}

/// "Not this discipline, or …" says nothing where that discipline is not among what is swept.
#[test]
fn no_expectation_holds_by_its_exceptions_alone() {
    let mut idle = String::new();
    for name in builtin::names() {
        let scenario = builtin::read(name).expect("it comes along");
        let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
        for quick in [false, true] {
            let settings = scenario.settings(quick, &[]).expect("nothing is set");
            let varied = scenario.varied(quick, &[]).expect("as it says");
            let points = points(&settings, &varied).expect("they are few");
            let scopes: Vec<Scope<'_>> = points
                .iter()
                .map(|point| {
                    Scope::of(point, &scenario.prepare(point).expect("it can be run").lets)
                })
                .collect();
            for expect in &scenario.expects {
                let that = expect.that(quick).text();
                let parts: Vec<Expression> = alternatives(that);
                // What needs no run is no finding.
                let is_excepted = |scope: &Scope<'_>| {
                    let mut known = parts.iter().filter_map(|part| part.number(scope).ok());
                    known.any(|truth| truth != 0.0)
                };
                if scopes.iter().all(is_excepted) {
                    let _ = writeln!(idle, "{name}, quick {quick}: {that}");
                }
            }
        }
    }
    assert!(idle.is_empty(), "{idle}");
}

/// What stands between the words `or` that are in no parentheses.
fn alternatives(text: &str) -> Vec<Expression> {
    let mut parts = vec![String::new()];
    for piece in text.split_inclusive(" or ") {
        let part = parts.last_mut().expect("there is one");
        part.push_str(piece);
        if part.matches('(').count() == part.matches(')').count() && piece.ends_with(" or ") {
            part.truncate(part.len() - " or ".len());
            parts.push(String::new());
        }
    }
    let parts = parts.iter().map(|part| Expression::parse(part));
    parts.map(|part| part.expect("it is one")).collect()
}

/// One bit in one draw is another run. Where this fails after a change that was to change nothing, it did; where results
/// were to change, what it prints is the new `digests.txt`.
#[test]
fn results_are_to_the_last_bit_what_they_are_on_every_other_machine() {
    let digests: String = JUDGED
        .iter()
        .filter_map(|(name, judged)| {
            let (results, verdicts) = judged.as_ref().ok()?;
            Some(format!("{name} {:016x}\n", digest(results, verdicts)))
        })
        .collect();
    if digests != DIGESTS {
        println!("{digests}");
        let other = digests
            .lines()
            .filter(|line| DIGESTS.lines().all(|noted| noted != *line));
        panic!("these are others: {}", other.collect::<Vec<_>>().join(", "));
    }
}

/// FNV-1a, of every value of every run, and of what intervals and slopes make of them.
fn digest(results: &Results, verdicts: &[Verdict]) -> u64 {
    let runs = results.points.iter().flat_map(|point| &point.runs);
    let of_runs = runs.flat_map(|run| {
        let values = run.values.iter().map(bits);
        values.chain([run.seed, run.events])
    });
    let checks = verdicts.iter().flat_map(|verdict| &verdict.checks);
    let of_checks = checks.flat_map(|check| check.terms.iter().map(|(_, value)| bits(value)));
    of_runs
        .chain(of_checks)
        .fold(0xcbf2_9ce4_8422_2325, |digest, word| {
            let bytes = word.to_le_bytes();
            bytes.iter().fold(digest, |digest, byte| {
                (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            })
        })
}

/// Machines differ in the sign of what is not a number.
fn bits(value: &f64) -> u64 {
    let value = if value.is_nan() { f64::NAN } else { *value };
    value.to_bits()
}

/// Each in a line of its own.
fn failures_of(name: &str, results: &Results, verdicts: &[Verdict]) -> String {
    let mut failures = String::new();
    for verdict in verdicts {
        if verdict.met() != Some(true) {
            let _ = writeln!(failures, "{name}: {}", words(verdict));
        }
    }
    let events = events(results);
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
