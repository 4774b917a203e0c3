//! The sections of end points in a scenario's file.

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table};
use packtrain_sim::endpoint::{BacklogConfig, Costs, EndpointConfig, Intake, Kind, Mix, Pace};
use toml::de::DeValue;

use super::EndpointSettings;
use crate::kinds::read::{name, packet_bytes, quantity, seconds, truth, whole, word};
use crate::kinds::unnamed;
use crate::quantity::Dimension;

/// As Ethernet counts, with the check sequence.
const FRAME_BYTES_MIN: u32 = 64;
const FRAME_BYTES_MAX: u32 = 65_535;
const WIRE_BPS_MIN: f64 = 1e6;
const WIRE_BPS_MAX: f64 = 1e12;
const SLOTS_MAX: u32 = 1_000_000;
/// Of the whole mix there may be so many parts of a percent.
const PARTS: f64 = 1e4;
const PERCENT_MAX: f64 = 1e4;

/// In the order of [`Kind::ALL`].
const KINDS: [&str; Kind::ALL.len()] = [
    "unicast",
    "promiscuous",
    "joined_group",
    "foreign_group",
    "ipx",
    "netbeui",
    "own_arp",
    "foreign_arp",
    "broadcast",
    "other",
];

pub fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Vec<EndpointSettings>> {
    let (warm_up, duration) = times(table, errors).unzip();
    let mut complete = true;
    let mut taken: Vec<String> = Vec::new();
    let endpoints = table.list("endpoint", errors, |value, errors| {
        let mut table = Table::of(value, "endpoint", "[[endpoint]]", errors)?;
        let found = endpoint(&mut table, errors);
        table.refuse_the_rest(errors);
        complete &= found.is_some();
        let found = found?;
        if taken.contains(&found.name) {
            let message = format!("{} is the name of two", found.name);
            table.refuse(Some("name"), message, errors);
        }
        taken.push(found.name.clone());
        Some(found)
    });
    if endpoints.is_empty() && complete {
        let message = "there is at least one [[endpoint]]".to_owned();
        table.refuse(Some("endpoint"), message, errors);
        return None;
    }
    let (warm_up, duration) = (warm_up?, duration?);
    let timed = endpoints.into_iter().map(|settings| EndpointSettings {
        config: EndpointConfig {
            warm_up,
            duration,
            ..settings.config
        },
        ..settings
    });
    complete.then(|| timed.collect())
}

/// What is not counted, and what is.
fn times(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<(Duration, Duration)> {
    let mut table = unnamed::section(table, "run", errors)?;
    let length = table.required("seconds", errors, seconds(1e-3));
    let mut ignore = Duration::ZERO;
    table.optional("ignore", errors, &mut ignore, seconds(0.0));
    table.refuse_the_rest(errors);
    let length = length?;
    unnamed::counted(&table, length, ignore, errors).map(|counted| (ignore, counted))
}

fn endpoint(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<EndpointSettings> {
    let name = table.required("name", errors, name);
    let mut config = EndpointConfig::default();
    traffic(table, &mut config, errors);
    let mut slots = config.ring_slots as u32;
    table.optional("ring", errors, &mut slots, whole(1, SLOTS_MAX));
    config.ring_slots = slots as usize;
    let intakes = word([
        ("interrupts", Intake::Interrupts),
        ("polling", Intake::Polling),
    ]);
    table.optional("intake", errors, &mut config.intake, intakes);
    table.optional("filter", errors, &mut config.filter, truth);
    config.backlog = backlog(table, errors);
    config.costs = costs(table, errors);
    let mut saturation = false;
    table.optional("saturation", errors, &mut saturation, truth);
    if saturation && config.intake == Intake::Polling {
        let message = "it is where the backlog queue is full, and with polling there is none";
        table.refuse(Some("saturation"), message.to_owned(), errors);
    }
    Some(EndpointSettings {
        name: name?,
        config,
        saturation,
    })
}

fn traffic(table: &mut Table<'_>, config: &mut EndpointConfig, errors: &mut Errors<'_>) {
    let traffic = &mut config.traffic;
    let mut wire = traffic.wire_bps as f64;
    let rates = quantity(Dimension::Rate, WIRE_BPS_MIN, WIRE_BPS_MAX);
    table.optional("wire", errors, &mut wire, rates);
    let mut offered = (traffic.offered_bps as f64).min(wire);
    let rates = quantity(Dimension::Rate, 1.0, wire);
    table.optional("offered", errors, &mut offered, rates);
    (traffic.wire_bps, traffic.offered_bps) = (wire.round() as u64, offered.round() as u64);
    let sizes = packet_bytes(FRAME_BYTES_MIN, FRAME_BYTES_MAX);
    table.optional("size", errors, &mut traffic.frame_bytes, sizes);
    let paces = word([("periodic", Pace::Periodic), ("poisson", Pace::Poisson)]);
    table.optional("pace", errors, &mut traffic.pace, paces);
    if let Some(mix) = mix(table, errors) {
        traffic.mix = mix;
    }
}

/// `paper`, or how much there is of each kind; of those that are not named there is nothing.
fn mix(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Mix> {
    let value = table.get("mix")?;
    match value.get_ref() {
        DeValue::String(text) if text == "paper" => return None,
        DeValue::String(text) => {
            let message = format!(
                "{text:?} is no mix: \"paper\", or parts, as in {{ unicast = 5, promiscuous = 60 }}"
            );
            table.refuse(Some("mix"), message, errors);
            return None;
        }
        _ => {}
    }
    let like = "mix = { unicast = 5, promiscuous = 60 }";
    let mut parts = Table::of(value, &table.key("mix"), like, errors)?;
    let percent = quantity(Dimension::Number, 0.0, PERCENT_MAX);
    let mix = KINDS.map(|kind| {
        let mut part = 0.0;
        parts.optional(kind, errors, &mut part, &percent);
        (part * PARTS).round() as u32
    });
    parts.refuse_the_rest(errors);
    if mix.iter().all(|part| *part == 0) {
        parts.refuse(None, "there is nothing in it".into(), errors);
        return None;
    }
    Some(Mix(mix))
}

fn backlog(table: &mut Table<'_>, errors: &mut Errors<'_>) -> BacklogConfig {
    let mut config = BacklogConfig::default();
    let keys = [
        ("backlog", &mut config.frames_max),
        ("low_above", &mut config.low_above),
        ("moderate_above", &mut config.moderate_above),
        ("high_above", &mut config.high_above),
    ];
    for (key, frames) in keys {
        let mut read = *frames as u32;
        table.optional(key, errors, &mut read, whole(1, SLOTS_MAX));
        *frames = read as usize;
    }
    config
}

fn costs(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Costs {
    let mut costs = Costs::default();
    let Some(value) = table.get("costs") else {
        return costs;
    };
    let like = "costs = { interrupt = \"2us\", driver = \"3.6us\" }";
    let Some(mut of) = Table::of(value, &table.key("costs"), like, errors) else {
        return costs;
    };
    let nanos = time(1e9);
    for (key, of_frame) in [
        ("interrupt", &mut costs.interrupt_ns),
        ("driver", &mut costs.driver.per_frame_ns),
        ("filter", &mut costs.filter.per_frame_ns),
    ] {
        of.optional(key, errors, of_frame, &nanos);
    }
    let picos = time(1e12);
    for (key, of_byte) in [
        ("driver_per_byte", &mut costs.driver.per_byte_ps),
        ("filter_per_byte", &mut costs.filter.per_byte_ps),
        ("stack_per_byte", &mut costs.stack_per_byte_ps),
    ] {
        of.optional(key, errors, of_byte, &picos);
    }
    stack(&mut of, &mut costs.stack_per_frame_ns, errors);
    of.refuse_the_rest(errors);
    costs
}

/// Of each frame, or of each kind; of those that are not named it is as it was.
fn stack(table: &mut Table<'_>, costs: &mut [u64; KINDS.len()], errors: &mut Errors<'_>) {
    let Some(value) = table.get("stack") else {
        return;
    };
    if value.get_ref().as_table().is_none() {
        let mut of_each = 0;
        table.optional("stack", errors, &mut of_each, time(1e9));
        *costs = [of_each; KINDS.len()];
        return;
    }
    let like = "stack = { unicast = \"106us\", foreign_arp = \"71us\" }";
    let Some(mut of) = Table::of(value, &table.key("stack"), like, errors) else {
        return;
    };
    for (kind, cost) in KINDS.into_iter().zip(costs) {
        of.optional(kind, errors, cost, time(1e9));
    }
    of.refuse_the_rest(errors);
}

/// In such parts of a second; a second is more than anybody spends on a frame.
fn time(parts: f64) -> impl Fn(&DeValue<'_>) -> Result<u64, String> {
    let time = quantity(Dimension::Time, 0.0, 1.0);
    move |value| time(value).map(|seconds| (seconds * parts).round() as u64)
}
