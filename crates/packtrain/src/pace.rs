//! Rate control kind to intermediate routers: pacers at work (the CPS paper).
//!
//! Each pacer is a process of its own with a control socket, as a receive filter is: one for each interface whose frames are
//! followed by a gap (section 3 of the paper), and one for the TCP connections of a network namespace (section 4). What all
//! of them have in common is here: their names.

pub mod link;
pub mod measure;
pub mod tcp;

use std::fmt;

use crate::instance::{PACE_LINK_PREFIX, PACE_PREFIX, PACE_TCP};
use crate::settings::values::InterfaceName;

/// A pacer of this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pacer {
    /// The gap behind each frame of an interface.
    Link(InterfaceName),
    /// Of TCP connections.
    Tcp,
}

impl Pacer {
    /// What its control socket is called, also when the interface has another name later.
    pub fn control_name(&self) -> String {
        match self {
            Pacer::Link(interface) => format!("{PACE_LINK_PREFIX}{interface}"),
            Pacer::Tcp => format!("{PACE_PREFIX}{PACE_TCP}"),
        }
    }

    /// Its log and its journal: no line can have a name with a colon.
    pub fn file_name(&self) -> String {
        match self {
            Pacer::Link(interface) => format!("pace-link:{interface}"),
            Pacer::Tcp => "pace:tcp".into(),
        }
    }

    /// The pacer whose journal or log has this name.
    pub fn of_file_name(name: &str) -> Option<Pacer> {
        match name.strip_prefix("pace-link:") {
            Some(interface) => interface.parse().ok().map(Pacer::Link),
            None => (name == "pace:tcp").then_some(Pacer::Tcp),
        }
    }
}

/// As in "the pacer of eth1 does not answer".
impl fmt::Display for Pacer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pacer::Link(interface) => write!(f, "the pacer of {interface}"),
            Pacer::Tcp => f.write_str("the pacer of TCP"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_called_tcp_has_a_pacer_of_its_own() {
        let link = Pacer::Link("tcp".parse().unwrap());
        assert_ne!(link.control_name(), Pacer::Tcp.control_name());
        for pacer in [link, Pacer::Tcp] {
            assert_eq!(Pacer::of_file_name(&pacer.file_name()), Some(pacer.clone()));
            // Otherwise a line could have it.
            assert!(pacer.control_name().parse::<InterfaceName>().is_err());
            assert!(pacer.file_name().parse::<InterfaceName>().is_err());
        }
        assert_eq!(Pacer::of_file_name("pt0"), None);
    }
}
