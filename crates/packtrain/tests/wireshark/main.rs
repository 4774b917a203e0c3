//! The Wireshark dissector (packaging/wireshark/packtrain.lua) before tshark: captures that are made here, and
//! what it says of them against books of our own.
//!
//! Nothing of what is compared comes from the dissector: messages are read by the engine's parsers (`books.rs`),
//! reasons are those that the engine counts.

mod aggregates;
mod books;
mod coded;
mod flows;
mod hostile;
mod lives;
mod mixing;
mod named;
mod trains;
mod tshark;
mod vectors;
mod world;
