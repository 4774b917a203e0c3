//! A program that is attached by a link of its own (Linux 5.7): it goes when its owner goes, however that ends, and all to
//! whom it has been passed on.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::sys::check;

/// A program that is attached for as long as this lives.
#[derive(Debug)]
pub(super) struct Attached(OwnedFd);

/// `kind`: where, as in `BPF_XDP`.
pub(super) fn attach(
    program: BorrowedFd<'_>,
    ifindex: u32,
    kind: libbpf_sys::bpf_attach_type,
    options: &libbpf_sys::bpf_link_create_opts,
) -> io::Result<Attached> {
    // SAFETY: the options outlive the call and say their size; the descriptor that it returns is
    // new, and owned by us alone.
    unsafe {
        let fd = libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex as i32, kind, options);
        Ok(Attached(OwnedFd::from_raw_fd(check(fd)?)))
    }
}

/// With nothing in them but their size.
pub(super) fn no_options() -> libbpf_sys::bpf_link_create_opts {
    // SAFETY: `bpf_link_create_opts` is plain integers, for which all zero is a value.
    let mut options: libbpf_sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    options
}

impl Attached {
    pub(super) fn info(&self) -> io::Result<libbpf_sys::bpf_link_info> {
        // SAFETY: `bpf_link_info` is plain integers, for which all zero is a value.
        let mut info: libbpf_sys::bpf_link_info = unsafe { std::mem::zeroed() };
        let mut len = size_of_val(&info) as u32;
        let fd = self.0.as_raw_fd();
        // SAFETY: the kernel writes at most `len` bytes, which `info` has.
        check(unsafe { libbpf_sys::bpf_link_get_info_by_fd(fd, &raw mut info, &raw mut len) })?;
        Ok(info)
    }
}

impl From<OwnedFd> for Attached {
    /// One that another process has attached, and passed on: it stays while either has it.
    fn from(link: OwnedFd) -> Attached {
        Attached(link)
    }
}

impl AsFd for Attached {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Attached {
    /// Closing the descriptor detaches later, and until then no other program can be attached in its place.
    fn drop(&mut self) {
        // SAFETY: takes a descriptor that is open, and nothing else. It fails where the interface
        // is gone, and the program with it.
        unsafe { libbpf_sys::bpf_link_detach(self.0.as_raw_fd()) };
    }
}
