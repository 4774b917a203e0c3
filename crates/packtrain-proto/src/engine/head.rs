//! What a train says before the frames that it carries: which one it is, what is acknowledged, and what is under
//! way on other links.

use super::tell::{Told, under_way};
use crate::buffer::Buffer;
use crate::config::NodeId;
use crate::direct::fence::{FENCES_MAX, RaisedFences};
use crate::link::Link;
use crate::peer::{Peer, RepairUntil};
use crate::time::Instant;
use crate::trunk::lane::{LANES_MAX, LaneId};
use crate::wire::ethernet::HEADER_LEN;
use crate::wire::sequence::Sequence;
use crate::wire::train::{
    self, ACK_OPTION_LEN, Ack, BEHIND_OPTION_LEN, DIRECT_REPORT_LEN_MAX, DirectReport,
    FENCE_OPTION_LEN, KEPT_FROM_OPTION_LEN, NEWEST_MAX, Options, TrainHeader, TrainWriter,
    newest_option_len,
};

/// More never ride on one train: the others' turn comes.
const ACKS_MAX: usize = 4;
/// Bytes of the longest that carries nothing.
pub(super) const HEAD_LEN_MAX: usize = HEADER_LEN
    + train::HEADER_LEN
    + ACKS_MAX * ACK_OPTION_LEN
    + newest_option_len(NEWEST_MAX)
    + DIRECT_REPORT_LEN_MAX
    + KEPT_FROM_OPTION_LEN
    + FENCES_MAX * FENCE_OPTION_LEN
    + (LANES_MAX - 1) * BEHIND_OPTION_LEN;

pub(super) struct Head {
    pub(super) header: TrainHeader,
    told: Told,
    acks: [Ack; ACKS_MAX],
    acks_len: usize,
    kept_from: Option<Sequence>,
    /// Only in a marker: those are alone in having room for it.
    pub(super) direct: Option<DirectReport>,
}

impl Head {
    /// Of the next train of the lane to this peer, by this path over `link`.
    #[inline]
    pub(super) fn of_train(
        (peer, at): (&mut Peer, usize),
        lane: LaneId,
        link: &Link,
        own: NodeId,
        now: Instant,
    ) -> Head {
        let told = under_way(peer, lane, link.id, now);
        let acks_max = acks_max(told.entries().len(), &peer.tx_of(lane).fences);
        Head::new((peer, at), lane, own, (told, acks_max), now)
    }

    /// Of a marker: it takes no sequence, and says which were taken. `answers`: what is owed in acknowledgements
    /// goes by this path.
    pub(super) fn of_marker(
        (peer, at): (&mut Peer, usize),
        lane: LaneId,
        link: &Link,
        own: NodeId,
        answers: bool,
        now: Instant,
    ) -> Head {
        let told = under_way(peer, lane, link.id, now);
        let acks_max = if answers { ACKS_MAX } else { 0 };
        let mut head = Head::new((peer, at), lane, own, (told, acks_max), now);
        head.header.marker = true;
        head.header.train_sequence = head.header.train_sequence.minus(1);
        head.header.link_sequence = head.header.link_sequence.minus(1);
        head
    }

    #[inline]
    fn new(
        (peer, at): (&mut Peer, usize),
        lane: LaneId,
        own: NodeId,
        (told, acks_max): (Told, usize),
        now: Instant,
    ) -> Head {
        let (acks, acks_len) = take_acks(peer, acks_max, now);
        let path = &peer.paths[at];
        let repairs = peer.repairs(lane);
        let header = TrainHeader {
            ack_now: false,
            marker: false,
            replay: false,
            coded: false,
            repairs: repairs.is_some(),
            lossless: repairs == Some(RepairUntil::Arrived),
            lane: lane.0,
            link: path.link.0,
            incarnation: peer.incarnation(own),
            train_sequence: peer.tx_of(lane).next_train,
            link_sequence: path.flight.next_sequence(),
        };
        let is_lossless = header.lossless;
        Head {
            header,
            told,
            acks,
            acks_len,
            kept_from: is_lossless.then(|| peer.kept_from(lane)),
            direct: None,
        }
    }

    #[inline]
    pub(super) fn write<'a>(
        &self,
        buffer: &'a mut Buffer,
        (peer, at): (&Peer, usize),
        link: &Link,
    ) -> TrainWriter<'a> {
        // They ride on what they hold back.
        let (fences, behind) = match self.header.marker {
            true => (&[][..], &[][..]),
            false => {
                let raised = &peer.tx_of(LaneId(self.header.lane)).fences;
                (raised.entries(), raised.behind())
            }
        };
        let options = Options {
            acks: &self.acks[..self.acks_len],
            newest: self.told.entries(),
            direct: self.direct,
            kept_from: self.kept_from,
            fences,
            behind,
        };
        let (to, from) = (peer.paths[at].remote_address, link.state.address);
        TrainWriter::begin(buffer, to, from, &self.header, &options)
    }

    /// It does not leave: what it acknowledged is owed still.
    pub(super) fn take_back(&self, peer: &mut Peer) {
        for ack in &self.acks[..self.acks_len] {
            peer.receipts_of(ack.link).take_back();
        }
    }
}

/// How many acknowledgements ride on a train that names so many links and fences: the smallest trains have
/// room for [`ACKS_MAX`] of them.
fn acks_max(links: usize, fences: &RaisedFences) -> usize {
    let others = newest_option_len(links)
        + fences.entries().len() * FENCE_OPTION_LEN
        + fences.behind().len() * BEHIND_OPTION_LEN;
    ACKS_MAX
        .saturating_sub(others.div_ceil(ACK_OPTION_LEN))
        .max(1)
}

/// The acknowledgements that are owed, as many as ride on one train.
fn take_acks(peer: &mut Peer, acks_max: usize, now: Instant) -> ([Ack; ACKS_MAX], usize) {
    let mut acks = [Ack::default(); ACKS_MAX];
    let mut len = 0;
    let Some(incarnation) = peer.remote_incarnation() else {
        return (acks, len); // nothing of it was taken
    };
    let owed = peer.receipts.iter_mut().filter(|r| r.has_news());
    for receipts in owed.take(acks_max) {
        if let Some(ack) = receipts.take(incarnation, now) {
            acks[len] = ack;
            len += 1;
        }
    }
    (acks, len)
}
