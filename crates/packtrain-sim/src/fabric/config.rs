//! What a fabric is made of.

use packtrain_proto::time::Duration;

use crate::net::wire::WireConfig;
use crate::tcp::receiver::ReceiverConfig;
use crate::tcp::sender::SenderConfig;
use crate::workload::{Process, Sizes};

/// Of [`FabricConfig::lines`].
pub type LineId = u32;

/// More than anybody writes, and far enough from where numbers end.
pub const UNLIMITED_BYTES: u64 = u64::MAX / 4;

#[derive(Clone, Debug, Default)]
pub struct FabricConfig {
    pub lines: Vec<WireConfig>,
    pub flows: Vec<FlowConfig>,
    pub visitors: Vec<VisitorsConfig>,
    pub datagrams: Vec<DatagramsConfig>,
    pub seed: u64,
}

impl FabricConfig {
    /// One connection that sends without an end, from the beginning on: its data go over the first lines, what it is answered
    /// over the others.
    pub fn bulk(there: Vec<WireConfig>, back: Vec<WireConfig>, ends: Ends) -> FabricConfig {
        let turn = there.len() as LineId;
        let count = turn + back.len() as LineId;
        let flow = FlowConfig {
            ends,
            route: RouteConfig {
                forward: (0..turn).collect(),
                back: (turn..count).collect(),
            },
            group: 0,
            starts: Duration::ZERO,
            writes: vec![(Duration::ZERO, UNLIMITED_BYTES)],
            feeds: None,
        };
        FabricConfig {
            lines: [there, back].concat(),
            flows: vec![flow],
            ..FabricConfig::default()
        }
    }
}

/// The lines that lead to the other end, and those back; the first one is the sender's interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteConfig {
    pub forward: Vec<LineId>,
    pub back: Vec<LineId>,
}

/// How much a sender puts into the queue of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backpressure {
    /// So many frames: what waits has not been cut into segments yet, and what goes again does not stand behind it, as
    /// with a small queue below the socket (Linux' TSQ).
    Frames(usize),
    /// Everything that the window lets; what the queue has no room for is lost, as in ns-2.
    None,
}

impl Default for Backpressure {
    /// One that is being sent, and one so that the interface never waits for the next.
    fn default() -> Backpressure {
        Backpressure::Frames(2)
    }
}

/// What both ends of connections are like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    pub backpressure: Backpressure,
}

impl Ends {
    /// As Linux' are, with CUBIC's window or Reno's, and room for a long path. Its segments have as much content as time stamps
    /// let them; those themselves are not sent. Nothing is recorded.
    pub fn linux(cubic: bool) -> Ends {
        let mut ends = Ends {
            sender: SenderConfig {
                mss: 1448,
                cubic,
                hystart: cubic,
                record: false,
                ..SenderConfig::linux()
            },
            ..Ends::default()
        };
        // TCP_DELACK_MIN.
        ends.receiver.delayed_ack = Some(Duration::from_millis(40));
        ends.receiver.window_bytes = 16 << 20;
        ends
    }
}

/// One connection.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    pub ends: Ends,
    pub route: RouteConfig,
    /// Counted together with others of this number.
    pub group: u16,
    /// When the connection is opened.
    pub starts: Duration,
    /// What the application writes, how long after `starts`.
    pub writes: Vec<(Duration, u64)>,
    /// Its other end is a proxy (split TCP, RFC 3135): what arrives there goes on by the flow of this number, which comes later
    /// in the list. What the proxy holds, sent on and not acknowledged yet or still to be sent, stands in this flow's window.
    pub feeds: Option<u32>,
}

/// Connections that come, send something, and go.
#[derive(Clone, Debug)]
pub struct VisitorsConfig {
    pub ends: Ends,
    /// Each takes one of them, drawn.
    pub routes: Vec<RouteConfig>,
    pub group: u16,
    pub arrivals: Process,
    pub sizes: Sizes,
    /// Who comes when so many are there is turned away, and counted.
    pub at_once_max: u32,
    pub starts: Duration,
}

/// A source of datagrams.
#[derive(Clone, Debug)]
pub struct DatagramsConfig {
    pub route: RouteConfig,
    pub group: u16,
    pub source: Source,
    pub starts: Duration,
    /// The other end answers each with a packet of so many bytes.
    pub reply_bytes: Option<u32>,
    /// They say that they understand marks.
    pub ecn: bool,
}

#[derive(Clone, Debug)]
pub enum Source {
    /// Sizes of packets, as IP counts them, between 28 and 65,535 bytes.
    Drawn { arrivals: Process, sizes: Sizes },
    /// The next one leaves so long after the answer to the one before; without one after `patience` as well.
    AfterReply {
        think: Duration,
        patience: Duration,
        packet_bytes: u32,
    },
    /// When, after the start, and how long: what a capture has.
    Given(Vec<(Duration, u32)>),
}
