//! The kinds of scenarios, each with sections of its own in the file.

pub mod bits;
pub mod endpoint;
#[cfg(test)]
pub mod fake;
pub mod network;
pub mod read;
pub mod stations;
pub mod units;
pub mod unnamed;

use std::path::Path;

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table};

use crate::model::Model;

/// Of a file that names none.
pub const DEFAULT: &str = "network";

#[cfg(not(test))]
pub const NAMES: &[&str] = &["network", "units", "bits", "endpoint", "stations"];
/// And one that is nothing but numbers, to test what is around the kinds.
#[cfg(test)]
pub const NAMES: &[&str] = &["network", "units", "bits", "endpoint", "stations", "fake"];

pub type ReadCapture = fn(&Path) -> Result<Vec<(Duration, u32)>, String>;

/// Where a scenario stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// What it names stands beside it; `None`: it is built in.
    pub directory: Option<&'a Path>,
    /// When each IP packet of a capture came, from the first on, and its bytes as IP counts them.
    pub read_capture: Option<ReadCapture>,
}

/// Reads the sections of the kind out of the whole file, in which every expression is a number by now.
pub fn read(
    kind: &str,
    table: &mut Table<'_>,
    place: Place<'_>,
    errors: &mut Errors<'_>,
) -> Option<Box<dyn Model>> {
    match kind {
        "network" => network::read(table, place, errors),
        "units" => units::read(table, errors),
        "bits" => bits::read(table, errors),
        "endpoint" => endpoint::read(table, errors),
        "stations" => stations::read(table, errors),
        #[cfg(test)]
        "fake" => fake::read(table, errors),
        kind => unreachable!("{kind} is none of {NAMES:?}"),
    }
}
