//! Which of several links the next train takes.
//!
//! By default the one by which it arrives first: what stands before it there, at that link's rate, and
//! the link's own delay. A link that has no room is passed over, so an idle one always takes what would
//! else wait: pure earliest finish would wait for the fastest link, and leave slow ones unused for as long
//! as senders keep the fast one's queue short.
//!
//! Whatever the policy, links stand in *tiers*: those of a higher one are for when no lower one works, or, if the line says so,
//! for when all of the lower ones are full.

use arrayvec::ArrayVec;

use crate::buffer::SMALL_CAPACITY;
use crate::config::{Balance, Config, LinkId, LinkSettings};
use crate::time::{Duration, Instant};
use crate::wire::hello::LINKS_MAX;
use admission::{Admission, Lateness};
use weighted::Served;

/// How a line uses several links.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub balance: Balance,
    /// A higher tier carries what all lower ones have no room for. Not of flows that keep to a link.
    pub spills: bool,
}

impl Policy {
    pub fn of(config: &Config) -> Policy {
        Policy {
            balance: config.balance,
            spills: config.tier_spill && !config.balance.keeps_flows(),
        }
    }

    /// Whether a link may be left out because the others would wait for it. Where there is one at a time, none waits.
    pub fn admits(self) -> bool {
        self.balance != Balance::ActiveBackup
    }

    /// Links of which all are of equal right, the lower the better.
    fn rank(self, candidate: &Candidate) -> (Standing, u8) {
        match self.spills {
            true => (candidate.standing, 0),
            false => (candidate.standing, candidate.settings.tier),
        }
    }
}

/// What the others would have to wait for a train of a slower link, at most. The receiver gives up a
/// gap after no less than twice as long.
const SKEW_MAX: Duration = Duration::from_millis(200);
/// … and at most half of so many trains of theirs, which the receiver has to hold meanwhile: it has a
/// window of 4096, and memory of which large trains take much.
const SPAN_TRAINS: u32 = 3072;
const SPAN_LARGE_TRAINS: u32 = 192;

/// A link that does not answer is believed to have died while a train arrives by another one later by no more than such a part of the time that
/// it has not answered. It may be the peer that does not run for a moment, and then what goes by a slow link meanwhile holds up all that
/// comes behind it: by a part of what the others waited for that peer anyway, though a slow link is often slower than it was seen to be.
const DOUBT_PARTS: u32 = 4;

/// How far the newest train may be ahead of the oldest that is under way. `bytes`: of a train.
pub fn span_trains_max(bytes: usize) -> u32 {
    match bytes <= SMALL_CAPACITY {
        true => SPAN_TRAINS,
        false => SPAN_LARGE_TRAINS,
    }
}

/// How well a path may be used. Worse ones are used only where there is no better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    Open,
    /// Nobody knows yet whether it works, or it came back a moment ago.
    Held,
    /// Its trains were not acknowledged for too long.
    Silent,
    /// It is to leave.
    Retiring,
    /// What went by another path, without a sequence, must arrive first: until then even one that is to leave takes what follows.
    Joining,
}

/// How fast a path is, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    Measured(u64),
    /// What it counts as until it is measured.
    Expected(u64),
}

impl Rate {
    fn bps(self) -> u64 {
        let (Rate::Measured(bps) | Rate::Expected(bps)) = self;
        bps
    }

    fn measured_bps(self) -> Option<u64> {
        match self {
            Rate::Measured(bps) => Some(bps),
            Rate::Expected(_) => None,
        }
    }
}

/// A path over which trains can go now.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Whatever the caller knows it by.
    pub at: usize,
    pub link: LinkId,
    pub settings: LinkSettings,
    /// What it has carried for its weight.
    pub served: Served,
    pub admission: Admission,
    pub standing: Standing,
    /// It has not answered for so long, and may have died just now: others of equal right are used, unless they are late
    /// (`DOUBT_PARTS`).
    pub in_doubt: Option<Duration>,
    pub has_room: bool,
    pub rate: Rate,
    /// What has to leave, or arrive, before a train that is put there now.
    pub ahead_bytes: usize,
    /// The least round trip: all differ from each other as the ways there do, because acknowledgements
    /// come back by the same way.
    pub delay: Duration,
}

impl Candidate {
    /// When a train of `bytes` has arrived.
    pub fn finish(&self, bytes: usize) -> Duration {
        self.arrival(self.ahead_bytes + bytes)
    }

    fn arrival(&self, bytes: usize) -> Duration {
        let bits = bytes as u64 * 8;
        let nanos = bits.saturating_mul(1_000_000_000) / self.rate.bps().max(1);
        let transfer = Duration::from_nanos(nanos);
        transfer + self.delay
    }
}

/// Paths that take part, and when a train has arrived by each.
pub type Part = ArrayVec<(Candidate, Duration), LINKS_MAX>;

/// How much later than by the fastest path a train may arrive.
fn skew_max(part: &Part, bytes: usize) -> Duration {
    let rates = part.iter().filter_map(|(c, _)| c.rate.measured_bps());
    let rate_bps: u64 = rates.sum();
    let bits = u64::from(span_trains_max(bytes) / 2) * bytes as u64 * 8;
    let held = Duration::from_nanos(bits.saturating_mul(1_000_000_000) / rate_bps.max(1));
    held.min(SKEW_MAX)
}

/// The paths that take part: of the best standing that there is and the lowest tier, those that are not so slow that the
/// others would have to wait for them for too long. There are no more candidates than a line has links.
pub fn taking_part(
    candidates: impl Iterator<Item = Candidate>,
    policy: Policy,
    bytes: usize,
) -> Part {
    let keeps_flows = policy.balance.keeps_flows();
    // What stands before it now is no reason to send a flow by another one.
    let with_finish = |candidate: Candidate| match keeps_flows {
        true => (candidate, candidate.arrival(bytes)),
        false => (candidate, candidate.finish(bytes)),
    };
    let mut part: Part = candidates.map(with_finish).take(LINKS_MAX).collect();
    let rank = |c: &Candidate| policy.rank(c);
    let Some(best) = part.iter().map(|(c, _)| rank(c)).min() else {
        return part;
    };
    part.retain(|(c, _)| rank(c) == best);
    let sure = part.iter().filter(|(c, _)| c.in_doubt.is_none());
    if let Some(first) = sure.map(|(_, finish)| *finish).min()
        && policy.admits()
        && !keeps_flows
    {
        let others_are_late = |time, finish| first.saturating_sub(finish) > time / DOUBT_PARTS;
        part.retain(|(c, finish)| c.in_doubt.is_none_or(|time| others_are_late(time, *finish)));
    }
    if policy.admits() && part.iter().any(|(c, _)| c.admission.takes_part()) {
        part.retain(|(c, _)| c.admission.takes_part());
    }
    match policy.balance {
        Balance::ActiveBackup => {
            let all = part.clone();
            let tier_of = |c: &Candidate| c.settings.tier;
            let is_before =
                |a: &Candidate, b: &Candidate| tier_of(a) == tier_of(b) && a.link < b.link;
            part.retain(|(c, _)| !all.iter().any(|(other, _)| is_before(other, c)));
        }
        _ => {
            let first = part.iter().map(|(_, finish)| *finish).min();
            let latest = first.unwrap_or_default() + skew_max(&part, bytes);
            part.retain(|(_, finish)| *finish <= latest);
        }
    }
    part
}

/// Which of these paths, by what they are known by, are to be admitted from now on or not, where that is not as before. `measured_at`: when a
/// path's rate was.
pub fn admissions(
    candidates: impl Iterator<Item = Candidate>,
    policy: Policy,
    bytes: usize,
    measured_at: impl Fn(&Candidate) -> Option<Instant>,
    now: Instant,
) -> ArrayVec<(usize, Admission), LINKS_MAX> {
    let mut all: ArrayVec<Candidate, LINKS_MAX> = candidates.take(LINKS_MAX).collect();
    let best = all.iter().map(|c| policy.rank(c)).min();
    all.retain(|c| Some(policy.rank(c)) == best);
    let next = |c: &Candidate| {
        let lateness = Lateness::of(c, &all, bytes);
        c.admission.next(lateness, measured_at(c), now)
    };
    let changed = all.iter().filter(|c| next(c) != c.admission);
    changed.map(|c| (c.at, next(c))).collect()
}

/// The path for the next train, if one that takes part has room, and `has_frames` for its link. `last`: the link that was
/// used last.
pub fn choose(
    part: &Part,
    balance: Balance,
    last: LinkId,
    has_frames: impl Fn(LinkId) -> bool,
) -> Option<usize> {
    let may = part
        .iter()
        .filter(|(c, _)| c.has_room && has_frames(c.link));
    // In a circle, from the one after the last.
    let turn = |link: LinkId| link.0.wrapping_sub(last.0).wrapping_sub(1);
    let tier = |c: &Candidate| c.settings.tier;
    let chosen = match balance {
        Balance::EarliestFinish | Balance::Duplicate => {
            may.min_by_key(|(c, finish)| (tier(c), *finish, turn(c.link)))
        }
        Balance::Weighted => may.min_by_key(|(c, _)| (tier(c), c.served, turn(c.link))),
        Balance::RoundRobin
        | Balance::ActiveBackup
        | Balance::HashMac
        | Balance::HashIp
        | Balance::HashPort => may.min_by_key(|(c, _)| (tier(c), turn(c.link))),
    };
    chosen.map(|(c, _)| c.at)
}

pub mod admission;
#[cfg(test)]
mod tests;
pub mod weighted;
