//! What a run of stations will know: each fact by what it is of.

use super::{ApplicationKind, ApplicationSettings, SegmentKind, StationsSettings};
use crate::expression::near;
use crate::model::JAIN;

/// Of every application.
pub const OF_APPLICATIONS: [&str; 5] = [
    "goodput",
    "longest_pause",
    "sent",
    "retransmitted",
    "timeouts",
];
/// Of those that come to an end again and again.
pub const OF_DONE: [&str; 5] = [
    "done",
    "done_per_second",
    "time_mean",
    "time_p50",
    "time_p99",
];
/// Of a flood.
pub const LOST: &str = "lost";
/// Of transactions over UDP.
pub const AGAIN: &str = "again";
pub const OF_SEGMENTS: [&str; 6] = [
    "frames",
    "bytes",
    "throughput",
    "utilisation",
    "queue_full",
    "cut",
];
pub const OF_HUBS: [&str; 6] = [
    "collisions",
    "failed_attempts",
    "collision_share",
    "carried_share",
    "efficiency",
    "given_up",
];
/// All of a class together.
pub const OF_STATIONS: [&str; 9] = [
    "frames",
    "bytes",
    "trains",
    "frames_in_trains",
    "frames_per_train",
    "marked",
    "plain",
    "aggregates",
    "drops",
];
/// … and of each of its links, from 1: what part of its bytes went by that.
pub const SHARE: &str = "share_";

/// `share_1` and so on: of such a link, from 0.
pub fn link_of_share(fact: &str) -> Option<usize> {
    let number: usize = fact.strip_prefix(SHARE)?.parse().ok()?;
    number.checked_sub(1)
}

/// Each once.
pub fn names() -> Vec<String> {
    let all = OF_APPLICATIONS
        .iter()
        .chain(&OF_DONE)
        .chain([&AGAIN, &LOST])
        .chain(&OF_SEGMENTS)
        .chain(&OF_HUBS)
        .chain(&OF_STATIONS);
    let mut names: Vec<String> = all.map(|name| (*name).to_owned()).collect();
    names.push(JAIN.into());
    names.extend((1..=16).map(|link| format!("{SHARE}{link}")));
    names.sort();
    names.dedup();
    names
}

pub fn knows(settings: &StationsSettings, fact: &str, of: &[&str]) -> Result<(), String> {
    if fact == JAIN {
        let known: Vec<String> = settings
            .applications
            .iter()
            .map(|a| a.name.clone())
            .collect();
        let unknown = of
            .iter()
            .find(|name| known.iter().all(|known| known != *name));
        return match unknown {
            Some(unknown) => Err(format!(
                "{JAIN} is of applications: {unknown} is none ({})",
                near(unknown, &known)
            )),
            None => Ok(()),
        };
    }
    let known = names_with(settings, fact);
    match of {
        [name] if known.iter().any(|known| known == name) => Ok(()),
        [name] if known.is_empty() => Err(format!("nothing here has {fact}: not {name}")),
        [name] => Err(format!("{name} has no {fact} ({})", near(name, &known))),
        _ => Err(format!("{fact} is of one name ({})", near("", &known))),
    }
}

/// Again and again.
pub fn comes_to_an_end(application: &ApplicationSettings) -> bool {
    !matches!(application.kind, ApplicationKind::Bulk(_)) && !is_flood(application)
}

pub fn is_flood(application: &ApplicationSettings) -> bool {
    matches!(application.kind, ApplicationKind::Flood { .. })
}

pub fn is_over_udp(application: &ApplicationSettings) -> bool {
    let ApplicationKind::Transactions { over, .. } = &application.kind else {
        return false;
    };
    matches!(over, super::Over::Udp { .. })
}

/// Those that have such a fact.
fn names_with(settings: &StationsSettings, fact: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |has: bool, name: &String| {
        if has {
            names.push(name.clone());
        }
    };
    for segment in &settings.segments {
        let is_hub = matches!(segment.kind, SegmentKind::Hub { .. });
        let has = OF_SEGMENTS.contains(&fact) || is_hub && OF_HUBS.contains(&fact);
        add(has, &segment.name);
    }
    for station in &settings.stations {
        let has_link = link_of_share(fact).is_some_and(|link| link < station.links.len());
        add(OF_STATIONS.contains(&fact) || has_link, &station.name);
    }
    for application in &settings.applications {
        let has = OF_APPLICATIONS.contains(&fact)
            || comes_to_an_end(application) && OF_DONE.contains(&fact)
            || fact == LOST && is_flood(application)
            || fact == AGAIN && is_over_udp(application);
        add(has, &application.name);
    }
    names
}

pub fn knows_series(settings: &StationsSettings, name: &str) -> Result<(), String> {
    let applications = settings.applications.iter();
    let mut known: Vec<String> = applications.map(|of| rate_of(&of.name)).collect();
    known.extend(settings.segments.iter().map(|of| throughput_of(&of.name)));
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

/// The series of an application.
pub fn rate_of(name: &str) -> String {
    format!("rate({name})")
}

/// The series of a segment.
pub fn throughput_of(name: &str) -> String {
    format!("throughput({name})")
}
