//! The command line as clap reads it, with the help that a person sees.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint, value_parser};
use clap_complete::Shell;
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_proto::wire::hello::VLAN_IDS;

use super::class::ClassArguments;
use super::error::exit_codes_help;
use super::link::LinkArguments;
use crate::lab::bench_options::Options;
use crate::lab::{
    bench_aggregation, bench_compression, bench_filter, bench_lab, bench_line, bench_links,
    bench_pace, bench_path, bench_trunk, bench_xlf,
};
use crate::linux::netlink::IpPrefix;
use crate::settings::compress::CompressPolicy;
use crate::settings::dfap::{ModePolicy, parse_ether_type, parse_tick};
use crate::settings::dictionary::{self, DictionaryFile};
use crate::settings::flows::{FlowQueue, parse_elephant_bytes, parse_flow_queue};
use crate::settings::links::MemberLink;
use crate::settings::liveness::{Detection, parse_detection, parse_hold_time};
use crate::settings::packing::PackPolicy;
use crate::settings::repair::{RepairPolicy, parse_repair};
use crate::settings::sand::{SandDelay, parse_sand_delay};
use crate::settings::size::SizePolicy;
use crate::settings::values::{
    BalancePolicy, InterfaceName, LogLevel, PathPolicy, parse_address, parse_mac,
};
use crate::stay::{SECONDS_MAX, SECONDS_MIN};

const EXAMPLES: &str = "\
Examples:
  packtrain up pt0 --link eth1 --address 10.9.0.1/24
  packtrain status pt0
  packtrain link add pt0 eth2
  packtrain peer list pt0
  packtrain down pt0

Each command has examples of its own: packtrain up --help";

/// One virtual Ethernet interface over one or several real ones.
///
/// Frames that the host sends into the virtual interface travel as a packet train: packed together
/// when small, kept whole when huge, and delivered at the other side in order, whole and once.
/// Hosts without packtrain on the same segment see ordinary frames.
#[derive(Debug, Parser)]
#[command(name = "packtrain", version, after_help = EXAMPLES)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{}", exit_codes_help()))]
#[command(
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Up(UpArguments),
    Run(RunArguments),
    Status(StatusArguments),
    Link(LinkArguments),
    Peer(PeerArguments),
    Class(ClassArguments),
    Events(super::events::EventsArguments),
    Capture(super::capture::CaptureArguments),
    Filter(super::filter::FilterArguments),
    Pace(super::pace::PaceArguments),
    Dictionary(DictionaryArguments),
    Whatif(super::whatif::WhatifArguments),
    Sim(super::sim::SimArguments),
    Down(DownArguments),
    /// Show packtrain at work: three hosts in network namespaces, with and without it.
    Demo,
    Lab(super::lab::LabArguments),
    Bench(BenchArguments),
    /// Print a completion script for a shell.
    #[command(after_help = "\
Examples:
  packtrain completions bash > /etc/bash_completion.d/packtrain
  packtrain completions zsh > \"${fpath[1]}/_packtrain\"")]
    Completions {
        /// The shell to print it for.
        shell: Shell,
    },
    /// Print the version of the program and of the wire format.
    Version,
    /// What a daemon starts for a line that stays: standard input is the socket by which it is told what to keep.
    #[command(hide = true)]
    Keep {
        name: InterfaceName,
    },
}

/// Dictionaries: what payload has in common, so that even the first frame of a train shrinks.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct DictionaryArguments {
    #[command(subcommand)]
    pub command: DictionaryCommand,
}

#[derive(Debug, Subcommand)]
pub enum DictionaryCommand {
    Train(DictionaryTrainArguments),
}

/// Make a dictionary of captures, and tell what it brings.
///
/// It is made of the first half of the frames, and tried on the second one. Both ends need the same file. It holds
/// pieces of what was captured: treat it as you treat the captures.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain dictionary train traffic.pcap --output traffic.dict
  packtrain dictionary train monday.pcapng.gz tuesday.pcapng.gz --output api.dict --size 16384
  packtrain up pt0 --link eth1 --dictionary traffic.dict")]
pub struct DictionaryTrainArguments {
    /// Captures, pcap or pcapng, also packed by gzip or zstd; - is standard input.
    #[arg(value_name = "CAPTURE", required = true, value_hint = ValueHint::FilePath)]
    pub captures: Vec<PathBuf>,

    /// The file to write it to; one that is there already is not written over.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// Largest size of it, 256 to 65536; more than 16384 seldom brings more.
    #[arg(long, value_name = "BYTES", default_value_t = 8192, value_parser = value_parser!(u32).range(256..=65536))]
    pub size: u32,

    /// Print a JSON document.
    #[arg(long)]
    pub json: bool,
}

/// Start a line: create the virtual interface and put it to work.
///
/// Returns when the line stands: the interface exists, is up and has its addresses. A link that
/// does not exist yet, or has no carrier, does not stop the line: it joins when it appears.
/// Everything that is changed on the host is undone when the line ends, however it ends.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain up pt0 --link eth1 --address 10.9.0.1/24
  packtrain up pt0 --link eth1 --link eth2 --address 10.9.0.1/24 --address fd00::1/64
  packtrain up pt0 --link eth1 --link wwan0,tier=2,rate=20mbit --address 10.9.0.1/24
  packtrain up pt0 --link eth1 --mtu 9000 --foreground --log-level debug
  ip netns exec blue packtrain up pt0 --link veth0 --address 10.9.0.2/24")]
pub struct UpArguments {
    /// Name of the virtual interface, which is also the line's.
    pub name: InterfaceName,

    /// An interface to send over; give it again for each further one. Behind its name may stand what it is used
    /// for: its tier, 1 to 9 (it carries nothing while a link of a lower one works), its weight, 1 to 100, a rate that it
    /// is not believed to exceed, as in 20mbit, and `lag` where the switch has it in a static link aggregation with others that have it.
    #[arg(
        long = "link",
        value_name = "IF[,tier=N][,weight=N][,rate=RATE][,lag]",
        required = true
    )]
    pub links: Vec<MemberLink>,

    /// An IP address of the virtual interface, with prefix length; may be given again.
    #[arg(long = "address", value_name = "CIDR", value_parser = parse_address)]
    pub addresses: Vec<IpPrefix>,

    /// MTU of the virtual interface, 68 to 65521; it may exceed that of the links.
    #[arg(long, value_name = "BYTES", default_value_t = u32::from(crate::settings::MTU_DEFAULT))]
    pub mtu: u32,

    /// MAC address of the virtual interface [default: derived from the first link's and the name,
    /// so that it stays the same].
    #[arg(long, value_name = "MAC", value_parser = parse_mac)]
    pub mac: Option<MacAddr>,

    /// Number of the line: hosts of different lines ignore each other.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub line_id: u32,

    /// Never send full-size frames as they are, under a second MAC address of the link: for
    /// switches with port security.
    #[arg(long)]
    pub no_marked_frames: bool,

    /// Which way frames take.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    pub path: PathPolicy,

    /// A VLAN, 1 to 4094, that nothing else on the links uses: there frames go past the engine where a switch
    /// passes only the links' own addresses. The peers name the same.
    #[arg(long, value_name = "ID", value_parser = value_parser!(u16).range(i64::from(*VLAN_IDS.start())..=i64::from(*VLAN_IDS.end())))]
    pub direct_vlan: Option<u16>,

    /// Which of several links a train takes.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t)]
    pub balance: BalancePolicy,

    /// Of several links to a host, one that is silent for so long is dead: 10ms to 2s, or off.
    #[arg(long, value_name = "TIME", value_parser = parse_detection, default_value = "40ms")]
    pub liveness: Detection,

    /// So long a link has to work that failed, before it carries anything again; twice that the second
    /// time, and so on.
    #[arg(long, value_name = "TIME", value_parser = parse_hold_time, default_value = "100ms")]
    pub hold_time: std::time::Duration,

    /// What one of several links has lost goes again if it may arrive so soon after it left first: 1ms to 1s,
    /// or off. So does what an only one loses by bit errors.
    #[arg(long, value_name = "TIME", value_parser = parse_repair, default_value = "50ms")]
    pub repair: RepairPolicy,

    /// How long a small frame may wait at a link behind longer ones, at the link's rate: 50us to 100ms, or off. Longer
    /// frames are cut for it, and no more stands on the link. What goes past the engine to an only link of 200 Mbit/s
    /// to 2 Gbit/s passes an interface of ours meanwhile (ptqN); with "off" there is none.
    #[arg(long, value_name = "TIME", value_parser = parse_sand_delay, default_value = "200us")]
    pub max_sand_delay: SandDelay,

    /// How long trains are: what carries most for TCP as each link is measured to lose bits (tcp), what Lemma 7.1 of the
    /// XLF paper says (lemma), or so many bytes, 256 to 65521.
    #[arg(long, value_name = "LAW", default_value = "tcp")]
    pub size: SizePolicy,

    /// Let links of a higher tier carry also what all of the lower ones have no room for.
    #[arg(long)]
    pub tier_spill: bool,

    /// From how many bytes on a flow is an elephant, 1000b to 1024mb; so long as it has sent no more, it is a mouse.
    #[arg(long, value_name = "SIZE", value_parser = parse_elephant_bytes, default_value = "50000b")]
    pub elephant_bytes: u32,

    /// How much one flow may have waiting, 128kb to 16mb, or none: what all may.
    #[arg(long, value_name = "SIZE", value_parser = parse_flow_queue, default_value = "8mb")]
    pub flow_queue: FlowQueue,

    /// Let frames of flows that are no elephants go before those of elephants, up to half of what a link carries.
    #[arg(long)]
    pub short_flows_first: bool,

    /// Where a queue stands, drop frames also of senders that understand marks (ECN).
    #[arg(long)]
    pub no_ecn: bool,

    /// What to speak with hosts that speak it too.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub mode: ModePolicy,

    /// When frames leave that no class matches, as `packtrain class add --pack` has it [default: queued; in
    /// mode dfap dfap-random].
    #[arg(long, value_name = "WHEN")]
    pub pack: Option<PackPolicy>,

    /// What of frames that no class matches is compressed, to peers that take it.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub compress: CompressPolicy,

    /// Neither send trains that are coded or compressed, whatever classes say, nor let peers send such.
    #[arg(long)]
    pub no_coded_trains: bool,

    /// Compress payload with this dictionary to and from peers that have the same one, on links slow enough; see
    /// `packtrain dictionary train`.
    #[arg(long, value_name = "FILE", value_parser = dictionary::parse, value_hint = ValueHint::FilePath)]
    pub dictionary: Option<DictionaryFile>,

    /// EtherType of aggregates of the DFAP paper: 0xbbbb or 0xaaaa.
    #[arg(long, value_name = "TYPE", value_parser = parse_ether_type, default_value = "0xbbbb")]
    pub dfap_ether_type: u16,

    /// MAC address of a host that takes aggregates and does not say so itself; may be given again.
    #[arg(long = "dfap-station", value_name = "MAC", value_parser = parse_mac)]
    pub dfap_stations: Vec<MacAddr>,

    /// Put packets into aggregates in the DFAP paper's literal order, which reorders flows.
    #[arg(long)]
    pub dfap_strict: bool,

    /// What the waits of dfap-random and dfap-straight are multiples of, 50us to 100ms.
    #[arg(long, value_name = "TIME", value_parser = parse_tick, default_value = "10ms")]
    pub dfap_tick: std::time::Duration,

    /// Let what goes directly flow on for so many seconds when the daemon ends, until it is started
    /// again [default without a value: 60].
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
          default_missing_value = "60", value_parser = value_parser!(u64).range(SECONDS_MIN..=SECONDS_MAX))]
    pub stay: Option<u64>,

    /// Start even when none of the links exists yet.
    #[arg(long)]
    pub wait_links: bool,

    /// Stay in the foreground and log to standard error.
    #[arg(long)]
    pub foreground: bool,

    /// How much to log.
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    pub log_level: LogLevel,

    /// Set by `up` for the process that it leaves behind: standard output is the pipe over which
    /// it says that the line stands.
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// Start a line from a configuration file, and stay in the foreground.
///
/// The file says all that `packtrain up` takes on its command line; docs/configuration.md
/// describes it. Mistakes are told with file, line and key, all at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain run /etc/packtrain/pt0.toml
  packtrain run --check /etc/packtrain/pt0.toml

A file:
  name = \"pt0\"
  addresses = [\"10.9.0.1/24\"]
  [[link]]
  name = \"eth1\"")]
pub struct RunArguments {
    /// The configuration file.
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Let what goes directly flow on for so many seconds when the daemon ends, until it is started
    /// again [default without a value: 60].
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
          default_missing_value = "60", value_parser = value_parser!(u64).range(SECONDS_MIN..=SECONDS_MAX))]
    pub stay: Option<u64>,

    /// Only say whether the file is right.
    #[arg(long)]
    pub check: bool,
}

/// Show the lines of this network namespace: links, peers, trains, drops.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain status
  packtrain status pt0
  packtrain status pt0 --json | jq '.links[] | {name, state, rate_bps}'

The JSON document is described in docs/status.schema.json. Without a name, --json prints an array
of documents.")]
pub struct StatusArguments {
    /// The line to show [default: all].
    pub name: Option<InterfaceName>,

    /// Print the document for programs.
    #[arg(long)]
    pub json: bool,
}

/// Look at the hosts with packtrain that a line has found.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct PeerArguments {
    #[command(subcommand)]
    pub command: PeerCommand,
}

#[derive(Debug, Subcommand)]
pub enum PeerCommand {
    /// List the peers of a line.
    #[command(after_help = "\
Examples:
  packtrain peer list pt0
  packtrain peer list pt0 --json | jq -r '.[].addresses[0]'")]
    List {
        /// The line.
        name: InterfaceName,

        /// Print them for programs: the `peers` of the status document.
        #[arg(long)]
        json: bool,
    },
}

/// End a line, and undo everything that it changed on the host.
///
/// Returns when all is undone. Also cleans up after a line that was killed.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
#[command(after_help = "\
Examples:
  packtrain down pt0
  packtrain down --all")]
pub struct DownArguments {
    /// The line to end.
    pub name: Option<InterfaceName>,

    /// All lines of this network namespace.
    #[arg(long)]
    pub all: bool,
}

/// Measure a line against the plain link below it, in network namespaces.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct BenchArguments {
    #[command(subcommand)]
    pub command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// One line over one link: goodput, small messages, round trips, memory, time to start.
    ///
    /// Rounds of the plain link and of the line take turns; the table has medians with their
    /// intervals, and what each has to be at least.
    #[command(after_help = "\
Examples:
  packtrain bench line
  packtrain bench line --rounds 9 --json line.json
  packtrain bench line --part shaped --part beside")]
    Line(Options<bench_line::Part>),
    /// One line over several links: goodput, cut cables, added delay.
    ///
    /// Against a line over one link, the plain link and MPTCP, in turns; a table has medians with
    /// their intervals, what each has to be, and how much went over each link.
    #[command(after_help = "\
Examples:
  packtrain bench links
  packtrain bench links --part pings --part transfer --rounds 3")]
    Links(Options<bench_links::Part>),
    /// Several links as trunks are compared: equal and unequal ones, lossy, dead and dying ones.
    ///
    /// One CUBIC flow over `pt0`s links against `pt0` over the better one and the bare wire, and against MPTCP over the same
    /// wires, in turns; links that are cut, die silently or flap under a transfer; processor time. With each row: what each
    /// link and each subflow carried.
    #[command(after_help = "\
Examples:
  packtrain bench trunk
  packtrain bench trunk --part two --part unequal --rounds 3 --json trunk.json")]
    Trunk(Options<bench_trunk::Part>),
    /// What a receive filter brings under a flood, and what a drop costs.
    ///
    /// Live XDP frames in the NIMA paper's mix come to a veth as from a card, with and without a filter in turns: what is
    /// handled and what is useful at rising load, in the form of the paper's Fig. 5 and 7; when the backlog queue is full;
    /// processor time; an HTTP server meanwhile. A drop is held against xdp-filter (Debian: xdp-tools), and a rule's cost
    /// of 10,000 prefixes against that of 10. Each row says by counters what came and what was dropped.
    #[command(after_help = "\
Examples:
  packtrain bench filter
  packtrain bench filter --part drop --part prefixes --rounds 9 --json drop.json")]
    Filter(Options<bench_filter::Part>),
    /// Rate control on a long line: what spacing saves of losses, queues and time.
    ///
    /// The line of the CPS paper (599 Mbit/s of IP, a round trip of 198 ms, a gigabit sender), with buffers of 5, 25 and 100 % of
    /// what is on the way: CUBIC, Reno, BBR and spaced connections in turns. Losses in slow start and after it, the
    /// bottleneck's queue and the time for 100 MB and 1 GB are read from captures of the wires; each row says
    /// what carried it, and how late the wires ran. A full run takes hours.
    #[command(after_help = "\
Examples:
  packtrain bench pace
  packtrain bench pace --part connections --buffer 5 --tso off --rounds 1 --short")]
    Pace(bench_pace::PaceOptions),
    /// Very large frames for elephants beside packets for mice, as in the XLF paper.
    ///
    /// Each part is measured with and without what is promised in turns: medians with their intervals, what each has to
    /// be, and which path carried the frames.
    #[command(after_help = "\
Examples:
  packtrain bench xlf
  packtrain bench xlf --part jain --part units --rounds 3 --json xlf.json")]
    Xlf(Options<bench_xlf::Part>),
    /// The lab's wires: what they carry, and whether they do what is set.
    ///
    /// Throughput over 198 ms and over none, small frames, the time until 8 hosts stand, and all that
    /// `packtrain lab check` measures. With each figure: how many frames crossed, how large they were,
    /// what was dropped, and how late the wire ran.
    #[command(after_help = "\
Examples:
  packtrain bench lab
  packtrain bench lab --part long --rounds 3")]
    Lab(Options<bench_lab::Part>),
    /// What passing costs, and what packing gains, by the direct path and by the engine.
    ///
    /// `pt0`, as it is and with `--path engine`, against the plain link in the same round: bulk TCP and
    /// UDP, processor time, idle round trips, small messages, queues behind 100 Mbit/s, a wire with a hidden
    /// limit, changes of path under load; VXLAN and WireGuard beside them. With each part: how many
    /// frames went directly, by the engine, and in a train.
    #[command(after_help = "\
Examples:
  packtrain bench path
  packtrain bench path --part bulk --part idle --rounds 9 --json path.json")]
    Path(Options<bench_path::Part>),
    /// What packing small frames brings, and what it costs.
    ///
    /// `pt0` against the plain link in the same round: many small flows over 5000 packets a second, of which
    /// the line is told or not; messages that exhaust the processors; requests and answers, alone and beside
    /// a TCP flow; telephone calls beside one; clients of a server at a hub, for each way of packing; and
    /// the processor time of a small frame. Each row says which path carried it, and how many frames a train
    /// held.
    #[command(after_help = "\
Examples:
  packtrain bench aggregation
  packtrain bench aggregation --part calls --part hub --rounds 3 --json calls.json")]
    Aggregation(Options<bench_aggregation::Part>),
    /// What coded trains bring: headers told apart, payload compressed.
    ///
    /// `pt0` against the plain link in the same round, and against a line that does not code: small frames of many
    /// flows over 5000 packets a second, of which the line is told or not; how many telephone calls and players of a game
    /// 1 Mbit/s carries well; requests of two kinds over 10 Mbit/s; TCP, which may not be slower for it; and coding by itself,
    /// on one core. Each row says which path carried it, and how many frames a train held.
    #[command(after_help = "\
Examples:
  packtrain bench compression
  packtrain bench compression --part calls --rounds 3 --json calls.json")]
    Compression(Options<bench_compression::Part>),
    /// Carry frames between a link and a new TAP, and nothing else: what `line` compares with.
    #[command(hide = true)]
    Relay { link: String, tap: String },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_benchmark_has_rounds_of_its_own_unless_it_is_told() {
        let rounds = |words: &[&str]| {
            let words = [&["packtrain", "bench"][..], words].concat();
            match Arguments::parse_from(words).command {
                Command::Bench(BenchArguments {
                    command: BenchCommand::Line(options),
                }) => options.rounds(),
                Command::Bench(BenchArguments {
                    command: BenchCommand::Path(options),
                }) => options.rounds(),
                _ => unreachable!("one of the two"),
            }
        };
        // One after the other in one process: none may have the other's.
        assert_eq!((rounds(&["line"]), rounds(&["path"])), (5, 7));
        assert_eq!(rounds(&["path", "--rounds", "3"]), 3);
    }

    #[test]
    fn every_command_has_help_and_those_of_daily_use_have_examples() {
        let mut root = Arguments::command();
        root.build();
        for command in root.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
        for name in ["up", "run", "status", "capture", "down"] {
            let help = root
                .find_subcommand(name)
                .unwrap()
                .get_after_help()
                .unwrap()
                .to_string();
            assert!(help.contains("Examples:"), "{name}");
        }
        for group in ["link", "peer", "class", "sim"] {
            for command in root.find_subcommand(group).unwrap().get_subcommands() {
                let help = command.get_after_help().map(ToString::to_string);
                let shown = help.is_some_and(|help| help.contains("Examples:"));
                assert!(shown, "{group} {}", command.get_name());
            }
        }
    }
}
