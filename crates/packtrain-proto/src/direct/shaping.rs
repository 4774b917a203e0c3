//! At which rate direct frames are let out of a queue of ours, so that none stands in the link's own.
//!
//! Where a link's queue stands, all that is short waits behind all that is long. An engine in user space can hold the queue
//! itself, as long as it has its turn in time for each frame. At hundreds of megabits it has not: there the kernel holds it, a
//! little below the rate that the link was seen to drain at. What was seen is right only while something stands there, which
//! is what is to be avoided. So now and then a little more is let out for a moment: when that stands, the rate is known anew; when
//! not, the link takes more.
//!
//! The owner looks every [`Shaping::look_after`] and says what it saw.

use core::time::Duration;

use super::ENGINE_SURE_BPS;
use crate::time::Instant;

/// Below, an engine is in time for each frame, and does more for those that wait: it packs, marks and sends again.
pub const SHAPED_MIN_BPS: u64 = 200_000_000;

/// Of the link's rate, in thousandths: what keeps its queue empty, what has it drained soon, and by how much more than the first
/// a probe is.
const SHAPED: u64 = 980;
const DRAINING: u64 = 900;
const PROBING: u64 = 1042;

/// What a link is taken for at most that took more, before it has taken that as well.
const PROBED_MAX_BPS: u64 = ENGINE_SURE_BPS - 1;

/// What a link that stood still for a moment has standing drains by 2 % of its rate only: it is to be seen soon.
const LOOK: Duration = Duration::from_millis(20);
/// So short a probe that less than half a millisecond stands in the end, and so much more that it shows behind what had been saved up.
const PROBE: Duration = Duration::from_millis(20);
const PROBE_FIRST: Duration = Duration::from_secs(1);
const PROBE_LAST: Duration = Duration::from_secs(32);
/// Seen for less, what left may be what had been saved up for it.
const MEASURED_MIN: Duration = Duration::from_millis(4);
/// What does not drain in so many looks is not ours, or not the rate that it was taken for.
const DRAINING_LOOKS: u32 = 50;
/// So often in this time its queue stood although we kept below: somebody else sends there. A host that others share is away a few times.
const TROUBLES: u32 = 50;
const TROUBLE_TIME: Duration = Duration::from_secs(10);
/// So many looks in a row have to find a rate that is none for this.
const OUT_OF_RANGE: u32 = 3;
/// What others send there, bit/s, is smoothed by so much in a look.
const OTHERS_PART: u64 = 4;

/// What was seen since the last look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub elapsed: Duration,
    /// So long something stood in the link's own queue, and bytes that left it in that time.
    pub stood: Duration,
    pub stood_left: u64,
    /// Bytes that have left our queue, and the link's, where that counts them.
    pub ours: u64,
    pub all: Option<u64>,
    /// Something waits in our queue.
    pub waits: bool,
}

impl Seen {
    /// Not just for a frame or two. In a probe, which is over before much can stand, for so long that its rate is known.
    fn stands(&self, phase: Phase) -> bool {
        let least = match phase {
            Phase::Probing => MEASURED_MIN,
            Phase::Draining { .. } | Phase::Steady => MEASURED_MIN.max(self.elapsed / 2),
        };
        self.stood >= least
    }

    /// At which the link drained, bit/s.
    fn rate_bps(&self) -> Option<u64> {
        let nanos = self.stood.as_nanos();
        let bps = u128::from(self.stood_left) * 8_000_000_000 / nanos.max(1);
        (self.stood >= MEASURED_MIN && bps > 0).then(|| u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// What stands in the link's queue is let go.
    Draining {
        looks: u32,
    },
    Steady,
    Probing,
}

/// Why a link is no longer shaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// Its queue stands whatever we do: somebody else fills it.
    NotOurs,
    /// It became so slow that the engine does it better.
    Slow,
    /// It became so fast that the engine could not.
    Fast,
}

#[derive(Debug)]
pub struct Shaping {
    /// As it was measured last, or taken for more since then.
    link_bps: u64,
    is_measured: bool,
    others_bps: u64,
    phase: Phase,
    next_probe: Instant,
    probe_after: Duration,
    /// Looks in a row at which the rate was none for this: a host that stands still for a moment sees a slow link.
    out_of_range: u32,
    /// How often it stood in vain, and since when that is counted.
    troubles: u32,
    troubles_since: Instant,
}

impl Shaping {
    /// Something stands there, and it drains at this rate, bit/s.
    pub fn new(link_bps: u64, now: Instant) -> Shaping {
        Shaping {
            link_bps,
            is_measured: false,
            others_bps: 0,
            phase: Phase::Draining { looks: 0 },
            next_probe: now + PROBE_FIRST,
            probe_after: PROBE_FIRST,
            out_of_range: 0,
            troubles: 0,
            troubles_since: now,
        }
    }

    /// What is let out from now on, bit/s of frames as the link counts them.
    pub fn rate_bps(&self) -> u64 {
        let kept = part(self.link_bps, SHAPED);
        let all = match self.phase {
            Phase::Draining { .. } => part(self.link_bps, DRAINING),
            Phase::Steady => kept,
            Phase::Probing => part(kept, PROBING),
        };
        all - self.others_bps.min(all / 2)
    }

    /// The link's, as it was measured last.
    pub fn link_bps(&self) -> u64 {
        self.link_bps
    }

    /// How long until the next look.
    pub fn look_after(&self) -> Duration {
        match self.phase {
            Phase::Probing => PROBE,
            Phase::Draining { .. } | Phase::Steady => LOOK,
        }
    }

    /// Whether it goes on; then [`Shaping::rate_bps`] may be another.
    pub fn look(&mut self, seen: &Seen, now: Instant) -> Result<(), GivenUp> {
        self.note_others(seen);
        match (self.phase, seen.stands(self.phase)) {
            (Phase::Draining { looks }, true) if looks < DRAINING_LOOKS => {
                self.measure(seen, now);
                self.phase = Phase::Draining { looks: looks + 1 };
            }
            (Phase::Draining { .. }, true) => return Err(GivenUp::NotOurs),
            (Phase::Draining { .. }, false) => self.phase = Phase::Steady,
            (Phase::Steady, true) => {
                self.note_trouble(now)?;
                self.measure(seen, now);
                self.phase = Phase::Draining { looks: 0 };
            }
            (Phase::Steady, false) if seen.waits && now >= self.next_probe => {
                self.phase = Phase::Probing;
            }
            (Phase::Steady, false) => {}
            (Phase::Probing, true) => {
                self.probe_after = (self.probe_after * 2).min(PROBE_LAST);
                self.next_probe = now + self.probe_after;
                self.measure(seen, now);
                self.phase = Phase::Draining { looks: 0 };
            }
            // It takes more; and what was not used says nothing.
            (Phase::Probing, false) if seen.waits => {
                // Once at what is no more for this; from there on by as much as shows that it takes that.
                let faster = part(self.link_bps, PROBING);
                self.link_bps = match self.link_bps {
                    ..PROBED_MAX_BPS => faster.min(PROBED_MAX_BPS),
                    _ => faster,
                };
                self.is_measured = false;
                self.probe_after = PROBE_FIRST;
            }
            (Phase::Probing, false) => self.phase = Phase::Steady,
        }
        self.out_of_range = match self.link_bps {
            SHAPED_MIN_BPS..ENGINE_SURE_BPS => 0,
            _ => self.out_of_range + 1,
        };
        match self.link_bps {
            _ if self.out_of_range < OUT_OF_RANGE => Ok(()),
            ..SHAPED_MIN_BPS => Err(GivenUp::Slow),
            _ => Err(GivenUp::Fast),
        }
    }

    fn measure(&mut self, seen: &Seen, now: Instant) {
        let Some(rate_bps) = seen.rate_bps() else {
            return;
        };
        if rate_bps < self.link_bps - self.link_bps / 32 {
            // A link that was slow for a moment is soon found as fast as it was.
            self.probe_after = PROBE_FIRST;
            self.next_probe = now + PROBE_FIRST;
        }
        // What differs by little is a measurement's own error.
        let is_near = rate_bps.abs_diff(self.link_bps) <= self.link_bps / 32;
        self.link_bps = match self.is_measured && is_near {
            true => (self.link_bps * 3 + rate_bps) / 4,
            false => rate_bps,
        };
        self.is_measured = true;
    }

    fn note_others(&mut self, seen: &Seen) {
        let nanos = seen.elapsed.as_nanos();
        let Some(all) = seen.all.filter(|_| nanos > 0) else {
            return;
        };
        let bps = u128::from(all.saturating_sub(seen.ours)) * 8_000_000_000 / nanos;
        let bps = u64::try_from(bps).unwrap_or(u64::MAX).min(self.link_bps);
        self.others_bps = (self.others_bps * (OTHERS_PART - 1) + bps) / OTHERS_PART;
    }

    fn note_trouble(&mut self, now: Instant) -> Result<(), GivenUp> {
        if now.since(self.troubles_since) > TROUBLE_TIME {
            self.troubles = 0;
            self.troubles_since = now;
        }
        self.troubles += 1;
        match self.troubles {
            ..=TROUBLES => Ok(()),
            _ => Err(GivenUp::NotOurs),
        }
    }
}

fn part(bps: u64, thousandths: u64) -> u64 {
    bps / 1000 * thousandths
}

#[cfg(test)]
mod tests;
