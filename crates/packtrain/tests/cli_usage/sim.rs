//! `packtrain sim`, as a person and as a program call it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::binary::{Outcome, TestFile, packtrain};

/// One queue, and expectations of which one depends on what is set.
const SMALL: &str = r#"
title = "One through one queue"
assumes = ["nothing"]
[parameters.rate]
says = "of the line"
default = "2mbit"
least = "1mbit"
most = "1gbit"
[parameters.share]
says = "that is expected"
default = 0.8
[parameters.seconds]
default = 2
[sweep]
vary = "rate=1mbit,2mbit"
[run]
seconds = "${seconds}"
sample = "100ms"
[[line]]
name = "only"
rate = "${rate}bit:ip"
delay = "5ms"
[[flow]]
name = "one"
path = ["only"]
[[value]]
name = "carried"
is = "throughput(only) / 1e6"
unit = "Mbit/s"
[[value]]
name = "none"
is = "0 / 0 * carried"
[[plot]]
title = "Carried"
x = "rate"
y = "carried"
[[plot]]
title = "Windows"
x = "time"
y = "cwnd(one)"
[[reported]]
value = "carried"
points = [[1e6, 1]]
[[expect]]
says = "it is full"
that = "carried >= share * rate / 1e6"
[[expect]]
says = "it grows"
over = "rate"
that = "rises(carried)"
"#;

fn read(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.out).unwrap_or_else(|e| panic!("{e}: {}", outcome.out))
}

#[test]
fn scenarios_that_come_along_are_listed_and_explained() {
    let list = packtrain(&["sim", "list"]);
    assert_eq!((list.code, list.err.as_str()), (0, ""));
    assert!(list.out.starts_with("NAME "), "{}", list.out);
    let document = read(&packtrain(&["sim", "list", "--json"]));
    for scenario in document.as_array().unwrap() {
        let name = scenario["name"].as_str().unwrap();
        assert!(list.out.contains(&format!("\n{name} ")), "{name}");
    }
    let text = packtrain(&["sim", "explain", "xlf-drr"]);
    assert!(text.out.starts_with("xlf-drr: "), "{}", text.out);
    assert!(
        text.out
            .contains("\nParameters (--set NAME=VALUE):\n  F = 13: ")
    );
    let explained = packtrain(&["sim", "explain", "xlf-drr", "--json"]);
    let document = read(&explained);
    assert_eq!(document["parameters"][0]["most"], 43);
}

#[test]
fn runs_and_sweeps_are_told_to_programs_and_to_people() {
    let file = TestFile::new("sim-small.toml", SMALL);
    let run = packtrain(&["sim", "run", file.path(), "--json"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let document = read(&run);
    assert_eq!(document["points"][0]["values"]["none"]["mean"], Value::Null);
    assert_eq!(document["series"].as_array().unwrap().len(), 7);
    assert_eq!(document["expectations"][1]["met"], Value::Null);
    let words = ["sim", "sweep", file.path(), "--seeds", "2"];
    let sweep = packtrain(&[&words[..], &["--json"]].concat());
    let document = read(&sweep);
    assert_eq!(document["points"][1]["at"], json!({"rate": 2_000_000}));
    assert_eq!(document["met"], true);
    // Standard output has the result alone; it has no colours where it is no terminal, and is the same each time.
    let text = packtrain(&words);
    assert!(!text.out.contains('\x1b') && text.out.contains("\nmet      it grows: "));
    assert_eq!(packtrain(&words).out, text.out);
}

#[test]
fn what_is_not_as_expected_is_told_and_has_code_15() {
    let file = TestFile::new("sim-unmet.toml", SMALL);
    let run = packtrain(&["sim", "run", file.path(), "--set", "share=2"]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (15, "error: 1 of 2 expectations not met: it is full\n")
    );
    assert!(run.out.contains("\nNOT MET  it is full: "), "{}", run.out);
}

#[test]
fn what_is_wrong_with_a_scenario_has_code_3_and_with_the_command_2() {
    let wrong = SMALL
        .replace("\"5ms\"", "5")
        .replace("[\"only\"]", "[\"onyl\"]");
    let file = TestFile::new("sim-wrong.toml", wrong);
    let path = file.path();
    let run = packtrain(&["sim", "run", path]);
    assert_eq!(
        (run.code, run.err),
        (
            3,
            format!(
                "error: {path}:22: line.delay: \"5\" is no time: write it as in 20ms, 5us or 2s\n\
                 error: {path}:25: flow.path: there is no line onyl (near it: only)\n"
            )
        )
    );
    let small = TestFile::new("sim-right.toml", SMALL);
    for (words, code, text) in [
        (
            &["run", "xlf-processng"][..],
            3,
            "error: there is no scenario xlf-processng (near it: xlf-processing)\n       packtrain sim list shows those that come along; \
             others are files\n",
        ),
        (
            &["explain", "no/where.toml"],
            3,
            "error: no/where.toml: No such file or directory (os error 2)\n",
        ),
        (
            &["run", small.path(), "--set", "rate=1kbit"],
            2,
            "error: rate=1kbit: rate is a rate from 1mbit to 1gbit\n",
        ),
        (
            &["sweep", small.path(), "--vary", "rate"],
            2,
            "error: \"rate\" varies nothing: write it as in F=1..13, F=1..13/3 (in steps of 3) or F=1,4,13\n",
        ),
    ] {
        let result = packtrain(&[&["sim"], words].concat());
        assert_eq!(
            (result.code, result.err.as_str(), result.out.as_str()),
            (code, text, "")
        );
    }
    for words in [
        &["run", "xlf-drr", "--json", "--csv"][..],
        &["run", "xlf-drr", "--seed", "-1"],
        &["sweep", "xlf-drr", "--seeds", "0"],
        &["sweep", "xlf-drr", "--jobs", "0"],
        &["sweep", "xlf-drr", "--seed", "1"],
        &["run"],
    ] {
        assert_eq!(packtrain(&[&["sim"], words].concat()).code, 2, "{words:?}");
    }
}

#[test]
fn plots_and_a_page_are_written() {
    let file = TestFile::new("sim-drawn.toml", SMALL);
    let [folder, page] = [("sim-plots", ""), ("sim-page.html", "old")]
        .map(|(name, content)| TestFile::new(name, content));
    // A folder that is not there yet.
    std::fs::remove_file(folder.path()).unwrap();
    let words = [
        "sim",
        "sweep",
        file.path(),
        "--svg",
        folder.path(),
        "--report",
        page.path(),
    ];
    assert_eq!(packtrain(&words).code, 0);
    let plots: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(plots.len(), 1, "nothing over time of a sweep");
    assert!(
        std::fs::read_to_string(&plots[0])
            .unwrap()
            .starts_with("<svg")
    );
    let html = std::fs::read_to_string(page.path()).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("<svg"));
    std::fs::remove_dir_all(folder.path()).unwrap();
    let nowhere = packtrain(&["sim", "run", file.path(), "--report", "/nowhere/page.html"]);
    let text = "error: /nowhere/page.html: No such file or directory (os error 2)\n";
    assert_eq!(
        (nowhere.code, nowhere.out.as_str(), nowhere.err.as_str()),
        (1, "", text)
    );
}

#[test]
fn a_sweep_that_is_interrupted_keeps_what_has_ended_and_goes_on() {
    let file = TestFile::new("sim-kept.toml", SMALL);
    let kept = TestFile::new("sim-kept.jsonl", "");
    // Far more than can have run when it is interrupted, each of them short.
    let words = [
        "sim",
        "sweep",
        file.path(),
        "--vary",
        "rate=1mbit,2mbit",
        "--resume",
        kept.path(),
    ];
    let many = [&words[..], &["--seeds", "10000", "--jobs", "1"]].concat();
    let mut child = Command::new(env!("CARGO_BIN_EXE_packtrain"))
        .args(&many)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let runs = || {
        BufReader::new(std::fs::File::open(kept.path()).unwrap())
            .lines()
            .count()
    };
    while runs() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it goes on");
        std::thread::yield_now();
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let ended = crate::binary::outcome(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.out.as_str()), (130, ""));
    assert_eq!(
        ended.err,
        format!(
            "error: interrupted; the runs that have ended are kept in {}\n       the same command goes on with the others\n",
            kept.path()
        )
    );
    let before = runs();
    let few = [&words[..], &["--seeds", "2", "--csv"]].concat();
    let resumed = packtrain(&few);
    assert_eq!((resumed.code, resumed.out.lines().count()), (0, 1 + 4));
    // Seeds 1 and 2 of the first rate were kept, or are now.
    assert!(runs() <= before + 4);
    let without = [&few[..5], &["--seeds", "2", "--csv"]].concat();
    assert_eq!(packtrain(&without).out, resumed.out);
    let another = packtrain(&[&words[..], &["--set", "share=0.5"]].concat());
    assert_eq!(another.code, 3, "{}", another.err);
    assert!(
        another.err.contains("is the store of another sweep"),
        "{}",
        another.err
    );
}
