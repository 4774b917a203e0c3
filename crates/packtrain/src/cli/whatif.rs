//! `packtrain whatif`: what a line would bring for the traffic of a capture, without one being set up.

mod advice;
mod arguments;
mod csv;
mod document;
mod plan;
mod replays;
mod text;

#[cfg(test)]
mod tests;

use packtrain_proto::class::defaults;

pub use arguments::WhatifArguments;

use self::document::Document;
use super::error::CliError;
use super::{output, up};
use crate::capture_file::CaptureFile;

pub(super) fn run(arguments: &WhatifArguments) -> Result<(), CliError> {
    let classes = match &arguments.file {
        Some(file) => up::read_file(file)?.classes,
        None => defaults(),
    };
    if classes.iter().any(|class| class.matches.asks_for_marks()) {
        output::note("a capture does not say what mark a frame had: it counts as 0");
    }
    let plan = plan::of(arguments, classes);
    let mut capture = CaptureFile::open(&arguments.capture)?;
    let (replayed, broken) = replays::run(&mut capture, &plan, arguments);
    // What was read before a file breaks off is worth having; of one that breaks off at once there is nothing.
    if replayed.counts.frames > 0 || broken.is_none() {
        let document = Document::build(arguments, &plan, replayed, broken.as_ref());
        output::text(&match (arguments.json, arguments.csv) {
            (true, _) => document.json(),
            (false, true) => csv::csv(&document),
            (false, false) => text::text(&document),
        })?;
    }
    broken.map_or(Ok(()), |error| Err(error.into()))
}
