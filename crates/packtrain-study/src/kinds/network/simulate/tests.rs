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
