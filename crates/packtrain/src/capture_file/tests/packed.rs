//! Captures that gzip or zstd has packed.

use std::io::{self, Cursor, Read, Write};

use proptest::prelude::*;

use super::build::{MICROS, frame, pcap_header, pcap_of_three, pcap_packet, pcapng_of_everything};
use super::{CaptureFile, Little, error, frames, hint, read, read_from};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// With a checksum, as the program writes it.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 0).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Pack = fn(&[u8]) -> Vec<u8>;

const PACKERS: [(&str, Pack); 2] = [("gzip", gzip), ("zstd", zstd)];

/// Larger than every buffer on the way, and not to be packed well.
fn large() -> Vec<u8> {
    let mut file = pcap_header(Little, MICROS, 1);
    let mut state = 1u32;
    for number in 0..3000 {
        let mut bytes = frame(100 + number % 1000);
        for byte in &mut bytes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
        let len = bytes.len() as u32;
        file.extend(pcap_packet(Little, (number as u32, 0), &bytes, len));
    }
    file
}

#[test]
fn what_is_packed_reads_as_what_is_not() {
    for file in [pcap_of_three(), pcapng_of_everything(), large()] {
        for (_, pack) in PACKERS {
            assert_eq!(read(&pack(&file)), read(&file));
        }
    }
}

#[test]
fn members_and_frames_one_behind_the_other_are_one_file() {
    let file = large();
    let (first, rest) = file.split_at(100_003);
    for (_, pack) in PACKERS {
        let empty = pack(b"");
        let members = [pack(first), empty.clone(), pack(rest), empty];
        assert_eq!(frames(&members.concat()), frames(&file));
    }
    // To be passed over, as pzstd has it before each frame.
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3].to_vec();
    let parts = [
        skippable.clone(),
        zstd(first),
        skippable.clone(),
        zstd(rest),
        skippable,
    ];
    assert_eq!(frames(&parts.concat()), frames(&file));
}

#[test]
fn zeros_behind_gzip_are_padding_and_all_else_behind_a_stream_is_told() {
    let file = pcap_of_three();
    let padded = [gzip(&file), vec![0; 200_000]].concat();
    assert_eq!(frames(&padded), frames(&file));
    for (behind, told) in [
        (
            [gzip(&file), vec![0, 0, 7]],
            "the gzip stream is broken: what stands behind its end is no gzip stream",
        ),
        (
            [zstd(&file), vec![7; 10]],
            "the zstd stream is broken: Unknown frame descriptor",
        ),
    ] {
        let (given, error) = read(&behind.concat());
        assert_eq!(given, frames(&file));
        let name = &told[4..8];
        assert_eq!(
            error.unwrap(),
            format!("f ({name}, unpacked): packet 4 at byte 255: {told}")
        );
    }
}

#[test]
fn a_stream_cut_off_anywhere_gives_what_was_whole_and_names_the_packet_that_is_not() {
    for file in [pcap_of_three(), pcapng_of_everything()] {
        let whole = frames(&file);
        for (name, pack) in PACKERS {
            let packed = pack(&file);
            // Fewer say nothing of what it is.
            for cut in 4..packed.len() {
                let (given, error) = read(&packed[..cut]);
                assert!(whole.starts_with(&given), "{name} cut at {cut}");
                let error = error.expect("it is cut off");
                assert!(
                    error.starts_with(&format!("f ({name}, unpacked): ")),
                    "{error}"
                );
                assert!(
                    error.ends_with(&format!("the {name} stream is cut off")),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn of_a_large_stream_that_is_cut_off_all_is_given_that_can_be_unpacked() {
    let file = large();
    let whole = frames(&file);
    for (name, pack) in PACKERS {
        let packed = pack(&file);
        let mut fewest = 0;
        for tenths in 1..10 {
            let (given, error) = read(&packed[..packed.len() * tenths / 10]);
            assert_eq!(given, whole[..given.len()]);
            // Blocks of zstd have 128 KB, and are given whole or not at all.
            let unpacked: usize = given.iter().map(|frame| 16 + frame.bytes.len()).sum();
            assert!(unpacked + 140_000 > file.len() * tenths / 10, "{unpacked}");
            assert!(given.len() >= fewest);
            fewest = given.len();
            let place = format!(
                "f ({name}, unpacked): packet {} at byte {}: ",
                given.len() + 1,
                24 + unpacked
            );
            let error = error.unwrap();
            assert_eq!(error, format!("{place}the {name} stream is cut off"));
        }
    }
}

#[test]
fn wrong_bytes_in_a_stream_are_told_as_such() {
    let file = large();
    for (name, pack) in PACKERS {
        let mut packed = pack(&file);
        // What is checked is its end.
        let last = packed.len() - if name == "gzip" { 6 } else { 1 };
        packed[last] ^= 1;
        let (_, error) = read(&packed);
        let error = error.unwrap();
        let told = format!("the {name} stream is broken: ");
        assert!(error.contains(&told), "{error}");
    }
    let mut header = gzip(&file);
    header[2] = 9;
    assert_eq!(
        error(&header),
        "f (gzip, unpacked): the gzip stream is broken: unknown compression method"
    );
}

#[test]
fn all_that_is_before_wrong_bytes_is_given() {
    let file = large();
    let whole = frames(&file);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gzip.write_all(&file).unwrap();
    gzip.flush().unwrap();
    let mut zstd = zstd::Encoder::new(Vec::new(), 0).unwrap();
    zstd.write_all(&file).unwrap();
    zstd.flush().unwrap();
    // Blocks of a type that is reserved follow.
    for (name, flushed, wrong) in [
        ("gzip", gzip.get_ref(), [7; 9]),
        ("zstd", zstd.get_ref(), [0xff; 9]),
    ] {
        let (given, error) = read(&[&flushed[..], &wrong].concat());
        assert!(given == whole, "{name}: {} frames", given.len());
        let place = format!("f ({name}, unpacked): packet 3001 at byte {}: ", file.len());
        let error = error.unwrap();
        assert!(
            error.starts_with(&format!("{place}the {name} stream is broken: ")),
            "{error}"
        );
    }
}

#[test]
fn a_window_that_would_take_all_memory_is_refused_with_what_to_do() {
    // A frame of a window of 2 GB (its descriptor: exponent 21, of 1 KB), and the first bytes of a block.
    let file = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0, 0, 0];
    assert_eq!(
        error(&file),
        "f (zstd, unpacked): to unpack it a window of more than 128 MB is needed"
    );
    assert!(hint(&file).unwrap().contains("zstd -dc --long=31"));
    let whole = [
        &[0x28, 0xb5, 0x2f, 0xfd, 0x00, 17 << 3][..],
        // A last block as it is.
        &[(24 << 3 | 1), 0, 0],
        &pcap_header(Little, MICROS, 1),
    ];
    assert_eq!(frames(&whole.concat()), []);
}

#[test]
fn what_is_packed_and_no_capture_is_told_so() {
    for (name, pack) in PACKERS {
        let start = format!("f ({name}, unpacked): ");
        assert_eq!(error(&pack(b"")), format!("{start}the file is empty"));
        let text = error(&pack(b"but some text"));
        assert_eq!(
            text,
            format!("{start}not a capture file: neither pcap nor pcapng")
        );
        let twice = pack(&pack(&pcap_of_three()));
        assert_eq!(
            error(&twice),
            format!("{start}the file is compressed ({name})")
        );
        assert!(hint(&twice).unwrap().contains(&format!("{name} -dc")));
    }
}

#[test]
fn why_reading_failed_is_not_taken_for_a_broken_stream() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
    }
    let file = large();
    for (name, pack) in PACKERS {
        let packed = pack(&file);
        for len in [4, 12, packed.len() / 2, packed.len()] {
            let (given, error) = read_from(Cursor::new(packed[..len].to_vec()).chain(Broken));
            assert!(given.len() <= 3000);
            let error = error.unwrap();
            assert!(error.starts_with(&format!("f ({name}, unpacked): ")));
            assert!(error.contains("Input/output error"), "{error}");
        }
    }
}

#[test]
fn what_a_pipe_has_is_given_before_it_has_more() {
    /// Gives what it has, and then says that it was asked for more.
    struct Pipe(Cursor<Vec<u8>>);
    impl Read for Pipe {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                read => Ok(read),
            }
        }
    }
    let file = pcap_of_three();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gzip.write_all(&file).unwrap();
    gzip.flush().unwrap();
    let mut zstd = zstd::Encoder::new(Vec::new(), 0).unwrap();
    zstd.write_all(&file).unwrap();
    zstd.flush().unwrap();
    for flushed in [file, gzip.get_ref().clone(), zstd.get_ref().clone()] {
        let mut capture = CaptureFile::from_reader("f", Pipe(Cursor::new(flushed))).unwrap();
        for _ in 0..3 {
            assert!(capture.next_frame().unwrap().is_some());
        }
        capture.next_frame().unwrap_err();
    }
}

proptest! {
    #[test]
    fn a_stream_with_wrong_bytes_is_frames_or_an_error(
        is_pcapng in any::<bool>(),
        is_zstd in any::<bool>(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let file = match is_pcapng {
            true => pcapng_of_everything(),
            false => pcap_of_three(),
        };
        let (_, pack) = PACKERS[usize::from(is_zstd)];
        let mut packed = pack(&file);
        for (at, byte) in changes {
            let at = at.index(packed.len());
            packed[at] = byte;
        }
        let (frames, error) = read(&packed);
        prop_assert!(frames.is_sorted_by(|a, b| a.number < b.number));
        prop_assert!(error.is_none_or(|error| error.starts_with('f')));
    }
}
