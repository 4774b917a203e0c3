//! `packtrain up` and `packtrain run`: a line is started, and stands or says why not.

pub mod checks;
mod detached;
pub mod log;

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::arguments::{RunArguments, UpArguments};
use super::detach;
use super::error::CliError;
use super::output;
use crate::running::RunningLine;
use crate::settings::dfap::DfapSettings;
use crate::settings::flows::FlowSettings;
use crate::settings::liveness::LivenessSettings;
use crate::settings::values::check_mtu;
use crate::settings::{Settings, file};
use crate::stay;

pub fn up(arguments: &UpArguments) -> Result<(), CliError> {
    let settings = settings_of(arguments)?;
    if arguments.detached {
        detached::run(&settings)
    } else if arguments.foreground {
        run_in_foreground(&settings)
    } else {
        detach::launch("line", settings.name.as_str())
    }
}

pub fn run(arguments: &RunArguments) -> Result<(), CliError> {
    let path = &arguments.file;
    let mut settings = read_file(path)?;
    if let Some(seconds) = arguments.stay {
        settings.stay = Some(Duration::from_secs(seconds));
    }
    if arguments.check {
        return output::text(&format!(
            "{}: right, for line {}\n",
            path.display(),
            settings.name
        ));
    }
    run_in_foreground(&settings)
}

/// What a configuration file says.
pub fn read_file(path: &Path) -> Result<Settings, CliError> {
    let text = fs::read_to_string(path).map_err(|source| CliError::FileUnread {
        path: path.into(),
        source,
    })?;
    Ok(file::parse(path, &text)?)
}

fn settings_of(arguments: &UpArguments) -> Result<Settings, CliError> {
    let settings = Settings {
        name: arguments.name.clone(),
        links: arguments.links.clone(),
        addresses: arguments.addresses.clone(),
        mtu: check_mtu(arguments.mtu)?,
        mac: arguments.mac,
        line_id: arguments.line_id,
        marked_frames: !arguments.no_marked_frames,
        path: arguments.path,
        direct_vlan: arguments.direct_vlan,
        balance: arguments.balance,
        liveness: LivenessSettings {
            detection: arguments.liveness,
            hold_time: arguments.hold_time,
        },
        repair: arguments.repair,
        max_sand_delay: arguments.max_sand_delay,
        size: arguments.size,
        tier_spill: arguments.tier_spill,
        flows: FlowSettings {
            elephant_bytes: arguments.elephant_bytes,
            ecn: !arguments.no_ecn,
            queue: arguments.flow_queue,
            short_first: arguments.short_flows_first,
        },
        mode: arguments.mode,
        pack: arguments.pack,
        compress: arguments.compress,
        coded_trains: !arguments.no_coded_trains,
        dictionary: arguments.dictionary.clone(),
        dfap: DfapSettings {
            ether_type: arguments.dfap_ether_type,
            stations: arguments.dfap_stations.clone(),
            strict: arguments.dfap_strict,
            tick: arguments.dfap_tick,
        },
        stay: arguments.stay.map(Duration::from_secs),
        wait_links: arguments.wait_links,
        log_level: arguments.log_level,
        ..Settings::new(arguments.name.clone())
    };
    settings.check()?;
    Ok(settings)
}

fn run_in_foreground(settings: &Settings) -> Result<(), CliError> {
    log::start(settings.log_level);
    let mut line = start(settings, &mut |note| tracing::warn!("{note}"))?;
    line.stands();
    line.run()
}

/// The one way to a line that stands, whoever waits for it.
fn start(settings: &Settings, note: &mut dyn FnMut(&str)) -> Result<RunningLine, CliError> {
    checks::rights()?;
    let signals = crate::running::Signals::catch()?;
    let control = checks::take_name(&settings.name)?;
    let heir = stay::take_over(settings.name.as_str());
    let heir = heir.map_err(|e| CliError::Failed(e.to_string()))?;
    if heir.is_none() {
        checks::name_is_free(&settings.name)?;
    }
    checks::links(settings, note)?;
    RunningLine::start(settings, control, signals, heir, note)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use packtrain_proto::class::Compress;

    use super::*;
    use crate::cli::arguments::{Arguments, Command};
    use crate::settings::compress::CompressPolicy;
    use crate::settings::values::{BalancePolicy, PathPolicy};

    fn settings(more: &[&str]) -> Settings {
        let up = ["packtrain", "up", "pt0", "--link", "eth1"];
        match Arguments::try_parse_from([&up[..], more].concat()) {
            Ok(Arguments {
                command: Command::Up(arguments),
            }) => settings_of(&arguments).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_command_line_does_not_say_has_the_defaults_of_a_file() {
        let file = "name = 'pt0'\n[[link]]\nname = 'eth1'";
        let file = file::parse(std::path::Path::new("f"), file).unwrap();
        assert_eq!(settings(&[]), file);
    }

    #[test]
    fn the_path_is_that_of_the_command_line() {
        assert_eq!(settings(&["--path", "auto"]).path, PathPolicy::Auto);
        assert_eq!(settings(&["--path", "engine"]).path, PathPolicy::Engine);
    }

    #[test]
    fn what_is_compressed_is_what_the_command_line_says() {
        let said = settings(&["--compress", "headers", "--no-coded-trains"]);
        assert_eq!(said.compress, CompressPolicy::Headers);
        assert_eq!(said.rest().compress, Compress::Headers);
        assert!(!said.coded_trains);
    }

    #[test]
    fn it_stays_for_a_minute_or_as_long_as_the_command_line_says() {
        let stay = |more: &[&str]| settings(more).stay.map(|time| time.as_secs());
        assert_eq!(stay(&[]), None);
        assert_eq!(stay(&["--stay"]), Some(60));
        assert_eq!(stay(&["--stay=5"]), Some(5));
        // What follows is another option, not its value.
        assert_eq!(stay(&["--stay", "--wait-links"]), Some(60));
    }

    #[test]
    fn the_balance_is_that_of_the_command_line() {
        let balance = |name| settings(&["--balance", name]).balance;
        assert_eq!(balance("round-robin"), BalancePolicy::RoundRobin);
        assert_eq!(balance("active-backup"), BalancePolicy::ActiveBackup);
    }
}
