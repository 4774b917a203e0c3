//! Why a pacer does not come to stand, does not change, or does not go on.

use std::io;

use packtrain_proto::pacing::gap::GapError;

use crate::linux::gap_qdisc::{self, SorterError};
use crate::linux::host_state::HostStateError;
use crate::linux::intake;
use crate::linux::netlink::NetlinkError;
use crate::pace::tcp::rules::RuleError;

#[derive(Debug, thiserror::Error)]
pub enum PaceError {
    #[error("no such interface: {0}")]
    InterfaceMissing(String),
    #[error("{asked} is another name of {name}: say {name}")]
    AnotherName { asked: String, name: String },
    #[error("{0} is not an Ethernet interface")]
    NotEthernet(String),
    #[error("{0} is gone, and its pacer with it")]
    InterfaceGone(String),
    #[error("how large is the gap to be?")]
    NoGap,
    #[error("the line rate of {interface} is not known: {because}")]
    NoLineRate {
        interface: String,
        because: &'static str,
    },
    #[error(transparent)]
    Gap(#[from] GapError),
    #[error(
        "{interface} has a root qdisc that somebody has set up ({kind} {:x}:), and it is not replaced",
        .handle >> 16
    )]
    Foreign {
        interface: String,
        kind: String,
        handle: u32,
    },
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(transparent)]
    Sorter(#[from] SorterError),
    #[error("somebody has taken the pacer's queue from {0}")]
    TakenAway(String),
    #[error(transparent)]
    HostState(#[from] HostStateError),
    #[error("netlink: {0}")]
    Monitor(io::Error),
    #[error("waiting: {0}")]
    Wait(io::Error),
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

impl PaceError {
    pub fn exit_code(&self) -> u8 {
        match self {
            PaceError::NoGap | PaceError::NoLineRate { .. } | PaceError::Gap(_) => 2,
            PaceError::InterfaceMissing(_) | PaceError::NotEthernet(_) => 4,
            _ => 1,
        }
    }

    /// What to do about it, where that is not plain.
    pub fn hint(&self) -> Option<String> {
        match self {
            PaceError::InterfaceMissing(_) => Some("ip link lists those there are".into()),
            PaceError::NoGap => {
                Some("say one of --gap 512B, --gap 4us, --register 508 and --rate 599mbit".into())
            }
            PaceError::NoLineRate { .. } => {
                Some("--line-rate says it, as in --line-rate 1gbit".into())
            }
            PaceError::Foreign { handle, .. } if *handle == intake::QDISC => {
                Some("it is a line's: pace the links of the line".into())
            }
            PaceError::Foreign {
                interface, handle, ..
            } if *handle == gap_qdisc::HANDLE => Some(format!(
                "it has the number of a pacer's: packtrain pace off {interface}"
            )),
            PaceError::Foreign { interface, .. } => Some(format!(
                "who no longer needs it: tc qdisc del dev {interface} root"
            )),
            _ => None,
        }
    }
}
