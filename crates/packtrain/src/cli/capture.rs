//! `packtrain capture`: what passes a line, direct frames included.

use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::fs::FileType;

use self::sink::Sink;
use self::watcher::{News, Watcher};
use super::error::CliError;
use super::patience::Patience;
use super::{output, show, signals};
use crate::capture::{Dropped, Merge, Seen, Sorter, Sources, View, Wanted};
use crate::clock::Clock;
use crate::linux::capture_socket::CaptureSocket;
use crate::linux::epoll::{Epoll, Interest};
use crate::settings::values::InterfaceName;

mod arguments;
mod line;
mod sink;
mod watcher;

pub use arguments::CaptureArguments;

/// As much of a frame as its line may need.
const LINE_SNAP_LEN: u32 = 512;
/// The kernel begins to stamp frames a moment after it is asked to.
const UNTIL_STAMPED: Duration = Duration::from_millis(100);

/// Each of some hundred frames.
const TURNS_AT_END: u32 = 128;

/// What wakes the capture.
const FRAMES: u64 = 0;
const WAKE: u64 = 1;
const READER: u64 = 2;

/// What is written to wake it, by who catches signals.
const SIGNAL: u8 = b'!';

pub(super) fn run(arguments: &CaptureArguments) -> Result<(), CliError> {
    refuse_terminal(arguments)?;
    let name = show::only_line(arguments.name.as_ref())?;
    let view = watcher::view(&name)?;
    let (wake, wakers) = UnixStream::pair().map_err(|e| CliError::failed("a socket pair", e))?;
    let clone = || {
        wakers
            .try_clone()
            .map_err(|e| CliError::failed("a socket", e))
    };
    let mut for_signals = clone()?;
    let mut capture = Capture::open(arguments, &view, wake).map_err(not_opened)?;
    let mut sink = open_sink(arguments, &name)?;
    signals::end_on_signals(move || {
        let _ = for_signals.write_all(&[SIGNAL]);
    })?;
    let watcher = Watcher::start(name.clone(), clone()?);
    eprintln!("capturing on {name}; Ctrl-C ends it");
    let ended = capture.run(&watcher, &name, sink.as_mut());
    let dropped = capture.sources.dropped();
    let ended = ended.and_then(|why| match why {
        End::ReaderGone => Ok(()),
        _ => sink.end(&dropped).map_err(Stop::Output),
    });
    tell(capture.captured, &dropped);
    match ended {
        Ok(()) => Ok(()),
        // Who reads our output may stop reading.
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Stop::Output(error)) => {
            let to = arguments.write.as_deref().filter(|path| !is_stdout(path));
            let to = to.map_or("standard output".into(), |path| path.display().to_string());
            Err(CliError::failed(&to, error))
        }
        Err(Stop::System(error)) => Err(CliError::failed("packet socket", error)),
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn refuse_terminal(arguments: &CaptureArguments) -> Result<(), CliError> {
    let to_stdout = arguments.write.as_deref().is_some_and(is_stdout);
    if to_stdout && io::stdout().is_terminal() {
        return Err(CliError::Told {
            exit_code: 2,
            message: "a capture is nothing for a terminal to show".to_owned(),
            hint: Some("without -w it prints a line for each frame".to_owned()),
        });
    }
    Ok(())
}

/// A packet socket takes a capability that the status of a line does not.
fn not_opened(error: io::Error) -> CliError {
    match error.raw_os_error() {
        Some(libc::EPERM) => CliError::NoRights(vec!["CAP_NET_RAW"]),
        _ => CliError::failed("packet socket", error),
    }
}

/// Made when it is known that there is something to go into it.
fn open_sink(
    arguments: &CaptureArguments,
    name: &InterfaceName,
) -> Result<Box<dyn Sink>, CliError> {
    let Some(path) = &arguments.write else {
        let at_once = arguments.line_buffered || io::stdout().is_terminal();
        return Ok(Box::new(sink::Lines::begin(io::stdout().lock(), at_once)));
    };
    let snap_len = arguments.snap_len.unwrap_or(0);
    let begun: io::Result<Box<dyn Sink>> = if is_stdout(path) {
        sink::File::begin(io::stdout().lock(), name.as_str(), snap_len).map(|f| Box::new(f) as _)
    } else {
        let file = fs::File::create(path);
        file.and_then(|file| sink::File::begin(file, name.as_str(), snap_len))
            .map(|f| Box::new(f) as _)
    };
    begun.map_err(|error| {
        CliError::Told {
        exit_code: 1,
        message: format!("cannot write {}: {error}", path.display()),
        hint: Some(
            "-w takes a file in a directory that is there and may be written to, or - for standard \
             output"
                .to_owned(),
        ),
    }
    })
}

/// As tcpdump tells it.
fn tell(captured: u64, dropped: &Dropped) {
    let frames = if captured == 1 { "frame" } else { "frames" };
    let missing = dropped.frames();
    eprintln!("{captured} {frames} captured, {missing} dropped by the kernel");
    if dropped.witnesses > 0 {
        output::note(&format!(
            "{} received frames may have come directly, and count as the engine's",
            dropped.witnesses
        ));
    }
}

/// Why a capture ends.
enum End {
    Count,
    Signal,
    LineGone,
    ReaderGone,
}

/// Why it cannot go on.
enum Stop {
    Output(io::Error),
    System(io::Error),
}

struct Capture {
    wanted: Wanted,
    count: Option<u64>,
    captured: u64,
    clock: Clock,
    epoll: Epoll,
    wake: UnixStream,
    sources: Sources,
    merge: Merge<Seen>,
    sorter: Sorter,
    was_silent: bool,
    /// While it is there, the kernel stamps frames as they come in.
    _stamps: CaptureSocket,
}

impl Capture {
    fn open(arguments: &CaptureArguments, view: &View, wake: UnixStream) -> io::Result<Capture> {
        let stamps = CaptureSocket::create()?;
        let mut patience = Patience::of(UNTIL_STAMPED);
        while patience.wait() {}
        let epoll = Epoll::new()?;
        wake.set_nonblocking(true)?;
        epoll.add(&wake, WAKE, Interest::ReadWhileReady)?;
        let stdout = io::stdout();
        let writes_there = arguments.write.as_deref().is_none_or(is_stdout);
        if writes_there && is_pipe(stdout.as_fd()) {
            epoll.add(stdout.as_fd(), READER, Interest::Read)?;
        }
        let snap_len = match (&arguments.write, arguments.snap_len) {
            (_, Some(snap_len)) => snap_len,
            (Some(_), None) => 0,
            (None, None) => LINE_SNAP_LEN,
        };
        let mut capture = Capture {
            wanted: arguments.wanted(),
            count: arguments.count,
            captured: 0,
            clock: Clock::start(),
            epoll,
            wake,
            sources: Sources::new(arguments.wanted(), snap_len),
            merge: Merge::default(),
            sorter: Sorter::default(),
            was_silent: false,
            _stamps: stamps,
        };
        capture.follow(view)?;
        Ok(capture)
    }

    fn follow(&mut self, view: &View) -> io::Result<()> {
        self.sorter.learn(view);
        let epoll = &self.epoll;
        self.sources.follow(view, &mut |socket| {
            epoll.add(socket, FRAMES, Interest::ReadWhileReady)
        })
    }

    fn run(
        &mut self,
        watcher: &Watcher,
        name: &InterfaceName,
        sink: &mut dyn Sink,
    ) -> Result<End, Stop> {
        loop {
            let now = self.clock.now();
            let due = self.merge.due().map(|due| due.since(now));
            let woken = self.epoll.wait(due).map_err(Stop::System)?;
            let tokens: Vec<u64> = woken.map(|ready| ready.token).collect();
            if tokens.contains(&READER) {
                return Ok(End::ReaderGone);
            }
            self.read(watcher)?;
            let mut ended = None;
            if tokens.contains(&WAKE) {
                let caught = self.signal_caught();
                ended = caught.then_some(End::Signal);
                while let Some(news) = watcher.news() {
                    if self.hear(news, name)? {
                        ended = Some(End::LineGone);
                    }
                }
            }
            if ended.is_some() {
                self.read_the_rest(watcher)?;
            }
            let now = self.clock.now();
            let before = self.captured;
            loop {
                // At the end nothing comes that would have to go first.
                let next = match ended {
                    Some(_) => self.merge.pop_any(),
                    None => self.merge.pop(now),
                };
                let Some(seen) = next else { break };
                if self.emit(seen, sink)? {
                    return Ok(End::Count);
                }
            }
            if self.captured > before {
                sink.pause().map_err(Stop::Output)?;
            }
            if let Some(end) = ended {
                return Ok(end);
            }
        }
    }

    /// All that woke us says nothing but that.
    fn signal_caught(&mut self) -> bool {
        let mut bytes = [0; 64];
        let mut caught = false;
        while let Ok(len) = self.wake.read(&mut bytes) {
            if len == 0 {
                break;
            }
            caught |= bytes[..len].contains(&SIGNAL);
        }
        caught
    }

    /// Says whether the line is gone.
    fn hear(&mut self, news: News, name: &InterfaceName) -> Result<bool, Stop> {
        match news {
            News::View(view) => {
                self.was_silent = false;
                self.follow(&view).map_err(Stop::System)?;
            }
            News::Ended => {
                output::note(&format!("{name} has ended"));
                return Ok(true);
            }
            News::Silent(reason) if !self.was_silent => {
                self.was_silent = true;
                output::note(&format!(
                    "new links and peers are not seen meanwhile: {reason}"
                ));
            }
            News::Silent(_) => {}
        }
        Ok(false)
    }

    fn read(&mut self, watcher: &Watcher) -> Result<(), Stop> {
        let now = self.clock.now();
        let Capture {
            sources,
            merge,
            sorter,
            ..
        } = self;
        let mut strangers = false;
        let mut taken = Vec::new();
        let Sorter { witnesses, .. } = sorter;
        let down = sources.read(&mut |seen| taken.push(seen), &mut |passed| {
            witnesses.add(passed.unix_nanos, passed.bytes, passed.len);
        });
        let down = down.map_err(Stop::System)?;
        for seen in taken {
            strangers |= sorter.is_for_a_stranger(&seen);
            merge.push(seen.unix_nanos, seen.bytes.len(), seen, now);
        }
        // A peer that has come, or an interface that has gone: the line knows which.
        if strangers || down {
            watcher.ask();
        }
        Ok(())
    }

    /// What waits already was there before the end. It is no endless row: the kernel keeps so much.
    fn read_the_rest(&mut self, watcher: &Watcher) -> Result<(), Stop> {
        for _ in 0..TURNS_AT_END {
            let before = self.merge.len();
            self.read(watcher)?;
            if self.merge.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// Says whether it was the last.
    fn emit(&mut self, seen: Seen, sink: &mut dyn Sink) -> Result<bool, Stop> {
        let frame = self.sorter.sort(seen);
        if !self.wanted.takes(frame.direction, frame.path) {
            return Ok(false);
        }
        sink.frame(&frame).map_err(Stop::Output)?;
        self.captured += 1;
        Ok(self.count == Some(self.captured))
    }
}

fn is_pipe(fd: BorrowedFd<'_>) -> bool {
    let stat = rustix::fs::fstat(fd);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}
