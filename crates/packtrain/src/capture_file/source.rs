//! Where bytes come from: a file or pipe as it is, or what gzip or zstd have made of a capture.
//!
//! Both are unpacked as they are read, in memory that no file makes larger: gzip's window has 32 KB, and of zstd's a file
//! that wants more than [`WINDOW_LOG_MAX`] is refused. What of a stream is whole before a fault is given, but for up to
//! one buffer of what stands right before bytes that are wrong.
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

/// What was given to us, and whether it has failed: an error that comes out of a decompressor may be either's.
pub struct Reader {
    from: Box<dyn Read + Send>,
    failed: bool,
}

impl Source {
    pub fn plain(from: Box<dyn Read + Send>) -> Source {
        Source::Plain(Reader {
            from,
            failed: false,
        })
    }

    /// From now on it is unpacked, what was `read` of it first. A stream in a stream is none of ours.
    pub fn unpack(&mut self, compression: Compression, read: Vec<u8>) {
        let Source::Plain(Reader { from, failed }) = self else {
            unreachable!("it is unpacked once");
        };
        let rest = std::mem::replace(from, Box::new(io::empty()));
        let reader = Reader {
            from: Box::new(Cursor::new(read).chain(rest)),
            failed: *failed,
        };
        *self = match compression {
            Compression::Gzip => Source::Gzip(Box::new(Gzip::new(reader))),
            Compression::Zstd => Source::Zstd(Box::new(Zstd::new(reader))),
            other => unreachable!("{other:?} is not unpacked"),
        };
    }

    /// As much as comes at once; nothing at the end alone.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Cause> {
        match self {
            Source::Plain(reader) => reader.read(into).map_err(Cause::Unread),
            Source::Gzip(gzip) => gzip.read(into),
            Source::Zstd(zstd) => zstd.read(into),
        }
    }
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.from.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = true;
                    return Err(error);
                }
                read => return read,
            }
        }
    }
}
