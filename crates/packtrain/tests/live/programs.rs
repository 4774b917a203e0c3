//! Programs that people use, over a line: what they say of it, and what they leave.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use packtrain::lab::measure::{bulk, iperf3, iperf3_server};
use packtrain::lab::namespaces::program_exists;
use packtrain::lab::{unavailable, wait_for, wire};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{B, Pair, packtrain, pattern, steady};

fn without(program: &str) -> Option<String> {
    unavailable().or_else(|| (!program_exists(program)).then(|| format!("no `{program}`")))
}

#[test]
fn iperf3_moves_tcp_both_ways_one_flow_and_several() {
    live!(without("iperf3"));
    let pair = Pair::up("iperf", 1500).unwrap();
    let _server = iperf3_server(&pair.b.namespace).unwrap();
    for more in [&[][..], &["-R"], &["-P", "8"], &["-P", "4", "-R"]] {
        let run = || bulk(&pair.a.namespace, B, Duration::from_secs(1), more).unwrap();
        steady::judge(&format!("iperf3 {more:?}"), run, |result| {
            result.goodput_bps > 50e6
        });
    }
    let both_ways = || {
        let words = ["iperf3", "-J", "-t", "1", "--bidir", "-c", B];
        let result = iperf3(&pair.a.namespace, &words).unwrap();
        ["sum_received", "sum_received_bidir_reverse"].map(|sum| {
            let rate = result.pointer(&format!("/end/{sum}/bits_per_second"));
            rate.and_then(Value::as_f64).unwrap_or(0.0)
        })
    };
    steady::judge("iperf3 --bidir, bit/s", both_ways, |rates| {
        rates.iter().all(|&rate| rate > 10e6)
    });
}

#[test]
fn iperf3_moves_paced_udp_both_ways_without_loss_or_disorder() {
    live!(without("iperf3"));
    let pair = Pair::up("iperfu", 1500).unwrap();
    let _server = iperf3_server(&pair.b.namespace).unwrap();
    for (more, receiver) in [(&[][..], &pair.b), (&["-R"], &pair.a)] {
        let not_read_before = wire::udp_not_read_in_time(&receiver.namespace).unwrap();
        let mut words = vec![
            "iperf3", "-J", "-u", "-b", "20M", "-l", "500", "-t", "1", "-c", B,
        ];
        words.extend(more);
        let result = iperf3(&pair.a.namespace, &words).unwrap();
        let number = |what: &str| {
            result
                .pointer(&format!("/end/{what}"))
                .and_then(Value::as_f64)
                .unwrap()
        };
        // What came to the socket of a program that was away for long is not ours to lose.
        let not_read = wire::udp_not_read_in_time(&receiver.namespace).unwrap() - not_read_before;
        assert!(
            number("sum/lost_packets") - (not_read as f64) < 0.01 * number("sum/packets"),
            "{more:?}: {not_read} not read in time, {}",
            result["end"]["sum"]
        );
        let stream = &result["end"]["streams"][0]["udp"];
        assert_eq!(
            stream["out_of_order"].as_f64(),
            Some(0.0),
            "{more:?}: {stream}"
        );
    }
}

#[test]
fn nuttcp_says_that_it_sent_and_received_the_same() {
    live!(without("nuttcp"));
    let pair = Pair::up("nuttcp", 1500).unwrap();
    let _server = pair
        .b
        .namespace
        .spawn(["nuttcp", "-S", "--nofork"])
        .unwrap();
    for direction in ["-t", "-r"] {
        let run = || {
            let mut said = String::new();
            wait_for("nuttcp", Duration::from_secs(5), || {
                let output = pair
                    .a
                    .namespace
                    .try_exec(["nuttcp", direction, "-T1", "-fparse", B])
                    .unwrap();
                said = String::from_utf8_lossy(&output.stdout).into_owned();
                output.status.success() && said.contains("rate_Mbps=")
            })
            .unwrap();
            said
        };
        let rate = |said: &str| -> Option<f64> {
            let (_, rest) = said.split_once("rate_Mbps=")?;
            rest.split_whitespace().next()?.parse().ok()
        };
        steady::judge(&format!("nuttcp {direction}"), run, |said| {
            rate(said).unwrap_or(0.0) > 50.0
        });
    }
}

#[test]
fn rsync_leaves_the_same_files_at_the_other_side() {
    live!(without("rsync"));
    let pair = Pair::up("rsync", 1500).unwrap();
    let root = std::env::temp_dir().join(format!("packtrain-rsync-{}", std::process::id()));
    let (from, to) = (root.join("from"), root.join("to"));
    std::fs::create_dir_all(&from).unwrap();
    std::fs::create_dir_all(&to).unwrap();
    for n in 0..200u64 {
        let bytes: Vec<u8> = (0..n * 37).map(|i| pattern(i + n)).collect();
        std::fs::write(from.join(format!("small-{n}")), bytes).unwrap();
    }
    let large: Vec<u8> = (0..20 << 20).map(pattern).collect();
    std::fs::write(from.join("large"), large).unwrap();
    let config = root.join("rsyncd.conf");
    let text = format!(
        "use chroot = no\nuid = root\ngid = root\n[m]\npath = {}\n",
        from.display()
    );
    std::fs::write(&config, text).unwrap();
    let config = format!("--config={}", config.display());
    let _server = pair
        .b
        .namespace
        .spawn(["rsync", "--daemon", "--no-detach", "--port=8730", &config])
        .unwrap();
    let source = format!("rsync://{B}:8730/m/");
    let target = to.to_str().unwrap();
    wait_for("rsync", Duration::from_secs(20), || {
        let words = ["rsync", "-a", "--checksum", "--timeout=10", &source, target];
        pair.a.namespace.try_exec(words).unwrap().status.success()
    })
    .unwrap();
    let same = Command::new("diff")
        .args(["-r"])
        .args([&from, &to])
        .status()
        .unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    assert!(same.success());
}

/// Processes of this program that run now.
fn daemons_of(program: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program)
        })
        .count()
}

#[test]
fn the_demonstration_leaves_nothing_behind_when_it_is_interrupted() {
    live!(alone, without("iperf3"));
    let before = daemons_of(packtrain());
    let mut demo = Command::new(packtrain())
        .arg("demo")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ours = |pid: u32| -> usize {
        let marker = format!("-{pid}-");
        let entries = std::fs::read_dir("/run/netns")
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter(|e| e.file_name().to_string_lossy().contains(&marker))
            .count()
    };
    let pid = demo.id();
    wait_for("the demonstration's hosts", Duration::from_secs(10), || {
        ours(pid) >= 4
    })
    .unwrap();
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::INT).unwrap();
    let status = demo.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(ours(pid), 0);
    assert_eq!(daemons_of(packtrain()), before, "daemons before and after");
}
