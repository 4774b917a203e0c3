//! TCP's own pacing (socket(7), `SO_MAX_PACING_RATE`).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::sys::set_option;

/// No more bytes a second leave the socket than this: segments are spaced by a timer, without any qdisc.
pub fn limit(socket: impl AsFd, bytes_per_second: u64) -> io::Result<()> {
    let (level, option) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
    set_option(socket.as_fd().as_raw_fd(), level, option, &bytes_per_second)
}
