//! What a receive filter of one host would drop of what its segment carries: frames for others.
//!
//! It goes by what the capture shows of the host. Its addresses are those that it says in ARP and neighbour
//! discovery; which groups it has joined is not known, so that frames to these count as wanted.

use std::collections::BTreeSet;

use packtrain_proto::stats::Traffic;
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};

use super::frame::Captured;

/// A host with more addresses is taken to be wanted for all.
const ADDRESSES_MAX: usize = 256;

const ARP_SENDER_MAC: usize = HEADER_LEN + 8;
const ARP_SENDER_IP: usize = HEADER_LEN + 14;
const ARP_TARGET_IP: usize = HEADER_LEN + 24;
const ARP_END: usize = HEADER_LEN + 28;

const ICMPV6: u8 = 58;
const IPV6_SOURCE: usize = HEADER_LEN + 8;
const ICMPV6_TYPE: usize = HEADER_LEN + 40;
const ND_TARGET: usize = ICMPV6_TYPE + 8;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// Frames on the segment that the host has not sent, by what a filter does with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterCounts {
    pub for_host: Traffic,
    /// Wanted, for all that is known.
    pub broadcast: Traffic,
    pub multicast: Traffic,
    /// ARP and neighbour solicitations for the host, or while its addresses are not known.
    pub resolution: Traffic,
    /// Dropped.
    pub foreign_unicast: Traffic,
    pub foreign_arp: Traffic,
    pub foreign_solicitations: Traffic,
}

#[derive(Debug)]
pub struct ReceiveFilter {
    pub host: MacAddr,
    ipv4: BTreeSet<[u8; 4]>,
    /// The last three bytes of its IPv6 addresses, by which groups for solicitations are known.
    ipv6_ends: BTreeSet<[u8; 3]>,
    pub counts: FilterCounts,
}

impl FilterCounts {
    pub fn dropped(&self) -> Traffic {
        sum([
            self.foreign_unicast,
            self.foreign_arp,
            self.foreign_solicitations,
        ])
    }

    pub fn kept(&self) -> Traffic {
        sum([
            self.for_host,
            self.broadcast,
            self.multicast,
            self.resolution,
        ])
    }
}

fn sum<const N: usize>(all: [Traffic; N]) -> Traffic {
    all.iter().fold(Traffic::default(), |sum, one| Traffic {
        frames: sum.frames + one.frames,
        bytes: sum.bytes + one.bytes,
    })
}

impl ReceiveFilter {
    pub fn new(host: MacAddr) -> ReceiveFilter {
        ReceiveFilter {
            host,
            ipv4: BTreeSet::new(),
            ipv6_ends: BTreeSet::new(),
            counts: FilterCounts::default(),
        }
    }

    pub(super) fn frame(&mut self, frame: &Captured, bytes: &[u8]) {
        if frame.source == self.host {
            return self.learn(frame, bytes);
        }
        let counter = self.fate(frame, bytes);
        counter.count(frame.len);
    }

    fn learn(&mut self, frame: &Captured, bytes: &[u8]) {
        if is_arp(frame) && bytes[ARP_SENDER_MAC..][..6] == self.host.0 {
            let address = bytes[ARP_SENDER_IP..][..4]
                .first_chunk()
                .expect("four bytes");
            if *address != [0; 4] && self.ipv4.len() < ADDRESSES_MAX {
                self.ipv4.insert(*address);
            }
        }
        let said = match neighbour_discovery(frame, bytes) {
            Some(NEIGHBOUR_ADVERTISEMENT) => ND_TARGET,
            // Of one that asks whether an address is free, the source is none.
            Some(NEIGHBOUR_SOLICITATION) if bytes[IPV6_SOURCE..][..16] != [0; 16] => IPV6_SOURCE,
            _ => return,
        };
        let end = bytes[said + 13..][..3].first_chunk().expect("three bytes");
        if self.ipv6_ends.len() < ADDRESSES_MAX {
            self.ipv6_ends.insert(*end);
        }
    }

    fn fate(&mut self, frame: &Captured, bytes: &[u8]) -> &mut Traffic {
        let counts = &mut self.counts;
        if !frame.destination.is_group() {
            return match frame.destination == self.host {
                true => &mut counts.for_host,
                false => &mut counts.foreign_unicast,
            };
        }
        if is_arp(frame) {
            let target: &[u8; 4] = bytes[ARP_TARGET_IP..][..4]
                .first_chunk()
                .expect("four bytes");
            let is_known = !self.ipv4.is_empty() && self.ipv4.len() < ADDRESSES_MAX;
            return match is_known && !self.ipv4.contains(target) {
                true => &mut counts.foreign_arp,
                false => &mut counts.resolution,
            };
        }
        if neighbour_discovery(frame, bytes) == Some(NEIGHBOUR_SOLICITATION) {
            let end: &[u8; 3] = bytes[ND_TARGET + 13..][..3]
                .first_chunk()
                .expect("three bytes");
            let ends = &self.ipv6_ends;
            let is_known = !ends.is_empty() && ends.len() < ADDRESSES_MAX;
            return match is_known && !ends.contains(end) {
                true => &mut counts.foreign_solicitations,
                false => &mut counts.resolution,
            };
        }
        match frame.destination == MacAddr::BROADCAST {
            true => &mut counts.broadcast,
            false => &mut counts.multicast,
        }
    }
}

fn is_arp(frame: &Captured) -> bool {
    let is_untagged = frame.flow.vlan == packtrain_proto::class::facts::UNTAGGED;
    frame.flow.ether_type == ether_type::ARP && is_untagged && frame.len >= ARP_END
}

/// The type of an untagged message of neighbour discovery without extension headers, as they have none.
fn neighbour_discovery(frame: &Captured, bytes: &[u8]) -> Option<u8> {
    let is_icmpv6 = frame.flow.ip.is_some_and(|ip| ip.protocol == ICMPV6);
    let is_untagged = frame.flow.vlan == packtrain_proto::class::facts::UNTAGGED;
    let is_whole = frame.len >= ND_TARGET + 16 && bytes[HEADER_LEN + 6] == ICMPV6;
    (is_icmpv6 && is_untagged && is_whole).then(|| bytes[ICMPV6_TYPE])
}
