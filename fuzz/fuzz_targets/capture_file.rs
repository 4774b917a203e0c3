//! Any file as a capture: no panic, frames in rising numbers that are within it, and what is cut off gives the
//! beginning of what the whole gives. Packed it gives the same, and any file may be packed itself.
#![no_main]

use std::io::{Cursor, Write};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;

// The folder alone: the crate around it wants libbpf, which has no part in this.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/packtrain/src/capture_file/mod.rs"]
mod capture_file;

use capture_file::{CaptureFile, Place};

/// More are not looked at: a few bytes can be unpacked to very many.
const FRAMES_MAX: usize = 10_000;

#[derive(Debug, PartialEq)]
struct Frame {
    number: u64,
    at: Option<Duration>,
    bytes: Vec<u8>,
    len_on_wire: usize,
    link_type: u32,
    fcs_len: usize,
}

#[derive(Debug, Default, PartialEq)]
struct Given {
    frames: Vec<Frame>,
    error: Option<(Place, String)>,
}

fn given(file: &[u8]) -> Given {
    let mut given = Given::default();
    let opened = CaptureFile::from_reader("fuzz", Cursor::new(file.to_vec()));
    let error = match opened {
        Ok(mut capture) => loop {
            match capture.next_frame() {
                Ok(Some(it)) if given.frames.len() < FRAMES_MAX => given.frames.push(Frame {
                    number: it.number,
                    at: it.at,
                    bytes: it.bytes.to_vec(),
                    len_on_wire: it.len_on_wire,
                    link_type: it.link_type.0,
                    fcs_len: it.fcs_len,
                }),
                Ok(_) => return given,
                Err(error) => break error,
            }
        },
        Err(error) => error,
    };
    assert!(error.to_string().starts_with("fuzz"));
    let _ = error.hint();
    given.error = Some((error.place, error.cause.to_string()));
    given
}

fn gzip(file: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(file).unwrap();
    encoder.finish().unwrap()
}

fn is_magic_of_packed(file: &[u8]) -> bool {
    matches!(
        file,
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]
    )
}

fuzz_target!(|file: &[u8]| {
    let whole = given(file);
    assert!(whole.frames.is_sorted_by(|a, b| a.number < b.number));
    for frame in &whole.frames {
        assert!(frame.bytes.len() <= frame.len_on_wire);
    }
    let before = given(&file[..file.len() / 2]);
    assert!(before.frames.len() <= whole.frames.len());
    assert_eq!(before.frames, whole.frames[..before.frames.len()]);
    if is_magic_of_packed(file) {
        return;
    }
    // A made-up header is longer than what it takes the place of.
    let bytes: usize = whole.frames.iter().map(|it| it.bytes.len()).sum();
    assert!(bytes <= file.len() + 14 * whole.frames.len());
    for packed in [gzip(file), zstd::encode_all(file, 1).unwrap()] {
        let unpacked = given(&packed);
        assert_eq!(unpacked.frames, whole.frames);
        assert_eq!(unpacked.error, whole.error);
        let cut = given(&packed[..packed.len() - packed.len() / 4]);
        assert_eq!(cut.frames, whole.frames[..cut.frames.len()]);
    }
});
