//! The journal's file: replaced as a whole, so that it is the old or the new one at any instant.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::identity::{Owner, Place};
use super::{Change, HostStateError};

const FORMAT: u32 = 1;
/// What a line changes is a few values for each of a few links; more is no file of ours.
const FILE_LEN_MAX: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    format: u32,
    line: String,
    #[serde(flatten)]
    pub(super) place: Place,
    #[serde(flatten)]
    pub(super) owner: Owner,
    pub(super) changes: Vec<Change>,
}

impl Record {
    pub(super) fn new(line: &str, place: Place) -> Record {
        let owner = Owner::this_process();
        Record {
            format: FORMAT,
            line: line.to_owned(),
            place,
            owner,
            changes: Vec::new(),
        }
    }
}

pub(super) enum Found {
    Nothing,
    /// Not what we write; why.
    Unusable(&'static str),
    Record(Record),
}

pub(super) fn read_any(path: &Path) -> Result<Found, HostStateError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(unreadable(path, error)),
    };
    if metadata.len() > FILE_LEN_MAX {
        return Ok(Found::Unusable("it is too long for a file of packtrain's"));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(path, error))?;
    match serde_json::from_slice::<Record>(&bytes) {
        Ok(record) if record.format == FORMAT => Ok(Found::Record(record)),
        Ok(_) => Ok(Found::Unusable(
            "it was written by another version of packtrain",
        )),
        Err(_) => Ok(Found::Unusable("it is no file of packtrain's")),
    }
}

pub(super) fn read(path: &Path) -> Result<Option<Record>, HostStateError> {
    Ok(match read_any(path)? {
        Found::Record(record) => Some(record),
        Found::Nothing | Found::Unusable(_) => None,
    })
}

pub(super) fn unreadable(path: &Path, source: io::Error) -> HostStateError {
    HostStateError::Read {
        path: path.to_owned(),
        source,
    }
}

/// The kernel has it when this returns: that outlives the daemon, however it ends. It need not outlive the
/// kernel, for what is written means nothing in another boot; so nothing waits for a disk, which would hold up
/// every frame meanwhile.
pub(super) fn write(path: &Path, record: &Record) -> io::Result<()> {
    let directory = path.parent().expect("the journal lies in a directory");
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(directory)?;
    let text = serde_json::to_vec_pretty(record).expect("a record has no map with odd keys");
    let new = path.with_extension("json.new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(&new)?;
    file.write_all(&text)?;
    file.write_all(b"\n")?;
    fs::rename(&new, path)
}

pub(super) fn remove(path: &Path) -> Result<(), HostStateError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HostStateError::Write {
            path: path.to_owned(),
            source: error,
        }),
        _ => Ok(()),
    }
}
