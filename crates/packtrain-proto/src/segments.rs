//! Which of our links are on one segment, and the home link of each: the one by which hosts without
//! packtrain reach us there, so that no switch sees `pt0`'s address on two ports.
//!
//! Two links are on one segment when our own hello, sent to the group on one, is heard on the other.
//! That holds for a while, and ends with the carrier of either: its cable may be in another port
//! after. A link that has just got carrier is *settling*: it is not known yet whose segment it is
//! on, so nothing goes out plainly until its hellos had time to come back on another link. Where no
//! other link could have heard them, there is nothing to wait for.
//!
//! ```text
//!          carrier, and no other home          another home's segment: heard
//!  DOWN ────────────────────────────▶ HOME ───────────────────────────────────▶ BESIDE(home)
//!    │                                 ▲ │ ◀─────────────────────────────────────  │
//!    │ carrier              time is up │ │   that home is gone, or heard no more   │
//!    └─────────────────▶ SETTLING ─────┘ │                                         │
//!                           └────────────┼─ heard ────────────────────────────────▶│
//!         (carrier lost: DOWN, from each of them)
//! ```
//!
//! Links that a switch takes for one by its settings (a static link aggregation, IEEE 802.1AX without a protocol) are on one segment
//! because their owner says so, and no hello of ours comes back. Each of them carries what is plain, and takes it. One that comes
//! back all the same shows that the switch does not know of it: then they are as any others on one segment.
//!
//! Invariants: links with carrier that hear each other have one head, which is home or settling; the
//! others stand beside it. There is a home whenever a link has carrier. A home stays one until its
//! carrier goes, it retires beside another, a lower home is on its segment, or a link of a lower tier that has settled there.

use crate::config::LinkId;
use crate::time::{Duration, Instant};

/// Two rounds of hurried hellos, and time for the second one to come back.
const SETTLING: Duration = Duration::from_millis(150);

/// As [`LinkSettings`](crate::config::LinkSettings) begins.
const TIER_UNTOLD: u8 = 1;

/// What a link is to its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No carrier.
    Down,
    /// It is not known yet whether another home is on its segment.
    Settling,
    Home,
    /// On the segment of which that link is the head: home or settling.
    Beside(LinkId),
}

#[derive(Debug)]
struct Member {
    link: LinkId,
    retiring: bool,
    tier: u8,
    /// It is one of those that a switch takes for one.
    in_lag: bool,
    /// Whether our hellos had time to come back on another link since it got carrier.
    settled: bool,
    standing: Standing,
    /// When it is settled at the latest.
    settles_at: Instant,
    /// Behind which link those on its segment believe us, also while it has no carrier.
    known_behind: Option<LinkId>,
}

/// Our hello, sent on one, was heard on the other. `low < high`.
#[derive(Debug)]
struct Echo {
    low: LinkId,
    high: LinkId,
    heard: Instant,
}

#[derive(Debug)]
pub struct Segments {
    /// Ascending.
    members: Vec<Member>,
    /// At most one of each pair of members.
    echoes: Vec<Echo>,
    echo_age_max: Duration,
    /// So long our own hello, heard by another of those that a switch is said to take for one, speaks against that. Also when either has lost its carrier
    /// since.
    refused_until: Option<Instant>,
    /// Of all segments, ascending.
    heads: Vec<LinkId>,
}

impl Member {
    /// What it waits for, it does not wait for any more.
    fn has_settled(&self) -> bool {
        self.settled || !self.in_lag || self.standing == Standing::Down
    }
}

impl Segments {
    /// `echo_age_max`: how long two links count as on one segment without being heard again.
    pub fn new(echo_age_max: Duration) -> Segments {
        Segments {
            members: Vec::new(),
            echoes: Vec::new(),
            echo_age_max,
            refused_until: None,
            heads: Vec::new(),
        }
    }

    fn member(&self, link: LinkId) -> Option<&Member> {
        self.members.iter().find(|member| member.link == link)
    }

    fn member_mut(&mut self, link: LinkId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.link == link)
    }

    /// A link has joined, or its carrier may have changed. [`Segments::update`] follows.
    pub fn set_carrier(&mut self, link: LinkId, carrier: bool, now: Instant) {
        if self.member(link).is_none() {
            let at = self.members.partition_point(|member| member.link < link);
            let joined = Member {
                link,
                retiring: false,
                tier: TIER_UNTOLD,
                in_lag: false,
                settled: false,
                standing: Standing::Down,
                settles_at: now,
                known_behind: None,
            };
            self.members.insert(at, joined);
        }
        let member = self.member_mut(link).expect("it is there now");
        let had_carrier = member.standing != Standing::Down;
        if carrier && !had_carrier {
            member.standing = Standing::Settling;
            member.settles_at = now + SETTLING;
            member.settled = false;
        } else if !carrier && had_carrier {
            member.standing = Standing::Down;
            self.echoes
                .retain(|echo| echo.low != link && echo.high != link);
        }
    }

    /// Of the links of a segment, one of the lowest tier is home. [`Segments::update`] follows.
    pub fn set_tier(&mut self, link: LinkId, tier: u8) {
        if let Some(member) = self.member_mut(link) {
            member.tier = tier;
        }
    }

    /// Whether a switch takes the link, and others, for one. [`Segments::update`] follows.
    pub fn set_in_lag(&mut self, link: LinkId, in_lag: bool) {
        if let Some(member) = self.member_mut(link) {
            member.in_lag = in_lag;
        }
        if self.members.iter().filter(|member| member.in_lag).count() < 2 {
            self.refused_until = None;
        }
    }

    /// A link is to leave: another one of its segment is home from now on. [`Segments::update`] follows.
    pub fn retire(&mut self, link: LinkId) {
        if let Some(member) = self.member_mut(link) {
            member.retiring = true;
        }
    }

    /// A link has left, after its carrier was said to be gone.
    pub fn remove(&mut self, link: LinkId) {
        self.members.retain(|member| member.link != link);
    }

    /// Our own hello to the group came back: sent on one link, heard on another. Says whether that
    /// was not known; [`Segments::update`] follows then.
    pub fn on_echo(&mut self, sent: LinkId, heard: LinkId, now: Instant) -> bool {
        let is_up = |link| self.standing(link) != Standing::Down;
        if sent == heard || !is_up(sent) || !is_up(heard) {
            return false;
        }
        let (low, high) = (sent.min(heard), sent.max(heard));
        let is_in_lag = |link| self.member(link).is_some_and(|member| member.in_lag);
        let mut is_refused = false;
        if is_in_lag(sent) && is_in_lag(heard) {
            let until = now + self.echo_age_max;
            is_refused = self.refused_until.replace(until).is_none();
        }
        let known = self
            .echoes
            .iter_mut()
            .find(|echo| (echo.low, echo.high) == (low, high));
        match known {
            Some(echo) => {
                echo.heard = now;
                is_refused
            }
            None => {
                self.echoes.push(Echo {
                    low,
                    high,
                    heard: now,
                });
                true
            }
        }
    }

    /// We were not running for so long: that nothing was heard means nothing.
    pub fn forgive(&mut self, away: Duration, now: Instant) {
        for echo in &mut self.echoes {
            echo.heard = (echo.heard + away).min(now);
        }
        if let Some(until) = &mut self.refused_until {
            *until += away;
        }
    }

    /// When the next link has settled.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let settling = self
            .members
            .iter()
            .filter(|member| member.standing == Standing::Settling || !member.has_settled());
        settling.map(|member| member.settles_at).min()
    }

    /// Decides anew. `moved` is told each home whose segment knew us behind another link.
    pub fn update(&mut self, now: Instant, mut moved: impl FnMut(LinkId)) {
        let age_max = self.echo_age_max;
        self.echoes.retain(|echo| now.since(echo.heard) < age_max);
        self.refused_until.take_if(|until| *until <= now);
        for member in &mut self.members {
            member.settled = member.settles_at <= now;
        }
        let mut segments = self.segments(now);
        if !segments.iter().any(|segment| segment.settled) {
            // Nobody else could be home: the lowest need not wait.
            if let Some(first) = segments.iter_mut().min_by_key(|segment| segment.head) {
                first.settled = true;
            }
        }
        for segment in &segments {
            for &at in &segment.members {
                let member = &mut self.members[at];
                member.standing = match (member.link == segment.head, segment.settled) {
                    (true, true) => Standing::Home,
                    (true, false) => Standing::Settling,
                    (false, _) => Standing::Beside(segment.head),
                };
                // Of several that a switch is said to take for one, each shows for itself that it does.
                if segment.settled && !member.in_lag {
                    member.settles_at = member.settles_at.min(now);
                }
            }
        }
        for segment in segments.iter().filter(|segment| segment.settled) {
            if self.make_known(segment) {
                moved(segment.head);
            }
        }
        self.heads.clear();
        self.heads
            .extend(segments.iter().map(|segment| segment.head));
        self.heads.sort_unstable();
    }

    /// Those on the segment are to find us behind its head. Says whether they believed something else.
    fn make_known(&mut self, segment: &Segment) -> bool {
        let mut former = Vec::new();
        for &at in &segment.members {
            let known = self.members[at].known_behind.replace(segment.head);
            former.extend(known.filter(|&link| link != segment.head));
        }
        // Where a link without carrier was, they have learnt it too: so it will be no news to them
        // when that comes back, but one if it becomes home again.
        let taken_over = |link: &LinkId| self.standing(*link) != Standing::Home;
        let gone: Vec<LinkId> = former.iter().copied().filter(taken_over).collect();
        for member in &mut self.members {
            let known = member.known_behind;
            if member.standing == Standing::Down && known.is_some_and(|link| gone.contains(&link)) {
                member.known_behind = Some(segment.head);
            }
        }
        !former.is_empty()
    }

    /// Links with carrier that hear each other, over others if need be, and who is to stand for them.
    fn segments(&self, now: Instant) -> Vec<Segment> {
        let mut seen = vec![false; self.members.len()];
        let mut segments = Vec::new();
        for first in 0..self.members.len() {
            if seen[first] || self.members[first].standing == Standing::Down {
                continue;
            }
            seen[first] = true;
            let mut members = vec![first];
            let mut looked = 0;
            while let Some(&at) = members.get(looked) {
                looked += 1;
                for (other, seen) in seen.iter_mut().enumerate() {
                    if !*seen && self.hear_each_other(at, other) {
                        *seen = true;
                        members.push(other);
                    }
                }
            }
            segments.push(self.with_head(members, now));
        }
        segments
    }

    fn hear_each_other(&self, at: usize, other: usize) -> bool {
        let (a, b) = (self.members[at].link, self.members[other].link);
        let pair = (a.min(b), a.max(b));
        let names = |echo: &Echo| (echo.low, echo.high) == pair;
        let [a, b] = [at, other].map(|at| &self.members[at]);
        let is_up = |member: &Member| member.standing != Standing::Down;
        let are_one = a.in_lag && b.in_lag && is_up(a) && is_up(b);
        are_one || self.echoes.iter().any(names)
    }

    /// Whether our own hello came back by another of those links that a switch is said to take for one.
    pub fn lag_is_refused(&self) -> bool {
        self.refused_until.is_some()
    }

    /// Whether this link is one that a switch takes for one with others, as far as is known.
    pub fn is_in_lag(&self, link: LinkId) -> bool {
        self.member(link).is_some_and(|member| member.in_lag) && !self.lag_is_refused()
    }

    /// The links by which plain frames go to a segment, of which this is the head.
    pub fn ways_to(&self, head: LinkId) -> impl Iterator<Item = LinkId> + '_ {
        let has_lag = self.is_in_lag(head);
        let members = self.members.iter();
        let ways = members.filter(move |member| {
            let is_beside = member.standing == Standing::Beside(head) && member.settled;
            member.link == head || has_lag && member.in_lag && is_beside && !member.retiring
        });
        ways.map(|member| member.link)
    }

    /// The head of those that a switch takes for one with this link.
    fn head_of_lag(&self, link: LinkId) -> Option<LinkId> {
        let mut others = self.members.iter().filter(|member| member.in_lag);
        let head = others.find_map(|member| match member.standing {
            Standing::Home | Standing::Settling => Some(member.link),
            Standing::Beside(head) => Some(head),
            Standing::Down => None,
        });
        head.filter(|_| self.is_in_lag(link))
    }

    /// The same for those of them by which frames come once each, as it has been seen.
    pub fn place_of_copies(&self, link: LinkId) -> LinkId {
        let place = self.place_of(link);
        let is_settled = |link| self.member(link).is_some_and(|member| member.settled);
        match is_settled(link) && (is_settled(place) || self.standing(place) == Standing::Down) {
            true => place,
            false => link,
        }
    }

    /// The same for all links that a switch takes for one: a host that is heard by one of them is by all.
    pub fn place_of(&self, link: LinkId) -> LinkId {
        let mut members = self.members.iter();
        match self.is_in_lag(link) {
            true => members.find(|m| m.in_lag).map_or(link, |first| first.link),
            false => link,
        }
    }

    /// Whether plain frames leave by this link now.
    pub fn carries_plain(&self, link: LinkId) -> bool {
        match self.standing(link) {
            Standing::Home => true,
            Standing::Beside(head) => self.is_home(head) && self.ways_to(head).any(|l| l == link),
            Standing::Settling | Standing::Down => false,
        }
    }

    /// Whether they wait for this link: it is a head, or beside one as good as that.
    pub fn is_way(&self, link: LinkId) -> bool {
        let head = self.head_of(link);
        head.is_some_and(|head| self.ways_to(head).any(|way| way == link))
    }

    fn with_head(&self, members: Vec<usize>, now: Instant) -> Segment {
        let all = || members.iter().map(|&at| &self.members[at]);
        let lowest = |suits: &dyn Fn(&Member) -> bool| {
            let suiting = all().filter(|member| suits(member));
            let first = suiting.min_by_key(|member| (member.tier, member.link));
            first.map(|member| member.link)
        };
        let is_home = |member: &Member| member.standing == Standing::Home;
        let stays = |member: &Member| is_home(member) && !member.retiring;
        let tier = all().filter(|m| stays(m)).map(|m| m.tier).min();
        // One that is settling stands beside the home first: what waits for both goes out by that one alone.
        let takes_over = |member: &Member| {
            let is_beside = matches!(member.standing, Standing::Beside(_));
            is_beside && !member.retiring && tier.is_some_and(|tier| member.tier < tier)
        };
        let head = lowest(&|member| stays(member) || takes_over(member))
            .or_else(|| lowest(&|member| !member.retiring))
            .or_else(|| lowest(&is_home))
            .or_else(|| lowest(&|_| true));
        let settled = lowest(&|m| is_home(m) || m.settles_at <= now).is_some();
        Segment {
            head: head.expect("a segment has a member"),
            members,
            settled,
        }
    }

    pub fn standing(&self, link: LinkId) -> Standing {
        self.member(link).map_or(Standing::Down, |m| m.standing)
    }

    pub fn is_home(&self, link: LinkId) -> bool {
        self.standing(link) == Standing::Home
    }

    /// The link of each segment by which plain frames go there; at one that is settling, they wait.
    pub fn heads(&self) -> &[LinkId] {
        &self.heads
    }

    /// The head of this link's segment. `None`: nobody there can be reached.
    pub fn head_of(&self, link: LinkId) -> Option<LinkId> {
        let member = self.member(link)?;
        match member.standing {
            Standing::Home | Standing::Settling => Some(link),
            Standing::Beside(head) => Some(head),
            // Another one may have taken over.
            Standing::Down => {
                let home = member.known_behind.filter(|&home| self.is_home(home));
                home.or_else(|| self.head_of_lag(link))
            }
        }
    }

    /// Whether what everybody on a segment gets is taken on this link.
    pub fn listens(&self, link: LinkId) -> bool {
        match self.member(link).map(|m| (m.standing, m.known_behind)) {
            Some((Standing::Home | Standing::Settling, _)) => true,
            // What was under way when the carrier went.
            Some((Standing::Down, known)) => {
                let is_of_home = known.is_some_and(|home| self.is_home(home));
                known == Some(link) || self.heads.is_empty() || is_of_home && self.is_in_lag(link)
            }
            // Also by one that is to leave: the switch does not know.
            Some((Standing::Beside(head), _)) => self.is_in_lag(link) && self.is_in_lag(head),
            None => false,
        }
    }
}

/// Links with carrier, by their places among the members.
#[derive(Debug)]
struct Segment {
    members: Vec<usize>,
    head: LinkId,
    /// It is known that no other home is on it.
    settled: bool,
}

#[cfg(test)]
mod tests;
