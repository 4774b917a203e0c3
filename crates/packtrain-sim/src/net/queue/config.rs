//! How much stands in a queue, and in which order it goes.

use packtrain_proto::queue::codel::CodelParams;

use super::red::RedConfig;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    pub limit: QueueLimit,
    pub discipline: Discipline,
}

/// The most that stands there, the frame that is being sent included. An empty queue takes any frame,
/// as a NIC's ring does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    Bytes(usize),
    /// A frame that is still to be cut counts as what it becomes.
    Frames(usize),
}

/// What becomes of frames within the limit, and which goes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    DropTail,
    /// RFC 8289, at the head. `ecn`: what is capable of it is marked, and not dropped.
    Codel {
        params: CodelParams,
        ecn: bool,
    },
    /// What is ECN-capable and comes to a queue of more than so many bytes is marked: the step of a
    /// data centre's switch (RFC 8257, section 3.1).
    MarkAbove {
        bytes: usize,
    },
    /// Deficit round robin: each flow an equal share in bytes.
    Drr {
        /// What a flow may send more in each round: no less than the longest frame, if choosing is to take a constant time.
        quantum_bytes: usize,
        /// The most that waits of one flow, what is being sent not counted; the first that waits may be longer. `None`: the
        /// limit of all alone, and where something does not fit the longest flow loses its last frame for it.
        flow_limit_bytes: Option<usize>,
    },
    /// RFC 8290.
    FqCodel {
        quantum_bytes: usize,
        params: CodelParams,
        ecn: bool,
    },
    /// Frames of flows that have brought fewer bytes so far go first, and may push out others.
    ShortFirst {
        threshold_bytes: u64,
    },
    /// Random early detection, in bytes: Floyd and Jacobson 1993.
    Red {
        /// Of the average queue: nothing is hit below.
        min_bytes: usize,
        /// Where the longest frames are hit with `max_probability`.
        max_bytes: usize,
        max_probability: f64,
        /// Of the queue as it is, in its average.
        weight: f64,
        /// What is hit and capable of it is marked, and not dropped, however long the average.
        ecn: bool,
        /// Above `max_bytes` the probability grows to 1 at twice as many; otherwise all that comes is hit.
        gentle: bool,
    },
}

impl QueueConfig {
    pub fn drop_tail(bytes: usize) -> QueueConfig {
        QueueConfig {
            limit: QueueLimit::Bytes(bytes),
            discipline: Discipline::DropTail,
        }
    }
}

impl Discipline {
    /// Of random early detection, what it is made of.
    pub(super) fn red(&self) -> Option<RedConfig> {
        match *self {
            Discipline::Red {
                min_bytes,
                max_bytes,
                max_probability,
                weight,
                gentle,
                ecn: _,
            } => Some(RedConfig {
                min_bytes,
                max_bytes,
                max_probability,
                weight,
                gentle,
            }),
            _ => None,
        }
    }
}
