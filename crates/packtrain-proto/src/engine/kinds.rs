//! By what direct frames are known on each path: what the links allow, and what is tried.

use super::Engine;
use super::direct_counts::both_take_direct;
use crate::buffer::Buffer;
use crate::config::{LinkId, Unused, direct_mark_of};
use crate::direct::DirectSource;
use crate::direct::kinds::{DirectKind, KindRefused, Kinds};
use crate::link::Link;
use crate::peer::{Path, Peer};
use crate::peer_table::PeerTable;
use crate::time::Instant;
use crate::wire::ethernet::{MacAddr, ether_type};
use crate::wire::train::DirectReport;

const ADDRESSES_LEN: usize = 12;
/// Of a VLAN.
pub(super) const TAG_LEN: usize = 4;
/// The other bits of a tag are its priority, which switches may change.
const VLAN_ID_MASK: u16 = 0x0fff;

/// The outer source of direct frames by this link.
pub(super) fn outer_source(link: &Link, kind: DirectKind) -> Option<MacAddr> {
    let mark = link.state.mark?;
    Some(match kind {
        DirectKind::Source => direct_mark_of(mark),
        DirectKind::None | DirectKind::Vlan => link.state.address,
    })
}

/// By what a DIRECT has come that had no tag: the link's own address is that of all other messages.
pub(super) fn kind_of(message: &Buffer, peers: &PeerTable) -> DirectKind {
    let source = MacAddr::from_slice(&message[6..12]);
    match peers.owner_of_link(source) {
        Some(_) => DirectKind::None,
        None => DirectKind::Source,
    }
}

/// Puts the message into the VLAN.
pub(super) fn put_tag(message: &mut Buffer, vlan: u16) {
    let len = message.len();
    let fits = message.push(&[0; TAG_LEN]);
    debug_assert!(fits);
    message.copy_within(ADDRESSES_LEN..len, ADDRESSES_LEN + TAG_LEN);
    let [a, b] = ether_type::VLAN.to_be_bytes();
    let [c, d] = vlan.to_be_bytes();
    message[ADDRESSES_LEN..ADDRESSES_LEN + TAG_LEN].copy_from_slice(&[a, b, c, d]);
}

/// Takes it out again, if it is of this VLAN and one of ours.
pub(super) fn take_tag(message: &mut Buffer, vlan: Option<u16>) -> bool {
    let tag = message.get(ADDRESSES_LEN..ADDRESSES_LEN + TAG_LEN + 2);
    let (Some(vlan), Some(&[a, b, c, d, e, f])) = (vlan, tag) else {
        return false;
    };
    let word = |high, low| u16::from_be_bytes([high, low]);
    let is_ours = word(a, b) == ether_type::VLAN
        && word(c, d) & VLAN_ID_MASK == vlan
        && word(e, f) == ether_type::PACKTRAIN;
    if is_ours {
        let len = message.len();
        message.copy_within(ADDRESSES_LEN + TAG_LEN..len, ADDRESSES_LEN);
        message.set_len(len - TAG_LEN);
    }
    is_ours
}

/// What the peer has answered.
pub(super) fn kind_in_use(path: &Path) -> Option<DirectKind> {
    path.direct.is_known().then(|| path.direct_kinds.kind())
}

impl Engine {
    /// What the link's own host has no use for. Tell it before the host answers for an address of the link.
    pub fn handle_link_use(&mut self, link: LinkId, unused: Unused, now: Instant) {
        let Some(known) = self.link_mut(link) else {
            return;
        };
        if std::mem::replace(&mut known.unused, unused) == unused {
            return;
        }
        // Peers must know at once, for they send to it.
        self.greeter.hurry(now);
        self.publish_paths();
    }

    /// Whether peers may send direct frames by this link without a mark.
    pub(super) fn offers_unmarked(&self, link: &Link) -> bool {
        link.unused.untagged && self.is_alone_on(link)
    }

    /// Whether peers may send direct frames by this link in our VLAN for them.
    pub(super) fn offers_vlan(&self, link: &Link) -> bool {
        self.config.direct_vlan.is_some() && link.unused.vlan && self.is_alone_on(link)
    }

    fn is_alone_on(&self, link: &Link) -> bool {
        let mut paths = self.peers.iter().filter_map(|(_, p)| p.path(link.id));
        self.config.direct_frames && paths.all(|path| path.other_line.is_none())
    }

    /// What stands against a kind, whether or not it passes.
    fn refused(&self, peer: &Peer, path: &Path, kind: DirectKind) -> Option<KindRefused> {
        let link = self.link(path.link)?;
        let mut records = peer.links.iter();
        let record = records.find(|record| record.link == path.remote_link);
        let (ours, theirs) = match kind {
            DirectKind::Source => return None,
            DirectKind::None => (
                self.offers_unmarked(link),
                record.is_some_and(|record| record.unused_by_host),
            ),
            DirectKind::Vlan => (
                self.offers_vlan(link),
                peer.direct_vlan == self.config.direct_vlan
                    && record.is_some_and(|record| record.takes_vlan),
            ),
        };
        if path.other_line.is_some() {
            Some(KindRefused::OtherLine)
        } else if !ours {
            Some(KindRefused::OwnTraffic)
        } else if !theirs {
            Some(KindRefused::NotOffered)
        } else {
            None
        }
    }

    fn usable_kinds(&self, peer: &Peer, path: &Path) -> Kinds {
        Kinds::with(|kind| self.refused(peer, path, kind).is_none())
    }

    /// The VLAN of frames of this kind.
    pub(super) fn vlan_of(&self, kind: DirectKind) -> Option<u16> {
        self.config.direct_vlan.filter(|_| kind == DirectKind::Vlan)
    }

    /// Those that are not used, each with its reason.
    pub(super) fn kinds_refused(&self, peer: &Peer, path: &Path) -> Vec<(DirectKind, KindRefused)> {
        if !both_take_direct(&self.config, peer) {
            return Vec::new();
        }
        let choice = &path.direct_kinds;
        let others = DirectKind::ALL.into_iter();
        // Who names no VLAN need not be told of it.
        let others = others.filter(|kind| {
            kind_in_use(path) != Some(*kind)
                && (*kind != DirectKind::Vlan || self.config.direct_vlan.is_some())
        });
        let with_reason = others.map(|kind| {
            let tried = match choice.was_in_vain(kind) || choice.kind() == kind {
                true => KindRefused::Unanswered,
                false => KindRefused::NotTried,
            };
            (kind, self.refused(peer, path, kind).unwrap_or(tried))
        });
        with_reason.collect()
    }

    /// By what frames of a peer are known that have the addresses of links, on the links on which that is so.
    pub(super) fn unmarked_sources<'a>(
        &'a self,
        slot: usize,
        peer: &'a Peer,
    ) -> impl Iterator<Item = DirectSource> + 'a {
        peer.paths.iter().flat_map(move |path| {
            let owner = self.peers.owner_of_link(path.remote_address);
            let is_its_own = owner
                .is_some_and(|owner| owner.slot == slot && owner.remote_link == path.remote_link);
            let usable = self.usable_kinds(peer, path);
            let kinds = [DirectKind::None, DirectKind::Vlan].into_iter();
            let kinds = kinds.filter(move |kind| is_its_own && usable.has(*kind));
            kinds.map(|kind| DirectSource {
                outer_source: path.remote_address,
                kind,
                link: Some(path.link),
                address: peer.address,
            })
        })
    }

    /// It is time to ask on this path: by which kind.
    pub(super) fn choose_kind(&mut self, slot: usize, at: usize) {
        let Some(peer) = self.peers.get(slot) else {
            return;
        };
        let usable = self.usable_kinds(peer, &peer.paths[at]);
        if let Some(peer) = self.peers.get_mut(slot) {
            let path = &mut peer.paths[at];
            if path.direct_kinds.on_question(usable) {
                path.direct.try_anew(path.direct_kinds.is_seldom());
            }
        }
    }

    /// The peer speaks by this kind: ours may be another one from now on. What it has to say of the former one says
    /// nothing of this one.
    pub(super) fn follow_kind(
        &mut self,
        (slot, link): (usize, LinkId),
        by: DirectKind,
        mut report: DirectReport,
    ) -> DirectReport {
        let Some(peer) = self.peers.get(slot) else {
            return report;
        };
        let Some(path) = peer.path(link) else {
            return report;
        };
        let usable = self.usable_kinds(peer, path);
        let is_known = path.direct.is_known();
        if let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) {
            let choice = &mut path.direct_kinds;
            let moved = choice.on_report(by, report.wants_answer, is_known, usable);
            if path.direct_kinds.kind() != by {
                report.seen_sent = 0;
            }
            if moved {
                path.direct.try_anew(path.direct_kinds.is_seldom());
            }
        }
        report
    }

    /// Where the kind in use is possible no more, all begin anew.
    pub(super) fn leave_unusable_kinds(&mut self) {
        while let Some((slot, link)) = self.path_of_unusable_kind() {
            let peer = self.peers.get_mut(slot);
            let path = peer.and_then(|peer| peer.path_mut(link));
            let path = path.expect("it was found");
            path.direct_kinds.begin_anew();
            path.direct.try_anew(false);
        }
    }

    fn path_of_unusable_kind(&self) -> Option<(usize, LinkId)> {
        let paths = self.peers.iter().flat_map(|(slot, peer)| {
            let others = peer.paths.iter();
            let others = others.filter(|path| path.direct_kinds.kind() != DirectKind::Source);
            others.map(move |path| (slot, peer, path))
        });
        let mut unusable = paths
            .filter(|(_, peer, path)| !self.usable_kinds(peer, path).has(path.direct_kinds.kind()));
        unusable.next().map(|(slot, _, path)| (slot, path.link))
    }

    /// Another line speaks from there. Where it is a peer's link, frames without a mark of either line would look
    /// the same.
    pub(super) fn note_other_line(&mut self, link: LinkId, source: MacAddr, now: Instant) {
        let Some(owner) = self.peers.owner_of_link(source) else {
            return;
        };
        let peer = self.peers.get_mut(owner.slot);
        let Some(path) = peer.and_then(|peer| peer.path_mut(link)) else {
            return;
        };
        if path.remote_link == owner.remote_link && path.other_line.replace(now).is_none() {
            self.greeter.hurry(now);
            self.publish_paths();
        }
    }

    pub(super) fn forget_other_lines(&mut self, now: Instant) {
        let silence_max = self.config.limits.peer_silence_max;
        let is_over = |path: &Path| {
            let heard = path.other_line;
            heard.is_some_and(|at| now.since(at) > silence_max)
        };
        let over = |engine: &Engine| {
            let mut all = engine
                .peers
                .iter()
                .flat_map(|(slot, peer)| peer.paths.iter().map(move |path| (slot, path)));
            all.find(|(_, path)| is_over(path))
                .map(|(slot, path)| (slot, path.link))
        };
        while let Some((slot, link)) = over(self) {
            if let Some(path) = self.peers.get_mut(slot).and_then(|p| p.path_mut(link)) {
                path.other_line = None;
            }
        }
    }
}
