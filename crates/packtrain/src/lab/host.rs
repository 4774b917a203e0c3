//! A host of the lab that runs packtrain as a person would: by its commands.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::namespaces::Namespace;
use crate::status::StatusDocument;

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

    /// One whose namespace is there.
    pub fn new(namespace: Namespace, packtrain: &Path) -> Host {
        Host {
            namespace,
            packtrain: packtrain.to_owned(),
        }
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

    /// `packtrain up pt0` over one link, with what else may follow on the command line.
    pub fn up(&self, link: &str, more: &[&str]) -> Result<()> {
        let mut arguments = vec!["up", "pt0", "--link", link];
        arguments.extend(more);
        self.packtrain(&arguments).map(drop)
    }

    /// A line of this name over several links.
    pub fn up_over(&self, line: &str, links: &[&str], more: &[&str]) -> Result<()> {
        let links = links.iter().flat_map(|&link| ["--link", link]);
        let words = ["up", line].into_iter().chain(links);
        let words: Vec<&str> = words.chain(more.iter().copied()).collect();
        self.packtrain(&words).map(drop)
    }

    pub fn down(&self) -> Result<()> {
        self.packtrain(&["down", "pt0"]).map(drop)
    }

    /// The document of `packtrain status pt0 --json`.
    pub fn status(&self) -> Result<StatusDocument> {
        self.status_of("pt0")
    }

    pub fn status_of(&self, line: &str) -> Result<StatusDocument> {
        let text = self.packtrain(&["status", line, "--json"])?;
        serde_json::from_str(&text).map_err(|error| Error::Unexpected {
            program: "packtrain status --json".to_owned(),
            text: format!("{error}: {text}"),
        })
    }

    /// Waits until `peers` others are known to hear us, and we them; or to take aggregates.
    pub fn wait_for_peers(&self, peers: usize) -> Result<()> {
        self.wait_for_peers_of("pt0", peers)
    }

    pub fn wait_for_peers_of(&self, line: &str, peers: usize) -> Result<()> {
        self.wait_for_peers_within(line, peers, PEER_WAIT_MAX)
    }

    pub fn wait_for_peers_within(&self, line: &str, peers: usize, at_most: Duration) -> Result<()> {
        wait_for(&format!("{peers} peers"), at_most, || {
            let met = |status: StatusDocument| {
                let up = status.peers.iter().filter(|peer| peer.up);
                up.count() + status.dfap.stations.len()
            };
            self.status_of(line).map(met).is_ok_and(|met| met >= peers)
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

    /// The most memory that the daemon of a line ever had (VmHWM), in KiB.
    pub fn daemon_memory_max_kib(&self, line: &str) -> Result<u64> {
        let path = format!("/proc/{}/status", self.status_of(line)?.pid);
        let status = std::fs::read_to_string(&path).map_err(|source| Error::File {
            path: path.clone(),
            source,
        })?;
        status
            .lines()
            .find_map(|line| {
                line.strip_prefix("VmHWM:")?
                    .split_whitespace()
                    .next()?
                    .parse()
                    .ok()
            })
            .ok_or(Error::Unexpected {
                program: path,
                text: status,
            })
    }
}
