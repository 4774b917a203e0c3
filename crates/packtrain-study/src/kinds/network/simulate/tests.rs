use std::path::Path;

use packtrain_settings::toml_reader;

use super::super::file;
use super::*;
use crate::kinds::Place;

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
