//! One of our links to one peer: whether a frame goes by it alone, or in a train with others.

use super::direct_counts::both_take_direct;
use super::from_host::largest_on_wire;
use super::head::Head;
use crate::aggregator::{Filled, Surroundings};
use crate::buffer::Buffer;
use crate::class::ClassTable;
use crate::coding::body::Body;
use crate::coding::coder::Coder;
use crate::coding::dictionary::Dictionary;
use crate::coding::worth::{Compressor, Worths};
use crate::config::{Config, LinkOrder, NodeId};
use crate::direct::kinds::DirectKind;
use crate::link::Link;
use crate::peer::{Path, Peer};
use crate::queue::drr::FlowQueues;
use crate::queue::frame::QueuedFrame;
use crate::stats::{DropReason, FlushReason};
use crate::time::Instant;
use crate::trunk::lane::LaneId;
use crate::wire::coded::Coding;
use crate::wire::ethernet::{HEADER_LEN, MacAddr};
use crate::wire::hello::capability;
use crate::wire::subframe;
use crate::wire::train::{self, ACK_OPTION_LEN};

/// Longer trains are not for mixing: full ones would restore to more than it may.
const MIXED_MAX: usize = 9216;
/// Fewer bytes than these do not shrink by being compressed.
const COMPRESSED_MIN: usize = 128;
/// Of frames that are longer on average, headers are too small a part for what telling them apart takes: fifty bytes of
/// a thousand, and all of them copied.
const TOLD_APART_MAX: usize = 700;

/// One of our links to one peer, as far as it decides how frames go.
pub(super) struct Way<'a> {
    pub own: MacAddr,
    pub peer: MacAddr,
    pub train_max: usize,
    pub mark: Option<MacAddr>,
    pub link: &'a Link,
    /// Bytes of the longest frame that goes at once, whatever the link's MTU.
    pub sand_max: usize,
    /// Whether payload may be compressed on it.
    pub compresses: bool,
}

/// How the next frame goes.
pub(super) enum Goes {
    /// As it is.
    Alone(QueuedFrame),
    ByTrain {
        /// It is the only one, and does not shrink by itself, unless it is one of samples.
        is_incompressible: bool,
    },
}

impl Way<'_> {
    /// Full-size and GSO frames between the two `pt0`s, if this link carries them whole and is neither so
    /// slow that GSO frames are better cut, nor that they are better compressed.
    fn goes_alone(&self, frame: &QueuedFrame, with: &Surroundings<'_>) -> bool {
        self.mark.is_some()
            && frame.sent == 0
            && frame.header.destination == self.peer
            && frame.header.source == self.own
            && largest_on_wire(frame) <= self.train_max
            && frame.buffer.len() <= self.sand_max
            && !self.link.cuts(frame.buffer.len(), with.now)
            && (frame.offload.gso.is_some() || !fits_a_train(frame, self.train_max))
            && !self.shrinks(frame, with)
    }

    fn shrinks(&self, frame: &QueuedFrame, with: &Surroundings<'_>) -> bool {
        self.compresses
            && with
                .classes
                .is_compressed(frame.class, with.worths, with.now)
            && !frame.looks_random()
    }

    /// How the next frame goes; `samples`: whether one goes in a train that could go as it is, and then no other one does in that.
    /// `None`: CoDel has dropped all there was.
    pub(super) fn next(
        &mut self,
        queues: &mut FlowQueues,
        samples: &mut dyn FnMut(&QueuedFrame) -> bool,
        with: &mut Surroundings<'_>,
    ) -> Option<Goes> {
        let (now, aqm) = (with.now, with.aqm);
        let flow = queues.select(now, aqm, self.train_max, &mut |signal| {
            with.on_signal(signal);
        })?;
        let is_only = queues.frames() == 1;
        let head = queues.head(flow);
        let could = self.goes_alone(head, with);
        if could && samples(head) {
            self.mark = None;
        }
        if !could || self.mark.is_none() {
            return Some(Goes::ByTrain {
                is_incompressible: is_only && !self.shrinks(head, with),
            });
        }
        let frame = queues.pop(flow);
        queues.charge(flow, frame.buffer.len());
        with.classes
            .note_left(frame.class, with.now.since(frame.enqueued));
        Some(Goes::Alone(frame))
    }

    pub(super) fn train(
        &self,
        peer: &mut Peer,
        (lane, path_at): (LaneId, usize),
        own: NodeId,
        coder: Option<(&mut Coder, Coding)>,
        with: &mut Surroundings<'_>,
    ) -> Option<(Buffer, Filled)> {
        let mut head = Head::of_train((&mut *peer, path_at), lane, self.link, own, with.now);
        let path = &peer.paths[path_at];
        head.header.ack_now = path.flight.wants_ack(self.link.local_queue_bytes());
        let mut buffer = with.pool.take(self.train_max);
        let mut writer = head.write(&mut buffer, (&*peer, path_at), self.link);
        let empty_len = writer.len();
        let goes_alone =
            |frame: &QueuedFrame, with: &Surroundings<'_>| self.goes_alone(frame, with);
        let mut fill = |body: &mut Body<'_, '_>| {
            peer.aggregator
                .fill(&mut peer.queues, body, self.train_max, goes_alone, with)
        };
        let filled = match coder {
            None => fill(&mut Body::Plain(&mut writer, self.train_max)),
            Some((coder, coding)) => {
                coder.begin(coding, self.train_max - empty_len);
                let filled = fill(&mut Body::Coded(coder));
                coder.finish_into(&mut writer);
                filled
            }
        };
        if writer.len() == empty_len {
            // CoDel has dropped all, or turns have passed up to a frame that goes alone, or this
            // is one with headers that no train of this link has room for.
            if filled.flush == FlushReason::Full {
                self.drop_head(peer, with);
            }
            head.take_back(peer);
            with.pool.give_back(buffer);
            return None;
        }
        peer.tx_mut(lane).on_sent(with.now);
        Some((buffer, filled))
    }

    fn drop_head(&self, peer: &mut Peer, with: &mut Surroundings<'_>) {
        let (now, aqm) = (with.now, with.aqm);
        let flow = peer.queues.select(now, aqm, self.train_max, &mut |signal| {
            with.on_signal(signal);
        });
        if let Some(flow) = flow {
            let frame = peer.queues.pop(flow);
            with.drops.count(DropReason::TooLarge);
            with.pool.give_back(frame.buffer);
        }
    }
}

/// Whether trains to this peer may be coded.
pub(super) fn takes_coded(config: &Config, peer: &Peer) -> bool {
    config.coded_trains && peer.capabilities & capability::CODED_TRAINS != 0
}

/// How trains to this peer are coded over a link of this rate, if they are worth it: not one frame alone, which differs from
/// nothing, nor large ones, unless they are to be compressed.
pub(super) fn coding_for(
    config: &Config,
    peer: &Peer,
    classes: &ClassTable,
    (link_bps, train_max): (Option<u64>, usize),
    worths: &mut Worths,
    now: Instant,
) -> Option<Coding> {
    if !takes_coded(config, peer) || !classes.any_compresses() {
        return None;
    }
    let own = config.dictionary.as_ref().map(Dictionary::id);
    let compressors = [
        (own.is_some() && own == peer.dictionary).then_some((Compressor::Zstd, Coding::Zstd)),
        (train_max <= MIXED_MAX).then_some((Compressor::Mixing, Coding::Mixing)),
        Some((Compressor::Lz4, Coding::Lz4)),
    ];
    if peer.queues.bytes() >= COMPRESSED_MIN && classes.any_compresses_payload() {
        for (compressor, coding) in compressors.into_iter().flatten() {
            worths.ask_for(link_bps, compressor, peer.mixing_ns, now);
            if worths.may_pay() {
                return Some(coding);
            }
        }
    }
    let (frames, bytes) = (peer.queues.frames(), peer.queues.bytes());
    (frames > 1 && bytes <= frames * TOLD_APART_MAX).then_some(Coding::Headers)
}

fn fits_a_train(frame: &QueuedFrame, train_max: usize) -> bool {
    let overhead = HEADER_LEN + train::HEADER_LEN + ACK_OPTION_LEN + subframe::HEADER_LEN;
    overhead + 2 + frame.payload().len() <= train_max
}

/// Our mark on this link, where frames may go to this peer as they are: a mark has no sequence, and no
/// copy is kept, so only while there is one way, its queue does not let them overtake trains, and the peer,
/// who takes them, sees that it keeps order. While trains say what must not be overtaken, only they can. Nor does a mark say
/// what arrives, by which the window is bounded: while a queue stands that is not the link's own, only trains keep it short.
pub(super) fn mark_for(config: &Config, peer: &Peer, link: &Link, now: Instant) -> Option<MacAddr> {
    // A network that does not let one of our marks pass does not let the other.
    let is_passed =
        |path: &Path| path.direct.is_known() && path.direct_kinds.kind() == DirectKind::Source;
    let may_pass = |path: &Path| {
        !path.errors.wants_trains() && (!both_take_direct(config, peer) || is_passed(path))
    };
    let usable = config.marked_frames
        && peer.capabilities & capability::MARKED_FRAMES != 0
        && peer.paths.len() == 1
        && peer.paths.iter().all(may_pass)
        && !peer.may_go_again_alone(peer.queues.served_band().lane)
        && peer.goes_in_turn(peer.queues.served_band().lane, now)
        && link.order != LinkOrder::Flow
        && !peer.paths.iter().any(|path| path.flight.has_queue());
    link.state.mark.filter(|_| usable)
}
