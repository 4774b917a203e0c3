//! The words of `packtrain filter`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::filter::Policy;
use packtrain_proto::filter::rules::{Limit, RuleMatch, RuleName, SetName};

use super::explain::ExplainArguments;
use super::sample::SampleArguments;
use super::top::TopArguments;
use crate::cli::error::CliError;
use crate::filter::confirmation::CONFIRM_SECONDS;
use crate::filter::rules_file::{self, RulesFile, parse_watchdog};
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

        /// Print them and the sets as a file that `filter load` takes back.
        #[arg(long, conflicts_with = "json")]
        toml: bool,
    },
    Load(LoadArguments),
    Set(SetArguments),
    /// List the sets of addresses of a filter, and which rules ask for them.
    #[command(after_help = "\
Examples:
  packtrain filter sets
  packtrain filter sets eth1 --json | jq -r '.[] | select(.name == \"blocked\").prefixes[]'")]
    Sets {
        /// The interface [default: the only one that has a filter].
        #[arg(value_name = "LINK")]
        interface: Option<InterfaceName>,

        /// Print them for programs, with all prefixes.
        #[arg(long)]
        json: bool,
    },
    Sample(SampleArguments),
    Top(TopArguments),
    Explain(ExplainArguments),
}

/// Put the rules and sets of a file in the place of all that a filter has, in one moment.
///
/// Where the file has an error nothing changes. Rules whose name and text stay go on with what they have counted,
/// and with their buckets. The policy and the like stay as they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain filter load eth1 rules.toml
  packtrain filter load eth1 rules.toml --dry-run
  packtrain filter load eth1 rules.toml --confirm 30s
  packtrain filter rules eth1 --toml > rules.toml

A file; docs/filter.md has the words of match:
  [sets]
  office = [\"10.0.0.0/8\", \"2001:db8::/32\"]
  blocked = { file = \"blocked.txt\" }      # a prefix a line, beside the file

  [[rule]]
  name = \"ssh\"                            # rule1, rule2 and so on otherwise
  verdict = \"allow\"                       # or \"deny\"
  match = \"tcp dport 22 src @office\"

  [[rule]]
  limit = \"20/s burst 5 per source\"       # instead of a verdict
  match = \"tcp syn\"")]
pub struct LoadArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,

    /// The file.
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Check the file, and only say what would change. Where no filter runs, all of it is new.
    #[arg(long, conflicts_with = "confirm")]
    pub dry_run: bool,

    #[command(flatten)]
    pub confirm: ConfirmOption,

    /// Print what has changed for programs.
    #[arg(long)]
    pub json: bool,
}

/// Change one set of addresses of a filter, in one moment; all else stays.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain filter set eth1 blocked add 192.0.2.7 2001:db8:7::/48
  packtrain filter set eth1 blocked remove 192.0.2.7
  packtrain filter set eth1 blocked remove --all")]
pub struct SetArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,

    /// The set, without its @.
    #[arg(value_name = "SET")]
    pub set: SetName,

    #[command(subcommand)]
    pub change: SetCommand,
}

#[derive(Debug, Subcommand)]
pub enum SetCommand {
    /// Put prefixes into it. A set that is not there comes with its first prefixes.
    Add {
        /// As in 10.0.0.0/8, or an address.
        #[arg(value_name = "PREFIX", required = true)]
        prefixes: Vec<Prefix>,

        #[command(flatten)]
        confirm: ConfirmOption,

        /// Print the set for programs: how many prefixes it has, how many came and went, and who uses it.
        #[arg(long)]
        json: bool,
    },
    /// Take prefixes out of it.
    Remove {
        /// As they were put in.
        #[arg(
            value_name = "PREFIX",
            required_unless_present = "all",
            conflicts_with = "all"
        )]
        prefixes: Vec<Prefix>,

        /// The set itself, which no rule may use.
        #[arg(long)]
        all: bool,

        #[command(flatten)]
        confirm: ConfirmOption,

        /// Print the set for programs: how many prefixes it has, how many came and went, and who uses it.
        #[arg(long)]
        json: bool,
    },
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
/// Returns when it stands. It goes with its process, however that ends, but with --stay. Where somebody on the host may want what is
/// not for it (a capture, a bridge, a macvlan, rules at the interface's way in), it passes, and the status
/// says why.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain filter on eth1
  packtrain filter on eth1 --ports auto
  packtrain filter on eth1 --confirm 30s
  packtrain filter on eth1 --dry-run; sleep 60; packtrain filter status eth1
  packtrain filter on eth1 --config rules.toml
  packtrain filter on eth1 --policy nima --mode tc")]
pub struct OnArguments {
    /// The interface.
    #[arg(value_name = "LINK")]
    pub interface: InterfaceName,

    /// Rules and sets that are asked from the first frame on, as `filter load` has them; and options of this command,
    /// which its own go before: policy, ports, mode, dry_run and watchdog.
    #[arg(long, value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// What is dropped when no rule says otherwise [default: host].
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,

    /// Also drop what is sent to TCP and UDP ports of this interface's addresses that no socket has. Who sends it gets
    /// no answer then: no reset, no "port unreachable" [default: off].
    #[arg(long, value_enum)]
    ports: Option<PortsName>,

    /// Where the filter stands [default: auto].
    #[arg(long, value_enum)]
    mode: Option<ModePolicy>,

    /// Count, and drop nothing.
    #[arg(long)]
    dry_run: bool,

    /// Everything passes when the process has not refreshed the filter for so long: 2 to 3600, or off [default: 10].
    #[arg(long, value_name = "SECONDS", value_parser = read_watchdog)]
    watchdog: Option<Watchdog>,

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

const WATCHDOG: Duration = Duration::from_secs(10);

fn read_watchdog(text: &str) -> Result<Watchdog, String> {
    parse_watchdog(text).map(Watchdog)
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
    /// What the command line says, else the file, else the defaults; if it can be had together.
    pub fn settings(&self) -> Result<FilterSettings, CliError> {
        let file = self.config.as_deref().map(read_config).transpose()?;
        let (said, rules) = match file {
            Some(RulesFile { options, rules, .. }) => (options, rules),
            None => Default::default(),
        };
        let policy = self.policy.map(|policy| match policy {
            PolicyName::Host => Policy::Host,
            PolicyName::Nima => Policy::Nima,
            PolicyName::None => Policy::None,
        });
        let asks_ports = self.ports.map(|ports| ports == PortsName::Auto);
        let watchdog = self.watchdog.map(|watchdog| watchdog.0);
        let watchdog = watchdog.or(said.watchdog).unwrap_or(Some(WATCHDOG));
        if self.stay && watchdog.is_none() {
            return Err(CliError::Usage(
                "--stay needs the watchdog: what the process told the program would hold for ever otherwise".into(),
            ));
        }
        Ok(FilterSettings {
            interface: self.interface.clone(),
            policy: policy.or(said.policy).unwrap_or_default(),
            asks_ports: asks_ports.or(said.asks_ports).unwrap_or(false),
            mode: self.mode.or(said.mode).unwrap_or_default(),
            dry_run: self.dry_run || said.dry_run.unwrap_or(false),
            watchdog,
            confirm: self.confirm,
            stays: self.stay,
            rules,
        })
    }
}

/// It is read twice, by this process and by the one that it starts: of a pipe nothing would be left.
fn read_config(path: &Path) -> Result<RulesFile, CliError> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(CliError::FileUnread {
            path: path.into(),
            source: std::io::Error::other("it is no ordinary file"),
        });
    }
    rules_file::read_file(path)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::arguments::{Arguments, Command};

    fn settings(more: &[&str]) -> FilterSettings {
        let on = ["packtrain", "filter", "on", "eth1"];
        match Arguments::try_parse_from([&on[..], more].concat()).map(|a| a.command) {
            Ok(Command::Filter(FilterArguments {
                command: FilterCommand::On(on),
            })) => on.settings().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_goes_before_the_file_and_the_file_before_the_defaults() {
        let name = format!("packtrain-{}-on.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        let text = "policy = 'nima'\nports = 'auto'\nmode = 'tc'\ndry_run = true\nwatchdog = 'off'\n\
                    [[rule]]\nverdict = 'deny'\nmatch = 'udp'";
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let seen = |settings: &FilterSettings| {
            let FilterSettings {
                policy,
                asks_ports,
                mode,
                dry_run,
                watchdog,
                ..
            } = *settings;
            (policy, asks_ports, mode, dry_run, watchdog)
        };
        let by_default = settings(&[]);
        let ten = Some(Duration::from_secs(10));
        assert_eq!(
            seen(&by_default),
            (Policy::Host, false, ModePolicy::Auto, false, ten)
        );
        let of_file = settings(&["--config", path]);
        assert_eq!(
            seen(&of_file),
            (Policy::Nima, true, ModePolicy::Tc, true, None)
        );
        assert_eq!(of_file.rules.rules().len(), 1);
        let words = "--policy host --ports off --mode native --watchdog 5 --config";
        let words: Vec<&str> = words.split(' ').chain([path]).collect();
        let five = Some(Duration::from_secs(5));
        assert_eq!(
            seen(&settings(&words)),
            (Policy::Host, false, ModePolicy::Native, true, five)
        );
        std::fs::remove_file(path).unwrap();
        let error = read_config(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "/dev/null: it is no ordinary file");
    }
}
