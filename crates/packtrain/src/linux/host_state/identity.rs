//! Which boot, which network namespace, which process: what tells a journal's own from another's.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use crate::linux::sys::check;

/// Where a journal is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    boot_id: String,
    namespace_device: u64,
    /// Given again to another namespace once this one has gone.
    namespace_inode: u64,
    /// Never given again in one boot; kernels before 5.14 do not tell it.
    namespace_cookie: Option<u64>,
}

impl Place {
    /// Of the calling thread.
    pub(super) fn here() -> io::Result<Place> {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let namespace = fs::metadata("/proc/thread-self/ns/net")?;
        Ok(Place {
            boot_id: boot_id.trim().to_owned(),
            namespace_device: namespace.dev(),
            namespace_inode: namespace.ino(),
            namespace_cookie: namespace_cookie().ok(),
        })
    }

    /// Why what was written at `self` says nothing about `here`.
    pub(super) fn differs_from(&self, here: &Place) -> Option<&'static str> {
        let namespace = |place: &Place| {
            (
                place.namespace_device,
                place.namespace_inode,
                place.namespace_cookie,
            )
        };
        if self.boot_id != here.boot_id {
            Some("it was written in another boot")
        } else if namespace(self) != namespace(here) {
            Some("it was written in another network namespace")
        } else {
            None
        }
    }
}

/// `SO_NETNS_COOKIE`.
fn namespace_cookie() -> io::Result<u64> {
    let mut cookie = 0u64;
    let mut len = size_of::<u64>() as libc::socklen_t;
    // SAFETY: pointers and length describe locals that outlive the call; the descriptor is checked
    // and owned here alone.
    unsafe {
        let fd = check(libc::socket(
            libc::AF_UNIX,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ))?;
        let socket = OwnedFd::from_raw_fd(fd);
        check(libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &mut len,
        ))?;
    }
    Ok(cookie)
}

/// A process, told from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    /// When it started, in clock ticks since boot (proc_pid_stat(5), field 22).
    pub start_ticks: u64,
}

impl Owner {
    pub fn this_process() -> Owner {
        let pid = std::process::id();
        Owner {
            pid,
            start_ticks: start_ticks(pid).unwrap_or_default(),
        }
    }

    /// A process that was killed and not yet waited for is no longer alive.
    pub fn is_alive(self) -> bool {
        stat(self.pid).is_some_and(|stat| {
            stat.start_ticks == self.start_ticks && !matches!(stat.state, b'Z' | b'X')
        })
    }
}

struct Stat {
    state: u8,
    start_ticks: u64,
}

fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start_ticks)
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The second field is the program's name in parentheses, which may hold anything.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    // Field 3 is gone; field 22 is 18 after field 4.
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some(Stat { state, start_ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_behind_a_name_that_looks_like_fields() {
        let text = "42 (a) R 1 (x) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 9 10";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.state, stat.start_ticks), (b'S', 777));
        assert!(parse_stat("42 (cut").is_none());
        assert!(parse_stat("42 (cut) S 1 2").is_none());
    }

    #[test]
    fn a_process_is_alive_until_it_is_killed_and_its_number_alone_is_not_it() {
        let own = Owner::this_process();
        assert!(own.start_ticks > 0);
        assert!(own.is_alive());
        let later = Owner {
            start_ticks: own.start_ticks + 1,
            ..own
        };
        assert!(!later.is_alive(), "a reused number is another process");

        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        let owner = Owner {
            pid,
            start_ticks: start_ticks(pid).unwrap(),
        };
        assert!(owner.is_alive());
        child.kill().unwrap();
        while owner.is_alive() {
            std::thread::yield_now(); // The signal is on its way; until then it is alive indeed.
        }
        child.wait().unwrap();
        assert!(!owner.is_alive());
    }

    #[test]
    fn another_boot_or_namespace_is_another_place() {
        let here = Place::here().unwrap();
        assert_eq!(here.differs_from(&here), None);
        let booted = Place {
            boot_id: "other".into(),
            ..here.clone()
        };
        assert_eq!(
            booted.differs_from(&here),
            Some("it was written in another boot")
        );
        let reused = Place {
            namespace_cookie: Some(u64::MAX),
            ..here.clone()
        };
        assert_eq!(
            reused.differs_from(&here),
            Some("it was written in another network namespace")
        );
    }
}
