//! A file as it is read, from its beginning to its end: one record of it is in memory, and the place is known.

use std::fmt;
use std::io::{self, BufReader, Read};

use super::error::{Cause, Place};

/// Most bytes of a packet, or of a block whose content counts; others are passed over, however long. Four times
/// what libpcap captures of a frame at most (its `MAXIMUM_SNAPLEN`), so that comments have room.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

const BUFFER_BYTES: usize = 64 * 1024;

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
    from: BufReader<Box<dyn Read + Send>>,
    /// Made once: nothing that a file says lets it grow.
    record: Box<[u8]>,
    /// How much of it is read.
    len: usize,
    part: Part,
    /// Where the record begins.
    start: u64,
    /// Where we are.
    offset: u64,
    packets: u64,
}

impl Input {
    pub fn new(from: Box<dyn Read + Send>) -> Input {
        Input {
            from: BufReader::with_capacity(BUFFER_BYTES, from),
            record: vec![0; RECORD_BYTES_MAX].into(),
            len: 0,
            part: Part::File,
            start: 0,
            offset: 0,
            packets: 0,
        }
    }

    /// A new record with its first `len` bytes; `false` if the file ends before it.
    pub fn begin(&mut self, part: Part, len: usize) -> Result<bool, Cause> {
        self.start = self.offset;
        self.len = 0;
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
    pub fn read_to(&mut self, len: usize) -> Result<(), Cause> {
        if len > RECORD_BYTES_MAX {
            return Err(Cause::TooLarge(len as u64));
        }
        match self.fill(len)? < len {
            true => Err(Cause::CutOff),
            false => Ok(()),
        }
    }

    /// Passes over what follows, which does not become part of the record.
    pub fn skip(&mut self, bytes: u64) -> Result<(), Cause> {
        let skipped = io::copy(&mut (&mut self.from).take(bytes), &mut io::sink());
        let skipped = skipped.map_err(Cause::Unread)?;
        self.offset += skipped;
        match skipped < bytes {
            true => Err(Cause::CutOff),
            false => Ok(()),
        }
    }

    /// As much of it as has been read.
    pub fn record(&self) -> &[u8] {
        &self.record[..self.len]
    }

    /// How many have begun.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    pub fn place(&self) -> Place {
        match self.part {
            Part::File => Place::File,
            Part::Header => Place::Header,
            Part::Block => Place::Block { offset: self.start },
            Part::Packet => Place::Packet {
                number: self.packets,
                offset: self.start,
            },
        }
    }

    /// Gives how long the record is then: less than `len` at the end of the file alone.
    fn fill(&mut self, len: usize) -> Result<usize, Cause> {
        while self.len < len {
            match self.from.read(&mut self.record[self.len..len]) {
                Ok(0) => break,
                Ok(read) => {
                    self.len += read;
                    self.offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Cause::Unread(error)),
            }
        }
        Ok(self.len)
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
