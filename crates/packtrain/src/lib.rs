//! packtrain on Linux: the engine with real frames and the real clock.
//!
//! `linux/` holds every system call and all unsafe code; what stands beside it is safe.

pub mod capture;
pub mod capture_file;
pub mod cli;
pub mod clock;
pub mod control;
pub mod daemon;
pub mod events;
pub mod filter;
pub mod instance;
pub mod lab;
pub mod linux;
pub mod pace;
pub mod pcapng;
pub mod running;
pub mod settings;
pub mod status;
pub mod stay;
pub mod view;

pub use packtrain_settings::{toml_reader, units};
