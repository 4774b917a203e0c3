//! A line over a wire that loses frames, beside one that does not, or alone.

use serde_json::Value;

use super::world::{World, round_trips_ms};

const LOST: f64 = 0.03;

fn status(world: &World, host: &str) -> Value {
    let document = world.on("lossy", host, "packtrain status pt0 --json");
    serde_json::from_str(&document).expect("it is JSON")
}

/// Pings without an answer, of 1500, how long the longest took, and what the sender says of trains sent again. Over so many
/// wires, of which the last one loses; `class`: what both ends say of pings.
fn ping(world: &World, (wires, up): (usize, &str), class: Option<&str>) -> (u64, f64, Value) {
    world.done(&format!(
        "up --lab lossy --links {wires} --rate 100mbit --no-packtrain"
    ));
    let links: String = (0..wires).map(|n| format!("--link eth{n} ")).collect();
    for (host, address) in [("a", "10.19.0.1/24"), ("b", "10.19.0.2/24")] {
        let on = |command: &str| world.on("lossy", host, command);
        on(&format!(
            "packtrain up pt0 {links} --address {address} {up} --path engine"
        ));
        if let Some(class) = class {
            on(&format!("packtrain class add pt0 --match icmp {class}"));
        }
    }
    world.on("lossy", "a", "ping -c20 -i0.1 -W1 -q 10.19.0.2");
    world.done(&format!(
        "set --lab lossy a-b.{last} --loss {LOST}%",
        last = wires - 1,
        LOST = LOST * 100.0
    ));
    // Both links are in use only where they are asked in turns: one alone is never short of room here.
    let said = world.on(
        "lossy",
        "a",
        "ping -c1500 -i0.002 -W1 -s200 -q 10.19.0.2 || true",
    );
    let line = said
        .lines()
        .find(|line| line.contains("packets transmitted"));
    let numbers: Vec<u64> = line
        .expect("ping says what it sent")
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let replay = status(world, "a")["replay"].clone();
    world.done("down lossy");
    let [.., longest_ms, _] = round_trips_ms(&said);
    (numbers[0] - numbers[1], longest_ms, replay)
}

#[test]
fn where_all_goes_by_two_wires_what_one_loses_the_other_has_brought() {
    live!();
    let (lost, _, replay) = ping(&World::new(), (2, "--balance duplicate --repair off"), None);
    assert_eq!(lost, 0, "{replay}");
    assert!(replay["duplicated"].as_u64() >= Some(1500), "{replay}");
}

#[test]
fn what_one_of_two_wires_loses_goes_again_and_no_ping_is_without_an_answer() {
    live!(alone);
    let world = World::new();
    let (lost, longest_ms, replay) = ping(&world, (2, "--balance round-robin"), None);
    // Three in a hundred, of half of the pings there and back.
    assert!(replay["repaired"].as_u64() > Some(5), "{replay}");
    assert_eq!(lost, 0, "{replay}");
    // Without it, those that nothing follows go again when the link seems silent.
    assert!(longest_ms < 150.0, "{longest_ms} ms: {replay}");
}

#[test]
fn of_a_lossless_class_an_only_wire_loses_nothing_and_of_what_is_not_repaired_what_it_loses() {
    live!();
    let world = World::new();
    let (lost, _, replay) = ping(&world, (1, ""), Some("--repair lossless"));
    assert_eq!(lost, 0, "{replay}");
    assert!(replay["repaired"].as_u64() > Some(15), "{replay}");
    let (lost, _, replay) = ping(&world, (1, "--repair off"), None);
    // Three in a hundred, there and back.
    assert!(lost > 30, "{lost}");
    assert_eq!(replay["replayed"], 0);
}
