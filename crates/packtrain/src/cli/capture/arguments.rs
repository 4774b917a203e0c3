//! `packtrain capture` as clap reads it.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::capture::{Direction, Path, Wanted};
use crate::settings::values::InterfaceName;

/// Show what passes a line, or write it to a file: direct frames that leave as well.
///
/// tcpdump on the line's interface misses those, because they go past its tap. Each frame is shown once,
/// with the addresses that the hosts know, and with the path that it took: directly, in the kernel, or by
/// the engine. Large frames that a card would cut are shown whole, and checksums that a card would finish
/// are not finished, as tcpdump shows them. Ends on Ctrl-C, or with the line, and says how many frames it
/// has captured, and how many the kernel dropped because they were read too slowly. Frames wait 20 ms, so
/// that they come in the order of their times. Needs CAP_NET_RAW.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain capture
  packtrain capture pt0 --path direct --direction out
  packtrain capture pt0 -w pt0.pcapng
  packtrain capture pt0 -w - | wireshark -k -i -
  packtrain capture pt0 -s 96 -w - | tcpdump -n -r - 'tcp port 80'
  packtrain capture pt0 -w - | tshark -r - -Y 'frame.interface_name == \"pt0 direct\"'

A file has two interfaces: \"pt0\" for what went by the engine, and \"pt0 direct\".")]
pub struct CaptureArguments {
    /// The line [default: the only one].
    pub name: Option<InterfaceName>,

    /// Write the frames to a file, as pcapng; `-` is standard output.
    #[arg(short = 'w', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub write: Option<PathBuf>,

    /// End after so many frames.
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Most bytes kept of each frame; 0: all [default: all in a file, 512 without].
    #[arg(short = 's', long = "snap-len", value_name = "BYTES")]
    pub snap_len: Option<u32>,

    /// Only frames that come in, or that go out.
    #[arg(long, value_enum, default_value_t)]
    pub direction: WantedDirection,

    /// Only frames that take this path.
    #[arg(long, value_enum, default_value_t)]
    pub path: WantedPath,

    /// Print each line at once, also where standard output is no terminal.
    #[arg(short = 'l', long, conflicts_with = "write")]
    pub line_buffered: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WantedDirection {
    In,
    Out,
    #[default]
    Both,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WantedPath {
    /// In the kernel, past the engine.
    Direct,
    /// By the engine.
    Engine,
    #[default]
    Both,
}

impl CaptureArguments {
    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            direction: match self.direction {
                WantedDirection::In => Some(Direction::In),
                WantedDirection::Out => Some(Direction::Out),
                WantedDirection::Both => None,
            },
            path: match self.path {
                WantedPath::Direct => Some(Path::Direct),
                WantedPath::Engine => Some(Path::Engine),
                WantedPath::Both => None,
            },
        }
    }
}
