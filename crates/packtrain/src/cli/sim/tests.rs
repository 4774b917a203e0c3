//! Scenarios in files, run by what the commands run.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use super::*;
use crate::cli::arguments::{Arguments, Command};

const TINY: &str = r#"
title = "Two through one queue"
[parameters.rate]
says = "of the bottleneck"
default = "10mbit"
least = "1mbit"
most = "20mbit"
[parameters.least]
says = "that is expected"
default = 0.9
[quick]
rate = "4mbit"
[sweep]
vary = "rate=2mbit,4mbit"
seeds = 2
[run]
seconds = 2
ignore = 1
sample = "100ms"
[[line]]
name = "bottleneck"
rate = "${rate}bit:ip"
delay = "5ms"
queue = "30kb"
[[flow]]
name = "both"
count = 2
path = ["bottleneck"]
starts = "0s..100ms"
[[value]]
name = "carried"
is = "throughput(bottleneck) / 1e6"
unit = "Mbit/s"
says = "what the bottleneck carries"
[[value]]
name = "fairness"
is = "jain(both)"
[[plot]]
title = "Carried"
x = "rate"
y = "carried"
[[plot]]
title = "Windows"
x = "time"
y = "cwnd(both)"
[[expect]]
says = "it is full"
that = "carried >= least * rate / 1e6"
"#;

/// A folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("packtrain-sim-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn done(words: &[&str]) -> Result<Done, CliError> {
    let words = [&["packtrain", "sim"], words].concat();
    let Command::Sim(SimArguments { command }) = Arguments::parse_from(words).command else {
        unreachable!("it is asked for");
    };
    match command {
        SimCommand::Run(arguments) => run_once(&arguments),
        SimCommand::Sweep(arguments) => sweep_all(&arguments),
        _ => unreachable!("they run nothing"),
    }
}

fn plain(done: &Done) -> String {
    anstream::adapter::strip_str(&done.printed).to_string()
}

#[test]
fn a_scenario_of_a_file_is_run_and_told_as_text_as_json_and_as_csv() {
    let folder = Folder::new("run");
    let file = folder.file("tiny.toml", TINY);
    let run = done(&["run", &file, "--quick", "--seed", "3"]).unwrap();
    let text = plain(&run);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Two through one queue (tiny)");
    assert_eq!(
        lines[1],
        "rate = 4mbit, least = 0.9, seed 3, the quick form"
    );
    assert!(lines[3].starts_with("carried "), "{text}");
    assert!(
        lines[3].ends_with(" Mbit/s  what the bottleneck carries"),
        "{text}"
    );
    assert!(
        text.contains(
            "\nmet      it is full: carried >= least * rate / 1e6 (these settings: carried = "
        ),
        "{text}"
    );
    assert!(run.unmet.is_empty() && run.files.is_empty());

    let json = done(&["run", &file, "--quick", "--seed", "3", "--json"]).unwrap();
    let document: serde_json::Value = serde_json::from_str(&json.printed).unwrap();
    let mean = document["points"][0]["values"]["carried"]["mean"]
        .as_f64()
        .unwrap();
    assert!((3.6..=4.0).contains(&mean), "{mean}");
    assert_eq!(document["seeds"][0], 3);
    let command = format!("packtrain sim run {file} --seed 3 --quick");
    assert_eq!(document["command"], command);

    let csv = done(&["run", &file, "--quick", "--seed", "3", "--csv"]).unwrap();
    let (heading, row) = csv.printed.split_once('\n').unwrap();
    assert_eq!(heading, "seed,carried,fairness");
    assert!(row.starts_with(&format!("3,{mean},")), "{row}");
}

#[test]
fn what_is_not_met_is_told_behind_what_has_come_out() {
    let folder = Folder::new("unmet");
    let file = folder.file("tiny.toml", TINY);
    let run = done(&["run", &file, "--quick", "--set", "least=2"]).unwrap();
    assert!(plain(&run).contains("\nNOT MET  it is full: "));
    assert_eq!(
        (run.unmet, run.expectations),
        (vec!["it is full".into()], 1)
    );
}

#[test]
fn a_sweep_writes_its_plots_and_its_page_and_runs_nothing_twice() {
    let folder = Folder::new("sweep");
    let file = folder.file("tiny.toml", TINY);
    let places = ["plots", "page.html", "kept"].map(|name| folder.0.join(name));
    let [plots, page, kept] = places.each_ref().map(|path| path.to_str().unwrap());
    let words = [
        "sweep", &file, "--resume", kept, "--svg", plots, "--report", page, "--csv",
    ];
    let plan = |words: &[&str]| {
        let done = done(words).unwrap();
        (done.printed.clone(), done)
    };
    // Not by the command itself, which would catch signals for the whole of the tests.
    let without = [&words[..2], &words[4..]].concat();
    let (csv, swept) = plan(&without);
    assert_eq!(csv.lines().count(), 1 + 2 * 2);
    assert!(
        csv.starts_with("rate,seed,carried,fairness\n2000000,1,"),
        "{csv}"
    );
    let names: Vec<_> = swept
        .files
        .iter()
        .map(|(path, _)| path.file_name().unwrap())
        .collect();
    assert_eq!(names, ["tiny-1.svg", "page.html"]);
    assert!(fs::metadata(plots).unwrap().is_dir());
    let page = &swept.files[1].1;
    assert!(
        page.contains(&format!("packtrain sim sweep {file}\n").replace('\n', "</pre>")),
        "{page}"
    );
    assert_eq!(plan(&[&without[..], &["--jobs", "1"]].concat()).0, csv);
}

#[test]
fn places_are_tried_and_left_as_they_were() {
    let folder = Folder::new("places");
    let page = folder.file("page.html", "before");
    may_write(Path::new(&page)).unwrap();
    assert_eq!(fs::read_to_string(&page).unwrap(), "before");
    may_write(&folder.0.join("new.html")).unwrap();
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn what_is_asked_for_wrongly_is_told_before_anything_is_run() {
    let folder = Folder::new("wrong");
    let file = folder.file("tiny.toml", TINY);
    let wrong = folder.file("wrong.toml", TINY.replace("delay = \"5ms\"", "delay = 5"));
    let missing = folder.0.join("no").join("page.html");
    let missing = missing.to_str().unwrap();
    for (words, code, text) in [
        (
            &["run", &file, "--set", "rate=21mbit"][..],
            2,
            "rate=21mbit: rate is a rate from 1mbit to 20mbit".to_owned(),
        ),
        (
            &[
                "sweep",
                &file,
                "--vary",
                "rate=2mbit",
                "--set",
                "rate=3mbit",
            ],
            2,
            "rate is set and varied".into(),
        ),
        (
            &["sweep", &file, "--vary", "F=1..3"],
            2,
            "there is no parameter F (known here: rate, least)".into(),
        ),
        (
            &["run", "xlf-processng"],
            3,
            "there is no scenario xlf-processng (near it: xlf-processing)".into(),
        ),
        (
            &["run", &wrong],
            3,
            format!("{wrong}:23: line.delay: \"5\" is no time: write it as in 20ms, 5us or 2s"),
        ),
        (
            &["run", &file, "--report", missing],
            1,
            format!("{missing}: No such file or directory (os error 2)"),
        ),
        (
            &["run", &file, "--report", folder.0.to_str().unwrap()],
            1,
            format!("{}: Is a directory (os error 21)", folder.0.display()),
        ),
        (
            &["run", &file, "--svg", "/proc/self"],
            1,
            "/proc/self: No such file or directory (os error 2)".into(),
        ),
    ] {
        let error = done(words).unwrap_err();
        assert_eq!(
            (error.exit_code(), error.to_string()),
            (code, text),
            "{words:?}"
        );
    }
}

fn ethernet(kinds: &[u16], packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for (i, kind) in kinds.iter().enumerate() {
        frame.extend(kind.to_be_bytes());
        if i + 1 < kinds.len() {
            frame.extend([0, 7]);
        }
    }
    frame.extend(packet);
    frame
}

fn ipv4(claimed: u16, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&claimed.to_be_bytes());
    packet
}

fn ipv6(payload: u16) -> Vec<u8> {
    let mut packet = vec![0; 40 + usize::from(payload)];
    packet[0] = 0x60;
    packet[4..6].copy_from_slice(&payload.to_be_bytes());
    packet
}

fn capture(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    crate::pcapng::section_header(&mut file, "a test");
    let interface = crate::pcapng::Interface {
        name: "eth1".into(),
        description: None,
        speed_bps: None,
        snap_len: 0,
    };
    crate::pcapng::interface_description(&mut file, &interface);
    for (at_ms, frame) in frames {
        let packet = crate::pcapng::Packet {
            interface: 0,
            unix_nanos: 1_700_000_000_000_000_000 + at_ms * 1_000_000,
            bytes: frame,
            len: frame.len() as u32,
            direction: None,
            comment: None,
        };
        crate::pcapng::enhanced_packet(&mut file, &packet);
    }
    file
}

#[test]
fn of_a_capture_ip_packets_count_as_ip_counts_them_in_the_order_of_their_times() {
    let folder = Folder::new("capture");
    let frames = [
        // Before all packets of IP, and no beginning of theirs.
        (0, ethernet(&[0x0806], &[0; 28])),
        // Padded to what Ethernet needs.
        (10, ethernet(&[0x0800], &ipv4(40, 46))),
        (30, ethernet(&[0x8100, 0x86dd], &ipv6(100))),
        (20, ethernet(&[0x88a8, 0x8100, 0x0800], &ipv4(1500, 1500))),
        // A card was to cut it, and says what it is.
        (40, ethernet(&[0x0800], &ipv4(0, 3000))),
        (50, ethernet(&[0x0800], &ipv4(20, 46))),
        (60, vec![2; 13]),
    ];
    let file = folder.file("some.pcapng", capture(&frames));
    let ms = Duration::from_millis;
    assert_eq!(
        captured::packets(Path::new(&file)).unwrap(),
        [
            (ms(0), 40),
            (ms(10), 1500),
            (ms(20), 140),
            (ms(30), 3000),
            (ms(40), 28)
        ]
    );
    let none = folder.file("none.pcap", "no capture");
    assert_eq!(
        captured::packets(Path::new(&none)).unwrap_err(),
        format!("{none}: not a capture file: neither pcap nor pcapng")
    );
}

#[test]
fn a_scenario_sends_what_a_capture_beside_it_has() {
    let folder = Folder::new("pcap");
    let frames: Vec<(u64, Vec<u8>)> = (0..50)
        .map(|i| (i * 10, ethernet(&[0x0800], &ipv4(200, 200))))
        .collect();
    folder.file("calls.pcapng", capture(&frames));
    let flow = TINY.find("[[flow]]").unwrap();
    let value = TINY.find("[[value]]").unwrap();
    let calls = "[[datagrams]]\nname = \"calls\"\npath = [\"bottleneck\"]\npcap = \"calls.pcapng\"\n\
                 [[value]]\nname = \"came\"\nis = \"sent(calls)\"\n";
    let text = format!("{}{calls}", &TINY[..flow]).replace("ignore = 1\n", "");
    assert!(value > flow);
    let file = folder.file("calls.toml", &text);
    let run = done(&["run", &file, "--csv"]).unwrap();
    assert_eq!(run.printed, "seed,came\n1,50\n");
    // Where it stands, and in the words of captures.
    let file = folder.file("none.toml", text.replace("calls.pcapng", "none.toml"));
    let error = done(&["run", &file]).unwrap_err();
    let line = 1 + text[..text.find("pcap =").unwrap()].matches('\n').count();
    assert_eq!(
        error.to_string(),
        format!(
            "{file}:{line}: datagrams.pcap: {file}: not a capture file: neither pcap nor pcapng"
        )
    );
}
