//! Replays of generated traffic, held to slow and obvious counts of their own.

mod counted;
mod taken_in;
mod traffic;
