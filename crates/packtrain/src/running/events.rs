//! What happens to a line, told in one place: to the log, and to those who read its events.

use packtrain_proto::config::{LinkId, NodeId};
use packtrain_proto::engine::{Event, PeerDownReason};
use packtrain_proto::stats::PathBecause;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

use super::RunningLine;
use crate::events::{
    LineBecause, LinkBecause, LinkChange, OpenOrClosed, PathUse, PathWhy, PeerBecause, Stamp,
    UpOrDown, What,
};
use crate::status::path_because;

impl RunningLine {
    pub(super) fn tell(&mut self, what: What) {
        match what.is_minor() {
            true => tracing::debug!("{what}"),
            false => tracing::info!("{what}"),
        }
        let now = self.clock.now();
        let at = Stamp {
            // Read anew: a line may stand for longer than a clock goes right.
            unix_ns: self.clock.wall().unix_nanos(now),
            monotonic_ns: self.clock.monotonic_nanos(),
        };
        self.control.publish(what, at);
    }

    /// It stands: whoever has waited for that may be told.
    pub fn stands(&mut self) {
        self.tell(What::Line {
            line: self.site.settings.name.to_string(),
            state: UpOrDown::Up,
            because: None,
            message: None,
        });
        self.control.tell_followers();
    }

    /// The last that is told.
    pub(super) fn tell_end(&mut self, because: LineBecause, message: Option<String>) {
        self.tell(What::Line {
            line: self.site.settings.name.to_string(),
            state: UpOrDown::Down,
            because: Some(because),
            message,
        });
        self.control.tell_followers();
    }

    /// What the engine tells that is only to be told on. `false`: it is something else.
    pub(super) fn tell_on(&mut self, event: &Event) -> bool {
        match self.what_of(event) {
            Some(what) => {
                self.tell(what);
                true
            }
            None => false,
        }
    }

    fn what_of(&self, event: &Event) -> Option<What> {
        Some(match *event {
            Event::PeerUp { node_id, address } => What::Peer {
                peer: address.to_string(),
                node_id: text_of(node_id),
                state: UpOrDown::Up,
                because: None,
            },
            Event::PeerDown {
                node_id,
                address,
                reason,
            } => What::Peer {
                peer: address.to_string(),
                node_id: text_of(node_id),
                state: UpOrDown::Down,
                because: Some(match reason {
                    PeerDownReason::Goodbye => PeerBecause::Goodbye,
                    PeerDownReason::Silent => PeerBecause::Silent,
                    PeerDownReason::Deaf => PeerBecause::Deaf,
                    PeerDownReason::Restarted => PeerBecause::Restarted,
                    PeerDownReason::NoLink => PeerBecause::NoLink,
                }),
            },
            Event::PathChanged {
                node_id,
                address,
                link,
                state,
                because,
                before,
                lasted,
                skipped,
            } => What::Path {
                link: self.link_name(link),
                peer: address.to_string(),
                node_id: text_of(node_id),
                state: state.map_or(PathUse::Gone, PathUse::from),
                because: state.and_then(|_| PathWhy::of(because)),
                silent_ns: match because {
                    PathBecause::Unanswered(time) | PathBecause::NotHeard(time) => {
                        Some(nanos(time))
                    }
                    _ => None,
                },
                before: before.map(PathUse::from),
                lasted_ns: before.map(|_| nanos(lasted)),
                skipped,
            },
            Event::PathRate {
                node_id,
                address,
                link,
                before_bps,
                rate_bps,
            } => What::Rate {
                link: self.link_name(link),
                peer: address.to_string(),
                node_id: text_of(node_id),
                before_bps,
                rate_bps,
            },
            Event::PathMtu {
                node_id,
                address,
                link,
                before,
                mtu,
                mtu_of_ends,
            } => What::Mtu {
                link: self.link_name(link),
                peer: address.to_string(),
                node_id: text_of(node_id),
                before,
                mtu,
                mtu_of_ends,
            },
            Event::DirectChanged {
                node_id,
                address,
                because,
                lasted,
                skipped,
            } => What::Direct {
                peer: address.to_string(),
                node_id: text_of(node_id),
                state: match because {
                    None => OpenOrClosed::Open,
                    Some(_) => OpenOrClosed::Closed,
                },
                because: because.map(|because| path_because(because).to_owned()),
                lasted_ns: nanos(lasted),
                skipped,
            },
            Event::TierChanged {
                node_id,
                address,
                from,
                to,
            } => What::Tier {
                peer: address.to_string(),
                node_id: text_of(node_id),
                before: from,
                tier: to,
            },
            Event::StationUp { address } => station(address, UpOrDown::Up),
            Event::StationDown { address } => station(address, UpOrDown::Down),
            _ => return None,
        })
    }

    /// Of a link that has left since, its number.
    pub(super) fn link_name(&self, id: LinkId) -> String {
        let member = self.members.iter().find(|member| member.id == id);
        member.map_or_else(|| format!("#{}", id.0), |m| m.name.to_string())
    }

    pub(super) fn tell_link(
        &mut self,
        link: impl ToString,
        state: LinkChange,
        because: Option<LinkBecause>,
    ) {
        self.tell(What::Link {
            link: link.to_string(),
            state,
            because,
            mtu: None,
            address: None,
        });
    }
}

fn station(address: MacAddr, state: UpOrDown) -> What {
    What::Station {
        station: address.to_string(),
        state,
    }
}

/// As in the status document.
fn text_of(node_id: NodeId) -> String {
    format!("{:016x}", node_id.0)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
