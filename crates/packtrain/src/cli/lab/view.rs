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
use crate::lab::topology::direction::{PORT_QUEUE_PACKETS_DEFAULT, Queue};
use crate::lab::topology::{Direction, Name};
use crate::units::{BitRate, ErrorRate, Share, Time};

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
            text += &settings(status);
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
                rate(now.bits_per_second),
                count(now.sent_frames),
                dropped(now),
            ]);
        }
    }
    let headings = [
        "WIRE", "WAY", "STATE", "RATE", "DELAY", "NOW", "FRAMES", "DROPPED",
    ];
    table(headings, rows, &["FRAMES", "NOW"], "")
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
        (0, Some(jitter)) => jitter.to_string(),
        (delay, Some(jitter)) => format!("{} +{jitter}", Time(delay)),
    }
}

/// What else was set, under the table: there is no room for it beside counters.
fn settings(status: &EmulatorStatus) -> String {
    let mut text = String::new();
    for wire in &status.topology.wires {
        let [there, back] = wire.directions.each_ref().map(others);
        let [a, b] = wire.ends.each_ref().map(|end| &end.node);
        let lines = match there == back {
            true => vec![(format!("{a} - {b}"), there)],
            false => vec![(format!("{a} > {b}"), there), (format!("{b} > {a}"), back)],
        };
        for (way, others) in lines.into_iter().filter(|(_, others)| !others.is_empty()) {
            text += &wrapped(&format!("{}  {way}  ", wire.name), &others);
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("\nalso set\n{text}"),
    }
}

/// Words one after the other, on as many lines as they need; those after the first are indented.
fn wrapped(head: &str, words: &[String]) -> String {
    let mut lines = vec![head.to_owned()];
    for (i, word) in words.iter().enumerate() {
        let comma = if i + 1 < words.len() { ", " } else { "" };
        let line = lines.last_mut().expect("there is one");
        let is_empty = line.len() == head.len();
        if is_empty || line.len() + word.len() + comma.trim_end().len() <= WIDTH {
            *line += &format!("{word}{comma}");
        } else {
            lines.push(format!("{:indent$}{word}{comma}", "", indent = head.len()));
        }
    }
    let lines = lines.iter().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

/// What a direction has besides rate and delay, as it is written on the command line.
fn others(direction: &Direction) -> Vec<String> {
    let Direction { port, wire } = direction;
    let mut words = Vec::new();
    let mut say = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name} {value}")));
    };
    let of_wire = wire.rate.map(|rate| rate.bps);
    let own = port.rate_bps.filter(|&bps| of_wire != Some(bps));
    say("port-rate", own.map(|bps| BitRate(bps).to_string()));
    let queue = port.queue_packets;
    let queue = queue.filter(|&packets| packets != PORT_QUEUE_PACKETS_DEFAULT);
    say("port-queue", queue.map(|packets| packets.to_string()));
    let default = Queue::default();
    let limit = Some(wire.queue.limit).filter(|limit| *limit != default.limit);
    say("queue", limit.map(|limit| limit.to_string()));
    let discipline = Some(wire.queue.discipline).filter(|how| *how != default.discipline);
    say("queue-discipline", discipline.map(|how| how.to_string()));
    let cap = wire.packets_per_second;
    say("packets-per-second", cap.map(|cap| cap.to_string()));
    say("loss", wire.loss.as_ref().map(ToString::to_string));
    let bits = wire.bit_error_rate.map(ErrorRate);
    say("bit-errors", bits.map(|rate| rate.to_string()));
    let share = |share: f64| Share(share).to_string();
    say("corrupt", wire.corrupt.map(share));
    say("duplicate", wire.duplicate.map(share));
    say("reorder", wire.reorder.map(|reorder| reorder.to_string()));
    words
}

fn dropped(direction: &DirectionStatus) -> String {
    let dropped = &direction.dropped;
    let reasons = [
        ("queue full", dropped.queue_full),
        ("codel", dropped.codel),
        ("early", dropped.early),
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

/// The applications of `lab check filter`, a line each.
pub fn applications() -> String {
    let all = || crate::lab::applications::all();
    let width = all().map(|of| of.name.len()).max().unwrap_or(0);
    all()
        .map(|of| format!("{:width$}  {}\n", of.name, of.about))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_before_the_last_column_and_none_is_lost() {
        let words: Vec<String> = (0..20).map(|i| format!("setting-{i} value")).collect();
        let text = wrapped("a-b.0  a > b  ", &words);
        assert!(text.lines().count() > 1);
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("              setting"))
        );
        let joined: Vec<&str> = text["a-b.0  a > b  ".len()..].split_whitespace().collect();
        assert_eq!(joined.join(" "), words.join(", "));
    }
}
