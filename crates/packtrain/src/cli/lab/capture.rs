//! `packtrain lab capture`: what is on the wires, as pcapng.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::arguments::CaptureArguments;
use super::{CliError, asked, find, output};
use crate::cli::signals;
use crate::lab::emulator::protocol::{Request, WireChoice};
use crate::pcapng::Block;

pub fn run(arguments: &CaptureArguments) -> Result<(), CliError> {
    let Some(path) = &arguments.write else {
        return Err(CliError::Told {
            exit_code: 2,
            message: "a capture is written to a file: say which, with -w FILE".to_owned(),
            hint: Some("to see the frames pass by: -w - | tshark -l -r -".to_owned()),
        });
    };
    let to_stdout = path == Path::new("-");
    if to_stdout && io::stdout().is_terminal() {
        return Err(CliError::Told {
            exit_code: 2,
            message: "a capture is nothing for a terminal to show".to_owned(),
            hint: Some("-w - | tshark -l -r -, or -w FILE".to_owned()),
        });
    }
    let request = Request::Capture {
        wires: wires(&arguments.wires, arguments.from.as_deref()),
        frames_max: arguments.count,
        snap_len: arguments.snap_len,
        held: false,
    };
    let lab = find(&arguments.lab)?;
    let stream = lab.capture(&request).map_err(|error| asked(&lab, error))?;
    let for_signals = stream.get_ref().try_clone();
    let for_signals = for_signals.map_err(|e| CliError::failed("signal handler", e))?;
    signals::end_on_signals(move || {
        let _ = for_signals.shutdown(Shutdown::Write);
    })?;
    let to: Box<dyn Write> = match to_stdout {
        true => Box::new(io::stdout().lock()),
        // Made when it is known that there is something to go into it.
        false => Box::new(
            File::create(path).map_err(|e| CliError::failed(&path.display().to_string(), e))?,
        ),
    };
    eprintln!(
        "capturing on {}; Ctrl-C ends it",
        arguments.wires.join(", ")
    );
    copy(stream, to, path)?.tell();
    Ok(())
}

fn wires(names: &[String], from: Option<&str>) -> Vec<WireChoice> {
    let names = names.iter();
    names
        .map(|wire| WireChoice {
            wire: wire.clone(),
            from: from.map(str::to_owned),
        })
        .collect()
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Captured {
    frames: u64,
    /// `None`: the emulator ended without a word.
    dropped: Option<u64>,
}

impl Captured {
    /// As tcpdump tells it.
    fn tell(&self) {
        let frames = |n: u64| if n == 1 { "frame" } else { "frames" };
        eprintln!("{} {} captured", self.frames, frames(self.frames));
        match self.dropped {
            Some(dropped) => eprintln!("{dropped} {} dropped by the capture", frames(dropped)),
            None => output::note("the lab ended in the middle: what was dropped is not known"),
        }
    }
}

/// Writes whole blocks, each as soon as nothing more is there to go with it.
fn copy(
    mut from: BufReader<UnixStream>,
    to: impl Write,
    path: &Path,
) -> Result<Captured, CliError> {
    let mut to = BufWriter::with_capacity(64 * 1024, to);
    let mut captured = Captured::default();
    let result = loop {
        let block = match Block::read(&mut from) {
            Ok(Some(block)) => block,
            Ok(None) => break to.flush(),
            // Ours, or of a lab that was killed: what is whole is kept.
            Err(error) => {
                output::note(&format!("the capture was cut off: {error}"));
                break to.flush();
            }
        };
        captured.frames += u64::from(block.is_packet());
        if let Some(dropped) = block.dropped() {
            captured.dropped = Some(captured.dropped.unwrap_or(0) + dropped);
        }
        let written = to.write_all(&block.bytes);
        let is_last_for_now = from.buffer().is_empty();
        let written = written.and_then(|()| match is_last_for_now {
            true => to.flush(),
            false => Ok(()),
        });
        if written.is_err() {
            break written;
        }
    };
    match result {
        // Who reads our output may stop reading, and what else was dropped is its own doing.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Captured {
            dropped: Some(captured.dropped.unwrap_or(0)),
            ..captured
        }),
        Err(error) => Err(CliError::failed(&path.display().to_string(), error)),
        Ok(()) => Ok(captured),
    }
}
