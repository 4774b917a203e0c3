//! Two hosts with several cables between them, and a line over all; and what is sent over it.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use packtrain::lab::cable::Cable;
use packtrain::lab::host::Host;
use packtrain::lab::messages::Report;
use packtrain::lab::stream::{self, Amount, Protocol, Transfer};
use packtrain::lab::wait_for;
use packtrain::status::{Counts, LinkCondition, StatusDocument};

use super::undo::SOON;
use super::{B, packtrain, steady};

pub const MEBIBYTE: u64 = 1 << 20;

pub fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

pub fn status(host: &Host) -> StatusDocument {
    host.status().expect("a status")
}

#[allow(clippy::disallowed_methods)] // live tests run in real time
pub fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods)] // live tests run in real time
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Bytes to an address of another host, and what arrived of them.
pub fn send(from: &Host, to: &Host, at: &str, bytes: u64) -> Transfer {
    let at = SocketAddr::new(address(at), 7100);
    let (from, to) = (&from.namespace, &to.namespace);
    stream::transfer(from, to, at, Amount::Bytes(bytes), Protocol::Tcp, now()).expect("a transfer")
}

pub fn assert_sent(from: &Host, to: &Host, at: &str, bytes: u64) {
    let transfer = send(from, to, at, bytes);
    let (right, arrived) = (transfer.right_bytes, transfer.arrivals.bytes());
    assert!(
        transfer.is_whole() && right == bytes,
        "{right} of {bytes} bytes to {at} right, {arrived} arrived"
    );
}

pub fn assert_all_once_in_order(report: &Report, hosts: [&Host; 2]) {
    assert_once_in_order(report, hosts);
    assert_eq!(
        report.lost(),
        0,
        "lost of {}\n{:#?}\n{:#?}",
        report.sent,
        status(hosts[0]),
        status(hosts[1]),
    );
}

/// What must hold of datagrams on any machine. How many are lost is to be judged: the queues of a host that
/// is not run overflow.
pub fn assert_once_in_order(report: &Report, hosts: [&Host; 2]) {
    let wrong = (report.reordered, report.duplicated);
    assert!(
        wrong == (0, 0) && report.delivered > 0,
        "out of order, twice: {wrong:?} of {}\n{:#?}\n{:#?}",
        report.sent,
        status(hosts[0]),
        status(hosts[1]),
    );
}

/// Sends from the first to the second, which has the address B, and gives what share went over each link.
fn shares([a, b]: [&Host; 2], bytes: u64) -> Vec<f64> {
    let sent = || -> Vec<u64> {
        let links = status(a).links.into_iter();
        links.map(|link| link.tx.bytes).collect()
    };
    let before = sent();
    assert_sent(a, b, B, bytes);
    let links = sent().into_iter().zip(before);
    let of_each: Vec<f64> = links.map(|(now, then)| (now - then) as f64).collect();
    let all: f64 = of_each.iter().sum();
    of_each.iter().map(|bytes| bytes / all).collect()
}

/// What was cut and mended is used again: by itself, and soon.
pub fn assert_all_used_again(hosts: [&Host; 2]) {
    for host in hosts {
        wait_for("every link up", SOON, || {
            let mut links = status(host).links.into_iter();
            links.all(|link| link.state == LinkCondition::Up)
        })
        .unwrap();
    }
    let mut of_each = Vec::new();
    wait_for("every link to be used again", SOON, || {
        of_each = shares(hosts, 4 * MEBIBYTE);
        of_each.iter().all(|&share| share > 0.1)
    })
    .unwrap_or_else(|error| panic!("{error}: shares {of_each:?}, {:#?}", status(hosts[0])));
}

/// Two hosts with several cables between them, and a line over all.
pub struct Cabled {
    pub cables: Vec<Cable>,
    pub a: Host,
    pub b: Host,
    /// What else `up` is told.
    more: &'static [&'static str],
}

impl Cabled {
    pub fn up(tag: &str, rates_mbit: &[u32]) -> Cabled {
        Cabled::up_with(tag, rates_mbit, &[])
    }

    pub fn up_with(tag: &str, rates_mbit: &[u32], more: &'static [&'static str]) -> Cabled {
        let rates: Vec<_> = rates_mbit.iter().copied().map(Some).collect();
        Cabled::over(tag, &rates, more)
    }

    /// As fast as the machine.
    pub fn up_unshaped(tag: &str, cables: usize) -> Cabled {
        Cabled::over(tag, &vec![None; cables], &[])
    }

    fn over(tag: &str, rates_mbit: &[Option<u32>], more: &'static [&'static str]) -> Cabled {
        let a = Host::create(tag, packtrain()).unwrap();
        let b = Host::create(tag, packtrain()).unwrap();
        let cables = (1..).zip(rates_mbit).map(|(number, &rate_mbit)| {
            let name = format!("eth{number}");
            let (from, to) = (&a.namespace, &b.namespace);
            match rate_mbit {
                Some(rate_mbit) => Cable::lay_shaped(from, to, &name, rate_mbit).unwrap(),
                None => Cable::lay(from, to, &name).unwrap(),
            }
        });
        let cabled = Cabled {
            cables: cables.collect(),
            a,
            b,
            more,
        };
        cabled.a_up();
        cabled.b_up();
        cabled.wait();
        cabled
    }

    pub fn names(&self) -> Vec<&str> {
        self.cables.iter().map(Cable::name).collect()
    }

    pub fn a_up(&self) {
        let more = [&["--address", "10.9.0.1/24"], self.more].concat();
        self.a.up_over("pt0", &self.names(), &more).unwrap();
    }

    pub fn b_up(&self) {
        let more = [&["--address", "10.9.0.2/24"], self.more].concat();
        self.b.up_over("pt0", &self.names(), &more).unwrap();
    }

    /// Until each knows the other, by all links.
    pub fn wait(&self) {
        for host in [&self.a, &self.b] {
            wait_for("the peer on every link", SOON, || {
                let peers = host.status().map(|status| status.peers);
                peers.is_ok_and(|peers| {
                    let mut up = peers.iter().filter(|peer| peer.up);
                    up.any(|peer| peer.links.len() >= self.cables.len())
                })
            })
            .unwrap();
        }
    }

    pub fn judge_shares(&self, mebibytes: u64, are_right: impl Fn(&[f64]) -> bool) {
        let shares = || shares([&self.a, &self.b], mebibytes * MEBIBYTE);
        steady::judge("shares of the links", shares, |shares| are_right(shares));
    }

    /// Of each host, ever.
    pub fn drops(&self) -> [Counts; 2] {
        [&self.a, &self.b].map(|host| status(host).drops)
    }

    pub fn assert_all_used_again(&self) {
        assert_all_used_again([&self.a, &self.b]);
    }
}
