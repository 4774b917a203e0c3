//! `packtrain lab`: the real binary makes labs, changes and breaks them, and takes them down.

mod chance;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod crashes;
mod hub;
mod standing;
mod wires;
mod world;
