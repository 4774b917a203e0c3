//! Where frames of a link come in: a packet socket that only receives.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use packtrain_proto::buffer::{Buffer, BufferPool};
use packtrain_proto::offload::Offload;

use super::readable::Readable;
use crate::linux::guard::Reception;
use crate::linux::packet_socket::{Frames, PacketSocket, PacketSocketCounters};

/// What decides which frames of a link are ours.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'a> {
    pub reception: Reception,
    /// The guard's, for the socket that stands there; without one, all is ours that it receives.
    pub program: Option<BorrowedFd<'a>>,
}

impl Filter<'_> {
    /// Every frame of the link, before any classifier.
    pub const NONE: Filter<'static> = Filter {
        reception: Reception::Tap,
        program: None,
    };
}

#[derive(Debug)]
pub(super) struct Inlet {
    reception: Reception,
    socket: PacketSocket,
    pub(super) readable: Readable,
}

impl Inlet {
    /// The filter first, so that no frame comes past it.
    pub(super) fn open(ifindex: u32, filter: Filter<'_>) -> io::Result<Inlet> {
        let frames = match filter.reception {
            Reception::Tap => Frames::All,
            Reception::ByType => Frames::Wrapped,
        };
        let mut socket = PacketSocket::create()?;
        if let Some(program) = filter.program {
            socket.attach_filter(program)?;
        }
        socket.bind(ifindex, frames)?;
        Ok(Inlet {
            reception: filter.reception,
            socket,
            readable: Readable::new(),
        })
    }

    pub(super) fn reception(&self) -> Reception {
        self.reception
    }

    /// No two of a link have the same; 0 is none's.
    pub(super) fn number(&self) -> u8 {
        match self.reception {
            Reception::Tap => 1,
            Reception::ByType => 2,
        }
    }

    /// The next frame; `None` when none waits. Errors are counted and read past: the socket tells
    /// each once.
    pub(super) fn receive(
        &mut self,
        pool: &mut BufferPool,
        errors: &mut u64,
    ) -> Option<(Buffer, Offload)> {
        // More than one in a row is possible: the interface went down, came up and went again.
        for _ in 0..4 {
            match self.socket.receive(pool) {
                Ok(Some(frame)) => {
                    self.readable.on_frame();
                    return Some(frame);
                }
                Ok(None) => break,
                Err(_) => *errors += 1,
            }
        }
        self.readable.on_empty();
        None
    }

    /// What it did not pass on, the kernel's own count included.
    pub(super) fn counters(&mut self) -> PacketSocketCounters {
        // Reads the kernel's counter into the socket's.
        let _ = self.socket.dropped();
        self.socket.counters()
    }
}

impl AsFd for Inlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
