//! `packtrain whatif` against the line itself: what goes over a cable is as much as a replay says of the frames that were given to
//! the line meanwhile. They are captured while they are sent, so that both have the same ones at the same times.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use packtrain::lab::messages::{Load, measure_flows};
use packtrain::lab::{wait_for, wire};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::classes::add;
use crate::common::cabled::pause;
use crate::common::direct::wait_for_direct;
use crate::common::{B, Pair, packtrain, steady};

/// Frames a second that the cable passes. Not 1000: an acknowledgement leaves a millisecond after a train, and whether
/// another train comes before it is to be no matter of chance.
const CAP: u32 = 1500;
const MESSAGES_PER_SECOND: u64 = 5000;
const FLOWS: usize = 8;
const HEADERS_BYTES: usize = 14 + 20 + 8;
/// One that no class matches, and one whose messages wait for others.
const PORT: u16 = 7303;
const WAITING_PORT: u16 = 7304;
const PATIENCE: Duration = Duration::from_secs(5);

/// Messages in frames of so many bytes to this port, for a while.
fn send(pair: &Pair, port: u16, frame_bytes: usize) {
    let load = Load {
        size: frame_bytes - HEADERS_BYTES,
        duration: Duration::from_millis(600),
        rate_per_second: Some(MESSAGES_PER_SECOND),
        real_time: false,
    };
    let at = SocketAddr::new(B.parse().unwrap(), port);
    measure_flows((&pair.a.namespace, &pair.b.namespace), at, load, FLOWS).unwrap();
}

/// A file that goes with its test.
struct Captured(PathBuf);

impl Captured {
    /// What A gives to its line meanwhile.
    fn during(pair: &Pair, run: impl FnOnce()) -> Captured {
        let name = format!("packtrain-{}-foretold", std::process::id());
        let [file, said] = ["pcapng", "err"]
            .map(|kind| Captured(std::env::temp_dir().join(format!("{name}.{kind}"))));
        let path = file.0.to_str().unwrap();
        let words = pair
            .a
            .words(&["capture", "pt0", "--direction", "out", "-w", path]);
        let mut command = pair.a.namespace.command(words);
        let stderr = std::fs::File::create(&said.0).unwrap();
        let mut capture = command.stdin(Stdio::null()).stderr(stderr).spawn().unwrap();
        let says = |words: &str| std::fs::read_to_string(&said.0).unwrap().contains(words);
        wait_for("the capture to begin", PATIENCE, || {
            says("capturing on pt0")
        })
        .unwrap();
        run();
        // Until what has passed was read.
        pause(Duration::from_millis(200));
        kill_process(Pid::from_child(&capture), Signal::INT).unwrap();
        capture.wait().unwrap();
        assert!(
            says(" 0 dropped by the kernel"),
            "{}",
            std::fs::read_to_string(&said.0).unwrap()
        );
        file
    }

    /// Frames that go over the cable both ways for them.
    fn foretold(&self) -> f64 {
        let cap = CAP.to_string();
        let mut command = Command::new(packtrain());
        command.arg("whatif").arg(&self.0);
        // What a cable within a machine is like.
        command.args(["--packets-per-second", &cap, "--delay", "20us", "--json"]);
        command.args(["--class", "udp dport 7304; pack 5ms; name waiting"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["policies"][0]["sent"]["total"]["frames"]
            .as_f64()
            .unwrap()
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Frames on the cable for this load, foretold and counted.
fn frames(pair: &Pair, port: u16, frame_bytes: usize) -> [f64; 2] {
    let sent = || -> u64 {
        let sent = [&pair.a, &pair.b].map(|host| wire::sent(&host.namespace, "eth1").unwrap());
        sent.iter().map(|(frames, _)| frames).sum()
    };
    let (before, mut after) = (sent(), 0);
    let captured = Captured::during(pair, || {
        send(pair, port, frame_bytes);
        after = sent();
    });
    [captured.foretold(), (after - before) as f64]
}

#[test]
fn as_many_frames_go_over_a_cable_as_a_replay_has_foretold() {
    live!(alone, wire::shaping_unavailable());
    let pair = Pair::cable("foretold", 1500).unwrap();
    for host in [&pair.a, &pair.b] {
        wire::cap_packets(&host.namespace, "eth1", CAP).unwrap();
    }
    pair.a_up(&[]).unwrap();
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    let class = ["udp dport 7304", "--pack", "5ms"];
    add(&pair.a, "waiting", &class);
    wait_for_direct(&pair.a);
    // Those that wait first: the others close the direct path for a while, and a replay begins with it open.
    for (port, frame_bytes) in [(WAITING_PORT, 60), (PORT, 300)] {
        let what = format!("frames for messages to port {port}, foretold and counted");
        let measure = || frames(&pair, port, frame_bytes);
        steady::judge(&what, measure, |[foretold, counted]| {
            (foretold / counted - 1.0).abs() < 0.05
        });
    }
}
