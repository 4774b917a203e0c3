//! A segment for one application: a switch, two hosts that may have filters, a third station, and strangers.
//!
//! ```text
//!  host 10.7.0.1 ──┐
//!  peer 10.7.0.2 ──┤ switch ├── strangers
//! third 10.7.0.3 ──┘
//! ```
//! The interface of each is `eth1`. Addresses are the same each time, those of Ethernet too, so that what a server gives
//! to whom is the same.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::Value;

use super::Options;
use super::counted::Counted;
use super::outcome::Outcome;
use super::strangers::Strangers;
use crate::filter::document::{FilterDocument, policy_name};
use crate::lab::host::Host;
use crate::lab::namespaces::{self, Namespace, Process};
use crate::lab::stream::{self, Amount, Protocol};
use crate::lab::{Error, Result, now, port, wait_for, wire};

pub(super) const LINK: &str = "eth1";
pub(super) const HOST: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);
pub(super) const PEER: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 2);
pub(super) const THIRD: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 3);
pub(super) const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 1);
pub(super) const PEER6: Ipv6Addr = Ipv6Addr::new(0xfd07, 0, 0, 0, 0, 0, 0, 2);
pub(super) const HOST_MAC: &str = "02:00:0a:07:00:01";
pub(super) const PEER_MAC: &str = "02:00:0a:07:00:02";
pub(super) const THIRD_MAC: &str = "02:00:0a:07:00:03";

/// Debian's own, which has the packages.
pub(super) const PYTHON: &str = "/usr/bin/python3";

/// Longer than anything here takes that works at all.
pub(super) const SOON: Duration = Duration::from_secs(10);
/// For an answer that comes at once or not at all.
pub(super) const AT_ONCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) host: Host,
    pub(super) peer: Host,
    pub(super) third: Namespace,
    /// Its ports are called `to-host`, `to-peer` and `to-third`, and its bridge `switch`.
    pub(super) switch: Namespace,
    strangers: Option<Strangers>,
    directory: PathBuf,
    has_filters: bool,
}

impl Stage {
    pub(super) fn set(packtrain: &Path) -> Result<Stage> {
        let mut stage = Stage {
            host: Host::create("apps", packtrain)?,
            peer: Host::create("apps", packtrain)?,
            third: Namespace::create("apps")?,
            switch: Namespace::create("apps")?,
            strangers: None,
            directory: directory()?,
            has_filters: false,
        };
        // A switch says nothing of its own.
        stage
            .switch
            .sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        stage
            .switch
            .sh("ip link add strangers type veth peer name port \
             && ip link set strangers up && ip link set port up")?;
        let stations = [
            (&stage.host.namespace, "to-host", HOST_MAC, 1),
            (&stage.peer.namespace, "to-peer", PEER_MAC, 2),
            (&stage.third, "to-third", THIRD_MAC, 3),
        ];
        for (station, port, address, number) in stations {
            // No second in which IPv6 looks for somebody else with an address, but where that is the matter.
            for which in ["all", "default"] {
                station.sysctl(&format!("net/ipv6/conf/{which}/accept_dad"), "0")?;
            }
            station.sysctl("net/ipv6/conf/default/router_solicitation_delay", "0")?;
            wire::veth((station, LINK), (&stage.switch, port))?;
            station.sh(&format!(
                "ip link set {LINK} down && ip link set {LINK} address {address} && ip link set {LINK} up \
                 && ip address add 10.7.0.{number}/24 dev {LINK} \
                 && ip address add fd07::{number}/64 dev {LINK} nodad \
                 && ip route add 224.0.0.0/4 dev {LINK} && ip route add 255.255.255.255 dev {LINK}"
            ))?;
        }
        wire::bridge(
            &stage.switch,
            "switch",
            &["to-host", "to-peer", "to-third", "port"],
        )?;
        // As a plain switch: groups go everywhere. Nor does it keep LLDP to itself, as one without an own address.
        stage
            .switch
            .sh("ip link set switch type bridge mcast_snooping 0 group_fwd_mask 0x4000")?;
        wait_for("the switch to pass frames", SOON, || {
            ping(&stage.third, PEER.into()) && ping(&stage.third, HOST.into())
        })?;
        stage.strangers = Some(Strangers::begin(&stage.switch, "strangers")?);
        Ok(stage)
    }

    /// On both hosts; when it returns they have something to drop.
    pub(super) fn put_filters(&mut self, options: &Options, ports: bool) -> Result<()> {
        let mode = options.mode.to_possible_value().expect("none is hidden");
        let policy = policy_name(options.policy);
        let mut words = vec![
            "filter",
            "on",
            LINK,
            "--policy",
            policy,
            "--mode",
            mode.get_name(),
        ];
        if ports {
            words.extend(["--ports", "auto"]);
        }
        for host in [&self.host, &self.peer] {
            host.packtrain(&words)?;
        }
        self.has_filters = true;
        for host in [&self.host, &self.peer] {
            wait_for("a filter that drops", SOON, || {
                document(host).is_ok_and(|document| document.dropped.frames > 0)
            })?;
        }
        Ok(())
    }

    /// By both filters.
    pub(super) fn counted(&self) -> Result<Counted> {
        let mut counted = Counted::default();
        for host in [&self.host, &self.peer] {
            counted.add(&document(host)?);
        }
        Ok(counted)
    }

    /// A file of this stage alone, that goes with it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<String> {
        let path = self.path(name);
        std::fs::write(&path, bytes).map_err(|source| Error::File {
            path: path.clone(),
            source,
        })?;
        Ok(path)
    }

    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.path(name);
        std::fs::read(&path).map_err(|source| Error::File { path, source })
    }

    /// Empty until something is written there.
    pub(super) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// A script to its end. The last line that it prints is a document of what came of it.
    pub(super) fn python(&self, at: &Namespace, script: &str, words: &[&str]) -> Result<Outcome> {
        let said = at.exec([&[PYTHON, "-c", script], words].concat())?;
        let document = said.lines().last().map(serde_json::from_str);
        match document {
            Some(Ok(Value::Object(document))) => Ok(Outcome::of(document)),
            _ => Err(Error::Unexpected {
                program: "python3".to_owned(),
                text: said,
            }),
        }
    }

    /// A network behind a host, which passes on what is for it: `far` has the second address of each.
    pub(super) fn network_behind(&self, router: &Namespace, mtu: u32) -> Result<Namespace> {
        let far = Namespace::create("apps")?;
        far.sysctl("net/ipv6/conf/default/accept_dad", "0")?;
        wire::veth((router, "eth2"), (&far, LINK))?;
        for (host, interface) in [(router, "eth2"), (&far, LINK)] {
            wire::set_mtu(host, interface, mtu)?;
        }
        router.sysctl("net/ipv4/ip_forward", "1")?;
        router.sysctl("net/ipv6/conf/all/forwarding", "1")?;
        router.sh(
            "ip address add 10.8.0.1/24 dev eth2 && ip address add fd08::1/64 dev eth2 nodad",
        )?;
        far.sh(&format!(
            "ip address add 10.8.0.2/24 dev {LINK} && ip address add fd08::2/64 dev {LINK} nodad \
             && ip route add default via 10.8.0.1 && ip -6 route add default via fd08::1"
        ))?;
        Ok(far)
    }
}

pub(super) const FAR: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 2);
pub(super) const FAR6: Ipv6Addr = Ipv6Addr::new(0xfd08, 0, 0, 0, 0, 0, 0, 2);

impl Drop for Stage {
    fn drop(&mut self) {
        self.strangers = None;
        if self.has_filters {
            for host in [&self.host, &self.peer] {
                // What does not end so ends with the namespace.
                let _ = host.packtrain(&["filter", "off"]);
            }
        }
        // All at once: each by itself looks at every process of the machine.
        let stations = [
            &self.host.namespace,
            &self.peer.namespace,
            &self.third,
            &self.switch,
        ];
        namespaces::remove(&stations.map(|station| station.name().to_owned()));
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn directory() -> Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("packtrain-applications-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let made = std::fs::create_dir(&path);
    made.map_err(|source| Error::File {
        path: path.display().to_string(),
        source,
    })?;
    Ok(path)
}

fn document(host: &Host) -> Result<FilterDocument> {
    let text = host.packtrain(&["filter", "status", LINK, "--json"])?;
    serde_json::from_str(&text).map_err(|error| Error::Unexpected {
        program: "packtrain filter status --json".to_owned(),
        text: format!("{error}: {text}"),
    })
}

/// Whether one is answered, at once.
pub(super) fn ping(from: &Namespace, to: IpAddr) -> bool {
    pings(from, to, 1) == 1
}

/// How many of so many are answered, each at once.
pub(super) fn pings(from: &Namespace, to: IpAddr, count: u32) -> u32 {
    pings_of(from, &to.to_string(), count, 56)
}

/// As above, with so many bytes in each.
pub(super) fn pings_of(from: &Namespace, to: &str, count: u32, bytes: u32) -> u32 {
    let (count, bytes) = (count.to_string(), bytes.to_string());
    let words = [
        "ping", "-n", "-q", "-c", &count, "-i", "0.02", "-W", "0.9", "-s", &bytes, to,
    ];
    let Ok(output) = from.try_exec(words) else {
        return 0;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let received = said.split(" received").next().unwrap_or_default();
    received
        .rsplit(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Bytes of a connection that came whole and right.
pub(super) fn transfer(
    from: &Namespace,
    to: &Namespace,
    at: SocketAddr,
    bytes: u64,
) -> Result<Outcome> {
    let transfer = stream::transfer(from, to, at, Amount::Bytes(bytes), Protocol::Tcp, now())?;
    Ok(Outcome::new()
        .wanted("bytes", transfer.right_bytes, bytes)
        .wanted("whole", transfer.is_whole(), true))
}

/// What it gives when all is right.
pub(super) fn transfer_of(bytes: u64) -> Outcome {
    Outcome::new().with("bytes", bytes).with("whole", true)
}

/// Why something of an application did not come to pass.
pub(super) fn unexpected(program: &str, text: impl Into<String>) -> Error {
    Error::Unexpected {
        program: program.to_owned(),
        text: text.into(),
    }
}

/// An error of a socket, with what it was for.
pub(super) fn socket_error(what: &str) -> impl Fn(std::io::Error) -> Error + '_ {
    move |source| Error::Start {
        command: what.to_owned(),
        source,
    }
}

/// A socket of a host, that waits for what comes at once or not at all.
pub(super) fn udp(at: &Namespace, local: SocketAddr) -> Result<UdpSocket> {
    let open = || {
        let socket = port::bind(local)?;
        socket.set_read_timeout(Some(AT_ONCE))?;
        Ok(socket)
    };
    at.in_namespace(open)?
        .map_err(socket_error(&format!("socket at {local}")))
}

/// A program that serves, once somebody has this port.
pub(super) fn serve(
    at: &Namespace,
    words: &[&str],
    protocol: ListensBy,
    port: u16,
) -> Result<Process> {
    let mut server = at.spawn(words)?;
    let mut has_ended = false;
    let waited = wait_for(&format!("{} at port {port}", words[0]), SOON, || {
        has_ended = !server.is_running();
        has_ended || listens(at, protocol, port)
    });
    if has_ended {
        // It says why.
        let said = server.finish()?;
        return Err(unexpected(words[0], said));
    }
    waited?;
    Ok(server)
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ListensBy {
    Tcp,
    Udp,
}

fn listens(at: &Namespace, protocol: ListensBy, port: u16) -> bool {
    // State 0A is listening, 07 is what a socket for datagrams is always in.
    let (files, state) = match protocol {
        ListensBy::Tcp => (["tcp", "tcp6"], "0A"),
        ListensBy::Udp => (["udp", "udp6"], "07"),
    };
    let port = format!(":{port:04X}");
    let read = || {
        files.map(|file| {
            std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default()
        })
    };
    let Ok(texts) = at.in_namespace(read) else {
        return false;
    };
    texts.iter().flat_map(|text| text.lines()).any(|line| {
        let mut words = line.split_whitespace();
        let local = words.nth(1).unwrap_or_default();
        local.ends_with(&port) && words.nth(1) == Some(state)
    })
}

/// The Ethernet address by which a host knows another one, if it does.
pub(super) fn neighbour(of: &Namespace, address: IpAddr) -> Option<String> {
    let said = of
        .exec(["ip", "neigh", "show", &address.to_string(), "dev", LINK])
        .ok()?;
    let mut words = said.split_whitespace();
    words.find(|&word| word == "lladdr")?;
    words.next().map(str::to_owned)
}

/// Waits for it to be this one, and gives what it is at last.
pub(super) fn neighbour_becomes(
    of: &Namespace,
    address: IpAddr,
    wanted: &str,
    at_most: Duration,
) -> String {
    let mut last = None;
    // What it is instead is an outcome as well.
    let _ = wait_for("a neighbour", at_most, || {
        last = neighbour(of, address);
        last.as_deref() == Some(wanted)
    });
    last.unwrap_or_else(|| "unknown".to_owned())
}

/// Any port of any address of that family.
pub(super) fn any_port(of: IpAddr) -> SocketAddr {
    match of {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}
