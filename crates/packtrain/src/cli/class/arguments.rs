//! What can be done with classes, as the command line says it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use packtrain_proto::class::{ClassName, Match};

use crate::settings::classes::ClassPathPolicy;
use crate::settings::compress::CompressPolicy;
use crate::settings::packing::PackPolicy;
use crate::settings::repair::ClassRepair;
use crate::settings::values::InterfaceName;

/// Say which frames are treated in a way of their own, and how.
///
/// A frame is compared with the classes of a line in their order, and belongs to the first that
/// matches. docs/classes.md has the words of a match, and what each treatment does.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct ClassArguments {
    #[command(subcommand)]
    pub command: ClassCommand,
}

#[derive(Debug, Subcommand)]
pub enum ClassCommand {
    Add(ClassAddArguments),
    /// Take a class away from a line that runs.
    #[command(after_help = "\
Examples:
  packtrain class remove pt0 voice
  packtrain class remove pt0 tcp-empty --json | jq .taken")]
    Remove {
        /// The line.
        name: InterfaceName,

        /// The class.
        #[arg(value_name = "CLASS")]
        class: ClassName,

        /// Print the class for programs, as it was at last in the `classes` of the status document.
        #[arg(long)]
        json: bool,
    },
    /// List the classes of a line, and what the host has sent of each to the engine.
    #[command(after_help = "\
Examples:
  packtrain class list
  packtrain class list pt0 --json | jq '.[] | {name, taken}'")]
    List {
        /// The line [default: the only one].
        name: Option<InterfaceName>,

        /// Print them for programs: the `classes` of the status document.
        #[arg(long)]
        json: bool,
    },
    Test(ClassTestArguments),
}

/// Add a class to a line that runs.
///
/// It stands behind the classes that were added before, and before those that every line has at its
/// start. At the line's next start it is a class only if its file says so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain class add --match 'udp dport 5060' --pack now
  packtrain class add pt0 --name sensors --match 'udp dst 10.9.0.0/24 size -200' --pack 2ms
  packtrain class add pt0 --name video --match 'udp dport 5004' --loss-ok
  packtrain class add pt0 --name nfs --match 'tcp dport 2049' --path engine --before sensors
  packtrain class add pt0 --name calls --match 'udp dport 16384-32767' --pack now --duplicate
  packtrain class add pt0 --name backup --match 'tcp dport 873' --links eth2,wwan0
  packtrain class add pt0 --name orders --match 'udp dport 7400-7500' --repair lossless
  packtrain class add pt0 --name tunnel --match 'udp port 51820' --compress headers")]
pub struct ClassAddArguments {
    /// The line [default: the only one].
    pub name: Option<InterfaceName>,

    /// Which frames: conditions that must all hold, as in 'udp dport 5060-5070'.
    #[arg(long = "match", value_name = "CONDITIONS")]
    pub matches: Match,

    /// What it is called [default: class1, class2 and so on].
    #[arg(long = "name", value_name = "CLASS")]
    pub class: Option<ClassName>,

    /// When its frames leave: queued, when the link has room, with what waits already; now, ahead of
    /// all others but for those of their own flow; how long they may wait for others to fill
    /// their train, 100ms at most, as in 500us; 'scaled 2ms', that time by the part of the train that is
    /// empty; auto, where that costs nothing; dfap-random or dfap-straight, as the DFAP paper has it. Those that wait may do so 'on-backlog' only.
    #[arg(long, value_name = "WHEN", default_value_t)]
    pub pack: PackPolicy,

    /// Which way its frames take.
    #[arg(long, value_name = "PATH", value_enum, default_value_t)]
    pub path: ClassPathPolicy,

    /// Its frames may be lost with a link: over several links they may go past the engine, which keeps
    /// a copy of all others until they have arrived.
    #[arg(long)]
    pub loss_ok: bool,

    /// What of its frames is compressed, to peers that take it.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub compress: CompressPolicy,

    /// Compare frames with it before this class.
    #[arg(long, value_name = "CLASS")]
    pub before: Option<ClassName>,

    /// Send its frames by two links, where there are several: the first that arrive are delivered. It takes twice
    /// the bytes, and such frames go by the engine.
    #[arg(long)]
    pub duplicate: bool,

    /// Send its frames by these links while one of them works, and by others only when none does. They wait for no
    /// other class's there, and none for them; such frames go by the engine.
    #[arg(long, value_name = "IF,...", value_delimiter = ',')]
    pub links: Vec<InterfaceName>,

    /// What becomes of its frames that a link loses: line, as the line says it; off, they do not go again; lossless, they
    /// go again until they have arrived; or again within a time, as in 20ms. The last two hold by an only
    /// link, too; such frames go by the engine.
    #[arg(long, value_name = "WHEN", default_value_t)]
    pub repair: ClassRepair,

    /// Its share beside other classes (not possible yet).
    #[arg(long, value_name = "N")]
    pub weight: Option<String>,

    /// Print the class for programs, as in the `classes` of the status document.
    #[arg(long)]
    pub json: bool,
}

/// Say of which class each frame of a capture would be.
///
/// Nothing need run: without a line and a file it is the classes that every line has at its start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain class test capture.pcap
  packtrain class test capture.pcap --line pt0 --summary
  packtrain class test capture.pcap --file /etc/packtrain/pt0.toml --json | jq .classes
  tcpdump -i eth1 -w - -c 1000 | packtrain class test -")]
pub struct ClassTestArguments {
    /// A capture, pcap or pcapng, also packed by gzip or zstd, of Ethernet or IP; - is standard input.
    #[arg(value_name = "FILE.pcap", value_hint = ValueHint::FilePath)]
    pub capture: PathBuf,

    /// With the classes of this line, which runs.
    #[arg(long, value_name = "LINE", conflicts_with = "file")]
    pub line: Option<InterfaceName>,

    /// With the classes of this configuration file.
    #[arg(long, value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// Only how many frames are of each class.
    #[arg(long)]
    pub summary: bool,

    /// Print it for programs: frames and classes.
    #[arg(long)]
    pub json: bool,
}
