//! What is short behind a link, where nobody sees a queue: direct frames are lost on the way, and the engine
//! finds it out and packs.

use std::net::SocketAddr;
use std::time::Duration;

use packtrain::lab::messages::{self, Load};
use packtrain::lab::topology::TopologyOptions;
use packtrain::lab::wire;

use crate::common::cabled::{address, status};
use crate::common::direct::wait_for_direct;
use crate::common::standing::Standing;
use crate::common::{B, steady};

const PACKETS_PER_SECOND: u64 = 2000;
/// Much more than the wire carries one by one, and little for it when they are packed.
const MESSAGES_PER_SECOND: u64 = 12_000;
const SENT_FOR: Duration = Duration::from_secs(6);
const QUEUE_PACKETS: u64 = 1000;

/// Two hosts with a wire that carries so few packets, and whose own queues do not stand.
fn over_a_capped_wire() -> Standing {
    let mut options = TopologyOptions {
        links: 1,
        ..TopologyOptions::default()
    };
    options.wires.rate = Some("none".parse().unwrap());
    let cap = format!("{PACKETS_PER_SECOND}");
    options.wires.packets_per_second = Some(cap.parse().unwrap());
    options.wires.queue = Some(format!("{QUEUE_PACKETS}p").parse().unwrap());
    let standing = Standing::up("hidden", &options.topology().unwrap());
    for host in &standing.hosts {
        // A TAP has several bands, over which nothing goes direct.
        let replace = "tc qdisc replace dev eth0 root pfifo";
        host.namespace.sh(replace).unwrap();
    }
    for host in &standing.hosts {
        wait_for_direct(host);
    }
    standing
}

#[test]
fn a_wire_that_is_short_of_packets_is_found_out_and_what_it_is_sent_is_packed() {
    live!(alone, wire::shaping_unavailable());
    // What was found out once is remembered for a while: each run has a lab of its own.
    let under_load = || {
        let standing = over_a_capped_wire();
        let [a, b] = &standing.hosts[..] else {
            panic!("two hosts");
        };
        let at = SocketAddr::new(address(B), 7109);
        let load = Load {
            size: 40,
            duration: SENT_FOR,
            rate_per_second: Some(MESSAGES_PER_SECOND),
            real_time: false,
        };
        let before = status(a);
        let report = messages::measure(&a.namespace, &b.namespace, at, load).unwrap();
        let after = status(a);
        assert_eq!((report.reordered, report.duplicated), (0, 0));
        let direct = after.direct.tx.frames - before.direct.tx.frames;
        let packed = after.trains.tx.frames - before.trains.tx.frames;
        let trains = after.trains.tx.trains - before.trains.tx.trains;
        (direct, packed, trains, report.delivered, after.direct)
    };
    let name = "a wire that is short of packets";
    steady::judge(
        name,
        under_load,
        |&(direct, packed, trains, delivered, counted)| {
            // Within a second, and nearly all of the rest by trains of several frames: no more of them than the wire
            // carries, and what stands before it when the last is sent.
            direct > 0
                && direct < MESSAGES_PER_SECOND
                && packed > 4 * MESSAGES_PER_SECOND
                && trains < PACKETS_PER_SECOND * SENT_FOR.as_secs() + QUEUE_PACKETS
                && delivered > 4 * MESSAGES_PER_SECOND
                && counted.closures == 1
        },
    );
}
