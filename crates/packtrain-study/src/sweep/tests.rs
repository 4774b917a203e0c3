use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use super::*;

const NOISY: &str = r#"
title = "Noise"
kind = "fake"
[parameters.F]
default = 4
[parameters.how]
default = "drr"
one_of = ["drop-tail", "drr"]
[[thing]]
name = "a"
level = "${F}"
noise = 1
# The first ones take longest.
work = "${max(0, 5 - F) * 15000}"
kind = "${how}"
[[value]]
name = "level"
is = "level(a)"
[[value]]
name = "unknown"
is = "if(length(a) == 3, level / 0 - level / 0, level / 3)"
"#;

fn scenario() -> Scenario {
    Scenario::read(Path::new("noise.toml"), NOISY).unwrap()
}

fn plan(scenario: &Scenario, vary: &[&str], seeds: u64) -> Plan {
    let vary: Vec<String> = vary.iter().map(|text| (*text).to_owned()).collect();
    Plan {
        quick: false,
        settings: scenario.settings(false, &[]).unwrap(),
        varied: scenario.varied(false, &vary).unwrap(),
        seeds: (1..=seeds).collect(),
    }
}

/// Everything, with what is no number.
fn all(results: &Results) -> String {
    format!("{results:?}")
}

fn run_with(jobs: usize, store: Option<&mut Store>) -> Results {
    let scenario = scenario();
    let plan = plan(&scenario, &["F=1..5", "how=drr,drop-tail"], 3);
    sweep(&scenario, plan, jobs, store, &()).unwrap()
}

/// A file that goes with it.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let name = format!("packtrain-study-{}-{name}.jsonl", std::process::id());
        Temporary(std::env::temp_dir().join(name))
    }

    fn open(&self) -> Result<Store, StoreError> {
        let scenario = scenario();
        let plan = plan(&scenario, &["F=1..5", "how=drr,drop-tail"], 3);
        Store::open(&self.0, &scenario, &plan, "0.1.0")
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn what_comes_out_is_the_same_however_many_run_at_once() {
    let one = run_with(1, None);
    assert_eq!(one.points.len(), 10);
    for jobs in [2, 3, 16] {
        assert_eq!(all(&run_with(jobs, None)), all(&one), "{jobs} at once");
    }
    // In the order of what is varied, and of the seeds.
    let words: Vec<String> = one
        .points
        .iter()
        .map(|point| words_at(&scenario(), &one.plan.varied, &point.settings))
        .collect();
    assert_eq!(
        words[..3],
        [
            "F = 1, how = drr",
            "F = 1, how = drop-tail",
            "F = 2, how = drr"
        ]
    );
    let seeds: Vec<u64> = one.points[0].runs.iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [1, 2, 3]);
    // Seeds differ, and the mean is theirs.
    let levels: Vec<f64> = one.points[0].runs.iter().map(|run| run.values[0]).collect();
    assert_ne!(levels[0], levels[1]);
    assert_eq!(one.points[0].means[0], Interval::of(&levels));
}

#[test]
fn a_sweep_that_was_interrupted_goes_on_and_comes_to_the_same() {
    let whole = run_with(2, None);
    let file = Temporary::new("resume");
    run_with(2, Some(&mut file.open().unwrap()));
    let text = file.text();
    assert_eq!(text.lines().count(), 1 + 30);
    // Cut anywhere: after a line, within one, within the header.
    for keep in [text.len(), text.len() - 1, text.len() / 2, 300, 20, 0] {
        fs::write(&file.0, &text[..keep]).unwrap();
        let mut store = file.open().unwrap();
        let kept = text[..keep].matches('\n').count().saturating_sub(1);
        assert_eq!(store.len(), kept, "cut after {keep} bytes");
        assert_eq!(all(&run_with(3, Some(&mut store))), all(&whole));
        let again = file.text();
        assert_eq!(again.lines().count(), 31, "each run once");
        assert_eq!(file.open().unwrap().len(), 30, "each can be read again");
    }
}

#[test]
fn what_is_kept_is_not_run_again() {
    let file = Temporary::new("kept");
    run_with(1, Some(&mut file.open().unwrap()));
    let text = file.text();
    let (header, runs) = text.split_once('\n').unwrap();
    let runs = runs.replacen("\"values\":[\"", "\"values\":[\"1", 1);
    fs::write(&file.0, format!("{header}\n{runs}")).unwrap();
    let results = run_with(1, Some(&mut file.open().unwrap()));
    assert!(results.points[0].runs[0].values[0] > 10.0);
}

#[test]
fn a_store_of_another_sweep_is_refused_and_says_why() {
    let file = Temporary::new("another");
    file.open().unwrap();
    let open = |text: &str, set: &[&str], version: &str| {
        let scenario = Scenario::read(Path::new("noise.toml"), text).unwrap();
        let mut plan = plan(&scenario, &["F=1..5"], 3);
        let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
        plan.settings = scenario.settings(false, &set).unwrap();
        let error = Store::open(&file.0, &scenario, &plan, version)
            .unwrap_err()
            .to_string();
        error.replace(&file.0.display().to_string(), "FILE")
    };
    let another = |what: &str| {
        format!("FILE is the store of another sweep: {what}; give another file, or remove it")
    };
    assert_eq!(
        open(NOISY, &[], "0.2.0"),
        another("packtrain 0.1.0 has written it")
    );
    assert_eq!(
        open(&NOISY.replace("noise = 1", "noise = 2"), &[], "0.1.0"),
        another("noise was another scenario then")
    );
    assert_eq!(
        open(NOISY, &["how=drop-tail"], "0.1.0"),
        another("how was varied, and is drop-tail now")
    );
    fs::write(&file.0, "a letter to somebody").unwrap();
    let error = file.open().unwrap_err().to_string();
    assert!(
        error.ends_with("is no store of a sweep: it begins with something else"),
        "{error}"
    );
    assert_eq!(file.text(), "a letter to somebody");
}

#[test]
fn a_line_that_is_damaged_in_the_middle_is_told() {
    let file = Temporary::new("damaged");
    run_with(1, Some(&mut file.open().unwrap()));
    let text = file.text();
    let second = text.lines().nth(2).unwrap();
    fs::write(&file.0, text.replace(second, "{}")).unwrap();
    let error = file.open().unwrap_err().to_string();
    assert!(error.contains(":3: missing field"), "{error}");
    assert!(file.text().contains("{}"), "it is left as it is");
}

#[test]
fn mistakes_at_a_point_come_before_anything_is_run() {
    let text = NOISY.replace("level = \"${F}\"", "level = \"${1 / (F - 3)}\"");
    let scenario = Scenario::read(Path::new("noise.toml"), &text).unwrap();
    let plan = plan(&scenario, &["F=1..5"], 1);
    struct Nothing;
    impl Watcher for Nothing {
        fn at(&self, _: f64, _: usize, _: usize) {
            panic!("something was run");
        }
    }
    let error = sweep(&scenario, plan, 2, None, &Nothing)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("at F = 3:\nnoise.toml:11: thing.level: ${1 / (F - 3)} is inf"),
        "{error}"
    );
}

#[test]
fn who_watches_sees_it_grow_to_the_end() {
    #[derive(Default)]
    struct Seen {
        share: AtomicU64,
        done: AtomicUsize,
    }
    impl Watcher for Seen {
        fn at(&self, share: f64, done: usize, runs: usize) {
            assert!((0.0..=1.0).contains(&share) && done <= runs && runs == 15);
            self.share
                .fetch_max((share * 1000.0) as u64, Ordering::Relaxed);
            self.done.fetch_max(done, Ordering::Relaxed);
        }
    }
    let scenario = scenario();
    let seen = Seen::default();
    sweep(&scenario, plan(&scenario, &["F=1..5"], 3), 4, None, &seen).unwrap();
    assert_eq!(
        (seen.share.into_inner(), seen.done.into_inner()),
        (1000, 15)
    );
}

#[test]
fn a_single_run_has_its_series() {
    let scenario = scenario();
    let mut plan = plan(&scenario, &[], 1);
    plan.seeds = vec![7];
    let results = single(&scenario, plan.clone(), &()).unwrap();
    assert_eq!(results.series[0].name, "level(a)");
    let swept = sweep(&scenario, plan, 1, None, &()).unwrap();
    assert_eq!(
        all(&Results {
            series: Vec::new(),
            ..results
        }),
        all(&swept)
    );
}

#[test]
fn more_runs_than_memory_has_room_for_are_refused() {
    let scenario = crate::scenario::tests::whole();
    let plan = Plan {
        seeds: (1..=10_000).collect(),
        varied: vec![Vary::parse("rtt=1ms..101ms/1ms", &scenario.parameters).unwrap()],
        ..Plan::of_sweep(&scenario, false, &[], &[], None).unwrap()
    };
    let error = sweep(&scenario, plan, 1, None, &()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "101 points with 10000 seeds each, and 1000000 runs are the most"
    );
}
