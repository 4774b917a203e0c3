//! `packtrain bench lab`: what the lab's wires can carry, and whether they do what is set.
//!
//! Each figure is against the value that was set, or against a target in absolute numbers: a wire has no
//! peer here. Beside it stands how many frames the wire carried for it, how large they were (64 KB where
//! GSO frames crossed whole), what it dropped, and how late it ran.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::bench_options::{Options, Rounds};
use super::check;
use super::check::stage::{Back, Stage};
use super::emulator::lateness::LatenessSummary;
use super::figure::{Target, Unit};
use super::measure::{bulk, iperf3_server};
use super::sample::Sample;
use super::standing::HeldLab;
use super::table::{Table, grouped};
use super::topology::ready;
use super::{Result, now, wire};

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// TCP over 198 ms: at 599 Mbit/s of IP, and without a rate
    Long,
    /// TCP and small frames over a wire without rate and delay
    Fast,
    /// How soon 8 hosts stand
    Stand,
    /// Each setting against what was set, as `lab check`
    Settings,
}

impl Rounds for Part {}

/// One promise, a value a round.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: &'static str,
    measured: Sample,
    unit: Unit,
    target: Target,
    met: bool,
    carried: Option<Carried>,
}

/// What the wire did for a row, in its last round.
#[derive(Clone, Copy, Debug, Serialize)]
struct Carried {
    frames: u64,
    bytes: u64,
    dropped: u64,
    lateness: LatenessSummary,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    kernel: String,
    cpus: usize,
    rounds: usize,
    real_time: bool,
    figures: Vec<Row>,
    settings: Option<check::Report>,
}

/// 599 Mbit/s over 198 ms: as much as is on the way may stand before it.
const LONG: &str = "--rate 599mbit:ip --port-rate none --queue 15mb --delay 99ms";
const LONG_BPS: f64 = 599e6;
/// Until a flow over 198 ms has its speed, and how long it is then measured.
const LONG_BEFORE: &str = "15";
const LONG_FOR: Duration = Duration::from_secs(10);
const SMALL_FRAME_BYTES: usize = 60;
const SMALL_PER_SECOND: u64 = 150_000;

struct Bench {
    stage: Stage,
    rounds: usize,
    figures: Vec<Row>,
}

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &Options<Part>) -> Result<bool> {
    let wants = |part| options.wants(&part);
    let mut bench = Bench {
        stage: Stage::set("bench", packtrain)?,
        rounds: options.rounds(),
        figures: Vec::new(),
    };
    let real_time = bench.stage.lab.status()?.real_time;
    if wants(Part::Fast) {
        bench.fast()?;
    }
    if wants(Part::Long) {
        bench.long()?;
    }
    let Bench {
        stage,
        mut figures,
        rounds,
    } = bench;
    stage.lab.down()?;
    if wants(Part::Stand) {
        figures.push(stand(packtrain, rounds)?);
    }
    let settings = match wants(Part::Settings) {
        true => {
            let (short, quiet) = (false, false);
            Some(check::run(packtrain, check::Options { short, quiet })?)
        }
        false => None,
    };
    let report = Report {
        kernel: wire::version_of("uname", "-r"),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        rounds,
        real_time,
        figures,
        settings,
    };
    print!("\n{}", table(&report.figures));
    if let Some(settings) = &report.settings {
        print!("\n{}", check::table(settings));
    }
    println!(
        "\nmedian [least … most] of {} rounds; CUBIC; Linux {}, {} CPUs",
        report.rounds, report.kernel, report.cpus
    );
    options.write(&report)?;
    let settings = report.settings.as_ref();
    let as_set = settings.is_none_or(|settings| settings.is_all(check::Verdict::Ok));
    Ok(as_set && report.figures.iter().all(|figure| figure.met))
}

impl Bench {
    /// One number of a wire with these settings, as often as there are rounds.
    fn measure(
        &mut self,
        name: &'static str,
        setting: &str,
        (unit, target): (Unit, Target),
        mut measure: impl FnMut(&Stage) -> Result<f64>,
    ) -> Result<()> {
        let mut values = Vec::new();
        let mut carried = None;
        for round in 1..=self.rounds {
            self.stage.set_wire(setting, Back::AfterTheDelay)?;
            self.stage.lab.lateness()?;
            let before = self.stage.lab.status()?;
            let value = measure(&self.stage)?;
            let after = self.stage.lab.status()?;
            let [before, after] = [before, after].map(|s| s.wires[0].directions[0].clone());
            carried = Some(Carried {
                frames: after.sent_frames - before.sent_frames,
                bytes: after.sent_bytes - before.sent_bytes,
                dropped: after.dropped.total() - before.dropped.total(),
                lateness: self.stage.lab.lateness()?,
            });
            println!("{name}, round {round}: {}", unit.show(value));
            values.push(value);
        }
        self.push(name, (unit, target), values, carried);
        Ok(())
    }

    fn push(
        &mut self,
        name: &'static str,
        (unit, target): (Unit, Target),
        values: Vec<f64>,
        carried: Option<Carried>,
    ) {
        self.figures
            .push(row(name, (unit, target), values, carried));
    }

    fn fast(&mut self) -> Result<()> {
        let _server = iperf3_server(&self.stage.b)?;
        let to = self.stage.address.to_string();
        self.measure(
            "TCP, no rate, no delay",
            "",
            (Unit::BitPerSecond, Target::AtLeast(3e9)),
            |stage| Ok(bulk(&stage.a, &to, Duration::from_secs(4), &[])?.goodput_bps),
        )?;
        self.measure(
            "small frames lost of 150,000 a second",
            "",
            (Unit::Count, Target::NeverAbove(0.0)),
            |stage| {
                let duration = Duration::from_secs(2);
                let report = stage.send(SMALL_FRAME_BYTES, Some(SMALL_PER_SECOND), duration)?;
                // Sent as many, or nothing is shown.
                let wanted = SMALL_PER_SECOND as f64 * duration.as_secs_f64() * 0.99;
                Ok(match report.sent as f64 >= wanted {
                    true => report.lost() as f64,
                    false => f64::NAN,
                })
            },
        )
    }

    fn long(&mut self) -> Result<()> {
        let _server = iperf3_server(&self.stage.b)?;
        let to = self.stage.address.to_string();
        let more = ["-O", LONG_BEFORE];
        let long = |stage: &Stage| Ok(bulk(&stage.a, &to, LONG_FOR, &more)?.goodput_bps);
        self.measure(
            "TCP over 198 ms, of 599 Mbit/s of IP",
            LONG,
            (Unit::Ratio, Target::AtLeast(0.95)),
            |stage| Ok(long(stage)? / LONG_BPS),
        )?;
        self.measure(
            "TCP over 198 ms, no rate",
            "--delay 99ms",
            (Unit::BitPerSecond, Target::AtLeast(1e9)),
            long,
        )
    }
}

/// The star has seven clients and a server.
fn stand(packtrain: &Path, rounds: usize) -> Result<Row> {
    let topology = ready::find("star").expect("it is a ready one");
    let mut values = Vec::new();
    for _ in 0..rounds {
        let start = now();
        let lab = HeldLab::up("stand", &topology, packtrain)?;
        values.push(start.elapsed().as_secs_f64() * 1e6);
        lab.down()?;
    }
    let target = Target::AtMost(3e6);
    Ok(row(
        "8 hosts with lines stand",
        (Unit::Microseconds, target),
        values,
        None,
    ))
}

fn row(
    name: &'static str,
    (unit, target): (Unit, Target),
    values: Vec<f64>,
    carried: Option<Carried>,
) -> Row {
    let measured: Sample = values.into_iter().collect();
    Row {
        name,
        met: target.is_met(&measured),
        measured,
        unit,
        target,
        carried,
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "what",
        "measured",
        "target",
        "",
        "frames",
        "bytes each",
        "dropped",
        "late by (99 %)",
    ]);
    for row in rows {
        let carried = row.carried.map(|carried| {
            [
                grouped(carried.frames as f64),
                grouped(carried.bytes as f64 / carried.frames.max(1) as f64),
                grouped(carried.dropped as f64),
                format!("{:.0} us", carried.lateness.p99_us),
            ]
        });
        let cells = [
            row.name.to_owned(),
            row.measured.show(|value| row.unit.show(value)),
            row.target.text(row.unit),
            row.target.verdict(row.met).to_owned(),
        ];
        table.row(cells.into_iter().chain(carried.unwrap_or_default()));
    }
    table
}
