//! The slow reader against the engine's writer: what trains of drawn frames restore to, bit for bit.

use packtrain_proto::class::ClassId;
use packtrain_proto::coding::coder::{Coder, Treatment};
use packtrain_proto::coding::dictionary::Zstd;
use packtrain_proto::coding::restore::Restorer;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};
use packtrain_proto::wire::coded::{CodedError, Coding};
use packtrain_proto::wire::ethernet::MacAddr;
use packtrain_proto::wire::subframe::InnerHeader;

use super::*;
use crate::checksum::Transport;
use crate::dictionaries::Known;
use crate::random::Random;

const TRAINS: u64 = 4000;
/// What both have been given, for trains that are compressed with it.
const WITH: Option<Known> = Some(Known::Words);

/// What the frames of a flow have in common, and what of it goes on from frame to frame.
#[derive(Clone, Debug)]
struct DrawnFlow {
    kind: Kind,
    addresses: Option<(MacAddr, MacAddr)>,
    tags: Vec<[u8; 4]>,
    is_v6: bool,
    ip_options: usize,
    tcp_options: Vec<u8>,
    has_checksum: bool,
    has_id: bool,
    ends: [u8; 2],
    ports: [u16; 2],
    len: usize,
    content: Content,
    id: u16,
    sequence: u32,
    time: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Udp,
    Tcp,
    Rtp,
    Icmp,
    Fragments,
    Arp,
    Garbage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Repeated,
    Text,
    Random,
    /// Of G.711: A-law, or else µ-law; so many samples a wave.
    Sound {
        is_a_law: bool,
        wave: u64,
    },
}

impl Content {
    fn draw(self, len: usize, time: u32, random: &mut Random) -> Vec<u8> {
        const WORDS: [&[u8]; 6] = [b"temperature", b"=", b" ", b"17.", b"humidity", b"4"];
        match self {
            Content::Repeated => (0..len).map(|n| b"{\"value\": 17, "[n % 14]).collect(),
            Content::Text => {
                let words = core::iter::from_fn(|| Some(*random.pick(&WORDS)));
                words.flatten().copied().take(len).collect()
            }
            Content::Random => (0..len).map(|_| random.next() as u8).collect(),
            Content::Sound { is_a_law, wave } => (0..len as u64)
                .map(|n| {
                    // A triangle, from loud to soft and back, with noise.
                    let at = (u64::from(time) + n) % wave;
                    let height = at.min(wave - at) * 230 / (wave / 2).max(1);
                    let rank = (height + random.below(24)).min(255) as u8;
                    let magnitude = if rank < 128 { 127 - rank } else { rank - 128 };
                    let sign = rank & 0x80;
                    match is_a_law {
                        true => (sign | magnitude) ^ 0x55,
                        false => !(sign ^ 0x80 | magnitude),
                    }
                })
                .collect(),
        }
    }
}

fn flow(is_call: bool, random: &mut Random) -> DrawnFlow {
    use Kind::*;
    let kinds = [
        Udp, Udp, Tcp, Tcp, Tcp, Rtp, Rtp, Icmp, Fragments, Arp, Garbage,
    ];
    let kind = if is_call { Rtp } else { *random.pick(&kinds) };
    let times = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    let others = [2, 4, 5, 0xb4];
    let tcp_options = match random.below(6) {
        0..=2 => times.to_vec(),
        3 => others.to_vec(),
        4 => [&times[..], &others].concat(),
        _ => Vec::new(),
    };
    let tpids = [[0x81, 0x00], [0x88, 0xa8]];
    let tag = |random: &mut Random| {
        let tpid = *random.pick(&tpids);
        [tpid[0], tpid[1], 0, random.below(8) as u8]
    };
    let sound = Content::Sound {
        is_a_law: random.chance(0.5),
        wave: random.between(3, 200),
    };
    use Content::{Random as RandomBytes, Repeated, Text};
    let content = match kind {
        Rtp => *random.pick(&[sound, sound, sound, Repeated]),
        _ => *random.pick(&[Repeated, Repeated, Text, RandomBytes, RandomBytes]),
    };
    let tag_count = *random.pick(&[0, 0, 0, 1, 2, 3]);
    DrawnFlow {
        kind,
        addresses: random
            .chance(0.3)
            .then(|| (MacAddr([2; 6]), MacAddr([random.below(3) as u8 * 2; 6]))),
        tags: (0..tag_count).map(|_| tag(random)).collect(),
        is_v6: random.chance(0.4),
        ip_options: if random.chance(0.15) { 8 } else { 0 },
        tcp_options,
        has_checksum: random.chance(0.8),
        has_id: random.chance(0.7),
        ends: [random.below(4) as u8, random.below(4) as u8],
        ports: [random.below(1 << 16) as u16, *random.pick(&[53, 443, 5004])],
        len: match content {
            Content::Sound { .. } => *random.pick(&[80, 160, 160, 240]),
            _ => random.magnitude(1, 900) as usize,
        },
        content,
        id: random.next() as u16,
        sequence: random.next() as u32,
        time: random.next() as u32,
    }
}

impl DrawnFlow {
    /// The next frame: its EtherType, and its payload.
    fn next(&mut self, random: &mut Random) -> (u16, Vec<u8>) {
        let is_sound = matches!(self.content, Content::Sound { .. });
        let len = match random.below(if is_sound { 16 } else { 4 }) {
            0 => random.magnitude(1, 1200) as usize,
            _ => self.len,
        };
        let mut content = self.content.draw(len, self.time, random);
        let ether_type = match (self.kind, self.is_v6) {
            (Kind::Arp, _) => 0x0806,
            (Kind::Garbage, _) => *random.pick(&[0x0800, 0x86dd, 0x8100, 0x1234, 60]),
            (_, false) => 0x0800,
            (_, true) => 0x86dd,
        };
        let mut packet = match self.kind {
            Kind::Arp => [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[7; 20]].concat(),
            Kind::Garbage => {
                if random.chance(0.5) {
                    content[0] = *random.pick(&[0x45, 0x4f, 0x44, 0x60, 0x50]);
                }
                content
            }
            _ => self.packet(&content, random),
        };
        if random.chance(0.1) {
            packet.resize(packet.len() + random.between(1, 40) as usize, 0); // padding
        }
        if random.chance(0.06) && self.kind != Kind::Garbage {
            let at = random.below(packet.len().min(80) as u64) as usize;
            packet[at] ^= 1 << random.below(8);
        }
        if random.chance(0.03) {
            packet.truncate(random.between(1, packet.len() as u64) as usize);
        }
        let mut kind = ether_type;
        for tag in self.tags.iter().rev() {
            packet.splice(..0, [tag[2], tag[3], (kind >> 8) as u8, kind as u8]);
            kind = u16::from_be_bytes([tag[0], tag[1]]);
        }
        (kind, packet)
    }

    fn packet(&mut self, content: &[u8], random: &mut Random) -> Vec<u8> {
        let transport = self.transport(content, random);
        let protocol = match self.kind {
            Kind::Tcp => 6,
            Kind::Icmp => 1,
            _ => 17,
        };
        let hops = if random.chance(0.05) { 63 } else { 64 };
        let mut bytes = Vec::new();
        if self.is_v6 {
            bytes.extend([0x60, 0, 0, u8::from(random.chance(0.05))]);
            bytes.extend((transport.len() as u16).to_be_bytes());
            bytes.extend([protocol, hops]);
            for end in self.ends {
                bytes.extend([&[0xfd; 15][..], &[end]].concat());
            }
        } else {
            if self.has_id {
                self.id = match random.below(8) {
                    0 => random.next() as u16,
                    _ => self.id.wrapping_add(1),
                };
            }
            let id = if self.has_id { self.id } else { 0 };
            let header_len = 20 + self.ip_options;
            let fragment: u16 = match self.kind {
                Kind::Fragments => *random.pick(&[0x2000, 0x2005, 0x0009]),
                _ => 0x4000,
            };
            bytes.extend([0x40 | (header_len / 4) as u8, 0]);
            bytes.extend(((header_len + transport.len()) as u16).to_be_bytes());
            bytes.extend(id.to_be_bytes());
            bytes.extend(fragment.to_be_bytes());
            bytes.extend([hops, protocol, 0, 0]);
            for end in self.ends {
                bytes.extend([10, 0, 0, end]);
            }
            bytes.resize(header_len, 1);
            let check = !crate::checksum::sum(0, &bytes);
            bytes[10..12].copy_from_slice(&check.to_be_bytes());
        }
        bytes.extend(transport);
        let ether_type = if self.is_v6 { [0x86, 0xdd] } else { [8, 0] };
        let mut frame = [&[0; 12][..], &ether_type, &bytes].concat();
        let is_whole = self.kind != Kind::Fragments && self.ip_options == 0;
        if let Some(transport) = Transport::find(&frame).filter(|_| is_whole && self.has_checksum) {
            transport.put_finished(&mut frame);
        }
        frame.split_off(14)
    }

    fn transport(&mut self, content: &[u8], random: &mut Random) -> Vec<u8> {
        let mut bytes = Vec::new();
        for port in self.ports {
            bytes.extend(port.to_be_bytes());
        }
        if self.kind != Kind::Rtp || random.chance(0.1) {
            self.time = self.time.wrapping_add(random.below(200) as u32);
        }
        match self.kind {
            Kind::Tcp => {
                bytes.extend(self.sequence.to_be_bytes());
                self.sequence = match random.below(5) {
                    0 => random.next() as u32,
                    _ => self.sequence.wrapping_add(content.len() as u32),
                };
                bytes.extend((random.below(3) as u32 * 1448).to_be_bytes());
                let words = (20 + self.tcp_options.len()) / 4;
                bytes.extend([(words << 4) as u8, *random.pick(&[0x10, 0x10, 0x18])]);
                bytes.extend([1, random.below(2) as u8, 0, 0, 0, 0]);
                let mut options = self.tcp_options.clone();
                if options.len() >= 12 {
                    options[4..8].copy_from_slice(&self.time.to_be_bytes());
                    options[8..12].copy_from_slice(&(self.time / 3).to_be_bytes());
                }
                bytes.extend(options);
            }
            Kind::Rtp => {
                bytes.extend((content.len() as u16 + 20).to_be_bytes());
                let marker = u8::from(random.chance(0.1)) << 7;
                let payload_type = match self.content {
                    Content::Sound { is_a_law: true, .. } => 8,
                    _ => 0,
                };
                bytes.extend([0, 0, 0x80, marker | payload_type]);
                bytes.extend((self.sequence as u16).to_be_bytes());
                bytes.extend(self.time.to_be_bytes());
                bytes.extend([9, 9, 9, self.ends[0]]);
                self.sequence = self.sequence.wrapping_add(1);
                self.time = self.time.wrapping_add(content.len() as u32);
            }
            Kind::Icmp => bytes = vec![8, 0, 0, 0, 0, 1, 0, self.sequence as u8],
            _ => {
                bytes.extend((content.len() as u16 + 8).to_be_bytes());
                bytes.extend([0, 0]);
            }
        }
        bytes.extend(content);
        bytes
    }
}

/// The subframe that a frame is by the document.
fn subframe(header: &InnerHeader, payload: &[u8]) -> Vec<u8> {
    let says_ip = match header.ether_type {
        0x0800 => payload[0] >> 4 == 4,
        0x86dd => payload[0] >> 4 == 6,
        _ => false,
    };
    let mut first = FRAME;
    let mut fields = Vec::new();
    if let Some((to, from)) = header.addresses {
        first |= ADDRESSES.0;
        fields.extend([to.0, from.0].concat());
    }
    if !says_ip {
        first |= ETHER_TYPE.0;
        fields.extend(header.ether_type.to_be_bytes());
    }
    let mut bytes = vec![first];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend(fields);
    bytes.extend(payload);
    bytes
}

const GSO: Offload = Offload {
    gso: Some(Gso {
        kind: GsoKind::TcpV4,
        ecn: false,
        header_len: 54,
        segment_len: 100,
    }),
    checksum: Some(PartialChecksum {
        start: 34,
        offset: 16,
    }),
};

/// What is damaged and has a right checksum again is restored to the same by both readers, or refused by both.
fn both_agree_on_damaged(
    coded: &[u8],
    restorer: &mut Restorer,
    seed: u64,
    random: &mut Random,
    seen: &mut Seen,
) {
    let mut damaged = coded.to_vec();
    match random.below(4) {
        0 => damaged.truncate(random.between(5, coded.len() as u64) as usize),
        _ => {
            let at = random.between(5, coded.len() as u64 - 1) as usize;
            damaged[at] ^= 1 << random.below(8);
        }
    }
    let ours = coded::seal(&mut damaged, WITH).then(|| coded::restore(&damaged, WITH));
    let ours = ours.flatten().map(|restored| restored.subframes);
    let mut out = vec![0; 1 << 16];
    let theirs = restorer.restore(&damaged, &mut out);
    let theirs_is = theirs.map(|len| &out[..len]);
    match (&ours, theirs_is) {
        (Some(ours), Ok(theirs)) => {
            assert!(ours == theirs, "seed {seed}: restored to another");
            seen.damaged_and_restored += 1;
        }
        // Not only because its checksum could not be put right.
        (None, Err(why)) if why != CodedError::Checksum => seen.damaged_and_refused += 1,
        (ours, theirs) => panic!("seed {seed}: {ours:02x?}, and for the engine {theirs:02x?}"),
    }
}

#[derive(Debug, Default)]
struct Seen {
    damaged_and_restored: u64,
    damaged_and_refused: u64,
    coded: u64,
    deltas: usize,
    lz4_blocks: usize,
    zstandard_blocks: usize,
    mixed_segments: [usize; 3],
    plain: u64,
}

fn train(seed: u64, coder: &mut Coder, restorer: &mut Restorer, seen: &mut Seen) {
    let mut random = Random::new(seed);
    // Mixing takes long.
    let (coding, room_max, damages, calls) = match random.below(16) {
        0 => (Coding::Mixing, 2000, 1, 0.6),
        1..6 => (Coding::Headers, 9000, 4, 0.0),
        6..11 => (Coding::Lz4, 9000, 4, 0.0),
        _ => (Coding::Zstd, 9000, 4, 0.0),
    };
    let room = random.magnitude(240, room_max) as usize;
    coder.begin(coding, room);
    let mut flows: Vec<_> = (0..random.magnitude(1, 100))
        .map(|_| flow(random.chance(calls), &mut random))
        .collect();
    let treatments = [
        Treatment::Plain,
        Treatment::Headers,
        Treatment::Headers,
        Treatment::Payload,
        Treatment::Payload,
        Treatment::Trial(ClassId(1)),
    ];
    let mut treatment = *random.pick(&treatments);
    // As they were put; of those that the document lets stand otherwise (GSO, pieces), only the items count.
    let mut were: Vec<Vec<u8>> = Vec::new();
    for _ in 0..random.magnitude(2, 500) {
        if random.chance(0.1) {
            treatment = *random.pick(&treatments);
        }
        let at = random.below(flows.len() as u64) as usize;
        let (ether_type, payload) = flows[at].next(&mut random);
        let header = InnerHeader {
            addresses: flows[at].addresses,
            ether_type,
            offload: Offload::NONE,
        };
        if random.chance(0.03) && coder.room(treatment) > payload.len() + 40 {
            let id = random.next() as u16;
            coder.put_piece(|writer| writer.put_next(id, 9, &payload), treatment);
            let len = (payload.len() as u16).to_be_bytes();
            were.push([&[NEXT][..], &len, &id.to_be_bytes(), &[0, 9], &payload].concat());
            continue;
        }
        let is_gso = random.chance(0.03) && ether_type == 0x0800;
        let is_put = match is_gso {
            true => {
                let header = InnerHeader {
                    offload: GSO,
                    ..header
                };
                coder.put_frame(&header, &payload, treatment)
            }
            false => coder.put_frame(&header, &payload, treatment),
        };
        if is_put && is_gso {
            let mut bytes = subframe(&header, &payload);
            let offload_at = bytes.len() - payload.len();
            bytes[0] |= OFFLOAD.0;
            bytes.splice(offload_at..offload_at, [1, 16, 0, 54, 0, 100, 0, 34]);
            were.push(bytes);
        } else if is_put {
            were.push(subframe(&header, &payload));
        } else if !coder.make_room() {
            break;
        }
    }
    use packtrain_proto::coding::coder::Finished;
    let list = were;
    let were = list.concat();
    match coder.finish() {
        Finished::Plain(subframes) => {
            assert_eq!(subframes, were, "seed {seed}");
            seen.plain += 1;
        }
        Finished::Coded(head, content) => {
            assert!(
                content.len() + 5 <= room,
                "seed {seed}: longer than the train"
            );
            let mut coded = [&head.to_bytes()[..], content].concat();
            coded.resize(coded.len() + random.below(3) as usize * 20, 0);
            let restored = coded::restore(&coded, WITH);
            let restored = restored.unwrap_or_else(|| panic!("seed {seed} restores to nothing"));
            if let Some(at) = (0..were.len()).find(|&n| restored.subframes.get(n) != were.get(n)) {
                let mut start = 0;
                let frame = list.iter().find(|frame| {
                    start += frame.len();
                    start > at
                });
                let frame = frame.expect("it is in one of them");
                let start = start - frame.len();
                let end = were.len().min(start + 90).min(restored.subframes.len());
                panic!(
                    "seed {seed}: byte {} of a subframe is another:\n{:02x?}\nand not\n{:02x?}",
                    at - start,
                    &restored.subframes[start..end],
                    &were[start..end]
                );
            }
            assert_eq!(restored.subframes.len(), were.len(), "seed {seed}");
            assert!(restored.is_what_was, "seed {seed}: the checksum");
            for _ in 0..damages {
                both_agree_on_damaged(&coded, restorer, seed, &mut random, seen);
            }
            seen.coded += 1;
            seen.deltas += restored.deltas;
            seen.lz4_blocks += restored.lz4_blocks;
            seen.zstandard_blocks += restored.zstandard_blocks;
            for (sum, more) in seen.mixed_segments.iter_mut().zip(restored.mixed_segments) {
                *sum += more;
            }
        }
    }
}

#[test]
fn what_the_engine_codes_is_restored_bit_for_bit_by_a_reader_that_only_knows_the_document() {
    let (mut coder, mut seen) = (Coder::default(), Seen::default());
    let mut restorer = Restorer::default();
    let zstd = || Zstd::new(Known::Words.dictionary()).expect("there is memory");
    coder.set_dictionary(Some(zstd()));
    restorer.set_dictionary(Some(zstd()));
    for seed in 0..TRAINS {
        train(seed, &mut coder, &mut restorer, &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.coded > TRAINS / 2, "{seen:?}");
    assert!(seen.deltas as u64 > 5 * TRAINS, "{seen:?}");
    assert!(seen.damaged_and_restored > TRAINS / 2, "{seen:?}");
    assert!(seen.damaged_and_refused > TRAINS / 4, "{seen:?}");
    assert!(seen.lz4_blocks as u64 > TRAINS / 4, "{seen:?}");
    assert!(seen.zstandard_blocks as u64 > TRAINS / 8, "{seen:?}");
    let [bytes, sound @ ..] = seen.mixed_segments;
    assert!(bytes as u64 > TRAINS / 20, "{seen:?}");
    assert!(sound.iter().all(|&n| n as u64 > TRAINS / 100), "{seen:?}");
}
