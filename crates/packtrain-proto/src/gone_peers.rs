//! Peers that are gone, and of which something may still be under way.

use std::collections::VecDeque;

use crate::config::NodeId;
use crate::time::{Duration, Instant};
use crate::wire::sequence::Sequence;

/// Of each kind.
const REMEMBERED_MAX: usize = 64;
/// How much later than what a node sends now may come what it sent in a former life, by a slow link's queue.
const FORMER_LIFE_FOR: Duration = Duration::from_secs(4);

#[derive(Debug, Default)]
pub struct GonePeers {
    /// Those that were forgotten, the newest at the end.
    left: VecDeque<Left>,
    /// Nodes in whose place another one speaks since, the newest at the end.
    former: VecDeque<(NodeId, Instant)>,
}

/// Where a peer's row of sequences stood when it was forgotten. It may not know that it was, and go on: what
/// it had sent until then has been delivered, or given up.
#[derive(Clone, Copy, Debug)]
struct Left {
    node_id: NodeId,
    epoch: u8,
    due: Sequence,
}

impl GonePeers {
    /// A peer is forgotten while `due` is the train that is to come in the row of this epoch.
    pub fn note_left(&mut self, node_id: NodeId, epoch: u8, due: Sequence) {
        if self.left.len() >= REMEMBERED_MAX {
            self.left.pop_front();
        }
        self.left.push_back(Left {
            node_id,
            epoch,
            due,
        });
    }

    /// The epoch of the row in which a peer was left last, and the train that was due.
    pub fn left_at(&self, node_id: NodeId) -> Option<(u8, Sequence)> {
        let mut newest_first = self.left.iter().rev();
        let left = newest_first.find(|left| left.node_id == node_id)?;
        Some((left.epoch, left.due))
    }

    /// This node has been restarted, and has another id since.
    pub fn note_former_life(&mut self, node_id: NodeId, now: Instant) {
        if self.former.len() >= REMEMBERED_MAX {
            self.former.pop_front();
        }
        self.former.push_back((node_id, now));
    }

    /// What comes of this node now was under way for long. It must not be taken for the newer life.
    pub fn is_former_life(&self, node_id: NodeId, now: Instant) -> bool {
        let is = |&(former, since): &(NodeId, Instant)| {
            former == node_id && now.since(since) < FORMER_LIFE_FOR
        };
        self.former.iter().any(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_restarted_is_not_met_again_while_its_frames_may_be_under_way() {
        let mut gone = GonePeers::default();
        let since = Instant::ZERO + Duration::from_secs(10);
        gone.note_former_life(NodeId(5), since);
        assert!(gone.is_former_life(NodeId(5), since));
        assert!(!gone.is_former_life(NodeId(6), since));
        let over = since + FORMER_LIFE_FOR;
        assert!(!gone.is_former_life(NodeId(5), over));
        // Few are remembered, however many are said to have been.
        for node_id in 0..1000 {
            gone.note_former_life(NodeId(node_id), since);
        }
        assert!(gone.former.len() <= REMEMBERED_MAX && gone.is_former_life(NodeId(999), since));
    }

    #[test]
    fn only_the_last_that_were_left_are_known_and_each_as_it_was_left_last() {
        let mut gone = GonePeers::default();
        for n in 0..200 {
            gone.note_left(NodeId(n % 100), 3, Sequence(n as u32));
        }
        assert_eq!(gone.left.len(), REMEMBERED_MAX);
        assert_eq!(gone.left_at(NodeId(99)), Some((3, Sequence(199))));
        assert_eq!(gone.left_at(NodeId(1)), None);
    }
}
