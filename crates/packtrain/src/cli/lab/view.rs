//! What a person reads of a lab.

use std::fmt::Write as _;
use std::time::Duration;

use crate::cli::output::{BAD, GOOD, HEADING, WARNING};
use crate::cli::view::WIDTH;
use crate::cli::view::tables::table;
use crate::cli::view::words::{count, rate};
use crate::lab::emulator::counters::{DirectionStatus, WireStatus};
use crate::lab::emulator::lateness::LatenessSummary;
use crate::lab::emulator::protocol::{AskError, EmulatorStatus};
use crate::lab::standing::addresses::meet;
use crate::lab::standing::{HostAddresses, Lab};
use crate::lab::topology::values::Time;
use crate::lab::topology::{Direction, Name};

/// Later than this at the 99th percentile, and figures taken over these wires say little.
const LATE: Duration = Duration::from_micros(300);

/// They fit into 80 columns with the longest name and the longest addresses.
const LINKS_A_ROW: usize = 2;

/// What was made, and what to type next.
pub fn up(lab: &Lab, took: Duration) -> String {
    let topology = lab.topology();
    let (hosts, wires) = (topology.hosts.len(), topology.wires.len());
    let mut text = format!(
        "{HEADING}{}{HEADING:#} stands after {:.1} s: {hosts} hosts, {wires} {}\n\n{}\n",
        lab.name(),
        took.as_secs_f64(),
        if wires == 1 { "wire" } else { "wires" },
        hosts_table(lab.addresses()),
    );
    let which = match lab.name() {
        "lab" => String::new(),
        name => format!("--lab {name} "),
    };
    let mut commands = Vec::new();
    if let Some((first, second)) = pair(lab.addresses()) {
        commands.push((format!("exec {which}{first} -- ping -c3 {second}"), ""));
        commands.push((format!("exec {which}{second} -- iperf3 -s -D"), ""));
        commands.push((format!("exec {which}{first} -- iperf3 -c {second}"), ""));
    }
    if let Some(host) = topology.hosts.iter().find(|host| host.packtrain) {
        let status = format!("exec {which}{} -- packtrain status", host.name);
        commands.insert(commands.len().min(1), (status, ""));
    }
    if let Some(wire) = topology.wires.first() {
        let set = format!("set {which}{} --delay 20ms --loss 1%", wire.name);
        commands.push((set, "while it runs"));
        commands.push((format!("cut {which}{}", wire.name), "and mend"));
    }
    commands.push((format!("list{}", which_after(&which)), ""));
    commands.push((format!("down{}", down_after(lab.name())), ""));
    let width = commands.iter().map(|(command, _)| command.len()).max();
    for (command, note) in commands {
        let line = format!(
            "  packtrain lab {command:width$}  {note}",
            width = width.unwrap_or(0)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The first two hosts that reach each other.
fn pair(hosts: &[HostAddresses]) -> Option<(&Name, &Name)> {
    hosts.iter().enumerate().find_map(|(i, first)| {
        let second = hosts[i + 1..].iter().find(|second| meet(first, second))?;
        Some((&first.host, &second.host))
    })
}

fn which_after(which: &str) -> String {
    match which.trim_end() {
        "" => String::new(),
        which => format!(" {which}"),
    }
}

fn down_after(name: &str) -> String {
    match name {
        "lab" => String::new(),
        name => format!(" {name}"),
    }
}

/// One lab, as `lab list` shows it.
pub fn lab(lab: &Lab, status: &Result<EmulatorStatus, AskError>) -> String {
    let mut text = format!("{HEADING}{}{HEADING:#}", lab.name());
    if let Some(about) = &lab.topology().about {
        let fits = lab.name().len() + 2 + about.chars().count() <= WIDTH;
        let _ = write!(text, "{}{about}", if fits { ": " } else { "\n" });
    }
    text.push_str("\n\n");
    text += &hosts_table(lab.addresses());
    text.push('\n');
    match status {
        Ok(status) => {
            text += &wires_table(status);
            text += &lateness(&status.lateness, status.real_time);
        }
        Err(error) => {
            let _ = writeln!(
                text,
                "{BAD}its wires carry nothing{BAD:#}: {error}; packtrain lab down {}",
                lab.name()
            );
        }
    }
    text
}

fn hosts_table(hosts: &[HostAddresses]) -> String {
    let rows = hosts.iter().flat_map(|host| {
        let links = host.links.chunks(LINKS_A_ROW);
        links.enumerate().map(|(row, links)| {
            let links: Vec<String> = links
                .iter()
                .map(|(interface, address)| format!("{interface} {address}"))
                .collect();
            let [name, address] = match row {
                0 => [
                    host.host.to_string(),
                    format!("{} {}", host.main_interface, host.main),
                ],
                _ => [String::new(), String::new()],
            };
            [name, address, links.join("  ")]
        })
    });
    table(["HOST", "ADDRESS", "WIRES"], rows.collect(), &[], "")
}

fn wires_table(status: &EmulatorStatus) -> String {
    let mut rows = Vec::new();
    for (wire, described) in status.wires.iter().zip(&status.topology.wires) {
        for (now, direction) in wire.directions.iter().zip(&described.directions) {
            rows.push([
                wire.name.clone(),
                format!("{} > {}", now.from, now.to),
                state(wire, now),
                direction
                    .wire
                    .rate
                    .map_or("-".into(), |rate| rate.to_string()),
                delay(direction),
                others(direction),
                rate(now.bits_per_second),
                count(now.sent_frames),
                dropped(now),
            ]);
        }
    }
    let headings = [
        "WIRE", "WAY", "STATE", "RATE", "DELAY", "ALSO", "NOW", "FRAMES", "DROPPED",
    ];
    table(headings, rows, &["FRAMES", "NOW", "ALSO"], "")
}

fn state(wire: &WireStatus, direction: &DirectionStatus) -> String {
    if !wire.carrier {
        return "cut".to_owned();
    }
    if direction.silent { "silent" } else { "up" }.to_owned()
}

fn delay(direction: &Direction) -> String {
    match (direction.wire.delay_ns, &direction.wire.jitter) {
        (0, None) => "-".to_owned(),
        (delay, None) => Time(delay).to_string(),
        (delay, Some(jitter)) => format!("{} +{jitter}", Time(delay)),
    }
}

/// What else happens to frames there.
fn others(direction: &Direction) -> String {
    let wire = &direction.wire;
    let mut words = Vec::new();
    words.extend(wire.loss.as_ref().map(|loss| format!("loss {loss}")));
    words.extend(
        wire.bit_error_rate
            .map(|rate| format!("bit errors {rate:e}")),
    );
    words.extend(
        wire.packets_per_second
            .map(|cap| format!("{} p/s", cap.rate)),
    );
    words.extend(
        wire.duplicate
            .map(|share| format!("twice {}%", share * 100.0)),
    );
    words.extend(
        wire.reorder
            .map(|r| format!("reorder {}%", r.share * 100.0)),
    );
    words.extend(
        wire.corrupt
            .map(|share| format!("corrupt {}%", share * 100.0)),
    );
    match words.is_empty() {
        true => "-".to_owned(),
        false => words.join(", "),
    }
}

fn dropped(direction: &DirectionStatus) -> String {
    let dropped = &direction.dropped;
    let reasons = [
        ("queue full", dropped.queue_full),
        ("codel", dropped.codel),
        ("cut", dropped.cut),
        ("lost", dropped.loss),
        ("bit errors", dropped.bit_errors),
        ("bad offload", dropped.bad_offload),
        ("collisions given up", dropped.collisions),
        ("emulator late", dropped.emulator_late),
    ];
    let said = reasons.iter().filter(|(_, n)| *n > 0);
    let said: Vec<String> = said
        .map(|(why, n)| format!("{} {why}", count(*n)))
        .collect();
    match said.is_empty() {
        true => "0".to_owned(),
        false => said.join(", "),
    }
}

/// How far the wires are to be believed.
fn lateness(lateness: &LatenessSummary, real_time: bool) -> String {
    if lateness.frames == 0 {
        return String::new();
    }
    let is_late = lateness.p99_us > LATE.as_micros() as f64;
    let style = if is_late { WARNING } else { GOOD };
    let without = match real_time {
        true => "",
        false => "; the emulator has no real-time priority (CAP_SYS_NICE)",
    };
    format!(
        "\n{style}late by{style:#} {:.0} us (median), {:.0} us (99 %), {:.1} ms at most, of {} frames{without}\n",
        lateness.p50_us,
        lateness.p99_us,
        lateness.max_us / 1e3,
        count(lateness.frames),
    )
}
