//! A frame of a capture, and what a filter would say of it.

use std::time::Duration;

use packtrain_proto::filter::{Host, Policy, Reason, decide};
use packtrain_proto::wire::ethernet::{FRAME_LEN_MIN, Header, MacAddr};

use super::kind::Kind;
use crate::capture_file::Frame;

/// The checksum behind each frame, which captures do not have (IEEE 802.3, 3.2.9).
const FCS_LEN: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// To an address of the host's own.
    Own,
    /// To somebody else's.
    Foreign,
    Multicast,
    Broadcast,
    /// Too short to say to whom.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    pub frame: Frame<'a>,
    /// `None`: it ends within its Ethernet header.
    pub header: Option<Header>,
    pub kind: Kind,
    pub cast: Cast,
    pub reason: Reason,
    /// The place of the rule that has decided.
    pub rule: Option<usize>,
}

impl<'a> Judged<'a> {
    /// `by_rule`: which one has decided, before the policy.
    pub fn new(
        frame: Frame<'a>,
        host: &Host,
        policy: Policy,
        by_rule: Option<(usize, Reason)>,
    ) -> Judged<'a> {
        let header = Header::parse(frame.bytes);
        Judged {
            frame,
            header,
            kind: Kind::of(frame.bytes),
            cast: header.map_or(Cast::Unknown, |header| cast(&header, host)),
            reason: match by_rule {
                Some((_, reason)) => reason,
                None => decide(frame.bytes, false, host, policy, false),
            },
            rule: by_rule.map(|(rule, _)| rule),
        }
    }

    /// As Ethernet counts: with padding and checksum.
    pub fn size(&self) -> usize {
        self.frame.len_on_wire.max(FRAME_LEN_MIN) + FCS_LEN
    }

    /// Sent by the host that it is judged for: a filter sees only what comes in.
    pub fn is_from(&self, host: &Host) -> bool {
        let source = self.header.map(|header| header.source);
        source.is_some_and(|source| has(host, &source))
    }
}

/// Seconds from `first` to `at`: captures are not always in order.
pub fn seconds_since(first: Duration, at: Duration) -> f64 {
    match at.checked_sub(first) {
        Some(later) => later.as_secs_f64(),
        None => -(first - at).as_secs_f64(),
    }
}

fn cast(header: &Header, host: &Host) -> Cast {
    let destination = header.destination;
    match destination {
        MacAddr::BROADCAST => Cast::Broadcast,
        group if group.is_group() => Cast::Multicast,
        address if has(host, &address) => Cast::Own,
        _ => Cast::Foreign,
    }
}

fn has(host: &Host, address: &MacAddr) -> bool {
    let mut interfaces = std::iter::once(&host.interface).chain(&host.line);
    interfaces.any(|interface| interface.unicast.contains(address))
}
