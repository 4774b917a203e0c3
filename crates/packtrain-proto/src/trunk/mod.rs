//! Several links as one: what is in flight on each, what arrived, and the order of it all.

pub mod flight;
pub mod receipts;
pub mod resequencer;
