//! A link that dies and does not tell: frames vanish on it, and both ends keep their carrier.

use std::net::SocketAddr;
use std::thread::scope;
use std::time::Duration;

use packtrain::lab::emulator::protocol::{Request, WireChoice};
use packtrain::lab::host::Host;
use packtrain::lab::messages::{self, Load, Report};
use packtrain::lab::stream::{self, Amount, Protocol, Transfer};
use packtrain::lab::topology::TopologyOptions;
use packtrain::lab::{wait_for, wire};
use packtrain::status::LinkCondition;

use crate::common::cabled::{MEBIBYTE, address, assert_all_used_again, now, pause, status};
use crate::common::standing::Standing;
use crate::common::undo::SOON;
use crate::common::{B, steady};

/// A second, the cut, which is found out, and one more, and some after the wire is mended.
const SENT_FOR: Duration = Duration::from_secs(5);

/// What its paths over this link are used for; none: it has no path there.
fn states(host: &Host, link: &str) -> Vec<String> {
    let peers = status(host).peers.into_iter();
    let paths = peers.flat_map(|peer| peer.links);
    let over = paths.filter(|path| path.link == link);
    over.map(|path| path.state).collect()
}

/// Sends over both links while one of them is cut, which its sender finds out, and mended.
fn under_both(standing: &Standing, of: &WireChoice, link: &str) -> (Transfer, Report) {
    let (a, b) = (&standing.hosts[0], &standing.hosts[1]);
    let (from, to) = (&a.namespace, &b.namespace);
    let at = |port| SocketAddr::new(address(B), port);
    let load = Load {
        size: 500,
        duration: SENT_FOR,
        rate_per_second: Some(1000),
        real_time: false,
    };
    scope(|scope| {
        let transfer = scope.spawn(|| {
            let amount = Amount::Time(SENT_FOR);
            stream::transfer(from, to, at(7107), amount, Protocol::Tcp, now()).unwrap()
        });
        let messages = scope.spawn(|| messages::measure(from, to, at(7108), load).unwrap());
        pause(Duration::from_secs(1));
        let cut = Request::Cut {
            of: of.clone(),
            silent: true,
        };
        standing.lab.ask(&cut).unwrap();
        wait_for("the link to be found silent", SOON, || {
            states(a, link).iter().any(|state| state == "silent")
        })
        .unwrap();
        // Nobody was told by the kernel.
        let links = status(a).links;
        assert!(
            links.iter().all(|link| link.state == LinkCondition::Up),
            "{links:#?}"
        );
        pause(Duration::from_secs(1));
        let mend = Request::Mend { of: of.clone() };
        standing.lab.ask(&mend).unwrap();
        (transfer.join().unwrap(), messages.join().unwrap())
    })
}

#[test]
fn a_link_that_dies_silently_under_a_transfer_and_datagrams_loses_nothing_and_is_used_again() {
    live!(wire::shaping_unavailable());
    let mut options = TopologyOptions::default();
    options.wires.rate = Some("20mbit".parse().unwrap());
    let standing = Standing::up("silent", &options.topology().unwrap());
    let hosts = [&standing.hosts[0], &standing.hosts[1]];
    // Each link in both directions, and one in that of the transfer alone.
    for (number, from) in [(0, None), (1, None), (0, Some("a"))] {
        let of = WireChoice {
            wire: format!("a-b.{number}"),
            from: from.map(str::to_owned),
        };
        let link = format!("eth{number}");
        let send = || {
            let (transfer, report) = under_both(&standing, &of, &link);
            let (right, sent) = (transfer.right_bytes, transfer.sent_bytes);
            assert!(transfer.is_whole(), "{of:?}: {right} of {sent} bytes right");
            assert_eq!((report.reordered, report.duplicated), (0, 0), "{of:?}");
            assert_all_used_again(hosts);
            (sent, report.lost(), hosts.map(|host| status(host).drops))
        };
        // Who is not run finds both links silent, and its queues full of what the host has sent.
        let what = format!("bytes sent, and datagrams lost, {of:?} silent");
        steady::judge(&what, send, |&(sent, lost, _)| {
            sent > 10 * MEBIBYTE && lost == 0
        });
    }
}
