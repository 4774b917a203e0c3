//! gzip: members, one behind the other (RFC 1952, 2.2), as `cat a.gz b.gz` and parallel compressors leave them.

use flate2::{Decompress, FlushDecompress, Status};

use super::super::error::{Cause, Compression};
use super::{Packed, Reader};

const COMPRESSION: Compression = Compression::Gzip;
const BUFFER_BYTES: usize = 64 * 1024;
const FIRST_BYTE: u8 = 0x1f;
/// The only window of the format: 32 KB.
const WINDOW_LOG: u8 = 15;

pub struct Gzip {
    packed: Packed,
    /// Of headers and checksums too.
    inflate: Decompress,
    /// Between members, or before the first.
    is_between: bool,
    /// The last buffer that was given is full: there may be more without anything being read.
    has_more: bool,
    /// Told when what is before it has been given.
    fault: Option<Cause>,
}

impl Gzip {
    pub fn new(from: Reader) -> Gzip {
        Gzip {
            packed: Packed::new(from, BUFFER_BYTES),
            inflate: Decompress::new_gzip(WINDOW_LOG),
            is_between: true,
            has_more: false,
            fault: None,
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Cause> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        loop {
            if self.packed.is_empty() && !self.has_more && !self.packed.read_more()? {
                return match self.is_between {
                    true => Ok(0),
                    false => Err(Cause::StreamCutOff(COMPRESSION)),
                };
            }
            if self.is_between && !self.begin_member()? {
                continue;
            }
            let (unpacked, fault) = self.unpack(into);
            match fault {
                Some(fault) if unpacked == 0 => return Err(fault),
                fault => self.fault = fault,
            }
            if unpacked > 0 {
                return Ok(unpacked);
            }
        }
    }

    /// Whether there is one. Zeros are none: tapes and some file systems leave them behind a file, and gzip passes over
    /// them too.
    fn begin_member(&mut self) -> Result<bool, Cause> {
        let ahead = self.packed.bytes();
        let zeros = ahead.iter().take_while(|&&byte| byte == 0).count();
        match ahead.get(zeros) {
            None => {
                self.packed.consume(zeros);
                Ok(false)
            }
            Some(&FIRST_BYTE) if zeros == 0 => {
                self.inflate.reset(true);
                self.is_between = false;
                Ok(true)
            }
            Some(_) => Err(broken("what stands behind its end is no gzip stream")),
        }
    }

    fn unpack(&mut self, into: &mut [u8]) -> (usize, Option<Cause>) {
        let (taken, given) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(self.packed.bytes(), into, FlushDecompress::None);
        let taken = (self.inflate.total_in() - taken) as usize;
        let unpacked = (self.inflate.total_out() - given) as usize;
        self.packed.consume(taken);
        self.has_more = unpacked == into.len();
        match status {
            Ok(Status::StreamEnd) => {
                (self.is_between, self.has_more) = (true, false);
                (unpacked, None)
            }
            // Both are of a stream that goes on; the second has been given nothing, having had more.
            Ok(Status::Ok | Status::BufError) => (unpacked, None),
            Err(error) => {
                let reason = error.message().unwrap_or("wrong bytes");
                (unpacked, Some(broken(reason)))
            }
        }
    }
}

fn broken(reason: &str) -> Cause {
    Cause::StreamBroken {
        compression: COMPRESSION,
        reason: reason.to_owned(),
    }
}
