//! The kinds of scenarios, each with sections of its own in the file.

#[cfg(test)]
pub mod fake;
pub mod network;
pub mod read;

use std::path::Path;

use packtrain_settings::toml_reader::{Errors, Table};

use crate::model::Model;

/// Of a file that names none.
pub const DEFAULT: &str = "network";

#[cfg(not(test))]
pub const NAMES: &[&str] = &["network"];
/// And one that is nothing but numbers, to test what is around the kinds.
#[cfg(test)]
pub const NAMES: &[&str] = &["network", "fake"];

/// Where a scenario stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// What it names stands beside it; `None`: it is built in.
    pub directory: Option<&'a Path>,
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
        #[cfg(test)]
        "fake" => fake::read(table, errors),
        kind => unreachable!("{kind} is none of {NAMES:?}"),
    }
}
