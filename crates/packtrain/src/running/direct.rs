//! The direct path of a line: what the engine decides is told to the programs, and what the
//! programs see to the engine.
//!
//! # When a flow may change to it
//! Frames that went to the engine have tickets (`bpf/direct.bpf.c`). To let flows change, all that has a
//! ticket has to be known as delivered. So now and then, after the host has sent something to the
//! engine: see the queue before `pt0` empty; read the number of the last ticket, once as many frames were read as
//! have tickets; ask the engine to say when all that it was given is delivered; and tell the programs the number.
//! A flow that rests for about a round trip changes then; one that never does stays where it is, and so
//! does any while something else is sent to the engine without a pause.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use packtrain_proto::class::Class;
use packtrain_proto::config::LinkId;
use packtrain_proto::direct::rest::REST_MAX;
use packtrain_proto::stats::Traffic;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use super::spread_frames::{self, SpreadFrames};
use crate::daemon::Line;
use crate::daemon::line::DrainBegun;
use crate::linux::direct::{Destination, DirectError, DirectPath, KEPT_DESCRIPTORS, Tally};
use crate::linux::intake::Intake;

/// How soon the engine is asked again, at first and at last: each costs two small frames, and what
/// goes by the engine all the time, to a plain host perhaps, gives no reason to stop asking.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_MAX: Duration = Duration::from_millis(50);
/// No flow waits so long in a queue before `pt0`, and is still there.
const URGENT_PASS_AFTER: Duration = Duration::from_secs(2);
/// How often peers are told how many frames have gone to them.
const COUNT_INTERVAL: Duration = Duration::from_millis(50);
/// How often the links' own queues are looked at, and a failed attempt is repeated.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// A drain that was lost on the way is asked for again.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Direct {
    pub(super) path: DirectPath,
    /// What the programs know; nothing after it could not be told to them.
    pub(super) destinations: Vec<Destination>,
    next_count: Instant,
    is_sending: bool,
    /// Of those in which small frames are counted, the last one that the engine was told of.
    small_window: u32,
    /// When the rate of each link was measured that the engine was told of.
    rates_told: BTreeMap<u8, u64>,
    spread_frames: SpreadFrames,
    /// When nothing of what has become urgent waits before `pt0` any more.
    urgent_pass_at: Option<Instant>,
    failed: bool,
    looked_at: Option<Instant>,
    changes: u64,
    /// The engine was asked, and has not answered.
    asked: Option<(DrainBegun, Instant)>,
    questions: u64,
    drained: u64,
    /// What the host had sent to the engine when it was asked last; `None`: never since
    /// destinations changed.
    host_frames: Option<u64>,
    next: Instant,
    interval: Duration,
    /// Flows rest until then at most, and wait for an answer.
    urged_until: Option<Instant>,
}

impl Direct {
    pub(super) fn new(path: DirectPath) -> Direct {
        Direct {
            path,
            destinations: Vec::new(),
            next_count: Instant::ZERO,
            is_sending: false,
            small_window: 0,
            rates_told: BTreeMap::new(),
            spread_frames: SpreadFrames::new(),
            urgent_pass_at: None,
            failed: false,
            looked_at: None,
            changes: 0,
            asked: None,
            questions: 0,
            drained: 0,
            host_frames: None,
            next: Instant::ZERO,
            interval: INTERVAL_MIN,
            urged_until: None,
        }
    }

    /// What the line asks between two frames.
    pub(super) fn tally(&self) -> Result<Tally, DirectError> {
        self.path.tally()
    }

    /// Which way the frames of these classes take.
    pub(super) fn set_classes(
        &mut self,
        classes: &[Class],
        now: Instant,
    ) -> Result<(), DirectError> {
        self.path.set_classes(classes)?;
        self.urgent_pass_at = Some(now + URGENT_PASS_AFTER);
        Ok(())
    }

    fn let_urgent_pass(&mut self, now: Instant) {
        if self.urgent_pass_at.take_if(|at| *at <= now).is_some() {
            warn_of(self.path.let_urgent_pass());
        }
    }

    /// What went past the engine by a link, ever.
    pub(super) fn traffic(&self, link: LinkId) -> Traffic {
        self.path.traffic(link.0).unwrap_or_default()
    }

    /// At which the link's queue was seen to give direct frames away, bit/s, and how long ago.
    pub(super) fn rate(&self, link: LinkId, monotonic_nanos: u64) -> Option<(u64, Duration)> {
        let (rate_bps, at) = self.path.rate(link.0).ok().flatten()?;
        Some((
            rate_bps,
            Duration::from_nanos(monotonic_nanos.saturating_sub(at)),
        ))
    }

    /// How often destinations came or went.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// Frames of flows that were spread over links, ever.
    pub(super) fn striped(&self) -> u64 {
        self.path.state().map_or(0, |state| state.striped)
    }

    /// How often flows came back to the engine; wraps.
    pub(super) fn flow_returns(&self) -> u32 {
        self.path.state().map_or(0, |state| state.left)
    }

    /// What whoever keeps the path needs of it.
    pub(super) fn descriptors_to_keep(&self) -> [BorrowedFd<'_>; KEPT_DESCRIPTORS] {
        self.path.descriptors_to_keep()
    }

    /// The engine has decided anew.
    pub(super) fn publish(&mut self, line: &mut Line) {
        warn_of(self.path.watch_flows(line.is_sent_to_by_several_links()));
        warn_of(self.path.hold_open(line.has_peer_away()));
        warn_of(self.path.leave_small_frames(line.leaves_small_frames()));
        let wanted = line.direct_destinations();
        if wanted == self.destinations && !self.failed {
            return;
        }
        tracing::debug!("direct destinations: {wanted:?}");
        let known = self.destinations.iter();
        let known: BTreeMap<_, _> = known.map(|way| ((way.address, way.link), way)).collect();
        let was_open = |way: &Destination| {
            let before = known.get(&(way.address, way.link));
            before.is_some_and(|before| was_open(before, way))
        };
        if !wanted.iter().all(was_open) {
            // First nobody goes direct: what went to a new one before it was a peer was never asked for.
            (self.asked, self.host_frames) = (None, None);
            let _ = line.take_drain_begun();
            self.set_drained(0);
        }
        let outcome = self.path.set_destinations(&wanted);
        self.failed = outcome.is_err();
        self.destinations = match outcome {
            Ok(counted) => {
                let more = wanted.len() - counted.len();
                if more > 0 {
                    tracing::warn!("too many peers: the frames of {more} all go by the engine");
                }
                line.count_direct_to(counted);
                wanted
            }
            Err(error) => {
                tracing::warn!("{error}; all frames go by the engine");
                // Rather none than some that are wrong.
                warn_of(self.path.set_destinations(&[]).map(drop));
                Vec::new()
            }
        };
        self.changes += 1;
        (self.next, self.interval) = (Instant::ZERO, INTERVAL_MIN);
    }

    /// Whether it is time to look at the links' own queues, and to try again what failed.
    pub(super) fn look_is_due(&mut self, now: Instant) -> bool {
        let due = self
            .looked_at
            .is_none_or(|at| now.since(at) >= LOOK_INTERVAL);
        if due {
            self.looked_at = Some(now);
        }
        due
    }

    /// A link has come.
    pub(super) fn look_again(&mut self) {
        self.looked_at = None;
    }

    /// One of several links, by which all frames may go when it is the last.
    pub(super) fn prepare_link(&mut self, ifindex: u32, link: LinkId, has_queue: bool) {
        warn_of(self.path.watch_link(ifindex, link.0, has_queue));
    }

    pub(super) fn forget_link(&mut self, ifindex: u32) {
        self.path.forget_link(ifindex);
    }

    /// Why nothing goes directly, whatever the engine says.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        let foreign = self.path.state().is_ok_and(|state| state.foreign_tc);
        match (self.failed, foreign) {
            (true, _) => Some("failed"),
            (_, true) => Some("pt0_qdisc"),
            _ => None,
        }
    }

    /// Tells the engine what has gone directly to this one, also long ago, and what has come.
    pub(super) fn tell_counts(
        &self,
        line: &mut Line,
        (address, link): (MacAddr, LinkId),
        direct_mark: MacAddr,
    ) {
        let counts = self.path.sent_to((address, link.0)).and_then(|sent| {
            let came = self.path.arrived((address, link.0))?;
            Ok((sent, came))
        });
        match counts {
            Ok((sent, came)) => {
                line.direct_sent(address, link, sent);
                line.direct_received(link, direct_mark, came);
            }
            Err(error) => tracing::debug!("{error}"),
        }
    }

    /// Tells the engine what has gone directly: often while there is more and more, and else whenever the
    /// line turns anyway, which it does four times a second.
    fn count(&mut self, line: &mut Line, intake: Option<&mut Intake>, now: Instant) {
        if now >= self.next_count {
            self.next_count = now + COUNT_INTERVAL;
            self.is_sending = line.count_direct();
            warn_of(self.tell_small_frames(line));
            warn_of(self.tell_rates(line));
            if let Some(intake) = intake {
                warn_of(self.size_frames(intake, now));
            }
        }
        if self.is_sending {
            line.wake_by(self.next_count);
        }
    }

    /// Of links that frames were seen to stand on since this was told last.
    fn tell_rates(&mut self, line: &mut Line) -> Result<(), DirectError> {
        for link in self.path.watched_links() {
            let Some((rate_bps, at)) = self.path.rate(link)? else {
                continue;
            };
            if self.rates_told.insert(link, at) != Some(at) {
                line.direct_rate(LinkId(link), rate_bps);
            }
        }
        Ok(())
    }

    /// Those that the host makes are smaller while flows are spread over links of which one is slow.
    fn size_frames(&mut self, intake: &mut Intake, now: Instant) -> Result<(), DirectError> {
        let may_be = self.destinations.iter().filter(|way| way.stripes);
        if self.spread_frames.are_as_large_as_ever() && may_be.clone().count() < 2 {
            return Ok(());
        }
        let spread = self.path.state()?.striped;
        let ways = may_be.map(|way| {
            let rate = self.path.rate(way.link)?;
            Ok(spread_frames::Way {
                to: way.address,
                rate_bps: rate.map(|(rate_bps, _)| rate_bps),
            })
        });
        let ways = ways.collect::<Result<Vec<_>, DirectError>>()?;
        if let Some(bytes) = self.spread_frames.look(spread, &ways, now) {
            tracing::debug!("frames of {bytes} bytes at most, for flows that are spread");
            intake.keep_frames_below(bytes);
        }
        Ok(())
    }

    fn tell_small_frames(&mut self, line: &mut Line) -> Result<(), DirectError> {
        let small = self.path.state()?.small_frames;
        if small.windows != std::mem::replace(&mut self.small_window, small.windows) {
            line.direct_small_frames(small.per_second);
        }
        Ok(())
    }

    /// After each turn of the line: sees whether the path was closed, and whether flows may change.
    pub(super) fn step(&mut self, line: &mut Line, mut intake: Option<&mut Intake>, now: Instant) {
        self.let_urgent_pass(now);
        self.count(line, intake.as_deref_mut(), now);
        self.note_question(line, now);
        if self.destinations.is_empty() || self.host_frames == Some(line.host_frames()) {
            return;
        }
        if now < self.next {
            return line.wake_by(self.next);
        }
        let is_urged = self.urged_until.is_some_and(|until| now < until);
        let interval = if is_urged {
            INTERVAL_MIN
        } else {
            self.interval
        };
        self.next = now + interval;
        self.interval = (interval * 2).min(INTERVAL_MAX);
        warn_of(self.look(line, intake, now));
    }

    fn look(
        &mut self,
        line: &mut Line,
        intake: Option<&mut Intake>,
        now: Instant,
    ) -> Result<(), DirectError> {
        let closed = self.path.closed_links()?;
        if !closed.is_empty() {
            // It may be they by which it was closed: first how many they were.
            self.tell_small_frames(line)?;
            closed
                .into_iter()
                .for_each(|link| line.link_closed(LinkId(link)));
            return Ok(());
        }
        if self.asked.is_some_and(|(_, at)| now.since(at) < PATIENCE) {
            return Ok(());
        }
        let waits = intake.is_some_and(|intake| intake.may_hold_frames());
        if waits {
            line.withdraw_drain();
        } else {
            self.questions += 1;
            line.request_drain(self.questions);
        }
        Ok(())
    }

    fn note_question(&mut self, line: &mut Line, now: Instant) {
        if let Some(begun) = line.take_drain_begun() {
            self.host_frames = Some(begun.host_frames);
            self.asked = Some((begun, now));
        }
    }

    /// Flows rest, so that they may change now.
    pub(super) fn urge(&mut self, now: Instant) {
        (self.next, self.urged_until) = (now, Some(now + REST_MAX));
    }

    /// The answer to the question of this number.
    pub(super) fn on_drained(&mut self, line: &mut Line, number: u64, now: Instant) {
        // It may be here before anybody has looked.
        self.note_question(line, now);
        if let Some((asked, _)) = self.asked.take_if(|(asked, _)| asked.number == number) {
            self.set_drained(asked.ticket);
        }
    }

    fn set_drained(&mut self, ticket: u64) {
        self.drained = ticket;
        warn_of(self.path.set_drained(ticket));
    }
}

pub(super) fn warn_of(outcome: Result<(), DirectError>) {
    if let Err(error) = outcome {
        tracing::warn!("{error}");
    }
}

/// Whether all that may go there now might before, by the same way.
fn was_open(before: &Destination, now: &Destination) -> bool {
    let as_now = Destination {
        open_to: now.open_to,
        stripes: now.stripes,
        has_queue: now.has_queue,
        ..*before
    };
    as_now == *now && before.open_to >= now.open_to
}
