//! Where the program reads rules: two images of words in memory that it shares with us, of which one is asked.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use packtrain_proto::filter::rules::RULES_MAX;
use packtrain_proto::filter::rules::image::{IMAGE_WORDS_MAX, Image};
use packtrain_proto::stats::Traffic;

use crate::linux::bpf_map::{MapError, read_traffic};
use crate::linux::bpf_object::{map_handle, zeroed_memory};

const COUNTERS_MAP: &str = "rule_counters";
const BUCKETS_MAP: &str = "rule_buckets";

/// Of one value in a map of each processor.
const COUNT_LEN: usize = 16;
const BUCKET_LEN: usize = 8;
const BUCKETS: u32 = 2 * RULES_MAX as u32;
/// `MEMBARRIER_CMD_GLOBAL` (membarrier(2)).
const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;

#[derive(Debug)]
pub(super) struct RuleMemory {
    words: NonNull<u32>,
    counters: MapHandle,
    buckets: MapHandle,
    /// Keeps the memory's map for as long as it is mapped.
    #[expect(dead_code, reason = "held")]
    map: MapHandle,
    asked: Asked,
    /// Limits of sources that there were, of all images.
    of_sources: u32,
}

/// Which rules are asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) is_asked: bool,
    /// Of all images that there were: even ones stand in the first place, odd ones in the second.
    pub(super) image: u32,
    /// Of each of its limits.
    buckets: Vec<Bucket>,
}

/// Where a limit takes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bucket {
    /// The one of this place in their map.
    OfRule(u32),
    /// Those of this number in the map of sources.
    OfSources(u32),
}

impl Bucket {
    fn word(self) -> u32 {
        let (Bucket::OfRule(word) | Bucket::OfSources(word)) = self;
        word
    }
}

// SAFETY: the memory is ours until this goes, and nothing of it belongs to a thread.
unsafe impl Send for RuleMemory {}

const MEMORY_LEN: usize = 2 * IMAGE_WORDS_MAX * size_of::<u32>();

impl RuleMemory {
    pub(super) fn open(object: &Object) -> libbpf_rs::Result<RuleMemory> {
        let map = zeroed_memory(object)?;
        assert!(map.value_size() as usize >= MEMORY_LEN);
        // SAFETY: a new mapping of a descriptor that is open; the map has so many bytes.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                MEMORY_LEN,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_fd().as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        Ok(RuleMemory {
            words: NonNull::new(memory.cast()).expect("a mapping is not at 0"),
            counters: map_handle(object, COUNTERS_MAP)?,
            buckets: map_handle(object, BUCKETS_MAP)?,
            map,
            asked: Asked::default(),
            of_sources: 0,
        })
    }

    pub(super) fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The program was told so.
    pub(super) fn are_asked(&mut self, asked: Asked) {
        self.asked = asked;
    }

    pub(super) fn none(&self) -> Asked {
        Asked {
            is_asked: false,
            image: self.asked.image,
            buckets: Vec::new(),
        }
    }

    /// Written to where nobody reads, with nothing counted yet: to be asked next. `stays`: the limit of the image that is
    /// asked now whose buckets each one takes over; the others' are full.
    pub(super) fn write(
        &mut self,
        image: &Image,
        stays: &[Option<usize>],
    ) -> Result<Asked, MapError> {
        wait_for_readers();
        let next = self.asked.image.wrapping_add(1);
        let place = (next & 1) as usize;
        let buckets = self.buckets_for(image, stays)?;
        let words = image.words();
        assert!(words.len() <= IMAGE_WORDS_MAX);
        // SAFETY: both places lie within the mapping, and `words` is no part of it. The program reads
        // the other place: it is told of this one later, and who read it before has ended.
        unsafe {
            let at = self.words.as_ptr().add(place * IMAGE_WORDS_MAX);
            std::ptr::copy_nonoverlapping(words.as_ptr(), at, words.len());
            for (limit, bucket) in buckets.iter().enumerate() {
                at.add(image.bucket_word(limit)).write(bucket.word());
            }
        }
        self.forget(place)?;
        Ok(Asked {
            is_asked: true,
            image: next,
            buckets,
        })
    }

    fn buckets_for(
        &mut self,
        image: &Image,
        stays: &[Option<usize>],
    ) -> Result<Vec<Bucket>, MapError> {
        let former = &self.asked.buckets;
        let mut buckets: Vec<Option<Bucket>> = (0..image.limits())
            .map(|limit| {
                let stays = stays.get(limit).copied().flatten()?;
                let bucket = former.get(stays).copied()?;
                let is_of_sources = matches!(bucket, Bucket::OfSources(_));
                (is_of_sources == image.limit(limit).per_source).then_some(bucket)
            })
            .collect();
        let used = |place: &u32| {
            let bucket = Bucket::OfRule(*place);
            former.contains(&bucket)
        };
        // Twice as many as there are rules: for all of the former ones, and for as many new ones.
        let free: Vec<u32> = (0..BUCKETS).filter(|place| !used(place)).collect();
        let mut free = free.into_iter();
        for (limit, bucket) in buckets.iter_mut().enumerate() {
            if bucket.is_some() {
                continue;
            }
            *bucket = Some(if image.limit(limit).per_source {
                self.of_sources = self.of_sources.wrapping_add(1);
                Bucket::OfSources(self.of_sources)
            } else {
                let place = free.next().expect("as many as there are rules");
                let full = [0; BUCKET_LEN];
                let written = self
                    .buckets
                    .update(&place.to_ne_bytes(), &full, MapFlags::ANY);
                let failed = |source| MapError {
                    map: BUCKETS_MAP,
                    source,
                };
                written.map_err(failed)?;
                Bucket::OfRule(place)
            });
        }
        Ok(buckets.into_iter().flatten().collect())
    }

    fn forget(&self, place: usize) -> Result<(), MapError> {
        let failed = |map| move |source| MapError { map, source };
        let processors = libbpf_rs::num_possible_cpus().map_err(failed(COUNTERS_MAP))?;
        let nothing = vec![vec![0; COUNT_LEN]; processors];
        for rule in place * RULES_MAX..(place + 1) * RULES_MAX {
            let key = (rule as u32).to_ne_bytes();
            self.counters
                .update_percpu(&key, &nothing, MapFlags::ANY)
                .map_err(failed(COUNTERS_MAP))?;
        }
        Ok(())
    }

    /// Frames and bytes that each of so many rules has decided about.
    pub(super) fn counters(&self, rules: usize) -> Result<Vec<Traffic>, MapError> {
        self.counters_at((self.asked.image & 1) as usize, rules)
    }

    /// The same, of those that were asked before the last change, when nobody counts there any more.
    pub(super) fn former_counters(&self, rules: usize) -> Result<Vec<Traffic>, MapError> {
        wait_for_readers();
        match self.asked.is_asked {
            true => self.counters_at((self.asked.image & 1 ^ 1) as usize, rules),
            // They stand where they stood, and none have taken their place.
            false => self.counters(rules),
        }
    }

    fn counters_at(&self, place: usize, rules: usize) -> Result<Vec<Traffic>, MapError> {
        let first = place * RULES_MAX;
        let rules = first..first + rules.min(RULES_MAX);
        rules
            .map(|rule| read_traffic(COUNTERS_MAP, &self.counters, rule as u32))
            .collect()
    }
}

/// Until each program that was at work has ended.
fn wait_for_readers() {
    // SAFETY: no pointers.
    let waited = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if waited != 0 {
        // Some kernels do not offer it (full dynticks): a program takes microseconds.
        let pause = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        let _ = rustix::event::poll(&mut [], Some(&pause));
    }
}

impl Drop for RuleMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by us at this length, and used by nobody after.
        unsafe { libc::munmap(self.words.as_ptr().cast(), MEMORY_LEN) };
    }
}
