//! CoDel (RFC 8289): drops from a queue in which every frame of an interval has waited too long.

use crate::time::{Duration, Instant};

/// Settings of all queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// A standing wait that is fine.
    pub target: Duration,
    /// How long the wait may stand above target before a drop; about the largest round trip.
    pub interval: Duration,
}

/// The state of one queue.
#[derive(Clone, Debug, Default)]
pub struct Codel {
    /// When the wait will have stood above target for an interval.
    first_above_at: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    last_count: u32,
}

impl Codel {
    /// Whether the frame taken out now, after `sojourn` in the queue, is to be dropped; the next
    /// frame is then asked about in turn. `queued_bytes_after` stay behind it; a queue of less than
    /// `mtu` is never standing (RFC 8289 section 4.4, `dodequeue`).
    pub fn should_drop(
        &mut self,
        sojourn: Duration,
        queued_bytes_after: usize,
        mtu: usize,
        now: Instant,
        params: &CodelParams,
    ) -> bool {
        let ok_to_drop = self.stands_above_target(sojourn, queued_bytes_after, mtu, now, params);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
                return false;
            }
            if now < self.drop_next {
                return false;
            }
            self.count += 1;
            self.drop_next = self.control_law(self.drop_next, params);
            return true;
        }
        if !ok_to_drop {
            return false;
        }
        self.dropping = true;
        // Section 5.4: a queue that was dropping a moment ago resumes near its old rate.
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < params.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now, params);
        true
    }

    fn stands_above_target(
        &mut self,
        sojourn: Duration,
        queued_bytes_after: usize,
        mtu: usize,
        now: Instant,
        params: &CodelParams,
    ) -> bool {
        if sojourn < params.target || queued_bytes_after <= mtu {
            self.first_above_at = None;
            return false;
        }
        match self.first_above_at {
            None => {
                self.first_above_at = Some(now + params.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    fn control_law(&self, from: Instant, params: &CodelParams) -> Instant {
        let nanos = params.interval.as_nanos() as f64 / f64::from(self.count).sqrt();
        from + Duration::from_nanos(nanos as u64)
    }
}
