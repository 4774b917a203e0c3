//! Every byte as it was sent, but for what offload may leave to others.
//!
//! A GSO frame may come in parts, each of whole segments: then it must be what the card would have
//! made of it. A checksum may be partial or finished, and must be right as what it claims to be. A
//! frame shorter than a wire's shortest may have been padded with zeros. And who has a queue that stands may have marked what its sender
//! says it may (RFC 3168).

use core::ops::Range;

use crate::checksum::Transport;
use crate::frame::{FRAME_BYTES_MIN, Frame};
use crate::net::ecn::{self, Marking};
use crate::workload::flow::Flow;
use crate::workload::identity::Identity;

/// The segments that arrived, or what is wrong with them.
pub fn check(flow: &Flow, identity: Identity, frame: &Frame) -> Result<Range<usize>, String> {
    let header_len = flow.headers_len(identity.sequence);
    let first = usize::from(identity.segment);
    let segments = match (flow.segment_len, frame.bytes.len().checked_sub(header_len)) {
        (_, None) => return Err("shorter than its headers".into()),
        (None, _) => 1,
        (Some(_), _) if frame.offload.gso.is_none() => 1,
        (Some(segment), Some(content)) => content.div_ceil(usize::from(segment)).max(1),
    };
    let range = first..first + segments;
    let count = flow.segment_count(identity.sequence);
    if range.end > count {
        return Err(format!("segments {range:?} of {count}"));
    }
    let mut expected = flow.part(identity.sequence, range.clone());
    let len = expected.bytes.len();
    let padded = len < FRAME_BYTES_MIN
        && frame.bytes.len() == FRAME_BYTES_MIN
        && frame.bytes[len..].iter().all(|&byte| byte == 0);
    if frame.bytes.len() != len && !padded {
        return Err(format!("{} bytes instead of {len}", frame.bytes.len()));
    }
    if frame.offload.gso != expected.offload.gso {
        let (is, was) = (frame.offload.gso, expected.offload.gso);
        return Err(format!("offload is {is:?} instead of {was:?}"));
    }
    let checksum = check_checksum(&expected, frame)?;
    let is = &frame.bytes;
    let is_another = |was: &[u8]| (0..len).find(|at| !checksum.contains(at) && is[*at] != was[*at]);
    let Some(at) = is_another(&expected.bytes) else {
        return Ok(range);
    };
    let was = expected.bytes[at];
    if ecn::mark(&mut expected) == Marking::Marked && is_another(&expected.bytes).is_none() {
        return Ok(range);
    }
    Err(format!(
        "byte {at} is {:#04x} instead of {was:#04x}",
        is[at]
    ))
}

/// Where the checksum field is: it was compared here, and need not have the sent bytes.
fn check_checksum(expected: &Frame, frame: &Frame) -> Result<Range<usize>, String> {
    // Found in what was expected: nothing that came is believed.
    let Some(transport) = Transport::find(&expected.bytes) else {
        return match frame.offload.checksum {
            None => Ok(0..0),
            Some(partial) => Err(format!("{partial:?} where there is no checksum")),
        };
    };
    match frame.offload.checksum {
        None if frame.offload.gso.is_some() => {
            return Err("a GSO frame with a finished checksum".into());
        }
        None if !transport.is_finished(&frame.bytes) => {
            return Err("its checksum is wrong".into());
        }
        Some(partial)
            if usize::from(partial.start) != transport.start
                || usize::from(partial.offset) != transport.field_offset() =>
        {
            return Err(format!("{partial:?} instead of {transport:?}"));
        }
        Some(_) if !transport.is_partial(&frame.bytes) => {
            return Err("its partial checksum is not the sum of the pseudo header".into());
        }
        _ => {}
    }
    let at = transport.start + transport.field_offset();
    Ok(at..at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::nic;
    use crate::workload::flow::tests::one_of_each;
    use crate::workload::identity::identify;

    #[test]
    fn a_frame_is_itself_and_every_segment_of_it_is_part_of_it() {
        let flows = one_of_each();
        for flow in &flows {
            for sequence in 0..50 {
                let frame = flow.frame(sequence);
                let identity = identify(&frame.bytes, &flows).unwrap();
                let all = 0..flow.segment_count(sequence);
                assert_eq!(check(flow, identity, &frame), Ok(all));
                for (i, segment) in nic::to_wire(frame).unwrap().iter().enumerate() {
                    let identity = identify(&segment.bytes, &flows).unwrap();
                    assert_eq!(check(flow, identity, segment), Ok(i..i + 1));
                }
            }
        }
    }

    #[test]
    fn any_changed_byte_is_found() {
        let flows = one_of_each();
        for flow in &flows {
            let frame = flow.frame(1);
            let identity = identify(&frame.bytes, &flows).unwrap();
            // All of the headers, and of long frames every so many bytes.
            let len = frame.bytes.len();
            let dense = len.min(100);
            for at in (0..dense).chain((dense..len).step_by(1 + len / 1000)) {
                let mut changed = frame.clone();
                changed.bytes[at] ^= 0x80;
                assert!(
                    check(flow, identity, &changed).is_err(),
                    "{:?} byte {at}",
                    flow.dress
                );
            }
        }
    }

    #[test]
    fn a_frame_may_be_marked_where_its_sender_says_so_and_nowhere_else() {
        let (mut capable, mut others) = (0, 0);
        let mut flows = one_of_each();
        for seed in 0..8 {
            flows.iter_mut().for_each(|flow| flow.seed = seed);
            for flow in &flows {
                let frame = flow.frame(1);
                let identity = identify(&frame.bytes, &flows).unwrap();
                let (kind, start) = frame.network();
                let mut marked = frame.clone();
                if ecn::mark(&mut marked) == Marking::Marked {
                    capable += 1;
                    let all = 0..flow.segment_count(1);
                    assert_eq!(check(flow, identity, &marked), Ok(all));
                    // ECT(1) instead.
                    marked = frame.clone();
                    marked.bytes[start + 1] ^= if kind == 0x0800 { 0b11 } else { 0b11 << 4 };
                } else if let Some(byte) = marked.bytes.get_mut(start + 1) {
                    others += 1;
                    *byte ^= 0b11;
                } else {
                    continue;
                }
                assert!(check(flow, identity, &marked).is_err(), "{:?}", flow.dress);
            }
        }
        assert!(capable > 0 && others > 0);
    }

    #[test]
    fn a_frame_cut_short_or_padded_with_more_than_zeros_is_found() {
        let flows = one_of_each();
        let flow = &flows[1];
        let frame = flow.frame(1);
        let identity = identify(&frame.bytes, &flows).unwrap();
        let resized = |len, fill| {
            let mut frame = frame.clone();
            frame.bytes.resize(len, fill);
            check(flow, identity, &frame)
        };
        assert!(resized(60, 0).is_ok());
        assert!(resized(60, 1).is_err());
        assert!(resized(61, 0).is_err() && resized(16, 0).is_err());
    }
}
