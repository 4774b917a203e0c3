//! The receive filter: which frames a host cannot want, so that its driver need not hand them to the stack
//! (Maupin and Sandén, 2005).
//!
//! What decides is `bpf/filter.bpf.c`, in the driver. This is the same, said slowly and from plain data: the tests
//! hold one against the other, and `packtrain filter explain` asks it about captures.

pub mod frame;
pub mod host;
pub mod policy;
pub mod ports;
pub mod reason;
pub mod rules;

pub use frame::Frame;
pub use host::{Host, Interface, Listener};
pub use policy::{Policy, decide};
pub use reason::Reason;
