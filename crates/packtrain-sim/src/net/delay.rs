//! Propagation: the same for every frame.

use packtrain_proto::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub struct Delay {
    delay: Duration,
}

impl Delay {
    pub fn new(delay: Duration) -> Delay {
        Delay { delay }
    }

    /// When what leaves now is at the other end.
    pub fn arrival(&self, leaves: Instant) -> Instant {
        leaves + self.delay
    }
}
