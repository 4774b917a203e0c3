//! Several links as one: what is in flight on each, which of them a train takes, what is sent again
//! when one dies, what arrived, and the order of it all.

pub mod balance;
pub mod bit_errors;
pub mod damping;
pub mod error_watch;
pub(crate) mod extreme;
pub mod flight;
pub mod hold_times;
pub mod join;
pub mod lane;
pub mod lane_waits;
pub mod liveness;
pub mod path_mtu;
pub mod receipts;
pub mod recent;
pub mod repair;
pub mod replay;
pub mod resequencer;
pub mod told;
mod under_way;
pub mod unsequenced;
pub mod via;
