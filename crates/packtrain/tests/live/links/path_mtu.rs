//! A switch on the way that takes shorter frames than the hosts at its ends.

use std::thread::scope;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::{wait_for, wire};

use super::{plug, switch};
use crate::common::cabled::{pause, status};
use crate::common::undo::SOON;
use crate::common::{A, B, packtrain};

/// What passes each link, as the host has found.
fn mtus(host: &Host) -> Vec<Option<u16>> {
    let peers = status(host).peers;
    let links = peers.first().map(|peer| &peer.links);
    links.into_iter().flatten().map(|path| path.mtu).collect()
}

#[test]
fn a_switch_that_comes_to_take_less_is_found_out_and_no_long_ping_is_lost() {
    live!();
    let hosts = [(); 2].map(|()| Host::create("pathmtu", packtrain()).unwrap());
    let switches = [(); 2].map(|()| switch("pathmtu"));
    for (n, host) in hosts.iter().enumerate() {
        for (link, switch) in switches.iter().enumerate() {
            let (interface, port) = (format!("eth{link}"), format!("port{n}"));
            plug(&host.namespace, &interface, switch, &port);
            wire::set_mtu(&host.namespace, &interface, 9000).unwrap();
            wire::set_mtu(switch, &port, 9000).unwrap();
        }
    }
    for (host, address) in hosts.iter().zip([A, B]) {
        let address = format!("{address}/24");
        let more = [
            "--link",
            "eth1",
            "--address",
            &address,
            "--mtu",
            "9000",
            "--path",
            "engine",
            "--balance",
            "round-robin",
        ];
        host.up("eth0", &more).unwrap();
    }
    let [a, _] = &hosts;
    let find = |wanted: fn(&[Option<u16>]) -> bool| {
        let found = wait_for("what passes", SOON, || wanted(&mtus(a)));
        found.unwrap_or_else(|error| panic!("{error}: {:#?}", status(a)));
    };
    find(|mtus| mtus == [Some(9000); 2]);
    scope(|scope| {
        let pings = scope.spawn(|| {
            let words = "ping -q -n -M do -s 8000 -c 600 -i 0.004 -W 2";
            let output = a.namespace.try_exec(words.split(' ').chain([B]));
            String::from_utf8(output.unwrap().stdout).unwrap()
        });
        pause(Duration::from_millis(600));
        wire::set_mtu(&switches[1], "port1", 1500).unwrap();
        find(|mtus| matches!(mtus, [Some(9000), Some(1300..=1500)]));
        let said = pings.join().unwrap();
        let all = "600 packets transmitted, 600 received";
        assert!(said.contains(all), "{said}{:#?}", status(a));
    });
    let warnings = status(a).warnings;
    let warns = |text: &String| {
        text.starts_with("eth1: frames over 1") && text.ends_with("both ends take 9000")
    };
    assert!(warnings.iter().any(warns), "{warnings:?}");
}
