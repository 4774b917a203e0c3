//! Whether the window is what held the sender back: one that is not used says nothing about the path, and does not
//! grow (RFC 5681, 4.1; RFC 7661). As Linux has it (`tcp_cwnd_validate`, `tcp_is_cwnd_limited`).

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The most that was under way, in the window that ends at `until`.
    flight_max: u64,
    limited: bool,
    until: u64,
}

impl Usage {
    /// Something was sent. `limited`: the window has no room for another segment.
    pub fn sent(&mut self, flight: u64, limited: bool, acknowledged: u64, next: u64) {
        let more = !self.limited && flight > self.flight_max;
        if acknowledged >= self.until || limited || more {
            *self = Usage {
                flight_max: flight,
                limited,
                until: next,
            };
        }
    }

    /// In slow start it may become twice what was under way.
    pub fn may_grow(&self, cwnd: u64, in_slow_start: bool) -> bool {
        match in_slow_start {
            true => cwnd < 2 * self.flight_max,
            false => self.limited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_to_twice_what_was_under_way_and_only_if_it_was_full_once_slow_start_is_over()
    {
        let mut usage = Usage::default();
        usage.sent(500, false, 0, 500);
        usage.sent(800, false, 0, 800);
        assert!(usage.may_grow(1500, true) && !usage.may_grow(1600, true));
        assert!(!usage.may_grow(800, false));
        usage.sent(1000, true, 0, 1000);
        assert!(usage.may_grow(1000, false));
        // It was full in this window, and what is sent in it afterwards does not change that.
        usage.sent(300, false, 900, 1200);
        assert!(usage.may_grow(1000, false));
        usage.sent(100, false, 1200, 1300);
        assert!(!usage.may_grow(1000, false));
        assert!(usage.may_grow(199, true) && !usage.may_grow(200, true));
    }
}
