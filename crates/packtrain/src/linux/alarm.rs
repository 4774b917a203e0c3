//! A timer that is set often and rings rarely.
//!
//! Every sleep that ends by a timeout of its own programs the processor's timer before it and
//! once more when it is cancelled; in a virtual machine each of the two leaves the guest (10 µs a
//! wake-up, measured). A deadline that is met by work that comes sooner, as that of an
//! acknowledgement is, would pay that for every frame. So the alarm stays armed for the earliest
//! moment that it was ever asked for, and is moved only to an earlier one: it may ring too early, once
//! per deadline that has gone, and whoever hears it looks at the clock.
//!
//! Who sleeps for some ten microseconds at a time looks at the clock in between, and needs no alarm
//! but for the day that the work ends. It may come late then ([`SLACK`]), and so rings a third as
//! often: a thousand times a second is a tenth of the throughput of such a host.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use packtrain_proto::time::{Duration, Instant};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// How late it rings at most, after sleeps that were [`SHORT`].
const SLACK: Duration = Duration::from_millis(2);
/// The mean time from one sleep to the next of a host that has much to do.
const SHORT: Duration = Duration::from_micros(100);

#[derive(Debug)]
pub struct Alarm {
    fd: OwnedFd,
    armed: Option<Instant>,
    asked_at: Instant,
    /// From one sleep to the next, the last eight or so.
    interval_mean: Duration,
}

impl Alarm {
    /// To be watched edge-triggered: it is never read.
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Alarm {
            fd: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            armed: None,
            asked_at: Instant::ZERO,
            interval_mean: SLACK,
        })
    }

    /// To be called before each sleep. Rings at `at` or earlier, or up to [`SLACK`] later where
    /// sleeps are [`SHORT`].
    pub fn ring_by(&mut self, at: Instant, now: Instant) -> io::Result<()> {
        let interval = now.since(self.asked_at).min(SLACK);
        self.asked_at = now;
        self.interval_mean = (self.interval_mean * 7 + interval) / 8;
        let slack = if self.interval_mean < SHORT {
            SLACK
        } else {
            Duration::ZERO
        };
        let at = at + slack;
        if self.armed.is_some_and(|armed| armed <= at) {
            return Ok(());
        }
        // Zero would disarm it.
        let wait = at.since(now).max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: value,
        };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once)?;
        self.armed = Some(at);
        Ok(())
    }

    /// It rang, and rings no more until it is set again.
    pub fn rang(&mut self) {
        self.armed = None;
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::linux::epoll::{Epoll, Interest};

    /// Whether it rings before `limit`, and when.
    fn heard(epoll: &mut Epoll, clock: Clock, limit: Duration) -> Option<Instant> {
        let rang = epoll.wait(Some(limit)).expect("epoll_pwait2").count() > 0;
        rang.then(|| clock.now())
    }

    #[test]
    fn it_rings_once_by_the_earliest_moment_asked_for_and_can_be_set_again() {
        const LONG: Duration = Duration::from_secs(20);
        let clock = Clock::start();
        let mut alarm = Alarm::new().expect("timerfd_create");
        let mut epoll = Epoll::new().expect("epoll_create1");
        epoll.add(&alarm, 1, Interest::Read).expect("add");
        for _ in 0..3 {
            let start = clock.now();
            let soon = start + Duration::from_millis(20);
            for at in [start + LONG, soon, start + LONG] {
                alarm.ring_by(at, clock.now()).expect("timerfd_settime");
            }
            let heard_at = heard(&mut epoll, clock, LONG).expect("it rings");
            assert!(heard_at >= soon, "{:?} early", soon.since(heard_at));
            assert!(heard_at < start + LONG, "not by the later ones");
            assert_eq!(heard(&mut epoll, clock, Duration::from_millis(30)), None);
            alarm.rang();
        }
        let past = clock.now();
        alarm.ring_by(past, clock.now()).expect("timerfd_settime");
        assert!(heard(&mut epoll, clock, LONG).is_some(), "the past is now");
    }
    #[test]
    fn it_takes_its_time_only_while_sleeps_are_short() {
        let mut alarm = Alarm::new().expect("timerfd_create");
        let (start, hour) = (Instant::ZERO, Duration::from_secs(3600));
        let short = Duration::from_micros(20);
        let mut now = start;
        for _ in 0..64 {
            now += short;
            alarm.ring_by(start + hour, now).expect("timerfd_settime");
        }
        let due = now + Duration::from_millis(1);
        alarm.ring_by(due, now + short).expect("timerfd_settime");
        assert_eq!(alarm.armed, Some(due + SLACK));
        // The next sleep comes after a long one: the alarm is on time again.
        now = due + SLACK;
        alarm.rang();
        let due = now + Duration::from_millis(1);
        alarm.ring_by(due, now).expect("timerfd_settime");
        assert_eq!(alarm.armed, Some(due));
    }
}
