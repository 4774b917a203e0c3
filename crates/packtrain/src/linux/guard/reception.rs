//! Where the packet sockets stand that take what is ours.
//!
//! A socket for every type stands before tc, and is shown each frame of the link, direct ones too. Sockets for one
//! type stand behind tc, where direct frames never come; the guard gives trains to the one, and all else that is
//! ours, wrapped, to the other.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapHandle};

use super::{Attachment, Guard, GuardError};
use crate::linux::sys::{check, wait_for_programs};

/// Which of the words of `struct __sk_buff` is `ifindex`; the kernel takes those behind it for zero.
pub(super) const SK_BUFF_IFINDEX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// Before tc: one socket for every type.
    Tap,
    /// Behind tc: one for trains, one for what the guard wraps.
    ByType,
}

impl Guard {
    pub fn reception(&self) -> Reception {
        self.reception
    }

    /// Where the sockets are best now. Behind tc, but where a bridge or the like takes frames before they would, and
    /// where all that comes in is `pt0`'s, which no guard can give to two. Where the guard stands in the old way
    /// there are no direct frames, for which it is.
    pub fn best_reception(&self) -> Reception {
        let is_tcx = self.attachment == Attachment::Tcx;
        match is_tcx && !self.promiscuous && !self.has_receive_handler() {
            true => Reception::ByType,
            false => Reception::Tap,
        }
    }

    /// The program for `SO_ATTACH_BPF` of the packet sockets that stand there.
    pub fn filter_of(&self, reception: Reception) -> BorrowedFd<'_> {
        match reception {
            Reception::Tap => self.socket_filter.as_fd(),
            Reception::ByType => self.given_filter.as_fd(),
        }
    }

    /// Where sockets are to stand of which none is there yet.
    pub fn set_reception(&mut self, reception: Reception) -> Result<(), GuardError> {
        self.reception = reception;
        self.write_settings()
    }

    /// These sockets, which are there, get what is ours from now on, and the others nothing: each frame comes to one
    /// of them. Takes some ten milliseconds; afterwards the others may be emptied and closed.
    pub fn hand_over(&mut self, to: Reception) -> Result<(), GuardError> {
        // Who has a frame in hand has asked one of the two places already, and goes by what it said.
        self.is_moving = true;
        let moved = self.write_settings();
        wait_for_programs();
        self.is_moving = false;
        moved?;
        let before = std::mem::replace(&mut self.reception, to);
        let moved = self.write_settings();
        wait_for_programs();
        if moved.is_err() {
            self.reception = before;
        }
        moved
    }

    /// Also where the kernel does not say.
    fn has_receive_handler(&self) -> bool {
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
