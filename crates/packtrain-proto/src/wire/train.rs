//! A train: its header and options, before the subframes ([`super::subframe`]). The diagrams are in
//! docs/wire-format.md.

use crate::buffer::Buffer;
use crate::wire::ethernet::{self, Header, MacAddr, ether_type};
use crate::wire::sequence::Sequence;

pub const VERSION: u8 = 1;
pub const TYPE_TRAIN: u8 = 1;
pub const TYPE_HELLO: u8 = 2;
pub const TYPE_STATION: u8 = 3;
pub const TYPE_LIVENESS: u8 = 4;

/// Bytes before the options, the outer Ethernet header not counted.
pub const HEADER_LEN: usize = 16;
/// Bytes of an ACK with its option header.
pub const ACK_OPTION_LEN: usize = 2 + ACK_LEN;
const ACK_LEN: usize = 20;
/// Bytes of a NEWEST option that names so many links.
pub const fn newest_option_len(links: usize) -> usize {
    match links {
        0 => 0,
        n => 2 + n * NEWEST_LEN,
    }
}
const NEWEST_LEN: usize = 4;
/// More links than this are not named: nobody waits for what they carry. A peer's hello has no more.
pub const NEWEST_MAX: usize = 17;
/// Stands in NEWEST for what is sent again: all that was under way on links that are dead, and what others have lost.
pub const REPLAYED: u8 = 0xff;
/// Stands there for the oldest of that: nothing older goes again. Told to those that wait for what is repaired.
pub const REPLAYED_FROM: u8 = 0xfe;

/// Bytes of a DIRECT with its option header.
const DIRECT_OPTION_LEN: usize = 2 + DIRECT_LEN;
/// … and of the longest report.
pub const DIRECT_REPORT_LEN_MAX: usize = DIRECT_OPTION_LEN + LATE_OPTION_LEN;
const DIRECT_LEN: usize = 12;

/// Bytes of a FENCE with its option header.
pub const FENCE_OPTION_LEN: usize = 2 + FENCE_LEN;
const FENCE_LEN: usize = 12;

/// Bytes of a BEHIND with its option header.
pub const BEHIND_OPTION_LEN: usize = 2 + BEHIND_LEN;
const BEHIND_LEN: usize = 12;

/// Bytes of a KEPT FROM with its option header.
pub const KEPT_FROM_OPTION_LEN: usize = 2 + KEPT_FROM_LEN;
const KEPT_FROM_LEN: usize = 4;

/// Bytes of a LATE with its option header.
const LATE_OPTION_LEN: usize = 2 + LATE_LEN;
const LATE_LEN: usize = 4;

mod flag {
    pub const ACK_NOW: u8 = 0x01;
    pub const MARKER: u8 = 0x02;
    pub const REPLAY: u8 = 0x04;
    pub const CODED: u8 = 0x08;
    pub const REPAIRS: u8 = 0x10;
    pub const LOSSLESS: u8 = 0x20;
}

mod option {
    pub const ACK: u8 = 0x01;
    pub const NEWEST: u8 = 0x02;
    pub const DIRECT: u8 = 0x03;
    pub const FENCE: u8 = 0x04;
    pub const BEHIND: u8 = 0x05;
    pub const KEPT_FROM: u8 = 0x06;
    pub const LATE: u8 = 0x07;
    pub const CRITICAL: u8 = 0x80;
}

/// Why a message is no train for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    #[error("shorter than a train's header and options")]
    Truncated,
    #[error("not a version that we speak")]
    UnknownVersion,
    #[error("neither train nor hello")]
    UnknownType,
    #[error("an option's length does not fit")]
    BadOption,
    #[error("a critical option that we do not know")]
    UnknownCriticalOption,
}

/// The version and type that begin every message, or why there are none for us.
pub fn message_type(message: &[u8]) -> Result<u8, TrainError> {
    let first = *message.first().ok_or(TrainError::Truncated)?;
    match (first >> 4, first & 0xf) {
        (VERSION, kind @ TYPE_TRAIN..=TYPE_LIVENESS) => Ok(kind),
        (VERSION, _) => Err(TrainError::UnknownType),
        _ => Err(TrainError::UnknownVersion),
    }
}

/// Whether the subframes of a train are coded: of a message that was looked at before.
pub fn is_coded(message: &[u8]) -> bool {
    message[1] & flag::CODED != 0
}

/// What stands before the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainHeader {
    pub ack_now: bool,
    pub marker: bool,
    /// It went by a link that has died since, or lost it, and keeps its train sequence.
    pub replay: bool,
    /// Its subframes are coded ([`super::coded`]).
    pub coded: bool,
    /// What a link loses that lives may go again by others.
    pub repairs: bool,
    /// … until it has arrived.
    pub lossless: bool,
    pub lane: u8,
    /// The sender's number of the link that this copy left by.
    pub link: u8,
    pub incarnation: u16,
    pub train_sequence: Sequence,
    pub link_sequence: Sequence,
}

/// What a sender says of one of its links, in a train that left by another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newest {
    /// The sender's number of it, or [`REPLAYED`], or [`REPLAYED_FROM`].
    pub link: u8,
    /// No train after this one is under way on it.
    pub train: Sequence,
}

impl Newest {
    /// As a distance from the train that tells it: what is farther away than that can say is long past.
    fn to_bytes(self, told_by: Sequence) -> [u8; NEWEST_LEN] {
        let behind = told_by.distance_from(self.train).clamp(0, 0xff_ffff) as u32;
        (u32::from(self.link) << 24 | behind).to_be_bytes()
    }

    fn parse(value: &[u8], told_by: Sequence) -> Newest {
        let word = be32(value);
        Newest {
            link: (word >> 24) as u8,
            train: told_by.minus(word & 0xff_ffff),
        }
    }
}

/// What stands between the header and the subframes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    pub acks: &'a [Ack],
    pub newest: &'a [Newest],
    pub direct: Option<DirectReport>,
    /// The oldest train of the lane that its sender keeps.
    pub kept_from: Option<Sequence>,
    pub fences: &'a [Fence],
    pub behind: &'a [Behind],
}

impl Options<'_> {
    /// Bytes.
    #[allow(clippy::len_without_is_empty)] // of none it is 0
    pub fn len(&self) -> usize {
        let direct = self.direct.map_or(0, |report| report.len());
        let kept_from = self.kept_from.map_or(0, |_| KEPT_FROM_OPTION_LEN);
        self.acks.len() * ACK_OPTION_LEN
            + kept_from
            + newest_option_len(self.newest.len())
            + direct
            + self.fences.len() * FENCE_OPTION_LEN
            + self.behind.len() * BEHIND_OPTION_LEN
    }
}

/// The trains of one link that were received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The acknowledged node's number of its link.
    pub link: u8,
    pub incarnation: u16,
    /// From the newest's arrival to this acknowledgement; saturates at 4.29 s.
    pub delay_nanos: u32,
    pub newest: Sequence,
    /// Bit i: newest − 1 − i was received as well.
    pub bitmap: u64,
}

impl Ack {
    fn parse(value: &[u8]) -> Option<Ack> {
        let value: &[u8; ACK_LEN] = value.try_into().ok()?;
        Some(Ack {
            link: value[0],
            incarnation: u16::from_be_bytes([value[2], value[3]]),
            delay_nanos: be32(&value[4..]),
            newest: Sequence(be32(&value[8..])),
            bitmap: u64::from(be32(&value[12..])) << 32 | u64::from(be32(&value[16..])),
        })
    }

    /// Whether it says of this one that it was received: not of those that are so old that they only
    /// count as dealt with.
    pub fn names(&self, sequence: Sequence) -> bool {
        match self.newest.distance_from(sequence) {
            0 => true,
            before @ 1..=64 => self.bitmap >> (before - 1) & 1 == 1,
            _ => false,
        }
    }

    fn to_bytes(self) -> [u8; ACK_OPTION_LEN] {
        let mut bytes = [0; ACK_OPTION_LEN];
        bytes[0] = option::ACK;
        bytes[1] = ACK_LEN as u8;
        bytes[2] = self.link;
        bytes[4..6].copy_from_slice(&self.incarnation.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.delay_nanos.to_be_bytes());
        bytes[10..14].copy_from_slice(&self.newest.0.to_be_bytes());
        bytes[14..22].copy_from_slice(&self.bitmap.to_be_bytes());
        bytes
    }
}

/// What a sender has counted of direct frames on the path of the message: a GSO frame as its segments. All
/// wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectReport {
    /// Answer in any case: ACK-NOW of the marker.
    pub wants_answer: bool,
    /// Sent before this message.
    pub sent: u32,
    /// What the receiver of this message has said last that it has sent.
    pub seen_sent: u32,
    /// … and how many had come when it did.
    pub seen_received: u32,
    /// … and how many of these long after later ones of their flow, if its sender looks at that.
    pub seen_late: Option<u32>,
}

impl DirectReport {
    fn parse(value: &[u8], late: Option<&[u8]>, wants_answer: bool) -> DirectReport {
        DirectReport {
            wants_answer,
            sent: be32(value),
            seen_sent: be32(&value[4..]),
            seen_received: be32(&value[8..]),
            seen_late: late.map(be32),
        }
    }

    /// Bytes of its options.
    fn len(self) -> usize {
        DIRECT_OPTION_LEN + self.seen_late.map_or(0, |_| LATE_OPTION_LEN)
    }

    fn to_bytes(self) -> [u8; DIRECT_OPTION_LEN] {
        let mut bytes = [0; DIRECT_OPTION_LEN];
        bytes[0] = option::DIRECT;
        bytes[1] = DIRECT_LEN as u8;
        bytes[2..6].copy_from_slice(&self.sent.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.seen_sent.to_be_bytes());
        bytes[10..14].copy_from_slice(&self.seen_received.to_be_bytes());
        bytes
    }
}

/// Direct frames that left before some trains, and must not be overtaken by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    /// The sender's number of the link that they left by.
    pub link: u8,
    /// The receiver's of the one that they come by.
    pub remote_link: u8,
    /// The first train that comes after them.
    pub from: Sequence,
    /// How many were sent by then on that path, as in [`DirectReport`].
    pub sent: u32,
}

impl Fence {
    fn parse(value: &[u8]) -> Fence {
        Fence {
            link: value[0],
            remote_link: value[1],
            from: Sequence(be32(&value[4..])),
            sent: be32(&value[8..]),
        }
    }

    fn to_bytes(self) -> [u8; FENCE_OPTION_LEN] {
        let mut bytes = [0; FENCE_OPTION_LEN];
        bytes[0] = option::FENCE;
        bytes[1] = FENCE_LEN as u8;
        bytes[2] = self.link;
        bytes[3] = self.remote_link;
        bytes[6..10].copy_from_slice(&self.from.0.to_be_bytes());
        bytes[10..14].copy_from_slice(&self.sent.to_be_bytes());
        bytes
    }
}

/// Trains of another lane that left before some of this one, and must not be overtaken by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// The other lane.
    pub lane: u8,
    /// The first train of this lane that comes after them.
    pub from: Sequence,
    /// The last of them.
    pub last: Sequence,
}

impl Behind {
    fn parse(value: &[u8]) -> Behind {
        Behind {
            lane: value[0],
            from: Sequence(be32(&value[4..])),
            last: Sequence(be32(&value[8..])),
        }
    }

    fn to_bytes(self) -> [u8; BEHIND_OPTION_LEN] {
        let mut bytes = [0; BEHIND_OPTION_LEN];
        bytes[0] = option::BEHIND;
        bytes[1] = BEHIND_LEN as u8;
        bytes[2] = self.lane;
        bytes[6..10].copy_from_slice(&self.from.0.to_be_bytes());
        bytes[10..14].copy_from_slice(&self.last.0.to_be_bytes());
        bytes
    }
}

pub(super) fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// A checked view: header and options are whole, subframes are not looked at yet.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    pub header: TrainHeader,
    options: &'a [u8],
    /// Where the subframes begin in the message.
    pub subframes_at: usize,
}

impl<'a> Train<'a> {
    /// `message` is what follows the outer Ethernet header.
    pub fn parse(message: &'a [u8]) -> Result<Train<'a>, TrainError> {
        if message_type(message)? != TYPE_TRAIN {
            return Err(TrainError::UnknownType);
        }
        let head = message.get(..HEADER_LEN).ok_or(TrainError::Truncated)?;
        let subframes_at = HEADER_LEN + usize::from(be16(&head[6..]));
        let options = message
            .get(HEADER_LEN..subframes_at)
            .ok_or(TrainError::Truncated)?;
        let header = TrainHeader {
            ack_now: head[1] & flag::ACK_NOW != 0,
            marker: head[1] & flag::MARKER != 0,
            replay: head[1] & flag::REPLAY != 0,
            coded: head[1] & flag::CODED != 0,
            repairs: head[1] & flag::REPAIRS != 0,
            lossless: head[1] & flag::LOSSLESS != 0,
            lane: head[2],
            link: head[3],
            incarnation: be16(&head[4..]),
            train_sequence: Sequence(be32(&head[8..])),
            link_sequence: Sequence(be32(&head[12..])),
        };
        let train = Train {
            header,
            options,
            subframes_at,
        };
        let mut rest = options;
        while let [kind, len, tail @ ..] = rest {
            let value = tail.get(..usize::from(*len)).ok_or(TrainError::BadOption)?;
            match *kind {
                option::ACK if value.len() != ACK_LEN => return Err(TrainError::BadOption),
                option::DIRECT if value.len() != DIRECT_LEN => return Err(TrainError::BadOption),
                option::FENCE if value.len() != FENCE_LEN => return Err(TrainError::BadOption),
                option::BEHIND if value.len() != BEHIND_LEN => return Err(TrainError::BadOption),
                option::KEPT_FROM if value.len() != KEPT_FROM_LEN => {
                    return Err(TrainError::BadOption);
                }
                option::LATE if value.len() != LATE_LEN => return Err(TrainError::BadOption),
                option::NEWEST if !value.len().is_multiple_of(NEWEST_LEN) => {
                    return Err(TrainError::BadOption);
                }
                kind if kind & option::CRITICAL != 0 => {
                    return Err(TrainError::UnknownCriticalOption);
                }
                _ => {}
            }
            rest = &tail[value.len()..];
        }
        if rest.is_empty() {
            Ok(train)
        } else {
            Err(TrainError::BadOption)
        }
    }

    /// The acknowledgements that ride on it.
    pub fn acks(&self) -> impl Iterator<Item = Ack> + 'a {
        self.options_of(option::ACK).filter_map(Ack::parse)
    }

    /// What may still arrive by other links of its sender.
    pub fn newest(&self) -> impl Iterator<Item = Newest> + 'a {
        let told_by = self.header.train_sequence;
        self.options_of(option::NEWEST)
            .flat_map(|value| value.chunks_exact(NEWEST_LEN))
            .map(move |entry| Newest::parse(entry, told_by))
    }

    /// What its sender has counted of direct frames.
    pub fn direct_report(&self) -> Option<DirectReport> {
        let value = self.options_of(option::DIRECT).next()?;
        let late = self.options_of(option::LATE).next();
        Some(DirectReport::parse(value, late, self.header.ack_now))
    }

    /// The oldest train of its lane that its sender keeps.
    pub fn kept_from(&self) -> Option<Sequence> {
        let value = self.options_of(option::KEPT_FROM).next()?;
        Some(Sequence(be32(value)))
    }

    /// Direct frames that come before some of its sender's trains.
    pub fn fences(&self) -> impl Iterator<Item = Fence> + 'a {
        self.options_of(option::FENCE).map(Fence::parse)
    }

    /// Trains of other lanes that come before some of its own.
    pub fn behind(&self) -> impl Iterator<Item = Behind> + 'a {
        self.options_of(option::BEHIND).map(Behind::parse)
    }

    fn options_of(&self, wanted: u8) -> impl Iterator<Item = &'a [u8]> + 'a {
        let mut rest = self.options;
        core::iter::from_fn(move || {
            while let [kind, len, tail @ ..] = rest {
                let (value, next) = tail.split_at(usize::from(*len));
                rest = next;
                if *kind == wanted {
                    return Some(value);
                }
            }
            None
        })
    }
}

/// Writes one train into a buffer, the outer Ethernet header included. Whoever writes has seen to
/// it that there is room: too little is our own mistake, and panics.
#[derive(Debug)]
pub struct TrainWriter<'a> {
    buffer: &'a mut Buffer,
}

impl<'a> TrainWriter<'a> {
    pub fn begin(
        buffer: &'a mut Buffer,
        destination: MacAddr,
        source: MacAddr,
        header: &TrainHeader,
        options: &Options<'_>,
    ) -> TrainWriter<'a> {
        buffer.clear();
        let outer = Header {
            destination,
            source,
            ether_type: ether_type::PACKTRAIN,
        };
        let mut head = [0; ethernet::HEADER_LEN + HEADER_LEN];
        head[..ethernet::HEADER_LEN].copy_from_slice(&outer.to_bytes());
        let train = &mut head[ethernet::HEADER_LEN..];
        train[0] = VERSION << 4 | TYPE_TRAIN;
        train[1] = if header.ack_now { flag::ACK_NOW } else { 0 }
            | if header.marker { flag::MARKER } else { 0 }
            | if header.replay { flag::REPLAY } else { 0 }
            | if header.coded { flag::CODED } else { 0 }
            | if header.repairs { flag::REPAIRS } else { 0 }
            | if header.lossless { flag::LOSSLESS } else { 0 };
        train[2] = header.lane;
        train[3] = header.link;
        train[4..6].copy_from_slice(&header.incarnation.to_be_bytes());
        train[6..8].copy_from_slice(&(options.len() as u16).to_be_bytes());
        train[8..12].copy_from_slice(&header.train_sequence.0.to_be_bytes());
        train[12..16].copy_from_slice(&header.link_sequence.0.to_be_bytes());
        let mut writer = TrainWriter { buffer };
        writer.put(&head);
        for ack in options.acks {
            writer.put(&ack.to_bytes());
        }
        if !options.newest.is_empty() {
            let value_len = options.newest.len() * NEWEST_LEN;
            writer.put(&[option::NEWEST, value_len as u8]);
            for newest in options.newest {
                writer.put(&newest.to_bytes(header.train_sequence));
            }
        }
        if let Some(report) = options.direct {
            writer.put(&report.to_bytes());
            if let Some(late) = report.seen_late {
                writer.put(&[option::LATE, LATE_LEN as u8]);
                writer.put(&late.to_be_bytes());
            }
        }
        if let Some(kept_from) = options.kept_from {
            writer.put(&[option::KEPT_FROM, KEPT_FROM_LEN as u8]);
            writer.put(&kept_from.0.to_be_bytes());
        }
        for fence in options.fences {
            writer.put(&fence.to_bytes());
        }
        for behind in options.behind {
            writer.put(&behind.to_bytes());
        }
        writer
    }

    /// Goes on where a buffer ends.
    pub fn onto(buffer: &'a mut Buffer) -> TrainWriter<'a> {
        TrainWriter { buffer }
    }

    /// Subframes that another train carried.
    pub fn put_subframes(&mut self, bytes: &[u8]) {
        self.put(bytes);
    }

    /// What follows is coded; nothing was put yet.
    pub fn set_coded(&mut self) {
        self.buffer[ethernet::HEADER_LEN + 1] |= flag::CODED;
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        let fits = self.buffer.push(bytes);
        assert!(fits, "a train larger than its buffer");
    }

    /// Bytes so far, the outer Ethernet header included.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.buffer.len()
    }
}

#[cfg(test)]
mod tests;
