//! What a rule asks of a frame: what classes ask, and what else tells frames apart that arrive.

use super::facts::RuleFacts;
use super::name::SetName;
use super::set::Sets;
use crate::class::condition::address_holds;
use crate::class::facts::UNTAGGED;
use crate::class::ranges::Ranges;
use crate::class::{Side, Test};
use crate::wire::ethernet::MacAddr;

/// All of these conditions. None: every frame matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleMatch(pub(super) Vec<RuleCondition>);

/// Addresses of stations in one condition.
pub const MACS_MAX: usize = 16;

/// One thing that is asked of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCondition {
    /// The test must fail.
    pub negated: bool,
    pub test: RuleTest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleTest {
    /// What classes ask too. Never for a mark: a frame that just arrived has none.
    Class(Test),
    /// An address within a set that has a name.
    Set(Side, SetName),
    /// The station that sent it, one of some.
    SourceMac(Vec<MacAddr>),
    DestinationMac(Vec<MacAddr>),
    /// The id in the second tag; `None`: there is a second tag.
    InnerVlan(Option<Ranges>),
    Cast(Cast),
    /// A piece of an IP datagram, the first one too.
    Fragment,
    /// Who opens a TCP connection sends it: SYN without ACK.
    Syn,
}

/// To how many a frame goes, by its destination address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    Unicast,
    /// To a group, but not to all.
    Multicast,
    Broadcast,
}

impl RuleMatch {
    pub fn conditions(&self) -> &[RuleCondition] {
        &self.0
    }

    /// The sets that it asks for.
    pub fn sets(&self) -> impl Iterator<Item = &SetName> {
        self.0.iter().filter_map(|condition| match &condition.test {
            RuleTest::Set(_, name) => Some(name),
            _ => None,
        })
    }

    pub(super) fn matches(&self, facts: &RuleFacts, sets: &Sets) -> bool {
        let mut conditions = self.0.iter();
        conditions.all(|condition| condition.test.holds(facts, sets) != condition.negated)
    }
}

impl RuleTest {
    fn holds(&self, facts: &RuleFacts, sets: &Sets) -> bool {
        let among = |macs: &[MacAddr], mac: Option<MacAddr>| mac.is_some_and(|m| macs.contains(&m));
        match self {
            RuleTest::Class(test) => test.holds(&facts.class),
            RuleTest::Set(side, name) => {
                address_holds(&facts.class.flow, *side, sets.prefixes(name))
            }
            RuleTest::SourceMac(macs) => among(macs, facts.source_mac),
            RuleTest::DestinationMac(macs) => among(macs, facts.destination_mac),
            RuleTest::InnerVlan(None) => facts.inner_vlan != UNTAGGED,
            RuleTest::InnerVlan(Some(ids)) => {
                facts.inner_vlan != UNTAGGED && ids.contains(facts.inner_vlan.into())
            }
            RuleTest::Cast(cast) => facts.cast() == Some(*cast),
            RuleTest::Fragment => facts.fragment,
            RuleTest::Syn => facts.syn,
        }
    }
}
