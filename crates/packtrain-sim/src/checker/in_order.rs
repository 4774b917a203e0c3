//! The frames of a flow come out in the order in which they went in, holes allowed.

use super::Position;
use crate::simulator::StationId;
use crate::workload::identity::Identity;

#[derive(Debug)]
pub struct InOrder {
    /// By flow, then station: where the next one may begin.
    next: Vec<Vec<Position>>,
}

impl InOrder {
    pub fn new(flows: usize, stations: usize) -> InOrder {
        InOrder {
            next: vec![vec![(0, 0); stations]; flows],
        }
    }

    /// `Err`: the position behind the newest that had come.
    pub fn delivered(
        &mut self,
        what: Identity,
        to: StationId,
        segments_end: usize,
    ) -> Result<(), Position> {
        let next = &mut self.next[usize::from(what.flow)][to.0];
        if what.position() < *next {
            return Err(*next);
        }
        *next = (what.sequence, segments_end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_allowed_and_steps_back_are_not() {
        let mut in_order = InOrder::new(1, 1);
        let mut deliver = |sequence, segment: u16, count| {
            let what = Identity {
                flow: 0,
                sequence,
                segment,
            };
            in_order.delivered(what, StationId(0), usize::from(segment) + count)
        };
        assert!(deliver(0, 0, 1).is_ok());
        assert!(deliver(5, 0, 10).is_ok());
        assert!(deliver(5, 12, 3).is_ok(), "the rest of a frame with a hole");
        assert_eq!(deliver(5, 11, 1), Err((5, 15)));
        assert_eq!(deliver(4, 0, 1), Err((5, 15)));
        assert!(deliver(6, 0, 1).is_ok());
    }
}
