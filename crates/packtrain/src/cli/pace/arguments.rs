//! The words of `packtrain pace`.

use clap::{Args, Subcommand, ValueEnum};

use crate::settings::values::{InterfaceName, LogLevel};

/// Send so that routers on the way need not buffer: with gaps between frames.
///
/// A host that sends a window at the speed of its interface and then waits fills the buffer of every router on the way that is
/// slower. A pacer spreads what it sends: each frame of an interface is followed by a gap. It goes with its process, and
/// everything that it has changed is undone.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct PaceArguments {
    #[command(subcommand)]
    pub command: PaceCommand,
}

#[derive(Debug, Subcommand)]
pub enum PaceCommand {
    Link(LinkArguments),
    Measure(MeasureArguments),
    /// End a pacer, and undo everything that it has changed.
    #[command(after_help = "\
Examples:
  packtrain pace off eth1
  packtrain pace off")]
    Off {
        /// The interface [default: all pacers of this network namespace].
        #[arg(value_name = "LINK")]
        interface: Option<InterfaceName>,
    },
    /// Show how pacers space, and what they have sent.
    #[command(after_help = "\
Examples:
  packtrain pace status
  packtrain pace status eth1 --json | jq .gap_bytes")]
    Status {
        /// The interface [default: all pacers of this network namespace].
        #[arg(value_name = "LINK")]
        interface: Option<InterfaceName>,

        /// Print a JSON document; of all of them, a list.
        #[arg(long)]
        json: bool,
    },
}

/// Follow each frame of an interface by a gap.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain pace link eth1 --gap 512B
  packtrain pace link eth1 off")]
pub struct LinkArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,

    /// End its pacer.
    #[arg(value_enum)]
    pub off: Option<Off>,

    /// Stay in the foreground, and log to standard error.
    #[arg(long)]
    pub foreground: bool,

    /// How much to log.
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    pub log_level: LogLevel,

    /// The process that `pace link` starts.
    #[arg(long, hide = true)]
    pub detached: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Off {
    Off,
}

/// Show the gaps that are really on the wire, as a histogram.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain pace measure eth1
  packtrain pace measure eth1 --incoming --seconds 2")]
pub struct MeasureArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,
}
