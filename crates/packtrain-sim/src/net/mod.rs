//! Cables and switches: one impairment a file, put together in [`wire`], [`segment`] and [`network`].

pub mod arq;
pub mod bit_errors;
pub mod carried;
pub mod corruption;
pub mod cut;
pub mod delay;
pub mod duplication;
pub mod ecn;
pub mod fec;
pub mod jitter;
pub mod loss;
pub mod medium;
pub mod network;
pub mod nic;
pub mod packet_cap;
pub mod processing;
pub mod queue;
pub mod rate;
pub mod reordering;
pub mod segment;
pub mod wire;
