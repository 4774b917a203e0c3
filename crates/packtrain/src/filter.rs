//! A receive filter at work on one interface: what `packtrain filter on` starts.
//!
//! The program in the driver judges (`linux/filter.rs`, `bpf/filter.bpf.c`). This process tells it which addresses the
//! host answers for, within milliseconds of each change; finds the line above the interface; refreshes it, so that
//! a process that hangs leaves an interface on which everything passes; and answers who asks.
//!
//! Nothing on the host is changed but the program on the interface, which goes with this process however it ends, unless it is to
//! stay.

pub mod changes;
pub mod confirmation;
pub mod document;
mod error;
pub mod line_above;
mod mode;
mod rule_requests;
pub mod rule_texts;
pub mod rules;
pub mod rules_file;
mod running;

use std::time::Duration;

use packtrain_proto::filter::Policy;
use packtrain_proto::filter::rules::RuleSet;

use crate::settings::values::InterfaceName;

pub use error::RunError;
pub use mode::ModePolicy;
pub use running::RunningFilter;

/// What a person has asked for.
#[derive(Clone, Debug)]
pub struct FilterSettings {
    pub interface: InterfaceName,
    pub policy: Policy,
    /// What is sent to closed ports is dropped.
    pub asks_ports: bool,
    pub mode: ModePolicy,
    pub dry_run: bool,
    /// Everything passes when the program was not refreshed for so long; `None`: it is not watched.
    pub watchdog: Option<Duration>,
    /// It ends after so long, unless somebody confirms it.
    pub confirm: Option<Duration>,
    /// The program stays when its process ends, and its rules go on deciding; the rest passes when the watchdog has fired.
    pub stays: bool,
    /// That are asked from the first frame on.
    pub rules: RuleSet,
}

/// What its control socket and its log are called, also when the interface has another name later: no line can have this
/// name.
pub fn control_name(interface: &InterfaceName) -> String {
    format!("{}{interface}", crate::instance::FILTER_PREFIX)
}

pub fn log_name(interface: &InterfaceName) -> String {
    format!("filter:{interface}")
}
