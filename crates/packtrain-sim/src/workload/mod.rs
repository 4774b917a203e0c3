//! What the hosts send: flows of frames that tell by themselves what they are.

pub mod arrivals;
pub mod flow;
pub mod identity;
pub mod mix;
pub mod sizes;

pub use arrivals::Arrivals;
pub use flow::{Dress, Flow, Recipient};
pub use identity::Identity;
