//! Where one end of a direct path is no host of its own: what it has received goes on from there.

use packtrain::lab::host::Host;
use packtrain::lab::wire;

use crate::common::cabled::{MEBIBYTE, status};
use crate::common::direct::wait_for_direct;
use crate::common::{A, B, Pair, packtrain, pings_whole, transfer};

const BEHIND: &str = "10.7.0.3";

/// Frames that are cut late, or have no checksum yet, go out again by another interface.
#[test]
fn a_host_behind_a_router_is_reached_both_ways_by_all_that_is_cut_late() {
    live!();
    let pair = Pair::up("router", 1500).unwrap();
    let behind = Host::create("router", packtrain()).unwrap();
    let router = &pair.b.namespace;
    wire::veth((router, "eth2"), (&behind.namespace, "eth1")).unwrap();
    wire::add_address(router, "eth2", "10.7.0.1/24").unwrap();
    wire::add_address(&behind.namespace, "eth1", "10.7.0.3/24").unwrap();
    router.sysctl("net/ipv4/ip_forward", "1").unwrap();
    // Only what comes by the interface that an answer would leave by.
    for interface in ["all", "pt0", "eth1", "eth2"] {
        let key = format!("net/ipv4/conf/{interface}/rp_filter");
        router.sysctl(&key, "1").unwrap();
    }
    let route = |host: &Host, words: &str| {
        let line = format!("ip route add {words}");
        host.namespace.sh(&line).unwrap();
    };
    route(&pair.a, &format!("10.7.0.0/24 via {B}"));
    route(&behind, "10.9.0.0/24 via 10.7.0.1");
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    assert!(pings_whole(&pair.a, BEHIND, 1472) && pings_whole(&behind, A, 1472));
    let direct = || {
        let direct = status(&pair.b).direct;
        (direct.rx.bytes, direct.tx.bytes)
    };
    let before = direct();
    const BYTES: u64 = 8 * MEBIBYTE;
    assert_eq!(transfer(&pair.a, &behind, BEHIND, BYTES), BYTES);
    assert_eq!(transfer(&behind, &pair.a, A, BYTES), BYTES);
    let after = direct();
    assert!(after.0 > before.0 + BYTES && after.1 > before.1 + BYTES);
    // The router's own stack cuts what the interfaces do not.
    for offload in ["tx", "tso", "gso", "gro"] {
        for interface in ["eth1", "eth2"] {
            wire::offload(router, interface, offload, false).unwrap();
        }
    }
    assert_eq!(transfer(&pair.a, &behind, BEHIND, BYTES), BYTES);
    assert_eq!(transfer(&behind, &pair.a, A, BYTES), BYTES);
}
