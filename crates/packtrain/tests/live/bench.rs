//! The benchmarks of paths, of aggregation, of the receive filter and of rate control run, tell which path carried their frames or
//! what became of them, and leave nothing behind. Their figures are not judged here: that is for a machine that does nothing else.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use packtrain::lab::{wait_for, wire};
use serde_json::Value;

use crate::common::packtrain;

struct Run {
    succeeded: bool,
    table: String,
    report: Value,
}

/// One round of these parts of a benchmark.
fn bench(what: &str, parts: &[&str]) -> Run {
    bench_with(what, parts, &[])
}

/// … with further arguments.
fn bench_with(what: &str, parts: &[&str], more: &[&str]) -> Run {
    let json = std::env::temp_dir().join(format!("packtrain-bench-{}.json", std::process::id()));
    let mut command = Command::new(packtrain());
    command.args(["bench", what, "--rounds", "1", "--json"]);
    command.arg(&json).args(more).stdin(Stdio::null());
    for part in parts {
        command.args(["--part", part]);
    }
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    let report = std::fs::read_to_string(&json);
    let _ = std::fs::remove_file(&json);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report = report.unwrap_or_else(|error| panic!("no report: {error}: {stderr}"));
    assert_eq!(namespaces_of(pid), Vec::<String>::new());
    Run {
        succeeded: output.status.success(),
        table: String::from_utf8_lossy(&output.stdout).into_owned(),
        report: serde_json::from_str(&report).unwrap(),
    }
}

fn namespaces_of(pid: u32) -> Vec<String> {
    let entries = Path::new("/run/netns").read_dir().into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.contains(&format!("-{pid}-")))
        .collect()
}

#[test]
fn each_figure_has_a_round_of_each_way_and_the_counters_say_which_path_carried_it() {
    live!();
    let run = bench("path", &["changes", "idle"]);
    let figures = run.report["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 6, "{}", run.table);
    let mut all_met = true;
    for figure in figures {
        let name = figure["name"].as_str().unwrap();
        assert!(run.table.contains(name), "{name}");
        assert_eq!(
            figure["measured"]["pt0"]["rounds"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        all_met &= figure["met"] == true;
    }
    assert_eq!(run.succeeded, all_met, "{}", run.table);
    let exchange = &figures[4];
    for way in ["bare", "engine", "pt0"] {
        let median = &exchange["measured"][way]["median"];
        assert!(median.as_f64().unwrap() > 0.0, "{way}: {exchange}");
    }
    let paths = run.report["paths"].as_array().unwrap();
    for path in paths {
        let (direct, engine) = (&path["direct"], &path["engine"]);
        let frames = |of: &Value| of.as_u64().unwrap();
        match path["line"].as_str().unwrap() {
            "pt0" => assert!(frames(direct) > 100, "{path}"),
            _ => assert!(frames(direct) == 0 && frames(engine) > 100, "{path}"),
        }
    }
    assert_eq!(paths.len(), 4, "two lines in two parts");
}

#[test]
fn each_row_of_what_packing_brings_says_which_path_carried_its_frames() {
    live!();
    let run = bench("aggregation", &["requests"]);
    let figures = run.report["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 15, "{}", run.table);
    for figure in figures {
        let median = |way: &str| figure["measured"][way]["median"].as_f64().unwrap();
        assert!(median("bare") > 0.0 && median("pt0") > 0.0, "{figure}");
        // An idle line has nothing to pack.
        let carried = figure["carried"].as_str().unwrap();
        assert!(carried.starts_with("directly"), "{figure}");
        assert!(run.table.contains(carried), "{}", run.table);
    }
    assert_eq!(run.report["paths"].as_array().unwrap().len(), 5);
}

#[test]
fn a_filters_figures_are_of_frames_that_it_has_judged() {
    live!(one_processor());
    let run = bench("filter", &["processor", "prefixes"]);
    let figures = run.report["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 6, "{}", run.table);
    for figure in figures {
        let median = |way: &Value| {
            let way = way.as_str().unwrap();
            figure["measured"][way]["median"].as_f64().unwrap()
        };
        assert!(median(&figure["way"]) > 0.0, "{figure}");
        assert!(median(&figure["against"]) > 0.0, "{figure}");
        assert!(run.table.contains(figure["name"].as_str().unwrap()));
    }
    let carried = |number: usize| figures[number]["carried"].as_str().unwrap();
    assert!(
        carried(0).contains("foreign_unicast 61.0 %"),
        "{}",
        run.table
    );
    assert!(carried(0).contains("ours 5.0 %"), "{}", run.table);
    assert!(carried(3).contains("(denied 100.0 %)"), "{}", run.table);
}

#[test]
fn a_connection_over_the_long_line_is_told_by_what_its_wires_saw() {
    live!();
    let more = ["--way", "bbr", "--buffer", "100", "--tso", "on", "--short"];
    let run = bench_with("pace", &["connections"], &more);
    let rows = run.report["connections"].as_array().unwrap();
    let [row] = &rows[..] else {
        panic!("one way, one buffer: {}", run.table)
    };
    let median = |what: &str| row[what]["median"].as_f64().unwrap();
    // 198 ms to connect and half of it for the first byte, and no faster than the line.
    let least_s = 0.297 + 100e6 * 8.0 / 599e6;
    assert!(median("carried_100_mb_s") > least_s, "{}", run.table);
    assert!(median("slow_start_s") > 0.198, "{}", run.table);
    let buffer_bytes = row["buffer_bytes"].as_f64().unwrap();
    let peak_bytes = median("peak_bytes");
    // Frames in one piece are told as what they become, whose headers are more.
    assert!(
        peak_bytes > 1e5 && peak_bytes < 1.05 * buffer_bytes,
        "{row}"
    );
    let lost = median("lost_in_slow_start") + median("lost_after");
    let [carried] = &row["carried"].as_array().unwrap()[..] else {
        panic!("one round: {row}")
    };
    assert_eq!(lost > 0.0, carried["dropped"].as_u64() > Some(0), "{row}");
    assert!(run.table.contains("bbr"), "{}", run.table);
}

/// Why there is no flood here, if so.
fn one_processor() -> Option<String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors < 2).then(|| "a flood and who gets it need a processor each".into())
}

/// Its labs are no namespaces of the bench's own, and are taken away in a way of theirs.
#[test]
fn who_is_interrupted_between_hosts_and_labs_leaves_neither_behind() {
    live!(wire::shaping_unavailable());
    let mut command = Command::new(packtrain());
    command.args(["bench", "path", "--part", "hidden", "--rounds", "1"]);
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = quiet.stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    let lab = |kind: &str| format!("pt-{kind}{pid}-a");
    let stands = || {
        let kinds = ["capengine", "capauto"].map(lab);
        kinds
            .into_iter()
            .any(|name| Path::new("/run/netns").join(name).exists())
    };
    wait_for("its lab", Duration::from_secs(20), stands).unwrap();
    // SIGTERM: a process in the background may ignore interrupts.
    let status = Command::new("kill").arg(pid.to_string()).status().unwrap();
    assert!(status.success());
    assert!(!child.wait().unwrap().success());
    assert!(!stands());
    assert_eq!(namespaces_of(pid), Vec::<String>::new());
}
