//! Frames that are late on their way out of an interface, for tests of order (`bpf/late.bpf.c`).

use std::os::fd::AsFd;

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::bpf_map::word_of;
use super::bpf_object::{self, embedded, map_handle, program_fd};
use super::tcx::{self, Hook};

#[derive(Debug, thiserror::Error)]
pub enum LateError {
    #[error("cannot load the BPF program that makes frames late: {0}")]
    Load(#[source] libbpf_rs::Error),
    #[error("cannot attach the BPF program that makes frames late: {0}")]
    Attach(#[source] std::io::Error),
}

/// One frame of a hundred that leave an interface stays behind the programs there for 3 ms, and before the queue, for
/// as long as this lives.
#[derive(Debug)]
pub struct LateFrames {
    count: MapHandle,
    _attached: tcx::Attached,
}

impl LateFrames {
    /// In the network namespace of the caller.
    pub fn at(ifindex: u32) -> Result<LateFrames, LateError> {
        let object = bpf_object::load(embedded!("late")).map_err(LateError::Load)?;
        let program = program_fd(&object, "late").map_err(LateError::Load)?;
        let attached =
            tcx::attach(program.as_fd(), ifindex, Hook::Egress).map_err(LateError::Attach)?;
        Ok(LateFrames {
            count: map_handle(&object, "late_frames").map_err(LateError::Load)?,
            _attached: attached,
        })
    }

    /// How many there were.
    pub fn count(&self) -> u32 {
        let value = self.count.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        value.ok().flatten().map_or(0, |value| word_of(&value, 0))
    }
}
