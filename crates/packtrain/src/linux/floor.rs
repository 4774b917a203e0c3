//! The least that a second interface over a link can be, for benchmarks (`bpf/floor.bpf.c`).

use std::io;
use std::os::fd::AsFd;

use libbpf_rs::{MapCore, MapFlags};
use packtrain_proto::wire::ethernet::MacAddr;

use super::bpf_object::{self, embedded, map_handle, program_fd};
use super::tap::Tap;
use super::tcx::{self, Hook};

#[derive(Debug, thiserror::Error)]
pub enum FloorError {
    #[error("cannot make the TAP of the floor: {0}")]
    Tap(#[source] io::Error),
    #[error("cannot load the BPF programs of the floor: {0}")]
    Load(#[source] libbpf_rs::Error),
    #[error("cannot attach the BPF programs of the floor: {0}")]
    Attach(#[source] io::Error),
}

/// A TAP that nobody reads: two programs carry its frames over a link as long as this lives.
#[derive(Debug)]
pub struct Floor {
    _tap: Tap,
    _attached: [tcx::Attached; 2],
}

impl Floor {
    /// In the network namespace of the caller. The first byte of `mac` is 0x02: its frames have another one on the link, and
    /// nobody else is to be there.
    pub fn over(link: u32, name: &str, mac: MacAddr) -> Result<Floor, FloorError> {
        let tap = Tap::create(name, mac).map_err(FloorError::Tap)?;
        let object = bpf_object::load(embedded!("floor")).map_err(FloorError::Load)?;
        let ends = [tap.ifindex().to_ne_bytes(), link.to_ne_bytes()].concat();
        map_handle(&object, ".data.ends")
            .and_then(|map| map.update(&0u32.to_ne_bytes(), &ends, MapFlags::ANY))
            .map_err(FloorError::Load)?;
        let attach = |program, ifindex, hook| {
            let program = program_fd(&object, program).map_err(FloorError::Load)?;
            tcx::attach(program.as_fd(), ifindex, hook).map_err(FloorError::Attach)
        };
        let attached = [
            attach("floor_leave", tap.ifindex(), Hook::Egress)?,
            attach("floor_arrive", link, Hook::Ingress)?,
        ];
        Ok(Floor {
            _tap: tap,
            _attached: attached,
        })
    }
}
