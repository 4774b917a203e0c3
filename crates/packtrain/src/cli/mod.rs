//! The commands that a person types.

mod arguments;
mod capture;
mod class;
mod detach;
mod dictionary;
mod down;
pub mod error;
mod events;
mod filter;
mod frame_words;
mod keep;
mod lab;
mod link;
mod output;
mod pace;
pub mod patience;
mod show;
mod signals;
mod sim;
mod top;
pub mod up;
mod view;
mod whatif;

pub(crate) use self::filter::reason_words;
pub(crate) use self::view::{path_reason, words};

use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use self::arguments::{Arguments, BenchCommand, Command, DictionaryCommand, PeerCommand};
use self::class::ClassCommand;
use self::error::CliError;
use self::link::LinkCommand;
use crate::lab::{
    bench_aggregation, bench_compression, bench_filter, bench_lab, bench_line, bench_links,
    bench_pace, bench_path, bench_trunk, bench_xlf, demo, relay,
};

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are "errors" too, of code 0 and to standard output.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error.to_string(), error.hint().as_deref());
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(command: Command) -> Result<(), CliError> {
    match command {
        Command::Up(arguments) => up::up(&arguments),
        Command::Run(arguments) => up::run(&arguments),
        Command::Status(arguments) => show::status(arguments.name.as_ref(), arguments.json),
        Command::Link(arguments) => match arguments.command {
            LinkCommand::Add {
                name,
                link,
                used,
                wait_links,
                json,
            } => link::add(&name, &link, used, wait_links, json),
            LinkCommand::Set {
                name,
                link,
                used,
                json,
            } => link::set(&name, &link, used, json),
            LinkCommand::Clear { name, json } => link::clear(&name, json),
            LinkCommand::Remove { name, link, json } => link::remove(&name, &link, json),
            LinkCommand::List { name, json } => show::link_list(&name, json),
        },
        Command::Peer(arguments) => match arguments.command {
            PeerCommand::List { name, json } => show::peer_list(&name, json),
        },
        Command::Class(arguments) => match arguments.command {
            ClassCommand::Add(arguments) => class::add(&arguments),
            ClassCommand::Remove { name, class, json } => class::remove(&name, &class, json),
            ClassCommand::List { name, json } => show::class_list(name.as_ref(), json),
            ClassCommand::Test(arguments) => class::test(&arguments),
        },
        Command::Events(arguments) => events::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Filter(arguments) => filter::run(&arguments),
        Command::Pace(arguments) => pace::run(&arguments),
        Command::Whatif(arguments) => whatif::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Dictionary(arguments) => match arguments.command {
            DictionaryCommand::Train(arguments) => dictionary::train(&arguments),
        },
        Command::Down(arguments) => match arguments.name {
            Some(name) => down::down(&name),
            None => down::down_all(),
        },
        Command::Lab(arguments) => lab::run(arguments.command),
        Command::Demo => in_lab(demo::run),
        Command::Bench(arguments) => match arguments.command {
            BenchCommand::Line(options) => {
                measure(|packtrain| bench_line::run(packtrain, &options))
            }
            BenchCommand::Links(options) => {
                measure(|packtrain| bench_links::run(packtrain, &options))
            }
            BenchCommand::Trunk(options) => {
                measure(|packtrain| bench_trunk::run(packtrain, &options))
            }
            BenchCommand::Path(options) => {
                measure(|packtrain| bench_path::run(packtrain, &options))
            }
            BenchCommand::Aggregation(options) => {
                measure(|packtrain| bench_aggregation::run(packtrain, &options))
            }
            BenchCommand::Compression(options) => {
                measure(|packtrain| bench_compression::run(packtrain, &options))
            }
            BenchCommand::Filter(options) => {
                measure(|packtrain| bench_filter::run(packtrain, &options))
            }
            BenchCommand::Pace(options) => {
                measure(|packtrain| bench_pace::run(packtrain, &options))
            }
            BenchCommand::Xlf(options) => measure(|packtrain| bench_xlf::run(packtrain, &options)),
            BenchCommand::Lab(options) => measure(|packtrain| bench_lab::run(packtrain, &options)),
            BenchCommand::Relay { link, tap } => {
                relay::run(&link, &tap).map_err(|error| CliError::failed("the relay", error))
            }
        },
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "packtrain", &mut script);
            output::raw(&script)
        }
        Command::Keep { name } => keep::run(&name),
        Command::Version => output::text(&format!(
            "packtrain {}\nwire format 1\n",
            env!("CARGO_PKG_VERSION")
        )),
    }
}

/// A bench that says whether every promise holds.
fn measure(bench: impl FnOnce(&Path) -> crate::lab::Result<bool>) -> Result<(), CliError> {
    if in_lab(bench)? {
        return Ok(());
    }
    Err(CliError::Failed(
        "a figure is less than it has to be".into(),
    ))
}

/// What runs in the lab runs this very program there.
fn in_lab<T>(run: impl FnOnce(&Path) -> crate::lab::Result<T>) -> Result<T, CliError> {
    let packtrain = std::env::current_exe().map_err(|e| CliError::failed("packtrain itself", e))?;
    run(&packtrain).map_err(|error| CliError::Failed(error.to_string()))
}
