//! `packtrain dictionary`: what payload is compressed with, made of captures, and what it brings.

mod samples;
mod tried;

use std::fs;
use std::path::PathBuf;

use packtrain_proto::coding::dictionary::Dictionary;
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
    let mut samples = Samples::default();
    for path in &arguments.captures {
        let mut capture = CaptureFile::open(path)?;
        while let Some(frame) = capture.next_frame()? {
            samples.take(frame.bytes, frame.len_on_wire);
        }
    }
    let refused = |what: String| CliError::Failed(format!("no dictionary was written: {what}"));
    if samples.frames() < FRAMES_MIN {
        return Err(refused(format!(
            "the captures have {} whole frames with payload, and it takes {FRAMES_MIN}",
            samples.frames()
        )));
    }
    let trained = zstd::dict::from_samples(&samples.to_learn_from(), arguments.size as usize);
    let trained = trained.map_err(|error| {
        refused(format!(
            "what these frames have in common is not enough for one ({error}); a longer capture may be, or a smaller --size"
        ))
    })?;
    let dictionary = Dictionary::new(&trained).map_err(|error| refused(error.to_string()))?;
    let tried = Tried::of(&samples, &dictionary);
    write(&arguments.output, &trained)?;
    if arguments.json {
        let document = json!({
            "file": arguments.output,
            "id": format!("{:08x}", dictionary.id()),
            "bytes": trained.len(),
            "learned_from_frames": samples.to_learn_from().len(),
            "tried_on": &tried,
        });
        return output::text(&format!("{document:#}\n"));
    }
    output::text(&text(&arguments.output, &dictionary, &tried))
}

fn write(path: &PathBuf, dictionary: &[u8]) -> Result<(), CliError> {
    let failed = |error| CliError::failed(&path.display().to_string(), error);
    fs::write(path, dictionary).map_err(failed)
}

fn text(path: &std::path::Path, dictionary: &Dictionary, tried: &Tried) -> String {
    let share = |of: usize| {
        format!(
            "{:5.1} %",
            100.0 * of as f64 / tried.plain_bytes.max(1) as f64
        )
    };
    format!(
        "{}: {}, id {:08x}\n\
         tried on {} other frames, {} in trains of 1500 bytes that are\n  \
         as they are      {}\n  \
         headers          {}\n  \
         LZ4              {}\n  \
         this dictionary  {}\n{}\n",
        path.display(),
        bytes(dictionary.len() as u64),
        dictionary.id(),
        count(tried.frames as u64),
        bytes(tried.plain_bytes as u64),
        share(tried.plain_bytes),
        share(tried.headers_bytes),
        share(tried.lz4_bytes),
        share(tried.dictionary_bytes),
        tried.advice(),
    )
}
