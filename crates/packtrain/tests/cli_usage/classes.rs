//! `packtrain class`, where no line runs: what is refused, and captures that are sorted.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use packtrain::pcapng;
use serde_json::{Value, json};

use crate::binary::{TestFile, outcome, packtrain};

#[test]
fn what_a_class_cannot_do_yet_is_refused_and_not_ignored() {
    let result = packtrain(&["class", "add", "pt-none", "--match", "udp", "--weight", "3"]);
    // Before the line is asked, which does not even run.
    let text = "error: --weight is not possible yet: all flows get the same share\n";
    assert_eq!((result.code, result.err.as_str()), (2, text));
    assert_eq!(result.out, "");
}

fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let addresses = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]].concat();
    [&addresses, &ether_type.to_be_bytes()[..], payload].concat()
}

/// From 10.9.0.1 to 10.9.0.2.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len()) as u16;
    let mut header = [0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&len.to_be_bytes());
    (header[8], header[9]) = (64, protocol);
    header[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    [&header[..], payload].concat()
}

/// From fd09::1 to fd09::2.
fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = [0; 40];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    (header[6], header[7]) = (protocol, 64);
    for (at, last) in [(8, 1), (24, 2)] {
        (header[at], header[at + 1], header[at + 15]) = (0xfd, 0x09, last);
    }
    [&header[..], payload].concat()
}

/// From port 1000.
fn udp(port: u16, payload_bytes: usize) -> Vec<u8> {
    let numbers = [1000, port, 8 + payload_bytes as u16, 0];
    let header: Vec<u8> = numbers.iter().flat_map(|n: &u16| n.to_be_bytes()).collect();
    [header, vec![0xa5; payload_bytes]].concat()
}

/// From port 1000 to 80.
fn tcp(payload_bytes: usize) -> Vec<u8> {
    let mut header = [0; 20];
    header[..4].copy_from_slice(&[3, 232, 0, 80]);
    (header[12], header[13]) = (5 << 4, 0x10);
    [&header[..], &vec![0xa5; payload_bytes]].concat()
}

fn tagged(vlan: u16, frame: &[u8]) -> Vec<u8> {
    let tag = [[0x81, 0], vlan.to_be_bytes()].concat();
    [&frame[..12], &tag, &frame[12..]].concat()
}

/// Some of each of four default classes, one frame that was captured in part, and one of no known type.
fn some_frames() -> Vec<Vec<u8>> {
    vec![
        ethernet(0x0806, &[0; 28]),
        ethernet(0x0800, &ipv4(17, &udp(53, 30))),
        ethernet(0x0800, &ipv4(17, &udp(5060, 200))),
        ethernet(0x0800, &ipv4(6, &tcp(0))),
        ethernet(0x0800, &ipv4(6, &tcp(1000))),
        tagged(7, &ethernet(0x86dd, &ipv6(17, &udp(5060, 100)))),
        ethernet(0x1234, &[0; 50]),
        ethernet(0x86dd, &ipv6(58, &[128, 0, 0, 0])),
    ]
}

/// A capture of these, a millisecond between any two; no more than `snap_len` bytes are kept of each.
fn capture(frames: &[Vec<u8>], snap_len: usize) -> Vec<u8> {
    let mut file = Vec::new();
    pcapng::section_header(&mut file, "a test");
    let interface = pcapng::Interface {
        name: "eth1".into(),
        description: None,
        speed_bps: None,
        snap_len: snap_len as u32,
    };
    pcapng::interface_description(&mut file, &interface);
    for (at, frame) in (0..).zip(frames) {
        let packet = pcapng::Packet {
            interface: 0,
            unix_nanos: 1_700_000_000_000_000_000 + at * 1_000_000,
            bytes: &frame[..frame.len().min(snap_len)],
            len: frame.len() as u32,
            direction: None,
            comment: None,
        };
        pcapng::enhanced_packet(&mut file, &packet);
    }
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const WHOLE: usize = 65_535;

#[test]
fn class_test_says_of_each_frame_of_a_capture_which_class_it_is_of() {
    let file = TestFile::new("some.pcapng", capture(&some_frames(), WHOLE));
    let shown = packtrain(&["class", "test", file.path()]);
    let frames = "     1  arp              42 B  arp
     2  dns              72 B  udp 10.9.0.1:1000 > 10.9.0.2:53
     3  rest            242 B  udp 10.9.0.1:1000 > 10.9.0.2:5060
     4  tcp-empty        54 B  tcp 10.9.0.1:1000 > 10.9.0.2:80, empty
     5  rest           1054 B  tcp 10.9.0.1:1000 > 10.9.0.2:80
     6  rest            166 B  vlan 7 udp [fd09::1]:1000 > [fd09::2]:5060
     7  rest             64 B  ethertype 0x1234
     8  icmp6            58 B  icmp6 fd09::1 > fd09::2
";
    let summary = "CLASS      FRAMES  BYTES
arp        1       42 B
icmp6      1       58 B
icmp       0       0 B
dns        1       72 B
ef         0       0 B
tcp-empty  1       54 B
rest       4       1.5 KiB
";
    assert_eq!(shown.out, format!("{frames}\n{summary}"));
    assert_eq!((shown.code, shown.err.as_str()), (0, ""));
    let short = packtrain(&["class", "test", "--summary", file.path()]);
    assert_eq!(
        (short.code, short.out.as_str(), short.err.as_str()),
        (0, summary, "")
    );
}

#[test]
fn class_test_takes_the_classes_of_a_file_in_their_order() {
    let capture = TestFile::new("own.pcapng", capture(&some_frames(), WHOLE));
    let line = "name = 'pt0'\ndefault_classes = false\n[[link]]\nname = 'eth1'\n";
    let classes = "[[class]]\nmatch = 'vlan 7'\n[[class]]\nname = 'voice'\nmatch = 'udp dport 5060'\n\
                   [[class]]\nname = 'mine'\nmatch = 'mark 7'\n";
    let file = TestFile::new("own.toml", format!("{line}{classes}"));
    let words = ["class", "test", capture.path(), "--file", file.path()];
    let shown = packtrain(&[&words[..], &["--summary"]].concat());
    assert_eq!(
        shown.out,
        "CLASS   FRAMES  BYTES\nclass1  1       166 B\nvoice   1       242 B\nmine    0       0 B\n\
         rest    6       1.3 KiB\n"
    );
    assert_eq!(
        (shown.code, shown.err.as_str()),
        (
            0,
            "note: a capture does not say what mark a frame had: it counts as 0\n"
        )
    );
}

#[test]
fn class_test_prints_a_document_for_programs_whatever_is_in_the_capture() {
    let traffic = |name: &str, frames: u64, bytes: u64| json!({"name": name, "frames": frames, "bytes": bytes});
    let counted = json!([
        traffic("arp", 1, 42),
        traffic("icmp6", 1, 58),
        traffic("icmp", 0, 0),
        traffic("dns", 1, 72),
        traffic("ef", 0, 0),
        traffic("tcp-empty", 1, 54),
        traffic("rest", 4, 1526),
    ]);
    let names = ["arp", "icmp6", "icmp", "dns", "ef", "tcp-empty", "rest"];
    let nothing = json!(names.map(|name| traffic(name, 0, 0)));
    for (frames, classes) in [(some_frames(), counted), (Vec::new(), nothing)] {
        let file = TestFile::new("json.pcapng", capture(&frames, WHOLE));
        let document = |more: &[&str]| -> Value {
            let words = ["class", "test", "--json", file.path()];
            let shown = packtrain(&[&words[..], more].concat());
            assert_eq!((shown.code, shown.err.as_str()), (0, ""));
            serde_json::from_str(&shown.out).unwrap_or_else(|e| panic!("{e}: {}", shown.out))
        };
        assert_eq!(document(&["--summary"]), json!({"classes": classes}));
        let all = document(&[]);
        assert_eq!(all["classes"], classes);
        let told = all["frames"].as_array().unwrap();
        assert_eq!(told.len(), frames.len());
        for (number, (told, frame)) in (1u64..).zip(told.iter().zip(&frames)) {
            assert_eq!(told["number"], number);
            assert_eq!(told["bytes"], frame.len() as u64);
            let expected_s = 1.7e9 + (number - 1) as f64 / 1e3;
            let time_s = told["time_s"].as_f64().unwrap();
            assert!((time_s - expected_s).abs() < 1e-6, "{time_s}");
            assert!(told["class"].is_string());
        }
    }
}

#[test]
fn class_test_reads_from_standard_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_packtrain"))
        .args(["class", "test", "-", "--summary"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&capture(&some_frames(), WHOLE)).unwrap();
    drop(stdin);
    let shown = outcome(child.wait_with_output().unwrap());
    assert_eq!((shown.code, shown.err.as_str()), (0, ""));
    assert!(shown.out.ends_with("\nrest       4       1.5 KiB\n"));
}

#[test]
fn a_capture_that_is_packed_is_taken_whatever_its_name() {
    let whole = capture(&some_frames(), WHOLE);
    let file = TestFile::new("some.pcapng", &whole);
    let shown = packtrain(&["class", "test", file.path()]);
    for packed in [gzip(&whole), zstd::encode_all(&whole[..], 0).unwrap()] {
        let file = TestFile::new("packed", packed);
        let packed = packtrain(&["class", "test", file.path()]);
        assert_eq!((packed.code, packed.err.as_str()), (0, ""));
        assert_eq!(packed.out, shown.out);
    }
}

#[test]
fn frames_of_another_link_than_ethernet_are_noted() {
    // Raw IP, of which each packet is what stands behind the Ethernet header of a frame.
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([0xff, 0xff, 0, 0, 101, 0, 0, 0]);
    for frame in &some_frames()[1..3] {
        let len = (frame.len() as u32 - 14).to_le_bytes();
        file.extend([[0; 4], [0; 4], len, len].concat());
        file.extend(&frame[14..]);
    }
    let file = TestFile::new("raw.pcap", file);
    let shown = packtrain(&["class", "test", file.path()]);
    let lines = "     1  dns              72 B  udp 10.9.0.1:1000 > 10.9.0.2:53
     2  rest            242 B  udp 10.9.0.1:1000 > 10.9.0.2:5060
";
    assert!(shown.out.starts_with(lines), "{}", shown.out);
    assert_eq!(
        (shown.code, shown.err.as_str()),
        (
            0,
            "note: 2 frames are of link type 101 (raw IP): their Ethernet headers are made up\n"
        )
    );
}

#[test]
fn what_was_not_captured_of_frames_is_noted_and_their_size_is_that_of_the_wire() {
    // The headers of all but those over IPv6, which end in the middle of it.
    let file = TestFile::new("short.pcapng", capture(&some_frames(), 54));
    let shown = packtrain(&["class", "test", file.path()]);
    assert_eq!(
        (shown.code, shown.err.as_str()),
        (
            0,
            "note: 6 frames were captured in part: what is missing of their headers matches nothing\n"
        )
    );
    for line in [
        "     5  rest           1054 B  tcp 10.9.0.1:1000 > 10.9.0.2:80\n",
        "     4  tcp-empty        54 B  tcp 10.9.0.1:1000 > 10.9.0.2:80, empty\n",
        "     6  rest            166 B  vlan 7 ip6\n",
    ] {
        assert!(shown.out.contains(line), "{line}: {}", shown.out);
    }
}

#[test]
fn what_a_capture_holds_before_it_breaks_off_is_told_and_has_code_3() {
    let whole = capture(&some_frames()[..3], WHOLE);
    let file = TestFile::new("cut.pcapng", &whole[..whole.len() - 100]);
    let offset = capture(&some_frames()[..2], WHOLE).len();
    let error = format!(
        "error: {}: packet 3 at byte {offset}: the file ends in the middle of it\n",
        file.path()
    );
    let shown = packtrain(&["class", "test", file.path()]);
    assert_eq!((shown.code, shown.err.as_str()), (3, error.as_str()));
    assert!(shown.out.starts_with("     1  arp "), "{}", shown.out);
    assert!(shown.out.contains("     2  dns "), "{}", shown.out);
    assert!(
        shown.out.ends_with("\nrest       0       0 B\n"),
        "{}",
        shown.out
    );
    let for_programs = packtrain(&["class", "test", "--json", file.path()]);
    assert_eq!((for_programs.code, for_programs.err), (3, error));
    let document: Value = serde_json::from_str(&for_programs.out).unwrap();
    assert_eq!(document["frames"].as_array().unwrap().len(), 2);
}

#[test]
fn a_file_that_is_no_capture_is_told_with_what_to_do_and_has_code_3() {
    let text = TestFile::new("text.pcap", "no capture, but some text");
    let empty = TestFile::new("empty.pcap", "");
    let packed = TestFile::new("packed.pcap.bz2", "BZh9 ...");
    for (path, told) in [
        (
            "/nonexistent/a.pcap",
            "No such file or directory (os error 2)\n",
        ),
        (empty.path(), "the file is empty\n"),
        (
            text.path(),
            "not a capture file: neither pcap nor pcapng\n       other formats that Wireshark reads: \
             rewrite them with editcap -F pcap\n",
        ),
        (
            packed.path(),
            "the file is compressed (bzip2)\n       unpack it first: bzip2 -dc, by a pipe and - for the \
             file as well\n",
        ),
    ] {
        let result = packtrain(&["class", "test", path]);
        assert_eq!(
            (result.code, result.err),
            (3, format!("error: {path}: {told}"))
        );
        assert_eq!(result.out, "");
    }
    let gzip = gzip(&capture(&some_frames(), WHOLE));
    let cut = TestFile::new("cut.gz", &gzip[..gzip.len() - 9]);
    let result = packtrain(&["class", "test", "--summary", cut.path()]);
    assert_eq!(result.code, 3);
    let start = format!("error: {} (gzip, unpacked): ", cut.path());
    assert!(result.err.starts_with(&start), "{}", result.err);
    assert!(
        result.err.ends_with(": the gzip stream is cut off\n"),
        "{}",
        result.err
    );
    let right = TestFile::new("right.pcapng", capture(&some_frames(), WHOLE));
    let wrong = TestFile::new(
        "class.toml",
        "name = 'pt0'\n[[link]]\nname = 'e'\n[[class]]\n",
    );
    let result = packtrain(&["class", "test", right.path(), "--file", wrong.path()]);
    assert_eq!(
        (result.code, result.err),
        (
            3,
            format!("error: {}:4: class.match: is missing\n", wrong.path())
        )
    );
}

#[test]
fn who_reads_of_class_test_may_stop_reading() {
    // More than a pipe holds.
    let frames = vec![ethernet(0x0800, &ipv4(17, &udp(5060, 10))); 20_000];
    let file = TestFile::new("long.pcapng", capture(&frames, WHOLE));
    for more in [&[][..], &["--json"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_packtrain"))
            .args([&["class", "test", file.path()][..], more].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        // It is closed behind this line.
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut first)
            .unwrap();
        assert!(!first.is_empty());
        let ended = outcome(child.wait_with_output().unwrap());
        assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{more:?}");
    }
}
