//! Two hosts on a cable: one that floods, with a processor of its own as if it were the wire and all who send on it; and
//! one that gets it.

use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::mix::{HOST, HOST_MAC, PREFIX_LEN, WIRE, WIRE_MAC};
use crate::lab::namespaces::Namespace;
use crate::lab::{Error, Result, processors, wait_for};
use crate::linux::cpu_latency::NoSleep;
use crate::linux::netlink::Netlink;
use crate::linux::scheduling::let_run_in_real_time;

/// Who floods, and the host's.
pub const WIRE_CPU: usize = 0;
pub const HOST_CPU: usize = 1;

/// Which processor does what of the host's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The host has one processor for all: its driver (a thread of the kernel, so that its time is known), its stack, its
    /// programs. What it does not come to is lost in the driver's ring, as it is in a card's.
    OneProcessor,
    /// As in the paper: the driver puts frames into a backlog queue, behind which another processor is, and is told when that
    /// is full. The driver runs where the flood is made.
    Backlog,
}

const WIRE_END: &str = "wire0";
const THREAD_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Stage {
    pub wire: Namespace,
    pub host: Namespace,
    /// Of the host; no other host on this machine has one of this name.
    pub interface: String,
    pub host_ifindex: u32,
    pub wire_ifindex: u32,
    /// The thread of the driver, where it has one.
    driver: Option<u32>,
    /// None where the kernel does not choose: then a few frames are lost at loads that leave the processor time to sleep.
    _no_sleep: Option<NoSleep>,
}

impl Stage {
    pub fn set(layout: Layout) -> Result<Stage> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        if processors <= HOST_CPU {
            return Err(Error::Unavailable(
                "a flood and who gets it need a processor each, and there is one".into(),
            ));
        }
        let wire = Namespace::create("wire")?;
        let host = Namespace::create("host")?;
        let interface = format!("n{}", std::process::id());
        // Nobody says anything by himself.
        for namespace in [&wire, &host] {
            namespace.sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
            namespace.sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        }
        wire.sh(&format!(
            "ip link add {WIRE_END} address {WIRE_MAC} type veth peer name {interface} address {HOST_MAC} netns {} && \
             ip address add {WIRE}/{PREFIX_LEN} dev {WIRE_END}",
            host.name()
        ))?;
        // Without GRO or a program there, the driver takes no live frames at all.
        host.sh(&format!(
            "ip address add {HOST}/{PREFIX_LEN} dev {interface} && ethtool -K {interface} gro on && \
             ip link set {interface} up"
        ))?;
        // It looks when it comes up whether the other end takes them. A veth that can send large segments goes past the
        // other end's ring where there is no program: then what else it sends would meet no flood.
        wire.sh(&format!(
            "ethtool -K {WIRE_END} tso off && ip link set {WIRE_END} up"
        ))?;
        let mut stage = Stage {
            host_ifindex: ifindex_of(&host, &interface)?,
            wire_ifindex: ifindex_of(&wire, WIRE_END)?,
            wire,
            host,
            interface,
            driver: None,
            // A ring of 256 is full before a processor that sleeps has woken up. Not by threads that spin: a session that is
            // scheduled together has its part of the processor for them.
            _no_sleep: NoSleep::ask()
                .inspect_err(|error| eprintln!("processors may sleep meanwhile: {error}"))
                .ok(),
        };
        match layout {
            Layout::OneProcessor => stage.driver = Some(stage.thread_of_driver()?),
            Layout::Backlog => {
                let mask = 1_u32 << HOST_CPU;
                stage.host.sh(&format!(
                    "echo {mask:x} > /sys/class/net/{}/queues/rx-0/rps_cpus",
                    stage.interface
                ))?;
            }
        }
        Ok(stage)
    }

    /// From now on the driver is a thread, on the host's processor.
    fn thread_of_driver(&self) -> Result<u32> {
        self.host.sh(&format!(
            "echo 1 > /sys/class/net/{}/threaded",
            self.interface
        ))?;
        let name = format!("napi/{}-", self.interface);
        let mut found = None;
        wait_for("the thread of the driver", THREAD_WITHIN, || {
            found = thread_whose_name_begins(&name);
            found.is_some()
        })?;
        let thread = found.expect("waited for");
        let mut cpu = CpuSet::new();
        cpu.set(HOST_CPU);
        let pid = Pid::from_raw(thread as i32);
        let failed = |source| Error::File {
            path: format!("/proc/{thread}"),
            source,
        };
        sched_setaffinity(pid, &cpu).map_err(|errno| failed(errno.into()))?;
        // As the host's program: in turns, and before all else. Of the ordinary class, a session that is scheduled together
        // (`sched_autogroup`) weighs as much as this thread alone or far less, whatever its threads ask for.
        let_run_in_real_time(thread).map_err(failed)?;
        Ok(thread)
    }

    /// How long the driver has run, and the stack as far as it is called by it; zero where it is no thread.
    pub fn driver_ran(&self) -> Result<Duration> {
        self.driver.map_or(Ok(Duration::ZERO), processors::ran)
    }
}

fn ifindex_of(namespace: &Namespace, interface: &str) -> Result<u32> {
    let link = namespace.in_namespace(|| Netlink::open()?.link_by_name(interface))??;
    link.map(|link| link.ifindex)
        .ok_or_else(|| Error::Unavailable(format!("{interface} is not there, which was just made")))
}

fn thread_whose_name_begins(name: &str) -> Option<u32> {
    let entries = Path::new("/proc").read_dir().ok()?;
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .find(|id| {
            let comm = std::fs::read_to_string(format!("/proc/{id}/comm"));
            comm.is_ok_and(|comm| comm.starts_with(name))
        })
}
