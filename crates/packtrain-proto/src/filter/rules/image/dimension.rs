//! What frames are told apart by, and what they have of it.

use super::layout::kind;
use crate::class::facts::UNTAGGED;
use crate::filter::rules::condition::Cast;
use crate::filter::rules::facts::{RuleFacts, SIZE_MAX};
use crate::wire::packet::IpVersion;

/// Its number is its bit in the header, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Dimension {
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    Protocol,
    EtherType,
    Size,
    /// The outer tag's.
    Vlan,
    InnerVlan,
    Dscp,
    SourceMac,
    DestinationMac,
    /// Yes and no together: cast, fragment, SYN, no payload ([`super::kind`]).
    Kinds,
}

pub const DIMENSIONS: usize = 13;

/// How its values are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Addresses,
    /// Values of so many bits.
    Table {
        bits: u32,
    },
    Sorted {
        bits: u32,
    },
}

/// What one frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Absent,
    Number(u64),
    V4(u32),
    V6(u128),
}

impl Dimension {
    pub const ALL: [Dimension; DIMENSIONS] = [
        Dimension::Source,
        Dimension::Destination,
        Dimension::SourcePort,
        Dimension::DestinationPort,
        Dimension::Protocol,
        Dimension::EtherType,
        Dimension::Size,
        Dimension::Vlan,
        Dimension::InnerVlan,
        Dimension::Dscp,
        Dimension::SourceMac,
        Dimension::DestinationMac,
        Dimension::Kinds,
    ];

    pub(super) fn shape(self) -> Shape {
        match self {
            Dimension::Source | Dimension::Destination => Shape::Addresses,
            Dimension::SourcePort
            | Dimension::DestinationPort
            | Dimension::EtherType
            | Dimension::Size => Shape::Table { bits: 16 },
            Dimension::Protocol => Shape::Table { bits: 8 },
            Dimension::Vlan | Dimension::InnerVlan => Shape::Table { bits: 12 },
            Dimension::Dscp => Shape::Table { bits: 6 },
            Dimension::Kinds => Shape::Table { bits: 5 },
            Dimension::SourceMac | Dimension::DestinationMac => Shape::Sorted { bits: 48 },
        }
    }

    pub(super) fn value(self, facts: &RuleFacts) -> Value {
        let flow = &facts.class.flow;
        let number = |number: Option<u64>| number.map_or(Value::Absent, Value::Number);
        let address = |address: u128| match flow.ip.map(|ip| ip.version) {
            None => Value::Absent,
            Some(IpVersion::V4) => Value::V4(address as u32),
            Some(IpVersion::V6) => Value::V6(address),
        };
        let tag = |id: u16| number((id != UNTAGGED).then_some(id.into()));
        match self {
            Dimension::Source => address(flow.source),
            Dimension::Destination => address(flow.destination),
            Dimension::SourcePort => number(flow.ports.map(|ports| ports[0].into())),
            Dimension::DestinationPort => number(flow.ports.map(|ports| ports[1].into())),
            Dimension::Protocol => number(flow.ip.map(|ip| ip.protocol.into())),
            Dimension::EtherType => Value::Number(flow.ether_type.into()),
            Dimension::Size => Value::Number(facts.class.size.into()),
            Dimension::Vlan => tag(flow.vlan),
            Dimension::InnerVlan => tag(facts.inner_vlan),
            Dimension::Dscp => number(flow.ip.map(|ip| ip.dscp.into())),
            Dimension::SourceMac => number(facts.source_mac.map(mac_number)),
            Dimension::DestinationMac => number(facts.destination_mac.map(mac_number)),
            Dimension::Kinds => Value::Number(kind_of(facts).into()),
        }
    }
}

/// A MAC address as a number, the first octet the most significant.
pub(super) fn mac_number(mac: crate::wire::ethernet::MacAddr) -> u64 {
    mac.0
        .iter()
        .fold(0, |number, &octet| number << 8 | u64::from(octet))
}

/// All yes and no of a frame.
fn kind_of(facts: &RuleFacts) -> u32 {
    let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
    cast_number(facts.cast())
        | bit(facts.fragment, kind::FRAGMENT)
        | bit(facts.syn, kind::SYN)
        | bit(facts.class.empty_tcp, kind::EMPTY)
}

pub(super) fn cast_number(cast: Option<Cast>) -> u32 {
    match cast {
        Some(Cast::Unicast) => kind::UNICAST,
        Some(Cast::Multicast) => kind::MULTICAST,
        Some(Cast::Broadcast) => kind::BROADCAST,
        None => kind::CAST_UNKNOWN,
    }
}

const _: () = {
    assert!(Dimension::Kinds as usize + 1 == DIMENSIONS);
    assert!(SIZE_MAX == u16::MAX as u32, "a table has all sizes");
    assert!(kind::COUNT == 1 << 5, "the bits of the kinds' table");
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dimension_stands_at_its_number() {
        for (number, dimension) in Dimension::ALL.into_iter().enumerate() {
            assert_eq!(dimension as usize, number);
        }
    }
}
