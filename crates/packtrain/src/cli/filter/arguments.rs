//! The words of `packtrain filter`.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use packtrain_proto::filter::Policy;
use packtrain_proto::filter::rules::{Limit, RuleMatch, RuleName};

use super::explain::ExplainArguments;
use super::sample::SampleArguments;
use super::top::TopArguments;
use crate::cli::error::CliError;
use crate::filter::confirmation::CONFIRM_SECONDS;
use crate::filter::{FilterSettings, ModePolicy};
use crate::settings::values::{InterfaceName, LogLevel};

/// Drop what is not for this host before its stack sees it.
///
/// Most of what a busy segment brings to a host is for others: frames for foreign addresses, ARP that asks for others,
/// groups that nobody here has joined. The stack takes each apart to find that out. A filter does so in the driver
/// (XDP), by the kernel's own tables as they are at that moment.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct FilterArguments {
    #[command(subcommand)]
    pub command: FilterCommand,
}

#[derive(Debug, Subcommand)]
pub enum FilterCommand {
    On(OnArguments),
    /// Take the filter off an interface: from then on the stack gets everything.
    #[command(after_help = "\
Examples:
  packtrain filter off eth1")]
    Off {
        /// The interface [default: the only one that has a filter].
        #[arg(value_name = "LINK")]
        interface: Option<InterfaceName>,
    },
    /// Keep what waits for it: the filter after `on --confirm`, or a change of its rules after theirs.
    ///
    /// Say it when you see that the host can still be reached, by the way that the filter might have closed: in one line
    /// with the command before, it would confirm whatever happens.
    #[command(after_help = "\
Examples:
  packtrain filter confirm eth1")]
    Confirm {
        /// The interface [default: the only one that has a filter].
        #[arg(value_name = "LINK")]
        interface: Option<InterfaceName>,

        /// Print what was confirmed, and how many seconds there were left, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Show what a filter has let pass and dropped, and why.
    #[command(after_help = "\
Examples:
  packtrain filter status
  packtrain filter status eth1 --json | jq '.dropped.frames, .reasons.foreign_arp'")]
    Status {
        /// The interface [default: all that have a filter].
        #[arg(value_name = "LINK")]
        interface: Option<InterfaceName>,

        /// Print a JSON document; of all of them, a list.
        #[arg(long)]
        json: bool,
    },
    /// Let frames pass, whatever the rules behind and the policy say.
    #[command(after_help = "\
Examples:
  packtrain filter allow eth1 'src 192.0.2.0/24'
  packtrain filter allow eth1 'tcp dport 22' --before rule1")]
    Allow(RuleArguments),
    /// Drop frames.
    #[command(after_help = "\
Examples:
  packtrain filter deny eth1 'udp dport 1900,5353'
  packtrain filter deny eth1 'vlan 7 not src 10.0.0.0/8' --name strangers
  packtrain filter deny eth1 'tcp not dport 22' --confirm 30s")]
    Deny(RuleArguments),
    /// Drop what is more than so much a second; rules behind and the policy decide on the rest.
    ///
    /// As in 1000/s, 10mbit/s or 1MB/s, with `burst` and how much may come at once, and `per source` for a limit of
    /// each IP address.
    #[command(after_help = "\
Examples:
  packtrain filter limit eth1 100/s 'icmp'
  packtrain filter limit eth1 '20/s burst 5 per source' 'tcp syn dport 443'")]
    Limit(LimitArguments),
    /// Take a rule away.
    #[command(after_help = "\
Examples:
  packtrain filter remove eth1 strangers")]
    Remove {
        /// The interface.
        #[arg(value_name = "LINK")]
        interface: InterfaceName,

        /// The rule.
        #[arg(value_name = "RULE")]
        rule: RuleName,

        #[command(flatten)]
        confirm: ConfirmOption,

        /// Print the rule for programs, as it was at last.
        #[arg(long)]
        json: bool,
    },
    /// List the rules of a filter in the order in which they are asked, and what each has decided.
    #[command(after_help = "\
Examples:
  packtrain filter rules
  packtrain filter rules eth1 --json | jq '.[] | {name, frames}'")]
    Rules {
        /// The interface [default: the only one that has a filter].
        #[arg(value_name = "LINK")]
        interface: Option<InterfaceName>,

        /// Print them for programs: the `rules` of the status document.
        #[arg(long)]
        json: bool,
    },
    Sample(SampleArguments),
    Top(TopArguments),
    Explain(ExplainArguments),
}

#[derive(Debug, Args)]
pub struct RuleArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,

    /// Which frames: conditions that must all hold, as in 'udp dport 53 not src 10.0.0.0/8'; docs/filter.md has the words.
    #[arg(value_name = "CONDITIONS")]
    pub matches: RuleMatch,

    #[command(flatten)]
    pub options: RuleOptions,
}

#[derive(Debug, Args)]
pub struct LimitArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,

    /// How much passes.
    #[arg(value_name = "LIMIT")]
    pub limit: Limit,

    /// Of which frames: as in 'tcp syn dport 443'; docs/filter.md has the words.
    #[arg(value_name = "CONDITIONS")]
    pub matches: RuleMatch,

    #[command(flatten)]
    pub options: RuleOptions,
}

#[derive(Debug, Args)]
pub struct RuleOptions {
    /// What the rule is called [default: rule1, rule2 and so on].
    #[arg(long, value_name = "RULE")]
    pub name: Option<RuleName>,

    /// It is asked before this one [default: behind all others].
    #[arg(long, value_name = "RULE")]
    pub before: Option<RuleName>,

    #[command(flatten)]
    pub confirm: ConfirmOption,

    /// Print the rule for programs, as in the status document.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, Args)]
pub struct ConfirmOption {
    /// The rules are as before after so long, unless `packtrain filter confirm` comes: 1 to 3600.
    #[arg(long, value_name = "SECONDS", value_parser = parse_confirm)]
    pub confirm: Option<Duration>,
}

/// Put a filter on an interface: a member link of a line, or any other.
///
/// Returns when it stands. It goes with its process, however that ends. Where somebody on the host may want what is
/// not for it (a capture, a bridge, a macvlan, rules at the interface's way in), it passes, and the status
/// says why.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain filter on eth1
  packtrain filter on eth1 --ports auto
  packtrain filter on eth1 --confirm 30s
  packtrain filter on eth1 --dry-run; sleep 60; packtrain filter status eth1
  packtrain filter on eth1 --policy nima --mode tc")]
pub struct OnArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,

    /// What is dropped when no rule says otherwise.
    #[arg(long, value_enum, default_value_t)]
    policy: PolicyName,

    /// Also drop what is sent to TCP and UDP ports of this interface's addresses that no socket has. Who sends it gets
    /// no answer then: no reset, no "port unreachable".
    #[arg(long, value_enum, default_value_t)]
    ports: PortsName,

    /// Where the filter stands.
    #[arg(long, value_enum, default_value_t)]
    mode: ModePolicy,

    /// Count, and drop nothing.
    #[arg(long)]
    dry_run: bool,

    /// Everything passes when the process has not refreshed the filter for so long: 2 to 3600, or off.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_watchdog)]
    watchdog: Watchdog,

    /// The filter goes after so long, unless `packtrain filter confirm` comes: 1 to 3600. Who locks himself out of a
    /// remote host has it back then.
    #[arg(long, value_name = "SECONDS", value_parser = parse_confirm)]
    confirm: Option<Duration>,

    /// Leave the program where it is when its process ends, however that does: rules go on deciding, and everything else
    /// passes from when the watchdog fires. The next `filter on` takes its place, `filter off` takes it away.
    #[arg(long)]
    stay: bool,

    /// Stay in the foreground, and log to standard error.
    #[arg(long)]
    pub foreground: bool,

    /// How much to log.
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    pub log_level: LogLevel,

    /// The process that `filter on` starts.
    #[arg(long, hide = true)]
    pub detached: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum PolicyName {
    /// What this host cannot want.
    #[default]
    Host,
    /// The paper's algorithm, to the letter: what is neither for the host, nor broadcast, nor for a group of its own;
    /// and ARP for others. Captures, bridges and the like get no more.
    Nima,
    /// Nothing.
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum PortsName {
    /// Ports are not looked at.
    #[default]
    Off,
    /// The kernel is asked for a socket; not where rules may send frames to other ports.
    Auto,
}

/// `None`: off.
#[derive(Clone, Copy, Debug)]
struct Watchdog(Option<Duration>);

const WATCHDOG_SECONDS: RangeInclusive<u64> = 2..=3600;

fn parse_watchdog(text: &str) -> Result<Watchdog, String> {
    if text == "off" {
        return Ok(Watchdog(None));
    }
    let time = parse_seconds(text, WATCHDOG_SECONDS);
    match time {
        Some(time) => Ok(Watchdog(Some(time))),
        None => Err("a time in seconds, 2 to 3600, or off".into()),
    }
}

fn parse_confirm(text: &str) -> Result<Duration, String> {
    let time = parse_seconds(text, CONFIRM_SECONDS);
    time.ok_or_else(|| "a time in seconds, 1 to 3600".into())
}

fn parse_seconds(text: &str, allowed: RangeInclusive<u64>) -> Option<Duration> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse().ok()?;
    allowed
        .contains(&seconds)
        .then(|| Duration::from_secs(seconds))
}

impl OnArguments {
    /// What was asked for, if it can be had together.
    pub fn settings(&self) -> Result<FilterSettings, CliError> {
        if self.stay && self.watchdog.0.is_none() {
            return Err(CliError::Usage(
                "--stay needs the watchdog: what the process told the program would hold for ever otherwise".into(),
            ));
        }
        Ok(FilterSettings {
            interface: self.interface.clone(),
            policy: match self.policy {
                PolicyName::Host => Policy::Host,
                PolicyName::Nima => Policy::Nima,
                PolicyName::None => Policy::None,
            },
            asks_ports: self.ports == PortsName::Auto,
            mode: self.mode,
            dry_run: self.dry_run,
            watchdog: self.watchdog.0,
            confirm: self.confirm,
            stays: self.stay,
        })
    }
}
