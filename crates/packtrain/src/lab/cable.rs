//! A cable between two hosts, which can be cut and mended.

use std::time::{Duration, Instant};

use super::namespaces::Namespace;
use super::{Error, Result, now, wire};
use crate::linux::netlink::{Netlink, NetlinkError};

/// Which end somebody pulls. It is set down there, and the other has no carrier any more: what cutting
/// a cable is for one host each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    A,
    B,
}

/// A veth pair of one name at both ends. It goes with its hosts.
#[derive(Debug)]
pub struct Cable {
    name: String,
    ends: [End; 2],
}

#[derive(Debug)]
struct End {
    /// In the host's namespace, and open: what is measured in milliseconds is not to wait for a program.
    netlink: Netlink,
    ifindex: u32,
}

impl Cable {
    /// Both ends up, at the speed of the machine.
    pub fn lay(a: &Namespace, b: &Namespace, name: &str) -> Result<Cable> {
        wire::veth((a, name), (b, name))?;
        Cable::find((a, name), (b, name))
    }

    /// Both ends send at `rate_mbit` at most.
    pub fn lay_shaped(a: &Namespace, b: &Namespace, name: &str, rate_mbit: u32) -> Result<Cable> {
        let cable = Cable::lay(a, b, name)?;
        for host in [a, b] {
            wire::shape(host, name, rate_mbit)?;
        }
        Ok(cable)
    }

    /// One that is there already.
    pub fn find(a: (&Namespace, &str), b: (&Namespace, &str)) -> Result<Cable> {
        let end = |(host, interface): (&Namespace, &str)| -> Result<End> {
            let open = || -> std::result::Result<_, NetlinkError> {
                let mut netlink = Netlink::open()?;
                let link = netlink.link_by_name(interface)?;
                Ok((netlink, link))
            };
            let (netlink, link) = host.in_namespace(open)??;
            let link = link.ok_or_else(|| Error::Unexpected {
                program: "netlink".to_owned(),
                text: format!("no interface {interface} in {}", host.name()),
            })?;
            Ok(End {
                netlink,
                ifindex: link.ifindex,
            })
        };
        Ok(Cable {
            name: a.1.to_owned(),
            ends: [end(a)?, end(b)?],
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Cuts it, and gives the moment before.
    pub fn cut(&mut self, at: Side) -> Result<Instant> {
        self.set(at, false)
    }

    /// Joins it again, and gives the moment before.
    pub fn mend(&mut self, at: Side) -> Result<Instant> {
        self.set(at, true)
    }

    /// Cuts it for some time.
    pub fn cut_for(&mut self, at: Side, duration: Duration) -> Result<()> {
        self.cut(at)?;
        super::pause(duration);
        self.mend(at).map(drop)
    }

    fn set(&mut self, at: Side, up: bool) -> Result<Instant> {
        let end = &mut self.ends[at as usize];
        let moment = now();
        end.netlink.set_up(end.ifindex, up)?;
        Ok(moment)
    }
}
