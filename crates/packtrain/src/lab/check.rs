//! `packtrain lab check`: whether a wire does what was set, measured with real traffic.
//!
//! Two hosts, one wire, datagrams from a socket of one to a socket of the other: what arrives there,
//! and when, is compared with what was set. A wire that ran late proves nothing, either way: such a run
//! is told of, and made again.

pub(super) mod awake;
mod checks;
pub(crate) mod stage;

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;

use self::awake::Awake;
use self::checks::Check;
use self::stage::{Back, Stage};
use super::emulator::lateness::LatenessSummary;
use super::table::Table;
use super::{Error, Result};

/// Runs of one check until it is given up: on a busy machine each may be late.
const ATTEMPTS_MAX: usize = 4;

/// A wire that is to show its rate has something to send for as much of the time.
const BUSY_MIN: f64 = 0.995;

/// What is as small as a wire may be off is not seen beside hosts that take longer.
const HOSTS_MAX_US: f64 = 300.0;

/// What may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A few checks, in seconds.
    pub short: bool,
    /// Nothing to standard output while it runs.
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As set.
    Ok,
    /// Not as set, and the wire was in time.
    Off,
    /// The machine was too busy to say, each time.
    Late,
}

/// One setting: what was set, what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// As on the command line of `lab set`.
    pub setting: String,
    /// What is counted or timed.
    pub what: &'static str,
    pub unit: &'static str,
    pub set: f64,
    pub measured: f64,
    /// The least and the most that are right.
    pub within: [f64; 2],
    /// Of what is about when: how long the hosts themselves took over a bare cable, once to the wire and once from it,
    /// microseconds. It is in `within`.
    pub hosts_us: Option<f64>,
    pub verdict: Verdict,
    /// Of the run that counts.
    pub lateness: LatenessSummary,
    /// Why runs before it were discarded.
    pub discarded: Vec<Discarded>,
}

/// Why a run says nothing about its wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Discarded {
    /// The wire ran late by so much, at the 99th percentile.
    LateByUs(f64),
    /// For so many milliseconds nobody looked at the wire: the machine was away.
    AwayForMs(f64),
    /// The hosts alone took so long, without a wire.
    HostsTookUs(f64),
    /// The hosts did not send as much as it would have carried: the share of the time in which it had
    /// something to send.
    Idle(f64),
    /// This is off, but by the clock: who sends and who receives may have been late, which only the wire tells. What
    /// the wire does wrong it does each time.
    OffOnce(f64),
}

impl fmt::Display for Discarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Discarded::LateByUs(us) => write!(f, "late by {us:.0} us (99 %)"),
            Discarded::AwayForMs(ms) => write!(f, "the machine was away for {ms:.1} ms"),
            Discarded::HostsTookUs(us) => write!(f, "the hosts alone took {us:.0} us"),
            Discarded::Idle(share) => write!(f, "the hosts filled it to {:.1} %", share * 100.0),
            Discarded::OffOnce(value) => write!(f, "off, at {}", number(*value)),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub rows: Vec<Row>,
    /// Whether the kernel let the emulator run before everything else.
    pub real_time: bool,
}

impl Report {
    pub fn is_all(&self, verdict: Verdict) -> bool {
        self.rows.iter().all(|row| row.verdict == verdict)
    }

    pub fn has(&self, verdict: Verdict) -> bool {
        self.rows.iter().any(|row| row.verdict == verdict)
    }
}

/// Makes a lab, checks every setting, and takes it down.
pub fn run(packtrain: &Path, options: Options) -> Result<Report> {
    let mut stage = Stage::set("check", packtrain)?;
    let mut rows = Vec::new();
    for check in checks::all() {
        if options.short && !check.short {
            continue;
        }
        let row = measure(&mut stage, &check, options)?;
        if !options.quiet {
            say(&line(&row));
        }
        rows.push(row);
    }
    let real_time = stage.lab.status()?.real_time;
    stage.lab.down()?;
    Ok(Report { rows, real_time })
}

fn measure(stage: &mut Stage, check: &Check, options: Options) -> Result<Row> {
    let mut discarded = Vec::new();
    loop {
        // Nothing of the one before stands there, and CoDel has forgotten how often it dropped.
        stage.set_wire("", Back::AtOnce)?;
        stage.wait_until_empty()?;
        let (hosts_us, measured) = {
            let awake = check.keeps_awake.then(Awake::keep).transpose();
            let _awake = awake.map_err(|source| Error::Start {
                command: "threads that keep the processors awake".to_owned(),
                source,
            })?;
            let alone = check.hosts.map(|figure| stage.hosts_us(figure));
            let hosts_us = alone.transpose()?;
            stage.set_wire(&check.setting, Back::AtOnce)?;
            stage.lab.lateness()?;
            (hosts_us, (check.measure)(stage, options.short)?)
        };
        let lateness = stage.lab.lateness()?;
        let says_nothing = match measured.busy {
            _ if lateness.p99_us > check.late_max_us => Some(Discarded::LateByUs(lateness.p99_us)),
            _ if lateness.away_ms > check.away_max_ms => {
                Some(Discarded::AwayForMs(lateness.away_ms))
            }
            _ if hosts_us.is_some_and(|us| us > HOSTS_MAX_US) => {
                hosts_us.map(Discarded::HostsTookUs)
            }
            Some(busy) if busy < BUSY_MIN => Some(Discarded::Idle(busy)),
            _ => None,
        };
        let [least, most] = measured.within;
        let most = most + hosts_us.unwrap_or(0.0);
        let is_right = (least..=most).contains(&measured.value);
        let off_once = || {
            let counts = is_right || !check.is_timed;
            (!counts).then_some(Discarded::OffOnce(measured.value))
        };
        if let Some(why) = says_nothing.or_else(off_once) {
            discarded.push(why);
            if discarded.len() < ATTEMPTS_MAX {
                if !options.quiet {
                    say(&format!("again {}: {why}", check.name()));
                }
                continue;
            }
        }
        return Ok(Row {
            setting: check.name().to_owned(),
            what: check.what,
            unit: check.unit,
            set: measured.set,
            measured: measured.value,
            within: [least, most],
            hosts_us,
            verdict: match (says_nothing, is_right) {
                (Some(_), _) => Verdict::Late,
                (None, true) => Verdict::Ok,
                (None, false) => Verdict::Off,
            },
            lateness,
            discarded,
        });
    }
}

/// Who reads it may stop reading.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn line(row: &Row) -> String {
    let mut text = format!("{:5} {}: {} ", verdict(row), row.setting, row.what);
    let _ = write!(
        text,
        "{} (set {}) {}",
        number(row.measured),
        number(row.set),
        row.unit
    );
    text
}

fn verdict(row: &Row) -> &'static str {
    match row.verdict {
        Verdict::Ok => "ok",
        Verdict::Off => "OFF",
        Verdict::Late => "late",
    }
}

/// Four digits that count.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 1.0 => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A row for each, as it is printed at the end.
pub fn table(report: &Report) -> Table {
    let mut table = Table::new(&[
        "setting",
        "what",
        "set",
        "measured",
        "right within",
        "late by (99 %)",
        "",
    ]);
    for row in &report.rows {
        let again = match row.discarded.last() {
            None => String::new(),
            Some(last) => format!(", run {}: {last}", row.discarded.len() + 1),
        };
        table.row([
            row.setting.clone(),
            format!("{}, {}", row.what, row.unit),
            number(row.set),
            number(row.measured),
            format!("{} … {}", number(row.within[0]), number(row.within[1])),
            format!("{:.0} us{again}", row.lateness.p99_us),
            verdict(row).to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_count() {
        let texts = [148_810.4, 100.0, 20.0, 1.234, 0.01].map(number);
        assert_eq!(texts, ["148810", "100", "20", "1.23", "0.01"]);
    }
}
