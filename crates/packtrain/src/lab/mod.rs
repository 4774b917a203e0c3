//! Hosts and wires to try packtrain on, made of network namespaces: the demonstration, the
//! measurements, and what the live tests stand on.
//!
//! Everything here runs real programs against real sockets, so it reads clocks and it waits; the
//! engine below does neither.

pub mod applications;
pub mod bench_aggregation;
pub mod bench_compression;
pub mod bench_filter;
pub mod bench_lab;
pub mod bench_line;
pub mod bench_links;
pub mod bench_options;
pub mod bench_pace;
pub mod bench_path;
pub mod bench_trunk;
pub mod bench_xlf;
pub mod cable;
pub mod capped;
pub mod check;
pub mod cut;
pub mod datagrams;
pub mod demo;
pub mod emulator;
pub mod exchange;
pub mod figure;
pub mod host;
pub mod join;
mod link_use;
pub mod measure;
pub mod messages;
pub mod namespaces;
pub mod one_link;
pub mod path_changes;
mod port;
pub mod processors;
pub mod relay;
pub mod sample;
pub mod short_flows;
pub mod standing;
pub mod standstill;
pub mod stream;
pub mod table;
pub mod timeline;
pub mod topology;
pub mod wire;

use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::lab::emulator::protocol::AskError;
use crate::linux::netlink::NetlinkError;

/// What can go wrong in a lab: each names the command or the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no lab can be made here: {0}")]
    Unavailable(String),
    #[error("`{command}` {status}: {stderr}")]
    Command {
        command: String,
        status: ExitStatus,
        stderr: String,
    },
    #[error("`{command}` did not start: {source}")]
    Start {
        command: String,
        #[source]
        source: io::Error,
    },
    #[error("{path}: {source}")]
    File {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("waited {seconds:.1} s for {what}")]
    TooLate { what: String, seconds: f64 },
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error("a lab named {0} stands already")]
    LabExists(String),
    #[error("not allowed: the labs here are root's, whose hosts CAP_SYS_ADMIN is needed to enter")]
    NoRights,
    #[error("no lab stands here")]
    NoLab,
    #[error("several labs stand: {}", .0.join(", "))]
    SeveralLabs(Vec<String>),
    #[error("no lab is named {lab}")]
    NoSuchLab { lab: String, standing: Vec<String> },
    #[error("the lab {lab} has no host {host}; it has {}", hosts.join(", "))]
    NoSuchHost {
        host: String,
        lab: String,
        hosts: Vec<String>,
    },
    #[error("a network namespace named {0} is there already, and belongs to no lab")]
    NamespaceExists(String),
    #[error("the wires of the lab could not be made: {0}")]
    Emulator(String),
    #[error(transparent)]
    Asked(#[from] AskError),
    #[error("{program} said something else than expected: {text}")]
    Unexpected { program: String, text: String },
}

pub type Result<T> = std::result::Result<T, Error>;

/// The lab's clock, for how long things really take.
#[allow(clippy::disallowed_methods)] // the lab measures real programs
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods)] // the lab waits for real programs
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Asks again every 5 ms until `ready`, or says what it waited for.
pub fn wait_for(what: &str, at_most: Duration, mut ready: impl FnMut() -> bool) -> Result<()> {
    let start = now();
    while !ready() {
        if start.elapsed() > at_most {
            return Err(Error::TooLate {
                what: what.to_owned(),
                seconds: start.elapsed().as_secs_f64(),
            });
        }
        pause(Duration::from_millis(5));
    }
    Ok(())
}

/// [`unavailable`] as an error.
pub(crate) fn check_available() -> Result<()> {
    unavailable().map_or(Ok(()), |reason| Err(Error::Unavailable(reason)))
}

/// Why nothing of the lab can run here, if so: the reason with which a live test skips itself.
pub fn unavailable() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root: network namespaces need CAP_SYS_ADMIN".to_owned());
    }
    for (program, package) in [
        ("ip", "iproute2"),
        ("tc", "iproute2"),
        ("ping", "iputils-ping"),
        ("iperf3", "iperf3"),
    ] {
        if !namespaces::program_exists(program) {
            return Some(format!("no `{program}` (Debian: {package})"));
        }
    }
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Some("no /dev/net/tun".to_owned());
    }
    None
}
