//! Datagrams of one flow that come one after the other go to the host as one GSO frame, and so do TCP's segments.
//!
//! A frame written to a TAP costs about a microsecond and a half of system call, routing and socket
//! look-up, most of it whatever its size. The kernel cuts a GSO frame only where it has to, at the
//! socket, as it does with what its own GRO has put together. What a program receives is
//! the same: only what cutting gives back to the byte is put together ([`part`]). An IPv4 identification may
//! change where fragmenting is forbidden, because there it means nothing (RFC 6864).

mod part;

use std::io;

use packtrain_proto::engine::Delivery;
use packtrain_proto::offload::Offload;
use packtrain_proto::wire::ethernet::HEADER_LEN;

use part::{HEADERS_MAX, Kind, Part};

/// Half of what the kernel's own senders put together (`UDP_MAX_SEGMENTS`).
const FRAMES_MAX: usize = 64;
/// Headers, and a payload of each frame.
pub const PARTS_MAX: usize = 1 + FRAMES_MAX;
/// IPv4 counts to 65,535, its header included.
const BYTES_MAX: usize = 65_000;

/// Where frames are given to the host.
pub trait Host {
    fn send(&self, delivery: &Delivery<'_>) -> io::Result<()>;
    /// One frame of several parts: at most [`PARTS_MAX`].
    fn send_parts(&self, offload: Offload, parts: &[io::IoSlice<'_>]) -> io::Result<()>;
}

/// Frames that will go together.
#[derive(Debug)]
pub struct Coalescer {
    /// The frames, one after the other.
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// What each still needs done to it, should it go alone.
    offloads: Vec<Offload>,
    run: Option<Run>,
    /// Kernels before 6.2 take no GSO frames of datagrams.
    takes_datagrams: bool,
    takes_segments: bool,
    counters: CoalescerCounters,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoalescerCounters {
    /// Datagrams that were given to the host in company, and the GSO frames that they made.
    pub datagrams: u64,
    pub datagram_frames: u64,
    /// … and segments of TCP.
    pub segments: u64,
    pub segment_frames: u64,
}

/// What the next frame has to fit to.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Part,
    /// A shorter one has come, or one that is to be given to the program at once: it is the last.
    ended: bool,
    pushes: bool,
}

impl Coalescer {
    pub fn new() -> Coalescer {
        Coalescer {
            bytes: Vec::with_capacity(BYTES_MAX),
            ends: Vec::with_capacity(FRAMES_MAX),
            offloads: Vec::with_capacity(FRAMES_MAX),
            run: None,
            takes_datagrams: true,
            takes_segments: true,
            counters: CoalescerCounters::default(),
        }
    }

    pub fn counters(&self) -> CoalescerCounters {
        self.counters
    }

    fn is_taken(&mut self, kind: Kind) -> &mut bool {
        match kind {
            Kind::Datagram => &mut self.takes_datagrams,
            Kind::Segment => &mut self.takes_segments,
        }
    }

    /// Gives the frame to the host, now or with [`Coalescer::flush`]; order is kept. Says how many
    /// frames the host did not take.
    pub fn send(&mut self, delivery: &Delivery<'_>, host: &impl Host) -> usize {
        let part = Part::parse(delivery.head, delivery.body, &delivery.offload);
        let Some(part) = part.filter(|part| *self.is_taken(part.kind)) else {
            return self.flush(host) + usize::from(host.send(delivery).is_err());
        };
        let refused = match self.takes(&part, delivery) {
            true => 0,
            false => self.flush(host),
        };
        let run = self.run.get_or_insert(Run {
            first: part,
            ended: false,
            pushes: false,
        });
        run.ended = part.payload_len < run.first.payload_len || part.pushes;
        run.pushes = part.pushes;
        self.bytes.extend_from_slice(delivery.head);
        self.bytes.extend_from_slice(delivery.body);
        self.ends.push(self.bytes.len());
        self.offloads.push(delivery.offload);
        refused
    }

    /// Whether the frame follows those that wait, and cutting would give all of them back.
    fn takes(&self, part: &Part, delivery: &Delivery<'_>) -> bool {
        let Some(run) = self.run.filter(|run| !run.ended) else {
            return false;
        };
        let first = &self.bytes[..self.ends[0]];
        let (head, packet) = first.split_at(HEADER_LEN);
        let count = self.ends.len();
        head == delivery.head
            && run.first.leads_to(packet, part, delivery.body, count)
            && count < FRAMES_MAX
            && self.bytes.len() + delivery.len() <= BYTES_MAX
    }

    /// Gives the host what waits, and says how many frames it did not take.
    pub fn flush(&mut self, host: &impl Host) -> usize {
        let Some(run) = self.run.take() else {
            return 0;
        };
        let mut refused = 0;
        if self.ends.len() == 1 || !self.sent_together(run, host) {
            let mut start = 0;
            for (&end, &offload) in self.ends.iter().zip(&self.offloads) {
                let (head, body) = self.bytes[start..end].split_at(HEADER_LEN);
                let delivery = Delivery {
                    head,
                    body,
                    offload,
                };
                refused += usize::from(host.send(&delivery).is_err());
                start = end;
            }
        }
        self.bytes.clear();
        self.ends.clear();
        self.offloads.clear();
        refused
    }

    fn sent_together(&mut self, run: Run, host: &impl Host) -> bool {
        let headers_len = run.first.headers_len();
        let payload_bytes = self.bytes.len() - self.ends.len() * headers_len;
        let mut headers = [0; HEADERS_MAX];
        let headers = &mut headers[..headers_len];
        headers.copy_from_slice(&self.bytes[..headers_len]);
        let offload = run.first.write_headers(headers, payload_bytes, run.pushes);

        let mut parts = [io::IoSlice::new(&[]); PARTS_MAX];
        parts[0] = io::IoSlice::new(headers);
        let mut start = 0;
        for (part, &end) in parts[1..].iter_mut().zip(&self.ends) {
            *part = io::IoSlice::new(&self.bytes[start + headers_len..end]);
            start = end;
        }
        match host.send_parts(offload, &parts[..1 + self.ends.len()]) {
            Ok(()) => {
                let counters = &mut self.counters;
                let (parts, frames) = match run.first.kind {
                    Kind::Datagram => (&mut counters.datagrams, &mut counters.datagram_frames),
                    Kind::Segment => (&mut counters.segments, &mut counters.segment_frames),
                };
                *parts += self.ends.len() as u64;
                *frames += 1;
                true
            }
            Err(error) => {
                *self.is_taken(run.first.kind) &= error.kind() != io::ErrorKind::InvalidInput;
                false
            }
        }
    }
}

impl Default for Coalescer {
    fn default() -> Coalescer {
        Coalescer::new()
    }
}

#[cfg(test)]
mod tests;
