//! `packtrain filter top`: filters as they work, in a terminal, or in lines.
//!
//! ```text
//!  a filter ──ask──► a thread for each ──┐
//!                      keys, signals ────┴─► FilterTop ──► the terminal
//! ```
//! A filter that does not answer delays neither keys nor other filters.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use clap::{ArgGroup, Args, value_parser};
use packtrain_proto::time::Instant;

use super::{ask, read, running};
use crate::cli::error::CliError;
use crate::cli::{output, signals};
use crate::clock::Clock;
use crate::events::local;
use crate::instance;
use crate::linux::local_time;
use crate::settings::values::InterfaceName;
use crate::view::filter_top::{Answer, FilterTop, Then, Watched, report};
use crate::view::inputs::{Input, Inputs, Sender};
use crate::view::table::Look;
use crate::view::terminal::{self, Screen, Unfit};
use crate::view::theme::{Glyphs, Theme, ThemeName};

/// Watch a filter at work: what it lets pass and what it drops a second, and why.
///
/// Rates are of the time between two looks. A filter that ends is waited for, and one that is started anew counts
/// anew; with --batch or --json the command ends with it (exit code 9). q, Ctrl-C and SIGTERM end it with 0. Everybody may look.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("lines").multiple(true)))]
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

    /// How long it is from one look to the next: 0.2 to 60.
    #[arg(long, short = 'd', value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
    interval: Duration,

    /// Print plain text at each interval, as top -b does.
    #[arg(long, short, group = "lines")]
    batch: bool,

    /// Print a line of JSON for each filter at each interval.
    #[arg(long, group = "lines")]
    json: bool,

    /// With --batch or --json: end after so many intervals.
    #[arg(long, short = 'n', value_name = "COUNT", requires = "lines", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Colours.
    #[arg(long, value_name = "THEME", value_enum, default_value_t)]
    theme: ThemeName,
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

pub fn run(arguments: &TopArguments) -> Result<(), CliError> {
    let clock = Clock::start();
    match arguments.batch || arguments.json {
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

/// When to look: at even intervals, unless a look takes longer.
#[derive(Debug)]
struct Beat {
    clock: Clock,
    interval: Duration,
    next: Instant,
}

impl Beat {
    fn start(clock: Clock, interval: Duration) -> Beat {
        let next = clock.now() + interval;
        Beat {
            clock,
            interval,
            next,
        }
    }

    fn left(&self) -> Duration {
        self.next.since(self.clock.now())
    }

    fn is_due(&self) -> bool {
        self.left().is_zero()
    }

    fn passes(&mut self) {
        self.next = (self.next + self.interval).max(self.clock.now());
    }

    /// A look that took long is not followed by the next at once: of a moment no rate can be told.
    fn leaves_time(&mut self) {
        self.next = self.next.max(self.clock.now() + self.interval / 2);
    }
}

/// Of which filter, and when it came by the monotonic clock.
type Told = (InterfaceName, Answer, u64);

fn fill_screen(arguments: &TopArguments, clock: Clock) -> Result<(), CliError> {
    terminal::check().map_err(|unfit| refusal(unfit, arguments))?;
    // What is wrong is said before the terminal is taken.
    let filters = meant(arguments.interface.as_ref())?;
    if let Some(interface) = &arguments.interface {
        ask(interface).and_then(read)?;
    }
    let lookup = |name: &str| std::env::var(name).ok();
    let look = Look {
        theme: Theme::of(arguments.theme, lookup),
        glyphs: Glyphs::of(lookup),
    };
    let mut top = FilterTop::new(look, arguments.interval);
    let failed = |error: io::Error| CliError::failed("the terminal", error);
    let inputs = Inputs::<Told>::start().map_err(|e| CliError::failed("signal handler", e))?;
    let mut screen = Screen::take().map_err(failed)?;
    inputs.read_keys();
    let watch = |top: &mut FilterTop, filters: Vec<InterfaceName>| {
        let mut has_more = false;
        for interface in filters {
            if top.watch(&interface) {
                has_more = true;
                let (told, interval) = (inputs.sender(), arguments.interval);
                std::thread::spawn(move || ask_for_ever(&interface, interval, clock, &told));
            }
        }
        has_more
    };
    watch(&mut top, filters);
    let mut beat = Beat::start(clock, arguments.interval);
    let mut has_changed = true;
    loop {
        if has_changed {
            screen.draw(|frame| top.draw(frame)).map_err(failed)?;
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
                Input::Answer((interface, answer, asked_ns)) => {
                    top.take(&interface, answer, asked_ns)
                }
                Input::Key(key) => match top.handle_key(key) {
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
            if arguments.interface.is_none() {
                let running = instance::running_filters();
                has_changed |= watch(&mut top, running.unwrap_or_default());
            }
        }
    }
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

/// As long as the view is there.
#[allow(clippy::disallowed_methods)] // a command beside the filter, not the daemon
fn ask_for_ever(interface: &InterfaceName, interval: Duration, clock: Clock, told: &Sender<Told>) {
    let mut beat = Beat::start(clock, interval);
    loop {
        let answer = ask_for(interface).unwrap_or_else(|e| Answer::Failed(reason(e)));
        let answer = (interface.clone(), answer, clock.monotonic_nanos());
        if told.send(Input::Answer(answer)).is_err() {
            return;
        }
        beat.leaves_time();
        std::thread::sleep(beat.left());
        beat.passes();
    }
}

/// Without the name, which stands beside it.
fn reason(error: CliError) -> String {
    match error {
        CliError::NoAnswer { reason, .. } => reason,
        other => other.to_string(),
    }
}

fn print_lines(arguments: &TopArguments, clock: Clock) -> Result<(), CliError> {
    let (ends, ended) = sync_channel::<()>(0);
    signals::end_on_signals(move || drop(ends))?;
    let mut watched: BTreeMap<InterfaceName, Watched> = BTreeMap::new();
    let mut beat = Beat::start(clock, arguments.interval);
    let mut left = arguments.count;
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
            let said = match arguments.json {
                true => report::json(filter).map(|value| format!("{value}\n")),
                false => report::text(filter, &time_of_day(clock)).map(|text| text + "\n"),
            };
            text += &said.unwrap_or_default();
        }
        if !text.is_empty() {
            if is_over(io::stdout().write_all(text.as_bytes()))? {
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

fn time_of_day(clock: Clock) -> String {
    let unix_ns = clock.wall().unix_nanos(clock.now());
    let ahead_s = local_time::offset_s((unix_ns / 1_000_000_000) as i64);
    local(unix_ns, ahead_s)
}

/// Who reads our output may stop reading.
fn is_over(written: io::Result<()>) -> Result<bool, CliError> {
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
