//! Rules and frames for tests. Both draw from few values, so that they meet; and from all, so that nothing is left out.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::condition::{Cast, RuleCondition, RuleMatch, RuleTest};
use super::limit::{BURST_BYTES_MIN, BURST_MAX, Limit, PER_SECOND_MAX, Per, Unit};
use super::rule::{Rule, Verdict};
use super::set::{NamedSet, RuleSet};
use crate::class::prefix::Prefix;
use crate::class::ranges::Ranges;
use crate::class::{Side, Test};
use crate::wire::ethernet::{MacAddr, ether_type};
use crate::wire::packet::protocol;

/// A frame, by what rules look at.
#[derive(Clone, Debug)]
pub(super) struct FrameShape {
    /// Source and destination.
    pub macs: [MacAddr; 2],
    /// Ids, the outer first.
    pub tags: Vec<u16>,
    pub network: Network,
    pub dscp: u8,
    pub protocol: u8,
    pub fragment: bool,
    pub ports: [u16; 2],
    pub flags: u8,
    pub payload: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Network {
    V4([u32; 2]),
    V6 {
        addresses: [u128; 2],
        /// Headers of destination options.
        extensions: usize,
    },
    /// This EtherType, or length.
    Other(u16),
}

impl Network {
    pub fn v4() -> Network {
        Network::V4([0x0a00_0001, 0x0a00_0002])
    }

    pub fn v6() -> Network {
        Network::V6 {
            addresses: [1, 2],
            extensions: 0,
        }
    }
}

impl Default for FrameShape {
    fn default() -> FrameShape {
        FrameShape {
            macs: [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])],
            tags: Vec::new(),
            network: Network::v4(),
            dscp: 0,
            protocol: protocol::UDP,
            fragment: false,
            ports: [1, 2],
            flags: 0,
            payload: 0,
        }
    }
}

impl FrameShape {
    pub fn bytes(&self) -> Vec<u8> {
        let [source, destination] = self.macs;
        let mut frame = [destination.0, source.0].concat();
        for (i, tag) in self.tags.iter().enumerate() {
            let is_outer_of_two = i == 0 && self.tags.len() > 1;
            let tag_type = [ether_type::VLAN, ether_type::QINQ][usize::from(is_outer_of_two)];
            // With a priority, which is not the id's.
            frame.extend([tag_type.to_be_bytes(), (tag | 0xa000).to_be_bytes()].concat());
        }
        let transport = self.transport();
        let len = transport.len() as u16;
        match self.network {
            Network::V4([source, destination]) => {
                frame.extend(ether_type::IPV4.to_be_bytes());
                let [high, low] = (20 + len).to_be_bytes();
                let more = if self.fragment { 0x20 } else { 0x40 };
                frame.extend([0x45, self.dscp << 2, high, low, 0, 0, more, 0]);
                frame.extend([64, self.protocol, 0, 0]);
                frame.extend([source.to_be_bytes(), destination.to_be_bytes()].concat());
            }
            Network::V6 {
                addresses: [source, destination],
                extensions,
            } => {
                frame.extend(ether_type::IPV6.to_be_bytes());
                let mut headers = vec![protocol::DESTINATION; extensions];
                headers.extend(self.fragment.then_some(protocol::FRAGMENT));
                headers.push(self.protocol);
                let class = 0x6000 | u16::from(self.dscp) << 6;
                frame.extend(
                    [class, 0, len + 8 * (headers.len() as u16 - 1)]
                        .map(u16::to_be_bytes)
                        .concat(),
                );
                frame.extend([headers[0], 64]);
                frame.extend([source.to_be_bytes(), destination.to_be_bytes()].concat());
                for next in &headers[1..] {
                    frame.extend([*next, 0, 0, 0, 0, 0, 0, 0]);
                }
            }
            Network::Other(ether_type) => frame.extend(ether_type.to_be_bytes()),
        }
        frame.extend(transport);
        frame
    }

    fn transport(&self) -> Vec<u8> {
        let mut bytes = self.ports.map(u16::to_be_bytes).concat();
        if self.protocol == protocol::TCP {
            bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, self.flags, 0, 0, 0, 0, 0, 0]);
        } else {
            bytes.extend([0; 4]);
        }
        bytes.resize(bytes.len() + self.payload, 0xee);
        bytes
    }
}

/// A rule of each pair of a verdict and a match.
pub(super) fn rules_of(rules: &[(&str, &str)]) -> RuleSet {
    let rule = |(place, (verdict, matches)): (usize, &(&str, &str))| Rule {
        name: format!("r{place}").parse().unwrap(),
        verdict: verdict.parse().unwrap(),
        matches: matches.parse().unwrap(),
    };
    RuleSet::new(rules.iter().enumerate().map(rule).collect(), Vec::new()).unwrap()
}

pub(super) fn limit() -> impl Strategy<Value = Limit> {
    let rate = prop_oneof![
        1..=PER_SECOND_MAX,
        (1..=1000u64).prop_map(|n| n * 1_000_000)
    ];
    let burst = prop_oneof![
        BURST_BYTES_MIN..=BURST_MAX,
        (2..=4000u64).prop_map(|n| n * 1000)
    ];
    let unit = select(vec![Unit::Packets, Unit::Bytes]);
    let per = select(vec![Per::Rule, Per::Source]);
    (rate, unit, proptest::option::of(burst), per)
        .prop_map(|(rate, unit, burst, per)| Limit::new(rate, unit, burst, per).unwrap())
}

pub(super) fn address4() -> impl Strategy<Value = u32> {
    prop_oneof![
        // Within a /24, a /8, at both ends, and anywhere.
        4 => (0u32..256).prop_map(|n| 0x0a09_0800 | n),
        2 => (0u32..1 << 24).prop_map(|n| 0x0a00_0000 | n),
        1 => select(vec![0, 1, u32::MAX, u32::MAX - 1, 0x0a00_ffff, 0x0a01_0000]),
        1 => any::<u32>(),
    ]
}

pub(super) fn address6() -> impl Strategy<Value = u128> {
    const SITE: u128 = 0x2001_0db8 << 96;
    prop_oneof![
        4 => (0u128..64, 0u128..4).prop_map(|(net, host)| SITE | net << 64 | host),
        2 => any::<u128>().prop_map(|n| SITE | n >> 32),
        // Hosts of one network, whose first 64 bits are the same.
        2 => (0u128..600).prop_map(|n| SITE | 5 << 64 | (n * 7)),
        1 => select(vec![0, 1, u128::MAX, SITE - 1, SITE | (u128::MAX >> 32), 0xfe80 << 112 | 1]),
        1 => any::<u128>(),
    ]
}

pub(super) fn prefix() -> impl Strategy<Value = Prefix> {
    let v4 =
        (address4(), prop_oneof![Just(32u32), 20..=32u32, 0..=32u32]).prop_map(|(address, len)| {
            let mask = u32::MAX.checked_shl(32 - len).unwrap_or(0);
            format!("{}/{len}", core::net::Ipv4Addr::from_bits(address & mask))
        });
    let v6 = (
        address6(),
        prop_oneof![Just(64u32), 24..=128u32, 0..=128u32],
    )
        .prop_map(|(address, len)| {
            let mask = u128::MAX.checked_shl(128 - len).unwrap_or(0);
            format!("{}/{len}", core::net::Ipv6Addr::from_bits(address & mask))
        });
    prop_oneof![v4, v6].prop_map(|text| text.parse().unwrap())
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![4 => select(vec![0u16, 22, 53, 80, 443, 65_535]), 1 => any::<u16>()]
}

fn mac() -> impl Strategy<Value = MacAddr> {
    prop_oneof![
        4 => (0u8..4).prop_map(|n| MacAddr([2, 0, 0, 0, 0, n])),
        1 => Just(MacAddr::BROADCAST),
        1 => Just(MacAddr([1, 0, 0x5e, 0, 0, 1])),
        1 => Just(MacAddr([0; 6])),
        1 => any::<[u8; 6]>().prop_map(MacAddr),
    ]
}

fn protocol() -> impl Strategy<Value = u8> {
    prop_oneof![4 => select(vec![1u8, 6, 6, 17, 58]), 1 => any::<u8>()]
}

fn tag() -> impl Strategy<Value = u16> {
    prop_oneof![3 => 0u16..4, 1 => 0u16..4096]
}

/// A range, or one number.
fn ranges(number: impl Strategy<Value = u32> + Clone) -> impl Strategy<Value = Ranges> {
    let range = prop_oneof![
        number.clone().prop_map(|n| (n, n)),
        (number.clone(), number).prop_map(|(a, b)| (a.min(b), a.max(b))),
    ];
    vec(range, 1..3).prop_map(Ranges::new)
}

fn tags() -> impl Strategy<Value = Option<Ranges>> {
    proptest::option::of(ranges(boxed(tag())))
}

fn boxed<T: Into<u32> + 'static>(
    strategy: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<u32> {
    strategy.prop_map(Into::into).boxed()
}

fn side() -> impl Strategy<Value = Side> {
    // The two that are one are the dearer: an entry more.
    select(vec![
        Side::Source,
        Side::Source,
        Side::Destination,
        Side::Destination,
        Side::Either,
    ])
}

fn size() -> BoxedStrategy<u32> {
    prop_oneof![0u32..200, Just(65_535), Just(65_536), Just(u32::MAX)].boxed()
}

fn class_test() -> impl Strategy<Value = Test> {
    let types = select(vec![0u32, 60, 0x0800, 0x0806, 0x86dd, 0x8100, 0xffff]);
    prop_oneof![
        ranges(types.boxed()).prop_map(Test::EtherType),
        tags().prop_map(Test::Vlan),
        ranges(boxed(protocol())).prop_map(Test::Protocol),
        ranges((0u32..64).boxed()).prop_map(Test::Dscp),
        (side(), vec(prefix(), 1..5)).prop_map(|(side, prefixes)| Test::Address(side, prefixes)),
        (side(), ranges(boxed(port()))).prop_map(|(side, ports)| Test::Port(side, ports)),
        ranges(size()).prop_map(Test::Size),
        Just(Test::EmptyTcp),
    ]
}

/// Names of the sets in [`any_rules`].
const SETS: [&str; 3] = ["few", "many", "none"];

fn test() -> impl Strategy<Value = RuleTest> {
    let set = select(SETS.to_vec()).prop_map(|name| name.parse().unwrap());
    prop_oneof![
        8 => class_test().prop_map(RuleTest::Class),
        3 => (side(), set).prop_map(|(side, set)| RuleTest::Set(side, set)),
        1 => vec(mac(), 1..4).prop_map(RuleTest::SourceMac),
        1 => vec(mac(), 1..4).prop_map(RuleTest::DestinationMac),
        1 => tags().prop_map(RuleTest::InnerVlan),
        1 => select(vec![Cast::Unicast, Cast::Multicast, Cast::Broadcast]).prop_map(RuleTest::Cast),
        1 => Just(RuleTest::Fragment),
        1 => Just(RuleTest::Syn),
    ]
}

pub(super) fn any_match() -> impl Strategy<Value = RuleMatch> {
    let condition = (any::<bool>(), test());
    let condition = condition.prop_map(|(negated, test)| RuleCondition { negated, test });
    vec(condition, 0..4).prop_map(RuleMatch)
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Allow),
        Just(Verdict::Deny),
        limit().prop_map(Verdict::Limit)
    ]
}

/// Up to so many rules, and sets of up to so many prefixes.
pub(super) fn any_rules(rules: usize, prefixes: usize) -> impl Strategy<Value = RuleSet> {
    let rules = vec((verdict(), any_match()), 1..=rules);
    let sets = (vec(prefix(), 1..8), vec(prefix(), 1..=prefixes));
    (rules, sets).prop_map(|(rules, (few, many))| {
        let rule = |(place, (verdict, matches))| Rule {
            name: format!("r{place}").parse().unwrap(),
            verdict,
            matches,
        };
        let set = |(name, prefixes): (&&str, Vec<Prefix>)| NamedSet {
            name: name.parse().unwrap(),
            prefixes,
        };
        let sets = SETS.iter().zip([few, many, Vec::new()]).map(set);
        let rules = rules.into_iter().enumerate().map(rule);
        RuleSet::new(rules.collect(), sets.collect()).unwrap()
    })
}

pub(super) fn any_shape() -> impl Strategy<Value = FrameShape> {
    let network = prop_oneof![
        3 => [address4(), address4()].prop_map(Network::V4),
        3 => ([address6(), address6()], 0usize..3)
            .prop_map(|(addresses, extensions)| Network::V6 { addresses, extensions }),
        1 => select(vec![0x0806u16, 60, 0, 0x88cc, 0xffff]).prop_map(Network::Other),
    ];
    let below = ([mac(), mac()], vec(tag(), 0..4), network);
    let above = (
        0u8..64,
        protocol(),
        proptest::bool::weighted(0.1),
        [port(), port()],
    );
    let rest = (select(vec![0x02u8, 0x12, 0x10, 0x18, 0x42]), 0usize..100);
    let fields = (below, above, rest, any::<bool>());
    fields.prop_map(
        |((macs, tags, network), above, (flags, payload), is_empty)| {
            let (dscp, protocol, fragment, ports) = above;
            FrameShape {
                macs,
                tags,
                network,
                dscp,
                protocol,
                fragment,
                ports,
                flags,
                payload: if is_empty { 0 } else { payload },
            }
        },
    )
}

/// A frame that may end anywhere.
pub(super) fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let cut = proptest::option::weighted(0.2, any::<prop::sample::Index>());
    (any_shape(), cut).prop_map(|(shape, cut)| {
        let mut frame = shape.bytes();
        if let Some(cut) = cut {
            frame.truncate(cut.index(frame.len() + 1));
        }
        frame
    })
}
