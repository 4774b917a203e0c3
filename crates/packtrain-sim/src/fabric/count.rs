//! What was counted of a connection, a group or a source: data units, and what became of them.

use core::ops::Sub;

/// Of data alone: acknowledgements are counted by the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Data units that went to the first line, those that went again included.
    pub sent: u64,
    /// As IP counts them.
    pub sent_bytes: u64,
    /// By queues, for whatever reason.
    pub dropped: u64,
    /// On the way: by chance.
    pub lost: u64,
    /// At the other end.
    pub arrived: u64,
    pub arrived_bytes: u64,
    /// What the application had of it: content, in order, and once.
    pub delivered_bytes: u64,
}

impl Count {
    /// Of those that were sent; 0 of none.
    pub fn drop_rate(&self) -> f64 {
        match self.sent {
            0 => 0.0,
            sent => self.dropped as f64 / sent as f64,
        }
    }
}

impl core::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.dropped += other.dropped;
        self.lost += other.lost;
        self.arrived += other.arrived;
        self.arrived_bytes += other.arrived_bytes;
        self.delivered_bytes += other.delivered_bytes;
    }
}

/// What came since an earlier count.
impl Sub for Count {
    type Output = Count;

    fn sub(self, before: Count) -> Count {
        Count {
            sent: self.sent - before.sent,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            dropped: self.dropped - before.dropped,
            lost: self.lost - before.lost,
            arrived: self.arrived - before.arrived,
            arrived_bytes: self.arrived_bytes - before.arrived_bytes,
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
        }
    }
}
