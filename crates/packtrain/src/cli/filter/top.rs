//! `packtrain filter top`: filters as they work, in a terminal, or in lines. A thread asks each of them.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use clap::Args;
use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;

use super::{ask, read, running};
use crate::cli::error::CliError;
use crate::cli::top::{self, Beat, LookArguments, View};
use crate::cli::{output, signals};
use crate::clock::Clock;
use crate::instance;
use crate::settings::values::InterfaceName;
use crate::view::filter_top::{Answer, FilterTop, Watched, report};
use crate::view::inputs::{Sender, Then};
use crate::view::terminal::{self, Unfit};

/// Watch a filter at work: what it lets pass and what it drops a second, and why.
///
/// Rates are of the time between two looks. A filter that ends is waited for, and one that is started anew counts
/// anew; with --batch or --json the command ends with it (exit code 9). q, Ctrl-C and SIGTERM end it with 0. Everybody may look.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain filter top
  packtrain filter top eth1 --interval 0.5
  packtrain filter top eth1 --batch -n 10
  packtrain filter top eth1 --json | jq --unbuffered '.dropped.frames_per_s'

Keys:
  q, Esc, Ctrl-C   quit                     Tab              the next table
  s                sort by something else   arrows, j, k     scroll, or choose a filter
  p, space         pause, and go on         PgUp, PgDn       … by a page
  r                totals count from now    h, ?             help")]
pub struct TopArguments {
    /// The interface [default: all that have a filter, to choose from].
    #[arg(value_name = "LINK")]
    interface: Option<InterfaceName>,

    #[command(flatten)]
    look: LookArguments,
}

pub fn run(arguments: &TopArguments) -> Result<(), CliError> {
    let clock = Clock::start();
    match arguments.look.is_lines() {
        true => print_lines(arguments, clock),
        false => fill_screen(arguments, clock),
    }
}

/// Those that are meant, as they are now; none is an error.
fn meant(interface: Option<&InterfaceName>) -> Result<Vec<InterfaceName>, CliError> {
    let meant = match interface {
        Some(interface) => vec![interface.clone()],
        None => running()?,
    };
    match meant.is_empty() {
        true => Err(none_runs(None)),
        false => Ok(meant),
    }
}

fn none_runs(interface: Option<&InterfaceName>) -> CliError {
    let running = instance::running_filters().unwrap_or_default();
    CliError::NoFilter {
        interface: interface.map_or("any interface".into(), ToString::to_string),
        running: running.iter().map(ToString::to_string).collect(),
        log: None,
    }
}

fn ask_for(interface: &InterfaceName) -> Result<Answer, CliError> {
    match ask(interface).and_then(read) {
        Ok(document) => Ok(Answer::Document(Box::new(document))),
        Err(CliError::NoFilter { .. }) => Ok(Answer::Ended),
        Err(error) => Err(error),
    }
}

/// Of which filter, and when it came by the monotonic clock.
type Told = (InterfaceName, Answer, u64);

impl View for FilterTop {
    type Answer = Told;

    fn take(&mut self, (interface, answer, asked_ns): Told) -> bool {
        FilterTop::take(self, &interface, answer, asked_ns)
    }

    fn handle_key(&mut self, key: KeyEvent) -> Then {
        FilterTop::handle_key(self, key)
    }

    fn draw(&mut self, frame: &mut Frame) {
        FilterTop::draw(self, frame);
    }
}

fn fill_screen(arguments: &TopArguments, clock: Clock) -> Result<(), CliError> {
    terminal::check().map_err(|unfit| refusal(unfit, arguments))?;
    // What is wrong is said before the terminal is taken.
    let mut first = Some(meant(arguments.interface.as_ref())?);
    if let Some(interface) = &arguments.interface {
        ask(interface).and_then(read)?;
    }
    let interval = arguments.look.interval;
    let mut view = FilterTop::new(arguments.look.look(), interval);
    let at_beat = |view: &mut FilterTop, sender: &Sender<Told>| {
        let filters = match first.take() {
            Some(filters) => filters,
            None if arguments.interface.is_none() => {
                instance::running_filters().unwrap_or_default()
            }
            None => return false,
        };
        let mut has_more = false;
        for interface in filters {
            if view.watch(&interface) {
                has_more = true;
                let told = sender.clone();
                std::thread::spawn(move || {
                    top::ask_for_ever(clock, interval, &told, || {
                        let answer = ask_for(&interface);
                        let answer = answer.unwrap_or_else(|e| Answer::Failed(top::reason(e)));
                        (interface.clone(), answer, clock.monotonic_nanos())
                    });
                });
            }
        }
        has_more
    };
    top::fill_screen(&mut view, &arguments.look, clock, at_beat)
}

fn refusal(unfit: Unfit, arguments: &TopArguments) -> CliError {
    let link = match &arguments.interface {
        Some(interface) => format!(" {interface}"),
        None => String::new(),
    };
    CliError::Usage(format!(
        "{unfit}: `packtrain filter top{link} --batch` prints text and `--json` JSON, again and again; `packtrain \
         filter status{link} --json` once"
    ))
}

fn print_lines(arguments: &TopArguments, clock: Clock) -> Result<(), CliError> {
    let (ends, ended) = sync_channel::<()>(0);
    signals::end_on_signals(move || drop(ends))?;
    let mut watched: BTreeMap<InterfaceName, Watched> = BTreeMap::new();
    let mut beat = Beat::start(clock, arguments.look.interval);
    let mut left = arguments.look.count;
    let mut filters = meant(arguments.interface.as_ref())?;
    loop {
        let mut text = String::new();
        for interface in std::mem::take(&mut filters) {
            let answer = match ask_for(&interface) {
                Ok(Answer::Ended) => {
                    watched.remove(&interface);
                    continue;
                }
                Ok(answer) => answer,
                // From the start on it is an error, later it may pass.
                Err(error) if arguments.interface.is_some() && watched.is_empty() => {
                    return Err(error);
                }
                Err(error) => {
                    output::note(&error.to_string());
                    filters.push(interface);
                    continue;
                }
            };
            filters.push(interface.clone());
            let filter = watched
                .entry(interface.clone())
                .or_insert_with(|| Watched::new(interface));
            filter.take(answer, clock.monotonic_nanos());
            let said = match arguments.look.json {
                true => report::json(filter).map(|value| format!("{value}\n")),
                false => report::text(filter, &top::time_of_day(clock)).map(|text| text + "\n"),
            };
            text += &said.unwrap_or_default();
        }
        if !text.is_empty() {
            if top::print(&text)? {
                return Ok(());
            }
            left = left.map(|left| left - 1);
        }
        if left == Some(0) {
            return Ok(());
        }
        if arguments.interface.is_none() {
            let running = instance::running_filters().unwrap_or_default();
            let new = running.into_iter().filter(|f| !filters.contains(f));
            filters.extend(new.collect::<Vec<_>>());
        }
        if filters.is_empty() {
            return Err(none_runs(arguments.interface.as_ref()));
        }
        beat.leaves_time();
        match ended.recv_timeout(beat.left()) {
            Err(RecvTimeoutError::Timeout) => beat.passes(),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}
