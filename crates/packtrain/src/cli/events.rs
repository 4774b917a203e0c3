//! `packtrain events`: what has happened on a line, and what happens.

use std::io::{self, BufWriter, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;

use super::error::CliError;
use super::output::{BAD, GOOD};
use super::{show, signals};
use crate::clock::Clock;
use crate::control::{Connection, ControlError, Request};
use crate::events::{Columns, Record, UpOrDown, What, from_rfc3339, local};
use crate::linux::local_time;
use crate::settings::values::InterfaceName;

/// Show what has happened on a line: links, peers and paths that come and go, and why.
///
/// A line keeps its last 1024 events. With --follow, those that come are shown until Ctrl-C (exit code 0) or
/// until the line ends (9). Everybody may look.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  packtrain events
  packtrain events pt0 --follow
  packtrain events pt0 -n 20
  packtrain events pt0 --since 10m
  packtrain events pt0 --since '2026-11-26 07:00:00' --json
  packtrain events -f --json | jq -r 'select(.kind == \"link\") | .link + \" \" + .state'

With --json each line is one object, described in docs/events.schema.json.")]
pub struct EventsArguments {
    /// The line [default: the only one that runs].
    pub name: Option<InterfaceName>,

    /// Go on with those that come.
    #[arg(long, short)]
    pub follow: bool,

    /// Only those since a time: how long ago it is (30s, 10m, 2h, 1d), or a date and a time of day, of this place or with
    /// a zone as RFC 3339 has it.
    #[arg(long, value_name = "TIME", conflicts_with = "count")]
    pub since: Option<Since>,

    /// Only so many of the last.
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub count: Option<u32>,

    /// Print an object in a line for each.
    #[arg(long)]
    pub json: bool,
}

/// From when on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    Ago(Duration),
    At { unix_ns: u64 },
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Since, String> {
        let place = |unix_s| local_time::offset_s(unix_s);
        if let Some(unix_ns) = from_rfc3339(text, place) {
            return Ok(Since::At { unix_ns });
        }
        ago(text).map(Since::Ago).ok_or_else(|| {
            "neither how long ago, like 30s, 10m, 2h or 1d, nor a time, like '2026-11-26 07:00:01' or \
             2026-11-26T07:00:01Z"
                .to_owned()
        })
    }
}

fn ago(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_number)?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

impl Since {
    fn unix_ns(self, clock: Clock) -> u64 {
        match self {
            Since::At { unix_ns } => unix_ns,
            Since::Ago(ago) => {
                let now = clock.wall().unix_nanos(clock.now());
                now.saturating_sub(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX))
            }
        }
    }
}

pub(super) fn run(arguments: &EventsArguments) -> Result<(), CliError> {
    let name = show::only_line(arguments.name.as_ref())?;
    let failed = |error: ControlError| CliError::from_control(name.as_str(), error);
    let since_unix_ns = arguments.since.map(|since| since.unix_ns(Clock::start()));
    let mut connection = Connection::open(name.as_str()).map_err(failed)?;
    connection
        .ask_for_events(Request::Events {
            follow: arguments.follow,
            last: arguments.count,
            since_unix_ns,
        })
        .map_err(failed)?;
    let mut reader = Reader {
        json: arguments.json,
        ended: None,
        out: BufWriter::new(anstream::stdout()),
    };
    if !arguments.follow {
        return reader.read(&mut connection, &name, false).map(drop);
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    let told = interrupted.clone();
    let socket = connection
        .socket()
        .map_err(|e| CliError::failed("the control socket", e))?;
    signals::end_on_signals(move || hang_up(&told, &socket))?;
    connection.wait_for_ever().map_err(failed)?;
    let end = reader.read(&mut connection, &name, true)?;
    match (interrupted.load(Ordering::SeqCst), end) {
        (true, _) => {
            eprintln!("interrupted; {name} goes on");
            Ok(())
        }
        (false, End::ReaderGone) => Ok(()),
        (false, End::Connection) => Err(CliError::LineEnded {
            name: name.to_string(),
            because: reader.ended.unwrap_or_else(|| {
                "without a word: its daemon was killed, or gave this place to somebody else".into()
            }),
        }),
    }
}

fn hang_up(told: &AtomicBool, socket: &UnixStream) {
    told.store(true, Ordering::SeqCst);
    let _ = socket.shutdown(Shutdown::Both);
}

enum End {
    Connection,
    /// Who reads our output may stop reading.
    ReaderGone,
}

struct Reader<W: Write> {
    json: bool,
    /// Why the line has ended, once it has said so.
    ended: Option<String>,
    out: W,
}

impl<W: Write> Reader<W> {
    /// Prints what comes until nothing more does. `at_once`: somebody waits for each.
    fn read(
        &mut self,
        connection: &mut Connection,
        name: &InterfaceName,
        at_once: bool,
    ) -> Result<End, CliError> {
        loop {
            let line = connection.next_line();
            let line = line.map_err(|e| CliError::from_control(name.as_str(), e))?;
            let Some(line) = line else {
                break;
            };
            let more = at_once && connection.has_read_ahead();
            let printed = self.print(&line).and_then(|()| match at_once && !more {
                true => self.out.flush(),
                false => Ok(()),
            });
            if is_over(printed)? {
                return Ok(End::ReaderGone);
            }
        }
        match is_over(self.out.flush())? {
            true => Ok(End::ReaderGone),
            false => Ok(End::Connection),
        }
    }

    fn print(&mut self, line: &[u8]) -> io::Result<()> {
        let record: Option<Record> = serde_json::from_slice(line).ok();
        if let Some(What::Line {
            state: UpOrDown::Down,
            because,
            ..
        }) = record.as_ref().map(|record| &record.what)
        {
            self.ended = Some(because.map_or("", |because| because.text()).to_owned());
        }
        match record {
            Some(record) if !self.json => writeln!(self.out, "{}", text(&record)),
            // As it was written, and so of a newer line what this program does not know.
            _ => self.out.write_all(line).and_then(|()| writeln!(self.out)),
        }
    }
}

fn is_over(result: io::Result<()>) -> Result<bool, CliError> {
    match result {
        Ok(()) => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(e) => Err(CliError::failed("standard output", e)),
    }
}

/// `2026-11-26 07:00:01.123  link  eth1  down  carrier lost`, each in its column.
fn text(record: &Record) -> String {
    /// As wide as a MAC address: names of links are shorter.
    const SUBJECT: usize = 17;
    const STATE: usize = 8;
    let unix_ns = from_rfc3339(&record.time, |_| 0).unwrap_or_default();
    let ahead_s = local_time::offset_s((unix_ns / 1_000_000_000) as i64);
    let Columns {
        kind,
        subject,
        state,
        details,
        is_good,
    } = record.what.columns();
    let style = match is_good {
        Some(true) => GOOD,
        Some(false) => BAD,
        None => anstyle::Style::new(),
    };
    let time = local(unix_ns, ahead_s);
    let line = format!("{time}  {kind:<7}  {subject:<SUBJECT$}  {style}{state}{style:#}");
    match details.is_empty() {
        true => line,
        false => {
            let padding = STATE.saturating_sub(state.chars().count());
            format!("{line}{:padding$}  {details}", "")
        }
    }
}

#[cfg(test)]
mod tests;
