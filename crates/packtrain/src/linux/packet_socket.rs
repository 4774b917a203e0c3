//! A member link: a packet socket that takes and gives frames as large as the kernel makes them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use packtrain_proto::buffer::{Buffer, BufferPool};
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};

use super::af_packet::{
    self, ControlBuffer, EVERY_TYPE, PACKET_IGNORE_OUTGOING, Told, VLAN_TAG_LEN,
};
use super::landing::Landing;
use super::queue_estimate::QueueEstimate;
use super::sys::{check, check_len, set_option};
use super::vnet_header;

/// What stands unread while we are not scheduled; beyond it the kernel drops, and counts.
const RECEIVE_BUFFER_BYTES: libc::c_int = 8 << 20;

/// Why a frame was not sent. It is not on the wire in any of these cases.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// As much as [`PacketSocket::set_queue_limit`] allows twice over stands in the local queue;
    /// try again when the socket is writable.
    #[error("the local queue is full")]
    WouldBlock,
    /// The queueing discipline or the driver dropped it.
    #[error("the queueing discipline dropped the frame")]
    NoBuffer,
    #[error("the frame is larger than the interface takes")]
    TooLarge,
    #[error("the interface is down or gone")]
    LinkDown,
    #[error(transparent)]
    Other(#[from] io::Error),
}

impl SendError {
    fn from_os(error: io::Error) -> SendError {
        match error.raw_os_error() {
            Some(libc::EAGAIN) => SendError::WouldBlock,
            Some(libc::ENOBUFS) => SendError::NoBuffer,
            Some(libc::EMSGSIZE) => SendError::TooLarge,
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => SendError::LinkDown,
            _ => SendError::Other(error),
        }
    }
}

/// Frames of the link that were not passed on, counted since the socket was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketSocketCounters {
    /// Larger than the largest buffer.
    pub truncated: u64,
    /// Offload metadata that has no words in [`Offload`], or less than an Ethernet header.
    pub unrepresentable: u64,
    /// Dropped by the kernel because nobody read in time.
    pub overrun: u64,
}

/// Which frames of the interface a socket receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    None = 0,
    /// Of every EtherType, before any classifier.
    All,
    /// That a guard has wrapped, behind the classifiers: what those keep from the host's stack does not come. As
    /// they were before it.
    Wrapped,
}

impl Frames {
    fn ether_type(self) -> u16 {
        match self {
            Frames::None => 0,
            Frames::All => EVERY_TYPE,
            Frames::Wrapped => ether_type::QINQ,
        }
    }

    /// Bytes left free before a frame for the tag that the kernel took out of it. A wrapped one has it still.
    fn gap(self) -> usize {
        match self {
            Frames::Wrapped => 0,
            _ => VLAN_TAG_LEN,
        }
    }

    /// That each frame has at least.
    fn header_len(self) -> usize {
        match self {
            Frames::Wrapped => HEADER_LEN + VLAN_TAG_LEN,
            _ => HEADER_LEN,
        }
    }
}

/// A packet socket on one interface. Its memberships and filter vanish with it.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    ifindex: u32,
    frames: Frames,
    landing: Landing,
    queue: QueueEstimate,
    counters: PacketSocketCounters,
}

impl PacketSocket {
    /// A socket that receives nothing before [`PacketSocket::bind`], so that a filter can be
    /// attached before the first frame. `EPERM` says that CAP_NET_RAW is missing.
    pub fn create() -> io::Result<PacketSocket> {
        let socket = PacketSocket {
            fd: af_packet::open()?,
            ifindex: 0,
            frames: Frames::None,
            landing: Landing::new(Frames::None.gap()),
            queue: QueueEstimate::new(),
            counters: PacketSocketCounters::default(),
        };
        // Without the header, frames of local senders arrive with unfinished checksums that
        // nobody can tell from finished ones.
        socket.set_packet_option(libc::PACKET_VNET_HDR, &1)?;
        socket.set_packet_option(libc::PACKET_AUXDATA, &1)?;
        socket.set_packet_option(PACKET_IGNORE_OUTGOING, &1)?;
        socket.set_buffer(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER_BYTES)?;
        Ok(socket)
    }

    /// A socket that receives every frame of the interface from now on.
    pub fn open(ifindex: u32) -> io::Result<PacketSocket> {
        let mut socket = PacketSocket::create()?;
        socket.bind(ifindex, Frames::All)?;
        Ok(socket)
    }

    /// Lets a loaded `BPF_PROG_TYPE_SOCKET_FILTER` program decide what is received.
    pub fn attach_filter(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let program: libc::c_int = program.as_raw_fd();
        set_option(
            self.fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_BPF,
            &program,
        )
    }

    /// Sends by this interface, and receives these frames of it. A socket that receives those of one type alone
    /// should not be sent by: the kernel takes all that it sends to be of this type.
    pub fn bind(&mut self, ifindex: u32, frames: Frames) -> io::Result<()> {
        af_packet::bind(self.fd.as_fd(), ifindex, frames.ether_type())?;
        (self.ifindex, self.frames) = (ifindex, frames);
        self.landing = Landing::new(frames.gap());
        Ok(())
    }

    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// The next frame of the link, its VLAN tag in it; `None` when none waits. The errors that
    /// tell of the interface (`ENETDOWN`) come once, and the socket goes on with it.
    pub fn receive(&mut self, pool: &mut BufferPool) -> io::Result<Option<(Buffer, Offload)>> {
        loop {
            let mut header = [0; vnet_header::LEN];
            let (frame_len, flags, tag) = match self.receive_message(&mut header) {
                Ok(message) => message,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The kernel could not describe the frame's offloads, and dropped it.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    self.counters.unrepresentable += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if flags & libc::MSG_TRUNC != 0 {
                self.counters.truncated += 1;
                continue;
            }
            if frame_len < self.frames.header_len() {
                self.counters.unrepresentable += 1;
                continue;
            }
            let mut buffer = self.landing.take(frame_len, pool);
            let frame = &buffer[self.frames.gap()..];
            let Ok(offload) = vnet_header::parse(&header, frame) else {
                self.counters.unrepresentable += 1;
                pool.give_back(buffer);
                continue;
            };
            if self.frames == Frames::Wrapped {
                af_packet::take_tag_out(&mut buffer);
                buffer.advance(VLAN_TAG_LEN);
                let offload = vnet_header::shift_back(offload, VLAN_TAG_LEN as u16);
                return Ok(Some((buffer, offload)));
            }
            let Some(tag) = tag else {
                buffer.advance(VLAN_TAG_LEN);
                return Ok(Some((buffer, offload)));
            };
            af_packet::put_back_tag(&mut buffer, tag);
            return Ok(Some((
                buffer,
                vnet_header::shift(offload, VLAN_TAG_LEN as u16),
            )));
        }
    }

    /// One `recvmsg` into the landing: length of the frame, flags, and the VLAN tag that the
    /// kernel or the NIC took out of it.
    fn receive_message(
        &mut self,
        header: &mut [u8; vnet_header::LEN],
    ) -> io::Result<(usize, libc::c_int, Option<[u8; VLAN_TAG_LEN]>)> {
        let [small, large] = self.landing.io_vectors();
        let mut vectors = [
            libc::iovec {
                iov_base: header.as_mut_ptr().cast(),
                iov_len: header.len(),
            },
            small,
            large,
        ];
        let mut control = ControlBuffer([0; 128]);
        // SAFETY: `msghdr` is integers and pointers, for which all zero is a value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = vectors.as_mut_ptr();
        message.msg_iovlen = vectors.len();
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len();
        // SAFETY: the message names the three vectors, which point to memory of their lengths
        // that nothing else touches during the call, and the control buffer with its length.
        let result = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, 0) };
        let len = check_len(result)?;
        Ok((
            len.saturating_sub(vnet_header::LEN),
            message.msg_flags,
            vlan_tag(&message),
        ))
    }

    /// Puts a frame on the link.
    pub fn send(&mut self, frame: &[u8], offload: Offload) -> Result<(), SendError> {
        let header = vnet_header::emit(offload);
        let vectors = [&header[..], frame].map(|part| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        });
        loop {
            // SAFETY: the vectors describe slices that are borrowed across the call; the kernel
            // only reads them.
            let result = unsafe {
                libc::writev(
                    self.fd.as_raw_fd(),
                    vectors.as_ptr(),
                    vectors.len() as libc::c_int,
                )
            };
            match check_len(result) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(SendError::from_os(error)),
            }
        }
        self.queue.sent(frame.len());
        Ok(())
    }

    /// Whether [`PacketSocket::queued_bytes`] could be other than 0: false once it was 0 and
    /// nothing was sent since.
    pub fn may_have_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Bytes of the frames sent by this socket that still stand in the interface's queue. Exactly
    /// 0 when none does, else an estimate: the kernel counts memory, not frames.
    pub fn queued_bytes(&mut self) -> io::Result<usize> {
        if self.queue.is_empty() {
            return Ok(0);
        }
        let mut memory: libc::c_int = 0;
        // SAFETY: SIOCOUTQ (the socket reading of TIOCOUTQ) writes one int.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut memory) })?;
        Ok(self.queue.outstanding(memory as usize))
    }

    /// Lets no more than about `bytes` and a frame into the local queue, and wakes who waits for the
    /// socket to be writable when less than about half of that stands there: woken for every frame
    /// that goes, one would do little else.
    pub fn set_queue_limit(&self, bytes: usize) -> io::Result<()> {
        // The kernel doubles the value, and wakes at half: the doubled is the limit, the value
        // itself the waking fill. It counts memory, so the value is right for frames like those
        // that stand there now.
        let memory = self.queue.memory_of(bytes.div_ceil(2));
        let memory = libc::c_int::try_from(memory).unwrap_or(libc::c_int::MAX / 2);
        self.set_buffer(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, memory)
    }

    /// Takes frames for one more unicast address, without taking those of everybody.
    pub fn add_unicast(&self, address: MacAddr) -> io::Result<()> {
        self.membership(
            libc::PACKET_ADD_MEMBERSHIP,
            libc::PACKET_MR_UNICAST,
            Some(address),
        )
    }

    /// No longer takes frames for what [`PacketSocket::add_unicast`] added.
    pub fn remove_unicast(&self, address: MacAddr) -> io::Result<()> {
        self.membership(
            libc::PACKET_DROP_MEMBERSHIP,
            libc::PACKET_MR_UNICAST,
            Some(address),
        )
    }

    /// Takes frames for one more group address.
    pub fn add_multicast(&self, address: MacAddr) -> io::Result<()> {
        self.membership(
            libc::PACKET_ADD_MEMBERSHIP,
            libc::PACKET_MR_MULTICAST,
            Some(address),
        )
    }

    /// Takes frames for every address, or no longer.
    pub fn set_promiscuous(&self, on: bool) -> io::Result<()> {
        self.membership(add_or_drop(on), libc::PACKET_MR_PROMISC, None)
    }

    /// Takes frames for every group address, or no longer.
    pub fn set_all_multicast(&self, on: bool) -> io::Result<()> {
        self.membership(add_or_drop(on), libc::PACKET_MR_ALLMULTI, None)
    }

    fn membership(
        &self,
        operation: libc::c_int,
        kind: libc::c_int,
        address: Option<MacAddr>,
    ) -> io::Result<()> {
        let mut request = libc::packet_mreq {
            mr_ifindex: self.ifindex as libc::c_int,
            mr_type: kind as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        if let Some(address) = address {
            request.mr_alen = address.0.len() as u16;
            request.mr_address[..address.0.len()].copy_from_slice(&address.0);
        }
        self.set_packet_option(operation, &request)
    }

    pub fn counters(&self) -> PacketSocketCounters {
        self.counters
    }

    /// Frames that the kernel dropped because nobody read in time, since the socket was opened.
    pub fn dropped(&mut self) -> io::Result<u64> {
        self.counters.overrun += af_packet::take_dropped(self.fd.as_fd())?;
        Ok(self.counters.overrun)
    }

    fn set_packet_option<T: Copy>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        af_packet::set_packet_option(self.fd.as_fd(), option, value)
    }

    fn set_buffer(
        &self,
        force: libc::c_int,
        ordinary: libc::c_int,
        bytes: libc::c_int,
    ) -> io::Result<()> {
        af_packet::set_buffer(self.fd.as_fd(), force, ordinary, bytes)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn add_or_drop(on: bool) -> libc::c_int {
    if on {
        libc::PACKET_ADD_MEMBERSHIP
    } else {
        libc::PACKET_DROP_MEMBERSHIP
    }
}

/// The tag that a received message says was taken out of its frame.
fn vlan_tag(message: &libc::msghdr) -> Option<[u8; VLAN_TAG_LEN]> {
    let mut tag = None;
    af_packet::told(message, |told| {
        if let Told::Auxdata(auxdata) = told {
            tag = af_packet::vlan_tag(&auxdata);
        }
    });
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        let of = |code| SendError::from_os(io::Error::from_raw_os_error(code));
        assert!(matches!(of(libc::EAGAIN), SendError::WouldBlock));
        assert!(matches!(of(libc::ENOBUFS), SendError::NoBuffer));
        assert!(matches!(of(libc::EMSGSIZE), SendError::TooLarge));
        assert!(matches!(of(libc::ENETDOWN), SendError::LinkDown));
        assert!(matches!(of(libc::ENXIO), SendError::LinkDown));
        assert!(matches!(of(libc::EINVAL), SendError::Other(_)));
    }
}
