//! What leaves a host, and whose business it is: frames as they are, trains, and what goes past the engine.

use std::borrow::Cow;

use packtrain_proto::class::KernelPath;
use packtrain_proto::stats::LinkSand;
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::{MacAddr, ether_type};

use super::{Checkers, aggregate, describe, inside, sand_bound};
use crate::frame::Frame;
use crate::host::kernel::Redirected;
use crate::net::network::PortId;
use crate::simulator::StationId;
use crate::workload::flow::Recipient;
use crate::workload::identity::identify;

impl Checkers {
    /// A frame leaves a host by a link. Whether it is a train with something in it.
    pub fn transmitted(
        &mut self,
        station: StationId,
        port: PortId,
        frame: &Frame,
        now: Instant,
    ) -> bool {
        if self.only_hand_on() {
            return false;
        }
        let header = frame.header();
        if header.destination == MacAddr::HELLO {
            self.echoes.said(station, port, header.source, now);
            self.starved.hello(station, header.source);
        }
        if header.ether_type == ether_type::PACKTRAIN {
            return self.message_transmitted(station, frame, now);
        }
        let is_blind = self.echoes.is_blind(station, port.segment, now);
        let frames = aggregate::frames_in(frame);
        self.frames_aggregated += if frames.len() > 1 {
            frames.len() as u64
        } else {
            0
        };
        for part in &frames {
            match identify(&part.bytes, &self.flows) {
                Some(identity) => {
                    self.held_within.left(station, identity, false);
                    // With other addresses than its own it goes to somebody who is known.
                    let flow = &self.flows[usize::from(identity.flow)];
                    let is_marked = part.header().source != flow.source;
                    let has_met = is_marked || self.lives.has_met(station);
                    let to = match flow.to {
                        Recipient::Station(to) => Some(to).filter(|_| is_marked),
                        Recipient::All => None,
                    };
                    let left = (to, part.bytes.len());
                    let look = self.starved.left_alone(station, identity, left);
                    self.accounted
                        .went_as_it_is(identity, port.segment, (has_met, is_blind), now);
                    self.object_if_starved(station, look, now);
                }
                None if self.faults.alters => {}
                None => {
                    let text = format!(
                        "{station:?} sends {} in {}",
                        describe(part),
                        describe(frame)
                    );
                    self.object("unchanged", now, text);
                }
            }
        }
        if frames.is_empty() && !self.faults.alters {
            let text = format!(
                "{station:?} sends {}, which is no aggregate",
                describe(frame)
            );
            self.object("unchanged", now, text);
        }
        false
    }

    fn message_transmitted(&mut self, station: StationId, frame: &Frame, now: Instant) -> bool {
        let was_coded = inside::is_coded(&frame.bytes);
        // Restored once: all that follows looks at it.
        let plain = match was_coded {
            true => Cow::Owned(self.look_at_coding(station, frame, now)),
            false => Cow::Borrowed(&frame.bytes[..]),
        };
        let items = inside::items(&plain);
        self.accounted.train_left(items);
        self.left_in_train(station, (frame.header().destination, &plain), now);
        if !was_coded && let Some(question) = inside::question(&plain) {
            self.held_within.asks(station, question, now);
        }
        if items > 0 {
            self.held_within.train_left(station);
            self.lives.train_left(station);
        }
        items > 0
    }

    /// A frame leaves a host past its engine. `None`: it does not, and nobody says so.
    pub fn left_directly(
        &mut self,
        station: StationId,
        frame: &Frame,
        redirected: Option<&Redirected>,
        now: Instant,
    ) {
        let what = identify(&frame.bytes, &self.flows);
        let (Some(what), Some(redirected)) = (what, redirected) else {
            return;
        };
        if redirected.path == KernelPath::Engine {
            let text = format!("{what:?} of {station:?} is to go by the engine");
            self.object("direct path", now, text);
        }
        let may_be_lost = redirected.path >= KernelPath::LossOk;
        self.accounted.went_directly(what, may_be_lost);
    }

    /// A train with something in it is on a wire.
    pub fn train_left(&mut self, station: StationId, port: PortId, now: Instant) {
        if self.only_hand_on() {
            return;
        }
        self.work_conserving.train_left(station, port, now);
    }

    /// A train, or a frame with its mark, is put on a link on which so much stands, the only one or not. `bound`: how long small frames may wait there; `said`:
    /// what the engine says of that.
    pub fn put_on_link(
        &mut self,
        station: StationId,
        (standing, is_alone, frame): (usize, bool, &Frame),
        (bound, said): (Duration, &LinkSand),
        now: Instant,
    ) {
        if self.only_hand_on() || inside::goes_again(&frame.bytes) {
            return;
        }
        if let Err(text) = sand_bound::check((standing, is_alone), frame.bytes.len(), bound, said) {
            self.object("sand bound", now, format!("{station:?}: {text}"));
        }
    }

    fn left_in_train(&mut self, station: StationId, (to, train): (MacAddr, &[u8]), now: Instant) {
        if !self.faults.alters {
            let train = (to, train);
            let look = self.starved.left_in_train(station, train, &self.flows);
            self.object_if_starved(station, look, now);
        }
        if self.held_within.is_empty(station) {
            return;
        }
        for start in inside::starts(train) {
            if let Some(what) = identify(&start, &self.flows) {
                self.held_within.left(station, what, true);
            }
        }
    }

    fn object_if_starved(&mut self, station: StationId, look: Result<(), String>, now: Instant) {
        if let Err(text) = look
            && !self.faults.alters
        {
            self.object("starved", now, format!("{station:?}: {text}"));
        }
    }
}
