//! Where bytes come from: a file or pipe as it is, or what gzip or zstd have made of a capture.
//!
//! Both are unpacked as they are read, in memory that no file makes larger: gzip's window has 32 KB, and of zstd's a file
//! that wants more than [`WINDOW_LOG_MAX`] is refused. What of a stream is whole before its end or a fault is
//! given: of gzip to the byte, of zstd to the block, which has 128 KB at most.
//!
//! `flate2` is kept by the Rust project; of its backends in Rust zlib-rs unpacks half as fast again as miniz_oxide
//! (458 against 290 MB/s of a capture of small packets, and the gzip program 165). For zstd there is `ruzstd` in Rust
//! alone; its 0.9 takes the end of the first frame for that of the file, reads checksums without comparing them, and is
//! a quarter as fast (242 against 1080 MB/s). So it is the `zstd` crate: the reference library, which is fuzzed all
//! the time, in its most used binding, for which a C compiler is needed that libbpf needs anyway; and it packs as
//! well. What is called of it is its streaming interface, because error codes tell a window that is too large from a
//! stream that is broken, where an `io::Error` has only words.

mod gzip;
mod zstd;

use std::io::{self, Cursor, Read};

pub use zstd::WINDOW_LOG_MAX;

use super::error::{Cause, Compression};
use gzip::Gzip;
use zstd::Zstd;

pub enum Source {
    Plain(Reader),
    Gzip(Box<Gzip>),
    Zstd(Box<Zstd>),
}

/// What was given to us, asked again where it was interrupted.
pub struct Reader(Box<dyn Read + Send>);

/// What is read of a stream, and not yet unpacked.
struct Packed {
    from: Reader,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Source {
    pub fn plain(from: Box<dyn Read + Send>) -> Source {
        Source::Plain(Reader(from))
    }

    /// From now on it is unpacked, what was `read` of it first. A stream in a stream is none of ours.
    pub fn unpack(&mut self, compression: Compression, read: Vec<u8>) {
        let Source::Plain(Reader(from)) = self else {
            unreachable!("it is unpacked once");
        };
        let rest = std::mem::replace(from, Box::new(io::empty()));
        let reader = Reader(Box::new(Cursor::new(read).chain(rest)));
        *self = match compression {
            Compression::Gzip => Source::Gzip(Box::new(Gzip::new(reader))),
            Compression::Zstd => Source::Zstd(Box::new(Zstd::new(reader))),
            other => unreachable!("{other:?} is not unpacked"),
        };
    }

    /// As much as comes at once; nothing at the end alone.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Cause> {
        match self {
            Source::Plain(reader) => reader.read(into),
            Source::Gzip(gzip) => gzip.read(into),
            Source::Zstd(zstd) => zstd.read(into),
        }
    }
}

impl Reader {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Cause> {
        loop {
            match self.0.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map_err(Cause::Unread),
            }
        }
    }
}

impl Packed {
    fn new(from: Reader, buffer_bytes: usize) -> Packed {
        Packed {
            from,
            buffer: vec![0; buffer_bytes].into(),
            start: 0,
            end: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// When all of it is consumed; `false` at the end of the file.
    fn read_more(&mut self) -> Result<bool, Cause> {
        debug_assert!(self.is_empty());
        (self.start, self.end) = (0, 0);
        self.end = self.from.read(&mut self.buffer)?;
        Ok(self.end > 0)
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
    }
}
