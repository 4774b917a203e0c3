//! How people write settings, wherever they do: on the command line, in the file of a lab or of a
//! scenario. Numbers with units, the settings of a wire, when frames leave, and TOML files whose mistakes
//! are all told at once.
#![forbid(unsafe_code)]

pub mod packing;
pub mod toml_reader;
pub mod units;
pub mod wire;
