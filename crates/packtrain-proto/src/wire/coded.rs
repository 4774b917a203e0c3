//! What stands in a coded train in place of its subframes. The diagrams are in docs/wire-format.md.

/// Before the content: how it is coded, and the checksum of what it was.
pub const HEAD_LEN: usize = 5;
/// Before a block that is as it was.
pub const STORED_HEADER_LEN: usize = 2;
/// Before a block of which both lengths are told.
pub const BLOCK_HEADER_LEN: usize = 4;
/// Most bytes that a coded train restores to: no frame is longer either.
pub const PLAIN_MAX: usize = 65_535;

/// In a block's first two bytes: it is as it was.
const STORED: u16 = 0x8000;
/// Longest of a block.
pub const BLOCK_MAX: usize = 0x7fff;

/// What was done to the subframes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Coding {
    /// Frames are told apart from each other: DELTA.
    #[default]
    Headers,
    /// … and all of it is in blocks of LZ4.
    Lz4,
    /// … of Zstandard, with a dictionary that both ends have.
    Zstd,
    /// … coded by chances that are learned from the train itself.
    Mixing,
}

impl Coding {
    pub fn to_byte(self) -> u8 {
        match self {
            Coding::Headers => 1,
            Coding::Lz4 => 2,
            Coding::Zstd => 3,
            Coding::Mixing => 4,
        }
    }

    fn of_byte(byte: u8) -> Option<Coding> {
        match byte {
            1 => Some(Coding::Headers),
            2 => Some(Coding::Lz4),
            3 => Some(Coding::Zstd),
            4 => Some(Coding::Mixing),
            _ => None,
        }
    }
}

/// Why a coded train cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodedError {
    #[error("shorter than it says")]
    Truncated,
    #[error("a coding that we do not know")]
    UnknownCoding,
    #[error("restores to more than a train may hold")]
    TooLong,
    #[error("a block that does not restore, or not to what it says")]
    BadBlock,
    #[error("compressed with a dictionary, and there is none")]
    NoDictionary,
    #[error("a subframe that is not what a sender writes")]
    BadSubframe,
    #[error("a frame told apart from one with other headers")]
    OtherHeaders,
    #[error("not what its checksum says")]
    Checksum,
}

/// The head of a coded train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub coding: Coding,
    /// CRC-32 (IEEE 802.3) of the subframes as they were.
    pub checksum: u32,
}

impl Head {
    pub fn parse(bytes: &[u8]) -> Result<Head, CodedError> {
        let head = bytes.get(..HEAD_LEN).ok_or(CodedError::Truncated)?;
        Ok(Head {
            coding: Coding::of_byte(head[0]).ok_or(CodedError::UnknownCoding)?,
            checksum: u32::from_be_bytes([head[1], head[2], head[3], head[4]]),
        })
    }

    pub fn to_bytes(self) -> [u8; HEAD_LEN] {
        let mut bytes = [self.coding.to_byte(), 0, 0, 0, 0];
        bytes[1..].copy_from_slice(&self.checksum.to_be_bytes());
        bytes
    }
}

/// A block of a coded train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// As it was.
    Stored(&'a [u8]),
    /// LZ4, which refers to all blocks before it as well; a frame of Zstandard; or what mixing makes.
    Coded { bytes: &'a [u8], plain_len: usize },
}

impl<'a> Block<'a> {
    /// The block at the front of `bytes`, and its length there; `None` at the end: none, or a length of 0, behind
    /// which is padding.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Block<'a>, usize)>, CodedError> {
        let word = |at: usize| {
            let word = bytes.get(at..at + 2).ok_or(CodedError::Truncated)?;
            Ok(u16::from_be_bytes([word[0], word[1]]))
        };
        if bytes.is_empty() || bytes == [0] {
            return Ok(None);
        }
        let first = word(0)?;
        let len = usize::from(first & !STORED);
        if len == 0 {
            return Ok(None);
        }
        let header_len = match first & STORED {
            0 => BLOCK_HEADER_LEN,
            _ => STORED_HEADER_LEN,
        };
        let content = bytes
            .get(header_len..header_len + len)
            .ok_or(CodedError::Truncated)?;
        let block = match first & STORED {
            0 => Block::Coded {
                bytes: content,
                plain_len: usize::from(word(2)?),
            },
            _ => Block::Stored(content),
        };
        Ok(Some((block, header_len + len)))
    }
}

/// Before `len` bytes that stand as they were.
pub fn stored_header(len: usize) -> [u8; STORED_HEADER_LEN] {
    assert!((1..=BLOCK_MAX).contains(&len), "a block of {len} bytes");
    (STORED | len as u16).to_be_bytes()
}

/// Before `len` compressed bytes that become `plain_len`.
pub fn block_header(len: usize, plain_len: usize) -> [u8; BLOCK_HEADER_LEN] {
    assert!((1..=BLOCK_MAX).contains(&len), "a block of {len} bytes");
    let (len, plain_len) = ((len as u16).to_be_bytes(), (plain_len as u16).to_be_bytes());
    [len[0], len[1], plain_len[0], plain_len[1]]
}
