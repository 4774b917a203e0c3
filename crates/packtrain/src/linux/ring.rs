//! Small frames of the host by a ring in shared memory: 40 ns a frame, where a read of the TAP takes ten times as
//! long. What may come by it, and in which order, `bpf/ring.bpf.c` says.
//!
//! Read by lines of our own and not by libbpf's: that calls back for each frame, and reads to an end that moves; here
//! the line decides after each frame, and has to know where the end was when it read something from the TAP.
//! The format is the kernel's (`Documentation/bpf/ringbuf.rst`): a page with the position of the reader, one with that of
//! the writer, and the data twice, so that each record is in one piece.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use libbpf_rs::Object;
use packtrain_proto::offload::{Offload, PartialChecksum};

use super::bpf_object::map_handle;

// As in bpf/ring.h.
const RING_BYTES: usize = 1 << 20;
const RECORD_LEN: usize = 12;

// Before each record, include/uapi/linux/bpf.h: its length in 32 bits, of which these two say something else.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_LEN: usize = 8;

/// Frames that the host gave to the queue before `pt0`, ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// One that the kernel cuts behind it as its segments.
    pub to_tap: u64,
    pub by_ring: u64,
    /// Those that went to the TAP because the ring had no room.
    pub full: u64,
}

/// A frame where it stands in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingFrame<'a> {
    pub bytes: &'a [u8],
    pub offload: Offload,
}

/// The only reader of a ring. Closed when it goes, and nobody sees what is left in it.
#[derive(Debug)]
pub struct Ring {
    consumer: Mapping,
    producer: Mapping,
    /// `struct ring_orders`
    orders: Mapping,
    /// `struct ring_counts`
    counts: Mapping,
    page: usize,
    /// Read up to here; never wraps, as the kernel's own.
    position: u64,
    published_read: u64,
}

impl Ring {
    /// Closed: no frame comes by it yet.
    pub(super) fn of(object: &Object) -> libbpf_rs::Result<Ring> {
        let page = rustix::param::page_size();
        let map = map_handle(object, "ring")?;
        let orders = map_handle(object, ".data.orders")?;
        let counts = map_handle(object, ".data.counts")?;
        Ok(Ring {
            consumer: Mapping::new(map.as_fd(), page, 0, Access::Write)?,
            producer: Mapping::new(map.as_fd(), page + 2 * RING_BYTES, page, Access::Read)?,
            orders: Mapping::new(orders.as_fd(), page, 0, Access::Write)?,
            counts: Mapping::new(counts.as_fd(), page, 0, Access::Read)?,
            page,
            position: 0,
            published_read: 0,
        })
    }

    /// Whether frames may come by it from now on.
    pub fn set_open(&self, open: bool) {
        self.orders.word(0).store(open.into(), Ordering::Release);
    }

    /// Before a sleep: whether there is nothing that it would sleep over. The next frame comes by the TAP then, and ends
    /// the sleep.
    pub fn may_sleep(&self) -> bool {
        self.orders.word(4).store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        !self.has_frames()
    }

    /// After a sleep: nobody need be woken.
    pub fn is_awake(&self) {
        self.orders.word(4).store(0, Ordering::Relaxed);
    }

    /// Of the frames that went on to the TAP, those up to this count were read.
    pub fn set_read(&mut self, to_tap: u64) {
        if std::mem::replace(&mut self.published_read, to_tap) != to_tap {
            self.orders.long_word(8).store(to_tap, Ordering::Release);
        }
    }

    pub fn counts(&self) -> RingCounts {
        let [to_tap, by_ring, full] =
            [0, 8, 16].map(|at| self.counts.long_word(at).load(Ordering::Acquire));
        RingCounts {
            to_tap,
            by_ring,
            full,
        }
    }

    /// … of which `to_tap` alone.
    pub fn to_tap(&self) -> u64 {
        self.counts.long_word(0).load(Ordering::Acquire)
    }

    /// Where the next record will be: all before it is in the ring, or is just being written.
    pub fn end(&self) -> u64 {
        self.producer.long_word(0).load(Ordering::Acquire)
    }

    /// Whether all before this place was read.
    pub fn is_past(&self, end: u64) -> bool {
        self.position >= end
    }

    pub fn has_frames(&self) -> bool {
        self.position != self.end()
    }

    /// Of the next one: the count of the frame that is to be read from the TAP before it, the lower half; 0: any order
    /// does. `None`: there is no next one, or its writer is not ready yet.
    pub fn next_is_after(&mut self) -> Option<u32> {
        let record = self.next_record()?;
        Some(u32::from_ne_bytes(
            record[8..12].try_into().expect("four bytes"),
        ))
    }

    /// The next one. Its room is given back by [`Ring::release`].
    pub fn next_frame(&mut self) -> Option<RingFrame<'_>> {
        let len = self.next_record()?.len();
        let at = self.place() + HEADER_LEN;
        self.position += record_len(len);
        Some(parse(self.producer.bytes(at, len)))
    }

    /// Where it stands in the memory of the producer.
    fn place(&self) -> usize {
        self.page + (self.position as usize & (RING_BYTES - 1))
    }

    /// Passes by what was given up by its writer.
    fn next_record(&mut self) -> Option<&[u8]> {
        while self.has_frames() {
            let header = self.producer.word(self.place()).load(Ordering::Acquire);
            if header & BUSY != 0 {
                return None;
            }
            let len = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 {
                return Some(self.producer.bytes(self.place() + HEADER_LEN, len));
            }
            self.position += record_len(len);
        }
        None
    }

    /// What was read makes room.
    pub fn release(&self) {
        let word = self.consumer.long_word(0);
        word.store(self.position, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.set_open(false);
    }
}

/// … and of the kernel's header.
fn record_len(len: usize) -> u64 {
    (HEADER_LEN + len).next_multiple_of(8) as u64
}

/// `struct ring_record`, and its frame.
fn parse(record: &[u8]) -> RingFrame<'_> {
    let half = |at: usize| u16::from_ne_bytes([record[at], record[at + 1]]);
    let (len, start, offset) = (usize::from(half(0)), half(2), half(4));
    RingFrame {
        bytes: &record[RECORD_LEN..RECORD_LEN + len],
        offload: Offload {
            checksum: (start != 0).then_some(PartialChecksum { start, offset }),
            gso: None,
        },
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// Memory that a map and this process share.
#[derive(Debug)]
struct Mapping {
    begin: *mut u8,
    len: usize,
}

// SAFETY: the memory is no thread's own, and everything in it is atomic, or is only read.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(map: BorrowedFd<'_>, len: usize, offset: usize, access: Access) -> io::Result<Mapping> {
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::Write => libc::PROT_READ | libc::PROT_WRITE,
        };
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let begin = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        match begin {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            begin => Ok(Mapping {
                begin: begin.cast(),
                len,
            }),
        }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.len);
        // SAFETY: aligned, for a mapping begins with a page; inside it; and what others write there they write whole.
        // Those mapped to be read are only loaded from.
        unsafe { &*self.begin.add(at).cast() }
    }

    fn long_word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.len);
        // SAFETY: as above.
        unsafe { &*self.begin.add(at).cast() }
    }

    /// Of a record that was written and is not released.
    fn bytes(&self, at: usize, len: usize) -> &[u8] {
        assert!(at + len <= self.len);
        // SAFETY: inside the mapping, and nobody writes there until it is released, which needs the frame to be gone.
        unsafe { std::slice::from_raw_parts(self.begin.add(at), len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and borrowed by nobody any more. It can only fail for a mapping that is none.
        unsafe { libc::munmap(self.begin.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests;
