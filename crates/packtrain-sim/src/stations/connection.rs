//! A TCP connection between two stations. Data go one way: what answers has a connection of its own.
//!
//! Real ones go both ways, and acknowledgements ride with the answer. Where answers follow at once, give
//! both ends a delayed acknowledgement, and about as many frames go as with those: the acknowledgement of every second
//! segment.

use packtrain_proto::time::Instant;

use crate::fabric::{Backpressure, Ends};
use crate::simulator::StationId;
use crate::tcp::codec::{Hosts, Numbering};
use crate::tcp::receiver::Receiver;
use crate::tcp::sender::Sender;

#[derive(Debug)]
pub struct Connection {
    /// Number of the application.
    pub application: usize,
    pub from: StationId,
    pub to: StationId,
    pub hosts: Hosts,
    pub numbering: Numbering,
    pub sender: Sender,
    pub receiver: Receiver,
    /// As the answer to the SYN said.
    pub window_scale: u8,
    pub written: u64,
    /// Of its data, before the way out of its host; and how many that may be.
    pub waiting_frames: usize,
    pub waiting_frames_max: usize,
    /// The event that comes next for its timers; earlier ones are void.
    pub sender_due: Option<Instant>,
    pub receiver_due: Option<Instant>,
}

impl Connection {
    pub fn new(
        application: usize,
        (from, to): (StationId, StationId),
        hosts: Hosts,
        numbering: Numbering,
        ends: &Ends,
    ) -> Connection {
        Connection {
            application,
            from,
            to,
            hosts,
            numbering,
            sender: Sender::new(ends.sender),
            receiver: Receiver::new(ends.receiver),
            window_scale: 0,
            written: 0,
            waiting_frames: 0,
            waiting_frames_max: match ends.backpressure {
                Backpressure::Frames(frames) => frames,
                Backpressure::None => usize::MAX,
            },
            sender_due: None,
            receiver_due: None,
        }
    }
}
