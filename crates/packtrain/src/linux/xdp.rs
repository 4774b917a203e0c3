//! Programs in an interface's driver (XDP), by a link of their own (Linux 5.9): nobody else's is replaced.

use std::io;
use std::os::fd::BorrowedFd;

use super::bpf_link::{self, Attached, no_options};
use super::sys::check;

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
    options.flags = match place {
        Place::Driver => libbpf_sys::XDP_FLAGS_DRV_MODE,
        Place::Generic => libbpf_sys::XDP_FLAGS_SKB_MODE,
    };
    bpf_link::attach(program, ifindex, libbpf_sys::BPF_XDP, &options)
}

/// The numbers of somebody's programs on an interface; none: there is none.
pub(super) fn programs_on(ifindex: u32) -> io::Result<Vec<u32>> {
    let mut options = libbpf_sys::bpf_xdp_query_opts {
        sz: size_of::<libbpf_sys::bpf_xdp_query_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    // SAFETY: the options outlive the call and say their size.
    check(unsafe { libbpf_sys::bpf_xdp_query(ifindex as i32, 0, &raw mut options) })?;
    let numbers = [
        options.hw_prog_id,
        options.drv_prog_id,
        options.skb_prog_id,
        options.prog_id,
    ];
    let mut numbers: Vec<u32> = numbers.into_iter().filter(|number| *number != 0).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}
