//! What every `top` has in common: when it looks, the loop that draws, and the lines in its place.
//!
//! ```text
//!  who is looked at ──ask──► a thread for each ──┐
//!                              keys, signals ────┴─► View ──► the terminal
//! ```
//! Who does not answer delays neither keys nor others.

use std::io::{self, Write};
use std::time::Duration;

use clap::{ArgGroup, Args, value_parser};
use packtrain_proto::time::Instant;
use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;

use super::error::CliError;
use crate::clock::Clock;
use crate::events::local;
use crate::linux::local_time;
use crate::view::inputs::{Input, Inputs, Sender, Then};
use crate::view::table::Look;
use crate::view::terminal::Screen;
use crate::view::theme::{Glyphs, Theme, ThemeName};

/// How it looks, and how often.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("lines").multiple(true)))]
pub struct LookArguments {
    /// How long it is from one look to the next: 0.2 to 60.
    #[arg(long, short = 'd', value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
    pub interval: Duration,

    /// Print plain text at each interval, as top -b does.
    #[arg(long, short, group = "lines")]
    pub batch: bool,

    /// Print a line of JSON for each at each interval.
    #[arg(long, group = "lines")]
    pub json: bool,

    /// With --batch or --json: end after so many intervals.
    #[arg(long, short = 'n', value_name = "COUNT", requires = "lines", value_parser = value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Colours.
    #[arg(long, value_name = "THEME", value_enum, default_value_t)]
    theme: ThemeName,
}

impl LookArguments {
    pub fn is_lines(&self) -> bool {
        self.batch || self.json
    }

    /// On this terminal.
    pub fn look(&self) -> Look {
        let lookup = |name: &str| std::env::var(name).ok();
        Look {
            theme: Theme::of(self.theme, lookup),
            glyphs: Glyphs::of(lookup),
        }
    }
}

const INTERVAL_SECONDS: std::ops::RangeInclusive<f64> = 0.2..=60.0;

fn parse_interval(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    // Otherwise `inf`, `nan` and `+1` would be numbers too.
    let is_plain = number.starts_with(|c: char| c.is_ascii_digit());
    match number.parse() {
        Ok(seconds) if is_plain && INTERVAL_SECONDS.contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err("a time in seconds, 0.2 to 60".into()),
    }
}

/// When to look: at even intervals, unless a look takes longer.
#[derive(Debug)]
pub struct Beat {
    clock: Clock,
    interval: Duration,
    next: Instant,
}

impl Beat {
    pub fn start(clock: Clock, interval: Duration) -> Beat {
        let next = clock.now() + interval;
        Beat {
            clock,
            interval,
            next,
        }
    }

    pub fn left(&self) -> Duration {
        self.next.since(self.clock.now())
    }

    fn is_due(&self) -> bool {
        self.left().is_zero()
    }

    pub fn passes(&mut self) {
        self.next = (self.next + self.interval).max(self.clock.now());
    }

    /// A look that took long is not followed by the next at once: of a moment no rate can be told.
    pub fn leaves_time(&mut self) {
        self.next = self.next.max(self.clock.now() + self.interval / 2);
    }
}

/// What is shown, and what keys do; it neither asks nor waits.
pub trait View {
    type Answer: Send + 'static;

    /// Says whether something that is shown has changed.
    fn take(&mut self, answer: Self::Answer) -> bool;

    fn handle_key(&mut self, key: KeyEvent) -> Then;

    fn draw(&mut self, frame: &mut Frame);
}

/// Until somebody has seen enough. `at_beat` comes first of all and with each interval, to have more looked at: whom it starts
/// tells by the sender. It says whether something that is shown has changed.
pub fn fill_screen<V: View>(
    view: &mut V,
    arguments: &LookArguments,
    clock: Clock,
    mut at_beat: impl FnMut(&mut V, &Sender<V::Answer>) -> bool,
) -> Result<(), CliError> {
    let failed = |error: io::Error| CliError::failed("the terminal", error);
    let inputs = Inputs::<V::Answer>::start().map_err(|e| CliError::failed("signal handler", e))?;
    let mut screen = Screen::take().map_err(failed)?;
    inputs.read_keys();
    let sender = inputs.sender();
    at_beat(view, &sender);
    let mut beat = Beat::start(clock, arguments.interval);
    let mut has_changed = true;
    loop {
        if has_changed {
            screen.draw(|frame| view.draw(frame)).map_err(failed)?;
        }
        has_changed = false;
        let first = inputs.next(beat.left());
        // What has come in the meantime is drawn at once.
        let others = std::iter::from_fn(|| inputs.next_at_once());
        for input in first.into_iter().chain(others) {
            has_changed |= match input {
                Input::End => return Ok(()),
                Input::Size => true,
                Input::GoesOn => screen.retake().map(|()| true).map_err(failed)?,
                Input::Answer(answer) => view.take(answer),
                Input::Key(key) => match view.handle_key(key) {
                    Then::Nothing => false,
                    Then::Draw => true,
                    Then::DrawAnew => screen.retake().map(|()| true).map_err(failed)?,
                    Then::Stop => screen.stop_for_a_while().map(|()| true).map_err(failed)?,
                    Then::Quit => return Ok(()),
                },
            };
        }
        if beat.is_due() {
            beat.passes();
            has_changed |= at_beat(view, &sender);
        }
    }
}

/// As long as the view is there: for a thread of its own.
#[allow(clippy::disallowed_methods)] // a command beside whom it asks, not the daemon
pub fn ask_for_ever<A>(
    clock: Clock,
    interval: Duration,
    told: &Sender<A>,
    mut ask: impl FnMut() -> A,
) {
    let mut beat = Beat::start(clock, interval);
    while told.send(Input::Answer(ask())).is_ok() {
        beat.leaves_time();
        std::thread::sleep(beat.left());
        beat.passes();
    }
}

/// Of an error about somebody whose name stands beside it.
pub fn reason(error: CliError) -> String {
    match error {
        CliError::NoAnswer { reason, .. } => reason,
        other => other.to_string(),
    }
}

pub fn time_of_day(clock: Clock) -> String {
    let unix_ns = clock.wall().unix_nanos(clock.now());
    let ahead_s = local_time::offset_s((unix_ns / 1_000_000_000) as i64);
    local(unix_ns, ahead_s)
}

/// Says whether nobody reads them any more, which is no error.
pub fn print(lines: &str) -> Result<bool, CliError> {
    let written = io::stdout().write_all(lines.as_bytes());
    match written.and_then(|()| io::stdout().flush()) {
        Ok(()) => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(e) => Err(CliError::failed("standard output", e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_fifth_of_a_second_to_a_minute() {
        let nanos = |text| parse_interval(text).map(|time| time.as_millis());
        assert_eq!(nanos("0.2"), Ok(200));
        assert_eq!(nanos("1.5s"), Ok(1500));
        assert_eq!(nanos("60"), Ok(60_000));
        for wrong in ["0.1", "0", "61", "-1", "nan", "inf", "+1", "", "s", "1m"] {
            assert!(parse_interval(wrong).is_err(), "{wrong}");
        }
    }
}
