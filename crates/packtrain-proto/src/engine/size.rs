//! How long trains are made, path by path, as what is measured of it changes; and whether an only path is looked at for bit errors.

use super::Engine;
use super::paths::link_of;
use crate::config::SizeLaw;
use crate::peer::{Path, Peer};
use crate::stats::PathSize;
use crate::time::Instant;
use crate::trunk::error_watch::Unnumbered;
use crate::trunk::lane::LaneId;
use crate::unit_size::{self, SizeBecause, best};
use crate::wire::ethernet::HEADER_LEN;

/// Of a million of the trains of the last seconds so many were lost, and it is no accident.
const LOSS_PPM: u32 = 500;

/// Whether what a path of the peer loses goes again, or would where it is seen to lose.
pub(super) fn repairs(peer: &Peer) -> bool {
    match peer.paths.len() {
        1 => peer.could_mend(),
        _ => peer.repairs(LaneId::FIRST).is_some(),
    }
}

impl Engine {
    pub(super) fn follow_all_sizes(&mut self, now: Instant) {
        for slot in self.peers.slots() {
            let may_change = |peer: &Peer| {
                let mut paths = peer.paths.iter();
                peer.up && paths.any(|path| self.may_change_size(path, now))
            };
            if self.peers.get(slot).is_some_and(may_change) {
                self.follow_sizes(slot, now);
            }
        }
    }

    /// Of `pt0`.
    fn frame_max(&self) -> usize {
        usize::from(self.config.mtu) + HEADER_LEN
    }

    /// Bytes of a train that has such a frame whole, whatever else it says.
    fn whole_frame(&self) -> usize {
        self.frame_max() + unit_size::overhead()
    }

    /// Looking makes nobody due.
    fn may_change_size(&self, path: &Path, now: Instant) -> bool {
        let flight = &path.flight;
        let is_fixed = matches!(self.config.size, SizeLaw::Fixed(_));
        path.errors.wants_trains()
            || flight.errors().is_some()
            || flight.has_error_news(now)
            || flight.black_hole_above(now).is_some()
            || path.size.chosen().is_some() != is_fixed
    }

    /// Something was lost, or some time is over.
    pub(super) fn follow_sizes(&mut self, slot: usize, now: Instant) {
        let law = self.config.size;
        let (frame_max, whole) = (self.frame_max(), self.whole_frame());
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let repairs = repairs(peer);
        let is_alone = peer.paths.len() == 1;
        let mut has_changed = false;
        for path in &mut peer.paths {
            let Some(link) = link_of(&self.links, path) else {
                continue;
            };
            let longest = link.frame_max();
            let known = path.flight.reckon_errors(now);
            if is_alone && path.errors.is_urgent() {
                path.flight.keep_doubt_of_long(now);
            }
            let on = path.conditions((longest, whole), repairs, now);
            if is_alone {
                // Where nothing goes again, shorter trains are all there is, and only for what is longer.
                let gains = on.repairs || best(law, &on).0 < frame_max.min(on.passes);
                let lost = path.flight.lost_trains();
                let (of, trains) = ((on.passes, gains), (path.trains_tx, lost));
                has_changed |= path.errors.follow(known, of, trains, now);
                let loses = path.flight.loss_ppm(now).is_some_and(|ppm| ppm >= LOSS_PPM);
                if known.is_none() && loses && gains && !path.flight.has_queue() {
                    has_changed |= path.errors.look(lost, now);
                }
            }
            if path.size.follow(law, &on, now) {
                let vanish = path.size.now(&on).1 == SizeBecause::LongLost;
                if vanish && is_alone && on.repairs {
                    let lost = path.flight.lost_trains();
                    path.errors.look_at_once(path.trains_tx, lost, now);
                }
                path.flight.set_train_max(path.train_max(longest));
                has_changed = true;
            }
        }
        if has_changed {
            self.publish_paths();
        }
    }

    pub(super) fn path_size(&self, peer: &Peer, path: &Path, now: Instant) -> PathSize {
        let Some(link) = self.link(path.link) else {
            return PathSize::default();
        };
        let on = path.conditions((link.frame_max(), self.whole_frame()), repairs(peer), now);
        let (mut bytes, mut because) = path.size.now(&on);
        if path.sand_max < bytes {
            (bytes, because) = (path.sand_max, SizeBecause::SandDelay);
        }
        let is_alone = peer.paths.len() == 1;
        PathSize {
            bytes: u16::try_from(bytes.saturating_sub(HEADER_LEN)).unwrap_or(u16::MAX),
            because,
            errors: path.flight.errors(),
            mends: is_alone && path.errors.mends() && repairs(peer),
            looks: is_alone && path.errors.wants_trains() && !path.errors.mends(),
        }
    }

    /// What both ends have counted of frames that went past them.
    pub(super) fn note_unnumbered_loss(&mut self, slot: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        if !peer.could_mend() {
            return;
        }
        let [path] = &mut peer.paths[..] else {
            return;
        };
        let (sent, lost) = (path.direct.sent(), path.direct.lost());
        let trains_lost = path.flight.lost_trains();
        match path.errors.on_unnumbered(sent, lost, trains_lost, now) {
            Unnumbered::AsBefore => {}
            Unnumbered::Looks => self.publish_paths(),
            Unnumbered::ManyLost => {
                path.flight.doubt_long(now);
                self.follow_sizes(slot, now);
                self.look_at_only_path(slot, now);
            }
        }
    }

    /// Where trains are no longer than each Ethernet takes, doubt makes them no shorter: what is lost may still be found.
    fn look_at_only_path(&mut self, slot: usize, now: Instant) {
        let Some([path]) = self.peers.get_mut(slot).map(|peer| &mut peer.paths[..]) else {
            return;
        };
        if path.errors.look(path.flight.lost_trains(), now) {
            self.publish_paths();
        }
    }
}
