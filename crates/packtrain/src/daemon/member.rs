//! One member link of a line: configured for as long as the line lives, attached while its
//! interface exists.

use std::collections::VecDeque;
use std::io;

use packtrain_proto::config::{LinkId, LinkState};
use packtrain_proto::offload::Offload;
use packtrain_proto::time::Duration;
use packtrain_proto::wire::ethernet::MacAddr;

use super::inlet::{Filter, Inlet};
use crate::linux::guard::Reception;
use crate::linux::packet_socket::{Frames, PacketSocket, PacketSocketCounters, SendError};

#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: LinkId,
    pub(super) name: String,
    pub(super) attached: Option<Attached>,
    /// It has an interface now or had one: the engine and the peers have heard of its number.
    pub(super) was_attached: bool,
    /// The engine waits for its local queue to be empty: it is asked all the time.
    pub(super) leaving: bool,
    /// A switch takes it for one with others, and brings by it what is for those.
    pub(super) in_lag: bool,
    pub(super) counters: MemberCounters,
}

/// What happened at a link below the engine, counted over all its attachments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberCounters {
    /// Frames that had to wait because the socket was full before the engine's limit was reached.
    pub held: u64,
    /// Frames that the queueing discipline or the driver dropped.
    pub refused_queue: u64,
    /// Frames larger than the interface took.
    pub refused_too_large: u64,
    /// Frames for an interface that was down or gone.
    pub refused_down: u64,
    /// Frames that the kernel refused for another reason.
    pub refused_other: u64,
    /// Errors of the socket when reading, `ENETDOWN` mostly.
    pub receive_errors: u64,
    /// Frames that were dropped before we could read them.
    pub socket: PacketSocketCounters,
}

/// What became of a frame given to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Sent,
    /// Kept, to be sent as soon as there is room: until then the link is full.
    Held,
    Refused,
}

/// A member link whose interface exists.
#[derive(Debug)]
pub(super) struct Attached {
    /// Sends, and receives nothing.
    pub(super) socket: PacketSocket,
    /// One, or two while what is ours comes to be received elsewhere: first the one that stood before.
    pub(super) inlets: Vec<Inlet>,
    pub(super) state: LinkState,
    /// Before the interface, as far as is known: one in which frames can be seen to stand.
    pub(super) has_queue: bool,
    /// Woken when the local queue falls.
    pub(super) awaits_room: bool,
    /// Promiscuous, because `pt0` is.
    promiscuous: bool,
    /// Of other links, which it takes frames for.
    others: Vec<MacAddr>,
    /// The engine's limit for the local queue, and the one that the socket was last set to.
    queue_limit: usize,
    queue_limit_set: usize,
    /// What stood below when last asked.
    standing_bytes: usize,
    /// What was sent since then.
    sent_bytes: usize,
    held: Held,
}

impl Attached {
    /// Opens the link's sockets, and asks for the addresses that the interface would not take for itself.
    pub(super) fn open(
        ifindex: u32,
        state: LinkState,
        host: MacAddr,
        filter: Filter<'_>,
    ) -> io::Result<Attached> {
        let inlets = vec![Inlet::open(ifindex, filter)?];
        let mut socket = PacketSocket::create()?;
        socket.bind(ifindex, Frames::None)?;
        socket.add_unicast(host)?;
        socket.add_multicast(MacAddr::HELLO)?;
        // The host's group memberships are `pt0`'s, and unknown to the link.
        socket.set_all_multicast(true)?;
        Ok(Attached {
            socket,
            inlets,
            state,
            has_queue: true,
            awaits_room: false,
            promiscuous: false,
            others: Vec::new(),
            queue_limit: 0,
            queue_limit_set: 0,
            standing_bytes: 0,
            sent_bytes: 0,
            held: Held::default(),
        })
    }

    pub(super) fn set_promiscuous(&mut self, on: bool) -> io::Result<()> {
        if self.promiscuous != on {
            self.socket.set_promiscuous(on)?;
            self.promiscuous = on;
        }
        Ok(())
    }

    /// Takes frames for these addresses of other links as well, and for no others.
    pub(super) fn take_for(&mut self, others: &[MacAddr]) -> io::Result<()> {
        let mut result = Ok(());
        for gone in self.others.extract_if(.., |at| !others.contains(at)) {
            result = result.and(self.socket.remove_unicast(gone));
        }
        for &address in others {
            if !self.others.contains(&address) {
                let added = self.socket.add_unicast(address);
                if added.is_ok() {
                    self.others.push(address);
                }
                result = result.and(added);
            }
        }
        result
    }

    /// What comes there from now on is later than what has come elsewhere.
    pub(super) fn read_last(&mut self, reception: Reception) {
        self.inlets.sort_by_key(|i| i.reception() == reception);
    }

    /// Something may be there. `waited`: how long it took until this was reported.
    pub(super) fn on_ready(&mut self, number: u8, waited: Duration) {
        // What is left in the one is earlier than what is in the next.
        let until_empty = self.inlets.len() > 1;
        let mut inlets = self.inlets.iter_mut();
        if let Some(inlet) = inlets.find(|inlet| inlet.number() == number) {
            inlet.readable.on_ready(waited, until_empty);
        }
    }

    /// Whether something may be left unread.
    pub(super) fn is_readable(&self) -> bool {
        self.inlets.iter().any(|inlet| inlet.readable.is_ready())
    }

    pub(super) fn transmit(
        &mut self,
        frame: &[u8],
        offload: Offload,
        counters: &mut MemberCounters,
    ) -> Outcome {
        // Nothing overtakes what is held. The engine was told that the link is full, and blocked, so only
        // what it sends in spite of that comes here: hellos, probes, and counts of direct frames.
        let outcome = match self.held.is_empty() {
            true => self.try_send(frame, offload, counters),
            false => Outcome::Held,
        };
        if outcome != Outcome::Held {
            return outcome;
        }
        if !self.held.push(frame, offload) {
            counters.refused_queue += 1;
            return Outcome::Refused;
        }
        counters.held += 1;
        Outcome::Held
    }

    /// Tries again what is held, in order, and says how many of it were refused.
    pub(super) fn retry(&mut self, counters: &mut MemberCounters) -> usize {
        let mut refused = 0;
        while let Some((frame, offload)) = self.held.pop() {
            let outcome = self.try_send(&frame, offload, counters);
            if outcome == Outcome::Held {
                self.held.put_back(frame, offload);
                break;
            }
            refused += usize::from(outcome == Outcome::Refused);
            self.held.recycle(frame);
        }
        refused
    }

    fn try_send(
        &mut self,
        frame: &[u8],
        offload: Offload,
        counters: &mut MemberCounters,
    ) -> Outcome {
        let error = match self.socket.send(frame, offload) {
            Err(SendError::WouldBlock) if self.queue_limit > 0 => {
                // The socket counts memory and was set for large frames; with small ones it is
                // full too early. Set for those that stand there now, it may have room.
                let _ = self.socket.set_queue_limit(self.queue_limit);
                self.socket.send(frame, offload)
            }
            result => result,
        };
        let counter = match error {
            Ok(()) => {
                self.sent_bytes += frame.len();
                return Outcome::Sent;
            }
            Err(SendError::WouldBlock) => return Outcome::Held,
            Err(SendError::NoBuffer) => &mut counters.refused_queue,
            Err(SendError::TooLarge) => &mut counters.refused_too_large,
            Err(SendError::LinkDown) => &mut counters.refused_down,
            Err(SendError::Other(_)) => &mut counters.refused_other,
        };
        *counter += 1;
        Outcome::Refused
    }

    /// Whether bytes of ours may stand below in a number that matters: for frames that wait, or
    /// because something stood before or so much was sent since that the drain can be measured.
    /// Asking costs a system call, and a host that sends a small frame now and then would pay it for
    /// each.
    pub(super) fn is_worth_asking(&self, frames_wait: bool) -> bool {
        const MUCH: usize = 3000;
        let matters = frames_wait || self.standing_bytes > 0 || self.sent_bytes >= MUCH;
        !self.held.is_empty() || (self.socket.may_have_queued() && matters)
    }

    /// Asks for the bytes of ours that stand below: in the local queue, and what is held.
    /// A link that holds something is full, whatever the count says.
    pub(super) fn ask_standing_bytes(&mut self) -> usize {
        // The ioctl fails on no open socket; nothing better could be said then anyway.
        let queued = self.socket.queued_bytes().unwrap_or(0);
        self.sent_bytes = 0;
        self.standing_bytes = match self.held.bytes {
            0 => queued,
            held => (queued + held).max(self.queue_limit),
        };
        self.standing_bytes
    }

    /// Whether there was no room below when last asked.
    pub(super) fn is_full(&self, limit: usize) -> bool {
        self.standing_bytes > 0 && self.standing_bytes >= limit
    }

    /// Follows the engine's limit. It moves with the measured rate; for the socket an eighth is
    /// near enough.
    pub(super) fn follow_queue_limit(&mut self, limit: usize) {
        self.queue_limit = limit.max(1);
        if self.queue_limit.abs_diff(self.queue_limit_set) > self.queue_limit_set / 8 {
            self.queue_limit_set = self.queue_limit;
            let _ = self.socket.set_queue_limit(self.queue_limit);
        }
    }

    pub(super) fn holds_frames(&self) -> bool {
        !self.held.is_empty()
    }
}

/// Frames that found the socket full, oldest first. Few and rarely: the engine stops by its own
/// limit before the socket does, except where that limit has just shrunk.
#[derive(Debug, Default)]
struct Held {
    frames: VecDeque<(Vec<u8>, Offload)>,
    bytes: usize,
    /// Memory of frames that have left.
    free: Vec<Vec<u8>>,
}

impl Held {
    /// The frame that the engine gave before it could be told, and hellos and probes for the time
    /// that a queue takes to fall.
    const FRAMES_MAX: usize = 16;

    fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Keeps a copy, and says whether there was room.
    #[must_use]
    fn push(&mut self, frame: &[u8], offload: Offload) -> bool {
        if self.frames.len() >= Self::FRAMES_MAX {
            return false;
        }
        let mut memory = self.free.pop().unwrap_or_default();
        memory.extend_from_slice(frame);
        self.bytes += frame.len();
        self.frames.push_back((memory, offload));
        true
    }

    fn pop(&mut self) -> Option<(Vec<u8>, Offload)> {
        let (frame, offload) = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some((frame, offload))
    }

    fn put_back(&mut self, frame: Vec<u8>, offload: Offload) {
        self.bytes += frame.len();
        self.frames.push_front((frame, offload));
    }

    fn recycle(&mut self, mut frame: Vec<u8>) {
        frame.clear();
        self.free.push(frame);
    }
}

impl MemberCounters {
    /// Adds what a socket that is about to close has counted.
    pub(super) fn add(&mut self, socket: PacketSocketCounters) {
        self.socket = total(self.socket, socket);
    }
}

impl Member {
    pub(super) fn is_of_interface(&self, ifindex: u32) -> bool {
        let attached = self.attached.as_ref();
        attached.is_some_and(|attached| attached.socket.ifindex() == ifindex)
    }

    /// The counters, those of the open sockets included.
    pub(super) fn counters(&mut self) -> MemberCounters {
        let mut counters = self.counters;
        for inlet in self.attached.iter_mut().flat_map(|a| &mut a.inlets) {
            counters.add(inlet.counters());
        }
        counters
    }
}

fn total(a: PacketSocketCounters, b: PacketSocketCounters) -> PacketSocketCounters {
    PacketSocketCounters {
        truncated: a.truncated + b.truncated,
        unrepresentable: a.unrepresentable + b.unrepresentable,
        overrun: a.overrun + b.overrun,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_keeps_its_order_and_its_bound() {
        let mut held = Held::default();
        for round in 0..3u8 {
            for i in 0..Held::FRAMES_MAX as u8 {
                assert!(held.push(&[i; 100], Offload::NONE));
            }
            assert!(
                !held.push(&[0], Offload::NONE),
                "a seventeenth in round {round}"
            );
            assert_eq!(held.bytes, Held::FRAMES_MAX * 100);
            for i in 0..Held::FRAMES_MAX as u8 {
                let (frame, offload) = held.pop().expect("held");
                assert_eq!(frame, [i; 100]);
                held.put_back(frame, offload);
                let (frame, _) = held.pop().expect("put back");
                held.recycle(frame);
            }
            assert!(held.is_empty() && held.pop().is_none());
            assert_eq!((held.bytes, held.free.len()), (0, Held::FRAMES_MAX));
        }
    }
}
