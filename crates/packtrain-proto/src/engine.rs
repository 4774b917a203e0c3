//! The engine: what travels and what decides, composed of the parts beside this file.
//!
//! # The contract
//! The engine does no I/O and reads no clock. Its owner calls, and `now` never goes back:
//!
//! - `handle_*` tells it what happened: a frame from the host, a frame from a link, a link's
//!   state, a link's local queue, time that passed. None of them blocks, and each may change what
//!   every `poll_*` gives.
//! - `poll_*` takes out what it wants done, one thing a call, until `None`:
//!   [`Engine::poll_transmit`] (put this on that link), [`Engine::poll_delivery`] (give this to the
//!   host), [`Engine::poll_event`]. What they return is borrowed until the next call.
//! - [`Engine::poll_timeout`] is when [`Engine::handle_timeout`] is to be called at the latest.
//!
//! The order after each `handle_*`, or after a batch of them, is: deliveries, then transmits,
//! then events, then the timeout.
//!
//! ## Room on a link
//! `poll_transmit` gives a frame for a link only while what stands below is less than the link's
//! limit: bytes in its local queue, as told by [`Engine::handle_link_queue`] plus what was given
//! since, and bytes in flight that no acknowledgement has named. After each batch the owner tells
//! the local queue again when it has changed; a link that never has a local queue needs no telling
//! beyond 0. [`Engine::link_queue_limit`] says below which fill the owner is to wake up and tell.

use crate::buffer::{Buffer, BufferPool};
use crate::config::{Config, LinkId, LinkState, NodeId};
use crate::offload::Offload;
use crate::stats::Snapshot;
use crate::time::Instant;
use crate::wire::ethernet::MacAddr;

/// A frame to put on a link.
#[derive(Debug)]
pub struct Transmit<'a> {
    pub link: LinkId,
    pub frame: &'a [u8],
    pub offload: Offload,
}

/// A frame to give to the host: `head` (the Ethernet header) and `body` one after the other.
#[derive(Debug)]
pub struct Delivery<'a> {
    pub head: &'a [u8],
    pub body: &'a [u8],
    pub offload: Offload,
}

impl Delivery<'_> {
    #[allow(clippy::len_without_is_empty)] // a frame has at least a header
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

/// What the owner may want to log, or must act upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    PeerUp {
        node_id: NodeId,
        address: MacAddr,
    },
    PeerDown {
        node_id: NodeId,
        address: MacAddr,
        reason: PeerDownReason,
    },
    /// The set of outer source addresses that mark frames for us has changed: read
    /// [`Engine::marks`] again.
    MarksChanged,
    /// The rate at which the host's frames should be taken, bit/s: the line is slower than the
    /// host. `None`: as they come.
    IntakeRate {
        rate_bps: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerDownReason {
    /// It said goodbye.
    Goodbye,
    /// Not heard for too long.
    Silent,
    /// The same link now speaks for another node id.
    Restarted,
    /// None of our links reaches it any more.
    NoLink,
}

/// One line: one `pt0` and its member links.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    pool: BufferPool,
}

impl Engine {
    pub fn new(config: Config, now: Instant) -> Engine {
        let _ = now;
        Engine {
            config,
            pool: BufferPool::new(),
        }
    }

    /// Buffers to read frames into.
    pub fn buffers(&mut self) -> &mut BufferPool {
        &mut self.pool
    }

    /// A frame that the host sent into `pt0`.
    pub fn handle_host_frame(&mut self, frame: Buffer, offload: Offload, now: Instant) {
        let _ = (frame, offload, now);
    }

    /// A frame that arrived on `link`.
    pub fn handle_link_frame(
        &mut self,
        link: LinkId,
        frame: Buffer,
        offload: Offload,
        now: Instant,
    ) {
        let _ = (link, frame, offload, now);
    }

    /// A link joined, or its state changed.
    pub fn handle_link_state(&mut self, link: LinkId, state: LinkState, now: Instant) {
        let _ = (link, state, now);
    }

    /// A link left.
    pub fn remove_link(&mut self, link: LinkId, now: Instant) {
        let _ = (link, now);
    }

    /// How many bytes of ours stand in the link's local queue now.
    pub fn handle_link_queue(&mut self, link: LinkId, queued_bytes: usize, now: Instant) {
        let _ = (link, queued_bytes, now);
    }

    /// The link's local queue refused a frame that `poll_transmit` gave; it is lost, and counted.
    pub fn handle_transmit_refused(&mut self, link: LinkId, now: Instant) {
        let _ = (link, now);
    }

    /// The host did not take a delivery; it is lost, and counted.
    pub fn handle_delivery_refused(&mut self) {}

    /// `pt0` was given another MTU, or put into or taken out of a bridge.
    pub fn handle_host_change(&mut self, mtu: u16, promiscuous: bool, now: Instant) {
        let _ = now;
        self.config.mtu = mtu;
        self.config.promiscuous = promiscuous;
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// Leaves: the next `poll_transmit`s give the goodbyes. The engine is not to be used after.
    pub fn say_goodbye(&mut self, now: Instant) {
        let _ = now;
    }

    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        let _ = now;
        None
    }

    pub fn poll_delivery(&mut self, now: Instant) -> Option<Delivery<'_>> {
        let _ = now;
        None
    }

    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Bytes that may stand in the link's local queue.
    pub fn link_queue_limit(&self, link: LinkId) -> usize {
        let _ = link;
        64 * 1024
    }

    /// Outer source addresses of marked frames for us: of every peer's links.
    pub fn marks(&self) -> Vec<MacAddr> {
        Vec::new()
    }

    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let _ = now;
        todo!("with the parts")
    }
}
