//! Lines with queues, and what is sent over them: connections that stay, connections that come and go, datagrams.
//!
//! [`file`] reads the sections of the file into plain settings, which say everything that a simulation needs;
//! [`facts`] is what a run of it will know.

pub mod build;
pub mod facts;
pub mod file;
pub mod line;
pub mod simulate;
pub mod tcp;
mod watch;

use packtrain_proto::time::Duration;
use packtrain_settings::toml_reader::{Errors, Table};
use packtrain_sim::workload::{Process, Sizes};

use self::line::LineSettings;
use self::tcp::TcpSettings;
use super::Place;
use crate::model::{Model, Outcome, Progress};

/// Everything that the file says of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSettings {
    pub times: RunTimes,
    pub lines: Vec<LineSettings>,
    pub flows: Vec<FlowSettings>,
    pub visitors: Vec<VisitorSettings>,
    pub datagrams: Vec<DatagramSettings>,
}

/// Of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTimes {
    pub length: Duration,
    /// What happens before is not counted.
    pub ignore: Duration,
    /// So often series are taken; `None`: never.
    pub sample: Option<Duration>,
}

/// Of [`NetworkSettings::lines`].
pub type LineIndex = usize;

/// The way there and back.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSettings {
    /// The first line of the way there: of flows each has one of its own, visitors and datagrams of one name share it.
    pub interface: Option<LineSettings>,
    /// After the interface.
    pub forward: Vec<LineIndex>,
    /// Of what is answered; none: it is there at once.
    pub back: Vec<LineIndex>,
}

/// Connections that are there all the time, all alike.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSettings {
    pub name: String,
    pub count: u32,
    pub path: PathSettings,
    pub tcp: TcpSettings,
    pub starts: Starts,
    /// The flows of this class come from a proxy, where those of that one end (split TCP), one for one.
    pub fed_by: Option<usize>,
    /// Bytes of content of each; `None`: without end.
    pub writes: Option<u64>,
}

/// Each begins at a time between these, drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    pub first: Duration,
    pub last: Duration,
}

/// Connections that come, send something and go.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitorSettings {
    pub name: String,
    pub path: PathSettings,
    pub tcp: TcpSettings,
    pub arrivals: Process,
    /// Bytes of content.
    pub sizes: Sizes,
    /// Who comes when so many are there is turned away.
    pub at_once: u32,
    pub starts: Duration,
}

/// A source of datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct DatagramSettings {
    pub name: String,
    pub count: u32,
    pub path: PathSettings,
    pub source: SourceSettings,
    /// Bytes of the packet that answers each.
    pub reply_bytes: Option<u32>,
    pub ecn: bool,
    pub starts: Starts,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SourceSettings {
    /// Sizes of packets, as IP counts them.
    Drawn { arrivals: Process, sizes: Sizes },
    /// The next one leaves so long after the answer to the one before, or after the patience.
    AfterReply {
        think: Duration,
        patience: Duration,
        packet_bytes: u32,
    },
    /// What a capture has: when each packet left, and its bytes as IP counts them.
    Capture(Vec<(Duration, u32)>),
}

/// Of a path that says nothing else.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// As IP counts them; IPv4 and TCP without options.
pub const HEADER_BYTES: u32 = 40;
/// IPv4 and UDP.
pub const DATAGRAM_HEADER_BYTES: u32 = 28;
pub const PACKET_BYTES_MAX: u32 = 65_535;

pub fn read(
    table: &mut Table<'_>,
    place: Place<'_>,
    errors: &mut Errors<'_>,
) -> Option<Box<dyn Model>> {
    let settings = file::read(table, place, errors)?;
    Some(Box::new(Network { settings }))
}

/// A network that can be run.
struct Network {
    settings: NetworkSettings,
}

impl Model for Network {
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
