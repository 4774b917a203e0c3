//! TCP that is spaced in slow start: what `packtrain pace tcp on` starts (section 4 of the CPS paper).
//!
//! At which rate which streams leave people say by [`rules`] (section 5).
//!
//! All that decides is in the kernel (`linux/pace.rs`, `bpf/pace.bpf.c`). This process holds it there, finds out how exactly
//! the machine can space, and answers who asks. When it ends, connections have again the congestion control that they
//! had.

pub mod document;
mod error;
pub mod precision;
pub mod rules;
mod running;

use std::path::PathBuf;
use std::time::Duration;

use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::pacing::hystart::Thresholds;

pub use error::RunError;
use rules::RuleWish;
pub use running::RunningTcp;

/// What a person has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSettings {
    /// Whose sockets; `None`: all processes'.
    pub cgroup: Option<PathBuf>,
    /// Those of other network namespaces too.
    pub all_namespaces: bool,
    /// First and last. None: all.
    pub remote_ports: Vec<(u16, u16)>,
    pub local_ports: Vec<(u16, u16)>,
    pub destinations: Vec<Prefix>,
    /// T; `None`: it is measured.
    pub precision: Option<Duration>,
    /// How long paths are remembered; `None`: they are not.
    pub remembered: Option<Duration>,
    pub hystart: Option<Thresholds>,
    /// Connections that are there already are left as they are.
    pub only_new: bool,
    /// Also those whose application has chosen a congestion control itself.
    pub overrides: bool,
    /// Connections that no rule is about are left as they are.
    pub rules_only: bool,
    pub rules: Vec<RuleWish>,
}
