//! A line that is made to change between its paths, again and again, while datagrams pass.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::host::Host;
use super::messages::{self, Load, Report};
use super::namespaces::Namespace;
use super::{Result, pause};
use crate::linux::netlink::Netlink;

/// How a line is made to change. An MTU that no link carries closes the direct path, and the links' opens it again.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The links'.
    pub mtu: u32,
    pub closed_for: Duration,
    /// Longer than the line's round trip, for so long no flow comes back to the direct path.
    pub open_for: Duration,
}

impl Pace {
    /// As often as frames go both ways on a line without a delay.
    pub fn often(mtu: u32) -> Pace {
        let interval = Duration::from_micros(2500);
        Pace {
            mtu,
            closed_for: interval,
            open_for: interval,
        }
    }
}

/// Flows of datagrams, each of a size of its own and on a port of its own.
#[derive(Clone, Copy, Debug)]
pub struct Flows<'a> {
    pub sizes: &'a [usize],
    pub rate_per_second: u64,
    pub duration: Duration,
}

impl Flows<'_> {
    /// Sends all at once to this address and the ports that follow, and gives what arrived of each.
    pub fn send(&self, from: &Namespace, to: &Namespace, at: SocketAddr) -> Result<Vec<Report>> {
        std::thread::scope(|scope| {
            let running: Vec<_> = (at.port()..)
                .zip(self.sizes)
                .map(|(port, &size)| {
                    let load = Load {
                        size,
                        duration: self.duration,
                        rate_per_second: Some(self.rate_per_second),
                        real_time: false,
                    };
                    let at = SocketAddr::new(at.ip(), port);
                    scope.spawn(move || messages::measure(from, to, at, load))
                })
                .collect();
            let joined = running.into_iter().map(|flow| flow.join());
            joined
                .map(|report| report.expect("a flow has no reason to panic"))
                .collect()
        })
    }
}

/// Runs `meanwhile` while the line of this host changes its path.
pub fn during<T: Send>(host: &Host, pace: Pace, meanwhile: impl FnOnce() -> T + Send) -> Result<T> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| change_until(host, pace, &ended));
        let result = meanwhile();
        ended.store(true, Ordering::Relaxed);
        changing
            .join()
            .expect("who changes has no reason to panic")?;
        Ok(result)
    })
}

fn change_until(host: &Host, pace: Pace, ended: &AtomicBool) -> Result<()> {
    let steps = [(pace.mtu + 1, pace.closed_for), (pace.mtu, pace.open_for)];
    let change = || -> Result<()> {
        let mut netlink = Netlink::open()?;
        let pt0 = netlink.link_by_name("pt0")?;
        let pt0 = pt0.ok_or_else(|| super::Error::Unexpected {
            program: "netlink".to_owned(),
            text: format!("no interface pt0 in {}", host.namespace.name()),
        })?;
        while !ended.load(Ordering::Relaxed) {
            for (mtu, duration) in steps {
                netlink.set_mtu(pt0.ifindex, mtu)?;
                pause(duration);
            }
        }
        Ok(())
    };
    host.namespace.in_namespace(change)?
}
