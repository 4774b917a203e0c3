//! Numbers that stand for frames.

use std::hash::Hasher;

/// What tells frames of one host apart that are under way together: a number of some of their bytes, the last ones
/// among them. Two that have the same are told apart by [`super::repeats`].
pub fn fingerprint(ether_type: u16, payload: &[u8]) -> u64 {
    const WHOLE_MAX: usize = 96;
    let mut sum = fold(u64::from(ether_type), payload.len() as u64 ^ KEYS[2]);
    let mut add = |bytes: &[u8]| {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            sum = fold(sum, u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            sum = fold(sum, u64::from_le_bytes(word));
        }
    };
    if payload.len() <= WHOLE_MAX {
        add(payload);
    } else {
        // Headers and what follows them, something of the middle, the end.
        add(&payload[..64]);
        let middle = payload.len() / 2;
        add(&payload[middle..middle + 8]);
        add(&payload[payload.len() - 16..]);
    }
    sum
}

const KEYS: [u64; 3] = [
    0x9e37_79b9_7f4a_7c15,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
];

pub(super) fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a ^ KEYS[0]) * u128::from(b ^ KEYS[1]);
    wide as u64 ^ (wide >> 64) as u64
}

/// A fingerprint is a hash already.
#[derive(Debug, Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
