//! What a sweep keeps of the runs that have ended, so that one that was interrupted goes on.
//!
//! Lines of JSON. The first one says of what they are; each further one is a run. A line that was cut when
//! the power went is the last one, and is run again.
//!
//! ```text
//! {"packtrain_sweep":1,"version":"0.1.0","scenario":"xlf-drr","text":"86dd…","settings":{"F":"13.0"},"values":["ratio"]}
//! {"at":{"F":"1.0"},"seed":1,"values":["1.02"],"events":123,"hops":45}
//! ```
//!
//! Numbers stand as texts, which say all of them exactly, and those that are none.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::expression::Value;
use crate::run::Run;
use crate::scenario::Scenario;

const FORMAT: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is no store of a sweep: {what}", path.display())]
    NoStore { path: PathBuf, what: String },
    #[error("{} is the store of another sweep: {what}", path.display())]
    Another { path: PathBuf, what: String },
    #[error("{}:{line}: {what}", path.display())]
    Damaged {
        path: PathBuf,
        line: usize,
        what: String,
    },
}

#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    runs: BTreeMap<(String, u64), Run>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    packtrain_sweep: u32,
    version: String,
    scenario: String,
    /// Hash of the scenario's text.
    text: String,
    settings: BTreeMap<String, String>,
    values: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at: BTreeMap<String, String>,
    seed: u64,
    values: Vec<String>,
    events: u64,
    hops: u64,
}

impl Store {
    /// Opens the store of this sweep, or begins it. `version`: of the program, which may simulate otherwise in another.
    pub fn open(
        path: &Path,
        scenario: &Scenario,
        plan: &Plan,
        version: &str,
    ) -> Result<Store, StoreError> {
        let failed = |source| StoreError::File {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        // Whoever else writes to it by mistake, no line is written over another.
        let file = options.read(true).append(true).create(true).open(path);
        let mut store = Store {
            path: path.to_owned(),
            file: file.map_err(failed)?,
            runs: BTreeMap::new(),
        };
        let mut bytes = Vec::new();
        store.file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |at| at + 1);
        let ours = header(scenario, plan, version);
        let mut lines = bytes[..whole].split_inclusive(|&b| b == b'\n');
        match lines.next() {
            Some(first) => store.check_header(first, &ours)?,
            // Nothing, or the beginning of a header of ours: anything else is somebody's file.
            None if bytes.is_empty() || bytes.starts_with(b"{\"packtrain_sweep\"") => {}
            None => {
                return Err(StoreError::NoStore {
                    path: path.to_owned(),
                    what: "it begins with something else".into(),
                });
            }
        }
        for (number, line) in (2..).zip(lines) {
            store.read_line(number, line, ours.values.len())?;
        }
        store.file.set_len(whole as u64).map_err(failed)?;
        if whole == 0 {
            store.write(&ours)?;
        }
        Ok(store)
    }

    fn check_header(&self, line: &[u8], ours: &Header) -> Result<(), StoreError> {
        let path = || self.path.clone();
        let theirs: Header = serde_json::from_slice(line).map_err(|error| StoreError::NoStore {
            path: path(),
            what: error.to_string(),
        })?;
        let another = |what: String| {
            Err(StoreError::Another {
                path: path(),
                what: format!("{what}; give another file, or remove it"),
            })
        };
        if theirs.packtrain_sweep != ours.packtrain_sweep || theirs.version != ours.version {
            return another(format!("packtrain {} has written it", theirs.version));
        }
        if theirs.scenario != ours.scenario {
            return another(format!("it is of {}", theirs.scenario));
        }
        if theirs.text != ours.text || theirs.values != ours.values {
            return another(format!("{} was another scenario then", theirs.scenario));
        }
        let differs = ours
            .settings
            .iter()
            .find(|(name, value)| theirs.settings.get(*name) != Some(value));
        match differs {
            Some((name, value)) => another(match theirs.settings.get(name) {
                Some(before) => format!("{name} was {before} and not {value}"),
                None => format!("{name} was varied, and is {value} now"),
            }),
            None => Ok(()),
        }
    }

    fn read_line(&mut self, number: usize, line: &[u8], values: usize) -> Result<(), StoreError> {
        let damaged = |what: String| StoreError::Damaged {
            path: self.path.clone(),
            line: number,
            what,
        };
        let line: Line =
            serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
        let numbers: Result<Vec<f64>, _> = line.values.iter().map(|text| text.parse()).collect();
        let numbers = numbers.map_err(|_| damaged("a value is no number".into()))?;
        if numbers.len() != values {
            return Err(damaged(format!(
                "{} values, and not {values}",
                numbers.len()
            )));
        }
        let run = Run {
            seed: line.seed,
            values: numbers,
            events: line.events,
            hops: line.hops,
        };
        self.runs.insert((key(line.at.iter()), line.seed), run);
        Ok(())
    }

    /// What is kept of a run, if it has ended before.
    pub fn get(&self, at: &[(String, String)], seed: u64) -> Option<Run> {
        let sorted: BTreeMap<&String, &String> =
            at.iter().map(|(name, value)| (name, value)).collect();
        self.runs.get(&(key(sorted.into_iter()), seed)).cloned()
    }

    pub fn put(&mut self, at: &[(String, String)], run: &Run) -> Result<(), StoreError> {
        self.write(&Line {
            at: at.iter().cloned().collect(),
            seed: run.seed,
            values: run
                .values
                .iter()
                .map(|value| format!("{value:?}"))
                .collect(),
            events: run.events,
            hops: run.hops,
        })
    }

    /// All at once, so that no more than the last line is ever cut.
    fn write(&mut self, line: &impl Serialize) -> Result<(), StoreError> {
        let mut text = serde_json::to_vec(line).expect("texts and numbers");
        text.push(b'\n');
        self.file
            .write_all(&text)
            .map_err(|source| StoreError::File {
                path: self.path.clone(),
                source,
            })
    }

    /// Runs that are kept.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

fn key<'a>(at: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let words: Vec<String> = at.map(|(name, value)| format!("{name}={value}")).collect();
    words.join(";")
}

fn header(scenario: &Scenario, plan: &Plan, version: &str) -> Header {
    let is_varied = |name: &str| plan.varied.iter().any(|vary| vary.name == name);
    let settings = plan.settings.0.iter().filter(|(name, _)| !is_varied(name));
    Header {
        packtrain_sweep: FORMAT,
        version: version.to_owned(),
        scenario: scenario.name.clone(),
        text: format!("{:016x}", fnv(scenario.text.as_bytes())),
        settings: settings
            .map(|(name, value)| (name.clone(), exact(value)))
            .collect(),
        values: scenario
            .values
            .iter()
            .map(|value| value.name.clone())
            .collect(),
    }
}

/// So that it is read as the very same.
pub fn exact(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("{number:?}"),
        Value::Text(text) => text.clone(),
    }
}

/// FNV-1a: against mistakes, not against anybody.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_of_its_authors() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
