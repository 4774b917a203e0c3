//! What every packet socket needs, whatever it is for (packet(7)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use packtrain_proto::wire::ethernet::ether_type;

use super::sys::{check, set_option};

pub(super) const VLAN_TAG_LEN: usize = 4;
/// Of both addresses, which stand before a tag.
pub(super) const ADDRESSES_LEN: usize = 12;

pub(super) const EVERY_TYPE: u16 = libc::ETH_P_ALL as u16;

// include/uapi/linux/if_packet.h; the libc crate lacks it.
pub(super) const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// A socket that receives nothing before [`bind`], so that a filter can be attached before the first
/// frame. `EPERM` says that CAP_NET_RAW is missing.
pub(super) fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // Protocol 0: bound to no EtherType yet.
    // SAFETY: a call without pointers; the descriptor that it gives belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?) })
}

/// Receives frames of this EtherType of the interface from now on; none with 0.
pub(super) fn bind(fd: BorrowedFd<'_>, ifindex: u32, ether_type: u16) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain integers, for which all zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ether_type.to_be();
    address.sll_ifindex = ifindex as libc::c_int;
    // SAFETY: the pointer and the length describe `address`, which lives across the call.
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })
    .map(drop)
}

pub(super) fn set_packet_option<T: Copy>(
    fd: BorrowedFd<'_>,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    set_option(fd.as_raw_fd(), libc::SOL_PACKET, option, value)
}

/// Sets a buffer's size beyond the host's maximum, which CAP_NET_ADMIN allows, or without it up to
/// there.
pub(super) fn set_buffer(
    fd: BorrowedFd<'_>,
    force: libc::c_int,
    ordinary: libc::c_int,
    bytes: libc::c_int,
) -> io::Result<()> {
    let fd = fd.as_raw_fd();
    match set_option(fd, libc::SOL_SOCKET, force, &bytes) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            set_option(fd, libc::SOL_SOCKET, ordinary, &bytes)
        }
        result => result,
    }
}

/// Frames that the kernel dropped because nobody read in time, since this was asked last.
pub(super) fn take_dropped(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut statistics = libc::tpacket_stats {
        tp_packets: 0,
        tp_drops: 0,
    };
    let mut len = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into the structure of that size.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut len,
        )
    })?;
    // Reading sets the kernel's counters back.
    Ok(statistics.tp_drops.into())
}

/// Control messages begin with a `cmsghdr`, and must be aligned like one.
#[repr(C, align(8))]
pub(super) struct ControlBuffer(pub(super) [u8; 128]);

/// What the kernel says of a frame beside its bytes.
#[derive(Clone, Copy)]
pub(super) enum Told {
    /// `PACKET_AUXDATA`.
    Auxdata(libc::tpacket_auxdata),
    /// `SO_TIMESTAMPNS`, by the host's clock.
    Stamp(libc::timespec),
}

/// The control messages of a received message that somebody here asks for.
pub(super) fn told(message: &libc::msghdr, mut take: impl FnMut(Told)) {
    // SAFETY: the message was filled by `recvmsg`, so its control pointer and length describe whole
    // control messages. The kernel puts PACKET_AUXDATA there as one `tpacket_auxdata`, a time stamp as
    // one `timespec`, and each length is checked before it is read.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = next.as_ref() {
            let data = libc::CMSG_DATA(control);
            let holds = |len: usize| control.cmsg_len >= libc::CMSG_LEN(len as u32) as usize;
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA)
                    if holds(size_of::<libc::tpacket_auxdata>()) =>
                {
                    take(Told::Auxdata(
                        data.cast::<libc::tpacket_auxdata>().read_unaligned(),
                    ));
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if holds(size_of::<libc::timespec>()) => {
                    take(Told::Stamp(data.cast::<libc::timespec>().read_unaligned()));
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(message, control);
        }
    }
}

/// Since 1970; 0 of what was before.
pub(super) fn unix_nanos(time: libc::timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// The tag that the kernel or the NIC took out of a frame.
pub(super) fn vlan_tag(auxdata: &libc::tpacket_auxdata) -> Option<[u8; VLAN_TAG_LEN]> {
    tag_bytes(auxdata.tp_status, auxdata.tp_vlan_tpid, auxdata.tp_vlan_tci)
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

/// Puts a tag back into a frame that begins behind a gap of its length: the addresses move into the
/// gap, and the tag goes where they ended.
pub(super) fn put_back_tag(gap_and_frame: &mut [u8], tag: [u8; VLAN_TAG_LEN]) {
    gap_and_frame.copy_within(VLAN_TAG_LEN..VLAN_TAG_LEN + ADDRESSES_LEN, 0);
    gap_and_frame[ADDRESSES_LEN..ADDRESSES_LEN + VLAN_TAG_LEN].copy_from_slice(&tag);
}

/// The other way round: takes the tag out of a frame, which begins behind a gap of a tag's length then.
pub(super) fn take_tag_out(frame: &mut [u8]) {
    frame.copy_within(..ADDRESSES_LEN, VLAN_TAG_LEN);
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
    fn a_tag_stands_behind_the_addresses_again() {
        let frame: Vec<u8> = (0..20).collect();
        let mut bytes = [&[0xee; 4][..], &frame].concat();
        put_back_tag(&mut bytes, [0x81, 0, 0, 5]);
        let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        assert_eq!(bytes, tagged);
        take_tag_out(&mut bytes);
        assert_eq!(bytes[4..], frame);
    }
}
