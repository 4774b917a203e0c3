//! Programs in an interface's driver (XDP), by a link of their own (Linux 5.9) or to stay: nobody else's is replaced.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use super::bpf_link::{self, no_options};
use super::sys::check;

pub(super) use super::bpf_link::Attached;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the driver.
    Driver,
    /// Before the stack, where the kernel has made a buffer of its own of each frame.
    Generic,
}

pub(super) fn attach(program: BorrowedFd<'_>, ifindex: u32, place: Place) -> io::Result<Attached> {
    let mut options = no_options();
    options.flags = place.flag();
    bpf_link::attach(program, ifindex, libbpf_sys::BPF_XDP, &options)
}

/// The numbers of the programs on an interface, by where they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    /// In the card.
    pub(super) card: Option<u32>,
    pub(super) driver: Option<u32>,
    pub(super) generic: Option<u32>,
}

pub(super) fn placed_on(ifindex: u32) -> io::Result<Placed> {
    let mut options = libbpf_sys::bpf_xdp_query_opts {
        sz: size_of::<libbpf_sys::bpf_xdp_query_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    // SAFETY: the options outlive the call and say their size.
    check(unsafe { libbpf_sys::bpf_xdp_query(ifindex as i32, 0, &raw mut options) })?;
    let number = |id: u32| (id != 0).then_some(id);
    Ok(Placed {
        card: number(options.hw_prog_id),
        driver: number(options.drv_prog_id),
        generic: number(options.skb_prog_id),
    })
}

/// The numbers of somebody's programs on an interface; none: there is none.
pub(super) fn programs_on(ifindex: u32) -> io::Result<Vec<u32>> {
    let placed = placed_on(ifindex)?;
    let numbers = [placed.card, placed.driver, placed.generic];
    let mut numbers: Vec<u32> = numbers.into_iter().flatten().collect();
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

impl Place {
    fn flag(self) -> u32 {
        match self {
            Place::Driver => libbpf_sys::XDP_FLAGS_DRV_MODE,
            Place::Generic => libbpf_sys::XDP_FLAGS_SKB_MODE,
        }
    }
}

/// Attaches a program that stays when its owner goes: where none is, or in the place of this one.
pub(super) fn attach_to_stay(
    program: RawFd,
    ifindex: u32,
    place: Place,
    in_place_of: Option<RawFd>,
) -> io::Result<()> {
    let options = replacing(in_place_of.unwrap_or(-1));
    let condition = match in_place_of {
        Some(_) => libbpf_sys::XDP_FLAGS_REPLACE,
        None => libbpf_sys::XDP_FLAGS_UPDATE_IF_NOEXIST,
    };
    let (ifindex, flags) = (ifindex as i32, place.flag() | condition);
    let options = in_place_of.map_or(std::ptr::null(), |_| &raw const options);
    // SAFETY: the options outlive the call and say their size; without any, libbpf takes none.
    check(unsafe { libbpf_sys::bpf_xdp_attach(ifindex, program, flags, options) }).map(drop)
}

/// Takes away a program that stays, if it is still this one.
pub(super) fn detach(program: RawFd, ifindex: u32, place: Place) -> io::Result<()> {
    let options = replacing(program);
    let flags = place.flag() | libbpf_sys::XDP_FLAGS_REPLACE;
    // SAFETY: as above.
    check(unsafe { libbpf_sys::bpf_xdp_detach(ifindex as i32, flags, &raw const options) })
        .map(drop)
}

fn replacing(program: RawFd) -> libbpf_sys::bpf_xdp_attach_opts {
    libbpf_sys::bpf_xdp_attach_opts {
        sz: size_of::<libbpf_sys::bpf_xdp_attach_opts>() as libbpf_sys::size_t,
        old_prog_fd: program,
        ..Default::default()
    }
}
