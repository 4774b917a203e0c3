//! Samples of what is dropped, as people get them.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use packtrain::lab::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use super::{asks_for_others, filtered};
use crate::cli::host::{Host, PACKTRAIN};
use crate::common::undo::SOON;

fn sampling(host: &Host, arguments: &str) -> std::process::Child {
    let mut command = host.0.command([PACKTRAIN]);
    command
        .args(["filter", "sample", "eth1"])
        .args(arguments.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn what_is_dropped_is_seen_with_its_reason_and_its_rule() {
    live!();
    let (a, b) = filtered("");
    a.done("filter deny eth1 icmp --name silent");
    let child = sampling(&a, "-c 6 --reason denied,foreign_arp");
    // Both come for as long as it takes.
    wait_for("six samples", SOON * 2, || {
        asks_for_others(&b);
        b.sh("ping -n -c 1 -W 0.1 10.1.0.1 || true");
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        is_over(pid)
    })
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 6, "{text}");
    let has = |what: &str, why: &str| {
        text.lines()
            .any(|line| line.contains(what) && line.ends_with(why))
    };
    assert!(
        has("asks for 10.1.0.9", "ARP that concerns others"),
        "{text}"
    );
    assert!(
        has("icmp 10.1.0.2 > 10.1.0.1", "by a rule: silent"),
        "{text}"
    );
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("dropped frames sampled"), "{told}");
}

/// Nobody has waited for it yet.
fn is_over(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"))
    })
}

#[test]
fn a_file_of_samples_is_one_that_tshark_reads_and_ends_when_it_is_told_to() {
    live!((!packtrain::lab::namespaces::program_exists("tshark")).then(|| "no `tshark`".into()));
    let (a, b) = filtered("--dry-run");
    let path = std::env::temp_dir().join(format!("pt-samples-{}.pcapng", std::process::id()));
    let child = sampling(&a, &format!("-w {} -s 60", path.display()));
    let taken = wait_for("samples", SOON, || {
        asks_for_others(&b);
        std::fs::metadata(&path).is_ok_and(|file| file.len() > 400)
    });
    // Another one may not take them from it.
    let other = a.packtrain("filter sample eth1 --for 0.2");
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    taken.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(other.code, 10, "{}", other.err);
    assert!(
        other.err.contains("somebody samples it already"),
        "{}",
        other.err
    );
    assert!(output.status.success(), "{output:?}");
    let words = format!(
        "tshark -r {} -T fields -e frame.comment -e arp.dst.proto_ipv4",
        path.display()
    );
    let read = a.sh(&words);
    std::fs::remove_file(&path).unwrap();
    assert!(
        read.lines().any(
            |line| line.starts_with("foreign_arp: ARP that concerns others")
                && line.ends_with("10.1.0.9")
        ),
        "{read}"
    );
}

#[test]
fn sampling_ends_with_the_filter() {
    live!();
    let (a, _b) = filtered("");
    let mut child = sampling(&a, "");
    let mut told = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert!(line.starts_with("sampling what"), "{line}");
    a.done("filter off eth1");
    let mut text = String::new();
    told.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(9), "{text}");
    assert!(
        text.contains("the filter of eth1 has ended: its program is not on the interface any more"),
        "{text}"
    );
}
