//! The dictionary that a line is given, as a file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use packtrain_proto::coding::dictionary::{Dictionary, DictionaryError, LEN_MAX};

/// A dictionary, and where it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DictionaryFile {
    pub path: PathBuf,
    pub dictionary: Dictionary,
}

/// Why a file is no dictionary.
#[derive(Debug, thiserror::Error)]
pub enum DictionaryFileError {
    #[error("{}: {source}", path.display())]
    Unread {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {source}", path.display())]
    NoDictionary {
        path: PathBuf,
        source: DictionaryError,
    },
}

/// A dictionary, as `packtrain dictionary train` writes it.
pub fn read(path: &Path) -> Result<DictionaryFile, DictionaryFileError> {
    let unread = |source| DictionaryFileError::Unread {
        path: path.into(),
        source,
    };
    let file = File::open(path).map_err(unread)?;
    let len = file.metadata().map_err(unread)?.len() as usize;
    let mut bytes = Vec::new();
    // Not all of a file that cannot be one, and may have no end.
    let mut start = file.take(LEN_MAX as u64 + 1);
    start.read_to_end(&mut bytes).map_err(unread)?;
    let dictionary =
        Dictionary::new(&bytes).map_err(|source| DictionaryFileError::NoDictionary {
            path: path.into(),
            source: match source {
                DictionaryError::Length(read) => DictionaryError::Length(len.max(read)),
                other => other,
            },
        })?;
    Ok(DictionaryFile {
        // Who asks for it later may be in another folder.
        path: std::path::absolute(path).map_err(unread)?,
        dictionary,
    })
}

/// As the command line has it.
pub fn parse(path: &str) -> Result<DictionaryFile, String> {
    read(Path::new(path)).map_err(|error| error.to_string())
}
