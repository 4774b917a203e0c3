use std::path::Path;

use packtrain_settings::toml_reader;

use super::*;
use crate::kinds::Place;
use crate::kinds::network::{facts, file};

/// Ten packets of 1514 bytes as Ethernet has them, over 100 Mbit/s of IP (120 µs each) at once, and no more.
const TEN: &str = r#"
[run]
seconds = 1
sample = "1ms"

[[line]]
name = "line"
rate = "100mbit:ip"
delay = "10ms"

[[flow]]
name = "ten"
path = ["line"]
mss = 1460
initial_window = 10
backpressure = "none"
writes = "14600b"
"#;

fn settings(text: &str) -> NetworkSettings {
    let read = toml_reader::read(Path::new("n.toml"), text, |table, errors| {
        file::read(table, Place::default(), errors)
    });
    read.unwrap_or_else(|errors| panic!("{errors}"))
}

fn outcome(text: &str) -> Outcome {
    run(&settings(text), 1, &())
}

#[test]
fn a_queue_is_as_long_as_it_was_between_two_looks() {
    // It is empty again after 1.2 ms, long before the first look.
    let outcome = outcome(&TEN.replace("sample = \"1ms\"", ""));
    let fact = |name| outcome.facts.get(name, &["line"]).unwrap();
    assert_eq!(fact("queue_max"), 10.0 * 1514.0);
    assert_eq!(fact("queue_mean"), 0.0);
}

#[test]
fn what_a_queue_was_before_the_beginning_was_over_does_not_count() {
    let fact = |ignore| {
        let ignore = format!("ignore = {ignore}\n[[line]]");
        let text = TEN.replacen("[[line]]", &ignore, 1);
        outcome(&text).facts.get("queue_max", &["line"]).unwrap()
    };
    assert_eq!(fact("0.01"), 10.0 * 1514.0);
    assert_eq!(fact("0.5"), 0.0);
    // Between two steps, where some have left: what still stands there does.
    assert!((1514.0..9.0 * 1514.0).contains(&fact("0.0105")));
}

#[test]
fn packets_are_counted_in_each_sample() {
    let outcome = outcome(TEN);
    // The SYN takes 10 ms, its answer no time, and so the first of ten has left 120 µs after that. The SYN itself is not data.
    let fact = |name, of: &str| outcome.facts.get(name, &[of]).unwrap();
    assert_eq!(fact("packets_most", "line"), 8.0);
    assert_eq!(fact("packets_most", "ten"), 8.0);
    assert_eq!(fact("packets_none", "ten"), 0.998);
    let series = outcome.series.iter().find(|one| one.name == "packets(ten)");
    let series = &series.unwrap().points;
    let packets: Vec<f64> = series.iter().map(|point| point.1).collect();
    assert_eq!(packets.iter().sum::<f64>(), 10.0);
    assert_eq!(series.len(), 1000);
}

#[test]
fn without_samples_nothing_is_known_of_packets_in_a_sample() {
    let knows = |text: &str| facts::knows(&settings(text), "packets_most", &["ten"]);
    assert_eq!(knows(TEN), Ok(()));
    assert_eq!(
        knows(&TEN.replace("sample = \"1ms\"", "")).unwrap_err(),
        "packets_most is of samples: [run] says how often they are taken, as in sample = \"1ms\""
    );
}

/// A flow from ten times as fast an interface through a queue of so many packets.
fn facts(queue: &str, writes: &str, length: &str) -> Facts {
    let text = format!(
        r#"
run = {{ seconds = "{length}" }}
[[line]]
name = "bottleneck"
rate = "10mbit:ip"
queue = "{queue}"
delay = "10ms"
[[flow]]
name = "rock"
size = 3000
interface = {{ rate = "100mbit:ip", queue = "10mb" }}
path = ["bottleneck"]
backpressure = "none"
window = "10mb"
writes = "{writes}"
"#
    );
    let read = toml_reader::read(Path::new("n.toml"), &text, |table, errors| {
        file::read(table, Place::default(), errors)
    });
    run(&read.unwrap(), 1, &()).facts
}

fn get(facts: &Facts, fact: &str, of: &str) -> f64 {
    facts.get(fact, &[of]).unwrap()
}

#[test]
fn the_first_loss_is_counted_until_it_is_repaired_and_its_longest_burst_with_it() {
    let facts = facts("60kb", "unlimited", "10s");
    let [cut, repair, drops] =
        ["first_cut", "first_repair", "first_drops"].map(|fact| get(&facts, fact, "rock"));
    // A window of 73 kB is reached by slow start in some round trips of 10 ms and more.
    assert!((0.03..0.5).contains(&cut), "{cut}");
    assert!((0.01..1.0).contains(&repair), "{repair}");
    let all = get(&facts, "dropped", "rock");
    assert!(1.0 <= drops && drops < all, "{drops} of {all}");
    let burst = get(&facts, "longest_burst", "bottleneck");
    assert!((1.0..=all).contains(&burst), "{burst}");
    assert_eq!(get(&facts, "size", "rock"), 3000.0);
}

#[test]
fn who_loses_nothing_is_cut_when_all_is_over_and_has_nothing_to_repair() {
    let facts = facts("10mb", "100kb", "5s");
    assert_eq!(get(&facts, "first_repair", "rock"), 0.0);
    assert!((4.9..5.0).contains(&get(&facts, "first_cut", "rock")));
    assert_eq!(get(&facts, "first_drops", "rock"), 0.0);
    assert_eq!(get(&facts, "longest_burst", "bottleneck"), 0.0);
}

/// 1250 bytes each millisecond: 10 Mbit/s as IP counts them.
fn even(run: &str) -> Outcome {
    outcome(&format!(
        r#"
run = {{ {run} }}
[[line]]
name = "line"
rate = "100mbit:ip"
[[datagrams]]
name = "even"
path = ["line"]
arrivals = "periodic:1ms"
sizes = "fixed:1250B"
[[flow]]
name = "silent"
path = ["line"]
starts = "5s"
"#
    ))
}

#[test]
fn what_is_counted_begins_when_ignore_is_over_and_not_with_the_next_look() {
    for ignore in ["0", "0.3", "0.3005", "0.9915", "0.998"] {
        let outcome = even(&format!("seconds = 1, ignore = {ignore}"));
        let fact = |name, of: &str| outcome.facts.get(name, &[of]).unwrap();
        let seconds = 1.0 - ignore.parse::<f64>().unwrap();
        let sent = fact("sent", "even");
        assert!((sent - 1e3 * seconds).abs() <= 1.0, "{ignore}: {sent}");
        let rate = fact("rate", "even");
        assert!(
            (rate - 1e4 * sent / seconds).abs() < 1e4 / seconds + 1.0,
            "{ignore}: {rate}"
        );
    }
}

#[test]
fn a_sample_that_is_cut_off_at_the_end_or_began_before_counting_is_none_that_counts() {
    let outcome = even("seconds = 1.0155, ignore = 0.0255, sample = \"10ms\"");
    let series = |name: &str| {
        let found = outcome.series.iter().find(|series| series.name == name);
        found.unwrap().points.clone()
    };
    let rates = series("throughput(line)");
    // Ten packets in each, and in the last one six of 5.5 ms.
    assert!(
        rates.iter().all(|(_, rate)| (9e6..12e6).contains(rate)),
        "{rates:?}"
    );
    let fact = |name| outcome.facts.get(name, &["line"]).unwrap();
    assert_eq!((fact("packets_most"), fact("packets_none")), (10.0, 0.0));
}

#[test]
fn of_nobody_nothing_is_known() {
    let text = TEN.to_owned()
        + r#"
[[flow]]
name = "nobody"
count = 0
path = ["line"]
[[flow]]
name = "late"
path = ["line"]
starts = "10s"
[[visitors]]
name = "none"
path = ["line"]
arrivals = "periodic:10s"
sizes = "fixed:1kB"
[[datagrams]]
name = "never"
path = ["line"]
arrivals = "periodic:1s"
sizes = "fixed:100B"
starts = "10s"
"#;
    let outcome = outcome(&text);
    for (name, facts) in [
        (
            "nobody",
            &[
                "goodput_mean",
                "goodput_least",
                "goodput_most",
                "cwnd_mean",
                "drop_rate",
            ][..],
        ),
        ("late", &["drop_rate", "loss_event_rate"]),
        (
            "none",
            &[
                "duration_mean",
                "duration_p50",
                "duration_p99",
                "drop_rate",
                "loss_event_rate",
            ],
        ),
        (
            "never",
            &[
                "delay_mean",
                "delay_p99",
                "round_trip_mean",
                "round_trip_p50",
                "drop_rate",
            ],
        ),
    ] {
        for fact in facts {
            let value = outcome.facts.get(fact, &[name]).unwrap();
            assert!(value.is_nan(), "{fact}({name}) = {value}");
        }
    }
}
