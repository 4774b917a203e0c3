//! The netlink socket: one request, its answer, its error.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::message::{Attributes, HEADER_LEN, Message, Messages, Request, u32_at, value_string};
use crate::linux::sys::{check, check_len, set_option};

/// The kernel fills a dump's datagrams up to 32 KB when it sees such a buffer.
pub(super) const DATAGRAM_LEN: usize = 32 * 1024;

/// The kernel answers within the call that asks; this only keeps a mistake of ours from hanging.
const ANSWER_TIMEOUT: libc::timeval = libc::timeval {
    tv_sec: 5,
    tv_usec: 0,
};

/// Attribute of an error: the kernel's reason in words.
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLM_F_DUMP_INTR: u16 = 0x10;

/// What the kernel said no with.
#[derive(Debug)]
pub(in crate::linux) struct Refusal {
    pub(in crate::linux) error: io::Error,
    /// In words, where the kernel gives them.
    pub(in crate::linux) reason: Option<String>,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal {
            error,
            reason: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct RouteSocket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl RouteSocket {
    /// `groups`: a mask of multicast groups (`RTMGRP_…`).
    pub(super) fn open(groups: u32, nonblocking: bool) -> io::Result<RouteSocket> {
        let flags = if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | flags;
        // SAFETY: no pointers; the descriptor is checked, and owned from here on by us alone.
        let fd = unsafe {
            let fd = check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))?;
            OwnedFd::from_raw_fd(fd)
        };
        // Both are comfort, and missing on old kernels: words in errors, dumps of one interface.
        let _ = set_option(
            fd.as_raw_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_EXT_ACK,
            &1i32,
        );
        let _ = set_option(
            fd.as_raw_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_CAP_ACK,
            &1i32,
        );
        if !nonblocking {
            set_option(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                &ANSWER_TIMEOUT,
            )?;
        }
        // SAFETY: `sockaddr_nl` is plain integers, for which all zero is a value.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = groups;
        // SAFETY: pointer and length describe `address`, which outlives the call.
        check(unsafe {
            libc::bind(
                fd.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_nl>() as libc::socklen_t,
            )
        })?;
        Ok(RouteSocket {
            fd,
            sequence: 0,
            buffer: vec![0; DATAGRAM_LEN],
        })
    }

    /// Dumps are of what the request describes, where the kernel can do so (4.20): otherwise of everything.
    pub(super) fn ask_strictly(&self) {
        let _ = set_option(
            self.fd.as_raw_fd(),
            libc::SOL_NETLINK,
            libc::NETLINK_GET_STRICT_CHK,
            &1i32,
        );
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Sends `request` and hands every message of the answer to `each`, up to the acknowledgement
    /// or the end of the dump.
    pub(super) fn transact(
        &mut self,
        request: Request,
        mut each: impl FnMut(Message<'_>),
    ) -> Result<(), Refusal> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        let bytes = request.with_sequence(sequence);
        // SAFETY: pointer and length describe `bytes`, which outlives the call.
        let sent = check_len(unsafe {
            libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0)
        })?;
        assert_eq!(sent, bytes.len(), "netlink takes a request whole");
        let mut interrupted = false;
        loop {
            let len = self.receive()?;
            for message in Messages(&self.buffer[..len]) {
                if message.sequence != sequence {
                    continue; // The rest of an earlier answer that was given up.
                }
                interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR => return refusal(message),
                    libc::NLMSG_DONE if interrupted => {
                        return Err(io::Error::from(io::ErrorKind::Interrupted).into());
                    }
                    libc::NLMSG_DONE => return Ok(()),
                    _ => each(message),
                }
            }
        }
    }

    /// One datagram into the buffer.
    pub(super) fn receive(&mut self) -> io::Result<usize> {
        // SAFETY: pointer and length describe `buffer`, which nobody else uses meanwhile.
        let len = check_len(unsafe {
            libc::recv(
                self.fd.as_raw_fd(),
                self.buffer.as_mut_ptr().cast(),
                self.buffer.len(),
                libc::MSG_TRUNC,
            )
        })?;
        if len > self.buffer.len() {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        Ok(len)
    }

    pub(super) fn datagram(&self, len: usize) -> &[u8] {
        &self.buffer[..len]
    }
}

/// `NLMSG_ERROR`: the negative `errno` (0 is an acknowledgement), the request's header, and,
/// when the flag says so, attributes.
fn refusal(message: Message<'_>) -> Result<(), Refusal> {
    let code = message
        .payload
        .get(..4)
        .map_or(-libc::EBADMSG, |bytes| u32_at(bytes, 0) as i32);
    if code == 0 {
        return Ok(());
    }
    let words = message.payload.get(4 + HEADER_LEN..).unwrap_or_default();
    let reason = (message.flags & NLM_F_ACK_TLVS != 0)
        .then(|| Attributes(words).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG))
        .flatten()
        .map(|(_, value)| value_string(value));
    Err(Refusal {
        error: io::Error::from_raw_os_error(-code),
        reason,
    })
}
