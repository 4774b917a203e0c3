use std::path::Path;

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader;
use packtrain_sim::endpoint::{BacklogConfig, Cost, Costs, Kind, Mix, Pace, TrafficConfig};

use super::*;

const WHOLE: &str = r#"
[run]
seconds = 0.3
ignore = "100ms"

[[endpoint]]
name = "plain"
wire = "100mbit"
offered = "50mbit"
size = "64"
pace = "poisson"
mix = { unicast = 5, promiscuous = 60.5, own_arp = 0.16 }
ring = 32
intake = "interrupts"
filter = "false"
backlog = 200
low_above = 10
moderate_above = 50
high_above = 190
saturation = true

[endpoint.costs]
interrupt = "1us"
driver = "2us"
driver_per_byte = "0.5ns"
filter = "500ns"
filter_per_byte = "1ns"
stack = "40us"
stack_per_byte = "20ns"

[[endpoint]]
name = "polls"
intake = "polling"
filter = true
mix = "paper"
costs = { stack = { unicast = "90us" } }
"#;

fn endpoints(text: &str) -> Result<Vec<EndpointSettings>, String> {
    let read = toml_reader::read(Path::new("e.toml"), text, |table, errors| {
        let endpoints = file::read(table, errors);
        table.refuse_the_rest(errors);
        endpoints
    });
    read.map_err(|errors| errors.to_string())
}

#[test]
fn everything_that_the_file_says_is_in_the_settings() {
    let mut mix = [0; Kind::ALL.len()];
    mix[Kind::Unicast as usize] = 50_000;
    mix[Kind::Promiscuous as usize] = 605_000;
    mix[Kind::OwnArp as usize] = 1600;
    let (warm_up, duration) = (Duration::from_millis(100), Duration::from_millis(200));
    let plain = EndpointConfig {
        traffic: TrafficConfig {
            wire_bps: 100_000_000,
            offered_bps: 50_000_000,
            frame_bytes: 64,
            mix: Mix(mix),
            pace: Pace::Poisson,
            seed: 1,
        },
        ring_slots: 32,
        intake: Intake::Interrupts,
        filter: false,
        backlog: BacklogConfig {
            frames_max: 200,
            low_above: 10,
            moderate_above: 50,
            high_above: 190,
        },
        costs: Costs {
            interrupt_ns: 1000,
            driver: Cost {
                per_frame_ns: 2000,
                per_byte_ps: 500,
            },
            filter: Cost {
                per_frame_ns: 500,
                per_byte_ps: 1000,
            },
            stack_per_frame_ns: [40_000; Kind::ALL.len()],
            stack_per_byte_ps: 20_000,
        },
        warm_up,
        duration,
    };
    let mut polls = EndpointConfig {
        intake: Intake::Polling,
        filter: true,
        warm_up,
        duration,
        ..EndpointConfig::default()
    };
    polls.costs.stack_per_frame_ns[Kind::Unicast as usize] = 90_000;
    let settings = |name: &str, config, saturation| EndpointSettings {
        name: name.into(),
        config,
        saturation,
    };
    let expected = vec![
        settings("plain", plain, true),
        settings("polls", polls, false),
    ];
    assert_eq!(endpoints(WHOLE), Ok(expected));
}

#[test]
fn each_mistake_is_told_with_its_line_its_key_and_what_is_allowed() {
    for (from, to, error) in [
        (
            "offered = \"50mbit\"",
            "offered = \"200mbit\"",
            "e.toml:9: endpoint.offered: \"200mbit\" is not a rate from 1bit to 100mbit",
        ),
        (
            "size = \"64\"",
            "size = 60",
            "e.toml:10: endpoint.size: \"60\" is not a whole number from 64 to 65535",
        ),
        (
            "\"poisson\"",
            "\"even\"",
            "e.toml:11: endpoint.pace: \"even\" is none of periodic, poisson",
        ),
        (
            "own_arp = 0.16",
            "arp = 20",
            "e.toml:12: endpoint.mix.arp: unknown key (known here: broadcast,",
        ),
        (
            "{ unicast = 5, promiscuous = 60.5, own_arp = 0.16 }",
            "{ unicast = 0 }",
            "e.toml:12: endpoint.mix: there is nothing in it",
        ),
        (
            "\"paper\"",
            "\"nima\"",
            "e.toml:35: endpoint.mix: \"nima\" is no mix: \"paper\", or parts",
        ),
        (
            "ring = 32",
            "ring = 0",
            "e.toml:13: endpoint.ring: \"0\" is not a whole number from 1 to 1000000",
        ),
        (
            "\"40us\"",
            "\"40\"",
            "e.toml:28: endpoint.costs.stack: \"40\" is not a time from 0s to 1s",
        ),
        (
            "\"90us\"",
            "\"2s\"",
            "e.toml:36: endpoint.costs.stack.unicast: \"2s\" is not a time from 0s to 1s",
        ),
        (
            "intake = \"polling\"",
            "intake = \"polling\"\nsaturation = true",
            "e.toml:34: endpoint.saturation: it is where the backlog queue is full",
        ),
        (
            "\"polls\"",
            "\"plain\"",
            "e.toml:32: endpoint.name: plain is the name of two",
        ),
        (
            "\"100ms\"",
            "1",
            "e.toml:4: run.ignore: 1 s of 0.3 s: nothing is left to be counted",
        ),
    ] {
        assert!(WHOLE.contains(from), "{from}");
        let errors = endpoints(&WHOLE.replacen(from, to, 1)).unwrap_err();
        assert!(errors.contains(error), "{to}: {errors}");
    }
    let errors = endpoints("[run]\nseconds = 1\n").unwrap_err();
    assert!(
        errors.contains("there is at least one [[endpoint]]"),
        "{errors}"
    );
    let errors = endpoints("").unwrap_err();
    assert!(
        errors.contains("run: is missing: [run] says what is run"),
        "{errors}"
    );
}

#[test]
fn a_run_knows_the_facts_that_it_says_it_does() {
    let model = Endpoints(endpoints(WHOLE).unwrap());
    let facts = model.run(1, &()).facts;
    for fact in model.fact_names() {
        for name in ["plain", "polls"] {
            let known = model.knows_fact(&fact, &[name]);
            assert_eq!(
                known.is_ok(),
                facts.get(&fact, &[name]).is_ok(),
                "{fact}({name})"
            );
        }
        assert!(model.knows_fact(&fact, &["plain"]).is_ok(), "{fact}");
    }
    for (fact, of, error) in [
        (
            "level_high",
            &["polls"][..],
            "polls polls: it has no backlog queue, and no level_high",
        ),
        (
            "saturation",
            &["polls"],
            "polls has no saturation: say saturation = true, so that it is looked for",
        ),
        (
            "useful",
            &["plane"],
            "there is no end point plane (near it: plain)",
        ),
        (
            "useful",
            &[],
            "useful is of one end point, as in useful(plain)",
        ),
    ] {
        assert_eq!(model.knows_fact(fact, of).unwrap_err(), error);
    }
}

#[test]
fn facts_are_what_the_simulator_counted() {
    let model = Endpoints(endpoints(WHOLE).unwrap());
    let facts = model.run(3, &()).facts;
    let fact = |fact: &str| facts.get(fact, &["plain"]).unwrap();
    // 50 Mbit/s of 84 bytes each; more than the processor has time for.
    assert!((fact("offered") / 74_405.0 - 1.0).abs() < 0.02);
    assert!(fact("offered") < fact("wire") && fact("handled") < 0.5 * fact("offered"));
    assert!((fact("busy") - 1.0).abs() < 0.01);
    let times: f64 = TIMES[1..].iter().map(|name| fact(name)).sum();
    assert!((times - fact("busy")).abs() < 1e-9);
    // Of 65.66 parts 5.16 are of use, and no filter rejects the others.
    let useful = 5.16 / 65.66;
    assert!((fact("useful") / fact("handled") / useful - 1.0).abs() < 0.1);
    assert!((fact("time_useful") / fact("time_useless") / useful - 1.0).abs() < 0.2);
    assert_eq!((fact("rejected"), fact("time_filter")), (0.0, 0.0));
    let polls = |fact: &str| facts.get(fact, &["polls"]).unwrap();
    assert!((polls("rejected") / polls("handled") - 0.858).abs() < 0.02);
    assert!(fact("level_drop") > 0.5 && fact("level_drop") > fact("level_high"));
    let levels: f64 = LEVELS.iter().map(|name| fact(name)).sum();
    assert!((levels - 1.0).abs() < 1e-9);
    let went = ["handled", "ring_drops", "backlog_drops"].map(fact);
    // But for what waits.
    let waits = 0.2 * (fact("offered") - went.iter().sum::<f64>());
    assert!(waits.abs() < 300.0, "{waits}");
    assert!((fact("saturation") / fact("capacity") - 1.0).abs() < 0.05);
    assert_eq!(fact("saturation_rate").trunc(), fact("saturation_rate"));
}
