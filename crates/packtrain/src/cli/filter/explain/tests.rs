//! A small capture with something of everything, and what is said of it.

use std::io::Cursor;

use packtrain_proto::filter::Interface;

use super::*;
use crate::pcapng;

const OWN: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const OTHER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 9];
const ALL: [u8; 6] = [0xff; 6];

fn frame(to: [u8; 6], from: [u8; 6], behind_addresses: &[&[u8]]) -> Vec<u8> {
    [&to, &from, &behind_addresses.concat()[..]].concat()
}

/// From 10.1.0.9.
fn arp_request(target: [u8; 4]) -> Vec<u8> {
    let head = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
    let parts: &[&[u8]] = &[&head, &OTHER, &[10, 1, 0, 9], &[0; 6], &target, &[0; 18]];
    frame(ALL, OTHER, parts)
}

fn ipv4(to: [u8; 6], protocol: u8, target: [u8; 4], payload_bytes: usize) -> Vec<u8> {
    let len = (20 + payload_bytes) as u16;
    let mut header = [0; 22];
    header[0] = 8;
    header[2] = 0x45;
    header[4..6].copy_from_slice(&len.to_be_bytes());
    (header[10], header[11]) = (64, protocol);
    header[14..18].copy_from_slice(&[10, 1, 0, 9]);
    header[18..22].copy_from_slice(&target);
    let mut transport = vec![0; payload_bytes];
    transport[..4].copy_from_slice(&[3, 232, 0, 53]);
    transport[12] = 5 << 4;
    frame(to, OTHER, &[&header, &transport])
}

/// Who has fe80::5?
fn solicitation() -> Vec<u8> {
    let mut packet = [0; 2 + 40 + 24];
    packet[..3].copy_from_slice(&[0x86, 0xdd, 0x60]);
    (packet[7], packet[8], packet[9]) = (24, 58, 255);
    (packet[10], packet[11], packet[25]) = (0xfe, 0x80, 9);
    packet[26..28].copy_from_slice(&[0xff, 2]);
    packet[37..42].copy_from_slice(&[1, 0xff, 0, 0, 5]);
    packet[42] = 135;
    frame([0x33, 0x33, 0xff, 0, 0, 5], OTHER, &[&packet])
}

fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(60.max(frame.len()), 0);
    frame
}

fn some_frames() -> Vec<Vec<u8>> {
    vec![
        arp_request([10, 1, 0, 1]),
        arp_request([10, 1, 0, 7]),
        ipv4(OWN, 17, [10, 1, 0, 1], 100),
        ipv4([0x52, 0x54, 0, 0, 0, 7], 6, [10, 1, 0, 7], 1460),
        padded(frame(
            [1, 0x80, 0xc2, 0, 0, 0],
            OTHER,
            &[&[0, 38, 0x42, 0x42, 3]],
        )),
        padded(frame(ALL, OTHER, &[&[0, 34, 0xff, 0xff]])),
        ipv4([1, 0, 0x5e, 0, 0, 0xfb], 17, [224, 0, 0, 251], 300),
        solicitation(),
        padded(frame([1, 0x80, 0xc2, 0, 0, 14], OTHER, &[&[0x88, 0xcc]])),
        padded(frame([3, 0, 0, 0, 0, 1], OTHER, &[&[0, 44, 0xf0, 0xf0, 3]])),
        padded(frame(
            [1, 0, 12, 0xcc, 0xcc, 0xcc],
            OTHER,
            &[&[0, 40, 0xaa, 0xaa, 3, 0, 0, 12, 0x20, 0]],
        )),
        ipv4(ALL, 17, [255, 255, 255, 255], 240),
        padded(frame(OTHER, OWN, &[&[0x12, 0x34]])),
        vec![0x52, 0x54, 0, 0, 0, 1, 0x52, 0x54],
    ]
}

/// Of a file that keeps no more than so much of each frame.
fn beginning(snap_len: usize) -> Vec<u8> {
    let mut file = Vec::new();
    pcapng::section_header(&mut file, "a test");
    let interface = pcapng::Interface {
        name: "eth1".into(),
        description: None,
        speed_bps: None,
        snap_len: snap_len as u32,
    };
    pcapng::interface_description(&mut file, &interface);
    file
}

/// A millisecond between any two; no more than `snap_len` bytes are kept of each.
fn capture(frames: &[Vec<u8>], snap_len: usize) -> Vec<u8> {
    let mut file = beginning(snap_len);
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

fn explained(policy: Policy, summary: bool, json: bool) -> Explained {
    let host = Host {
        interface: Interface {
            unicast: vec![packtrain_proto::wire::ethernet::MacAddr(OWN)],
            ..Interface::default()
        },
        local: vec!["10.1.0.1".parse().unwrap()],
        ..Host::default()
    };
    let terms = Terms {
        host: "a test's host".into(),
        policy,
    };
    Explained::new(host, Rules::default(), terms, Shape { summary, json })
}

fn with_rules(explained: Explained, rules: &str) -> Explained {
    let path = std::path::Path::new("rules.toml");
    let read = crate::filter::rules_file::parse(path, rules).unwrap();
    Explained {
        rules: Rules::of(read.rules, read.image),
        ..explained
    }
}

/// What is printed without a terminal, and the error behind it.
fn said(explained: &mut Explained, file: Vec<u8>) -> (String, Option<String>) {
    let mut capture = CaptureFile::from_reader("f", Cursor::new(file)).unwrap();
    let mut out = Vec::new();
    let error = match explained.all(&mut capture, &mut out) {
        Ok(()) => None,
        Err(Stop::Capture(error)) => Some(error.to_string()),
        Err(Stop::Output(error)) => panic!("{error}"),
    };
    let text = String::from_utf8(out).unwrap();
    (anstream::adapter::strip_str(&text).to_string(), error)
}

fn of_some(explained: &mut Explained) -> String {
    let (text, error) = said(explained, capture(&some_frames(), 65_535));
    assert_eq!(error, None);
    text
}

#[test]
fn each_frame_has_its_verdict_and_why() {
    let text = of_some(&mut explained(Policy::Host, false, false));
    assert_eq!(text, include_str!("tests/frames.txt"));
}

#[test]
fn a_summary_is_the_papers_tables_and_the_verdicts() {
    let text = of_some(&mut explained(Policy::Host, true, false));
    assert_eq!(text, include_str!("tests/summary.txt"));
}

#[test]
fn by_the_papers_letter_link_control_is_dropped() {
    let text = of_some(&mut explained(Policy::Nima, false, false));
    assert!(
        text.contains("LLDP > 01:80:c2:00:00:0e                    drop  to a group"),
        "{text}"
    );
}

#[test]
fn programs_get_a_line_for_each_frame() {
    let text = of_some(&mut explained(Policy::Host, false, true));
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), some_frames().len());
    assert_eq!(
        lines[1],
        serde_json::json!({
            "number": 2,
            "time_s": 1_700_000_000.001,
            "bytes": 60,
            "source": "52:54:00:00:00:09",
            "destination": "ff:ff:ff:ff:ff:ff",
            "protocol": "arp",
            "transport": null,
            "verdict": "drop",
            "reason": "foreign_arp",
            "rule": null,
        })
    );
    let runt = &lines[13];
    assert_eq!(runt["destination"], serde_json::Value::Null);
    assert_eq!(
        (&runt["verdict"], &runt["reason"]),
        (&"pass".into(), &"short".into())
    );
}

#[test]
fn programs_get_one_document_of_a_summary_whose_sums_agree() {
    let text = of_some(&mut explained(Policy::Host, true, true));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let all = some_frames().len() as u64;
    let sum = |key: &str| -> u64 {
        let values = document[key].as_object().unwrap().values();
        values.map(|value| value.as_u64().unwrap()).sum()
    };
    assert_eq!(document["handled"]["frames"], all);
    assert_eq!((sum("sizes"), sum("mix")), (all, all));
    assert_eq!(sum("casts"), all - 1, "a runt is to nobody");
    assert_eq!(document["protocols"]["ipv4"], 4);
    assert_eq!(document["protocols"]["ipv4_udp"], 3);
    assert_eq!(document["reasons"]["foreign_arp"]["verdict"], "drop");
    assert_eq!(document["reasons"]["foreign_arp"]["bytes"], 60);
    let bytes: u64 = some_frames().iter().map(|frame| frame.len() as u64).sum();
    assert_eq!(document["handled"]["bytes"], bytes);
    let parts = ["useful", "dropped"].map(|key| document[key]["bytes"].as_u64().unwrap());
    assert_eq!(parts.iter().sum::<u64>(), bytes);
}

#[test]
fn a_capture_without_frames_has_a_summary() {
    let mut explained = explained(Policy::Host, true, false);
    let (text, error) = said(&mut explained, capture(&[], 65_535));
    assert_eq!(error, None);
    assert!(
        text.starts_with("0 frames, judged for a test's host, policy host\n"),
        "{text}"
    );
    assert!(
        text.contains("  MAC (all)                        0         -\n"),
        "{text}"
    );
}

#[test]
fn what_was_read_before_a_file_breaks_off_is_told_and_then_the_error() {
    let mut file = capture(&some_frames(), 65_535);
    file.truncate(file.len() - 5);
    let (text, error) = said(&mut explained(Policy::Host, false, false), file);
    assert_eq!(text.lines().count(), some_frames().len() - 1 + 2);
    assert!(
        text.ends_with(
            "13 frames: 6 useful, 7 dropped
"
        ),
        "{text}"
    );
    let error = error.unwrap();
    assert!(error.starts_with("f: "), "{error}");
}

#[test]
fn what_a_capture_lacks_is_noted() {
    let mut explained = explained(Policy::Host, true, false);
    said(&mut explained, capture(&some_frames(), 64));
    assert_eq!(
        explained.notes(),
        [
            "1 frames are from this host itself: a filter sees only what comes in, here they are judged like all others \
             (tcpdump -Q in leaves them out)",
            "5 frames were captured in part: where that is too short to tell, a filter sees more",
        ]
    );
}

const RULES: &str = "\
[sets]
neighbours = ['10.1.0.0/24']
[[rule]]
name = 'groups'
verdict = 'allow'
match = 'dst 224.0.0.251'
[[rule]]
name = 'few'
limit = '1/s burst 1 per source'
match = 'udp src @neighbours'
[[rule]]
name = 'nothing'
verdict = 'deny'
match = 'vlan 7'
[[rule]]
name = 'short'
verdict = 'deny'
match = 'size -13'
";

#[test]
fn rules_decide_first_and_are_named() {
    let text = of_some(&mut with_rules(
        explained(Policy::Host, false, false),
        RULES,
    ));
    let lines: Vec<&str> = text.lines().collect();
    for (number, ends) in [
        (3, "pass  to an address of the interface"),
        (7, "pass  by a rule: groups"),
        // From the same source, 9 ms after the first.
        (12, "drop  more than a rule allows: few"),
        (14, "drop  by a rule: short"),
    ] {
        let line = lines[number - 1];
        assert!(line.ends_with(ends), "{line}");
    }
    let text = of_some(&mut with_rules(explained(Policy::Host, false, true), RULES));
    let named: Vec<(usize, String)> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .enumerate()
        .filter_map(|(at, line)| Some((at + 1, line["rule"].as_str()?.to_owned())))
        .collect();
    let named: Vec<(usize, &str)> = named.iter().map(|(at, rule)| (*at, &rule[..])).collect();
    assert_eq!(named, [(7, "groups"), (12, "few"), (14, "short")]);
}

#[test]
fn a_summary_counts_by_rule_also_those_that_decide_nothing() {
    let text = of_some(&mut with_rules(explained(Policy::Host, true, false), RULES));
    let expected = "
  rule            frames           bytes     share  decides
  groups               1             334     7.1 %  allow dst 224.0.0.251
  few                  1             274     7.1 %  limit 1/s burst 1 per source: udp src @neighbours
  nothing              0               0     0.0 %  deny vlan 7
  short                1               8     7.1 %  deny size 0-13
";
    assert!(text.ends_with(expected), "{text}");
    let text = of_some(&mut with_rules(explained(Policy::Host, true, true), RULES));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        document["rules"][1],
        serde_json::json!({
            "name": "few",
            "verdict": "limit",
            "limit": "1/s burst 1 per source",
            "match": "udp src @neighbours",
            "frames": 1,
            "bytes": 274,
        })
    );
    assert_eq!(document["reasons"]["limited"]["frames"], 1);
}

/// Which of some UDP frames, so far apart and of these sources, a limit lets pass.
fn limited(limit: &str, gaps_ms: &[u64], sources: &[u8], snap_len: usize) -> Vec<bool> {
    let mut file = beginning(snap_len);
    let mut at = 1_700_000_000_000_000_000;
    for (gap, source) in gaps_ms.iter().zip(sources) {
        at += gap * 1_000_000;
        let mut frame = ipv4(OWN, 17, [10, 1, 0, 1], 1480);
        frame[14 + 15] = *source;
        let packet = pcapng::Packet {
            interface: 0,
            unix_nanos: at,
            bytes: &frame[..frame.len().min(snap_len)],
            len: frame.len() as u32,
            direction: None,
            comment: None,
        };
        pcapng::enhanced_packet(&mut file, &packet);
    }
    let rules = format!("[[rule]]\nlimit = '{limit}'\nmatch = 'udp'");
    let (text, error) = said(
        &mut with_rules(explained(Policy::None, false, true), &rules),
        file,
    );
    assert_eq!(error, None);
    let passes = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    text.lines()
        .map(|line| passes(line)["verdict"] == "pass")
        .collect()
}

#[test]
fn limits_fill_in_the_time_of_the_capture() {
    let limit = "2/s burst 2";
    let gaps = [0, 0, 0, 400, 100, 0];
    let passed = limited(limit, &gaps, &[9; 6], 2000);
    assert_eq!(passed, [true, true, false, false, true, false]);
    // Of each source apart.
    let passed = limited("2/s burst 2 per source", &gaps, &[9, 9, 8, 8, 9, 9], 2000);
    assert_eq!(passed, [true, true, true, true, true, false]);
    // In bytes of the frames as they were, also where little of them was captured.
    let passed = limited("1514B/s burst 3028B", &[0, 0, 0, 1000], &[9; 4], 64);
    assert_eq!(passed, [true, true, false, true]);
}
