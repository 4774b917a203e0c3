//! zstd: frames, one behind the other, and between them such as are to be passed over (RFC 8878, 3.1).

use std::io::Read;

use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{DCtx, DParameter, ErrorCode, InBuffer, OutBuffer, get_error_name};

use super::super::error::{Cause, Compression};
use super::Reader;

/// 128 MB, which is what `zstd -d` takes without being told: more than any of its levels ask for by themselves.
pub const WINDOW_LOG_MAX: u32 = 27;

const COMPRESSION: Compression = Compression::Zstd;

pub struct Zstd {
    from: Reader,
    context: DCtx<'static>,
    /// What is read, and not yet unpacked: from `start` to `end`.
    packed: Box<[u8]>,
    start: usize,
    end: usize,
    /// A frame has begun, and not ended.
    is_within: bool,
    /// The last buffer that it was given is full: it may have more without being given anything.
    has_more: bool,
}

impl Zstd {
    pub fn new(from: Reader) -> Zstd {
        let mut context = DCtx::create();
        context
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))
            .expect("a window that zstd knows");
        Zstd {
            from,
            context,
            packed: vec![0; DCtx::in_size()].into(),
            start: 0,
            end: 0,
            is_within: false,
            has_more: false,
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Cause> {
        loop {
            if self.start == self.end && !self.has_more {
                self.start = 0;
                self.end = self.from.read(&mut self.packed).map_err(Cause::Unread)?;
                if self.end == 0 {
                    return match self.is_within {
                        true => Err(Cause::StreamCutOff(COMPRESSION)),
                        false => Ok(0),
                    };
                }
            }
            let unpacked = self.unpack(into)?;
            if unpacked > 0 {
                return Ok(unpacked);
            }
        }
    }

    fn unpack(&mut self, into: &mut [u8]) -> Result<usize, Cause> {
        let mut packed = InBuffer::around(&self.packed[self.start..self.end]);
        let mut unpacked = OutBuffer::around(into);
        let wanted = self.context.decompress_stream(&mut unpacked, &mut packed);
        self.start += packed.pos();
        let len = unpacked.pos();
        // Nothing is wanted where a frame has ended, and is given whole.
        self.is_within = wanted.map_err(cause)? > 0;
        self.has_more = self.is_within && len == into.len();
        Ok(len)
    }
}

fn cause(code: ErrorCode) -> Cause {
    const TOO_LARGE: usize = ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize;
    // As ZSTD_getErrorCode reads it.
    match code.wrapping_neg() {
        TOO_LARGE => Cause::WindowTooLarge,
        _ => Cause::StreamBroken {
            compression: COMPRESSION,
            reason: get_error_name(code).to_owned(),
        },
    }
}
