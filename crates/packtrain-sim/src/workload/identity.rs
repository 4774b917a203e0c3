//! Which frame something is: read from its own bytes, wherever it turns up.

use packtrain_proto::wire::ethernet::ether_type;

use super::flow::{BARE, DESCRIPTION_LEN, Dress, Flow, TINY};
use crate::checksum;

/// Which frame something is, or which part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub flow: u16,
    pub sequence: u32,
    /// Number of the first segment that is there.
    pub segment: u16,
}

/// Which frame of which flow this is; `None` for what no flow ever sent.
pub fn identify(bytes: &[u8], flows: &[Flow]) -> Option<Identity> {
    let mut at = 12;
    let mut kind = word(bytes, at)?;
    if kind == ether_type::VLAN {
        at += 4;
        kind = word(bytes, at)?;
    }
    let payload = at + 2;
    let content = match kind {
        0..1536 => payload + 3,
        BARE => payload,
        ether_type::ARP => payload + 8,
        ether_type::IPV4 => {
            let offset = word(bytes, payload + 6)? & 0x1fff;
            transport_content(bytes, *bytes.get(payload + 9)?, payload + 20, offset == 0)?
        }
        ether_type::IPV6 => transport_content(bytes, *bytes.get(payload + 6)?, payload + 40, true)?,
        _ => return identify_tiny(kind, bytes.get(payload..)?, flows),
    };
    let description = bytes.get(content..content + DESCRIPTION_LEN)?;
    let flow = word(description, 0)?;
    let sequence = long(description, 2);
    let segment = word(description, 6)?;
    let known = flows.get(usize::from(flow))?;
    let meant = known.check(sequence, usize::from(segment)) == long(description, 8)
        && usize::from(segment) < known.segment_count(sequence);
    meant.then_some(Identity {
        flow,
        sequence,
        segment,
    })
}

fn transport_content(bytes: &[u8], protocol: u8, at: usize, first: bool) -> Option<usize> {
    Some(match protocol {
        _ if !first => at,
        checksum::UDP => at + 8,
        checksum::TCP => at + usize::from(*bytes.get(at + 12)? >> 4) * 4,
        _ => at,
    })
}

fn identify_tiny(kind: u16, payload: &[u8], flows: &[Flow]) -> Option<Identity> {
    let flow = kind.checked_sub(TINY)?;
    let Dress::Tiny { payload_len } = flows.get(usize::from(flow))?.dress else {
        return None;
    };
    let digits = payload.get(..payload_len.min(4))?;
    let sequence = digits
        .iter()
        .fold(0, |number, &digit| number << 8 | u32::from(digit));
    Some(Identity {
        flow,
        sequence,
        segment: 0,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::flow::tests::one_of_each;

    #[test]
    fn a_frame_says_which_one_it_is() {
        let flows = one_of_each();
        for flow in &flows {
            for sequence in 0..200 {
                let frame = flow.frame(sequence);
                let identity = Identity {
                    flow: flow.index,
                    sequence,
                    segment: 0,
                };
                assert_eq!(
                    identify(&frame.bytes, &flows),
                    Some(identity),
                    "{:?}",
                    flow.dress
                );
            }
        }
    }
}
