//! Wires between namespaces: veth pairs, bridges, and links of a given rate.

use std::sync::atomic::{AtomicU32, Ordering};

use super::namespaces::{Namespace, run};
use super::{Error, Result};

/// Far from what the kernel gives to interfaces.
const FIRST_INDEX: u32 = 1 << 16;
static CABLES: AtomicU32 = AtomicU32::new(0);

/// A cable: `a` and `b` are interfaces of the two hosts, both up.
pub fn veth(a: (&Namespace, &str), b: (&Namespace, &str)) -> Result<()> {
    // Two ends that happen to have the same index look like one interface to the kernel, which is in no hurry to
    // tell of its carrier: once a second.
    let index = FIRST_INDEX + CABLES.fetch_add(1, Ordering::Relaxed);
    // Made inside the first namespace, so that nothing ever shows up in the host's own.
    a.0.exec([
        "ip",
        "link",
        "add",
        a.1,
        "index",
        &index.to_string(),
        "type",
        "veth",
        "peer",
        "name",
        b.1,
        "netns",
        b.0.name(),
    ])?;
    for (host, interface) in [a, b] {
        host.exec(["ip", "link", "set", interface, "up"])?;
    }
    Ok(())
}

/// A switch in `host` over the given interfaces.
pub fn bridge(host: &Namespace, name: &str, ports: &[&str]) -> Result<()> {
    host.exec(["ip", "link", "add", name, "type", "bridge"])?;
    for port in ports {
        host.exec(["ip", "link", "set", port, "master", name])?;
    }
    host.exec(["ip", "link", "set", name, "up"]).map(drop)
}

pub fn set_mtu(host: &Namespace, interface: &str, mtu: u32) -> Result<()> {
    host.exec(["ip", "link", "set", interface, "mtu", &mtu.to_string()])
        .map(drop)
}

pub fn add_address(host: &Namespace, interface: &str, address: &str) -> Result<()> {
    // No duplicate address detection: an IPv6 address is otherwise tentative for a second.
    let mut words = vec!["ip", "address", "add", address, "dev", interface];
    if address.contains(':') {
        words.push("nodad");
    }
    host.exec(words).map(drop)
}

/// TCP flows to `network` by this interface are CUBIC from their first segment. A program that asks
/// for it once it is connected, as iperf3 does, gets a flow that is paced by timers for good where the
/// system's own choice is BBR.
pub fn cubic(host: &Namespace, network: &str, interface: &str) -> Result<()> {
    host.exec([
        "ip", "route", "change", network, "dev", interface, "congctl", "cubic",
    ])
    .map(drop)
}

/// Makes the interface send at `rate_mbit` at most, with a queue of packets as a NIC's.
pub fn shape(host: &Namespace, interface: &str, rate_mbit: u32) -> Result<()> {
    add_shaper(host, interface)?;
    set_rate(host, interface, rate_mbit)
}

/// … of some Gbit/s: with so little as a bucket for slow ones its timer would be late for each frame.
pub fn shape_fast(host: &Namespace, interface: &str, rate_mbit: u32) -> Result<()> {
    add_shaper(host, interface)?;
    set_rate_with(host, interface, rate_mbit, "128k")
}

fn add_shaper(host: &Namespace, interface: &str) -> Result<()> {
    let shaper = ["root", "handle", "1:", "htb", "default", "1"];
    let words = ["tc", "qdisc", "replace", "dev", interface].into_iter();
    let words: Vec<&str> = words.chain(shaper).collect();
    host.exec(words).map(drop)
}

/// Makes an interface that is shaped already faster or slower.
pub fn set_rate(host: &Namespace, interface: &str, rate_mbit: u32) -> Result<()> {
    set_rate_with(host, interface, rate_mbit, "15k")
}

fn set_rate_with(host: &Namespace, interface: &str, rate_mbit: u32, burst: &str) -> Result<()> {
    let rate = format!("{rate_mbit}mbit");
    // Charged by the bytes of the frame. `overhead 24` would add Ethernet's FCS, preamble and gap,
    // but once for a whole GSO frame: it would favour who sends those.
    host.exec([
        "tc", "class", "replace", "dev", interface, "parent", "1:", "classid", "1:1", "htb",
        "rate", &rate, "ceil", &rate, "burst", burst, "cburst", burst,
    ])
    .map(drop)
}

/// What [`cap_packets`] takes each packet for, bytes: more than any that is not of several segments.
const CAPPED_PACKET_BYTES: u64 = 2000;

/// Makes the interface send so many packets a second at most, however long each is, with a queue as a NIC's. A GSO
/// frame counts as one.
pub fn cap_packets(host: &Namespace, interface: &str, per_second: u32) -> Result<()> {
    let rate = format!("{}bit", u64::from(per_second) * CAPPED_PACKET_BYTES * 8);
    // A size table, whose least size is above all that come.
    let least = CAPPED_PACKET_BYTES.to_string();
    host.exec([
        "tc",
        "qdisc",
        "replace",
        "dev",
        interface,
        "root",
        "handle",
        "1:",
        "stab",
        "mpu",
        &least,
        "mtu",
        "2048",
        "tsize",
        "512",
        "linklayer",
        "ethernet",
        "htb",
        "default",
        "1",
    ])?;
    host.exec([
        "tc", "class", "replace", "dev", interface, "parent", "1:", "classid", "1:1", "htb",
        "rate", &rate, "ceil", &rate, "burst", "15k", "cburst", "15k",
    ])
    .map(drop)
}

/// All packets that arrive on the interface are worked on by one CPU. Two CPUs that take turns
/// reorder even a bare veth, and no measurement is steady.
pub fn receive_on_cpu(host: &Namespace, interface: &str, cpu: usize) -> Result<()> {
    let mask = format!("{:x}", 1u64 << cpu);
    host.sh(&format!(
        "for queue in /sys/class/net/{interface}/queues/rx-*; do echo {mask} > $queue/rps_cpus; done"
    ))
    .map(drop)
}

/// Packets that arrive on the interface are worked on by the CPU that they come to: on a veth the sender's. So it is
/// where nobody has set anything.
pub fn receive_where_they_come(host: &Namespace, interface: &str) -> Result<()> {
    host.sh(&format!(
        "for queue in /sys/class/net/{interface}/queues/rx-*; do echo 0 > $queue/rps_cpus; done"
    ))
    .map(drop)
}

/// Frames and bytes that the interface has sent, as its driver counts: packets of the wire, not
/// GSO frames, where the driver segments.
pub fn sent(host: &Namespace, interface: &str) -> Result<(u64, u64)> {
    let read = |what: &str| -> Result<u64> {
        let text = host.exec([
            "cat",
            &format!("/sys/class/net/{interface}/statistics/tx_{what}"),
        ])?;
        text.trim().parse().map_err(|_| Error::Unexpected {
            program: format!("statistics/tx_{what}"),
            text,
        })
    };
    Ok((read("packets")?, read("bytes")?))
}

/// Segments that the host's TCP, MPTCP's subflows included, has sent again so far.
pub fn tcp_sent_again(host: &Namespace) -> Result<u64> {
    counter(host, SNMP, "Tcp:", "RetransSegs")
}

/// Datagrams that came to sockets of the host whose program did not read in time.
pub fn udp_not_read_in_time(host: &Namespace) -> Result<u64> {
    counter(host, SNMP, "Udp:", "RcvbufErrors")
}

/// What the host's MPTCP has counted so far under this name.
pub fn mptcp_counter(host: &Namespace, name: &str) -> Result<u64> {
    counter(host, NETSTAT, "MPTcpExt:", name)
}

/// IPv4 packets that came to the host with *Congestion Experienced*.
pub fn congestion_experienced(host: &Namespace) -> Result<u64> {
    counter(host, NETSTAT, "IpExt:", "InCEPkts")
}

const SNMP: &str = "/proc/thread-self/net/snmp";
const NETSTAT: &str = "/proc/thread-self/net/netstat";

/// One counter of the host's kernel, by its names in that file.
fn counter(host: &Namespace, file: &str, protocol: &str, wanted: &str) -> Result<u64> {
    let text = host.in_namespace(|| std::fs::read_to_string(file))?;
    let text = text.map_err(|source| Error::File {
        path: file.into(),
        source,
    })?;
    // Two lines of each protocol: names, and under them the numbers.
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let mut words = || lines.next().unwrap_or_default().split_whitespace();
    let (names, numbers) = (words(), words());
    names
        .zip(numbers)
        .find_map(|(name, number)| (name == wanted).then(|| number.parse().ok())?)
        .ok_or_else(|| Error::Unexpected {
            program: file.to_owned(),
            text: text.clone(),
        })
}

/// Whether `tc` of this kernel knows the shaper.
pub fn shaping_unavailable() -> Option<String> {
    let probe = || -> Result<()> {
        let host = Namespace::create("probe")?;
        shape(&host, "lo", 100)
    };
    super::unavailable().or_else(|| probe().err().map(|error| format!("no HTB: {error}")))
}

/// Turns an offload of an interface on or off, as `ethtool -K` does.
pub fn offload(host: &Namespace, interface: &str, feature: &str, on: bool) -> Result<()> {
    let value = if on { "on" } else { "off" };
    host.exec(["ethtool", "-K", interface, feature, value])
        .map(drop)
}

/// The version of a program, for the head of a report.
pub fn version_of(program: &str, flag: &str) -> String {
    run(program, [flag])
        .ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or_else(|| format!("{program}: not found"))
}
