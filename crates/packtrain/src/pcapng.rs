//! The file format that Wireshark reads: blocks, each with its length before and behind it.
//!
//! After draft-ietf-opsawg-pcapng, the blocks that a capture needs. Times are nanoseconds since 1970, and
//! everything is little-endian. We write it ourselves because the crate that does (`pcap-file`, its
//! release candidate as well) puts the halves of a statistics block's time the wrong way round.
//!
//! ```text
//!  0                   4                   8                     len - 4        len
//! +-------------------+-------------------+---------------------+----------------+
//! | block type        | len, 4 × n        | body, options       | len again      |
//! +-------------------+-------------------+---------------------+----------------+
//!  option: code (2), length (2), value, padded to a multiple of 4; the last has code 0
//! ```

use std::io::{self, Read};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const LINK_TYPE_ETHERNET: u16 = 1;
/// Powers of ten that a second is divided into.
const NANOSECONDS: u8 = 9;

mod option {
    pub const END: u16 = 0;
    pub const COMMENT: u16 = 1;
    pub const SHB_USERAPPL: u16 = 4;
    pub const EPB_FLAGS: u16 = 2;
    pub const IF_NAME: u16 = 2;
    pub const IF_DESCRIPTION: u16 = 3;
    pub const IF_SPEED: u16 = 8;
    pub const IF_TSRESOL: u16 = 9;
    pub const ISB_STARTTIME: u16 = 2;
    pub const ISB_ENDTIME: u16 = 3;
    pub const ISB_IFRECV: u16 = 4;
    pub const ISB_IFDROP: u16 = 5;
}

/// Whence frames come; numbered in the order of the descriptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub description: Option<String>,
    pub speed_bps: Option<u64>,
    /// Most bytes kept of a frame; 0: all.
    pub snap_len: u32,
}

/// Which way a frame passed the interface: the lowest two bits of its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    In = 1,
    Out = 2,
}

/// A frame of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    pub interface: u32,
    pub unix_nanos: u64,
    /// As many of them as are kept.
    pub bytes: &'a [u8],
    /// How many there were.
    pub len: u32,
    pub direction: Option<Direction>,
    pub comment: Option<&'a str>,
}

/// What is known of an interface at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    pub interface: u32,
    pub from_unix_nanos: u64,
    pub until_unix_nanos: u64,
    /// Frames that came, those that are not in the file included.
    pub received: u64,
    pub dropped: u64,
}

/// Begins a file.
pub fn section_header(out: &mut Vec<u8>, application: &str) {
    block(out, SECTION_HEADER, |out| {
        out.extend(BYTE_ORDER.to_le_bytes());
        out.extend(1u16.to_le_bytes());
        out.extend(0u16.to_le_bytes());
        // Nobody knows yet how long it will be.
        out.extend(u64::MAX.to_le_bytes());
        put_option(out, option::SHB_USERAPPL, application.as_bytes());
        put_option(out, option::END, &[]);
    });
}

pub fn interface_description(out: &mut Vec<u8>, interface: &Interface) {
    block(out, INTERFACE_DESCRIPTION, |out| {
        out.extend(LINK_TYPE_ETHERNET.to_le_bytes());
        out.extend(0u16.to_le_bytes());
        out.extend(interface.snap_len.to_le_bytes());
        put_option(out, option::IF_NAME, interface.name.as_bytes());
        if let Some(description) = &interface.description {
            put_option(out, option::IF_DESCRIPTION, description.as_bytes());
        }
        if let Some(bps) = interface.speed_bps {
            put_option(out, option::IF_SPEED, &bps.to_le_bytes());
        }
        put_option(out, option::IF_TSRESOL, &[NANOSECONDS]);
        put_option(out, option::END, &[]);
    });
}

pub fn enhanced_packet(out: &mut Vec<u8>, packet: &Packet<'_>) {
    block(out, ENHANCED_PACKET, |out| {
        out.extend(packet.interface.to_le_bytes());
        put_time(out, packet.unix_nanos);
        out.extend((packet.bytes.len() as u32).to_le_bytes());
        out.extend(packet.len.to_le_bytes());
        out.extend(packet.bytes);
        pad(out, packet.bytes.len());
        if let Some(direction) = packet.direction {
            let flags = (direction as u32).to_le_bytes();
            put_option(out, option::EPB_FLAGS, &flags);
        }
        if let Some(comment) = packet.comment {
            put_option(out, option::COMMENT, comment.as_bytes());
        }
        if packet.direction.is_some() || packet.comment.is_some() {
            put_option(out, option::END, &[]);
        }
    });
}

pub fn interface_statistics(out: &mut Vec<u8>, statistics: &Statistics) {
    let time = |nanos: u64| {
        let mut bytes = Vec::with_capacity(8);
        put_time(&mut bytes, nanos);
        bytes
    };
    block(out, INTERFACE_STATISTICS, |out| {
        out.extend(statistics.interface.to_le_bytes());
        put_time(out, statistics.until_unix_nanos);
        let from = time(statistics.from_unix_nanos);
        put_option(out, option::ISB_STARTTIME, &from);
        let until = time(statistics.until_unix_nanos);
        put_option(out, option::ISB_ENDTIME, &until);
        let received = statistics.received.to_le_bytes();
        put_option(out, option::ISB_IFRECV, &received);
        let dropped = statistics.dropped.to_le_bytes();
        put_option(out, option::ISB_IFDROP, &dropped);
        put_option(out, option::END, &[]);
    });
}

fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let len = (out.len() - start + 4) as u32;
    out[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    out.extend(len.to_le_bytes());
}

/// The upper half first, whatever the byte order within the halves.
fn put_time(out: &mut Vec<u8>, unix_nanos: u64) {
    out.extend(((unix_nanos >> 32) as u32).to_le_bytes());
    out.extend((unix_nanos as u32).to_le_bytes());
}

fn put_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(out, value.len());
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.resize(out.len() + len.next_multiple_of(4) - len, 0);
}

/// A block of our own making, as it comes over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub bytes: Vec<u8>,
}

/// Larger than any of ours: a frame has at most 64 KiB and a comment.
const BLOCK_BYTES_MAX: usize = 1 << 20;
const BLOCK_BYTES_MIN: usize = 12;

impl Block {
    /// The next one, whole; `None` at the end, also where that cuts one off.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Block>> {
        let mut bytes = vec![0; 8];
        if !fill(from, &mut bytes)? {
            return Ok(None);
        }
        let len = u32::from_le_bytes(bytes[4..].try_into().expect("four bytes")) as usize;
        let is_len = (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&len) && len.is_multiple_of(4);
        if !is_len {
            let what = format!("a block of {len} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        bytes.resize(len, 0);
        match fill(from, &mut bytes[8..])? {
            true => Ok(Some(Block { bytes })),
            false => Ok(None),
        }
    }

    pub fn is_packet(&self) -> bool {
        self.kind() == ENHANCED_PACKET
    }

    /// The frame in it, if there is one.
    pub fn packet(&self) -> Option<Packet<'_>> {
        /// Behind type and length.
        const FIXED: usize = 28;
        if !self.is_packet() {
            return None;
        }
        let word = |at: usize| -> Option<u32> {
            let bytes = self.bytes.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
        };
        let kept = word(20)? as usize;
        let bytes = self.bytes.get(FIXED..FIXED.checked_add(kept)?)?;
        let options = FIXED + kept.next_multiple_of(4);
        let flags = self.option(options, option::EPB_FLAGS);
        Some(Packet {
            interface: word(8)?,
            unix_nanos: u64::from(word(12)?) << 32 | u64::from(word(16)?),
            bytes,
            len: word(24)?,
            direction: match flags.and_then(<[u8]>::first).map(|flags| flags & 3) {
                Some(1) => Some(Direction::In),
                Some(2) => Some(Direction::Out),
                _ => None,
            },
            comment: self
                .option(options, option::COMMENT)
                .and_then(|text| std::str::from_utf8(text).ok()),
        })
    }

    /// Of statistics: how many frames the capture dropped.
    pub fn dropped(&self) -> Option<u64> {
        if self.kind() != INTERFACE_STATISTICS {
            return None;
        }
        let value = self.option(20, option::ISB_IFDROP)?;
        Some(u64::from_le_bytes(value.try_into().ok()?))
    }

    /// The value of the first option of this kind, of those that begin there.
    fn option(&self, from: usize, wanted: u16) -> Option<&[u8]> {
        let mut options = self.bytes.get(from..self.bytes.len() - 4)?;
        loop {
            let (head, rest) = options.split_at_checked(4)?;
            let code = u16::from_le_bytes([head[0], head[1]]);
            let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
            if code == wanted {
                return rest.get(..len);
            }
            options = rest.get(len.next_multiple_of(4)..)?;
        }
    }

    fn kind(&self) -> u32 {
        u32::from_le_bytes(self.bytes[..4].try_into().expect("four bytes"))
    }
}

/// Whether there was enough to fill it.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// What a reader who knows nothing of the writer finds: type, fixed part by 32-bit words, and
    /// options behind so many words and a frame.
    #[derive(Debug)]
    pub struct Read {
        pub kind: u32,
        pub body: Vec<u8>,
    }

    impl Read {
        pub fn all(mut file: &[u8]) -> Vec<Read> {
            let mut blocks = Vec::new();
            while !file.is_empty() {
                let kind = word(file, 0);
                let len = word(file, 4) as usize;
                assert_eq!(word(file, len - 4) as usize, len, "the length behind");
                assert_eq!(len % 4, 0);
                let body = file[8..len - 4].to_vec();
                blocks.push(Read { kind, body });
                file = &file[len..];
            }
            blocks
        }

        /// Values by their code, from `at` on.
        pub fn options(&self, mut at: usize) -> Vec<(u16, Vec<u8>)> {
            let mut options = Vec::new();
            while at < self.body.len() {
                let both = word(&self.body, at);
                let (code, len) = (both as u16, (both >> 16) as usize);
                options.push((code, self.body[at + 4..at + 4 + len].to_vec()));
                at += 4 + len.div_ceil(4) * 4;
            }
            assert_eq!(at, self.body.len());
            options
        }

        pub fn time(&self, at: usize) -> u64 {
            u64::from(word(&self.body, at)) << 32 | u64::from(word(&self.body, at + 4))
        }

        pub fn frame(&self) -> &[u8] {
            &self.body[20..20 + word(&self.body, 12) as usize]
        }

        pub fn comment(&self) -> Option<String> {
            let options = self.options(20 + self.frame().len().div_ceil(4) * 4);
            let (_, text) = options.into_iter().find(|(code, _)| *code == 1)?;
            Some(String::from_utf8(text).unwrap())
        }
    }

    pub fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn interface(speed_bps: Option<u64>) -> Interface {
        Interface {
            name: "a-b.0 a>b".to_owned(),
            description: None,
            speed_bps,
            snap_len: 96,
        }
    }

    #[test]
    fn a_section_says_who_wrote_it_and_has_no_length() {
        let mut file = Vec::new();
        section_header(&mut file, "packtrain");
        let [block] = &Read::all(&file)[..] else {
            panic!("one block");
        };
        assert_eq!(block.kind, 0x0a0d0d0a);
        assert_eq!(word(&block.body, 0), 0x1a2b3c4d);
        assert_eq!(word(&block.body, 4), 1, "version 1.0");
        assert_eq!(&block.body[8..16], [0xff; 8]);
        let options = [(4, b"packtrain".to_vec()), (0, vec![])];
        assert_eq!(block.options(16), options);
    }

    #[test]
    fn an_interface_is_ethernet_and_counts_nanoseconds() {
        let mut file = Vec::new();
        interface_description(&mut file, &interface(Some(10_000_000)));
        interface_description(&mut file, &interface(None));
        let [rated, unrated] = &Read::all(&file)[..] else {
            panic!("two blocks");
        };
        assert_eq!((rated.kind, unrated.kind), (1, 1));
        assert_eq!(
            (word(&rated.body, 0), word(&rated.body, 4)),
            (1, 96),
            "link type, snap length"
        );
        let name = (2, b"a-b.0 a>b".to_vec());
        let speed = (8, 10_000_000u64.to_le_bytes().to_vec());
        let resolution = (9, vec![9]);
        let end = (0, vec![]);
        assert_eq!(
            rated.options(8),
            [name.clone(), speed, resolution.clone(), end.clone()]
        );
        assert_eq!(unrated.options(8), [name, resolution, end]);
    }

    #[test]
    fn an_interface_may_say_more_of_itself_and_a_packet_which_way_it_went() {
        let mut file = Vec::new();
        let described = Interface {
            description: Some("past the engine".to_owned()),
            ..interface(None)
        };
        interface_description(&mut file, &described);
        for (direction, comment) in [(Direction::In, None), (Direction::Out, Some("late"))] {
            let packet = Packet {
                interface: 0,
                unix_nanos: 0,
                bytes: &[0; 14],
                len: 14,
                direction: Some(direction),
                comment,
            };
            enhanced_packet(&mut file, &packet);
        }
        let [described, inbound, outbound] = &Read::all(&file)[..] else {
            panic!("three blocks");
        };
        assert_eq!(described.options(8)[1], (3, b"past the engine".to_vec()));
        let flags = |flags: u32| (2, flags.to_le_bytes().to_vec());
        assert_eq!(inbound.options(20 + 16), [flags(1), (0, vec![])]);
        assert_eq!(outbound.options(20 + 16)[0], flags(2));
        assert_eq!(outbound.comment().as_deref(), Some("late"));
    }

    #[test]
    fn a_packet_has_its_time_in_halves_its_bytes_padded_and_its_comment() {
        let unix_nanos = 0x1234_5678_9abc_def0;
        for len in 14..20 {
            let bytes: Vec<u8> = (0..len).collect();
            let packet = |comment| Packet {
                interface: 3,
                unix_nanos,
                bytes: &bytes,
                len: 1514,
                direction: None,
                comment,
            };
            let mut file = Vec::new();
            enhanced_packet(&mut file, &packet(None));
            enhanced_packet(&mut file, &packet(Some("dropped: loss")));
            let [bare, told] = &Read::all(&file)[..] else {
                panic!("two blocks");
            };
            assert_eq!((bare.kind, word(&bare.body, 0)), (6, 3));
            assert_eq!(word(&bare.body, 4), 0x1234_5678);
            assert_eq!(bare.time(4), unix_nanos);
            assert_eq!(word(&bare.body, 16), 1514);
            assert_eq!((bare.frame(), told.frame()), (&bytes[..], &bytes[..]));
            assert_eq!(bare.comment(), None);
            assert_eq!(told.comment().as_deref(), Some("dropped: loss"));
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        for (len, direction, comment) in [
            (14, None, None),
            (15, None, Some("dropped: queue full")),
            (60, Some(Direction::Out), None),
            (61, Some(Direction::In), Some("late")),
        ] {
            let bytes: Vec<u8> = (0..len).collect();
            let packet = Packet {
                interface: 2,
                unix_nanos: 0x1234_5678_9abc_def0,
                bytes: &bytes,
                len: 1514,
                direction,
                comment,
            };
            let mut file = Vec::new();
            enhanced_packet(&mut file, &packet);
            let block = Block::read(&mut &file[..]).unwrap().unwrap();
            assert_eq!(block.packet(), Some(packet));
            // Who says that more is kept than there is has no frame.
            let mut lying = block.clone();
            lying.bytes[20..24].copy_from_slice(&200u32.to_le_bytes());
            assert_eq!(lying.packet(), None);
        }
        let mut file = Vec::new();
        section_header(&mut file, "packtrain");
        let block = Block::read(&mut &file[..]).unwrap().unwrap();
        assert_eq!(block.packet(), None);
    }

    #[test]
    fn statistics_tell_what_came_and_what_was_dropped_of_it() {
        let statistics = Statistics {
            interface: 1,
            from_unix_nanos: 0x1_0000_0002,
            until_unix_nanos: 0x3_0000_0004,
            received: 1000,
            dropped: 7,
        };
        let mut file = Vec::new();
        interface_statistics(&mut file, &statistics);
        let [block] = &Read::all(&file)[..] else {
            panic!("one block");
        };
        assert_eq!((block.kind, word(&block.body, 0)), (5, 1));
        assert_eq!(block.time(4), 0x3_0000_0004);
        let halves = |high: u32, low: u32| [high.to_le_bytes(), low.to_le_bytes()].concat();
        let options = [
            (2, halves(1, 2)),
            (3, halves(3, 4)),
            (4, 1000u64.to_le_bytes().to_vec()),
            (5, 7u64.to_le_bytes().to_vec()),
            (0, vec![]),
        ];
        assert_eq!(block.options(12), options);
    }

    #[test]
    fn a_stream_is_read_block_by_block_and_one_that_was_cut_off_is_none() {
        let mut file = Vec::new();
        section_header(&mut file, "packtrain");
        let packet = Packet {
            interface: 0,
            unix_nanos: 1,
            bytes: &[0; 60],
            len: 60,
            direction: None,
            comment: None,
        };
        enhanced_packet(&mut file, &packet);
        let statistics = Statistics {
            interface: 0,
            from_unix_nanos: 0,
            until_unix_nanos: 0,
            received: 3,
            dropped: 2,
        };
        interface_statistics(&mut file, &statistics);
        let whole = file.len();
        enhanced_packet(&mut file, &packet);
        for cut in [whole, whole + 3, whole + 8, file.len() - 1] {
            let mut stream = &file[..cut];
            let mut blocks = Vec::new();
            while let Some(block) = Block::read(&mut stream).unwrap() {
                blocks.push(block);
            }
            let packets: Vec<bool> = blocks.iter().map(Block::is_packet).collect();
            assert_eq!(packets, [false, true, false]);
            let dropped: Vec<_> = blocks.iter().map(Block::dropped).collect();
            assert_eq!(dropped, [None, None, Some(2)]);
            let again: Vec<u8> = blocks.into_iter().flat_map(|b| b.bytes).collect();
            assert_eq!(again, file[..whole]);
        }
        assert!(Block::read(&mut &[0; 12][..]).is_err(), "no block is empty");
    }
}
