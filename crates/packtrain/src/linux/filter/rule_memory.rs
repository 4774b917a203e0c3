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
    /// Of all images that there were: even ones stand in the first place, odd ones in the second.
    image: u32,
    is_asked: bool,
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
            image: 0,
            is_asked: false,
        })
    }

    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Which one is asked, of all there were.
    pub(super) fn image(&self) -> u32 {
        self.image
    }

    pub(super) fn ask_none(&mut self) {
        self.is_asked = false;
    }

    /// Written to where nobody reads, with nothing counted yet: to be asked next.
    pub(super) fn write(&mut self, image: &Image) -> Result<(), MapError> {
        wait_for_readers();
        let next = self.image.wrapping_add(1);
        let place = (next & 1) as usize;
        let words = image.words();
        assert!(words.len() <= IMAGE_WORDS_MAX);
        // SAFETY: both places lie within the mapping, and `words` is no part of it. The program reads
        // the other place: it is told of this one later, and who read it before has ended.
        unsafe {
            let at = self.words.as_ptr().add(place * IMAGE_WORDS_MAX);
            std::ptr::copy_nonoverlapping(words.as_ptr(), at, words.len());
        }
        self.forget(place)?;
        self.image = next;
        self.is_asked = true;
        Ok(())
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
            self.buckets
                .update(&key, &[0; BUCKET_LEN], MapFlags::ANY)
                .map_err(failed(BUCKETS_MAP))?;
        }
        Ok(())
    }

    /// Frames and bytes that each of so many rules has decided about.
    pub(super) fn counters(&self, rules: usize) -> Result<Vec<Traffic>, MapError> {
        self.counters_at((self.image & 1) as usize, rules)
    }

    /// The same, of those that were asked before the last change.
    pub(super) fn former_counters(&self, rules: usize) -> Result<Vec<Traffic>, MapError> {
        match self.is_asked {
            true => self.counters_at((self.image & 1 ^ 1) as usize, rules),
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
