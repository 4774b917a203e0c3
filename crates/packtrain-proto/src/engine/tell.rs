//! What we tell a peer of what is under way on which link, so that it knows which gaps are lost.

use super::Engine;
use super::paths::link_of;
use super::transmit::Outgoing;
use crate::config::LinkId;
use crate::peer::{Path, Peer};
use crate::time::{Duration, Instant};
use crate::trunk::lane::LaneId;
use crate::wire::hello::capability;
use crate::wire::sequence::Sequence;
use crate::wire::train::{NEWEST_MAX, Newest, REPLAYED, REPLAYED_FROM};

/// So often is said again what is under way for long: much more often than a receiver stops waiting for
/// it, and before a link of which acknowledgements were lost seems dead.
const REPEAT_INTERVAL: Duration = Duration::from_millis(100);

/// What one train tells.
#[derive(Debug)]
pub(super) struct Told {
    entries: [Newest; NEWEST_MAX],
    len: usize,
}

impl Told {
    pub(super) fn entries(&self) -> &[Newest] {
        &self.entries[..self.len]
    }

    fn push(&mut self, newest: Newest) {
        if let Some(entry) = self.entries.get_mut(self.len) {
            *entry = newest;
            self.len += 1;
        }
    }
}

/// What may still arrive by other links than `by`. A train or marker by that link says of it that all
/// before has arrived or is lost.
pub(super) fn under_way(peer: &mut Peer, lane: LaneId, by: LinkId, now: Instant) -> Told {
    let mut told = Told {
        entries: [Newest::default(); NEWEST_MAX],
        len: 0,
    };
    if peer.paths.len() == 1 && !peer.tx_of(lane).replay.may_have_gone() {
        return told;
    }
    let mut paths = peer.paths.iter();
    let may_come = paths.any(|path| path.flight.may_bring_replays(now));
    if let Some(train) = peer.tx_mut(lane).replay.newest(may_come) {
        told.push(Newest {
            link: REPLAYED,
            train,
        });
        let in_flight = peer.paths.iter();
        let in_flight = in_flight.filter_map(|path| path.flight.oldest_replay(lane));
        let oldest = in_flight
            .chain(peer.tx_of(lane).replay.oldest())
            .reduce(Sequence::older_of);
        if let Some(train) = oldest.filter(|_| peer.capabilities & capability::KNOWS_FROM != 0) {
            told.push(Newest {
                link: REPLAYED_FROM,
                train,
            });
        }
    }
    for path in peer.paths.iter().filter(|path| path.link != by) {
        if let Some(train) = path.flight.newest_outstanding(lane) {
            told.push(Newest {
                link: path.link.0,
                train,
            });
        }
    }
    told
}

/// Whether anything of the lane is under way that may have to be named.
fn has_trains_out(peer: &Peer, lane: LaneId) -> bool {
    let is_out = |path: &Path| path.flight.outstanding_in(lane) > 0;
    !peer.tx_of(lane).replay.is_empty() || peer.paths.iter().any(is_out)
}

/// What left last by this path goes again, and nothing has said so since: its receiver gives it up as soon as what it has missed first, if
/// the copy is lost as well.
fn is_unsaid(peer: &Peer, lane: LaneId, path: &Path) -> bool {
    path.flight.went_again_at(lane).is_some_and(|again_at| {
        let mut others = peer.paths.iter();
        others.all(|path| path.flight.told_at(lane) <= again_at)
    })
}

/// There are several links to it, or what the only one loses may go again.
fn tells(peer: &Peer) -> bool {
    peer.paths.len() > 1 || peer.repairs_alone()
}

/// When the receiver has to be told again by this link what of the lane is under way on the others.
fn repeat_due(peer: &Peer, lane: LaneId, path: &Path) -> Option<Instant> {
    let repeats = !path.is_silent() && has_trains_out(peer, lane);
    repeats.then(|| path.flight.told_at(lane) + REPEAT_INTERVAL)
}

/// When the next marker may have to go by this path.
pub(super) fn marker_due(peer: &Peer, path: &Path) -> Option<Instant> {
    if !tells(peer) {
        return None;
    }
    let of_lane = |lane| [path.flight.marker_due(lane), repeat_due(peer, lane, path)];
    let times = peer.lanes_tx().flat_map(of_lane);
    times.flatten().min()
}

impl Engine {
    /// The end of what a link carries is not acknowledged, and newer trains went by others: it may be lost,
    /// and they would wait for it. A marker behind it says that nothing comes any more. And what is under
    /// way for long, on links that may be dead, is named again by each that works: the receiver waits as
    /// long as we try.
    pub(super) fn take_marker(&mut self, now: Instant) -> Option<Outgoing> {
        let mut from = 0;
        while let Some(slot) = self.peers.due.next(from, now) {
            from = slot + 1;
            let Some(peer) = self.peers.get_mut(slot).filter(|peer| tells(peer)) else {
                continue;
            };
            for lane in peer.lanes_tx() {
                let newest = peer.tx_of(lane).next_train.minus(1);
                for at in 0..peer.paths.len() {
                    let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
                    let repeats = is_due(repeat_due(peer, lane, &peer.paths[at]));
                    let is_unsaid = is_unsaid(peer, lane, &peer.paths[at]);
                    let path = &mut peer.paths[at];
                    let ends = is_due(path.flight.marker_due(lane));
                    if !ends && !repeats {
                        continue;
                    }
                    path.flight.on_marker_sent(lane, now);
                    let last = path.flight.newest_outstanding(lane);
                    let is_behind = last.is_some_and(|train| newest.is_newer_than(train));
                    let is_asked = repeats && path.flight.outstanding_in(lane) > 0;
                    let is_open = link_of(&self.links, path).is_some();
                    let link = path.link;
                    let tells = repeats && !under_way(peer, lane, link, now).entries().is_empty();
                    if is_open && (ends && (is_behind || is_unsaid) || is_asked || tells) {
                        return self.send_marker(slot, lane, link, is_asked, now);
                    }
                }
            }
        }
        None
    }
}
