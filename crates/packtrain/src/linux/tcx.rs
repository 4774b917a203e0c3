//! Programs on an interface's way in and out by tcx (Linux 6.6).

use std::ffi::c_char;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::bpf_link::{self, no_options};
use super::sys::check;

pub(super) use super::bpf_link::Attached;

/// As many as the kernel lets stand at one place (`BPF_MPROG_MAX`).
const PROGRAMS_MAX: usize = 64;
/// What stands there may change between a look and what is done upon it.
const LOOKS_MAX: u32 = 16;

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

pub(super) fn attach(program: BorrowedFd<'_>, ifindex: u32, hook: Hook) -> io::Result<Attached> {
    let mut options = no_options();
    let kind = hook.kind();
    options.flags = hook.place();
    bpf_link::attach(program, ifindex, kind, &options)
}

/// Of a program that stays when its owner goes, and goes with the interface.
pub(super) fn attach_to_stay(program: BorrowedFd<'_>, ifindex: u32, hook: Hook) -> io::Result<()> {
    let options = libbpf_sys::bpf_prog_attach_opts {
        sz: size_of::<libbpf_sys::bpf_prog_attach_opts>() as libbpf_sys::size_t,
        flags: hook.place(),
        ..Default::default()
    };
    // SAFETY: the options outlive the call and say their size.
    check(unsafe {
        libbpf_sys::bpf_prog_attach_opts(
            program.as_raw_fd(),
            ifindex as i32,
            hook.kind(),
            &raw const options,
        )
    })
    .map(drop)
}

/// On the way in right behind the programs of this name, and before all others. One whose name may not be read, for
/// want of CAP_SYS_ADMIN, may have this one.
pub(super) fn attach_behind(
    program: BorrowedFd<'_>,
    ifindex: u32,
    name: &str,
) -> io::Result<Attached> {
    attach_at(ifindex, name, |place| {
        let mut options = no_options();
        options.flags = place.flags;
        options.__bindgen_anon_1.tcx.expected_revision = place.revision;
        options.__bindgen_anon_1.tcx.relative_id = place.behind;
        bpf_link::attach(program, ifindex, libbpf_sys::BPF_TCX_INGRESS, &options)
    })
}

/// The same, of a program that stays when its owner goes.
pub(super) fn attach_behind_to_stay(program: RawFd, ifindex: u32, name: &str) -> io::Result<()> {
    attach_at(ifindex, name, |place| {
        let options = libbpf_sys::bpf_prog_attach_opts {
            sz: size_of::<libbpf_sys::bpf_prog_attach_opts>() as libbpf_sys::size_t,
            flags: place.flags,
            relative_id: place.behind,
            expected_revision: place.revision,
            ..Default::default()
        };
        let (ifindex, kind) = (ifindex as i32, libbpf_sys::BPF_TCX_INGRESS);
        // SAFETY: the options outlive the call and say their size.
        check(unsafe {
            libbpf_sys::bpf_prog_attach_opts(program, ifindex, kind, &raw const options)
        })
        .map(drop)
    })
}

/// On the way in, as it was when that was looked at.
struct Place {
    flags: u32,
    /// The number of a program, where the flags say so.
    behind: u32,
    revision: u64,
}

fn attach_at<T>(
    ifindex: u32,
    name: &str,
    attach: impl Fn(Place) -> io::Result<T>,
) -> io::Result<T> {
    let mut looks = 0;
    loop {
        let there = Programs::on(ifindex, Hook::Ingress)?;
        let behind = there.last_named(name);
        let place = Place {
            flags: match behind {
                Some(_) => libbpf_sys::BPF_F_AFTER | libbpf_sys::BPF_F_ID,
                None => libbpf_sys::BPF_F_BEFORE,
            },
            behind: behind.unwrap_or(0),
            revision: there.revision,
        };
        looks += 1;
        match attach(place) {
            Err(error) if looks < LOOKS_MAX && has_changed(&error) => {}
            outcome => return outcome,
        }
    }
}

/// Since it was looked at.
fn has_changed(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESTALE | libc::ENOENT))
}

/// What stands at one place, in the order in which frames come to it.
struct Programs {
    ids: Vec<u32>,
    /// Goes up with each change.
    revision: u64,
}

impl Programs {
    fn on(ifindex: u32, hook: Hook) -> io::Result<Programs> {
        let mut ids = [0; PROGRAMS_MAX];
        let mut options = libbpf_sys::bpf_prog_query_opts {
            sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
            prog_ids: ids.as_mut_ptr(),
            ..Default::default()
        };
        options.__bindgen_anon_1.count = PROGRAMS_MAX as u32;
        let kind = hook.kind();
        // SAFETY: the list has room for as many as `count` says, and outlives the call.
        check(unsafe { libbpf_sys::bpf_prog_query_opts(ifindex as i32, kind, &raw mut options) })?;
        // SAFETY: of both fields that stand here, either is a plain number.
        let count = unsafe { options.__bindgen_anon_1.count } as usize;
        Ok(Programs {
            ids: ids[..count.min(PROGRAMS_MAX)].to_vec(),
            revision: options.revision,
        })
    }

    fn last_named(&self, name: &str) -> Option<u32> {
        let mut ids = self.ids.iter().rev().copied();
        ids.find(|id| may_be_named(*id, name))
    }
}

fn may_be_named(id: u32, wanted: &str) -> bool {
    match name_of(id) {
        Ok(name) => {
            let bytes = name.iter().map(|byte| *byte as u8);
            bytes.take_while(|byte| *byte != 0).eq(wanted.bytes())
        }
        // It has gone, and the revision with it.
        Err(error) => error.raw_os_error() != Some(libc::ENOENT),
    }
}

fn name_of(id: u32) -> io::Result<[c_char; 16]> {
    // SAFETY: no pointers; the descriptor that it returns is new, and owned by us alone.
    let program = unsafe {
        let fd = libbpf_sys::bpf_prog_get_fd_by_id(id);
        OwnedFd::from_raw_fd(check(fd)?)
    };
    // SAFETY: `bpf_prog_info` is plain integers, for which all zero is a value.
    let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `len` bytes, which `info` has, and to no list: it has none.
    check(unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut len)
    })?;
    Ok(info.name)
}

impl Attached {
    /// Whether none of the programs there sees frames before this one.
    pub(super) fn is_first(&self) -> io::Result<bool> {
        let info = self.info()?;
        // SAFETY: of a tcx link it is these fields.
        let tcx = unsafe { info.__bindgen_anon_1.tcx };
        let (ifindex, kind) = (tcx.ifindex, tcx.attach_type);
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

/// The numbers of the programs there, the first one first.
pub(super) fn programs_on(ifindex: u32, hook: Hook) -> io::Result<Vec<u32>> {
    Ok(Programs::on(ifindex, hook)?.ids)
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
