//! Who is where, and what they do.

use packtrain_proto::class::Class;
use packtrain_proto::config::{Config, NodeId};
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

use crate::fabric::Ends;
use crate::net::network::{PortId, SegmentConfig};

#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub segments: Vec<SegmentConfig>,
    pub stations: Vec<StationConfig>,
    pub applications: Vec<ApplicationConfig>,
    pub seed: u64,
}

#[derive(Clone, Debug)]
pub struct StationConfig {
    /// Where it is plugged in.
    pub ports: Vec<PortId>,
    pub kind: Kind,
}

impl StationConfig {
    pub fn plain(port: PortId) -> StationConfig {
        StationConfig {
            ports: vec![port],
            kind: Kind::Plain,
        }
    }

    /// As packtrain is where nobody asks for anything else.
    pub fn packtrain(ports: &[PortId]) -> StationConfig {
        StationConfig {
            ports: ports.to_vec(),
            kind: Kind::Packtrain(Box::default()),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// Without packtrain, and with one port.
    Plain,
    Packtrain(Box<Line>),
}

/// Settings of a line; what names the host in them is overwritten.
#[derive(Clone, Debug)]
pub struct Line {
    pub config: Config,
    /// `None`: those with which an engine starts.
    pub classes: Option<Vec<Class>>,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            config: Config::new(NodeId(1), MacAddr::default()),
            classes: None,
        }
    }
}

/// Stations are named by their number in the setup.
#[derive(Clone, Debug)]
pub enum ApplicationConfig {
    Bulk(BulkConfig),
    Flood(FloodConfig),
    PingPong(PingPongConfig),
    Transactions(TransactionsConfig),
    Copies(CopiesConfig),
}

/// As much as TCP carries, as Netperf's streams.
#[derive(Clone, Debug)]
pub struct BulkConfig {
    /// From and to, a connection each.
    pub streams: Vec<(usize, usize)>,
    pub ends: Ends,
    pub starts: Duration,
}

/// As many datagrams as the network takes.
#[derive(Clone, Debug)]
pub struct FloodConfig {
    /// From and to.
    pub streams: Vec<(usize, usize)>,
    /// Of content of each.
    pub bytes: u32,
    /// Datagrams of each stream that have not arrived.
    pub under_way: u32,
    pub starts: Duration,
}

/// Blocks that go to and fro over TCP: NetPIPE with one pair, and with several of one server the tokens of the ELT paper.
#[derive(Clone, Debug)]
pub struct PingPongConfig {
    /// Who begins, and who answers.
    pub pairs: Vec<(usize, usize)>,
    pub bytes: u64,
    /// From the last byte of a block to the first of the next, at either end.
    pub turnaround: Duration,
    pub ends: Ends,
    pub starts: Duration,
}

/// Clients that ask a server, over and over, as PostMark over NFS.
#[derive(Clone, Debug)]
pub struct TransactionsConfig {
    pub server: usize,
    pub clients: Vec<usize>,
    /// How many loops each client has going.
    pub at_once: usize,
    pub over: Over,
    pub kinds: Vec<TransactionKind>,
    /// Of a transaction's file, bytes: any from and to as likely as any other.
    pub file_bytes: (u64, u64),
    /// What the server takes for a request, one after the other.
    pub service: Duration,
    /// What a client takes from an answer to its loop's next request.
    pub think: Duration,
    pub starts: Duration,
}

#[derive(Clone, Copy, Debug)]
pub enum Over {
    /// What is not answered by then is sent again, after twice as long the next time, as NFS does.
    Udp { timeout: Duration },
    /// One connection each way for each client.
    Tcp(Ends),
}

impl Over {
    /// With NFS's first time-out, 0.7 s.
    pub fn udp() -> Over {
        Over::Udp {
            timeout: Duration::from_millis(700),
        }
    }
}

/// Requests, one after the other, of which each has its answer before the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionKind {
    pub name: String,
    /// How often, in proportion.
    pub weight: u64,
    pub steps: Vec<Step>,
}

/// One request and its answer, bytes of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub request_bytes: u64,
    pub reply_bytes: u64,
    /// The file goes with the request, or with the answer.
    pub file: Option<With>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    Request,
    Reply,
}

/// Files that are copied over and over from a server's disks: to itself, or to another host.
#[derive(Clone, Debug)]
pub struct CopiesConfig {
    pub server: usize,
    pub reader: usize,
    pub disks: Disks,
    pub file_bytes: u64,
    /// At once, of which so many go to the other host.
    pub copies: usize,
    pub remote: usize,
    /// All begin with the next file when the last one has come to the end of this one; else each by itself.
    pub together: bool,
    /// What is read or written at a time.
    pub chunk_bytes: u64,
    /// No more is read while so much waits for its acknowledgement.
    pub socket_bytes: u64,
    pub ends: Ends,
    pub starts: Duration,
}

/// All of an array together: one request after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disks {
    pub bytes_per_s: u64,
    /// Before each chunk that does not follow the last one.
    pub seek: Duration,
}

impl TransactionKind {
    /// PostMark's four, as NFSv3 says them: a look-up of the name, then what is to be done. Headers of RPC with
    /// credentials, a handle and attributes are about 120 bytes each way.
    pub fn postmark() -> Vec<TransactionKind> {
        let plain = Step {
            request_bytes: 120,
            reply_bytes: 120,
            file: None,
        };
        let with = |file| Step {
            file: Some(file),
            ..plain
        };
        let kind = |name: &str, steps| TransactionKind {
            name: name.into(),
            weight: 1,
            steps,
        };
        vec![
            kind("create", vec![plain, plain, with(With::Request)]),
            kind("read", vec![plain, with(With::Reply)]),
            kind("append", vec![plain, with(With::Request)]),
            kind("delete", vec![plain, plain]),
        ]
    }
}
