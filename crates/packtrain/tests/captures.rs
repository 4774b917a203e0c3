//! Captures of real protocols, by scapy, read as scapy has written them and as tshark reads them.

#[path = "support/skipped.rs"]
mod skipped;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use packtrain::capture_file::{CaptureFile, Frame, LinkType};
use packtrain_proto::coding::coder::{Coder, Finished, Treatment};
use packtrain_proto::coding::dictionary::{Dictionary, Zstd};
use packtrain_proto::coding::restore::Restorer;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::coded::{Coding, PLAIN_MAX};
use packtrain_proto::wire::ethernet::{HEADER_LEN, Header, ether_type};
use packtrain_proto::wire::subframe::{InnerHeader, Subframe};
use skipped::skipped;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/captures.py");

/// A folder with what the script writes, which goes with it.
struct Captures {
    folder: PathBuf,
    names: Vec<String>,
}

impl Captures {
    fn new(test: &str) -> Captures {
        let name = format!("packtrain-{}-{test}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // Debian's, which has Debian's scapy.
        let written = run(Command::new("/usr/bin/python3").arg(SCRIPT).arg(&folder));
        let names = written.lines().map(|line| {
            let (name, _) = line.split_once('\t').expect("a name and more");
            name.to_owned()
        });
        Captures {
            names: names.collect(),
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Its standard output.
fn run(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it can be run");
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}: {said}");
    String::from_utf8(stdout).expect("text")
}

/// What of these is not here, as a reason.
fn missing(programs: &[&str]) -> Option<String> {
    let folders: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    let is_there = |program: &str| folders.iter().any(|folder| folder.join(program).exists());
    let missing = programs.iter().find(|program| !is_there(program));
    if let Some(program) = missing {
        return Some(format!("{program} is not installed"));
    }
    let scapy = Path::new("/usr/lib/python3/dist-packages/scapy");
    (!scapy.exists()).then(|| "python3-scapy is not installed".to_owned())
}

fn for_each_frame(path: &Path, mut look: impl FnMut(&Frame<'_>)) {
    let mut file = CaptureFile::open(path).unwrap();
    while let Some(frame) = file.next_frame().unwrap() {
        look(&frame);
    }
}

/// EtherType behind VLAN tags, IP protocol, and how many bytes there were from the network header on; found by hand,
/// so that it is no parser of ours that is compared.
fn network(frame: &Frame<'_>) -> (String, String, usize) {
    let mut at = 12;
    let word = |at: usize| u16::from_be_bytes([frame.bytes[at], frame.bytes[at + 1]]);
    while [0x8100, 0x88a8].contains(&word(at)) {
        at += 4;
    }
    let (ethertype, at) = (word(at), at + 2);
    let protocol = match ethertype {
        0x0800 => frame.bytes[at + 9].to_string(),
        0x86dd => frame.bytes[at + 6].to_string(),
        _ => String::new(),
    };
    let ethertype = match ethertype {
        0..0x600 => "llc".to_owned(),
        other => format!("{other:04x}"),
    };
    (ethertype, protocol, frame.len_on_wire - at)
}

#[test]
fn as_many_frames_and_bytes_of_each_protocol_are_read_as_scapy_has_written() {
    let test = "as_many_frames_and_bytes_of_each_protocol_are_read_as_scapy_has_written";
    if skipped(test, missing(&["zstd"])) {
        return;
    }
    let captures = Captures::new("scapy");
    assert!(captures.names.len() > 20, "{:?}", captures.names);
    let mut read = Vec::new();
    for name in &captures.names {
        let mut counts = BTreeMap::<_, (u64, usize)>::new();
        for_each_frame(&captures.path(name), |frame| {
            let (ethertype, protocol, bytes) = network(frame);
            let count = counts.entry((ethertype, protocol)).or_default();
            count.0 += 1;
            count.1 += bytes;
        });
        read.extend(
            counts
                .into_iter()
                .map(|((ethertype, protocol), (frames, bytes))| {
                    format!("{name}\t{ethertype}\t{protocol}\t{frames}\t{bytes}")
                }),
        );
    }
    let written = fs::read_to_string(captures.path("frames.tsv")).unwrap();
    let mut written: Vec<&str> = written.lines().collect();
    written.sort();
    read.sort();
    assert_eq!(read, written);
}

#[test]
fn each_frame_has_the_number_time_and_lengths_that_tshark_says() {
    let test = "each_frame_has_the_number_time_and_lengths_that_tshark_says";
    if skipped(test, missing(&["zstd", "tshark"])) {
        return;
    }
    let captures = Captures::new("tshark");
    let is_large = |name: &&String| {
        ["all", "cooked", "raw", "loopback", "interfaces"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    for name in captures.names.iter().filter(is_large) {
        let path = captures.path(name);
        let told = run(Command::new("tshark")
            .args(["-n", "-T", "fields"])
            .args([
                "-e",
                "frame.number",
                "-e",
                "frame.time_epoch",
                "-e",
                "frame.len",
                "-e",
                "frame.cap_len",
                "-r",
            ])
            .arg(&path));
        let mut told = told.lines();
        for_each_frame(&path, |frame| {
            let line = told
                .next()
                .unwrap_or_else(|| panic!("{name}: tshark has fewer"));
            let fields: Vec<&str> = line.split('\t').collect();
            // What stands where an Ethernet header is made up, and behind what is captured.
            let (header_len, made_up) = match frame.link_type {
                LinkType::ETHERNET => (0, 0),
                LinkType::LINUX_COOKED => (16, 14),
                LinkType::LINUX_COOKED_V2 => (20, 14),
                LinkType::RAW => (0, 14),
                LinkType::BSD_LOOPBACK => (4, 14),
                other => panic!("{name}: {other}"),
            };
            let as_captured = |len: usize| (len - made_up + header_len + frame.fcs_len).to_string();
            let at: Duration = frame.at.expect("a time");
            let ours = [
                frame.number.to_string(),
                format!("{}.{:09}", at.as_secs(), at.subsec_nanos()),
                as_captured(frame.len_on_wire),
                as_captured(frame.bytes.len()),
            ];
            assert_eq!(fields, ours, "{name}");
        });
        assert_eq!(told.next(), None, "{name}: tshark has more");
    }
}

/// A frame as a train carries it, with its addresses. `None`: no train does.
fn packed(frame: &Frame<'_>) -> Option<(InnerHeader, Vec<u8>)> {
    let header = Header::parse(frame.bytes)?;
    let payload = frame.bytes[HEADER_LEN..].to_vec();
    let inner = InnerHeader {
        addresses: Some((header.destination, header.source)),
        ether_type: header.ether_type,
        offload: Offload::NONE,
    };
    let is_packed = header.ether_type != ether_type::PACKTRAIN && !payload.is_empty();
    is_packed.then_some((inner, payload))
}

/// Of one capture, by one coding.
#[derive(Clone, Copy, Debug, Default)]
struct Trains {
    all: usize,
    /// Of more frames than one.
    shared: usize,
    coded: usize,
}

/// Trains of 1500 bytes, as full as they can be; every frame comes out of them as it went in.
fn pass(
    name: &str,
    (coder, restorer): (&mut Coder, &mut Restorer),
    coding: Coding,
    frames: &[(InnerHeader, Vec<u8>)],
) -> Trains {
    const ROOM: usize = 1484;
    let treatment = match coding {
        Coding::Headers => Treatment::Headers,
        _ => Treatment::Payload,
    };
    let mut trains = Trains::default();
    let (mut region, mut out) = (Vec::new(), vec![0; PLAIN_MAX]);
    let mut rest = frames;
    while !rest.is_empty() {
        coder.begin(coding, ROOM);
        let mut put = 0;
        while let Some((header, payload)) = rest.get(put) {
            if coder.put_frame(header, payload, treatment) {
                put += 1;
            } else if !coder.make_room() {
                break;
            }
        }
        if put == 0 {
            // Larger than a train: it goes in pieces, which stand in a train as they are.
            rest = &rest[1..];
            continue;
        }
        trains.all += 1;
        trains.shared += usize::from(put > 1);
        let plain = match coder.finish() {
            Finished::Plain(plain) => plain,
            Finished::Coded(head, content) => {
                trains.coded += 1;
                region.clear();
                region.extend(head.to_bytes());
                region.extend_from_slice(content);
                assert!(region.len() <= ROOM, "{name}");
                let len = restorer.restore(&region, &mut out);
                &out[..len.unwrap_or_else(|error| panic!("{name}, {coding:?}: {error}"))]
            }
        };
        let mut at = 0;
        for (number, (header, payload)) in rest[..put].iter().enumerate() {
            let read = Subframe::parse(&plain[at..]).expect("whole subframes");
            let (read, len) = read.unwrap_or_else(|| panic!("{name}: {number} of {put} frames"));
            let Subframe::Frame {
                header: of,
                payload: bytes,
            } = read
            else {
                panic!("{name}: {read:?} was not put");
            };
            assert!(
                (&of, bytes) == (header, &payload[..]),
                "{name}, {coding:?}: {read:02x?}"
            );
            at += len;
        }
        assert_eq!(at, plain.len(), "{name}");
        rest = &rest[put..];
    }
    trains
}

#[test]
fn each_captures_frames_come_out_of_coded_trains_as_they_went_in() {
    let test = "each_captures_frames_come_out_of_coded_trains_as_they_went_in";
    if skipped(test, missing(&["zstd"])) {
        return;
    }
    let captures = Captures::new("coded");
    let frames_of = |name: &str| {
        let mut frames = Vec::new();
        for_each_frame(&captures.path(name), |frame| frames.extend(packed(frame)));
        frames
    };
    let known: Vec<u8> = frames_of("dns.pcap")
        .into_iter()
        .flat_map(|(_, payload)| payload)
        .collect();
    let dictionary = Dictionary::new(&known[..2048]).unwrap();
    let zstd = || Some(Zstd::new(&dictionary).unwrap());
    let (mut coder, mut restorer) = (Coder::default(), Restorer::default());
    coder.set_dictionary(zstd());
    restorer.set_dictionary(zstd());
    let mut all = 0;
    for name in &captures.names {
        // A train goes one way.
        let mut by_sender = BTreeMap::<_, Vec<_>>::new();
        for frame in frames_of(name) {
            let sender = frame.0.addresses.map(|(_, source)| source.0);
            by_sender.entry(sender).or_default().push(frame);
        }
        for coding in [Coding::Headers, Coding::Lz4, Coding::Zstd, Coding::Mixing] {
            let mut trains = Trains::default();
            for frames in by_sender.values() {
                let passed = pass(name, (&mut coder, &mut restorer), coding, frames);
                trains.all += passed.all;
                trains.shared += passed.shared;
                trains.coded += passed.coded;
            }
            println!("{name}, {coding:?}: {trains:?}");
            // A frame alone is told apart from none, nor is one of several protocols that are not IP.
            let may_be_none = trains.shared == 0 || name == "other-than-ip.pcap";
            assert!(
                trains.coded > 0 || may_be_none,
                "{name}, {coding:?}: {trains:?}"
            );
            all += trains.coded;
        }
    }
    assert!(all > 500, "{all} coded trains");
}
