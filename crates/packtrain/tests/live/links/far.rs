//! Links that are long: what is under way on them is much, and nobody knows how much before it is tried.

use std::time::Duration;

use packtrain::lab::topology::TopologyOptions;
use packtrain::lab::{measure, wire};

use crate::common::cabled::status;
use crate::common::standing::Standing;
use crate::common::{B, steady};

const ONE_WAY: &str = "25ms";
/// One link's payload: 94 Mbit/s of 100, less the first second, in which TCP starts.
const MORE_THAN_ONE_LINK_BPS: f64 = 120e6;

#[test]
fn a_first_flow_over_two_long_links_fills_both() {
    live!(alone, wire::shaping_unavailable());
    // The line must not have learned anything from a run before: each has a lab of its own.
    let first_flow = || {
        let mut options = TopologyOptions::default();
        options.wires.delay = Some(ONE_WAY.parse().unwrap());
        let standing = Standing::up("far", &options.topology().unwrap());
        let [a, b] = &standing.hosts[..] else {
            panic!("two hosts");
        };
        a.wait_for_peers(1).unwrap();
        let _server = measure::iperf3_server(&b.namespace).unwrap();
        let bulk = measure::bulk(&a.namespace, B, Duration::from_secs(5), &[]).unwrap();
        let peer = &status(a).peers[0];
        let states: Vec<String> = peer.links.iter().map(|link| link.state.clone()).collect();
        (bulk.goodput_bps, bulk.retransmits, states)
    };
    steady::judge("a first flow", first_flow, |(bps, sent_again, states)| {
        *bps > MORE_THAN_ONE_LINK_BPS && *sent_again == 0 && states.iter().all(|s| s == "open")
    });
}
