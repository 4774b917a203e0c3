//! How many data units an elephant is, and what it costs the processors: frames as the member link counts them, by
//! `pt0` with rocks, against packets of 1500 bytes. The paper expects 8 % of the units at a mean of 1 MB a flow, and
//! that the cost falls with their number.

use std::path::Path;
use std::time::Duration;

use super::cables::{Cable, Cables, Plan};
use super::in_turns;
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::measure;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::work::ran_during;
use crate::lab::one_link::{Bench, Row};
use crate::lab::processors::seconds_per_gigabyte;

const ELEPHANT: Duration = Duration::from_secs(3);
/// What a router of today has: each data unit is a packet.
const PACKETS: Cable = Cable {
    mtu: 1500,
    whole: false,
    rate_mbit: None,
};

/// What `pt0` goes over.
struct Over<'a> {
    name: &'static str,
    cable: Cable,
    up: &'a [&'a str],
}

const OVER: [Over<'_>; 2] = [
    // The link carries no rocks: they are cut into trains that fill its frames.
    Over {
        name: "one elephant, pt0 of MTU 65521 over a link of 9000",
        cable: Cable {
            mtu: 9000,
            ..PACKETS
        },
        up: &["--mtu", "65521"],
    },
    // Large segments cross whole.
    Over {
        name: "one elephant, pt0 over a veth with GSO",
        cable: Cable {
            whole: true,
            ..PACKETS
        },
        up: &[],
    },
];

/// What one run took for each GB of payload.
#[derive(Clone, Copy, Debug)]
struct Taken {
    data_units: f64,
    /// And what goes back: acknowledgements, control.
    all_units: f64,
    seconds: f64,
    goodput_bps: f64,
}

impl Taken {
    fn of(units: [u64; 2], ran_s: f64, bytes: f64, goodput_bps: f64) -> Taken {
        let a_gigabyte = |units: u64| units as f64 / (bytes / 1e9);
        Taken {
            data_units: a_gigabyte(units[0]),
            all_units: a_gigabyte(units[0] + units[1]),
            seconds: seconds_per_gigabyte(ran_s, bytes),
            goodput_bps,
        }
    }
}

/// The first is the paper's 0.08.
const ROWS: [Row<Taken>; 4] = [
    (
        "data units a GB (the paper: 0.08 of packets)",
        (Unit::Count, Target::RatioShown),
        |taken| taken.data_units,
    ),
    (
        "data units a GB, both directions (the paper, with control: 0.09)",
        (Unit::Count, Target::RatioShown),
        |taken| taken.all_units,
    ),
    (
        "CPU seconds per GB, all threads",
        (Unit::Ratio, Target::RatioShown),
        |taken| taken.seconds,
    ),
    (
        "goodput",
        (Unit::BitPerSecond, Target::RatioShown),
        |taken| taken.goodput_bps,
    ),
];

pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    for over in OVER {
        let plan = Plan {
            bare: PACKETS,
            under_pt0: over.cable,
            up: over.up,
        };
        let cables = Cables::set(packtrain, plan)?;
        let runs = in_turns(bench, over.name, |bench, way| match way {
            Way::Pt0 => cables.counted(bench, over.name, || elephant(&cables, way)),
            _ => elephant(&cables, way),
        })?;
        bench.compare_rows(over.name, &ROWS, &runs);
    }
    Ok(())
}

fn elephant(cables: &Cables, way: Way) -> Result<Taken> {
    let before = cables.frames_sent(way)?;
    let send = || measure::bulk(&cables.a.namespace, &way.to(), ELEPHANT, &[]);
    let (bulk, ran_s) = ran_during(send)?;
    let after = cables.frames_sent(way)?;
    let units = [0, 1].map(|host| after[host] - before[host]);
    let bytes = bulk.goodput_bps * bulk.seconds / 8.0;
    Ok(Taken::of(units, ran_s, bytes, bulk.goodput_bps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_told_by_the_gigabyte_of_payload() {
        let taken = Taken::of([50_000, 10_000], 0.25, 0.5e9, 4e9);
        assert_eq!((taken.data_units, taken.all_units), (100_000.0, 120_000.0));
        assert_eq!(taken.seconds, 0.5);
    }
}
