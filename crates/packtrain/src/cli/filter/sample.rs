//! `packtrain filter sample`: what a filter drops, to look at.

mod arguments;
mod sink;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use packtrain_proto::filter::Reason;
use packtrain_proto::time::{Duration as Span, Instant};

pub use self::arguments::SampleArguments;
use self::sink::{Lines, Named, Pcapng, Sink};
use crate::cli::error::CliError;
use crate::cli::words::count;
use crate::cli::{output, signals};
use crate::clock::{Clock, Wall};
use crate::linux::filter::samples::{Sample, SampleCounts, SampleError, Sampler};
use crate::linux::filter::standing::{self, Standing};
use crate::linux::netlink::Netlink;
use crate::settings::values::InterfaceName;

/// The ring is looked at so often though it holds nothing new.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(100);
/// A third of what the program is told.
const RENEWED_EVERY: Span = Span::from_secs(1);

pub fn run(arguments: &SampleArguments) -> Result<(), CliError> {
    let to_stdout = arguments.write.as_deref() == Some(Path::new("-"));
    if to_stdout && io::stdout().is_terminal() {
        return Err(CliError::Told {
            exit_code: 2,
            message: "a capture is nothing for a terminal to show".into(),
            hint: Some("without -w it prints a line for each frame".into()),
        });
    }
    let interface = super::only(arguments.interface.as_ref())?;
    let (names, now_called) = Names::of(&interface)?;
    let standing = standing_on(&now_called)?;
    let clock = Clock::start();
    let begun = Sampler::begin(&standing, arguments.wish(), clock.monotonic_nanos());
    let sampler = begun.map_err(|error| not_sampled(&interface, error))?;
    let mut sink = open_sink(arguments, &interface)?;
    let ends = Arc::new(AtomicBool::new(false));
    let told = ends.clone();
    signals::end_on_signals(move || told.store(true, Ordering::Relaxed))?;
    eprintln!("sampling what the filter of {interface} drops; Ctrl-C ends it");
    let mut sampling = Sampling {
        standing,
        sampler,
        names,
        // The kernel's times are of the same clock, of which only the beginning differs.
        wall: clock.wall(),
        clock_begins_at: clock.monotonic_nanos() - clock.now().as_nanos(),
        clock,
        left: arguments.count,
        until: arguments
            .time
            .map(|time| clock.now() + Span::from_nanos(time.as_nanos() as u64)),
    };
    let ended = sampling.run(&ends, sink.as_mut());
    let counts = sampling
        .sampler
        .counts()
        .map_err(|error| not_sampled(&interface, error));
    let ended = ended.and_then(|why| {
        let counts = counts?;
        sink.end(&counts).map_err(Stop::Output)?;
        tell(&counts);
        Ok(why)
    });
    match ended {
        Ok(End::Asked) => Ok(()),
        Ok(End::Gone) => Err(CliError::LineEnded {
            name: format!("the filter of {interface}"),
            because: "its program is not on the interface any more".into(),
        }),
        // Who reads our output may stop reading.
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Stop::Output(error)) => Err(CliError::failed("what is written", error)),
        Err(Stop::Cli(error)) => Err(error),
    }
}

fn standing_on(interface: &str) -> Result<Standing, CliError> {
    let missing = || CliError::InterfaceMissing(interface.into());
    let link = Netlink::open()?.link_by_name(interface)?;
    let ifindex = link.ok_or_else(missing)?.ifindex;
    let found = standing::find(ifindex).map_err(|error| not_sampled(interface, error.into()))?;
    found.ok_or_else(|| CliError::NoFilter {
        interface: interface.into(),
        running: Vec::new(),
        log: None,
    })
}

fn not_sampled(interface: impl std::fmt::Display, error: SampleError) -> CliError {
    match error {
        SampleError::Taken { .. } => CliError::Told {
            exit_code: 10,
            message: format!("the filter of {interface}: {error}"),
            hint: None,
        },
        error => CliError::Failed(format!("the filter of {interface}: {error}")),
    }
}

fn open_sink(
    arguments: &SampleArguments,
    interface: &InterfaceName,
) -> Result<Box<dyn Sink>, CliError> {
    let Some(path) = &arguments.write else {
        return Ok(Box::new(Lines::begin(anstream::stdout())));
    };
    let begun = if path == Path::new("-") {
        Pcapng::begin(
            Box::new(io::stdout()),
            interface.as_str(),
            arguments.snap_len,
        )
    } else {
        File::create(path)
            .and_then(|file| Pcapng::begin(Box::new(file), interface.as_str(), arguments.snap_len))
    };
    match begun {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(CliError::Told {
            exit_code: 1,
            message: format!("cannot write {}: {error}", path.display()),
            hint: Some(
                "-w takes a file in a directory that is there and may be written to, or - for standard output".into(),
            ),
        }),
    }
}

fn tell(counts: &SampleCounts) {
    eprintln!(
        "{} of {} dropped frames sampled",
        count(counts.sampled),
        count(counts.dropped)
    );
    if counts.missed > 0 {
        output::note(&format!(
            "{} samples found no room: they were read too slowly",
            count(counts.missed)
        ));
    }
}

enum End {
    Asked,
    Gone,
}

enum Stop {
    Output(io::Error),
    Cli(CliError),
}

impl From<CliError> for Stop {
    fn from(error: CliError) -> Stop {
        Stop::Cli(error)
    }
}

struct Sampling {
    standing: Standing,
    sampler: Sampler,
    names: Names,
    clock: Clock,
    clock_begins_at: u64,
    wall: Wall,
    left: Option<u64>,
    until: Option<Instant>,
}

impl Sampling {
    fn run(&mut self, ends: &AtomicBool, sink: &mut dyn Sink) -> Result<End, Stop> {
        let interface = self.names.interface.clone();
        let failed = |error| Stop::Cli(not_sampled(&interface, error));
        let mut renewed_at = self.clock.now();
        loop {
            let read = self.sampler.read(LOOKED_AT_EVERY).map_err(failed)?;
            for sample in &read {
                if self.left == Some(0) {
                    return Ok(End::Asked);
                }
                let named = self.named(sample)?;
                sink.sample(&named).map_err(Stop::Output)?;
                self.left = self.left.map(|left| left - 1);
            }
            sink.pause().map_err(Stop::Output)?;
            let now = self.clock.now();
            let is_over = self.until.is_some_and(|until| now >= until);
            if ends.load(Ordering::Relaxed) || is_over || self.left == Some(0) {
                return Ok(End::Asked);
            }
            if now >= renewed_at + RENEWED_EVERY {
                renewed_at = now;
                self.sampler
                    .renew(self.clock.monotonic_nanos())
                    .map_err(failed)?;
                let found = standing::find(self.standing.ifindex);
                let found = found.map_err(|error| failed(error.into()))?;
                if found.is_none_or(|found| found.program != self.standing.program) {
                    return Ok(End::Gone);
                }
            }
        }
    }

    fn named<'a>(&mut self, sample: &'a Sample) -> Result<Named<'a>, CliError> {
        let at = sample.monotonic_nanos.saturating_sub(self.clock_begins_at);
        Ok(Named {
            sample,
            unix_nanos: self.wall.unix_nanos(Instant::from_nanos(at)),
            rule: match sample.reason {
                Reason::Denied | Reason::Limited => self.names.of_rule(sample)?,
                _ => None,
            },
        })
    }
}

/// What rules are called, which the program does not know.
struct Names {
    interface: InterfaceName,
    version: u32,
    names: Vec<String>,
}

impl Names {
    /// And what the interface is called now.
    fn of(interface: &InterfaceName) -> Result<(Names, String), CliError> {
        let mut names = Names {
            interface: interface.clone(),
            version: 0,
            names: Vec::new(),
        };
        let now_called = names.ask()?;
        Ok((names, now_called))
    }

    fn ask(&mut self) -> Result<String, CliError> {
        let document = super::read(super::ask(&self.interface)?)?;
        self.version = document.rules_version;
        self.names = document.rules.into_iter().map(|rule| rule.name).collect();
        Ok(document.interface)
    }

    /// None where they have changed meanwhile, or nobody knows.
    fn of_rule(&mut self, sample: &Sample) -> Result<Option<String>, CliError> {
        if sample.rules_image != self.version {
            self.ask()?;
        }
        let is_known = sample.rules_image == self.version;
        Ok(self
            .names
            .get(sample.rule as usize)
            .filter(|_| is_known)
            .cloned())
    }
}
