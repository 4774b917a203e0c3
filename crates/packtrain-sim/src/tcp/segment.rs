//! What the two ends say to each other, as they mean it: a segment of TCP without its bytes.
//!
//! Content is not there, only where it stands in the stream; numbers are the stream's own, in 64 bits. Wires see the
//! lengths that the frame would have ([`super::codec`] makes it, where somebody wants to see one).

use core::ops::Range;

use packtrain_proto::wire::ethernet;

use crate::frame::{FCS_BYTES, FRAME_BYTES_MIN, WIRE_OVERHEAD_BYTES};

pub const IPV4_LEN: usize = 20;
pub const TCP_LEN: usize = 20;
/// All headers of a segment of data: it has no options.
pub const HEADERS_LEN: usize = ethernet::HEADER_LEN + IP_HEADERS_LEN;
/// Those that IP counts.
pub const IP_HEADERS_LEN: usize = IPV4_LEN + TCP_LEN;
/// As many as the options of an acknowledgement have room for, without time stamps.
pub const SACK_BLOCKS_MAX: usize = 4;
/// SACK permitted.
pub const SYN_OPTIONS_LEN: usize = 4;
/// The same, and the window's scale.
pub const SYN_ANSWER_OPTIONS_LEN: usize = 8;

/// What a sender was in when it sent a segment. It goes with the segment, so that a router can tell of whose
/// overshoot it suffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    FirstSlowStart,
    /// After a timeout, or idleness.
    LaterSlowStart,
    /// Congestion avoidance, or recovery.
    Steady,
}

/// The field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    NotCapable,
    /// ECT(0).
    Capable,
    /// CE.
    Experienced,
}

/// From the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// It opens the connection, and has no content.
    pub syn: bool,
    /// Of a SYN: it understands marks. Else: the window was cut for one.
    pub cwr: bool,
    pub phase: Phase,
    pub len: u32,
    pub offset: u64,
}

impl Data {
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }
}

/// From the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// It answers a SYN, and says the window's scale.
    pub syn: bool,
    /// Of such an answer: it understands marks, too. Else: one was seen, and no answer to it yet.
    pub ece: bool,
    pub window_scale: u8,
    /// Everything before it has come.
    pub to: u64,
    /// As its 16 bits tell it ([`told_window`]).
    pub window_bytes: u64,
    sacks: [Block; SACK_BLOCKS_MAX],
    sacks_count: u8,
}

/// From where to where something came behind what is acknowledged, counted from there: a window has no more than 4 GB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Block {
    start: u32,
    end: u32,
}

impl Acknowledgement {
    /// Of everything before `to`. `sacks`: the newest first, no more than [`SACK_BLOCKS_MAX`].
    ///
    /// # Panics
    /// If one begins before `to`, or further behind it than a window reaches.
    pub fn new(to: u64, window_bytes: u64, sacks: impl Iterator<Item = Range<u64>>) -> Self {
        let from_here = |byte: u64| u32::try_from(byte - to).expect("within a window");
        let mut acknowledgement = Acknowledgement {
            syn: false,
            ece: false,
            window_scale: 0,
            to,
            window_bytes,
            sacks: [Block::default(); SACK_BLOCKS_MAX],
            sacks_count: 0,
        };
        for sack in sacks {
            acknowledgement.sacks[usize::from(acknowledgement.sacks_count)] = Block {
                start: from_here(sack.start),
                end: from_here(sack.end),
            };
            acknowledgement.sacks_count += 1;
        }
        acknowledgement
    }

    /// The newest first.
    pub fn sacks(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let blocks = self.sacks[..usize::from(self.sacks_count)].iter();
        blocks.map(|block| self.to + u64::from(block.start)..self.to + u64::from(block.end))
    }

    fn options_len(&self) -> usize {
        let sacks = usize::from(self.sacks_count);
        let syn = usize::from(self.syn) * SYN_ANSWER_OPTIONS_LEN;
        syn + if sacks > 0 { 4 + 8 * sacks } else { 0 }
    }
}

/// What 16 bits with this scale say of a window.
pub fn told_window(bytes: u64, scale: u8) -> u64 {
    (bytes >> scale).min(u64::from(u16::MAX)) << scale
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Data(Data),
    Acknowledgement(Acknowledgement),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub flow: u32,
    pub ecn: Ecn,
    pub content: Content,
}

impl Segment {
    pub fn data(flow: u32, data: Data) -> Segment {
        Segment {
            flow,
            ecn: Ecn::NotCapable,
            content: Content::Data(data),
        }
    }

    pub fn acknowledgement(flow: u32, acknowledgement: Acknowledgement) -> Segment {
        Segment {
            flow,
            ecn: Ecn::NotCapable,
            content: Content::Acknowledgement(acknowledgement),
        }
    }

    /// As IP counts it.
    pub fn packet_bytes(&self) -> usize {
        IP_HEADERS_LEN
            + match &self.content {
                Content::Data(data) => data.len as usize + usize::from(data.syn) * SYN_OPTIONS_LEN,
                Content::Acknowledgement(acknowledgement) => acknowledgement.options_len(),
            }
    }

    /// As queues count it: a frame without its check sequence.
    pub fn frame_bytes(&self) -> usize {
        ethernet::HEADER_LEN + self.packet_bytes()
    }

    /// All that a wire spends on it.
    pub fn wire_bits(&self) -> u64 {
        8 * (self.frame_bytes().max(FRAME_BYTES_MIN) + WIRE_OVERHEAD_BYTES) as u64
    }

    /// Of those, what the check sequence covers.
    pub fn checked_bits(&self) -> u64 {
        8 * (self.frame_bytes().max(FRAME_BYTES_MIN) + FCS_BYTES) as u64
    }

    pub fn is_syn(&self) -> bool {
        match &self.content {
            Content::Data(data) => data.syn,
            Content::Acknowledgement(acknowledgement) => acknowledgement.syn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Data = Data {
        syn: false,
        cwr: false,
        phase: Phase::Steady,
        len: 1460,
        offset: 0,
    };

    #[test]
    fn it_is_small_and_as_long_as_its_frame() {
        assert!(size_of::<Segment>() <= 72, "{}", size_of::<Segment>());
        let data = Segment::data(0, PLAIN);
        assert_eq!((data.packet_bytes(), data.frame_bytes()), (1500, 1514));
        assert_eq!(data.wire_bits(), 8 * 1538);
        assert_eq!(data.checked_bits(), 8 * 1518);
        let nothing = Acknowledgement::new(0, 0, core::iter::empty());
        let nothing = Segment::acknowledgement(0, nothing);
        assert_eq!((nothing.packet_bytes(), nothing.wire_bits()), (40, 8 * 84));
        assert_eq!(nothing.checked_bits(), 8 * 64);
    }

    #[test]
    fn blocks_are_told_in_their_order_wherever_the_stream_has_come_to() {
        let to = 1 << 40;
        let sacks = [to + 10..to + 20, to + 3_000_000_000..to + 3_000_000_001];
        let said = Acknowledgement::new(to, 0, sacks.iter().cloned());
        assert_eq!(said.sacks().collect::<Vec<_>>(), sacks);
        assert_eq!(Segment::acknowledgement(0, said).packet_bytes(), 40 + 20);
    }

    #[test]
    fn a_window_is_told_in_sixteen_bits_of_its_scale() {
        assert_eq!(told_window(1000, 0), 1000);
        assert_eq!(told_window(1001, 1), 1000);
        assert_eq!(told_window(1 << 30, 0), 65535);
    }
}
