//! The status of the pacer of TCP for a person.

use std::fmt::Write as _;

use crate::cli::output::{BAD, HEADING};
use crate::cli::pace::rule::table;
use crate::cli::words;
use crate::pace::tcp::document::{ByPhase, PathDocument, RuleDocument, TcpDocument};

/// Paths that are shown: those that were full last.
const PATHS_SHOWN: usize = 10;

pub fn status(document: &TcpDocument) -> String {
    let mut text = format!("{HEADING}pacer of TCP{HEADING:#}\n");
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<11}{value}");
    };
    if document.rules_only {
        line(
            "takes",
            "connections that a rule is about, of this network namespace".into(),
        );
    } else {
        line("takes", taken(document));
    }
    line(
        "spaces",
        format!(
            "in slow start, down to {} (T), as {}",
            duration(document.precision_ns),
            document.congestion_control
        ),
    );
    line("precision", precision(document));
    line("slow start", ends(document));
    let counters = &document.counters;
    let late = match counters.taken_late {
        0 => String::new(),
        late => format!(", and {late} that were there already"),
    };
    let refused = match counters.refused {
        0 => String::new(),
        refused => format!("; {BAD}{refused} could not be{BAD:#}"),
    };
    let retreated = match counters.retreated {
        0 => String::new(),
        retreated => format!(" ({retreated} lost by that)"),
    };
    let now = document.streams.len();
    line(
        "paced",
        format!("{} connections{late}{refused}; {now} now", counters.taken),
    );
    line(
        "begun",
        format!(
            "{} slow starts, {} of them on a path that was remembered, {} by a jump to half of it{retreated}",
            counters.slow_starts, counters.slow_starts_known, counters.jumped
        ),
    );
    line(
        "ended",
        format!(
            "{} at a remembered window, {} by a round trip that had grown, {} by a loss",
            counters.ended_at_path,
            counters.ended_by_delay,
            counters.cut.spacing + counters.cut.clusters
        ),
    );
    line("lost", lost(&counters.lost));
    text += &rules(&document.rules);
    text += &paths(&document.paths);
    text
}

fn rules(rules: &[RuleDocument]) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n");
    for line in table(rules).lines() {
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn taken(document: &TcpDocument) -> String {
    let ports = |name: &str, ranges: &[(u16, u16)]| {
        let words: Vec<String> = ranges
            .iter()
            .map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            })
            .collect();
        match words.is_empty() {
            true => String::new(),
            false => format!(" {name} {}", words.join(",")),
        }
    };
    let whose = match document.cgroup.as_str() {
        "/" => String::new(),
        cgroup => format!(" of {cgroup}"),
    };
    let dst = match document.dst.is_empty() {
        true => String::new(),
        false => format!(" to {}", document.dst.join(",")),
    };
    let of = match document.all_namespaces {
        true => "of all network namespaces",
        false => "of this network namespace",
    };
    format!(
        "connections{whose}{dst}{}{}, {of}",
        ports("to port", &document.dport),
        ports("from port", &document.sport)
    )
}

fn precision(document: &TcpDocument) -> String {
    let precision = &document.precision;
    if let Some(why) = &precision.why_unknown {
        return format!("{BAD}could not be measured{BAD:#} ({why})");
    }
    let Some(timer_ns) = precision.timer_precision_ns else {
        return "as it was told".into();
    };
    let us = |time: Option<f64>| duration(time.map_or(0, |us| (us * 1e3) as u64));
    let age = precision.measured_seconds_ago.unwrap_or(0.0);
    let holds = match precision.holds {
        Some(false) => format!("; {BAD}that is too much{BAD:#}"),
        _ => String::new(),
    };
    format!(
        "timers space down to {}, measured {} ago; at T gaps are off by {} (p50) and {} (p90){holds}",
        duration(timer_ns),
        words::duration(age),
        us(precision.off_p50_us),
        us(precision.off_p90_us)
    )
}

fn ends(document: &TcpDocument) -> String {
    let remembered = match document.remembered_seconds {
        Some(seconds) => format!(
            "ends at what was remembered of the path within {}",
            words::duration(seconds)
        ),
        None => "ends at a loss: paths are not remembered".into(),
    };
    match document.hystart_us {
        Some((least, most)) => format!(
            "{remembered}, or when the round trip has grown by {} to {}",
            duration(u64::from(least) * 1000),
            duration(u64::from(most) * 1000)
        ),
        None => remembered,
    }
}

fn lost(lost: &ByPhase) -> String {
    format!(
        "{} segments while they were spaced, {} in slow start after that, {} later",
        lost.spacing, lost.clusters, lost.free
    )
}

fn paths(paths: &[PathDocument]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let mut shown: Vec<&PathDocument> = paths.iter().collect();
    shown.sort_by(|a, b| {
        let age = |path: &PathDocument| path.age_seconds.unwrap_or(f64::INFINITY);
        age(a).total_cmp(&age(b))
    });
    let width = shown
        .iter()
        .take(PATHS_SHOWN)
        .map(|path| path.destination.len())
        .max();
    let width = width.unwrap_or(0).max("PATH TO".len());
    let mut text = format!(
        "\n  {HEADING}{:<width$}  {:>12}  {:>9}  {:>9}  {:>11}  {:>6}{HEADING:#}\n",
        "PATH TO", "RATE", "RTT MIN", "FULL", "CONNECTIONS", "LOSSES"
    );
    for path in shown.iter().take(PATHS_SHOWN) {
        let rate = path.rate_bps.map_or("not known".into(), words::rate);
        let age = path.age_seconds.map_or("never".into(), words::duration);
        let _ = writeln!(
            text,
            "  {:<width$}  {rate:>12}  {:>9}  {age:>9}  {:>11}  {:>6}",
            path.destination,
            duration(u64::from(path.rtt_min_us) * 1000),
            path.connections,
            path.losses
        );
    }
    if shown.len() > PATHS_SHOWN {
        let _ = writeln!(text, "  and {} more", shown.len() - PATHS_SHOWN);
    }
    text
}

fn duration(ns: u64) -> String {
    words::duration(ns as f64 / 1e9)
}
