//! `packtrain pace tcp`: what slow start sends is spaced, on the wire; and connections come to it and are given back.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use packtrain::capture_file::CaptureFile;
use packtrain::lab::namespaces::Namespace;
use packtrain::lab::wait_for;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::cabled::pause;
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
        Lab::up_with(tag, &[&["--no-packtrain"], wire].concat())
    }

    fn up_with(tag: char, words: &[&str]) -> Lab {
        let name = format!("pct{}{tag}", std::process::id());
        let lab = Lab { name };
        let links = ["--links", "1", "--port-rate", "1gbit"];
        lab.lab("up", &[&links, words].concat());
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
        self.pace_by(&words.split_whitespace().collect::<Vec<_>>())
    }

    fn pace_by(&self, words: &[&str]) -> String {
        let packtrain = packtrain().to_str().expect("a path of letters");
        self.host("a")
            .exec([&[packtrain, "pace"], words].concat())
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
        let listener = listening(self);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
                stream.write_all(b".").unwrap();
            });
            let mut stream = connect(self);
            write(&mut stream);
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut end = Vec::new();
            stream.read_to_end(&mut end).unwrap();
            assert_eq!(end, b".");
        });
    }

    /// When full segments to b were on the wire, in microseconds since the first.
    fn captured_us(&self, during: impl FnOnce()) -> Vec<u64> {
        self.captured_of_us(
            |frame| frame.get(36..38) == Some(&PORT.to_be_bytes()),
            during,
        )
    }

    /// Of full frames of this kind.
    fn captured_of_us(&self, is_one: impl Fn(&[u8]) -> bool, during: impl FnOnce()) -> Vec<u64> {
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
            if frame.len_on_wire >= FULL_BYTES && is_one(frame.bytes) {
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

/// Who takes connections at b.
fn listening(lab: &Lab) -> TcpListener {
    let listener = lab.host("b").in_namespace(|| TcpListener::bind((TO, PORT)));
    listener.unwrap().unwrap()
}

/// A connection to b.
fn connect(lab: &Lab) -> TcpStream {
    let stream = lab
        .host("a")
        .in_namespace(|| TcpStream::connect((TO, PORT)));
    stream.unwrap().unwrap()
}

/// A connection to b, and its other end.
fn connected(lab: &Lab) -> (TcpStream, TcpStream) {
    let listener = listening(lab);
    (connect(lab), listener.accept().unwrap().0)
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

/// Nothing waits that a train could be made of: its packer does not hold back what comes alone.
#[test]
fn what_is_spaced_stays_so_on_its_way_through_a_line() {
    live!(alone);
    let wire = ["--rate", "100mbit", "--delay", "50ms", "--queue", "1mb"];
    let lab = Lab::up_with('p', &wire);
    // Of whatever kind: no train has room for two full segments.
    let apart = || share_apart(&lab.captured_of_us(|_| true, || lab.send(600_000)));
    let plain = apart();
    assert!(plain < 0.5, "{plain} apart, where nothing is spaced");
    lab.pace("tcp on --precision 1ms");
    judge("share of segments that are apart", apart, |share| {
        *share > 0.8
    });
    lab.pace("off");
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
    // Room for a jump to half of what is under way.
    lab.host("b")
        .sysctl("net/ipv4/tcp_rmem", "4096 4194304 16777216")
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
    lab.pace("tcp on --precision 1ms --hystart off");
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
    let counters = &status["counters"];
    assert!(counters["ended_at_path"].as_u64() >= Some(1), "{status}");
    assert!(counters["jumped"].as_u64() >= Some(1), "{status}");
    assert!(
        counters["retreated"].as_u64() < counters["jumped"].as_u64(),
        "{status}"
    );
}

#[test]
fn after_a_pause_and_after_a_timeout_slow_start_is_spaced_again() {
    live!(alone);
    let lab = Lab::up(
        'i',
        &["--rate", "100mbit", "--delay", "50ms", "--queue", "1mb"],
    );
    // T is no path's here: a round of the second slow start is above it, too.
    lab.pace("tcp on --precision 100us --hystart off --remember off");
    let (mut stream, mut other) = connected(&lab);
    let begun = || lab.status()["counters"]["slow_starts"].as_u64().unwrap();
    let mut send = |bytes: usize| {
        std::thread::scope(|scope| {
            scope.spawn(|| other.read_exact(&mut vec![0; bytes]).unwrap());
            stream.write_all(&vec![0; bytes]).unwrap();
        });
    };
    send(200_000);
    let first = begun();
    // Longer than a timeout, which is 300 ms here: the window is as small as at the beginning.
    pause(Duration::from_secs(2));
    let before = begun();
    assert_eq!(before, first);
    let times = lab.captured_us(|| send(100_000));
    assert!(begun() > before, "no slow start began after a pause");
    // Ten or so leave at once, and each of the 20 that follow 5 ms behind the other; at once they would be in 0.3 ms.
    let apart = times.windows(2).filter(|pair| pair[1] - pair[0] >= 1000);
    let apart = apart.count();
    assert!(apart >= 20, "{apart} of {} apart: {times:?}", times.len());

    // What is under way is lost, and what follows it.
    let before = begun();
    std::thread::scope(|scope| {
        scope.spawn(|| other.read_exact(&mut [0; 400_000]).unwrap());
        stream.write_all(&[0; 400_000]).unwrap();
        lab.lab("cut", &["--silent", "a-b.0"]);
        pause(Duration::from_millis(900));
        lab.lab("mend", &["a-b.0"]);
    });
    assert!(begun() > before, "no slow start began after a timeout");
}

#[test]
fn who_may_not_pace_is_told_and_mptcp_is_spaced_as_tcp_is() {
    live!();
    let lab = Lab::up('p', &["--rate", "100mbit"]);
    let program = packtrain().to_str().expect("a path of letters");
    let as_nobody = [
        "setpriv",
        "--bounding-set=-all",
        "--inh-caps=-all",
        program,
        "pace",
    ];
    for words in [
        &["tcp", "on"][..],
        &["rule", "add", "--match", "any", "--rate", "1mbit"],
    ] {
        let output = lab
            .host("a")
            .try_exec([&as_nobody[..], words].concat())
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{error}");
    }
    lab.pace("tcp on");
    let script = "import socket\n\
         l = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\n\
         l.bind(('127.0.0.1', 0)); l.listen()\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)\n\
         s.connect(l.getsockname())\n\
         c, _ = l.accept()\n\
         s.sendall(b'x' * 100); c.recv(100)\n";
    let output = lab.host("a").try_exec(["python3", "-c", script]).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    // Both ends are here.
    assert_eq!(lab.status()["counters"]["taken"], 2);
}

/// Connections to b that send without an end, and what they have sent.
struct Streams {
    sent: Arc<AtomicU64>,
    sockets: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Streams {
    fn begin(lab: &Lab, count: usize) -> Streams {
        let listener = listening(lab);
        let mut streams = Streams {
            sent: Arc::default(),
            sockets: Vec::new(),
            threads: Vec::new(),
        };
        for _ in 0..count {
            let mut stream = connect(lab);
            streams.sockets.push(stream.try_clone().unwrap());
            let (mut other, _) = listener.accept().unwrap();
            let sent = Arc::clone(&streams.sent);
            streams.threads.push(thread::spawn(move || {
                let mut bytes = vec![0; 65_536];
                while let Ok(len @ 1..) = other.read(&mut bytes) {
                    sent.fetch_add(len as u64, Ordering::Relaxed);
                }
            }));
            streams.threads.push(thread::spawn(move || {
                let bytes = vec![0; 65_536];
                while stream.write_all(&bytes).is_ok() {}
            }));
        }
        streams
    }

    /// Megabits of what arrives, a second, all of them together.
    fn megabits(&self, time: Duration) -> f64 {
        let before = self.sent.load(Ordering::Relaxed);
        pause(time);
        (self.sent.load(Ordering::Relaxed) - before) as f64 * 8e-6 / time.as_secs_f64()
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for socket in &self.sockets {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[test]
fn streams_of_a_rule_have_its_rate_together_and_are_as_before_without_it_also_when_its_pacer_was_killed()
 {
    live!(alone);
    let lab = Lab::up('r', &["--rate", "200mbit", "--delay", "2ms"]);
    let streams = Streams::begin(&lab, 3);
    const FOR: Duration = Duration::from_millis(800);
    let free = streams.megabits(FOR);
    assert!(free > 60.0, "{free} Mbit/s, and nothing is paced");
    // They are there already, and have a congestion control of their own.
    let text = lab.pace("rule add --match any --rate 30mbit");
    assert!(
        text.starts_with("rule rule1: any leaves at 30 Mbit/s"),
        "{text}"
    );
    let settled = || pause(Duration::from_millis(300));
    settled();
    // 1448 of 1500 bytes: 28.96.
    judge(
        "three streams at 30 Mbit/s",
        || streams.megabits(FOR),
        |rate| (24.0..31.0).contains(rate),
    );
    let document = lab.status();
    let rule = &document["rules"][0];
    assert_eq!(
        (&rule["streams"], &rule["sending"]),
        (&3.into(), &3.into()),
        "{document}"
    );
    for stream in document["streams"].as_array().unwrap() {
        // A third of it.
        assert_eq!(stream["ruled_bps"], 9_653_328, "{stream}");
        assert_eq!(stream["rule"], "rule1");
    }
    // A segment is acknowledged long before the next one's time.
    lab.lab("set", &["a-b.0", "--delay", "0ms"]);
    settled();
    judge(
        "three streams over a path that is shorter than their interval",
        || streams.megabits(FOR),
        |rate| (24.0..31.0).contains(rate),
    );
    assert_eq!(lab.status()["rules"][0]["sending"], 3);
    lab.lab("set", &["a-b.0", "--delay", "2ms"]);
    // The first that matches, which each stream has for itself.
    lab.pace_by(&[
        "rule",
        "add",
        "--before",
        "rule1",
        "--match",
        "not dst ::/0 dport 1-6000 src 10.9.0.0/24",
        "--rate",
        "20mbit",
        "--share",
        "stream",
        "--name",
        "own",
    ]);
    settled();
    judge(
        "three times 20 Mbit/s",
        || streams.megabits(FOR),
        |rate| (48.0..61.0).contains(rate),
    );
    lab.pace("rule remove own");
    settled();
    judge(
        "three streams again",
        || streams.megabits(FOR),
        |rate| (24.0..31.0).contains(rate),
    );
    // Nobody is there to say that the rule holds.
    let pid = lab.status()["pid"].as_u64().unwrap() as i32;
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    wait_for("streams to be free again", PATIENCE, || {
        streams.megabits(FOR / 4) > 60.0
    })
    .unwrap();
    lab.pace("rule add --match any --rate 30mbit --share rule");
    settled();
    judge(
        "taken again",
        || streams.megabits(FOR),
        |rate| (24.0..31.0).contains(rate),
    );
    lab.pace("rule remove rule1");
    wait_for("streams to be free again", PATIENCE, || {
        streams.megabits(FOR / 4) > 60.0
    })
    .unwrap();
    let before = lab.congestion_control();
    assert_eq!(before, "reno", "it has again what it had");
    // Nor is spacing in the way of rules.
    lab.pace("rule add --match any --rate 40mbit");
    lab.pace("tcp on");
    let document = lab.status();
    assert_eq!(
        (&document["rules_only"], &document["rules"][0]["name"]),
        (&false.into(), &"rule1".into()),
        "{document}"
    );
    lab.pace("tcp off");
}

#[test]
fn connections_that_are_there_are_taken_and_given_back_and_after_kill_9_taken_again() {
    live!();
    let lab = Lab::up('e', &["--rate", "100mbit"]);
    let _ends = connected(&lab);
    let before = lab.congestion_control();
    assert!(!before.starts_with("packtrain"), "{before}");

    lab.pace("tcp on --precision 1ms --only-new");
    assert_eq!(lab.congestion_control(), before);
    lab.pace("tcp off");
    lab.pace("tcp on");
    assert!(lab.congestion_control().starts_with("packtrain_cps"));
    assert_eq!(lab.status()["counters"]["taken_late"], 1);
    // Nobody has said how exactly this machine spaces segments.
    let status = lab.status();
    assert_eq!(status["precision"]["source"], "measured", "{status}");
    assert!(status["precision_ns"].as_u64() >= Some(500_000), "{status}");

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
fn one_that_a_rule_is_about_is_taken_again_when_its_application_chooses_another_congestion_control()
{
    live!();
    let lab = Lab::up('l', &["--rate", "100mbit"]);
    lab.pace("rule add --match any --rate 30mbit");
    let (stream, _end) = connected(&lab);
    let has_ours = || lab.congestion_control().starts_with("packtrain_cps");
    assert!(has_ours());
    for times in 1..=2 {
        set_tcp_congestion(&stream, "reno").unwrap();
        wait_for("it to be taken again", PATIENCE, has_ours).unwrap();
        let counters = &lab.status()["counters"];
        let counted = ["taken", "taken_late", "left"].map(|name| counters[name].as_u64().unwrap());
        assert_eq!(counted, [1, times, times]);
    }
    lab.pace("rule remove rule1");
    assert_eq!(lab.congestion_control(), "reno", "what it has chosen");
}

#[test]
fn only_connections_that_are_meant_are_taken_and_none_whose_application_has_chosen() {
    live!();
    let lab = Lab::up('o', &["--rate", "100mbit"]);
    let taken = || lab.status()["counters"]["taken"].as_u64().unwrap();
    for (options, expected) in [
        ("--dst 10.9.0.0/24", 1),
        ("--dst 192.0.2.0/24,fd00::/8,::/0", 0),
        ("--dst 0.0.0.0/0", 1),
        ("--dport 80,5000-6000", 1),
        ("--dport 80", 0),
        ("--sport 1-1023", 0),
        ("--all-namespaces --dport 5999", 1),
    ] {
        lab.pace(&format!("tcp on --precision 1ms {options}"));
        lab.send(1000);
        assert_eq!(taken(), expected, "{options}");
        lab.pace("tcp off");
    }
    // By IPv6 too, and both ends in one namespace.
    lab.pace("tcp on --precision 1ms --dst ::1,0.0.0.0/0");
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
    lab.pace("tcp on --precision 1ms --override");
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
