//! Links that join a line and leave it under traffic: they carry their part soon, and take nothing with them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::messages::{self, Load, Report};
use packtrain::lab::stream::{self, Amount, Protocol};
use packtrain::lab::{wait_for, wire};
use packtrain::status::Counts;

use crate::common::cabled::{
    Cabled, MEBIBYTE, address, assert_once_in_order, assert_sent, now, pause, status,
};
use crate::common::undo::SOON;
use crate::common::{A, B, steady};

fn link(host: &Host, command: &str, name: &str) {
    host.packtrain(&["link", command, "pt0", name])
        .unwrap_or_else(|error| panic!("link {command} {name}: {error}"));
}

fn sent_trains(host: &Host, name: &str) -> u64 {
    let links = status(host).links;
    let mut of_name = links.iter().filter(|link| link.name == name);
    of_name.next().map_or(0, |link| link.trains_tx)
}

/// Each of the two at each end in turns, so that the one that stays is the other one each time.
#[test]
fn a_hundred_links_that_leave_and_join_under_a_transfer_and_datagrams_take_nothing_with_them() {
    live!(wire::shaping_unavailable());
    let cabled = Cabled::up("leaving", &[100, 100]);
    for host in [&cabled.a, &cabled.b] {
        for interface in cabled.names().into_iter().chain(["pt0"]) {
            // Two processors that take turns at a cable swap frames by themselves, and so they do what comes past the engine by
            // a cable and what the engine gives to the host.
            wire::receive_on_cpu(&host.namespace, interface, 0).unwrap();
        }
    }
    let leave_and_join = || a_hundred_leave_and_join(&cabled);
    let what = "bytes in all, and datagrams lost";
    steady::judge(what, leave_and_join, |&(bytes, lost, _)| {
        bytes > 20 * MEBIBYTE && lost == 0
    });
    assert_sent(&cabled.b, &cabled.a, A, 4 * MEBIBYTE);
}

/// Gives how many bytes were sent meanwhile, how many datagrams were lost, and what was dropped on each host.
fn a_hundred_leave_and_join(cabled: &Cabled) -> (u64, u64, [Counts; 2]) {
    let Cabled { a, b, .. } = cabled;
    let (from, to) = (&a.namespace, &b.namespace);
    let at = |port| SocketAddr::new(address(B), port);
    let duration = Duration::from_secs(3);
    let load = Load {
        size: 500,
        duration,
        rate_per_second: Some(1000),
        real_time: false,
    };
    let finished = AtomicBool::new(false);
    let is_finished = || finished.load(Ordering::Relaxed);
    let (transfers, reports) = scope(|scope| {
        let transfers = scope.spawn(|| {
            let mut transfers = Vec::new();
            while !is_finished() {
                let amount = Amount::Time(duration);
                let one = stream::transfer(from, to, at(7102), amount, Protocol::Tcp, now());
                transfers.push(one.unwrap());
            }
            transfers
        });
        let reports = scope.spawn(|| {
            let mut reports = Vec::new();
            while !is_finished() {
                reports.push(messages::measure(from, to, at(7103), load).unwrap());
            }
            reports
        });
        for round in 0..100 {
            let (host, name) = [(a, "eth2"), (b, "eth2"), (a, "eth1"), (b, "eth1")][round % 4];
            link(host, "remove", name);
            link(host, "add", name);
        }
        finished.store(true, Ordering::Relaxed);
        (transfers.join().unwrap(), reports.join().unwrap())
    });
    for transfer in &transfers {
        let (right, sent) = (transfer.right_bytes, transfer.sent_bytes);
        assert!(transfer.is_whole(), "{right} of {sent} bytes right");
    }
    for report in &reports {
        assert_once_in_order(report, [a, b]);
    }
    cabled.assert_all_used_again();
    let bytes = transfers.iter().map(|transfer| transfer.sent_bytes).sum();
    let lost = reports.iter().map(Report::lost).sum();
    (bytes, lost, cabled.drops())
}

#[test]
fn a_link_that_is_added_under_a_transfer_takes_its_part_of_it() {
    live!(alone, wire::shaping_unavailable());
    let cabled = Cabled::up("joining", &[100, 100]);
    let Cabled { a, b, .. } = &cabled;
    for host in [a, b] {
        link(host, "remove", "eth2");
    }
    let at = SocketAddr::new(address(B), 7104);
    let transfer = scope(|scope| {
        let transfer = scope.spawn(|| {
            let amount = Amount::Time(Duration::from_secs(5));
            let (from, to) = (&a.namespace, &b.namespace);
            stream::transfer(from, to, at, amount, Protocol::Tcp, now()).unwrap()
        });
        pause(Duration::from_secs(1));
        for host in [a, b] {
            link(host, "add", "eth2");
        }
        wait_for("trains over the new link", SOON, || {
            sent_trains(a, "eth2") > 100
        })
        .unwrap();
        transfer.join().unwrap()
    });
    assert!(transfer.is_whole());
    cabled.judge_shares(8, |shares| shares.iter().all(|&share| share > 0.3));
}
