//! A rate for each stream by what its path carries: `packtrain pace rule add --auto`.
//!
//! What is remembered of a destination is one, and all streams that send there use and make it
//! (`packtrain_proto::pacing::memory`): each leaves at its part of the rate, of which a little more is tried now and then
//! (`packtrain_proto::pacing::rate`). As in the program, the rate is looked up for each segment, so that it counts at once when
//! a stream begins or rests; and Linux paces none of a connection's first ten segments.
//!
//! What Linux does and this does not: above a segment in a millisecond it sends pieces of a millisecond's worth.

use std::cell::RefCell;
use std::rc::Rc;

use packtrain_proto::pacing::memory::Memory;
use packtrain_proto::pacing::path::Path;
use packtrain_proto::pacing::rate;
use packtrain_proto::time::{Duration, Instant};

/// `tcp_update_skb_after_send`.
pub const UNPACED_SEGMENTS: u64 = 10;
/// `--remember 10min`.
const AGE_MAX_NS: u64 = 600_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// The rate that is remembered, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    pub at: Instant,
    pub rate_bytes_per_s: u64,
}

#[derive(Debug, Default)]
pub struct Destination {
    pub memory: Memory,
    /// Streams that have something under way, or wait for their time.
    pub sending: u32,
    /// Every change of the rate.
    pub log: Vec<Remembered>,
}

impl Destination {
    fn note(&mut self, at: Instant) {
        let rate_bytes_per_s = self.memory.rate_bytes_per_s;
        if self.log.last().map_or(0, |last| last.rate_bytes_per_s) != rate_bytes_per_s {
            self.log.push(Remembered {
                at,
                rate_bytes_per_s,
            });
        }
    }
}

/// One stream's end of it.
#[derive(Debug)]
pub struct Auto {
    destination: Rc<RefCell<Destination>>,
    mss: u32,
    is_sending: bool,
    sent: u64,
    ready: Instant,
}

impl Auto {
    pub fn new(destination: Rc<RefCell<Destination>>, mss: u32) -> Auto {
        Auto {
            destination,
            mss,
            is_sending: false,
            sent: 0,
            ready: Instant::ZERO,
        }
    }

    /// The path, and of its rate this stream's part; one that begins counts itself.
    pub fn path(&self, rtt_min: Option<Duration>, now: Instant) -> Option<Path> {
        let destination = self.destination.borrow();
        let memory = &destination.memory;
        let path = memory.path(micros(rtt_min), AGE_MAX_NS, now.as_nanos())?;
        Some(path.shared(self.streams(&destination)))
    }

    /// Bytes a second that it may send now.
    pub fn rate(&self, rtt_min: Option<Duration>, now: Instant) -> Option<u64> {
        self.path(rtt_min, now)?;
        let destination = self.destination.borrow();
        let together = destination.memory.probing(self.mss, now.as_nanos());
        Some(rate::share(together, self.streams(&destination), 1, 0))
    }

    /// Nobody else sends there.
    pub fn is_alone(&self) -> bool {
        self.streams(&self.destination.borrow()) == 1
    }

    fn streams(&self, destination: &Destination) -> u32 {
        destination.sending + u32::from(!self.is_sending)
    }

    /// So many bytes have arrived; `rests`: and nothing is under way any more, or waits for its time.
    pub fn delivered(&mut self, bytes: u64, rtt_min: Option<Duration>, rests: bool, now: Instant) {
        let mut destination = self.destination.borrow_mut();
        destination
            .memory
            .delivered(bytes, micros(rtt_min), true, now.as_nanos());
        destination.note(now);
        if rests && self.is_sending {
            self.is_sending = false;
            destination.sending -= 1;
        }
    }

    /// The window was cut. `interval`: while slow start was spaced by this. What is remembered was too much for it only if that
    /// had come up to it: a first flight is a burst, and until slow start has come so far all streams together carry less, because
    /// they leave it its part already.
    pub fn cut(&mut self, interval: Option<Duration>, rtt_min: Option<Duration>, now: Instant) {
        let known = self.path(rtt_min, now);
        let known = known.map_or(0, |path| path.interval_ns(self.mss));
        let is_less = interval.is_none_or(|interval| interval.as_nanos() as u64 <= known);
        let mut destination = self.destination.borrow_mut();
        destination.memory.full(is_less, now.as_nanos());
        destination.note(now);
    }

    /// The earliest time for the next segment.
    pub fn ready(&self) -> Instant {
        self.ready
    }

    /// Whether it may leave without a look at anybody's interval.
    pub fn is_unpaced(&self) -> bool {
        self.sent < UNPACED_SEGMENTS
    }

    /// A segment of so many bytes leaves.
    pub fn sent(&mut self, bytes: u32, rtt_min: Option<Duration>, now: Instant) {
        if !self.is_sending {
            self.is_sending = true;
            self.destination.borrow_mut().sending += 1;
        }
        self.sent += 1;
        if let Some(rate) = self.rate(rtt_min, now).filter(|_| !self.is_unpaced()) {
            // Rounded up: what is a nanosecond too short in each interval stands in a queue after a while.
            let interval_ns = (u64::from(bytes) * SECOND_NS).div_ceil(rate);
            self.ready = now + Duration::from_nanos(interval_ns);
        }
    }
}

fn micros(rtt: Option<Duration>) -> u32 {
    rtt.map_or(0, |rtt| rtt.as_micros() as u32)
}
