//! A liveness message: whether one link hears another, said many times a second (after RFC 5880). The diagram is in
//! docs/wire-format.md.

use crate::buffer::Buffer;
use crate::config::LinkId;
use crate::time::Duration;
use crate::wire::train::{self, TYPE_LIVENESS, TrainError, VERSION};

/// Bytes of the message, the outer Ethernet header not counted; what follows is padding.
pub const LEN: usize = 32;
/// … of one that does not say which long one it has heard.
const LEN_MIN: usize = 28;
/// Longer than what Ethernet pads short ones to.
const LONG: usize = 64;
/// No interval is longer, and none that is said may be.
pub const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// More misses than any sender asks to be waited for.
const MULTIPLIER_MAX: u8 = 50;

mod field {
    use core::ops::Range;
    pub(super) const STATE: usize = 1;
    pub(super) const MULTIPLIER: usize = 2;
    pub(super) const LINK: usize = 3;
    pub(super) const REMOTE_LINK: usize = 4;
    pub(super) const FLAGS: usize = 5;
    pub(super) const INCARNATION: Range<usize> = 6..8;
    pub(super) const COUNT: Range<usize> = 8..12;
    pub(super) const HEARD: Range<usize> = 12..16;
    pub(super) const HEARD_AGE: Range<usize> = 16..20;
    pub(super) const DESIRED: Range<usize> = 20..24;
    pub(super) const REQUIRED: Range<usize> = 24..28;
    pub(super) const HEARD_LONG: Range<usize> = 28..32;
}

mod flag {
    pub(super) const ASKS: u8 = 0x01;
    pub(super) const POLL: u8 = 0x02;
}

const _: () = assert!(field::REQUIRED.end == LEN_MIN && field::HEARD_LONG.end == LEN);

/// What a node holds of a pair of links, its own and the other's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum State {
    /// The other one is not heard, or says that it does not hear.
    #[default]
    Down = 1,
    /// It is heard, and has not said yet that it hears.
    Init = 2,
    /// Each hears the other.
    Up = 3,
}

/// Why it went down last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Diagnostic {
    /// It was never up.
    #[default]
    None = 0,
    /// Nothing was heard for the detection time.
    Expired = 1,
    /// The other end said that it is down.
    NeighborDown = 3,
}

/// Why a message is no such one for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LivenessError {
    #[error("shorter than a liveness message")]
    Truncated,
    #[error("not a version that we speak")]
    UnknownVersion,
    #[error("not a liveness message")]
    UnknownType,
    #[error("{0} is no state of a link")]
    BadState(u8),
    #[error("an interval of {0} µs, {1} times, is none")]
    BadInterval(u32, u8),
}

/// What such a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    pub state: State,
    pub diagnostic: Diagnostic,
    /// So many of its messages may be missed.
    pub multiplier: u8,
    /// The sender has something to choose from, and wants to be answered.
    pub asks: bool,
    /// It is to be answered at once.
    pub poll: bool,
    /// It is padded, and not by Ethernet: frames of that length pass, if it does.
    pub is_long: bool,
    /// The sender's.
    pub link: LinkId,
    /// The receiver's, as the sender knows it.
    pub remote_link: LinkId,
    /// As in its trains.
    pub incarnation: u16,
    /// Of all liveness messages of the sender; never 0.
    pub count: u32,
    /// The newest that it has heard by this pair of links, 0 for none; and how long ago.
    pub heard: u32,
    pub heard_age: Duration,
    /// It does not send more often, as long as it has nothing new to say.
    pub desired: Duration,
    /// … and does not want to hear more often.
    pub required: Duration,
    /// The newest long one with a poll that it has heard, 0 for none.
    pub heard_long: u32,
}

impl Liveness {
    /// `message` is what follows the outer Ethernet header.
    pub fn parse(message: &[u8]) -> Result<Liveness, LivenessError> {
        match train::message_type(message) {
            Ok(TYPE_LIVENESS) => {}
            Err(TrainError::Truncated) => return Err(LivenessError::Truncated),
            Err(TrainError::UnknownVersion) => return Err(LivenessError::UnknownVersion),
            Ok(_) | Err(_) => return Err(LivenessError::UnknownType),
        }
        let bytes = message.get(..LEN_MIN).ok_or(LivenessError::Truncated)?;
        let heard_long = message.get(field::HEARD_LONG).unwrap_or(&[0; 4]);
        let be32 = |at: core::ops::Range<usize>| {
            u32::from_be_bytes(bytes[at].try_into().expect("four bytes"))
        };
        let state = match bytes[field::STATE] >> 4 {
            1 => State::Down,
            2 => State::Init,
            3 => State::Up,
            other => return Err(LivenessError::BadState(other)),
        };
        let multiplier = bytes[field::MULTIPLIER];
        let interval = |at| {
            let micros = be32(at);
            let interval = Duration::from_micros(u64::from(micros));
            match micros {
                0 => Err(LivenessError::BadInterval(micros, multiplier)),
                _ if interval > INTERVAL_MAX => Err(LivenessError::BadInterval(micros, multiplier)),
                _ => Ok(interval),
            }
        };
        let (desired, required) = (interval(field::DESIRED)?, interval(field::REQUIRED)?);
        if !(1..=MULTIPLIER_MAX).contains(&multiplier) {
            return Err(LivenessError::BadInterval(
                desired.as_micros() as u32,
                multiplier,
            ));
        }
        let incarnation = bytes[field::INCARNATION].try_into().expect("two bytes");
        Ok(Liveness {
            state,
            diagnostic: match bytes[field::STATE] & 0xf {
                1 => Diagnostic::Expired,
                3 => Diagnostic::NeighborDown,
                _ => Diagnostic::None,
            },
            multiplier,
            asks: bytes[field::FLAGS] & flag::ASKS != 0,
            poll: bytes[field::FLAGS] & flag::POLL != 0,
            is_long: message.len() > LONG,
            link: LinkId(bytes[field::LINK]),
            remote_link: LinkId(bytes[field::REMOTE_LINK]),
            incarnation: u16::from_be_bytes(incarnation),
            count: be32(field::COUNT),
            heard: be32(field::HEARD),
            heard_age: Duration::from_micros(u64::from(be32(field::HEARD_AGE))),
            desired,
            required,
            heard_long: u32::from_be_bytes(heard_long.try_into().expect("four bytes")),
        })
    }

    /// Appends the message; what stands in `buffer` is the outer Ethernet header. A long one is padded by the caller.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn emit(&self, buffer: &mut Buffer) {
        let micros = |time: Duration| {
            u32::try_from(time.as_micros())
                .unwrap_or(u32::MAX)
                .to_be_bytes()
        };
        let interval = |time: Duration| micros(time.clamp(Duration::from_micros(1), INTERVAL_MAX));
        let mut bytes = [0; LEN];
        bytes[0] = VERSION << 4 | TYPE_LIVENESS;
        bytes[field::STATE] = (self.state as u8) << 4 | self.diagnostic as u8;
        bytes[field::MULTIPLIER] = self.multiplier;
        bytes[field::LINK] = self.link.0;
        let flags = [(self.asks, flag::ASKS), (self.poll, flag::POLL)];
        let set = flags.into_iter().filter(|(says, _)| *says);
        bytes[field::FLAGS] = set.fold(0, |bits, (_, bit)| bits | bit);
        bytes[field::REMOTE_LINK] = self.remote_link.0;
        bytes[field::INCARNATION].copy_from_slice(&self.incarnation.to_be_bytes());
        bytes[field::COUNT].copy_from_slice(&self.count.to_be_bytes());
        bytes[field::HEARD].copy_from_slice(&self.heard.to_be_bytes());
        bytes[field::HEARD_AGE].copy_from_slice(&micros(self.heard_age));
        bytes[field::DESIRED].copy_from_slice(&interval(self.desired));
        bytes[field::REQUIRED].copy_from_slice(&interval(self.required));
        bytes[field::HEARD_LONG].copy_from_slice(&self.heard_long.to_be_bytes());
        assert!(
            buffer.push(&bytes),
            "a liveness message larger than its buffer"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn emitted(message: &Liveness) -> Vec<u8> {
        let mut buffer = Buffer::with_capacity(LEN);
        message.emit(&mut buffer);
        buffer.to_vec()
    }

    const RIGHT: Liveness = Liveness {
        state: State::Init,
        diagnostic: Diagnostic::Expired,
        multiplier: 4,
        asks: true,
        poll: false,
        is_long: false,
        link: LinkId(2),
        remote_link: LinkId(3),
        incarnation: 0x1234,
        count: 9,
        heard: 8,
        heard_age: Duration::from_micros(700),
        desired: Duration::from_millis(10),
        required: Duration::from_millis(20),
        heard_long: 7,
    };

    #[test]
    fn each_lie_is_named() {
        let error = |change: fn(&mut Vec<u8>)| {
            let mut bytes = emitted(&RIGHT);
            change(&mut bytes);
            Liveness::parse(&bytes).unwrap_err()
        };
        use LivenessError::*;
        assert_eq!(error(|bytes| bytes.truncate(27)), Truncated);
        assert_eq!(error(|bytes| bytes.clear()), Truncated);
        assert_eq!(error(|bytes| bytes[0] = 0x24), UnknownVersion);
        assert_eq!(error(|bytes| bytes[0] = 0x12), UnknownType);
        assert_eq!(error(|bytes| bytes[1] = 0x01), BadState(0));
        assert_eq!(error(|bytes| bytes[1] = 0x43), BadState(4));
        assert_eq!(error(|bytes| bytes[2] = 0), BadInterval(10_000, 0));
        assert_eq!(error(|bytes| bytes[2] = 51), BadInterval(10_000, 51));
        assert_eq!(error(|bytes| bytes[20..24].fill(0)), BadInterval(0, 4));
        assert_eq!(
            error(|bytes| bytes[24..28].fill(0xff)),
            BadInterval(u32::MAX, 4)
        );
    }

    proptest! {
        #[test]
        fn what_is_said_is_heard(
            (state, why, [asks, poll]) in (0usize..3, 0usize..3, any::<[bool; 2]>()),
            (multiplier, link, remote_link) in (1u8..=MULTIPLIER_MAX, any::<u8>(), any::<u8>()),
            (incarnation, count, heard, heard_long) in any::<(u16, u32, u32, u32)>(),
            (age, desired, required) in (any::<u32>(), 1u32..60_000_001, 1u32..60_000_001),
            padding in 0usize..80,
        ) {
            let micros = |n: u32| Duration::from_micros(u64::from(n));
            let message = Liveness {
                state: [State::Down, State::Init, State::Up][state],
                diagnostic: [Diagnostic::None, Diagnostic::Expired, Diagnostic::NeighborDown][why],
                multiplier,
                asks,
                poll,
                is_long: LEN + padding > LONG,
                link: LinkId(link),
                remote_link: LinkId(remote_link),
                incarnation,
                count,
                heard,
                heard_age: micros(age),
                desired: micros(desired),
                required: micros(required),
                heard_long,
            };
            let mut bytes = emitted(&message);
            bytes.resize(LEN + padding, 0xee);
            prop_assert_eq!(Liveness::parse(&bytes), Ok(message));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(message) = Liveness::parse(&bytes) {
                prop_assert!(message.desired <= INTERVAL_MAX && message.multiplier > 0);
            }
        }
    }
}
