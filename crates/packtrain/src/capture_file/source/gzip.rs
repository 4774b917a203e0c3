//! gzip: members, one behind the other (RFC 1952, 2.2), as `cat a.gz b.gz` and parallel compressors leave them.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use super::super::error::{Cause, Compression};
use super::Reader;

const BUFFER_BYTES: usize = 64 * 1024;
const MAGIC: [u8; 2] = [0x1f, 0x8b];

pub struct Gzip {
    state: State,
}

enum State {
    Member(GzDecoder<BufReader<Reader>>),
    Between(BufReader<Reader>),
    /// All has been given, or an error.
    Over,
}

impl Gzip {
    pub fn new(reader: Reader) -> Gzip {
        let reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        Gzip {
            state: State::Member(GzDecoder::new(reader)),
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Cause> {
        loop {
            self.state = match std::mem::replace(&mut self.state, State::Over) {
                State::Member(mut member) => match member.read(into) {
                    Ok(0) => State::Between(member.into_inner()),
                    Ok(read) => {
                        self.state = State::Member(member);
                        return Ok(read);
                    }
                    Err(error) => return Err(cause(error, member.get_ref())),
                },
                State::Between(mut reader) => match next_member(&mut reader)? {
                    true => State::Member(GzDecoder::new(reader)),
                    false => return Ok(0),
                },
                State::Over => return Ok(0),
            };
        }
    }
}

/// Whether there is one. Zeros up to the end are none: tapes and some file systems leave them, and gzip passes over
/// them too.
fn next_member(reader: &mut BufReader<Reader>) -> Result<bool, Cause> {
    loop {
        let ahead = reader.fill_buf().map_err(Cause::Unread)?;
        let Some(&first) = ahead.first() else {
            return Ok(false);
        };
        if first == MAGIC[0] {
            return Ok(true);
        }
        let zeros = ahead.iter().take_while(|&&byte| byte == 0).count();
        if zeros == 0 || zeros < ahead.len() {
            return Err(Cause::StreamBroken {
                compression: Compression::Gzip,
                reason: "what stands behind its end is no gzip stream".into(),
            });
        }
        reader.consume(zeros);
    }
}

fn cause(error: io::Error, reader: &BufReader<Reader>) -> Cause {
    let compression = Compression::Gzip;
    match error.kind() {
        _ if reader.get_ref().failed => Cause::Unread(error),
        io::ErrorKind::UnexpectedEof => Cause::StreamCutOff(compression),
        _ => Cause::StreamBroken {
            compression,
            reason: error.to_string(),
        },
    }
}
