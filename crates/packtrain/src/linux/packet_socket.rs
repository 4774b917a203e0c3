//! A member link: a packet socket that takes and gives frames as large as the kernel makes them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use packtrain_proto::buffer::{Buffer, BufferPool};
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr, ether_type};

use super::landing::Landing;
use super::queue_estimate::QueueEstimate;
use super::sys::{check, check_len, set_option};
use super::vnet_header;

/// What stands unread while we are not scheduled; beyond it the kernel drops, and counts.
const RECEIVE_BUFFER_BYTES: libc::c_int = 8 << 20;
const VLAN_TAG_LEN: usize = 4;
const ADDRESSES_LEN: usize = 12;

// include/uapi/linux/if_packet.h; the libc crate lacks it.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

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

/// A packet socket on one interface. Its memberships and filter vanish with it.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    ifindex: u32,
    landing: Landing,
    queue: QueueEstimate,
    counters: PacketSocketCounters,
}

impl PacketSocket {
    /// A socket that receives nothing before [`PacketSocket::bind`], so that a filter can be
    /// attached before the first frame. `EPERM` says that CAP_NET_RAW is missing.
    pub fn create() -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // Protocol 0: bound to no EtherType yet.
        // SAFETY: a call without pointers; the descriptor that it gives belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?) };
        let socket = PacketSocket {
            fd,
            ifindex: 0,
            landing: Landing::new(VLAN_TAG_LEN),
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
        socket.bind(ifindex)?;
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

    /// Receives every EtherType of the interface: a socket that is bound to a single one would
    /// get nothing where a classifier keeps the frames from the host's stack.
    pub fn bind(&mut self, ifindex: u32) -> io::Result<()> {
        // SAFETY: `sockaddr_ll` is plain integers, for which all zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = ifindex as libc::c_int;
        // SAFETY: the pointer and the length describe `address`, which lives across the call.
        check(unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })?;
        self.ifindex = ifindex;
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
            if frame_len < HEADER_LEN {
                self.counters.unrepresentable += 1;
                continue;
            }
            let mut buffer = self.landing.take(frame_len, pool);
            let frame = &buffer[VLAN_TAG_LEN..];
            let Ok(offload) = vnet_header::parse(&header, frame) else {
                self.counters.unrepresentable += 1;
                pool.give_back(buffer);
                continue;
            };
            let Some(tag) = tag else {
                buffer.advance(VLAN_TAG_LEN);
                return Ok(Some((buffer, offload)));
            };
            // The addresses move into the gap, and the tag goes where they ended.
            buffer.copy_within(VLAN_TAG_LEN..VLAN_TAG_LEN + ADDRESSES_LEN, 0);
            buffer[ADDRESSES_LEN..ADDRESSES_LEN + VLAN_TAG_LEN].copy_from_slice(&tag);
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
        let mut control = ControlBuffer([0; 64]);
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
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut len = size_of_val(&statistics) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes into the structure of that size.
        check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut len,
            )
        })?;
        // Reading sets the kernel's counters back.
        self.counters.overrun += u64::from(statistics.tp_drops);
        Ok(self.counters.overrun)
    }

    fn set_packet_option<T: Copy>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        set_option(self.fd.as_raw_fd(), libc::SOL_PACKET, option, value)
    }

    /// Sets a buffer's size beyond the host's maximum, which CAP_NET_ADMIN allows, or without it
    /// up to there.
    fn set_buffer(
        &self,
        force: libc::c_int,
        ordinary: libc::c_int,
        bytes: libc::c_int,
    ) -> io::Result<()> {
        let fd = self.fd.as_raw_fd();
        match set_option(fd, libc::SOL_SOCKET, force, &bytes) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                set_option(fd, libc::SOL_SOCKET, ordinary, &bytes)
            }
            result => result,
        }
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

/// Control messages begin with a `cmsghdr`, and must be aligned like one.
#[repr(C, align(8))]
struct ControlBuffer([u8; 64]);

/// The tag that a received message says was taken out of its frame.
fn vlan_tag(message: &libc::msghdr) -> Option<[u8; VLAN_TAG_LEN]> {
    // SAFETY: the message was filled by `recvmsg`, so its control pointer and length describe
    // whole control messages; the kernel puts PACKET_AUXDATA there as one `tpacket_auxdata`,
    // and its length is checked before it is read.
    let data = unsafe {
        let control = libc::CMSG_FIRSTHDR(message).as_ref()?;
        let len = libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as u32) as usize;
        if control.cmsg_level != libc::SOL_PACKET
            || control.cmsg_type != libc::PACKET_AUXDATA
            || control.cmsg_len < len
        {
            return None;
        }
        libc::CMSG_DATA(control)
            .cast::<libc::tpacket_auxdata>()
            .read_unaligned()
    };
    tag_bytes(data.tp_status, data.tp_vlan_tpid, data.tp_vlan_tci)
}

fn tag_bytes(status: u32, tpid: u16, tci: u16) -> Option<[u8; VLAN_TAG_LEN]> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let [a, b] = if known { tpid } else { ether_type::VLAN }.to_be_bytes();
    let [c, d] = tci.to_be_bytes();
    Some([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_its_protocol_and_the_ordinary_one_where_none_is_told() {
        let both = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        assert_eq!(
            tag_bytes(both, ether_type::QINQ, 0x2064),
            Some([0x88, 0xa8, 0x20, 0x64])
        );
        assert_eq!(
            tag_bytes(libc::TP_STATUS_VLAN_VALID, 0, 5),
            Some([0x81, 0, 0, 5])
        );
        assert_eq!(tag_bytes(0, ether_type::VLAN, 5), None);
    }

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
