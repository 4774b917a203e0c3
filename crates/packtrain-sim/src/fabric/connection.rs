//! A connection's two ends, and the place in the fabric that they have.

use packtrain_proto::time::Instant;

use super::config::{Backpressure, Ends, LineId};
use super::count::Count;
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::Sender;

/// Where its packets go, as indices of the fabric's hops.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub forward: u32,
    pub back: u32,
    /// The first line of the way there.
    pub interface: LineId,
}

/// Of one that is there for a while: who it is.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// Of the configuration's visitors.
    pub class: u32,
    pub bytes: u64,
    pub began: Instant,
}

#[derive(Debug)]
pub struct Connection {
    pub sender: Sender,
    pub receiver: Receiver,
    pub way: Way,
    pub group: u16,
    /// How many have had this place before it.
    pub generation: u32,
    /// Frames that its interface may hold.
    pub interface_frames_max: usize,
    /// The event that comes next for its timers; earlier ones are void.
    pub sender_due: Option<Instant>,
    pub receiver_due: Option<Instant>,
    /// It stands in its interface's list.
    pub is_waiting: bool,
    pub writes_left: usize,
    /// What comes here goes on there.
    pub feeds: Option<u32>,
    /// What goes out here came there, and how much of it the other end has acknowledged.
    pub fed_by: Option<u32>,
    pub fed_acknowledged: u64,
    pub visit: Option<Visit>,
    pub count: Count,
}

impl Connection {
    pub fn new(ends: &Ends, way: Way, group: u16, generation: u32) -> Connection {
        Connection {
            sender: Sender::new(ends.sender),
            receiver: Receiver::new(ends.receiver),
            way,
            group,
            generation,
            interface_frames_max: match ends.backpressure {
                Backpressure::Frames(frames) => frames,
                Backpressure::None => usize::MAX,
            },
            sender_due: None,
            receiver_due: None,
            is_waiting: false,
            writes_left: 0,
            feeds: None,
            fed_by: None,
            fed_acknowledged: 0,
            visit: None,
            count: Count::default(),
        }
    }

    /// Everything that the application wrote, and will write, has come and is acknowledged.
    pub fn is_done(&self) -> bool {
        self.writes_left == 0 && self.sender.is_done()
    }
}
