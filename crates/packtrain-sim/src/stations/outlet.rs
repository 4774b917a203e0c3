//! What stands before a host's way out, and is charged to the sockets that sent it.
//!
//! A plain host gives its card one frame and another one behind it; the rest waits here. A TAP takes
//! what it is given: so the daemon puts a shaper before `pt0` when the line is slower than its host, at the
//! rate that the engine says (`IntakeRate`), and here is that shaper. Without a rate nothing waits.
//!
//! One queue, first come, first served: a connection has no more than a few frames in it
//! ([`crate::fabric::Backpressure`]), so that all of them take turns much as in the daemon's leaves.

use std::collections::VecDeque;

use packtrain_proto::time::{Duration, Instant};

use crate::frame::Frame;

/// A card is given more while less stands there: it never waits for the next frame.
const CARD_BYTES: usize = 2 * 1514;
/// How late it may be without losing rate, as the daemon's has it.
const BURST: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub enum Gate {
    Card,
    Shaper {
        /// Bytes of frames; `None`: all goes at once.
        rate_bps: Option<u64>,
        free_at: Instant,
    },
}

#[derive(Debug)]
pub struct Outlet {
    /// With the connection whose data it has.
    frames: VecDeque<(Option<u32>, Frame)>,
    gate: Gate,
    /// The event that comes next for it; earlier ones are void.
    pub due: Option<Instant>,
}

impl Outlet {
    pub fn before_card() -> Outlet {
        Outlet::of(Gate::Card)
    }

    pub fn before_engine() -> Outlet {
        Outlet::of(Gate::Shaper {
            rate_bps: None,
            free_at: Instant::ZERO,
        })
    }

    fn of(gate: Gate) -> Outlet {
        Outlet {
            frames: VecDeque::new(),
            gate,
            due: None,
        }
    }

    pub fn push(&mut self, connection: Option<u32>, frame: Frame) {
        self.frames.push_back((connection, frame));
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub fn is_card(&self) -> bool {
        matches!(self.gate, Gate::Card)
    }

    pub fn set_rate(&mut self, rate: Option<u64>) {
        if let Gate::Shaper { rate_bps, .. } = &mut self.gate {
            *rate_bps = rate;
        }
    }

    /// The next frame, if it may go now. `card_bytes`: what stands in the card.
    pub fn pop(&mut self, card_bytes: usize, now: Instant) -> Option<(Option<u32>, Frame)> {
        match &mut self.gate {
            Gate::Card if card_bytes >= CARD_BYTES => None,
            Gate::Card | Gate::Shaper { rate_bps: None, .. } => self.frames.pop_front(),
            Gate::Shaper { free_at, .. } if *free_at > now => None,
            Gate::Shaper {
                rate_bps: Some(bps),
                free_at,
            } => {
                let next = self.frames.pop_front()?;
                let nanos = 8_000_000_000 * next.1.bytes.len() as u64 / (*bps).max(1);
                let burst = Instant::ZERO + now.since(Instant::ZERO).saturating_sub(BURST);
                *free_at = (*free_at).max(burst) + Duration::from_nanos(nanos);
                Some(next)
            }
        }
    }

    /// When the next frame may go, if time is all that it waits for.
    pub fn opens_at(&self) -> Option<Instant> {
        match self.gate {
            Gate::Shaper {
                rate_bps: Some(_),
                free_at,
            } if !self.frames.is_empty() => Some(free_at),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::offload::Offload;

    fn outlet(mut outlet: Outlet, frames: usize) -> Outlet {
        for _ in 0..frames {
            outlet.push(None, Frame::new(vec![0; 1000], Offload::NONE));
        }
        outlet
    }

    #[test]
    fn a_card_is_given_what_it_has_room_for() {
        let mut outlet = outlet(Outlet::before_card(), 2);
        assert!(outlet.pop(3027, Instant::ZERO).is_some());
        assert!(outlet.pop(3028, Instant::ZERO).is_none());
        assert_eq!(outlet.opens_at(), None);
    }

    #[test]
    fn an_engine_is_given_all_until_it_says_a_rate_and_then_so_much_with_a_burst() {
        let mut outlet = outlet(Outlet::before_engine(), 100);
        let start = Instant::ZERO + Duration::from_secs(1);
        assert!(outlet.pop(1 << 20, start).is_some());
        outlet.set_rate(Some(8_000_000));
        // A frame takes a millisecond; one is saved up.
        let mut went = 0;
        for us in 0..10_000 {
            let now = start + Duration::from_micros(us);
            while outlet.pop(0, now).is_some() {
                went += 1;
            }
        }
        assert_eq!(went, 11);
        assert_eq!(outlet.opens_at(), Some(start + Duration::from_millis(10)));
    }
}
