//! A cable between two hosts, which can be cut and mended.

use std::io;
use std::time::{Duration, Instant};

use super::namespaces::Namespace;
use super::{Error, Result, now, wire};
use crate::linux::netlink::{Monitor, NetEvent, Netlink, NetlinkError};

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
    monitor: Monitor,
    ifindex: u32,
}

/// When a cable was cut, and when the last of the two kernels had told its host so. What is lost in
/// between no program can know of.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub at: Instant,
    pub told: Instant,
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
            let monitor = host.in_namespace(Monitor::open)?;
            let monitor = monitor.map_err(|source| told_error(interface, source))?;
            let link = link.ok_or_else(|| Error::Unexpected {
                program: "netlink".to_owned(),
                text: format!("no interface {interface} in {}", host.name()),
            })?;
            Ok(End {
                netlink,
                monitor,
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

    /// Cuts it, and waits until both hosts have been told.
    pub fn cut_and_tell(&mut self, at: Side) -> Result<Cut> {
        let [a, b] = &mut self.ends;
        for end in [&mut *a, &mut *b] {
            end.forget_news()
                .map_err(|source| told_error(&self.name, source))?;
        }
        let (puller, ifindex) = match at {
            Side::A => (&mut a.netlink, a.ifindex),
            Side::B => (&mut b.netlink, b.ifindex),
        };
        let monitors = [(&mut a.monitor, a.ifindex), (&mut b.monitor, b.ifindex)];
        let moment = now();
        let told = std::thread::scope(|scope| {
            let told = monitors.map(|(monitor, ifindex)| {
                scope.spawn(move || told_of_no_carrier(monitor, ifindex))
            });
            puller.set_up(ifindex, false)?;
            let [a, b] = told.map(|thread| thread.join().expect("it has no reason to panic"));
            let of_both = a.and_then(|a| Ok(a.max(b?)));
            of_both.map_err(|source| told_error(&self.name, source))
        })?;
        Ok(Cut { at: moment, told })
    }

    /// Joins it again, and gives the moment before.
    pub fn mend(&mut self, at: Side) -> Result<Instant> {
        self.set(at, true)
    }

    /// Cuts it for some time after both hosts have been told.
    pub fn cut_for(&mut self, at: Side, duration: Duration) -> Result<()> {
        self.cut_and_tell(at)?;
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

impl End {
    fn forget_news(&mut self) -> io::Result<()> {
        while self.monitor.next_event()?.is_some() {}
        Ok(())
    }
}

/// Waits until the kernel says that the interface has no carrier.
fn told_of_no_carrier(monitor: &mut Monitor, ifindex: u32) -> io::Result<Instant> {
    const AT_MOST: Duration = Duration::from_secs(3);
    let begin = now();
    loop {
        while let Some(event) = monitor.next_event()? {
            if matches!(event, NetEvent::Link(link) if link.ifindex == ifindex && !link.carrier) {
                return Ok(now());
            }
        }
        let left = AT_MOST.checked_sub(begin.elapsed());
        let left = left.ok_or(io::ErrorKind::TimedOut)?;
        let fd = rustix::event::PollFd::new(monitor, rustix::event::PollFlags::IN);
        let left = left.try_into().expect("seconds");
        match rustix::event::poll(&mut [fd], Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn told_error(interface: &str, source: io::Error) -> Error {
    Error::Start {
        command: format!("news of {interface}"),
        source,
    }
}
