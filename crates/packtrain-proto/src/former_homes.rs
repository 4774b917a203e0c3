//! Home links that another one has taken over from, while plain frames stand in their local queue still: these leave before what goes by
//! the next home, or a fast one would overtake them. They have no sequence by which anybody could set that right.
//!
//! What stands there leaves in the order in which it was given, so it is enough to know how many bytes have left the link, ever. It is
//! not waited for longer than a slow link takes for a large frame or two: what keeps it may be a switch that lets nothing pass.

use crate::config::LinkId;
use crate::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_millis(500);
/// A link is told of when something waits and the engine is called: it calls for that.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Debug)]
struct Wait {
    of: LinkId,
    /// By which frames of the same flows went before.
    former: LinkId,
    /// When so many bytes have left that one, they are gone.
    until_left: u64,
    ends_at: Instant,
}

#[derive(Debug, Default)]
pub struct FormerHomes {
    waits: Vec<Wait>,
    next_look: Instant,
}

impl FormerHomes {
    /// Plain frames take the link `of`, and went by `former` until now, of which those stand there still that are gone when so many
    /// bytes have left it.
    pub fn begin(&mut self, of: LinkId, former: LinkId, until_left: u64, now: Instant) {
        if self.waits.is_empty() {
            self.next_look = now + LOOK;
        }
        self.end(|wait| (wait.of, wait.former) == (of, former));
        self.waits.push(Wait {
            of,
            former,
            until_left,
            ends_at: now + PATIENCE,
        });
    }

    fn end(&mut self, ends: impl Fn(&Wait) -> bool) {
        self.waits.retain(|wait| !ends(wait));
    }

    /// Whether plain frames are not to leave by this link yet.
    pub fn hold(&self, link: LinkId) -> bool {
        self.waits.iter().any(|wait| wait.of == link)
    }

    /// So many bytes have left this link by now, ever; `None`: what stood there is gone, and the link has no carrier.
    pub fn on_left(&mut self, link: LinkId, left_bytes: Option<u64>) {
        let has_left = |wait: &Wait| left_bytes.is_none_or(|left| left >= wait.until_left);
        self.end(|wait| wait.former == link && has_left(wait));
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.waits.is_empty()).then_some(self.next_look)
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.end(|wait| wait.ends_at <= now);
        if self.next_look <= now {
            self.next_look = now + LOOK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: LinkId = LinkId(0);
    const NEW: LinkId = LinkId(1);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_home_is_held_until_what_stood_at_the_one_before_has_left_or_is_gone() {
        let mut homes = FormerHomes::default();
        homes.begin(NEW, OLD, 1000, at(0));
        assert!(homes.hold(NEW) && !homes.hold(OLD));
        homes.on_left(NEW, Some(5000));
        homes.on_left(OLD, Some(999));
        assert!(homes.hold(NEW));
        homes.on_left(OLD, Some(1000));
        assert!(!homes.hold(NEW));
        assert_eq!(homes.poll_timeout(), None);
        homes.begin(NEW, OLD, 3000, at(10));
        homes.on_left(OLD, None);
        assert!(!homes.hold(NEW));
    }

    #[test]
    fn it_is_held_for_half_a_second_at_most_and_looked_at_often_until_then() {
        let mut homes = FormerHomes::default();
        homes.begin(NEW, OLD, 1000, at(100));
        let mut looks = 0;
        while let Some(now) = homes.poll_timeout() {
            homes.handle_timeout(now);
            looks += 1;
            assert_eq!(homes.hold(NEW), now < at(600));
        }
        assert_eq!(looks, 100);
    }

    #[test]
    fn who_waits_for_several_waits_for_each_and_begins_anew_with_more_of_the_same() {
        let mut homes = FormerHomes::default();
        homes.begin(NEW, OLD, 1000, at(0));
        homes.begin(NEW, LinkId(2), 50, at(0));
        homes.begin(NEW, OLD, 2000, at(200));
        homes.on_left(OLD, Some(1500));
        homes.on_left(LinkId(2), Some(50));
        homes.handle_timeout(at(600));
        assert!(homes.hold(NEW));
        homes.on_left(OLD, Some(2000));
        assert!(!homes.hold(NEW));
    }
}
