//! Where frames wait: per flow, fairly, and not for long.

pub mod codel;
pub mod drr;
pub mod plain;
