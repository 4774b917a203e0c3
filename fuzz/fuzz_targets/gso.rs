//! Any frame with any offload metadata: what passes the check can be cut, each cut passes the
//! check again, and the cuts hold the whole payload, in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use packtrain_proto::buffer::{Buffer, LARGE_CAPACITY};
use packtrain_proto::gso;
use packtrain_proto::offload::{Gso, GsoKind, Offload, PartialChecksum};

/// The first ten bytes are metadata, the rest is the frame. Two bits of the first say that a
/// length is the true one: the fuzzer would have to guess it otherwise.
fn split(data: &[u8]) -> Option<(Offload, &[u8])> {
    let (head, frame) = data.split_at_checked(10)?;
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let kind = match head[0] & 3 {
        0 => None,
        1 => Some(GsoKind::TcpV4),
        2 => Some(GsoKind::TcpV6),
        _ => Some(GsoKind::UdpL4),
    };
    let header_len = if head[0] & 4 != 0 {
        gso::header_len(frame)?
    } else {
        word(2)
    };
    let checksum = (head[0] & 16 == 0).then(|| match kind {
        Some(GsoKind::UdpL4) if head[0] & 4 != 0 => PartialChecksum {
            start: header_len.saturating_sub(8),
            offset: gso::UDP_CHECKSUM_OFFSET,
        },
        _ => PartialChecksum {
            start: word(6),
            offset: word(8),
        },
    });
    let gso = kind.map(|kind| Gso {
        kind,
        ecn: head[0] & 8 != 0,
        header_len,
        segment_len: word(4),
    });
    Some((Offload { checksum, gso }, frame))
}

fuzz_target!(|data: &[u8]| {
    let Some((offload, frame)) = split(data) else {
        return;
    };
    if frame.len() > LARGE_CAPACITY {
        return;
    }
    let checked = gso::check(frame, &offload);
    if let (Some(partial), None) = (offload.checksum, offload.gso) {
        let mut finished = frame.to_vec();
        assert_eq!(
            gso::finish_checksum(&mut finished, partial).is_ok(),
            checked.is_ok()
        );
    }
    let mut out = Buffer::with_capacity(LARGE_CAPACITY);
    let Some(gso) = offload.gso else {
        assert_eq!(
            gso::slice(frame, &offload, 0, 1, &mut out).is_ok(),
            checked.is_ok()
        );
        return;
    };
    if checked.is_err() {
        assert!(gso::slice(frame, &offload, 0, 1, &mut out).is_err());
        return;
    }
    let segments = gso::segment_count(frame.len(), &gso);
    assert!(segments > 0);
    assert!(gso::slice(frame, &offload, segments, 1, &mut out).is_err());
    let mut payload = Vec::new();
    let mut first = 0;
    // The size of a cut depends on the data, so that cuts of every size are tried.
    let step = 1 + usize::from(data[1]) % segments.min(64);
    while first < segments {
        let count = step.min(segments - first);
        let rest = gso::slice(frame, &offload, first, count, &mut out).expect("within the frame");
        gso::check(&out, &rest).expect("a cut of a sound frame is sound");
        payload.extend_from_slice(&out[usize::from(gso.header_len)..]);
        first += count;
    }
    assert_eq!(payload, &frame[usize::from(gso.header_len)..]);
});
