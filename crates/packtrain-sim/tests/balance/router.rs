//! A line over a router's long queue, which no host sees: it is kept short all the same, whichever way frames take past the engine.

use packtrain_proto::stats::Snapshot;
use packtrain_sim::fabric::Ends;
use packtrain_sim::net::network::PortId;
use packtrain_sim::net::queue::QueueConfig;
use packtrain_sim::simulator::Station;
use packtrain_sim::stations::{
    ApplicationConfig, BulkConfig, Kind, Setup, StationConfig, Stations, segments,
};

use crate::{MS, SECOND};

const RATE_BPS: u64 = 100_000_000;
/// 100 ms of it.
const QUEUE_BYTES: usize = 1_250_000;

/// Two greedy flows of A's, which has ten times as fast a port as B.
fn flows() -> Stations {
    let mut router = segments::switch(&[10 * RATE_BPS, RATE_BPS], 2 * MS);
    router.down[1].queue = QueueConfig::drop_tail(QUEUE_BYTES);
    let station = |port| StationConfig {
        ports: vec![PortId { segment: 0, port }],
        kind: Kind::Packtrain(Box::default()),
    };
    Stations::new(Setup {
        segments: vec![router],
        stations: vec![station(0), station(1)],
        applications: vec![ApplicationConfig::Bulk(BulkConfig {
            streams: vec![(0, 1); 2],
            ends: Ends::linux(true),
            starts: 100 * MS,
        })],
        seed: 1,
    })
}

fn of_a(stations: &Stations) -> Snapshot {
    let Station::Packtrain(host) = &stations.simulator().stations[0] else {
        panic!("it has packtrain");
    };
    host.engine.snapshot(stations.now())
}

#[test]
fn a_queue_that_no_host_sees_stays_short_and_the_router_busy() {
    let mut stations = flows();
    stations.run_for(3 * SECOND);
    stations.begin_counting();
    let mut longest = MS;
    for _ in 0..50 {
        stations.run_for(100 * MS);
        let path = of_a(&stations).peers[0].paths[0].clone();
        longest = longest.max(path.round_trip.expect("it is known"));
        assert!(
            path.round_trip_min.expect("it is known") < 15 * MS,
            "{path:?}"
        );
    }
    assert!(longest < 40 * MS, "{longest:?}");
    let goodput = stations.goodput_bps(0);
    assert!(goodput > 0.9 * RATE_BPS as f64, "{goodput}");
    // While there was no queue yet.
    assert!(of_a(&stations).trains_tx.marked > 0);
}
