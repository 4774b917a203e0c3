//! What there is to tell of a line at one instant.

use packtrain_proto::config::{LinkId, LinkState};
use packtrain_proto::stats::Snapshot;

use super::super::member::MemberCounters;
use super::Line;
use crate::linux::coalescer::CoalescerCounters;
use crate::linux::ring::RingCounts;
use crate::linux::tap::TapCounters;

/// A member link as the daemon sees it; the engine's view is in the snapshot.
#[derive(Clone, Debug)]
pub struct MemberReport {
    pub id: LinkId,
    pub name: String,
    /// `None` while there is no such interface.
    pub ifindex: Option<u32>,
    pub state: Option<LinkState>,
    pub counters: MemberCounters,
}

/// Everything worth reading about a line, at one instant.
#[derive(Clone, Debug)]
pub struct Report {
    pub snapshot: Snapshot,
    pub members: Vec<MemberReport>,
    pub tap: TapCounters,
    /// `None`: there is none, and all frames of the host come by the TAP.
    pub ring: Option<RingCounts>,
    pub coalesced: CoalescerCounters,
    pub tap_ifindex: u32,
}

impl Line {
    pub fn report(&mut self) -> Report {
        for at in 0..self.members.len() {
            // Asked only where it matters, what is known may be old.
            self.tell_queue(at, self.clock.now());
        }
        let members = self.members.iter_mut().map(|member| MemberReport {
            id: member.id,
            name: member.name.clone(),
            ifindex: member.attached.as_ref().map(|a| a.socket.ifindex()),
            state: member.attached.as_ref().map(|a| a.state),
            counters: member.counters(),
        });
        Report {
            members: members.collect(),
            snapshot: self.engine.snapshot(self.clock.now()),
            tap: self.tap.counters(),
            ring: self.from_host.ring_counts(),
            coalesced: self.coalescer.counters(),
            tap_ifindex: self.tap.ifindex(),
        }
    }
}
