//! What came out, in the order in which it did: to compare one run with another.

use core::ops::Range;

use super::Position;
use crate::workload::identity::Identity;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// By flow: each segment. In which frames they came is offload's business.
    came: Vec<Vec<Position>>,
}

impl Record {
    pub fn new(flows: usize) -> Record {
        Record {
            came: vec![Vec::new(); flows],
        }
    }

    pub fn came(&mut self, what: Identity, segments: Range<usize>) {
        let came = segments.map(|segment| (what.sequence, segment));
        self.came[usize::from(what.flow)].extend(came);
    }

    /// Of a flow.
    pub fn of(&self, flow: usize) -> &[Position] {
        &self.came[flow]
    }
}
