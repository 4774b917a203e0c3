//! From a coded train to its subframes as they were.

use lz4_flex::block::decompress_into_with_dict;

use super::dictionary::Zstd;
use super::mixing;
use super::references::{Kept, References};
use crate::wire::coded::{Block, CodedError, Coding, HEAD_LEN, Head, PLAIN_MAX};
use crate::wire::delta::{self, DeltaError, Reference, Slot};
use crate::wire::layout::Layout;
use crate::wire::subframe::{self, Subframe};

/// Restores trains, one after the other, in memory that it keeps.
#[derive(Debug, Default)]
pub struct Restorer {
    references: References,
    /// What came out of the blocks.
    unblocked: Vec<u8>,
    zstd: Option<Zstd>,
    mixing: Option<Box<mixing::Reader>>,
}

impl Restorer {
    /// What trains are compressed with that say so.
    pub fn set_dictionary(&mut self, zstd: Option<Zstd>) {
        self.zstd = zstd;
    }

    /// The subframes of a coded train, into `out`; gives how long they are. What stands in `out` after an error
    /// is nothing.
    pub fn restore(&mut self, coded: &[u8], out: &mut [u8]) -> Result<usize, CodedError> {
        let head = Head::parse(coded)?;
        let content = &coded[HEAD_LEN..];
        let len = match head.coding {
            Coding::Headers => self.restore_headers(content, out)?,
            Coding::Lz4 | Coding::Zstd | Coding::Mixing => {
                let mut unblocked = core::mem::take(&mut self.unblocked);
                let len = self
                    .unblock(head.coding, content, &mut unblocked)
                    .and_then(|()| self.restore_headers(&unblocked, out));
                self.unblocked = unblocked;
                len?
            }
        };
        match crc32fast::hash(&out[..len]) == head.checksum {
            true => Ok(len),
            false => Err(CodedError::Checksum),
        }
    }

    /// What stood in the blocks, one behind the other.
    fn unblock(
        &mut self,
        coding: Coding,
        mut content: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CodedError> {
        out.clear();
        let plain_max = match coding {
            Coding::Mixing => {
                self.mixing.get_or_insert_default().begin_train();
                mixing::PLAIN_MAX
            }
            _ => PLAIN_MAX,
        };
        while let Some((block, len)) = Block::parse(content)? {
            let before = out.len();
            let more = match block {
                Block::Stored(bytes) => bytes.len(),
                Block::Coded { plain_len, .. } => plain_len,
            };
            if before + more > plain_max {
                return Err(CodedError::TooLong);
            }
            match block {
                Block::Stored(bytes) => out.extend_from_slice(bytes),
                Block::Coded { bytes, .. } => {
                    out.resize(before + more, 0);
                    let (known, room) = out.split_at_mut(before);
                    let written = match coding {
                        Coding::Zstd => {
                            let zstd = self.zstd.as_mut().ok_or(CodedError::NoDictionary)?;
                            zstd.restore(bytes, room)
                        }
                        Coding::Mixing => {
                            let reader = self.mixing.get_or_insert_default();
                            reader.restore(bytes, room).map(|()| more)
                        }
                        _ => decompress_into_with_dict(bytes, room, known).ok(),
                    };
                    if written != Some(more) {
                        return Err(CodedError::BadBlock);
                    }
                }
            }
            content = &content[len..];
        }
        Ok(())
    }

    fn restore_headers(&mut self, content: &[u8], out: &mut [u8]) -> Result<usize, CodedError> {
        let out_max = out.len().min(PLAIN_MAX);
        let out = &mut out[..out_max];
        self.references.clear();
        let (mut from, mut to) = (0, 0);
        while subframe::has_any(&content[from..]) {
            if content[from] & 0x0f == delta::KIND {
                let (taken, put) = self.restore_one(&content[from..], out, to)?;
                from += taken;
                to += put;
                continue;
            }
            let (subframe, len) = match Subframe::parse(&content[from..]) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(_) => return Err(CodedError::BadSubframe),
            };
            let whole = &content[from..from + len];
            let room = out.get_mut(to..to + len).ok_or(CodedError::TooLong)?;
            room.copy_from_slice(whole);
            if let Subframe::Frame { header, payload } = subframe
                && header.offload.gso.is_none()
            {
                self.references.open(Kept {
                    at: to,
                    payload_at: to + len - payload.len(),
                    payload_len: payload.len(),
                    layout: Layout::of(header.ether_type, payload),
                });
            }
            from += len;
            to += len;
        }
        Ok(to)
    }

    /// A DELTA at the front of `bytes`, to `to` in `out`; gives how long it was, and how long it has become.
    fn restore_one(
        &mut self,
        bytes: &[u8],
        out: &mut [u8],
        to: usize,
    ) -> Result<(usize, usize), CodedError> {
        let (head, head_len) = delta::Head::parse(bytes).map_err(of_delta)?;
        let slot = head.slot.unwrap_or(Slot {
            number: self.references.last() as u8,
            opens_new: false,
        });
        let reference = *self
            .references
            .get(usize::from(slot.number))
            .ok_or(CodedError::BadSubframe)?;
        let payload_len = head.len.map_or(reference.payload_len, usize::from);
        let header_len = reference.payload_at - reference.at;
        let end = to + header_len + payload_len;
        if end > out.len() {
            return Err(CodedError::TooLong);
        }
        if payload_len == 0 {
            return Err(CodedError::BadSubframe);
        }
        let (before, room) = out.split_at_mut(to);
        let (header, payload) = room[..header_len + payload_len].split_at_mut(header_len);
        header.copy_from_slice(&before[reference.at..reference.payload_at]);
        subframe::set_len(header, payload_len as u16);
        let told = Reference {
            payload: &before[reference.payload_at..reference.payload_at + reference.payload_len],
            layout: reference.layout,
        };
        let taken = delta::restore(&head, &bytes[head_len..], told, payload).map_err(of_delta)?;
        // Who writes one never makes others of them; whoever does is not to have a say in what later frames are.
        let ether_type =
            subframe::ether_type_of(header, payload).ok_or(CodedError::OtherHeaders)?;
        if Layout::of(ether_type, payload) != reference.layout {
            return Err(CodedError::OtherHeaders);
        }
        let frame = Kept {
            at: to,
            payload_at: to + header_len,
            payload_len,
            layout: reference.layout,
        };
        self.references.follow(slot, frame);
        Ok((head_len + taken, header_len + payload_len))
    }
}

fn of_delta(error: DeltaError) -> CodedError {
    match error {
        DeltaError::Truncated => CodedError::Truncated,
        DeltaError::EmptySlot
        | DeltaError::BadNumber
        | DeltaError::BadLength
        | DeltaError::NoRtp => CodedError::BadSubframe,
    }
}
