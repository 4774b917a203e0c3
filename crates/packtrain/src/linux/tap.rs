//! `pt0`: a TAP interface that hands over frames as large as the host's stack makes them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use packtrain_proto::buffer::{Buffer, BufferPool};
use packtrain_proto::engine::Delivery;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::{HEADER_LEN, MacAddr};

use super::coalescer::{self, PARTS_MAX};
use super::landing::Landing;
use super::sys::{check, check_len, hardware_address, interface_request};
use super::vnet_header;

// include/uapi/linux/if_tun.h; the libc crate does not have all of them.
const IFF_TUN_EXCL: i32 = 0x8000;
/// `_IOW('T', 226, int)`.
const TUNSETCARRIER: libc::Ioctl = 0x4004_54e2;
const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO4: libc::c_ulong = 0x02;
const TUN_F_TSO6: libc::c_ulong = 0x04;
const TUN_F_TSO_ECN: libc::c_ulong = 0x08;
const TUN_F_USO4: libc::c_ulong = 0x20;
const TUN_F_USO6: libc::c_ulong = 0x40;
const TSO: libc::c_ulong = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
const USO: libc::c_ulong = TUN_F_USO4 | TUN_F_USO6;

/// What the TAP could not pass on, counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapCounters {
    /// Frames of the host with offload metadata that has no words in [`Offload`], or shorter than
    /// an Ethernet header.
    pub unrepresentable: u64,
}

/// A TAP interface that lives as long as this value, and all to whom its descriptor was passed on.
#[derive(Debug)]
pub struct Tap {
    file: File,
    ifindex: u32,
    landing: Landing,
    counters: TapCounters,
}

impl Tap {
    /// Creates the interface `name` with the address `mac`, down. `EBUSY` says that the name is
    /// taken, `EPERM` that CAP_NET_ADMIN is missing, `ENOENT` that the host has no TUN driver.
    pub fn create(name: &str, mac: MacAddr) -> io::Result<Tap> {
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        let fd = file.as_raw_fd();
        let mut request = interface_request(name)?;
        // EXCL, because without it a name that is taken by an idle TAP would be taken over.
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | IFF_TUN_EXCL;
        // The flags are 16 bits wide and EXCL is the highest of them.
        request.ifr_ifru.ifru_flags = flags as u16 as i16;
        // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives across the call.
        check(unsafe { libc::ioctl(fd, libc::TUNSETIFF, &raw mut request) })?;

        let header_len: libc::c_int = vnet_header::LEN as libc::c_int;
        // SAFETY: TUNSETVNETHDRSZ reads one int, which lives across the call.
        check(unsafe { libc::ioctl(fd, libc::TUNSETVNETHDRSZ, &raw const header_len) })?;
        set_offloads(fd)?;

        request.ifr_ifru.ifru_hwaddr = hardware_address(mac);
        // SAFETY: on a TAP's own descriptor SIOCSIFHWADDR reads one `ifreq`, which lives across
        // the call.
        check(unsafe { libc::ioctl(fd, libc::SIOCSIFHWADDR, &raw mut request) })?;

        // SAFETY: `ifr_name` is filled from a name shorter than itself, so it ends in a zero byte.
        let ifindex = unsafe { libc::if_nametoindex(request.ifr_name.as_ptr()) };
        if ifindex == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Tap {
            file,
            ifindex,
            landing: Landing::new(0),
            counters: TapCounters::default(),
        })
    }

    /// An interface that another process has made by [`Tap::create`], and passed on.
    pub fn adopt(descriptor: OwnedFd, ifindex: u32) -> Tap {
        Tap {
            file: File::from(descriptor),
            ifindex,
            landing: Landing::new(0),
            counters: TapCounters::default(),
        }
    }

    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// Says whether a cable is plugged in, as it were: without one the host has no carrier.
    pub fn set_carrier(&self, up: bool) -> io::Result<()> {
        let carrier = libc::c_int::from(up);
        // SAFETY: TUNSETCARRIER reads one int, which lives across the call.
        check(unsafe { libc::ioctl(self.file.as_raw_fd(), TUNSETCARRIER, &raw const carrier) })
            .map(drop)
    }

    pub fn counters(&self) -> TapCounters {
        self.counters
    }

    /// The next frame that the host sent; `None` when none waits.
    pub fn receive(&mut self, pool: &mut BufferPool) -> io::Result<Option<(Buffer, Offload)>> {
        loop {
            let mut header = [0; vnet_header::LEN];
            let [small, large] = self.landing.io_vectors();
            let vectors = [
                libc::iovec {
                    iov_base: header.as_mut_ptr().cast(),
                    iov_len: header.len(),
                },
                small,
                large,
            ];
            // SAFETY: the three vectors point to memory of their lengths that nothing else
            // touches during the call: the local header and the landing's two buffers.
            let result = unsafe {
                libc::readv(
                    self.file.as_raw_fd(),
                    vectors.as_ptr(),
                    vectors.len() as libc::c_int,
                )
            };
            let len = match check_len(result) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let frame_len = len.saturating_sub(vnet_header::LEN);
            if frame_len >= HEADER_LEN {
                let buffer = self.landing.take(frame_len, pool);
                match vnet_header::parse(&header, &buffer) {
                    Ok(offload) => return Ok(Some((buffer, offload))),
                    Err(_) => pool.give_back(buffer),
                }
            }
            self.counters.unrepresentable += 1;
        }
    }

    /// Gives a frame to the host. Any error means that the host did not take it: `EIO` that the
    /// interface is down, `EINVAL` that the kernel did not believe the metadata.
    pub fn send(&self, delivery: &Delivery<'_>) -> io::Result<()> {
        let header = vnet_header::emit(delivery.offload);
        self.write(&[&header, delivery.head, delivery.body].map(io::IoSlice::new))
    }

    fn write(&self, parts: &[io::IoSlice<'_>]) -> io::Result<()> {
        loop {
            match (&self.file).write_vectored(parts) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl coalescer::Host for Tap {
    fn send(&self, delivery: &Delivery<'_>) -> io::Result<()> {
        Tap::send(self, delivery)
    }

    fn send_parts(&self, offload: Offload, parts: &[io::IoSlice<'_>]) -> io::Result<()> {
        let header = vnet_header::emit(offload);
        let mut all = [io::IoSlice::new(&[]); 1 + PARTS_MAX];
        all[0] = io::IoSlice::new(&header);
        all[1..=parts.len()].copy_from_slice(parts);
        self.write(&all[..=parts.len()])
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Takes the offloads that the kernel has: UDP segmentation came with 6.2.
fn set_offloads(fd: libc::c_int) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    let set =
        |offloads: libc::c_ulong| check(unsafe { libc::ioctl(fd, libc::TUNSETOFFLOAD, offloads) });
    match set(TSO | USO) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => set(TSO),
        result => result,
    }
    .map(drop)
}
