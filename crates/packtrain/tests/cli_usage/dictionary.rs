//! `packtrain dictionary train`: what it makes of captures, that a line takes that, and why it makes nothing of others.

use serde_json::Value;

use crate::binary::{Outcome, TestFile, packtrain};
use crate::whatif::{pcap, udp};

const TOO_LITTLE: &str = "error: no dictionary was written: it takes 64 frames to learn from and to try it on, and the captures have";

/// Frames of a flow, each of which says this.
fn capture(name: &str, count: u64, says: impl Fn(u64) -> String) -> TestFile {
    let sent: Vec<_> = (0..count)
        .map(|n| (n * 1000, udp(1, 2, 7000, says(n).as_bytes())))
        .collect();
    TestFile::new(name, pcap(&sent))
}

fn json(n: u64) -> String {
    let (sensor, battery) = (n % 7, n * 4001 % 65536);
    format!(
        "{{\"sensor\":\"s{sensor}\",\"celsius\":{}.5,\"battery\":{battery}}}",
        n % 31
    )
}

/// The file that a dictionary is written to: absent, and gone again with its test.
fn absent(name: &str) -> TestFile {
    let file = TestFile::new(name, "");
    std::fs::remove_file(file.path()).unwrap();
    file
}

fn is_there(file: &TestFile) -> bool {
    std::fs::exists(file.path()).unwrap()
}

fn train(captures: &[&str], output: &TestFile, more: &[&str]) -> Outcome {
    let output = ["--output", output.path()];
    packtrain(&[&["dictionary", "train"][..], captures, &output, more].concat())
}

#[test]
fn a_dictionary_of_a_capture_says_what_it_brings_and_a_line_takes_it() {
    let traffic = capture("dictionary-json.pcap", 400, json);
    let dictionary = absent("json.dict");
    let outcome = train(&[traffic.path()], &dictionary, &["--size", "2048"]);
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let bytes = std::fs::read(dictionary.path()).unwrap();
    assert!((256..=2048).contains(&bytes.len()), "{}", bytes.len());
    for part in [
        &format!("{}: ", dictionary.path())[..],
        ", learned from 200 frames\n",
        "tried on 200 other frames, ",
        "  as they are      100.0 %\n",
        &format!(
            "Give it to both ends (but links of less than 5 Mbit/s carry more without it): packtrain up … --dictionary {}\n",
            dictionary.path()
        ),
    ] {
        assert!(outcome.out.contains(part), "{}", outcome.out);
    }
    // By a file of settings; and by `up`, which comes as far as its link.
    let settings = format!(
        "name = 'pt7'\ndictionary = '{}'\n[[link]]\nname = 'eth1'\n",
        dictionary.path()
    );
    let settings = TestFile::new("dictionary.toml", settings);
    let checked = packtrain(&["run", "--check", settings.path()]);
    assert_eq!(
        (checked.code, checked.out),
        (0, format!("{}: right, for line pt7\n", settings.path()))
    );
    let link = "pt-absent";
    let up = packtrain(&[
        "up",
        "pt7",
        "--link",
        link,
        "--dictionary",
        dictionary.path(),
    ]);
    assert_ne!(up.code, 0);
    assert!(!up.err.contains("dictionary"), "{}", up.err);
}

#[test]
fn several_captures_make_one_and_the_same_ones_make_the_same() {
    let (first, second) = (
        capture("dictionary-first.pcap", 60, json),
        capture("dictionary-second.pcap", 60, |n| json(n + 60)),
    );
    let document = |name| {
        let dictionary = absent(name);
        let both = [first.path(), second.path()];
        let outcome = train(&both, &dictionary, &["--size", "1024", "--json"]);
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
        let mut document: Value = serde_json::from_str(&outcome.out).unwrap();
        assert_eq!(document["file"], dictionary.path());
        assert_eq!(
            document["bytes"],
            std::fs::read(dictionary.path()).unwrap().len()
        );
        document["file"].take();
        document
    };
    let one = document("several-1.dict");
    assert_eq!(one, document("several-2.dict"));
    assert_eq!(one["learned_from_frames"], 60);
    assert_eq!(one["left_out_frames"]["cut_short"], 0);
    assert_eq!(one["tried_on"]["frames"], 60);
    assert_eq!(one["recommended"], true);
    assert_eq!(one["id"].as_str().unwrap().len(), 8);
    let sizes = ["plain", "headers", "lz4", "dictionary"]
        .map(|what| one["tried_on"][format!("{what}_bytes")].as_u64().unwrap());
    assert!(sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
}

#[test]
fn captures_with_too_little_in_them_say_how_much_that_is() {
    let same = |text: &'static str| move |_: u64| text.to_owned();
    let output = absent("too-little.dict");
    for (capture, text) in [
        (
            capture("dictionary-0.pcap", 0, json),
            format!("{TOO_LITTLE} 0\n"),
        ),
        (
            capture("dictionary-63.pcap", 63, json),
            format!("{TOO_LITTLE} 63\n"),
        ),
        (
            capture("dictionary-bare.pcap", 70, same("")),
            format!("{TOO_LITTLE} 0; left out are 70 without payload\n"),
        ),
    ] {
        let outcome = train(&[capture.path()], &output, &[]);
        assert_eq!((outcome.code, outcome.err), (1, text));
        assert_eq!(outcome.out, "");
        assert!(!is_there(&output));
    }
    let nothing_in_common = capture("dictionary-x.pcap", 200, same("x"));
    let outcome = train(&[nothing_in_common.path()], &output, &[]);
    let begins = "error: no dictionary was written: what these frames have in common is ";
    assert!(
        outcome.code == 1 && outcome.err.starts_with(begins),
        "{}",
        outcome.err
    );
    assert!(!is_there(&output));
}

#[test]
fn captures_that_cannot_be_read_are_told_by_their_names_and_nothing_is_written() {
    let traffic = capture("dictionary-good.pcap", 100, json);
    let mut bytes = std::fs::read(traffic.path()).unwrap();
    bytes.truncate(bytes.len() - 7);
    let cut = TestFile::new("dictionary-cut.pcap", bytes);
    let text = TestFile::new(
        "dictionary.txt",
        "This is no capture, but a text of more than a few bytes.",
    );
    let output = absent("unread.dict");
    for (path, what) in [
        (
            "/nonexistent/a.pcap",
            "No such file or directory (os error 2)\n",
        ),
        ("/", "Is a directory (os error 21)\n"),
        (text.path(), "not a capture file: neither pcap nor pcapng\n"),
        (cut.path(), "the file ends in the middle of it\n"),
    ] {
        // One that can be read does not make up for it.
        let outcome = train(&[traffic.path(), path], &output, &[]);
        assert_eq!(outcome.code, 3, "{}", outcome.err);
        assert!(
            outcome.err.starts_with(&format!("error: {path}: ")) && outcome.err.contains(what),
            "{}",
            outcome.err
        );
        assert!(!is_there(&output));
    }
    let none = train(&[], &output, &[]);
    assert!(
        none.code == 2 && none.err.contains("<CAPTURE>..."),
        "{}",
        none.err
    );
    let nowhere = packtrain(&["dictionary", "train", traffic.path()]);
    assert!(
        nowhere.code == 2 && nowhere.err.contains("--output <FILE>"),
        "{}",
        nowhere.err
    );
    for size in ["255", "65537", "8k"] {
        let wrong = train(&[traffic.path()], &output, &["--size", size]);
        let text = format!("'{size}' for '--size <BYTES>'");
        assert!(
            wrong.code == 2 && wrong.err.contains(&text),
            "{}",
            wrong.err
        );
    }
}

#[test]
fn a_file_that_is_there_is_not_written_over_be_it_the_capture() {
    let traffic = capture("dictionary-kept.pcap", 100, json);
    let before = std::fs::read(traffic.path()).unwrap();
    let outcome = train(&[traffic.path()], &traffic, &[]);
    assert_eq!(
        (outcome.code, outcome.err),
        (
            1,
            format!(
                "error: {}: there is such a file already, and it is not written over\n       \
                 name another one, or remove it\n",
                traffic.path()
            )
        )
    );
    assert_eq!(std::fs::read(traffic.path()).unwrap(), before);
    let folder = packtrain(&[
        "dictionary",
        "train",
        traffic.path(),
        "--output",
        "/nonexistent/a.dict",
    ]);
    assert_eq!(
        (folder.code, folder.err.as_str()),
        (
            1,
            "error: /nonexistent/a.dict: No such file or directory (os error 2)\n"
        )
    );
}

#[test]
fn what_is_no_dictionary_is_refused_with_its_reason() {
    let short = TestFile::new("short.dict", "too short");
    let long = TestFile::new("long.dict", vec![7; 65_537]);
    let mut bytes = vec![0xff; 1000];
    bytes[..4].copy_from_slice(&0xec30_a437_u32.to_le_bytes());
    let damaged = TestFile::new("damaged.dict", bytes);
    for (path, what) in [
        (short.path(), "9 bytes: a dictionary has 256 to 65536"),
        (long.path(), "65537 bytes: a dictionary has 256 to 65536"),
        (
            damaged.path(),
            "it begins as a Zstandard dictionary does, but is damaged",
        ),
        (
            "/nonexistent/a.dict",
            "No such file or directory (os error 2)",
        ),
        ("/", "Is a directory (os error 21)"),
        ("/dev/zero", "65537 bytes: a dictionary has 256 to 65536"),
    ] {
        let up = packtrain(&["up", "pt7", "--link", "eth1", "--dictionary", path]);
        let text = format!("{path}: {what}");
        assert!(up.code == 2 && up.err.contains(&text), "{}", up.err);
        let settings = format!("name = 'pt7'\ndictionary = '{path}'\n[[link]]\nname = 'eth1'\n");
        let settings = TestFile::new("no-dictionary.toml", settings);
        let run = packtrain(&["run", "--check", settings.path()]);
        let text = format!("error: {}:2: dictionary: {text}\n", settings.path());
        assert_eq!((run.code, run.err), (3, text));
    }
}
