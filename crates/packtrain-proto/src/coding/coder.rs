//! Packs subframes coded, while more of them fit for it.
//!
//! Frames are told apart from earlier ones of their flow as they come. What is to be compressed is collected, and
//! becomes a block when the train would be full otherwise; then there is room again, for less each time. So a train is
//! filled as far as what it carries allows, and nothing that was put into it has to be taken out.

use lz4_flex::block::{compress_into_with_dict, get_maximum_output_size};

use super::dictionary::Zstd;
use super::mixing::{self, Mark, Segment};
use super::references::{Kept, References};
use crate::buffer::{Buffer, LARGE_CAPACITY};
use crate::class::ClassId;
use crate::queue::frame::QueuedFrame;
use crate::wire::coded::{
    self, BLOCK_HEADER_LEN, Coding, HEAD_LEN, Head, PLAIN_MAX, STORED_HEADER_LEN,
};
use crate::wire::delta::{self, Reference, SLOTS_MAX, Slot};
use crate::wire::layout::Layout;
use crate::wire::subframe::{self, InnerHeader};
use crate::wire::train::TrainWriter;

/// Less than this is not worth a block of its own, unless it is the last.
const BLOCK_MIN: usize = 128;
/// The compressor is not asked more often for a train: what is left to gain by then is not worth it.
const ASKED_MAX: u32 = 24;
/// A train restores to so many bytes at most, or to four times what it may carry: who receives it gives all of them to
/// its host at once. LZ4 gains nothing by more, but where all is the same.
const FILL_MAX: usize = 8 * 1024;
/// Beyond these, no train is filled: of one that is coded, no length reaches [`PLAIN_MAX`].
const FILL_LIMIT: usize = PLAIN_MAX - 4096;

/// What may be done with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Treatment {
    /// It stands as it is.
    Plain,
    #[default]
    Headers,
    /// … and its payload is compressed.
    Payload,
    /// … with none of other classes, to see what it brings for this one.
    Trial(ClassId),
}

impl Treatment {
    fn is_for_compressor(self) -> bool {
        matches!(self, Treatment::Payload | Treatment::Trial(_))
    }

    /// Whether what is put so shares a block with what is put like the other.
    fn shares_block(self, other: Treatment) -> bool {
        self == other || !(self.is_for_compressor() || other.is_for_compressor())
    }
}

/// What compressing has made of a class's frames alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    pub class: ClassId,
    pub plain: usize,
    pub coded: usize,
}

/// What coding has brought for a train.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    pub is_coded: bool,
    /// … with the dictionary.
    pub by_dictionary: bool,
    /// Frames told apart from others.
    pub deltas: u32,
    /// Bytes that this saved, what coding itself takes counted.
    pub headers: usize,
    /// … and compressing them.
    pub payload: usize,
    /// Bytes that were given to the compressor.
    pub tried: usize,
}

/// How the subframes of a train are to be written.
#[derive(Debug, PartialEq, Eq)]
pub enum Finished<'a> {
    Plain(&'a [u8]),
    Coded(Head, &'a [u8]),
}

#[derive(Debug)]
pub struct Coder {
    coding: Coding,
    /// For subframes as they were, and with a head for those that are coded.
    room: usize,
    fill_max: usize,
    plain: Buffer,
    references: References,
    keys: [Keys; SLOTS_MAX],
    /// Subframes with headers told apart; up to `blocked` they are in `blocks`.
    stream: Vec<u8>,
    blocked: usize,
    blocks: Vec<u8>,
    /// Where in `stream`, and in `blocks`, what is compressed together begins.
    run: (usize, usize),
    /// How often the compressor was asked for this train.
    asked: u32,
    /// What the compressor makes, before it is known to fit; and what stood in its place, or is put behind it.
    made: Vec<u8>,
    undo: Vec<u8>,
    zstd: Option<Zstd>,
    mixing: Option<Box<mixing::Writer>>,
    mixed: Mixed,
    /// What is to be done with what is not in a block yet.
    treatment: Treatment,
    brought: Brought,
    trials: Vec<Tried>,
}

/// The block of [`Coding::Mixing`] that frames are put into as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mixed {
    /// It begins there in the stream.
    Open(usize),
    Closed,
    /// A frame was learned from that is not in it: both ends would not have learned the same any more.
    Full,
    /// … and it was the first: this train is not compressed.
    Off,
}

/// What a frame has in common with others, hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Keys {
    flow: u32,
    /// The same hosts.
    pair: u32,
}

impl Default for Coder {
    fn default() -> Coder {
        Coder {
            coding: Coding::Headers,
            room: 0,
            fill_max: 0,
            plain: Buffer::with_capacity(LARGE_CAPACITY),
            references: References::default(),
            keys: [Keys::default(); SLOTS_MAX],
            stream: Vec::new(),
            blocked: 0,
            blocks: Vec::new(),
            run: (0, 0),
            asked: 0,
            made: Vec::new(),
            undo: Vec::new(),
            zstd: None,
            mixing: None,
            mixed: Mixed::Closed,
            treatment: Treatment::Headers,
            brought: Brought::default(),
            trials: Vec::new(),
        }
    }
}

impl Coder {
    /// What [`Coding::Zstd`] compresses with: it is asked for only if there is one.
    pub fn set_dictionary(&mut self, zstd: Option<Zstd>) {
        self.zstd = zstd;
    }

    /// A new train, with room for so many bytes of subframes.
    pub fn begin(&mut self, coding: Coding, room: usize) {
        self.coding = coding;
        self.room = room;
        self.fill_max = FILL_MAX.max(4 * room).min(FILL_LIMIT);
        self.mixed = Mixed::Closed;
        if coding == Coding::Mixing {
            self.fill_max = self.fill_max.min(mixing::PLAIN_MAX);
            self.mixing.get_or_insert_default().begin_train();
        }
        self.plain.clear();
        self.references.clear();
        self.stream.clear();
        self.blocked = 0;
        self.blocks.clear();
        (self.run, self.asked) = ((0, 0), 0);
        self.brought = Brought::default();
        self.trials.clear();
    }

    /// Of the train that is finished.
    pub fn trials(&self) -> &[Tried] {
        &self.trials
    }

    pub fn is_empty(&self) -> bool {
        self.plain.is_empty()
    }

    /// Bytes of a subframe that fit for sure, be it that the train leaves as it was.
    pub fn room(&self, treatment: Treatment) -> usize {
        if self.mixed == Mixed::Full {
            return 0;
        }
        let changes =
            self.has_blocks() && self.pending() > 0 && !treatment.shares_block(self.treatment);
        // A piece is never mixed: it closes the block.
        let next_header = match self.mixed {
            Mixed::Open(_) => BLOCK_HEADER_LEN,
            _ if changes => BLOCK_HEADER_LEN,
            _ => 0,
        };
        let taken = (self.coded_len() + next_header).min(self.plain.len());
        let room = self.room.saturating_sub(taken);
        room.min(self.fill_max.saturating_sub(self.plain.len()))
    }

    fn has_blocks(&self) -> bool {
        self.coding != Coding::Headers
    }

    /// Bytes of what is not in a block yet.
    fn pending(&self) -> usize {
        self.stream.len() - self.blocked
    }

    /// How long the train is at most, if it leaves coded, and nothing that is pending shrinks.
    fn coded_len(&self) -> usize {
        match self.coding {
            Coding::Headers => HEAD_LEN + self.stream.len(),
            Coding::Lz4 | Coding::Zstd | Coding::Mixing => {
                let pending = match self.mixed {
                    Mixed::Open(_) => self.mixing.as_ref().map_or(0, |writer| writer.block_len()),
                    _ => self.pending(),
                };
                HEAD_LEN + self.blocks.len() + BLOCK_HEADER_LEN + pending
            }
        }
    }

    /// It can leave, coded or as it was.
    fn fits(&self) -> bool {
        self.plain.len() <= self.fill_max && self.plain.len().min(self.coded_len()) <= self.room
    }

    /// Whether it can leave if what is pending is compressed; then it is. Where that fails, the work was in vain: once a
    /// train, for it is full then, but for what is smaller.
    fn fits_compressed(&mut self) -> bool {
        let may_fit = self.compresses()
            && self.plain.len() <= self.fill_max
            && HEAD_LEN + self.blocks.len() + BLOCK_HEADER_LEN < self.room;
        if !may_fit {
            return false;
        }
        let (run, blocked, brought) = (self.run, self.blocked, self.brought);
        let trials = self.trials.len();
        self.undo.clear();
        self.undo.extend_from_slice(&self.blocks[run.1..]);
        self.close_block();
        if self.fits() {
            return true;
        }
        self.blocks.truncate(run.1);
        self.blocks.extend_from_slice(&self.undo);
        self.trials.truncate(trials);
        (self.run, self.blocked, self.brought) = (run, blocked, brought);
        false
    }

    /// The compressor takes what is pending, and is not asked too often.
    fn compresses(&self) -> bool {
        let takes = matches!(self.coding, Coding::Lz4 | Coding::Zstd);
        takes && self.treatment.is_for_compressor() && self.asked < ASKED_MAX
    }

    /// What is asked for, if this train still compresses.
    fn possible(&self, treatment: Treatment) -> Treatment {
        match self.mixed {
            Mixed::Off if treatment.is_for_compressor() => Treatment::Headers,
            _ => treatment,
        }
    }

    /// Sound looks random, and is not to who knows it.
    pub fn is_for_samples(&self, frame: &QueuedFrame) -> bool {
        let (ether_type, payload) = (frame.header.ether_type, frame.payload());
        self.coding == Coding::Mixing
            && Segment::of(&Layout::of(ether_type, payload), payload).is_samples()
    }

    /// Mixing takes each frame as it comes.
    fn mixes(&self, treatment: Treatment) -> bool {
        self.coding == Coding::Mixing && treatment.is_for_compressor()
    }

    /// Puts what stands in the stream from there into the open block. Whether it fits: else it is not in one.
    fn mix(&mut self, start: usize, frame: &Kept) -> bool {
        let Some(writer) = &mut self.mixing else {
            return false;
        };
        let begins_at = match self.mixed {
            Mixed::Open(at) => at,
            _ => {
                writer.begin_block();
                start
            }
        };
        let mark = writer.mark();
        let (payload, subframe) = (&self.plain[frame.payload_at..], &self.stream[start..]);
        let is_taken = writer.takes(subframe.len());
        if is_taken {
            writer.put(Segment::of(&frame.layout, payload), subframe);
        }
        let is_block = is_taken && writer.block_len() <= coded::BLOCK_MAX;
        self.mixed = Mixed::Open(begins_at);
        is_block && self.fits() || {
            self.take_back(begins_at, start, mark);
            false
        }
    }

    /// Mixing makes longer what it cannot foresee: whether the frame that it gave back fits as it is, which
    /// [`Coder::room`] has promised. No other is put then, or this train is not compressed.
    fn fits_unmixed(&mut self) -> bool {
        self.treatment = Treatment::Headers;
        self.fits()
    }

    /// What was put last, from `start` of the stream, into the block that begins there: it stands behind that.
    fn take_back(&mut self, begins_at: usize, start: usize, mark: Mark) {
        if begins_at < start {
            if let Some(writer) = &mut self.mixing {
                writer.end_at(mark);
            }
            self.undo.clear();
            self.undo.extend_from_slice(&self.stream[start..]);
            self.stream.truncate(start);
            self.close_block();
            self.stream.extend_from_slice(&self.undo);
        }
        let is_first = start == 0;
        self.mixed = if is_first { Mixed::Off } else { Mixed::Full };
    }

    /// Compresses what has been collected; whether there is more room now.
    pub fn make_room(&mut self) -> bool {
        if !self.compresses() || self.pending() < BLOCK_MIN {
            return false;
        }
        let before = self.room(self.treatment);
        self.close_block();
        self.room(self.treatment) > before
    }

    /// `false`, and nothing put, if it does not fit.
    #[must_use]
    pub fn put_frame(
        &mut self,
        header: &InnerHeader,
        payload: &[u8],
        treatment: Treatment,
    ) -> bool {
        let from = self.plain.len();
        let needed = subframe::overhead(header, payload, false) + payload.len();
        if self.mixed == Mixed::Full || from + needed > self.fill_max {
            return false;
        }
        let treatment = self.possible(treatment);
        TrainWriter::onto(&mut self.plain).put_frame(header, payload);
        self.turn_to(treatment);
        let frame = Kept {
            at: from,
            payload_at: self.plain.len() - payload.len(),
            payload_len: payload.len(),
            layout: Layout::of(header.ether_type, payload),
        };
        let start = self.stream.len();
        let is_reference = header.offload.gso.is_none();
        let keys = self.keys_of(&frame);
        let found = match is_reference && treatment != Treatment::Plain {
            true => self.write_delta(&frame, keys),
            false => None,
        };
        if found.is_none() {
            self.stream.extend_from_slice(&self.plain[from..]);
        }
        let fits = match self.mixes(treatment) {
            true => self.mix(start, &frame) || self.fits_unmixed(),
            false => self.fits() || self.fits_compressed(),
        };
        if !fits {
            self.plain.set_len(from);
            self.stream.truncate(start);
            return false;
        }
        self.brought.deltas += u32::from(found.is_some());
        if is_reference {
            let slot = match found {
                Some((slot, true)) => self.references.replace(slot, frame),
                _ => self.references.open(frame),
            };
            self.keys[slot] = keys;
        }
        true
    }

    /// A piece of a frame, for which there is room.
    pub fn put_piece(&mut self, write: impl FnOnce(&mut TrainWriter<'_>), treatment: Treatment) {
        let from = self.plain.len();
        write(&mut TrainWriter::onto(&mut self.plain));
        self.turn_to(match self.coding {
            Coding::Mixing => Treatment::Headers,
            _ => treatment,
        });
        self.stream.extend_from_slice(&self.plain[from..]);
        debug_assert!(self.fits(), "the room was asked for");
    }

    /// The train is full, or there is no more.
    pub fn finish(&mut self) -> Finished<'_> {
        let content = match self.coding {
            Coding::Headers => &self.stream,
            Coding::Lz4 | Coding::Zstd | Coding::Mixing => {
                self.close_block();
                &self.blocks
            }
        };
        if self.plain.len() <= HEAD_LEN + content.len() {
            self.brought.deltas = 0;
            return Finished::Plain(&self.plain);
        }
        let headers = self.plain.len() - self.stream.len();
        let payload = (self.stream.len()).saturating_sub(content.len());
        self.brought.is_coded = true;
        self.brought.by_dictionary = self.coding == Coding::Zstd;
        // The head, and blocks that do not shrink, are for what the other one saves.
        self.brought.payload = payload.min(self.plain.len() - content.len() - HEAD_LEN);
        self.brought.headers = (self.plain.len() - content.len() - HEAD_LEN) - self.brought.payload;
        debug_assert!(self.brought.headers <= headers);
        let head = Head {
            coding: self.coding,
            checksum: crc32fast::hash(&self.plain),
        };
        Finished::Coded(head, content)
    }

    /// … and is to stand there.
    pub fn finish_into(&mut self, writer: &mut TrainWriter<'_>) {
        match self.finish() {
            Finished::Plain(subframes) => writer.put_subframes(subframes),
            Finished::Coded(head, content) => {
                writer.set_coded();
                writer.put_subframes(&head.to_bytes());
                writer.put_subframes(content);
            }
        }
    }

    /// Of the train that is finished.
    pub fn brought(&self) -> &Brought {
        &self.brought
    }

    /// The frame that stands last in `plain`, told apart from an earlier one: from which, and whether that is of the
    /// same flow. `None`, and nothing written, where it is no gain.
    fn write_delta(&mut self, frame: &Kept, keys: Keys) -> Option<(usize, bool)> {
        let (slot, is_same_flow) = self.closest(keys, frame)?;
        let kept = self.references.get(slot).expect("it was found there");
        if !self.has_same_header(kept, frame) {
            return None;
        }
        let reference = Reference {
            payload: &self.plain[kept.payload_at..kept.payload_at + kept.payload_len],
            layout: kept.layout,
        };
        let told = Slot {
            number: slot as u8,
            opens_new: !is_same_flow,
        };
        let told = (!is_same_flow || slot != self.references.last()).then_some(told);
        let start = self.stream.len();
        let payload = &self.plain[frame.payload_at..];
        let layout = frame.layout;
        let is_written = delta::write(reference, told, payload, layout, &mut self.stream);
        if !is_written || self.stream.len() - start >= self.plain.len() - frame.at {
            self.stream.truncate(start);
            return None;
        }
        Some((slot, is_same_flow))
    }

    /// All before the payload, but for the length.
    fn has_same_header(&self, kept: &Kept, frame: &Kept) -> bool {
        let (a, b) = (
            &self.plain[kept.at..kept.payload_at],
            &self.plain[frame.at..frame.payload_at],
        );
        a[0] == b[0] && a[3..] == b[3..]
    }

    /// The frame from which this one differs least, as far as hashes tell; and whether it is of the same flow.
    fn closest(&self, keys: Keys, frame: &Kept) -> Option<(usize, bool)> {
        let last = self.references.last();
        if self.references.get(last)?.layout == frame.layout && self.keys[last].flow == keys.flow {
            return Some((last, true));
        }
        let (mut same_pair, mut same_layout) = (None, None);
        for slot in 0..SLOTS_MAX {
            let Some(kept) = self.references.get(slot) else {
                break;
            };
            if kept.layout != frame.layout {
                continue;
            }
            if self.keys[slot].flow == keys.flow {
                return Some((slot, true));
            }
            if self.keys[slot].pair == keys.pair {
                same_pair = Some((slot, false));
            }
            same_layout = Some((slot, false));
        }
        same_pair.or(same_layout)
    }

    fn keys_of(&self, frame: &Kept) -> Keys {
        let payload = &self.plain[frame.payload_at..frame.payload_at + frame.payload_len];
        let pair = hash(0, &payload[frame.layout.addresses()]);
        let flow = match frame.layout.has_transport() {
            false => pair,
            true => {
                let at = usize::from(frame.layout.transport_at);
                hash(pair, &payload[at..at + 4])
            }
        };
        Keys { flow, pair }
    }

    /// What is put next is to be compressed, or not: what was put before gets its block.
    fn turn_to(&mut self, treatment: Treatment) {
        if self.has_blocks() && !treatment.shares_block(self.treatment) {
            self.close_block();
            self.begin_run();
        }
        self.treatment = treatment;
    }

    /// What is put from now on is not compressed with what is there.
    fn begin_run(&mut self) {
        self.run = (self.stream.len(), self.blocks.len());
    }

    /// What is pending gets its block.
    fn close_block(&mut self) {
        let pending = self.pending();
        if pending == 0 {
            return;
        }
        if let Mixed::Open(_) = self.mixed {
            self.close_mixed();
            return;
        }
        if !self.treatment.is_for_compressor() {
            self.store();
            return;
        }
        self.asked += 1;
        self.brought.tried += pending;
        let before = self.blocks.len();
        // LZ4 refers to what is there, and makes a block of what is new; Zstandard makes one of both.
        let from = match self.coding {
            Coding::Zstd => self.run,
            _ => (self.blocked, before),
        };
        // What is longer than a block can be stands as it is.
        let len = self.compress(from.0).filter(|len| *len <= coded::BLOCK_MAX);
        let stored = before + STORED_HEADER_LEN + pending;
        let coded = len.map(|len| from.1 + BLOCK_HEADER_LEN + len);
        match coded.filter(|coded| *coded < stored) {
            Some(_) => {
                let len = len.expect("it was compressed");
                let header = coded::block_header(len, self.stream.len() - from.0);
                self.blocks.truncate(from.1);
                self.blocks.extend_from_slice(&header);
                self.blocks.extend_from_slice(&self.made[..len]);
                self.blocked = self.stream.len();
            }
            None => {
                self.store();
                self.begin_run();
            }
        }
        if let Treatment::Trial(class) = self.treatment {
            self.trials.push(Tried {
                class,
                plain: pending,
                coded: self.blocks.len().saturating_sub(before),
            });
        }
    }

    /// Frames are in the block already.
    fn close_mixed(&mut self) {
        let Some(writer) = &mut self.mixing else {
            return;
        };
        let plain = self.stream.len() - self.blocked;
        let block = writer.finish_block();
        let coded = BLOCK_HEADER_LEN + block.len();
        let header = coded::block_header(block.len(), plain);
        self.blocks.extend_from_slice(&header);
        self.blocks.extend_from_slice(block);
        self.blocked = self.stream.len();
        self.mixed = Mixed::Closed;
        self.brought.tried += plain;
        if let Treatment::Trial(class) = self.treatment {
            let tried = Tried {
                class,
                plain,
                coded,
            };
            self.trials.push(tried);
        }
    }

    /// `stream` from there on, into `made`; gives how long that is.
    fn compress(&mut self, from: usize) -> Option<usize> {
        let (known, plain) = self.stream.split_at(from);
        match (self.coding, &mut self.zstd) {
            (Coding::Zstd, Some(zstd)) => {
                self.made.resize(Zstd::len_max(plain.len()), 0);
                zstd.compress(plain, &mut self.made)
            }
            _ => {
                self.made.resize(get_maximum_output_size(plain.len()), 0);
                compress_into_with_dict(plain, &mut self.made, known).ok()
            }
        }
    }

    /// As it is.
    fn store(&mut self) {
        for stored in self.stream[self.blocked..].chunks(coded::BLOCK_MAX) {
            self.blocks
                .extend_from_slice(&coded::stored_header(stored.len()));
            self.blocks.extend_from_slice(stored);
        }
        self.blocked = self.stream.len();
    }
}

fn hash(seed: u32, bytes: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = bytes
        .chunks(4)
        .fold(u64::from(seed) ^ FACTOR, |mixed, chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            (mixed ^ u64::from(u32::from_ne_bytes(word))).wrapping_mul(FACTOR)
        });
    (mixed >> 32) as u32
}
