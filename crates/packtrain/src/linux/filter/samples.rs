//! Samples of what a filter drops: copied by the program into a ring, for as long as somebody wants them.
//!
//! Who wants them says so in the program's memory, and until when: it ends by itself where he does not say it again.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use packtrain_proto::filter::Reason;

use super::standing::{Standing, StandingError, is_alive};

const SAMPLING_MAP: &str = ".data.sampling";
const SAMPLED_MAP: &str = ".data.sampled";
const SAMPLES_MAP: &str = "samples";

/// As in bpf/filter.h.
pub const SAMPLE_LEN_MAX: u32 = 2048;
const SAMPLING_LEN: usize = 40;
const SAMPLED_LEN: usize = 32;
const HEAD_LEN: usize = 32;

/// Each renewal is for so long.
pub const LEASE: Duration = Duration::from_secs(3);

/// What is wanted.
#[derive(Clone, Debug)]
pub struct SampleWish {
    pub reasons: Vec<Reason>,
    /// Most samples a second, on the average.
    pub per_second: u64,
    /// Most bytes of each frame: 1 to [`SAMPLE_LEN_MAX`].
    pub len: u32,
}

/// A frame that was dropped, or would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// `CLOCK_MONOTONIC`.
    pub monotonic_nanos: u64,
    pub reason: Reason,
    /// Of a rule's drop: which one, and of which of all rules that there were.
    pub rule: u32,
    pub rules_image: u32,
    /// Of the whole frame.
    pub len: u32,
    pub bytes: Vec<u8>,
}

/// What has become of the frames that were dropped for the reasons that are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCounts {
    pub dropped: u64,
    pub sampled: u64,
    /// Due to be, but the ring had no room.
    pub missed: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    #[error(transparent)]
    Standing(#[from] StandingError),
    #[error("somebody samples it already (pid {pid}): one at a time")]
    Taken { pid: u32 },
    #[error("cannot read the filter's samples: {0}")]
    Ring(libbpf_rs::Error),
}

/// Somebody who samples. There is one at a time, for a sample is taken out of the ring.
pub struct Sampler {
    wish: SampleWish,
    sampling: MapHandle,
    sampled: MapHandle,
    ring: RingBuffer<'static>,
    read: Rc<RefCell<Vec<Sample>>>,
}

impl fmt::Debug for Sampler {
    /// Of a ring there is nothing to say.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampler")
            .field("wish", &self.wish)
            .finish_non_exhaustive()
    }
}

impl Sampler {
    pub fn begin(standing: &Standing, wish: SampleWish, now: u64) -> Result<Sampler, SampleError> {
        assert!((1..=SAMPLE_LEN_MAX).contains(&wish.len) && wish.per_second > 0);
        let sampling = standing.map(SAMPLING_MAP)?;
        let sampled = standing.map(SAMPLED_MAP)?;
        let samples = standing.map(SAMPLES_MAP)?;
        if let Some(pid) = holder(&sampling, now)? {
            return Err(SampleError::Taken { pid });
        }
        let read = Rc::new(RefCell::new(Vec::new()));
        let into = read.clone();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&samples, move |record| {
                into.borrow_mut().extend(parse(record));
                0
            })
            .map_err(SampleError::Ring)?;
        let sampler = Sampler {
            wish,
            sampling,
            sampled,
            ring: builder.build().map_err(SampleError::Ring)?,
            read,
        };
        // What somebody else has left there is not ours.
        sampler.ring.consume().map_err(SampleError::Ring)?;
        sampler.read.borrow_mut().clear();
        let counted = sampler
            .sampled
            .update(&KEY, &[0; SAMPLED_LEN], MapFlags::ANY);
        counted.map_err(SampleError::Ring)?;
        sampler.renew(now)?;
        Ok(sampler)
    }

    /// Samples are taken for another [`LEASE`]. Who has been stopped for so long may find that somebody else takes them.
    pub fn renew(&self, now: u64) -> Result<(), SampleError> {
        if let Some(pid) = holder(&self.sampling, now)? {
            return Err(SampleError::Taken { pid });
        }
        self.write(now + LEASE.as_nanos() as u64)
    }

    fn write(&self, until: u64) -> Result<(), SampleError> {
        const SECOND: u64 = 1_000_000_000;
        let wish = &self.wish;
        let reasons = wish
            .reasons
            .iter()
            .fold(0, |bits, reason| bits | 1u64 << *reason as u32);
        let interval = SECOND / wish.per_second;
        let mut value = Vec::with_capacity(SAMPLING_LEN);
        // A tenth of a second's worth at once, and at least one.
        for long in [until, reasons, interval, (SECOND / 10).max(interval)] {
            value.extend(long.to_ne_bytes());
        }
        value.extend(wish.len.to_ne_bytes());
        value.extend(std::process::id().to_ne_bytes());
        let written = self.sampling.update(&KEY, &value, MapFlags::ANY);
        written.map_err(SampleError::Ring)
    }

    /// Waits for samples up to so long, and takes what there is.
    pub fn read(&mut self, at_most: Duration) -> Result<Vec<Sample>, SampleError> {
        match self.ring.poll(at_most) {
            Ok(()) => {}
            // A signal: what it means is asked by others.
            Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => {}
            Err(error) => return Err(SampleError::Ring(error)),
        }
        Ok(self.read.take())
    }

    pub fn counts(&self) -> Result<SampleCounts, SampleError> {
        let value = self.sampled.lookup(&KEY, MapFlags::ANY);
        let value = value.map_err(SampleError::Ring)?.unwrap_or_default();
        if value.len() != SAMPLED_LEN {
            return Err(StandingError::OtherVersion.into());
        }
        Ok(SampleCounts {
            dropped: long_at(&value, 8),
            sampled: long_at(&value, 16),
            missed: long_at(&value, 24),
        })
    }
}

impl Drop for Sampler {
    /// Where this fails it ends by itself, a moment later.
    fn drop(&mut self) {
        if matches!(holder(&self.sampling, 0), Ok(None)) {
            let _ = self.write(0);
        }
    }
}

const KEY: [u8; 4] = [0; 4];

/// Another process that takes samples at this time.
fn holder(sampling: &MapHandle, now: u64) -> Result<Option<u32>, SampleError> {
    let held = sampling.lookup(&KEY, MapFlags::ANY);
    let held = held.map_err(SampleError::Ring)?.unwrap_or_default();
    if held.len() != SAMPLING_LEN {
        return Err(StandingError::OtherVersion.into());
    }
    let (until, pid) = (long_at(&held, 0), word_at(&held, 36));
    let is_others = pid != std::process::id() && is_alive(pid);
    Ok((until > now && is_others).then_some(pid))
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// `struct filter_sample`; none: of a reason that this version does not know.
fn parse(record: &[u8]) -> Option<Sample> {
    let head = record.get(..HEAD_LEN)?;
    let captured = word_at(head, 12) as usize;
    Some(Sample {
        monotonic_nanos: long_at(head, 0),
        reason: *Reason::ALL.get(word_at(head, 16) as usize)?,
        rule: word_at(head, 20),
        rules_image: word_at(head, 24),
        len: word_at(head, 8),
        bytes: record.get(HEAD_LEN..HEAD_LEN + captured)?.to_vec(),
    })
}
