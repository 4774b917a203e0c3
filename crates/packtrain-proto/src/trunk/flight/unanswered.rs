//! What counted as lost because nothing was acknowledged for too long, and is acknowledged after all: the link is slower than it was,
//! and what was to go again has arrived.

use std::collections::VecDeque;

use super::{Flight, LIVED_WITHIN};
use crate::time::{Duration, Instant};
use crate::trunk::lane::TrainId;
use crate::wire::sequence::Sequence;
use crate::wire::train::Ack;

/// So many are remembered: as many as a lane may have out.
const REMEMBERED_MAX: usize = 2048;
/// … and for so long after they left: by then nobody waits for them.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);
/// An acknowledgement that has taken longer tells of an end that was away, and not of the link.
const LATE_MAX: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(super) struct Unanswered {
    /// By their link sequences, the oldest first, when they left, and how many bytes they have.
    trains: VecDeque<(Sequence, TrainId, Instant, u32)>,
    /// Of those, and of which another copy has gone, what has arrived since this was asked last.
    arrived: Vec<TrainId>,
}

impl Unanswered {
    pub(super) fn arrived(&mut self, train: TrainId) {
        self.arrived.push(train);
    }
}

impl Flight {
    pub(super) fn remember_unanswered(&mut self, at: usize) {
        let record = &self.records[at];
        if !record.outstanding || record.bytes == 0 {
            return;
        }
        let sequence = self.next.minus((self.records.len() - at) as u32);
        let trains = &mut self.unanswered.trains;
        if trains.len() == REMEMBERED_MAX {
            trains.pop_front();
        }
        trains.push_back((sequence, record.train, record.sample.sent_at, record.bytes));
    }

    /// An acknowledgement that may be of them: then it is as late as it is.
    pub(super) fn note_late_answer(&mut self, ack: &Ack, now: Instant) {
        let unanswered = &mut self.unanswered;
        if unanswered.trains.is_empty() {
            return;
        }
        let is_old = |sent_at: Instant| now.since(sent_at) > REMEMBERED_FOR;
        while let Some(&(_, _, sent_at, _)) = unanswered.trains.front()
            && is_old(sent_at)
        {
            unanswered.trains.pop_front();
        }
        let mut late = None;
        unanswered
            .trains
            .retain(|&(sequence, train, sent_at, bytes)| {
                let is_named = ack.names(sequence);
                if is_named {
                    self.bit_errors.on_late_arrival(bytes as usize);
                    unanswered.arrived.push(train);
                }
                if sequence == ack.newest {
                    late = Some(now.since(sent_at));
                }
                !is_named
            });
        if let Some(late) = late {
            let delay = Duration::from_nanos(u64::from(ack.delay_nanos));
            let round_trip = late.saturating_sub(delay);
            if round_trip <= LATE_MAX {
                self.delivery.on_late(round_trip, now);
            }
            self.note_progress(now);
            self.bit_errors.on_life(LIVED_WITHIN, now);
        }
    }

    /// What was to go again, or has, and has arrived.
    pub fn take_arrived_again(&mut self) -> Vec<TrainId> {
        std::mem::take(&mut self.unanswered.arrived)
    }
}
