//! The command line of `packtrain lab`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::filter::ModePolicy;
use crate::lab::applications;
use crate::lab::standing::LabName;
use crate::lab::topology::{Change, TopologyOptions, ready};

/// Hosts and wires of one's own, to try things on: network namespaces, joined by wires that behave as
/// one says.
///
/// Needs root. Nothing of it touches a real interface.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  packtrain lab up                                  two hosts, two links, pt0 on both
  packtrain lab exec a -- ping -c3 b
  packtrain lab set a-b.0 --delay 20ms --loss 1%    while traffic runs
  packtrain lab cut a-b.0
  packtrain lab capture a-b.0 -w - | tshark -l -r -
  packtrain lab list
  packtrain lab down

docs/lab.md walks through all of it."
)]
pub struct LabArguments {
    #[command(subcommand)]
    pub command: LabCommand,
}

/// Which lab, where several stand.
#[derive(Debug, Args)]
pub struct WhichLab {
    /// The lab, where several stand.
    #[arg(long = "lab", value_name = "NAME")]
    pub name: Option<LabName>,
}

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    Up(Box<UpArguments>),
    /// Run a program on a host; names of hosts are found there.
    ///
    /// `b` is the host b on its line; `b.eth0` is its first interface, past the line. Ends with the
    /// program's exit code.
    #[command(after_help = "\
Examples:
  packtrain lab exec b -- iperf3 -s -D
  packtrain lab exec a -- iperf3 -c b
  packtrain lab exec a -- iperf3 -c b.eth0      the bare first link
  packtrain lab exec a -- packtrain status")]
    Exec {
        #[command(flatten)]
        lab: WhichLab,

        /// The host.
        host: String,

        /// The program and its arguments.
        #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM",
              value_hint = ValueHint::CommandWithArguments)]
        words: Vec<OsString>,
    },
    /// Open a shell on a host.
    #[command(after_help = "\
Examples:
  packtrain lab shell a
  packtrain lab shell --lab second a")]
    Shell {
        #[command(flatten)]
        lab: WhichLab,

        /// The host.
        host: String,
    },
    /// List hosts, and wires with their settings, state and counters.
    #[command(after_help = "\
Examples:
  packtrain lab list
  packtrain lab list --json | jq '.[0].wires[] | {name, carrier}'

The JSON document is described in docs/lab.schema.json.")]
    List {
        #[command(flatten)]
        lab: WhichLab,

        /// Print it for programs.
        #[arg(long)]
        json: bool,
    },
    /// Change a wire, also while traffic runs over it.
    ///
    /// What is not named stays as it is. What stands in its queue, and what is on its way, stays.
    #[command(
        arg_required_else_help = true,
        after_help = "\
Examples:
  packtrain lab set a-b.0 --rate 10mbit --delay 5ms --jitter 1ms --loss 2%
  packtrain lab set a-b.0 --from a --loss gilbert:1%,25%,0%,50%
  packtrain lab set a-b.0 --loss none"
    )]
    Set {
        #[command(flatten)]
        lab: WhichLab,

        /// The wire, as in `lab list`.
        wire: String,

        /// Only the direction in which this end sends.
        #[arg(long, value_name = "NODE")]
        from: Option<String>,

        #[command(flatten)]
        change: Box<Change>,
    },
    /// Cut a wire: both ends lose their carrier.
    #[command(after_help = "\
Examples:
  packtrain lab cut a-b.0
  packtrain lab cut --silent a-b.0             frames vanish, and no end is told
  packtrain lab cut --silent --from a a-b.0    only those that a sends")]
    Cut {
        #[command(flatten)]
        lab: WhichLab,

        /// The wire, as in `lab list`.
        wire: String,

        /// Frames vanish, and both ends keep their carrier.
        #[arg(long)]
        silent: bool,

        /// With --silent: only the direction in which this end sends.
        #[arg(long, value_name = "NODE", requires = "silent")]
        from: Option<String>,
    },
    /// Mend a wire that was cut, silently or not.
    #[command(after_help = "\
Examples:
  packtrain lab mend a-b.0
  packtrain lab mend --from a a-b.0            of what was cut silently, only one direction")]
    Mend {
        #[command(flatten)]
        lab: WhichLab,

        /// The wire, as in `lab list`.
        wire: String,

        /// Only the direction in which this end sends.
        #[arg(long, value_name = "NODE")]
        from: Option<String>,
    },
    Capture(CaptureArguments),
    /// Draw a lab, or a topology that is not up.
    #[command(after_help = "\
Examples:
  packtrain lab graph
  packtrain lab graph --svg > lab.svg
  packtrain lab graph star")]
    Graph {
        #[command(flatten)]
        lab: WhichLab,

        /// A file or a ready topology instead of a lab that stands.
        #[arg(value_name = "TOPOLOGY", value_hint = ValueHint::FilePath, conflicts_with = "name")]
        topology: Option<PathBuf>,

        /// As SVG.
        #[arg(long)]
        svg: bool,
    },
    Check(CheckArguments),
    /// Take a lab down: end what runs in it, remove its hosts and wires.
    #[command(after_help = "\
Examples:
  packtrain lab down
  packtrain lab down second
  packtrain lab down --all                     also what a lab left that was killed")]
    Down {
        /// The lab, where several stand.
        #[arg(id = "positional", value_name = "NAME", conflicts_with = "name")]
        name: Option<LabName>,

        #[command(flatten)]
        lab: WhichLab,

        /// All labs, and what is left of any.
        #[arg(long, conflicts_with_all = ["name", "positional"])]
        all: bool,
    },
    /// The process that carries a lab's frames; `lab up` starts it.
    #[command(hide = true)]
    Emulate,
}

/// Measure whether wires do what is set, with real traffic, in a lab of its own.
///
/// Each setting is tried on a wire between two hosts, and what arrives there is compared with
/// what was set. A run over a wire that ran late, because the machine was busy, is discarded and
/// made again. No processor sleeps while delays are measured. Fails when a setting is off.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  packtrain lab check
  packtrain lab check --short
  packtrain lab check --json | jq '.rows[] | select(.verdict != \"ok\")'
  packtrain lab check filter"
)]
pub struct CheckArguments {
    #[command(subcommand)]
    pub what: Option<CheckCommand>,

    /// A few settings, in some seconds.
    #[arg(long)]
    pub short: bool,

    /// Print the figures for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum CheckCommand {
    /// Run applications with receive filters and without: their outcome has to be the same.
    ///
    /// Each runs on a segment of its own, between two hosts, while strangers send what is for nobody there: without a
    /// filter, with one on both hosts, and where that makes sense with --ports auto. An application that needs what
    /// is not installed is skipped, and the package is named. Fails when an outcome differs, when an application does not work
    /// without a filter either, or when a filter had nothing to drop.
    #[command(after_help = "\
Examples:
  packtrain lab check filter
  packtrain lab check filter dhcp vrrp nfs
  packtrain lab check filter --mode tc
  packtrain lab check filter --policy nima                what the paper's algorithm alone would break
  packtrain lab check filter --json | jq '.rows[] | select(.verdict != \"same\")'
  packtrain lab check filter --list")]
    Filter(FilterCheckArguments),
}

#[derive(Debug, Args)]
pub struct FilterCheckArguments {
    /// Which applications [default: all].
    #[arg(value_name = "APPLICATION", value_parser = PossibleValuesParser::new(applications::all().map(|a| a.name)),
          hide_possible_values = true)]
    pub only: Vec<String>,

    /// What the filters drop.
    #[arg(long, value_enum, default_value_t)]
    pub policy: CheckedPolicy,

    /// Where the filters stand.
    #[arg(long, value_enum, default_value_t)]
    pub mode: ModePolicy,

    /// Only list the applications.
    #[arg(long, conflicts_with_all = ["json", "only"])]
    pub list: bool,

    /// Print the outcomes for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckedPolicy {
    /// What a host cannot want.
    #[default]
    Host,
    /// The paper's algorithm, to the letter, which is not made for all of these.
    Nima,
}

/// Capture what is on wires, as pcapng for Wireshark.
///
/// A frame has the time at which its last bit arrived, or at which it was dropped; then a comment says
/// why. What a host sends in one piece for its card to cut is shown as the card would have cut it. Ends
/// on Ctrl-C, or when the lab goes, and says how many frames it has captured, and how many it has not
/// because the file was written too slowly: the wires themselves never wait for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain lab capture a-b.0 -w wire.pcapng
  packtrain lab capture a-b.0 a-b.1 -c 1000 -w both.pcapng
  packtrain lab capture a-b.0 --from a -s 96 -w - | tshark -l -r -
  packtrain lab capture a-b.0 -w - | tshark -l -r - -Y 'frame.comment contains \"dropped\"'
  packtrain lab capture a-b.0 -w - | wireshark -k -i -")]
pub struct CaptureArguments {
    #[command(flatten)]
    pub lab: WhichLab,

    /// The wires, as in `lab list`.
    #[arg(required = true, value_name = "WIRE")]
    pub wires: Vec<String>,

    /// Only the directions in which this end sends.
    #[arg(long, value_name = "NODE")]
    pub from: Option<String>,

    /// The file to write; `-` is standard output.
    #[arg(short = 'w', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: Option<PathBuf>,

    /// End after so many frames.
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Most bytes kept of each frame; 0: all.
    #[arg(
        short = 's',
        long = "snap-len",
        value_name = "BYTES",
        default_value = "0",
        hide_default_value = true
    )]
    pub snap_len: u32,
}

/// Make a lab, and say what to type next.
///
/// Without a topology: two hosts with two links of 100 Mbit/s, and a line on each. It stands until
/// `packtrain lab down`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain lab up
  packtrain lab up --hosts 3 --links 2 --rate 50mbit --delay 20ms --loss 1% --no-packtrain
  packtrain lab up unequal
  packtrain lab up topology.toml --lab second
  packtrain lab up --ready                          the ready topologies")]
pub struct UpArguments {
    /// A file, or the name of a ready topology.
    #[arg(value_name = "TOPOLOGY", value_hint = ValueHint::FilePath,
          conflicts_with_all = OPTIONS)]
    pub topology: Option<PathBuf>,

    /// Name of the lab, so that several can stand.
    #[arg(long = "lab", value_name = "NAME", default_value = "lab")]
    pub name: LabName,

    /// Only list the ready topologies.
    #[arg(long)]
    pub ready: bool,

    #[command(flatten)]
    pub options: TopologyOptions,
}

/// What describes a topology itself, and says nothing beside a file.
const OPTIONS: [&str; 17] = [
    "hosts",
    "links",
    "mtu",
    "packtrain",
    "rate",
    "port_rate",
    "port_queue",
    "queue",
    "queue_discipline",
    "packets_per_second",
    "delay",
    "jitter",
    "loss",
    "bit_errors",
    "duplicate",
    "reorder",
    "corrupt",
];

/// The ready topologies, a line each.
pub fn ready_list() -> String {
    let names = ready::names();
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let line = |name: &&str| {
        let topology = ready::find(name).expect("it is listed");
        format!("{name:width$}  {}\n", topology.about.unwrap_or_default())
    };
    names.iter().map(line).collect()
}
