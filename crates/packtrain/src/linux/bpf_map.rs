//! What our BPF programs look up, and what they count.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapInfo, Object};
use packtrain_proto::stats::Traffic;
use packtrain_proto::wire::ethernet::MacAddr;

use super::bpf_object::map_handle;
use super::sys::check;

#[derive(Debug, thiserror::Error)]
#[error("cannot use the BPF map {map}: {source}")]
pub struct MapError {
    pub(super) map: &'static str,
    pub(super) source: libbpf_rs::Error,
}

/// A hash map of the kernel that nobody else writes, and what we put into it.
#[derive(Debug)]
pub(super) struct Published {
    name: &'static str,
    map: MapHandle,
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Published {
    pub(super) fn open(object: &Object, name: &'static str) -> libbpf_rs::Result<Published> {
        Ok(Published {
            name,
            map: map_handle(object, name)?,
            entries: BTreeMap::new(),
        })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }

    /// New entries come in before old ones go, so that what stays is never missing. What fails midway
    /// is known as far as it went.
    pub(super) fn set(&mut self, entries: BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), MapError> {
        let failed = |source| MapError {
            map: self.name,
            source,
        };
        for (key, value) in &entries {
            if self.entries.get(key) != Some(value) {
                self.map.update(key, value, MapFlags::ANY).map_err(failed)?;
                self.entries.insert(key.clone(), value.clone());
            }
        }
        let known: Vec<Vec<u8>> = self.entries.keys().cloned().collect();
        for key in known.into_iter().filter(|key| !entries.contains_key(key)) {
            self.map.delete(&key).map_err(failed)?;
            self.entries.remove(&key);
        }
        Ok(())
    }

    pub(super) fn set_keys(&mut self, keys: impl Iterator<Item = Vec<u8>>) -> Result<(), MapError> {
        self.set(keys.map(|key| (key, vec![1])).collect())
    }
}

/// A map that another process has made, and passed on.
#[derive(Debug)]
pub(super) struct KeptMap {
    map: OwnedFd,
    key_len: usize,
    value_len: usize,
}

impl KeptMap {
    pub(super) fn array(map: OwnedFd) -> io::Result<KeptMap> {
        KeptMap::new(map, libbpf_sys::BPF_MAP_TYPE_ARRAY)
    }

    pub(super) fn hash(map: OwnedFd) -> io::Result<KeptMap> {
        KeptMap::new(map, libbpf_sys::BPF_MAP_TYPE_HASH)
    }

    /// Of no map of each processor, whose entries are longer than they say.
    fn new(map: OwnedFd, kind: u32) -> io::Result<KeptMap> {
        let info = MapInfo::new(map.as_fd()).map_err(io::Error::other)?.info;
        if info.type_ != kind {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "not a map of this version of packtrain",
            ));
        }
        Ok(KeptMap {
            map,
            key_len: info.key_size as usize,
            value_len: info.value_size as usize,
        })
    }

    pub(super) fn get(&self, key: &[u8]) -> io::Result<Vec<u8>> {
        assert_eq!(key.len(), self.key_len);
        let mut value = vec![0; self.value_len];
        // SAFETY: the key and the value have the lengths that the map said it has, and outlive the call.
        let result = unsafe {
            libbpf_sys::bpf_map_lookup_elem(
                self.map.as_raw_fd(),
                key.as_ptr().cast(),
                value.as_mut_ptr().cast(),
            )
        };
        check(result)?;
        Ok(value)
    }

    pub(super) fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert_eq!((key.len(), value.len()), (self.key_len, self.value_len));
        // SAFETY: as above; the kernel only reads both.
        let result = unsafe {
            libbpf_sys::bpf_map_update_elem(
                self.map.as_raw_fd(),
                key.as_ptr().cast(),
                value.as_ptr().cast(),
                0,
            )
        };
        check(result).map(drop)
    }
}

/// 32 bits of an entry.
pub(super) fn word_of(value: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(value[at..at + 4].try_into().expect("four bytes"))
}

/// As the programs compare addresses: first byte in bits 47..40.
pub(super) fn mac_key(mac: MacAddr) -> Vec<u8> {
    let number = mac
        .0
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    number.to_ne_bytes().to_vec()
}

/// An entry of a per-processor map whose value is so many 64-bit counters.
pub(super) fn sum_over_processors<const N: usize>(
    map: &'static str,
    handle: &MapHandle,
    index: u32,
) -> Result<[u64; N], MapError> {
    assert_eq!(handle.value_size() as usize, 8 * N);
    let failed = |source| MapError { map, source };
    // Read between two frames: in one piece, not a piece of memory for each processor that the host might have.
    let processors = libbpf_rs::num_possible_cpus().map_err(failed)?;
    let mut values = vec![0u64; processors * N];
    // SAFETY: the key is an index, and the kernel writes so many bytes of each possible processor.
    let result = unsafe {
        libbpf_sys::bpf_map_lookup_elem(
            handle.as_fd().as_raw_fd(),
            (&raw const index).cast(),
            values.as_mut_ptr().cast(),
        )
    };
    check(result).map_err(|error| failed(error.into()))?;
    let mut sums = [0u64; N];
    for value in values.chunks_exact(N) {
        for (sum, counted) in sums.iter_mut().zip(value) {
            *sum += counted;
        }
    }
    Ok(sums)
}

/// Frames and bytes, as `struct guard_traffic` and `struct direct_traffic` count them.
pub(super) fn read_traffic(
    map: &'static str,
    handle: &MapHandle,
    index: u32,
) -> Result<Traffic, MapError> {
    let [frames, bytes] = sum_over_processors(map, handle, index)?;
    Ok(Traffic { frames, bytes })
}
