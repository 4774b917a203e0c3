//! Conditions on frames: each asks one thing, and a frame must meet all of a match.

use super::facts::{Facts, FlowFacts, UNTAGGED};
use super::prefix::Prefix;
use super::ranges::Ranges;

/// All of these conditions. None: every frame matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match(pub(super) Vec<Condition>);

/// Conditions of one match.
pub const CONDITIONS_MAX: usize = 8;
/// Prefixes of one condition.
pub const PREFIXES_MAX: usize = 16;

/// One thing that is asked of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The test must fail.
    pub negated: bool,
    pub test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// The EtherType after the tags.
    EtherType(Ranges),
    /// The id in the outermost tag; `None`: there is a tag.
    Vlan(Option<Ranges>),
    /// IP's protocol, the last of IPv6's headers.
    Protocol(Ranges),
    Dscp(Ranges),
    Address(Side, Vec<Prefix>),
    /// Of TCP and UDP.
    Port(Side, Ranges),
    /// Bytes of the frame.
    Size(Ranges),
    /// A TCP segment without payload.
    EmptyTcp,
    /// These bits of the mark have this value.
    Mark {
        value: u32,
        mask: u32,
    },
}

/// Which end's address or port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    Destination,
    Either,
}

impl Match {
    /// This one alone.
    pub fn one(condition: Condition) -> Match {
        Match(vec![condition])
    }

    pub fn conditions(&self) -> &[Condition] {
        &self.0
    }

    /// Whether it asks for a mark, which only the kernel and whoever is told by it know.
    pub fn asks_for_marks(&self) -> bool {
        let mut conditions = self.0.iter();
        conditions.any(|condition| matches!(condition.test, Test::Mark { .. }))
    }

    /// Whether all frames of a flow meet it for ever, or none does.
    pub fn is_fixed(&self) -> bool {
        self.0.iter().all(|condition| condition.test.is_fixed())
    }

    /// Values that a frame is compared with, at most.
    pub fn values(&self) -> usize {
        let values = self.0.iter().map(|condition| condition.test.values());
        values.sum::<usize>().max(1)
    }

    pub fn matches(&self, facts: &Facts) -> bool {
        self.0.iter().all(|condition| condition.holds(facts))
    }
}

impl Condition {
    #[inline]
    pub fn holds(&self, facts: &Facts) -> bool {
        self.test.holds(facts) != self.negated
    }
}

impl Test {
    /// Whether [`FlowFacts`] are enough to know.
    pub fn is_of_flow(&self) -> bool {
        !matches!(self, Test::Size(_) | Test::EmptyTcp | Test::Mark { .. })
    }

    fn values(&self) -> usize {
        let ends = |side: &Side| if *side == Side::Either { 2 } else { 1 };
        match self {
            Test::Address(side, prefixes) => prefixes.len() * ends(side),
            Test::Port(side, ports) => ports.iter().count() * ends(side),
            Test::EtherType(ranges)
            | Test::Vlan(Some(ranges))
            | Test::Protocol(ranges)
            | Test::Dscp(ranges)
            | Test::Size(ranges) => ranges.iter().count(),
            Test::Vlan(None) | Test::EmptyTcp | Test::Mark { .. } => 1,
        }
    }

    /// Whether it is the same for all frames of a flow for ever. A code point is chosen anew now and then.
    pub fn is_fixed(&self) -> bool {
        self.is_of_flow() && !matches!(self, Test::Dscp(_))
    }

    #[inline]
    pub(crate) fn holds(&self, facts: &Facts) -> bool {
        let flow = &facts.flow;
        match self {
            Test::EtherType(types) => types.contains(flow.ether_type.into()),
            Test::Vlan(None) => flow.vlan != UNTAGGED,
            Test::Vlan(Some(ids)) => flow.vlan != UNTAGGED && ids.contains(flow.vlan.into()),
            Test::Protocol(protocols) => flow
                .ip
                .is_some_and(|ip| protocols.contains(ip.protocol.into())),
            Test::Dscp(points) => flow.ip.is_some_and(|ip| points.contains(ip.dscp.into())),
            Test::Address(side, prefixes) => address_holds(flow, *side, prefixes),
            Test::Port(side, ports) => flow.ports.is_some_and(|[source, destination]| {
                side.any(|side| match side {
                    End::Source => ports.contains(source.into()),
                    End::Destination => ports.contains(destination.into()),
                })
            }),
            Test::Size(sizes) => sizes.contains(facts.size),
            Test::EmptyTcp => facts.empty_tcp,
            Test::Mark { value, mask } => facts.mark & mask == *value,
        }
    }
}

#[inline]
pub(crate) fn address_holds(flow: &FlowFacts, side: Side, prefixes: &[Prefix]) -> bool {
    let Some(ip) = flow.ip else { return false };
    let inside = |address| prefixes.iter().any(|p| p.contains(ip.version, address));
    side.any(|end| match end {
        End::Source => inside(flow.source),
        End::Destination => inside(flow.destination),
    })
}

enum End {
    Source,
    Destination,
}

impl Side {
    #[inline]
    fn any(self, mut holds: impl FnMut(End) -> bool) -> bool {
        match self {
            Side::Source => holds(End::Source),
            Side::Destination => holds(End::Destination),
            Side::Either => holds(End::Source) || holds(End::Destination),
        }
    }
}
