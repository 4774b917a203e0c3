//! Whether all that was sent before has arrived. Each peer is asked by a *probe* in each lane, a train without
//! subframes, which it acknowledges when everything before it in that lane was given to its host.
//!
//! ```text
//! request ─▶ waits ─ nothing stands in our queues ─▶ each peer is asked ─ all have answered ─▶ done
//!            a newer one takes its place             one is silent too often: forgotten
//! ```

use crate::config::LinkId;
use crate::time::{Duration, Instant};
use crate::trunk::flight::NAMED_MAX;
use crate::trunk::lane::LaneId;
use crate::wire::sequence::Sequence;
use crate::wire::train::Ack;

/// A peer is asked again after so long, or after so many round trips, whichever is more.
const PATIENCE_MIN: Duration = Duration::from_millis(200);
const PATIENCE_ROUND_TRIPS: u32 = 4;
const TRIES_MAX: u32 = 5;
/// So many of the last are remembered, of which each may be answered.
const PROBES_MAX: usize = 16;

/// A peer that has not answered.
#[derive(Debug)]
struct Question {
    slot: usize,
    /// In which what was sent before the question is to come first.
    lane: LaneId,
    /// What was sent: our link, and the link sequence. All of it left after what is asked about, so an
    /// answer to any will do, however late.
    probes: Vec<(LinkId, Sequence)>,
    /// The next probe is to leave.
    due: bool,
    tries: u32,
    patience: Duration,
    /// When this try has taken too long.
    until: Instant,
}

#[derive(Debug)]
struct Round {
    ticket: u64,
    open: Vec<Question>,
}

/// At most one request that peers are asked for, and one that waits.
#[derive(Debug, Default)]
pub struct Drain {
    waiting: Option<u64>,
    round: Option<Round>,
}

impl Drain {
    pub fn is_idle(&self) -> bool {
        self.waiting.is_none() && self.round.is_none()
    }

    /// A new request. One that nobody was asked for yet has no claim beside it.
    pub fn request(&mut self, ticket: u64) {
        let asked = |question: &Question| !question.probes.is_empty();
        if self
            .round
            .as_ref()
            .is_some_and(|r| !r.open.iter().any(asked))
        {
            self.round = None;
        }
        self.waiting = Some(ticket);
    }

    /// A request waits, and nobody is being asked for another: [`Drain::begin`] when nothing stands
    /// in our queues.
    pub fn may_begin(&self) -> bool {
        self.waiting.is_some() && self.round.is_none()
    }

    /// `lanes`: all in which a peer may have been sent something, and the round trip to it where it is known.
    pub fn begin(
        &mut self,
        lanes: impl Iterator<Item = ((usize, LaneId), Option<Duration>)>,
        now: Instant,
    ) {
        let Some(ticket) = self.waiting.take() else {
            return;
        };
        let question = |((slot, lane), round_trip): ((usize, LaneId), Option<Duration>)| {
            let round_trips = round_trip.unwrap_or_default() * PATIENCE_ROUND_TRIPS;
            let patience = PATIENCE_MIN.max(round_trips);
            Question {
                slot,
                lane,
                probes: Vec::new(),
                due: true,
                tries: 1,
                patience,
                until: now + patience,
            }
        };
        let open = lanes.map(question).collect();
        self.round = Some(Round { ticket, open });
    }

    /// Who was asked may have been overtaken: all are asked again, later.
    pub fn begin_anew(&mut self) {
        if let Some(round) = self.round.take() {
            self.waiting.get_or_insert(round.ticket);
        }
    }

    /// The peers to which a probe is to leave, and the lane of it.
    pub fn due(&self) -> impl Iterator<Item = (usize, LaneId)> + '_ {
        let open = self.round.iter().flat_map(|round| &round.open);
        let due = open.filter(|question| question.due);
        due.map(|question| (question.slot, question.lane))
    }

    /// A probe has left.
    pub fn on_sent(&mut self, to: (usize, LaneId), probe: (LinkId, Sequence)) {
        let open = self.round.iter_mut().flat_map(|round| &mut round.open);
        for question in open.filter(|question| (question.slot, question.lane) == to) {
            if question.probes.len() == PROBES_MAX {
                question.probes.remove(0);
            }
            question.probes.push(probe);
            question.due = false;
        }
    }

    /// Whether this peer has been asked, before that time, and has not answered.
    pub fn has_waited_for(&self, slot: usize, before: Instant) -> bool {
        let mut open = self.round.iter().flat_map(|round| &round.open);
        open.any(|question| {
            let asked_before = question.until - question.patience <= before;
            question.slot == slot && !question.probes.is_empty() && asked_before
        })
    }

    /// An acknowledgement of a peer. What it leaves out is no answer, even where the link counts it as
    /// lost: that tells of the probe, and not of what went before it.
    pub fn on_ack(&mut self, slot: usize, ack: &Ack) {
        let names =
            |&(link, sequence): &(LinkId, Sequence)| link.0 == ack.link && ack.names(sequence);
        if let Some(round) = &mut self.round {
            let is_answered =
                |question: &Question| question.slot == slot && question.probes.iter().any(names);
            round.open.retain(|question| !is_answered(question));
            // Acknowledged so late that it has no place in what is said any more: asked again, it has.
            let is_past = |&(link, sequence): &(LinkId, Sequence)| {
                link.0 == ack.link && ack.newest.distance_from(sequence) > NAMED_MAX as i32
            };
            let of_peer = round.open.iter_mut().filter(|q| q.slot == slot);
            for question in of_peer {
                question.due |= question.probes.last().is_some_and(is_past);
            }
        }
    }

    /// It is gone: nobody waits for it.
    pub fn forget_peer(&mut self, slot: usize) {
        if let Some(round) = &mut self.round {
            round.open.retain(|question| question.slot != slot);
        }
    }

    /// The ticket of a request that nobody is waited for any more.
    pub fn take_done(&mut self) -> Option<u64> {
        let done = self.round.take_if(|round| round.open.is_empty())?;
        Some(done.ticket)
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let open = self.round.iter().flat_map(|round| &round.open);
        open.map(|question| question.until).min()
    }

    /// Asks again who was silent, or forgets the request.
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some(round) = &mut self.round else {
            return;
        };
        for question in round.open.iter_mut().filter(|q| q.until <= now) {
            question.due = true;
            question.tries += 1;
            question.until = now + question.patience;
        }
        if round.open.iter().any(|question| question.tries > TRIES_MAX) {
            self.round = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkId = LinkId(3);

    const LANE: LaneId = LaneId(2);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn ack(newest: u32, bitmap: u64) -> Ack {
        Ack {
            link: LINK.0,
            newest: Sequence(newest),
            bitmap,
            ..Ack::default()
        }
    }

    /// A request whose probe to each of these peers left at zero as link sequence 10.
    fn asked(ticket: u64, slots: &[usize]) -> Drain {
        let mut drain = Drain::default();
        drain.request(ticket);
        assert!(drain.may_begin());
        drain.begin(slots.iter().map(|&slot| ((slot, LANE), None)), at(0));
        assert_eq!(drain.due().map(|(slot, _)| slot).collect::<Vec<_>>(), slots);
        for &slot in slots {
            drain.on_sent((slot, LANE), (LINK, Sequence(10)));
        }
        assert_eq!(drain.due().count(), 0);
        drain
    }

    #[test]
    fn it_is_done_when_every_peer_has_answered_or_is_gone() {
        let mut drain = asked(7, &[0, 4, 5]);
        drain.on_ack(4, &ack(10, 0));
        drain.on_ack(4, &ack(10, 0));
        drain.forget_peer(0);
        assert_eq!(drain.take_done(), None);
        drain.on_ack(5, &ack(12, 0b10));
        assert_eq!(drain.take_done(), Some(7));
        assert_eq!((drain.take_done(), drain.poll_timeout()), (None, None));
        assert!(drain.is_idle());
    }

    #[test]
    fn each_lane_is_asked_for_itself() {
        let mut drain = Drain::default();
        drain.request(7);
        let lanes = [((0, LaneId::FIRST), None), ((0, LANE), None)];
        drain.begin(lanes.into_iter(), at(0));
        drain.on_sent((0, LaneId::FIRST), (LINK, Sequence(10)));
        assert_eq!(drain.due().collect::<Vec<_>>(), [(0, LANE)]);
        drain.on_sent((0, LANE), (LINK, Sequence(11)));
        drain.on_ack(0, &ack(11, 0));
        assert_eq!(drain.take_done(), None, "the first lane may be late");
        drain.on_ack(0, &ack(11, 1));
        assert_eq!(drain.take_done(), Some(7));
    }

    #[test]
    fn without_peers_it_is_done_at_once() {
        assert_eq!(asked(1, &[]).take_done(), Some(1));
    }

    #[test]
    fn an_acknowledgement_that_does_not_name_the_probe_is_no_answer() {
        let mut drain = asked(7, &[0]);
        let other_link = Ack {
            link: 4,
            ..ack(10, 0)
        };
        // Older, by another link, newer with all but this one, so new that it cannot say.
        for ack in [ack(9, !0), other_link, ack(12, !0b10), ack(75, !0)] {
            drain.on_ack(0, &ack);
            assert_eq!(drain.take_done(), None, "{ack:?}");
        }
        drain.on_ack(0, &ack(74, 1 << 63));
        assert_eq!(drain.take_done(), Some(7));
    }

    #[test]
    fn who_is_silent_is_asked_again_and_an_answer_to_any_probe_will_do() {
        let mut drain = asked(7, &[0, 1]);
        drain.on_ack(1, &ack(10, 0));
        assert_eq!(drain.poll_timeout(), Some(at(200)));
        drain.handle_timeout(at(199));
        assert_eq!(drain.due().count(), 0);
        drain.handle_timeout(at(200));
        assert_eq!(drain.due().collect::<Vec<_>>(), [(0, LANE)]);
        drain.on_sent((0, LANE), (LINK, Sequence(11)));
        drain.on_ack(0, &ack(10, 0));
        assert_eq!(drain.take_done(), Some(7));
    }

    #[test]
    fn after_five_tries_it_is_forgotten_and_the_next_may_begin() {
        let mut drain = asked(7, &[0]);
        drain.request(8);
        for n in 1..=5 {
            assert!(!drain.may_begin());
            assert_eq!(drain.poll_timeout(), Some(at(200 * n)));
            drain.handle_timeout(at(200 * n));
        }
        assert_eq!(drain.take_done(), None);
        assert!(drain.may_begin());
    }

    #[test]
    fn a_long_round_trip_is_waited_for() {
        let mut drain = Drain::default();
        drain.request(1);
        let round_trip = Some(Duration::from_millis(600));
        drain.begin([((0, LANE), round_trip)].into_iter(), at(0));
        assert_eq!(drain.poll_timeout(), Some(at(2400)));
    }

    #[test]
    fn a_newer_request_replaces_one_that_nobody_was_asked_for_and_waits_for_others() {
        let mut drain = Drain::default();
        drain.request(1);
        drain.request(2);
        drain.begin([((0, LANE), None)].into_iter(), at(0));
        drain.request(3);
        assert!(drain.may_begin(), "nobody was asked for 2 yet");
        drain.begin([((0, LANE), None)].into_iter(), at(0));
        drain.on_sent((0, LANE), (LINK, Sequence(10)));
        drain.request(4);
        drain.request(5);
        assert!(!drain.may_begin());
        drain.on_ack(0, &ack(10, 0));
        assert_eq!(drain.take_done(), Some(3));
        assert!(drain.may_begin());
        drain.begin([].into_iter(), at(0));
        assert_eq!(drain.take_done(), Some(5));
    }
}
