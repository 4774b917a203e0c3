//! How long TCP's segments are at most (tcp(7), `TCP_MAXSEG`).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::sys::set_option;

/// To be said before the socket is connected: both ends keep to it. Options of TCP are counted in.
pub fn limit(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    let (level, option) = (libc::SOL_TCP, libc::TCP_MAXSEG);
    let bytes = libc::c_int::from(bytes);
    set_option(socket.as_fd().as_raw_fd(), level, option, &bytes)
}
