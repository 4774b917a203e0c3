//! When the network is well again, and at the end: whether all moves on, and what is missing was counted.

use packtrain_proto::stats::Snapshot;
use packtrain_proto::time::Instant;

use super::accounted::{EngineDrops, Kept};
use super::progress::Copies;
use super::{Checkers, progress};
use crate::simulator::StationId;
use crate::workload::flow::Recipient;
use crate::workload::identity::Identity;

impl Checkers {
    /// When the network has been well for long enough.
    pub fn at_rest(&mut self, station: StationId, snapshot: &Snapshot, peers: usize, now: Instant) {
        let copies = match self.faults.alters {
            true => Copies::MayBeKept,
            false => Copies::Gone,
        };
        if let Err(text) = progress::check(snapshot, peers, copies) {
            self.object("progress", now, format!("{station:?}: {text}"));
        }
    }

    /// After frames have gone again through a network that is well.
    pub fn all_links_back(
        &mut self,
        station: StationId,
        snapshot: &Snapshot,
        paths: usize,
        now: Instant,
    ) {
        if self.faults.alters {
            return; // an altered sequence may have to be caught up with first, at a try a second
        }
        if let Err(text) = progress::check_paths(snapshot, paths) {
            self.object("progress", now, format!("{station:?}: {text}"));
        }
    }

    /// Frames from `first_sequence` of a flow on were sent through a healthy network at rest:
    /// all of them must have come.
    pub fn all_came(&mut self, flow: usize, first_sequence: u32, now: Instant) {
        let recipients: Vec<StationId> = self.recipients(flow).collect();
        for sequence in first_sequence..self.accounted.sent_until(flow) {
            let count = self.flows[flow].segment_count(sequence);
            for &station in &recipients {
                if !self.once.is_whole(flow, sequence, station, count) {
                    let text =
                        format!("frame {sequence} of flow {flow} for {station:?} is missing");
                    return self.object("progress", now, text);
                }
            }
        }
    }

    /// At the end: compares what is missing with what was counted. `dropped`: the counters of all
    /// engines of all lives.
    pub fn settle(&mut self, kept: Kept, dropped: &EngineDrops, now: Instant) {
        if self.faults.alters {
            return;
        }
        let (mut missing, mut came) = (0, 0);
        for flow in 0..self.flows.len() {
            let from = self.flows[flow].from;
            let recipients: Vec<StationId> = self.recipients(flow).collect();
            let is_flooded = !self.is_a_hosts_own(self.flows[flow].destination);
            for sequence in self.accounted.sent_sequences(flow) {
                let what = Identity {
                    flow: flow as u16,
                    sequence,
                    segment: 0,
                };
                let flooded = self.accounted.as_it_is(what).filter(|_| is_flooded);
                if kept != Kept::Accounts && flooded.is_some() {
                    // It is taken on one segment, and that may have lost its copy, or had no room
                    // for it, where another one did not: nobody brings it then.
                    continue;
                }
                let count = self.flows[flow].segment_count(sequence);
                let whole = |&s: &StationId| self.once.is_whole(flow, sequence, s, count);
                // Of what went past the engines, no engine has a copy, nor of what went as it is before its sender knew
                // that anybody takes trains.
                let is_excused = kept == Kept::Accounts
                    || self.accounted.may_be_lost(what)
                    || self.accounted.went_before_any_train(what);
                if is_excused && self.accounted.was_lost_as_it_is(what) {
                    continue;
                }
                let has_gone_to_peers = self.flows[flow].to == Recipient::All
                    && self.accounted.went_by_trains_for_its_length(what);
                for &to in recipients.iter().filter(|s| !whole(s)) {
                    // Where a frame for everybody is too long for one of the segments, peers get it, and nobody else can.
                    if has_gone_to_peers && !self.stations[to.0].packtrain {
                        continue;
                    }
                    if flooded.is_some_and(|copies| self.reach.is_out(from, to, copies)) {
                        continue;
                    }
                    missing += 1;
                    came += u64::from(flooded.is_some_and(|copies| copies.has_come_to(to)));
                }
            }
        }
        let others = self.stations.len() as u64 - 1;
        let moves_home = self.faults.moves_home.then_some(came);
        let verdict = match kept {
            Kept::Accounts => self.accounted.settle(missing, others, moves_home, dropped),
            Kept::Everything | Kept::Copies => {
                let has_copies =
                    |flow: u16| self.is_a_hosts_own(self.flows[usize::from(flow)].destination);
                self.accounted
                    .settle_lossless(missing, has_copies, kept, dropped)
            }
        };
        if let Err(text) = verdict {
            self.object("accounted", now, text);
        }
    }

    /// At the end of a run without faults.
    pub fn settle_faultless(&mut self, dropped: &EngineDrops, now: Instant) {
        if let Err(text) = self.accounted.settle_faultless(
            dropped,
            self.faults.moves_home || self.held_within.repairs(),
        ) {
            self.object("accounted", now, text);
        }
    }
}
