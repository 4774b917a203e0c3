//! A jump start: on a path that is remembered, the window need not be found by doubling.
//!
//! When the first answers have come, the window becomes half of what is free of the path, and is sent over one round trip, at half of the
//! rate; the round after that it is doubled, as slow start would have done, and the path is full (Careful Resume, of the IETF's
//! transport area, does the same). It is a guess until all of that window is acknowledged. If something of it is lost, what
//! arrived is the only measure left: half of that is the window, and it grows with what still arrives while the loss is repaired.
//!
//! ```text
//!           made                    all of it is acknowledged
//!   None ─────────▶ Unproven ──────────────────────────────────▶ None
//!                      │ a loss                                    ▲
//!                      ▼                repaired, or all of it     │
//!                   Retreat ───────────────────────────────────────┘
//! ```

/// The least window of a retreat, in segments.
pub const RETREAT_MIN: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum State {
    #[default]
    None,
    Unproven,
    Retreat,
}

/// Of one connection. Sequence numbers in bytes, windows and what was delivered in segments; what was delivered counts from
/// any time on, and what was acknowledged selectively is delivered, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Jump {
    state: State,
    /// Acknowledged as far as here, all of the window has arrived.
    proven_at: u32,
    delivered_before: u32,
}

impl Jump {
    pub fn is_unproven(&self) -> bool {
        self.state == State::Unproven
    }

    /// The window has become this one, when so much was acknowledged and delivered.
    pub fn made(&mut self, una: u32, window: u32, mss: u32, delivered: u32) {
        *self = Jump {
            state: State::Unproven,
            proven_at: una.wrapping_add(window.wrapping_mul(mss)),
            delivered_before: delivered,
        };
    }

    /// Slow start begins anew, or the connection has ended.
    pub fn end(&mut self) {
        self.state = State::None;
    }

    /// Something was lost: the window that is left, if the one of the jump was still a guess.
    pub fn lost(&mut self, delivered: u32) -> Option<u32> {
        if self.state == State::Unproven {
            self.state = State::Retreat;
        }
        self.retreat(delivered)
    }

    /// An acknowledgement was taken in: the window that is left by now, while a loss of the jump is repaired.
    pub fn acknowledged(&mut self, una: u32, delivered: u32, is_repairing: bool) -> Option<u32> {
        let is_all = una.wrapping_sub(self.proven_at) as i32 >= 0;
        let is_over = match self.state {
            State::None => return None,
            State::Unproven => is_all,
            State::Retreat => is_all || !is_repairing,
        };
        // What came last counts.
        let window = self.retreat(delivered);
        if is_over {
            self.state = State::None;
        }
        window
    }

    fn retreat(&self, delivered: u32) -> Option<u32> {
        let arrived = delivered.wrapping_sub(self.delivered_before);
        (self.state == State::Retreat).then(|| (arrived / 2).max(RETREAT_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;
    /// Sequence numbers and counts wrap under way.
    const UNA: u32 = u32::MAX - 3 * MSS;
    const DELIVERED: u32 = u32::MAX - 2;

    fn at(segments: u32) -> (u32, u32) {
        (
            UNA.wrapping_add(segments * MSS),
            DELIVERED.wrapping_add(segments),
        )
    }

    fn made() -> Jump {
        let mut jump = Jump::default();
        jump.made(UNA, 1000, MSS, DELIVERED);
        jump
    }

    #[test]
    fn it_is_a_guess_until_all_of_the_window_has_arrived() {
        let mut jump = made();
        for segments in [1, 500, 999] {
            let (una, delivered) = at(segments);
            assert_eq!(jump.acknowledged(una, delivered, false), None);
            assert!(jump.is_unproven(), "{segments}");
        }
        let (una, delivered) = at(1000);
        assert_eq!(jump.acknowledged(una, delivered, false), None);
        assert!(!jump.is_unproven());
        assert_eq!(jump.lost(delivered), None, "that is another one's loss");
    }

    #[test]
    fn a_loss_leaves_half_of_what_arrived_and_that_grows_while_it_is_repaired() {
        let mut jump = made();
        let (una, _) = at(100);
        jump.acknowledged(una, at(100).1, false);
        assert_eq!(jump.lost(at(103).1), Some(51));
        // The hole is not closed, and what is behind it comes.
        assert_eq!(jump.acknowledged(una, at(110).1, true), Some(55));
        assert_eq!(jump.acknowledged(una, at(800).1, true), Some(400));
        // The repair is over before all of the window was sent.
        let (una, delivered) = at(900);
        assert_eq!(jump.acknowledged(una, delivered, false), Some(450));
        assert_eq!(jump.acknowledged(una, delivered, true), None);
        assert_eq!(jump.lost(delivered), None);
    }

    #[test]
    fn what_is_behind_the_window_does_not_make_it_larger() {
        let mut jump = made();
        assert_eq!(jump.lost(at(10).1), Some(5));
        let (una, delivered) = at(1000);
        assert_eq!(jump.acknowledged(una, delivered, true), Some(500));
        let (una, delivered) = at(2000);
        assert_eq!(jump.acknowledged(una, delivered, true), None);
    }

    #[test]
    fn nothing_has_arrived_so_two_segments_are_left() {
        let mut jump = made();
        assert_eq!(jump.lost(DELIVERED), Some(RETREAT_MIN));
        jump.end();
        assert_eq!(jump.lost(DELIVERED), None);
    }
}
