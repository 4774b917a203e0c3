//! A host of the lab that runs packtrain as a person would: by its commands.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::namespaces::Namespace;
use super::{Error, Result, wait_for};

/// Longest wait for a peer: three hellos go out in the first 300 ms, then one a second.
const PEER_WAIT_MAX: Duration = Duration::from_secs(5);

/// A namespace in which `packtrain` is called.
#[derive(Debug)]
pub struct Host {
    pub namespace: Namespace,
    packtrain: PathBuf,
}

impl Host {
    /// `packtrain` is the program under test.
    pub fn create(tag: &str, packtrain: &Path) -> Result<Host> {
        Ok(Host {
            namespace: Namespace::create(tag)?,
            packtrain: packtrain.to_owned(),
        })
    }

    /// The words of a call of packtrain, to be run in the namespace.
    pub fn words<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let program = self.packtrain.to_str().expect("a path of ordinary letters");
        std::iter::once(program)
            .chain(arguments.iter().copied())
            .collect()
    }

    pub fn packtrain(&self, arguments: &[&str]) -> Result<String> {
        self.namespace.exec(self.words(arguments))
    }

    /// `packtrain up pt0` over one link.
    pub fn up(&self, link: &str, address: &str) -> Result<()> {
        self.packtrain(&["up", "pt0", "--link", link, "--address", address])
            .map(drop)
    }

    pub fn down(&self) -> Result<()> {
        self.packtrain(&["down", "pt0"]).map(drop)
    }

    /// The document of `packtrain status pt0 --json`.
    pub fn status(&self) -> Result<Value> {
        let text = self.packtrain(&["status", "pt0", "--json"])?;
        serde_json::from_str(&text).map_err(|error| Error::Unexpected {
            program: "packtrain status --json".to_owned(),
            text: format!("{error}: {text}"),
        })
    }

    /// A number of the status document, by its JSON pointer; 0 where there is none.
    pub fn count(&self, pointer: &str) -> Result<f64> {
        let status = self.status()?;
        Ok(status
            .pointer(pointer)
            .and_then(Value::as_f64)
            .unwrap_or(0.0))
    }

    /// Waits until `peers` others are known to hear us, and we them.
    pub fn wait_for_peers(&self, peers: usize) -> Result<()> {
        let up = || -> Option<usize> {
            let status = self.status().ok()?;
            let all = status.get("peers")?.as_array()?;
            let is_up = |peer: &&Value| peer.get("up").and_then(Value::as_bool) == Some(true);
            Some(all.iter().filter(is_up).count())
        };
        wait_for(&format!("{peers} peers"), PEER_WAIT_MAX, || {
            up().is_some_and(|up| up >= peers)
        })
    }

    /// Waits until a ping of `to` is answered.
    pub fn wait_for_ping(&self, to: IpAddr, at_most: Duration) -> Result<()> {
        let to = to.to_string();
        wait_for(&format!("an answer of {to}"), at_most, || {
            self.namespace
                .try_exec(["ping", "-c1", "-W0.2", "-n", &to])
                .is_ok_and(|output| output.status.success())
        })
    }

    /// The processes of packtrain in this namespace.
    pub fn daemons(&self) -> Result<Vec<u32>> {
        let pids = super::namespaces::run("ip", ["netns", "pids", self.namespace.name()])?;
        let ours = self.packtrain.canonicalize().ok();
        Ok(pids
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .filter(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).ok() == ours)
            .collect())
    }

    /// The most memory that the daemon ever had (VmHWM), in KiB.
    pub fn daemon_memory_max_kib(&self) -> Result<u64> {
        let read = |pid: u32| -> Option<u64> {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        Ok(self
            .daemons()?
            .into_iter()
            .filter_map(read)
            .max()
            .unwrap_or(0))
    }
}
