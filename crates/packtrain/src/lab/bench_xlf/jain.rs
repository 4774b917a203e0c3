//! Who gets what of a line of 100 Mbit/s, ten flows of packets and ten of XL frames: where the wire drops from the
//! tail, XL frames take more; where it, or packtrain's own engine, shares by bytes, all have the same (XLF paper,
//! Fig. 4 to 6).

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::cables::{Cable, Cables};
use super::flows::{self, Times, jain, packets_and_rocks};
use super::wires::{self, Wires, XL_BYTES};
use super::{cables, in_turns};
use crate::lab::Result;
use crate::lab::figure::{Target, Unit};
use crate::lab::namespaces::Namespace;
use crate::lab::one_link::way::Way;
use crate::lab::one_link::{Bench, Row};

/// Of each kind.
const FLOWS: usize = 10;
const TIMES: Times = Times {
    ignored: Duration::from_secs(5),
    counted: Duration::from_secs(20),
};
const RATE_MBIT: u32 = 100;
/// 200 ms of the rate: each of twenty flows has room for some XL frames, so that none is silent for a timeout.
const QUEUE_BYTES: u64 = 2_500_000;
const PORT: u16 = 7301;
const FAIR: Target = Target::AtLeast(0.99);

/// What the flows had, bit/s, those of packets first.
#[derive(Clone, Debug)]
struct Shared(Vec<f64>);

impl Shared {
    fn among(hosts: [&Namespace; 2], at: SocketAddr) -> Result<Shared> {
        let segments = packets_and_rocks(FLOWS, FLOWS);
        flows::carry(hosts, at, &segments, TIMES).map(Shared)
    }

    fn index(&self) -> f64 {
        jain(&self.0)
    }

    /// What the XL flows had of what those of packets had.
    fn rocks_to_packets(&self) -> f64 {
        let sum = |flows: &[f64]| flows.iter().sum::<f64>();
        let (packets, rocks) = self.0.split_at(FLOWS);
        sum(rocks) / sum(packets)
    }

    fn all_bps(&self) -> f64 {
        self.0.iter().sum()
    }
}

const ROWS: [Row<Shared>; 3] = [
    ("Jain's index", (Unit::Ratio, FAIR), Shared::index),
    (
        "the XL flows' goodput ÷ that of the packet flows",
        (Unit::Ratio, Target::RatioShown),
        Shared::rocks_to_packets,
    ),
    (
        "goodput of all",
        (Unit::BitPerSecond, Target::RatioShown),
        Shared::all_bps,
    ),
];

pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    by_the_wire(bench, packtrain)?;
    by_the_engine(bench, packtrain)
}

/// Plain hosts: the wire shares.
fn by_the_wire(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let part = "10 packet and 10 XL flows, a wire of 100 Mbit/s without pt0 (bare: drop-tail, in pt0's place: drr:19500b)";
    let plan = wires::Plan {
        tag: "jain",
        queue_bytes: QUEUE_BYTES,
        ecn: false,
    };
    let wires = Wires::set(packtrain, plan, &["drop-tail", "drr:19500b"])?;
    let runs = in_turns(bench, part, |_, way| {
        let number = usize::from(way == Way::Pt0);
        Shared::among([&wires.a, &wires.b], wires.at(number, PORT))
    })?;
    bench.compare_rows(part, &ROWS, &runs);
    Ok(())
}

/// The engine shares what the link, whose queue is seen, carries.
fn by_the_engine(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let part = "10 packet and 10 XL flows through pt0 of MTU 19500, a link of 100 Mbit/s";
    let cable = Cable {
        mtu: XL_BYTES,
        whole: false,
        rate_mbit: Some(RATE_MBIT),
    };
    let mtu = XL_BYTES.to_string();
    let plan = cables::Plan {
        bare: cable,
        under_pt0: cable,
        up: &["--mtu", &mtu],
    };
    let cables = Cables::set(packtrain, plan)?;
    let share = |way: Way| {
        let hosts = [&cables.a.namespace, &cables.b.namespace];
        Shared::among(hosts, SocketAddr::new(way.at().ip(), PORT))
    };
    let runs = in_turns(bench, part, |bench, way| match way {
        Way::Pt0 => cables.counted(bench, part, || share(way)),
        _ => share(way),
    })?;
    bench.compare_rows(part, &ROWS, &runs);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_packets_first_and_of_rocks_then() {
        let shared = Shared([[1e6; FLOWS], [3e6; FLOWS]].concat());
        assert_eq!(shared.rocks_to_packets(), 3.0);
        assert_eq!(shared.all_bps(), 40e6);
        assert_eq!(shared.index(), 0.8);
    }
}
