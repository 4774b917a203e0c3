//! `packtrain whatif`: what a line would bring for the traffic of a capture, without one being set up.

mod advice;
mod arguments;
mod chart;
mod class_option;
mod csv;
mod document;
mod html;
mod plan;
mod plots;
mod progress;
mod rate;
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
    let mut classes = match &arguments.file {
        Some(file) => up::read_file(file)?.classes,
        None => defaults(),
    };
    class_option::insert(&arguments.classes, &mut classes)?;
    if classes.iter().any(|class| class.matches.asks_for_marks()) {
        output::note("a capture does not say what mark a frame had: it counts as 0");
    }
    let mut capture = CaptureFile::open(&arguments.capture)?;
    let mut plan = plan::of(arguments, classes);
    let (replayed, broken) = replays::run(&mut capture, &mut plan, arguments);
    // What was read before a file breaks off is worth having; of one that breaks off at once there is nothing.
    if replayed.counts.frames > 0 || broken.is_none() {
        let document = Document::build(arguments, &plan, replayed, broken.as_ref());
        if let Some(report) = &arguments.report {
            let written = std::fs::write(report, html::html(&document));
            written.map_err(|error| CliError::failed(&report.display().to_string(), error))?;
        }
        output::text(&match (arguments.json, arguments.csv) {
            (true, _) => document.json(),
            (false, true) => csv::csv(&document),
            (false, false) => text::text(&document, chart::terminal::width()),
        })?;
    }
    broken.map_or(Ok(()), |error| Err(error.into()))
}
