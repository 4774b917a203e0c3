//! A member link from the host's side: its interface, and the guard on it.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;

use packtrain_proto::config::{LinkId, LinkSettings, LinkState, mark_of};
use packtrain_proto::direct::DirectSource;
use packtrain_proto::direct::kinds::DirectKind;
use packtrain_proto::stats::Traffic;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use crate::daemon::Line;
use crate::events::{LinkBecause, LinkChange, What};
use crate::linux::guard::{Attachment, GivesTo, Guard, GuardError, Host, UnmarkedSource, Verdict};
use crate::linux::host_state::{Change, HostState, Outcome, Setting};
use crate::linux::netlink::{InterfaceAddress, Link, Netlink};
use crate::linux::tc;
use crate::settings::links::MemberLink;
use crate::settings::values::InterfaceName;
use crate::settings::{LINK_MTU_MIN, Settings};
use crate::status::{LinkCondition, LinkFacts};

/// What links are attached with.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) settings: Settings,
    /// `pt0`'s address, as it was given.
    pub(super) address: MacAddr,
    pub(super) attachment: Attachment,
    pub(super) netlink: Netlink,
    pub(super) journal: HostState,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: LinkId,
    pub(super) name: InterfaceName,
    used: LinkSettings,
    attached: Option<Attached>,
    /// Why it could not join, until it does.
    trouble: Option<String>,
    /// Of earlier attachments.
    guarded_before: Guarded,
}

/// What guards of a link have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guarded {
    /// Given to `pt0` past the engine.
    pub(super) direct: Traffic,
    /// Ours, and given to nobody.
    pub(super) lost: u64,
}

#[derive(Debug)]
pub(super) struct Attached {
    /// As netlink told it last.
    pub(super) link: Link,
    joined_at: Instant,
    pub(super) guard: Guard,
    /// When the guard began to give elsewhere, or no longer to a socket; until the move is over.
    pub(super) reception_moved_at: Option<Instant>,
    pub(super) reception_look_at: Instant,
    /// What its qdisc had dropped before.
    qdisc_drops: u32,
}

impl Member {
    /// `id` is the line's number for it.
    pub(super) fn new(id: LinkId, MemberLink { name, used }: MemberLink) -> Member {
        Member {
            id,
            name,
            used,
            attached: None,
            trouble: None,
            guarded_before: Guarded::default(),
        }
    }

    pub(super) fn ifindex(&self) -> Option<u32> {
        self.attached.as_ref().map(|attached| attached.link.ifindex)
    }

    /// Its interface, since when it has been in the line, and what keeps its guard.
    pub(super) fn guard_to_keep(&self) -> Option<(u32, Instant, BorrowedFd<'_>)> {
        let attached = self.attached.as_ref()?;
        let descriptor = attached.guard.descriptor_to_keep()?;
        Some((attached.link.ifindex, attached.joined_at, descriptor))
    }

    /// Since when its interface has been in the line.
    pub(super) fn joined_at(&self) -> Option<Instant> {
        self.attached.as_ref().map(|attached| attached.joined_at)
    }

    /// Its interface is there: guards it, and gives it to the line.
    pub(super) fn attach(
        &mut self,
        link: &Link,
        line: &mut Line,
        site: &mut Site,
        now: Instant,
    ) -> Result<(), String> {
        let result = self.try_attach(link, line, site, now);
        if result.is_err() {
            site.restore(link.ifindex);
        }
        self.trouble = result.as_ref().err().cloned();
        result
    }

    fn try_attach(
        &mut self,
        link: &Link,
        line: &mut Line,
        site: &mut Site,
        now: Instant,
    ) -> Result<(), String> {
        if !link.is_ethernet {
            return Err(format!("{} is not an Ethernet interface", link.name));
        }
        site.prepare(link)?;
        // First the guard, then the socket with its filter: no frame is ever ours and the link's
        // own stack's at once.
        let text = |error: GuardError| error.to_string();
        let host = Host {
            ifindex: line.tap_ifindex(),
            address: site.address,
        };
        let guard = Guard::attach(link.ifindex, link.address, host, site.attachment);
        let mut guard = guard.map_err(text)?;
        let reception = guard.best_reception();
        guard.give_to(GivesTo::One(reception)).map_err(text)?;
        guard
            .set_sources(&line.marks(), &marked(&line.direct_sources()))
            .map_err(text)?;
        guard.set_link_number(self.id.0).map_err(text)?;
        if site.settings.direct_vlan.is_some() {
            let set = guard.set_direct_vlan(site.settings.direct_vlan);
            set.map_err(text)?;
        }
        let mut attached = Attached {
            link: link.clone(),
            joined_at: now,
            guard,
            reception_moved_at: None,
            reception_look_at: now,
            qdisc_drops: tc::root_drops(&mut site.netlink, link.ifindex).unwrap_or_default(),
        };
        let addresses = site.netlink.addresses(link.ifindex);
        let addresses = addresses.map_err(|e| e.to_string())?;
        attached.set_addresses(&addresses)?;
        let state = state_of(link, &site.settings);
        let filter = attached.filter_of(reception);
        line.link_appeared(self.name.as_str(), link.ifindex, state, filter)
            .map_err(|e| format!("its packet sockets: {e}"))?;
        line.set_link_settings(self.id, self.used);
        self.attached = Some(attached);
        Ok(())
    }

    pub(super) fn used(&self) -> LinkSettings {
        self.used
    }

    /// It is used for something else from now on.
    pub(super) fn use_for(&mut self, used: LinkSettings, line: &mut Line) {
        self.used = used;
        line.set_link_settings(self.id, used);
    }

    /// Its interface is no more, and the line knows.
    pub(super) fn detach(&mut self) {
        self.guarded_before = self.guarded();
        self.attached = None;
    }

    /// Its interface is not as it was: tells the line, and gives what there is to tell others.
    pub(super) fn changed(
        &mut self,
        link: &Link,
        line: &mut Line,
        settings: &Settings,
    ) -> Vec<What> {
        let mut told = Vec::new();
        let Some(attached) = &mut self.attached else {
            return told;
        };
        let before = attached.link.clone();
        attached.link = link.clone();
        if let Err(error) = attached.guard.set_link_address(link.address) {
            tracing::warn!("{}: {error}", self.name);
        }
        let state = state_of(link, settings);
        if has_blinked(&before, link) {
            // What was under way then is lost all the same.
            let dark = LinkState {
                carrier: false,
                ..state
            };
            line.link_changed(link.ifindex, dark);
            told.push(down(&self.name, link, LinkBecause::CarrierLost));
            told.push(up(&self.name, link));
        }
        line.link_changed(link.ifindex, state);
        match (down_because(&before), down_because(link)) {
            (before, now) if before == now => {}
            (_, Some(because)) => told.push(down(&self.name, link, because)),
            (Some(_), None) => told.push(up(&self.name, link)),
            (None, None) => {}
        }
        attached.look_at_reception_soon();
        if before.name != link.name {
            tracing::info!(
                "{} is named {} now, and stays in the line",
                before.name,
                link.name
            );
        }
        if before.mtu != link.mtu {
            tracing::info!("{} has an MTU of {}", self.name, link.mtu);
        }
        told
    }

    /// What there is to tell of it when it has joined.
    pub(super) fn joined(&self, link: &Link) -> Vec<What> {
        let joined = What::Link {
            link: self.name.to_string(),
            state: LinkChange::Joined,
            because: None,
            mtu: Some(link.mtu),
            address: Some(link.address.to_string()),
        };
        let because = down_because(link).map(|because| match because {
            LinkBecause::CarrierLost => LinkBecause::NoCarrier,
            other => other,
        });
        let hindered = because.map(|because| down(&self.name, link, because));
        [Some(joined), hindered].into_iter().flatten().collect()
    }

    /// It is up, and nobody is at the other end of its cable.
    pub(super) fn has_no_carrier(&self) -> bool {
        let attached = self.attached.as_ref();
        attached.is_some_and(|a| condition_of(&a.link) == LinkCondition::NoCarrier)
    }

    /// Its driver tells when it has none; one that is not there has none.
    pub(super) fn reports_carrier(&self) -> bool {
        let attached = self.attached.as_ref();
        attached.is_none_or(|attached| attached.link.reports_carrier)
    }

    /// Whether this tells of its carrier what is not known yet. It may have been asked for before what is known was told.
    pub(super) fn is_news(&self, seen: &Link) -> bool {
        self.attached
            .as_ref()
            .is_some_and(|attached| is_newer(&attached.link, seen))
    }

    /// Whether anything else about it is other than it was, and it has not been on and off since it was seen so.
    pub(super) fn has_changed(&self, seen: &Link) -> bool {
        self.attached
            .as_ref()
            .is_some_and(|attached| attached.link != *seen && !is_newer(seen, &attached.link))
    }

    /// What peers' frames are known by.
    pub(super) fn set_sources(&mut self, marks: &[MacAddr], direct: &[DirectSource]) {
        let Some(attached) = &mut self.attached else {
            return;
        };
        match attached.guard.set_sources(marks, &marked(direct)) {
            Ok(0) => {}
            Ok(refused) => tracing::warn!("{refused} marks of peers are refused on {}", self.name),
            Err(error) => tracing::warn!("{}: {error}", self.name),
        }
        let on_this = direct
            .iter()
            .filter(|s| s.kind != DirectKind::Source && s.link == Some(self.id));
        let unmarked: Vec<_> = on_this
            .map(|source| UnmarkedSource {
                link: source.outer_source,
                pt0: source.address,
                is_tagged: source.kind == DirectKind::Vlan,
            })
            .collect();
        match attached.guard.set_unmarked(&unmarked) {
            Ok(0) => {}
            Ok(more) => tracing::warn!(
                "too many peers on {} without a mark: the direct frames of {more} are lost",
                self.name
            ),
            Err(error) => tracing::warn!("{}: {error}", self.name),
        }
    }

    /// What the guards of this link have counted, ever.
    pub(super) fn guarded(&self) -> Guarded {
        let counters = self.attached.as_ref().map(|a| a.guard.counters());
        let now = counters.and_then(Result::ok).unwrap_or_default();
        let before = self.guarded_before;
        Guarded {
            direct: Traffic {
                frames: before.direct.frames + now.direct.frames,
                bytes: before.direct.bytes + now.direct.bytes,
            },
            lost: before.lost + now.ingress.get(Verdict::Lost),
        }
    }

    /// What the link's own qdisc has dropped since it joined. It begins anew with another qdisc.
    pub(super) fn qdisc_drops(&self, netlink: &mut Netlink) -> u64 {
        let Some(attached) = &self.attached else {
            return 0;
        };
        let now = tc::root_drops(netlink, attached.link.ifindex).unwrap_or_default();
        let before = attached.qdisc_drops;
        u64::from(now.checked_sub(before).unwrap_or(now))
    }

    pub(super) fn set_promiscuous(&mut self, promiscuous: bool) {
        let Some(attached) = &mut self.attached else {
            return;
        };
        if let Err(error) = attached.guard.set_promiscuous(promiscuous) {
            tracing::warn!("{}: {error}", self.name);
        }
        attached.look_at_reception_soon();
    }

    /// Takes frames where the link's use allows it, if it is time to look; says when it is again.
    pub(super) fn step_reception(&mut self, line: &mut Line, now: Instant) -> Option<Instant> {
        let attached = self.attached.as_mut()?;
        if now >= attached.reception_look_at {
            attached.step_reception(line, now);
        }
        Some(attached.reception_look_at)
    }

    /// The link's own addresses have changed, for which it goes on answering ARP.
    pub(super) fn set_addresses(&mut self, addresses: &[InterfaceAddress]) {
        if let Some(attached) = &mut self.attached
            && let Err(error) = attached.set_addresses(addresses)
        {
            tracing::warn!("{}: {error}", self.name);
        }
    }

    pub(super) fn facts(&self) -> LinkFacts {
        let link = self.attached.as_ref().map(|attached| &attached.link);
        LinkFacts {
            id: self.id,
            name: self.name.to_string(),
            ifindex: link.map(|l| l.ifindex),
            condition: link.map_or(LinkCondition::Absent, condition_of),
            mtu: link.map(|l| l.mtu),
            address: link.map(|l| l.address),
            used: self.used,
            queue: None,
            direct_tx: Traffic::default(),
            direct_rate: None,
            direct_shaper: None,
            direct_rx: Traffic::default(),
            drops: Vec::new(),
        }
    }

    /// What a person should know of it beyond its condition.
    pub(super) fn warning(&self) -> Option<String> {
        if let Some(trouble) = &self.trouble {
            return Some(format!("{} cannot join: {trouble}", self.name));
        }
        let link = &self.attached.as_ref()?.link;
        let renamed = link.name != self.name.as_str();
        renamed.then(|| format!("{} is named {} now", self.name, link.name))
    }
}

/// Direct marks of peers, each with the `pt0` that it is of.
fn marked(direct: &[DirectSource]) -> Vec<(MacAddr, MacAddr)> {
    let marked = direct.iter().filter(|s| s.kind == DirectKind::Source);
    marked.map(|s| (s.outer_source, s.address)).collect()
}

impl Site {
    /// What is changed on the link itself, written down beforehand.
    fn prepare(&mut self, link: &Link) -> Result<(), String> {
        if self.attachment == Attachment::Clsact {
            self.journal
                .expect_clsact(link.ifindex)
                .map_err(|e| e.to_string())?;
        }
        // A veth receives bulk as single segments otherwise. Others have it by default; who
        // switched it off there had a reason.
        if link.kind.as_deref() == Some("veth")
            && let Err(error) = self.journal.set(link.ifindex, Setting::Gro, 1)
        {
            tracing::debug!("{error}");
        }
        Ok(())
    }

    /// Undoes what was changed on a link that has left, or never joined.
    pub(super) fn restore(&mut self, ifindex: u32) {
        match self.journal.restore_interface(ifindex) {
            Ok(outcomes) => log_failures(&outcomes),
            Err(error) => tracing::warn!("{error}"),
        }
    }

    /// Deletes the interfaces of the queue before a link that are known by this address, if they are still there.
    pub(super) fn delete_queue(&mut self, address: &str) {
        match self.journal.delete_interface(address) {
            Ok(outcomes) => log_failures(&outcomes),
            Err(error) => tracing::warn!("{error}"),
        }
    }

    /// Whether there are such interfaces, of this daemon or a former one.
    pub(super) fn has_queues(&self) -> bool {
        !self.journal.interfaces().is_empty()
    }

    /// … all that were left.
    pub(super) fn delete_all_queues(&mut self) {
        let ours = self.journal.interfaces();
        ours.into_iter()
            .for_each(|address| self.delete_queue(&address));
    }

    /// Undoes everything.
    pub(super) fn restore_all(mut self) {
        match self.journal.restore() {
            Ok(outcomes) => log_failures(&outcomes),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}

fn log_failures(outcomes: &[(Change, Outcome)]) {
    for (change, outcome) in outcomes {
        match outcome {
            Outcome::Failed { reason } => tracing::warn!("not undone: {change}: {reason}"),
            _ => tracing::debug!("{change}: {outcome:?}"),
        }
    }
}

impl Attached {
    fn set_addresses(&mut self, addresses: &[InterfaceAddress]) -> Result<(), String> {
        let own: Vec<Ipv4Addr> = addresses
            .iter()
            .filter_map(|address| match address.prefix.address {
                IpAddr::V4(v4) => Some(v4),
                IpAddr::V6(_) => None,
            })
            .collect();
        self.guard
            .set_link_addresses(&own)
            .map_err(|e| e.to_string())?;
        Ok(())
    }
}

/// As the engine is to see it.
fn state_of(link: &Link, settings: &Settings) -> LinkState {
    LinkState {
        address: link.address,
        mark: mark_of(link.address).filter(|_| settings.marked_frames),
        // The largest is that of a loopback or a veth, and larger than any frame.
        mtu: u16::try_from(link.mtu).unwrap_or(u16::MAX),
        // Too small an MTU makes trains of headers: such a link is as good as unplugged.
        carrier: condition_of(link) == LinkCondition::Up && link.mtu >= LINK_MTU_MIN,
        rate_bps: None,
    }
}

/// What keeps an interface from carrying anything.
fn down_because(link: &Link) -> Option<LinkBecause> {
    match condition_of(link) {
        LinkCondition::Absent => Some(LinkBecause::InterfaceGone),
        LinkCondition::Down => Some(LinkBecause::SetDown),
        LinkCondition::NoCarrier => Some(LinkBecause::CarrierLost),
        LinkCondition::Up if link.mtu < LINK_MTU_MIN => Some(LinkBecause::MtuTooSmall),
        LinkCondition::Up => None,
    }
}

fn down(name: &InterfaceName, link: &Link, because: LinkBecause) -> What {
    What::Link {
        link: name.to_string(),
        state: LinkChange::Down,
        because: Some(because),
        mtu: Some(link.mtu),
        address: None,
    }
}

fn up(name: &InterfaceName, link: &Link) -> What {
    What::Link {
        link: name.to_string(),
        state: LinkChange::Up,
        because: None,
        mtu: Some(link.mtu),
        address: None,
    }
}

/// Whether it lost its carrier and has it again since it was looked at.
fn has_blinked(before: &Link, now: &Link) -> bool {
    let is_up = |link| condition_of(link) == LinkCondition::Up;
    is_up(before) && is_up(now) && before.carrier_losses != now.carrier_losses
}

/// What was seen of an interface's carrier after it was known so. A carrier is lost, which the kernel counts, and then comes back.
fn is_newer(known: &Link, seen: &Link) -> bool {
    let comes_back = !known.carrier && seen.carrier;
    let is_newer = match (known.carrier_losses, seen.carrier_losses) {
        // Nobody counts for a driver that does not tell.
        _ if !seen.reports_carrier => known.carrier != seen.carrier,
        (Some(known), Some(seen)) if known == seen => comes_back,
        (Some(known), Some(seen)) => (seen.wrapping_sub(known) as i32) > 0,
        _ => known.carrier != seen.carrier,
    };
    known.up && seen.up && is_newer
}

fn condition_of(link: &Link) -> LinkCondition {
    match (link.up, link.carrier) {
        (false, _) => LinkCondition::Down,
        (true, false) => LinkCondition::NoCarrier,
        (true, true) => LinkCondition::Up,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_asked_for_before_it_was_told_otherwise_is_no_news() {
        let link = |losses: u32, carrier: bool| Link {
            carrier,
            carrier_losses: Some(losses),
            ..crate::running::link_use::tests::link(1)
        };
        // In this order it comes and goes.
        let states = [link(3, true), link(4, false), link(4, true), link(5, false)];
        for (i, known) in states.iter().enumerate() {
            for (j, seen) in states.iter().enumerate() {
                assert_eq!(is_newer(known, seen), j > i, "{known:?} {seen:?}");
            }
        }
        let silent = |carrier| Link {
            reports_carrier: false,
            ..link(0, carrier)
        };
        for (known, seen) in [(true, false), (false, true), (true, true)] {
            let is_other = known != seen;
            assert_eq!(is_newer(&silent(known), &silent(seen)), is_other);
        }
        let uncounted = |carrier| Link {
            carrier_losses: None,
            ..link(0, carrier)
        };
        assert!(is_newer(&uncounted(true), &uncounted(false)));
        assert!(!is_newer(&uncounted(true), &uncounted(true)));
    }
}
