//! Where the packet socket stands that takes what is ours.
//!
//! A socket for every type stands before tc, and is shown each frame of the link, direct ones too. A socket for one
//! type stands behind tc, where direct frames never come; the guard gives what is ours to it, wrapped so that it is
//! of this type. One socket takes all: the order among trains and frames that have no sequence is its order.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::{Guard, GuardError};
use crate::linux::bpf_map::MapError;
use crate::linux::sys::check;
use crate::linux::tcx;

/// Which of the words of `struct __sk_buff` is `ifindex`; the kernel takes those behind it for zero.
pub(super) const SK_BUFF_IFINDEX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// Before tc, for every type.
    Tap,
    /// Behind tc, for the type of what the guard wraps.
    ByType,
}

/// Where a guard gives what is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivesTo {
    One(Reception),
    /// Sockets stand at both places: what the one before tc takes does not come to the other.
    Both,
}

impl GivesTo {
    pub(super) fn includes(self, reception: Reception) -> bool {
        self == GivesTo::Both || self == GivesTo::One(reception)
    }
}

impl Guard {
    pub fn gives_to(&self) -> GivesTo {
        self.gives_to
    }

    /// Where the socket is best now. Behind tc, but where a bridge or the like takes frames before it would, where
    /// another program or hook decides over frames on their way there, and where all that comes in is `pt0`'s, which
    /// no guard can give to two. Where there are no direct frames there is nothing to win by it.
    pub fn best_reception(&self) -> Reception {
        let is_first = |link: &tcx::Attached| link.is_first().unwrap_or(false);
        let reaches_it = self.tcx_link.as_ref().is_some_and(is_first) && !self.has_others_behind();
        match reaches_it && !self.promiscuous && !self.is_interrupted {
            true => Reception::ByType,
            false => Reception::Tap,
        }
    }

    /// The program for `SO_ATTACH_BPF` of the packet socket that stands there.
    pub fn filter_of(&self, reception: Reception) -> BorrowedFd<'_> {
        match reception {
            Reception::Tap => self.socket_filter.as_fd(),
            Reception::ByType => self.given_filter.as_fd(),
        }
    }

    /// Gives what is ours there, where sockets stand, from now on. Each frame comes to one of them when both are given
    /// to in between, until no processor has a frame in hand that it took before.
    pub fn give_to(&mut self, gives_to: GivesTo) -> Result<(), GuardError> {
        let before = std::mem::replace(&mut self.gives_to, gives_to);
        let written = self.write_settings();
        if written.is_err() {
            self.gives_to = before;
        }
        written
    }

    /// No processor has a frame in hand any more that the socket before tc has taken. Where another program kept
    /// one from the guard, that it is taken still stands there, and would be said of the next one.
    pub fn forget_tapped(&self) -> Result<(), GuardError> {
        let failed = |source| MapError {
            map: "tapped",
            source,
        };
        let none = |processors: usize| vec![0_u32.to_ne_bytes().to_vec(); processors];
        let processors = libbpf_rs::num_possible_cpus().map_err(failed)?;
        let written =
            self.tapped
                .update_percpu(&0_u32.to_ne_bytes(), &none(processors), MapFlags::ANY);
        Ok(written.map_err(failed)?)
    }

    /// Whether a bridge or the like, or a hook of netfilter, stands between us and a socket behind tc; also where the
    /// kernel does not say.
    fn has_others_behind(&self) -> bool {
        // Its type is that of nothing; no program ever sees it.
        let nobodys_frame = [0_u8; 14];
        let mut context = [0_u32; SK_BUFF_IFINDEX + 1];
        context[SK_BUFF_IFINDEX] = self.ifindex;
        // SAFETY: `bpf_test_run_opts` is plain integers and pointers, for which all zero is a value.
        let mut run: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
        run.sz = size_of_val(&run) as libbpf_sys::size_t;
        run.data_in = nobodys_frame.as_ptr().cast();
        run.data_size_in = nobodys_frame.len() as u32;
        run.ctx_in = context.as_ptr().cast();
        run.ctx_size_in = size_of_val(&context) as u32;
        // SAFETY: what the options point to outlives the call, and they say its size.
        let ran = check(unsafe {
            libbpf_sys::bpf_prog_test_run_opts(self.handled.as_raw_fd(), &raw mut run)
        });
        ran.is_err() || run.retval != 0
    }
}

/// By which its wrapped frames are told from those of another guard of the link. Never 0, and the same for two only
/// where 65,535 maps have been made between them.
pub(super) fn number_of(settings: &MapHandle) -> libbpf_rs::Result<u16> {
    Ok((settings.info()?.info.id as u16).max(1))
}
