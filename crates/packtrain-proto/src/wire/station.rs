//! A station message: whose `pt0` takes aggregates ([`super::dfap`]), said by who speaks no trains. The diagram
//! is in docs/wire-format.md.

use crate::buffer::Buffer;
use crate::wire::dfap;
use crate::wire::ethernet::MacAddr;
use crate::wire::train::{self, TYPE_STATION, TrainError, VERSION};

/// Bytes of the message, the outer Ethernet header not counted; what follows is padding.
pub const LEN: usize = 16;

mod field {
    use core::ops::Range;
    pub(super) const FLAGS: usize = 1;
    pub(super) const ETHER_TYPE: Range<usize> = 2..4;
    pub(super) const LINE_ID: Range<usize> = 4..8;
    pub(super) const ADDRESS: Range<usize> = 8..14;
    pub(super) const MTU: Range<usize> = 14..16;
}

const _: () = assert!(field::MTU.end == LEN);

mod flag {
    pub(super) const GOODBYE: u8 = 0x01;
    pub(super) const ANSWER: u8 = 0x02;
}

/// Why a message is no station's for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StationError {
    #[error("shorter than a station message")]
    Truncated,
    #[error("not a version that we speak")]
    UnknownVersion,
    #[error("not a station message")]
    UnknownType,
    #[error("{0:#06x} is no type of aggregates")]
    BadEtherType(u16),
    #[error("{0} is nobody's own address")]
    BadAddress(MacAddr),
}

/// What such a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationMessage {
    /// It takes none from now on.
    pub goodbye: bool,
    /// Say the same of yourself, to me.
    pub answer: bool,
    /// By which it knows aggregates.
    pub ether_type: u16,
    pub line_id: u32,
    /// `pt0`'s address, to which aggregates are sent.
    pub address: MacAddr,
    /// Of the link by which it says so: a longer data field would not reach it.
    pub mtu: u16,
}

impl StationMessage {
    /// `message` is what follows the outer Ethernet header.
    pub fn parse(message: &[u8]) -> Result<StationMessage, StationError> {
        match train::message_type(message) {
            Ok(TYPE_STATION) => {}
            Err(TrainError::Truncated) => return Err(StationError::Truncated),
            Err(TrainError::UnknownVersion) => return Err(StationError::UnknownVersion),
            Ok(_) | Err(_) => return Err(StationError::UnknownType),
        }
        let bytes = message.get(..LEN).ok_or(StationError::Truncated)?;
        let be16 = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let ether_type = be16(field::ETHER_TYPE.start);
        if !dfap::is_aggregate_type(ether_type) {
            return Err(StationError::BadEtherType(ether_type));
        }
        let address = MacAddr::from_slice(&bytes[field::ADDRESS]);
        if address.is_group() || address.is_zero() {
            return Err(StationError::BadAddress(address));
        }
        let line_id = field::LINE_ID.start;
        Ok(StationMessage {
            goodbye: bytes[field::FLAGS] & flag::GOODBYE != 0,
            answer: bytes[field::FLAGS] & flag::ANSWER != 0,
            ether_type,
            line_id: u32::from(be16(line_id)) << 16 | u32::from(be16(line_id + 2)),
            address,
            mtu: be16(field::MTU.start),
        })
    }

    /// Appends the message; what stands in `buffer` is the outer Ethernet header.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn emit(&self, buffer: &mut Buffer) {
        let mut bytes = [0; LEN];
        bytes[0] = VERSION << 4 | TYPE_STATION;
        bytes[field::FLAGS] |= if self.goodbye { flag::GOODBYE } else { 0 };
        bytes[field::FLAGS] |= if self.answer { flag::ANSWER } else { 0 };
        bytes[field::ETHER_TYPE].copy_from_slice(&self.ether_type.to_be_bytes());
        bytes[field::LINE_ID].copy_from_slice(&self.line_id.to_be_bytes());
        bytes[field::ADDRESS].copy_from_slice(&self.address.0);
        bytes[field::MTU].copy_from_slice(&self.mtu.to_be_bytes());
        assert!(
            buffer.push(&bytes),
            "a station message larger than its buffer"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn emitted(message: &StationMessage) -> Vec<u8> {
        let mut buffer = Buffer::with_capacity(LEN);
        message.emit(&mut buffer);
        buffer.to_vec()
    }

    #[test]
    fn each_lie_is_named() {
        let right = StationMessage {
            goodbye: false,
            answer: true,
            ether_type: dfap::ETHER_TYPE,
            line_id: 7,
            address: MacAddr([2; 6]),
            mtu: 1500,
        };
        let error = |change: fn(&mut Vec<u8>)| {
            let mut bytes = emitted(&right);
            change(&mut bytes);
            StationMessage::parse(&bytes).unwrap_err()
        };
        assert_eq!(error(|bytes| bytes.truncate(15)), StationError::Truncated);
        assert_eq!(error(|bytes| bytes.clear()), StationError::Truncated);
        assert_eq!(error(|bytes| bytes[0] = 0x23), StationError::UnknownVersion);
        assert_eq!(error(|bytes| bytes[0] = 0x12), StationError::UnknownType);
        assert_eq!(
            error(|bytes| bytes[3] = 0),
            StationError::BadEtherType(0xbb00)
        );
        assert_eq!(
            error(|bytes| bytes[8] = 3),
            StationError::BadAddress(MacAddr([3, 2, 2, 2, 2, 2]))
        );
    }

    proptest! {
        #[test]
        fn what_is_said_is_heard(
            (goodbye, answer, footnote) in any::<(bool, bool, bool)>(),
            line_id in any::<u32>(),
            mtu in any::<u16>(),
            mut address in any::<[u8; 6]>(),
            padding in 0usize..40,
        ) {
            address[0] = address[0] & 0xfe | 2;
            let message = StationMessage {
                goodbye,
                answer,
                ether_type: if footnote { dfap::ETHER_TYPE_OF_FOOTNOTE } else { dfap::ETHER_TYPE },
                line_id,
                address: MacAddr(address),
                mtu,
            };
            let mut bytes = emitted(&message);
            bytes.resize(LEN + padding, 0xee);
            prop_assert_eq!(StationMessage::parse(&bytes), Ok(message));
        }
    }
}
