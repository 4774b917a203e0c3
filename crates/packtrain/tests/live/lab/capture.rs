//! `packtrain lab capture`: what the file says is what the wire did.

use std::fs;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use packtrain::lab::namespaces::{Namespace, program_exists};
use packtrain::lab::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::packtrain;

const PATIENCE: Duration = Duration::from_secs(10);
const PORT: u16 = 7777;
const DATAGRAMS: usize = 60;
const PAYLOAD_BYTES: usize = 1000;
/// Ethernet, IPv4 and UDP.
const HEADER_BYTES: usize = 14 + 20 + 8;
/// Of such a datagram at 10 Mbit/s, with 24 bytes that nobody sees.
const WIRE_NANOS: u64 = 100 * 8 * (HEADER_BYTES + PAYLOAD_BYTES + 24) as u64;

/// A lab of two hosts and a wire, gone again with its test, as is the file.
struct Standing {
    name: String,
    file: PathBuf,
}

impl Standing {
    /// `tag` is a letter.
    fn up(tag: char, more: &[&str]) -> Standing {
        let name = format!("cap{}{tag}", std::process::id());
        let file = std::env::temp_dir().join(format!("packtrain-{name}.pcapng"));
        let lab = Standing { name, file };
        let bare = ["--links", "1", "--no-packtrain", "--port-rate", "none"];
        lab.lab("up", &[&bare, more].concat());
        lab
    }

    fn lab(&self, command: &str, words: &[&str]) {
        let mut whole = Command::new(packtrain());
        whole
            .args(["lab", command, "--lab", &self.name])
            .args(words);
        let output = whole.output().unwrap();
        assert!(
            output.status.success(),
            "{whole:?}: {}",
            text(&output.stderr)
        );
    }

    fn host(&self, host: &str) -> Namespace {
        Namespace::standing(&format!("pt-{}-{host}", self.name))
    }

    /// Captures into the file, and has begun.
    fn capture(&self, words: &[&str]) -> Capture {
        self.capture_into(&self.file, words)
    }

    fn capture_into(&self, file: &Path, words: &[&str]) -> Capture {
        let child = Command::new(packtrain())
            .args(["lab", "capture", "--lab", &self.name, "-w"])
            .arg(file)
            .args(words)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let capture = Capture(Some(child));
        let begun = || fs::metadata(file).is_ok_and(|file| file.len() > 0);
        wait_for("the capture to begin", PATIENCE, begun).unwrap();
        capture
    }

    /// Datagrams from a to b at once, and the numbers of those that arrived.
    fn send_train(&self) -> Vec<usize> {
        let [from, to] = [("a", "10.9.0.1"), ("b", "10.9.0.2")].map(|(host, address)| {
            let socket = self
                .host(host)
                .in_namespace(|| UdpSocket::bind((address, PORT)));
            socket.unwrap().unwrap()
        });
        // So that they know each other. One of these may be among the lost.
        self.host("a")
            .exec(["ping", "-c3", "-i0.2", "-W1", "10.9.0.2"])
            .unwrap();
        setsockopt(&from, UdpGsoSegment, &(PAYLOAD_BYTES as i32)).unwrap();
        let train = (0..DATAGRAMS).flat_map(|i| [i as u8; PAYLOAD_BYTES]);
        let train: Vec<u8> = train.collect();
        from.send_to(&train, ("10.9.0.2", PORT)).unwrap();
        to.set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let mut arrived = Vec::new();
        let mut buffer = [0; 2000];
        loop {
            match to.recv(&mut buffer) {
                Ok(len) => {
                    assert_eq!(len, PAYLOAD_BYTES);
                    arrived.push(usize::from(buffer[0]));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return arrived,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Frames of the file that are datagrams of the train.
    fn train(&self) -> Vec<Frame> {
        let mut frames = frames(&fs::read(&self.file).unwrap());
        frames.retain(|frame| {
            let port = frame.bytes.get(36..38);
            frame.bytes.len() == HEADER_BYTES + PAYLOAD_BYTES && port == Some(&PORT.to_be_bytes())
        });
        frames
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let down = Command::new(packtrain())
            .args(["lab", "down", &self.name])
            .output();
        if let Ok(output) = down {
            eprint!("{}", text(&output.stderr));
        }
        let _ = fs::remove_file(&self.file);
    }
}

/// A capture that runs.
struct Capture(Option<Child>);

impl Capture {
    /// As Ctrl-C ends it. What it said on its standard error.
    fn end(self) -> String {
        let child = self.0.as_ref().expect("it runs");
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        self.wait()
    }

    /// Until it ends by itself.
    fn wait(mut self) -> String {
        let child = self.0.as_mut().expect("it runs");
        let ended = || child.try_wait().unwrap().is_some();
        wait_for("the capture to end", PATIENCE, ended).unwrap();
        let Output { status, stderr, .. } = self.0.take().unwrap().wait_with_output().unwrap();
        let said = text(&stderr);
        assert!(status.success(), "{said}");
        said
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Frame {
    interface: u32,
    unix_nanos: u64,
    bytes: Vec<u8>,
    comment: Option<String>,
}

/// As little of the format as these tests need, from its description.
fn frames(mut file: &[u8]) -> Vec<Frame> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut frames = Vec::new();
    while !file.is_empty() {
        let (block, rest) = file.split_at(word(file, 4) as usize);
        file = rest;
        if word(block, 0) != 6 {
            continue;
        }
        let end = 28 + word(block, 20) as usize;
        let options = &block[end.next_multiple_of(4)..block.len() - 4];
        let comment = (!options.is_empty()).then(|| {
            let both = word(options, 0);
            assert_eq!(both & 0xffff, 1, "a comment");
            text(&options[4..][..(both >> 16) as usize])
        });
        frames.push(Frame {
            interface: word(block, 8),
            unix_nanos: u64::from(word(block, 12)) << 32 | u64::from(word(block, 16)),
            bytes: block[28..end].to_vec(),
            comment,
        });
    }
    frames
}

fn assert_back_to_back(frames: &[Frame]) {
    for pair in frames.windows(2) {
        let apart = pair[1].unix_nanos - pair[0].unix_nanos;
        assert!(apart.abs_diff(WIRE_NANOS) < 1000, "{apart} ns apart");
    }
}

/// What a program of Wireshark's says of the file.
fn wireshark(program: &str, words: &[&str], file: &Path) -> String {
    let output = Command::new(program)
        .args(words)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn no_wireshark() -> Option<String> {
    let missing = ["tshark", "capinfos"]
        .into_iter()
        .find(|p| !program_exists(p));
    missing.map(|program| format!("no `{program}` (Debian: tshark)"))
}

#[test]
fn each_tenth_frame_is_marked_as_lost_and_all_are_as_far_apart_as_the_rate_has_it() {
    live!();
    let lab = Standing::up('p', &["--rate", "10mbit"]);
    lab.lab("set", &["a-b.0", "--from", "a", "--loss", "every:10"]);
    let capture = lab.capture(&["a-b.0"]);
    let arrived = lab.send_train();
    let said = capture.end();
    assert!(said.contains("0 frames dropped by the capture"), "{said}");
    let train = lab.train();
    let numbers: Vec<usize> = train
        .iter()
        .map(|f| usize::from(f.bytes[HEADER_BYTES]))
        .collect();
    assert!(numbers.iter().copied().eq(0..DATAGRAMS), "{numbers:?}");
    assert_back_to_back(&train);
    // All are of the direction that was asked to lose, whose frames before the train were few.
    assert!(train.iter().all(|frame| frame.interface == 0));
    let lost = train.iter().map(|frame| match frame.comment.as_deref() {
        None => false,
        Some("dropped: loss") => true,
        Some(other) => panic!("{other}"),
    });
    let lost: Vec<usize> = lost
        .zip(0..)
        .filter_map(|(lost, i)| lost.then_some(i))
        .collect();
    let first = lost[0];
    let expected: Vec<usize> = (first..DATAGRAMS).step_by(10).collect();
    assert!(first < 10 && lost == expected, "{lost:?}");
    let not_lost: Vec<usize> = (0..DATAGRAMS).filter(|i| !lost.contains(i)).collect();
    assert_eq!(arrived, not_lost);
}

#[test]
fn a_train_that_crossed_in_one_piece_is_shown_as_the_frames_of_a_wire_each_at_its_time() {
    live!();
    let lab = Standing::up('t', &["--rate", "10mbit", "--delay", "5ms"]);
    let capture = lab.capture(&["a-b.0", "--from", "a"]);
    assert_eq!(lab.send_train().len(), DATAGRAMS);
    capture.end();
    let train = lab.train();
    assert_eq!(train.len(), DATAGRAMS);
    assert!(train.iter().all(|frame| frame.comment.is_none()));
    assert_back_to_back(&train);
}

#[test]
fn wireshark_reads_names_speeds_comments_and_finds_no_wrong_checksum() {
    live!(no_wireshark().or_else(packtrain::lab::unavailable));
    let lab = Standing::up('w', &["--rate", "10mbit"]);
    lab.lab("set", &["a-b.0", "--from", "a", "--loss", "every:10"]);
    let capture = lab.capture(&["a-b.0"]);
    lab.send_train();
    capture.end();
    let infos = wireshark("capinfos", &[], &lab.file);
    for line in [
        "nanoseconds",
        "Capture application: packtrain",
        "Name = a-b.0 a>b",
        "Name = a-b.0 b>a",
        "Speed = 10000000",
        "Strict time order:   True",
    ] {
        assert!(infos.contains(line), "{line}: {infos}");
    }
    let count = |filter: &str| {
        let checked = [
            "-o",
            "udp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
        ];
        let words = [&checked[..], &["-Y", filter, "-r"]].concat();
        wireshark("tshark", &words, &lab.file).lines().count()
    };
    let train = format!("udp.dstport == {PORT}");
    assert_eq!(count(&train), DATAGRAMS);
    let right = format!("{train} && udp.checksum.status == 1 && ip.checksum.status == 1");
    assert_eq!(count(&right), DATAGRAMS);
    let lost = format!("{train} && frame.comment == \"dropped: loss\"");
    assert_eq!(count(&lost), DATAGRAMS / 10);
}

#[test]
fn a_full_queue_and_a_cut_are_told_apart() {
    live!();
    let lab = Standing::up('q', &["--rate", "10mbit", "--queue", "10p"]);
    let capture = lab.capture(&["a-b.0", "--from", "a"]);
    let arrived = lab.send_train();
    lab.lab("cut", &["a-b.0", "--silent"]);
    // Nobody answers.
    let pinged = lab
        .host("a")
        .try_exec(["ping", "-c1", "-W1", "10.9.0.2"])
        .unwrap();
    assert!(!pinged.status.success());
    capture.end();
    let dropped_for = |reason: &str, frames: &[Frame]| {
        let of_it = |frame: &&Frame| frame.comment.as_deref() == Some(reason);
        frames.iter().filter(of_it).count()
    };
    let full = dropped_for("dropped: queue full", &lab.train());
    assert!(full > 0);
    assert_eq!(full, DATAGRAMS - arrived.len());
    let all = frames(&fs::read(&lab.file).unwrap());
    assert!(dropped_for("dropped: cut", &all) > 0);
}

#[test]
fn captures_run_beside_each_other_and_beside_commands_and_end_each_in_its_way() {
    live!();
    let lab = Standing::up('b', &[]);
    let second = lab.file.with_extension("second");
    let until_two = lab.capture(&["a-b.0", "-c", "2", "-s", "64"]);
    let until_down = lab.capture_into(&second, &["a-b.0", "--from", "b"]);
    lab.lab("list", &[]);
    lab.host("a")
        .exec(["ping", "-c2", "-i0.2", "-s1000", "10.9.0.2"])
        .unwrap();
    let said = until_two.wait();
    assert!(said.contains("2 frames captured\n"), "{said}");
    let two = frames(&fs::read(&lab.file).unwrap());
    assert_eq!(two.len(), 2);
    assert!(two.iter().all(|frame| frame.bytes.len() <= 64));
    // What was seen is in the file at once, and the lab's end leaves it whole.
    wait_for("the answers in the file", PATIENCE, || {
        frames(&fs::read(&second).unwrap()).len() >= 2
    })
    .unwrap();
    drop(lab);
    let said = until_down.wait();
    assert!(said.contains("0 frames dropped by the capture"), "{said}");
    assert!(
        frames(&fs::read(&second).unwrap())
            .iter()
            .all(|frame| frame.interface == 0)
    );
    fs::remove_file(second).unwrap();
}
