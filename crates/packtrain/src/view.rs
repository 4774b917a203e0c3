//! Readers of stats that draw them, in a terminal: what all of them share, and a view a file.
//!
//! A view polls a status document, as everybody may, and knows nothing of who wrote it.

pub mod filter_top;
mod help;
pub mod history;
pub mod inputs;
pub mod numbers;
pub mod pace_top;
pub mod rate;
#[cfg(test)]
mod screens;
pub mod table;
pub mod terminal;
pub mod theme;
