//! Datagrams: who sends them, and what came of them.

use packtrain_proto::time::{Duration, Instant};

use super::config::{DatagramsConfig, Source};
use super::connection::Way;
use super::count::Count;
use super::packet::Datagram;
use crate::random::Random;
use crate::tcp::segment::Ecn;
use crate::whatif::histogram::Histogram;

/// IP and UDP.
pub const PACKET_BYTES_MIN: u64 = 28;
const PACKET_BYTES_MAX: u64 = 65_535;

#[derive(Debug)]
pub struct Station {
    pub config: DatagramsConfig,
    pub way: Way,
    random: Random,
    /// Of [`Source::Given`], the next one.
    at: usize,
    /// Of a request that is not answered yet.
    pub waits_since: Option<Instant>,
    pub count: Count,
    /// From the sender to the other end.
    pub delays: Histogram,
    pub replies: u64,
    /// From the request to its answer.
    pub round_trips: Histogram,
}

impl Station {
    pub fn new(config: DatagramsConfig, way: Way, random: Random) -> Station {
        Station {
            config,
            way,
            random,
            at: 0,
            waits_since: None,
            count: Count::default(),
            delays: Histogram::default(),
            replies: 0,
            round_trips: Histogram::default(),
        }
    }

    /// The one that is sent now, and how long after it the next one will be; `None` after that: the last was sent, or an
    /// answer decides it.
    pub fn next(&mut self, source: u32, now: Instant) -> (Datagram, Option<Duration>) {
        let (bytes, gap) = match &self.config.source {
            Source::Drawn { arrivals, sizes } => {
                let bytes = sizes.draw(&mut self.random);
                (bytes, Some(arrivals.next_gap(&mut self.random)))
            }
            Source::AfterReply {
                packet_bytes,
                patience,
                ..
            } => {
                self.waits_since = Some(now);
                (u64::from(*packet_bytes), Some(*patience))
            }
            Source::Given(given) => {
                let (at, bytes) = given[self.at];
                self.at += 1;
                let next = given.get(self.at);
                let gap = next.map(|(next, _)| next.saturating_sub(at));
                (u64::from(bytes), gap)
            }
        };
        let datagram = Datagram {
            source,
            packet_bytes: bytes.clamp(PACKET_BYTES_MIN, PACKET_BYTES_MAX) as u32,
            sent: now,
            is_reply: false,
            ecn: self.ecn(),
        };
        (datagram, gap)
    }

    /// What leaves with it, either way: nobody has marked that yet.
    pub fn ecn(&self) -> Ecn {
        match self.config.ecn {
            true => Ecn::Capable,
            false => Ecn::NotCapable,
        }
    }

    /// When the first one leaves, if there is one.
    pub fn starts(&self) -> Option<Duration> {
        match &self.config.source {
            Source::Given(given) => given.first().map(|(at, _)| self.config.starts + *at),
            Source::Drawn { .. } | Source::AfterReply { .. } => Some(self.config.starts),
        }
    }

    /// An answer came. When the next request leaves, if that is what it waited for.
    pub fn replied(&mut self, reply: &Datagram, now: Instant) -> Option<Duration> {
        self.replies += 1;
        self.round_trips
            .record(now.since(reply.sent).as_nanos() as u64);
        let Source::AfterReply { think, .. } = self.config.source else {
            return None;
        };
        self.waits_since.take_if(|since| *since == reply.sent)?;
        Some(think)
    }
}
