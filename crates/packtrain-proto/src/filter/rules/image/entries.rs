//! From rules to entries: what is asked of each dimension by itself.

use super::dimension::{Dimension, Shape, cast_number, mac_number};
use super::layout::kind;
use super::{ENTRIES_MAX, ImageError};
use crate::class::prefix::Prefix;
use crate::class::ranges::Ranges;
use crate::class::{Side, Test};
use crate::filter::rules::condition::{Cast, RuleCondition, RuleTest};
use crate::filter::rules::set::RuleSet;
use crate::wire::ethernet::MacAddr;
use crate::wire::packet::IpVersion;

/// A set of values of one dimension, told apart from others by what was written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Atom<'a> {
    /// Whatever it is, where it is there.
    Any,
    Numbers(&'a Ranges),
    Prefixes(&'a [Prefix]),
    Macs(&'a [MacAddr]),
    Cast(Cast),
    /// The kinds that have this bit.
    Kind(u32),
}

/// Which values a range is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    V4,
    V6,
    Numbers { bits: u32 },
}

/// What an entry asks of a dimension. It has the bit for the values that are in the atom, or, negated, for those that are not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub entry: usize,
    pub atom: usize,
    pub negated: bool,
}

/// All that is asked of one dimension.
#[derive(Debug, Default)]
pub(super) struct Asked<'a> {
    pub atoms: Vec<Atom<'a>>,
    pub asks: Vec<Ask>,
}

#[derive(Debug)]
pub(super) struct Entries<'a> {
    /// The rule of each.
    pub rules: Vec<usize>,
    /// By dimension.
    pub asked: Vec<Asked<'a>>,
}

/// A dimension, an atom of it, and whether it is negated.
type Literal = (Dimension, usize, bool);

impl<'a> Entries<'a> {
    pub fn of(rules: &'a RuleSet) -> Result<Entries<'a>, ImageError> {
        let mut entries = Entries {
            rules: Vec::new(),
            asked: Dimension::ALL.map(|_| Asked::default()).into(),
        };
        for (place, rule) in rules.rules().iter().enumerate() {
            let mut alternatives: Vec<Vec<Literal>> = vec![Vec::new()];
            for condition in rule.matches.conditions() {
                let choices = entries.choices(condition, rules);
                alternatives = both(&alternatives, &choices);
            }
            if entries.rules.len() + alternatives.len() > ENTRIES_MAX {
                return Err(ImageError::Entries(rule.name.clone()));
            }
            for literals in alternatives {
                entries.add(place, &literals);
            }
        }
        Ok(entries)
    }

    fn add(&mut self, rule: usize, literals: &[Literal]) {
        let entry = self.rules.len();
        self.rules.push(rule);
        for &(dimension, atom, negated) in literals {
            self.asked[dimension as usize].asks.push(Ask {
                entry,
                atom,
                negated,
            });
        }
    }

    /// The ways to meet a condition, of which no frame takes two.
    fn choices(&mut self, condition: &'a RuleCondition, rules: &'a RuleSet) -> Vec<Vec<Literal>> {
        let negated = condition.negated;
        let (ends, atom) = parts(&condition.test, rules);
        let mut literal = |dimension: Dimension| {
            let atom = self.asked[dimension as usize].place(atom);
            move |negated| (dimension, atom, negated)
        };
        match ends {
            Ends::One(dimension) => vec![vec![literal(dimension)(negated)]],
            Ends::Either(source, destination) => {
                let (source, destination) = (literal(source), literal(destination));
                match negated {
                    true => vec![vec![source(true), destination(true)]],
                    false => vec![vec![source(false)], vec![source(true), destination(false)]],
                }
            }
        }
    }
}

/// Each of one with each of the other, but for what contradicts itself.
fn both(some: &[Vec<Literal>], others: &[Vec<Literal>]) -> Vec<Vec<Literal>> {
    let mut all = Vec::with_capacity(some.len() * others.len());
    for one in some {
        for other in others {
            let is_denied =
                |&(dimension, atom, negated): &Literal| one.contains(&(dimension, atom, !negated));
            if !other.iter().any(is_denied) {
                all.push([&one[..], other].concat());
            }
        }
    }
    all
}

enum Ends {
    One(Dimension),
    Either(Dimension, Dimension),
}

fn parts<'a>(test: &'a RuleTest, rules: &'a RuleSet) -> (Ends, Atom<'a>) {
    match test {
        RuleTest::Class(test) => class_parts(test),
        RuleTest::Set(side, name) => {
            let prefixes = rules.named().prefixes(name);
            (address_ends(*side), Atom::Prefixes(prefixes))
        }
        RuleTest::SourceMac(macs) => (Ends::One(Dimension::SourceMac), Atom::Macs(macs)),
        RuleTest::DestinationMac(macs) => (Ends::One(Dimension::DestinationMac), Atom::Macs(macs)),
        RuleTest::InnerVlan(ids) => (Ends::One(Dimension::InnerVlan), tag_atom(ids)),
        RuleTest::Cast(cast) => (Ends::One(Dimension::Kinds), Atom::Cast(*cast)),
        RuleTest::Fragment => (Ends::One(Dimension::Kinds), Atom::Kind(kind::FRAGMENT)),
        RuleTest::Syn => (Ends::One(Dimension::Kinds), Atom::Kind(kind::SYN)),
    }
}

fn class_parts(test: &Test) -> (Ends, Atom<'_>) {
    match test {
        Test::EtherType(types) => (Ends::One(Dimension::EtherType), Atom::Numbers(types)),
        Test::Vlan(ids) => (Ends::One(Dimension::Vlan), tag_atom(ids)),
        Test::Protocol(protocols) => (Ends::One(Dimension::Protocol), Atom::Numbers(protocols)),
        Test::Dscp(points) => (Ends::One(Dimension::Dscp), Atom::Numbers(points)),
        Test::Address(side, prefixes) => (address_ends(*side), Atom::Prefixes(prefixes)),
        Test::Port(side, ports) => (
            ends(*side, Dimension::SourcePort, Dimension::DestinationPort),
            Atom::Numbers(ports),
        ),
        Test::Size(sizes) => (Ends::One(Dimension::Size), Atom::Numbers(sizes)),
        Test::EmptyTcp => (Ends::One(Dimension::Kinds), Atom::Kind(kind::EMPTY)),
        Test::Mark { .. } => unreachable!("no rule can be written that asks for a mark"),
    }
}

fn tag_atom(ids: &Option<Ranges>) -> Atom<'_> {
    ids.as_ref().map_or(Atom::Any, Atom::Numbers)
}

fn address_ends(side: Side) -> Ends {
    ends(side, Dimension::Source, Dimension::Destination)
}

fn ends(side: Side, source: Dimension, destination: Dimension) -> Ends {
    match side {
        Side::Source => Ends::One(source),
        Side::Destination => Ends::One(destination),
        Side::Either => Ends::Either(source, destination),
    }
}

impl<'a> Asked<'a> {
    /// An atom's place, anew or where it is already.
    fn place(&mut self, atom: Atom<'a>) -> usize {
        match self.atoms.iter().position(|known| known.is_same(&atom)) {
            Some(place) => place,
            None => {
                self.atoms.push(atom);
                self.atoms.len() - 1
            }
        }
    }
}

impl Atom<'_> {
    fn is_same(&self, other: &Atom<'_>) -> bool {
        match (self, other) {
            (Atom::Any, Atom::Any) => true,
            (Atom::Numbers(a), Atom::Numbers(b)) => a == b,
            // A set is mostly the same one; two that are alike differ early, or are short.
            (Atom::Prefixes(a), Atom::Prefixes(b)) => core::ptr::eq(*a, *b) || a == b,
            (Atom::Macs(a), Atom::Macs(b)) => a == b,
            (Atom::Cast(a), Atom::Cast(b)) => a == b,
            (Atom::Kind(a), Atom::Kind(b)) => a == b,
            _ => false,
        }
    }

    /// Its values in one space, both ends included. They may overlap.
    pub fn ranges(&self, space: Space) -> Vec<(u128, u128)> {
        let max = space.max();
        let kinds = |is_one: &dyn Fn(u32) -> bool| {
            let kinds = (0..kind::COUNT).filter(|&kind| is_one(kind));
            kinds.map(|kind| (kind.into(), kind.into())).collect()
        };
        match self {
            Atom::Any => vec![(0, max)],
            Atom::Numbers(ranges) => {
                let ranges = ranges.iter().map(|(a, b)| (a.into(), max.min(b.into())));
                ranges.filter(|(first, last)| first <= last).collect()
            }
            Atom::Prefixes(prefixes) => {
                let inside = prefixes.iter().filter(|p| space.has(p.version()));
                let range = |prefix: &Prefix| {
                    let (address, mask) = prefix.address_and_mask();
                    (address, address | (max & !mask))
                };
                inside.map(range).collect()
            }
            Atom::Macs(macs) => {
                let macs = macs.iter().map(|&mac| u128::from(mac_number(mac)));
                macs.map(|mac| (mac, mac)).collect()
            }
            Atom::Cast(cast) => {
                kinds(&|number| number & kind::CAST_MASK == cast_number(Some(*cast)))
            }
            Atom::Kind(bit) => kinds(&|number| number & bit != 0),
        }
    }
}

impl Space {
    pub fn of(shape: Shape) -> Vec<Space> {
        match shape {
            Shape::Addresses => vec![Space::V4, Space::V6],
            Shape::Table { bits } | Shape::Sorted { bits } => vec![Space::Numbers { bits }],
        }
    }

    pub fn max(self) -> u128 {
        match self {
            Space::V4 => u32::MAX.into(),
            Space::V6 => u128::MAX,
            Space::Numbers { bits } => (1 << bits) - 1,
        }
    }

    fn has(self, version: IpVersion) -> bool {
        match version {
            IpVersion::V4 => self == Space::V4,
            IpVersion::V6 => self == Space::V6,
        }
    }
}
