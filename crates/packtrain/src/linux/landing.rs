//! Where a frame of unknown size lands: in a small buffer if it fits, else in a large one.
//!
//! A system call that scatters gets both, the small one first; only a frame that went past it
//! has its head copied (2 KB of up to 64). The two are kept between calls, so that finding nothing
//! to read costs no turn of the pool.

use packtrain_proto::buffer::{Buffer, BufferPool, LARGE_CAPACITY, SMALL_CAPACITY};

#[derive(Debug)]
pub(super) struct Landing {
    /// Bytes left free before the frame, for a VLAN tag to be put back.
    gap: usize,
    small: Buffer,
    large: Buffer,
}

impl Landing {
    pub(super) fn new(gap: usize) -> Landing {
        Landing {
            gap,
            small: Buffer::with_capacity(SMALL_CAPACITY),
            large: Buffer::with_capacity(LARGE_CAPACITY),
        }
    }

    /// The two pieces of memory to read into, in this order. They are valid until the landing is
    /// next touched.
    pub(super) fn io_vectors(&mut self) -> [libc::iovec; 2] {
        [
            &mut self.small.room_mut()[self.gap..],
            &mut self.large.room_mut()[SMALL_CAPACITY..],
        ]
        .map(|room| libc::iovec {
            iov_base: room.as_mut_ptr().cast(),
            iov_len: room.len(),
        })
    }

    /// The frame of `len` bytes that was read, in a buffer of its own; it begins after the gap.
    pub(super) fn take(&mut self, len: usize, pool: &mut BufferPool) -> Buffer {
        let end = self.gap + len;
        let mut buffer = if end <= SMALL_CAPACITY {
            std::mem::replace(&mut self.small, pool.take(SMALL_CAPACITY))
        } else {
            let head = &self.small.room_mut()[..SMALL_CAPACITY];
            self.large.room_mut()[..SMALL_CAPACITY].copy_from_slice(head);
            std::mem::replace(&mut self.large, pool.take(LARGE_CAPACITY))
        };
        buffer.set_len(end);
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes as a scattering system call does.
    fn scatter(landing: &mut Landing, frame: &[u8]) {
        let mut rest = frame;
        let gap = landing.gap;
        for room in [
            &mut landing.small.room_mut()[gap..],
            &mut landing.large.room_mut()[SMALL_CAPACITY..],
        ] {
            let n = rest.len().min(room.len());
            room[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_frame_lands_whole_in_the_smallest_buffer_that_holds_it() {
        let mut pool = BufferPool::new();
        for gap in [0, 4] {
            let mut landing = Landing::new(gap);
            for len in [0, 1, 60, 2043, 2044, 2045, 2048, 2049, 9014, 65_549] {
                let frame: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
                scatter(&mut landing, &frame);
                let buffer = landing.take(len, &mut pool);
                assert_eq!(buffer[gap..], frame[..], "{len} bytes");
                assert_eq!(
                    buffer.capacity() <= SMALL_CAPACITY,
                    gap + len <= SMALL_CAPACITY
                );
                pool.give_back(buffer);
            }
        }
    }
}
