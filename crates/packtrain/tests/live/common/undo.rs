//! Daemons that are killed, and what is left of their changes after.

use std::time::Duration;

use packtrain::lab::host::Host;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::wait_for;
use rustix::process::{Pid, Signal, kill_process};

pub const SOON: Duration = Duration::from_secs(6);

/// Sends the signal to the daemon of `pt0`, and waits for its end.
pub fn kill(host: &Host, signal: Signal) {
    let pid = host.status().unwrap().pid;
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
    wait_for("the daemon to end", SOON, || {
        // A zombie has ended too: whoever adopted it may be slow to look.
        std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| {
            stat.rsplit(')')
                .next()
                .is_some_and(|rest| rest.starts_with(" Z"))
        })
    })
    .unwrap();
}

/// Everything about a host that packtrain could have changed, as text.
pub fn dump(host: &Namespace) -> String {
    let volatile = "nf_conntrack_count\\|dev_weight\\|stable_secret\\|\\.nr_\\|random";
    host.sh(&format!(
        "ip -d link; ip -d address; ip route show table all; ip -6 route show table all;
         ip rule; ip maddress; tc qdisc show; for d in $(ls /sys/class/net); do
         echo == $d; tc filter show dev $d ingress; tc filter show dev $d egress; tc filter show dev $d;
         tc class show dev $d; ethtool -k $d; cat /sys/class/net/$d/queues/*/*_cpus; done 2>/dev/null;
         sysctl -a 2>/dev/null | grep '^net' | grep -v '{volatile}'; ls /sys/class/net"
    ))
    .unwrap()
}

/// The lines that are in one dump and not in the other.
pub fn difference(before: &str, after: &str) -> Vec<String> {
    let lost = before
        .lines()
        .filter(|line| !after.lines().any(|other| other == *line));
    let new = after
        .lines()
        .filter(|line| !before.lines().any(|other| other == *line));
    lost.map(|line| format!("- {line}"))
        .chain(new.map(|line| format!("+ {line}")))
        .collect()
}

pub fn assert_undone(before: &str, host: &Host, how: &str) {
    let mut left = Vec::new();
    let undone = wait_for("the changes to be undone", SOON, || {
        left = difference(before, &dump(&host.namespace));
        left.is_empty()
    });
    assert!(undone.is_ok(), "after {how}:\n{}", left.join("\n"));
}
