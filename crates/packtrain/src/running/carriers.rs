//! Whether links have a carrier that are late with what they were given.
//!
//! Linux tells of carriers by a queue of its own (`net/core/link_watch.c`): at once, if it has told of none within the last
//! second, and else when that is over; only of ports of a bond or team always at once. Where links come and go, one would be
//! lost for a second and known by its silence alone. But how it is now, the kernel knows, and says when it is asked.
//!
//! It answers when nobody else changes anything about interfaces, which may take as long as a network namespace takes to go.
//! So a thread of its own waits for that, and frames do not.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use packtrain_proto::config::LinkId;
use packtrain_proto::time::{Duration, Instant};

use super::RunningLine;
use super::member::Member;
use crate::linux::netlink::{Link, Netlink};

/// Between two looks, while something is under way over several links.
const LOOK: Duration = Duration::from_millis(5);
/// An answer is mostly there by then.
const ANSWER: Duration = Duration::from_micros(500);
/// Of a carrier that comes back sooner than this after it was lost, the kernel may tell late as well.
const TOLD_LATE: Duration = Duration::from_secs(2);
const DARK_LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Carriers {
    look_at: Instant,
    /// Since when links have none.
    dark: BTreeMap<LinkId, Instant>,
    dark_look_at: Instant,
    /// `None` until there is somebody to ask, and where nobody can be.
    asker: Option<Asker>,
    may_ask: bool,
}

/// The thread that asks: it ends when nobody wants to know anything any more.
#[derive(Debug)]
struct Asker {
    questions: SyncSender<Vec<u32>>,
    answers: Receiver<Link>,
}

impl Asker {
    fn start() -> Option<Asker> {
        // Opened here: it belongs to the network namespace in which we are.
        let mut netlink = Netlink::open().ok()?;
        let (questions, asked) = sync_channel::<Vec<u32>>(1);
        let (seen, answers) = channel();
        let ask = move || {
            while let Ok(ifindexes) = asked.recv() {
                // Of an interface that is gone, there are news anyway.
                let links = ifindexes
                    .into_iter()
                    .filter_map(|ifindex| netlink.link(ifindex).ok().flatten());
                for link in links {
                    if seen.send(link).is_err() {
                        return;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("carriers".to_owned());
        thread.spawn(ask).ok()?;
        Some(Asker { questions, answers })
    }
}

impl Carriers {
    pub(super) fn new(now: Instant) -> Carriers {
        Carriers {
            look_at: now,
            dark: BTreeMap::new(),
            dark_look_at: now,
            asker: None,
            may_ask: true,
        }
    }

    /// The links that lost their carrier a short while ago.
    fn dark_links(&mut self, members: &[Member], now: Instant) -> Vec<LinkId> {
        let is_dark = |id: LinkId| members.iter().any(|m| m.id == id && m.has_no_carrier());
        self.dark.retain(|id, _| is_dark(*id));
        for member in members.iter().filter(|member| member.has_no_carrier()) {
            self.dark.entry(member.id).or_insert(now);
        }
        let lately = self
            .dark
            .iter()
            .filter(|(_, since)| now.since(**since) < TOLD_LATE);
        lately.map(|(id, _)| *id).collect()
    }

    /// Whether there is somebody to wait for. Who is asked already is not asked again.
    fn ask(&mut self, ifindexes: Vec<u32>) -> bool {
        if self.asker.is_none() && std::mem::take(&mut self.may_ask) {
            self.asker = Asker::start();
        }
        let Some(asker) = &self.asker else {
            return false;
        };
        // Full: the last question has no answer yet.
        let _ = asker.questions.try_send(ifindexes);
        true
    }

    fn answer(&self) -> Option<Link> {
        self.asker.as_ref()?.answers.try_recv().ok()
    }
}

impl RunningLine {
    /// Asks the kernel for the links that are late, and for those that were lost lately.
    pub(super) fn look_at_carriers(&mut self) {
        if self.members.len() < 2 {
            return;
        }
        while let Some(link) = self.carriers.answer() {
            let ifindex = Some(link.ifindex);
            let member = self.members.iter().find(|m| m.ifindex() == ifindex);
            if member.is_some_and(|member| member.is_news(&link)) {
                self.link_seen(&link);
            }
        }
        let now = self.clock.now();
        if now < self.carriers.look_at {
            // What has left in this turn may be late by then, and nothing else wake us.
            return self.line.wake_by(self.carriers.look_at);
        }
        self.carriers.look_at = now + LOOK;
        let mut links: Vec<LinkId> = Vec::new();
        if self.line.awaits_links() {
            self.line.wake_by(self.carriers.look_at);
            links.extend(self.line.late_links());
        }
        let dark = self.carriers.dark_links(&self.members, now);
        if !dark.is_empty() {
            self.line.wake_by(now + DARK_LOOK);
            if self.carriers.dark_look_at <= now {
                self.carriers.dark_look_at = now + DARK_LOOK;
                links.extend(dark);
            }
        }
        let asked = self.members.iter().filter(|m| links.contains(&m.id));
        let asked: Vec<u32> = asked.filter_map(Member::ifindex).collect();
        if !asked.is_empty() && self.carriers.ask(asked) {
            self.line.wake_by(now + ANSWER);
        }
    }
}
