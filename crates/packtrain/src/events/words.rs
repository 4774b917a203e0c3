//! An event as a person reads it: in columns, or as a line of a log.

use std::fmt;

use super::{LinkBecause, LinkChange, OpenOrClosed, PathUse, PathWhy, UpOrDown, What};
use crate::cli::words::{duration, rate};

/// What stands in which column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub kind: &'static str,
    pub subject: String,
    pub state: String,
    pub details: String,
    /// It tells of something that works, or does again; `None`: neither that nor the opposite.
    pub is_good: Option<bool>,
}

impl What {
    pub fn columns(&self) -> Columns {
        let columns = |kind, subject: &str, state: &str, details: String, is_good| Columns {
            kind,
            subject: subject.to_owned(),
            state: state.to_owned(),
            details,
            is_good,
        };
        match self {
            What::Line {
                line,
                state,
                because,
                message,
            } => {
                let because = because.map(|because| because.text().to_owned());
                let parts = because.into_iter().chain(message.clone());
                let details = parts.collect::<Vec<_>>().join(": ");
                columns("line", line, state.text(), details, state.is_good())
            }
            What::Link {
                link,
                state,
                because,
                mtu,
                address,
            } => {
                let details = link_details(*because, *mtu, address.as_deref());
                columns("link", link, state.text(), details, state.is_good())
            }
            What::Peer {
                peer,
                node_id,
                state,
                because,
            } => {
                let details = match because {
                    Some(because) => because.text().to_owned(),
                    None => format!("node {node_id}"),
                };
                columns("peer", peer, state.text(), details, state.is_good())
            }
            What::Path {
                link,
                peer,
                state,
                because,
                silent_ns,
                before,
                lasted_ns,
                skipped,
                ..
            } => {
                let mut details = vec![format!("to {peer}")];
                details.extend(because.map(|because| why(because, *silent_ns)));
                details.extend(before.map(|before| was(before.text(), *lasted_ns, *skipped)));
                columns(
                    "path",
                    link,
                    state.text(),
                    details.join("; "),
                    state.is_good(),
                )
            }
            What::Rate {
                link,
                peer,
                before_bps,
                rate_bps,
                ..
            } => {
                let before = before_bps.map_or("not known".to_owned(), rate);
                let details = format!("to {peer}; was {before}");
                columns("rate", link, &rate(*rate_bps), details, None)
            }
            What::Mtu {
                link,
                peer,
                before,
                mtu,
                mtu_of_ends,
                ..
            } => {
                let ends = match mtu < mtu_of_ends {
                    true => format!("; both ends take {mtu_of_ends}"),
                    false => String::new(),
                };
                let details = format!("to {peer}; was {before}{ends}");
                let is_good = Some(mtu > before);
                columns("mtu", link, &mtu.to_string(), details, is_good)
            }
            What::Direct {
                peer,
                state,
                because,
                lasted_ns,
                skipped,
                ..
            } => {
                let because = because.as_deref().map(|because| {
                    let by_engine = crate::cli::path_reason(because);
                    format!("by the engine: {by_engine}")
                });
                let before = match state {
                    OpenOrClosed::Open => OpenOrClosed::Closed,
                    OpenOrClosed::Closed => OpenOrClosed::Open,
                };
                let mut details: Vec<String> = because.into_iter().collect();
                details.push(was(before.text(), Some(*lasted_ns), *skipped));
                columns("direct", peer, state.text(), details.join("; "), None)
            }
            What::Tier {
                peer, before, tier, ..
            } => {
                let details = format!("links of tier {tier} carry what is for it; was {before}");
                columns(
                    "tier",
                    peer,
                    &tier.to_string(),
                    details,
                    Some(tier <= before),
                )
            }
            What::Home { link } => {
                let details = "hosts without packtrain are reached by it now".to_owned();
                columns("home", link, "moved", details, None)
            }
            What::Station { station, state } => {
                let details = match state {
                    UpOrDown::Up => "it takes aggregates",
                    UpOrDown::Down => "it takes no aggregates any more",
                };
                columns(
                    "station",
                    station,
                    state.text(),
                    details.into(),
                    state.is_good(),
                )
            }
            What::Lost { count } => {
                let details = "events before this were forgotten before they were read".to_owned();
                columns("lost", &count.to_string(), "", details, Some(false))
            }
        }
    }
}

fn link_details(because: Option<LinkBecause>, mtu: Option<u32>, address: Option<&str>) -> String {
    match (because, mtu, address) {
        (Some(LinkBecause::MtuTooSmall), Some(mtu), _) => {
            format!(
                "its MTU of {mtu} is below {}",
                crate::settings::LINK_MTU_MIN
            )
        }
        (Some(because), ..) => because.text().to_owned(),
        (None, Some(mtu), Some(address)) => format!("MTU {mtu}, {address}"),
        (None, Some(mtu), None) => format!("MTU {mtu}"),
        (None, None, _) => String::new(),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn why(because: PathWhy, silent_ns: Option<u64>) -> String {
    match (because, silent_ns) {
        (PathWhy::Unanswered | PathWhy::NotHeard, Some(ns)) => {
            format!("{} for {}", because.text(), duration(seconds(ns)))
        }
        _ => because.text().to_owned(),
    }
}

fn was(before: &str, lasted_ns: Option<u64>, skipped: u32) -> String {
    let lasted = lasted_ns.map_or(String::new(), |ns| {
        format!(" for {}", duration(seconds(ns)))
    });
    let between = match skipped {
        0 => String::new(),
        1 => ", and another state once between".to_owned(),
        n => format!(", and other states {n} times between"),
    };
    format!("was {before}{lasted}{between}")
}

impl UpOrDown {
    fn is_good(self) -> Option<bool> {
        Some(self == UpOrDown::Up)
    }
}

impl LinkChange {
    fn is_good(self) -> Option<bool> {
        match self {
            LinkChange::Joined | LinkChange::Up => Some(true),
            LinkChange::Down | LinkChange::Gone => Some(false),
            LinkChange::Leaving | LinkChange::Left => None,
        }
    }
}

impl PathUse {
    fn is_good(self) -> Option<bool> {
        match self {
            PathUse::Open => Some(true),
            PathUse::Closed | PathUse::Silent | PathUse::Gone => Some(false),
            PathUse::Joining
            | PathUse::Held
            | PathUse::Retiring
            | PathUse::Backup
            | PathUse::TooSlow => None,
        }
    }
}

/// As the log has it: `link eth1 down: carrier lost`.
impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Columns {
            kind,
            subject,
            state,
            details,
            ..
        } = self.columns();
        write!(f, "{kind} {subject}")?;
        if !state.is_empty() {
            write!(f, " {state}")?;
        }
        if !details.is_empty() {
            write!(f, ": {details}")?;
        }
        Ok(())
    }
}
