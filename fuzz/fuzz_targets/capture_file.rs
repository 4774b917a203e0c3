//! Any file as a capture: no panic, frames in rising numbers that are within it, and what is cut off gives the
//! beginning of what the whole gives.
#![no_main]

use std::io::Cursor;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;

// The folder alone: the crate around it wants libbpf, which has no part in this.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/packtrain/src/capture_file/mod.rs"]
mod capture_file;

use capture_file::CaptureFile;

type Frame = (u64, Option<Duration>, Vec<u8>, usize);

fn frames(file: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    let opened = CaptureFile::from_reader("fuzz", Cursor::new(file.to_vec()));
    let error = match opened {
        Ok(mut capture) => loop {
            match capture.next_frame() {
                Ok(Some(it)) => frames.push((it.number, it.at, it.bytes.to_vec(), it.len_on_wire)),
                Ok(None) => return frames,
                Err(error) => break error,
            }
        },
        Err(error) => error,
    };
    assert!(error.to_string().starts_with("fuzz: "));
    let _ = error.hint();
    frames
}

fuzz_target!(|file: &[u8]| {
    let whole = frames(file);
    assert!(whole.is_sorted_by(|a, b| a.0 < b.0));
    let bytes: usize = whole.iter().map(|(_, _, bytes, _)| bytes.len()).sum();
    assert!(bytes <= file.len());
    for (_, _, bytes, len_on_wire) in &whole {
        assert!(bytes.len() <= *len_on_wire);
    }
    let before = frames(&file[..file.len() / 2]);
    assert_eq!(before, whole[..before.len()]);
});
