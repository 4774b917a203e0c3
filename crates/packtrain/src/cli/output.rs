//! To the terminal: colour only there, and only where NO_COLOR does not forbid it.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};

use super::error::CliError;

pub const HEADING: Style = Style::new().bold();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// To standard output, styles and all: `anstream` takes them out where they are not wanted.
pub fn text(text: &str) -> Result<(), CliError> {
    check(anstream::stdout().write_all(text.as_bytes()))
}

/// To standard output as it is.
pub fn raw(bytes: &[u8]) -> Result<(), CliError> {
    check(io::stdout().write_all(bytes))
}

/// Who reads our output may stop reading (`| head`): that is no error of ours.
fn check(result: io::Result<()>) -> Result<(), CliError> {
    match result.and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(CliError::failed("standard output", e)),
        Ok(()) => Ok(()),
    }
}

/// An error as clap writes its own: each line of it marked.
pub fn error(message: &str, hint: Option<&str>) {
    for line in message.lines() {
        let _ = writeln!(anstream::stderr(), "{BAD}error:{BAD:#} {line}");
    }
    if let Some(hint) = hint {
        let _ = writeln!(anstream::stderr(), "       {hint}");
    }
}

/// Something that a person should know, and that stops nothing.
pub fn note(message: &str) {
    let _ = writeln!(anstream::stderr(), "{WARNING}note:{WARNING:#} {message}");
}

/// What is being done, on a line that the next step takes the place of; only for a person who waits.
pub fn progress(message: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[K{message}");
    }
}

pub fn progress_ends() {
    progress("");
}
