//! The words of `packtrain pace rule`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use packtrain_proto::class::Match;
use packtrain_proto::filter::rules::RuleName;

use crate::pace::tcp::rules::{RuleRate, RuleWish, Share};
use crate::settings::values::LogLevel;
use crate::units::BitRate;

/// Say at which rate which streams leave.
///
/// Each TCP connection that a rule is about is paced: its segments leave evenly, at its part of the rule's rate. The first rule that
/// matches counts. They are rules of the pacer of TCP; the first one brings it where it does not run, and it paces nothing else then.
/// They go with it: `packtrain pace tcp off`.
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

        /// Print the rule for programs, as it was at last in the status document.
        #[arg(long)]
        json: bool,
    },
    /// Show the rules in the order in which they are asked, and how many streams they are about.
    List {
        /// Print a JSON document.
        #[arg(long)]
        json: bool,
    },
}

/// Pace the streams that match.
///
/// Connections that are there already are taken in, also those whose application has chosen a congestion control itself: they
/// have CUBIC's window, as packtrain_cps, as long as the rule is there. UDP cannot be paced by a rule.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how_fast").required(true).args(["rate", "auto"]))]
#[command(after_help = "\
Examples:
  packtrain pace rule add --match 'tcp dst 192.0.2.0/24' --rate 40mbit
  packtrain pace rule add --match 'sport 873' --rate 100mbit --share rule --name backup
  packtrain pace rule add --match any --auto
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

    /// Who has the rate together.
    #[arg(long, value_enum, value_name = "WHO", default_value = "destination")]
    share: ShareName,

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
                ShareName::Destination => Share::Destination,
                ShareName::Stream => Share::Stream,
                ShareName::Rule => Share::Rule,
            },
            before: self.before.as_ref().map(ToString::to_string),
        }
    }
}
