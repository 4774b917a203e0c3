//! `packtrain class` on lines that run.

use std::time::Duration;

use packtrain::lab::wait_for;
use packtrain::pcapng;
use serde_json::Value;

use super::host::{Host, Outcome, schema_problems};

#[test]
fn classes_are_added_listed_and_removed_by_their_names() {
    live!();
    let host = Host::alone();
    host.fails_words(
        &["class", "list"],
        9,
        "error: a line is not running\n       no line runs in this network namespace\n",
    );
    host.done("up pt0 --link eth1");
    let add = |more: &[&str]| host.words(&[&["class", "add"], more].concat());
    let added = add(&["--match", "udp  and dport 5060", "--pack", "now"]);
    assert_eq!(
        added,
        Outcome {
            code: 0,
            out: "pt0 has class class1: udp dport 5060\n".into(),
            err: String::new(),
        }
    );
    let words = [
        "pt0",
        "--name",
        "first",
        "--before",
        "class1",
        "--match",
        "udp dport 5061",
    ];
    let first = add(&[
        &words[..],
        &[
            "--path",
            "engine",
            "--compress",
            "headers",
            "--duplicate",
            "--links",
            "eth1",
            "--repair",
            "lossless",
            "--json",
        ],
    ]
    .concat());
    let first: Value = serde_json::from_str(&first.out).unwrap();
    let nothing = serde_json::json!({"frames": 0, "bytes": 0});
    assert_eq!(
        first,
        serde_json::json!({
            "name": "first",
            "match": "udp dport 5061",
            "pack": "queued",
            "path": "engine",
            "loss_ok": false,
            "duplicate": true,
            "links": ["eth1"],
            "repair": "lossless",
            "compress": "headers",
            "taken": nothing,
            "waited": {
                "trains": 0,
                "held_trains": 0,
                "p50_s": 0.0,
                "p99_s": 0.0,
                "p999_s": 0.0,
                "max_s": 0.0,
                "buckets": [],
            },
        })
    );
    let listed = host.done("class list");
    assert!(
        listed.out.contains("engine, twice by eth1; lossless"),
        "{}",
        listed.out
    );
    let names: Vec<&str> = listed
        .out
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        names,
        [
            "CLASS",
            "first",
            "class1",
            "arp",
            "icmp6",
            "icmp",
            "dns",
            "ef",
            "tcp-empty",
            "rest"
        ]
    );
    // Frames of the host itself pass meanwhile, so that counts of the two differ now and then.
    let both = || -> [Value; 2] {
        let listed = host.done("class list pt0 --json").out;
        let listed = serde_json::from_str(&listed).unwrap();
        [listed, host.status("pt0")["classes"].take()]
    };
    let mut listed = both();
    let _ = wait_for("a moment without frames", Duration::from_secs(5), || {
        listed = both();
        listed[0] == listed[1]
    });
    assert_eq!(listed[0], listed[1]);
    assert_eq!(listed[0][0], first);
    assert_eq!(schema_problems(&host.status("pt0")), Vec::<String>::new());

    host.fails_words(
        &["class", "add", "--name", "first", "--match", "udp"],
        2,
        "error: there is a class first already\n",
    );
    host.fails_words(
        &["class", "add", "--match", "udp", "--links", "eth1,eth9"],
        4,
        "error: eth9 is no link of pt0\n       pt0 has: eth1\n",
    );
    let some = "error: links are for all frames of a flow: a class that names them matches by no size, mark, code point or \"tcp empty\"\n";
    host.fails_words(
        &[
            "class",
            "add",
            "--match",
            "udp size -200",
            "--links",
            "eth1",
        ],
        2,
        some,
    );
    let has = "       the line has: first, class1, arp, icmp6, icmp, dns, ef, tcp-empty\n";
    let unknown = format!("error: there is no class secnod\n{has}");
    host.fails("class remove pt0 secnod", 4, &unknown);
    host.fails("class add --match udp --before secnod", 4, &unknown);
    for name in [
        "first",
        "class1",
        "arp",
        "icmp6",
        "icmp",
        "dns",
        "tcp-empty",
    ] {
        let removed = host.done(&format!("class remove pt0 {name}")).out;
        assert_eq!(removed, format!("pt0 has no class {name} any more\n"));
    }
    let last: Value = serde_json::from_str(&host.done("class remove pt0 ef --json").out).unwrap();
    assert_eq!(
        (&last["name"], &last["match"]),
        (&"ef".into(), &"dscp ef".into())
    );
    host.fails(
        "class remove pt0 ef",
        4,
        "error: there is no class ef\n       the line has no classes\n",
    );
    let left: Value = serde_json::from_str(&host.done("class list --json").out).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(
        (&left[0]["name"], &left[0]["match"]),
        (&"rest".into(), &Value::Null)
    );
}

#[test]
fn who_is_not_root_sees_classes_and_changes_none() {
    live!();
    let host = Host::alone();
    host.done("up pt0 --link eth1");
    assert_eq!(host.as_other("class list pt0").code, 0);
    for arguments in ["class add pt0 --match udp", "class remove pt0 dns"] {
        let refused = host.as_other(arguments);
        assert_eq!((refused.code, refused.out.as_str()), (7, ""), "{arguments}");
    }
    assert_eq!(host.status("pt0")["classes"].as_array().unwrap().len(), 7);
}

#[test]
fn a_class_that_needs_the_direct_path_is_refused_where_there_is_none_with_the_reason() {
    live!();
    let host = Host::alone();
    for (option, because) in [
        ("--path engine", "its path is engine"),
        ("--no-marked-frames", "it has no marked frames"),
    ] {
        host.done(&format!("up pt0 --link eth1 {option}"));
        host.fails_words(
            &["class", "add", "--name", "m", "--match", "udp mark 7"],
            2,
            &format!("error: class m: frames show no mark on pt0, because {because}\n"),
        );
        host.fails_words(
            &["class", "add", "--match", "udp", "--path", "direct"],
            2,
            &format!("error: class class1: no frame goes direct on pt0, because {because}\n"),
        );
        assert_eq!(host.status("pt0")["classes"].as_array().unwrap().len(), 7);
        // What needs neither is taken.
        host.done("class add --match udp --path engine --pack 5ms");
        host.done("down pt0");
    }
    let file = std::env::temp_dir().join(format!("packtrain-{}-mark.toml", std::process::id()));
    let line = "name = 'pt0'\npath = 'engine'\n[[link]]\nname = 'eth1'\n";
    std::fs::write(
        &file,
        format!("{line}[[class]]\nname = 'm'\nmatch = 'mark 7'\n"),
    )
    .unwrap();
    let before = host.dump();
    let run = host.words(&["run", file.to_str().unwrap()]);
    std::fs::remove_file(file).unwrap();
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    // Behind what the line in the foreground logs.
    let error = "error: class m: frames show no mark on pt0, because its path is engine\n";
    assert!(run.err.ends_with(error), "{}", run.err);
    host.is_as(&before, "a start that was refused");
}

#[test]
fn of_several_lines_the_one_that_is_meant_has_to_be_named() {
    live!();
    let host = Host::alone();
    host.done("up pt0 --link eth1");
    host.done("up pt1 --link eth2 --line-id 7");
    let error = "error: several lines run: name one of pt0, pt1\n";
    host.fails("class list", 2, error);
    host.fails("class add --match udp", 2, error);
    host.done("class add pt1 --match udp");
    let count = |line: &str| host.status(line)["classes"].as_array().unwrap().len();
    assert_eq!((count("pt0"), count("pt1")), (7, 8));
}

#[test]
fn a_capture_is_sorted_by_the_classes_of_a_line_that_runs() {
    live!();
    let host = Host::alone();
    host.done("up pt0 --link eth1");
    host.words(&[
        "class",
        "add",
        "--name",
        "lldp",
        "--match",
        "ethertype lldp",
    ]);
    let mut capture = Vec::new();
    pcapng::section_header(&mut capture, "a test");
    let interface = pcapng::Interface {
        name: "eth1".into(),
        description: None,
        speed_bps: None,
        snap_len: 0,
    };
    pcapng::interface_description(&mut capture, &interface);
    let frame = [&[2; 12][..], &[0x88, 0xcc], &[0; 46]].concat();
    let packet = pcapng::Packet {
        interface: 0,
        unix_nanos: 0,
        bytes: &frame,
        len: frame.len() as u32,
        direction: None,
        comment: None,
    };
    pcapng::enhanced_packet(&mut capture, &packet);
    let file = std::env::temp_dir().join(format!("packtrain-{}-line.pcapng", std::process::id()));
    std::fs::write(&file, capture).unwrap();
    let words = [
        "class",
        "test",
        file.to_str().unwrap(),
        "--json",
        "--line",
        "pt0",
    ];
    let sorted = host.words(&words);
    std::fs::remove_file(file).unwrap();
    let sorted: Value = serde_json::from_str(&sorted.out).unwrap();
    assert_eq!(sorted["frames"][0]["class"], "lldp");
    let first = serde_json::json!({"name": "lldp", "frames": 1, "bytes": 60});
    assert_eq!(sorted["classes"][0], first);
    // Asking changes nothing.
    assert_eq!(host.status("pt0")["classes"][0]["taken"]["frames"], 0);
}
