//! What the kernel has counted of a flood, wherever something may become of a frame.

use std::ops::Sub;

use serde::Serialize;

use super::stage::{HOST_CPU, Stage};
use crate::lab::namespaces::Namespace;
use crate::lab::{Error, Result};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// That the host's driver took, whatever its program then did.
    pub driver: u64,
    /// That a program in it dropped.
    pub dropped: u64,
    /// For which its ring had no room.
    pub ring_lost: u64,
    /// That came out of the backlog queue of the host's processor, and that found it full.
    pub backlog: u64,
    pub backlog_full: u64,
    /// For which the program's socket had no room.
    pub socket_lost: u64,
    /// Segments of TCP that either host has sent again.
    pub sent_again: u64,
}

impl Counts {
    pub fn now(stage: &Stage) -> Result<Counts> {
        let here = stage.host.exec(["ethtool", "-S", &stage.interface])?;
        let there = stage.wire.exec(["ethtool", "-S", "wire0"])?;
        let [host, wire] = [&stage.host, &stage.wire].map(snmp);
        let (host, wire) = (host?, wire?);
        let softnet = read("/proc/net/softnet_stat")?;
        let (backlog, backlog_full) = of_backlog(&softnet, HOST_CPU).unwrap_or_default();
        Ok(Counts {
            driver: of_driver(&here, "rx_queue_", "_xdp_packets"),
            dropped: of_driver(&here, "rx_queue_", "_xdp_drops"),
            ring_lost: of_driver(&there, "tx_queue_", "_xdp_xmit_errors"),
            backlog,
            backlog_full,
            socket_lost: of_protocol(&host, "Udp:", "RcvbufErrors"),
            sent_again: [&host, &wire]
                .map(|text| of_protocol(text, "Tcp:", "RetransSegs"))
                .iter()
                .sum(),
        })
    }
}

impl Sub for Counts {
    type Output = Counts;

    fn sub(self, before: Counts) -> Counts {
        Counts {
            driver: self.driver - before.driver,
            dropped: self.dropped - before.dropped,
            ring_lost: self.ring_lost - before.ring_lost,
            backlog: self.backlog - before.backlog,
            backlog_full: self.backlog_full - before.backlog_full,
            socket_lost: self.socket_lost - before.socket_lost,
            sent_again: self.sent_again - before.sent_again,
        }
    }
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| Error::File {
        path: path.into(),
        source,
    })
}

fn snmp(namespace: &Namespace) -> Result<String> {
    namespace.in_namespace(|| read("/proc/thread-self/net/snmp"))?
}

/// The sum of all queues, of what `ethtool -S` says.
fn of_driver(text: &str, begins: &str, ends: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.trim().split_once(": "))
        .filter(|(name, _)| name.starts_with(begins) && name.ends_with(ends))
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

/// Processed and dropped; a processor that is off has no line.
fn of_backlog(text: &str, cpu: usize) -> Option<(u64, u64)> {
    const CPU_COLUMN: usize = 12;
    let number = |word: &str| u64::from_str_radix(word, 16).ok();
    text.lines().enumerate().find_map(|(line, words)| {
        let words: Vec<&str> = words.split_whitespace().collect();
        // Older kernels do not say whose line it is.
        let of = words
            .get(CPU_COLUMN)
            .map_or(Some(line as u64), |word| number(word));
        (of == Some(cpu as u64)).then_some(())?;
        Some((number(words.first()?)?, number(words.get(1)?)?))
    })
}

/// Names stand in one line, and what was counted in the next.
fn of_protocol(text: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (Some(names), Some(counts)) = (lines.next(), lines.next()) else {
        return 0;
    };
    let mut pairs = names.split_whitespace().zip(counts.split_whitespace());
    let found = pairs.find(|(of, _)| *of == name);
    found.and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_where_the_kernel_writes_them() {
        let ethtool = "NIC statistics:\n     peer_ifindex: 2\n     rx_queue_0_xdp_packets: 12\n     \
                       rx_queue_0_xdp_drops: 5\n     rx_queue_1_xdp_drops: 2\n     tx_queue_0_xdp_xmit_errors: 3\n";
        assert_eq!(of_driver(ethtool, "rx_queue_", "_xdp_packets"), 12);
        assert_eq!(of_driver(ethtool, "rx_queue_", "_xdp_drops"), 7);
        assert_eq!(of_driver(ethtool, "tx_queue_", "_xdp_xmit_errors"), 3);
        let zeros = "00000000 ".repeat(10);
        let softnet =
            format!("00004e56 00000001 {zeros}00000000\n0000184a 0000000a {zeros}00000001\n");
        assert_eq!(of_backlog(&softnet, 1), Some((0x184a, 10)));
        assert_eq!(of_backlog(&softnet, 2), None);
        assert_eq!(of_backlog("10 2\n20 3\n", 1), Some((0x20, 3)));
        let snmp = "Udp: InDatagrams NoPorts RcvbufErrors\nUdp: 7 1 4\n";
        assert_eq!(of_protocol(snmp, "Udp:", "RcvbufErrors"), 4);
        assert_eq!(of_protocol(snmp, "Tcp:", "RetransSegs"), 0);
    }
}
