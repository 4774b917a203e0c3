//! What became of frames on a wire, counted.

use packtrain_proto::time::Duration;

use crate::net::processing::lookups_per_1500;

/// Why a frame went no further on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireDrop {
    /// It found no room, or had to make room for another one.
    QueueFull,
    /// The queue stood for too long.
    Codel,
    /// By random early detection, before the queue was full.
    Early,
    Cut,
    /// What stands between the ends takes less than they do, and does not say so.
    TooLong,
    Loss,
    /// The receiving card found a wrong FCS, because of bits that flip by themselves.
    BitErrors,
    /// The same, because of what strikes a frame.
    Corrupted,
    /// Metadata that contradicts the frame: no card could cut it.
    BadOffload,
    /// At a hub: each of its attempts collided with another's.
    Collisions,
}

/// Frames, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    pub offered: u64,
    pub offered_bytes: u64,
    /// Those that made room for others among them.
    pub queue_full: u64,
    pub codel: u64,
    pub early: u64,
    /// Those that were on their way have been counted as arriving, too.
    pub cut: u64,
    /// The same.
    pub too_long: u64,
    pub lost: u64,
    pub bit_errors: u64,
    pub corrupted: u64,
    /// Went on with Congestion Experienced.
    pub marked: u64,
    pub bad_offload: u64,
    /// Arrived altered, with nobody to notice.
    pub altered: u64,
    /// The last bit has been sent, whatever happens then.
    pub left: u64,
    pub left_bytes: u64,
    /// Arrivals of more copies than were sent.
    pub more_copies: u64,
    pub arriving: u64,
    /// Attempts that were made again, because one was lost that was not the last.
    pub repeated: u64,
    /// How long something was being sent, of what has left.
    pub busy: Duration,
    /// Of data units, of which a frame that is still to be cut is several. What CoDel drops was not looked up.
    pub lookups: u64,
    /// Between the begins of two look-ups on a line that was busy in between: the queue never ran empty.
    pub longest_pause: Duration,
}

impl WireCounters {
    pub(super) fn count(&mut self, reason: WireDrop) {
        match reason {
            WireDrop::QueueFull => self.queue_full += 1,
            WireDrop::Codel => self.codel += 1,
            WireDrop::Early => self.early += 1,
            WireDrop::Cut => self.cut += 1,
            WireDrop::TooLong => self.too_long += 1,
            WireDrop::Loss => self.lost += 1,
            WireDrop::BitErrors => self.bit_errors += 1,
            WireDrop::Corrupted => self.corrupted += 1,
            WireDrop::BadOffload => self.bad_offload += 1,
            WireDrop::Collisions => unreachable!("a hub counts them at its stations"),
        }
    }

    /// What its look-ups cost, relative to packets of 1500 bytes: [`lookups_per_1500`] of what has left.
    pub fn lookups_per_1500(&self) -> f64 {
        lookups_per_1500(self.lookups, self.left_bytes)
    }

    pub fn dropped(&self) -> u64 {
        let by_chance = self.lost + self.bit_errors + self.corrupted;
        let on_the_way = self.cut + self.too_long;
        let at_the_queue = self.queue_full + self.codel + self.early;
        at_the_queue + on_the_way + by_chance + self.bad_offload
    }
}
