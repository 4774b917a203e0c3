//! What an aggregate of the DFAP paper carries: each packet as the frame that it would have been alone.
//!
//! A reading of the paper's section 2.6 of its own, so that a mistake of the engine's writer is not believed because
//! its reader makes the same.

use packtrain_proto::offload::Offload;

use crate::frame::Frame;

const HEADER_LEN: usize = 14;
const TYPES: [[u8; 2]; 2] = [[0xbb, 0xbb], [0xaa, 0xaa]];

/// Whether it would be taken for one by who knows them.
pub fn is_one(frame: &Frame) -> bool {
    frame.bytes.len() > HEADER_LEN && TYPES.iter().any(|kind| frame.bytes[12..14] == *kind)
}

/// The frames in it, as far as it can be read; of what is no aggregate the frame itself.
pub fn frames_in(frame: &Frame) -> Vec<Frame> {
    if !is_one(frame) {
        return vec![frame.clone()];
    }
    let (addresses, data) = (&frame.bytes[..12], &frame.bytes[HEADER_LEN..]);
    let count = usize::from(data[0]);
    let mut begins = vec![(2 * count).saturating_sub(1)];
    for n in 1..count {
        match data.get(2 * n - 1..2 * n + 1) {
            Some(offset) => begins.push(usize::from(offset[0]) * 256 + usize::from(offset[1])),
            None => return Vec::new(),
        }
    }
    let ends = begins[1..].iter().copied().chain([data.len()]);
    let pairs = begins.iter().copied().zip(ends);
    let parts = pairs.map(|(begin, end)| data.get(begin..end).unwrap_or_default());
    parts
        .map(|part| Frame {
            bytes: [addresses, part].concat(),
            offload: Offload::NONE,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_a_frame_with_the_addresses_of_all() {
        let frame = |data: &[u8]| Frame {
            bytes: [&[7; 12][..], data].concat(),
            offload: Offload::NONE,
        };
        let aggregate = frame(&[0xbb, 0xbb, 3, 0, 8, 0, 12, 8, 0, 1, 8, 6, 2, 2, 0x90, 0, 3]);
        let frames: Vec<Vec<u8>> = frames_in(&aggregate).into_iter().map(|f| f.bytes).collect();
        let alone = |data: &[u8]| frame(data).bytes;
        assert_eq!(
            frames,
            [
                alone(&[8, 0, 1]),
                alone(&[8, 6, 2, 2]),
                alone(&[0x90, 0, 3])
            ]
        );
        let plain = frame(&[8, 0, 1]);
        assert_eq!(frames_in(&plain), [plain]);
        assert_eq!(frames_in(&frame(&[0xaa, 0xaa, 9, 0])), []);
    }
}
