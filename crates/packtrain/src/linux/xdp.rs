//! Programs in an interface's driver (XDP), by a link of their own (Linux 5.9): they go when their owner goes, however
//! that ends, and nobody else's is replaced.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::sys::check;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the driver.
    Driver,
    /// Before the stack, where the kernel has made a buffer of its own of each frame.
    Generic,
}

/// A program that is attached for as long as this lives.
#[derive(Debug)]
pub(super) struct Attached(OwnedFd);

pub(super) fn attach(program: BorrowedFd<'_>, ifindex: u32, place: Place) -> io::Result<Attached> {
    // SAFETY: `bpf_link_create_opts` is plain integers, for which all zero is a value.
    let mut options: libbpf_sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    options.flags = match place {
        Place::Driver => libbpf_sys::XDP_FLAGS_DRV_MODE,
        Place::Generic => libbpf_sys::XDP_FLAGS_SKB_MODE,
    };
    // SAFETY: the options outlive the call and say their size; the descriptor that it returns is
    // new, and owned by us alone.
    unsafe {
        let fd = libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            ifindex as i32,
            libbpf_sys::BPF_XDP,
            &options,
        );
        Ok(Attached(OwnedFd::from_raw_fd(check(fd)?)))
    }
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

impl AsFd for Attached {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Attached {
    /// Closing the descriptor detaches later, and until then no other program can be attached.
    fn drop(&mut self) {
        // SAFETY: takes a descriptor that is open, and nothing else. It fails where the interface
        // is gone, and the program with it.
        unsafe { libbpf_sys::bpf_link_detach(self.0.as_raw_fd()) };
    }
}
