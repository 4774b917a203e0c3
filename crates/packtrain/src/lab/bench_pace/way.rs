//! The ways in which a host may send into the long line, as plain data.

use serde::Serialize;

/// What is done about the pace of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Nothing: as the kernel does it by itself.
    Plain,
    /// `packtrain pace tcp on` in the sender's namespace, which spaces connections (CPS).
    Tcp,
    /// `packtrain pace rule add --auto` there: each connection leaves at its part of what the path carries.
    Auto,
    /// `packtrain pace link`, with this in the paper's register: so many bytes between two frames, and 4 more.
    Gap(u16),
}

/// Which connection is looked at of those that a sender makes one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Connection {
    /// Nothing is known of the way.
    First,
    /// What the first has found out may be used.
    Second,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Way {
    pub name: &'static str,
    /// `None`: what the host gives its connections.
    pub congestion: Option<&'static str>,
    pub pace: Pace,
    pub connection: Connection,
}

const fn plain(name: &'static str) -> Way {
    Way {
        name,
        congestion: Some(name),
        pace: Pace::Plain,
        connection: Connection::First,
    }
}

pub const CUBIC: Way = plain("cubic");
pub const RENO: Way = plain("reno");
pub const BBR: Way = plain("bbr");
pub const CPS_FIRST: Way = Way {
    name: "cps, first",
    congestion: None,
    pace: Pace::Tcp,
    connection: Connection::First,
};
pub const AUTO: Way = Way {
    name: "auto",
    congestion: None,
    pace: Pace::Auto,
    connection: Connection::First,
};
pub const CPS_SECOND: Way = Way {
    name: "cps, second",
    connection: Connection::Second,
    ..CPS_FIRST
};
