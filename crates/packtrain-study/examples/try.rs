//! Tries a scenario: `try NAME [--quick] [key=value]…`
use packtrain_study::{builtin, judge, output, scenario::Scenario, sweep};
struct Say;
impl sweep::Watcher for Say {
    fn at(&self, _s: f64, done: usize, runs: usize) {
        if done > 0 {
            eprint!("\r{done}/{runs}  ");
        }
    }
}
fn main() {
    let mut quick = false;
    let mut vary: Vec<String> = vec![];
    let mut sets: Vec<String> = vec![];
    let mut name = String::new();
    let mut seeds = None;
    for a in std::env::args().skip(1) {
        if a == "--quick" {
            quick = true
        } else if let Some(v) = a.strip_prefix("--vary=") {
            vary.push(v.into())
        } else if let Some(v) = a.strip_prefix("--seeds=") {
            seeds = Some(v.parse::<u64>().unwrap())
        } else if a.contains('=') {
            sets.push(a)
        } else {
            name = a
        }
    }
    let scenario: Scenario = if name.ends_with(".toml") {
        let text = std::fs::read_to_string(&name).unwrap();
        Scenario::read(std::path::Path::new(&name), &text).unwrap_or_else(|e| panic!("{e}"))
    } else {
        builtin::read(&name)
            .expect("known")
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let settings = scenario
        .settings(quick, &sets)
        .unwrap_or_else(|e| panic!("{e}"));
    let varied = scenario
        .varied(quick, &vary)
        .unwrap_or_else(|e| panic!("{e}"));
    let n = seeds.unwrap_or(scenario.seeds(quick).into());
    let plan = sweep::Plan {
        quick,
        settings,
        varied,
        seeds: (1..=n).collect(),
    };
    let results = sweep::sweep(&scenario, plan, 2, None, &Say).unwrap_or_else(|e| panic!("{e}"));
    let verdicts = judge::judge(&scenario, &results);
    let study = output::Study {
        scenario: &scenario,
        results: &results,
        verdicts: &verdicts,
        command: "",
        version: "",
    };
    println!("{}", output::text::text(&study));
    let events: u64 = results
        .points
        .iter()
        .flat_map(|p| &p.runs)
        .map(|r| r.events)
        .sum();
    println!("{:.1} M events", events as f64 / 1e6);
}
