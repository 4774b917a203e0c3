//! What the two ends say to each other, as frames: Ethernet, IPv4, TCP (RFC 9293) with the options that they
//! use (window scale, RFC 7323; SACK, RFC 2018), and a checksum that is left to the card.
//!
//! The ends count bytes of a stream from 0, in 64 bits. On the wire they have 32-bit numbers, which wrap.
//! Content begins with its own offset in the stream, as far as it has room: who reads a number wrongly
//! is found out.

use core::ops::Range;

use packtrain_proto::offload::{Offload, PartialChecksum};
use packtrain_proto::wire::ethernet::{self, ether_type};

use crate::checksum::{self, Transport};
use crate::frame::Frame;

const IPV4_LEN: usize = 20;
const TCP_LEN: usize = 20;
/// All headers of a segment of data: it has no options.
pub const HEADERS_LEN: usize = ethernet::HEADER_LEN + IPV4_LEN + TCP_LEN;
/// Those that IP counts.
pub const IP_HEADERS_LEN: usize = IPV4_LEN + TCP_LEN;
/// As many as the options of an acknowledgement have room for, without time stamps.
pub const SACK_BLOCKS_MAX: usize = 4;

const NETWORK: usize = ethernet::HEADER_LEN;
const TRANSPORT: usize = NETWORK + IPV4_LEN;
const OPTIONS: usize = TRANSPORT + TCP_LEN;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// The sender of flow n has this plus n; all receivers have [`SERVER`].
const CLIENTS: u16 = 10_000;
const SERVER: u16 = 5001;

mod option {
    pub const NOP: u8 = 1;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
}

/// What a sender was in when it sent a segment. It goes with the frame, in bits of its DSCP that are for
/// local use (RFC 2474, pool 2), so that a router can tell of whose overshoot it suffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    FirstSlowStart,
    /// After a timeout, or idleness.
    LaterSlowStart,
    /// Congestion avoidance, or recovery.
    Steady,
}

impl Phase {
    fn dscp(self) -> u8 {
        match self {
            Phase::FirstSlowStart => 0b000111,
            Phase::LaterSlowStart => 0b001011,
            Phase::Steady => 0b000000,
        }
    }

    fn of(dscp: u8) -> Option<Phase> {
        let all = [Phase::FirstSlowStart, Phase::LaterSlowStart, Phase::Steady];
        all.into_iter().find(|phase| phase.dscp() == dscp)
    }
}

/// Where in the 32-bit numbers a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbering {
    first: u32,
}

impl Numbering {
    /// Of a connection whose SYN has this number: its first byte has the next one.
    pub fn of_syn(sequence: u32) -> Numbering {
        Numbering {
            first: sequence.wrapping_add(1),
        }
    }

    fn number(self, offset: u64) -> u32 {
        self.first.wrapping_add(offset as u32)
    }

    /// The offset with this number that is nearest to `near`.
    fn offset(self, number: u32, near: u64) -> u64 {
        let from_near = number.wrapping_sub(self.number(near)) as i32;
        near.checked_add_signed(i64::from(from_near))
            .expect("no end names a byte before the first")
    }
}

/// From the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    pub flow: u16,
    /// It opens the connection, and has no content.
    pub syn: bool,
    pub offset: u64,
    pub len: u32,
    pub phase: Phase,
}

/// From the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    pub flow: u16,
    /// It answers a SYN, and says the window's scale.
    pub syn: bool,
    /// Everything before it has come.
    pub to: u64,
    pub window_bytes: u64,
    pub window_scale: u8,
    /// The newest first, at most [`SACK_BLOCKS_MAX`].
    pub sacks: Vec<Range<u64>>,
}

/// Which flow a frame belongs to, whichever way it goes.
pub fn flow(frame: &Frame) -> u16 {
    let ports = [TRANSPORT, TRANSPORT + 2].map(|at| word(&frame.bytes, at));
    let client = ports.into_iter().find(|&port| port != SERVER);
    client.expect("one of the two is the sender's") - CLIENTS
}

/// What the sender was in.
pub fn phase(frame: &Frame) -> Phase {
    Phase::of(frame.bytes[NETWORK + 1] >> 2).expect("a sender made it")
}

pub fn is_syn(frame: &Frame) -> bool {
    frame.bytes[TRANSPORT + 13] & SYN != 0
}

impl Data {
    pub fn to_frame(&self, numbering: Numbering) -> Frame {
        let options: &[u8] = match self.syn {
            true => &[option::SACK_PERMITTED, 2, option::NOP, option::NOP],
            false => &[],
        };
        let sequence = match self.syn {
            true => numbering.first.wrapping_sub(1),
            false => numbering.number(self.offset),
        };
        let mut frame = frame(&Headers {
            ports: [CLIENTS + self.flow, SERVER],
            sequence,
            acknowledged: 0,
            flags: if self.syn { SYN } else { ACK },
            window: 0,
            options,
            content_len: self.len as usize,
            dscp: self.phase.dscp(),
        });
        let content = &mut frame.bytes[HEADERS_LEN..];
        if !self.syn {
            let told = content.len().min(8);
            content[..told].copy_from_slice(&self.offset.to_be_bytes()[..told]);
        }
        frame
    }

    /// `near`: an offset less than 2³¹ away.
    ///
    /// # Panics
    /// If the content is not what belongs there.
    pub fn of_frame(frame: &Frame, numbering: Numbering, near: u64) -> Data {
        let bytes = &frame.bytes;
        let syn = is_syn(frame);
        let end = NETWORK + usize::from(word(bytes, NETWORK + 2));
        let content = &bytes[OPTIONS + options(bytes).len()..end];
        let offset = match syn {
            true => 0,
            false => numbering.offset(double_word(bytes, TRANSPORT + 4), near),
        };
        let told = content.len().min(8);
        assert_eq!(content[..told], offset.to_be_bytes()[..told]);
        Data {
            flow: flow(frame),
            syn,
            offset,
            len: content.len() as u32,
            phase: phase(frame),
        }
    }

    /// The numbering that a SYN begins.
    pub fn numbering(frame: &Frame) -> Numbering {
        Numbering::of_syn(double_word(&frame.bytes, TRANSPORT + 4))
    }
}

impl Acknowledgement {
    pub fn to_frame(&self, numbering: Numbering) -> Frame {
        let mut options = Vec::new();
        if self.syn {
            options.extend([option::SACK_PERMITTED, 2]);
            options.extend([option::WINDOW_SCALE, 3, self.window_scale]);
        }
        if !self.sacks.is_empty() {
            assert!(self.sacks.len() <= SACK_BLOCKS_MAX);
            options.extend([option::NOP, option::NOP]);
            options.extend([option::SACK, 2 + 8 * self.sacks.len() as u8]);
            for sack in &self.sacks {
                options.extend(numbering.number(sack.start).to_be_bytes());
                options.extend(numbering.number(sack.end).to_be_bytes());
            }
        }
        options.resize(options.len().next_multiple_of(4), option::NOP);
        // The window of a SYN is not scaled (RFC 7323, 2.2).
        let scale = if self.syn { 0 } else { self.window_scale };
        let window = (self.window_bytes >> scale).min(u64::from(u16::MAX));
        frame(&Headers {
            ports: [SERVER, CLIENTS + self.flow],
            sequence: 0,
            acknowledged: numbering.number(self.to),
            flags: if self.syn { SYN | ACK } else { ACK },
            window: window as u16,
            options: &options,
            content_len: 0,
            dscp: Phase::Steady.dscp(),
        })
    }

    /// `near`: an offset less than 2³¹ away. `scale`: what the answer to the SYN said.
    pub fn of_frame(frame: &Frame, numbering: Numbering, near: u64, scale: u8) -> Acknowledgement {
        let bytes = &frame.bytes;
        let mut acknowledgement = Acknowledgement {
            flow: flow(frame),
            syn: is_syn(frame),
            to: numbering.offset(double_word(bytes, TRANSPORT + 8), near),
            window_bytes: 0,
            window_scale: scale,
            sacks: Vec::new(),
        };
        let mut options = options(bytes);
        while let [kind, rest @ ..] = options {
            if *kind == option::NOP {
                options = rest;
                continue;
            }
            let (this, next) = options.split_at(usize::from(rest[0]));
            match *kind {
                option::WINDOW_SCALE => acknowledgement.window_scale = this[2],
                option::SACK => {
                    let (blocks, _) = this[2..].as_chunks::<8>();
                    let sacks = blocks.iter().map(|block| {
                        let [start, end] =
                            [0, 4].map(|at| numbering.offset(double_word(block, at), near));
                        start..end
                    });
                    acknowledgement.sacks = sacks.collect();
                }
                _ => {}
            }
            options = next;
        }
        let window = u64::from(word(bytes, TRANSPORT + 14));
        let scale = match acknowledgement.syn {
            true => 0,
            false => scale,
        };
        acknowledgement.window_bytes = window << scale;
        acknowledgement
    }
}

struct Headers<'a> {
    ports: [u16; 2],
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    window: u16,
    options: &'a [u8],
    content_len: usize,
    dscp: u8,
}

fn frame(headers: &Headers<'_>) -> Frame {
    let packet_len = IP_HEADERS_LEN + headers.options.len() + headers.content_len;
    let total = u16::try_from(packet_len).expect("a segment fits into an IP packet");
    let mut bytes = vec![0; NETWORK + packet_len];
    // Locally administered addresses that say the port; nobody on the way looks at them.
    bytes[0] = 0x02;
    bytes[4..6].copy_from_slice(&headers.ports[1].to_be_bytes());
    bytes[6] = 0x02;
    bytes[10..12].copy_from_slice(&headers.ports[0].to_be_bytes());
    bytes[12..14].copy_from_slice(&ether_type::IPV4.to_be_bytes());
    let network = &mut bytes[NETWORK..TRANSPORT];
    network[0] = 0x45;
    network[1] = headers.dscp << 2;
    network[2..4].copy_from_slice(&total.to_be_bytes());
    network[6] = 0x40; // don't fragment
    network[8] = 64;
    network[9] = checksum::TCP;
    network[12] = 10;
    network[14..16].copy_from_slice(&headers.ports[0].to_be_bytes());
    network[16] = 10;
    network[18..20].copy_from_slice(&headers.ports[1].to_be_bytes());
    let check = !checksum::sum(0, network);
    network[10..12].copy_from_slice(&check.to_be_bytes());
    let transport = &mut bytes[TRANSPORT..];
    transport[..2].copy_from_slice(&headers.ports[0].to_be_bytes());
    transport[2..4].copy_from_slice(&headers.ports[1].to_be_bytes());
    transport[4..8].copy_from_slice(&headers.sequence.to_be_bytes());
    transport[8..12].copy_from_slice(&headers.acknowledged.to_be_bytes());
    transport[12] = (((TCP_LEN + headers.options.len()) / 4) << 4) as u8;
    transport[13] = headers.flags;
    transport[14..16].copy_from_slice(&headers.window.to_be_bytes());
    transport[TCP_LEN..][..headers.options.len()].copy_from_slice(headers.options);
    let found = Transport::find(&bytes).expect("it is TCP");
    found.put_partial(&mut bytes);
    let checksum = PartialChecksum {
        start: TRANSPORT as u16,
        offset: found.field_offset() as u16,
    };
    let offload = Offload {
        checksum: Some(checksum),
        gso: None,
    };
    Frame::new(bytes, offload)
}

fn options(bytes: &[u8]) -> &[u8] {
    let len = usize::from(bytes[TRANSPORT + 12] >> 4) * 4;
    &bytes[OPTIONS..TRANSPORT + len]
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn double_word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::nic;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn data_are_what_they_were_whatever_their_number(
            sequence: u32,
            offset in 0u64..1 << 40,
            away in -(1i64 << 31) + 1..1 << 31,
            len in 0u32..3000,
            flow in 0u16..50_000,
        ) {
            let near = offset.checked_add_signed(away).unwrap_or(offset);
            let numbering = Numbering::of_syn(sequence);
            let data = Data { flow, syn: false, offset, len, phase: Phase::LaterSlowStart };
            let frame = data.to_frame(numbering);
            prop_assert_eq!(frame.bytes.len(), HEADERS_LEN + len as usize);
            prop_assert_eq!(frame.ip_bits(), 8 * (IP_HEADERS_LEN as u64 + u64::from(len)));
            prop_assert_eq!(Data::of_frame(&frame, numbering, near), data);
            // A card takes it, and then it has a checksum.
            let sent = nic::to_wire(frame).expect("its metadata agree");
            let transport = Transport::find(&sent[0].bytes).expect("it is TCP");
            prop_assert!(transport.is_finished(&sent[0].bytes));
            prop_assert_eq!(Data::of_frame(&sent[0], numbering, near), data);
        }

        #[test]
        fn acknowledgements_are_what_they_were_but_for_the_windows_last_bits(
            sequence: u32,
            to in 0u64..1 << 40,
            blocks in prop::collection::vec((1u64..1 << 20, 1u64..1 << 20), 0..=SACK_BLOCKS_MAX),
            window in 0u64..65535,
            window_scale in 0u8..15,
        ) {
            let near = to.saturating_sub(1 << 30);
            let numbering = Numbering::of_syn(sequence);
            let sacks = blocks.iter().map(|(gap, len)| to + gap..to + gap + len).collect();
            let acknowledgement = Acknowledgement {
                flow: 7, syn: false, to, window_bytes: window << window_scale, window_scale, sacks,
            };
            let frame = acknowledgement.to_frame(numbering);
            let read = Acknowledgement::of_frame(&frame, numbering, near, window_scale);
            prop_assert_eq!(read, acknowledgement);
        }
    }

    #[test]
    fn the_answer_to_a_syn_says_the_scale_and_a_window_without_it() {
        let opens = Data {
            flow: 3,
            syn: true,
            offset: 0,
            len: 0,
            phase: Phase::FirstSlowStart,
        };
        let numbering = Numbering::of_syn(u32::MAX);
        let frame = opens.to_frame(numbering);
        assert_eq!(Data::numbering(&frame), numbering);
        assert_eq!(Data::of_frame(&frame, numbering, 0), opens);
        let answer = Acknowledgement {
            flow: 3,
            syn: true,
            to: 0,
            window_bytes: 65535,
            window_scale: 9,
            sacks: Vec::new(),
        };
        let frame = answer.to_frame(numbering);
        assert_eq!(Acknowledgement::of_frame(&frame, numbering, 0, 0), answer);
    }
}
