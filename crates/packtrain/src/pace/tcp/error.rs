//! Why TCP is not paced, or not any more.

use std::io;

use crate::linux::pace::{CgroupError, TcpError};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("waiting: {0}")]
    Wait(io::Error),
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    #[error(transparent)]
    Tcp(#[from] TcpError),
    #[error(transparent)]
    Rule(#[from] super::rules::RuleError),
}
