//! Blocks of a coded train, and LZ4's block format in them.
//!
//! The latter is as `lz4_Block_format.md` of LZ4 has it: sequences of a token, literals, and a match that is copied
//! from what was restored before; the last has literals only.

use core::ops::Range;

use super::delta::Reader;

/// What the blocks restore to, one behind the other, and how many of them were compressed. One that was, `decompress`
/// restores behind what is there, to no more than so many bytes in all.
pub fn restore(
    content: &[u8],
    len_max: usize,
    mut decompress: impl FnMut(&[u8], &mut Vec<u8>, usize) -> Option<()>,
) -> Option<(Vec<u8>, usize)> {
    let mut from = Reader::new(content);
    let mut out = Vec::new();
    let mut compressed = 0;
    while !from.is_empty() && !from.is_one_zero() {
        let first = from.be16()?;
        let len = usize::from(first & 0x7fff);
        if len == 0 {
            break;
        }
        let is_as_it_was = first & 0x8000 != 0;
        let end = match is_as_it_was {
            true => out.len() + len,
            false => out.len() + usize::from(from.be16()?),
        };
        if end > len_max {
            return None;
        }
        let block = from.take(len)?;
        match is_as_it_was {
            true => out.extend_from_slice(block),
            false => {
                compressed += 1;
                decompress(block, &mut out, end)?;
            }
        }
        if out.len() != end {
            return None;
        }
    }
    Some((out, compressed))
}

/// Where blocks begin and end in a train's content, their own headers included.
pub fn places(content: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(&[high, low]) = content.get(at..at + 2) {
        let len = usize::from(high & 0x7f) << 8 | usize::from(low);
        let end = at + len + if high & 0x80 == 0 { 4 } else { 2 };
        if len == 0 || end > content.len() {
            break;
        }
        places.push(at..end);
        at = end;
    }
    places
}

/// Restores a block behind what is there, which it may refer to; to no more than `end`.
pub fn lz4(block: &[u8], out: &mut Vec<u8>, end: usize) -> Option<()> {
    let mut from = Reader::new(block);
    loop {
        let token = from.byte()?;
        let literals = length(&mut from, token >> 4)?;
        out.extend_from_slice(from.take(literals)?);
        if from.is_empty() {
            return (out.len() <= end).then_some(());
        }
        let offset = usize::from(u16::from_le_bytes([from.byte()?, from.byte()?]));
        let matched = length(&mut from, token & 0x0f)? + 4;
        if offset == 0 || offset > out.len() || out.len() + matched > end {
            return None;
        }
        // A match may reach into what it restores itself.
        for _ in 0..matched {
            out.push(out[out.len() - offset]);
        }
    }
}

/// Four bits of the token; 15 of them go on in bytes, until one is not 255.
fn length(from: &mut Reader<'_>, nibble: u8) -> Option<usize> {
    let mut len = usize::from(nibble);
    if nibble == 15 {
        loop {
            let more = from.byte()?;
            len += usize::from(more);
            if more != 255 {
                break;
            }
        }
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_one_another_and_refer_to_those_before() {
        // As it was, "abcd"; then by LZ4: "x", 8 bytes from 5 back, "yz".
        let mut content = vec![0x80, 4];
        content.extend(b"abcd");
        let block = [&[0x14][..], b"x", &[5, 0], &[0x20], b"yz"].concat();
        content.extend([0, block.len() as u8, 0, 11]);
        content.extend(&block);
        let whole = b"abcdxabcdxabcyz".to_vec();
        assert_eq!(restore(&content, 65_535, lz4), Some((whole.clone(), 1)));
        for padding in [&[0][..], &[0, 0], &[0, 0, 7, 9]] {
            let padded = [&content[..], padding].concat();
            assert_eq!(restore(&padded, 65_535, lz4), Some((whole.clone(), 1)));
        }
        assert_eq!(places(&content), [0..6, 6..content.len()]);
        assert_eq!(restore(&content, 14, lz4), None);
        assert_eq!(restore(&content[..content.len() - 1], 65_535, lz4), None);
    }

    #[test]
    fn lengths_of_fifteen_and_more_go_on_in_bytes() {
        let mut block = vec![0xff, 0];
        block.extend([b'a'; 15]);
        block.extend([1, 0, 255, 1]);
        block.extend([0x10, b'b']);
        let mut out = Vec::new();
        lz4(&block, &mut out, 1000).unwrap();
        let matched = 4 + 15 + 255 + 1;
        assert_eq!(out, [vec![b'a'; 15 + matched], vec![b'b']].concat());
        assert_eq!(lz4(&block, &mut Vec::new(), 100), None);
        assert_eq!(lz4(&[0x00, 0, 0, 0], &mut vec![1], 100), None, "no offset");
        assert_eq!(lz4(&[0x00, 2, 0, 0], &mut vec![1], 100), None, "too far");
    }
}
