//! A queue of ours before the only link, while direct frames would stand in its own.
//!
//! The program on the link asks for one ([`Standing::asked_at`]) instead of closing the path. It is made beside the line, for that
//! takes milliseconds; then frames go through it, at the rate that [`Shaping`] says. It is taken away when nothing goes
//! directly for a while, or when it does not help, and never while something may be in it that what comes next would overtake.

use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use packtrain_proto::config::{LinkId, LinkOrder};
use packtrain_proto::direct::OpenTo;
use packtrain_proto::direct::shaping::{SHAPED_MIN_BPS, Seen, Shaping};
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::MacAddr;

use super::RunningLine;
use super::direct::{Direct, warn_of};
use crate::linux::direct::{DirectError, ShapedBy, Standing};
use crate::linux::intake::{FRAME_BYTES_MAX, FRAME_BYTES_MIN, frame_bytes_made};
use crate::linux::netlink::Netlink;
use crate::linux::shaper::{self, Names, Shaper, ShaperError};
use crate::linux::tc::QueueStats;
use crate::status;

/// How often it is looked whether one is asked for, and how long ago that may be, as the program has it.
const LOOK: Duration = Duration::from_millis(50);
const ASKED_WITHIN: Duration = Duration::from_millis(300);
const MAKING_LOOK: Duration = Duration::from_millis(5);
/// Without a direct frame for so long, it goes.
const UNUSED_AFTER: Duration = Duration::from_secs(10);
/// After it was in vain the engine does it for so long; then twice as long each time.
const HOLD_FIRST: Duration = Duration::from_secs(64);
const HOLD_LAST: Duration = Duration::from_secs(1024);
/// Once nothing is held back any more it goes when it is empty and nothing came for a look; or only empty, so long after that.
const ENDING_MAX: Duration = Duration::from_secs(10);
/// So many looks in a row at which frames go in and none comes out: somebody has taken the interface away, or down.
const IN_VAIN: u32 = 5;
/// It was right for so long: what was held against it before is forgotten.
const PROVEN_AFTER: Duration = Duration::from_secs(300);
/// More than leaves any link between two looks.
const STOOD_LEFT_MAX: u64 = 1 << 36;
/// A former daemon's programs are gone by then, once its keeper was told to let go.
const FORMER_FOR: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct DirectShaper {
    state: State,
    next_look: Instant,
    hold: Duration,
    hold_until: Instant,
    /// By those that there were.
    dropped: u64,
    /// Until then there may be one of a former daemon's.
    former_until: Option<Instant>,
}

#[derive(Debug)]
enum State {
    None,
    Making {
        thread: JoinHandle<Result<Shaper, ShaperError>>,
        address: MacAddr,
        place: Place,
    },
    On(Box<Shaped>),
    /// Nothing is held back any more. `passed_by`: nor does anything go in.
    Ending {
        shaper: Box<Shaper>,
        place: Place,
        since: Instant,
        frames: u64,
        passed_by: bool,
    },
    /// The kernel takes interfaces apart in its own time.
    Going {
        thread: JoinHandle<()>,
        address: MacAddr,
    },
}

/// Before which link.
#[derive(Clone, Copy, Debug)]
struct Place {
    link: LinkId,
    ifindex: u32,
}

#[derive(Debug)]
struct Shaped {
    shaper: Shaper,
    shaping: Shaping,
    place: Place,
    before: Counted,
    /// Of direct frames there were so many by then.
    frames: u64,
    used_at: Instant,
    since: Instant,
    frame_bytes: u32,
    /// Looks in a row at which frames went in and none came out.
    in_vain: u32,
}

/// At a look.
#[derive(Clone, Copy, Debug)]
struct Counted {
    at: Instant,
    standing: Standing,
    ours: QueueStats,
    all: Option<u64>,
}

impl Shaped {
    fn count(&mut self, direct: &Direct, netlink: &mut Netlink, now: Instant) -> Option<Counted> {
        Some(Counted {
            at: now,
            standing: direct.path.standing(self.place.link.0).ok()?,
            ours: self.shaper.queue().ok()?,
            all: shaper::bytes_of_link(netlink, self.place.ifindex),
        })
    }

    fn seen(&mut self, after: &Counted) -> Seen {
        let before = std::mem::replace(&mut self.before, *after);
        let elapsed = after.at.since(before.at);
        let stood = after
            .standing
            .stood_ns
            .wrapping_sub(before.standing.stood_ns);
        let left = (after.standing.stood_left).wrapping_sub(before.standing.stood_left);
        // Several processors count there, and a link that got another queue begins anew.
        let stood = Duration::from_nanos(stood);
        let is_sound = stood <= elapsed * 2 && left <= STOOD_LEFT_MAX;
        let (stood, stood_left) = match is_sound {
            true => (stood, left),
            false => (Duration::ZERO, 0),
        };
        Seen {
            elapsed,
            stood,
            stood_left,
            ours: after.ours.sent_bytes.saturating_sub(before.ours.sent_bytes),
            all: after
                .all
                .zip(before.all)
                .map(|(after, before)| after.saturating_sub(before)),
            waits: after.ours.frames > 0,
        }
    }
}

impl DirectShaper {
    pub(super) fn new() -> DirectShaper {
        DirectShaper {
            state: State::None,
            next_look: Instant::ZERO,
            hold: HOLD_FIRST,
            hold_until: Instant::ZERO,
            dropped: 0,
            former_until: None,
        }
    }

    /// A former daemon's programs go now; what it had before the link goes a moment later.
    pub(super) fn let_former_go(&mut self, now: Instant) {
        self.former_until = Some(now + FORMER_FOR);
    }

    /// Frames by this link may be in a queue of ours: what comes by another way overtakes them.
    pub(super) fn is_before(&self, ifindex: u32) -> bool {
        self.former_until.is_some() || self.place().is_some_and(|place| place.ifindex == ifindex)
    }

    fn is_at_work(&self) -> bool {
        !matches!(self.state, State::None)
    }

    fn place(&self) -> Option<Place> {
        match &self.state {
            State::None | State::Going { .. } => None,
            State::Making { place, .. } | State::Ending { place, .. } => Some(*place),
            State::On(shaped) => Some(shaped.place),
        }
    }

    /// For `status`: what is before the link.
    pub(super) fn status(&mut self, link: LinkId) -> Option<status::DirectShaper> {
        let State::On(shaped) = &mut self.state else {
            return None;
        };
        if shaped.place.link != link {
            return None;
        }
        let queue = shaped.shaper.queue().unwrap_or_default();
        Some(status::DirectShaper {
            interface: shaped.shaper.names().upper.clone(),
            rate_bps: shaped.shaping.rate_bps(),
            frame_bytes_max: shaped.frame_bytes,
            frames: queue.frames,
            bytes: queue.bytes,
            dropped: queue.dropped,
        })
    }

    /// Frames that found such a queue full, ever.
    pub(super) fn dropped(&mut self) -> u64 {
        let now = match &mut self.state {
            State::On(shaped) => dropped_by(&mut shaped.shaper),
            State::Ending { shaper, .. } => dropped_by(shaper),
            State::None | State::Making { .. } | State::Going { .. } => 0,
        };
        self.dropped + now
    }

    /// The line ends: so does this, however far it is.
    pub(super) fn end(self) {
        match self.state {
            State::Making { thread, .. } => drop(thread.join()),
            State::Going { thread, .. } => drop(thread.join()),
            State::None | State::On(_) | State::Ending { .. } => {}
        }
    }

    fn hold_off(&mut self, now: Instant) {
        self.hold_until = now + self.hold;
        self.hold = (self.hold * 2).min(HOLD_LAST);
    }
}

impl RunningLine {
    /// Now and then: whether a queue of ours is asked for, and how the one goes that there is.
    pub(super) fn step_shaper(&mut self) {
        let now = self.clock.now();
        if self
            .shaper
            .former_until
            .take_if(|until| *until <= now)
            .is_some()
        {
            self.site.delete_all_queues();
        }
        if now < self.shaper.next_look {
            if self.shaper.is_at_work() {
                self.line.wake_by(self.shaper.next_look);
            }
            return;
        }
        self.shaper.next_look = now + LOOK;
        let place = self.place_to_shape();
        let Some(direct) = &mut self.direct else {
            return;
        };
        // What stands while it ends closes the path as without one.
        let is_ending = matches!(self.shaper.state, State::Ending { .. });
        let may_ask = place.is_some() && now >= self.shaper.hold_until && !is_ending;
        let shapes_from = if may_ask { SHAPED_MIN_BPS / 8000 } else { 0 };
        warn_of(direct.path.let_ask_for_queues(shapes_from as u32));
        let state = std::mem::replace(&mut self.shaper.state, State::None);
        self.shaper.state = match state {
            State::None => match place.filter(|_| may_ask) {
                Some(place) if self.is_asked_for(place) => self.make_shaper(place, now),
                _ => State::None,
            },
            State::Making {
                thread,
                address,
                place: made_for,
            } => {
                if thread.is_finished() {
                    self.shaper_made(thread, address, made_for, now)
                } else {
                    self.shaper.next_look = now + MAKING_LOOK;
                    State::Making {
                        thread,
                        address,
                        place: made_for,
                    }
                }
            }
            State::On(shaped) => {
                let is_there = place.is_some_and(|place| place.ifindex == shaped.place.ifindex);
                self.step_shaped(shaped, is_there, now)
            }
            State::Ending {
                shaper,
                place,
                since,
                frames,
                passed_by,
            } => self.step_ending(shaper, place, (since, frames, passed_by), now),
            State::Going { thread, address } if thread.is_finished() => {
                drop(thread.join());
                self.forget_interfaces(address);
                State::None
            }
            State::Going { .. } => state,
        };
        if self.shaper.is_at_work() {
            self.line.wake_by(self.shaper.next_look);
        }
    }

    /// The only link, if all frames may go by it directly.
    fn place_to_shape(&self) -> Option<Place> {
        let [member] = self.members.as_slice() else {
            return None;
        };
        let is_wanted = self.site.settings.max_sand_delay.0.is_some()
            && self.intake.is_some()
            && self.inheritance.is_none()
            && self.shaper.former_until.is_none()
            && self.leaving.is_empty();
        let link = member.id;
        let open = |direct: &Direct| {
            let mut ways = direct.destinations.iter();
            ways.any(|way| way.link == link.0 && way.has_queue && way.open_to == OpenTo::All)
        };
        (is_wanted && self.direct.as_ref().is_some_and(open)).then_some(Place {
            link,
            ifindex: member.ifindex()?,
        })
    }

    fn is_asked_for(&self, place: Place) -> bool {
        let Some(direct) = &self.direct else {
            return false;
        };
        let standing = direct.path.standing(place.link.0).unwrap_or_default();
        let ago = self
            .clock
            .monotonic_nanos()
            .saturating_sub(standing.asked_at);
        standing.asked_at != 0 && Duration::from_nanos(ago) < ASKED_WITHIN
    }

    fn make_shaper(&mut self, place: Place, now: Instant) -> State {
        let Some(direct) = &self.direct else {
            return State::None;
        };
        if !shaper::is_for(&mut self.site.netlink, place.ifindex) {
            self.shaper.hold_off(now);
            return State::None;
        }
        let names = Names::of(self.line.tap_ifindex(), self.clock.monotonic_nanos());
        let address = names.address;
        let expected = self.site.journal.expect_interface(&names.lower, address);
        let carry = direct.path.carry_program().try_clone_to_owned();
        let begun = match (expected, carry) {
            (Ok(()), Ok(carry)) => begin_making(names, carry),
            (Err(error), _) => Err(error.to_string()),
            (_, Err(error)) => Err(error.to_string()),
        };
        match begun {
            Ok(thread) => {
                // From now on what goes by the engine has to wait for what may be in it.
                self.line.link_queue(place.ifindex, LinkOrder::Flow, true);
                self.shaper.next_look = now + MAKING_LOOK;
                State::Making {
                    thread,
                    address,
                    place,
                }
            }
            Err(error) => self.shaper_failed(&error, address, now),
        }
    }

    fn shaper_made(
        &mut self,
        thread: JoinHandle<Result<Shaper, ShaperError>>,
        address: MacAddr,
        place: Place,
        now: Instant,
    ) -> State {
        let made = thread.join().map_err(|_| "its thread has panicked".into());
        let made = made.and_then(|made| made.map_err(|error| error.to_string()));
        let started = made.and_then(|shaper| self.start_shaping(shaper, place, now));
        match started {
            Ok(shaped) => State::On(Box::new(shaped)),
            Err(error) => self.shaper_failed(&error, address, now),
        }
    }

    fn start_shaping(
        &mut self,
        mut shaper: Shaper,
        place: Place,
        now: Instant,
    ) -> Result<Shaped, String> {
        let (Some(direct), Some(intake)) = (&mut self.direct, &mut self.intake) else {
            return Err("there is no direct path any more".into());
        };
        let in_words = |error: DirectError| error.to_string();
        let (link_bps, _) = direct
            .path
            .rate(place.link.0)
            .map_err(in_words)?
            .ok_or("its rate is not known")?;
        let shaping = Shaping::new(link_bps, now);
        let delay = self.site.settings.max_sand_delay.0.unwrap_or_default();
        let frame_bytes = frame_bytes(link_bps, delay);
        let turn_bytes = turn_bytes(frame_bytes, self.site.settings.mtu);
        shaper
            .set_rate(Some(shaping.rate_bps()), turn_bytes)
            .map_err(|error| error.to_string())?;
        intake.keep_frames_below(frame_bytes);
        let before = Counted {
            at: now,
            standing: direct.path.standing(place.link.0).map_err(in_words)?,
            ours: QueueStats::default(),
            all: shaper::bytes_of_link(&mut self.site.netlink, place.ifindex),
        };
        let shaped_by = ShapedBy {
            enters_by: Some(shaper.ifindex()),
            ifindex: place.ifindex,
        };
        self.line.no_direct_frame_waits();
        self.line.shape_direct_by(Some(place.link));
        direct.path.shape_by(Some(shaped_by)).map_err(in_words)?;
        tracing::debug!(
            "direct frames wait in {}, at {} of {link_bps} bit/s",
            shaper.names().upper,
            shaping.rate_bps()
        );
        Ok(Shaped {
            shaper,
            shaping,
            place,
            before,
            frames: direct.traffic(place.link).frames,
            used_at: now,
            since: now,
            frame_bytes,
            in_vain: 0,
        })
    }

    fn shaper_failed(&mut self, error: &str, address: MacAddr, now: Instant) -> State {
        tracing::warn!("{error}; so direct frames wait in the link's own queue, or in the engine");
        if let Some(intake) = &mut self.intake {
            intake.keep_frames_below(FRAME_BYTES_MAX);
        }
        self.line.shape_direct_by(None);
        self.forget_interfaces(address);
        self.shaper.hold_off(now);
        State::None
    }

    fn forget_interfaces(&mut self, address: MacAddr) {
        self.site.delete_queue(&address.to_string());
        if let Some(direct) = &mut self.direct {
            // What order the link's own queue keeps.
            direct.look_again();
        }
    }

    fn step_shaped(&mut self, mut shaped: Box<Shaped>, is_there: bool, now: Instant) -> State {
        let (Some(direct), Some(intake)) = (&mut self.direct, &mut self.intake) else {
            return State::None;
        };
        let frames = direct.traffic(shaped.place.link).frames;
        let goes_in = std::mem::replace(&mut shaped.frames, frames) != frames;
        if goes_in {
            shaped.used_at = now;
        }
        let counted = shaped.count(direct, &mut self.site.netlink, now);
        let Some(counted) = counted.filter(|_| is_there) else {
            return self.end_shaping(*shaped, now);
        };
        let seen = shaped.seen(&counted);
        shaped.in_vain = match goes_in && seen.ours == 0 {
            true => shaped.in_vain + 1,
            false => 0,
        };
        if shaped.in_vain >= IN_VAIN {
            let name = &shaped.shaper.names().upper;
            tracing::warn!("nothing comes out of {name}: direct frames pass it by");
            self.shaper.hold_off(now);
            return self.end_shaping(*shaped, now);
        }
        self.line.look_at_waiting(!seen.waits);
        if let Err(why) = shaped.shaping.look(&seen, now) {
            tracing::debug!(
                "{}: {why:?} ({:?}, {seen:?})",
                shaped.shaper.names().upper,
                shaped.shaping
            );
            self.shaper.hold_off(now);
            return self.end_shaping(*shaped, now);
        }
        if now.since(shaped.since) >= PROVEN_AFTER {
            self.shaper.hold = HOLD_FIRST;
        }
        if now.since(shaped.used_at) >= UNUSED_AFTER {
            return self.end_shaping(*shaped, now);
        }
        tracing::trace!("{:?} after {seen:?}", shaped.shaping);
        let rate_bps = shaped.shaping.rate_bps();
        if shaped.shaper.rate_bps() != Some(rate_bps) {
            let delay = self.site.settings.max_sand_delay.0.unwrap_or_default();
            let wanted = frame_bytes(shaped.shaping.link_bps(), delay);
            // Each change has all sockets look for their route again.
            if wanted.abs_diff(shaped.frame_bytes) > shaped.frame_bytes / 4 {
                shaped.frame_bytes = wanted;
                intake.keep_frames_below(wanted);
            }
            let bytes = turn_bytes(shaped.frame_bytes, self.site.settings.mtu);
            if let Err(error) = shaped.shaper.set_rate(Some(rate_bps), bytes) {
                tracing::warn!("{error}");
            }
        }
        self.shaper.next_look = now + shaped.shaping.look_after();
        State::On(shaped)
    }

    /// From now on nothing is held back; it stays until it is surely empty.
    fn end_shaping(&mut self, shaped: Shaped, now: Instant) -> State {
        let mut shaper = Box::new(shaped.shaper);
        // Of one that is not there any more nothing comes, and nothing waits there.
        let is_there = shaped.in_vain == 0 && shaper.queue().is_ok();
        if !is_there && let Some(direct) = &mut self.direct {
            let ifindex = shaped.place.ifindex;
            warn_of(direct.path.shape_by(Some(ShapedBy {
                enters_by: None,
                ifindex,
            })));
        }
        if let Err(error) = shaper.set_rate(None, 0) {
            tracing::debug!("{error}");
        }
        if let Some(intake) = &mut self.intake {
            intake.keep_frames_below(FRAME_BYTES_MAX);
        }
        State::Ending {
            shaper,
            place: shaped.place,
            since: now,
            frames: shaped.frames,
            passed_by: !is_there,
        }
    }

    fn step_ending(
        &mut self,
        mut shaper: Box<Shaper>,
        place: Place,
        (since, frames, passed_by): (Instant, u64, bool),
        now: Instant,
    ) -> State {
        let Some(direct) = &mut self.direct else {
            return State::None;
        };
        let frames_now = direct.traffic(place.link).frames;
        if shaper.rate_bps().is_some() {
            let _ = shaper.set_rate(None, 0);
        }
        // One that is not there any more is empty.
        let is_empty = shaper.queue().map_or(true, |queue| queue.frames == 0);
        let is_silent = frames_now == frames || now.since(since) >= ENDING_MAX;
        let may_go = is_empty && is_silent;
        if !(passed_by && is_empty) {
            if may_go && !passed_by {
                // First nothing goes in, and what is in it goes on; at another look it is empty.
                let shaped_by = ShapedBy {
                    enters_by: None,
                    ifindex: place.ifindex,
                };
                warn_of(direct.path.shape_by(Some(shaped_by)));
            }
            return State::Ending {
                shaper,
                place,
                since,
                frames: frames_now,
                passed_by: passed_by || may_go,
            };
        }
        let address = shaper.names().address;
        warn_of(direct.path.shape_by(None));
        self.line.shape_direct_by(None);
        self.shaper.dropped += dropped_by(&mut shaper);
        let going = thread::Builder::new().name("shaper".into());
        match going.spawn(move || drop(shaper)) {
            Ok(thread) => State::Going { thread, address },
            Err(_) => {
                // It has gone with the closure.
                self.forget_interfaces(address);
                State::None
            }
        }
    }
}

/// What the link takes in half the time that a small frame may wait.
fn frame_bytes(link_bps: u64, delay: Duration) -> u32 {
    let bytes = u128::from(link_bps / 8) * delay.as_nanos() / 2_000_000_000;
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    bytes.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX)
}

/// What a flow may send in its turn: the largest frame that the host makes, told so.
fn turn_bytes(frame_bytes: u32, mtu: u16) -> usize {
    let made = frame_bytes_made(frame_bytes, mtu.into());
    // The intake takes seven eighths of what it is told.
    made as usize / 7 * 8
}

fn dropped_by(shaper: &mut Shaper) -> u64 {
    shaper.queue().unwrap_or_default().dropped.into()
}

fn begin_making(
    names: Names,
    carry: OwnedFd,
) -> Result<JoinHandle<Result<Shaper, ShaperError>>, String> {
    let thread = thread::Builder::new().name("shaper".into());
    let begun = thread.spawn(move || Shaper::make(names, &carry));
    begun.map_err(|error| error.to_string())
}
