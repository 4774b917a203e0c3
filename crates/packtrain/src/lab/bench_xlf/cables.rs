//! Two hosts, and between them a cable for each way, of an MTU of its own: what a frame may be at most is what this
//! bench is about.
//!
//! ```text
//!  a ─── eth0 ─── b      the bare one
//!    ─── eth1 ───        under pt0
//! ```

use std::path::Path;

use crate::lab::host::Host;
use crate::lab::measure;
use crate::lab::namespaces::Process;
use crate::lab::one_link::Bench;
use crate::lab::one_link::path_use::PathCounts;
use crate::lab::one_link::way::Way;
use crate::lab::{Result, wire};

/// What every way is, in the order of a first round.
pub const WAYS: [Way; 2] = [Way::Bare, Way::Pt0];

/// One cable.
#[derive(Clone, Copy, Debug)]
pub struct Cable {
    pub mtu: u16,
    /// It takes large segments whole, as a card does that cuts them itself; else each of its frames is one.
    pub whole: bool,
    /// By a queue of the kernel at its ends, which whoever sends can see; `None`: as much as the machine does.
    pub rate_mbit: Option<u32>,
}

/// What stands between the two hosts.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    pub bare: Cable,
    pub under_pt0: Cable,
    /// Of `packtrain up pt0`.
    pub up: &'a [&'a str],
}

#[derive(Debug)]
pub struct Cables {
    /// iperf3's other end.
    _server: Process,
    pub a: Host,
    pub b: Host,
}

impl Cables {
    pub fn set(packtrain: &Path, plan: Plan<'_>) -> Result<Cables> {
        let a = Host::create("xlf", packtrain)?;
        let b = Host::create("xlf", packtrain)?;
        let hosts = [&a, &b];
        lay(hosts, Way::Bare, plan.bare)?;
        lay(hosts, Way::Pt0, plan.under_pt0)?;
        for (number, host) in hosts.into_iter().enumerate() {
            let [bare, through] = WAYS.map(|way| way.addresses()[number].clone());
            wire::add_address(&host.namespace, Way::Bare.interface(), &bare)?;
            let up = [&["--address", through.as_str()], plan.up].concat();
            host.up(cable_of(Way::Pt0), &up)?;
            for way in WAYS {
                wire::cubic(&host.namespace, &way.subnet(), way.interface())?;
            }
        }
        for host in hosts {
            host.wait_for_peers(1)?;
        }
        Ok(Cables {
            _server: measure::iperf3_server(&b.namespace)?,
            a,
            b,
        })
    }

    /// Another way that is a line, over a cable of its own, with what `packtrain up` is told.
    pub fn add(&self, way: Way, cable: Cable, up: &[&str]) -> Result<()> {
        let hosts = [&self.a, &self.b];
        lay(hosts, way, cable)?;
        for (host, address) in hosts.into_iter().zip(way.addresses()) {
            let up = [&["--address", address.as_str()], up].concat();
            host.up_over(way.interface(), &[cable_of(way)], &up)?;
            wire::cubic(&host.namespace, &way.subnet(), way.interface())?;
        }
        for host in hosts {
            host.wait_for_peers_of(way.interface(), 1)?;
        }
        Ok(())
    }

    /// Frames that both hosts have sent by the cable of a way: A's, and B's.
    pub fn frames_sent(&self, way: Way) -> Result<[u64; 2]> {
        let sent = |host: &Host| wire::sent(&host.namespace, cable_of(way));
        Ok([sent(&self.a)?.0, sent(&self.b)?.0])
    }

    /// Notes which way A's frames through `pt0` took meanwhile.
    pub fn counted<T>(
        &self,
        bench: &mut Bench,
        part: &str,
        measure: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.counted_by(Way::Pt0.interface(), bench, part, measure)
    }

    /// … through this line.
    pub fn counted_by<T>(
        &self,
        line: &'static str,
        bench: &mut Bench,
        part: &str,
        measure: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let before = self.a.status_of(line)?;
        let result = measure()?;
        let after = self.a.status_of(line)?;
        bench.note_path(PathCounts::between(part, line, &before, &after));
        Ok(result)
    }
}

fn cable_of(way: Way) -> &'static str {
    way.cable().expect("no tunnel")
}

fn lay(hosts: [&Host; 2], way: Way, cable: Cable) -> Result<()> {
    let interface = cable_of(way);
    let [a, b] = hosts.map(|host| &host.namespace);
    wire::veth((a, interface), (b, interface))?;
    for host in [a, b] {
        wire::set_mtu(host, interface, cable.mtu.into())?;
        if !cable.whole {
            for feature in ["tso", "gso"] {
                wire::offload(host, interface, feature, false)?;
            }
        }
        if let Some(rate) = cable.rate_mbit {
            wire::shape(host, interface, rate)?;
        }
    }
    Ok(())
}
