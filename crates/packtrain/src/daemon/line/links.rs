//! Links that join a line and leave it, and interfaces that come, change and go.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use packtrain_proto::config::{LinkId, LinkSettings, LinkState};
use packtrain_proto::stats::{PathSnapshot, PathState};
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use super::super::inlet::{Filter, Inlet};
use super::super::member::{Attached, Member};
use super::super::members::NumbersUsedUp;
use super::{Line, SENDS, token_of};
use crate::linux::epoll::{Epoll, Interest};
use crate::linux::guard::Reception;

impl Line {
    /// An interface that carries the name of a link exists, perhaps for the first time. Says whether it was attached: it is not when no link has
    /// this name, or when the link has its interface already.
    pub fn link_appeared(
        &mut self,
        name: &str,
        ifindex: u32,
        state: LinkState,
        filter: Filter<'_>,
    ) -> io::Result<bool> {
        let Some(member) = self.members.iter_mut().find(|member| member.name == name) else {
            return Ok(false);
        };
        if member.attached.is_some() {
            return Ok(false);
        }
        let mut attached = Attached::open(ifindex, state, self.address, filter)?;
        attached.set_promiscuous(self.promiscuous)?;
        let sends = token_of(member.id, SENDS);
        self.epoll
            .add(attached.socket.as_fd(), sends, Interest::Read)?;
        for inlet in &attached.inlets {
            watch(&self.epoll, member.id, inlet)?;
        }
        self.engine
            .handle_link_state(member.id, state, self.clock.now());
        attached.follow_queue_limit(self.engine.link_queue_limit(member.id));
        (member.attached, member.was_attached) = (Some(attached), true);
        Ok(true)
    }

    /// What is ours is to be received elsewhere. A socket stands there afterwards, beside the one that stands where it
    /// is received now; the guard says when it takes over. What stands in it will be read last.
    pub fn open_reception(&mut self, ifindex: u32, filter: Filter<'_>) -> io::Result<()> {
        if let Some(member) = self.members.of_interface(ifindex)
            && let Some(attached) = &mut member.attached
        {
            let stand = |inlet: &Inlet| inlet.reception() == filter.reception;
            if !attached.inlets.iter().any(stand) {
                let inlet = Inlet::open(ifindex, filter)?;
                watch(&self.epoll, member.id, &inlet)?;
                attached.inlets.push(inlet);
            }
            attached.read_last(filter.reception);
        }
        Ok(())
    }

    /// What comes there from now on is later than what has come elsewhere.
    pub fn read_last(&mut self, ifindex: u32, reception: Reception) {
        if let Some(member) = self.members.of_interface(ifindex)
            && let Some(attached) = &mut member.attached
        {
            attached.read_last(reception);
        }
    }

    /// Nothing comes elsewhere any more, and what has come is read first. Says whether no other socket is left: not
    /// while one holds more than can be read at once.
    pub fn close_receptions_but(&mut self, ifindex: u32, reception: Reception) -> bool {
        let now = self.clock.now();
        let is = |member: &Member| member.is_of_interface(ifindex);
        let Some(at) = self.members.iter().position(is) else {
            return true;
        };
        let is_other = |inlet: &Inlet| inlet.reception() != reception;
        let inlets = |line: &Line| -> usize {
            let attached = line.members[at].attached.as_ref();
            attached.map_or(0, |a| a.inlets.iter().filter(|i| is_other(i)).count())
        };
        if inlets(self) == 0 {
            return true;
        }
        self.take_all_from_link(at, now);
        let member = &mut self.members[at];
        let is_done = |inlet: &mut Inlet| is_other(inlet) && !inlet.readable.is_ready();
        if let Some(attached) = &mut member.attached {
            for mut inlet in attached.inlets.extract_if(.., is_done) {
                member.counters.add(inlet.counters());
            }
        }
        inlets(self) == 0
    }

    /// One more link, of a name that no other has; its interface is told of as those of the others are.
    pub fn add_link(&mut self, name: String) -> Result<LinkId, NumbersUsedUp> {
        self.members.add(name)
    }

    /// What a link is used for. An interface that appears begins with the defaults.
    pub fn set_link_settings(&mut self, link: LinkId, settings: LinkSettings) {
        let now = self.clock.now();
        self.engine.handle_link_settings(link, settings, now);
        if let Some(member) = self.members.get_mut(link) {
            member.in_lag = settings.in_lag;
        }
        self.follow_lag();
    }

    /// By each link that a switch takes for one with others comes what is for any of them.
    fn follow_lag(&mut self) {
        let in_lag = self.members.iter().filter(|member| member.in_lag);
        let attached = in_lag.filter_map(|member| member.attached.as_ref());
        let all: Vec<MacAddr> = attached.map(|attached| attached.state.address).collect();
        for member in self.members.iter_mut() {
            let Some(attached) = &mut member.attached else {
                continue;
            };
            let own = attached.state.address;
            let are_others = |address: &&MacAddr| member.in_lag && **address != own;
            let others: Vec<MacAddr> = all.iter().filter(are_others).copied().collect();
            if let Err(error) = attached.take_for(&others) {
                tracing::warn!("{}: frames for other links: {error}", member.name);
            }
        }
    }

    /// [`Engine::awaits_links`](packtrain_proto::engine::Engine::awaits_links)
    pub fn awaits_links(&self) -> bool {
        self.engine.awaits_links()
    }

    /// [`Engine::late_links`](packtrain_proto::engine::Engine::late_links)
    pub fn late_links(&self) -> impl Iterator<Item = LinkId> {
        self.engine.late_links(self.clock.now())
    }

    /// [`Engine::links_said_dead`](packtrain_proto::engine::Engine::links_said_dead)
    pub fn links_said_dead(&self) -> impl Iterator<Item = LinkId> {
        self.engine.links_said_dead()
    }

    /// A link is to leave without loss: [`Event::LinkRetired`](packtrain_proto::engine::Event::LinkRetired)
    /// says when nothing is under way on it any more. Says whether there is something to wait for.
    pub fn retire_link(&mut self, link: LinkId) -> bool {
        let Some(member) = self.members.get_mut(link) else {
            return false;
        };
        let waits = member.attached.is_some();
        if waits {
            member.leaving = true;
            self.engine.retire_link(link, self.clock.now());
        }
        waits
    }

    /// Whether every peer that is up can be sent to without these links.
    pub fn reaches_its_peers_without(&self, links: &[LinkId]) -> bool {
        use PathState::{Backup, Open, TooSlow};
        let works = |path: &PathSnapshot| {
            !links.contains(&path.link) && matches!(path.state, Open | Backup | TooSlow)
        };
        let peers = self.engine.snapshot(self.clock.now()).peers;
        let mut up = peers.iter().filter(|peer| peer.up);
        up.all(|peer| peer.paths.iter().any(works))
    }

    /// A link leaves at once; its number is not given again.
    pub fn remove_link(&mut self, link: LinkId) {
        let now = self.clock.now();
        if let Some(place) = self.members.place(link) {
            // What has arrived is taken, or whoever sent it would have to send it again.
            self.take_all_from_link(place, now);
        }
        let Some(mut member) = self.members.remove(link) else {
            return;
        };
        if let Some(attached) = &mut member.attached {
            attached.retry(&mut member.counters);
            self.engine.remove_link(link, now);
        }
        self.follow_lag();
    }

    /// The links, in the order in which they were added.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &str)> {
        self.members.iter().map(|m| (m.id, m.name.as_str()))
    }

    /// The interface of a link has changed: by its index, because it may have another name now.
    pub fn link_changed(&mut self, ifindex: u32, state: LinkState) {
        let now = self.clock.now();
        if let Some(member) = self.members.of_interface(ifindex)
            && let Some(attached) = &mut member.attached
            && attached.state != state
        {
            attached.state = state;
            self.engine.handle_link_state(member.id, state, now);
            self.follow_lag();
        }
    }

    /// The interface is no more. Says whether it was a link's.
    pub fn link_gone(&mut self, ifindex: u32) -> bool {
        let now = self.clock.now();
        let mut found = false;
        for member in self.members.iter_mut() {
            let attached = member.attached.take_if(|a| a.socket.ifindex() == ifindex);
            if let Some(mut attached) = attached {
                for inlet in &mut attached.inlets {
                    member.counters.add(inlet.counters());
                }
                self.engine.remove_link(member.id, now);
                found = true;
            }
        }
        self.follow_lag();
        found
    }

    /// The interfaces that links are attached to.
    pub fn attached(&self) -> impl Iterator<Item = (&str, u32)> {
        self.members.iter().filter_map(|member| {
            member
                .attached
                .as_ref()
                .map(|a| (member.name.as_str(), a.socket.ifindex()))
        })
    }

    /// Whatever its socket holds, as far as that has an end.
    fn take_all_from_link(&mut self, at: usize, now: Instant) {
        const BATCHES_MAX: usize = 64;
        for _ in 0..BATCHES_MAX {
            match &mut self.members[at].attached {
                Some(attached) => {
                    for inlet in &mut attached.inlets {
                        inlet.readable.on_ready(Duration::ZERO, true);
                    }
                }
                None => return,
            }
            self.take_from_link(at, now);
            self.deliver(now);
            let attached = self.members[at].attached.as_ref();
            if attached.is_none_or(|attached| !attached.is_readable()) {
                return;
            }
        }
    }
}

/// Asks to be told when something comes.
fn watch(epoll: &Epoll, link: LinkId, inlet: &Inlet) -> io::Result<()> {
    let token = token_of(link, inlet.number());
    epoll.add(inlet, token, Interest::ReadWhileReady)
}
