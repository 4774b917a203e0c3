//! Frames as a file has them, made ready: looked at, filled up, in the order of their times.

use std::collections::HashMap;

use packtrain_proto::class::{Action, Class, ClassTable};
use packtrain_proto::mac_map::{MacHashBuilder, MacMap};
use packtrain_proto::time::{Duration, Instant};
use packtrain_proto::wire::ethernet::MacAddr;

use super::frame::{Captured, Examiner, Unfit};
use super::peak::Peak;
use super::receive_filter::ReceiveFilter;
use crate::random::Random;

/// Few enough that they stay in a processor's memory while they are replayed.
const BATCH_FRAMES: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;
/// Of each batch so many wait for the next, in case that earlier ones come yet: captures of several queues or
/// interfaces are out of order by a few.
const HELD_FRAMES: usize = 512;
/// … but no more than a part of it, for they are copied.
const HELD_PART: usize = 8;
/// What comes first in the file need not be the first by its time.
const LEAD: Duration = Duration::from_secs(1);
/// Longest frame that there is, with its tags.
const FRAME_BYTES_MAX: usize = 65_536 + 32;
/// Senders of which the busiest is looked for.
const SENDERS_MAX: usize = 1024;

/// Frames that follow each other in time.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    frames: Vec<Captured>,
}

impl Batch {
    pub fn frames(&self) -> &[Captured] {
        &self.frames
    }

    pub fn bytes(&self, frame: &Captured) -> &[u8] {
        &self.bytes[frame.start..frame.start + frame.len]
    }

    /// Who sends or is sent to in it, those with the most frames first.
    pub fn hosts(&self) -> Vec<MacAddr> {
        let mut counts: HashMap<MacAddr, (u64, usize)> = HashMap::new();
        for (at, frame) in self.frames.iter().enumerate() {
            for address in [frame.source, frame.destination] {
                if !address.is_group() && !address.is_zero() {
                    counts.entry(address).or_insert((0, at)).0 += 1;
                }
            }
        }
        let mut hosts: Vec<_> = counts.into_iter().collect();
        // Of equals the one that came first: the same order in each run.
        hosts.sort_by_key(|&(address, (count, first))| (std::cmp::Reverse(count), first, address));
        hosts.into_iter().map(|(address, _)| address).collect()
    }
}

/// What was taken in, and what of it was out of the ordinary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntakeCounts {
    /// Of the file; and those that are replayed.
    pub frames: u64,
    pub taken: u64,
    /// Not all of them was captured: the rest was filled in.
    pub cut: u64,
    /// Frames that were changed in their last bytes, for another shortly before was the same.
    pub told_apart: u64,
    /// Frames that a card cuts, or has put together.
    pub offloaded: u64,
    /// … whose time is before that of one before them, but not by much: put where they belong.
    pub sorted: u64,
    /// … or by so much that they are taken at the time of the newest before them.
    pub late: u64,
    /// The file says no time of them.
    pub timeless: u64,
    /// Left out: no addresses or nothing behind them, packtrain's own, longer than the MTU and not to be cut.
    pub no_frame: u64,
    pub of_packtrain: u64,
    pub too_long: u64,
    /// The busiest sender, in its busiest tenth of a second.
    pub peak: Option<(MacAddr, Peak)>,
}

#[derive(Debug)]
pub struct Intake {
    examiner: Examiner,
    batch: Batch,
    /// The time of the file that is [`LEAD`].
    first: Option<Duration>,
    newest: Instant,
    /// Frames up to here were given away.
    given_until: Instant,
    in_order: bool,
    counts: IntakeCounts,
    peaks: MacMap<Peak>,
    filter: Option<ReceiveFilter>,
    filler: Vec<u8>,
}

impl Intake {
    /// `mtu`: of the link. `filter_of`: whose receive filter is to be judged.
    pub fn new(classes: Vec<Class>, mtu: u16, filter_of: Option<MacAddr>) -> Intake {
        // What was not captured of a frame was hardly all zeros: nothing is to look easier than it is.
        let mut random = Random::new(1);
        let words = std::iter::repeat_with(|| random.next().to_le_bytes());
        Intake {
            examiner: Examiner::new(ClassTable::new(classes, Action::default()), mtu),
            batch: Batch::default(),
            first: None,
            newest: Instant::ZERO,
            given_until: Instant::ZERO,
            in_order: true,
            counts: IntakeCounts::default(),
            peaks: MacMap::with_hasher(MacHashBuilder::new(1)),
            filter: filter_of.map(ReceiveFilter::new),
            filler: words.take(FRAME_BYTES_MAX / 8).flatten().collect(),
        }
    }

    /// A frame of the file: its time since whenever, as much of it as was captured, and how long it was. A batch,
    /// when there is a whole one.
    pub fn frame(&mut self, at: Option<Duration>, bytes: &[u8], len: usize) -> Option<Batch> {
        self.counts.frames += 1;
        let at = self.time_of(at);
        let start = self.batch.bytes.len();
        self.batch.bytes.extend_from_slice(bytes);
        let missing = len.saturating_sub(bytes.len());
        if missing > 0 && len <= FRAME_BYTES_MAX {
            self.counts.cut += 1;
            let filler = &self.filler[bytes.len().min(self.filler.len())..];
            let filler = &filler[..missing.min(filler.len())];
            self.batch.bytes.extend_from_slice(filler);
        }
        match self
            .examiner
            .examine(&mut self.batch.bytes[start..], at, start)
        {
            Ok(frame) => self.take(frame),
            Err(unfit) => {
                self.batch.bytes.truncate(start);
                match unfit {
                    Unfit::NoFrame => self.counts.no_frame += 1,
                    Unfit::OfPacktrain => self.counts.of_packtrain += 1,
                    Unfit::TooLong => self.counts.too_long += 1,
                }
            }
        }
        let is_full =
            self.batch.frames.len() >= BATCH_FRAMES || self.batch.bytes.len() >= BATCH_BYTES;
        is_full.then(|| self.give(HELD_FRAMES.min(self.batch.frames.len() / HELD_PART)))
    }

    /// The file is over.
    pub fn rest(&mut self) -> Batch {
        self.give(0)
    }

    pub fn counts(&self) -> IntakeCounts {
        let busiest = self.peaks.iter().max_by_key(|(address, peak)| {
            // Of equals always the same.
            (peak.bits_per_second(), std::cmp::Reverse(**address))
        });
        IntakeCounts {
            told_apart: self.examiner.told_apart,
            peak: busiest.map(|(&address, &peak)| (address, peak)),
            ..self.counts
        }
    }

    pub fn filter(&self) -> Option<&ReceiveFilter> {
        self.filter.as_ref()
    }

    fn time_of(&mut self, at: Option<Duration>) -> Instant {
        let Some(at) = at else {
            self.counts.timeless += 1;
            return self.newest.max(self.given_until);
        };
        let first = *self.first.get_or_insert(at);
        let at = (at + LEAD).saturating_sub(first);
        let at = Instant::from_nanos(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX >> 2));
        if at < self.given_until {
            self.counts.late += 1;
            self.in_order = false;
            return self.given_until;
        }
        if at < self.newest {
            self.counts.sorted += 1;
            self.in_order = false;
        }
        self.newest = self.newest.max(at);
        at
    }

    fn take(&mut self, frame: Captured) {
        self.counts.taken += 1;
        self.counts.offloaded += u64::from(frame.offload.gso.is_some());
        let has_room = self.peaks.len() < SENDERS_MAX;
        let peak = match self.peaks.get_mut(&frame.source) {
            None if has_room => Some(self.peaks.entry(frame.source).or_default()),
            known => known,
        };
        if let Some(peak) = peak {
            peak.frame(frame.at, frame.cost.frames, frame.cost.wire_bytes);
        }
        if let Some(filter) = &mut self.filter {
            filter.frame(&frame, &self.batch.bytes[frame.start..]);
        }
        self.batch.frames.push(frame);
    }

    /// All but the last `held` of them.
    fn give(&mut self, held: usize) -> Batch {
        if !self.in_order {
            self.batch.frames.sort_by_key(|frame| frame.at);
        }
        self.in_order = true;
        let given = self.batch.frames.len().saturating_sub(held);
        let mut next = Batch {
            bytes: Vec::with_capacity(BATCH_BYTES + FRAME_BYTES_MAX),
            frames: Vec::with_capacity(BATCH_FRAMES),
        };
        for frame in self.batch.frames.drain(given..) {
            let start = next.bytes.len();
            next.bytes
                .extend_from_slice(&self.batch.bytes[frame.start..frame.start + frame.len]);
            next.frames.push(Captured { start, ..frame });
        }
        let batch = std::mem::replace(&mut self.batch, next);
        if let Some(last) = batch.frames.last() {
            self.given_until = last.at;
        }
        batch
    }
}
