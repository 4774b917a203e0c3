//! What may be chosen of every benchmark, and where its report goes.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;

use super::{Error, Result};

/// How often a benchmark measures each thing, unless it is told.
pub trait Rounds {
    /// As a person writes it: of a value, clap keeps one text for all benchmarks.
    const DEFAULT: &'static str = "5";
}

/// `P`: the parts that can be measured alone.
#[derive(Clone, Debug, Args)]
pub struct Options<P: ValueEnum + Rounds + Send + Sync + 'static> {
    /// Rounds of each measurement.
    #[arg(long, value_name = "N", default_value = P::DEFAULT,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// Measure this part alone; may be given more than once.
    #[arg(long = "part", value_name = "PART")]
    parts: Vec<P>,

    /// Write the whole report to this file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<PathBuf>,
}

impl<P: ValueEnum + Rounds + Send + Sync + PartialEq + 'static> Options<P> {
    /// At least one.
    pub fn rounds(&self) -> usize {
        self.rounds.into()
    }

    pub fn wants(&self, part: &P) -> bool {
        self.parts.is_empty() || self.parts.contains(part)
    }

    /// Writes the report, if that is wanted.
    pub fn write(&self, report: &impl Serialize) -> Result<()> {
        let Some(path) = &self.json else {
            return Ok(());
        };
        let text = serde_json::to_string_pretty(report).expect("numbers and names");
        std::fs::write(path, text + "\n").map_err(|source| Error::File {
            path: path.display().to_string(),
            source,
        })
    }
}
