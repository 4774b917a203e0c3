//! A file as it is read, from its beginning to its end: what is read of it stands in one buffer, in which records
//! are looked at where they are, and the place is known.
//!
//! ```text
//!  0          16         start        start + len            end
//! +----------+----------+------------+----------------------+----------+
//! | headroom | given    | the record | read, not yet looked | free     |
//! +----------+----------+------------+----------------------+----------+
//! ```
//! What is given counts no more: a header is written over it where a frame has none of its own ([`Input::prepend`]).

use std::fmt;
use std::io::Read;

use super::error::{Cause, Compression, Place};
use super::source::Source;

/// Most bytes of a packet, or of a block whose content counts; others are passed over, however long. Four times
/// what libpcap captures of a frame at most (its `MAXIMUM_SNAPLEN`), so that comments have room.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// Most bytes that are read at once: enough that nobody sees the cost of reading, and few enough for a processor's cache.
const READ_BYTES_MAX: usize = 128 * 1024;

/// An Ethernet header goes before the bytes of a packet whatever stands before them: 12 bytes at least, in the
/// record of a simple packet.
const HEADROOM_BYTES: usize = 16;

/// What is read from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What is not known to be a capture.
    File,
    Header,
    Block,
    Packet,
}

pub struct Input {
    from: Source,
    compression: Option<Compression>,
    /// Made once: nothing that a file says lets it grow.
    buffer: Box<[u8]>,
    /// Where the record begins, how much of it is read, and where what is read ends: in the buffer.
    start: usize,
    len: usize,
    end: usize,
    /// Where `start` is in the file, unpacked.
    offset: u64,
    part: Part,
    /// Where the part begins.
    part_offset: u64,
    packets: u64,
}

impl Input {
    pub fn new(from: Box<dyn Read + Send>) -> Input {
        Input {
            from: Source::plain(from),
            compression: None,
            buffer: vec![0; HEADROOM_BYTES + RECORD_BYTES_MAX + READ_BYTES_MAX].into(),
            start: HEADROOM_BYTES,
            len: 0,
            end: HEADROOM_BYTES,
            offset: 0,
            part: Part::File,
            part_offset: 0,
            packets: 0,
        }
    }

    /// Reads again from the beginning, which is still here, and unpacks it.
    pub fn unpack(&mut self, compression: Compression) {
        let read = self.buffer[self.start..self.end].to_vec();
        self.from.unpack(compression, read);
        self.compression = Some(compression);
        (self.start, self.len, self.end) = (HEADROOM_BYTES, 0, HEADROOM_BYTES);
    }

    /// What it is unpacked from.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// A new record with its first `len` bytes; `false` if the file ends before it.
    #[inline]
    pub fn begin(&mut self, part: Part, len: usize) -> Result<bool, Cause> {
        self.drop_record();
        self.part_offset = self.offset;
        let filled = self.fill(len);
        if matches!(filled, Ok(0)) {
            return Ok(false);
        }
        self.turns_out(part);
        match filled? < len {
            true => Err(Cause::CutOff),
            false => Ok(true),
        }
    }

    /// What the record is, where that is known only from its first bytes.
    pub fn turns_out(&mut self, part: Part) {
        self.part = part;
        self.packets += u64::from(part == Part::Packet);
    }

    /// Reads the record on, until there are `len` bytes of it.
    #[inline]
    pub fn read_to(&mut self, len: usize) -> Result<(), Cause> {
        if len > RECORD_BYTES_MAX {
            return Err(Cause::TooLarge(len as u64));
        }
        match self.fill(len)? < len {
            true => Err(Cause::CutOff),
            false => Ok(()),
        }
    }

    /// Passes over so many bytes behind what is read of the record; what follows them becomes the record then, at
    /// the place where it was.
    pub fn skip(&mut self, mut bytes: u64) -> Result<(), Cause> {
        loop {
            self.drop_record();
            if bytes == 0 {
                return Ok(());
            }
            let step = bytes.min(READ_BYTES_MAX as u64);
            if (self.fill(step as usize)? as u64) < step {
                return Err(Cause::CutOff);
            }
            bytes -= step;
        }
    }

    /// As much of it as has been read.
    #[inline]
    pub fn record(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }

    /// The record from `at` on, up to `end`, behind a header that takes the place of what stands before it.
    pub fn prepend(&mut self, header: [u8; 14], at: usize, end: usize) -> &[u8] {
        let start = self.start + at - header.len();
        self.buffer[start..start + header.len()].copy_from_slice(&header);
        &self.buffer[start..self.start + end]
    }

    /// How many have begun.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    pub fn place(&self) -> Place {
        let offset = self.part_offset;
        match self.part {
            Part::File => Place::File,
            Part::Header => Place::Header,
            Part::Block => Place::Block { offset },
            Part::Packet => Place::Packet {
                number: self.packets,
                offset,
            },
        }
    }

    fn drop_record(&mut self) {
        self.start += self.len;
        self.offset += self.len as u64;
        self.len = 0;
    }

    /// Gives how long the record is then: less than `len` at the end of the file alone.
    #[inline]
    fn fill(&mut self, len: usize) -> Result<usize, Cause> {
        while self.end - self.start < len {
            if self.read_more()? == 0 {
                self.len = self.end - self.start;
                return Ok(self.len);
            }
        }
        self.len = self.len.max(len);
        Ok(self.len)
    }

    /// Once: a pipe that is still being written is not asked for more than it has.
    #[cold]
    fn read_more(&mut self) -> Result<usize, Cause> {
        if self.start > HEADROOM_BYTES {
            self.buffer
                .copy_within(self.start..self.end, HEADROOM_BYTES);
            self.end -= self.start - HEADROOM_BYTES;
            self.start = HEADROOM_BYTES;
        }
        // A record is shorter than what is free beside it, so that this is never empty.
        let free = &mut self.buffer[self.end..];
        let most = free.len().min(READ_BYTES_MAX);
        let read = self.from.read(&mut free[..most])?;
        self.end += read;
        Ok(read)
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Input");
        debug.field("place", &self.place());
        debug.field("offset", &self.offset);
        debug.finish_non_exhaustive()
    }
}
