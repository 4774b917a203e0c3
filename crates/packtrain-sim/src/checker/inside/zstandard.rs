//! Compressed blocks of coding 3: frames of Zstandard (RFC 8878) that leave out what is said elsewhere.
//!
//! Zstandard itself is not read anew: its library is given the frame with its magic number, as any frame, and the
//! dictionary. That nothing else stands in the frame's header is looked at here.

use std::cell::RefCell;

use zstd::bulk::Decompressor;

use crate::dictionaries::Known;

const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// In the descriptor: the content's size (two bits, and one that implies it), a checksum, a dictionary's id.
const LEFT_OUT: u8 = 0b1110_0111;

thread_local! {
    /// One a dictionary, for what each needs takes longer to make than a block to restore.
    static DECOMPRESSORS: RefCell<Vec<(Known, Decompressor<'static>)>> = const { RefCell::new(Vec::new()) };
}

/// Restores a block behind what is there, to no more than `end`.
pub fn restore(block: &[u8], dictionary: Known, out: &mut Vec<u8>, end: usize) -> Option<()> {
    let descriptor = *block.first()?;
    if descriptor & LEFT_OUT != 0 {
        return None;
    }
    let frame = [&MAGIC, block].concat();
    let restored = DECOMPRESSORS.with_borrow_mut(|all| {
        let at = all.iter().position(|(known, _)| *known == dictionary);
        let at = at.unwrap_or_else(|| {
            let made = Decompressor::with_dictionary(dictionary.bytes());
            all.push((dictionary, made.expect("there is memory for it")));
            all.len() - 1
        });
        let mut restored = vec![0; end - out.len()];
        let len = all[at].1.decompress_to_buffer(&frame, &mut restored[..]);
        len.ok().map(|len| {
            restored.truncate(len);
            restored
        })
    })?;
    out.extend(restored);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::blocks;
    use super::*;

    #[test]
    fn a_frame_of_zstandard_says_only_what_is_said_nowhere_else() {
        let known = Known::Words;
        let plain = known.bytes()[40..140].to_vec();
        let mut whole = zstd::bulk::Compressor::with_dictionary(1, known.bytes()).unwrap();
        whole.include_contentsize(false).unwrap();
        let frame = whole.compress(&plain).unwrap();
        let content = |block: &[u8]| {
            let lens = [0, block.len() as u8, 0, plain.len() as u8];
            [&[0x80, 2, b'a', b'b'], &lens[..], block].concat()
        };
        let restored = |content: &[u8], known| {
            let block = |block: &[u8], out: &mut Vec<u8>, end| restore(block, known, out, end);
            blocks::restore(content, 65_535, block)
        };
        let right = content(&frame[4..]);
        let expected = [b"ab", &plain[..]].concat();
        assert_eq!(restored(&right, known), Some((expected, 1)));
        assert_ne!(restored(&right, Known::Backwards), restored(&right, known));
        // With its magic number, a checksum or its content's size it is none.
        assert_eq!(restored(&content(&frame), known), None);
        whole.include_checksum(true).unwrap();
        let with_checksum = whole.compress(&plain).unwrap();
        assert_eq!(restored(&content(&with_checksum[4..]), known), None);
        whole.include_checksum(false).unwrap();
        whole.include_contentsize(true).unwrap();
        let with_size = whole.compress(&plain).unwrap();
        assert_eq!(restored(&content(&with_size[4..]), known), None);
        // Neither is one of another length than it says.
        let mut longer = right.clone();
        longer[7] += 1;
        assert_eq!(restored(&longer, known), None);
        longer[7] -= 2;
        assert_eq!(restored(&longer, known), None);
    }
}
