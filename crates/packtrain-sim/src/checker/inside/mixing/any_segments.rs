//! Blocks that no sender would make, before the slow reader and the engine's: segments of all lengths and kinds,
//! whose bytes are drawn as the chances have it, so that they are as likely as they are strange.

use packtrain_proto::coding::restore::Restorer;

use super::arithmetic::Bits;
use super::*;
use crate::checker::inside::coded;
use crate::random::Random;

/// A block that is written bit by bit.
struct Writer<'a> {
    block: Vec<u8>,
    low: u32,
    high: u32,
    /// Bits that are to be written; behind them, drawn ones.
    wanted: Vec<bool>,
    next: usize,
    random: &'a mut Random,
}

impl Writer<'_> {
    fn new(random: &mut Random) -> Writer<'_> {
        Writer {
            block: Vec::new(),
            low: 0,
            high: u32::MAX,
            wanted: Vec::new(),
            next: 0,
            random,
        }
    }

    fn want(&mut self, bytes: &[u8]) {
        self.next = 0;
        let bits = bytes
            .iter()
            .flat_map(|byte| (0..8).map(move |n| byte << n & 0x80 != 0));
        self.wanted = bits.collect();
    }

    /// With one byte more a reader has enough, and takes three zeros for the rest of its word.
    fn finish(mut self) -> Vec<u8> {
        self.block.push((self.high >> 24) as u8);
        self.block
    }
}

impl Bits for Writer<'_> {
    fn bit(&mut self, chance: i64) -> bool {
        let is_drawn = self.random.below(4096) < chance as u64;
        let bit = self.wanted.get(self.next).copied().unwrap_or(is_drawn);
        self.next += 1;
        let (r, chance) = (u64::from(self.high - self.low), chance as u64);
        let middle = self.low + ((r >> 12) * chance + (((r & 4095) * chance) >> 12)) as u32;
        (self.low, self.high) = if bit {
            (self.low, middle)
        } else {
            (middle + 1, self.high)
        };
        while self.low >> 24 == self.high >> 24 {
            self.block.push((self.high >> 24) as u8);
            (self.low, self.high) = (self.low << 8, self.high << 8 | 255);
        }
        bit
    }
}

/// A subframe that needs to be no packet: a byte of flags and kind, the length, an EtherType.
fn header(len: usize) -> [u8; 5] {
    let [high, low] = (len as u16).to_be_bytes();
    [0x41, high, low, 0x12, 0x34]
}

/// A train in the making, of frames each of which is one segment or several.
struct Train {
    mixing: Mixing,
    plain: Vec<u8>,
    content: Vec<u8>,
}

impl Train {
    fn new() -> Train {
        Train {
            mixing: Mixing::new(),
            plain: Vec::new(),
            content: Vec::new(),
        }
    }

    /// A block of so many bytes of a frame, the first five its header, which comes in one segment; the others in
    /// segments of so many at most.
    fn block(&mut self, len: usize, segment_max: usize, random: &mut Random) {
        let start = self.plain.len();
        let end = start + 5 + len;
        let mut writer = Writer::new(random);
        while self.plain.len() < end {
            let left = end - self.plain.len();
            let all = writer.random.between(1, segment_max.min(left) as u64) as usize;
            let all = if self.plain.len() == start {
                all.max(5)
            } else {
                all
            };
            let headers = match writer.random.below(3) {
                _ if self.plain.len() == start => 5,
                0 => 0,
                1 => all.min(255),
                _ => writer.random.below(all.min(256) as u64) as usize,
            };
            let kind = writer.random.below(3) as u8;
            let [high, low] = ((all - headers) as u16).to_be_bytes();
            let mut told = vec![kind, headers as u8, high, low];
            if self.plain.len() == start {
                told.extend(header(len));
            }
            writer.want(&told);
            let is_made = self.mixing.segment(&mut writer, &mut self.plain, end);
            is_made.expect("so it was told");
        }
        let block = writer.finish();
        for number in [block.len(), end - start] {
            self.content.extend((number as u16).to_be_bytes());
        }
        self.content.extend(block);
    }

    /// A frame of so many bytes as it was.
    fn stored(&mut self, len: usize) {
        let frame = [&header(len)[..], &vec![7; len]].concat();
        self.content
            .extend((0x8000 | frame.len() as u16).to_be_bytes());
        self.content.extend(&frame);
        self.plain.extend(frame);
    }

    /// What both readers make of it, with the checksum of what it was.
    fn both(&self) -> Option<coded::Restored> {
        let crc = coded::crc32(&self.plain).to_be_bytes();
        both(&[&[coded::MIXING], &crc[..], &self.content].concat())
    }
}

fn both(bytes: &[u8]) -> Option<coded::Restored> {
    let ours = coded::restore(bytes, None).filter(|restored| restored.is_what_was);
    let mut out = vec![0; 1 << 16];
    let theirs = Restorer::default().restore(bytes, &mut out).ok();
    let theirs = theirs.map(|len| &out[..len]);
    assert_eq!(ours.as_ref().map(|ours| &ours.subframes[..]), theirs);
    ours
}

#[test]
fn segments_of_any_length_and_kind_are_restored_by_both() {
    let mut segments = [0; 3];
    for seed in 0..150 {
        let random = &mut Random::new(seed);
        let mut train = Train::new();
        for _ in 0..random.between(1, 5) {
            match random.below(4) {
                0 => train.stored(random.magnitude(1, 300) as usize),
                _ => {
                    let segment_max = random.magnitude(5, 2000) as usize;
                    train.block(random.magnitude(1, 800) as usize, segment_max, random);
                }
            }
        }
        let restored = train.both().unwrap_or_else(|| panic!("seed {seed}"));
        assert_eq!(restored.subframes, train.plain, "seed {seed}");
        for (sum, more) in segments.iter_mut().zip(restored.mixed_segments) {
            *sum += more;
        }
    }
    println!("{segments:?}");
    assert!(segments.iter().all(|&n| n > 500), "{segments:?}");
}

#[test]
fn a_block_ends_neither_before_its_last_bit_nor_behind() {
    let mut refused_for_zeros_alone = 0;
    for seed in 0..100 {
        let random = &mut Random::new(seed);
        let mut train = Train::new();
        train.block(random.between(1, 30) as usize, 10, random);
        assert!(train.both().is_some(), "seed {seed}");
        let mut set_len = |change: fn(&mut Vec<u8>)| {
            let was = train.content.clone();
            change(&mut train.content);
            let len = train.content.len() as u8 - 4;
            train.content[1] = len;
            assert!(train.both().is_none(), "seed {seed}");
            let mut code = Code::new(&train.content[4..]);
            let mut plain = Vec::new();
            let end = train.plain.len();
            let is_read = Mixing::new().segments_of(&mut code, &mut plain, end);
            refused_for_zeros_alone += u32::from(is_read.is_some() && plain == train.plain);
            train.content = was;
        };
        set_len(|content| content.push(0));
        set_len(|content| content.push(0x5a));
        set_len(|content| {
            content.pop();
        });
    }
    assert!(refused_for_zeros_alone > 150, "{refused_for_zeros_alone}");
    // No plain byte at all: any one byte is such a block.
    for (block, is_one) in [(&[7][..], true), (&[0, 0], false)] {
        let mut train = Train::new();
        train.content.extend([0, block.len() as u8, 0, 0]);
        train.content.extend(block);
        train.stored(3);
        assert_eq!(train.both().is_some(), is_one);
    }
}

#[test]
fn no_more_is_restored_than_a_train_may_hold() {
    for (more, is_allowed) in [(0, true), (1, false)] {
        let random = &mut Random::new(7);
        let mut train = Train::new();
        train.stored(15_000 - 5);
        train.block(1384 - 5 + more, 2000, random);
        assert_eq!(train.both().is_some(), is_allowed);
        let mut train = Train::new();
        train.block(1384 - 5, 2000, random);
        train.stored(15_000 - 5 + more);
        assert_eq!(train.both().is_some(), is_allowed);
    }
}

#[test]
fn no_more_is_coded_than_a_history_may_hold() {
    // A first segment of 9 bytes, told ones too, and others of 5.
    for (more, is_allowed) in [(0, true), (1, false)] {
        let random = &mut Random::new(7);
        let mut train = Train::new();
        train.mixing.history.len_max = usize::MAX;
        for len in [800, 800, 800, 800, 887 + more] {
            train.block(len, 1, random);
        }
        let coded = train.mixing.history.bytes().len();
        assert_eq!(coded, 20_480 + 5 * more);
        train.stored(9);
        assert_eq!(train.both().is_some(), is_allowed);
    }
}

#[test]
fn a_segment_that_tells_what_cannot_be_is_refused() {
    // Of an unknown kind, with nothing in it, and with more than is left.
    for told in [
        [3, 5, 0, 0],
        [0xff, 5, 0, 0],
        [0, 0, 0, 0],
        [0, 5, 0, 6],
        [1, 11, 0, 0],
    ] {
        let random = &mut Random::new(7);
        let mut train = Train::new();
        let mut writer = Writer::new(random);
        writer.want(&[&told[..], &header(5)].concat());
        let is_made = train.mixing.segment(&mut writer, &mut train.plain, 10);
        assert!(is_made.is_none());
        train.content.extend([0, 60, 0, 10]);
        train.content.extend(writer.finish());
        train.content.resize(64, 0x5a);
        assert!(train.both().is_none());
    }
}
