//! What is written down of a lab that stands, before anything of it exists: so that `lab down` finds
//! all of it, whatever ended the command that made it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::lab::namespaces::NAMESPACE_DIR;
use crate::lab::topology::{Name, Topology};
use crate::lab::{Error, Result};

const RUN_DIR: &str = "/run/packtrain";
const LABS_DIR: &str = "/run/packtrain/labs";

const CLAIM_TRIES_MAX: usize = 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub lab: String,
    /// As it was made; the emulator knows what was changed since.
    pub topology: Topology,
    /// By host.
    pub namespaces: BTreeMap<Name, String>,
    pub emulator: Option<ProcessId>,
    /// Whether /etc/netns is there for labs alone: made for this one, or for one that stood when this
    /// one was made. The last of them removes it.
    pub made_netns_dir: bool,
}

/// A process, and when it began: its number may be another's by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: u32,
    /// In ticks since boot.
    pub started: u64,
}

impl ProcessId {
    pub fn of(pid: u32) -> Option<ProcessId> {
        let started = started(pid)?;
        Some(ProcessId { pid, started })
    }

    pub fn is_alive(self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// Field 22 of proc_pid_stat(5); `None` when there is no such process, or it waits to be reaped.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses, which may hold anything.
    let mut rest = stat.rsplit_once(") ")?.1.split_ascii_whitespace();
    let state = rest.next()?;
    (state != "Z").then_some(())?;
    rest.nth(18)?.parse().ok()
}

/// The process that listens there.
fn listener(socket: &Path) -> Option<ProcessId> {
    let stream = UnixStream::connect(socket).ok()?;
    let credentials = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    ProcessId::of(credentials.pid.as_raw_nonzero().get() as u32)
}

impl Record {
    /// The namespace of a host is called after the lab and it.
    pub fn new(lab: &str, topology: &Topology) -> Record {
        let name = |host: &Name| format!("pt-{lab}-{host}");
        let hosts = topology.hosts.iter().map(|host| &host.name);
        Record {
            lab: lab.to_owned(),
            topology: topology.clone(),
            namespaces: hosts.map(|host| (host.clone(), name(host))).collect(),
            emulator: None,
            made_netns_dir: false,
        }
    }

    pub fn dir(&self) -> PathBuf {
        dir_of(&self.lab)
    }

    pub fn socket(&self) -> PathBuf {
        self.dir().join("socket")
    }

    /// What the emulator says on its standard error.
    pub fn log(&self) -> PathBuf {
        self.dir().join("emulator.log")
    }

    /// Takes the name: there is no other lab of it.
    pub fn claim(&self) -> Result<()> {
        // Lines have their files there too, and anybody may ask for their status.
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o755);
        builder
            .create(RUN_DIR)
            .map_err(|e| file(Path::new(RUN_DIR), e))?;
        // Again when the last other lab goes down in between and takes the directory with it.
        for _ in 0..CLAIM_TRIES_MAX {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder
                .create(LABS_DIR)
                .map_err(|e| file(Path::new(LABS_DIR), e))?;
            match fs::DirBuilder::new().mode(0o700).create(self.dir()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(Error::LabExists(self.lab.clone()));
                }
                result => return result.map_err(|e| file(&self.dir(), e)),
            }
        }
        Err(file(&self.dir(), io::ErrorKind::NotFound.into()))
    }

    pub fn save(&self) -> Result<()> {
        let path = self.dir().join("lab.json");
        let new = self.dir().join("lab.json.new");
        let text = serde_json::to_vec_pretty(self).expect("a record has no key but strings");
        fs::write(&new, text).map_err(|e| file(&new, e))?;
        fs::rename(&new, &path).map_err(|e| file(&path, e))
    }

    /// Of the lab of this name. One that was claimed and not saved is empty.
    pub fn load(lab: &str) -> Result<Record> {
        let path = dir_of(lab).join("lab.json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && dir_of(lab).exists() => {
                return Ok(Record::new(lab, &Topology::new(lab)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoSuchLab {
                    lab: lab.to_owned(),
                    standing: standing()?,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::NoRights);
            }
            Err(error) => return Err(file(&path, error)),
        };
        serde_json::from_str(&text).map_err(|error| Error::Unexpected {
            program: path.display().to_string(),
            text: error.to_string(),
        })
    }

    /// What can be known of a lab without its record: by how its namespaces are called.
    pub fn by_names(lab: &str) -> Record {
        let mut record = Record::new(lab, &Topology::new(lab));
        let prefix = format!("pt-{lab}-");
        let entries = fs::read_dir(NAMESPACE_DIR).into_iter().flatten();
        for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
            // The name of a host has no hyphen, and those of other namespaces of ours have.
            let host = name
                .strip_prefix(&prefix)
                .and_then(|host| host.parse().ok());
            record
                .namespaces
                .extend(host.map(|host| (host, name.clone())));
        }
        record.emulator = listener(&record.socket());
        // It goes only where nothing is in it.
        record.made_netns_dir = true;
        record
    }

    pub fn forget(&self) -> Result<()> {
        match fs::remove_dir_all(self.dir()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file(&self.dir(), error)),
            _ => {
                // Empty, or another lab is there.
                let _ = fs::remove_dir(LABS_DIR);
                Ok(())
            }
        }
    }
}

fn dir_of(lab: &str) -> PathBuf {
    Path::new(LABS_DIR).join(lab)
}

/// Names of the labs that stand, or of which something is left.
pub fn standing() -> Result<Vec<String>> {
    let entries = match fs::read_dir(LABS_DIR) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(Error::NoRights);
        }
        Err(error) => return Err(file(Path::new(LABS_DIR), error)),
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Whether a lab other than this one has /etc/netns to remove.
pub fn some_made_netns_dir(but: &str) -> bool {
    let names = standing().unwrap_or_default();
    let mut others = names.iter().filter(|name| *name != but);
    others.any(|name| Record::load(name).is_ok_and(|record| record.made_netns_dir))
}

pub(super) fn file(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.display().to_string(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let own = ProcessId::of(std::process::id()).unwrap();
        assert!(own.is_alive());
        let another = ProcessId {
            started: own.started + 1,
            ..own
        };
        assert!(!another.is_alive());
    }
}
