//! Files built by hand, byte for byte, and what is read from them.

mod build;
mod hostile;
mod links;
mod packed;
mod pcapng;
mod written;

use std::io::{self, Cursor, Read};
use std::time::Duration;

use super::byte_order::ByteOrder::{Big, Little};
use super::*;
use build::{MICROS, NANOS, frame, pcap_header, pcap_packet};

/// A frame that is not lent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    number: u64,
    at: Option<Duration>,
    bytes: Vec<u8>,
    len_on_wire: usize,
    link_type: LinkType,
    fcs_len: usize,
}

/// All frames, and the error behind them as it is told.
fn read_from(from: impl Read + Send + 'static) -> (Vec<Owned>, Option<String>) {
    let mut frames = Vec::new();
    let mut file = match CaptureFile::from_reader("f", from) {
        Ok(file) => file,
        Err(error) => return (frames, Some(error.to_string())),
    };
    loop {
        match file.next_frame() {
            Ok(Some(frame)) => frames.push(Owned {
                number: frame.number,
                at: frame.at,
                bytes: frame.bytes.to_vec(),
                len_on_wire: frame.len_on_wire,
                link_type: frame.link_type,
                fcs_len: frame.fcs_len,
            }),
            Ok(None) => return (frames, None),
            Err(error) => {
                assert_eq!(file.next_frame().unwrap(), None, "it is told once");
                return (frames, Some(error.to_string()));
            }
        }
    }
}

fn read(file: &[u8]) -> (Vec<Owned>, Option<String>) {
    read_from(Cursor::new(file.to_vec()))
}

/// Of a file that is whole.
fn frames(file: &[u8]) -> Vec<Owned> {
    let (frames, error) = read(file);
    assert_eq!(error, None);
    frames
}

fn error(file: &[u8]) -> String {
    read(file).1.expect("an error")
}

fn hint(file: &[u8]) -> Option<String> {
    let opened = CaptureFile::from_reader("f", Cursor::new(file.to_vec()));
    opened.unwrap_err().hint()
}

#[test]
fn a_file_as_tcpdump_writes_it_is_read() {
    let file = [
        0xd4, 0xc3, 0xb2, 0xa1, // microseconds, little-endian
        0x02, 0x00, 0x04, 0x00, // 2.4
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // unused
        0x00, 0x00, 0x04, 0x00, // snap length 262144
        0x01, 0x00, 0x00, 0x00, // Ethernet
        0x10, 0x32, 0x54, 0x76, // seconds
        0x01, 0x00, 0x00, 0x00, // microseconds
        0x03, 0x00, 0x00, 0x00, // kept
        0x40, 0x00, 0x00, 0x00, // on the wire
        0xaa, 0xbb, 0xcc,
    ];
    let read = Owned {
        number: 1,
        at: Some(Duration::new(0x7654_3210, 1_000)),
        bytes: vec![0xaa, 0xbb, 0xcc],
        len_on_wire: 64,
        link_type: LinkType::ETHERNET,
        fcs_len: 0,
    };
    assert_eq!(frames(&file), [read]);
}

#[test]
fn micro_and_nanoseconds_in_both_byte_orders_are_read() {
    for order in [Little, Big] {
        for (magic, tick) in [(MICROS, 1_000), (NANOS, 1)] {
            let mut file = pcap_header(order, magic, 1);
            file.extend(pcap_packet(order, (1, 999_999), &frame(60), 60));
            file.extend(pcap_packet(order, (u32::MAX, 0), &frame(61), 1514));
            let frames = frames(&file);
            assert_eq!(frames.len(), 2);
            assert_eq!(frames[0].at, Some(Duration::new(1, 999_999 * tick)));
            assert_eq!(frames[0].bytes, frame(60));
            assert_eq!(frames[0].len_on_wire, 60);
            assert_eq!(frames[1].number, 2);
            assert_eq!(frames[1].at, Some(Duration::from_secs(u32::MAX.into())));
            assert_eq!((frames[1].bytes.len(), frames[1].len_on_wire), (61, 1514));
        }
    }
}

#[test]
fn a_packet_longer_than_the_header_says_or_than_it_says_itself_is_read() {
    let mut file = pcap_header(Little, MICROS, 1);
    file[16..20].copy_from_slice(&10u32.to_le_bytes());
    file.extend(pcap_packet(Little, (0, u32::MAX), &frame(60), 20));
    let frames = frames(&file);
    assert_eq!((frames[0].bytes.len(), frames[0].len_on_wire), (60, 60));
}

#[test]
fn a_file_of_a_fritz_box_with_its_longer_packet_headers_is_read() {
    for order in [Little, Big] {
        let mut file = pcap_header(order, build::KUZNETZOV, 1);
        for len in [60, 61] {
            let mut packet = pcap_packet(order, (1, 2), &frame(len), 1514);
            packet.splice(16..16, [0xff; 8]);
            file.extend(packet);
        }
        let frames = frames(&file);
        assert_eq!(frames[0].at, Some(Duration::new(1, 2_000)));
        assert_eq!(frames[0].bytes, frame(60));
        assert_eq!(frames[1].bytes, frame(61));
        assert_eq!(frames[1].len_on_wire, 1514);
    }
}

#[test]
fn a_file_without_packets_has_no_frames() {
    assert_eq!(frames(&pcap_header(Big, NANOS, 1)), []);
}

#[test]
fn another_link_type_is_refused_with_its_number_and_name() {
    for (number, told) in [
        (127, "link type 127 (Wi-Fi in monitor mode)"),
        (220, "link type 220 (USB)"),
        (147, "link type 147"),
    ] {
        let file = pcap_header(Little, MICROS, number);
        let error = error(&file);
        assert_eq!(error, format!("f: file header: {told} is not Ethernet"));
        let hint = hint(&file).expect("a hint");
        assert!(
            hint.contains("on an interface that carries Ethernet or IP"),
            "{hint}"
        );
    }
}

#[test]
fn an_fcs_that_the_header_tells_of_is_cut_off_as_far_as_it_was_captured() {
    for order in [Little, Big] {
        // Four bytes, by two units of two bytes, and that this is known.
        let mut file = pcap_header(order, MICROS, 0x2400_0001);
        for (kept, len_on_wire) in [(64, 64), (62, 64), (60, 64), (59, 64), (2, 2)] {
            file.extend(pcap_packet(order, (0, 0), &frame(64)[..kept], len_on_wire));
        }
        let frames = frames(&file);
        let lengths = frames.iter().map(|it| (it.bytes.len(), it.len_on_wire));
        let expected = [(60, 60), (60, 60), (60, 60), (59, 60), (0, 0)];
        assert_eq!(lengths.collect::<Vec<_>>(), expected);
        assert!(
            frames
                .iter()
                .all(|it| it.fcs_len == 4 && frame(64).starts_with(&it.bytes))
        );
    }
}

#[test]
fn a_length_of_an_fcs_that_is_not_said_to_be_known_is_none() {
    let mut file = pcap_header(Little, MICROS, 0x2000_0001);
    file.extend(pcap_packet(Little, (0, 0), &frame(64), 64));
    let frames = frames(&file);
    assert_eq!((frames[0].bytes.len(), frames[0].fcs_len), (64, 0));
}

#[test]
fn a_version_of_pcap_that_is_not_ours_is_refused() {
    let mut file = pcap_header(Big, MICROS, 1);
    file[7] = 2;
    assert_eq!(
        error(&file),
        "f: file header: pcap version 2.2 is not known"
    );
}

#[test]
fn a_variant_of_pcap_that_is_not_read_is_told_by_its_magic_number() {
    for order in [Little, Big] {
        let file = pcap_header(order, 0xa1b2_34cd, 1);
        assert_eq!(
            error(&file),
            "f: a variant of pcap that is not read, of the magic number 0xa1b234cd"
        );
        assert!(hint(&file).unwrap().contains("editcap"));
    }
}

#[test]
fn what_is_no_capture_is_told_with_how_to_unpack_or_rewrite_it() {
    assert_eq!(error(b""), "f: the file is empty");
    for file in [&b"abc"[..], b"GMBU ..."] {
        assert_eq!(
            error(file),
            "f: not a capture file: neither pcap nor pcapng"
        );
        assert!(hint(file).unwrap().contains("editcap"));
    }
    for (magic, program) in [
        (&b"\xfd7zXZ\0"[..], "xz"),
        (b"BZh9", "bzip2"),
        (b"\x04\x22\x4d\x18", "lz4"),
    ] {
        let told = format!("f: the file is compressed ({program})");
        assert_eq!(error(magic), told);
        assert!(hint(magic).unwrap().contains(&format!("{program} -dc")));
    }
}

#[test]
fn a_packet_above_the_bound_is_an_error_whatever_follows() {
    let mut file = pcap_header(Little, MICROS, 1);
    file.extend(pcap_packet(Little, (0, 0), &frame(60), 60));
    let most = RECORD_BYTES_MAX - 16;
    let longest = pcap_packet(Little, (0, 0), &vec![0; most], 0);
    file.extend(longest);
    file.extend(pcap_packet(Little, (0, 0), &vec![0; most + 1], 0));
    let (frames, error) = read(&file);
    assert_eq!(frames.len(), 2);
    let start = 24 + 76 + RECORD_BYTES_MAX;
    assert_eq!(
        error.unwrap(),
        format!(
            "f: packet 3 at byte {start}: 1048577 bytes in the file, and no more than 1048576 are read"
        )
    );
}

#[test]
fn a_pipe_may_give_single_bytes_and_be_interrupted() {
    struct Trickle(Cursor<Vec<u8>>, bool);
    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let len = buffer.len().min(1);
            self.0.read(&mut buffer[..len])
        }
    }
    for file in [build::pcap_of_three(), build::pcapng_of_everything()] {
        let trickled = read_from(Trickle(Cursor::new(file.clone()), false));
        assert_eq!(trickled, read(&file));
        assert_eq!(trickled.1, None);
    }
}

#[test]
fn why_reading_failed_is_told_with_the_place() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
    }
    let file = build::pcap_of_three();
    let (frames, error) = read_from(Cursor::new(file[..24 + 76 + 20].to_vec()).chain(Broken));
    assert_eq!(frames.len(), 1);
    let error = error.unwrap();
    assert!(
        error.starts_with("f: packet 2 at byte 100: Input/output error"),
        "{error}"
    );
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let error = CaptureFile::open(Path::new("/nowhere/a.pcap")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/a.pcap: No such file"),
        "{error}"
    );
    let error = CaptureFile::open(Path::new("/")).unwrap_err();
    assert!(
        error.to_string().starts_with("/: Is a directory"),
        "{error}"
    );
}
