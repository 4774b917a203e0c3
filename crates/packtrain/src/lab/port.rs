//! Ports that a run before has left. A program that another thread starts has a copy of each socket of ours until
//! it runs, and so a port that was closed here is taken for some milliseconds more, or longer on a busy machine.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::wait_for;

const FREE_WITHIN: Duration = Duration::from_secs(2);

/// Tries `take`, and again while the port is in use; gives what it said last.
pub(super) fn once_free<T>(mut take: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut taken = Err(io::ErrorKind::AddrInUse.into());
    // That it was too late, the error of the last try says.
    let _ = wait_for("the port", FREE_WITHIN, || {
        taken = take();
        !matches!(&taken, Err(error) if error.kind() == io::ErrorKind::AddrInUse)
    });
    taken
}

/// A socket for datagrams at `at`, in the namespace of this thread.
pub(super) fn bind(at: SocketAddr) -> io::Result<UdpSocket> {
    once_free(|| UdpSocket::bind(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::pause;

    #[test]
    fn a_port_that_becomes_free_in_a_moment_is_waited_for() {
        let before = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = before.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pause(Duration::from_millis(50));
                drop(before);
            });
            assert_eq!(bind(at).unwrap().local_addr().unwrap(), at);
        });
    }

    #[test]
    fn one_that_stays_in_use_is_refused_and_what_else_fails_fails_at_once() {
        let before = UdpSocket::bind("127.0.0.1:0").unwrap();
        let refused = bind(before.local_addr().unwrap()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        let mut tries = 0;
        let failed = once_free(|| -> io::Result<()> {
            tries += 1;
            Err(io::ErrorKind::AddrNotAvailable.into())
        });
        assert!(failed.is_err());
        assert_eq!(tries, 1);
    }
}
