//! A packet socket that only watches: frames as they pass an interface, each with the time at which the
//! kernel first saw it, and which way it went.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::af_packet::{
    self, ControlBuffer, EVERY_TYPE, PACKET_IGNORE_OUTGOING, Told, VLAN_TAG_LEN,
};
use super::socket_filter::Program;
use super::sys::{check_len, set_option};

/// What stands unread while we are not scheduled; beyond it the kernel drops, and counts. It counts
/// memory: some hundred GSO frames, or 50,000 small ones.
const RECEIVE_BUFFER_BYTES: libc::c_int = 32 << 20;
/// No frame of a `pt0` is larger: its GSO frames are up to 64 KiB of payload.
const FRAME_BYTES_MAX: usize = 128 << 10;

/// A frame as it passed; lent until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed<'a> {
    /// Since 1970. Copies of one frame on its way in have the same, or the later one has a later.
    pub unix_nanos: u64,
    pub outgoing: bool,
    /// With its tag, unless those are left out; bytes from the destination address on; some may be missing.
    pub bytes: &'a [u8],
    /// How many there were.
    pub len: usize,
}

/// Memory for one frame at a time, whichever socket it comes from.
pub struct FrameBuffer(Vec<u8>);

impl Default for FrameBuffer {
    fn default() -> FrameBuffer {
        FrameBuffer(vec![0; VLAN_TAG_LEN + FRAME_BYTES_MAX])
    }
}

impl std::fmt::Debug for FrameBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FrameBuffer").finish_non_exhaustive()
    }
}

/// Kernel-side filter, one interface. All of it vanishes with the value.
#[derive(Debug)]
pub struct CaptureSocket {
    fd: OwnedFd,
    dropped: u64,
    leaves_tags_out: bool,
}

impl CaptureSocket {
    /// One that receives nothing yet. From now on, or a moment later, the kernel stamps every frame as it
    /// comes in. `EPERM` says that CAP_NET_RAW is missing.
    pub fn create() -> io::Result<CaptureSocket> {
        let socket = CaptureSocket {
            fd: af_packet::open()?,
            dropped: 0,
            leaves_tags_out: false,
        };
        let fd = socket.fd.as_fd();
        af_packet::set_packet_option(fd, libc::PACKET_AUXDATA, &1)?;
        let on: libc::c_int = 1;
        let (level, option) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);
        set_option(fd.as_raw_fd(), level, option, &on)?;
        let (force, ordinary) = (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF);
        af_packet::set_buffer(fd, force, ordinary, RECEIVE_BUFFER_BYTES)?;
        Ok(socket)
    }

    /// What the host itself sends by the interface is none of this socket's.
    pub fn ignore_outgoing(&self) -> io::Result<()> {
        af_packet::set_packet_option(self.fd.as_fd(), PACKET_IGNORE_OUTGOING, &1)
    }

    /// Frames are given without their VLAN tags.
    pub fn leave_tags_out(&mut self) {
        self.leaves_tags_out = true;
    }

    /// Watches the interface from now on.
    pub fn watch(&self, ifindex: u32, filter: &Program) -> io::Result<()> {
        filter.attach(self.fd.as_fd())?;
        af_packet::bind(self.fd.as_fd(), ifindex, EVERY_TYPE)
    }

    /// The next frame; `None` when none waits. That the interface is down or gone is told once
    /// (`ENETDOWN`).
    pub fn receive<'a>(&self, buffer: &'a mut FrameBuffer) -> io::Result<Option<Passed<'a>>> {
        let received = loop {
            match self.receive_message(&mut buffer.0[VLAN_TAG_LEN..]) {
                Ok(received) => break received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        let end = VLAN_TAG_LEN + received.kept;
        let (begin, len) = match received.tag {
            // Both addresses have to be there for a tag to stand behind them.
            Some(tag) if received.kept >= af_packet::ADDRESSES_LEN && !self.leaves_tags_out => {
                af_packet::put_back_tag(&mut buffer.0[..end], tag);
                (0, received.len + VLAN_TAG_LEN)
            }
            _ => (VLAN_TAG_LEN, received.len),
        };
        Ok(Some(Passed {
            unix_nanos: received.unix_nanos,
            outgoing: received.outgoing,
            bytes: &buffer.0[begin..end],
            len,
        }))
    }

    fn receive_message(&self, into: &mut [u8]) -> io::Result<Received> {
        let mut vector = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        // SAFETY: `sockaddr_ll` is plain integers, for which all zero is a value.
        let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut control = ControlBuffer([0; 128]);
        // SAFETY: `msghdr` is integers and pointers, for which all zero is a value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = size_of_val(&from) as libc::socklen_t;
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len();
        // SAFETY: the message names an address, a vector and a control buffer, each with its length, that
        // live across the call and that nothing else touches meanwhile.
        let result = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, 0) };
        let kept = check_len(result)?;
        let mut received = Received {
            kept,
            len: kept,
            outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
            unix_nanos: 0,
            tag: None,
        };
        af_packet::told(&message, |told| match told {
            Told::Auxdata(auxdata) => {
                received.len = auxdata.tp_len as usize;
                received.tag = af_packet::vlan_tag(&auxdata);
            }
            Told::Stamp(time) => received.unix_nanos = af_packet::unix_nanos(time),
        });
        Ok(received)
    }

    /// Frames that the kernel dropped because nobody read in time, ever.
    pub fn dropped(&mut self) -> io::Result<u64> {
        self.dropped += af_packet::take_dropped(self.fd.as_fd())?;
        Ok(self.dropped)
    }
}

struct Received {
    kept: usize,
    len: usize,
    outgoing: bool,
    unix_nanos: u64,
    tag: Option<[u8; VLAN_TAG_LEN]>,
}

impl AsFd for CaptureSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
