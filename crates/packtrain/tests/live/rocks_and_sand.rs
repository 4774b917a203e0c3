//! Elephants and mice over a wire of 100 Mbit/s: marks instead of drops, short flows first, a limit for each flow, frames cut so that small
//! ones wait little, and XL frames whole and in pieces.
//!
//! What the host sends by all links is held back before `pt0`, a queue a flow, and hardly anything stands in the engine. What a class sends by
//! links of its own is not: so where the engine's queue is to stand, there is another link, which carries nothing else.

use std::net::SocketAddr;
use std::time::Duration;

use packtrain::lab::messages::{Load, Report, measure};
use packtrain::lab::stream::{self, Amount, Protocol};
use packtrain::lab::{measure as programs, short_flows, wait_for, wire};
use packtrain::status::{HoldBucket, StatusDocument};
use packtrain_proto::sand::{SAND_DELAY_LATE_MAX, SAND_DELAY_MAX};

use crate::classes::add;
use crate::common::cabled::{address, now, pause, status};
use crate::common::{A, B, Pair, pings_whole, steady};

const RATE_MBIT: u32 = 100;
/// A packet of 1500 bytes with its Ethernet header.
const PACKET_BYTES: u64 = 1514;
/// Elephants and mice.
const PORT: u16 = 7350;
const FLOOD_PORT: u16 = 7400;
const CALM_PORT: u16 = 7401;

/// Two hosts whose line goes by the engine, over a wire of that rate and MTU. As many bytes leave as come.
fn pair(tag: &str, mtu: u32, more: &[&str]) -> Pair {
    let pair = Pair::cable(tag, mtu).unwrap();
    up(&pair, more);
    pair
}

fn up(pair: &Pair, more: &[&str]) {
    for host in [&pair.a, &pair.b] {
        wire::shape(&host.namespace, "eth1", RATE_MBIT).unwrap();
    }
    let more = [&["--path", "engine", "--no-coded-trains"], more].concat();
    pair.a_up(&more).unwrap();
    pair.b_up(&more).unwrap();
    for host in [&pair.a, &pair.b] {
        wire::cubic(&host.namespace, "10.9.0.0/24", "pt0").unwrap();
        host.wait_for_peers(1).unwrap();
    }
}

/// … and what A sends of these frames by that wire waits in the engine, and not before `pt0`.
fn pair_with_queue(tag: &str, of: &str, more: &[&str]) -> Pair {
    let pair = Pair::cable(tag, 1500).unwrap();
    let [a, b] = [&pair.a.namespace, &pair.b.namespace];
    wire::veth((a, "eth2"), (b, "eth2")).unwrap();
    up(&pair, &[&["--link", "eth2"], more].concat());
    add(&pair.a, "own", &[of, "--links", "eth1"]);
    pair
}

fn dropped(status: &StatusDocument, reason: &str) -> u64 {
    status.drops.get(reason).copied().unwrap_or_default()
}

/// Greedy TCP flows from A to B side by side, meanwhile.
fn beside_elephants<T>(
    pair: &Pair,
    flows: u16,
    lasts: Duration,
    meanwhile: impl FnOnce() -> T,
) -> T {
    let (a, b) = (&pair.a.namespace, &pair.b.namespace);
    std::thread::scope(|scope| {
        for flow in 0..flows {
            let at = SocketAddr::new(address(B), PORT + 1 + flow);
            let send = move || {
                stream::transfer(a, b, at, Amount::Time(lasts), Protocol::Tcp, now()).unwrap()
            };
            scope.spawn(send);
        }
        meanwhile()
    })
}

/// What A's engine has told two senders, and what came of it.
#[derive(Clone, Copy, Debug)]
struct Told {
    marked: u64,
    dropped: u64,
    /// IPv4 packets that came to B with a mark.
    came_marked: u64,
}

fn tell_two_flows(tag: &str, more: &[&str]) -> Told {
    let pair = pair_with_queue(tag, "tcp", more);
    for host in [&pair.a, &pair.b] {
        host.namespace.sysctl("net/ipv4/tcp_ecn", "1").unwrap();
    }
    beside_elephants(&pair, 2, Duration::from_millis(1500), || ());
    let status = status(&pair.a);
    Told {
        marked: status.queue.marked,
        dropped: dropped(&status, "codel"),
        came_marked: wire::congestion_experienced(&pair.b.namespace).unwrap(),
    }
}

#[test]
fn flows_that_understand_marks_are_marked_and_lose_nothing() {
    live!(wire::shaping_unavailable());
    let told = tell_two_flows("marks", &[]);
    assert!(told.marked > 0 && told.came_marked > 0, "{told:?}");
    assert_eq!(told.dropped, 0, "{told:?}");
}

#[test]
fn without_marks_the_same_flows_lose_frames() {
    live!(wire::shaping_unavailable());
    let told = tell_two_flows("nomarks", &["--no-ecn"]);
    assert!(told.dropped > 0, "{told:?}");
    assert_eq!((told.marked, told.came_marked), (0, 0), "{told:?}");
}

/// How long a short flow takes beside so many long ones, in the middle.
fn short_flow_beside(elephants: u16, more: &[&str]) -> Duration {
    const SHORT_BYTES: usize = 30_000;
    let pair = pair_with_queue("shortfirst", "tcp", more);
    let moments: Vec<_> = (0..24)
        .map(|n| Duration::from_millis(600 + 40 * n))
        .collect();
    let hosts = [&pair.a.namespace, &pair.b.namespace];
    let at = SocketAddr::new(address(B), PORT);
    let lasts = Duration::from_millis(1700);
    let mut took = beside_elephants(&pair, elephants, lasts, || {
        short_flows::carry(hosts, at, SHORT_BYTES, &moments).unwrap()
    });
    assert_eq!(took.len(), moments.len());
    let flows = status(&pair.a).flows;
    assert!(flows.elephants >= u64::from(elephants), "{flows:?}");
    took.sort_unstable();
    took[took.len() / 2]
}

#[test]
fn a_short_flow_goes_before_long_ones_where_that_is_set() {
    live!(wire::shaping_unavailable());
    let both = || {
        // At once, so that whatever else the machine does is done to both.
        std::thread::scope(|scope| {
            let first = scope.spawn(|| short_flow_beside(16, &["--short-flows-first"]));
            let turn = scope.spawn(|| short_flow_beside(16, &[]));
            [first, turn].map(|took| took.join().unwrap())
        })
    };
    steady::judge(
        "a short flow first, and in its turn",
        both,
        |[first, turn]| *first * 3 < *turn,
    );
}

#[test]
fn a_flood_beyond_its_limit_is_dropped_and_counted_and_a_flow_beside_it_loses_nothing() {
    live!(wire::shaping_unavailable());
    const LIMIT_BYTES: u64 = 128 << 10;
    let pair = pair_with_queue("limit", "udp", &["--flow-queue", "128kb"]);
    let send = |port: u16, size: usize, per_second: u64| -> Report {
        let load = Load {
            size,
            duration: Duration::from_millis(1200),
            rate_per_second: Some(per_second),
            real_time: false,
        };
        let at = SocketAddr::new(address(B), port);
        measure(&pair.a.namespace, &pair.b.namespace, at, load).unwrap()
    };
    let (flood, calm) = std::thread::scope(|scope| {
        // Half as much again as the wire carries.
        let flood = scope.spawn(|| send(FLOOD_PORT, 1400, 13_000));
        let calm = scope.spawn(|| send(CALM_PORT, 200, 300));
        (flood.join().unwrap(), calm.join().unwrap())
    });
    let status = status(&pair.a);
    let beyond = dropped(&status, "flow_queue_full");
    assert!(beyond > 100, "{flood:?} {status:?}");
    let all: u64 = status.drops.values().sum();
    assert!(
        (beyond..=all).contains(&flood.lost()),
        "{flood:?} {status:?}"
    );
    // The other flow waits, too, and a frame is there before another is dropped for it.
    let room = LIMIT_BYTES + LIMIT_BYTES / 4;
    assert!(status.queue.bytes_max_seen < room, "{:?}", status.queue);
    assert_eq!((calm.lost(), calm.reordered), (0, 0), "{calm:?}");
    assert!(calm.delivered > 100, "{calm:?}");
}

/// What the wire has carried of an elephant beside small frames, with a bound to their wait or without.
#[derive(Debug)]
struct Carried {
    /// Of A's frames on the wire, once its rate is known.
    frame_bytes_mean: f64,
    status: StatusDocument,
}

fn elephant_beside_pings(tag: &str, sand_delay: &str) -> Carried {
    let more = ["--mtu", "9000", "--max-sand-delay", sand_delay];
    let pair = pair(tag, 9000, &more);
    let sent = || wire::sent(&pair.a.namespace, "eth1").unwrap();
    let ping = programs::ping(&pair.a.namespace, B, Duration::from_millis(5)).unwrap();
    let (before, after) = beside_elephants(&pair, 1, Duration::from_millis(1300), || {
        pause(Duration::from_millis(500));
        let before = sent();
        pause(Duration::from_millis(600));
        (before, sent())
    });
    ping.interrupt().unwrap();
    Carried {
        frame_bytes_mean: (after.1 - before.1) as f64 / (after.0 - before.0) as f64,
        status: status(&pair.a),
    }
}

#[test]
fn an_elephants_frames_are_cut_so_that_small_ones_wait_little_and_their_waits_are_told() {
    live!(wire::shaping_unavailable());
    let cut = elephant_beside_pings("sand", "200us");
    let link = &cut.status.links[0];
    let rate_bps = link.rate_bps.expect("a rate");
    let longest = link.sand_frame_bytes_max.expect("a longest frame");
    // A third of the bound is one frame's, in whole packets, and no packet is cut. The rate is not always measured alike.
    let by_rate = |bound: Duration| {
        let bytes = rate_bps as f64 * 1.1 / 8.0 * bound.as_secs_f64() / 3.0;
        (bytes as u64 / PACKET_BYTES).max(1) * PACKET_BYTES
    };
    // Of a host that is late more stands at a link.
    let bound = match link.sand_late {
        true => SAND_DELAY_LATE_MAX,
        false => SAND_DELAY_MAX,
    };
    assert!(
        (PACKET_BYTES..=by_rate(bound)).contains(&longest),
        "{link:?}"
    );
    assert!(link.sand_waits_max_s.is_some(), "{link:?}");
    let ever = by_rate(SAND_DELAY_LATE_MAX) as f64;
    assert!(cut.frame_bytes_mean <= ever, "{cut:?}");
    let sand = &cut.status.sand;
    assert_eq!(sand.max_delay_s, Some(SAND_DELAY_MAX.as_secs_f64()));
    let frames = |bucket: &HoldBucket| bucket.trains;
    let in_buckets: u64 = sand.waited.buckets.iter().map(frames).sum();
    assert!(sand.waited.trains > 20 && in_buckets > 0, "{sand:?}");

    let whole = elephant_beside_pings("sandoff", "off");
    let link = &whole.status.links[0];
    let bounds = (link.sand_waits_max_s, link.sand_frame_bytes_max);
    assert_eq!(bounds, (None, None), "{link:?}");
    assert_eq!(whole.status.sand.max_delay_s, None);
    let mean = cut.frame_bytes_mean;
    assert!(whole.frame_bytes_mean > 1.5 * mean, "{mean}: {whole:?}");
}

#[test]
fn an_xl_frame_goes_whole_where_the_link_takes_it_and_in_pieces_where_not() {
    live!(wire::shaping_unavailable());
    const FRAMES: u64 = 5;
    const PAYLOAD_BYTES: u64 = 60_000;
    let more = ["--mtu", "65000", "--max-sand-delay", "off"];
    let pair = pair("whole", 1500, &more);
    assert!(pings_whole(&pair.a, B, 56));
    for link_mtu in [1500, 9000, 65_535] {
        for host in [&pair.a, &pair.b] {
            wire::set_mtu(&host.namespace, "eth1", link_mtu).unwrap();
        }
        // The other end is told of it by a hello, and what passes is asked for.
        wait_for("the link's MTU", Duration::from_secs(3), || {
            let trains = |status: &StatusDocument| u32::from(status.peers[0].links[0].size_bytes);
            let mut both = [&pair.a, &pair.b].into_iter().map(status);
            both.all(|status| trains(&status) == link_mtu)
        })
        .unwrap();
        let before = [&pair.a, &pair.b].map(status);
        let size = PAYLOAD_BYTES.to_string();
        let count = FRAMES.to_string();
        let words = ["ping", "-n", "-M", "do", "-i", "0.05", "-W", "2"];
        let words = [&words[..], &["-c", &count, "-s", &size, B]].concat();
        pair.a.namespace.exec(words).unwrap();
        let after = [&pair.a, &pair.b].map(status);
        let pieces = after[0].trains.tx.pieces - before[0].trains.tx.pieces;
        let put_together = after[1].reassembly.completed - before[1].reassembly.completed;
        let least = (PAYLOAD_BYTES / u64::from(link_mtu)) * FRAMES;
        match least {
            0 => assert_eq!((pieces, put_together), (0, 0), "{link_mtu}: {after:?}"),
            _ => {
                assert!((least..least * 2).contains(&pieces), "{link_mtu}: {pieces}");
                assert_eq!(put_together, FRAMES, "{link_mtu}: {after:?}");
            }
        }
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(after.drops, before.drops, "{link_mtu}");
        }
    }
    assert!(pings_whole(&pair.b, A, 60_000));
}
