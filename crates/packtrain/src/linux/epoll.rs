//! Waiting for several descriptors at once, to the nanosecond (`epoll_pwait2`, Linux 5.11).
//!
//! What may become writable is watched edge-triggered, or it would be reported for as long as it is:
//! an event says that something *became* readable or writable, and who stops reading before the end
//! has to remember that there is more.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::sys::check;

/// What a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// When something becomes readable.
    Read,
    /// When something becomes readable or writable.
    ReadWrite,
    /// Whenever something is readable, again and again until it is read.
    ReadWhileReady,
}

impl Interest {
    fn bits(self) -> u32 {
        (match self {
            Interest::Read => libc::EPOLLIN | libc::EPOLLET,
            Interest::ReadWrite => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET,
            Interest::ReadWhileReady => libc::EPOLLIN,
        }) as u32
    }
}

/// A descriptor became ready. Errors and hang-ups count as readable: reading tells which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The number that the descriptor was added with.
    pub token: u64,
    pub readable: bool,
    pub writable: bool,
}

/// How many events one wait gives at most; the rest come with the next.
const EVENTS_MAX: usize = 64;

pub struct Epoll {
    fd: OwnedFd,
    events: [libc::epoll_event; EVENTS_MAX],
}

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: a call without pointers; the descriptor that it gives belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Epoll {
            fd,
            events: [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX],
        })
    }

    /// Starts watching. Closing the descriptor ends it.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// Watches for something else. What is ready at this moment is reported again.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    /// Stops watching.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::Read)
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: impl AsFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.bits(),
            u64: token,
        };
        let watched = fd.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open, and the event lives across the call.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, watched, &raw mut event) })
            .map(drop)
    }

    /// Waits until something is ready or the time is over; without a timeout, for ever.
    pub fn wait(
        &mut self,
        timeout: Option<Duration>,
    ) -> io::Result<impl Iterator<Item = Ready> + '_> {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the kernel writes at most EVENTS_MAX events into the array of as many; the
        // timeout is null or lives in the variable above; the null signal mask changes nothing.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_MAX as libc::c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        let count = match check(result as libc::c_int) {
            Ok(count) => count as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        Ok(self.events[..count].iter().map(|event| Ready {
            token: event.u64,
            readable: event.events & !(libc::EPOLLOUT as u32) != 0,
            writable: event.events & libc::EPOLLOUT as u32 != 0,
        }))
    }
}

impl std::fmt::Debug for Epoll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Epoll")
            .field("fd", &self.fd)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn ready(epoll: &mut Epoll, timeout: Duration) -> Vec<Ready> {
        epoll.wait(Some(timeout)).expect("epoll_pwait2").collect()
    }

    #[test]
    fn an_edge_is_reported_once_and_again_after_a_change_of_interest() {
        let (mut near, mut far) = UnixStream::pair().expect("a pair of sockets");
        let mut epoll = Epoll::new().expect("epoll_create1");
        epoll.add(&near, 7, Interest::Read).expect("add");
        assert_eq!(ready(&mut epoll, Duration::from_micros(50)), []);
        far.write_all(b"x").expect("write");
        let readable = Ready {
            token: 7,
            readable: true,
            writable: false,
        };
        assert_eq!(ready(&mut epoll, Duration::from_secs(1)), [readable]);
        assert_eq!(ready(&mut epoll, Duration::ZERO), []);
        epoll.modify(&near, 7, Interest::ReadWrite).expect("modify");
        assert_eq!(
            ready(&mut epoll, Duration::ZERO),
            [Ready {
                writable: true,
                ..readable
            }]
        );
        near.read_exact(&mut [0]).expect("read");
        epoll.remove(&near).expect("remove");
        far.write_all(b"x").expect("write");
        assert_eq!(ready(&mut epoll, Duration::ZERO), []);
    }
}
