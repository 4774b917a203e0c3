//! zstd: frames, one behind the other, and between them such as are to be passed over (RFC 8878, 3.1).

use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{DCtx, DParameter, ErrorCode, InBuffer, OutBuffer, get_error_name};

use super::super::error::{Cause, Compression};
use super::{Packed, Reader};

/// 128 MB, which is what `zstd -d` takes without being told: more than any of its levels ask for by themselves.
pub const WINDOW_LOG_MAX: u32 = 27;

const COMPRESSION: Compression = Compression::Zstd;
/// The least that tells what a frame is: its magic number and a byte.
const FRAME_START_BYTES: usize = 5;
const BLOCK_HEADER_BYTES: usize = 3;

pub struct Zstd {
    packed: Packed,
    context: DCtx<'static>,
    /// How many bytes the decompressor asks for: the rest of a header, or of a block and mostly the next one's header. It
    /// is given a block alone, so that what is wrong behind it does not take with it what it holds.
    wanted: usize,
    /// The last buffer that was given is full: there may be more without anything being read.
    has_more: bool,
}

impl Zstd {
    pub fn new(from: Reader) -> Zstd {
        let mut context = DCtx::create();
        context
            .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))
            .expect("a window that zstd knows");
        Zstd {
            packed: Packed::new(from, DCtx::in_size()),
            context,
            wanted: 0,
            has_more: false,
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Cause> {
        loop {
            if self.packed.is_empty() && !self.has_more && !self.packed.read_more()? {
                // Nothing is wanted where a frame has ended, and is given whole.
                return match self.wanted {
                    0 => Ok(0),
                    _ => Err(Cause::StreamCutOff(COMPRESSION)),
                };
            }
            let unpacked = self.unpack(into)?;
            if unpacked > 0 {
                return Ok(unpacked);
            }
        }
    }

    fn unpack(&mut self, into: &mut [u8]) -> Result<usize, Cause> {
        let wanted = match self.wanted {
            0 => FRAME_START_BYTES,
            wanted @ ..=BLOCK_HEADER_BYTES => wanted,
            wanted => wanted - BLOCK_HEADER_BYTES,
        };
        let packed = self.packed.bytes();
        let mut packed = InBuffer::around(&packed[..wanted.min(packed.len())]);
        let mut unpacked = OutBuffer::around(into);
        let result = self.context.decompress_stream(&mut unpacked, &mut packed);
        let (taken, len) = (packed.pos(), unpacked.pos());
        self.packed.consume(taken);
        self.wanted = result.map_err(cause)?;
        self.has_more = self.wanted > 0 && len == into.len();
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
