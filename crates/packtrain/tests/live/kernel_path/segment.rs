//! Three hosts with packtrain and one without on a segment.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::{wait_for, wire};
use packtrain::status::PeerPath;
use packtrain_proto::wire::ethernet::MacAddr;

use super::frames::{NOBODYS_TYPE, frame, typed};
use super::port::{Port, address_of};
use crate::common::cabled::{MEBIBYTE, pause, status};
use crate::common::{packtrain, pings_whole, transfer};

const SOON: Duration = Duration::from_secs(10);

/// Hosts with their `eth1`s on one switch: some with a line over it, and one without packtrain.
pub struct Segment {
    pub lines: Vec<Host>,
    pub plain: Namespace,
    _switch: Namespace,
}

impl Segment {
    /// `lines` hosts with packtrain, each with all others as direct peers, and one without.
    pub fn up(tag: &str, lines: usize) -> Segment {
        let switch = Namespace::create(tag).unwrap();
        let plain = Namespace::create(tag).unwrap();
        wire::veth((&plain, "eth1"), (&switch, "plain")).unwrap();
        wire::add_address(&plain, "eth1", "10.9.0.99/24").unwrap();
        let mut ports = vec!["plain".to_owned()];
        let lines: Vec<Host> = (1..=lines)
            .map(|n| {
                let host = Host::create(tag, packtrain()).unwrap();
                ports.push(format!("p{n}"));
                wire::veth((&host.namespace, "eth1"), (&switch, &ports[n])).unwrap();
                host
            })
            .collect();
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        wire::bridge(&switch, "br0", &ports).unwrap();
        for (n, host) in (1..).zip(&lines) {
            host.up("eth1", &["--address", &format!("10.9.0.{n}/24")])
                .unwrap();
        }
        let segment = Segment {
            lines,
            plain,
            _switch: switch,
        };
        for host in &segment.lines {
            wait_for("all others as direct peers", SOON, || {
                segment.has_direct_peers(host)
            })
            .unwrap_or_else(|error| panic!("{error}: {:#?}", status(host).peers));
        }
        segment
    }

    pub fn has_direct_peers(&self, host: &Host) -> bool {
        let peers = status(host).peers;
        let direct = peers.iter().filter(|peer| peer.path == PeerPath::Direct);
        direct.count() == self.lines.len() - 1
    }
}

#[test]
fn all_pairs_of_three_hosts_are_direct_and_a_host_without_packtrain_reaches_each() {
    live!();
    let segment = Segment::up("three", 3);
    let plain = &segment.plain;
    let address = |n: usize| format!("10.9.0.{}", n + 1);
    let pairs: Vec<(usize, usize)> = (0..3)
        .flat_map(|n| (0..3).map(move |m| (n, m)))
        .filter(|(n, m)| n != m)
        .collect();
    for &(n, m) in &pairs {
        assert!(pings_whole(&segment.lines[n], &address(m), 1472));
    }
    // What said who has which address went by the engine, and is delivered.
    pause(Duration::from_millis(200));
    let before: Vec<_> = segment.lines.iter().map(status).collect();
    for &(n, m) in &pairs {
        let (from, to) = (&segment.lines[n], &segment.lines[m]);
        let sent = || status(from).direct.tx.bytes;
        let before = sent();
        let right = transfer(from, to, &address(m), MEBIBYTE);
        assert_eq!(right, MEBIBYTE, "{} to {}", n + 1, m + 1);
        assert!(sent() > before + MEBIBYTE, "{} to {}", n + 1, m + 1);
    }
    for (n, before) in before.iter().enumerate() {
        let now = status(&segment.lines[n]);
        assert!(segment.has_direct_peers(&segment.lines[n]), "{now:#?}");
        assert!(
            now.direct.rx.bytes > before.direct.rx.bytes + 2 * MEBIBYTE,
            "{now:#?}"
        );
        let engine = now.host.taken.bytes - before.host.taken.bytes;
        assert!(engine < MEBIBYTE / 10, "{engine} bytes by the engine");
    }

    // The one without, both ways, while the others go on; and all that is said to it is for it.
    let of_plain = address_of(plain, "eth1");
    let mut seen = Port::open(plain, "eth1");
    std::thread::scope(|scope| {
        let (a, b) = (&segment.lines[0], &segment.lines[1]);
        let beside = scope.spawn(move || transfer(a, b, "10.9.0.2", 20 * MEBIBYTE));
        for (n, line) in segment.lines.iter().enumerate() {
            let plain = Host::new(Namespace::standing(plain.name()), packtrain());
            assert!(pings_whole(&plain, &address(n), 1472), "to {}", n + 1);
            assert!(pings_whole(line, "10.9.0.99", 1472), "from {}", n + 1);
            let right = transfer(&plain, line, &address(n), MEBIBYTE);
            assert_eq!(right, MEBIBYTE, "to {}", n + 1);
            let right = transfer(line, &plain, "10.9.0.99", MEBIBYTE);
            assert_eq!(right, MEBIBYTE, "from {}", n + 1);
        }
        assert_eq!(beside.join().unwrap(), 20 * MEBIBYTE);
    });
    let pt0s: Vec<_> = segment
        .lines
        .iter()
        .map(|line| address_of(&line.namespace, "pt0"))
        .collect();
    for frame in seen.take() {
        if frame[0..6] == of_plain.0 {
            let from = MacAddr::from_slice(&frame[6..12]);
            assert!(pt0s.contains(&from), "{from}");
        }
    }
    // A frame of its own choice, to one of them only.
    let rest = typed(NOBODYS_TYPE, 1, 100);
    let [mut at_a, mut at_b] = [0, 1].map(|n| Port::open(&segment.lines[n].namespace, "pt0"));
    let sent = frame(pt0s[0], of_plain, &rest);
    seen.send(&sent);
    at_a.wait_for("it at the first", |frame| *frame == sent);
    assert!(at_b.rest().iter().all(|frame| frame[12..] != rest));
}
