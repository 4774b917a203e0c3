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
