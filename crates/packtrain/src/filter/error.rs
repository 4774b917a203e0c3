//! Why a filter does not come to stand, or does not go on.

use std::io;
use std::time::Duration;

use super::rules::RulesError;
use crate::linux::filter::FilterError;
use crate::linux::netlink::NetlinkError;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("no such interface: {0}")]
    InterfaceMissing(String),
    #[error("{asked} is another name of {name}: say {name}")]
    AnotherName { asked: String, name: String },
    #[error("somebody has taken the filter's program from {0}")]
    TakenAway(String),
    #[error("{0} is not an Ethernet interface")]
    NotEthernet(String),
    #[error("{0} is gone, and its filter with it")]
    InterfaceGone(String),
    #[error(
        "nobody has said `packtrain filter confirm {known_as}` within {} s: the filter of {interface} is taken off",
        .wait.as_secs()
    )]
    NotConfirmed {
        interface: String,
        known_as: String,
        wait: Duration,
    },
    #[error(transparent)]
    Rules(RulesError),
    #[error("the rules cannot go back to what they were, so the filter ends: {0}")]
    NotUndone(RulesError),
    #[error("netlink: {0}")]
    Monitor(io::Error),
    #[error("waiting: {0}")]
    Wait(io::Error),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Filter(#[from] FilterError),
}
