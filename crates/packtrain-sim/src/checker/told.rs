//! A host is told of frames that are too long, as a router would tell it: by a sound message, from where they were to go, and never of what is
//! for a group.

use packtrain_proto::offload::Offload;

use crate::checksum::sum;
use crate::frame::Frame;
use crate::workload::flow::Flow;

const ONES: u16 = 0xffff;

/// Whether it is such a message, of a flow that goes the other way, and of a packet that is longer than what it says goes through.
pub fn is_sound(frame: &Frame, flows: &[Flow]) -> bool {
    let header = frame.header();
    let answers = |flow: &Flow| {
        flow.source == header.destination
            && flow.destination == header.source
            && !flow.destination.is_group()
    };
    let at = |tags: usize| frame.bytes.get(14 + tags * 4..);
    let is_tagged = frame.bytes.get(12..14) == Some(&[0x81, 0x00]);
    let packet = at(usize::from(is_tagged)).unwrap_or_default();
    let is_message = match packet.first().map(|byte| byte >> 4) {
        Some(4) => is_sound_v4(packet),
        Some(6) => is_sound_v6(packet),
        _ => false,
    };
    is_message && frame.offload == Offload::NONE && flows.iter().any(answers)
}

fn is_sound_v4(packet: &[u8]) -> bool {
    let Some((header, icmp)) = packet.split_at_checked(20) else {
        return false;
    };
    icmp.len() >= 36
        && header[9] == 1
        && word(header, 2) == packet.len()
        && icmp[..2] == [3, 4]
        && sum(0, header) == ONES
        && sum(0, icmp) == ONES
        && header[12..16] == icmp[24..28]
        && header[16..20] == icmp[20..24]
        && word(icmp, 6) < word(icmp, 10)
}

fn is_sound_v6(packet: &[u8]) -> bool {
    let Some((header, icmp)) = packet.split_at_checked(40) else {
        return false;
    };
    icmp.len() >= 56
        && header[6] == 58
        && word(header, 4) == icmp.len()
        && icmp[..2] == [2, 0]
        && sum(sum(58, &header[4..6]), &[&header[8..], icmp].concat()) == ONES
        && header[8..24] == icmp[32..48]
        && header[24..40] == icmp[16..32]
        && word(icmp, 6) < word(icmp, 12) + 40
}

fn word(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::flow::tests::one_of_each;
    use packtrain_proto::buffer::Buffer;
    use packtrain_proto::too_big;

    #[test]
    fn what_an_engine_says_of_each_flow_is_sound_and_no_byte_that_is_summed_may_be_another() {
        let flows = one_of_each();
        let mut told = [0; 2];
        for (flow, sequence) in flows.iter().flat_map(|flow| (0..5).map(move |n| (flow, n))) {
            let frame = flow.frame(sequence);
            assert!(!is_sound(&frame, &flows));
            let mut out = Buffer::with_capacity(too_big::ANSWER_MAX);
            if too_big::answer(&frame.bytes, 1, &mut out).is_err() {
                continue;
            }
            told[usize::from(flow.ipv6)] += 1;
            let mut frame = Frame::new(out.to_vec(), Offload::NONE);
            assert!(is_sound(&frame, &flows), "{flow:?}");
            for at in frame.bytes.len() - 40..frame.bytes.len() {
                frame.bytes[at] ^= 0x10;
                assert!(!is_sound(&frame, &flows), "byte {at}");
                frame.bytes[at] ^= 0x10;
            }
        }
        assert!(told[0] > 5 && told[1] > 5, "{told:?}");
    }
}
