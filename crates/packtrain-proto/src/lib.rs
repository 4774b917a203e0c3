//! The engine of packtrain, and the formats that it speaks.
//!
//! No operating system, no clock, no unsafe: the daemon drives the engine with real frames and the
//! real clock, the simulator with virtual ones. Start at [`engine::Engine`], which states the contract.
#![forbid(unsafe_code)]

pub mod buffer;
pub mod classifier;
pub mod config;
pub mod engine;
pub mod gso;
pub mod offload;
pub mod stats;
pub mod time;
pub mod wire;
