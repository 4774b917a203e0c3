//! What a rule costs that asks for a set of 10 to 10,000 prefixes.

use std::collections::BTreeMap;
use std::time::Duration;

use packtrain_proto::filter::Policy;
use packtrain_proto::filter::rules::image::Image;
use packtrain_proto::filter::rules::{NamedSet, Rule, RuleSet};
use packtrain_proto::random::Random;

use super::drop_cost::judged;
use super::flooding::{Flooded, Load, flood};
use super::mix::{Kind, only, whole_frame};
use super::row::{Compared, Row};
use super::stage::{Layout, Stage};
use super::way::Way;
use super::{Bench, carried};
use crate::lab::figure::{Target, Unit};
use crate::lab::{Error, Result};
use crate::linux::driver_program::DROP;
use crate::linux::filter::{Filter, Mode, Settings};

const WAYS: [Way; 4] = [
    Way::Prefixes10,
    Way::Prefixes100,
    Way::Prefixes1000,
    Way::Prefixes10000,
];
const FLOOD: Duration = Duration::from_millis(400);
const SIZE: usize = 64;
/// Of 10,000 against 10.
const FLAT: Target = Target::RatioAtMost(1.1);
/// The flood's stations are in it, among others anywhere.
const STATIONS: &str = "10.200.1.0/24";
const SEED: u64 = 10;

struct Costs {
    flooded: Flooded,
    within_ns: f64,
    without_ns: f64,
}

pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let stage = Stage::set(Layout::OneProcessor)?;
    let mix = only(Kind::Promiscuous, SIZE);
    let within = whole_frame(Kind::Promiscuous, SIZE);
    let mut elsewhere = within.clone();
    // Its source: in no prefix, for they are all of others' networks.
    elsewhere[26..30].copy_from_slice(&[127, 9, 9, 9]);
    let runs = bench.in_turns("prefixes", &stage, &WAYS, |standing| {
        let flooded = flood(
            &stage,
            standing,
            Load {
                mix: &mix,
                size: SIZE,
                per_second: None,
                duration: FLOOD,
            },
        )?;
        Ok(Costs {
            flooded,
            within_ns: judged(&stage, &within, DROP)?,
            without_ns: judged(&stage, &elsewhere, PASS)?,
        })
    })?;
    let both = Compared(Way::Prefixes10000, Way::Prefixes10);
    let last = runs.of(Way::Prefixes10000).iter().map(|of| &of.flooded);
    let carried = carried(last);
    for (name, number) in [
        (
            "a rule denies what is from a set of prefixes: a drop, in the driver of a veth",
            (|costs| costs.flooded.driver_ns_each()) as fn(&Costs) -> f64,
        ),
        ("  … the program alone (BPF_PROG_TEST_RUN)", |costs| {
            costs.within_ns
        }),
        ("  … of a frame that is not of the set", |costs| {
            costs.without_ns
        }),
    ] {
        let kind = (Unit::Nanoseconds, FLAT);
        bench.push(Row::new(name, both, kind, &runs.map(number), &carried));
    }
    Ok(())
}

/// `XDP_PASS` of the kernel's.
const PASS: u32 = 2;

/// In the driver of this interface of the thread's namespace.
pub fn attached(ifindex: u32, count: usize) -> Result<Filter> {
    let failed = |error: &dyn std::fmt::Display| Error::Unavailable(error.to_string());
    let mut filter = Filter::load().map_err(|error| failed(&error))?;
    let image = Image::compile(&rules(count)).map_err(|error| failed(&error))?;
    let settings = Settings {
        policy: Policy::None,
        ..Settings::default()
    };
    filter
        .set(settings)
        .and_then(|()| filter.set_rules(Some(&image)))
        .and_then(|()| filter.attach(ifindex, Mode::Native))
        .map_err(|error| failed(&error))?;
    Ok(filter)
}

pub fn reasons(filter: &Filter) -> Result<BTreeMap<String, u64>> {
    let counters = filter
        .counters()
        .map_err(|error| Error::Unavailable(error.to_string()))?;
    let counted = counters.iter().filter(|(_, traffic)| traffic.frames > 0);
    Ok(counted
        .map(|(reason, traffic)| (reason.as_str().to_owned(), traffic.frames))
        .collect())
}

fn rules(count: usize) -> RuleSet {
    let mut random = Random::new(SEED);
    let mut prefixes = vec![STATIONS.parse().expect("a prefix")];
    while prefixes.len() < count {
        let len = 16 + random.up_to(16);
        // Below 127, and not of the flood's network.
        let address = random.up_to((116 << 24) - 1) as u32 + (11 << 24);
        let address = address & (u32::MAX << (32 - len));
        let text = format!("{}/{len}", std::net::Ipv4Addr::from(address));
        let prefix = text.parse().expect("a prefix");
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    let rule = Rule {
        name: "others".parse().expect("a name"),
        verdict: "deny".parse().expect("a verdict"),
        matches: "src @others".parse().expect("conditions"),
    };
    let set = NamedSet {
        name: "others".parse().expect("a name"),
        prefixes,
    };
    RuleSet::new(vec![rule], vec![set]).expect("within the bounds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_as_many_prefixes_as_it_is_called_by() {
        for way in WAYS {
            let count = way.prefixes().unwrap();
            let rules = rules(count);
            assert_eq!(rules.sets()[0].prefixes.len(), count);
            Image::compile(&rules).unwrap();
        }
    }
}
