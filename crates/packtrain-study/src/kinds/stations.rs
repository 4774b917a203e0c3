//! Applications on hosts that share cables, switches and hubs, over packtrain's engine or without it.
//!
//! [`file`] reads the sections of the file into plain settings, [`build`] makes stations of them that can be
//! run; [`facts`] is what a run will know.

pub mod application;
pub mod build;
pub mod facts;
pub mod file;
pub mod simulate;

use packtrain_proto::config::{Balance, Mode};
use packtrain_proto::time::Duration;
use packtrain_settings::packing::PackPolicy;
use packtrain_settings::toml_reader::{Errors, Table};
use packtrain_settings::wire::Rate;
use packtrain_sim::stations::{Disks, TransactionKind};

use super::network::RunTimes;
use super::network::line::LineSettings;
use super::network::tcp::TcpSettings;
use crate::model::{Model, Outcome, Progress};

/// Everything that the file says of stations.
#[derive(Clone, Debug, PartialEq)]
pub struct StationsSettings {
    pub times: RunTimes,
    pub segments: Vec<SegmentSettings>,
    pub stations: Vec<StationSettings>,
    pub applications: Vec<ApplicationSettings>,
}

/// Of [`StationsSettings::segments`].
pub type SegmentIndex = usize;
/// Of [`StationsSettings::stations`].
pub type ClassIndex = usize;

/// It has a port for each link that is plugged in.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentSettings {
    pub name: String,
    pub kind: SegmentKind,
    /// Payload bytes after the EtherType.
    pub mtu: u16,
    /// Of all its ports together.
    pub cuts: Vec<CutSettings>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SegmentKind {
    /// Its two ends are alike.
    Cable(LineSettings),
    /// What may happen to frames happens on their way out of it; its rate and delay are those of both ways.
    Switch(LineSettings),
    /// Shared Ethernet with CSMA/CD.
    Hub { rate_bps: u64 },
}

/// A time without the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutSettings {
    pub from: Duration,
    /// `None`: for good.
    pub until: Option<Duration>,
    /// Cards lose their carrier.
    pub seen: bool,
}

/// Hosts that are all alike.
#[derive(Clone, Debug, PartialEq)]
pub struct StationSettings {
    pub name: String,
    pub count: u32,
    /// Of each.
    pub links: Vec<LinkSettings>,
    /// `None`: without packtrain.
    pub packtrain: Option<PacktrainSettings>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LinkSettings {
    pub on: SegmentIndex,
    /// Where it is not as others on its segment.
    pub rate: Option<Rate>,
    pub delay: Option<Duration>,
    pub cuts: Vec<CutSettings>,
}

/// What differs from how packtrain is where nobody asks for anything else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacktrainSettings {
    pub mode: Mode,
    pub pack: PackPolicy,
    /// Without them nothing is exempt from what `pack` says.
    pub default_classes: bool,
    pub balance: Balance,
    /// `None`: what is silent is not asked whether it lives.
    pub liveness: Option<Duration>,
    pub hold_time: Duration,
    /// `None`: what a link loses that lives is not sent again.
    pub repair: Option<Duration>,
    pub coded: bool,
    pub dfap_tick: Duration,
    pub dfap_strict: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationSettings {
    pub name: String,
    pub kind: ApplicationKind,
    pub starts: Duration,
    /// Of all its connections.
    pub tcp: TcpSettings,
}

/// From each of some classes to each of some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    pub from: Vec<ClassIndex>,
    pub to: Vec<ClassIndex>,
    /// Of each pair.
    pub count: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ApplicationKind {
    Bulk(Ways),
    Flood {
        ways: Ways,
        bytes: u32,
        under_way: u32,
    },
    PingPong {
        ways: Ways,
        bytes: u64,
        turnaround: Duration,
    },
    Transactions {
        server: ClassIndex,
        clients: Vec<ClassIndex>,
        at_once: u32,
        over: Over,
        kinds: Vec<TransactionKind>,
        file_bytes: (u64, u64),
        service: Duration,
        think: Duration,
    },
    Copies {
        server: ClassIndex,
        reader: ClassIndex,
        disks: Disks,
        file_bytes: u64,
        copies: u32,
        remote: u32,
        together: bool,
        chunk_bytes: u64,
        socket_bytes: u64,
    },
}

impl ApplicationKind {
    /// Whoever takes part in it.
    pub fn classes(&self) -> Vec<ClassIndex> {
        match self {
            ApplicationKind::Bulk(ways)
            | ApplicationKind::Flood { ways, .. }
            | ApplicationKind::PingPong { ways, .. } => [&ways.from[..], &ways.to].concat(),
            ApplicationKind::Transactions {
                server, clients, ..
            } => [&[*server], &clients[..]].concat(),
            ApplicationKind::Copies { server, reader, .. } => vec![*server, *reader],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Udp { timeout: Duration },
    Tcp,
}

pub fn read(table: &mut Table<'_>, errors: &mut Errors<'_>) -> Option<Box<dyn Model>> {
    let settings = file::read(table, errors)?;
    Some(Box::new(Stations { settings }))
}

/// Stations that can be run.
struct Stations {
    settings: StationsSettings,
}

impl Model for Stations {
    fn run(&self, seed: u64, progress: &dyn Progress) -> Outcome {
        simulate::run(&self.settings, seed, progress)
    }

    fn knows_fact(&self, fact: &str, of: &[&str]) -> Result<(), String> {
        facts::knows(&self.settings, fact, of)
    }

    fn fact_names(&self) -> Vec<String> {
        facts::names()
    }

    fn knows_series(&self, name: &str) -> Result<(), String> {
        facts::knows_series(&self.settings, name)
    }
}
