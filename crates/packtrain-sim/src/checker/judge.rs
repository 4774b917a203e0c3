//! What comes out at a host, before its judges: is it what went in, meant for it, once, in order?
//!
//! What travelled as it is, by an engine or past it, has no sequence. Where the network itself may double or reorder such frames, or their
//! way changes under them, nobody can set that right, and nobody is to be blamed for it: [`Checkers`] says
//! here when that is so.

use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

use super::once::Again;
use super::reach::Copies;
use super::{Checkers, addressee, aggregate, told, unchanged};
use crate::announcement;
use crate::frame::Frame;
use crate::net::nic;
use crate::simulator::StationId;
use crate::workload::flow::Flow;
use crate::workload::identity::{Identity, identify};

/// The other end hears of a restart by the next hello.
const RESTART_NOTICED: Duration = Duration::from_secs(1);

/// Which promise was not kept, and how.
type Broken = (&'static str, String);

impl Checkers {
    pub(super) fn judge(&mut self, station: StationId, frame: &Frame) -> Result<(), Broken> {
        // Whatever happened before: what a kernel is given must hold together.
        // (What an altering wire gives to a host without packtrain is nobody's promise.)
        let promised = self.stations[station.0].packtrain || !self.faults.alters;
        if promised && nic::to_wire(frame.clone()).is_none() {
            return Err(("well formed", format!("{:?}", frame.offload)));
        }
        let identity = identify(&frame.bytes, &self.flows);
        let destination = frame.header().destination;
        let is_of_a_flow = |flow: &Flow| flow.destination == destination;
        if self.stations[station.0].promiscuous && !self.flows.iter().any(is_of_a_flow) {
            // What passes between the links of others: a bridge is given that too, and knows
            // nobody whom it is for.
            return Ok(());
        }
        if self.stations[station.0].promiscuous
            && aggregate::is_one(frame)
            && destination != self.stations[station.0].address
        {
            // Nor whose an aggregate is: it passes it on as it is.
            return Ok(());
        }
        if self.faults.alters {
            self.remember_whole(station, identity, frame);
            return Ok(());
        }
        let Some(identity) = identity else {
            if announcement::is_one(frame) {
                return Ok(()); // its segments hear who is where
            }
            if self.stations[station.0].packtrain && told::is_sound(frame, &self.flows) {
                return Ok(()); // its frames are too long for where they go
            }
            return Err(("unchanged", "nobody ever sent it".into()));
        };
        if self.accounted.was_damaged(identity) {
            let text = format!("{identity:?} was in a train that was damaged");
            return Err(("accounted", text));
        }
        let flow = &self.flows[usize::from(identity.flow)];
        if !self.accounted.was_sent(identity) {
            return Err(("unchanged", format!("{identity:?} was not sent yet")));
        }
        let segments = unchanged::check(flow, identity, frame)
            .map_err(|text| ("unchanged", format!("{identity:?}: {text}")))?;
        if let Some(record) = &mut self.record {
            record.came(identity, segments.clone());
        }
        let copies = self.accounted.as_it_is(identity).copied();
        match addressee::check(flow, station, &self.stations) {
            addressee::Verdict::Meant => {}
            // What a bridge does with what is not for it is the bridge's business.
            addressee::Verdict::Flooded => return Ok(()),
            addressee::Verdict::Wrong
                if flow.from == station && self.may_echo(station, copies.as_ref()) =>
            {
                return Ok(());
            }
            addressee::Verdict::Wrong => {
                return Err(("addressee", format!("{identity:?} is for {:?}", flow.to)));
            }
        }
        let again = self.once.delivered(identity, station, segments.clone());
        let is_direct = self.accounted.has_gone_directly(identity);
        let comes_twice = is_direct && self.faults.duplicates;
        if !comes_twice && !self.may_come(station, again, copies.as_ref()) {
            return Err(("once", format!("{identity:?} again")));
        }
        let is_overtaken = is_direct && self.may_be_overtaken(identity, [flow.from, station]);
        if is_overtaken || self.may_overtake(station, destination, copies.as_ref()) {
            return Ok(());
        }
        let in_order = self.in_order.delivered(identity, station, segments.end);
        if let Err(newest) = in_order {
            let moves = copies.is_some() && self.faults.moves_home;
            if moves && self.lives.lie_between(identity, newest) {
                return Ok(());
            }
            if !self.is_excused(station, identity) {
                return Err(("in order", format!("{identity:?} after {newest:?}")));
            }
        }
        // An engine knows nothing of what goes past it, nor of what it had sent as it is to a life that is over.
        let is_unknown = is_direct || copies.is_some() && self.has_begun_anew(station, identity);
        if !is_unknown && self.drained.has_arrived(identity) {
            let text = format!("{identity:?} was said to have arrived");
            return Err(("drained", text));
        }
        Ok(())
    }

    /// On altering wires nothing is to be said against a frame; what came whole all the same is remembered, for
    /// the probes when the network is well.
    fn remember_whole(&mut self, station: StationId, identity: Option<Identity>, frame: &Frame) {
        let Some(identity) = identity.filter(|&what| self.accounted.was_sent(what)) else {
            return;
        };
        let flow = &self.flows[usize::from(identity.flow)];
        if let Ok(segments) = unchanged::check(flow, identity, frame) {
            self.once.delivered(identity, station, segments);
        }
    }

    /// A switch gives a host with two ports on it the same frame twice, and its own back: whoever
    /// starts in between cannot know either.
    fn may_echo(&self, station: StationId, as_it_is: Option<&Copies>) -> bool {
        as_it_is.is_some_and(|copies| {
            copies.left_at < self.lives.began_at(station)
                && self.reach.has_several_ports(station, copies)
        })
    }

    /// For the first time, or for a reason that is not the engine's.
    fn may_come(&self, station: StationId, again: Again, as_it_is: Option<&Copies>) -> bool {
        let several = as_it_is.is_some_and(|copies| copies.count > 1);
        match again {
            Again::No => true,
            _ if as_it_is.is_some_and(|copies| copies.twice_unknowingly) => true,
            // Of copies for several segments, without a sequence, whoever starts between two of them
            // cannot know that the first had come.
            Again::SinceItsRestart if several || self.may_echo(station, as_it_is) => true,
            _ => as_it_is.is_some() && self.faults.duplicates,
        }
    }

    /// Whether nobody can know that frames of its flow overtake one that goes past the engines: a wire does
    /// that, or an end has begun anew, and knows nothing of what it had sent or counted.
    fn may_be_overtaken(&self, direct: Identity, ends: [StationId; 2]) -> bool {
        let begins_anew = |&end: &StationId| self.has_begun_anew(end, direct);
        self.faults.reorders || self.faults.duplicates || ends.iter().any(begins_anew)
    }

    /// Whether nobody promises that a receiver waits for it.
    fn is_excused(&self, station: StationId, what: Identity) -> bool {
        let is_direct = self.accounted.has_gone_directly(what);
        let excused = |at| self.excused.may_be_overtaken(station, at, is_direct);
        self.accounted.sent_at(what).is_some_and(excused)
    }

    /// Whether this was sent before others can have noticed that the station begins anew.
    fn has_begun_anew(&self, station: StationId, what: Identity) -> bool {
        let began_at = self.lives.began_anew_at(station);
        began_at.map(|at| at + RESTART_NOTICED) > self.accounted.sent_at(what)
    }

    /// Whether nobody can know what came before a frame of its flow.
    fn may_overtake(&self, station: StationId, to: MacAddr, as_it_is: Option<&Copies>) -> bool {
        let Some(copies) = as_it_is else {
            return false;
        };
        // What its sender has put on several segments went to a station that it had not met: by which
        // of them the next one goes, and which of the copies a wire loses, nobody can set right.
        let is_to_a_stranger = copies.count > 1 || copies.before_any_train;
        // A switch brings it by one of several ports, and what goes by trains by another one.
        let by_one_of_several = || self.reach.has_several_ports(station, copies);
        let moved = self.faults.moves_home
            && (is_to_a_stranger || !self.is_a_hosts_own(to) || by_one_of_several());
        self.faults.reorders || self.faults.duplicates || moved
    }
}
