//! The internet checksum (RFC 1071) and its update (RFC 1624).
//!
//! A sum is a `u16` in one's complement arithmetic. Adding never gives 0 unless everything added
//! was 0, so a sum has one representation, and an updated one equals one computed afresh.

/// Adds two sums, with the carry around the end.
#[inline]
pub fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// The sum of all 16-bit words; an odd last byte is followed by a zero.
#[inline]
pub fn sum(bytes: &[u8]) -> u16 {
    // The sum does not depend on the byte order of the words as long as the result is swapped
    // with them (RFC 1071, section 2 B), nor on their width: a wide word is its halves shifted by
    // multiples of 16 bits, which end-around carry undoes. Two 32-bit halves a step overflow 64
    // bits after 2^31 steps.
    let mut wide = 0u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_ne_bytes(chunk.try_into().expect("chunks of 8"));
        wide += (word & 0xffff_ffff) + (word >> 32);
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    let word = u64::from_ne_bytes(last);
    wide += (word & 0xffff_ffff) + (word >> 32);
    while wide > 0xffff {
        wide = (wide & 0xffff) + (wide >> 16);
    }
    u16::from_be_bytes((wide as u16).to_ne_bytes())
}

/// The checksum: the complement of the sum. Over bytes that hold a right checksum it is 0.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// The sum after the word `old` in it became `new`. For a checksum field, which holds the
/// complement, update the complement: what was wrong with it before stays wrong.
#[inline]
pub fn update(sum: u16, old: u16, new: u16) -> u16 {
    add(add(sum, !old), new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071's definition, word by word.
    fn model(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn the_rfcs_example_sums_as_it_says() {
        // RFC 1071, section 3.
        assert_eq!(
            sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            0xddf2
        );
    }

    #[test]
    fn the_largest_frame_of_ones_does_not_overflow() {
        let bytes = vec![0xff; 65_549];
        assert_eq!(sum(&bytes), model(&bytes));
        assert_eq!(sum(&[]), 0);
    }

    proptest! {
        #[test]
        fn the_fast_sum_is_the_slow_one(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(sum(&bytes), model(&bytes));
        }

        #[test]
        fn an_updated_sum_is_one_computed_afresh(
            mut bytes in prop::collection::vec(any::<u8>(), 4..60),
            at in 1usize..30,
            new in any::<u16>(),
        ) {
            bytes[0] = 0x45; // a header is never all zero
            let at = (at * 2 % (bytes.len() - 1)) & !1;
            prop_assume!(at != 0);
            let before = sum(&bytes);
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assert_eq!(update(before, old, new), model(&bytes));
        }
    }
}
