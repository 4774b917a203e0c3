//! The words of `packtrain sim`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint, value_parser};
use packtrain_study::scenario::SEEDS_MAX;

/// Simulate networks in virtual time: the papers' figures, and scenarios of one's own.
///
/// A scenario says what is simulated with which parameters, what is reported of it, and what is expected. Several come along;
/// others are TOML files. Nothing is sent, no rights are needed, and a seed decides everything: a run that is repeated
/// says the same on every machine.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  packtrain sim list
  packtrain sim explain xlf-drr
  packtrain sim run xlf-drr --quick
  packtrain sim sweep xlf-drr --vary F=1..13/3 --seeds 5 --report drr.html
  packtrain sim run my.toml --set rate=100mbit --json

docs/simulator.md says how a scenario is written."
)]
pub struct SimArguments {
    #[command(subcommand)]
    pub command: SimCommand,
}

#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// List the scenarios that come along.
    #[command(after_help = "\
Examples:
  packtrain sim list
  packtrain sim list --json | jq -r '.[].name'")]
    List {
        /// Print them for programs: `list` in docs/sim.schema.json.
        #[arg(long)]
        json: bool,
    },
    /// Say what a scenario shows, what can be set, what is assumed and what is expected.
    #[command(after_help = "\
Examples:
  packtrain sim explain xlf-drr
  packtrain sim explain my.toml --json | jq .parameters")]
    Explain {
        #[command(flatten)]
        scenario: Which,

        /// Print it for programs: `explain` in docs/sim.schema.json.
        #[arg(long)]
        json: bool,
    },
    Run(RunArguments),
    Sweep(SweepArguments),
}

#[derive(Debug, Args)]
pub struct Which {
    /// Name of a scenario that comes along, or a file.
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    pub name: PathBuf,
}

/// Run a scenario once, and say whether what it expects has come.
///
/// An expectation that is not met is told with its numbers, and is exit code 15. Those of a sweep are not judged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain sim run xlf-drr --quick
  packtrain sim run xlf-drr --set F=5 --set rate=100mbit --seed 3 --svg plots
  packtrain sim run my.toml --json | jq '.points[0].values'")]
pub struct RunArguments {
    #[command(flatten)]
    pub scenario: Which,

    #[command(flatten)]
    pub settings: SettingsArguments,

    /// What is drawn in it follows from this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    pub outputs: OutputArguments,
}

/// Run a scenario at many points, with many seeds at each, and say whether what it expects has come.
///
/// Of the seeds' values the mean is told, with half the width of its interval of 95 % (Student). What comes out does not
/// depend on --jobs, nor on whether it was interrupted. An expectation that is not met is exit code 15.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain sim sweep xlf-drr --quick
  packtrain sim sweep xlf-drr --vary F=1..13 --seeds 10 --csv > drr.csv
  packtrain sim sweep xlf-drr --vary F=1,4,13 --vary rtt=10ms,100ms --report drr.html
  packtrain sim sweep xlf-drr --resume drr.sweep          go on where it was interrupted")]
pub struct SweepArguments {
    #[command(flatten)]
    pub scenario: Which,

    /// What a parameter goes through: F=1..13, F=1..13/3 in steps of 3, F=1,4,13; given again, each is combined with each
    /// [default: as the scenario has it].
    #[arg(long = "vary", value_name = "NAME=VALUES")]
    pub vary: Vec<String>,

    /// Runs at each point, with seeds from 1 [default: as the scenario has it].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(SEEDS_MAX)))]
    pub seeds: Option<u32>,

    #[command(flatten)]
    pub settings: SettingsArguments,

    /// So many runs at once [default: one a processor].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Keep each run that has ended in this file, and run none that it has already.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub resume: Option<PathBuf>,

    #[command(flatten)]
    pub outputs: OutputArguments,
}

#[derive(Debug, Args)]
pub struct SettingsArguments {
    /// Set a parameter, as in F=5 or rate=100mbit; may be given again.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub sets: Vec<String>,

    /// The scenario's quick form, which shows the same in less time.
    #[arg(long)]
    pub quick: bool,
}

#[derive(Debug, Args)]
pub struct OutputArguments {
    /// Print the document for programs; docs/sim.schema.json describes it.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print a table for programs: a row a run.
    #[arg(long)]
    pub csv: bool,

    /// Draw the scenario's plots into this folder, too, a file each.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,

    /// Write a page for a browser, too; it needs no other file.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
}

impl RunArguments {
    /// How it is repeated.
    pub fn command(&self) -> String {
        let seed = self.seed.to_string();
        let seed = ["--seed", &seed].map(str::to_owned);
        repeated("run", &self.scenario, &self.settings, seed)
    }
}

impl SweepArguments {
    /// How it is repeated.
    pub fn command(&self) -> String {
        let vary = self.vary.iter().flat_map(|vary| ["--vary", vary]);
        let mut more: Vec<String> = vary.map(str::to_owned).collect();
        if let Some(seeds) = self.seeds {
            more.extend(["--seeds".to_owned(), seeds.to_string()]);
        }
        repeated("sweep", &self.scenario, &self.settings, more)
    }
}

/// What has no say in what comes out is left out.
fn repeated(
    command: &str,
    scenario: &Which,
    settings: &SettingsArguments,
    more: impl IntoIterator<Item = String>,
) -> String {
    let mut words = ["packtrain", "sim", command].map(str::to_owned).to_vec();
    words.push(scenario.name.display().to_string());
    words.extend(more);
    let sets = settings.sets.iter().flat_map(|set| ["--set", set]);
    words.extend(sets.map(str::to_owned));
    if settings.quick {
        words.push("--quick".into());
    }
    packtrain_study::output::command::command(words.iter().map(String::as_str))
}
