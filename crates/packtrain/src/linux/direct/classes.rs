//! Classes as the program before `pt0` compares frames with them (`bpf/class.h`).

use packtrain_proto::class::prefix::Prefix;
use packtrain_proto::class::ranges::Ranges;
use packtrain_proto::class::{Class, Condition, KernelPath, Match, Pack, Side, Test};
use packtrain_proto::wire::packet::IpVersion;

/// `struct class_comparison`.
pub(in crate::linux) const COMPARISON_LEN: usize = 40;

const ENDS_CONDITION: u8 = 1;
const ENDS_CLASS: u8 = 2;
const VLAN_MAX: u64 = 4095;

/// `CLASS_ETHER_TYPE` and the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    EtherType,
    Vlan,
    Protocol,
    Dscp,
    SourcePort,
    DestinationPort,
    Size,
    EmptyTcp,
    Mark,
    Source4,
    Destination4,
    Source6,
    Destination6,
}

/// What a class says that the program acts upon.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    path: u8,
    /// All frames of its flows go ahead of others.
    urgent: bool,
}

/// `CLASS_PATH_ENGINE` and the others.
pub(super) fn number_of(path: KernelPath) -> u8 {
    match path {
        KernelPath::Engine => 0,
        KernelPath::Auto => 1,
        KernelPath::LossOk => 2,
        KernelPath::Direct => 3,
    }
}

/// A fact is within a range, or has this value under a mask.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    fact: Fact,
    low: u128,
    high: u128,
}

impl Comparison {
    fn range(fact: Fact, (low, high): (u64, u64)) -> Comparison {
        let (low, high) = (low.into(), high.into());
        Comparison { fact, low, high }
    }

    fn bytes(self, negated: bool, ends: u8, verdict: Verdict) -> [u8; COMPARISON_LEN] {
        let mut bytes = [0; COMPARISON_LEN];
        // Two words, the last 64 bits first, each as this machine has them.
        for (at, value) in [(0, self.low), (16, self.high)] {
            bytes[at..at + 8].copy_from_slice(&(value as u64).to_ne_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&((value >> 64) as u64).to_ne_bytes());
        }
        let Verdict { path, urgent } = verdict;
        bytes[32..37].copy_from_slice(&[
            self.fact as u8,
            negated.into(),
            ends,
            path,
            urgent.into(),
        ]);
        bytes
    }
}

/// What the program has to compare.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pub(super) comparisons: Vec<[u8; COMPARISON_LEN]>,
    /// How many of them to know the way of any frame: behind the last class that says something of it all
    /// frames take the same.
    pub(super) paths: usize,
    /// … and to know whether it is urgent with all its flow.
    pub(super) urgent: usize,
}

pub(super) fn compile(classes: &[Class]) -> Compiled {
    let mut compiled = Compiled::default();
    // Of a flow that an earlier class takes frames of, nobody knows which.
    let mut flows_are_whole = true;
    for class in classes {
        let conditions = class.matches.conditions();
        flows_are_whole &= conditions.iter().all(|condition| condition.test.is_fixed());
        let path = class.action.kernel_path();
        let verdict = Verdict {
            path: number_of(path),
            urgent: flows_are_whole && class.action.pack == Pack::Now,
        };
        put(&class.matches, verdict, &mut compiled.comparisons);
        if path != KernelPath::Auto {
            compiled.paths = compiled.comparisons.len();
        }
        if verdict.urgent {
            compiled.urgent = compiled.comparisons.len();
        }
    }
    let needed = compiled.paths.max(compiled.urgent);
    compiled.comparisons.truncate(needed);
    compiled
}

/// What is compared with a frame to know whether it matches; `number` is what a program that walks through them finds then.
pub(in crate::linux) fn comparisons_of(matches: &Match, number: u8) -> Vec<[u8; COMPARISON_LEN]> {
    let verdict = Verdict {
        path: number,
        urgent: false,
    };
    let mut comparisons = Vec::new();
    put(matches, verdict, &mut comparisons);
    comparisons
}

fn put(matches: &Match, verdict: Verdict, into: &mut Vec<[u8; COMPARISON_LEN]>) {
    let conditions = matches.conditions();
    if conditions.is_empty() {
        let any = Comparison::range(Fact::Size, (0, u32::MAX.into()));
        into.push(any.bytes(false, ENDS_CONDITION | ENDS_CLASS, verdict));
    }
    for (at, condition) in conditions.iter().enumerate() {
        let is_last = at + 1 == conditions.len();
        let alternatives = alternatives(condition);
        for (at, alternative) in alternatives.iter().enumerate() {
            let mut ends = 0;
            if at + 1 == alternatives.len() {
                ends = ENDS_CONDITION | if is_last { ENDS_CLASS } else { 0 };
            }
            into.push(alternative.bytes(condition.negated, ends, verdict));
        }
    }
}

/// One of these must hold.
fn alternatives(condition: &Condition) -> Vec<Comparison> {
    let ranges = |fact, ranges: &Ranges| -> Vec<Comparison> {
        let each = ranges.iter();
        each.map(|(low, high)| Comparison::range(fact, (low.into(), high.into())))
            .collect()
    };
    match &condition.test {
        Test::EtherType(types) => ranges(Fact::EtherType, types),
        Test::Vlan(None) => vec![Comparison::range(Fact::Vlan, (0, VLAN_MAX))],
        Test::Vlan(Some(ids)) => ranges(Fact::Vlan, ids),
        Test::Protocol(protocols) => ranges(Fact::Protocol, protocols),
        Test::Dscp(points) => ranges(Fact::Dscp, points),
        Test::Size(sizes) => ranges(Fact::Size, sizes),
        Test::EmptyTcp => vec![Comparison::range(Fact::EmptyTcp, (1, 1))],
        Test::Mark { value, mask } => vec![Comparison {
            fact: Fact::Mark,
            low: (*value).into(),
            high: (*mask).into(),
        }],
        Test::Port(side, ports) => {
            let ends = facts_of(*side, Fact::SourcePort, Fact::DestinationPort);
            ends.flat_map(|fact| ranges(fact, ports)).collect()
        }
        Test::Address(side, prefixes) => {
            let each = prefixes.iter();
            each.flat_map(|prefix| of_prefix(*side, prefix)).collect()
        }
    }
}

fn of_prefix(side: Side, prefix: &Prefix) -> impl Iterator<Item = Comparison> {
    let (low, high) = prefix.address_and_mask();
    let ends = match prefix.version() {
        IpVersion::V4 => facts_of(side, Fact::Source4, Fact::Destination4),
        IpVersion::V6 => facts_of(side, Fact::Source6, Fact::Destination6),
    };
    ends.map(move |fact| Comparison { fact, low, high })
}

fn facts_of(side: Side, source: Fact, destination: Fact) -> impl Iterator<Item = Fact> {
    let both = [
        (side != Side::Destination).then_some(source),
        (side != Side::Source).then_some(destination),
    ];
    both.into_iter().flatten()
}
