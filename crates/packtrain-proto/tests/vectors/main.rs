//! The test vectors of docs/vectors, read and written to the byte: trains here, hellos and the formats beside them in files
//! of their own.

mod aggregates;
mod coded;
mod hellos;

use std::fs;
use std::path::{Path, PathBuf};

use packtrain_proto::buffer::Buffer;
use packtrain_proto::config::{LinkId, NodeId, mark_of};
use packtrain_proto::gso;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::checksum;
use packtrain_proto::wire::ethernet::{self, Header, MacAddr, ether_type};
use packtrain_proto::wire::hello::{self, Hello, LinkRecord, capability};
use packtrain_proto::wire::liveness::{Diagnostic, Liveness, State};
use packtrain_proto::wire::sequence::Sequence;
use packtrain_proto::wire::subframe::{InnerHeader, Subframe};
use packtrain_proto::wire::train::{
    Ack, Behind, DirectReport, Fence, Newest, Options, REPLAYED, REPLAYED_FROM, Train, TrainHeader,
    TrainWriter,
};

const LINK_A: MacAddr = MacAddr([2, 0, 0, 0, 0x0a, 1]);
const LINK_B: MacAddr = MacAddr([2, 0, 0, 0, 0x0b, 1]);
const NODE_A: NodeId = NodeId(0x0123_4567_89ab_cdef);
const NODE_B: NodeId = NodeId(0xfedc_ba98_7654_3210);

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vectors")
}

/// The bytes of a vector. A mistake in the file ends the test with its line.
fn vector(name: &str) -> Vec<u8> {
    let path = directory().join(name).with_extension("hex");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut bytes = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let hex = line.split('#').next().expect("a first part");
        for pair in hex.split_whitespace() {
            let byte = u8::from_str_radix(pair, 16)
                .ok()
                .filter(|_| pair.len() == 2);
            bytes.push(byte.unwrap_or_else(|| panic!("{name}, line {}: {pair:?}", i + 1)));
        }
    }
    bytes
}

/// The message in a vector, after its outer Ethernet header was compared.
fn message(bytes: &[u8], destination: MacAddr, source: MacAddr) -> &[u8] {
    let expected = Header {
        destination,
        source,
        ether_type: ether_type::PACKTRAIN,
    };
    assert_eq!(Header::parse(bytes), Some(expected));
    &bytes[ethernet::HEADER_LEN..]
}

/// A train from A to B that is read as these parts.
fn assert_read(bytes: &[u8], header: &TrainHeader, acks: &[Ack], subframes: &[Subframe<'_>]) {
    let message = message(bytes, LINK_B, LINK_A);
    let train = Train::parse(message).unwrap();
    assert_eq!(train.header, *header);
    assert_eq!(train.acks().collect::<Vec<_>>(), acks);
    let mut at = train.subframes_at;
    let mut read = Vec::new();
    while let Some((subframe, len)) = Subframe::parse(&message[at..]).unwrap() {
        read.push(subframe);
        at += len;
    }
    assert_eq!(read, subframes);
}

fn acknowledging(acks: &[Ack]) -> Options<'_> {
    Options {
        acks,
        ..Options::default()
    }
}

/// These parts, written as a train from A to B.
fn written(header: &TrainHeader, options: &Options<'_>, subframes: &[Subframe<'_>]) -> Vec<u8> {
    let mut buffer = Buffer::with_capacity(2048);
    let mut writer = TrainWriter::begin(&mut buffer, LINK_B, LINK_A, header, options);
    for subframe in subframes {
        match subframe {
            Subframe::Frame { header, payload } => writer.put_frame(header, payload),
            Subframe::First {
                header,
                id,
                total_len,
                payload,
            } => {
                writer.put_first(header, *id, *total_len, payload);
            }
            Subframe::Next {
                id,
                offset,
                payload,
            } => writer.put_next(*id, *offset, payload),
        }
    }
    buffer.to_vec()
}

fn header(train_sequence: u32, link_sequence: u32) -> TrainHeader {
    TrainHeader {
        ack_now: false,
        marker: false,
        replay: false,
        coded: false,
        repairs: false,
        lossless: false,
        lane: 0,
        link: 0,
        incarnation: NODE_A.incarnation(),
        train_sequence: Sequence(train_sequence),
        link_sequence: Sequence(link_sequence),
    }
}

fn ack() -> Ack {
    Ack {
        link: 1,
        incarnation: NODE_B.incarnation(),
        delay_nanos: 250_000,
        newest: Sequence(273),
        bitmap: 1 << 63 | 1 << 2 | 1,
    }
}

fn between_pt0s(offload: Offload) -> InnerHeader {
    InnerHeader {
        addresses: None,
        ether_type: ether_type::IPV4,
        offload,
    }
}

/// The inner frame of a payload, as a receiver rebuilds it.
fn inner(payload: &[u8]) -> Vec<u8> {
    let header = Header {
        destination: LINK_B,
        source: LINK_A,
        ether_type: ether_type::IPV4,
    };
    [&header.to_bytes(), payload].concat()
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

#[test]
fn every_vector_is_read_by_a_test_and_described() {
    let source = concat!(
        include_str!("main.rs"),
        include_str!("aggregates.rs"),
        include_str!("coded.rs"),
        include_str!("hellos.rs"),
    );
    let readme = fs::read_to_string(directory().join("README.md")).unwrap();
    let mut count = 0;
    for entry in fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|extension| extension == "hex") {
            assert!(
                source.contains(&format!("\"{name}\"")),
                "{name} is read by no test"
            );
            assert!(
                readme.contains(&format!("`{name}.hex`")),
                "{name} is not in the README"
            );
            count += 1;
        }
    }
    assert_eq!(
        count,
        readme.matches(".hex` |").count(),
        "the README names one that is not there"
    );
}

#[test]
fn an_acknowledgement_and_two_frames() {
    let bytes = vector("train-ack-two-frames");
    let (first, second) = (&bytes[55..87], &bytes[90..121]);
    let header = TrainHeader {
        ack_now: true,
        ..header(42, 17)
    };
    let subframes = [first, second].map(|payload| Subframe::Frame {
        header: between_pt0s(Offload::NONE),
        payload,
    });
    assert_read(&bytes, &header, &[ack()], &subframes);
    assert_eq!(
        written(&header, &acknowledging(&[ack()]), &subframes),
        bytes
    );
    for payload in [first, second] {
        assert_eq!(checksum::checksum(&payload[..20]), 0, "the IPv4 header's");
    }
}

#[test]
fn a_gso_frame_that_agrees_with_its_offload() {
    let bytes = vector("train-gso-frame");
    let payload = &bytes[41..];
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start: 34,
            offset: 6,
        }),
        gso: Some(Gso {
            kind: GsoKind::UdpL4,
            ecn: false,
            header_len: 42,
            segment_len: 4,
        }),
    };
    let subframes = [Subframe::Frame {
        header: between_pt0s(offload),
        payload,
    }];
    assert_read(&bytes, &header(43, 18), &[], &subframes);
    assert_eq!(
        written(&header(43, 18), &Options::default(), &subframes),
        bytes
    );

    // Its last datagram alone: 20 + 8 + 2 bytes of id 65,535 + 2, with both checksums complete.
    let frame = inner(payload);
    assert_eq!(gso::check(&frame, &offload), Ok(()));
    let mut last = Buffer::with_capacity(2048);
    let left = gso::slice(&frame, &offload, 2, 1, &mut last).unwrap();
    gso::finish_checksum(&mut last, left.checksum.unwrap()).unwrap();
    assert_eq!(
        last[14..34],
        hex("45 00 00 1e 00 01 40 00 40 11 26 ba 0a 09 00 01 0a 09 00 02")
    );
    assert_eq!(last[34..], hex("1b 58 1b 59 00 0a 51 b1 63 63"));
}

#[test]
fn pieces_of_two_frames() {
    let bytes = vector("train-pieces");
    let offload = Offload {
        checksum: Some(PartialChecksum {
            start: 34,
            offset: 16,
        }),
        gso: Some(Gso {
            kind: GsoKind::TcpV4,
            ecn: true,
            header_len: 54,
            segment_len: 1000,
        }),
    };
    let first = &bytes[57..];
    let subframes = [
        Subframe::Next {
            id: 6,
            offset: 8995,
            payload: &[1, 2, 3, 4, 5],
        },
        Subframe::First {
            header: between_pt0s(offload),
            id: 7,
            total_len: 2040,
            payload: first,
        },
    ];
    let header = header(u32::MAX, 19);
    assert_read(&bytes, &header, &[], &subframes);
    assert_eq!(written(&header, &Options::default(), &subframes), bytes);

    let mut frame = inner(first);
    frame.resize(14 + 2040, 0x61);
    assert_eq!(gso::check(&frame, &offload), Ok(()));
}

#[test]
fn a_marker() {
    let bytes = vector("train-marker");
    let header = TrainHeader {
        marker: true,
        ..header(43, 18)
    };
    assert_read(&bytes, &header, &[ack()], &[]);
    assert_eq!(written(&header, &acknowledging(&[ack()]), &[]), bytes);
}

/// A marker with nothing but what was counted of direct frames.
fn assert_direct(name: &str, report: DirectReport) {
    let bytes = vector(name);
    let header = TrainHeader {
        marker: true,
        ..header(43, 18)
    };
    assert_read(&bytes, &header, &[], &[]);
    let read = Train::parse(message(&bytes, LINK_B, LINK_A)).unwrap();
    assert_eq!(read.direct_report(), Some(report));
    let options = Options {
        direct: Some(report),
        ..Options::default()
    };
    assert_eq!(written(&header, &options, &[]), bytes);
}

#[test]
fn a_marker_with_counts_of_direct_frames() {
    let report = DirectReport {
        wants_answer: false,
        sent: 10_000,
        seen_sent: u32::MAX,
        seen_received: u32::MAX - 30,
        seen_late: None,
    };
    assert_direct("train-direct", report);
}

#[test]
fn a_marker_that_says_how_many_direct_frames_were_late() {
    let report = DirectReport {
        wants_answer: false,
        sent: 10_000,
        seen_sent: 2_000_000,
        seen_received: 1_999_999,
        seen_late: Some(1200),
    };
    assert_direct("train-late", report);
}

#[test]
fn a_replay_that_names_what_other_links_carry() {
    let bytes = vector("train-replay-newest");
    let header = TrainHeader {
        replay: true,
        ..header(46, 22)
    };
    let payload = &bytes[43..];
    let subframes = [Subframe::Frame {
        header: between_pt0s(Offload::NONE),
        payload,
    }];
    let newest = [(1, 45), (REPLAYED, 40)].map(|(link, train)| Newest {
        link,
        train: Sequence(train),
    });
    assert_read(&bytes, &header, &[], &subframes);
    let read = Train::parse(message(&bytes, LINK_B, LINK_A))
        .unwrap()
        .newest();
    assert_eq!(read.collect::<Vec<_>>(), newest);
    let options = Options {
        acks: &[],
        newest: &newest,
        ..Options::default()
    };
    assert_eq!(written(&header, &options, &subframes), bytes);
}

#[test]
fn a_marker_that_says_what_a_link_has_lost_and_goes_again() {
    let bytes = vector("train-repairs");
    let header = TrainHeader {
        marker: true,
        repairs: true,
        lossless: false,
        ..header(46, 22)
    };
    assert_read(&bytes, &header, &[], &[]);
    let newest = [(REPLAYED, 40), (REPLAYED_FROM, 38)].map(|(link, train)| Newest {
        link,
        train: Sequence(train),
    });
    let read = Train::parse(message(&bytes, LINK_B, LINK_A)).unwrap();
    assert!(read.newest().eq(newest));
    let options = Options {
        newest: &newest,
        ..Options::default()
    };
    assert_eq!(written(&header, &options, &[]), bytes);
}

#[test]
fn a_marker_of_a_lane_of_which_nothing_may_be_lost() {
    let bytes = vector("train-lossless");
    let header = TrainHeader {
        marker: true,
        repairs: true,
        lossless: true,
        lane: 1,
        ..header(46, 22)
    };
    assert_read(&bytes, &header, &[], &[]);
    let read = Train::parse(message(&bytes, LINK_B, LINK_A)).unwrap();
    assert_eq!(read.kept_from(), Some(Sequence(41)));
    let options = Options {
        kept_from: Some(Sequence(41)),
        ..Options::default()
    };
    assert_eq!(written(&header, &options, &[]), bytes);
}

#[test]
fn a_train_that_must_not_overtake_direct_frames() {
    let bytes = vector("train-fence");
    let header = header(47, 23);
    let subframes = [Subframe::Frame {
        header: between_pt0s(Offload::NONE),
        payload: &[0x45, 0, 0, 4],
    }];
    let fences = [Fence {
        link: 0,
        remote_link: 3,
        from: Sequence(46),
        sent: 10_000,
    }];
    assert_read(&bytes, &header, &[], &subframes);
    let read = Train::parse(message(&bytes, LINK_B, LINK_A)).unwrap();
    assert_eq!(read.fences().collect::<Vec<_>>(), fences);
    let options = Options {
        fences: &fences,
        ..Options::default()
    };
    assert_eq!(written(&header, &options, &subframes), bytes);
}

#[test]
fn a_train_of_another_lane_that_must_not_overtake_those_of_the_first() {
    let bytes = vector("train-behind");
    let header = TrainHeader {
        lane: 2,
        ..header(5, 24)
    };
    let subframes = [Subframe::Frame {
        header: between_pt0s(Offload::NONE),
        payload: &[0x45, 0, 0, 4],
    }];
    let behind = [Behind {
        lane: 0,
        from: Sequence(4),
        last: Sequence(47),
    }];
    assert_read(&bytes, &header, &[], &subframes);
    let read = Train::parse(message(&bytes, LINK_B, LINK_A)).unwrap();
    assert_eq!(read.behind().collect::<Vec<_>>(), behind);
    let options = Options {
        behind: &behind,
        ..Options::default()
    };
    assert_eq!(written(&header, &options, &subframes), bytes);
}

#[test]
fn a_probe() {
    let bytes = vector("train-probe");
    let header = TrainHeader {
        ack_now: true,
        ..header(45, 21)
    };
    assert_read(&bytes, &header, &[], &[]);
    assert_eq!(written(&header, &Options::default(), &[]), bytes);
}

#[test]
fn an_end_before_padding() {
    let bytes = vector("train-end-padding");
    let broadcast = InnerHeader {
        addresses: Some((MacAddr::BROADCAST, MacAddr([2, 0, 0, 0, 0x0c, 1]))),
        ether_type: ether_type::ARP,
        offload: Offload::NONE,
    };
    let subframes = [Subframe::Frame {
        header: broadcast,
        payload: &[0x45, 0, 0, 0],
    }];
    assert_read(&bytes, &header(44, 20), &[], &subframes);
    // A sender stops after the last subframe; END and padding come from the Ethernet below.
    let written = written(&header(44, 20), &Options::default(), &subframes);
    assert_eq!(written, bytes[..written.len()]);
    assert_eq!(bytes[written.len()], 0);
}

#[test]
fn a_link_says_that_it_hears_another() {
    let bytes = vector("liveness");
    let said = Liveness {
        state: State::Up,
        diagnostic: Diagnostic::Expired,
        multiplier: 4,
        asks: true,
        poll: false,
        is_long: false,
        link: LinkId(2),
        remote_link: LinkId(1),
        incarnation: 0xceef,
        count: 273,
        heard: 42,
        heard_age: Duration::from_micros(500),
        desired: Duration::from_millis(10),
        required: Duration::from_millis(20),
        heard_long: 272,
    };
    assert_eq!(Liveness::parse(message(&bytes, LINK_B, LINK_A)), Ok(said));
    let mut buffer = Buffer::with_capacity(100);
    assert!(buffer.push(&bytes[..ethernet::HEADER_LEN]));
    said.emit(&mut buffer);
    assert_eq!(buffer[..], bytes[..]);

    let bytes = vector("liveness-poll");
    let polls = Liveness {
        poll: true,
        is_long: true,
        ..said
    };
    assert_eq!(Liveness::parse(message(&bytes, LINK_B, LINK_A)), Ok(polls));
    buffer.set_len(ethernet::HEADER_LEN);
    polls.emit(&mut buffer);
    buffer.pad_to(bytes.len());
    assert_eq!(buffer[..], bytes[..]);
}
