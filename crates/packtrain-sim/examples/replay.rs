//! Tells what a seed was and what came of it:
//! `cargo run -p packtrain-sim --example replay -- pair 7`

use packtrain_sim::scenario::{Order, direct, links, mesh, pair, three};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: replay pair|three|links|carrier-cuts|silent-cuts|lossless|mesh|direct|direct-links|\
                 direct-cuts SEED [EFFORT]";
    let scenario = arguments.next().expect(usage);
    let seed = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .expect(usage);
    let effort = arguments
        .next()
        .map_or(0, |text| text.parse().expect(usage));
    let order = Order {
        effort,
        ..Order::new(seed)
    };
    let mut experiment = match scenario.as_str() {
        "pair" => pair::build(order),
        "three" => three::build(order),
        "links" => links::build(order, links::Course::Faults),
        "carrier-cuts" => links::build(order, links::Course::CarrierCuts),
        "silent-cuts" => links::build(order, links::Course::SilentCuts),
        "lossless" => links::build(order, links::Course::Lossless),
        "mesh" => mesh::build(order),
        "direct" => direct::build(order),
        "direct-links" => direct::build_links(order, links::Course::Faults),
        "direct-cuts" => direct::build_links(order, links::Course::CarrierCuts),
        _ => panic!("{usage}"),
    };
    for flow in experiment.simulator.checkers.flows() {
        println!("{flow:?}");
    }
    for segment in experiment.simulator.network.configs() {
        println!("{segment:#?}");
    }
    println!(
        "traffic {:?}, restarts {}",
        experiment.traffic, experiment.restarts
    );
    let report = experiment.run();
    let now = experiment.simulator.now();
    for wire in experiment.simulator.network.wires() {
        println!(
            "{:?}, at most {} bytes queued",
            wire.counters,
            wire.queued_bytes_max_seen()
        );
    }
    for host in experiment.simulator.hosts() {
        println!("{:?}: {:?}", host.station, host.events);
        println!("{:?}", host.direct_counters());
        println!("{:#?}", host.snapshot(now));
        println!(
            "drops {:?}",
            host.snapshot(now).drops.iter().collect::<Vec<_>>()
        );
        println!(
            "of former lives {:?}",
            host.past().drops.iter().collect::<Vec<_>>()
        );
    }
    println!("{report:#?}");
    if let Some(violation) = report.violation {
        println!("violated: {violation}");
    }
}
