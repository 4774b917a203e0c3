//! `packtrain filter explain`, for a host that a file describes: what is printed, and each error.

use packtrain::pcapng;
use serde_json::Value;

use crate::binary::{TestFile, packtrain, packtrain_reading};

const HOST: &str = "mac = ['52:54:00:00:00:01']\naddresses = ['10.1.0.1']\n";

/// From 10.1.0.9.
fn arp_request(target: [u8; 4]) -> Vec<u8> {
    let sender = [0x52, 0x54, 0, 0, 0, 9];
    let head = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
    let parts: [&[u8]; 8] = [
        &[0xff; 6],
        &sender,
        &head,
        &sender,
        &[10, 1, 0, 9],
        &[0; 6],
        &target,
        &[0; 18],
    ];
    parts.concat()
}

/// Somebody asks for the host, and for another one a quarter of a second later.
fn two_frames() -> Vec<u8> {
    let mut file = Vec::new();
    pcapng::section_header(&mut file, "a test");
    let interface = pcapng::Interface {
        name: "eth1".into(),
        description: None,
        speed_bps: None,
        snap_len: 0,
    };
    pcapng::interface_description(&mut file, &interface);
    for (at, target) in [(0, [10, 1, 0, 1]), (250_000_000, [10, 1, 0, 7])] {
        let frame = arp_request(target);
        let packet = pcapng::Packet {
            interface: 0,
            unix_nanos: 1_700_000_000_000_000_000 + at,
            bytes: &frame,
            len: frame.len() as u32,
            direction: None,
            comment: None,
        };
        pcapng::enhanced_packet(&mut file, &packet);
    }
    file
}

#[test]
fn each_frame_of_a_capture_is_judged_for_a_described_host() {
    let host = TestFile::new("judged-for.toml", HOST);
    let frames = TestFile::new("judged.pcapng", two_frames());
    let shown = packtrain(&["filter", "explain", frames.path(), "--as", host.path()]);
    let text = "     1      0.000000     60 B  ARP 10.1.0.9 asks for 10.1.0.1              pass  ARP that concerns an address of this host
     2      0.250000     60 B  ARP 10.1.0.9 asks for 10.1.0.7              drop  ARP that concerns others

2 frames: 1 useful, 1 dropped
";
    assert_eq!((shown.code, shown.err.as_str()), (0, ""));
    assert_eq!(shown.out, text);
    let arguments = ["filter", "explain", "-", "--as", host.path(), "--json"];
    let read = packtrain_reading(&arguments, &two_frames());
    assert_eq!((read.code, read.err.as_str()), (0, ""));
    let reasons: Vec<Value> = read
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["reason"].clone())
        .collect();
    assert_eq!(reasons, ["arp_ours", "foreign_arp"]);
    let summary = [&arguments[..], &["--summary"]].concat();
    let document: Value =
        serde_json::from_str(&packtrain_reading(&summary, &two_frames()).out).unwrap();
    assert_eq!(document["host"], host.path());
    assert_eq!(document["mix"]["arp"], 2);
}

#[test]
fn what_cannot_be_explained_is_told_with_its_place() {
    let right = TestFile::new("right-host.toml", HOST);
    let wrong = TestFile::new("wrong-host.toml", "mac = ['52:54']\ncolour = 'red'\n");
    let frames = TestFile::new("explained.pcapng", two_frames());
    let text = TestFile::new("no-capture.pcap", "these are no frames");
    let explain = |capture: &str, host: &str| {
        let outcome = packtrain(&["filter", "explain", capture, "--as", host]);
        assert_eq!(outcome.out, "");
        (outcome.code, outcome.err)
    };
    let path = wrong.path();
    assert_eq!(
        explain(frames.path(), path),
        (
            3,
            format!(
                "error: {path}:1: mac: a MAC address has six pairs of hexadecimal digits, as in 02:00:00:00:00:01\n\
                 error: {path}:2: colour: unknown key (known here: addresses, groups, local, mac, neighbours, promiscuous)\n"
            )
        )
    );
    let none = "error: /nonexistent/h.toml: No such file or directory (os error 2)\n";
    assert_eq!(
        explain(frames.path(), "/nonexistent/h.toml"),
        (3, none.into())
    );
    let (code, error) = explain("/nonexistent/f.pcap", right.path());
    assert_eq!(code, 3);
    assert!(error.starts_with("error: /nonexistent/f.pcap: "), "{error}");
    let (code, error) = explain(text.path(), right.path());
    assert_eq!(code, 3);
    assert!(
        error.starts_with(&format!("error: {}", text.path())),
        "{error}"
    );
    let missing = packtrain(&["filter", "explain", frames.path(), "--interface", "pt-none"]);
    assert!(
        missing
            .err
            .starts_with("error: no such interface: pt-none\n"),
        "{}",
        missing.err
    );
    assert_eq!(missing.code, 4);
}

#[test]
fn options_that_contradict_each_other_are_refused_and_help_shows_how() {
    for (arguments, text) in [
        (&["filter", "explain"][..], "<FRAMES.pcap>"),
        (
            &["filter", "explain", "f", "--interface", "e", "--as", "h"],
            "cannot be used with",
        ),
        (
            &["filter", "explain", "f", "--policy", "none"],
            "'none' for '--policy <POLICY>'\n  [possible values: host, nima]",
        ),
    ] {
        let result = packtrain(arguments);
        assert_eq!(result.code, 2, "{arguments:?}: {}", result.err);
        assert!(result.err.contains(text), "{arguments:?}: {}", result.err);
    }
    let help = packtrain(&["filter", "explain", "--help"]);
    assert_eq!(help.code, 0);
    let example = "Examples:\n  packtrain filter explain";
    assert!(help.out.contains(example), "{}", help.out);
    assert!(help.out.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn how_long_a_confirmation_is_waited_for_is_bounded_and_help_shows_it() {
    let on = ["filter", "on", "eth1"];
    let deny = ["filter", "deny", "eth1", "icmp"];
    let remove = ["filter", "remove", "eth1", "rule1"];
    for command in [&on[..], &deny, &remove] {
        for time in ["0", "3601s", "1.5", "2m", ""] {
            let result = packtrain(&[command, &["--confirm", time]].concat());
            assert_eq!(result.code, 2, "{command:?} {time}: {}", result.err);
            let why = "a time in seconds, 1 to 3600";
            assert!(
                result.err.contains(why),
                "{command:?} {time}: {}",
                result.err
            );
        }
    }
    let help = packtrain(&["filter", "confirm", "--help"]);
    assert_eq!(help.code, 0);
    let example = "Examples:\n  packtrain filter confirm eth1";
    assert!(help.out.contains(example), "{}", help.out);
    let nobody = packtrain(&["filter", "confirm", "pt-none"]);
    assert_eq!(
        (nobody.code, nobody.err.as_str()),
        (9, "error: no receive filter runs on pt-none\n")
    );
}

#[test]
fn top_says_what_it_takes_and_what_to_do_without_a_terminal() {
    for (arguments, code, text) in [
        // Before it looks for a filter.
        (
            &["filter", "top", "eth1"][..],
            2,
            "error: standard output is no terminal: `packtrain filter top eth1 --batch` prints text and `--json` JSON, \
             again and again; `packtrain filter status eth1 --json` once\n",
        ),
        (
            &["filter", "top", "--interval", "0.1"],
            2,
            "'0.1' for '--interval <SECONDS>': a time in seconds, 0.2 to 60",
        ),
        (
            &["filter", "top", "-n", "3"],
            2,
            "required arguments were not provided",
        ),
        (
            &["filter", "top", "-b", "-n", "0"],
            2,
            "'0' for '--count <COUNT>'",
        ),
        (
            &["filter", "top", "--theme", "blue"],
            2,
            "'blue' for '--theme <THEME>'\n  [possible values: auto, dark, light, plain]",
        ),
        (
            &["filter", "top", "pt-none", "--batch"],
            9,
            "error: no receive filter runs on pt-none\n",
        ),
        (
            &["filter", "top", "pt-none", "--json", "--batch", "-n", "1"],
            9,
            "error: no receive filter runs on pt-none\n",
        ),
    ] {
        let result = packtrain(arguments);
        assert_eq!(result.code, code, "{arguments:?}: {}", result.err);
        assert!(result.err.contains(text), "{arguments:?}: {}", result.err);
        assert_eq!(result.out, "");
    }
    let help = packtrain(&["filter", "top", "--help"]);
    assert_eq!(help.code, 0);
    for text in [
        "Examples:\n  packtrain filter top\n",
        "one that is started anew counts anew",
        "exit code 9",
        "Keys:\n  q, Esc, Ctrl-C",
    ] {
        let flat = help.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            help.out.contains(text) || flat.contains(text),
            "{}",
            help.out
        );
    }
    assert!(help.out.lines().all(|line| line.chars().count() <= 100));
}
