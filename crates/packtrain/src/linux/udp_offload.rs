//! Many datagrams in one system call, cut and put together by the kernel (udp(7), `UDP_SEGMENT` and
//! `UDP_GRO`).

use std::ffi::c_int;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use super::sys::set_option;

/// What is sent from now on is cut into datagrams of so many bytes, the last of them shorter.
pub fn cut_into(socket: &UdpSocket, bytes: u16) -> io::Result<()> {
    let bytes = c_int::from(bytes);
    set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, &bytes)
}

/// Datagrams of one sender that arrive together are read in one piece from now on.
pub fn read_together(socket: &UdpSocket) -> io::Result<()> {
    let on: c_int = 1;
    set_option(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_GRO, &on)
}
