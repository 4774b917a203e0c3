//! The words of `packtrain pace tcp`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::pacing::hystart::Thresholds;

use crate::cli::error::CliError;
use crate::linux::pace::{PORTS_MAX, PREFIXES_MAX};
use crate::pace::tcp::TcpSettings;
use crate::pace::tcp::rules::RuleWish;
use crate::settings::values::LogLevel;
use crate::units::{Lifetime, Time};

/// Space what TCP sends in slow start: Clustered Packet Spacing.
///
/// A connection that begins sends its window at the speed of the interface, and waits for the rest of the round trip: routers on
/// the way have to buffer that, or drop it. Spaced, each window is spread over the round trip, until segments are so close together
/// that timers cannot space them (T). From then on it is ordinary TCP, CUBIC. Applications change nothing.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct TcpArguments {
    #[command(subcommand)]
    pub command: TcpCommand,
}

#[derive(Debug, Subcommand)]
pub enum TcpCommand {
    On(OnArguments),
    /// Stop: connections have again the congestion control that they had.
    Off {},
    /// Show what was taken, how slow starts ended, what was lost when, and the paths that are remembered.
    Status {
        /// Print a JSON document, with each connection.
        #[arg(long)]
        json: bool,
    },
}

/// Space the TCP connections of this network namespace.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain pace tcp on
  packtrain pace tcp on --dst 192.0.2.0/24,2001:db8::/32 --dport 443
  packtrain pace tcp on --cgroup system.slice/backup.service --precision 1ms
  packtrain pace tcp off")]
pub struct OnArguments {
    /// Only sockets of this cgroup's processes: a directory of cgroup v2, or its path below where that is mounted [default: all
    /// processes].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::DirPath)]
    cgroup: Option<PathBuf>,

    /// Also connections of other network namespaces, as containers have them.
    #[arg(long)]
    all_namespaces: bool,

    /// Only connections to these ports, as in 80,443,8000-8999.
    #[arg(long, value_name = "PORTS", value_delimiter = ',', value_parser = read_ports)]
    dport: Vec<(u16, u16)>,

    /// Only connections from these ports of this host: what a server sends.
    #[arg(long, value_name = "PORTS", value_delimiter = ',', value_parser = read_ports)]
    sport: Vec<(u16, u16)>,

    /// Only connections to these networks.
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    dst: Vec<Prefix>,

    /// T: segments that would be closer together are not spaced any more, 10us to 100ms; or auto, as this machine's timers allow,
    /// which is measured now and when its load becomes another one.
    #[arg(long, value_name = "TIME", value_parser = read_precision, default_value = "auto")]
    precision: Switch<Duration>,

    /// How long a path is remembered that was full, 1s to 24h, or off. The next connection to it is spaced up to its rate, and
    /// ends slow start there.
    #[arg(long, value_name = "TIME", value_parser = read_remember, default_value = "10min")]
    remember: Switch<Duration>,

    /// End slow start when the round trip has grown (HyStart++, RFC 9406): on, off, or the bounds of what counts as growth, as in
    /// 1ms..4ms.
    #[arg(long, value_name = "BOUNDS", value_parser = read_hystart, default_value = "on")]
    hystart: Switch<Thresholds>,

    /// Leave connections that are there already as they are.
    #[arg(long)]
    only_new: bool,

    /// Also space connections whose application has chosen a congestion control itself, as iperf3 -C does.
    #[arg(long = "override")]
    overrides: bool,

    /// Stay in the foreground, and log to standard error.
    #[arg(long)]
    pub foreground: bool,

    /// How much to log.
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    pub log_level: LogLevel,

    /// The process that `pace tcp on` starts.
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// `None`: off, or auto.
#[derive(Clone, Copy, Debug)]
struct Switch<T>(Option<T>);

/// As the option has it.
const REMEMBERED: Duration = Duration::from_secs(600);
const PRECISION_MIN: Duration = Duration::from_micros(10);
const PRECISION_MAX: Duration = Duration::from_millis(100);

fn read_time(text: &str, least: Duration, most: Duration) -> Option<Duration> {
    let time = Duration::from(text.parse::<Time>().ok()?);
    (least..=most).contains(&time).then_some(time)
}

fn read_precision(text: &str) -> Result<Switch<Duration>, String> {
    if text == "auto" {
        return Ok(Switch(None));
    }
    match read_time(text, PRECISION_MIN, PRECISION_MAX) {
        None => Err("a time from 10us to 100ms, or auto".into()),
        time => Ok(Switch(time)),
    }
}

fn read_remember(text: &str) -> Result<Switch<Duration>, String> {
    if text == "off" {
        return Ok(Switch(None));
    }
    match text.parse::<Lifetime>() {
        Ok(time) => Ok(Switch(Some(time.into()))),
        Err(error) => Err(format!("{error}; or off")),
    }
}

fn read_hystart(text: &str) -> Result<Switch<Thresholds>, String> {
    match text {
        "off" => return Ok(Switch(None)),
        "on" => return Ok(Switch(Some(Thresholds::default()))),
        _ => {}
    }
    let bounds = text.split_once("..").and_then(|(least, most)| {
        let micros = |text: &str| {
            let time = read_time(text, Duration::from_micros(1), Duration::from_secs(1))?;
            Some(time.as_micros() as u32)
        };
        let (min_us, max_us) = (micros(least)?, micros(most)?);
        (min_us <= max_us).then_some(Thresholds { min_us, max_us })
    });
    let bounds = bounds.ok_or("on, off, or two times, the lesser one first, as in 1ms..4ms")?;
    Ok(Switch(Some(bounds)))
}

fn read_ports(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ports = first.parse().ok().zip(last.parse().ok());
    let ports = ports.filter(|(first, last): &(u16, u16)| *first > 0 && first <= last);
    ports.ok_or_else(|| "a port, or a range of ports, as in 443 or 8000-8999".into())
}

/// Of a pacer that paces by rules alone.
pub fn settings_of_rules(rules: Vec<RuleWish>) -> TcpSettings {
    TcpSettings {
        cgroup: None,
        all_namespaces: false,
        remote_ports: Vec::new(),
        local_ports: Vec::new(),
        destinations: Vec::new(),
        precision: None,
        remembered: Some(REMEMBERED),
        hystart: Some(Thresholds::default()),
        only_new: false,
        overrides: false,
        rules_only: true,
        rules,
    }
}

impl OnArguments {
    pub fn settings(&self) -> Result<TcpSettings, CliError> {
        for (option, given, most) in [
            ("--dport", self.dport.len(), PORTS_MAX),
            ("--sport", self.sport.len(), PORTS_MAX),
            ("--dst", self.dst.len(), PREFIXES_MAX),
        ] {
            if given > most {
                return Err(CliError::Usage(format!(
                    "{option} takes {most} values at most, and not {given}"
                )));
            }
        }
        Ok(TcpSettings {
            cgroup: self.cgroup.clone(),
            all_namespaces: self.all_namespaces,
            remote_ports: self.dport.clone(),
            local_ports: self.sport.clone(),
            destinations: self.dst.clone(),
            precision: self.precision.0,
            remembered: self.remember.0,
            hystart: self.hystart.0,
            only_new: self.only_new,
            overrides: self.overrides,
            rules_only: false,
            rules: Vec::new(),
        })
    }
}
