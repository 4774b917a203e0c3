//! The dictionary that a line is given, as a file.

use std::fs;
use std::path::{Path, PathBuf};

use packtrain_proto::coding::dictionary::{Dictionary, DictionaryError, LEN_MAX};

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
pub fn read(path: &Path) -> Result<Dictionary, DictionaryFileError> {
    let unread = |source| DictionaryFileError::Unread {
        path: path.into(),
        source,
    };
    // Not all of a file that cannot be one.
    let len = fs::metadata(path).map_err(unread)?.len();
    let bytes = match usize::try_from(len) {
        Ok(len) if len <= LEN_MAX => fs::read(path).map_err(unread)?,
        _ => vec![0; LEN_MAX + 1],
    };
    Dictionary::new(&bytes).map_err(|source| DictionaryFileError::NoDictionary {
        path: path.into(),
        source: match source {
            DictionaryError::Length(_) => DictionaryError::Length(len as usize),
            other => other,
        },
    })
}

/// As the command line has it.
pub fn parse(path: &str) -> Result<Dictionary, String> {
    read(Path::new(path)).map_err(|error| error.to_string())
}
