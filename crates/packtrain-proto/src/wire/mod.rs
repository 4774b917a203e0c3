//! What travels: one format a file, each with its diagram, a checked view and a `Repr`.
//!
//! Parsing never panics, whatever the bytes: it gives a typed error that names the reason.
//! Emitting into a buffer that is too short is our own mistake, and panics.

pub mod checksum;
pub mod coded;
pub mod delta;
pub mod dfap;
pub mod ethernet;
pub mod hello;
pub mod layout;
pub mod liveness;
pub mod packet;
pub mod sequence;
pub mod station;
pub mod subframe;
pub mod train;
