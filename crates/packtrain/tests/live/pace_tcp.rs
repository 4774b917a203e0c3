//! `packtrain pace tcp`: what slow start sends is spaced, on the wire; and connections come to it and are given back.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use packtrain::capture_file::CaptureFile;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::packtrain;
use crate::common::steady::judge;

const PATIENCE: Duration = Duration::from_secs(10);
const PORT: u16 = 5999;
const TO: &str = "10.9.0.2";
/// Of every segment that is full: what is shorter is an end of something.
const FULL_BYTES: usize = 1400;

/// Two hosts and a long wire, gone again with their test.
struct Lab {
    name: String,
}

impl Lab {
    /// `tag` is a letter.
    fn up(tag: char, wire: &[&str]) -> Lab {
        let name = format!("pct{}{tag}", std::process::id());
        let lab = Lab { name };
        lab.lab(
            "up",
            &[
                &["--links", "1", "--no-packtrain", "--port-rate", "1gbit"],
                wire,
            ]
            .concat(),
        );
        // Where BBR is what connections have by default they are paced already.
        let reno = ["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"];
        lab.host("a").exec(reno).unwrap();
        lab
    }

    fn lab(&self, command: &str, words: &[&str]) -> String {
        let mut whole = Command::new(packtrain());
        whole
            .args(["lab", command, "--lab", &self.name])
            .args(words);
        said(&mut whole)
    }

    fn host(&self, host: &str) -> Namespace {
        Namespace::standing(&format!("pt-{}-{host}", self.name))
    }

    fn pace(&self, words: &str) -> String {
        let packtrain = packtrain().to_str().expect("a path of letters");
        let words: Vec<&str> = words.split_whitespace().collect();
        self.host("a")
            .exec([&[packtrain, "pace"], &words[..]].concat())
            .unwrap()
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.pace("tcp status --json")).unwrap()
    }

    /// So many bytes from a to b, on a connection of their own.
    fn send(&self, bytes: usize) {
        self.send_by(|stream| stream.write_all(&vec![0; bytes]).unwrap());
    }

    fn send_by(&self, write: impl FnOnce(&mut TcpStream)) {
        let listener = self
            .host("b")
            .in_namespace(|| TcpListener::bind((TO, PORT)))
            .unwrap();
        let listener = listener.unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
                stream.write_all(b".").unwrap();
            });
            let stream = self
                .host("a")
                .in_namespace(|| TcpStream::connect((TO, PORT)))
                .unwrap();
            let mut stream = stream.unwrap();
            write(&mut stream);
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut end = Vec::new();
            stream.read_to_end(&mut end).unwrap();
            assert_eq!(end, b".");
        });
    }

    /// When full segments to b were on the wire, in microseconds since the first.
    fn captured_us(&self, during: impl FnOnce()) -> Vec<u64> {
        let file: PathBuf = std::env::temp_dir().join(format!("packtrain-{}.pcapng", self.name));
        let _ = fs::remove_file(&file);
        let capture = Command::new(packtrain())
            .args(["lab", "capture", "--lab", &self.name, "a-b.0", "-w"])
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = || fs::metadata(&file).is_ok_and(|file| file.len() > 0);
        wait_for("the capture to begin", PATIENCE, begun).unwrap();
        during();
        end(capture, Signal::INT);
        let mut times = Vec::new();
        let mut frames = CaptureFile::open(&file).unwrap();
        while let Some(frame) = frames.next_frame().unwrap() {
            let port = frame.bytes.get(36..38);
            if frame.len_on_wire >= FULL_BYTES && port == Some(&PORT.to_be_bytes()) {
                times.push(frame.at.unwrap().as_micros() as u64);
            }
        }
        fs::remove_file(&file).unwrap();
        times.sort_unstable();
        let first = times.first().copied().unwrap_or(0);
        times.iter().map(|at| at - first).collect()
    }

    fn congestion_control(&self) -> String {
        let text = self
            .host("a")
            .exec(["ss", "-tinH", "dport", &format!("= :{PORT}")])
            .unwrap();
        let details = text.lines().nth(1).expect("a line of details");
        details.split_whitespace().next().unwrap().to_owned()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = Command::new(packtrain())
            .args(["lab", "down", &self.name])
            .output();
    }
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn end(mut child: Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
    let ended = || child.try_wait().unwrap().is_some();
    wait_for("the process to end", PATIENCE, ended).unwrap();
}

/// The share of them that came a millisecond or more behind the one before. Ten are the first flight, which the kernel does not pace; of the 20
/// and 40 that follow a spaced one comes each 5 and 2.5 ms. A wire that was late has some of them together.
fn share_apart(times_us: &[u64]) -> f64 {
    let gaps = times_us[10..70].windows(2).map(|pair| pair[1] - pair[0]);
    let apart = gaps.clone().filter(|gap| *gap >= 1000).count();
    apart as f64 / gaps.count() as f64
}

#[test]
fn what_slow_start_sends_is_spread_over_the_round_trip_on_the_wire() {
    live!(alone);
    let lab = Lab::up(
        's',
        &["--rate", "100mbit", "--delay", "50ms", "--queue", "1mb"],
    );
    let apart = || share_apart(&lab.captured_us(|| lab.send(600_000)));
    // As fast as the wire is, in bursts of two for each acknowledgement.
    let plain = apart();
    assert!(plain < 0.3, "{plain} apart, where nothing is spaced");
    lab.pace("tcp on --precision 1ms");
    judge("share of segments that are apart", apart, |share| {
        *share > 0.8
    });
    let status = lab.status();
    assert!(
        status["counters"]["slow_starts"].as_u64() >= Some(1),
        "{status}"
    );
    lab.pace("tcp off");
    let after = apart();
    assert!(after < 0.3, "{after} apart after it was ended");
}

#[test]
fn a_second_connection_does_not_lose_what_the_first_one_did() {
    live!(alone);
    // A tenth of what is under way: 1.25 MB.
    let lab = Lab::up(
        'm',
        &["--rate", "100mbit", "--delay", "50ms", "--queue", "125kb"],
    );
    lab.host("a")
        .sysctl("net/ipv4/tcp_wmem", "4096 65536 16777216")
        .unwrap();
    lab.host("b")
        .sysctl("net/ipv4/tcp_rmem", "4096 131072 16777216")
        .unwrap();
    let dropped = || {
        let text = lab.lab("list", &["--json"]);
        let labs: Value = serde_json::from_str(&text).unwrap();
        let directions = labs[0]["wires"][0]["directions"]
            .as_array()
            .unwrap()
            .clone();
        let from_a = directions.into_iter().find(|d| d["from"] == "a").unwrap();
        let drops = from_a["dropped"].as_object().expect("by reason").values();
        drops.filter_map(Value::as_u64).sum::<u64>()
    };
    let lost = |bytes: usize| {
        let before = dropped();
        lab.send(bytes);
        dropped() - before
    };
    lab.pace("tcp on --hystart off");
    let first = lost(6_000_000);
    assert!(
        first > 20,
        "{first} lost by the first one, which does not know the path"
    );
    let path = lab.status()["paths"][0].clone();
    let rate = path["rate_bps"].as_u64().expect("it was full") as f64;
    judge(
        "frames lost by the second connection",
        || lost(6_000_000),
        // None, where the wires are on time: late ones bring what was spaced in bunches.
        |second| *second <= first / 2,
    );
    assert!((80e6..110e6).contains(&rate), "{path}");
    let status = lab.status();
    assert!(
        status["counters"]["ended_at_path"].as_u64() >= Some(1),
        "{status}"
    );
}

#[test]
fn connections_that_are_there_are_taken_and_given_back_and_after_kill_9_taken_again() {
    live!();
    let lab = Lab::up('e', &["--rate", "100mbit"]);
    let listener = lab
        .host("b")
        .in_namespace(|| TcpListener::bind((TO, PORT)))
        .unwrap();
    let listener = listener.unwrap();
    let stream = lab
        .host("a")
        .in_namespace(|| TcpStream::connect((TO, PORT)))
        .unwrap();
    let _stream = stream.unwrap();
    let (_other, _) = listener.accept().unwrap();
    let before = lab.congestion_control();
    assert!(!before.starts_with("packtrain"), "{before}");

    lab.pace("tcp on --only-new");
    assert_eq!(lab.congestion_control(), before);
    lab.pace("tcp off");
    lab.pace("tcp on");
    assert!(lab.congestion_control().starts_with("packtrain_cps"));
    assert_eq!(lab.status()["counters"]["taken_late"], 1);

    // It keeps what it has, and the next one finds it.
    let pid = lab.status()["pid"].as_u64().unwrap() as i32;
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    wait_for("the pacer to be gone", PATIENCE, || {
        let packtrain = packtrain().to_str().unwrap();
        let status = [packtrain, "pace", "tcp", "status"];
        lab.host("a").try_exec(status).unwrap().status.code() == Some(9)
    })
    .unwrap();
    assert!(lab.congestion_control().starts_with("packtrain_cps"));
    lab.pace("tcp on");
    assert_eq!(lab.status()["counters"]["taken_late"], 1);
    lab.pace("off");
    assert_eq!(lab.congestion_control(), before);
}

#[test]
fn only_connections_that_are_meant_are_taken_and_none_whose_application_has_chosen() {
    live!();
    let lab = Lab::up('o', &["--rate", "100mbit"]);
    let taken = || lab.status()["counters"]["taken"].as_u64().unwrap();
    for (options, expected) in [
        ("--dst 10.9.0.0/24", 1),
        ("--dst 192.0.2.0/24,fd00::/8", 0),
        ("--dport 80,5000-6000", 1),
        ("--dport 80", 0),
        ("--sport 1-1023", 0),
        ("--all-namespaces --dport 5999", 1),
    ] {
        lab.pace(&format!("tcp on {options}"));
        lab.send(1000);
        assert_eq!(taken(), expected, "{options}");
        lab.pace("tcp off");
    }
    // By IPv6 too, and both ends in one namespace.
    lab.pace("tcp on --dst ::1");
    let chosen = |words: &str| {
        let script = format!(
            "import socket\n\
             l = socket.create_server(('::1', 0), family=socket.AF_INET6)\n\
             s = socket.socket(socket.AF_INET6)\n\
             {words}\n\
             s.connect(l.getsockname())\n"
        );
        lab.host("a").exec(["python3", "-c", &script]).unwrap();
        taken()
    };
    assert_eq!(chosen(""), 2);
    let reno = "s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'reno')";
    assert_eq!(chosen(reno), 3, "but for the one that has chosen");
    lab.pace("tcp off");
    lab.pace("tcp on --override");
    assert_eq!(chosen(reno), 2);
}

#[test]
fn top_shows_a_stream_that_is_sending_and_ends_with_the_pacer() {
    live!();
    let lab = Lab::up('t', &["--rate", "100mbit", "--delay", "50ms"]);
    lab.pace("tcp on");
    let is_seen = AtomicBool::new(false);
    let watched = std::thread::scope(|scope| {
        // Until it was looked at, and not for ever.
        let blocks = (0..800).take_while(|_| !is_seen.load(Ordering::Relaxed));
        let write = |stream: &mut TcpStream| {
            blocks.for_each(|_| stream.write_all(&[0; 125_000]).unwrap());
        };
        let sending = scope.spawn(|| lab.send_by(write));
        // Taken as soon as it is established.
        let is_there = || !lab.status()["streams"].as_array().unwrap().is_empty();
        wait_for("the stream to be there", PATIENCE, is_there).unwrap();
        let watched = lab.pace("top --json -n 2 -d 0.2");
        let text = lab.pace("top --batch -n 1 -d 0.2");
        is_seen.store(true, Ordering::Relaxed);
        assert!(
            text.contains("  PHASE ") && text.contains(&format!(" {TO}:{PORT}\n")),
            "{text}"
        );
        sending.join().unwrap();
        watched
    });
    let lines: Vec<Value> = watched
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        let stream = &line["streams"][0];
        assert_eq!(stream["remote"], format!("{TO}:{PORT}"));
        let phase = stream["phase"].as_str().unwrap();
        assert!(["spacing", "clusters", "free"].contains(&phase), "{line}");
        let rate = stream["bits_per_s"].as_f64().expect("it is measured");
        // Of a quarter of a second that may begin and end anywhere in a round trip; no more than the wire carries.
        assert!(rate > 0.0 && rate < 150e6, "{line}");
        assert_eq!(line["bits_per_s"], stream["bits_per_s"]);
    }
    // While it is watched.
    let packtrain = packtrain().to_str().unwrap();
    let watch = [packtrain, "pace", "top", "--json", "-d", "0.2"];
    let mut watching = lab.host("a").command(watch);
    let mut watching = watching
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    watching
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    lab.pace("tcp off");
    let output = watching.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(9));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: the pacer of TCP has ended: what begins now is not spaced\n"
    );
}
