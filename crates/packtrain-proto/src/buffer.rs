//! Frame buffers, reused: the engine allocates nothing per frame in the steady state.

use core::fmt;
use core::ops::{Deref, DerefMut};

/// Room before the frame, so that a header can be put in front without moving the frame.
pub const HEADROOM: usize = 64;
/// What the small buffers hold: any frame of an ordinary MTU, and any train over it.
pub const SMALL_CAPACITY: usize = 2048;
/// What the large buffers hold: 65,535 bytes after the EtherType, an Ethernet header and two tags.
pub const LARGE_CAPACITY: usize = 65_536 + 64;

/// One frame in memory of fixed capacity, with headroom before it.
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// An empty buffer of its own, of `capacity` bytes after the headroom.
    pub fn with_capacity(capacity: usize) -> Buffer {
        Buffer {
            bytes: vec![0; HEADROOM + capacity].into_boxed_slice(),
            start: HEADROOM,
            end: HEADROOM,
        }
    }

    /// How long the frame can become without moving its start.
    pub fn capacity(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The whole room after the headroom, to read a frame into; follow with [`Buffer::set_len`].
    pub fn room_mut(&mut self) -> &mut [u8] {
        let start = self.start;
        &mut self.bytes[start..]
    }

    /// Says how many bytes of the room are the frame.
    pub fn set_len(&mut self, len: usize) {
        assert!(
            len <= self.capacity(),
            "a frame of {len} bytes in {}",
            self.capacity()
        );
        self.end = self.start + len;
    }

    /// Appends, and says whether there was room.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.bytes.len() - self.end {
            return false;
        }
        self.bytes[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
        true
    }

    /// Appends zeros, up to this length.
    ///
    /// # Panics
    /// If there is no room for them.
    pub fn pad_to(&mut self, len: usize) {
        assert!(len <= self.capacity());
        let end = self.start + len;
        if end > self.end {
            self.bytes[self.end..end].fill(0);
            self.end = end;
        }
    }

    /// Drops `len` bytes from the front.
    pub fn advance(&mut self, len: usize) {
        assert!(len <= self.len());
        self.start += len;
    }

    /// Forgets the content.
    pub fn clear(&mut self) {
        self.start = HEADROOM;
        self.end = HEADROOM;
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} of {})", self.len(), self.capacity())
    }
}

/// Free buffers of the two sizes, last in first out so that the warmest is used first.
///
/// The pool bounds what it *keeps*, not what it gives: every holder of buffers (queues,
/// reassembly, resequencer) has a bound of its own.
#[derive(Debug, Default)]
pub struct BufferPool {
    small: Vec<Buffer>,
    large: Vec<Buffer>,
}

impl BufferPool {
    const SMALL_KEPT_MAX: usize = 8192;
    const LARGE_KEPT_MAX: usize = 128;

    pub fn new() -> BufferPool {
        BufferPool {
            small: Vec::with_capacity(Self::SMALL_KEPT_MAX),
            large: Vec::with_capacity(Self::LARGE_KEPT_MAX),
        }
    }

    /// An empty buffer that holds at least `capacity` bytes (at most [`LARGE_CAPACITY`]).
    pub fn take(&mut self, capacity: usize) -> Buffer {
        assert!(capacity <= LARGE_CAPACITY, "no frame has {capacity} bytes");
        let (list, size) = if capacity <= SMALL_CAPACITY {
            (&mut self.small, SMALL_CAPACITY)
        } else {
            (&mut self.large, LARGE_CAPACITY)
        };
        let mut buffer = list.pop().unwrap_or_else(|| Buffer::with_capacity(size));
        buffer.clear();
        buffer
    }

    /// An empty buffer that holds a copy of `bytes`.
    pub fn copy_of(&mut self, bytes: &[u8]) -> Buffer {
        let mut buffer = self.take(bytes.len());
        let fits = buffer.push(bytes);
        debug_assert!(fits);
        buffer
    }

    /// Keeps a buffer for the next who asks; one of neither size was not taken here, and goes.
    pub fn give_back(&mut self, buffer: Buffer) {
        const SMALL: usize = HEADROOM + SMALL_CAPACITY;
        const LARGE: usize = HEADROOM + LARGE_CAPACITY;
        let (list, kept_max) = match buffer.bytes.len() {
            SMALL => (&mut self.small, Self::SMALL_KEPT_MAX),
            LARGE => (&mut self.large, Self::LARGE_KEPT_MAX),
            _ => return,
        };
        if list.len() < kept_max {
            list.push(buffer);
        }
    }
}
