//! What has come of peers' direct frames, as `direct_arrive` counts it.

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use packtrain_proto::direct::Came;

use super::SentTo;
use crate::linux::bpf_map::{MapError, mac_key, word_of};

/// As in bpf/direct.h: which of the sources has which place among those that are found without a search.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const SHIFT: u32 = 54;

#[derive(Debug)]
pub(super) struct Arrived {
    /// Each processor counts in the place of its own, or among all others.
    first: MapHandle,
    others: MapHandle,
    others_late: MapHandle,
}

impl Arrived {
    pub(super) fn new(first: MapHandle, others: MapHandle, others_late: MapHandle) -> Arrived {
        Arrived {
            first,
            others,
            others_late,
        }
    }

    /// Of this source by the link of this number, ever. `watches`: it is looked at what is late.
    pub(super) fn of(&self, from: SentTo, watches: bool) -> Result<Came, MapError> {
        let key = key(from);
        let mut frames = among_others(&self.others, key)?;
        let mut late = match watches {
            true => among_others(&self.others_late, key)?,
            false => 0,
        };
        let first = self
            .first
            .lookup_percpu(&place(key).to_ne_bytes(), MapFlags::ANY)
            .map_err(|source| MapError {
                map: "arrived_first",
                source,
            })?;
        let of_it = |first: &&Vec<u8>| first[..8] == key.to_ne_bytes();
        for first in first.iter().flatten().filter(of_it) {
            frames = frames.wrapping_add(word_of(first, 8));
            late = late.wrapping_add(word_of(first, 12));
        }
        Ok(Came {
            frames,
            late: watches.then_some(late),
        })
    }
}

fn among_others(map: &MapHandle, key: u64) -> Result<u32, MapError> {
    let mut value = [0; 4];
    let found = map.lookup_into(&key.to_ne_bytes(), &mut value, MapFlags::ANY);
    found.map_err(|source| MapError {
        map: "arrived",
        source,
    })?;
    Ok(u32::from_ne_bytes(value))
}

/// Of the map `arrived`.
pub(super) fn key((from, link): SentTo) -> u64 {
    let address = u64::from_ne_bytes(mac_key(from).try_into().expect("eight bytes"));
    address | u64::from(link) << 48
}

pub(super) fn place(key: u64) -> u32 {
    (key.wrapping_mul(FACTOR) >> SHIFT) as u32
}
