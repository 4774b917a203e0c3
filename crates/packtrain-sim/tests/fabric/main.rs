//! Lines, and who sends over them.

mod conservation;
mod datagrams;
mod exact;
mod proxy;
mod support;
