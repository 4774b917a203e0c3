//! What has happened on a line: what `packtrain events` shows, and the log of its daemon says in the same words.
//!
//! A record is one object in one line of JSON. `docs/events.schema.json` describes it; a test keeps the two together.
//! As in the status document, fields are added, and none is renamed or given another meaning.

mod time;
mod words;

use packtrain_proto::stats::{PathBecause, PathState};
use serde::{Deserialize, Serialize};

pub use time::{from_rfc3339, local, rfc3339};
pub use words::Columns;

/// When something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Since 1970, without leap seconds.
    pub unix_ns: u64,
    /// Of `CLOCK_MONOTONIC`: nobody sets it, and it is the same for all programs of the host.
    pub monotonic_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Of this daemon's events, from 1 on, without gaps.
    pub sequence: u64,
    /// RFC 3339, UTC, to the microsecond.
    pub time: String,
    pub monotonic_ns: u64,
    #[serde(flatten)]
    pub what: What,
}

impl Record {
    pub fn new(sequence: u64, at: Stamp, what: What) -> Record {
        Record {
            sequence,
            time: rfc3339(at.unix_ns),
            monotonic_ns: at.monotonic_ns,
            what,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum What {
    /// The line as a whole.
    Line {
        line: String,
        state: UpOrDown,
        because: Option<LineBecause>,
        /// What the system said, if that is why.
        message: Option<String>,
    },
    /// A member link, as the host has it.
    Link {
        link: String,
        state: LinkChange,
        because: Option<LinkBecause>,
        mtu: Option<u32>,
        address: Option<String>,
    },
    /// A host with packtrain.
    Peer {
        /// Its `pt0`'s MAC address.
        peer: String,
        node_id: String,
        state: UpOrDown,
        because: Option<PeerBecause>,
    },
    /// One of our links to a peer.
    Path {
        link: String,
        peer: String,
        node_id: String,
        state: PathUse,
        because: Option<PathWhy>,
        /// For how long nothing was acknowledged or heard, if that is why.
        silent_ns: Option<u64>,
        /// What was told of it before, and how long that had lasted.
        before: Option<PathUse>,
        lasted_ns: Option<u64>,
        /// Changes since then that were not told, because they were many.
        skipped: u32,
    },
    /// What a path was measured to carry.
    Rate {
        link: String,
        peer: String,
        node_id: String,
        before_bps: Option<u64>,
        rate_bps: u64,
    },
    /// How long frames may be that pass a path: payload bytes.
    Mtu {
        link: String,
        peer: String,
        node_id: String,
        before: u16,
        mtu: u16,
        mtu_of_ends: u16,
    },
    /// Whether frames to a peer go past the engine.
    Direct {
        peer: String,
        node_id: String,
        state: OpenOrClosed,
        /// As `path_because` of a peer in the status document.
        because: Option<String>,
        lasted_ns: u64,
        skipped: u32,
    },
    /// Trains to a peer go by links of another tier.
    Tier {
        peer: String,
        node_id: String,
        before: u8,
        tier: u8,
    },
    /// The link by which hosts without packtrain reach us is another one.
    Home { link: String },
    /// A host that speaks no trains, and takes aggregates.
    Station { station: String, state: UpOrDown },
    /// To one reader alone: so many before this were forgotten before they were read.
    Lost { count: u64 },
}

/// A word for programs, which stays, and one for people.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$doc:meta])* $variant:ident = $word:literal, $text:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// As in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// As a person reads it.
            pub fn text(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

words! { UpOrDown {
    Up = "up", "up";
    Down = "down", "down";
}}

words! { OpenOrClosed {
    Open = "open", "open";
    Closed = "closed", "closed";
}}

words! { LineBecause {
    Asked = "asked", "packtrain down";
    Signal = "signal", "its daemon got a signal";
    LeftToKeeper = "left_to_keeper", "its daemon ends, what goes directly stays";
    Failed = "failed", "it cannot go on";
}}

words! { LinkChange {
    Joined = "joined", "joined";
    Up = "up", "up";
    Down = "down", "down";
    /// By command; what is under way on it arrives first.
    Leaving = "leaving", "leaving";
    Left = "left", "left";
    /// Its interface is; it joins again when it appears.
    Gone = "gone", "gone";
}}

words! { LinkBecause {
    CarrierLost = "carrier_lost", "carrier lost";
    /// It joins without one.
    NoCarrier = "no_carrier", "no carrier yet";
    SetDown = "set_down", "administratively down";
    MtuTooSmall = "mtu_too_small", "its MTU is too small";
    InterfaceGone = "interface_gone", "there is no such interface any more";
    Asked = "asked", "packtrain link remove";
}}

words! { PeerBecause {
    Goodbye = "goodbye", "it said goodbye";
    Silent = "silent", "not heard for too long";
    Deaf = "deaf", "it is heard, and does not hear us";
    Restarted = "restarted", "it was started anew";
    NoLink = "no_link", "no link leads to it";
}}

words! { PathUse {
    Open = "open", "open";
    Closed = "closed", "closed";
    Joining = "joining", "joining";
    Held = "held", "held";
    Silent = "silent", "silent";
    Retiring = "retiring", "leaving";
    Backup = "backup", "backup";
    TooSlow = "too_slow", "too slow";
    Gone = "gone", "gone";
}}

words! { PathWhy {
    NoCarrier = "no_carrier", "our end has no carrier";
    MtuTooSmall = "mtu_too_small", "the MTU of our end is too small";
    PeerEndDead = "peer_end_dead", "the peer says that its end is dead, or leaves";
    PeerMtuTooSmall = "peer_mtu_too_small", "the MTU of the peer's end is too small";
    Unheard = "unheard", "nothing is heard on it";
    Order = "order", "what went another way has to arrive first";
    Unanswered = "unanswered", "not answered";
    NotHeard = "not_heard", "not heard";
    PeerDeaf = "peer_deaf", "the peer does not hear us by it";
    FailedBefore = "failed_before", "it failed, and has to work for a while first";
    Unproven = "unproven", "it has not answered yet";
    Retiring = "retiring", "its link is to leave";
    NotPreferred = "not_preferred", "another one is used";
    TooSlow = "too_slow", "the others would wait too long for it";
}}

impl From<PathState> for PathUse {
    fn from(state: PathState) -> PathUse {
        match state {
            PathState::Open => PathUse::Open,
            PathState::Closed => PathUse::Closed,
            PathState::Joining => PathUse::Joining,
            PathState::Held => PathUse::Held,
            PathState::Silent => PathUse::Silent,
            PathState::Retiring => PathUse::Retiring,
            PathState::Backup => PathUse::Backup,
            PathState::TooSlow => PathUse::TooSlow,
        }
    }
}

impl PathWhy {
    /// `None`: it simply works.
    pub fn of(because: PathBecause) -> Option<PathWhy> {
        Some(match because {
            PathBecause::Works => return None,
            PathBecause::NoCarrier => PathWhy::NoCarrier,
            PathBecause::MtuTooSmall => PathWhy::MtuTooSmall,
            PathBecause::PeerEndDead => PathWhy::PeerEndDead,
            PathBecause::PeerMtuTooSmall => PathWhy::PeerMtuTooSmall,
            PathBecause::Unheard => PathWhy::Unheard,
            PathBecause::Order => PathWhy::Order,
            PathBecause::Unanswered(_) => PathWhy::Unanswered,
            PathBecause::NotHeard(_) => PathWhy::NotHeard,
            PathBecause::PeerDeaf => PathWhy::PeerDeaf,
            PathBecause::FailedBefore => PathWhy::FailedBefore,
            PathBecause::Unproven => PathWhy::Unproven,
            PathBecause::Retiring => PathWhy::Retiring,
            PathBecause::NotPreferred => PathWhy::NotPreferred,
            PathBecause::TooSlow => PathWhy::TooSlow,
        })
    }
}

impl What {
    /// What may come every few seconds, and nobody has to do anything about.
    pub fn is_minor(&self) -> bool {
        let used = |state: &PathUse| matches!(state, PathUse::Backup | PathUse::TooSlow);
        match self {
            What::Rate { .. } | What::Direct { .. } => true,
            What::Path { state, before, .. } => used(state) || before.as_ref().is_some_and(used),
            _ => false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
