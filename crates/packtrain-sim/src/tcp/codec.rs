//! Segments as frames: Ethernet, IPv4, TCP (RFC 9293) with the options that the ends use (window scale, RFC 7323; SACK,
//! RFC 2018), and a checksum that is left to the card.
//!
//! The ends count bytes of a stream from 0, in 64 bits. In a frame they have 32-bit numbers, which wrap.
//! Content begins with its own offset in the stream, as far as it has room, and goes on with what follows from that and
//! cannot be compressed: who reads a number wrongly, or changes a byte on the way, is found out.

use packtrain_proto::offload::{Offload, PartialChecksum};
use packtrain_proto::wire::ethernet::{self, MacAddr, ether_type};

use super::segment::{
    Acknowledgement, Content, Data, Ecn, IP_HEADERS_LEN, IPV4_LEN, Phase, SACK_BLOCKS_MAX, Segment,
    TCP_LEN,
};
use crate::checksum::{self, Transport};
use crate::frame::Frame;
use crate::random::mix;

const NETWORK: usize = ethernet::HEADER_LEN;
const TRANSPORT: usize = NETWORK + IPV4_LEN;
const OPTIONS: usize = TRANSPORT + TCP_LEN;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;
/// The sender of flow n has this plus n, so that there are no more than 55,000; all receivers have [`SERVER`].
const CLIENTS: u16 = 10_000;
const SERVER: u16 = 5001;

mod option {
    pub const NOP: u8 = 1;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
}

/// It goes in bits of the DSCP that are for local use (RFC 2474, pool 2).
fn dscp(phase: Phase) -> u8 {
    match phase {
        Phase::FirstSlowStart => 0b000111,
        Phase::LaterSlowStart => 0b001011,
        Phase::Steady => 0b000000,
    }
}

fn phase_of(dscp: u8) -> Option<Phase> {
    let all = [Phase::FirstSlowStart, Phase::LaterSlowStart, Phase::Steady];
    all.into_iter().find(|&phase| self::dscp(phase) == dscp)
}

fn codepoint(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => 0b00,
        Ecn::Capable => 0b10,
        Ecn::Experienced => 0b11,
    }
}

fn ecn_of(codepoint: u8) -> Ecn {
    match codepoint & 0b11 {
        0b00 => Ecn::NotCapable,
        0b11 => Ecn::Experienced,
        _ => Ecn::Capable,
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

/// Where a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress {
    pub mac: MacAddr,
    pub ip: [u8; 4],
}

impl HostAddress {
    /// Locally administered, and says the port: for those of whom nobody on the way looks at where they are.
    fn of_port(port: u16) -> HostAddress {
        let [high, low] = port.to_be_bytes();
        HostAddress {
            mac: MacAddr([0x02, 0, 0, 0, high, low]),
            ip: [10, 0, high, low],
        }
    }
}

/// Where the two ends of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    pub sender: HostAddress,
    pub receiver: HostAddress,
}

/// Fills content that begins at this offset of its stream.
pub fn fill(content: &mut [u8], offset: u64) {
    for (words, bytes) in (0u64..).zip(content.chunks_mut(8)) {
        let word = word_of(offset, words).to_be_bytes();
        bytes.copy_from_slice(&word[..bytes.len()]);
    }
}

/// Whether it is what [`fill`] made.
pub fn is_filled(content: &[u8], offset: u64) -> bool {
    (0u64..).zip(content.chunks(8)).all(|(words, bytes)| {
        let word = word_of(offset, words).to_be_bytes();
        *bytes == word[..bytes.len()]
    })
}

fn word_of(offset: u64, words: u64) -> u64 {
    match words {
        0 => offset,
        words => mix(offset.wrapping_add(words << 48)),
    }
}

/// Of which flow a frame of a connection is, and whether it comes from its sender.
pub fn end(frame: &Frame) -> (u32, bool) {
    (flow(&frame.bytes), is_from_sender(&frame.bytes))
}

/// Which flow a frame belongs to, whichever way it goes.
fn flow(bytes: &[u8]) -> u32 {
    let ports = [TRANSPORT, TRANSPORT + 2].map(|at| word(bytes, at));
    let client = ports.into_iter().find(|&port| port != SERVER);
    u32::from(client.expect("one of the two is the sender's") - CLIENTS)
}

fn is_from_sender(bytes: &[u8]) -> bool {
    word(bytes, TRANSPORT) != SERVER
}

impl Segment {
    /// # Panics
    /// If the flow has no port.
    pub fn to_frame(&self, numbering: Numbering) -> Frame {
        let hosts = Hosts {
            sender: HostAddress::of_port(self.client()),
            receiver: HostAddress::of_port(SERVER),
        };
        self.to_frame_between(&hosts, numbering)
    }

    /// The same, of ends that are somewhere.
    pub fn to_frame_between(&self, hosts: &Hosts, numbering: Numbering) -> Frame {
        let client = self.client();
        match &self.content {
            Content::Data(data) => data_frame(data, hosts, client, self.ecn, numbering),
            Content::Acknowledgement(said) => {
                acknowledgement_frame(said, hosts, client, self.ecn, numbering)
            }
        }
    }

    fn client(&self) -> u16 {
        let client = u32::from(CLIENTS) + self.flow;
        u16::try_from(client).expect("every flow has a port")
    }

    /// `near`: an offset less than 2³¹ away. `scale`: what the answer to the SYN said.
    ///
    /// # Panics
    /// If content is not what belongs where it says it does.
    pub fn of_frame(frame: &Frame, numbering: Numbering, near: u64, scale: u8) -> Segment {
        let bytes = &frame.bytes;
        let content = match is_from_sender(bytes) {
            true => Content::Data(data_of(bytes, numbering, near)),
            false => Content::Acknowledgement(acknowledgement_of(bytes, numbering, near, scale)),
        };
        Segment {
            flow: flow(bytes),
            ecn: ecn_of(bytes[NETWORK + 1]),
            content,
        }
    }
}

/// The numbering that a SYN begins.
pub fn numbering(syn: &Frame) -> Numbering {
    Numbering::of_syn(double_word(&syn.bytes, TRANSPORT + 4))
}

fn data_frame(data: &Data, hosts: &Hosts, client: u16, ecn: Ecn, numbering: Numbering) -> Frame {
    let options: &[u8] = match data.syn {
        true => &[option::SACK_PERMITTED, 2, option::NOP, option::NOP],
        false => &[],
    };
    let (sequence, flags) = match data.syn {
        // Who understands marks says so with both flags (RFC 3168, 6.1.1).
        true if data.cwr => (numbering.first.wrapping_sub(1), SYN | ECE | CWR),
        true => (numbering.first.wrapping_sub(1), SYN),
        false if data.cwr => (numbering.number(data.offset), ACK | CWR),
        false => (numbering.number(data.offset), ACK),
    };
    let mut frame = frame(&Headers {
        hosts: [&hosts.sender, &hosts.receiver],
        ports: [client, SERVER],
        sequence,
        acknowledged: 0,
        flags,
        window: 0,
        options,
        content_len: data.len as usize,
        traffic_class: (dscp(data.phase) << 2) | codepoint(ecn),
    });
    fill(&mut frame.bytes[OPTIONS + options.len()..], data.offset);
    frame
}

fn data_of(bytes: &[u8], numbering: Numbering, near: u64) -> Data {
    let flags = bytes[TRANSPORT + 13];
    let syn = flags & SYN != 0;
    let end = NETWORK + usize::from(word(bytes, NETWORK + 2));
    let content = &bytes[OPTIONS + options(bytes).len()..end];
    let offset = match syn {
        true => 0,
        false => numbering.offset(double_word(bytes, TRANSPORT + 4), near),
    };
    assert!(
        is_filled(content, offset),
        "content that does not belong at {offset}"
    );
    Data {
        syn,
        cwr: flags & CWR != 0,
        offset,
        len: content.len() as u32,
        phase: phase_of(bytes[NETWORK + 1] >> 2).expect("a sender made it"),
    }
}

fn acknowledgement_frame(
    said: &Acknowledgement,
    hosts: &Hosts,
    client: u16,
    ecn: Ecn,
    numbering: Numbering,
) -> Frame {
    let mut options = Vec::new();
    if said.syn {
        options.extend([option::SACK_PERMITTED, 2]);
        options.extend([option::WINDOW_SCALE, 3, said.window_scale]);
    }
    let sacks = said.sacks().count();
    if sacks > 0 {
        options.extend([option::NOP, option::NOP]);
        options.extend([option::SACK, 2 + 8 * sacks as u8]);
        for sack in said.sacks() {
            options.extend(numbering.number(sack.start).to_be_bytes());
            options.extend(numbering.number(sack.end).to_be_bytes());
        }
    }
    options.resize(options.len().next_multiple_of(4), option::NOP);
    // The window of a SYN is not scaled (RFC 7323, 2.2).
    let scale = if said.syn { 0 } else { said.window_scale };
    let window = (said.window_bytes >> scale).min(u64::from(u16::MAX));
    frame(&Headers {
        hosts: [&hosts.receiver, &hosts.sender],
        ports: [SERVER, client],
        sequence: 0,
        acknowledged: numbering.number(said.to),
        flags: ACK | (u8::from(said.syn) * SYN) | (u8::from(said.ece) * ECE),
        window: window as u16,
        options: &options,
        content_len: 0,
        traffic_class: (dscp(Phase::Steady) << 2) | codepoint(ecn),
    })
}

fn acknowledgement_of(bytes: &[u8], numbering: Numbering, near: u64, scale: u8) -> Acknowledgement {
    let flags = bytes[TRANSPORT + 13];
    let syn = flags & SYN != 0;
    let to = numbering.offset(double_word(bytes, TRANSPORT + 8), near);
    let (mut window_scale, mut sacks) = (scale, Vec::with_capacity(SACK_BLOCKS_MAX));
    let mut options = options(bytes);
    while let [kind, rest @ ..] = options {
        if *kind == option::NOP {
            options = rest;
            continue;
        }
        let (this, next) = options.split_at(usize::from(rest[0]));
        match *kind {
            option::WINDOW_SCALE => window_scale = this[2],
            option::SACK => {
                let (blocks, _) = this[2..].as_chunks::<8>();
                let range = |block: &[u8; 8]| {
                    let [start, end] =
                        [0, 4].map(|at| numbering.offset(double_word(block, at), near));
                    start..end
                };
                sacks.extend(blocks.iter().map(range));
            }
            _ => {}
        }
        options = next;
    }
    let window = u64::from(word(bytes, TRANSPORT + 14));
    let shift = if syn { 0 } else { scale };
    let mut said = Acknowledgement::new(to, window << shift, sacks.into_iter());
    said.syn = syn;
    said.ece = flags & ECE != 0;
    said.window_scale = window_scale;
    said
}

struct Headers<'a> {
    /// From and to.
    hosts: [&'a HostAddress; 2],
    ports: [u16; 2],
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    window: u16,
    options: &'a [u8],
    content_len: usize,
    traffic_class: u8,
}

fn frame(headers: &Headers<'_>) -> Frame {
    let packet_len = IP_HEADERS_LEN + headers.options.len() + headers.content_len;
    let total = u16::try_from(packet_len).expect("a segment fits into an IP packet");
    let mut bytes = vec![0; NETWORK + packet_len];
    let [from, to] = headers.hosts;
    bytes[..6].copy_from_slice(&to.mac.0);
    bytes[6..12].copy_from_slice(&from.mac.0);
    bytes[12..14].copy_from_slice(&ether_type::IPV4.to_be_bytes());
    let network = &mut bytes[NETWORK..TRANSPORT];
    network[0] = 0x45;
    network[1] = headers.traffic_class;
    network[2..4].copy_from_slice(&total.to_be_bytes());
    network[6] = 0x40; // don't fragment
    network[8] = 64;
    network[9] = checksum::TCP;
    network[12..16].copy_from_slice(&from.ip);
    network[16..20].copy_from_slice(&to.ip);
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
    use crate::tcp::segment::told_window;
    use proptest::prelude::*;

    fn phases() -> impl Strategy<Value = Phase> {
        prop::sample::select(vec![
            Phase::FirstSlowStart,
            Phase::LaterSlowStart,
            Phase::Steady,
        ])
    }

    fn marks() -> impl Strategy<Value = Ecn> {
        prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable, Ecn::Experienced])
    }

    proptest! {
        #[test]
        fn data_are_what_they_were_whatever_their_number(
            sequence: u32,
            offset in 0u64..1 << 40,
            away in -(1i64 << 31) + 1..1 << 31,
            len in 0u32..3000,
            flow in 0u32..50_000,
            cwr: bool,
            phase in phases(),
            ecn in marks(),
        ) {
            let near = offset.checked_add_signed(away).unwrap_or(offset);
            let numbering = Numbering::of_syn(sequence);
            let data = Data { syn: false, cwr, offset, len, phase };
            let segment = Segment { flow, ecn, content: Content::Data(data) };
            let frame = segment.to_frame(numbering);
            prop_assert_eq!(frame.bytes.len(), segment.frame_bytes());
            prop_assert_eq!(frame.ip_bits(), 8 * segment.packet_bytes() as u64);
            prop_assert_eq!(frame.wire_bits(), segment.wire_bits());
            prop_assert_eq!(frame.checked_bits(), segment.checked_bits());
            prop_assert_eq!(Segment::of_frame(&frame, numbering, near, 0), segment);
            // A card takes it, and then it has a checksum.
            let sent = nic::to_wire(frame).expect("its metadata agree");
            let transport = Transport::find(&sent[0].bytes).expect("it is TCP");
            prop_assert!(transport.is_finished(&sent[0].bytes));
            prop_assert_eq!(Segment::of_frame(&sent[0], numbering, near, 0), segment);
        }

        #[test]
        fn acknowledgements_are_what_they_were(
            sequence: u32,
            flow in 0u32..50_000,
            to in 0u64..1 << 40,
            blocks in prop::collection::vec((1u64..1 << 20, 1u64..1 << 20), 0..=SACK_BLOCKS_MAX),
            window in 0u64..1 << 30,
            window_scale in 0u8..15,
            syn: bool,
            ece: bool,
            ecn in marks(),
        ) {
            let near = to.saturating_sub(1 << 30);
            let numbering = Numbering::of_syn(sequence);
            // What answers a SYN has nothing to report, and no room for it.
            let blocks = if syn { Vec::new() } else { blocks };
            let sacks = blocks.iter().map(|(gap, len)| to + gap..to + gap + len);
            let scale = if syn { 0 } else { window_scale };
            let told = told_window(window, scale);
            let mut said = Acknowledgement::new(to, told, sacks);
            (said.syn, said.ece, said.window_scale) = (syn, ece, window_scale);
            let segment = Segment { flow, ecn, content: Content::Acknowledgement(said) };
            let frame = segment.to_frame(numbering);
            prop_assert_eq!(frame.bytes.len(), segment.frame_bytes());
            prop_assert_eq!(frame.wire_bits(), segment.wire_bits());
            prop_assert_eq!(Segment::of_frame(&frame, numbering, near, window_scale), segment);
        }
    }

    #[test]
    fn ends_that_are_somewhere_are_told_which_way_it_goes_and_content_that_changed_is_found_out() {
        let at = |n: u8| HostAddress {
            mac: MacAddr([2, 0, 0, 0, 0, n]),
            ip: [10, 0, 0, n],
        };
        let hosts = Hosts {
            sender: at(1),
            receiver: at(2),
        };
        let numbering = Numbering::of_syn(7);
        let said = Acknowledgement::new(10, 0, core::iter::empty());
        let said = Segment::acknowledgement(3, said).to_frame_between(&hosts, numbering);
        assert_eq!(end(&said), (3, false));
        assert_eq!(said.header().source, at(2).mac);
        assert_eq!(said.header().destination, at(1).mac);
        let data = Data {
            syn: false,
            cwr: false,
            phase: Phase::Steady,
            len: 101,
            offset: 1000,
        };
        let frame = Segment::data(3, data).to_frame_between(&hosts, numbering);
        assert_eq!(end(&frame), (3, true));
        assert_eq!(frame.bytes[NETWORK + 12..][..8], [10, 0, 0, 1, 10, 0, 0, 2]);
        let mut content = frame.bytes[OPTIONS..].to_vec();
        assert!(is_filled(&content, 1000) && !is_filled(&content, 1001));
        content[100] ^= 1;
        assert!(!is_filled(&content, 1000));
    }

    #[test]
    fn a_syn_says_its_number_and_whether_it_understands_marks() {
        for cwr in [false, true] {
            let opens = Segment::data(
                3,
                Data {
                    syn: true,
                    cwr,
                    offset: 0,
                    len: 0,
                    phase: Phase::FirstSlowStart,
                },
            );
            let first = Numbering::of_syn(u32::MAX);
            let frame = opens.to_frame(first);
            assert_eq!(numbering(&frame), first);
            assert_eq!(frame.bytes.len(), opens.frame_bytes());
            assert_eq!(Segment::of_frame(&frame, first, 0, 0), opens);
        }
    }
}
