//! Explicit congestion notification (RFC 3168): a frame whose sender understands marks is marked where it would be dropped.
//!
//! ```text
//! IPv4  |version|  IHL  |    DSCP   |ECN|      IPv6  |version|    DSCP   |ECN| flow label …
//!       0       4       8           14  16           0       4           10  12
//!
//! 00 Not-ECT: drop it    01 ECT(1), 10 ECT(0): becomes 11    11 CE: marked before
//! ```
//!
//! Both kinds of ECT are marked alike, as RFC 8290 has it and Linux does. The mark of a GSO frame is that of each of its segments:
//! they are cut with its IP header. No transport checksum covers these bits.

use crate::wire::checksum;
use crate::wire::ethernet::ether_type;
use crate::wire::packet::{IPV4_HEADER_LEN, IPV6_HEADER_LEN, behind_tags, field};

const NOT_ECT: u8 = 0b00;
const CE: u8 = 0b11;
/// Within the second byte of an IPv6 header.
const IPV6_SHIFT: u32 = 4;

/// Puts Congestion Experienced on a frame, behind at most two VLAN tags. `false`: it is no IP, or its sender does not
/// understand marks; it is as it was. One that somebody before us has marked stays so.
pub fn mark(frame: &mut [u8]) -> bool {
    let Ok(tags) = behind_tags(frame) else {
        return false;
    };
    let packet = &mut frame[tags.network_start..];
    let version = packet.first().map(|first| first >> 4);
    match (tags.ether_type, version) {
        (ether_type::IPV4, Some(4)) if packet.len() >= IPV4_HEADER_LEN => mark_ipv4(packet),
        (ether_type::IPV6, Some(6)) if packet.len() >= IPV6_HEADER_LEN => mark_ipv6(packet),
        _ => false,
    }
}

fn mark_ipv4(packet: &mut [u8]) -> bool {
    if packet[1] & CE == NOT_ECT {
        return false;
    }
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    let after = before | u16::from(CE);
    packet[1] |= CE;
    let field = &mut packet[field::IPV4_CHECKSUM];
    let sum = !u16::from_be_bytes([field[0], field[1]]);
    let sum = checksum::update(sum, before, after);
    field.copy_from_slice(&(!sum).to_be_bytes());
    true
}

fn mark_ipv6(packet: &mut [u8]) -> bool {
    if packet[1] >> IPV6_SHIFT & CE == NOT_ECT {
        return false;
    }
    packet[1] |= CE << IPV6_SHIFT;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TAGS: [&[u16]; 3] = [
        &[],
        &[ether_type::VLAN],
        &[ether_type::QINQ, ether_type::VLAN],
    ];

    fn frame(tags: &[u16], kind: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 42]);
        }
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        frame
    }

    /// With a right checksum, computed over the whole header.
    fn ipv4(tos: u8, options: usize, rest: &[u8; 20]) -> Vec<u8> {
        let header_len = IPV4_HEADER_LEN + 4 * options;
        let mut packet = vec![0; header_len];
        packet[..20].copy_from_slice(rest);
        packet[0] = 0x40 | (header_len / 4) as u8;
        packet[1] = tos;
        packet[10..12].fill(0);
        let sum = checksum::checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([0xaa; 30]);
        packet
    }

    fn ipv6(class: u8) -> Vec<u8> {
        let mut packet = vec![0x5a; 60];
        packet[0] = 0x60 | class >> 4;
        packet[1] = class << 4 | 0xa;
        packet
    }

    proptest! {
        #[test]
        fn a_marked_ipv4_frame_is_the_one_that_its_sender_would_have_made_with_the_mark(
            tos: u8, options in 0usize..=10, rest: [u8; 20], tags in 0..TAGS.len(),
        ) {
            let of = |tos| frame(TAGS[tags], ether_type::IPV4, &ipv4(tos, options, &rest));
            let mut marked = of(tos);
            let is_capable = tos & CE != NOT_ECT;
            prop_assert_eq!(mark(&mut marked), is_capable);
            prop_assert_eq!(marked, of(if is_capable { tos | CE } else { tos }));
        }

        #[test]
        fn a_marked_ipv6_frame_differs_in_two_bits_of_its_traffic_class(
            class: u8, tags in 0..TAGS.len(),
        ) {
            let of = |class| frame(TAGS[tags], ether_type::IPV6, &ipv6(class));
            let mut marked = of(class);
            let is_capable = class & CE != NOT_ECT;
            prop_assert_eq!(mark(&mut marked), is_capable);
            prop_assert_eq!(marked, of(if is_capable { class | CE } else { class }));
        }

        #[test]
        fn what_is_no_ip_or_not_whole_stays_as_it_is(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            kind in prop::sample::select(vec![ether_type::ARP, ether_type::IPV4, ether_type::IPV6, 0x05dc]),
            version in 0u8..16,
        ) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = version << 4 | *first & 0xf;
            }
            let mut marked = frame(&[], kind, &bytes);
            let before = marked.clone();
            let is_whole = match kind {
                ether_type::IPV4 => version == 4 && bytes.len() >= 20,
                ether_type::IPV6 => version == 6 && bytes.len() >= 40,
                _ => false,
            };
            let is_marked = mark(&mut marked);
            prop_assert!(is_whole || !is_marked);
            prop_assert!(is_marked || marked == before);
            prop_assert!(!mark(&mut before[..13.min(before.len())].to_vec()));
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut packet = ipv4(2, 0, &[7; 20]);
        packet[10] ^= 1;
        let mut marked = frame(&[], ether_type::IPV4, &packet);
        assert!(mark(&mut marked));
        assert_ne!(checksum::checksum(&marked[14..34]), 0);
    }
}
