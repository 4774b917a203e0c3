//! `packtrain bench pace`: rate control as in the CPS paper, on its long line: 599 Mbit/s of IP, a round trip of 198 ms, a
//! gigabit sender. CUBIC, Reno, BBR and connections that are spaced, in turns, at small and large buffers of the
//! bottleneck. Losses, queues and times are read from captures of the lab's wires and the emulator's counters, never from
//! what a sender says of itself; with each row stands what carried it, and how late the wires ran.

mod again;
mod auto;
mod connections;
mod flow;
mod gap;
mod milliseconds;
mod packets;
mod plot;
mod queue;
mod row;
mod senders;
mod share;
mod slow_start;
mod spacing;
mod stage;
mod timeline;
mod told;
mod trace;
mod way;
mod work;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueHint};
use serde::Serialize;

use self::connections::{Summary, connections_table};
use self::gap::{GapRow, gaps_table};
use self::packets::{Packets, packets_table};
use self::row::{Row, rows_table};
use self::senders::{SenderRow, senders_table};
use self::spacing::{SpacingRow, spacings_table};
use self::stage::Setting;
use self::way::Way;
use super::bench_options::{Options, Rounds};
use super::processors::Ticks;
use super::{Result, wire};

/// What can be measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// The paper's Fig. 1: gigabit and Fast Ethernet, short and long queue of the sender
    Senders,
    /// The paper's Fig. 2 and 4: packets in each millisecond at the receiver
    Packets,
    /// The paper's Fig. 3: throughput against the gap between frames
    Gap,
    /// Loss in slow start and after it, the bottleneck's queue, 100 MB and 1 GB
    Connections,
    /// How exactly segments are spaced on the wire
    Spacing,
    /// Processor time for a gigabyte
    Work,
    /// The share beside an ordinary connection
    Share,
    /// Streams that share a path, by a rule with `--auto`, and without
    Auto,
}

impl Rounds for Part {
    const DEFAULT: &'static str = "10";
}

/// What may be chosen of it.
#[derive(Clone, Debug, Args)]
pub struct PaceOptions {
    #[command(flatten)]
    common: Options<Part>,

    /// Only this buffer of the bottleneck, in percent of what is on the way in a round trip (5, 25 and 100, unless it is said); may be
    /// given more than once.
    #[arg(long = "buffer", value_name = "PERCENT",
          value_parser = clap::value_parser!(u16).range(1..=400))]
    buffers: Vec<u16>,

    /// Only with segmentation by the card (TSO), or without it, as the paper had it.
    #[arg(long, value_name = "on|off")]
    tso: Option<OnOff>,

    /// Only these ways: cubic, reno, bbr, cps; may be given more than once.
    #[arg(long = "way", value_name = "WAY")]
    ways: Vec<Chosen>,

    /// 100 MB a connection instead of 1 GB.
    #[arg(long)]
    short: bool,

    /// The receiver's buffer for a new connection (the middle of its tcp_rmem) of `--part connections`: its first window is half of it, and
    /// grows to three times as much in a round trip. Linux has 128.
    #[arg(long, value_name = "KIB", default_value_t = (stage::RECEIVE_BUFFER >> 10) as u32,
          value_parser = clap::value_parser!(u32).range(4..=131_072))]
    receive_buffer: u32,

    /// Write plots (SVG) and what they are of (CSV) into this directory; of `--part connections` and `auto` a time line of each run (CSV).
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    plots: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OnOff {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Chosen {
    Cubic,
    Reno,
    Bbr,
    Cps,
}

impl Chosen {
    const ALL: [Chosen; 4] = [Chosen::Cubic, Chosen::Reno, Chosen::Bbr, Chosen::Cps];

    fn way(self) -> Way {
        match self {
            Chosen::Cubic => way::CUBIC,
            Chosen::Reno => way::RENO,
            Chosen::Bbr => way::BBR,
            Chosen::Cps => way::CPS_FIRST,
        }
    }
}

/// Buffers of the bottleneck, in percent of what is on the way.
const BUFFERS: [u16; 3] = [5, 25, 100];

/// What was measured so far, and what is to be.
#[derive(Debug)]
struct Bench<'a> {
    packtrain: &'a Path,
    rounds: usize,
    is_short: bool,
    ways: Vec<Way>,
    buffers: Vec<u16>,
    offloads: Vec<bool>,
    receive_buffer: u64,
    /// Where plots go.
    plots: Option<&'a Path>,
    /// There is no `pace link` here.
    has_no_link_pacer: bool,
    /// Runs that were made again, because the wires could not tell.
    made_again: Cell<u32>,
    rows: Vec<Row>,
    senders: Vec<SenderRow>,
    packets: Vec<Packets>,
    gaps: Vec<GapRow>,
    connections: Vec<Summary>,
    spacings: Vec<SpacingRow>,
}

#[derive(Clone, Debug, Serialize)]
struct Report {
    kernel: String,
    cpus: usize,
    rounds: usize,
    /// The share of the processors' time in which something else had them.
    stolen: Option<f64>,
    /// Why there are no figures of these ways.
    unavailable: Vec<String>,
    /// Runs of connections, alone and together (`auto`), that were made again because the wires were away or could not tell.
    made_again: u32,
    figures: Vec<Row>,
    senders: Vec<SenderRow>,
    packets: Vec<Packets>,
    gaps: Vec<GapRow>,
    connections: Vec<Summary>,
    spacings: Vec<SpacingRow>,
}

/// Measures everything, prints the tables, and writes the report. Whether every promise holds.
pub fn run(packtrain: &Path, options: &PaceOptions) -> Result<bool> {
    super::check_available()?;
    let since = Ticks::now().ok();
    let mut unavailable = Vec::new();
    let mut bench = Bench::new(packtrain, options, &mut unavailable);
    let parts = [
        (
            Part::Senders,
            senders::measure as fn(&mut Bench<'_>) -> Result<()>,
        ),
        (Part::Packets, packets::measure),
        (Part::Gap, gap::measure),
        (Part::Connections, connections::measure),
        (Part::Spacing, spacing::measure),
        (Part::Work, work::measure),
        (Part::Share, share::measure),
        (Part::Auto, auto::measure),
    ];
    for (part, measure) in parts {
        if options.common.wants(&part) {
            measure(&mut bench)?;
        }
    }
    let stolen = since.zip(Ticks::now().ok());
    let report = Report {
        kernel: wire::version_of("uname", "-r"),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        rounds: bench.rounds,
        stolen: stolen.map(|(then, now)| now.stolen_since(then)),
        unavailable,
        made_again: bench.made_again.get(),
        figures: bench.rows,
        senders: bench.senders,
        packets: bench.packets,
        gaps: bench.gaps,
        connections: bench.connections,
        spacings: bench.spacings,
    };
    print(&report);
    options.common.write(&report)?;
    Ok(report.figures.iter().all(|row| row.met))
}

fn print(report: &Report) {
    let tables = [
        (report.senders.is_empty(), senders_table(&report.senders)),
        (report.packets.is_empty(), packets_table(&report.packets)),
        (report.gaps.is_empty(), gaps_table(&report.gaps)),
        (
            report.connections.is_empty(),
            connections_table(&report.connections),
        ),
        (report.spacings.is_empty(), spacings_table(&report.spacings)),
        (report.figures.is_empty(), rows_table(&report.figures)),
    ];
    for (_, table) in tables.iter().filter(|(is_empty, _)| !is_empty) {
        print!("\n{table}");
    }
    if let Some(verdict) = senders::verdict(&report.senders) {
        println!("\n{verdict}");
    }
    println!(
        "\nmedian [least … most] of {} rounds in turns; Linux {}, {} CPUs, {:.1} % of them stolen",
        report.rounds,
        report.kernel,
        report.cpus,
        100.0 * report.stolen.unwrap_or(f64::NAN)
    );
    if report.made_again > 0 {
        println!(
            "{} runs were made again: the wires were away, or could not tell",
            report.made_again
        );
    }
    for why in &report.unavailable {
        println!("{why}");
    }
}

impl<'a> Bench<'a> {
    fn new(
        packtrain: &'a Path,
        options: &'a PaceOptions,
        unavailable: &mut Vec<String>,
    ) -> Bench<'a> {
        let chosen = match options.ways.is_empty() {
            true => &Chosen::ALL[..],
            false => &options.ways,
        };
        let mut ways: Vec<Way> = chosen.iter().map(|chosen| chosen.way()).collect();
        if chosen.contains(&Chosen::Cps) && !knows(packtrain, &["pace", "tcp"]) {
            unavailable.push("no figures of cps: this packtrain has no `pace tcp`".into());
            ways.retain(|way| *way != way::CPS_FIRST);
        }
        let has_no_link_pacer = !knows(packtrain, &["pace", "link"]);
        if has_no_link_pacer && options.common.wants(&Part::Gap) {
            unavailable.push("no figures of gaps: this packtrain has no `pace link`".into());
        }
        Bench {
            packtrain,
            rounds: options.common.rounds(),
            is_short: options.short,
            ways,
            buffers: match options.buffers.is_empty() {
                true => BUFFERS.to_vec(),
                false => options.buffers.clone(),
            },
            offloads: match options.tso {
                None => vec![false, true],
                Some(which) => vec![which == OnOff::On],
            },
            receive_buffer: u64::from(options.receive_buffer) << 10,
            plots: options.plots.as_deref(),
            has_no_link_pacer,
            made_again: Cell::new(0),
            rows: Vec::new(),
            senders: Vec::new(),
            packets: Vec::new(),
            gaps: Vec::new(),
            connections: Vec::new(),
            spacings: Vec::new(),
        }
    }

    /// Each buffer, without segmentation by the card and with it.
    fn settings(&self) -> Vec<Setting> {
        let offloads = self.offloads.iter();
        let both = offloads.flat_map(|&offload| {
            let buffers = self.buffers.iter();
            buffers.map(move |&percent| Setting {
                buffer: Some(f64::from(percent) / 100.0),
                offload,
                receive_buffer: self.receive_buffer,
                ..Setting::PAPER
            })
        });
        both.collect()
    }

    fn tell(&self, part: &str, round: usize, setting: &Setting, way: &str) {
        eprintln!(
            "{part}: round {} of {}, {setting}, {way}",
            round + 1,
            self.rounds,
        );
    }
}

/// Whether this program has such a command.
fn knows(packtrain: &Path, words: &[&str]) -> bool {
    let mut command = Command::new(packtrain);
    command.args(words).arg("--help");
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    quiet
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
