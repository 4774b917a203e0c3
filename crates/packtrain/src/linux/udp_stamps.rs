//! When the kernel first saw a datagram (socket(7), `SO_TIMESTAMPNS`): a program that reads it later, because the processor was
//! another's, does not make it late.

use std::ffi::c_int;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use super::af_packet::{self, ControlBuffer, Told};
use super::sys::{check_len, set_option};

/// What comes from now on is stamped.
pub fn stamp(socket: &UdpSocket) -> io::Result<()> {
    let on: c_int = 1;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);
    set_option(socket.as_raw_fd(), level, option, &on)
}

/// Bytes of the next datagram, and when it came, nanoseconds since 1970; 0 of one that came before stamps were asked for.
pub fn receive(socket: &UdpSocket, into: &mut [u8]) -> io::Result<(usize, u64)> {
    let mut vector = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let mut control = ControlBuffer([0; 128]);
    // SAFETY: `msghdr` is integers and pointers, for which all zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    // SAFETY: the message names a vector and a control buffer, each with its length, that live across the call and that nothing
    // else touches meanwhile.
    let result = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let len = check_len(result)?;
    let mut unix_nanos = 0;
    af_packet::told(&message, |told| {
        if let Told::Stamp(time) = told {
            unix_nanos = af_packet::unix_nanos(time);
        }
    });
    Ok((len, unix_nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_datagram_is_stamped_between_its_sending_and_its_reading() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        stamp(&receiver).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let clock = Clock::start();
        let wall = clock.wall();
        let before = wall.unix_nanos(clock.now());
        sender
            .send_to(b"sand", receiver.local_addr().unwrap())
            .unwrap();
        let mut buffer = [0; 16];
        let (len, at) = receive(&receiver, &mut buffer).unwrap();
        let after = wall.unix_nanos(clock.now());
        assert_eq!(&buffer[..len], b"sand");
        // The two clocks may be set to each other by a few microseconds meanwhile.
        assert!(
            (before - 100_000..after + 100_000).contains(&at),
            "{before} {at} {after}"
        );
    }
}
