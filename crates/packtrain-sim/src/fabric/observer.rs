//! Who looks on: what happens to data, told as it happens. What is not looked at costs nothing.

use core::ops::Range;

use packtrain_proto::time::Instant;

use super::config::LineId;
use super::packet::Packet;
use crate::tcp::segment::Data;

pub trait Observer {
    /// A packet came to a line, which took it or did not; so much stands in its queue then.
    fn offered(&mut self, _line: LineId, _packet: &Packet, _taken: bool, _queued_bytes: usize) {}
    /// A segment of data came to the other end, wanted or not.
    fn arrived(&mut self, _connection: u32, _data: &Data, _now: Instant) {}
    /// The application has this, in order.
    fn delivered(&mut self, _connection: u32, _range: Range<u64>, _now: Instant) {}
}

/// Nobody does.
impl Observer for () {}
