//! What a host sends as it is before it has met anybody, in each of its lives.
//!
//! Such frames have no sequence, and go by whichever link there is: to one that settles, to each
//! segment, and to the first one on which their addressee is heard. Another link may be faster, and
//! no receiver can know. The same holds of the last frames of one life and the first of the next.

use packtrain_proto::time::Instant;

use super::Position;
use crate::simulator::StationId;
use crate::workload::identity::Identity;

#[derive(Debug)]
pub struct Lives {
    /// By station: whether it has sent a train since it began.
    has_met: Vec<bool>,
    /// By station.
    began_at: Vec<Instant>,
    /// By flow: the first sequence of its sender's present life.
    began_with: Vec<u32>,
}

impl Lives {
    pub fn new(flows: usize, stations: usize) -> Lives {
        Lives {
            has_met: vec![false; stations],
            began_at: vec![Instant::ZERO; stations],
            began_with: vec![0; flows],
        }
    }

    pub fn restarted(&mut self, station: StationId, now: Instant) {
        self.has_met[station.0] = false;
        self.began_at[station.0] = now;
    }

    /// The sender of a flow begins anew with this sequence.
    pub fn flow_begins_anew(&mut self, flow: usize, sequence: u32) {
        self.began_with[flow] = sequence;
    }

    pub fn train_left(&mut self, station: StationId) {
        self.has_met[station.0] = true;
    }

    pub fn has_met(&self, station: StationId) -> bool {
        self.has_met[station.0]
    }

    /// When its present life began.
    pub fn began_at(&self, station: StationId) -> Instant {
        self.began_at[station.0]
    }

    /// The same of one that is not its first. `None`: it is.
    pub fn began_anew_at(&self, station: StationId) -> Option<Instant> {
        let at = self.began_at(station);
        (at > Instant::ZERO).then_some(at)
    }

    /// Whether the sender was restarted between a frame and the newest that came before it.
    pub fn lie_between(&self, late: Identity, newest: Position) -> bool {
        let began_with = self.began_with[usize::from(late.flow)];
        late.sequence < began_with && began_with <= newest.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::time::Duration;

    #[test]
    fn only_a_restart_between_two_frames_parts_them() {
        let mut lives = Lives::new(2, 1);
        let late = |sequence| Identity {
            flow: 1,
            sequence,
            segment: 0,
        };
        assert!(!lives.lie_between(late(0), (9, 1)));
        lives.flow_begins_anew(1, 5);
        assert!(lives.lie_between(late(4), (5, 1)));
        assert!(
            !lives.lie_between(late(3), (4, 1)),
            "both of the former life"
        );
        assert!(!lives.lie_between(late(5), (6, 1)), "both of this one");
    }

    #[test]
    fn whoever_is_restarted_has_met_nobody() {
        let mut lives = Lives::new(0, 2);
        lives.train_left(StationId(1));
        assert!(!lives.has_met(StationId(0)) && lives.has_met(StationId(1)));
        let now = Instant::ZERO + Duration::from_secs(1);
        lives.restarted(StationId(1), now);
        assert!(!lives.has_met(StationId(1)));
        assert_eq!(lives.began_at(StationId(1)), now);
        assert_eq!(lives.began_at(StationId(0)), Instant::ZERO);
    }
}
