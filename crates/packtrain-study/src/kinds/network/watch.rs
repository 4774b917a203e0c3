//! What is seen of lines between two looks: how long a queue ever was, and how many one after the other found no room.

use packtrain_sim::fabric::packet::Packet;
use packtrain_sim::fabric::{LineId, Observer};

#[derive(Debug)]
pub struct Watch {
    lines: Vec<Watched>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// The most that ever stood in the queue: between two looks it may have been longer than at either.
    pub queued_bytes_max: usize,
    /// Refused one after the other, up to now.
    refused: u64,
    /// The most that ever were, whosever. What a discipline drops that was in the queue is no part of it.
    pub longest_burst: u64,
}

impl Watch {
    pub fn new(lines: usize) -> Watch {
        Watch {
            lines: vec![Watched::default(); lines],
        }
    }

    pub fn line(&self, line: usize) -> &Watched {
        &self.lines[line]
    }

    /// A line begins anew, with so much in its queue.
    pub fn forget(&mut self, line: usize, queued_bytes: usize) {
        self.lines[line] = Watched {
            queued_bytes_max: queued_bytes,
            ..Watched::default()
        };
    }
}

impl Observer for Watch {
    fn offered(&mut self, line: LineId, _: &Packet, taken: bool, queued_bytes: usize) {
        let line = &mut self.lines[line as usize];
        line.queued_bytes_max = line.queued_bytes_max.max(queued_bytes);
        line.refused = if taken { 0 } else { line.refused + 1 };
        line.longest_burst = line.longest_burst.max(line.refused);
    }
}
