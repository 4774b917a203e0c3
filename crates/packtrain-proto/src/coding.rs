//! Trains that carry more than they are long: headers told apart, payload compressed.
//!
//! Nothing is remembered from one train to the next, so that one that is lost harms no other. A coded train has a
//! checksum over what it was; one that does not restore to that is dropped as a whole.

pub mod body;
pub mod coder;
pub mod dictionary;
pub mod mixing;
pub mod references;
pub mod restore;
pub mod worth;

#[cfg(test)]
mod tests;
