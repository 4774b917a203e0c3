//! The simulator against theory: closed forms that others have derived, and what real and simulated machines of others do
//! (docs/validation.md).

mod cubic;
mod kernel;
mod losses;
mod ns3;
mod sawtooth;
mod slow_start;
mod support;
