//! A discrete-event simulator that runs packtrain's engine in virtual time.
//!
//! What is simulated is what runs: a [`host::Host`] drives the very engine that the daemon drives,
//! by the same contract. Links, queues and clocks are virtual; faults are drawn from a seed, and
//! the seed replays the run. [`checker`] says whether the promises were kept.
#![forbid(unsafe_code)]

pub mod announcement;
pub mod bit_error_law;
pub mod checker;
pub mod checksum;
pub mod data_units;
pub mod dictionaries;
pub mod endpoint;
pub mod event_queue;
pub mod fabric;
pub mod frame;
pub mod host;
pub mod net;
pub mod plain_host;
pub mod random;
pub mod sabotage;
pub mod scenario;
pub mod simulator;
pub mod stations;
pub mod statistics;
pub mod tcp;
pub mod theory;
pub mod whatif;
pub mod workload;
