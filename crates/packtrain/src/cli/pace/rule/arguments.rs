//! The words of `packtrain pace rule`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use packtrain_proto::class::Match;
use packtrain_proto::filter::rules::RuleName;

use crate::pace::link::rules::{LinkRuleWish, QUEUE_FRAMES_MAX};
use crate::pace::tcp::rules::{RuleRate, RuleWish, Share};
use crate::settings::values::{InterfaceName, LogLevel};
use crate::units::{BitRate, Packets};

/// Say at which rate which streams leave.
///
/// Each TCP connection that a rule is about is paced: its segments leave evenly, at its part of the rule's rate. The first rule that
/// matches counts. They are rules of the pacer of TCP; the first one brings it where it does not run, and it paces nothing else then.
/// They go with it: `packtrain pace tcp off`.
///
/// UDP, and so QUIC, is paced where it leaves: with --link a rule is one of that interface's pacer, and holds all frames that it is
/// about together to its rate. The first one brings the pacer where it does not run, and it goes with the last one.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct RuleArguments {
    #[command(subcommand)]
    pub command: RuleCommand,
}

#[derive(Debug, Subcommand)]
pub enum RuleCommand {
    Add(AddArguments),
    /// Take a rule away: its streams leave as they would without it.
    Remove {
        /// Which.
        #[arg(value_name = "RULE")]
        name: RuleName,

        /// One of this interface's.
        #[arg(long, value_name = "LINK")]
        link: Option<InterfaceName>,

        /// Print the rule for programs, as it was at last in the status document.
        #[arg(long)]
        json: bool,
    },
    /// Show the rules in the order in which they are asked, those of TCP and those of each interface, and what they are about.
    List {
        /// Print a JSON document.
        #[arg(long)]
        json: bool,
    },
}

/// Pace the streams that match.
///
/// Connections that are there already are taken in, also those whose application has chosen a congestion control itself: they
/// have CUBIC's window, as packtrain_cps, as long as the rule is there.
///
/// With --link it is about UDP that leaves by that interface, this host's and what it forwards: frames wait in a queue of the rule's own,
/// and what finds no room there is dropped and counted. Conditions may ask for all that a frame has then, also dscp, vlan, size and
/// mark. Fragments have no ports.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how_fast").required(true).args(["rate", "auto"]))]
#[command(after_help = "\
Examples:
  packtrain pace rule add --match 'tcp dst 192.0.2.0/24' --rate 40mbit
  packtrain pace rule add --match 'sport 873' --rate 100mbit --share rule --name backup
  packtrain pace rule add --match any --auto
  packtrain pace rule add --match 'udp dport 443' --rate 40mbit --link eth1
  packtrain pace rule remove backup")]
pub struct AddArguments {
    /// Which streams: conditions that must all hold, of addresses (src, dst, host), ports (sport, dport, port), ip or ip6. This host is
    /// the source.
    #[arg(long = "match", value_name = "CONDITIONS")]
    matches: Match,

    /// How fast, in bits of IP packets a second.
    #[arg(long, value_name = "RATE")]
    rate: Option<BitRate>,

    /// As fast as the path carries: what it carried when it was full, for all streams to a destination together. A little more of it is
    /// tried now and then. Until it has been full they leave as with `pace tcp on`.
    #[arg(long, conflicts_with = "share")]
    auto: bool,

    /// Who has the rate together [default: destination; with --link rule, which is all that there is].
    #[arg(long, value_enum, value_name = "WHO")]
    share: Option<ShareName>,

    /// It is about UDP that leaves by this interface.
    #[arg(long, value_name = "LINK")]
    pub link: Option<InterfaceName>,

    /// Frames that wait at most, of a rule with --link [default: 200].
    #[arg(long, value_name = "FRAMES", requires = "link")]
    queue: Option<Packets>,

    /// What it is called [default: rule1, rule2 and so on].
    #[arg(long, value_name = "RULE")]
    name: Option<RuleName>,

    /// It is asked before this one [default: behind all others].
    #[arg(long, value_name = "RULE")]
    before: Option<RuleName>,

    /// Print the rule for programs, as in the status document.
    #[arg(long)]
    pub json: bool,

    /// How much its pacer logs, where this starts one.
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    pub log_level: LogLevel,

    /// The process that `pace rule add` starts.
    #[arg(long, hide = true)]
    pub detached: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ShareName {
    /// All streams to one address.
    Destination,
    /// Each has it for itself.
    Stream,
    /// All that the rule is about.
    Rule,
}

impl AddArguments {
    pub fn wish(&self) -> RuleWish {
        RuleWish {
            name: self.name.as_ref().map(ToString::to_string),
            matches: self.matches.to_string(),
            rate: self
                .rate
                .map_or(RuleRate::Auto, |rate| RuleRate::Bps(rate.0)),
            share: match self.share {
                None | Some(ShareName::Destination) => Share::Destination,
                Some(ShareName::Stream) => Share::Stream,
                Some(ShareName::Rule) => Share::Rule,
            },
            before: self.before.as_ref().map(ToString::to_string),
        }
    }

    /// Of a rule of an interface; an error says what one cannot have.
    pub fn link_wish(&self) -> Result<LinkRuleWish, &'static str> {
        let rate = self.rate.ok_or(
            "--auto is nothing for UDP, which nobody acknowledges where we see it: say a --rate",
        )?;
        match self.share {
            None | Some(ShareName::Rule) => {}
            Some(ShareName::Destination | ShareName::Stream) => {
                return Err(
                    "what a rule of an interface is about waits in one queue, and shares its rate: --share rule is all that it can have",
                );
            }
        }
        Ok(LinkRuleWish {
            name: self.name.as_ref().map(ToString::to_string),
            matches: self.matches.to_string(),
            rate_bps: rate.0,
            queue_frames_max: self.queue.map_or(QUEUE_FRAMES_MAX, |queue| queue.0 as u32),
            before: self.before.as_ref().map(ToString::to_string),
        })
    }
}
