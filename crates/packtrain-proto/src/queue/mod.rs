//! Where frames wait: per flow, fairly, and not for long.

pub mod ahead;
pub mod band;
pub mod codel;
pub mod company;
pub mod drr;
pub mod ecn;
pub mod frame;
pub mod hold;
mod older;
pub mod plain;
pub mod pressure;
pub mod shares;
mod short_first;
