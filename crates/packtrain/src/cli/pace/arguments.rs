//! The words of `packtrain pace`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, value_parser};
use packtrain_proto::pacing::gap::{Gap, REGISTER_MAX, REGISTER_MIN};

use super::rule::RuleArguments;
use super::tcp::TcpArguments;
use super::top::TopArguments;
use crate::pace::link::wish::{BURST_MAX, GapWish, GsoWish, LineRateWish, Wish};
use crate::settings::values::{InterfaceName, LogLevel};
use crate::units::{BitRate, Bytes, Packets, Time, ValueError};

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
    Tcp(TcpArguments),
    Rule(RuleArguments),
    Top(TopArguments),
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
///
/// Returns when it does. Of one that runs already, what is said changes in place, and what waits in its queue stays; the rest is
/// as before. All traffic of the interface is spaced. It goes on until it is ended, and everything is undone then.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain pace link eth1 --gap 512B
  packtrain pace link eth1 --gap 4us --line-rate 1gbit
  packtrain pace link eth1 --rate 599mbit
  packtrain pace link eth1 --register 1023 --gso whole
  packtrain pace link eth1 off")]
pub struct LinkArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,

    /// End its pacer.
    #[arg(value_enum, conflicts_with_all = ["gap", "register", "rate", "line_rate", "gso", "burst", "queue", "foreground"])]
    pub off: Option<Off>,

    #[command(flatten)]
    how_large: HowLarge,

    /// How fast the interface's bits leave, or auto: as its driver says [default: auto].
    #[arg(long, value_name = "RATE", value_parser = parse_line_rate)]
    line_rate: Option<LineRateWish>,

    /// What becomes of frames that are many segments (GSO, TSO) [default: auto].
    #[arg(long, value_enum)]
    gso: Option<GsoName>,

    /// How much idle time may be made up for: of a timer that was late, or while nothing was sent. Less spaces more exactly, more
    /// keeps the rate: 0 to 10ms [default: 80us].
    #[arg(long, value_name = "TIME", value_parser = parse_burst)]
    burst: Option<Time>,

    /// Frames that wait at most [default: 1000].
    #[arg(long, value_name = "FRAMES")]
    queue: Option<Packets>,

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

/// One of them.
#[derive(Clone, Copy, Debug, Args)]
#[group(multiple = false)]
struct HowLarge {
    /// The gap on the wire, idle byte times between two frames, Ethernet's own 12 among them, as in 512B; or as time, as in 4us.
    #[arg(long, value_name = "BYTES|TIME", value_parser = parse_gap)]
    gap: Option<GapWish>,

    /// The gap that the CPS paper's driver leaves with this in its register, 8 to 1023: 4 bytes more on the wire.
    #[arg(long, value_name = "VALUE", value_parser = value_parser!(u32).range(i64::from(REGISTER_MIN)..=i64::from(REGISTER_MAX)))]
    register: Option<u32>,

    /// No more bits of IP packets a second than this: the gap with which full-size frames carry just so many, and smaller
    /// ones less.
    #[arg(long, value_name = "RATE")]
    rate: Option<BitRate>,
}

impl LinkArguments {
    pub fn wish(&self) -> Wish {
        let HowLarge {
            gap,
            register,
            rate,
        } = self.how_large;
        let register = register.map(GapWish::Register);
        let rate = rate.map(|rate| GapWish::PayloadRateBps(rate.0));
        Wish {
            gap: gap.or(register).or(rate),
            line_rate: self.line_rate,
            gso: self.gso.map(|gso| match gso {
                GsoName::Auto => GsoWish::Auto,
                GsoName::Split => GsoWish::Split,
                GsoName::Whole => GsoWish::Whole,
            }),
            burst_ns: self.burst.map(|burst| burst.0),
            queue_frames_max: self.queue.map(|queue| queue.0 as u32),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GsoName {
    /// Split where a full-size frame with its gap takes 15 µs or more, which the timer can space; else whole.
    Auto,
    /// They are cut, and each segment is followed by a gap.
    Split,
    /// They leave whole, and are followed by the gaps of all their segments: less work, and bursts.
    Whole,
}

/// A time ends with an s, and no size does.
fn parse_gap(text: &str) -> Result<GapWish, String> {
    let gap = match text.ends_with(['s', 'S']) {
        true => text.parse::<Time>().map(|time| GapWish::Nanos(time.0)),
        false => text.parse::<Bytes>().map(|bytes| GapWish::Bytes(bytes.0)),
    };
    let gap = gap.map_err(|_| format!("{text:?} is no gap: write it as in 512B or 4us"))?;
    // What no line makes possible need not be asked of one.
    match gap {
        GapWish::Bytes(bytes) => Gap::of_bytes(bytes).map_err(|e| e.to_string())?,
        _ => return Ok(gap),
    };
    Ok(gap)
}

fn parse_line_rate(text: &str) -> Result<LineRateWish, String> {
    match text {
        "auto" => Ok(LineRateWish::Auto),
        text => match text.parse::<BitRate>() {
            Ok(rate) => Ok(LineRateWish::Bps(rate.0)),
            Err(error) => Err(format!("{error}, or auto")),
        },
    }
}

fn parse_burst(text: &str) -> Result<Time, String> {
    let time: Time = text.parse().map_err(|e: ValueError| e.to_string())?;
    match Duration::from(time) <= BURST_MAX {
        true => Ok(time),
        false => Err(format!(
            "{text} is too much: at most {}",
            Time::from(BURST_MAX)
        )),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Off {
    Off,
}

/// Show the gaps that are really on the wire, as a histogram.
///
/// By the times at which the kernel sees frames: those that leave behind the queue, those that come as they come in. A gap is what
/// is left of the time between the beginnings of two frames when the first one's own time at the line rate is over. What is
/// between the segments of one GSO frame nobody here sees. Ctrl-C ends it, and shows what was seen.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain pace measure eth1
  packtrain pace measure eth1 --incoming --seconds 2 --line-rate 1gbit
  packtrain pace measure eth1 --json | jq .gap_bytes.p50")]
pub struct MeasureArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,

    /// How long: 1 to 3600.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=3600))]
    pub seconds: u32,

    /// Frames that come in.
    #[arg(long, conflicts_with = "outgoing")]
    pub incoming: bool,

    /// Frames that leave; so it is unless the other is said.
    #[arg(long)]
    pub outgoing: bool,

    /// How fast the interface's bits leave [default: as its pacer has it, else as its driver says].
    #[arg(long, value_name = "RATE")]
    pub line_rate: Option<BitRate>,

    /// Print a JSON document.
    #[arg(long)]
    pub json: bool,
}
