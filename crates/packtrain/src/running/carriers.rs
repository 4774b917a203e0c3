//! What the kernel knows of several links: first of all, whether those have a carrier that are late with what they were given.
//!
//! Linux tells of carriers by a queue of its own (`net/core/link_watch.c`): at once, if it has told of none within the last
//! second, and else when that is over; only of ports of a bond or team always at once. Where links come and go, one would be
//! lost for a second and known by its silence alone. But how it is now, the kernel knows, and says when it is asked.
//!
//! Of a driver that never tells, and so has a carrier for ever, the transceiver is asked again and again.
//!
//! What else has changed about one of several links, after an event that says so, is asked for in the same way.
//!
//! It answers when nobody else changes anything about interfaces, which may take as long as a network namespace takes to go.
//! So a thread of its own waits for that, and frames do not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use packtrain_proto::config::LinkId;
use packtrain_proto::time::{Duration, Instant};

use super::RunningLine;
use super::member::Member;
use crate::linux::mii;
use crate::linux::netlink::{Link, Netlink};
use crate::linux::scheduling::weigh_as_the_first_thread;

/// Between two looks, while something is under way over several links.
const LOOK: Duration = Duration::from_millis(5);
/// An answer is mostly there by then.
const ANSWER: Duration = Duration::from_micros(500);
/// Of a carrier that comes back sooner than this after it was lost, the kernel may tell late as well.
const TOLD_LATE: Duration = Duration::from_secs(2);
const DARK_LOOK: Duration = Duration::from_millis(20);
/// Between two looks at links whose drivers do not tell.
const SILENT_LOOK: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Carriers {
    look_at: Instant,
    /// Since when links have none, or their other ends.
    dark: BTreeMap<(LinkId, End), Instant>,
    dark_look_at: Instant,
    silent_look_at: Instant,
    /// Interfaces of which something has changed, and the thread does not know it yet.
    unasked: BTreeSet<u32>,
    /// What it was asked has not been answered, for all that is known.
    awaited: usize,
    /// `None` until there is somebody to ask, and where nobody can be.
    asker: Option<Asker>,
    may_ask: bool,
}

/// Whose carrier is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Own,
    Other,
}

/// The thread that asks: it ends when nobody wants to know anything any more.
#[derive(Debug)]
struct Asker {
    questions: SyncSender<Vec<u32>>,
    answers: Receiver<Answer>,
}

#[derive(Debug)]
struct Answer {
    /// `None`: it is gone.
    link: Option<Link>,
}

impl Asker {
    fn start() -> Option<Asker> {
        // Opened here: it belongs to the network namespace in which we are.
        let mut netlink = Netlink::open().ok()?;
        let (questions, asked) = sync_channel::<Vec<u32>>(1);
        let (seen, answers) = channel();
        let ask = move || {
            // What the line asks of its threads ends with each that begins another. Without it, it is only slower.
            let _ = weigh_as_the_first_thread();
            while let Ok(ifindexes) = asked.recv() {
                for ifindex in ifindexes {
                    // Of an interface that is gone, there are news anyway.
                    let link = netlink.link(ifindex).ok().flatten();
                    let link = link.map(|link| looked_at(link, mii::has_link));
                    if seen.send(Answer { link }).is_err() {
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

/// As it is, whether or not its driver tells.
fn looked_at(mut link: Link, has_link: impl Fn(&str) -> Option<bool>) -> Link {
    if !link.reports_carrier {
        link.carrier &= has_link(&link.name) != Some(false);
    }
    link
}

impl Carriers {
    pub(super) fn new(now: Instant) -> Carriers {
        Carriers {
            look_at: now,
            dark: BTreeMap::new(),
            dark_look_at: now,
            silent_look_at: now,
            unasked: BTreeSet::new(),
            awaited: 0,
            asker: None,
            may_ask: true,
        }
    }

    /// The links that lost their carrier a short while ago, and those (`said_dead`) whose other end did, as a peer says: both have lost
    /// it with a cable, and who was told by the other one would hear of its own when that is long past.
    fn dark_links(
        &mut self,
        members: &[Member],
        said_dead: impl Iterator<Item = LinkId>,
        now: Instant,
    ) -> Vec<LinkId> {
        let own = members.iter().filter(|member| member.has_no_carrier());
        let own = own.map(|member| (member.id, End::Own));
        let dark: BTreeSet<_> = own.chain(said_dead.map(|id| (id, End::Other))).collect();
        self.dark.retain(|end, _| dark.contains(end));
        for end in dark {
            self.dark.entry(end).or_insert_with(|| {
                self.dark_look_at = now;
                now
            });
        }
        let lately = self
            .dark
            .iter()
            .filter(|(_, since)| now.since(**since) < TOLD_LATE);
        lately.map(|((id, _), _)| *id).collect()
    }

    fn has_asker(&mut self) -> bool {
        if self.asker.is_none() && std::mem::take(&mut self.may_ask) {
            self.asker = Asker::start();
        }
        self.asker.is_some()
    }

    /// Whether there is somebody to wait for. Who is asked already is not asked again.
    fn ask(&mut self, ifindexes: impl IntoIterator<Item = u32>) -> bool {
        if !self.has_asker() {
            return false;
        }
        self.unasked.extend(ifindexes);
        self.ask_what_is_left();
        true
    }

    fn ask_what_is_left(&mut self) {
        let Some(asker) = self.asker.as_ref().filter(|_| !self.unasked.is_empty()) else {
            return;
        };
        // Full: the last question but one has no answer yet.
        let questions: Vec<u32> = self.unasked.iter().copied().collect();
        if asker.questions.try_send(questions).is_ok() {
            self.awaited += std::mem::take(&mut self.unasked).len();
        }
    }

    fn is_waiting(&self) -> bool {
        self.awaited > 0 || !self.unasked.is_empty()
    }

    fn answer(&mut self) -> Option<Link> {
        let answer = self.asker.as_ref()?.answers.try_recv().ok()?;
        self.awaited = self.awaited.saturating_sub(1);
        answer.link
    }
}

impl RunningLine {
    /// What an event says of one of several links: a carrier that it has lost or has got is believed at once, and what else may have
    /// changed is asked for. False where there is nobody to ask but the kernel, and to wait for.
    pub(super) fn is_told_in_time(&mut self, link: &Link) -> bool {
        let ifindex = Some(link.ifindex);
        let member = self.members.iter().find(|m| m.ifindex() == ifindex);
        let Some(member) = member.filter(|_| self.members.len() > 1) else {
            return false;
        };
        if link.reports_carrier && member.is_news(link) {
            self.link_seen(link);
        }
        self.carriers.ask([link.ifindex])
    }

    /// Asks the kernel for the links that are late, and for those that were lost lately.
    pub(super) fn look_at_carriers(&mut self) {
        if self.members.len() < 2 {
            return;
        }
        while let Some(link) = self.carriers.answer() {
            let ifindex = Some(link.ifindex);
            let member = self.members.iter().find(|m| m.ifindex() == ifindex);
            if member.is_some_and(|member| member.is_news(&link) || member.has_changed(&link)) {
                self.link_seen(&link);
            }
        }
        let now = self.clock.now();
        self.carriers.ask_what_is_left();
        if self.carriers.is_waiting() {
            self.line.wake_by(now + ANSWER);
        }
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
        let said_dead = self.line.links_said_dead();
        let dark = self.carriers.dark_links(&self.members, said_dead, now);
        if !dark.is_empty() {
            self.line.wake_by(now + DARK_LOOK);
            if self.carriers.dark_look_at <= now {
                self.carriers.dark_look_at = now + DARK_LOOK;
                links.extend(dark);
            }
        }
        let mut silent = self
            .members
            .iter()
            .filter(|member| !member.reports_carrier());
        if let Some(first) = silent.next() {
            if self.carriers.silent_look_at <= now {
                self.carriers.silent_look_at = now + SILENT_LOOK;
                links.extend([first].into_iter().chain(silent).map(|member| member.id));
            }
            self.line.wake_by(self.carriers.silent_look_at);
        }
        let asked = self.members.iter().filter(|m| links.contains(&m.id));
        let asked: Vec<u32> = asked.filter_map(Member::ifindex).collect();
        if self.carriers.is_waiting() {
            return; // who is asked already is not asked again
        }
        if !asked.is_empty() && self.carriers.ask(asked) {
            self.line.wake_by(now + ANSWER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::running::link_use::tests::link;

    #[test]
    fn whose_driver_does_not_tell_has_the_carrier_that_its_transceiver_has() {
        let silent = Link {
            reports_carrier: false,
            carrier_losses: Some(0),
            ..link(1)
        };
        for (says, carrier) in [(Some(true), true), (Some(false), false), (None, true)] {
            let seen = looked_at(silent.clone(), |name| {
                assert_eq!(name, "eth1");
                says
            });
            assert_eq!(
                seen,
                Link {
                    carrier,
                    ..silent.clone()
                }
            );
        }
        let tells = Link {
            reports_carrier: true,
            ..silent
        };
        assert_eq!(looked_at(tells.clone(), |_| Some(false)), tells);
    }
}
