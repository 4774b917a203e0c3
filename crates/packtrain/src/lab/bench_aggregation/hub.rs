//! Work as of clients on a file server, over shared Ethernet of 10 Mbit/s: what the DFAP paper measured with
//! PostMark over NFS, and reports 2.7 for. Each client asks for 500 bytes with 500 bytes, again and again; how long all of
//! it takes is compared with the same over the bare hub, in the same lab, for each way of packing.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use super::TWO;
use super::conversations::{Amount, Answered, Conversations, Load, while_answered};
use crate::lab::figure::{Target, Unit};
use crate::lab::host::Host;
use crate::lab::one_link::Bench;
use crate::lab::one_link::figure::Runs;
use crate::lab::one_link::path_use::PathCounts;
use crate::lab::one_link::way::Way;
use crate::lab::standing::HeldLab;
use crate::lab::topology::{self, Direction, Topology, ready};
use crate::lab::{Result, now, pause};
use crate::settings::MTU_DEFAULT;
use crate::status::StatusDocument;

/// A way of packing, as every line of a lab has it.
struct Policy {
    name: &'static str,
    /// More words of `packtrain up`.
    up: &'static [&'static str],
    /// Of `packtrain class add`, when the lines stand; nothing adds no class.
    class: &'static [&'static str],
}

const POLICIES: [Policy; 8] = [
    Policy {
        name: "queued",
        up: &[],
        class: &[],
    },
    Policy {
        name: "500us",
        up: &[],
        class: &["--match", "any", "--pack", "500us"],
    },
    Policy {
        name: "2ms",
        up: &[],
        class: &["--match", "any", "--pack", "2ms"],
    },
    Policy {
        name: "scaled 2ms",
        up: &[],
        class: &["--match", "any", "--pack", "scaled 2ms"],
    },
    Policy {
        name: "auto",
        up: &[],
        class: &["--match", "any", "--pack", "auto"],
    },
    // The paper's protocol: its waits of 10 ms a tick, and its conclusion.
    Policy {
        name: "mode dfap, random",
        up: &["--mode", "dfap"],
        class: &[],
    },
    Policy {
        name: "mode dfap, straight",
        up: &["--mode", "dfap", "--pack", "dfap-straight"],
        class: &[],
    },
    Policy {
        name: "mode dfap, queued",
        up: &["--mode", "dfap", "--pack", "queued"],
        class: &[],
    },
];

const CLIENTS: usize = 7;
const BYTES: usize = 500;
const PORT: u16 = 7791;
/// What NFS asks for at once: a program that waits for each answer, and one that writes behind.
const AT_ONCE: [usize; 2] = [1, 8];
/// Of each client.
const QUESTIONS: u64 = 400;
const SETTLE: std::time::Duration = std::time::Duration::from_millis(300);

/// Seven clients and a server at the medium of the ready topology `hub`.
fn topology(policy: &Policy) -> Topology {
    let mut topology = Topology::new("nfs");
    topology.nodes = ready::find("hub").expect("it is a ready one").nodes;
    let hub = topology.nodes[0].name.clone();
    let clients = (1..=CLIENTS).map(|number| format!("c{number}"));
    for name in clients.chain(["server".to_owned()]) {
        topology.hosts.push(topology::Host {
            name: name.parse().expect("letters and a number are a name"),
            packtrain: true,
            up: policy.up.iter().map(|&word| word.to_owned()).collect(),
        });
    }
    for host in topology.hosts.clone() {
        let alike = [Direction::default(), Direction::default()];
        topology.connect(&host.name, &hub, MTU_DEFAULT, alike);
    }
    topology
}

/// The hosts of a lab: the server is the last.
struct Hosts {
    hosts: Vec<Host>,
    server: [(Way, IpAddr); 2],
    /// It goes after the hosts.
    _lab: HeldLab,
}

impl Hosts {
    fn set(policy: &Policy, packtrain: &Path) -> Result<Hosts> {
        let lab = HeldLab::up("hubagg", &topology(policy), packtrain)?;
        let names = lab.addresses().iter().map(|of| of.host.as_str());
        let hosts = names.map(|name| Ok(Host::new(lab.host(name)?, packtrain)));
        let hosts: Vec<Host> = hosts.collect::<Result<_>>()?;
        if !policy.class.is_empty() {
            for host in &hosts {
                host.packtrain(&[&["class", "add"], policy.class].concat())?;
            }
        }
        let of_server = lab.addresses().last().expect("a server is there");
        Ok(Hosts {
            server: [
                (Way::Bare, of_server.links[0].1.into()),
                (Way::Pt0, of_server.main.into()),
            ],
            hosts,
            _lab: lab,
        })
    }

    fn statuses(&self) -> Result<Vec<StatusDocument>> {
        self.hosts.iter().map(Host::status).collect()
    }

    /// All clients at once; how long until the last one is done, and what each was answered.
    fn work(&self, server: IpAddr, at_once: usize) -> Result<(f64, Vec<Answered>)> {
        let at = SocketAddr::new(server, PORT);
        let (server, clients) = self.hosts.split_last().expect("a server is there");
        let open = |client: &Host| {
            Conversations::open((&client.namespace, &server.namespace), at, at_once, BYTES)
        };
        let of: Vec<Conversations> = clients.iter().map(open).collect::<Result<_>>()?;
        let load = Load {
            amount: Amount::Questions(QUESTIONS),
            at_once,
        };
        let all_ask = || {
            let begin = now();
            let answered = std::thread::scope(|scope| {
                let asking: Vec<_> = of.iter().map(|of| scope.spawn(|| of.ask(load))).collect();
                let joined = asking.into_iter().map(|asking| asking.join());
                joined
                    .map(|answered| answered.expect("a client has no reason to panic"))
                    .collect::<Result<Vec<Answered>>>()
            })?;
            Ok((begin.elapsed().as_secs_f64(), answered))
        };
        while_answered(&of, None, all_ask)
    }
}

fn part(policy: &Policy, at_once: usize) -> String {
    let name = policy.name;
    format!("{BYTES} B requests, {CLIENTS} clients, {at_once} each at once, hub 10 Mbit/s: {name}")
}

/// What a run was: how long it took, and the longest of the clients' middle waits for an answer.
struct Worked {
    seconds: f64,
    answer_p50_us: f64,
}

/// Each round has a lab for each policy. Bare and `pt0` begin in turns.
pub fn measure(bench: &mut Bench, packtrain: &Path) -> Result<()> {
    let none = || AT_ONCE.map(|_| Runs::of_ways(&TWO));
    let mut runs: Vec<[Runs<Worked>; AT_ONCE.len()]> = POLICIES.iter().map(|_| none()).collect();
    for round in 0..bench.rounds {
        for (policy, runs) in POLICIES.iter().zip(&mut runs) {
            let name = policy.name;
            eprintln!("hub, {name}: round {} of {}", round + 1, bench.rounds);
            let hosts = Hosts::set(policy, packtrain)?;
            for (at_once, runs) in AT_ONCE.into_iter().zip(runs) {
                let mut ways = hosts.server;
                ways.rotate_left(round % TWO.len());
                for (way, server) in ways {
                    pause(SETTLE);
                    let before = hosts.statuses()?;
                    let (seconds, answered) = hosts.work(server, at_once)?;
                    if way == Way::Pt0 {
                        note(bench, &part(policy, at_once), &before, &hosts.statuses()?);
                    }
                    let p50 = answered.iter().map(|of| of.times.p50_us);
                    runs.push(
                        way,
                        Worked {
                            seconds,
                            answer_p50_us: p50.fold(0.0, f64::max),
                        },
                    );
                }
            }
        }
    }
    for (which, at_once) in AT_ONCE.into_iter().enumerate() {
        for (policy, runs) in POLICIES.iter().zip(&runs) {
            let part = part(policy, at_once);
            bench.compare_carried(
                &part,
                format!("{part}: time"),
                (Unit::Microseconds, Target::RatioShown),
                runs[which].map(|worked| worked.seconds * 1e6),
            );
            bench.compare_carried(
                &part,
                "  … until an answer, p50 of the slowest client",
                (Unit::Microseconds, Target::RatioShown),
                runs[which].map(|worked| worked.answer_p50_us),
            );
        }
    }
    Ok(())
}

/// What all hosts sent.
fn note(bench: &mut Bench, part: &str, before: &[StatusDocument], after: &[StatusDocument]) {
    for (before, after) in before.iter().zip(after) {
        bench.note_path(PathCounts::between(
            part,
            Way::Pt0.interface(),
            before,
            after,
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_hosts_are_at_one_medium_of_10_megabits() {
        for policy in &POLICIES {
            let topology = topology(policy);
            assert_eq!(topology.check(), []);
            assert_eq!(topology.hosts.len(), CLIENTS + 1);
            assert_eq!(topology.wires.len(), CLIENTS + 1);
            for wire in &topology.wires {
                let ends = [&wire.ends[0].node, &wire.ends[1].node];
                assert_eq!(topology.hub_rate_bps(ends), Some(10_000_000));
            }
        }
    }
}
