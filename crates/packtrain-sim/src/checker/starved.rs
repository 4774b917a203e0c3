//! No flow starves: while the first frame of one waits for a peer, what leaves of the others before it is bounded.
//!
//! Two claims. A flow waits no longer than deficit round robin lets it: of each other flow two quanta leave in each round that
//! its own debt takes to be paid, for one that empties may come again as a new one, and one frame more. And a flow that is new
//! goes first: nothing leaves before it of one that has waited all the time and has had its quantum.
//!
//! Frames that go ahead, urgent ones and where that is set those of short flows, may be so many bytes before all others, and
//! have as many as these from then on: where they are among them, the bound is that of all bytes together.
//!
//! What waits is known here from what came and what was seen leaving; which frames are of one flow, by the number that the
//! engine's classifier gives them. An engine drops frames, and does not say which. It says how many wait: while there are fewer than
//! are known here, a flow that may be gone altogether is asked about no more, and what left before it counts anew from then on.
//!
//! Not asked: between flows that go by different links, or twice and once, nor of one of which some frames do and others not; where each flow keeps to one of several links; a train that
//! leaves while as many frames are under way in pieces as may be, for others let their turns pass then; what goes again; what goes to hosts without
//! packtrain, and what goes past the engine; from when classes change that say which way flows go, or an end begins anew,
//! until nothing waits.

mod queue;

use packtrain_proto::class::{Class, Facts, Pack};
use packtrain_proto::classifier::Classifier;
use packtrain_proto::config::Config;
use packtrain_proto::trunk::via::Via;
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_proto::wire::packet::Packet;

use super::inside::{self, Place};
use crate::frame::Frame;
use crate::simulator::StationId;
use crate::workload::flow::{Flow as Source, Recipient};
use crate::workload::identity::{Identity, identify};
use queue::{Band, Leaving, Queue, Rules, Waiting};

/// Flows whose numbers are alike in this are one.
const BUCKETS: u32 = 4096;

#[derive(Debug)]
struct Station {
    classifier: Classifier,
    quantum: u64,
    short_first: bool,
    keeps_flows: bool,
    classes: Vec<Class>,
    /// By the station to which they go.
    queues: Vec<Queue>,
}

#[derive(Debug, Default)]
pub struct Starved {
    /// Those that have packtrain.
    stations: Vec<Option<Station>>,
    /// Whose links these are: trains to them go there.
    addresses: Vec<(MacAddr, StationId)>,
}

impl Starved {
    pub fn new(stations: usize) -> Starved {
        Starved {
            stations: (0..stations).map(|_| None).collect(),
            addresses: Vec::new(),
        }
    }

    /// An engine begins, or another one in its place.
    pub fn begins(&mut self, station: StationId, config: &Config) {
        let count = self.stations.len();
        for other in self.stations.iter_mut().flatten() {
            other.queues[station.0].is_unknown = true;
        }
        let one = &mut self.stations[station.0];
        let classes = one.take().map(|one| one.classes);
        *one = Some(Station {
            classifier: Classifier::new(config.seed),
            quantum: config.limits.quantum as u64,
            short_first: config.short_flows_first,
            keeps_flows: config.balance.keeps_flows(),
            classes: classes.unwrap_or_default(),
            queues: (0..count).map(|_| Queue::default()).collect(),
        });
    }

    pub fn classes(&mut self, station: StationId, classes: Vec<Class>) {
        let Some(one) = &mut self.stations[station.0] else {
            return;
        };
        let before = core::mem::replace(&mut one.classes, classes);
        let mut all = before.iter().chain(&one.classes);
        if all.any(|class| !class.action.via().is_any()) {
            one.queues
                .iter_mut()
                .for_each(|queue| queue.is_unknown = true);
        }
    }

    /// An engine is given a frame by its host.
    pub fn came(&mut self, station: StationId, frame: &Frame, (what, to): (Identity, Recipient)) {
        let Some(one) = &mut self.stations[station.0] else {
            return;
        };
        if one.keeps_flows {
            return;
        }
        let bucket = one.classifier.flow_hash(&frame.bytes) % BUCKETS;
        let facts = Facts::of(&frame.bytes, &Packet::parse(&frame.bytes), 0);
        let of = |fixed: bool| {
            let mut classes = one.classes.iter();
            classes.find(|c| (!fixed || c.matches.is_fixed()) && c.matches.matches(&facts))
        };
        let action = of(false).map_or_else(Default::default, |class| class.action);
        let waiting = Waiting {
            what,
            band: Band {
                via: of(true).map_or_else(Via::default, |class| class.action.via()),
                twice: action.duplicate,
            },
            urgent: action.pack == Pack::Now,
            to_it_alone: to != Recipient::All,
        };
        for (at, queue) in one.queues.iter_mut().enumerate() {
            if at != station.0 && (to == Recipient::All || to == Recipient::Station(StationId(at)))
            {
                queue.push(bucket, waiting);
            }
        }
    }

    /// A frame leaves as it is; `to`: with a mark, to this station.
    pub fn left_alone(
        &mut self,
        station: StationId,
        what: Identity,
        (to, len): (Option<StationId>, usize),
    ) -> Result<(), String> {
        let Some(one) = &mut self.stations[station.0] else {
            return Ok(());
        };
        let Some(to) = to else {
            one.queues.iter_mut().for_each(|queue| queue.forget(what));
            return Ok(());
        };
        let rules = one.rules();
        let queue = &mut one.queues[to.0];
        let Some(flow) = queue.find(what) else {
            return Ok(());
        };
        queue.train_was_last = false;
        let leaving = Leaving {
            what,
            len,
            done: true,
            passes: false,
        };
        queue.take(flow, leaving, rules)
    }

    /// A station says hello by a link of this address: what goes there is for it, also where nothing begins in it that would say so.
    pub fn hello(&mut self, station: StationId, address: MacAddr) {
        if !self.addresses.iter().any(|(of, _)| *of == address) {
            self.addresses.push((address, station));
        }
    }

    /// A train leaves; `plain`: as it is when it is not coded. What goes again has been seen before.
    pub fn left_in_train(
        &mut self,
        station: StationId,
        (to, plain): (MacAddr, &[u8]),
        sources: &[Source],
    ) -> Result<(), String> {
        let Some(one) = &mut self.stations[station.0] else {
            return Ok(());
        };
        if inside::goes_again(plain) {
            return Ok(());
        }
        let rules = one.rules();
        let known = self.addresses.iter().find(|(of, _)| *of == to);
        let Some(queue) = known.map(|(_, peer)| &mut one.queues[peer.0]) else {
            return Ok(());
        };
        let mut passes = false;
        for part in inside::parts(plain) {
            let start = match &part.place {
                Place::Whole { start } | Place::First { start, .. } => Some(&start[..]),
                Place::Next { .. } => None,
            };
            let what = start.and_then(|start| identify(start, sources));
            passes |= queue.turns_pass();
            if let Some((flow, what, done)) = queue.which(&part, start, what) {
                queue.train_was_last = true;
                let leaving = Leaving {
                    what,
                    len: part.len,
                    done,
                    passes,
                };
                queue.take(flow, leaving, rules)?;
            }
        }
        Ok(())
    }

    /// So many frames wait in a station's engine for each peer; asked before it sends, and after.
    pub fn look(&mut self, station: StationId, waiting_for: impl Fn(StationId) -> usize) {
        let Some(one) = &mut self.stations[station.0] else {
            return;
        };
        for (at, queue) in one.queues.iter_mut().enumerate() {
            if !queue.is_empty() {
                queue.look(waiting_for(StationId(at)));
            }
        }
    }
}

impl Station {
    fn rules(&self) -> Rules {
        Rules {
            quantum: self.quantum,
            short_first: self.short_first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::flow::tests::one_of_each;
    use packtrain_proto::config::NodeId;

    const FROM: StationId = StationId(0);
    const TO: StationId = StationId(1);
    const LINKS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 1, 1])];

    /// With one subframe: its kind, its position, and what it carries.
    fn train(flags: u8, kind: u8, position: [usize; 2], payload: &[u8]) -> Vec<u8> {
        let mut train = vec![0; 14];
        train.extend([0x11, flags]);
        train.extend([0; 14]);
        train.push(kind);
        train.extend((payload.len() as u16).to_be_bytes());
        train.extend(position.iter().flat_map(|&n| (n as u16).to_be_bytes()));
        train.extend(payload);
        train
    }

    #[test]
    fn pieces_count_by_whichever_link_they_go_and_what_goes_again_does_not() {
        const REPLAY: u8 = 0x04;
        let flows = one_of_each();
        let is_plain_ip = |flow: &&Source| {
            let kind = flow.frame(0).header().ether_type;
            kind == packtrain_proto::wire::ethernet::ether_type::IPV4
        };
        let flow = flows.iter().find(is_plain_ip).expect("there is one");
        let mut starved = Starved::new(2);
        starved.begins(FROM, &Config::new(NodeId(1), flow.source));
        for sequence in [0, 1] {
            let frame = flow.frame(sequence);
            let what = identify(&frame.bytes, &flows).expect("it says so");
            starved.came(FROM, &frame, (what, Recipient::Station(TO)));
        }
        let payload = &flow.frame(0).bytes[14..];
        let (len, half) = (payload.len(), payload.len() / 2);
        let first = train(0, 2, [7, len], &payload[..half]);
        let rest = |flags| train(flags, 3, [7, half], &payload[half..]);
        let left = |starved: &mut Starved, to, train: &[u8]| {
            let all = starved.left_in_train(FROM, (to, train), &flows);
            assert_eq!(all, Ok(()));
            let queue = &starved.stations[FROM.0].as_ref().unwrap().queues[TO.0];
            (queue.waiting(), queue.is_under_way(7))
        };
        assert_eq!(left(&mut starved, LINKS[0], &first), (2, false), "whose?");
        for link in LINKS {
            starved.hello(TO, link);
        }
        assert_eq!(left(&mut starved, LINKS[0], &first), (2, true));
        assert_eq!(left(&mut starved, LINKS[1], &rest(REPLAY)), (2, true));
        assert_eq!(left(&mut starved, LINKS[1], &rest(0)), (1, false));
    }
}
