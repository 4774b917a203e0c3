//! The log of a line: standard error, which `up` makes a file where nobody watches.

use std::io::{self, IsTerminal};

use crate::settings::values::LogLevel;

pub fn start(level: LogLevel) {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .compact()
        .with_max_level(level.as_tracing())
        .with_target(false)
        .with_ansi(wanted && io::stderr().is_terminal())
        .with_writer(io::stderr)
        .init();
}
