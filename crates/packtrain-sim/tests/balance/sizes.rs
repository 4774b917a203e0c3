//! One link whose bits are wrong: trains are as long as carries most, though nobody says how many are; and what is lost goes again.

use packtrain_proto::config::{Config, SizeLaw};
use packtrain_proto::stats::{PathSize, PathSnapshot};
use packtrain_proto::time::Duration;
use packtrain_proto::unit_size::SizeBecause;
use packtrain_sim::fabric::Ends;
use packtrain_sim::net::bit_errors::BitErrorConfig;
use packtrain_sim::net::network::PortId;
use packtrain_sim::net::network::WireId;
use packtrain_sim::net::wire::WireConfig;
use packtrain_sim::simulator::Station;
use packtrain_sim::stations::{
    ApplicationConfig, BulkConfig, Kind, Line, Setup, StationConfig, Stations, segments,
};

use crate::{MS, SECOND};

const LINK_BPS: u64 = 50_000_000;
const MTU: u16 = 65_000;

fn wire(error_rate: f64) -> WireConfig {
    WireConfig {
        bit_errors: (error_rate > 0.0).then_some(BitErrorConfig { rate: error_rate }),
        ..WireConfig::perfect(LINK_BPS, 5 * MS)
    }
}

/// One flow of CUBIC, with segments as long as `pt0` takes.
fn flow(error_rate: f64, mtu: u16, set: impl Fn(&mut Config)) -> Stations {
    let mut cable = segments::cable(LINK_BPS, 5 * MS);
    cable.mtu = MTU;
    cable.up.fill(wire(error_rate));
    let station = |port| {
        let mut line = Line::default();
        line.config.mtu = mtu;
        // Else trains at this rate are as short as packets, whatever the bits are.
        line.config.limits.sand_delay_max = None;
        set(&mut line.config);
        StationConfig {
            ports: vec![PortId { segment: 0, port }],
            kind: Kind::Packtrain(Box::new(line)),
        }
    };
    let mut ends = Ends::linux(true);
    // Time stamps.
    ends.sender.mss = u32::from(mtu) - 52;
    Stations::new(Setup {
        segments: vec![cable],
        stations: vec![station(0), station(1)],
        applications: vec![ApplicationConfig::Bulk(BulkConfig {
            streams: vec![(0, 1)],
            ends,
            starts: 100 * MS,
        })],
        seed: 1,
    })
}

fn path(stations: &Stations) -> PathSnapshot {
    let Station::Packtrain(host) = &stations.simulator().stations[0] else {
        panic!("it has packtrain");
    };
    let snapshot = host.engine.snapshot(stations.now());
    snapshot.peers[0].paths[0].clone()
}

/// Mbit/s, when a size has been found.
fn goodput(error_rate: f64, size: SizeLaw) -> (f64, PathSize) {
    let mut stations = flow(error_rate, MTU, |config| config.size = size);
    stations.run_for(6 * SECOND);
    stations.begin_counting();
    stations.run_for(2 * SECOND);
    (stations.goodput_bps(0) / 1e6, path(&stations).size)
}

/// Of the fixed sizes, these are the best; the others are far behind.
fn follows(error_rate: f64, fixed: &[u16], least: f64) {
    let (following, size) = goodput(error_rate, SizeLaw::Tcp);
    for &bytes in fixed {
        let (of_fixed, _) = goodput(error_rate, SizeLaw::Fixed(bytes));
        assert!(
            following >= 0.95 * of_fixed,
            "{error_rate:e}: {following} with {size:?}, and {of_fixed} with {bytes}"
        );
    }
    assert!(following > least, "{error_rate:e}: {following}, {size:?}");
    assert_eq!(size.because, SizeBecause::BitErrors, "{size:?}");
    let found = size.errors.expect("it is seen").rate / error_rate;
    assert!((0.5..2.0).contains(&found), "{found}: {size:?}");
}

#[test]
fn at_1e_7_no_fixed_size_carries_more_than_the_one_that_follows() {
    follows(1e-7, &[9000, 19_500], 45.0);
}

#[test]
fn at_1e_6_no_fixed_size_carries_more_than_the_one_that_follows() {
    follows(1e-6, &[1500, 9000], 43.0);
}

#[test]
fn at_1e_5_no_fixed_size_carries_more_than_the_one_that_follows() {
    follows(1e-5, &[1500], 38.0);
}

#[test]
fn a_link_that_is_well_again_is_used_as_before() {
    let mut stations = flow(1e-6, MTU, |_| {});
    stations.run_for(SECOND);
    let until = |stations: &mut Stations, what: &dyn Fn(&PathSnapshot) -> bool| -> Duration {
        let begun = stations.now();
        while !what(&path(stations)) {
            stations.run_for(200 * MS);
            let after = stations.now().since(begun);
            assert!(after < 30 * SECOND, "{:?}", path(stations));
        }
        stations.now().since(begun)
    };
    until(&mut stations, &|path| path.size.mends);
    until(&mut stations, &|path| {
        path.size.because == SizeBecause::BitErrors
    });
    for way in 0..2 {
        let id = WireId {
            segment: 0,
            wire: way,
        };
        stations
            .simulator_mut()
            .network
            .wire_mut(id)
            .set(&wire(0.0));
    }
    let after = until(&mut stations, &|path| !path.size.mends && !path.size.looks);
    assert!(after < 10 * SECOND, "{after:?}");
    until(&mut stations, &|path| path.size.bytes == MTU);
    assert_eq!(path(&stations).size.because, SizeBecause::LinkMtu);
}
