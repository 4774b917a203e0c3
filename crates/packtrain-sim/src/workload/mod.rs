//! What the hosts send: flows of frames that tell by themselves what they are.

pub mod arrivals;
pub mod flow;
pub mod identity;
pub mod mix;
pub mod process;
pub mod sizes;
pub mod spelling;

pub use arrivals::Arrivals;
pub use flow::{Dress, Flow, Recipient};
pub use identity::Identity;
pub use process::Process;
pub use sizes::Sizes;
