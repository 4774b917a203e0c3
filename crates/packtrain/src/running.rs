//! A line at work: the [`Line`] that moves frames, kept in step with its host.
//!
//! The line itself knows interfaces by what it is told. Here is who tells it: netlink (links that
//! come, go and change; what people do to `pt0` by hand), the control socket, and signals. All
//! are descriptors of the line's one event loop, so nothing here needs a lock or a thread.

mod address;
mod announce;
mod answer;
mod carriers;
mod classes;
mod direct;
mod events;
mod link_use;
mod links;
mod member;
mod mixing_time;
mod precedence;
mod reception;
mod shaper;
mod signals;
mod spread_frames;
mod start;
mod stay;

use std::collections::BTreeSet;

use packtrain_proto::config::LinkOrder;
use packtrain_proto::engine::Event;

use self::announce::Announcement;
use self::answer::Host;
use self::carriers::Carriers;
use self::direct::Direct;
use self::links::{Clearing, Leaving};
use self::member::{Member, Site};
use self::precedence::Precedence;
use self::shaper::DirectShaper;
pub use self::signals::Signals;
use self::stay::{Inheritance, Stay};
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::control::ControlServer;
use crate::daemon::Line;
use crate::events::{LineBecause, LinkBecause, LinkChange};
use crate::linux::intake::Intake;
use crate::linux::netlink::{Link, Monitor, NetEvent};
use crate::linux::tc;

/// The line's descriptors beside its own.
const SIGNALS: u8 = 0;
const MONITOR: u8 = 1;
const CONTROL: u8 = 2;

/// A line that stands.
#[derive(Debug)]
pub struct RunningLine {
    clock: Clock,
    precedence: Precedence,
    line: Line,
    members: Vec<Member>,
    /// At most as many as there are members.
    leaving: Vec<Leaving>,
    /// All of them are, and who asked for that is told when the last has left.
    clearing: Option<Clearing>,
    /// Where hosts without packtrain reach us has changed, and they are to be told once more.
    announcement: Option<Announcement>,
    carriers: Carriers,
    site: Site,
    /// `None` where the kernel has not what it takes.
    intake: Option<Intake>,
    /// `None` where it was not asked for, or the kernel has not what it takes.
    direct: Option<Direct>,
    shaper: DirectShaper,
    /// `None` where it was not asked for, or nothing would stay.
    stay: Option<Stay>,
    /// Until what a former daemon has left is carried by us.
    inheritance: Option<Inheritance>,
    host: Host,
    monitor: Monitor,
    signals: Signals,
    control: ControlServer,
    at_clean_end: Option<LastAct>,
}

/// What is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// `packtrain down`.
    Line,
    /// A signal: whoever has started it may start it again.
    Daemon,
}

struct LastAct(Box<dyn FnOnce()>);

impl std::fmt::Debug for LastAct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LastAct")
    }
}

impl RunningLine {
    /// What is left to do when the line has ended as it was asked to, before its name is free.
    pub fn at_clean_end(mut self, last: impl FnOnce() + 'static) -> RunningLine {
        self.at_clean_end = Some(LastAct(Box::new(last)));
        self
    }

    /// Moves frames until somebody ends it, and undoes everything; or leaves it to the keeper, when it is not the line
    /// that is to end but its daemon.
    pub fn run(mut self) -> Result<(), CliError> {
        match self.turns() {
            Ok(Ending::Line) => {
                self.tell_end(LineBecause::Asked, None);
                self.stop();
            }
            Ok(Ending::Daemon) => {
                if let Err(mut line) = self.leave_to_keeper() {
                    line.tell_end(LineBecause::Signal, None);
                    line.stop();
                }
            }
            Err(error) => {
                tracing::error!("{error}");
                self.tell_end(LineBecause::Failed, Some(error.to_string()));
                self.at_clean_end = None;
                self.stop();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Says goodbye to the peers and undoes everything.
    pub fn stop(self) {
        let RunningLine {
            mut line,
            members,
            site,
            control,
            at_clean_end,
            stay,
            inheritance,
            shaper,
            ..
        } = self;
        line.leave();
        // It holds the same, and nothing goes before it does.
        if let Some(stay) = stay {
            stay.end();
        }
        if let Some(inheritance) = inheritance {
            inheritance.end();
        }
        // First no frame moves, then the links' guards go, then what was changed goes back. The
        // name is free last: who waits for the end waits for all of this.
        drop(line);
        drop(members);
        shaper.end();
        site.restore_all();
        if let Some(LastAct(last)) = at_clean_end {
            last();
        }
        drop(control);
    }

    fn turns(&mut self) -> Result<Ending, CliError> {
        self.precedence.take(self.line.slept(), self.clock.now());
        loop {
            let woken = self
                .line
                .turn()
                .map_err(|e| CliError::Failed(e.to_string()))?;
            self.handle_events();
            self.step_direct();
            self.step_shaper();
            self.step_reception();
            self.step_inheritance();
            self.step_stay();
            self.step_removals();
            self.repeat_announcement();
            if woken.contains(SIGNALS) && self.signals.caught() {
                return Ok(Ending::Daemon);
            }
            if woken.contains(MONITOR) {
                self.follow_host()?;
            }
            self.look_at_carriers();
            if woken.contains(CONTROL) && self.answer() {
                return Ok(Ending::Line);
            }
            self.control.tell_followers();
            self.precedence.step(self.line.slept(), self.clock.now());
        }
    }

    /// What the engine has to tell.
    fn handle_events(&mut self) {
        while let Some(event) = self.line.poll_event() {
            if self.tell_on(&event) {
                continue;
            }
            match event {
                Event::MarksChanged => self.tell_sources(),
                Event::PathsChanged => {
                    // First who may be heard, then who may be spoken to.
                    self.tell_sources();
                    if let Some(direct) = &mut self.direct {
                        direct.publish(&mut self.line);
                    }
                }
                Event::DirectAsked {
                    link,
                    direct_mark,
                    address,
                } => {
                    if let Some(direct) = &self.direct {
                        direct.tell_counts(&mut self.line, (address, link), direct_mark);
                    }
                }
                Event::Drained { ticket } => {
                    if let Some(direct) = &mut self.direct {
                        direct.on_drained(&mut self.line, ticket, self.clock.now());
                    }
                }
                Event::FlowsRest => {
                    if let Some(direct) = &mut self.direct {
                        direct.urge(self.clock.now());
                    }
                }
                Event::LinkRetired { link } => self.finish_removal(link, true),
                Event::HomeMoved { link } => self.home_moved(link),
                Event::WaitsSwitched { on } => {
                    let how = if on {
                        "on: there is traffic enough"
                    } else {
                        "off"
                    };
                    tracing::debug!("waits for others are {how}");
                }
                Event::IntakeRate {
                    rate_bps,
                    frame_max,
                } => {
                    self.line.hold_host_back(rate_bps.is_some());
                    if let Some(intake) = &mut self.intake
                        && let Err(error) = intake.set_rate(rate_bps, frame_max)
                    {
                        tracing::warn!("{error}");
                    }
                }
                // Told on.
                Event::PeerUp { .. }
                | Event::PeerDown { .. }
                | Event::PathChanged { .. }
                | Event::PathRate { .. }
                | Event::PathMtu { .. }
                | Event::DirectChanged { .. }
                | Event::TierChanged { .. }
                | Event::StationUp { .. }
                | Event::StationDown { .. } => {}
            }
        }
    }

    fn step_direct(&mut self) {
        let Some(direct) = &mut self.direct else {
            return;
        };
        let now = self.clock.now();
        direct.step(&mut self.line, self.intake.as_mut(), now);
        if direct.look_is_due(now) {
            let are_several = self.members.len() > 1;
            // Of a former daemon, whose programs carry on meanwhile.
            let has_former = self.inheritance.is_some() && self.site.has_queues();
            for member in &self.members {
                let Some(ifindex) = member.ifindex() else {
                    continue;
                };
                // What cannot be seen is not trusted.
                let queue = tc::link_queue(&mut self.site.netlink, ifindex);
                let (order, has_queue) = match queue.ok().flatten() {
                    Some(queue) => (queue.order, queue.shows_backlog()),
                    None => (LinkOrder::Flow, true),
                };
                let order = match has_former || self.shaper.is_before(ifindex) {
                    true => LinkOrder::Flow,
                    false => order,
                };
                self.line.link_queue(ifindex, order, has_queue);
                if are_several {
                    direct.prepare_link(ifindex, member.id, has_queue);
                }
            }
            direct.publish(&mut self.line);
            // Of what is on top of a link nobody tells that it goes.
            for ifindex in self.member_indexes() {
                self.read_member_addresses(ifindex);
            }
        }
    }

    fn tell_sources(&mut self) {
        let (marks, direct) = (self.line.marks(), self.line.direct_sources());
        for member in &mut self.members {
            member.set_sources(&marks, &direct);
        }
    }

    /// What has changed about the host's interfaces.
    ///
    /// An event says how things were when it was sent, and another may have passed it by. So
    /// events only say where to look; what is believed is what stands there now. But for one of several links, of which the
    /// kernel is asked by a thread: it may answer late, and frames do not wait for that.
    fn follow_host(&mut self) -> Result<(), CliError> {
        let mut links = BTreeSet::new();
        let mut addresses = BTreeSet::new();
        loop {
            match self.monitor.next_event() {
                Ok(Some(NetEvent::Link(link))) => {
                    // It may stand on top of a member.
                    addresses.extend(link.lower.filter(|lower| self.has_member(*lower)));
                    if self.is_told_in_time(&link) {
                        continue;
                    }
                    if self.concerns(link.ifindex, &link.name) {
                        links.insert(link.ifindex);
                    }
                }
                Ok(Some(NetEvent::LinkGone { ifindex, .. })) => {
                    links.insert(ifindex);
                }
                Ok(Some(NetEvent::Address(address) | NetEvent::AddressGone(address))) => {
                    addresses.insert(address.ifindex);
                }
                Ok(Some(NetEvent::Resync)) => self.read_all()?,
                Ok(None) => break,
                Err(error) => return Err(CliError::failed("following the host's links", error)),
            }
        }
        for ifindex in links {
            match self.site.netlink.link(ifindex)? {
                Some(link) => self.link_seen(&link),
                None => self.link_gone(ifindex),
            }
        }
        for ifindex in addresses {
            self.read_addresses(ifindex);
        }
        Ok(())
    }

    fn concerns(&self, ifindex: u32, name: &str) -> bool {
        let member = |m: &Member| m.ifindex() == Some(ifindex) || m.name.as_str() == name;
        ifindex == self.line.tap_ifindex() || self.members.iter().any(member)
    }

    /// After events were lost, and once at the start.
    fn read_all(&mut self) -> Result<(), CliError> {
        let links = self.site.netlink.links()?;
        let gone: Vec<u32> = self
            .members
            .iter()
            .filter_map(Member::ifindex)
            .filter(|ifindex| !links.iter().any(|link| link.ifindex == *ifindex))
            .collect();
        for ifindex in gone {
            self.link_gone(ifindex);
        }
        for link in &links {
            self.link_seen(link);
        }
        self.read_addresses(self.line.tap_ifindex());
        for ifindex in self.member_indexes() {
            self.read_addresses(ifindex);
        }
        Ok(())
    }

    /// An interface is new, or something about it has changed.
    fn link_seen(&mut self, link: &Link) {
        if link.ifindex == self.line.tap_ifindex() {
            self.host_seen(link);
            return;
        }
        let known = self
            .members
            .iter_mut()
            .find(|m| m.ifindex() == Some(link.ifindex));
        if let Some(member) = known {
            let changes = member.changed(link, &mut self.line, &self.site.settings);
            changes.into_iter().for_each(|change| self.tell(change));
            return self.read_member_addresses(link.ifindex);
        }
        let is = |m: &Member| m.ifindex().is_none() && m.name.as_str() == link.name;
        if let Some(at) = self.members.iter().position(is) {
            self.join(at, link);
        }
    }

    /// A member's interface is there.
    fn join(&mut self, at: usize, link: &Link) {
        let member = &mut self.members[at];
        match member.attach(link, &mut self.line, &mut self.site, self.clock.now()) {
            Ok(()) => {
                member.set_promiscuous(self.host.promiscuous);
                if let Some(direct) = &mut self.direct {
                    direct.look_again();
                }
                let joined = member.joined(link);
                self.read_member_addresses(link.ifindex);
                joined.into_iter().for_each(|change| self.tell(change));
            }
            // The line goes on without it; status says so, and the next change tries again.
            Err(error) => tracing::warn!("{} cannot join: {error}", link.name),
        }
    }

    fn link_gone(&mut self, ifindex: u32) {
        if let Some(member) = self
            .members
            .iter_mut()
            .find(|m| m.ifindex() == Some(ifindex))
        {
            self.line.link_gone(ifindex);
            if let Some(direct) = &mut self.direct {
                direct.forget_link(ifindex);
            }
            member.detach();
            self.site.restore(ifindex);
            let (id, name) = (member.id, member.name.clone());
            self.tell_link(name, LinkChange::Gone, Some(LinkBecause::InterfaceGone));
            self.finish_removal(id, true);
        }
    }

    /// Somebody did something to `pt0`.
    fn host_seen(&mut self, link: &Link) {
        let host = Host::of(link, std::mem::take(&mut self.host.addresses));
        if link.address != self.site.address && link.address != self.host.address {
            tracing::warn!(
                "the MAC address of {} is now {}: peers know it as {}, so start the line anew \
                 with --mac",
                self.site.settings.name,
                link.address,
                self.site.address
            );
        }
        if (host.mtu, host.promiscuous) != (self.host.mtu, self.host.promiscuous) {
            self.line.host_changed(host.mtu, host.promiscuous);
            for member in &mut self.members {
                member.set_promiscuous(host.promiscuous);
            }
            tracing::info!(
                "{} has an MTU of {}{}",
                self.site.settings.name,
                host.mtu,
                if host.promiscuous {
                    " and takes frames for other stations"
                } else {
                    ""
                }
            );
        }
        self.host = host;
    }

    fn read_addresses(&mut self, ifindex: u32) {
        if ifindex == self.line.tap_ifindex() {
            match self.site.netlink.addresses(ifindex) {
                Ok(mut addresses) => {
                    // What people look for comes first.
                    addresses.sort_by_key(|address| address.link_scope);
                    self.host.addresses = addresses.iter().map(|a| a.prefix).collect();
                }
                Err(error) => tracing::warn!("{error}"),
            }
        } else if self.has_member(ifindex) {
            self.read_member_addresses(ifindex);
        }
    }

    fn has_member(&self, ifindex: u32) -> bool {
        self.members.iter().any(|m| m.ifindex() == Some(ifindex))
    }

    fn member_indexes(&self) -> Vec<u32> {
        self.members.iter().filter_map(Member::ifindex).collect()
    }
}
