//! What a run of a network will know: each fact by what it is of.

use super::NetworkSettings;
use crate::expression::near;
use crate::model::{JAIN, POWER_OF_SIZE, SIZE, is_of};

/// Of a line.
pub const OF_LINES: [&str; 12] = [
    "throughput",
    "utilisation",
    "queue_mean",
    "queue_max",
    "drops",
    "marks",
    "sent",
    "lookups",
    "longest_pause",
    "energy",
    "repeated",
    "longest_burst",
];
/// Of lines and of flows, where series are taken.
pub const OF_SAMPLES: [&str; 2] = ["packets_most", "packets_none"];
/// Of flows and of visitors.
pub const OF_CONNECTIONS: [&str; 10] = [
    "rate",
    "goodput",
    "sent",
    "dropped",
    "lost",
    "drop_rate",
    "loss_events",
    "loss_event_rate",
    "retransmitted",
    "timeouts",
];
/// Of those who stay.
pub const OF_FLOWS: [&str; 8] = [
    SIZE,
    "goodput_mean",
    "goodput_least",
    "goodput_most",
    "cwnd_mean",
    "first_cut",
    "first_repair",
    "first_drops",
];
pub const OF_VISITORS: [&str; 6] = [
    "came",
    "finished",
    "turned_away",
    "duration_mean",
    "duration_p50",
    "duration_p99",
];
pub const OF_DATAGRAMS: [&str; 13] = [
    "rate",
    "goodput",
    "sent",
    "dropped",
    "lost",
    "drop_rate",
    "delay_mean",
    "delay_p50",
    "delay_p99",
    "answered",
    "round_trip_mean",
    "round_trip_p50",
    "round_trip_p99",
];
const SERIES_OF_LINES: [&str; 4] = ["throughput", "queue", "drops", "packets"];
const SERIES_OF_CONNECTIONS: [&str; 3] = ["rate", "cwnd", "packets"];

/// Each once.
pub fn names() -> Vec<String> {
    let all = OF_LINES
        .iter()
        .chain(&OF_SAMPLES)
        .chain(&OF_CONNECTIONS)
        .chain(&OF_FLOWS)
        .chain(&OF_VISITORS)
        .chain(&OF_DATAGRAMS);
    let mut names: Vec<String> = all.map(|name| (*name).to_owned()).collect();
    names.extend([JAIN, POWER_OF_SIZE].map(str::to_owned));
    names.sort();
    names.dedup();
    names
}

pub fn knows(settings: &NetworkSettings, fact: &str, of: &[&str]) -> Result<(), String> {
    match (fact, of) {
        (JAIN, _) => return are_flows(settings, JAIN, of),
        (POWER_OF_SIZE, [fact, of @ ..]) if !of.is_empty() => {
            if !OF_CONNECTIONS.contains(fact) && !OF_FLOWS.contains(fact) {
                let all: Vec<&str> = OF_CONNECTIONS.iter().chain(&OF_FLOWS).copied().collect();
                let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
                return Err(format!("flows have no {fact} ({})", near(fact, &all)));
            }
            return are_flows(settings, POWER_OF_SIZE, of);
        }
        (POWER_OF_SIZE, _) => {
            let message = "write it as in power_of_size(rate, east), of all flows that are called east, east1, east2";
            return Err(message.into());
        }
        _ => {}
    }
    if OF_SAMPLES.contains(&fact) && settings.times.sample.is_none() {
        return Err(format!(
            "{fact} is of samples: [run] says how often they are taken, as in sample = \"1ms\""
        ));
    }
    let known = names_with(settings, fact);
    match of {
        [name] if known.iter().any(|known| known == name) => Ok(()),
        [name] if known.is_empty() => Err(format!("nothing here has {fact}: not {name}")),
        [name] => Err(format!("{name} has no {fact} ({})", near(name, &known))),
        _ => Err(format!("{fact} is of one name ({})", near("", &known))),
    }
}

fn are_flows(settings: &NetworkSettings, fact: &str, of: &[&str]) -> Result<(), String> {
    let flows = settings.flows.iter();
    let flows: Vec<String> = flows.map(|flow| flow.name.clone()).collect();
    let is_none = |name: &&&str| flows.iter().all(|flow| !is_of(flow, name));
    match of.iter().find(is_none) {
        Some(unknown) => Err(format!(
            "{fact} is of flows: {unknown} is none ({})",
            near(unknown, &flows)
        )),
        None => Ok(()),
    }
}

/// Those that have such a fact.
fn names_with(settings: &NetworkSettings, fact: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |has: bool, name: &String| {
        if has {
            names.push(name.clone());
        }
    };
    for line in &settings.lines {
        let has = OF_LINES.contains(&fact) || OF_SAMPLES.contains(&fact);
        add(has, &line.name);
    }
    for flow in &settings.flows {
        let of = [&OF_CONNECTIONS[..], &OF_FLOWS, &OF_SAMPLES];
        add(of.iter().any(|facts| facts.contains(&fact)), &flow.name);
    }
    for visitors in &settings.visitors {
        let has = OF_CONNECTIONS.contains(&fact) || OF_VISITORS.contains(&fact);
        add(has, &visitors.name);
    }
    for datagrams in &settings.datagrams {
        add(OF_DATAGRAMS.contains(&fact), &datagrams.name);
    }
    names
}

pub fn knows_series(settings: &NetworkSettings, name: &str) -> Result<(), String> {
    let mut known = Vec::new();
    for line in &settings.lines {
        known.extend(SERIES_OF_LINES.map(|series| format!("{series}({})", line.name)));
    }
    for flow in &settings.flows {
        known.extend(SERIES_OF_CONNECTIONS.map(|series| format!("{series}({})", flow.name)));
    }
    match known.iter().any(|series| series == name) {
        true if settings.times.sample.is_none() => {
            Err("series are taken where [run] says how often: sample = \"100ms\"".into())
        }
        true => Ok(()),
        false => Err(format!(
            "there is no series {name} ({})",
            near(name, &known)
        )),
    }
}
