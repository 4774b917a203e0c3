//! A lab of a test's own, and the hosts in it, with a line over all wires of each.

use packtrain::lab::host::Host;
use packtrain::lab::standing::HeldLab;
use packtrain::lab::topology::{self, Name, Node, NodeKind, Topology};
use packtrain::settings::MTU_DEFAULT;

use super::packtrain;

#[derive(Debug)]
pub struct Standing {
    /// As in the topology: the `pt0`s are 10.9.0.1 and so on.
    pub hosts: Vec<Host>,
    /// It goes after them.
    pub lab: HeldLab,
}

impl Standing {
    pub fn up(tag: &str, topology: &Topology) -> Standing {
        let lab = HeldLab::up(tag, topology, packtrain()).unwrap();
        let host = |host: &Name| Host::new(lab.host(host.as_str()).unwrap(), packtrain());
        let hosts = topology.hosts.iter().map(|of| host(&of.name)).collect();
        Standing { hosts, lab }
    }

    /// Hosts of one letter and switches of more, with these wires between them: `a-b a-s1`. No wire has a
    /// rate.
    pub fn wired(tag: &str, wires: &str) -> Standing {
        let mut topology = Topology::new(tag);
        for wire in wires.split_whitespace() {
            let (from, to) = wire.split_once('-').expect("two ends");
            let [from, to] = [from, to].map(|end| add(&mut topology, end.parse().unwrap()));
            topology.connect(&from, &to, MTU_DEFAULT, Default::default());
        }
        Standing::up(tag, &topology)
    }
}

/// Once.
fn add(topology: &mut Topology, name: Name) -> Name {
    let is_there = topology.host(&name).is_some() || topology.node(&name).is_some();
    match name.as_str().len() {
        _ if is_there => {}
        1 => topology.hosts.push(topology::Host {
            name: name.clone(),
            packtrain: true,
            up: Vec::new(),
        }),
        _ => topology.nodes.push(Node {
            name: name.clone(),
            kind: NodeKind::Switch,
        }),
    }
    name
}
