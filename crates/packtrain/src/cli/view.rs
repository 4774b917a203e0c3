//! A line's status for a person: readable at 80 columns, the most asked first.

mod coding;
mod flows;
mod measured;
mod peers;
pub(super) mod tables;
pub(crate) mod words;

use std::fmt::Write as _;

use self::coding::{dictionary, write_coding};
use self::flows::{write_data_units, write_flows, write_sand};
pub(crate) use self::peers::path_reason;
use self::peers::{write_peer, write_spread};
pub use self::tables::{class_table, link_table, peer_table};
use self::words::{bytes, count, duration, rate};
use super::output::{BAD, GOOD, HEADING, WARNING};
use crate::status::{
    Coalesced, Counts, Direct, HostRing, Intake, LagUse, Link, LinkCondition, PlainHost, Replay,
    StatusDocument, Stay, TooBig, Traffic,
};

/// Where the values begin, and where a line of them ends.
const INDENT: usize = 13;
pub(super) const WIDTH: usize = 80;
/// Plain hosts shown; `--json` has all.
const HOSTS_SHOWN_MAX: usize = 10;
/// Of those that take aggregates, as many as stand in a line.
const STATIONS_SHOWN_MAX: usize = 3;

/// Everything about one line.
pub fn line(document: &StatusDocument) -> String {
    let mut out = String::new();
    heading(
        &mut out,
        "line",
        &document.name,
        document.up,
        if document.up { "up" } else { "down" },
    );
    write_line(&mut out, document);
    if are_several(&document.links) {
        out.push('\n');
        write_links(&mut out, document);
    } else {
        for link in &document.links {
            out.push('\n');
            write_link(&mut out, link);
        }
    }
    for peer in &document.peers {
        out.push('\n');
        write_peer(&mut out, peer, packs_by_auto(document));
        if document.classes.iter().any(|class| class.loss_ok) {
            write_spread(&mut out, peer);
        }
    }
    if !document.hosts.is_empty() {
        out.push('\n');
        write_hosts(&mut out, &document.hosts);
    }
    if !document.warnings.is_empty() {
        out.push('\n');
    }
    for warning in &document.warnings {
        let _ = writeln!(out, "{WARNING}warning:{WARNING:#} {warning}");
    }
    out
}

fn write_line(out: &mut String, document: &StatusDocument) {
    let mut address = vec![document.address.clone()];
    address.extend(document.addresses.iter().cloned());
    field(out, "address", &address.join(", "));
    let promiscuous = if document.promiscuous {
        ", takes frames for other stations too"
    } else {
        ""
    };
    field(out, "mtu", &format!("{}{promiscuous}", document.mtu));
    let (node, line, version) = (&document.node_id, document.line_id, &document.version);
    field(
        out,
        "node",
        &format!("{node}, line {line}, packtrain {version}"),
    );
    let uptime = duration(document.uptime_s);
    field(
        out,
        "running",
        &format!("for {uptime}, pid {}", document.pid),
    );
    if document.mode == "dfap" {
        field(out, "mode", "dfap: no trains, aggregates alone");
    } else if !document.peers.iter().any(|peer| peer.up) {
        field(
            out,
            "peers",
            "none: no host with packtrain answers, frames go plain",
        );
    }
    field(out, "from host", &traffic(document.host.taken));
    if let Some(ring) = document.intake.and_then(|intake| ring(intake.ring?)) {
        field(out, "by ring", &ring);
    }
    field(out, "to host", &traffic(document.host.given));
    if let Some(together) = together(document.coalesced) {
        field(out, "together", &together);
    }
    let trains = &document.trains;
    let mean = trains
        .frames_per_train_mean
        .map_or(String::new(), |m| format!(", {m:.1} frames each"));
    field(
        out,
        "trains",
        &format!(
            "{} sent{mean}; {} received",
            count(trains.tx.trains),
            count(trains.rx.trains)
        ),
    );
    let sent = [
        ("as they are", trains.tx.marked),
        ("plain", trains.tx.plain),
    ];
    let sent: Vec<String> = sent
        .iter()
        .map(|(how, n)| format!("{} {how}", count(*n)))
        .collect();
    field(out, "unpacked", &format!("{} sent", sent.join(" and ")));
    write_data_units(out, &trains.data_units);
    write_coding(out, &document.coding);
    if let Some(of_line) = &document.dictionary {
        field(out, "dictionary", &dictionary(of_line));
    }
    write_aggregates(out, document);
    let direct = &document.direct;
    if direct.tx.frames + direct.rx.frames > 0 {
        let closed = match direct.closures {
            0 => String::new(),
            1 => format!("; closed once ({})", direct.closures_because),
            n => format!("; closed {} times ({})", count(n), direct.closures_because),
        };
        let (sent, received) = (traffic(direct.tx), traffic(direct.rx));
        let lost = match direct.lost {
            0 => String::new(),
            n => format!(" ({} lost)", count(n)),
        };
        field(
            out,
            "direct",
            &format!("{sent} sent{lost}, {received} received{closed}"),
        );
    }
    if let Some(small) = small_frames(direct) {
        field(out, "small ones", &small);
    }
    if let Some(stay) = document.stay {
        field(out, "stays", &stays(stay));
    }
    match document.intake {
        Some(Intake {
            rate_bps: Some(rate_bps),
            waiting_frames,
            waiting_bytes,
            ..
        }) => {
            let waiting = format!(
                "{} frames, {} wait",
                count(waiting_frames),
                bytes(waiting_bytes)
            );
            field(out, "held to", &format!("{}: {waiting}", rate(rate_bps)));
        }
        Some(_) => {}
        None => field(
            out,
            "held to",
            "nothing: the host does not feel the line's rate",
        ),
    }
    let queue = &document.queue;
    if queue.frames > 0 {
        let waiting = format!(
            "{} frames, {} of {} flows",
            count(queue.frames),
            bytes(queue.bytes),
            queue.flows
        );
        field(out, "waiting", &waiting);
    }
    write_flows(out, document);
    write_sand(out, document);
    let reordered = document.resequencer.reordered;
    if reordered > 0 || document.resequencer.gaps > 0 {
        let lost = count(document.resequencer.gaps);
        field(
            out,
            "order",
            &format!(
                "{} trains put right, {lost} given up as lost",
                count(reordered)
            ),
        );
    }
    write_replay(out, &document.replay);
    if let Some(too_long) = too_long(document.too_big) {
        field(out, "too long", &too_long);
    }
    drops(out, &document.drops);
}

/// Which way the host's frames came, once some came by the ring or should have.
fn ring(ring: HostRing) -> Option<String> {
    let HostRing {
        frames,
        tap_frames,
        full,
    } = ring;
    if frames + full == 0 {
        return None;
    }
    let full = match full {
        0 => String::new(),
        n => format!(", {} of them because it was full", count(n)),
    };
    Some(format!(
        "{}; {} by the TAP{full}",
        count(frames),
        count(tap_frames)
    ))
}

/// Whose frames are longer than what those take for whom they are.
fn too_long(of: TooBig) -> Option<String> {
    let TooBig {
        told,
        withheld,
        untold,
    } = of;
    let (all, told) = (told + withheld + untold, count(told));
    (all > 0).then(|| format!("{} frames, of {told} their senders were told", count(all)))
}

/// What was given to the host as GSO frames.
fn together(coalesced: Coalesced) -> Option<String> {
    let Coalesced {
        datagrams,
        frames,
        segments,
        segment_frames,
    } = coalesced;
    let kinds = [
        ("datagrams", datagrams, frames),
        ("segments", segments, segment_frames),
    ];
    let met = kinds.into_iter().filter(|(_, _, frames)| *frames > 0);
    let texts = met.map(|(what, n, frames)| format!("{} {what} as {}", count(n), count(frames)));
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(", ") + " GSO frames")
}

/// The DFAP paper's protocol, where it is spoken or anybody takes it.
fn write_aggregates(out: &mut String, document: &StatusDocument) {
    let (tx, rx) = (&document.trains.tx, &document.trains.rx);
    let is_mode = document.mode == "dfap";
    if !is_mode && document.dfap.stations.is_empty() && tx.aggregates + rx.aggregates == 0 {
        return;
    }
    let mean = match tx.aggregates {
        0 => String::new(),
        n => format!(", {:.1} frames each", tx.aggregated as f64 / n as f64),
    };
    let (sent, received) = (count(tx.aggregates), count(rx.aggregates));
    let text = format!("{sent} sent{mean}; {received} received");
    field(out, "aggregates", &text);
    if let Some(on) = document.dfap.waits {
        let average = document
            .dfap
            .frames_per_second
            .map_or("no average of the traffic yet".to_owned(), |average| {
                format!("{} frames/s on average", count(average.round() as u64))
            });
        let state = if on { "on" } else { "off" };
        field(
            out,
            "waits",
            &format!("{state} by traffic count: {average}"),
        );
    }
    let stations = document.dfap.stations.iter();
    let shown = stations.clone().take(STATIONS_SHOWN_MAX);
    let names: Vec<&str> = shown.map(|station| station.address.as_str()).collect();
    let more = match stations.len().saturating_sub(names.len()) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let names = match names.is_empty() {
        true => "nobody".to_owned(),
        false => names.join(", ") + &more,
    };
    field(out, "sent to", &names);
}

fn write_replay(out: &mut String, replay: &Replay) {
    if replay.kept_trains > 0 || replay.kept_bytes_max_seen > 0 {
        let (trains, kept) = (count(replay.kept_trains), bytes(replay.kept_bytes));
        let most = bytes(replay.kept_bytes_max_seen);
        let copies = format!("{trains} trains until acknowledged, {kept}; {most} at most so far");
        field(out, "copies of", &copies);
    }
    let mut again = Vec::new();
    if replay.replayed > 0 || replay.waiting_trains > 0 {
        again.push(format!("{} trains", count(replay.replayed)));
    }
    if replay.repaired > 0 {
        again.push(format!("{} repaired", count(replay.repaired)));
    }
    if replay.waiting_trains > 0 {
        again.push(format!("{} wait", count(replay.waiting_trains)));
    }
    if replay.not_kept > 0 {
        again.push(format!("{} were without a copy", count(replay.not_kept)));
    }
    if replay.not_repaired > 0 {
        again.push(format!("{} lost", count(replay.not_repaired)));
    }
    if !again.is_empty() {
        field(out, "sent again", &again.join(", "));
    }
    if replay.duplicated > 0 || replay.not_duplicated > 0 {
        let mut twice = format!("{} trains, by two links", count(replay.duplicated));
        if replay.not_duplicated > 0 {
            let _ = write!(twice, "; {} by one", count(replay.not_duplicated));
        }
        field(out, "sent twice", &twice);
    }
}

/// Whether they are read better beside each other.
fn are_several(links: &[Link]) -> bool {
    let there = |link: &&Link| link.state != LinkCondition::Absent;
    links.iter().filter(there).count() > 1
}

fn write_links(out: &mut String, document: &StatusDocument) {
    let (links, balance) = (document.links.len(), &document.balance);
    let spills = if document.tier_spill {
        ", tiers spill"
    } else {
        ""
    };
    let _ = writeln!(out, "{HEADING}links{HEADING:#}: {links}, {balance}{spills}");
    out.push_str(&tables::links(&document.links, "  "));
    for link in document.links.iter().filter(|link| !link.drops.is_empty()) {
        field(
            out,
            "drops",
            &format!("on {}: {}", link.name, reasons(&link.drops)),
        );
    }
}

fn write_link(out: &mut String, link: &Link) {
    heading(
        out,
        "link",
        &link.name,
        link.state == LinkCondition::Up,
        link.state.as_str(),
    );
    if link.state == LinkCondition::Absent && link.tx.frames + link.rx.frames == 0 {
        return;
    }
    if let (Some(address), Some(mtu)) = (&link.address, link.mtu) {
        field(out, "address", &format!("{address}, mtu {mtu}"));
    }
    if let Some(rate_bps) = link.rate_bps {
        let how = match link.rate_age_s {
            Some(age) => format!("measured {} ago", duration(age)),
            None => "as the driver says".into(),
        };
        field(out, "rate", &format!("{}, {how}", rate(rate_bps)));
    }
    if let (Some(rate_bps), Some(age)) = (link.direct_rate_bps, link.direct_rate_age_s) {
        let seen = format!("{} past the engine, {} ago", rate(rate_bps), duration(age));
        field(out, "drained", &seen);
    }
    if let Some(shaper) = &link.direct_shaper {
        let (of, at) = (&shaper.interface, rate(shaper.rate_bps));
        let frames = count(shaper.frame_bytes_max.into());
        let mut text = format!("past the engine in {of}, {at}, {frames} bytes a frame at most");
        if shaper.dropped > 0 {
            let _ = write!(text, "; {} found it full", count(shaper.dropped.into()));
        }
        field(out, "shaped", &text);
    }
    if tables::is_used_otherwise(link) {
        let at_most = link.rate_max_bps.map(rate);
        let at_most = at_most.map_or(String::new(), |rate| format!(", {rate} at most"));
        let (tier, weight) = (link.tier, link.weight);
        let lag = match link.lag {
            None => "",
            Some(LagUse::Used) => ", in a link aggregation",
            Some(LagUse::Refused) => ", in a link aggregation that the switch does not know of",
        };
        field(
            out,
            "used",
            &format!("tier {tier}, weight {weight}{at_most}{lag}"),
        );
    }
    let in_flight = bytes(link.in_flight_bytes);
    field(
        out,
        "backlog",
        &format!(
            "{} queued, {in_flight} in flight",
            bytes(link.backlog_bytes)
        ),
    );
    if !link.congestion_signals.is_empty() {
        let signals = link.congestion_signals.iter().map(|name| signal(name));
        let signals: Vec<&str> = signals.collect();
        field(out, "watched by", &signals.join(", "));
    }
    field(out, "sent", &traffic(link.tx));
    field(out, "received", &traffic(link.rx));
    drops(out, &link.drops);
}

/// What tells of congestion, in words.
fn signal(name: &str) -> &str {
    match name {
        "backlog" => "the backlog of its qdisc",
        "direct_counts" => "counts of direct frames",
        "acknowledgements" => "acknowledgements",
        other => other,
    }
}

/// Where they were more than the engine could take: which way they go, and what either way carried.
fn small_frames(direct: &Direct) -> Option<String> {
    let rates = direct.small_frames_per_second;
    let engine = count(rates.engine?);
    let way = match direct.leaves_small_frames {
        true => "go directly",
        false => "are packed",
    };
    let directly = rates
        .direct
        .map_or(String::new(), |n| format!(", {}/s directly", count(n)));
    Some(format!("{way} when many: {engine}/s packed{directly}"))
}

/// What becomes of it when its daemon ends.
fn stays(stay: Stay) -> String {
    match (stay.kept, stay.carries) {
        (false, _) => "no: its keeper is not at work; the log says why".to_owned(),
        (true, true) => format!("{} s when its daemon ends", stay.seconds),
        (true, false) => format!(
            "{} s when its daemon ends, but no frames can go directly now, and no others flow then",
            stay.seconds
        ),
    }
}

fn packs_by_auto(document: &StatusDocument) -> bool {
    let mut classes = document.classes.iter();
    classes.any(|class| class.pack.split(' ').next() == Some("auto"))
}

fn write_hosts(out: &mut String, hosts: &[PlainHost]) {
    let _ = writeln!(
        out,
        "{HEADING}hosts without packtrain{HEADING:#}: {}",
        hosts.len()
    );
    for host in hosts.iter().take(HOSTS_SHOWN_MAX) {
        let heard = duration(host.last_heard_s);
        let _ = writeln!(
            out,
            "  {} on {}, heard {heard} ago",
            host.address, host.link
        );
    }
    if hosts.len() > HOSTS_SHOWN_MAX {
        let more = hosts.len() - HOSTS_SHOWN_MAX;
        let _ = writeln!(out, "  and {more} more (--json has all)");
    }
}

fn heading(out: &mut String, kind: &str, name: &str, good: bool, state: &str) {
    let style = if good { GOOD } else { BAD };
    let _ = writeln!(
        out,
        "{HEADING}{kind} {name}{HEADING:#}: {style}{state}{style:#}"
    );
}

/// `  label      value`, the value broken at its spaces where it is too long.
fn field(out: &mut String, label: &str, value: &str) {
    let mut column = INDENT;
    let _ = write!(out, "  {label:<width$}", width = INDENT - 2);
    for (i, word) in value.split(' ').enumerate() {
        let len = word.chars().count();
        if i > 0 && column + 1 + len > WIDTH {
            let _ = write!(out, "\n{:INDENT$}", "");
            column = INDENT;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
    }
    out.push('\n');
}

fn drops(out: &mut String, counts: &Counts) {
    if !counts.is_empty() {
        field(out, "drops", &reasons(counts));
    }
}

/// The most frequent first.
fn reasons(counts: &Counts) -> String {
    let mut list: Vec<(&String, &u64)> = counts.iter().collect();
    list.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let list: Vec<String> = list
        .iter()
        .map(|(reason, n)| format!("{} {reason}", count(**n)))
        .collect();
    list.join(", ")
}

fn traffic(traffic: Traffic) -> String {
    format!("{} frames, {}", count(traffic.frames), bytes(traffic.bytes))
}

#[cfg(test)]
mod tests;
