//! A hash map keyed by MAC address, fast enough to be asked for every frame.
//!
//! Addresses come from the wire, so the hash is keyed: who does not know the seed cannot choose
//! addresses that collide.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use crate::wire::ethernet::MacAddr;

pub type MacMap<V> = HashMap<MacAddr, V, MacHashBuilder>;

#[derive(Clone, Copy, Debug)]
pub struct MacHashBuilder(u64);

#[derive(Debug)]
pub struct MacHasher(u64);

impl MacHashBuilder {
    pub fn new(seed: u64) -> MacHashBuilder {
        MacHashBuilder(seed | 1)
    }
}

impl BuildHasher for MacHashBuilder {
    type Hasher = MacHasher;
    fn build_hasher(&self) -> MacHasher {
        MacHasher(self.0)
    }
}

impl Hasher for MacHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut word = [0; 8];
        for chunk in bytes.chunks(8) {
            word[..chunk.len()].copy_from_slice(chunk);
            let product = u128::from(self.0 ^ u64::from_le_bytes(word))
                * u128::from(0x9e37_79b9_7f4a_7c15_u64 ^ self.0.rotate_left(32) | 1);
            self.0 = (product >> 64) as u64 ^ product as u64;
        }
    }

    fn write_usize(&mut self, _: usize) {
        // The length prefix of an array whose length never differs.
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
