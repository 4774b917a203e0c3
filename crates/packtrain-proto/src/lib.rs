//! The engine of packtrain, and the formats that it speaks.
//!
//! No operating system, no clock, no unsafe: the daemon drives the engine with real frames and the
//! real clock, the simulator with virtual ones. Start at [`engine::Engine`], which states the contract.
#![forbid(unsafe_code)]

pub mod aggregator;
pub mod buffer;
pub mod class;
pub mod classifier;
pub mod coding;
pub mod config;
pub mod data_units;
pub mod dfap;
pub mod direct;
pub mod drain;
pub mod due;
pub mod duplicates;
pub mod elephants;
pub mod engine;
pub mod filter;
pub mod former_homes;
pub mod fullness;
pub mod gone_peers;
pub mod greeter;
pub mod gso;
pub mod intake;
pub mod link;
pub mod mac_map;
pub mod offload;
pub mod pacing;
pub mod peer;
pub mod peer_table;
pub mod queue;
pub mod random;
mod rates;
pub mod reassembly;
pub mod sand;
pub mod segments;
pub mod station_table;
pub mod stats;
pub mod time;
pub mod too_big;
pub mod train_sizes;
pub mod trunk;
pub mod turns;
pub mod unit_size;
pub mod waiting;
pub mod wire;
