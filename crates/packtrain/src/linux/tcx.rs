//! Programs on an interface's way in and out by tcx (Linux 6.6): they go when their owner goes,
//! however that ends, and all to whom it has passed them on.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::sys::check;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// Before all other programs there: they see what the stack sees.
    Ingress,
    /// After all others of tcx. Filters of a clsact come later still, and only to what goes on.
    Egress,
}

impl Hook {
    fn kind(self) -> libbpf_sys::bpf_attach_type {
        match self {
            Hook::Ingress => libbpf_sys::BPF_TCX_INGRESS,
            Hook::Egress => libbpf_sys::BPF_TCX_EGRESS,
        }
    }

    fn place(self) -> u32 {
        match self {
            Hook::Ingress => libbpf_sys::BPF_F_BEFORE,
            Hook::Egress => libbpf_sys::BPF_F_AFTER,
        }
    }
}

/// A program that is attached for as long as this lives.
#[derive(Debug)]
pub(super) struct Attached(OwnedFd);

pub(super) fn attach(program: BorrowedFd<'_>, ifindex: u32, hook: Hook) -> io::Result<Attached> {
    // SAFETY: `bpf_link_create_opts` is plain integers, for which all zero is a value.
    let mut options: libbpf_sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as libbpf_sys::size_t;
    let kind = hook.kind();
    options.flags = hook.place();
    // SAFETY: the options outlive the call and say their size; the descriptor that it returns is
    // new, and owned by us alone.
    unsafe {
        let fd = libbpf_sys::bpf_link_create(program.as_raw_fd(), ifindex as i32, kind, &options);
        Ok(Attached(OwnedFd::from_raw_fd(check(fd)?)))
    }
}

impl Attached {
    /// Whether none of the programs there sees frames before this one.
    pub(super) fn is_first(&self) -> io::Result<bool> {
        // SAFETY: `bpf_link_info` is plain integers, for which all zero is a value.
        let mut info: libbpf_sys::bpf_link_info = unsafe { std::mem::zeroed() };
        let mut len = size_of_val(&info) as u32;
        // SAFETY: the kernel writes at most `len` bytes, which `info` has. Of a tcx link it is these fields.
        let (ifindex, kind) = unsafe {
            let fd = self.0.as_raw_fd();
            let done = libbpf_sys::bpf_link_get_info_by_fd(fd, &raw mut info, &raw mut len);
            check(done)?;
            let tcx = info.__bindgen_anon_1.tcx;
            (tcx.ifindex, tcx.attach_type)
        };
        let (mut first_program, mut first_link) = (0_u32, 0_u32);
        let mut options = libbpf_sys::bpf_prog_query_opts {
            sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
            prog_ids: &raw mut first_program,
            link_ids: &raw mut first_link,
            ..Default::default()
        };
        options.__bindgen_anon_1.count = 1;
        // SAFETY: each list has room for as many as `count` says, and outlives the call.
        let asked = check(unsafe {
            libbpf_sys::bpf_prog_query_opts(ifindex as i32, kind, &raw mut options)
        });
        match asked {
            // There are more than one, and the first is told.
            Err(error) if error.raw_os_error() != Some(libc::ENOSPC) => Err(error),
            _ => Ok(first_link == info.id),
        }
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
    /// Closing the descriptor detaches later, and until then the program cannot be attached anew.
    fn drop(&mut self) {
        // SAFETY: takes a descriptor that is open, and nothing else. It fails where the interface
        // is gone, and the program with it.
        unsafe { libbpf_sys::bpf_link_detach(self.0.as_raw_fd()) };
    }
}

/// The numbers of the programs there, the first one first.
pub(super) fn programs_on(ifindex: u32, hook: Hook) -> io::Result<Vec<u32>> {
    /// As many as the kernel lets there be (`BPF_MPROG_MAX`).
    const PROGRAMS_MAX: usize = 64;
    let mut numbers = [0_u32; PROGRAMS_MAX];
    let mut options = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: numbers.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = PROGRAMS_MAX as u32;
    // SAFETY: the list has room for as many as `count` says, and outlives the call, which sets `count` to how many there are.
    let count = unsafe {
        let asked = libbpf_sys::bpf_prog_query_opts(ifindex as i32, hook.kind(), &raw mut options);
        check(asked)?;
        options.__bindgen_anon_1.count
    };
    Ok(numbers[..count as usize].to_vec())
}

/// Attaches a program that stays when its owner goes.
pub(super) fn attach_to_stay(program: RawFd, ifindex: u32, hook: Hook) -> io::Result<()> {
    let options = libbpf_sys::bpf_prog_attach_opts {
        sz: size_of::<libbpf_sys::bpf_prog_attach_opts>() as libbpf_sys::size_t,
        flags: hook.place(),
        ..Default::default()
    };
    let (ifindex, kind) = (ifindex as i32, hook.kind());
    // SAFETY: the options outlive the call and say their size.
    check(unsafe { libbpf_sys::bpf_prog_attach_opts(program, ifindex, kind, &raw const options) })
        .map(drop)
}

/// Takes away a program that stays.
pub(super) fn detach(program: RawFd, ifindex: u32, hook: Hook) -> io::Result<()> {
    let options = libbpf_sys::bpf_prog_detach_opts {
        sz: size_of::<libbpf_sys::bpf_prog_detach_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let (ifindex, kind) = (ifindex as i32, hook.kind());
    // SAFETY: as above.
    check(unsafe { libbpf_sys::bpf_prog_detach_opts(program, ifindex, kind, &raw const options) })
        .map(drop)
}
