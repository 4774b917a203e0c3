//! What waits at one station for another, flow by flow, and what leaves of it.

use std::collections::VecDeque;

use packtrain_proto::queue::ahead::AHEAD_BYTES_MAX;
use packtrain_proto::trunk::via::Via;
use packtrain_proto::wire::ethernet::ether_type;

use crate::checker::inside::{Part, Place};
use crate::workload::identity::Identity;

/// So many frames of a peer are under way in pieces at most.
const UNFINISHED_MAX: usize = 4;
/// A subframe's fields: an engine counts them, and they are not seen here.
const FIELDS_MAX: u64 = 32;
/// A flow may have had its turn just before, one round says no more than that its debt is paid, and its head may have come to another list.
const ROUNDS_MORE: u64 = 4;
/// One that empties when its turn comes again, and is a new one then.
const TURNS_A_ROUND: u64 = 2;

/// Frames that may leave together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Band {
    pub via: Via,
    pub twice: bool,
}

/// Which of them there have been.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Bands {
    #[default]
    None,
    One(Band),
    Several,
}

impl Bands {
    fn with(self, band: Band) -> Bands {
        match self {
            Bands::None => Bands::One(band),
            Bands::One(one) if one == band => self,
            _ => Bands::Several,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub what: Identity,
    pub band: Band,
    pub urgent: bool,
    /// Only then it surely waits for this peer, and for no other.
    pub to_it_alone: bool,
}

/// What left of another flow while a head waits.
#[derive(Clone, Copy, Debug)]
struct Before {
    flow: usize,
    bytes: u64,
    /// Of the most at once.
    largest: u64,
}

#[derive(Debug)]
struct Flow {
    bucket: u32,
    waiting: VecDeque<Waiting>,
    /// Of those, since none waited.
    bands: Bands,
    before: Vec<Before>,
    /// Some of that went ahead of all.
    some_ahead: bool,
    /// Bytes that it may have to pay for with its turns.
    owed: u64,
    /// … that left of it while some of it has waited.
    sent: u64,
    is_new: bool,
    /// Some of it surely waits.
    is_sure: bool,
}

/// What leaves of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub what: Identity,
    pub len: usize,
    /// It is the whole, or the rest.
    pub done: bool,
    /// Others may have let their turns pass for it.
    pub passes: bool,
}

/// A frame of which pieces have left.
#[derive(Clone, Copy, Debug)]
struct Begun {
    piece: u16,
    flow: usize,
    what: Identity,
    next: usize,
    of: usize,
}

/// What waits at one station for another.
#[derive(Debug, Default)]
pub(super) struct Queue {
    flows: Vec<Flow>,
    begun: Vec<Begun>,
    /// Whether the last that left was in a train: then who is empty has been forgotten, of those of its band.
    pub train_was_last: bool,
    bands: Bands,
    /// Its order is unknown, until nothing waits.
    pub is_unknown: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub quantum: u64,
    pub short_first: bool,
}

impl Queue {
    pub fn push(&mut self, bucket: u32, waiting: Waiting) {
        self.bands = self.bands.with(waiting.band);
        let known = self.flows.iter().position(|flow| flow.bucket == bucket);
        let at = known.unwrap_or_else(|| {
            self.flows.push(Flow {
                bucket,
                waiting: VecDeque::new(),
                bands: Bands::None,
                before: Vec::new(),
                some_ahead: false,
                owed: 0,
                sent: 0,
                is_new: true,
                is_sure: false,
            });
            self.flows.len() - 1
        });
        let flow = &mut self.flows[at];
        if flow.waiting.is_empty() {
            flow.anew();
            flow.sent = 0;
            flow.bands = Bands::None;
        }
        flow.bands = flow.bands.with(waiting.band);
        flow.waiting.push_back(waiting);
    }

    /// The flow of a frame that waits.
    pub fn find(&self, what: Identity) -> Option<usize> {
        let is_it = |one: &Waiting| is_same(one.what, what);
        let is_first = |flow: &Flow| flow.waiting.front().is_some_and(is_it);
        let firsts = self.flows.iter().position(is_first);
        // Those before it may have been dropped.
        let any = || self.flows.iter().position(|flow| flow.has(what));
        firsts.or_else(any)
    }

    /// Whether others let their turns pass, because enough frames are under way in pieces.
    pub fn turns_pass(&self) -> bool {
        self.begun.len() >= UNFINISHED_MAX
    }

    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Frames of which not all has been seen leaving.
    pub fn waiting(&self) -> usize {
        self.flows.iter().map(|flow| flow.waiting.len()).sum()
    }

    #[cfg(test)]
    pub fn is_under_way(&self, piece: u16) -> bool {
        self.begun.iter().any(|begun| begun.piece == piece)
    }

    /// The first that waits of a flow of the workload.
    fn first_of(&self, source: u16) -> Option<(usize, Identity)> {
        let flows = self.flows.iter().enumerate();
        let mut firsts = flows.filter_map(|(at, flow)| {
            let mut waiting = flow.waiting.iter();
            Some((at, waiting.find(|one| one.what.flow == source)?.what))
        });
        firsts.next()
    }

    /// Of which flow a part is, which frame, and whether that ends with it; `None`: of none that waits, or none of which the first piece was seen.
    pub fn which(
        &mut self,
        part: &Part,
        start: Option<&[u8]>,
        what: Option<Identity>,
    ) -> Option<(usize, Identity, bool)> {
        match part.place {
            Place::Whole { .. } => Some((self.find(what?)?, what?, true)),
            Place::First { piece, of, .. } => {
                if self.begun.iter().any(|begun| begun.piece == piece) {
                    return None;
                }
                let (flow, what) = match what {
                    Some(what) => (self.find(what)?, what),
                    None => self.first_of(source_of(start?)?)?,
                };
                let next = part.len;
                self.begun.push(Begun {
                    piece,
                    flow,
                    what,
                    next,
                    of,
                });
                Some((flow, what, false))
            }
            Place::Next { piece, at } => {
                let mut begun = self.begun.iter();
                let place = begun.position(|one| one.piece == piece && at >= one.next)?;
                let begun = &mut self.begun[place];
                begun.next = at + part.len;
                let (flow, what) = (begun.flow, begun.what);
                let done = begun.next >= begun.of;
                if done {
                    self.begun.remove(place);
                }
                // Which one it is was a guess perhaps, and a later one of its flow has left.
                let waits = self.flows[flow].has(what);
                waits.then_some((flow, what, done))
            }
        }
    }

    /// It does not wait for this peer.
    pub fn forget(&mut self, what: Identity) {
        for flow in &mut self.flows {
            flow.waiting.retain(|one| !is_same(one.what, what));
        }
    }

    /// Bytes of a flow leave. What came before their frame has been dropped.
    pub fn take(&mut self, at: usize, leaving: Leaving, rules: Rules) -> Result<(), String> {
        let taken = &mut self.flows[at];
        while let Some(head) = taken.waiting.front()
            && !is_same(head.what, leaving.what)
        {
            taken.waiting.pop_front();
        }
        let Some(&head) = taken.waiting.front() else {
            return Ok(());
        };
        let bytes = leaving.len as u64;
        let has_had_its_turn = taken.is_sure && taken.sent >= rules.quantum;
        taken.owed = match head.urgent {
            // What goes ahead is owed on top of that, up to a turn.
            true => taken.owed.max(rules.quantum).max(bytes + FIELDS_MAX),
            false => bytes + FIELDS_MAX,
        };
        taken.sent += bytes;
        taken.is_new = false;
        taken.anew();
        if leaving.done {
            taken.waiting.pop_front();
        }
        for waits in (0..self.flows.len()).filter(|&flow| flow != at) {
            let flow = &mut self.flows[waits];
            if leaving.passes {
                flow.is_new = false;
                continue;
            }
            if flow.may_be_of_another(head.band) {
                flow.anew();
                continue;
            }
            let first = flow.waiting.front();
            if !first.is_some_and(|first| first.band == head.band && first.to_it_alone) {
                continue;
            }
            flow.count(at, bytes);
            flow.some_ahead |= head.urgent;
            if self.is_unknown || !flow.is_sure {
                continue;
            }
            if flow.is_new && has_had_its_turn && !head.urgent && !rules.short_first {
                return Err(format!(
                    "{:?} leaves before {:?}, which is of a new flow",
                    head.what,
                    flow.waiting.front().map(|first| first.what)
                ));
            }
            flow.check(at, rules)?;
        }
        Ok(())
    }

    pub fn look(&mut self, waiting: usize) {
        let known = self.waiting();
        let gone = known.saturating_sub(waiting);
        // More than are known here: some had waited elsewhere, for a peer that was not up.
        self.is_unknown |= known < waiting;
        if waiting == 0 {
            self.is_unknown = false;
            self.begun.clear();
        }
        let is_one_band = self.bands != Bands::Several;
        let all_forgotten = waiting == 0 && self.train_was_last && is_one_band;
        for flow in &mut self.flows {
            if waiting == 0 {
                flow.waiting.clear();
            }
            flow.is_new |= all_forgotten;
            flow.is_sure = flow.waiting.len() > gone;
            if !flow.is_sure && !flow.waiting.is_empty() {
                flow.anew();
                flow.sent = 0;
                flow.is_new = false;
            }
        }
    }
}

impl Flow {
    fn has(&self, what: Identity) -> bool {
        self.waiting.iter().any(|one| is_same(one.what, what))
    }

    /// Whether its head may be of another band than this, and of this: whichever is the first that was not dropped. An engine has it among those
    /// of that one's band.
    fn may_be_of_another(&self, band: Band) -> bool {
        let is_of = |one: &Waiting| one.band == band;
        self.bands == Bands::Several
            && self.waiting.iter().any(is_of)
            && !self.waiting.iter().all(is_of)
    }

    /// From now on its head waits.
    fn anew(&mut self) {
        self.before.clear();
        self.some_ahead = false;
    }

    /// … and bytes of another one leave.
    fn count(&mut self, of: usize, bytes: u64) {
        match self.before.iter_mut().find(|before| before.flow == of) {
            Some(before) => {
                before.bytes += bytes;
                before.largest = before.largest.max(bytes);
            }
            None => self.before.push(Before {
                flow: of,
                bytes,
                largest: bytes,
            }),
        }
    }

    /// Whether what left before its head may have, now that more of `of` did.
    fn check(&self, of: usize, rules: Rules) -> Result<(), String> {
        let rounds = self.owed / rules.quantum + ROUNDS_MORE;
        let turns = |before: &Before| TURNS_A_ROUND * rounds * rules.quantum + before.largest;
        let (bytes, bytes_max) = if self.some_ahead || rules.short_first {
            let largest = self.before.iter().map(|before| before.largest).max();
            let ahead = AHEAD_BYTES_MAX as u64 + largest.unwrap_or(0).max(self.owed);
            let all: u64 = self.before.iter().map(turns).sum();
            let bytes = self.before.iter().map(|before| before.bytes).sum();
            (bytes, 4 * all + 3 * ahead)
        } else {
            let own = self.before.iter().find(|before| before.flow == of);
            own.map_or((0, 0), |before| (before.bytes, turns(before)))
        };
        match bytes > bytes_max {
            true => Err(format!(
                "{bytes} bytes of others have left, of {bytes_max} that may, while {:?} waits",
                self.waiting.front().map(|first| first.what)
            )),
            false => Ok(()),
        }
    }
}

fn is_same(a: Identity, b: Identity) -> bool {
    (a.flow, a.sequence) == (b.flow, b.sequence)
}
/// The flow that the addresses of a frame name, where its first piece is too short to say more.
fn source_of(start: &[u8]) -> Option<u16> {
    let word = |at: usize| Some(u16::from_be_bytes([*start.get(at)?, *start.get(at + 1)?]));
    let tag = if word(12)? == ether_type::VLAN { 4 } else { 0 };
    match word(12 + tag)? {
        ether_type::IPV4 => word(14 + tag + 13),
        ether_type::IPV6 => word(14 + tag + 8 + 13),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
