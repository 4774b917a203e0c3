//! What packtrain would have brought on a capture: its frames, replayed through the engine in virtual time,
//! beside the same frames on the same wire without it.
//!
//! ```text
//!  captured                                                                    journal
//!  frames ─► Intake ─► Replay: node (engine, direct path) ─► line ─► node ───► Ledger: plain line, when each frame
//!                  │                                                                   came both ways, and at what cost
//!                  └─► Replay of another policy …
//! ```
//! [`Intake`] takes frames as a file has them, and gives batches in the order of their times. A [`Replay`] takes
//! these, each for one policy and one wire; replays know nothing of each other, so that they may run side by side. What
//! became of the frames of a batch is a [`Journal`], which a [`Ledger`] reads beside the batch: later, or on a thread of its own.
//! No I/O and no clock: time is what the capture says.
//!
//! # The model
//! - Each captured source or destination is a host with packtrain, up to a bound; what others send is not replayed.
//! - Each host has a cable of its own, of the given rate, packet cap, delay and queue, in the direction in which it
//!   sends; what several send to one host at once does not queue before it. Between two hosts that is a full duplex
//!   cable.
//! - Both ends run the engine for real: hellos, trains, acknowledgements, and the direct path past it. They have
//!   found each other before the first frame; what they say from then on counts.
//! - Group frames, and those for hosts beyond the bound, go plainly.
//! - It is open loop: hosts send when they did in the capture, whatever becomes of it. A TCP that would have gone
//!   faster, or slower, does not.

pub mod conversations;
mod direct;
mod engines;
mod fingerprints;
mod flight;
mod frame;
pub mod histogram;
mod intake;
mod journal;
mod ledger;
mod node;
pub mod peak;
pub mod receive_filter;
mod repeats;
mod replay;
pub mod results;
pub mod timeline;
pub mod wire;

pub use frame::Captured;
pub use intake::{Batch, Intake, IntakeCounts};
pub use journal::Journal;
pub use ledger::Ledger;
pub use replay::{Ended, Replay, Setup};
pub use results::Results;
pub use wire::WireSettings;

#[cfg(test)]
mod tests;
