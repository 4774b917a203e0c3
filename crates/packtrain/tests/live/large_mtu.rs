//! A `pt0` with frames of 65,521 bytes over links of 1500: whole between hosts with packtrain, and where somebody takes less, the stack is told
//! how much. Never a black hole.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::{wait_for, wire};

use crate::common::cabled::{MEBIBYTE, pause};
use crate::common::{A, A6, B, B6, Pair, packtrain, pings_whole, transfer};
use crate::segment::Segment;

const PLAIN: &str = "10.9.0.4";
const PLAIN6: &str = "fd09::4";
const LARGE: [&str; 2] = ["--mtu", "65521"];
/// While neighbours are being met, nobody is taken for a host without packtrain.
const MEETING: Duration = Duration::from_millis(1200);

/// What a ping of this payload says that may not be cut on the way.
fn ping(from: &Host, to: &str, payload_bytes: usize) -> String {
    let size = payload_bytes.to_string();
    let words = [
        "ping", "-n", "-M", "do", "-c", "2", "-W", "1", "-s", &size, to,
    ];
    let output = from.namespace.try_exec(words).expect("there is ping");
    [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat()
}

/// The path MTU that the stack has learnt to this host, in words of `ip`.
fn route(from: &Host, to: &str) -> String {
    from.namespace.exec(["ip", "route", "get", to]).unwrap()
}

/// Two hosts with packtrain and large frames, and one without, on a switch.
fn segment() -> Segment {
    let segment = Segment::of(3);
    for (host, addresses) in segment.hosts.iter().zip([[A, A6], [B, B6]]) {
        let [four, six] = [
            format!("{}/24", addresses[0]),
            format!("{}/64", addresses[1]),
        ];
        let more = ["--address", &four, "--address", &six, LARGE[0], LARGE[1]];
        host.up("eth1", &more).unwrap();
    }
    let plain = &segment.hosts[2].namespace;
    wire::add_address(plain, "eth1", "10.9.0.4/24").unwrap();
    wire::add_address(plain, "eth1", "fd09::4/64").unwrap();
    for host in &segment.hosts[..2] {
        host.wait_for_peers(1).unwrap();
    }
    pause(MEETING);
    wait_for("IPv6", Duration::from_secs(5), || {
        pings_whole(&segment.hosts[0], PLAIN6, 100) && pings_whole(&segment.hosts[0], B6, 100)
    })
    .unwrap();
    segment
}

#[test]
fn a_plain_hosts_mtu_is_told_to_the_stack_and_peers_get_large_frames() {
    live!();
    let segment = segment();
    let [a, b, plain] = &segment.hosts[..] else {
        unreachable!("three hosts");
    };
    for (peer, host) in [(B, PLAIN), (B6, PLAIN6)] {
        assert!(pings_whole(a, peer, 60_000), "{peer}");
        let said = ping(a, host, 60_000);
        assert!(said.contains("mtu") && said.contains("1500"), "{said}");
        assert!(route(a, host).contains("mtu 1500"), "{}", route(a, host));
        assert!(!route(a, peer).contains("mtu 1500"), "{}", route(a, peer));
        assert!(pings_whole(a, host, 1400), "{host}");
        let bytes = 10 * MEBIBYTE;
        assert_eq!(transfer(a, plain, host, bytes), bytes, "{host}");
        assert_eq!(transfer(a, b, peer, bytes), bytes, "{peer}");
    }
    for (host, to) in [(b, A), (plain, A), (plain, A6)] {
        assert_eq!(transfer(host, a, to, MEBIBYTE), MEBIBYTE, "to {to}");
    }
    let status = a.status().unwrap();
    let told = status.too_big.told;
    assert!((2..10).contains(&told), "{status:?}");
    assert_eq!(status.drops.get("too_large_for_plain"), Some(&told));
}

/// Its MSS says nothing of its link: what TCP sends at first is too large, and TCP has to be told.
#[test]
fn tcp_that_was_promised_more_is_told_and_goes_on() {
    live!();
    let segment = segment();
    let (a, plain) = (&segment.hosts[0], &segment.hosts[2]);
    let advertise = |words: &str| plain.namespace.sh(words).unwrap();
    advertise("ip route change 10.9.0.0/24 dev eth1 proto kernel src 10.9.0.4 advmss 20000");
    advertise("ip -6 route change fd09::/64 dev eth1 proto kernel metric 256 advmss 20000");
    for to in [PLAIN, PLAIN6] {
        let before = a.status().unwrap().too_big.told;
        let bytes = 10 * MEBIBYTE;
        assert_eq!(transfer(a, plain, to, bytes), bytes, "{to}");
        assert!(route(a, to).contains("mtu 1500"), "{}", route(a, to));
        assert!(a.status().unwrap().too_big.told > before, "{to}");
    }
}

#[test]
fn a_peer_with_smaller_frames_takes_large_ones_and_for_those_behind_it_the_stack_is_told() {
    live!();
    let pair = Pair::cable("small", 1500).unwrap();
    pair.a_up(&LARGE).unwrap();
    pair.b.up("eth1", &[]).unwrap();
    let guest = Host::create("small", packtrain()).unwrap();
    wire::veth((&guest.namespace, "eth0"), (&pair.b.namespace, "guest")).unwrap();
    wire::add_address(&guest.namespace, "eth0", "10.9.0.12/24").unwrap();
    wire::bridge(&pair.b.namespace, "br0", &["pt0", "guest"]).unwrap();
    wire::add_address(&pair.b.namespace, "br0", "10.9.0.2/24").unwrap();
    pair.a.wait_for_peers(1).unwrap();
    guest
        .wait_for_ping(A.parse().unwrap(), Duration::from_secs(5))
        .unwrap();
    // Where the guest is, comes with the next hello.
    pause(MEETING);
    let said = ping(&pair.a, "10.9.0.12", 60_000);
    assert!(said.contains("mtu") && said.contains("1500"), "{said}");
    assert!(pings_whole(&pair.a, "10.9.0.12", 1472));
    let bytes = 5 * MEBIBYTE;
    assert_eq!(transfer(&pair.a, &guest, "10.9.0.12", bytes), bytes);
    assert_eq!(transfer(&guest, &pair.a, A, bytes), bytes);
    drop(pair);

    let pair = Pair::cable("small", 1500).unwrap();
    pair.a_up(&LARGE).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    for to in [B, B6] {
        let words = [
            "ping", "-n", "-M", "do", "-c", "2", "-W", "2", "-s", "60000", to,
        ];
        pair.a.namespace.exec(words).unwrap();
    }
    let status = pair.a.status().unwrap();
    assert_eq!(status.too_big.told, 0, "{status:?}");
}

#[test]
fn large_frames_stay_whole_while_links_come_to_take_more_or_less() {
    live!();
    let pair = Pair::up_with("chmtu", 1500, &LARGE).unwrap();
    for mtus in [[1300, 1300], [9000, 9000], [9000, 1400], [1500, 1500]] {
        for (host, mtu) in [&pair.a, &pair.b].into_iter().zip(mtus) {
            wire::set_mtu(&host.namespace, "eth1", mtu).unwrap();
        }
        // The other end is told of it by a hello.
        let followed = |host: &Host, mtu: u32| {
            let status = host.status();
            status.is_ok_and(|status| status.links[0].mtu == Some(mtu))
        };
        wait_for("the links' MTUs", Duration::from_secs(3), || {
            followed(&pair.a, mtus[0]) && followed(&pair.b, mtus[1])
        })
        .unwrap();
        pause(Duration::from_millis(400));
        for (from, to) in [(&pair.a, B), (&pair.a, B6), (&pair.b, A)] {
            assert!(pings_whole(from, to, 60_000), "{to} over {mtus:?}");
        }
        assert_eq!(transfer(&pair.a, &pair.b, B, 2 * MEBIBYTE), 2 * MEBIBYTE);
    }
}
