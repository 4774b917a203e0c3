//! `packtrain pace top`: streams as they are paced, in a terminal, or in lines.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use clap::Args;
use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;

use super::{ask, tcp};
use crate::cli::error::CliError;
use crate::cli::top::{self, Beat, LookArguments, View};
use crate::cli::{output, signals};
use crate::clock::Clock;
use crate::pace::Pacer;
use crate::view::inputs::{Sender, Then};
use crate::view::pace_top::{Answer, PaceTop, Watched, report};
use crate::view::terminal::{self, Unfit};

/// Watch the TCP streams that are paced: what each does, how fast, and what it loses; and the paths that are remembered.
///
/// Rates are of what was acknowledged between two looks. A pacer that ends is waited for, and one that is started anew counts
/// anew; with --batch or --json the command ends with it (exit code 9). q, Ctrl-C and SIGTERM end it with 0. Everybody may look.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain pace top
  packtrain pace top --interval 0.5
  packtrain pace top --batch -n 1
  packtrain pace top --json | jq --unbuffered '.streams[] | [.remote, .phase, .bits_per_s]'

Keys:
  q, Esc, Ctrl-C   quit                     Tab              the other table
  s                sort by something else   arrows, j, k     scroll
  R                turn the order round     PgUp, PgDn       … by a page
  /                only rows with words     p, space         pause, and go on
  r                totals count from now    h, ?             help")]
pub struct TopArguments {
    #[command(flatten)]
    look: LookArguments,
}

pub fn run(arguments: &TopArguments) -> Result<(), CliError> {
    let clock = Clock::start();
    match arguments.look.is_lines() {
        true => print_lines(&arguments.look, clock),
        false => fill_screen(&arguments.look, clock),
    }
}

fn ask_tcp() -> Result<Answer, CliError> {
    let document = ask(&Pacer::Tcp).and_then(tcp::read)?;
    Ok(Answer::Document(Box::new(document)))
}

impl View for PaceTop {
    type Answer = Answer;

    fn take(&mut self, answer: Answer) -> bool {
        PaceTop::take(self, answer)
    }

    fn handle_key(&mut self, key: KeyEvent) -> Then {
        PaceTop::handle_key(self, key)
    }

    fn draw(&mut self, frame: &mut Frame) {
        PaceTop::draw(self, frame);
    }
}

fn fill_screen(arguments: &LookArguments, clock: Clock) -> Result<(), CliError> {
    terminal::check().map_err(refusal)?;
    // What is wrong is said before the terminal is taken.
    ask_tcp()?;
    let interval = arguments.interval;
    let mut view = PaceTop::new(arguments.look(), interval);
    let mut is_asked = false;
    let at_beat = |_: &mut PaceTop, sender: &Sender<Answer>| {
        if !std::mem::replace(&mut is_asked, true) {
            let told = sender.clone();
            std::thread::spawn(move || {
                top::ask_for_ever(clock, interval, &told, || {
                    ask_tcp().unwrap_or_else(|error| match error {
                        CliError::NoPacer { log, .. } => Answer::Ended { log },
                        error => Answer::Failed(top::reason(error)),
                    })
                });
            });
        }
        false
    };
    top::fill_screen(&mut view, arguments, clock, at_beat)
}

fn refusal(unfit: Unfit) -> CliError {
    CliError::Usage(format!(
        "{unfit}: `packtrain pace top --batch` prints text and `--json` JSON, again and again; `packtrain pace tcp status \
         --json` once"
    ))
}

fn print_lines(arguments: &LookArguments, clock: Clock) -> Result<(), CliError> {
    let (ends, ended) = sync_channel::<()>(0);
    signals::end_on_signals(move || drop(ends))?;
    let mut tcp = Watched::default();
    let mut beat = Beat::start(clock, arguments.interval);
    let mut left = arguments.count;
    loop {
        let lines = match ask_tcp() {
            Ok(answer) => {
                tcp.take(answer);
                match arguments.json {
                    true => report::json(&tcp).map(|value| format!("{value}\n")),
                    false => report::text(&tcp, &top::time_of_day(clock)).map(|text| text + "\n"),
                }
            }
            // From the start on it is an error, later it may pass.
            Err(error) if tcp.reading.is_none() => return Err(error),
            Err(CliError::NoPacer { log, .. }) => return Err(ended_meanwhile(log)),
            Err(error) => {
                output::note(&error.to_string());
                None
            }
        };
        if let Some(lines) = lines {
            if top::print(&lines)? {
                return Ok(());
            }
            left = left.map(|left| left - 1);
        }
        if left == Some(0) {
            return Ok(());
        }
        beat.leaves_time();
        match ended.recv_timeout(beat.left()) {
            Err(RecvTimeoutError::Timeout) => beat.passes(),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// While we were looking at it. `log`: it has left that, for nobody has asked it to end.
fn ended_meanwhile(log: Option<PathBuf>) -> CliError {
    let because = match log {
        Some(log) => format!(
            "nobody has asked it to, and it has left its log, {}",
            log.display()
        ),
        None => "what begins now is not spaced".into(),
    };
    CliError::LineEnded {
        name: Pacer::Tcp.to_string(),
        because,
    }
}
