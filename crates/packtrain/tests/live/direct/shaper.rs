//! A queue of ours before the only link: where an elephant would stand in the link's own at more than an engine is in time for.

use std::net::SocketAddr;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::messages::{Load, Report, measure};
use packtrain::lab::stream::{self, Amount, Protocol};
use packtrain::lab::{wait_for, wire};
use packtrain::status::DirectShaper;

use crate::common::cabled::{address, assert_all_once_in_order, now, status};
use crate::common::direct::wait_for_direct;
use crate::common::undo::kill;
use crate::common::{A, B, Pair, pings_whole};
use rustix::process::Signal;

const RATE_MBIT: u32 = 1000;
const ELEPHANT_PORT: u16 = 7360;
const SMALL_PORT: u16 = 7361;
const SOON: Duration = Duration::from_secs(10);
/// It is taken away after 10 s without a frame.
const UNUSED: Duration = Duration::from_secs(20);

fn pair(tag: &str, more: &[&str]) -> Pair {
    let pair = Pair::cable(tag, 1500).unwrap();
    for host in [&pair.a, &pair.b] {
        wire::shape(&host.namespace, "eth1", RATE_MBIT).unwrap();
        // Two processors that take turns at the cable swap frames by themselves.
        wire::receive_on_cpu(&host.namespace, "eth1", 0).unwrap();
    }
    pair.a_up(more).unwrap();
    pair.b_up(more).unwrap();
    pair.wait().unwrap();
    wait_for_direct(&pair.a);
    assert!(pings_whole(&pair.a, B, 56));
    pair
}

fn shaper(host: &Host) -> Option<DirectShaper> {
    status(host)
        .links
        .into_iter()
        .find_map(|link| link.direct_shaper)
}

/// One greedy TCP flow from A to B, meanwhile.
fn beside_an_elephant<T>(pair: &Pair, lasts: Duration, meanwhile: impl FnOnce() -> T) -> T {
    let (a, b) = (&pair.a.namespace, &pair.b.namespace);
    std::thread::scope(|scope| {
        let at = SocketAddr::new(address(B), ELEPHANT_PORT);
        // Where a daemon is killed meanwhile, it fails.
        scope.spawn(move || {
            let _ = stream::transfer(a, b, at, Amount::Time(lasts), Protocol::Tcp, now());
        });
        meanwhile()
    })
}

/// A thousand small datagrams a second.
fn small_frames(pair: &Pair, lasts: Duration) -> Report {
    let load = Load {
        size: 36,
        duration: lasts,
        rate_per_second: Some(1000),
        real_time: false,
    };
    let at = SocketAddr::new(address(B), SMALL_PORT);
    measure(&pair.a.namespace, &pair.b.namespace, at, load).unwrap()
}

fn has_interfaces_of_ours(host: &Host) -> bool {
    let links = host.namespace.exec(["ip", "-o", "link"]).unwrap();
    links.contains("ptq") || links.contains("ptr")
}

#[test]
fn it_comes_when_an_elephant_does_lets_small_frames_pass_and_goes_again() {
    live!(wire::shaping_unavailable());
    let pair = pair("shaper", &[]);
    assert_eq!(
        (shaper(&pair.a), has_interfaces_of_ours(&pair.a)),
        (None, false)
    );
    let report = beside_an_elephant(&pair, Duration::from_secs(4), || {
        // From before it is there.
        let first = small_frames(&pair, Duration::from_millis(1500));
        assert_all_once_in_order(&first, [&pair.a, &pair.b]);
        let shaper = shaper(&pair.a).expect("a queue of ours");
        assert!(
            (800_000_000..1_050_000_000).contains(&shaper.rate_bps),
            "{shaper:?}"
        );
        assert!(shaper.frame_bytes_max < 20_000, "{shaper:?}");
        small_frames(&pair, Duration::from_millis(1500))
    });
    assert_all_once_in_order(&report, [&pair.a, &pair.b]);
    // Behind what TCP has standing in the link's own queue it would be 2.5 ms.
    assert!(report.delay_p50_us < 1000.0, "{report:?}");
    let after = status(&pair.a);
    assert!(after.direct.tx.bytes > 200_000_000, "{:?}", after.direct);
    assert!(after.host.taken.bytes < 1_000_000, "{:?}", after.host.taken);
    assert_eq!(after.direct.closures, 0, "{:?}", after.direct);
    assert_eq!(after.drops.values().sum::<u64>(), 0, "{:?}", after.drops);
    wait_for("it to go", UNUSED, || !has_interfaces_of_ours(&pair.a)).unwrap();
    assert_eq!(shaper(&pair.a), None);
    assert!(pings_whole(&pair.a, B, 1472) && pings_whole(&pair.b, A, 56));
}

#[test]
fn who_bounds_no_wait_has_none() {
    live!(wire::shaping_unavailable());
    let pair = pair("unshaped", &["--max-sand-delay", "off"]);
    beside_an_elephant(&pair, Duration::from_secs(1), || ());
    assert_eq!(
        (shaper(&pair.a), has_interfaces_of_ours(&pair.a)),
        (None, false)
    );
    assert!(status(&pair.a).direct.closures > 0, "the engine does it");
}

#[test]
fn it_goes_when_a_second_link_comes_and_nothing_is_lost() {
    live!(wire::shaping_unavailable());
    let pair = pair("shapertwo", &[]);
    wire::veth((&pair.a.namespace, "eth2"), (&pair.b.namespace, "eth2")).unwrap();
    let report = beside_an_elephant(&pair, Duration::from_secs(3), || {
        wait_for("a queue of ours", SOON, || shaper(&pair.a).is_some()).unwrap();
        std::thread::scope(|scope| {
            let small = scope.spawn(|| small_frames(&pair, Duration::from_secs(1)));
            for host in [&pair.a, &pair.b] {
                host.packtrain(&["link", "add", "pt0", "eth2"]).unwrap();
            }
            small.join().unwrap()
        })
    });
    assert_all_once_in_order(&report, [&pair.a, &pair.b]);
    wait_for("it to go", UNUSED, || !has_interfaces_of_ours(&pair.a)).unwrap();
}

#[test]
fn what_a_killed_daemon_leaves_of_it_goes_with_the_next_one_or_with_down() {
    live!(wire::shaping_unavailable());
    let pair = pair("shaperkill", &[]);
    for next in ["up", "down"] {
        beside_an_elephant(&pair, Duration::from_secs(2), || {
            wait_for("a queue of ours", SOON, || shaper(&pair.a).is_some()).unwrap();
            kill(&pair.a, Signal::KILL);
        });
        assert!(has_interfaces_of_ours(&pair.a), "it outlives its daemon");
        match next {
            "up" => {
                pair.a_up(&[]).unwrap();
                pair.wait().unwrap();
                wait_for_direct(&pair.a);
            }
            _ => drop(pair.a.down()),
        }
        assert!(!has_interfaces_of_ours(&pair.a), "{next}");
    }
}
