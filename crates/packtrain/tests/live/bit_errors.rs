//! A wire on which bits are wrong, under a line that nobody has told so.

use std::time::Duration;

use packtrain::lab::topology::direction::{Counts, Rate};
use packtrain::lab::topology::{Topology, TopologyOptions};
use packtrain::status::StatusDocument;

use crate::common::B;
use crate::common::cabled::{MEBIBYTE, status};
use crate::common::direct::wait_for_direct;
use crate::common::standing::Standing;
use crate::common::transfer;

const MTU: u16 = 65_000;

fn topology(bit_error_rate: f64) -> Topology {
    let options = TopologyOptions {
        links: 1,
        mtu: MTU,
        ..TopologyOptions::default()
    };
    let mut topology = options.topology().unwrap();
    for host in &mut topology.hosts {
        let mtu = MTU.to_string();
        // Else trains are short at this rate, whatever the bits are.
        host.up = ["--mtu", &mtu, "--max-sand-delay", "off"]
            .map(str::to_owned)
            .into();
    }
    for direction in &mut topology.wires[0].directions {
        direction.port = Default::default();
        direction.wire.rate = Some(Rate {
            bps: 100_000_000,
            counts: Counts::Ethernet,
        });
        direction.wire.delay_ns = Duration::from_millis(2).as_nanos() as u64;
        direction.wire.bit_error_rate = Some(bit_error_rate);
    }
    topology
}

/// A transfer over such a wire comes whole: what its sender says then.
fn status_after_transfer(lab: &str, bit_error_rate: f64) -> StatusDocument {
    let standing = Standing::up(lab, &topology(bit_error_rate));
    let [a, b] = &standing.hosts[..] else {
        unreachable!("two hosts");
    };
    wait_for_direct(a);
    let bytes = 8 * MEBIBYTE;
    assert_eq!(transfer(a, b, B, bytes), bytes);
    status(a)
}

/// Of two hundred frames as long as this wire takes, one arrives; of those of 1500, seven of eight.
#[test]
fn frames_of_which_hardly_one_would_arrive_go_in_short_trains_and_all_comes() {
    live!();
    let status = status_after_transfer("bits", 1e-5);
    let link = &status.peers[0].links[0];
    assert_eq!(link.size_because, "bit_errors", "{link:?}");
    assert!(
        link.mends && (300..1500).contains(&link.size_bytes),
        "{link:?}"
    );
    let rate = link.bit_error_rate.expect("it is found");
    assert!((3e-6..3e-5).contains(&rate), "{link:?}");
    assert!(status.replay.repaired > 100, "{:?}", status.replay);
}

/// Three of five arrive. A TCP of which two are lost sends hardly any: of few it has to be seen.
#[test]
fn frames_of_which_two_of_five_are_lost_are_found_to_be_before_all_were_sent() {
    live!();
    let status = status_after_transfer("fewer-bits", 1e-6);
    let link = &status.peers[0].links[0];
    // What the bits are may not be known yet: the wire's queue has lost some, too.
    assert!(link.size_bytes < 9000, "{link:?}");
    assert!(status.replay.repaired > 0, "{:?}", status.replay);
    let direct = &status.direct;
    assert!(
        direct.lost > 0 && direct.tx.frames < 100,
        "{direct:?}, {link:?}"
    );
}
