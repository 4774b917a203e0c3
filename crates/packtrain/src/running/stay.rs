//! A line that stays when its daemon ends: its keeper is told what there is to keep, and what a former daemon's
//! keeper holds is taken over.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use super::RunningLine;
use super::member::Member;
use crate::events::LineBecause;
use crate::linux::direct::entries_to_keep;
use crate::status;
use crate::stay::{EntryKept, GuardKept, Heir, Kept, PEERS_MAX, Spawned, StayError, WordKept};

/// Between two looks whether the keeper knows all.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Between two keepers that end by no wish of ours.
const SPAWN_INTERVAL: Duration = Duration::from_secs(10);
/// Peers that have not been met again by then are met later, and their frames go by the engine until then.
const LET_GO_AFTER: Duration = Duration::from_secs(5);

/// The keeper of a line that stays.
#[derive(Debug)]
pub(super) struct Stay {
    time: Duration,
    keeper: Option<Spawned>,
    next_look: Instant,
    next_spawn: Instant,
    trouble: Option<String>,
}

impl Stay {
    pub(super) fn new(time: Duration) -> Stay {
        Stay {
            time,
            keeper: None,
            next_look: Instant::ZERO,
            next_spawn: Instant::ZERO,
            trouble: None,
        }
    }

    /// There is nothing to keep any more.
    pub(super) fn end(self) {
        if let Some(keeper) = self.keeper {
            keeper.end();
        }
    }

    fn look_after_keeper(&mut self, line: &str, now: Instant) {
        if self.keeper.as_mut().is_some_and(Spawned::has_ended) {
            tracing::warn!("the keeper of {line} has ended: another one is started");
            self.keeper = None;
        }
        if self.keeper.is_some() || now < self.next_spawn {
            return;
        }
        self.next_spawn = now + SPAWN_INTERVAL;
        let outcome = match Spawned::spawn(line) {
            Ok(keeper) => {
                self.keeper = Some(keeper);
                Ok(())
            }
            Err(error) => Err(error),
        };
        self.take(outcome);
    }

    fn take(&mut self, outcome: Result<(), StayError>) {
        let trouble = outcome.err().map(|error| error.to_string());
        if let Some(trouble) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            tracing::warn!("{trouble}; so the line does not stay when its daemon ends");
        }
        self.trouble = trouble;
    }
}

fn bounded(addresses: impl Iterator<Item = MacAddr>) -> Vec<[u8; 6]> {
    addresses.take(PEERS_MAX).map(|address| address.0).collect()
}

/// What a former daemon's keeper has handed over, and goes on carrying.
#[derive(Debug)]
pub(super) struct Inheritance {
    heir: Heir,
    until: Instant,
}

impl Inheritance {
    pub(super) fn new(heir: Heir, now: Instant) -> Inheritance {
        Inheritance {
            heir,
            until: now + LET_GO_AFTER,
        }
    }

    /// The line ends before it was carried on.
    pub(super) fn end(self) {
        if let Err(error) = self.heir.refuse() {
            tracing::warn!("{error}");
        }
    }
}

impl RunningLine {
    /// Now and then: tells the keeper what has changed.
    pub(super) fn step_stay(&mut self) {
        let now = self.clock.now();
        if self.stay.as_ref().is_some_and(|stay| now >= stay.next_look) {
            self.tell_keeper();
        }
    }

    pub(super) fn tell_keeper(&mut self) {
        let now = self.clock.now();
        let RunningLine {
            stay: Some(stay),
            line,
            direct: Some(direct),
            members,
            site,
            ..
        } = self
        else {
            return;
        };
        stay.next_look = now + LOOK_INTERVAL;
        stay.look_after_keeper(site.settings.name.as_str(), now);
        let Some(mut keeper) = stay.keeper.take() else {
            return;
        };
        let words = line.words_for_absence().into_iter();
        let words = words.map(|(ifindex, word)| WordKept {
            ifindex,
            away: word.away,
            goodbye: word.goodbye,
        });
        let destinations = line.destinations_in_absence();
        let entries = entries_to_keep(&destinations).into_iter();
        let entries = entries.map(|(key, value)| EntryKept { key, value });
        let guards: Vec<_> = members.iter().filter_map(Member::guard_to_keep).collect();
        let kept = Kept {
            line: site.settings.name.to_string(),
            ifindex: line.tap_ifindex(),
            stay_s: stay.time.as_secs(),
            destinations: bounded(destinations.iter().map(|to| to.address)),
            entries: entries.collect(),
            sources: bounded(line.direct_sources().iter().map(|of| of.outer_source)),
            words: words.collect(),
            guards: guards
                .iter()
                .map(|(ifindex, since, _)| GuardKept {
                    ifindex: *ifindex,
                    since_ns: since.as_nanos(),
                })
                .collect(),
        };
        let mut descriptors: Vec<BorrowedFd<'_>> = vec![line.tap_fd()];
        descriptors.extend(direct.descriptors_to_keep());
        descriptors.extend(guards.iter().map(|(_, _, descriptor)| *descriptor));
        stay.take(keeper.keep(kept, &descriptors));
        stay.keeper = Some(keeper);
    }

    /// Leaves the line to its keeper, if it has one. Otherwise it is given back, to be taken apart.
    pub(super) fn leave_to_keeper(mut self) -> Result<(), Box<RunningLine>> {
        self.tell_keeper();
        let name = self.site.settings.name.clone();
        let keeper = self.stay.as_ref().and_then(|stay| stay.keeper.as_ref());
        let left = keeper.map(Spawned::leave);
        match left {
            Some(Ok(())) => {
                self.tell_end(LineBecause::LeftToKeeper, None);
                // What this process holds the keeper holds as well: it is closed with the process, and must not be
                // taken apart.
                std::mem::forget(self);
                Ok(())
            }
            Some(Err(error)) => {
                tracing::warn!("{error}; so {name} ends");
                Err(Box::new(self))
            }
            None => Err(Box::new(self)),
        }
    }

    /// Has the former daemon's keeper let go once our programs send where its do, and take what its do.
    pub(super) fn step_inheritance(&mut self) {
        let Some(inheritance) = &self.inheritance else {
            return;
        };
        let now = self.clock.now();
        // Not all that is open now: what a queue has closed is for our engine, which takes it.
        let met: Vec<MacAddr> = self
            .line
            .destinations_in_absence()
            .iter()
            .map(|to| to.address)
            .collect();
        let sources = self.line.direct_sources();
        let takes = |known: &MacAddr| sources.iter().any(|of| of.outer_source == *known);
        let heir = &inheritance.heir;
        // Both ways: who is sent nothing directly may send so all the same.
        let carries_all = self.direct.is_none()
            || (heir.destinations.iter().all(|to| met.contains(to))
                && heir.sources.iter().all(takes));
        if carries_all || now >= inheritance.until {
            tracing::info!(
                "{} is carried on{}",
                self.site.settings.name,
                if carries_all {
                    ""
                } else {
                    ", but some peers are not met again yet"
                }
            );
            if let Some(inheritance) = self.inheritance.take() {
                inheritance.heir.let_go();
                if self.site.has_queues() {
                    self.shaper.let_former_go(now);
                }
            }
        } else {
            self.line.wake_by(inheritance.until);
        }
    }

    /// For `status`: what would stay if the daemon ended now.
    pub(super) fn stay_status(&self) -> Option<status::Stay> {
        let stay = self.stay.as_ref()?;
        let carries = !self.line.destinations_in_absence().is_empty();
        Some(status::Stay {
            seconds: stay.time.as_secs(),
            kept: stay.keeper.is_some() && stay.trouble.is_none(),
            carries,
        })
    }
}
