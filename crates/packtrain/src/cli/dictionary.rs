//! `packtrain dictionary`: what payload is compressed with, made of captures, and what it brings.

mod samples;
mod tried;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use packtrain_proto::coding::dictionary::{Dictionary, DictionaryError, LEN_MIN};
use serde_json::json;

use super::arguments::DictionaryTrainArguments;
use super::error::CliError;
use super::output;
use crate::capture_file::CaptureFile;
use crate::cli::view::words::{bytes, count};
use samples::Samples;
use tried::Tried;

/// Fewer frames say nothing of what others have in common with them.
const FRAMES_MIN: usize = 64;

/// Makes a dictionary of one half of the frames, and tries it on the other.
pub fn train(arguments: &DictionaryTrainArguments) -> Result<(), CliError> {
    // Before the work is done, and not only behind it.
    if fs::symlink_metadata(&arguments.output).is_ok() {
        return Err(CliError::FileExists(arguments.output.clone()));
    }
    let mut samples = Samples::default();
    for path in &arguments.captures {
        let mut capture = CaptureFile::open(path)?;
        while let Some(frame) = capture.next_frame()? {
            samples.take(frame.bytes, frame.len_on_wire);
        }
    }
    let (trained, dictionary) = made_of(&samples, arguments.size as usize)
        .map_err(|why| CliError::Failed(format!("no dictionary was written: {why}")))?;
    let tried = Tried::of(&samples, &dictionary);
    write(&arguments.output, &trained)?;
    if arguments.json {
        let document = json!({
            "file": arguments.output,
            "id": format!("{:08x}", dictionary.id()),
            "bytes": trained.len(),
            "learned_from_frames": samples.to_learn_from().len(),
            "left_out_frames": samples.left_out(),
            "tried_on": &tried,
            "recommended": tried.is_worth_it(),
        });
        return output::text(&format!("{document:#}\n"));
    }
    output::text(&text(&arguments.output, &dictionary, &samples, &tried))
}

/// A dictionary of so many bytes at most, of one half of the frames; or why there is none.
fn made_of(samples: &Samples, size: usize) -> Result<(Vec<u8>, Dictionary), String> {
    if samples.frames() < FRAMES_MIN {
        let left_out = match samples.left_out().to_string() {
            none if none.is_empty() => none,
            some => format!("; left out are {some}"),
        };
        return Err(format!(
            "it takes {FRAMES_MIN} frames to learn from and to try it on, and the captures have {}{left_out}",
            samples.frames()
        ));
    }
    let trained = zstd::dict::from_samples(&samples.to_learn_from(), size).map_err(|error| {
        format!(
            "what these frames have in common is not enough for one ({error}); a longer capture may have more"
        )
    })?;
    let dictionary = Dictionary::new(&trained).map_err(|error| match error {
        DictionaryError::Length(len) if len < LEN_MIN => format!(
            "what these frames have in common is {len} bytes, and a dictionary has {LEN_MIN} at least; \
             a longer capture may have more"
        ),
        other => other.to_string(),
    })?;
    Ok((trained, dictionary))
}

/// To a file that is not there yet: who has the one of that name would have another one than the other end.
fn write(path: &Path, dictionary: &[u8]) -> Result<(), CliError> {
    let failed = |error| CliError::failed(&path.display().to_string(), error);
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::FileExists(path.into()),
        _ => failed(error),
    })?;
    file.write_all(dictionary).map_err(|error| {
        // Half of it would be another dictionary.
        let _ = fs::remove_file(path);
        failed(error)
    })
}

fn text(path: &Path, dictionary: &Dictionary, samples: &Samples, tried: &Tried) -> String {
    let share = |of: usize| {
        format!(
            "{:5.1} %",
            100.0 * of as f64 / tried.plain_bytes.max(1) as f64
        )
    };
    let left_out = match samples.left_out().to_string() {
        none if none.is_empty() => none,
        some => format!("left out: {some}\n"),
    };
    format!(
        "{}: {}, id {:08x}, learned from {} frames\n{left_out}\
         tried on {} other frames, {} in trains of 1500 bytes that are\n  \
         as they are      {}\n  \
         headers          {}\n  \
         LZ4              {}\n  \
         this dictionary  {}\n  \
         mixing           {}  without a dictionary, on slow links\n{}\n",
        path.display(),
        bytes(dictionary.len() as u64),
        dictionary.id(),
        count(samples.to_learn_from().len() as u64),
        count(tried.frames as u64),
        bytes(tried.plain_bytes as u64),
        share(tried.plain_bytes),
        share(tried.headers_bytes),
        share(tried.lz4_bytes),
        share(tried.dictionary_bytes),
        share(tried.mixing_bytes),
        tried.advice(path),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP over IPv4 that says this.
    pub fn datagram(number: u16, says: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, 0];
        frame.extend((28 + says.len() as u16).to_be_bytes());
        frame.extend(number.to_be_bytes());
        frame.extend([0x40, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
        frame.extend([0x1b, 0x58, 0x1b, 0x59]);
        frame.extend((8 + says.len() as u16).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(says);
        frame
    }

    pub fn samples(count: u16, says: impl Fn(u16) -> Vec<u8>) -> Samples {
        let mut samples = Samples::default();
        for number in 0..count {
            let frame = datagram(number, &says(number));
            samples.take(&frame, frame.len());
        }
        samples
    }

    pub fn json(n: u16) -> Vec<u8> {
        let text = format!(
            "{{\"sensor\":\"s{}\",\"celsius\":{}.{},\"battery\":{}}}",
            n % 7,
            n % 31,
            n % 10,
            n.wrapping_mul(4001)
        );
        text.into_bytes()
    }

    #[test]
    fn what_frames_have_in_common_is_made_a_dictionary_no_longer_than_asked_for() {
        for size in [256, 1024] {
            let (bytes, dictionary) = made_of(&samples(400, json), size).unwrap();
            assert!(bytes.len() <= size && bytes.len() == dictionary.len());
            assert_eq!(Dictionary::new(&bytes).unwrap(), dictionary);
        }
    }

    #[test]
    fn what_is_too_little_is_told_with_how_much_it_is() {
        let few = samples(63, json);
        assert_eq!(
            made_of(&few, 8192).unwrap_err(),
            "it takes 64 frames to learn from and to try it on, and the captures have 63"
        );
        let mut cut = samples(63, json);
        let frame = datagram(63, &json(63));
        cut.take(&frame[..60], frame.len());
        assert_eq!(
            made_of(&cut, 8192).unwrap_err(),
            "it takes 64 frames to learn from and to try it on, and the captures have 63; \
             left out are 1 cut short by the capture"
        );
        // One byte each: nothing is in common but that.
        let why = made_of(&samples(400, |_| vec![b'x']), 8192).unwrap_err();
        assert!(
            why.starts_with("what these frames have in common is "),
            "{why}"
        );
        assert!(why.ends_with("a longer capture may have more"), "{why}");
    }
}
