//! What is short behind the link, where nobody sees a queue: a wire that carries so many packets a second
//! and no more, which nobody has told the line. How long until that is found, and what is delivered then.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::LINES;
use crate::control::{self, Request, Response};
use crate::lab::figure::{Target, Unit};
use crate::lab::host::Host;
use crate::lab::messages::{self, Load, Report};
use crate::lab::one_link::Bench;
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::path_use::PathCounts;
use crate::lab::one_link::way::Way;
use crate::lab::standing::HeldLab;
use crate::lab::topology::{Change, TopologyOptions};
use crate::lab::{Error, Result, now, pause, wait_for};
use crate::status::{PeerPath, StatusDocument};

const PACKETS_PER_SECOND: u64 = 5000;
/// Six times what the wire carries one by one, and little for it when they are packed. Fewer than those
/// that close the direct path because they are many.
const MESSAGES: Load = Load {
    size: 40,
    duration: Duration::from_secs(3),
    rate_per_second: Some(30_000),
    real_time: false,
};
const PORT: u16 = 7109;
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
const DIRECT_WITHIN: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_millis(500);
const NAME: &str = "pt0";

/// Two hosts, and such a wire between them. What was found out once is remembered for a while: each round
/// has one of its own.
struct Capped {
    a: Host,
    b: Host,
    bare: SocketAddr,
    pt0: SocketAddr,
    /// It goes after the hosts.
    _lab: HeldLab,
}

impl Capped {
    fn set(tag: &str, packtrain: &Path, more: &[&str]) -> Result<Capped> {
        let cap = PACKETS_PER_SECOND.to_string();
        let options = TopologyOptions {
            links: 1,
            wires: Change {
                rate: Some("none".parse().expect("no rate is a rate")),
                packets_per_second: Some(cap.parse().expect("a number is a rate of packets")),
                queue: Some("1000p".parse().expect("packets are a queue")),
                ..Change::default()
            },
            ..TopologyOptions::default()
        };
        let mut topology = options.topology().expect("two hosts and a wire");
        for host in &mut topology.hosts {
            host.up = more.iter().map(|&word| word.to_owned()).collect();
        }
        let lab = HeldLab::up(tag, &topology, packtrain)?;
        let host = |name: &str| Ok::<_, Error>(Host::new(lab.host(name)?, packtrain));
        let (a, b) = (host("a")?, host("b")?);
        for host in [&a, &b] {
            // A TAP has several bands, over which nothing goes direct.
            let replace = "tc qdisc replace dev eth0 root pfifo";
            host.namespace.sh(replace)?;
        }
        let of_b = &lab.addresses()[1];
        let at = |address: std::net::Ipv4Addr| SocketAddr::new(address.into(), PORT);
        Ok(Capped {
            bare: at(of_b.links[0].1),
            pt0: at(of_b.main),
            a,
            b,
            _lab: lab,
        })
    }

    fn send(&self, at: SocketAddr) -> Result<Report> {
        messages::measure(&self.a.namespace, &self.b.namespace, at, MESSAGES)
    }
}

/// What was seen of the direct path, and when.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    frames: u64,
    closures: u64,
}

/// From the last look before frames went directly until the first at which the path was closed. A greeting
/// or two are no load.
fn found_after(looks: &[Look]) -> Option<Duration> {
    const LOAD_FRAMES: u64 = 20;
    let first = looks.first()?;
    let begun = |look: &&Look| look.frames < first.frames + LOAD_FRAMES;
    let begin = looks.iter().take_while(begun).last()?;
    let closed = looks.iter().find(|look| look.closures > first.closures)?;
    Some(closed.at.saturating_duration_since(begin.at))
}

/// Looks at the line as often as it can be asked, until `over`.
fn look_until(host: &Host, over: &AtomicBool) -> Result<Vec<Look>> {
    let look = || {
        let mut looks = Vec::new();
        while !over.load(Ordering::Relaxed) {
            if let Ok(Response::Status(document)) = control::request(NAME, Request::Status {})
                && let Ok(status) = serde_json::from_value::<StatusDocument>(document)
            {
                looks.push(Look {
                    at: now(),
                    frames: status.direct.tx.frames,
                    closures: status.direct.closures,
                });
            }
            pause(LOOK_INTERVAL);
        }
        looks
    };
    host.namespace.in_namespace(look)
}

/// What arrived, and after how long the wire was found to be short of packets.
fn under_load(capped: &Capped) -> Result<(Report, Option<Duration>)> {
    wait_for("the direct path", DIRECT_WITHIN, || {
        capped.a.status().is_ok_and(|status| {
            let mut peers = status.peers.iter();
            peers.any(|peer| peer.path == PeerPath::Direct)
        })
    })?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| look_until(&capped.a, &over));
        let report = capped.send(capped.pt0);
        over.store(true, Ordering::Relaxed);
        let looks = looking.join().expect("who looks has no reason to panic")?;
        Ok((report?, found_after(&looks)))
    })
}

pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let part = "40 B UDP, a wire of 5000 packets/s";
    let mut delivered = Runs::of_ways(&LINES);
    let mut found_us = Vec::new();
    for round in 0..bench.rounds {
        eprintln!("{part}: round {} of {}", round + 1, bench.rounds);
        // The bare wire is tried beside the line that has nothing to find out.
        let engine = Capped::set("capengine", packtrain, &["--path", "engine"])?;
        delivered.push(Way::Bare, engine.send(engine.bare)?);
        pause(SETTLE);
        delivered.push(
            Way::Engine,
            counted(bench, (part, "engine"), &engine, || engine.send(engine.pt0))?,
        );
        drop(engine);
        let auto = Capped::set("capauto", packtrain, &[])?;
        let (report, found) = counted(bench, (part, NAME), &auto, || under_load(&auto))?;
        delivered.push(Way::Pt0, report);
        let found = found.map_or(f64::NAN, |after| after.as_secs_f64());
        found_us.push(found * 1e6);
    }
    bench.compare(
        "a wire of 5000 packets/s that nobody configured, under 30,000 messages/s: found after",
        Unit::Microseconds,
        Target::AtMost(0.5e6),
        Runs::of_pt0(found_us),
    );
    bench.compare(
        "  … delivered over it",
        Unit::PerSecond,
        Target::RatioShown,
        delivered.map(|report| report.delivered_per_second),
    );
    bench.compare(
        "  … p99 delay",
        Unit::Microseconds,
        Target::RatioShown,
        delivered.map(|report| report.delay_p99_us),
    );
    Ok(())
}

/// Notes which way the frames took meanwhile.
fn counted<T>(
    bench: &mut Bench,
    (part, line): (&'static str, &'static str),
    capped: &Capped,
    measure: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let before = capped.a.status()?;
    let result = measure()?;
    let after = capped.a.status()?;
    bench.note_path(PathCounts::between(part, line, &before, &after));
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_from_the_first_load_on_until_the_path_closes() {
        let start = now();
        let look = |ms, frames, closures| Look {
            at: start + Duration::from_millis(ms),
            frames,
            closures,
        };
        let idle = [look(0, 100, 1), look(2, 103, 1)];
        let loaded = [look(4, 160, 1), look(6, 220, 1)];
        let closed = [look(8, 260, 2), look(10, 260, 2)];
        let all = [&idle[..], &loaded, &closed].concat();
        assert_eq!(found_after(&all), Some(Duration::from_millis(6)));
        assert_eq!(found_after(&[&idle[..], &loaded].concat()), None);
        assert_eq!(found_after(&[]), None);
        // Closed by something else before there was any load: not earlier than at once.
        let at_once = [look(0, 100, 1), look(2, 100, 2)];
        assert_eq!(found_after(&at_once), Some(Duration::ZERO));
    }
}
