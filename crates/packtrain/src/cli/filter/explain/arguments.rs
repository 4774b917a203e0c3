//! The words of `packtrain filter explain`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use packtrain_proto::filter::Policy;

use crate::settings::values::InterfaceName;

/// Say of each frame of a capture whether a filter would drop it, and why.
///
/// Nothing is attached. The frames are judged as if they came in now: for an interface of this machine as it is, or for a
/// host that a file describes, which needs no rights. Who else on the host may want frames (captures, bridges, VLANs,
/// programs at the interface's way in) is not looked at here, unless the file says promiscuous = true; nor are ports.
/// Rules are asked first; their limits fill in the capture's own time, and are full when it begins.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain filter explain capture.pcap
  packtrain filter explain capture.pcap --interface eth1 --summary
  packtrain filter explain capture.pcap --as printer.toml --policy nima
  packtrain filter explain capture.pcap --rules rules.toml --summary
  packtrain filter explain capture.pcap --json | jq 'select(.verdict == \"drop\")'
  tcpdump -i eth1 -Q in -w - -c 1000 | packtrain filter explain - --summary

A host in a file; mac is all that it must say:
  mac = [\"52:54:00:00:00:01\"]
  addresses = [\"10.1.0.1\", \"fd00:1::1\"]    # and the groups that go with them
  groups = [\"224.0.0.251\", \"ff02::fb\", \"01:00:5e:00:00:fb\"]
  local = [\"10.1.0.1\", \"192.0.2.0/24\"]     # what it answers ARP for [default: its IPv4 addresses]
  neighbours = [\"10.1.0.254\"]
  promiscuous = false")]
pub struct ExplainArguments {
    /// A capture, pcap or pcapng, also packed by gzip or zstd, of Ethernet; - is standard input.
    #[arg(value_name = "FRAMES.pcap", value_hint = ValueHint::FilePath)]
    pub capture: PathBuf,

    /// For this interface, as it is now [default: the only Ethernet interface that is up].
    #[arg(long, value_name = "LINK", conflicts_with = "described")]
    pub interface: Option<InterfaceName>,

    /// What is dropped when no rule says otherwise [default: as the file of rules or the filter has it, or host].
    #[arg(long, value_enum)]
    policy: Option<ExplainedPolicy>,

    /// Rules that are asked first, as `filter load` takes them [default: those of the interface's filter, if one runs].
    #[arg(long, value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub rules: Option<PathBuf>,

    /// Without the rules of the interface's filter.
    #[arg(long, conflicts_with = "rules")]
    pub no_rules: bool,

    /// For the host that this file describes.
    #[arg(long = "as", id = "described", value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub described: Option<PathBuf>,

    /// Only what there is of each protocol, cast and size, and what would become of it: the paper's tables.
    #[arg(long)]
    pub summary: bool,

    /// Print it for programs: a line of JSON a frame; of a summary, one document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExplainedPolicy {
    /// What a host cannot want.
    Host,
    /// The paper's algorithm, to the letter.
    Nima,
    /// Nothing: rules alone decide.
    None,
}

impl ExplainArguments {
    /// If one was named.
    pub fn policy(&self) -> Option<Policy> {
        self.policy.map(|policy| match policy {
            ExplainedPolicy::Host => Policy::Host,
            ExplainedPolicy::Nima => Policy::Nima,
            ExplainedPolicy::None => Policy::None,
        })
    }
}
