//! What is seen on a wire that somebody watches, and how much is kept of it.

use packtrain_proto::offload::Offload;
use packtrain_proto::time::Instant;
use packtrain_proto::wire::ethernet::HEADER_LEN;

use super::WireId;
use crate::frame::Frame;
use crate::net::wire::WireDrop;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Of each frame, and never less than its headers.
    pub bytes: usize,
    /// No more either of what a card has still to cut or to finish: whoever does that afterwards has zeros for its content, and
    /// checksums of these. Otherwise that is kept whole.
    pub heads_only: bool,
}

impl Keep {
    pub fn of(self, frame: &Frame) -> Frame {
        let gso = frame.offload.gso;
        let headers = gso.map_or(HEADER_LEN, |gso| gso.header_len.into());
        let bytes = self.bytes.max(headers);
        let cuts = frame.offload == Offload::NONE || self.heads_only;
        match frame.bytes.get(..bytes) {
            Some(head) if cuts => Frame::new(head.to_vec(), frame.offload),
            _ => frame.clone(),
        }
    }
}

/// What became of a frame on a wire that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When it arrived, or was dropped.
    pub at: Instant,
    pub wire: WireId,
    /// Perhaps only its first bytes.
    pub frame: Frame,
    /// How many bytes it had.
    pub len: usize,
    pub dropped: Option<WireDrop>,
}

impl Sighting {
    /// The frame in its length: what was not kept of it is zero.
    pub fn in_full(&self) -> Frame {
        let mut frame = self.frame.clone();
        frame.bytes.resize(self.len, 0);
        frame
    }

    /// How many frames it is once it is on a wire that knows no GSO.
    pub fn segment_count(&self) -> usize {
        self.frame.segment_count_of(self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packtrain_proto::offload::{Gso, GsoKind};

    fn frame(len: usize, gso: Option<Gso>) -> Frame {
        let offload = Offload {
            gso,
            ..Offload::NONE
        };
        Frame::new((0..len).map(|byte| byte as u8).collect(), offload)
    }

    const LARGE: Gso = Gso {
        kind: GsoKind::TcpV4,
        ecn: false,
        header_len: 66,
        segment_len: 1448,
    };

    #[test]
    fn what_is_still_to_be_cut_is_kept_whole_unless_heads_are_all_that_is_wanted() {
        let kept = |bytes, heads_only, frame: &Frame| {
            let kept = Keep { bytes, heads_only }.of(frame);
            assert_eq!(kept.offload, frame.offload);
            assert!(frame.bytes.starts_with(&kept.bytes));
            kept.bytes.len()
        };
        let (plain, large) = (frame(1514, None), frame(64_000, Some(LARGE)));
        for heads_only in [false, true] {
            assert_eq!(kept(134, heads_only, &plain), 134);
            assert_eq!(kept(1, heads_only, &plain), HEADER_LEN);
            assert_eq!(kept(usize::MAX, heads_only, &plain), 1514);
            assert_eq!(kept(usize::MAX, heads_only, &large), 64_000);
        }
        assert_eq!(kept(134, false, &large), 64_000);
        assert_eq!(kept(134, true, &large), 134);
        // Its headers say where it is cut.
        assert_eq!(kept(1, true, &large), 66);
    }

    #[test]
    fn a_head_is_as_long_and_as_many_as_the_whole() {
        let large = frame(64_000, Some(LARGE));
        let heads = Keep {
            bytes: 134,
            heads_only: true,
        };
        let seen = Sighting {
            at: Instant::ZERO,
            wire: WireId {
                segment: 0,
                wire: 0,
            },
            frame: heads.of(&large),
            len: large.bytes.len(),
            dropped: None,
        };
        assert_eq!(seen.segment_count(), large.segment_count());
        let full = seen.in_full().bytes;
        assert_eq!((full.len(), &full[..134]), (64_000, &large.bytes[..134]));
        assert!(full[134..].iter().all(|byte| *byte == 0));
    }
}
