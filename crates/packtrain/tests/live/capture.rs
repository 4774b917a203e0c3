//! `packtrain capture`: what it shows is what passed, once, as the hosts know it; and that a capture on
//! `pt0` itself does not.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use packtrain::capture_file::CaptureFile;
use packtrain::lab::host::Host;
use packtrain::lab::namespaces::program_exists;
use packtrain::lab::wait_for;
use packtrain::linux::netlink::Netlink;
use packtrain::linux::packet_socket::PacketSocket;
use packtrain::pcapng::Block;
use packtrain::status::{StatusDocument, Traffic};
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::{Header, MacAddr};
use packtrain_proto::wire::packet::{Packet, Transport, field};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::cabled::{pause, status};
use crate::common::direct::wait_for_direct;
use crate::common::{A, B, Pair, packtrain, pings_whole, transfer};
use crate::kernel_path::SetAtEnd;
use crate::kernel_path::vlan::{B_LINK, in_a_vlan};

const PATIENCE: Duration = Duration::from_secs(10);
const PINGS: u16 = 20;
/// Such a frame, from its destination address on.
const PING_BYTES: usize = 14 + 20 + 8 + 56;

/// A program that watches, and is gone with its test, as is what it wrote.
struct Watcher {
    child: Child,
    /// Standard output, standard error, and what `-w` names.
    files: [PathBuf; 3],
}

impl Watcher {
    /// Has begun when `sign` stands on its standard error. `{}` stands for a file that it may write.
    fn start(host: &Host, words: &[&str], sign: &str) -> Watcher {
        let tag = format!("packtrain-{}-{}", host.namespace.name(), words.join(""));
        let tag: String = tag.chars().filter(|c| c.is_alphanumeric()).collect();
        let files =
            ["out", "err", "file"].map(|kind| std::env::temp_dir().join(format!("{tag}.{kind}")));
        let words = words.iter().map(|word| match *word {
            "{}" => files[2].to_str().unwrap(),
            word => word,
        });
        let child = host
            .namespace
            .command(words)
            .stdin(Stdio::null())
            .stdout(File::create(&files[0]).unwrap())
            .stderr(File::create(&files[1]).unwrap())
            .spawn()
            .unwrap();
        let watcher = Watcher { child, files };
        let begun = || watcher.text(1).contains(sign);
        wait_for("the capture to begin", PATIENCE, begun).unwrap();
        watcher
    }

    fn capture(host: &Host, more: &[&str]) -> Watcher {
        let words = host.words(&[&["capture", "pt0"], more].concat());
        Watcher::start(host, &words, "capturing on pt0; Ctrl-C ends it\n")
    }

    fn text(&self, file: usize) -> String {
        fs::read_to_string(&self.files[file]).unwrap()
    }

    fn lines(&self) -> Vec<String> {
        self.text(0).lines().map(str::to_owned).collect()
    }

    /// Ctrl-C, once what has passed was read.
    fn interrupt(&mut self) -> ExitStatus {
        pause(Duration::from_millis(300));
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.wait()
    }

    fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_for("the capture to end", PATIENCE, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .unwrap();
        status.unwrap()
    }

    /// What it says at its end.
    fn assert_summary(&self, captured: usize) {
        let summary = format!("{captured} frames captured, 0 dropped by the kernel\n");
        assert!(self.text(1).ends_with(&summary), "{}", self.text(1));
    }

    fn frames(&self) -> Vec<Vec<u8>> {
        let mut file = CaptureFile::open(&self.files[2]).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = file.next_frame().unwrap() {
            assert_eq!(frame.bytes.len(), frame.len_on_wire);
            assert!(frame.at.is_some());
            frames.push(frame.bytes.to_vec());
        }
        frames
    }

    /// How many frames of each interface and direction.
    fn by_path(&self) -> BTreeMap<(u32, u32), u64> {
        let mut file = File::open(&self.files[2]).unwrap();
        let mut counts = BTreeMap::new();
        while let Some(block) = Block::read(&mut file).unwrap() {
            if block.is_packet() {
                let word =
                    |at: usize| u32::from_le_bytes(block.bytes[at..at + 4].try_into().unwrap());
                let options = 28 + word(20).next_multiple_of(4) as usize;
                assert_eq!(word(options), 4 << 16 | 2, "its flags are its first option");
                *counts.entry((word(8), word(options + 4))).or_default() += 1;
            }
        }
        counts
    }
}

const DIRECT: u32 = 1;
const IN: u32 = 1;
const OUT: u32 = 2;

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}

fn ping(from: &Host, to: &str, count: u16) {
    let count = count.to_string();
    let words = ["ping", "-n", "-c", &count, "-i", "0.02", "-W", "2", to];
    from.namespace.exec(words).unwrap();
}

/// Sequence numbers of echo requests (8) or replies (0) with these addresses.
fn echoes(frames: &[Vec<u8>], kind: u8, [from, to]: [&str; 2]) -> Vec<u16> {
    let [from, to] = [from, to].map(|mac| mac.parse::<MacAddr>().unwrap());
    let of = |frame: &Vec<u8>| {
        let header = Header::parse(frame)?;
        let is_echo = frame.len() == PING_BYTES
            && header.ether_type == 0x0800
            && (frame[23], frame[34]) == (1, kind)
            && (header.source, header.destination) == (from, to);
        is_echo.then(|| u16::from_be_bytes([frame[40], frame[41]]))
    };
    frames.iter().filter_map(of).collect()
}

/// How many different bytes of TCP streams left from this IP address.
fn tcp_bytes(frames: &[Vec<u8>], from: [u8; 4]) -> u64 {
    let mut ranges = Vec::new();
    for frame in frames {
        let Ok(packet) = Packet::parse(frame) else {
            continue;
        };
        let Some(ip) = packet.ip else { continue };
        let Some(Transport::Tcp { header_len }) = ip.transport else {
            continue;
        };
        if frame[26..30] != from {
            continue;
        }
        let tcp = &frame[ip.transport_start..];
        let sequence = u32::from_be_bytes(tcp[field::TCP_SEQUENCE].try_into().unwrap());
        let end = packet.network_start + ip.total_len;
        let payload = end - ip.transport_start - header_len;
        ranges.push((u64::from(sequence), payload as u64));
    }
    // The stream is short: where its numbers wrap, they are far apart.
    if ranges.iter().any(|(s, _)| *s < 1 << 30) && ranges.iter().any(|(s, _)| *s > 3 << 30) {
        for (sequence, _) in &mut ranges {
            *sequence = (*sequence + (1 << 31)) % (1 << 32);
        }
    }
    ranges.sort_unstable();
    let (mut total, mut reached) = (0, 0);
    for (sequence, len) in ranges {
        let end = sequence + len;
        total += end.saturating_sub(sequence.max(reached));
        reached = reached.max(end);
    }
    total
}

fn once_each(mut numbers: Vec<u16>) {
    numbers.sort_unstable();
    let all: Vec<u16> = (1..=PINGS).collect();
    assert_eq!(numbers, all);
}

#[test]
fn every_frame_is_in_the_file_of_both_ends_once_with_the_addresses_of_the_pt0s() {
    live!();
    let pair = Pair::up("capture", 1500).unwrap();
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    each_is_in_the_file_of_both_ends_once(&pair);
}

/// The tag is the line's, and no part of what the host has sent. What the links say themselves is not shown.
#[test]
fn so_it_is_where_direct_frames_go_in_a_vlan() {
    live!();
    let (pair, _switch) = in_a_vlan();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _at_end = SetAtEnd(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                assert!(pings_whole(&pair.a, B_LINK, 56));
            }
        });
        each_is_in_the_file_of_both_ends_once(&pair);
    });
}

fn each_is_in_the_file_of_both_ends_once(pair: &Pair) {
    assert!(pings_whole(&pair.a, B, 56));
    let hosts = [&pair.a, &pair.b];
    let mut captures = hosts.map(|host| Watcher::capture(host, &["-w", "{}"]));
    let begun = hosts.map(status);
    ping(&pair.a, B, PINGS);
    const BYTES: u64 = 400_000;
    assert_eq!(transfer(&pair.a, &pair.b, B, BYTES), BYTES);
    let done = hosts.map(status);
    for capture in &mut captures {
        assert!(capture.interrupt().success(), "{}", capture.text(1));
    }
    let macs = [&*begun[0].address, &*begun[1].address];
    for (at, capture) in captures.iter().enumerate() {
        let frames = capture.frames();
        capture.assert_summary(frames.len());
        once_each(echoes(&frames, 8, macs));
        once_each(echoes(&frames, 0, [macs[1], macs[0]]));
        assert_eq!(tcp_bytes(&frames, [10, 9, 0, 1]), BYTES);
        // As many as the line has counted, or more: the kernel may have cut a GSO frame by the time it leaves.
        let counts = capture.by_path();
        for (direction, of) in [
            (IN, (|s| s.direct.rx) as fn(&StatusDocument) -> Traffic),
            (OUT, |s| s.direct.tx),
        ] {
            let counted = counts.get(&(DIRECT, direction)).copied().unwrap_or(0);
            let least = of(&done[at]).frames - of(&begun[at]).frames;
            assert!(
                counted >= least && counted > 0,
                "{counted} captured, {least} counted; {counts:?}"
            );
        }
    }
}

#[test]
fn by_the_engine_alone_each_frame_is_a_line() {
    live!();
    let pair = Pair::up_with("lines", 1500, &["--path", "engine"]).unwrap();
    assert!(pings_whole(&pair.a, B, 56));
    let mut engine = Watcher::capture(&pair.a, &["--path", "engine", "-l"]);
    let mut direct = Watcher::capture(&pair.b, &["--path", "direct"]);
    ping(&pair.a, B, PINGS);
    assert!(engine.interrupt().success() && direct.interrupt().success());
    let lines = engine.lines();
    engine.assert_summary(lines.len());
    direct.assert_summary(0);
    let requests = format!("  out  engine  icmp {A} > {B} echo request ");
    let replies = format!("  in   engine  icmp {B} > {A} echo reply ");
    for text in [requests, replies] {
        let of = lines.iter().filter(|line| line.contains(&text));
        assert_eq!(of.count(), usize::from(PINGS), "{text}: {lines:#?}");
    }
    // The beginning of a line is its time, and they come in its order.
    let times: Vec<&str> = lines.iter().map(|line| &line[..15]).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn what_is_wanted_is_shown_and_nothing_after_the_last() {
    live!();
    let pair = Pair::up("wanted", 1500).unwrap();
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    assert!(pings_whole(&pair.a, B, 56));
    let wanted = ["--path", "direct", "--direction"];
    let mut out = Watcher::capture(&pair.a, &[&wanted[..], &["out", "-c", "3"]].concat());
    let mut coming = Watcher::capture(&pair.a, &[&wanted[..], &["in", "-c", "3"]].concat());
    let mut cut = Watcher::capture(&pair.b, &["-s", "40", "-c", "5", "-w", "{}"]);
    ping(&pair.a, B, PINGS);
    // The host may say something of its own between pings.
    for (watcher, way, ping) in [
        (
            &mut out,
            "out  direct",
            format!("icmp {A} > {B} echo request"),
        ),
        (
            &mut coming,
            "in   direct",
            format!("icmp {B} > {A} echo reply"),
        ),
    ] {
        assert!(watcher.wait().success());
        let lines = watcher.lines();
        watcher.assert_summary(3);
        let on_its_way = lines
            .iter()
            .all(|line| line[15..].trim_start().starts_with(way));
        let mut pings = lines.iter().filter(|line| line.contains(&ping)).peekable();
        assert!(
            lines.len() == 3 && on_its_way && pings.peek().is_some(),
            "{lines:#?}"
        );
        assert!(pings.all(|line| line.ends_with(", 98 B")), "{lines:#?}");
    }
    assert!(cut.wait().success());
    let mut file = CaptureFile::open(&cut.files[2]).unwrap();
    let mut lens = Vec::new();
    while let Some(frame) = file.next_frame().unwrap() {
        assert_eq!(frame.bytes.len(), 40);
        lens.push(frame.len_on_wire);
    }
    assert!(lens.len() == 5 && lens.contains(&PING_BYTES), "{lens:?}");
}

#[test]
fn a_capture_on_pt0_itself_misses_direct_frames_that_leave() {
    let tcpdump = (!program_exists("tcpdump")).then(|| "no tcpdump".to_owned());
    live!(tcpdump.or_else(packtrain::lab::unavailable));
    let pair = Pair::up("tcpdump", 1500).unwrap();
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    assert!(pings_whole(&pair.a, B, 56));
    let words = [
        "tcpdump",
        "-i",
        "pt0",
        "-n",
        "-U",
        "--immediate-mode",
        "-w",
        "{}",
        "icmp",
    ];
    let mut tcpdump = Watcher::start(&pair.a, &words, "listening on pt0");
    let mut capture = Watcher::capture(&pair.a, &["-w", "{}"]);
    ping(&pair.a, B, PINGS);
    tcpdump.interrupt();
    assert!(capture.interrupt().success());
    let [a, b] = [&pair.a, &pair.b].map(|host| status(host).address);
    let there = tcpdump.frames();
    once_each(echoes(&there, 0, [&b, &a]));
    assert_eq!(
        echoes(&there, 8, [&a, &b]),
        [0; 0],
        "why there is a capture of our own"
    );
    let ours = capture.frames();
    once_each(echoes(&ours, 0, [&b, &a]));
    once_each(echoes(&ours, 8, [&a, &b]));
}

/// The kernel takes tags out of frames, and says them beside.
#[test]
fn tags_are_in_direct_frames_at_both_ends() {
    live!();
    let pair = Pair::up("tags", 1500).unwrap();
    wait_for_direct(&pair.a);
    assert!(pings_whole(&pair.a, B, 56));
    // All that went to the engine is known to have arrived.
    pause(Duration::from_millis(500));
    let hosts = [&pair.a, &pair.b];
    let addresses = hosts.map(|host| status(host).address.parse::<MacAddr>().unwrap().0);
    let tagged = |tags: &[u8]| {
        let [from, to] = addresses;
        let payload = [0x5a; 60];
        [&to[..], &from, tags, &[0x88, 0xb6], &payload].concat()
    };
    let sent = [
        tagged(&[0x81, 0, 0x20, 7]),
        tagged(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7]),
        tagged(&[]),
    ];
    let words = ["--path", "direct", "-w", "{}"];
    let mut captures = hosts.map(|host| Watcher::capture(host, &words));
    let send = || {
        let pt0 = Netlink::open().unwrap().link_by_name("pt0").unwrap();
        let mut socket = PacketSocket::open(pt0.unwrap().ifindex).unwrap();
        for frame in &sent {
            socket.send(frame, Offload::default()).unwrap();
        }
    };
    pair.a.namespace.in_namespace(send).unwrap();
    for capture in &mut captures {
        assert!(capture.interrupt().success());
        let mut frames = capture.frames();
        frames.retain(|frame| frame.ends_with(&[0x5a; 60]));
        assert_eq!(frames, sent);
    }
}

#[test]
fn a_peer_that_comes_later_is_known_by_its_pt0() {
    live!();
    let pair = Pair::cable("later", 1500).unwrap();
    pair.a_up(&[]).unwrap();
    let mut capture = Watcher::capture(&pair.a, &["-w", "{}"]);
    pair.b_up(&[]).unwrap();
    pair.wait().unwrap();
    wait_for_direct(&pair.a);
    wait_for_direct(&pair.b);
    ping(&pair.a, B, PINGS);
    let direct = status(&pair.a).direct.tx.frames;
    assert!(direct > 0);
    assert!(capture.interrupt().success());
    let [a, b] = [&pair.a, &pair.b].map(|host| status(host).address);
    let frames = capture.frames();
    once_each(echoes(&frames, 8, [&a, &b]));
    once_each(echoes(&frames, 0, [&b, &a]));
    assert!(capture.by_path()[&(DIRECT, OUT)] >= direct);
}

#[test]
fn it_ends_with_its_line_with_its_reader_and_not_without_rights() {
    live!();
    let pair = Pair::up("ends", 1500).unwrap();
    wait_for_direct(&pair.a);
    let program = packtrain().to_str().unwrap();
    let run = |words: &[&str]| {
        let output = pair.a.namespace.command(words).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), text)
    };
    let file = "/nonexistent/pt0.pcapng";
    let (code, err) = run(&[program, "capture", "-w", file]);
    assert_eq!(code, 1, "{err}");
    let told = format!("error: cannot write {file}: No such file or directory (os error 2)\n");
    assert!(
        err.starts_with(&told) && err.contains("- for standard output"),
        "{err}"
    );

    let (code, err) = run(&[program, "capture", "pt9"]);
    let told = "error: pt9 is not running\n       running in this network namespace: pt0\n";
    assert_eq!((code, &*err), (9, told));

    // nobody, who may ask for the status all the same.
    let words = [
        "setpriv",
        "--reuid=65534",
        "--clear-groups",
        program,
        "capture",
    ];
    let (code, err) = run(&words);
    assert_eq!(code, 7, "{err}");
    assert!(
        err.starts_with("error: not allowed: this needs CAP_NET_RAW\n"),
        "{err}"
    );

    // Whoever reads it goes: `head` after two lines, and `true` at once.
    for reader in ["head -2 | wc -l", "true"] {
        let line = format!("ping -q -c 3 -i 0.1 {B} & '{program}' capture -l | {reader}");
        let mut shell = pair.a.namespace.command(["sh", "-c", &line]);
        let output = shell.process_group(0).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !err.contains("error"), "{err}");
        assert!(
            err.contains(" captured, 0 dropped by the kernel\n"),
            "{err}"
        );
    }

    let mut capture = Watcher::capture(&pair.a, &[]);
    pair.a.down().unwrap();
    assert!(capture.wait().success());
    assert!(
        capture.text(1).contains("note: pt0 has ended\n"),
        "{}",
        capture.text(1)
    );
}
