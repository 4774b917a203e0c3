//! What is short behind the link, where nobody sees a queue: a wire that carries so many packets a second and no
//! more, which nobody has told the line. And what the line did meanwhile, as often as it can be asked.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::host::Host;
use super::messages::{self, Load, Report};
use super::one_link::Bench;
use super::one_link::path_use::PathCounts;
use super::standing::HeldLab;
use super::topology::{Change, TopologyOptions};
use super::{Error, Result, now, pause, wait_for};
use crate::control::{self, Request, Response};
use crate::status::{PeerPath, StatusDocument};

pub const PACKETS_PER_SECOND: u32 = 5000;
const PORT: u16 = 7109;
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
const DIRECT_WITHIN: Duration = Duration::from_secs(10);
const NAME: &str = "pt0";
/// A greeting or two are no load.
const LOAD_FRAMES: u64 = 20;

/// Two hosts, and such a wire between them. What was found out once is remembered for a while: each round
/// has one of its own.
#[derive(Debug)]
pub struct Capped {
    pub a: Host,
    pub b: Host,
    pub bare: SocketAddr,
    pub pt0: SocketAddr,
    /// It goes after the hosts.
    _lab: HeldLab,
}

impl Capped {
    pub fn set(tag: &str, packtrain: &Path, more: &[&str]) -> Result<Capped> {
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

    /// Messages from A to one of B's addresses, from so many sockets.
    pub fn send(&self, at: SocketAddr, load: Load, flows: usize) -> Result<Report> {
        let hosts = (&self.a.namespace, &self.b.namespace);
        messages::measure_flows(hosts, at, load, flows)
    }

    /// Notes which way A's frames took meanwhile.
    pub fn counted<T>(
        &self,
        bench: &mut Bench,
        (part, line): (&str, &'static str),
        measure: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let before = self.a.status()?;
        let result = measure()?;
        let after = self.a.status()?;
        bench.note_path(PathCounts::between(part, line, &before, &after));
        Ok(result)
    }

    /// Runs `load`, and gives what it gave and what was seen of A's line meanwhile.
    pub fn under<T>(&self, load: impl FnOnce() -> Result<T>) -> Result<(T, Vec<Look>)> {
        wait_for("the direct path", DIRECT_WITHIN, || {
            self.a.status().is_ok_and(|status| {
                let mut peers = status.peers.iter();
                peers.any(|peer| peer.path == PeerPath::Direct)
            })
        })?;
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| look_until(&self.a, &over));
            let result = load();
            over.store(true, Ordering::Relaxed);
            let looks = looking.join().expect("who looks has no reason to panic")?;
            Ok((result?, looks))
        })
    }
}

/// What was seen of the line, and when.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub at: Instant,
    /// That went past the engine.
    pub direct_frames: u64,
    pub closures: u64,
    pub trains: u64,
    /// Whole ones in trains.
    pub packed_frames: u64,
}

/// The last look before there was a load.
pub fn load_begins(looks: &[Look]) -> Option<&Look> {
    let frames = |look: &Look| look.direct_frames + look.packed_frames;
    let first = looks.first().map(frames)?;
    let begun = |look: &&Look| frames(look) < first + LOAD_FRAMES;
    looks.iter().take_while(begun).last()
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
                    direct_frames: status.direct.tx.frames,
                    closures: status.direct.closures,
                    trains: status.trains.tx.trains,
                    packed_frames: status.trains.tx.frames,
                });
            }
            pause(LOOK_INTERVAL);
        }
        looks
    };
    host.namespace.in_namespace(look)
}
