//! Lines, and who sends over them.

mod conservation;
mod datagrams;
mod exact;
mod proxy;
mod shared;
mod support;
