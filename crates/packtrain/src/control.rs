//! The local control socket, both ends: one line of JSON asks, one line of JSON answers. Who asks for events gets a line
//! for each behind the answer, and may stay for those to come.
//!
//! The socket is `\0packtrain/NAME`, an abstract one: such names belong to a network namespace, so
//! instances of different namespaces never see each other, and none is left behind by a kill -9.
//! Binding it is also what makes a name taken once, without a race.
//!
//! An abstract name has no owner and no permissions. Hence who may *change* something is decided
//! by the credentials of the connection (`SO_PEERCRED`, unix(7)), and a client believes a server
//! only when it runs as root or as the client itself.

mod backlog;
mod client;
mod followers;
mod question;
mod server;

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::filter::rule_texts::RulesDocument;
use crate::pace::link::rules::LinkRuleWish;
use crate::pace::link::wish::Wish;
use crate::pace::tcp::rules::RuleWish;

pub use backlog::EVENTS_KEPT_MAX;
pub use client::{ANSWER_WAIT_MAX, Connection, ControlError, request};
pub use followers::FOLLOWERS_MAX;
pub use question::Question;
pub use server::{Asker, BindError, ControlServer, Reply};

/// What may be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The status document.
    Status {},
    /// What has happened. The answer is followed by the events, a line each.
    Events {
        /// The connection stays, for those to come.
        follow: bool,
        /// So many of the last; all that are kept otherwise, …
        last: Option<u32>,
        /// … or of those since this time.
        since_unix_ns: Option<u64>,
    },
    /// Leave, and undo everything. The answer comes at once; the connection ends when all is
    /// undone.
    Down {},
    /// One more link. The answer comes when it has joined.
    LinkAdd {
        /// The interface's.
        name: String,
        /// It may be absent, and joins when it appears.
        wait: bool,
        /// What it is used for, as the status document has it; null: as a link is by default.
        #[serde(default)]
        tier: Option<u8>,
        #[serde(default)]
        weight: Option<u8>,
        #[serde(default)]
        rate_max_bps: Option<u64>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lag: bool,
    },
    /// What a link is used for changes; of what is null, nothing.
    LinkSet {
        name: String,
        tier: Option<u8>,
        weight: Option<u8>,
        rate_max: Option<RateMax>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lag: Option<bool>,
    },
    /// Every link leaves, and the line stays without. The answer comes as that of [`Request::LinkRemove`].
    LinkClear {},
    /// A link leaves. The answer comes when what was under way on it has arrived, or has had its
    /// time, and what was changed on the interface is undone.
    LinkRemove { name: String },
    /// One more class. Each text as a person writes it.
    ClassAdd {
        /// The line gives it one otherwise.
        name: Option<String>,
        matches: String,
        pack: String,
        path: String,
        loss_ok: bool,
        compress: String,
        duplicate: bool,
        /// By which it goes; none: by whichever.
        links: Vec<String>,
        /// In the words of `settings::repair`.
        repair: String,
        /// Before the class of this name.
        before: Option<String>,
    },
    /// A class is no more.
    ClassRemove { name: String },
    /// One more rule of a receive filter. Each text as a person writes it.
    RuleAdd {
        /// The filter gives it one otherwise.
        name: Option<String>,
        verdict: String,
        matches: String,
        /// Before the rule of this name.
        before: Option<String>,
    },
    /// A rule is no more.
    RuleRemove { name: String },
    /// All rules of a receive filter, and its sets with their prefixes.
    Rules {},
    /// Rules and sets in place of all that a receive filter has.
    RulesLoad { rules: RulesDocument },
    /// Prefixes come into a set of a receive filter, or go. A set that is not there comes with its first prefixes.
    SetChange {
        name: String,
        #[serde(default)]
        add: Vec<String>,
        #[serde(default)]
        remove: Vec<String>,
    },
    /// A set is no more, which no rule may use.
    SetRemove { name: String },
    /// A change of the rules of a receive filter, answered as such, which are as before after so long, unless
    /// [`Request::FilterConfirm`] comes.
    FilterTry {
        confirm_seconds: u64,
        change: Box<Request>,
    },
    /// What of a receive filter waits for it is to stay.
    FilterConfirm {},
    /// The gap behind an interface's frames changes; of what is null, nothing.
    PaceLink { wish: Wish },
    /// One more rule of the pacer of TCP.
    PaceRuleAdd { wish: RuleWish },
    /// One more rule of an interface's pacer.
    PaceLinkRuleAdd { wish: LinkRuleWish },
    /// A rule of the pacer of TCP, or of an interface's, is no more.
    PaceRuleRemove { name: String },
}

impl Request {
    /// Whether only root may ask it.
    pub fn is_mutating(&self) -> bool {
        match self {
            Request::Status {} | Request::Events { .. } => false,
            Request::Down {}
            | Request::LinkAdd { .. }
            | Request::LinkSet { .. }
            | Request::LinkRemove { .. }
            | Request::LinkClear {}
            | Request::ClassAdd { .. }
            | Request::ClassRemove { .. }
            | Request::RuleAdd { .. }
            | Request::RuleRemove { .. }
            | Request::FilterTry { .. }
            | Request::FilterConfirm {}
            | Request::PaceLink { .. }
            | Request::PaceRuleAdd { .. }
            | Request::PaceLinkRuleAdd { .. }
            | Request::PaceRuleRemove { .. }
            // Changes nothing, but the answer may be megabytes, which nobody else is to have kept for him.
            | Request::Rules {}
            | Request::RulesLoad { .. }
            | Request::SetChange { .. }
            | Request::SetRemove { .. } => true,
        }
    }
}

/// As fast as what, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateMax {
    None,
    Bps(u64),
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// As text already, so that a newer line's fields reach `status --json` of an older binary.
    Status(Value),
    Done,
    /// The events are next.
    Events {
        kept: u64,
        /// Before those.
        forgotten: u64,
    },
    /// The link, as in the status document.
    LinkAdded(Value),
    /// The link, as it was at last in the status document.
    LinkRemoved {
        link: Value,
        /// All that was under way on it has arrived.
        drained: bool,
    },
    /// The link, as in the status document.
    LinkSet(Value),
    /// The links, each as it was at last in the status document.
    LinksCleared {
        links: Vec<Value>,
        /// All that was under way on them has arrived.
        drained: bool,
    },
    /// The class, as in the status document.
    ClassAdded(Value),
    /// The class, as it was at last in the status document.
    ClassRemoved(Value),
    /// The rule: as in the document of its filter, or as it was there at last.
    Rule(Value),
    /// The rules and sets of a receive filter.
    Rules(Value),
    /// What came, went and stayed.
    RulesLoaded(Value),
    /// What became of a set.
    Set(Value),
    /// It stays.
    Confirmed {
        /// In words, as in the document of the filter.
        unconfirmed: String,
        /// That there were left.
        seconds_left: f64,
    },
    /// Who asks may not.
    Denied,
    /// What was asked is understood, and cannot be done: as a command says it.
    Refused {
        exit_code: u8,
        message: String,
        hint: Option<String>,
    },
    Error(String),
}

/// What stands before the name in an abstract socket's.
pub const SOCKET_PREFIX: &str = "packtrain/";

fn socket_address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{SOCKET_PREFIX}{name}"))
}

#[cfg(test)]
mod tests;
