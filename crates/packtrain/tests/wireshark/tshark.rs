//! Captures as files, and tshark's view of them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use packtrain_proto::time::{Duration, Instant};

/// A frame as it stands in a capture.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub bytes: Vec<u8>,
    /// Bytes that the wire had, where the capture kept fewer.
    pub len: usize,
}

impl Seen {
    pub fn new(at: Instant, bytes: Vec<u8>) -> Seen {
        let len = bytes.len();
        Seen { at, bytes, len }
    }
}

/// Frames a millisecond apart.
pub fn in_a_row(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Seen> {
    let at = |n| Instant::ZERO + Duration::from_millis(n as u64);
    let frames = frames.into_iter().enumerate();
    frames.map(|(n, bytes)| Seen::new(at(n), bytes)).collect()
}

/// Whether packets are looked at as they come, or once more when all were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    One,
    Two,
}

pub fn is_here(test: &str) -> bool {
    let here = Command::new("tshark").arg("--version").output().is_ok();
    if !here {
        skipped(test, "tshark is not installed");
    }
    here
}

/// Says so where `./x test` counts it.
fn skipped(test: &str, reason: &str) {
    eprintln!("SKIPPED: {test}: {reason}");
    if let Some(path) = std::env::var_os("PACKTRAIN_SKIPPED") {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .open(path)
            .expect("the list of skipped tests can be written");
        writeln!(file, "{test}: {reason}").expect("the list of skipped tests can be written");
    }
}

/// Returns from a test where there is no tshark.
macro_rules! with_tshark {
    () => {{
        fn here() {}
        let test = std::any::type_name_of_val(&here).trim_end_matches("::here");
        if !$crate::tshark::is_here(test) {
            return;
        }
    }};
}
pub(crate) use with_tshark;

pub fn dissector() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/wireshark/packtrain.lua")
}

/// A file that goes with its owner.
struct Capture(PathBuf);

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Capture {
    /// A pcap file with nanoseconds (magic 0xa1b23c4d), of link type Ethernet.
    fn write(frames: &[Seen]) -> Capture {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("packtrain-wireshark-{}-{n}.pcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut bytes = Vec::new();
        for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 1 << 18, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for frame in frames {
            let nanos = frame.at.as_nanos();
            let time = [nanos / 1_000_000_000, nanos % 1_000_000_000];
            for word in time
                .into_iter()
                .chain([frame.bytes.len() as u64, frame.len as u64])
            {
                bytes.extend((word as u32).to_le_bytes());
            }
            bytes.extend(&frame.bytes);
        }
        std::fs::write(&path, bytes).expect("a capture can be written");
        Capture(path)
    }
}

/// What tshark prints of a capture with these arguments. A Lua error is a failure of the test.
pub fn run(frames: &[Seen], passes: Passes, arguments: &[&str]) -> String {
    let capture = Capture::write(frames);
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(&capture.0);
    command
        .arg("-X")
        .arg(format!("lua_script:{}", dissector().display()));
    if passes == Passes::Two {
        command.arg("-2");
    }
    let output = command.args(arguments).output().expect("tshark was there");
    let (out, errors) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    for line in out.lines().chain(errors.lines()) {
        let at = line.find("Lua Error").or_else(|| line.find(".lua:"));
        assert!(at.is_none(), "{}", &line[at.unwrap()..]);
    }
    assert!(output.status.success(), "{:?}: {errors}", output.status);
    out
}

/// Of each packet the values of some fields, in the order of their names here.
pub fn fields(frames: &[Seen], passes: Passes, names: &[&str]) -> Vec<Row> {
    fields_with(frames, passes, &[], names)
}

/// … with more arguments.
pub fn fields_with(
    frames: &[Seen],
    passes: Passes,
    arguments: &[&str],
    names: &[&str],
) -> Vec<Row> {
    let mut arguments = arguments.to_vec();
    arguments.extend(["-T", "fields", "-E", "separator=/t"]);
    arguments.extend(["-E", "aggregator=|", "-E", "occurrence=a"]);
    // What a Lua error would be found by.
    for name in names.iter().chain(&["_ws.expert.message", "_ws.lua.error"]) {
        arguments.extend(["-e", name]);
    }
    let out = run(frames, passes, &arguments);
    let rows: Vec<Row> = out.lines().map(|line| Row::read(names, line)).collect();
    assert_eq!(rows.len(), frames.len(), "packets that tshark has seen");
    rows
}

#[derive(Clone, Debug)]
pub struct Row {
    values: Vec<(String, Vec<String>)>,
    pub expert: Vec<String>,
}

impl Row {
    fn read(names: &[&str], line: &str) -> Row {
        let mut columns = line.split('\t');
        let split = |text: &str| match text {
            "" => Vec::new(),
            text => text.split('|').map(str::to_owned).collect(),
        };
        let mut column = || split(columns.next().unwrap_or_default());
        let values = names
            .iter()
            .map(|name| ((*name).to_owned(), column()))
            .collect();
        Row {
            values,
            expert: column(),
        }
    }

    pub fn all(&self, name: &str) -> &[String] {
        let found = self.values.iter().find(|(other, _)| other == name);
        &found
            .unwrap_or_else(|| panic!("{name} was not asked for"))
            .1
    }

    pub fn numbers(&self, name: &str) -> Vec<u64> {
        let number = |text: &String| match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        let read = |text| number(text).unwrap_or_else(|_| panic!("{name}: {text:?}"));
        self.all(name).iter().map(read).collect()
    }

    /// Times in seconds, as nanoseconds.
    pub fn nanos(&self, name: &str) -> Vec<i64> {
        let read = |text: &String| {
            let (whole, rest) = text.split_once('.').expect("a fraction");
            let digits = format!("{rest:0<9}");
            whole.parse::<i64>().unwrap() * 1_000_000_000 + digits[..9].parse::<i64>().unwrap()
        };
        self.all(name).iter().map(read).collect()
    }

    pub fn bytes(&self, name: &str) -> Vec<Vec<u8>> {
        self.all(name).iter().map(|text| from_hex(text)).collect()
    }

    /// Whether an expert information begins so.
    pub fn says(&self, beginning: &str) -> bool {
        self.expert.iter().any(|text| text.starts_with(beginning))
    }

    /// Whether one has these words.
    pub fn mentions(&self, words: &str) -> bool {
        self.expert.iter().any(|text| text.contains(words))
    }
}

pub fn from_hex(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}
